//! The receiver: what arrived of each stream, from the probes in the frames.
//!
//! A [`Receiver`] takes whole batches from a port and accounts them to any number of streams; a
//! [`StreamReceiver`] is the account of one. The memory of a stream is fixed however long it runs,
//! and no frame costs an allocation or a lock. Delay is counted from the time at which a frame was
//! *due*: a sender or a device that stalls shows up in every frame that should have gone in the
//! meantime. It must never drop a sample silently: what it cannot account for is counted too.

mod delay;
mod histogram;
mod reordering;
mod report;
mod stream;
mod window;

use packet::{Batch, PacketBuf};
use serde::{Deserialize, Serialize};

use crate::probe::{ProbeHeader, ProbeWords, StreamId};

pub use report::{Distribution, QUANTILES, Quantile, ReorderingReport, StreamReport};
pub use stream::StreamReceiver;

/// Bytes of a frame on the wire that ports do not hand out.
const FCS_LEN: u64 = 4;

/// Frames whose probes are read before they are accounted: so the loads from frames that are not in
/// the cache wait for memory together. Eight as on the datapath's stages that do the same.
const GROUP: usize = 8;

/// The frames that count as late, and the checks made of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiverOptions {
    /// Frames that arrive after this time are late, nanoseconds of the run's clock.
    pub deadline_ns: u64,
    /// Frames that arrive so long after they were due are late, nanoseconds (the waiting time of
    /// RFC 7680, clause 2.4).
    pub late_after_ns: u64,
    /// Whether all checksums of each frame are checked, so that a corrupted byte outside the probe
    /// is seen too. This reads the whole frame.
    pub verify_checksums: bool,
}

impl Default for ReceiverOptions {
    /// No frame is late, and only probes are checked.
    fn default() -> Self {
        Self { deadline_ns: u64::MAX, late_after_ns: u64::MAX, verify_checksums: false }
    }
}

/// All frames of a port, whether they belong to a stream or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiverCounts {
    /// Frames.
    pub packets: u64,
    /// Their bytes, FCS counted.
    pub bytes: u64,
    /// Frames without a probe of these streams.
    pub foreign: u64,
}

/// The receiver of all streams that arrive at a port.
#[derive(Clone, Debug)]
pub struct Receiver {
    options: ReceiverOptions,
    counts: ReceiverCounts,
    /// From the stream's number to its place in `streams`; [`NOWHERE`] for others.
    places: Box<[u16; STREAMS]>,
    streams: Vec<StreamReceiver>,
    /// Whether the checksums of some stream are checked.
    has_checks: bool,
}

/// The number of stream numbers.
const STREAMS: usize = 1 << 16;

/// No place: there are fewer streams.
const NOWHERE: u16 = u16::MAX;

impl Receiver {
    /// Without streams: all frames are foreign.
    #[must_use]
    pub fn new(options: ReceiverOptions) -> Self {
        let places = Box::new([NOWHERE; STREAMS]);
        let (counts, streams) = (ReceiverCounts::default(), Vec::new());
        Self { options, counts, places, streams, has_checks: false }
    }

    /// Accounts for `stream` from frame number `first` on, and forgets what was counted of it.
    /// Earlier numbers are stale from now on. A port has up to 65,535 streams; more are refused by
    /// `false`.
    pub fn start_stream(&mut self, stream: StreamId, first: u64) -> bool {
        self.start_stream_with(stream, first, self.options)
    }

    /// As [`Receiver::start_stream`], with options of the stream's own.
    pub fn start_stream_with(
        &mut self,
        stream: StreamId,
        first: u64,
        options: ReceiverOptions,
    ) -> bool {
        let account = StreamReceiver::starting_at(stream, first, options);
        self.has_checks |= options.verify_checksums;
        let place = &mut self.places[usize::from(stream.0)];
        if let Some(old) = self.streams.get_mut(usize::from(*place)) {
            *old = account;
            return true;
        }
        let Some(new) = u16::try_from(self.streams.len()).ok().filter(|new| *new != NOWHERE) else {
            return false;
        };
        *place = new;
        self.streams.push(account);
        true
    }

    /// Forgets all streams and counts.
    pub fn clear(&mut self) {
        self.places.fill(NOWHERE);
        self.streams.clear();
        self.has_checks = false;
        self.counts = ReceiverCounts::default();
    }

    /// Counts of the port.
    #[must_use]
    pub fn counts(&self) -> ReceiverCounts {
        self.counts
    }

    /// The account of a stream.
    #[must_use]
    pub fn stream(&self, stream: StreamId) -> Option<&StreamReceiver> {
        self.streams.get(usize::from(self.places[usize::from(stream.0)]))
    }

    /// The accounts of all streams.
    #[must_use]
    pub fn streams(&self) -> &[StreamReceiver] {
        &self.streams
    }

    /// Takes all frames of a batch, which arrived at `now_ns`.
    pub fn take_batch(&mut self, batch: &Batch, now_ns: u64) {
        self.counts.packets += batch.len() as u64;
        for group in batch.frames().chunks(GROUP) {
            if self.has_checks {
                group.iter().for_each(|frame| self.take_checked(frame, now_ns));
            } else {
                self.take_group(group, now_ns);
            }
        }
    }

    /// Takes all frames of a batch, each of which arrived at a time of its own.
    pub fn take_arrived(&mut self, batch: &Batch, arrivals_ns: &[u64]) {
        self.counts.packets += batch.len() as u64;
        for (frame, arrived_ns) in batch.frames().iter().zip(arrivals_ns) {
            self.take_checked(frame, *arrived_ns);
        }
    }

    fn take_group(&mut self, frames: &[PacketBuf], now_ns: u64) {
        let mut words = [ProbeWords::default(); GROUP];
        for (words, frame) in words.iter_mut().zip(frames) {
            self.counts.bytes += frame.len() as u64 + FCS_LEN;
            *words = ProbeWords::read(frame.bytes());
        }
        for (words, frame) in words.iter().zip(frames) {
            if words.is_whole() {
                self.account(&words.probe(), now_ns);
            } else {
                self.take_odd_frame(frame.bytes(), &words.probe(), now_ns);
            }
        }
    }

    /// Takes a frame of which all checksums are checked, if its stream wants that.
    fn take_checked(&mut self, frame: &PacketBuf, now_ns: u64) {
        self.counts.bytes += frame.len() as u64 + FCS_LEN;
        let words = ProbeWords::read(frame.bytes());
        let probe = words.probe();
        if !words.is_whole() {
            return self.take_odd_frame(frame.bytes(), &probe, now_ns);
        }
        let place = self.places[usize::from(probe.stream.0)];
        match self.streams.get_mut(usize::from(place)) {
            Some(stream) if stream.verifies() && packet::verify(frame.bytes()).is_err() => {
                stream.count_corrupted();
            }
            Some(_) | None => self.account(&probe, now_ns),
        }
    }

    fn account(&mut self, probe: &ProbeHeader, now_ns: u64) {
        let place = self.places[usize::from(probe.stream.0)];
        match self.streams.get_mut(usize::from(place)) {
            Some(stream) => {
                stream.take_probe(probe, now_ns);
            }
            None => self.counts.foreign += 1,
        }
    }

    /// A frame whose probe is not whole, or that has none.
    #[cold]
    fn take_odd_frame(&mut self, frame: &[u8], probe: &ProbeHeader, now_ns: u64) {
        if let Some(probe) = ProbeHeader::read_before_padding(frame) {
            return self.account(&probe, now_ns);
        }
        let place = self.places[usize::from(probe.stream.0)];
        match self.streams.get_mut(usize::from(place)) {
            Some(stream) if stream.resembles(probe, now_ns) => stream.count_corrupted(),
            Some(_) | None => self.counts.foreign += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Receiver, ReceiverOptions};
    use crate::probe::{ProbeHeader, StreamId};
    use openflow::MacAddr;
    use packet::Batch;
    use packet::build::{FrameBuilder, Ipv4};
    use std::net::Ipv4Addr;

    fn frame(stream: u16, sequence: u32, due_ns: u64) -> Vec<u8> {
        let mac = MacAddr::from_u64;
        let addresses = Ipv4::new(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        let headers = FrameBuilder::ethernet(mac(2), mac(1)).ipv4(addresses).udp(1, 2);
        // The checksum is made with a probe in place: it then holds for every probe.
        let mut payload = [0; 18];
        let probe = ProbeHeader { stream: StreamId(stream), sequence, due_ns };
        probe.write(&mut payload);
        headers.payload(&payload).build()
    }

    fn batch(frames: &[Vec<u8>]) -> Batch {
        let mut batch = Batch::default();
        frames.iter().for_each(|frame| batch.push_slice(frame));
        batch
    }

    fn receiver(options: ReceiverOptions) -> Receiver {
        let mut receiver = Receiver::new(options);
        assert!(receiver.start_stream(StreamId(5), 0));
        assert!(receiver.start_stream(StreamId(900), 100));
        receiver
    }

    #[test]
    fn every_frame_is_counted_to_its_stream_or_as_foreign() {
        let mut receiver = receiver(ReceiverOptions::default());
        let mut frames = vec![vec![0; 60], vec![1; 12], frame(7, 0, 0)];
        frames.extend((0..20).map(|n| frame(5, n, u64::from(n))));
        frames.extend((90..120).map(|n| frame(900, n, u64::from(n))));
        receiver.take_batch(&batch(&frames), 1000);
        let counts = receiver.counts();
        assert_eq!((counts.packets, counts.foreign), (53, 3));
        assert_eq!(counts.bytes, 52 * 64 + 16);
        let report = receiver.stream(StreamId(5)).unwrap().report(Some(21));
        assert_eq!((report.received, report.lost), (20, 1));
        let report = receiver.stream(StreamId(900)).unwrap().report(None);
        assert_eq!((report.received, report.lost, report.stale), (20, 0, 10));
        receiver.clear();
        assert!(receiver.stream(StreamId(5)).is_none() && receiver.streams().is_empty());
    }

    /// Pktgen throws the sample after a lost probe away, and has percentiles of the last samples
    /// only.
    #[test]
    fn a_lost_probe_loses_no_other_sample() {
        let mut receiver = receiver(ReceiverOptions::default());
        let mut arrivals: Vec<(u64, u32)> = (0..20_000)
            .filter(|number| number % 10 != 9)
            .map(|n| (u64::from(n) * 1_000 + if n < 10_000 { 90_000 } else { 1_000 }, n))
            .collect();
        arrivals.sort_unstable();
        for (at_ns, number) in arrivals {
            let due_ns = u64::from(number) * 1_000;
            receiver.take_batch(&batch(&[frame(5, number, due_ns)]), at_ns);
        }
        let report = receiver.stream(StreamId(5)).unwrap().report(Some(20_000));
        assert_eq!((report.received, report.lost), (18_000, 2_000));
        let delay = report.delay.unwrap();
        assert_eq!(delay.count, 18_000);
        let is_near = |share, ns: f64| (delay.at_ns(share) / ns - 1.0).abs() < 0.02;
        assert!(is_near(0.25, 1_000.0) && is_near(0.75, 90_000.0), "{delay:?}");
    }

    #[test]
    fn a_corrupted_frame_is_its_streams_wherever_the_bit_is() {
        let options = ReceiverOptions { verify_checksums: true, ..ReceiverOptions::default() };
        // Addresses and ports, UDP checksum and payload: what no length and no type is.
        for bit in (26 * 8..38 * 8).chain(40 * 8..60 * 8) {
            let mut receiver = receiver(options);
            let whole = [frame(5, 0, 1_000_000), frame(5, 1, 1_000_100)];
            receiver.take_batch(&batch(&whole), 1_000_200);
            let mut bad = frame(5, 2, 1_000_200);
            bad[bit / 8] ^= 1 << (bit % 8);
            receiver.take_batch(&batch(&[bad]), 1_000_300);
            let report = receiver.stream(StreamId(5)).unwrap().report(Some(3));
            let foreign = receiver.counts().foreign;
            assert_eq!((report.received, report.lost), (2, 1), "bit {bit}");
            assert_eq!(report.corrupted + foreign, 1, "bit {bit}");
            // Only a stream's number that was hit hides whose frame it was.
            assert!(foreign == 0 || (48 * 8..50 * 8).contains(&bit), "bit {bit}");
        }
    }

    #[test]
    fn each_stream_has_its_own_options() {
        let mut receiver = Receiver::new(ReceiverOptions::default());
        let checked = ReceiverOptions { verify_checksums: true, ..ReceiverOptions::default() };
        let hurried = ReceiverOptions { late_after_ns: 100, ..ReceiverOptions::default() };
        assert!(receiver.start_stream_with(StreamId(1), 0, checked));
        assert!(receiver.start_stream_with(StreamId(2), 0, hurried));
        for stream in [1, 2] {
            let mut bad = frame(stream, 0, 1_000);
            // An address, which a probe says nothing about.
            bad[30] ^= 1;
            receiver.take_batch(&batch(&[bad, frame(stream, 1, 1_000)]), 1_101);
        }
        let report = |stream| receiver.stream(StreamId(stream)).unwrap().report(None);
        assert_eq!((report(1).corrupted, report(1).received, report(1).late), (1, 1, 0));
        assert_eq!((report(2).corrupted, report(2).received, report(2).late), (0, 2, 2));
    }

    #[test]
    fn zero_bytes_are_no_corrupted_probe() {
        let mut receiver = Receiver::new(ReceiverOptions::default());
        assert!(receiver.start_stream(StreamId(0), 0));
        receiver.take_batch(&batch(&[vec![0; 60], vec![7; 9], frame(0, 0, 5)]), 10);
        let report = receiver.stream(StreamId(0)).unwrap().report(None);
        assert_eq!((report.received, report.corrupted, receiver.counts().foreign), (1, 0, 2));
    }

    #[test]
    fn padding_behind_the_packet_is_passed_over() {
        let mut receiver = receiver(ReceiverOptions::default());
        let mut padded = frame(5, 0, 10);
        padded.extend_from_slice(&[0; 4]);
        receiver.take_batch(&batch(&[padded]), 20);
        assert_eq!(receiver.stream(StreamId(5)).unwrap().report(None).received, 1);
        assert_eq!(receiver.counts().foreign, 0);
    }
}
