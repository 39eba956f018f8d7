//! The sending side of a port without a thread and without a clock: the caller gives the
//! time.
//!
//! It counts what the engine executes for a frame, and shows what a profile would send. It is the
//! very transmitter that a session's threads run. It must never look at the clock of the machine.

use netdev::{PortError, TxQueue};

use super::load::{PortFacts, build};
use super::{SessionError, SessionOptions};
use crate::probe::StreamId;
use crate::profile::{Profile, StreamSpec};
use crate::transmit::{TransmitLimits, TransmitStep, Transmitter};

/// The longest frame that a port without a device takes, without headers.
const MTU: u32 = 65_535;

/// The address of a port without a device.
const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

/// The streams of one port, sent when they are asked for.
#[derive(Debug)]
pub struct VirtualSender {
    transmitter: Transmitter,
}

impl VirtualSender {
    /// Streams on a line of `line_rate_bps`; the first frames are due at 0.
    ///
    /// # Errors
    /// The mistake in the first stream that cannot be sent.
    pub fn start(streams: &[StreamSpec], line_rate_bps: f64) -> Result<Self, SessionError> {
        let specs = Profile { streams: streams.to_vec() }.named()?.streams;
        let ids: Vec<(StreamId, u64)> = (1..=u16::MAX).map(|id| (StreamId(id), 0)).collect();
        if specs.len() > ids.len() {
            let text = format!("{} streams: use at most {}", specs.len(), ids.len());
            return Err(SessionError::Option(text));
        }
        let port = PortFacts { name: "a port without a device", mac: MAC, mtu: MTU, line_rate_bps };
        let (streams, _) = build(&port, &specs, &ids)?;
        let options = SessionOptions::default();
        let mut transmitter = Transmitter::new(TransmitLimits {
            burst: options.burst,
            late_after_ns: options.late_after_ns,
            unsent_after_ns: options.unsent_after_ns,
        });
        transmitter.load(streams);
        transmitter.start(0, u64::MAX, 1.0);
        Ok(Self { transmitter })
    }

    /// Offers a burst of what is due at `now_ns` to the queue; true where something was.
    ///
    /// # Errors
    /// Of the queue.
    pub fn step(&mut self, now_ns: u64, queue: &mut dyn TxQueue) -> Result<bool, PortError> {
        Ok(self.transmitter.step(now_ns, queue)? == TransmitStep::Sent)
    }

    /// Frames that the queue has taken so far.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.transmitter.counts().packets
    }
}

#[cfg(test)]
mod tests {
    use super::VirtualSender;
    use crate::profile::{FrameSize, Rate, StreamSpec};

    #[test]
    fn what_is_due_is_sent_and_nothing_else() {
        let mut queue = netdev::open_text("null:").unwrap().tx;
        let rate = Rate::PacketsPerSecond(1e6);
        let streams = [StreamSpec { rate, ..StreamSpec::default() }];
        let mut sender = VirtualSender::start(&streams, 1e10).unwrap();
        assert!(sender.step(9_500, queue.as_mut()).unwrap());
        assert_eq!(sender.sent(), 10);
        assert!(!sender.step(9_500, queue.as_mut()).unwrap());
        let wrong = [StreamSpec { packet: "eth/udp".into(), ..StreamSpec::default() }];
        assert!(VirtualSender::start(&wrong, 1e10).is_err());
    }

    /// E3's recipe, which goes wrong where the gap is that of another size: at any time, what has
    /// left is 80 % of the line to a frame. Stalls of 5 ms, the first at the start, leave nothing
    /// behind: a measurement between two departures has them in the figure, over 0.7 s as 0.7 %.
    #[test]
    fn a_range_of_sizes_has_its_rate_to_a_frame_after_stalls() {
        const LINE_BPS: f64 = 10e9;
        let mut queue = netdev::open_text("null:").unwrap().tx;
        let size = FrameSize::Range { min: 128, max: 1518, step: 1, random: Some(1) };
        let stream = StreamSpec { size, rate: Rate::PercentOfLine(80.0), ..StreamSpec::default() };
        let mut sender = VirtualSender::start(&[stream], LINE_BPS).unwrap();
        let mut now_ns = 5_000_000;
        for turn in 0..2_000_u64 {
            while sender.step(now_ns, queue.as_mut()).unwrap() {}
            let counts = sender.transmitter.counts();
            let bits = 8 * (counts.bytes + 20 * counts.packets);
            let wanted = 0.8 * LINE_BPS * now_ns as f64 / 1e9;
            let frame = 8.0 * (1518.0 + 20.0);
            assert!((bits as f64 - wanted).abs() <= frame, "{bits} bits at {now_ns} ns");
            assert_eq!(counts.unsent, 0);
            now_ns += if turn % 500 == 499 { 5_000_000 } else { 1_000 + turn * 7_919 % 50_000 };
        }
        assert!(now_ns > 60_000_000);
    }
}
