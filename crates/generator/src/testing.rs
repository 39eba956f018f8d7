//! A simulated device under test in virtual time, for tests of what measures: its delay, jitter,
//! loss, duplication, reordering, capacity, stalls, recovery and reset are known, so that a method
//! can be held against the truth.
//!
//! Frames follow the schedule of [`crate::pacing`] and are accounted by the generator's receiver;
//! transmitter, device and wires are simulated. It must never look at the clock of the machine: the
//! same seed gives the same run.

use crate::method::{Measurer, TrialInput, TrialOutput};
use crate::pacing::Schedule;
use crate::probe::{ProbeHeader, StreamId};
use crate::random::SplitMix64;
use crate::receiver::{ReceiverOptions, StreamReceiver};

/// How the delay of a frame varies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DelayVariation {
    /// Not at all.
    None,
    /// Equally likely between 0 and so many nanoseconds.
    Uniform(u64),
    /// Exponential with this mean in nanoseconds.
    Exponential(u64),
}

/// What a simulated device does. Shares are 0 to 1, independent for each frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeviceModel {
    /// Frames a second that it forwards.
    pub capacity_pps: f64,
    /// Frames that wait for that; more are dropped. With 0, one that comes while another is being
    /// forwarded is lost.
    pub queue_frames: u64,
    /// Delay besides waiting and forwarding.
    pub delay_ns: u64,
    /// What is added to it.
    pub variation: DelayVariation,
    /// Share of the frames that are lost besides those that the queue drops.
    pub loss: f64,
    /// Share of the forwarded frames that leave twice.
    pub duplication: f64,
    /// Share of the forwarded frames whose content is changed.
    pub corruption: f64,
    /// Share of the forwarded frames that are held back.
    pub holding_back: f64,
    /// For how long.
    pub holding_back_ns: u64,
    /// It forwards nothing at the beginning of each such period.
    pub stall_every_ns: u64,
    /// For so long.
    pub stall_ns: u64,
    /// Once it has dropped a frame for want of room, it drops all until it has not been offered
    /// more than its capacity for so long.
    pub recovery_ns: u64,
    /// What a reset takes: it drops what waits and what comes.
    pub reset_ns: u64,
}

impl DeviceModel {
    /// `capacity_pps` with a queue of `queue_frames`, and nothing else.
    #[must_use]
    pub fn perfect(capacity_pps: f64, queue_frames: u64) -> Self {
        Self {
            capacity_pps,
            queue_frames,
            delay_ns: 0,
            variation: DelayVariation::None,
            loss: 0.0,
            duplication: 0.0,
            corruption: 0.0,
            holding_back: 0.0,
            holding_back_ns: 0,
            stall_every_ns: 0,
            stall_ns: 0,
            recovery_ns: 0,
            reset_ns: 0,
        }
    }

    /// Time to forward one frame.
    #[must_use]
    pub fn service_ns(&self) -> f64 {
        1e9 / self.capacity_pps
    }
}

/// What became of one frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forwarded {
    /// When it left the device, if it did.
    pub at_ns: Option<u64>,
    /// Whether a copy left with it.
    pub is_doubled: bool,
    /// Whether its content was changed.
    pub is_corrupted: bool,
}

/// A device in virtual time. Frames are offered in the order of their times.
#[derive(Clone, Debug)]
pub struct SimulatedDevice {
    model: DeviceModel,
    random: SplitMix64,
    /// When the last frame in the queue will have been forwarded.
    free_at_ns: f64,
    offered_at_ns: f64,
    overloaded_at_ns: f64,
    is_dropping: bool,
    reset_at_ns: f64,
}

impl SimulatedDevice {
    /// A device that has not seen a frame.
    #[must_use]
    pub fn new(model: DeviceModel, seed: u64) -> Self {
        Self {
            model,
            random: SplitMix64::new(seed),
            free_at_ns: 0.0,
            offered_at_ns: f64::NEG_INFINITY,
            overloaded_at_ns: f64::NEG_INFINITY,
            is_dropping: false,
            reset_at_ns: f64::INFINITY,
        }
    }

    /// Resets the device at that time.
    pub fn reset_at(&mut self, at_ns: u64) {
        self.reset_at_ns = at_ns as f64;
    }

    /// Offers one frame.
    pub fn offer(&mut self, now_ns: u64) -> Forwarded {
        let (model, now) = (self.model, now_ns as f64);
        // A nanosecond is what rounding of due times may take off an interval.
        if now - self.offered_at_ns + 1.0 < model.service_ns() {
            self.overloaded_at_ns = now;
        }
        self.offered_at_ns = now;
        if self.drops_all(now) || self.random.unit() <= model.loss {
            return Forwarded::default();
        }
        let waiting = (self.free_at_ns - now) / model.service_ns();
        if waiting > model.queue_frames as f64 {
            self.is_dropping = model.recovery_ns > 0;
            return Forwarded::default();
        }
        self.free_at_ns = self.after_stall(self.free_at_ns.max(now)) + model.service_ns();
        if self.free_at_ns > self.reset_at_ns && now < self.reset_at_ns {
            return Forwarded::default();
        }
        let mut at = self.free_at_ns + model.delay_ns as f64 + self.variation();
        if self.random.unit() <= model.holding_back {
            at += model.holding_back_ns as f64;
        }
        Forwarded {
            at_ns: Some(at as u64),
            is_doubled: self.random.unit() <= model.duplication,
            is_corrupted: self.random.unit() <= model.corruption,
        }
    }

    fn drops_all(&mut self, now: f64) -> bool {
        let recovery = self.model.recovery_ns as f64;
        self.is_dropping = self.is_dropping && now - self.overloaded_at_ns < recovery;
        let reset = self.reset_at_ns..self.reset_at_ns + self.model.reset_ns as f64;
        self.is_dropping || reset.contains(&now)
    }

    fn after_stall(&self, at: f64) -> f64 {
        if self.model.stall_every_ns == 0 {
            return at;
        }
        let within = at % self.model.stall_every_ns as f64;
        at + (self.model.stall_ns as f64 - within).max(0.0)
    }

    fn variation(&mut self) -> f64 {
        match self.model.variation {
            DelayVariation::None => 0.0,
            DelayVariation::Uniform(most) => self.random.unit() * most as f64,
            DelayVariation::Exponential(mean) => self.random.exponential() * mean as f64,
        }
    }
}

/// Trials with a simulated device, in virtual time.
#[derive(Clone, Debug)]
pub struct SimulatedMeasurer {
    /// The device.
    pub device: SimulatedDevice,
    now_ns: u64,
    stream: u16,
}

/// How long after a trial frames are waited for.
const DRAIN_NS: u64 = 2_000_000_000;

impl SimulatedMeasurer {
    /// Measures a device of that model.
    #[must_use]
    pub fn new(model: DeviceModel, seed: u64) -> Self {
        Self { device: SimulatedDevice::new(model, seed), now_ns: 0, stream: 0 }
    }

    /// The time at which the next trial starts, nanoseconds.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Offers all frames of `schedule`; appends those that left, with the time of their arrival.
    fn offer(&mut self, schedule: &Schedule, phase: usize, arrivals: &mut Vec<Arrived>) {
        for number in 0..schedule.count() {
            let due_ns = schedule.due_ns(number);
            let forwarded = self.device.offer(due_ns);
            let Some(at_ns) = forwarded.at_ns else { continue };
            let arrived = Arrived { at_ns, phase, number, due_ns, ..Arrived::default() };
            let is_corrupted = forwarded.is_corrupted;
            arrivals.push(Arrived { is_corrupted, ..arrived });
            if forwarded.is_doubled {
                arrivals.push(arrived);
            }
        }
    }
}

/// A frame on its way to the receiver.
#[derive(Clone, Copy, Debug, Default)]
struct Arrived {
    at_ns: u64,
    phase: usize,
    number: u64,
    due_ns: u64,
    is_corrupted: bool,
}

impl Measurer for SimulatedMeasurer {
    type Error = std::convert::Infallible;

    fn run(&mut self, phases: &[TrialInput]) -> Result<Vec<TrialOutput>, Self::Error> {
        let (mut arrivals, mut receivers, mut schedules) = (Vec::new(), Vec::new(), Vec::new());
        let mut start_ns = self.now_ns;
        for (phase, input) in phases.iter().enumerate() {
            let schedule = Schedule::new(start_ns, input.rate_pps, input.duration_s);
            self.offer(&schedule, phase, &mut arrivals);
            start_ns = schedule.end_ns();
            self.stream = self.stream.wrapping_add(1);
            let deadline_ns = start_ns + (input.grace_s * 1e9) as u64;
            let options = ReceiverOptions { deadline_ns, ..ReceiverOptions::default() };
            receivers.push(StreamReceiver::new(StreamId(self.stream), options));
            schedules.push(schedule);
        }
        arrivals.sort_by_key(|arrived| arrived.at_ns);
        for arrived in arrivals.iter().take_while(|arrived| arrived.at_ns <= start_ns + DRAIN_NS) {
            let receiver = &mut receivers[arrived.phase];
            let stream = receiver.id();
            let sequence = arrived.number as u32;
            let mut payload = [0; 18];
            ProbeHeader { stream, sequence, due_ns: arrived.due_ns }.write(&mut payload);
            payload[9] ^= u8::from(arrived.is_corrupted);
            receiver.take(&payload, arrived.at_ns);
        }
        self.now_ns = start_ns + 2 * DRAIN_NS;
        let outputs = phases.iter().zip(&receivers).zip(&schedules);
        Ok(outputs
            .map(|((input, receiver), schedule)| TrialOutput {
                input: *input,
                start_ns: schedule.start_ns(),
                unsent: 0,
                sent_late: 0,
                report: receiver.report(Some(schedule.count())),
            })
            .collect())
    }
}
