//! A simulated device under test in virtual time, for tests of what measures: its delay, jitter,
//! loss, duplication, reordering, capacity, stalls, recovery and reset are known, and so is when
//! the port before it takes nothing, so that a method can be held against the truth.
//!
//! Frames are made, timed and sent by the transmitter of a session and accounted by its receiver;
//! only device, wires and clock are simulated. It must never look at the clock of the machine: the
//! same seed gives the same run.

use netdev::{PortError, TxQueue};
use packet::{Batch, PacketBuf};

use crate::method::on_ports::{PortTrialError, phase_starts, phase_streams, phases_end};
use crate::method::{Measurer, TrialInput, TrialOutput};
use crate::probe::StreamId;
use crate::profile::StreamSpec;
use crate::random::SplitMix64;
use crate::receiver::{Receiver, ReceiverOptions};
use crate::schedule::StreamSchedule;
use crate::template::{BURST_MAX, FrameMaker};
use crate::transmit::{
    LATE_AFTER_NS, PortStream, TransmitLimits, TransmitStep, Transmitter, UNSENT_AFTER_NS,
};

/// The variation of a frame's delay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DelayVariation {
    /// Not at all.
    None,
    /// Equally likely between 0 and this number of nanoseconds.
    Uniform(u64),
    /// Exponential with this mean in nanoseconds.
    Exponential(u64),
}

/// Properties of a simulated device. Shares are 0 to 1, independent for each frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeviceModel {
    /// Frames a second that it forwards.
    pub capacity_pps: f64,
    /// Frames that wait for that; more are dropped. With 0, one that comes while another is being
    /// forwarded is lost.
    pub queue_frames: u64,
    /// Delay besides waiting and forwarding.
    pub delay_ns: u64,
    /// Variable delay that is added to it.
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
    /// Time of a reset: the device drops what waits and what comes.
    pub reset_ns: u64,
    /// Whether a reset has the link to the sender down: its port then takes nothing.
    pub reset_takes_link_down: bool,
    /// The sender's port takes nothing at the beginning of each such period, though its link is
    /// up.
    pub refuse_every_ns: u64,
    /// For so long.
    pub refuse_ns: u64,
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
            reset_takes_link_down: false,
            refuse_every_ns: 0,
            refuse_ns: 0,
        }
    }

    /// Time to forward one frame.
    #[must_use]
    pub fn service_ns(&self) -> f64 {
        1e9 / self.capacity_pps
    }
}

/// The fate of one frame.
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
        self.is_dropping || self.is_in_reset(now)
    }

    fn is_in_reset(&self, now: f64) -> bool {
        (self.reset_at_ns..self.reset_at_ns + self.model.reset_ns as f64).contains(&now)
    }

    /// Whether the link to the sender is down.
    fn is_link_down(&self, now_ns: u64) -> bool {
        self.model.reset_takes_link_down && self.is_in_reset(now_ns as f64)
    }

    /// Whether the port before the device takes nothing.
    fn is_refusing(&self, now_ns: u64) -> bool {
        let within = now_ns.checked_rem(self.model.refuse_every_ns);
        self.is_link_down(now_ns) || within.is_some_and(|within| within < self.model.refuse_ns)
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

/// Trials with a simulated device, in virtual time, by the transmitter and the receiver of a
/// session.
#[derive(Clone, Debug)]
pub struct SimulatedMeasurer {
    /// The device.
    pub device: SimulatedDevice,
    now_ns: u64,
    stream: u16,
}

/// Time after a trial in which frames are waited for.
const DRAIN_NS: u64 = 2_000_000_000;

/// Those of a session. Time passes only where the sender waits for it: it is late only where its
/// port takes nothing.
const LIMITS: TransmitLimits = TransmitLimits {
    burst: BURST_MAX,
    late_after_ns: LATE_AFTER_NS,
    unsent_after_ns: UNSENT_AFTER_NS,
};

/// Time before a sender asks a port again that took nothing.
const ASK_EVERY_NS: u64 = 10_000;

/// The Ethernet address of the sending port.
const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

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

    /// The streams of the phases, ready to be sent, and their numbers.
    fn streams(&mut self, phases: &[TrialInput]) -> Result<Vec<PortStream>, PortTrialError> {
        let specs = phase_streams(&StreamSpec::default(), phases);
        let mut streams = Vec::new();
        for (phase, spec) in specs.iter().enumerate() {
            self.stream = self.stream.wrapping_add(1).max(1);
            let id = StreamId(self.stream);
            let maker = FrameMaker::new(spec, id, phase as u32 + 1, MAC)?;
            if !maker.has_probes() {
                return Err(PortTrialError::NoProbe(phases[phase].frame_size));
            }
            streams.push(PortStream {
                id,
                maker,
                // Rates are in frames: what a line carries does not matter.
                plan: StreamSchedule::rated(spec.rate, 0.0, spec.mode, spec.arrival),
                start_after_ns: 0,
                starts_itself: spec.self_start,
                next: spec.next.as_ref().map(|_| phase + 1),
            });
        }
        Ok(streams)
    }

    /// Sends all frames of the transmitter through the device.
    fn send(&mut self, transmitter: &mut Transmitter) -> Result<Arrivals, PortTrialError> {
        let mut now_ns = self.now_ns;
        let mut queue =
            DeviceQueue { device: &mut self.device, now_ns, arrivals: Arrivals::default() };
        loop {
            queue.now_ns = now_ns;
            let step = transmitter.step(now_ns, &mut queue);
            match step.map_err(|error| PortTrialError::Port(error.to_string()))? {
                TransmitStep::Sent => {}
                TransmitStep::Blocked => {
                    transmitter.set_link_down(queue.device.is_link_down(now_ns));
                    now_ns += ASK_EVERY_NS;
                }
                TransmitStep::DueAt(due_ns) => now_ns = due_ns,
                TransmitStep::Over => return Ok(queue.arrivals),
            }
        }
    }
}

/// Frames on their way from the device to the receiver.
#[derive(Debug, Default)]
struct Arrivals {
    /// All bytes of all frames.
    bytes: Vec<u8>,
    /// When each arrives, where its bytes begin, and its length.
    frames: Vec<(u64, usize, usize)>,
}

impl Arrivals {
    fn push(&mut self, at_ns: u64, frame: &[u8]) {
        self.frames.push((at_ns, self.bytes.len(), frame.len()));
        self.bytes.extend_from_slice(frame);
    }

    /// Hands the frames that arrive before `end_ns` to the receiver, in the order of their times.
    fn deliver(mut self, receiver: &mut Receiver, end_ns: u64) {
        self.frames.sort_by_key(|(at_ns, ..)| *at_ns);
        let mut batch = Batch::default();
        for (at_ns, start, len) in self.frames {
            if at_ns > end_ns {
                return;
            }
            batch.push_slice(&self.bytes[start..start + len]);
            receiver.take_batch(&batch, at_ns);
            batch.clear();
        }
    }
}

/// The port behind which the device stands.
struct DeviceQueue<'a> {
    device: &'a mut SimulatedDevice,
    now_ns: u64,
    arrivals: Arrivals,
}

/// A byte of the probe from the end of a frame: a corrupted frame has another one.
const CORRUPTED_BYTE: usize = 5;

impl TxQueue for DeviceQueue<'_> {
    fn tx(&mut self, frames: &[PacketBuf]) -> Result<usize, PortError> {
        if self.device.is_refusing(self.now_ns) {
            return Ok(0);
        }
        for frame in frames {
            let forwarded = self.device.offer(self.now_ns);
            let Some(at_ns) = forwarded.at_ns else { continue };
            if forwarded.is_doubled {
                self.arrivals.push(at_ns, frame.bytes());
            }
            self.arrivals.push(at_ns, frame.bytes());
            let place = self.arrivals.bytes.len() - CORRUPTED_BYTE;
            self.arrivals.bytes[place] ^= u8::from(forwarded.is_corrupted);
        }
        Ok(frames.len())
    }
}

impl Measurer for SimulatedMeasurer {
    type Error = PortTrialError;

    fn run(&mut self, phases: &[TrialInput]) -> Result<Vec<TrialOutput>, PortTrialError> {
        let streams = self.streams(phases)?;
        let mut receiver = Receiver::new(ReceiverOptions::default());
        let starts_ns = phase_starts(self.now_ns, phases);
        let end_ns = phases_end(self.now_ns, phases);
        let mut ids = Vec::new();
        for (phase, (stream, input)) in streams.iter().zip(phases).enumerate() {
            let deadline_ns =
                phases_end(self.now_ns, &phases[..=phase]) + (input.grace_s * 1e9) as u64;
            let options = ReceiverOptions { deadline_ns, ..ReceiverOptions::default() };
            receiver.start_stream_with(stream.id, 0, options);
            ids.push(stream.id);
        }
        let mut transmitter = Transmitter::new(LIMITS);
        transmitter.load(streams);
        transmitter.start(self.now_ns, u64::MAX, 1.0);
        let arrivals = self.send(&mut transmitter)?;
        arrivals.deliver(&mut receiver, end_ns + DRAIN_NS);
        self.now_ns = end_ns + 2 * DRAIN_NS;
        let counts = transmitter.stream_counts();
        let phases = phases.iter().zip(starts_ns).zip(ids.iter().zip(counts));
        Ok(phases
            .map(|((input, start_ns), (id, (counts, _)))| {
                let account = receiver.stream(*id);
                let report = account.map(|account| account.report(Some(counts.probes)));
                let mut report = report.unwrap_or_default();
                // The schedule is what was offered, as on ports.
                report.sent += counts.unsent;
                report.lost += counts.unsent;
                TrialOutput {
                    input: *input,
                    start_ns,
                    unsent: counts.unsent,
                    unsent_down: counts.unsent_down,
                    sent_late: counts.late,
                    report,
                }
            })
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::{DeviceModel, SimulatedMeasurer};
    use crate::method::on_ports::PortTrialError;
    use crate::method::{Measurer, TrialInput};

    const INPUT: TrialInput =
        TrialInput { frame_size: 64, rate_pps: 1_000.0, duration_s: 0.1, grace_s: 0.1 };

    #[test]
    fn frames_leave_when_due_and_arrive_as_the_device_decides() {
        let model = DeviceModel { delay_ns: 5_000, ..DeviceModel::perfect(1e6, 4) };
        let mut measurer = SimulatedMeasurer::new(model, 1);
        let reduced = TrialInput { rate_pps: 500.0, ..INPUT };
        let outputs = measurer.run(&[INPUT, reduced]).unwrap();
        assert_eq!([outputs[0].start_ns, outputs[1].start_ns], [0, 100_000_000]);
        for (output, sent) in outputs.iter().zip([100, 50]) {
            let report = &output.report;
            assert_eq!((report.sent, report.received, output.unsent), (sent, sent, 0));
            // A microsecond to forward it, and the delay.
            assert_eq!(report.first_ns, Some(output.start_ns + 6_000));
            assert_eq!(output.sent_late, 0);
        }
    }

    #[test]
    fn a_frame_without_room_for_a_probe_is_an_error() {
        let mut measurer = SimulatedMeasurer::new(DeviceModel::perfect(1e6, 4), 1);
        let refused = |measurer: &mut SimulatedMeasurer, frame_size| {
            measurer.run(&[TrialInput { frame_size, ..INPUT }]).unwrap_err()
        };
        assert!(matches!(refused(&mut measurer, 20), PortTrialError::Stream(_)));
    }
}
