//! The probe header: it identifies a payload to the receiver, which needs no other channel.
//!
//! Sixteen bytes at the start of the UDP payload: magic, stream, sequence number and the time at
//! which the frame was *due*. A frame of 64 bytes (FCS counted) has 18 bytes of UDP payload, so
//! the smallest frame carries it. It must never grow past that.

/// Bytes that a probe needs of a payload.
pub const PROBE_LEN: usize = 16;

/// The first two bytes of every probe: anything else that arrives is foreign and not counted.
const MAGIC: [u8; 2] = [0x57, 0xe1];

/// Number of a trial's stream; it distinguishes late probes of an earlier trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StreamId(pub u16);

/// The header of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeHeader {
    /// The stream.
    pub stream: StreamId,
    /// Number of the frame within the run, from 0.
    pub sequence: u32,
    /// Due time of the frame by the schedule, in nanoseconds of the run's clock.
    pub due_ns: u64,
}

impl ProbeHeader {
    /// Writes the probe to the start of `payload`.
    ///
    /// # Panics
    /// When `payload` is shorter than [`PROBE_LEN`]: [`crate::stream::TestStream`] never makes one.
    pub fn write(&self, payload: &mut [u8]) {
        payload[0..2].copy_from_slice(&MAGIC);
        payload[2..4].copy_from_slice(&self.stream.0.to_be_bytes());
        payload[4..8].copy_from_slice(&self.sequence.to_be_bytes());
        payload[8..16].copy_from_slice(&self.due_ns.to_be_bytes());
    }

    /// Reads a probe; `None` when the payload is too short or not a probe.
    #[must_use]
    pub fn read(payload: &[u8]) -> Option<Self> {
        let (head, _) = payload.split_first_chunk::<PROBE_LEN>()?;
        let [m0, m1, s0, s1, n0, n1, n2, n3, due @ ..] = *head;
        if [m0, m1] != MAGIC {
            return None;
        }
        Some(Self {
            stream: StreamId(u16::from_be_bytes([s0, s1])),
            sequence: u32::from_be_bytes([n0, n1, n2, n3]),
            due_ns: u64::from_be_bytes(due),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{PROBE_LEN, ProbeHeader, StreamId};

    #[test]
    fn reads_what_it_wrote_and_nothing_else() {
        let probe = ProbeHeader { stream: StreamId(513), sequence: 0xdead_beef, due_ns: 1 << 60 };
        let mut payload = [0xaa; 18];
        probe.write(&mut payload);
        assert_eq!(ProbeHeader::read(&payload), Some(probe));
        assert_eq!(payload[16..], [0xaa, 0xaa]);
        for len in 0..PROBE_LEN {
            assert_eq!(ProbeHeader::read(&payload[..len]), None);
        }
        payload[0] ^= 1;
        assert_eq!(ProbeHeader::read(&payload), None);
    }
}
