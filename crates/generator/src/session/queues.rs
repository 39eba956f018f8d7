//! The senders of a port, one for each of its queues, and which streams each of them sends.
//!
//! A stream has one queue, so that its frames stay in order; streams that follow each other have
//! the same one, since the end of one starts the other. Streams are dealt to the queues in turn. To
//! the session the port is one: commands go to all of its senders and reports are put together. It
//! must never add up what cannot be added: gaps between departures are those of each queue.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use netdev::TxQueue;

use super::SessionError;
use super::sender::{
    PortSender, SendCommand, SendReportSoFar, SenderFlags, SenderHandle, SenderPlace,
};
use crate::clock::RunClock;
use crate::probe::StreamId;
use crate::statistics::GapStatistics;
use crate::transmit::{PortStream, SendCounts, TransmitLimits};

/// The senders of a port.
#[derive(Debug)]
pub(super) struct PortSenders {
    senders: Vec<PortSender>,
    /// The sender of each stream, in the order in which they were loaded.
    of_stream: Vec<usize>,
}

impl PortSenders {
    /// Starts a thread for each queue; `place` says where each of them runs.
    ///
    /// # Errors
    /// When no thread can be started.
    pub(super) fn start(
        queues: Vec<Box<dyn TxQueue>>,
        mut place: impl FnMut() -> SenderPlace,
        limits: TransmitLimits,
        clock: RunClock,
    ) -> Result<Self, SessionError> {
        let start = |queue| PortSender::start(&place(), queue, limits, clock);
        let senders: Result<Vec<PortSender>, SessionError> =
            queues.into_iter().map(start).collect();
        Ok(Self { senders: senders?, of_stream: Vec::new() })
    }

    /// Ends the threads and gives their queues back.
    pub(super) fn end(self) -> Vec<Box<dyn TxQueue>> {
        self.senders.into_iter().map(PortSender::end).collect()
    }

    /// The flags that the session shares with each of the threads.
    pub(super) fn flags(&self) -> impl Iterator<Item = Arc<SenderFlags>> {
        self.senders.iter().map(|sender| Arc::clone(&sender.flags))
    }

    /// Second handles of all senders, for the watcher.
    pub(super) fn handles(&self) -> Vec<SenderHandle> {
        self.senders.iter().filter_map(PortSender::handle).collect()
    }

    /// A second handle of the sender that answers for claimed addresses.
    pub(super) fn answerer(&self) -> Option<SenderHandle> {
        self.senders.first()?.handle()
    }

    /// Whether any of them has something to send.
    pub(super) fn is_transmitting(&self) -> bool {
        self.senders.iter().any(|sender| sender.flags.is_transmitting())
    }

    /// Tells all of them the same.
    pub(super) fn send(&self, command: impl Fn() -> SendCommand) {
        self.senders.iter().for_each(|sender| sender.send(command()));
    }

    /// Tells all of them to start their streams.
    pub(super) fn start_streams(&self, at_ns: u64, end_ns: u64, factor: f64) {
        self.senders.iter().for_each(|sender| sender.start_streams(at_ns, end_ns, factor));
    }

    /// Replaces the streams.
    pub(super) fn load(&mut self, streams: Vec<PortStream>) {
        let (dealt, of_stream) = deal(streams, self.senders.len());
        self.of_stream = of_stream;
        for (sender, streams) in self.senders.iter().zip(dealt) {
            sender.send(SendCommand::Load(streams));
        }
    }

    /// Asks all of them for the numbers of their streams, which come in the order in which these
    /// were loaded.
    pub(super) fn numbers(
        &self,
        question: impl Fn(Sender<Vec<(StreamId, u64)>>) -> SendCommand,
    ) -> Vec<(StreamId, u64)> {
        let ask = |sender: &PortSender| sender.ask(&question).unwrap_or_default();
        in_order(self.senders.iter().map(ask).collect(), &self.of_stream)
    }

    /// The counts of all of them.
    pub(super) fn report(&self) -> SendReportSoFar {
        let ask = |sender: &PortSender| sender.ask(SendCommand::Report).unwrap_or_default();
        let reports: Vec<SendReportSoFar> = self.senders.iter().map(ask).collect();
        merge(reports, &self.of_stream)
    }
}

/// Deals streams to a number of queues; the queue of each.
fn deal(streams: Vec<PortStream>, queues: usize) -> (Vec<Vec<PortStream>>, Vec<usize>) {
    let nexts: Vec<Option<usize>> = streams.iter().map(|stream| stream.next).collect();
    let of_stream = queues_of(&nexts, queues);
    let mut dealt: Vec<Vec<PortStream>> = (0..queues).map(|_| Vec::new()).collect();
    let mut places = Vec::new();
    for (stream, queue) in streams.into_iter().zip(&of_stream) {
        places.push(dealt[*queue].len());
        dealt[*queue].push(stream);
    }
    for stream in dealt.iter_mut().flatten() {
        stream.next = stream.next.map(|next| places[next]);
    }
    (dealt, of_stream)
}

/// The queue of each stream: the same for streams that follow each other, and else in turn.
fn queues_of(nexts: &[Option<usize>], queues: usize) -> Vec<usize> {
    /// The first stream that this one is known to belong to; ways become shorter with each look.
    fn first(firsts: &mut [usize], mut stream: usize) -> usize {
        while firsts[stream] != stream {
            firsts[stream] = firsts[firsts[stream]];
            stream = firsts[stream];
        }
        stream
    }
    let mut firsts: Vec<usize> = (0..nexts.len()).collect();
    for (stream, next) in nexts.iter().enumerate() {
        let Some(next) = next else { continue };
        let (a, b) = (first(&mut firsts, stream), first(&mut firsts, *next));
        firsts[a.max(b)] = a.min(b);
    }
    let mut count = 0;
    let mut of_stream = Vec::new();
    for stream in 0..nexts.len() {
        let first = first(&mut firsts, stream);
        // The first of those that belong together comes before the others.
        let queue = of_stream.get(first).copied().unwrap_or_else(|| {
            count += 1;
            (count - 1) % queues.max(1)
        });
        of_stream.push(queue);
    }
    of_stream
}

/// Puts the reports of all queues together.
fn merge(reports: Vec<SendReportSoFar>, of_stream: &[usize]) -> SendReportSoFar {
    let mut whole = SendReportSoFar::default();
    for report in &reports {
        whole.counts = add_counts(&whole.counts, &report.counts);
        whole.gaps = GapStatistics {
            count: whole.gaps.count + report.gaps.count,
            p50_ns: whole.gaps.p50_ns.max(report.gaps.p50_ns),
            p99_ns: whole.gaps.p99_ns.max(report.gaps.p99_ns),
            max_ns: whole.gaps.max_ns.max(report.gaps.max_ns),
        };
        whole.unanswered += report.unanswered;
        whole.stopped = whole.stopped.or_else(|| report.stopped.clone());
        whole.is_paused |= report.is_paused;
    }
    let streams = reports.into_iter().map(|report| report.streams).collect();
    whole.streams = in_order(streams, of_stream);
    whole
}

/// The items of each queue's streams, in the order of all streams.
fn in_order<T>(of_queues: Vec<Vec<T>>, of_stream: &[usize]) -> Vec<T> {
    let mut left: Vec<_> = of_queues.into_iter().map(Vec::into_iter).collect();
    of_stream.iter().filter_map(|queue| left.get_mut(*queue)?.next()).collect()
}

fn add_counts(a: &SendCounts, b: &SendCounts) -> SendCounts {
    let departures = match (a.departures_ns, b.departures_ns) {
        (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
        (one, other) => one.or(other),
    };
    SendCounts {
        packets: a.packets + b.packets,
        bytes: a.bytes + b.bytes,
        unsent: a.unsent + b.unsent,
        late: a.late + b.late,
        late_ns_max: a.late_ns_max.max(b.late_ns_max),
        departures_ns: departures,
    }
}

#[cfg(test)]
mod tests {
    use super::{GapStatistics, SendCounts, SendReportSoFar, merge, queues_of};
    use crate::transmit::StreamCounts;

    #[test]
    fn streams_are_dealt_in_turn_and_chains_stay_together() {
        assert_eq!(queues_of(&[None; 5], 2), [0, 1, 0, 1, 0]);
        assert_eq!(queues_of(&[None; 3], 1), [0; 3]);
        // 3 starts 1 and 1 starts 0; 4 goes on for ever.
        let nexts = [None, Some(0), None, Some(1), Some(4), None];
        assert_eq!(queues_of(&nexts, 3), [0, 0, 1, 0, 2, 0]);
        assert_eq!(queues_of(&[], 2), [0; 0]);
    }

    #[test]
    fn a_report_has_the_streams_in_their_order() {
        let stream = |sent| (StreamCounts { sent, ..StreamCounts::default() }, sent > 1);
        let report = |streams, departures_ns, gaps| SendReportSoFar {
            counts: SendCounts {
                packets: 5,
                late_ns_max: 3,
                departures_ns,
                ..SendCounts::default()
            },
            streams,
            gaps,
            ..SendReportSoFar::default()
        };
        let gaps = |p50_ns, max_ns| GapStatistics { count: 4, p50_ns, p99_ns: 9, max_ns };
        let reports = vec![
            report(vec![stream(1), stream(3)], Some((10, 20)), gaps(1, 7)),
            report(vec![stream(2)], Some((15, 40)), gaps(2, 5)),
            report(Vec::new(), None, GapStatistics::default()),
        ];
        let whole = merge(reports, &[0, 1, 0]);
        let sent: Vec<u64> = whole.streams.iter().map(|(counts, _)| counts.sent).collect();
        assert_eq!(sent, [1, 2, 3]);
        assert_eq!(whole.counts.packets, 15);
        assert_eq!(whole.counts.departures_ns, Some((10, 40)));
        assert_eq!(whole.gaps, GapStatistics { count: 8, ..gaps(2, 7) });
    }
}
