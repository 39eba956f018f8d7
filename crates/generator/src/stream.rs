//! A stream of test traffic: its payloads and, for raw ports, the hosts of its frames.
//!
//! A stream has a size in bytes of the whole frame as the literature counts it, FCS included, so
//! that "64" is the smallest Ethernet frame. It must never make a frame that cannot hold a probe.

use std::net::Ipv4Addr;

use crate::probe::{PROBE_LEN, ProbeHeader, StreamId};

/// Bytes of a UDP/IPv4/Ethernet frame that are not payload: 14 + 20 + 8, and 4 of FCS.
pub const OVERHEAD_WITH_FCS: usize = 46;

/// The smallest and the largest frame of a stream, FCS counted.
pub const FRAME_SIZES: std::ops::RangeInclusive<usize> = 64..=1518;

/// One end of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// Ethernet address.
    pub mac: [u8; 6],
    /// IPv4 address.
    pub ip: Ipv4Addr,
    /// UDP port.
    pub port: u16,
}

/// Payloads of one size with a probe at their end.
#[derive(Clone, Debug)]
pub struct TestStream {
    id: StreamId,
    payload: Vec<u8>,
}

/// A stream that cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// The frame size is outside [`FRAME_SIZES`].
    #[error("frame size of {0} bytes: 64 to 1518 are possible, FCS counted")]
    FrameSize(usize),
}

impl TestStream {
    /// A stream of frames of `frame_size` bytes, FCS counted.
    ///
    /// # Errors
    /// [`StreamError::FrameSize`] outside [`FRAME_SIZES`].
    pub fn new(id: StreamId, frame_size: usize) -> Result<Self, StreamError> {
        if !FRAME_SIZES.contains(&frame_size) {
            return Err(StreamError::FrameSize(frame_size));
        }
        let payload = vec![0; (frame_size - OVERHEAD_WITH_FCS).max(PROBE_LEN)];
        Ok(Self { id, payload })
    }

    /// Which stream it is.
    #[must_use]
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// Length of the UDP payload in bytes.
    #[must_use]
    pub fn payload_len(&self) -> usize {
        self.payload.len()
    }

    /// The payload of frame `sequence`, due at `due_ns`.
    pub fn payload(&mut self, sequence: u32, due_ns: u64) -> &[u8] {
        ProbeHeader { stream: self.id, sequence, due_ns }.write(&mut self.payload);
        &self.payload
    }
}

#[cfg(test)]
mod tests {
    use super::{StreamError, TestStream};
    use crate::probe::{ProbeHeader, StreamId};

    #[test]
    fn the_smallest_frame_holds_a_probe() {
        let mut stream = TestStream::new(StreamId(3), 64).unwrap();
        assert_eq!(stream.payload_len(), 18);
        let probe = ProbeHeader::read(stream.payload(9, 77)).unwrap();
        assert_eq!((probe.stream, probe.sequence, probe.due_ns), (StreamId(3), 9, 77));
    }

    #[test]
    fn sizes_outside_ethernet_are_refused() {
        for size in [0, 63, 1519] {
            assert_eq!(
                TestStream::new(StreamId(0), size).unwrap_err(),
                StreamError::FrameSize(size)
            );
        }
        assert_eq!(TestStream::new(StreamId(0), 1516).unwrap().payload_len(), 1470);
    }
}
