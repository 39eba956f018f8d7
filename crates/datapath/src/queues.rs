//! A port's queues: guaranteed rates, highest rates, and what is left shared by weight.
//!
//! Queues are about a link that is slower than what is sent to it, so a scheduler first makes the
//! link: it gives out frames no faster than the port's rate. Whenever the link is free, the next
//! frame is chosen like this. A queue that has had less than its guaranteed rate comes first, the
//! one whose frame is due earliest before the others. When every guarantee is kept, the rest is
//! shared among the queues that have frames, by their weights (start-time fair queueing). A queue
//! that has had its highest rate waits. So a queue gets its guarantee plus its share of the rest,
//! never more than its highest rate, and the link is never idle while a frame may go.
//!
//! Queues are bounded: a frame that finds its queue full is handed back and counted. Bytes are
//! those of the frame without FCS. Time is an argument; nothing here sends.

use std::collections::VecDeque;

use openflow::QueueId;
use openflow::port::QueueProperty;

use crate::time::{NS_PER_S, Nanos};

/// A rate of the whole link in the tenths of a percent of queue properties.
const WHOLE: u16 = 1_000;

/// Tenths of a percent that a queue without a guaranteed rate weighs in the sharing of the rest.
const LIGHT: u16 = 10;

/// Delay with which a frame may be taken without its time being lost to the link: the worker that
/// takes frames sleeps now and then.
const CATCH_UP_NS: u128 = 2_000_000;

/// Fractions of a nanosecond: a time is kept as nanoseconds times 2 to this power.
const FRACTION: u32 = 20;

/// A moment or a span of time with [`FRACTION`] bits behind the point.
type Fine = u128;

fn fine(now: Nanos) -> Fine {
    u128::from(now.0) << FRACTION
}

/// A rate of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueRate {
    /// Tenths of a percent of the port's, 1 to 1000.
    Tenths(u16),
    /// Bits per second, above 0.
    Bps(u64),
}

impl QueueRate {
    /// Bits of a thousand seconds, at a port of this rate.
    fn scaled(self, port_bps: u64) -> u128 {
        match self {
            Self::Tenths(share) => u128::from(port_bps) * u128::from(share),
            Self::Bps(bps) => u128::from(bps) * u128::from(WHOLE),
        }
    }

    /// Tenths of a percent of a port's rate, from 1 to 1000.
    fn tenths(self, port_bps: u64) -> u16 {
        let tenths = self.scaled(port_bps).checked_div(port_bps.into()).unwrap_or_default();
        u16::try_from(tenths).unwrap_or(WHOLE).clamp(1, WHOLE)
    }

    /// Whether it can be.
    fn is_valid(self) -> bool {
        match self {
            Self::Tenths(share) => (1..=WHOLE).contains(&share),
            Self::Bps(bps) => bps > 0,
        }
    }
}

/// A queue as it is configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueRates {
    /// Its number.
    pub id: QueueId,
    /// Guaranteed rate; `None` for none.
    pub min_rate: Option<QueueRate>,
    /// Highest rate; `None` for the port's.
    pub max_rate: Option<QueueRate>,
    /// Most frames that wait.
    pub frames_max: usize,
}

impl QueueRates {
    /// A queue without guarantee and limit, for a thousand frames.
    #[must_use]
    pub const fn new(id: QueueId) -> Self {
        Self { id, min_rate: None, max_rate: None, frames_max: 1_000 }
    }

    /// Its properties as messages carry them (clause 7.2.2.1), at a port of this rate.
    #[must_use]
    pub fn properties(&self, port_bps: u64) -> Vec<QueueProperty> {
        let tenths = |rate: QueueRate| rate.tenths(port_bps);
        let min = self.min_rate.map(tenths).map(QueueProperty::MinRate);
        let max = self.max_rate.map(tenths).map(QueueProperty::MaxRate);
        min.into_iter().chain(max).collect()
    }
}

/// Why queues cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadQueues {
    /// The port's rate is zero.
    NoRate,
    /// A number stands twice, or is the one for all queues.
    BadId(QueueId),
    /// A rate of this queue is none, or the guaranteed one is above the highest.
    BadRate(QueueId),
    /// The guaranteed rates together are more than the port has.
    TooMuch,
    /// The queue holds no frame.
    NoRoom(QueueId),
}

impl std::fmt::Display for BadQueues {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoRate => f.write_str("the port's rate must be above 0"),
            Self::BadId(id) => write!(f, "queue {} cannot be or stands twice", id.0),
            Self::BadRate(id) => write!(
                f,
                "the rates of queue {} must be 1 to 1000 tenths of a percent, the least not above \
                 the highest",
                id.0
            ),
            Self::TooMuch => f.write_str("the guaranteed rates together are more than the port's"),
            Self::NoRoom(id) => write!(f, "queue {} must hold at least one frame", id.0),
        }
    }
}

impl std::error::Error for BadQueues {}

/// Checks a port's queues.
///
/// # Errors
/// The first thing that cannot be.
pub fn check_queues(rate_bps: u64, queues: &[QueueRates]) -> Result<(), BadQueues> {
    if rate_bps == 0 {
        return Err(BadQueues::NoRate);
    }
    let mut guaranteed: u128 = 0;
    for (index, queue) in queues.iter().enumerate() {
        let is_known = queues.iter().take(index).any(|earlier| earlier.id == queue.id);
        if queue.id == QueueId::ALL || is_known {
            return Err(BadQueues::BadId(queue.id));
        }
        let (min, max) = (queue.min_rate, queue.max_rate);
        let is_rate = |rate: Option<QueueRate>| rate.is_none_or(QueueRate::is_valid);
        let scaled = |rate: QueueRate| rate.scaled(rate_bps);
        let is_order = min.zip(max).is_none_or(|(min, max)| scaled(min) <= scaled(max));
        if !is_rate(min) || !is_rate(max) || !is_order {
            return Err(BadQueues::BadRate(queue.id));
        }
        if queue.frames_max == 0 {
            return Err(BadQueues::NoRoom(queue.id));
        }
        guaranteed += min.map_or(0, scaled);
        if guaranteed > u128::from(rate_bps) * u128::from(WHOLE) {
            return Err(BadQueues::TooMuch);
        }
    }
    Ok(())
}

/// Counts of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueTally {
    /// Frames taken.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Frames that found the queue full.
    pub dropped: u64,
}

/// A rate as the time that a byte takes.
#[derive(Clone, Copy, Debug)]
struct PerByte(Fine);

impl PerByte {
    /// A rate at a link.
    fn of(rate_bps: u64, rate: QueueRate) -> Self {
        let bits = rate.scaled(rate_bps);
        let per_bit = (u128::from(NS_PER_S) * u128::from(WHOLE)) << (FRACTION + 3);
        Self((per_bit + bits / 2).checked_div(bits).unwrap_or(u128::MAX >> 32))
    }

    fn time(self, bytes: usize) -> Fine {
        self.0 * bytes as u128
    }
}

/// A queue with its frames.
#[derive(Debug)]
struct Queue<T> {
    config: QueueRates,
    frames: VecDeque<(usize, T)>,
    tally: QueueTally,
    min: Option<PerByte>,
    max: Option<PerByte>,
    /// When the next frame is owed to the guarantee.
    owed_at: Fine,
    /// Before this the highest rate lets no frame go.
    allowed_at: Fine,
    /// The next frame's start in the sharing of the rest, in bytes per weight.
    start: u128,
    weight: u128,
}

impl<T> Queue<T> {
    fn new(config: QueueRates, rate_bps: u64) -> Self {
        let whole = QueueRate::Tenths(WHOLE).scaled(rate_bps);
        let limit = config.max_rate.filter(|max| max.scaled(rate_bps) < whole);
        Self {
            config,
            frames: VecDeque::new(),
            tally: QueueTally::default(),
            min: config.min_rate.map(|min| PerByte::of(rate_bps, min)),
            max: limit.map(|max| PerByte::of(rate_bps, max)),
            owed_at: 0,
            allowed_at: 0,
            start: 0,
            weight: config.min_rate.map_or(LIGHT, |min| min.tenths(rate_bps)).into(),
        }
    }
}

/// A port's link with its queues. `T` is a frame, or whatever stands for one.
#[derive(Debug)]
pub struct Scheduler<T> {
    /// The configured queues, and last the one for frames of none of them.
    queues: Vec<Queue<T>>,
    link: PerByte,
    free_at: Fine,
    /// The start of the frame that was last chosen in the sharing of the rest.
    virtual_time: u128,
    waiting: usize,
}

impl<T> Scheduler<T> {
    /// A link of this rate in bits per second with these queues. Frames for no queue, or for one
    /// that is not among them, go to one more, without guarantee and limit, unless a queue 0 is
    /// configured: then to that.
    ///
    /// # Errors
    /// Those of [`check_queues`].
    pub fn new(rate_bps: u64, queues: &[QueueRates]) -> Result<Self, BadQueues> {
        check_queues(rate_bps, queues)?;
        let mut queues: Vec<Queue<T>> =
            queues.iter().map(|config| Queue::new(*config, rate_bps)).collect();
        match queues.iter().position(|queue| queue.config.id == QueueId(0)) {
            Some(at) => {
                let own = queues.remove(at);
                queues.push(own);
            }
            None => queues.push(Queue::new(QueueRates::new(QueueId(0)), rate_bps)),
        }
        Ok(Self {
            queues,
            link: PerByte::of(rate_bps, QueueRate::Tenths(WHOLE)),
            free_at: 0,
            virtual_time: 0,
            waiting: 0,
        })
    }

    /// Frames that wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting
    }

    /// Whether no frame waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// Counts of each queue, the one for all other frames under number 0.
    pub fn tallies(&self) -> impl Iterator<Item = (QueueId, QueueTally)> {
        self.queues.iter().map(|queue| (queue.config.id, queue.tally))
    }

    /// The place of the queue for frames of this number.
    fn place(&self, queue: Option<QueueId>) -> usize {
        let own = queue.and_then(|id| self.queues.iter().position(|queue| queue.config.id == id));
        own.unwrap_or(self.queues.len() - 1)
    }

    /// Whether a queue takes another frame.
    #[must_use]
    pub fn has_room(&self, queue: Option<QueueId>) -> bool {
        let queue = self.queues.get(self.place(queue));
        queue.is_some_and(|queue| queue.frames.len() < queue.config.frames_max)
    }

    /// Puts a frame of this number of bytes into its queue.
    ///
    /// # Errors
    /// The frame, when the queue is full.
    pub fn offer(
        &mut self,
        queue: Option<QueueId>,
        bytes: usize,
        frame: T,
        now: Nanos,
    ) -> Result<(), T> {
        let place = self.place(queue);
        let Some(queue) = self.queues.get_mut(place) else { return Err(frame) };
        if queue.frames.len() >= queue.config.frames_max {
            queue.tally.dropped += 1;
            return Err(frame);
        }
        if queue.frames.is_empty() {
            // Time in which a queue had nothing to send is neither owed to it nor held against it.
            queue.owed_at = queue.owed_at.max(fine(now));
            queue.start = queue.start.max(self.virtual_time);
        }
        queue.frames.push_back((bytes, frame));
        self.waiting += 1;
        Ok(())
    }

    /// Takes the frame that goes now, if the link is free and a frame may go.
    pub fn take(&mut self, now: Nanos) -> Option<T> {
        let now = fine(now);
        if self.waiting == 0 || self.free_at > now {
            return None;
        }
        let (place, is_owed) = self.choose(now)?;
        let queue = self.queues.get_mut(place)?;
        let (bytes, frame) = queue.frames.pop_front()?;
        self.waiting -= 1;
        queue.tally.packets += 1;
        queue.tally.bytes += bytes as u64;
        let earliest = now.saturating_sub(CATCH_UP_NS << FRACTION);
        if let Some(max) = queue.max {
            queue.allowed_at = queue.allowed_at.max(earliest) + max.time(bytes);
        }
        match queue.min.filter(|_| is_owed) {
            Some(min) => queue.owed_at = queue.owed_at.max(earliest) + min.time(bytes),
            None => {
                self.virtual_time = queue.start;
                queue.start += ((bytes as u128) << FRACTION) / queue.weight;
            }
        }
        self.free_at = self.free_at.max(earliest) + self.link.time(bytes);
        Some(frame)
    }

    /// The queue whose turn it is, and whether its frame is owed to its guarantee.
    fn choose(&self, now: Fine) -> Option<(usize, bool)> {
        let mut owed: Option<(Fine, usize)> = None;
        let mut shared: Option<(u128, usize)> = None;
        for (place, queue) in self.queues.iter().enumerate() {
            let Some((bytes, _)) = queue.frames.front() else { continue };
            if queue.allowed_at > now {
                continue;
            }
            if let Some(min) = queue.min.filter(|_| queue.owed_at <= now) {
                let due = queue.owed_at + min.time(*bytes);
                if owed.is_none_or(|(earliest, _)| due < earliest) {
                    owed = Some((due, place));
                }
            }
            if shared.is_none_or(|(earliest, _)| queue.start < earliest) {
                shared = Some((queue.start, place));
            }
        }
        let owed = owed.map(|(_, place)| (place, true));
        owed.or_else(|| shared.map(|(_, place)| (place, false)))
    }

    /// When [`Scheduler::take`] has a frame, if none comes before; `None` while none waits.
    #[must_use]
    pub fn next_at(&self) -> Option<Nanos> {
        let waiting = self.queues.iter().filter(|queue| !queue.frames.is_empty());
        let allowed_at = waiting.map(|queue| queue.allowed_at).min()?;
        let at = allowed_at.max(self.free_at);
        // Rounded up: not before the moment.
        let ns = (at + (1 << FRACTION) - 1) >> FRACTION;
        Some(Nanos(u64::try_from(ns).unwrap_or(u64::MAX)))
    }

    /// Takes all frames that wait, whatever their time.
    pub fn drain(&mut self) -> impl Iterator<Item = T> {
        self.waiting = 0;
        let queues = self.queues.iter_mut();
        queues.flat_map(|queue| queue.frames.drain(..).map(|(_, frame)| frame))
    }
}

#[cfg(test)]
mod tests;
