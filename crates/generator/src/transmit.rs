//! The sending side of a port: its streams, merged by due time into bursts.
//!
//! The due times of all streams are fixed by their schedules. What is due is built into one burst
//! and offered to the queue; what the queue refuses is offered again until it is too old, and is
//! then counted as unsent, as is what is too old before it is built. Time is an argument, so tests
//! run in virtual time. It must never wait, never change a due time because of the queue, and never
//! count what did not leave as sent.

mod build;
mod due;

use hdrhistogram::Histogram;
use netdev::{PortError, TxQueue};
use packet::PacketBuf;

use crate::probe::StreamId;
use crate::schedule::StreamSchedule;
use crate::statistics::GapStatistics;
use crate::template::{BURST_MAX, FrameMaker, PlannedFrame, RunColumns};
use due::DueTree;

/// The longest time between two departures that the histogram keeps.
const GAP_MAX_NS: u64 = 60_000_000_000;

/// Frames that are given up at once, at most, before commands are looked at.
const GIVE_UP_MAX: usize = 4096;

/// A stream as a port sends it.
#[derive(Debug)]
pub(crate) struct PortStream {
    pub(crate) id: StreamId,
    pub(crate) maker: FrameMaker,
    /// The schedule as it is before each start.
    pub(crate) plan: StreamSchedule,
    pub(crate) start_after_ns: u64,
    /// Whether it starts with the port.
    pub(crate) starts_itself: bool,
    /// The stream that starts at its end.
    pub(crate) next: Option<usize>,
}

/// Counts of a stream's sending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StreamCounts {
    pub(crate) sent: u64,
    pub(crate) bytes: u64,
    pub(crate) probes: u64,
    pub(crate) unsent: u64,
    /// Those of them that were due while the link was down.
    pub(crate) unsent_down: u64,
    pub(crate) late: u64,
}

/// Counts of a port's sending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SendCounts {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) unsent: u64,
    pub(crate) late: u64,
    pub(crate) late_ns_max: u64,
    /// The first and the last departure.
    pub(crate) departures_ns: Option<(u64, u64)>,
}

/// A frame that leaves more than this after its due time is late, unless the user says otherwise.
pub(crate) const LATE_AFTER_NS: u64 = 100_000;

/// A frame that was not taken this long after its due time is given up, unless the user says
/// otherwise: what a machine whose cores are not all its own may make a thread wait.
pub(crate) const UNSENT_AFTER_NS: u64 = 100_000_000;

/// Limits of a transmitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TransmitLimits {
    pub(crate) burst: usize,
    pub(crate) late_after_ns: u64,
    pub(crate) unsent_after_ns: u64,
}

/// The outcome of [`Transmitter::step`], or what it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransmitStep {
    /// Frames left, or were given up.
    Sent,
    /// The queue is full.
    Blocked,
    /// Nothing is due before this time.
    DueAt(u64),
    /// Nothing is left to be sent.
    Over,
}

/// A stream while it runs.
#[derive(Debug)]
struct RunningStream {
    stream: PortStream,
    schedule: StreamSchedule,
    is_active: bool,
    counts: StreamCounts,
    /// Frames with a probe that were given up in this round.
    given_up: u64,
}

impl RunningStream {
    /// Leaves out the frames that are due before `before_ns`, at most `most`; how many.
    fn give_up(&mut self, before_ns: u64, most: usize, is_outage: bool) -> usize {
        let mut count = 0;
        while count < most && !self.schedule.is_over() && self.schedule.due_ns() < before_ns {
            let size = self.stream.maker.skip();
            self.schedule.advance(size);
            count += 1;
        }
        self.counts.count_unsent(count as u64, is_outage);
        count
    }
}

impl StreamCounts {
    fn count_unsent(&mut self, count: u64, is_outage: bool) {
        self.unsent += count;
        self.unsent_down += if is_outage { count } else { 0 };
    }
}

/// A frame of the burst that has not left.
#[derive(Clone, Copy, Debug)]
struct PendingFrame {
    planned: PlannedFrame,
    stream: u32,
    /// Whether it has a due time after which it is late.
    is_timed: bool,
}

/// The number of frames of one stream, in the order of their due times, that leave more than
/// `after_ns` late. Mostly all do or none does: to look at each would make a port that is late
/// later, up to a rate that it keeps as long as it is on time.
#[inline]
fn late_frames(run: &[PendingFrame], now_ns: u64, after_ns: u64) -> usize {
    let is_late = |frame: &PendingFrame| now_ns.saturating_sub(frame.planned.due_ns) > after_ns;
    match run {
        [first, ..] if !is_late(first) => 0,
        [.., last] if is_late(last) => run.len(),
        run => run.partition_point(is_late),
    }
}

/// All streams of a port.
#[derive(Debug)]
pub(crate) struct Transmitter {
    limits: TransmitLimits,
    streams: Vec<RunningStream>,
    /// Active streams with due times.
    due: DueTree,
    /// Active streams without, in turn.
    greedy: Vec<u32>,
    turn: usize,
    factor: f64,
    end_ns: u64,
    paused_ns: Option<u64>,
    /// The burst. Buffers keep their frames, so that what is the same need not be written again.
    bufs: Vec<PacketBuf>,
    tags: Vec<u32>,
    pending: Vec<PendingFrame>,
    /// Frames of the burst that are made, and frames of it that have left.
    made: usize,
    head: usize,
    columns: RunColumns,
    /// Since when the queue takes nothing.
    refusing: Option<Refusing>,
    /// Whether the link is down, as far as the caller knows, and whether that is why nothing
    /// leaves.
    is_link_down: bool,
    is_outage: bool,
    counts: SendCounts,
    gaps: Histogram<u64>,
}

/// A queue that takes nothing: since when, and when it was last asked.
#[derive(Clone, Copy, Debug)]
struct Refusing {
    since_ns: u64,
    asked_ns: u64,
}

impl Transmitter {
    pub(crate) fn new(limits: TransmitLimits) -> Self {
        let burst = limits.burst.clamp(1, BURST_MAX);
        Self {
            limits: TransmitLimits { burst, ..limits },
            streams: Vec::new(),
            due: DueTree::new(0),
            greedy: Vec::new(),
            turn: 0,
            factor: 1.0,
            end_ns: u64::MAX,
            paused_ns: None,
            bufs: (0..BURST_MAX).map(|_| PacketBuf::default()).collect(),
            tags: vec![0; BURST_MAX],
            pending: Vec::with_capacity(BURST_MAX),
            made: 0,
            head: 0,
            columns: RunColumns::default(),
            refusing: None,
            is_link_down: false,
            is_outage: false,
            counts: SendCounts::default(),
            // The bounds are constants that hdrhistogram accepts; growing is the fall-back that it
            // documents for three digits.
            gaps: Histogram::new_with_max(GAP_MAX_NS, 3)
                .or_else(|_| Histogram::new(3))
                .expect("three significant digits are within hdrhistogram's range"),
        }
    }

    /// From now on at most `burst` frames are handed to the queue at once; 1 to [`BURST_MAX`].
    pub(crate) fn set_burst(&mut self, frames: usize) {
        self.limits.burst = frames.clamp(1, self.bufs.len());
    }

    /// Whether the link is down. What the queue refuses then is given up as soon as it is late: a
    /// link that is down loses its frames, and must not have them when it is up again. A queue that
    /// refuses for another reason has its frames wait.
    pub(crate) fn set_link_down(&mut self, is_link_down: bool) {
        self.is_link_down = is_link_down;
    }

    /// Whether nothing leaves because the link is down.
    fn is_outage(&self, now_ns: u64) -> bool {
        let is_late = |since_ns: u64| now_ns.saturating_sub(since_ns) > self.limits.late_after_ns;
        // What it would do now is not known when it was not asked for a while.
        self.is_link_down
            && self.refusing.is_some_and(|it| is_late(it.since_ns) && !is_late(it.asked_ns))
    }

    /// The longest wait of a frame.
    fn wait_ns_max(&self) -> u64 {
        let TransmitLimits { late_after_ns, unsent_after_ns, .. } = self.limits;
        if self.is_outage { late_after_ns.min(unsent_after_ns) } else { unsent_after_ns }
    }

    /// Replaces all streams; those before have ended.
    pub(crate) fn load(&mut self, streams: Vec<PortStream>) {
        self.stop();
        self.tags.fill(0);
        self.due = DueTree::new(streams.len());
        self.streams = streams
            .into_iter()
            .map(|stream| RunningStream {
                schedule: stream.plan.clone(),
                stream,
                is_active: false,
                counts: StreamCounts::default(),
                given_up: 0,
            })
            .collect();
    }

    /// Starts the port's streams from their beginning; no frame is due at `end_ns` or later.
    pub(crate) fn start(&mut self, at_ns: u64, end_ns: u64, factor: f64) {
        self.stop();
        self.factor = factor;
        self.end_ns = end_ns;
        for index in 0..self.streams.len() {
            if self.streams[index].stream.starts_itself {
                self.activate(index, at_ns);
            }
        }
    }

    fn activate(&mut self, index: usize, at_ns: u64) {
        let running = &mut self.streams[index];
        if running.is_active {
            return;
        }
        running.schedule = running.stream.plan.clone();
        let at_ns = at_ns.saturating_add(running.stream.start_after_ns);
        running.schedule.start(at_ns, self.factor);
        running.stream.maker.restart();
        running.is_active = true;
        if running.schedule.is_greedy() && running.stream.start_after_ns == 0 {
            self.greedy.push(index as u32);
        } else {
            self.due.set(index as u32, at_ns);
        }
    }

    /// Stops all streams. Frames that have not left are not sent.
    pub(crate) fn stop(&mut self) {
        self.withdraw(|_| true);
        self.due.clear();
        self.greedy.clear();
        self.paused_ns = None;
        self.refusing = None;
        self.is_outage = false;
        self.streams.iter_mut().for_each(|running| running.is_active = false);
    }

    /// Holds everything back from now on.
    pub(crate) fn pause(&mut self, now_ns: u64) {
        self.paused_ns.get_or_insert(now_ns);
    }

    /// Goes on where [`Transmitter::pause`] stopped: the time in between has not been.
    pub(crate) fn resume(&mut self, now_ns: u64) {
        let Some(paused_ns) = self.paused_ns.take() else { return };
        let by_ns = now_ns.saturating_sub(paused_ns);
        self.end_ns = self.end_ns.saturating_add(by_ns);
        for PendingFrame { planned, .. } in &mut self.pending {
            planned.due_ns = planned.due_ns.saturating_add(by_ns);
        }
        self.change_schedules(|schedule| schedule.shift(by_ns));
    }

    /// Changes all rates to `factor` times the streams' own.
    /// Frames that were due at the rates before and are late are given up.
    pub(crate) fn update(&mut self, now_ns: u64, factor: f64) {
        let old = std::mem::replace(&mut self.factor, factor);
        let now_ns = self.paused_ns.unwrap_or(now_ns);
        self.give_up(now_ns.saturating_sub(self.limits.late_after_ns), usize::MAX);
        self.change_schedules(|schedule| schedule.change_rate(now_ns, old, factor));
    }

    fn change_schedules(&mut self, change: impl Fn(&mut StreamSchedule)) {
        for index in self.due.streams() {
            let schedule = &mut self.streams[index as usize].schedule;
            change(schedule);
            self.due.set(index, schedule.due_ns());
        }
    }

    /// Empties the burst.
    fn empty(&mut self) {
        self.pending.clear();
        (self.made, self.head) = (0, 0);
    }

    /// Whether anything is left to be sent.
    pub(crate) fn is_over(&self) -> bool {
        self.head == self.pending.len()
            && self.greedy.is_empty()
            && self.due.first().is_none_or(|(due_ns, _)| due_ns >= self.end_ns)
    }

    /// Offers what is due to the queue.
    ///
    /// # Errors
    /// Of the queue; what it did not take is still there.
    pub(crate) fn step(
        &mut self,
        now_ns: u64,
        queue: &mut dyn TxQueue,
    ) -> Result<TransmitStep, PortError> {
        if self.paused_ns.is_some() {
            return Ok(TransmitStep::DueAt(u64::MAX));
        }
        self.is_outage = self.is_outage(now_ns);
        let oldest_ns = now_ns.saturating_sub(self.wait_ns_max());
        let is_too_old = |frame: &PendingFrame| frame.is_timed && frame.planned.due_ns < oldest_ns;
        if self.pending.get(self.head).is_some_and(is_too_old) {
            self.withdraw(is_too_old);
        }
        if self.head == self.pending.len() {
            if self.due.first().is_some_and(|(due_ns, _)| due_ns < oldest_ns)
                && self.give_up(oldest_ns, GIVE_UP_MAX) == GIVE_UP_MAX
                && now_ns >= self.end_ns
            {
                self.empty();
                return Ok(TransmitStep::Sent);
            }
            self.build(now_ns);
        }
        if self.pending.is_empty() {
            return Ok(self.next_due(now_ns));
        }
        let taken = queue.tx(&self.bufs[self.head..self.pending.len()])?;
        self.count_sent(taken, now_ns);
        if self.head == self.pending.len() {
            self.refusing = None;
            return Ok(TransmitStep::Sent);
        }
        if taken == 0 {
            let since_ns = self.refusing.map_or(now_ns, |it| it.since_ns);
            self.refusing = Some(Refusing { since_ns, asked_ns: now_ns });
            return Ok(TransmitStep::Blocked);
        }
        self.refusing = None;
        Ok(TransmitStep::Sent)
    }

    fn next_due(&mut self, now_ns: u64) -> TransmitStep {
        match self.due.first() {
            Some((due_ns, _)) if due_ns < self.end_ns => TransmitStep::DueAt(due_ns),
            Some(_) | None if now_ns >= self.end_ns || self.greedy.is_empty() => {
                self.stop();
                TransmitStep::Over
            }
            // Greedy streams have always something before the end.
            Some(_) | None => TransmitStep::Blocked,
        }
    }

    /// Gives up the frames that are due before `before_ns` and are not built, at most `most`; how
    /// many. Streams without times of their own that are not over by then end here.
    #[cold]
    fn give_up(&mut self, before_ns: u64, most: usize) -> usize {
        let before_ns = before_ns.min(self.end_ns);
        let (mut count, mut kept) = (0, Vec::new());
        while count < most
            && let Some((due_ns, index)) = self.due.first()
            && due_ns < before_ns
        {
            let running = &mut self.streams[index as usize];
            if !running.schedule.is_timed() {
                self.due.remove(index);
                if before_ns < self.end_ns || running.schedule.is_greedy() {
                    kept.push((index, due_ns));
                } else {
                    running.is_active = false;
                }
                continue;
            }
            count += running.give_up(before_ns, most - count, self.is_outage);
            if running.schedule.is_over() {
                self.due.remove(index);
                self.end_stream(index);
            } else {
                self.due.set(index, running.schedule.due_ns());
            }
        }
        kept.into_iter().for_each(|(index, due_ns)| self.due.set(index, due_ns));
        self.counts.unsent += count as u64;
        count
    }

    fn count_sent(&mut self, taken: usize, now_ns: u64) {
        let sent = &self.pending[self.head..self.head + taken];
        if sent.is_empty() {
            return;
        }
        // Of those with a time of their own; they stand in its order.
        let mut oldest_ns = None;
        let (mut total, mut late) = (0, 0);
        // Frames of one stream mostly stand together: its counts are written once for them.
        for run in sent.chunk_by(|a, b| a.stream == b.stream) {
            let counts = &mut self.streams[run[0].stream as usize].counts;
            let bytes: u64 = run.iter().map(|frame| u64::from(frame.planned.size)).sum();
            counts.sent += run.len() as u64;
            counts.bytes += bytes;
            counts.probes +=
                run.iter().map(|frame| u64::from(frame.planned.has_probe)).sum::<u64>();
            total += bytes;
            if run[0].is_timed {
                oldest_ns.get_or_insert(run[0].planned.due_ns);
                let late_of_run = late_frames(run, now_ns, self.limits.late_after_ns) as u64;
                counts.late += late_of_run;
                late += late_of_run;
            }
        }
        self.counts.late += late;
        self.counts.bytes += total;
        self.counts.packets += taken as u64;
        let late_ns = oldest_ns.map_or(0, |due_ns| now_ns.saturating_sub(due_ns));
        self.counts.late_ns_max = self.counts.late_ns_max.max(late_ns);
        let (first_ns, last_ns) = self.counts.departures_ns.unwrap_or((now_ns, now_ns));
        if self.counts.departures_ns.is_some() {
            self.gaps.saturating_record((now_ns - last_ns).min(GAP_MAX_NS));
        }
        if taken > 1 {
            self.gaps.saturating_record_n(0, taken as u64 - 1);
        }
        self.counts.departures_ns = Some((first_ns, now_ns));
        self.head += taken;
    }

    /// Takes the frames back that are still there and meet the condition: they are unsent. Numbers
    /// of the others close up, since numbers count what leaves.
    #[cold]
    fn withdraw(&mut self, condition: impl Fn(&PendingFrame) -> bool) {
        let mut kept = self.head;
        for place in self.head..self.pending.len() {
            let frame = self.pending[place];
            let running = &mut self.streams[frame.stream as usize];
            if condition(&frame) {
                running.given_up += u64::from(frame.planned.has_probe);
                if frame.is_timed {
                    running.counts.count_unsent(1, self.is_outage);
                    self.counts.unsent += 1;
                }
                continue;
            }
            if frame.planned.has_probe && running.given_up > 0 {
                running.stream.maker.renumber(&mut self.bufs[place], running.given_up);
            }
            self.bufs.swap(kept, place);
            self.tags.swap(kept, place);
            self.pending.swap(kept, place);
            kept += 1;
        }
        self.pending.truncate(kept);
        self.made = kept;
        for running in &mut self.streams {
            running.stream.maker.give_back(std::mem::take(&mut running.given_up));
        }
    }

    /// Counts from zero; see [`Transmitter::numbers`].
    pub(crate) fn clear(&mut self) -> Vec<(StreamId, u64)> {
        self.counts = SendCounts::default();
        self.gaps.reset();
        self.streams.iter_mut().for_each(|running| running.counts = StreamCounts::default());
        self.numbers()
    }

    /// Each stream and the number of its next frame that leaves.
    pub(crate) fn numbers(&self) -> Vec<(StreamId, u64)> {
        let mut pending = vec![0; self.streams.len()];
        for frame in &self.pending[self.head..] {
            pending[frame.stream as usize] += u64::from(frame.planned.has_probe);
        }
        let next = |(running, pending): (&RunningStream, u64)| {
            (running.stream.id, running.stream.maker.sequence() - pending)
        };
        self.streams.iter().zip(pending).map(next).collect()
    }

    /// Counts of the frames that have left.
    pub(crate) fn counts(&self) -> SendCounts {
        self.counts
    }

    /// Counts of each stream, and whether it still sends.
    pub(crate) fn stream_counts(&self) -> Vec<(StreamCounts, bool)> {
        self.streams.iter().map(|running| (running.counts, running.is_active)).collect()
    }

    /// Time between departures.
    pub(crate) fn gaps(&self) -> GapStatistics {
        GapStatistics {
            count: self.gaps.len(),
            p50_ns: self.gaps.value_at_quantile(0.5),
            p99_ns: self.gaps.value_at_quantile(0.99),
            max_ns: self.gaps.max(),
        }
    }
}

#[cfg(test)]
mod tests;
