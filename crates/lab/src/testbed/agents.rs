//! Ends of the switch on several boxes: an agent at each, or the lab's own machine for one of them.
//!
//! A trial is sent by one box and counted by another. Before, during and after it the clocks of
//! both are compared with the lab's; a delay is corrected by what they differ, and the error of
//! that goes with the figure. Where one box has both ends there is one clock and no error. It must
//! never give a one-way delay whose clocks moved further apart than it can tell.

mod exchange;
mod hosts;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use generator::method::on_ports::{
    PortTrialError, learning_stream, phase_starts, phase_streams, phases_end,
};
use generator::method::{Measurer, TrialInput, TrialOutput};
use generator::profile::StreamSpec;
use generator::receiver::{Distribution, StreamReport};

pub(crate) use exchange::ExchangePlan;
pub(crate) use hosts::HostRun;

use super::{QUIET, next_stream};
use crate::agent::client::{AgentError, AgentLink, BoxFacts, TrafficBox};
use crate::agent::clock::{ClockComparison, ClockLine, ClockReading, Exchange};
use crate::agent::executor::Executor;
use crate::agent::protocol::{
    AgentAnswer, AgentRequest, EndProgram, EndSeen, EndTask, SeenStream, Traffic,
};
use crate::hosts::HOSTS;
use crate::names::distinct;
use crate::stall::Stall;
use serde::Deserialize;

/// Time between two looks at what a box has sent or counted: each is an exchange on the network.
const LOOK: Duration = Duration::from_millis(10);

/// Time between two comparisons of clocks during a trial.
const COMPARE_EVERY: Duration = Duration::from_millis(100);

/// Questions for the time before and after a trial, and each time during it: the best of them
/// counts.
const QUESTIONS: usize = 16;
const QUESTIONS_MEANWHILE: usize = 4;

/// The longest wait for frames when no more of them come in time.
const DRAIN: Duration = Duration::from_secs(12);

/// The clock of a receiver is set ahead, so that no delay is below zero while its offset is not
/// known better: by the error of the first comparison several times over, by so much, and by so
/// much of the trial's length, which is the drift of a bad quartz.
const AHEAD_ERRORS: f64 = 3.0;
const AHEAD_NS: f64 = 50_000.0;
const AHEAD_DRIFT: f64 = 200e-6;

/// The share of a delay that the generator's histogram does not resolve.
const BUCKET: f64 = 1.0 / 1024.0;

/// Place of one end of the switch.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndPlace {
    /// The box's agent: where `ssh` reaches the box, or a command that starts one. This machine
    /// where there is none.
    #[serde(default)]
    pub agent: Option<String>,
    /// The network device there.
    pub interface: String,
}

impl EndPlace {
    /// An interface of this machine.
    #[must_use]
    pub fn local(interface: String) -> Self {
        Self { agent: None, interface }
    }
}

/// The ends of a switch that the lab does not start: of port 1, of port 2, ...
#[derive(Clone, Debug)]
pub struct Wiring {
    /// Place of each end.
    pub ends: Vec<EndPlace>,
    /// Whether hosts with addresses are made at ends of which some are on other boxes.
    pub makes_hosts: bool,
}

/// The testbed.
#[derive(Debug)]
pub struct AgentsTestbed {
    /// Zero of the lab's own clock.
    zero: Instant,
    boxes: Mutex<Vec<TrafficBox>>,
    facts: Vec<BoxFacts>,
    ports: Vec<BoxPort>,
    notes: Vec<String>,
    rate_bps: Option<u64>,
    makes_hosts: bool,
    /// The longest stall of a box since it was taken last.
    stall: Mutex<Stall>,
}

/// An end of the switch.
#[derive(Clone, Debug, PartialEq, Eq)]
struct BoxPort {
    /// The box, by its place in the list.
    at: usize,
    interface: String,
}

impl AgentsTestbed {
    /// Starts the agents of all ends, which lead to port 1, port 2, ... of the switch; their rate
    /// is in bit/s.
    ///
    /// # Errors
    /// An agent that does not start, an interface that it cannot have, two ends at one interface.
    pub fn start(wiring: &Wiring, rate_bps: Option<u64>) -> io::Result<Self> {
        let Wiring { ends, makes_hosts } = wiring;
        let known = distinct(ends.iter().map(|end| end.agent.as_deref()));
        let place = |end: &EndPlace| {
            let at = known.iter().position(|one| *one == end.agent.as_deref());
            (at.unwrap_or_default(), end.interface.clone())
        };
        let places: Vec<(usize, String)> = ends.iter().map(place).collect();
        let start = |(at, agent): (usize, &Option<&str>)| match agent {
            Some(agent) => {
                let own = places.iter().filter(|place| place.0 == at);
                let own: Vec<String> = own.map(|place| place.1.clone()).collect();
                AgentLink::start(agent, &own).map(TrafficBox::Agent)
            }
            None => Ok(TrafficBox::Local(Executor::new())),
        };
        let boxes: Result<Vec<TrafficBox>, AgentError> =
            known.iter().enumerate().map(start).collect();
        let bed = Self::new(boxes.map_err(io::Error::other)?, &places, rate_bps)?;
        Ok(Self { makes_hosts: *makes_hosts, ..bed })
    }

    /// Ends at boxes: which of them, and at which of its interfaces.
    pub(crate) fn new(
        boxes: Vec<TrafficBox>,
        places: &[(usize, String)],
        rate_bps: Option<u64>,
    ) -> io::Result<Self> {
        let mut ports: Vec<BoxPort> = Vec::new();
        for (at, interface) in places {
            let port = BoxPort { at: *at, interface: interface.clone() };
            if ports.contains(&port) {
                let what = format!("{}: {interface} is named twice", boxes[*at].name());
                return Err(io::Error::other(what));
            }
            ports.push(port);
        }
        let place = |port: &BoxPort| format!("{} at {}", port.interface, boxes[port.at].name());
        let places: Vec<String> = ports.iter().map(place).collect();
        let mut notes = vec![format!(
            "The switch \"external\" is not started by the lab, whose ends are {}. One-way delays \
             between two boxes are corrected by the difference of their clocks, and their \
             intervals hold the error of that (raw data: clock). Delays hold the boxes' own \
             sending and receiving; the floor that stands beside them is that of veth on the \
             lab's machine.",
            places.join(", ")
        )];
        let conditions = boxes.iter().filter_map(TrafficBox::conditions);
        notes.extend(conditions.map(|of| format!("Measured with the agent on {of}.")));
        let facts = boxes.iter().filter_map(TrafficBox::facts).cloned().collect();
        let (zero, stall) = (Instant::now(), Mutex::default());
        let (boxes, makes_hosts) = (Mutex::new(boxes), true);
        Ok(Self { zero, boxes, facts, ports, notes, rate_bps, makes_hosts, stall })
    }

    /// The longest stall of a box since the last call.
    pub(crate) fn take_stall(&self) -> Stall {
        std::mem::take(&mut self.stall.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The boxes of agents.
    pub(crate) fn boxes(&self) -> &[BoxFacts] {
        &self.facts
    }

    /// Notes on this testbed for the reader of a report.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    /// The ends' rate, bit/s.
    #[must_use]
    pub fn port_rate(&self) -> Option<u64> {
        self.rate_bps
    }

    /// The interfaces, in the order of the switch's ports.
    #[must_use]
    pub fn interfaces(&self) -> Vec<String> {
        self.ports.iter().map(|port| port.interface.clone()).collect()
    }

    /// Trials from the first end to the second.
    #[must_use]
    pub fn measurer<'a>(&'a self, plan: super::MeasurerPlan<'a>) -> AgentMeasurer<'a> {
        AgentMeasurer { bed: self, from: 0, to: 1, plan, clock: None }
    }

    /// Sends from the first end, reflects at the second, receives at the first.
    pub(super) fn round_trip(
        &self,
        stream: &StreamSpec,
        input: &TrialInput,
        stop: &AtomicBool,
    ) -> Result<TrialOutput, PortTrialError> {
        let host = HOSTS[1];
        let mut asking = self.asking(stop);
        let outcome =
            asking.open(1, EndTask::Reflector { mac: host.mac, ip: host.ip }).and_then(|_| {
                let (streams, phases) = (phase_streams(stream, &[*input]), [*input]);
                let traffic = Traffic {
                    first_stream: next_stream(),
                    is_precise: false,
                    zero_ns: asking.own_time(0)?,
                    line_rate_bps: self.line_rate_bps(),
                    streams,
                    port: 0,
                };
                asking.open(0, EndTask::Traffic(traffic))?;
                let start_ns = asking.start(0, None)?;
                let outputs = asking.follow((0, 0), (start_ns, &phases), QUIET, |_| Ok(()));
                let reflector = asking.look(1)?;
                if let Some(error) = reflector.receive_error {
                    return Err(PortTrialError::Port(error));
                }
                outputs?.into_iter().next().ok_or_else(no_stream)
            });
        asking.close([0, 1]);
        outcome
    }

    fn line_rate_bps(&self) -> f64 {
        self.rate_bps.unwrap_or(0) as f64
    }

    fn asking<'a>(&'a self, stop: &'a AtomicBool) -> Asking<'a> {
        let boxes = self.boxes.lock().unwrap_or_else(PoisonError::into_inner);
        Asking { bed: self, boxes, stop }
    }
}

/// Requests to the boxes, for one trial.
struct Asking<'a> {
    bed: &'a AgentsTestbed,
    boxes: MutexGuard<'a, Vec<TrafficBox>>,
    stop: &'a AtomicBool,
}

fn failed(error: AgentError) -> PortTrialError {
    PortTrialError::Port(error.to_string())
}

fn no_stream() -> PortTrialError {
    PortTrialError::Port("a box says nothing of a stream that it was given".to_owned())
}

impl Asking<'_> {
    fn ask(
        &mut self,
        port: usize,
        request: impl FnOnce(String) -> AgentRequest,
    ) -> Result<AgentAnswer, PortTrialError> {
        let BoxPort { at, interface } = self.bed.ports[port].clone();
        self.boxes[at].ask(request(interface)).map_err(failed)
    }

    fn odd<T>(&self, port: usize, answer: &AgentAnswer) -> Result<T, PortTrialError> {
        Err(failed(self.boxes[self.bed.ports[port].at].odd(answer)))
    }

    /// Opens an end; its Ethernet address and line rate.
    fn open(&mut self, port: usize, part: EndTask) -> Result<([u8; 6], f64), PortTrialError> {
        let answer =
            self.ask(port, |interface| AgentRequest::Open(EndProgram { interface, part }))?;
        if let AgentAnswer::Opened { mac, line_rate_bps } = answer {
            Ok((mac, line_rate_bps))
        } else {
            self.odd(port, &answer)
        }
    }

    /// Starts what is open there, at a time of the frames' clock or as soon as may be; when its
    /// first frame is due.
    fn start(&mut self, port: usize, at_ns: Option<u64>) -> Result<u64, PortTrialError> {
        let answer = self.ask(port, |interface| AgentRequest::Start { interface, at_ns })?;
        if let AgentAnswer::Started { start_ns } = answer {
            Ok(start_ns)
        } else {
            self.odd(port, &answer)
        }
    }

    fn look(&mut self, port: usize) -> Result<EndSeen, PortTrialError> {
        let answer = self.ask(port, |interface| AgentRequest::Look { interface })?;
        let AgentAnswer::EndSeen(seen) = answer else { return self.odd(port, &answer) };
        let on = &self.boxes[self.bed.ports[port].at];
        let at = on.facts().map(|_| on.name());
        let mut stall = self.bed.stall.lock().unwrap_or_else(PoisonError::into_inner);
        *stall = std::mem::take(&mut *stall).or(Stall { ms: seen.stall_ms, at });
        Ok(seen)
    }

    /// Closes ends. One that cannot be closed is on a box that has gone, which closes it itself.
    fn close(&mut self, ports: impl IntoIterator<Item = usize>) {
        for port in ports {
            drop(self.ask(port, |interface| AgentRequest::Close { interface }));
        }
    }

    fn check_stop(&self) -> Result<(), PortTrialError> {
        if self.stop.load(Ordering::Relaxed) { Err(PortTrialError::Stopped) } else { Ok(()) }
    }

    /// Now, by the lab's clock.
    fn lab_ns(&self) -> i64 {
        i64::try_from(self.bed.zero.elapsed().as_nanos()).unwrap_or(i64::MAX)
    }

    /// So many comparisons of a box's clock with the lab's.
    fn exchanges(&mut self, at: usize, questions: usize) -> Result<Vec<Exchange>, PortTrialError> {
        let mut all = Vec::with_capacity(questions);
        for _ in 0..questions {
            self.check_stop()?;
            all.push(self.boxes[at].exchange(self.bed.zero).map_err(failed)?);
        }
        Ok(all)
    }

    /// The best of them.
    fn compare(&mut self, at: usize, questions: usize) -> Result<Exchange, PortTrialError> {
        Exchange::best(&self.exchanges(at, questions)?).ok_or_else(no_stream)
    }

    /// Now, by the clock of the box of a port.
    fn own_time(&mut self, port: usize) -> Result<i64, PortTrialError> {
        let exchange = self.compare(self.bed.ports[port].at, 1)?;
        Ok(exchange.answered_ns)
    }

    /// Waits until a port has sent all, calling `meanwhile` now and then, and until all has come or
    /// nothing comes any more; what became of each phase.
    fn follow(
        &mut self,
        (from, to): (usize, usize),
        (start_ns, phases): (u64, &[TrialInput]),
        quiet: Duration,
        mut meanwhile: impl FnMut(&mut Self) -> Result<(), PortTrialError>,
    ) -> Result<Vec<TrialOutput>, PortTrialError> {
        let mut sent = self.sent(from)?;
        while sent.is_transmitting {
            self.check_stop()?;
            meanwhile(self)?;
            std::thread::sleep(LOOK);
            sent = self.sent(from)?;
        }
        let grace_s = phases.last().map_or(0.0, |phase| phase.grace_s);
        let grace = Duration::try_from_secs_f64(grace_s).unwrap_or(DRAIN);
        // Frames that left late have no more time than the others.
        let over_ns = sent.now_ns.saturating_sub(phases_end(start_ns, phases));
        let left = grace.saturating_sub(Duration::from_nanos(over_ns));
        let (in_time, is_drained) = self.drain(&sent, to, quiet, left)?;
        let counted =
            if is_drained { in_time.clone() } else { self.drain(&sent, to, quiet, DRAIN)?.0 };
        let starts = phase_starts(start_ns, phases);
        let mut outputs = Vec::new();
        for (number, (input, start_ns)) in phases.iter().zip(starts).enumerate() {
            let of = |seen: &[SeenStream]| seen.get(number).cloned().ok_or_else(no_stream);
            let sent = of(&sent.streams)?;
            if !sent.is_numbered {
                return Err(PortTrialError::NoProbe(input.frame_size));
            }
            let [in_time, counted] =
                [of(&in_time)?, of(&counted)?].map(|one| one.arrived.unwrap_or_default());
            outputs.push(output(*input, start_ns, &sent, &in_time, counted));
        }
        Ok(outputs)
    }

    /// Frames that a port has sent.
    fn sent(&mut self, port: usize) -> Result<EndSeen, PortTrialError> {
        let seen = self.look(port)?;
        match seen.stopped {
            Some(reason) => Err(PortTrialError::Port(reason)),
            None => Ok(seen),
        }
    }

    /// Waits until all of what was sent has come, or nothing comes any more, or until `limit` has
    /// passed; the streams at that time, and whether it was before the limit.
    fn drain(
        &mut self,
        sent: &EndSeen,
        to: usize,
        quiet: Duration,
        limit: Duration,
    ) -> Result<(Vec<SeenStream>, bool), PortTrialError> {
        let begun = Instant::now();
        let mut last = (begun, None);
        loop {
            let seen = self.look(to)?;
            if let Some(error) = seen.receive_error {
                return Err(PortTrialError::Port(error));
            }
            let received =
                |stream: &SeenStream| stream.arrived.as_ref().map_or(0, |one| one.received);
            let mut both = seen.streams.iter().zip(&sent.streams);
            if both.all(|(came, left)| received(came) >= left.probes) {
                return Ok((seen.streams, true));
            }
            let all: u64 = seen.streams.iter().map(received).sum();
            if last.1 != Some(all) {
                last = (Instant::now(), Some(all));
            }
            if last.0.elapsed() >= quiet {
                return Ok((seen.streams, true));
            }
            if begun.elapsed() >= limit {
                return Ok((seen.streams, false));
            }
            self.check_stop()?;
            std::thread::sleep(LOOK);
        }
    }
}

/// Outcome of a phase. The schedule counts as offered: frames that could not be sent did not arrive
/// either.
fn output(
    input: TrialInput,
    start_ns: u64,
    sent: &SeenStream,
    in_time: &StreamReport,
    mut report: StreamReport,
) -> TrialOutput {
    report.sent = sent.probes + sent.unsent;
    report.lost = report.sent.saturating_sub(report.received);
    report.late = report.received.saturating_sub(in_time.received);
    report.last_ns = in_time.last_ns;
    let SeenStream { unsent, unsent_down, late: sent_late, .. } = *sent;
    TrialOutput { input, start_ns, unsent, unsent_down, sent_late, report }
}

/// Performs trials between two ends.
#[derive(Debug)]
pub struct AgentMeasurer<'a> {
    bed: &'a AgentsTestbed,
    from: usize,
    to: usize,
    plan: super::MeasurerPlan<'a>,
    clock: Option<ClockComparison>,
}

impl AgentMeasurer<'_> {
    /// Comparison of the clocks in the trial in which they are known worst; `None` where one box
    /// has both ends.
    #[must_use]
    pub fn clock(&self) -> Option<ClockComparison> {
        self.clock
    }

    /// The trial. Whatever it ends with, both ends are to be closed behind it.
    fn carry(
        &mut self,
        asking: &mut Asking<'_>,
        phases: &[TrialInput],
    ) -> Result<Vec<TrialOutput>, PortTrialError> {
        let (from, to, bed) = (self.from, self.to, self.bed);
        let streams = phase_streams(&self.plan.stream, phases);
        let mut clocks = Clocks::compare([from, to].map(|port| bed.ports[port].at), asking)?;
        let zeros = clocks.zeros(asking.lab_ns(), phases);
        let traffic = |streams, zero_ns| Traffic {
            first_stream: 0,
            is_precise: self.plan.is_precise(),
            zero_ns,
            line_rate_bps: bed.line_rate_bps(),
            streams,
            port: 0,
        };
        let first_stream = next_stream();
        let sends = Traffic { first_stream, ..traffic(streams.clone(), zeros[0]) };
        let (mac, _) = asking.open(from, EndTask::Traffic(sends))?;
        if self.plan.is_learning {
            let learning = |streams| Traffic {
                first_stream: next_stream(),
                is_precise: false,
                ..traffic(streams, zeros[1])
            };
            self.learn(asking, mac, phases, learning)?;
        }
        // Of an end that sends none of them.
        let counts = Traffic { first_stream, port: 1, ..traffic(streams, zeros[1]) };
        asking.open(to, EndTask::Traffic(counts))?;
        let start_ns = asking.start(from, None)?;
        let mut last = Instant::now();
        let mut outputs =
            asking.follow((from, to), (start_ns, phases), self.plan.quiet, |asking| {
                if last.elapsed() >= COMPARE_EVERY {
                    clocks.go_on(asking, QUESTIONS_MEANWHILE)?;
                    last = Instant::now();
                }
                Ok(())
            })?;
        clocks.go_on(asking, QUESTIONS)?;
        let clock = clocks.correct(&mut outputs)?;
        let is_worse = |clock: &ClockComparison| {
            self.clock.is_none_or(|before| before.error_us < clock.error_us)
        };
        if clock.as_ref().is_some_and(is_worse) {
            self.clock = clock;
        }
        Ok(outputs)
    }

    /// Shows the switch where the destination of the stream is.
    fn learn(
        &self,
        asking: &mut Asking<'_>,
        mac: [u8; 6],
        phases: &[TrialInput],
        traffic: impl FnOnce(Vec<StreamSpec>) -> Traffic,
    ) -> Result<(), PortTrialError> {
        let line_bps = if self.bed.line_rate_bps() > 0.0 { self.bed.line_rate_bps() } else { 10e9 };
        let Some(stream) = phases
            .first()
            .and_then(|input| learning_stream(&self.plan.stream.packet, mac, input, line_bps))
        else {
            return Ok(());
        };
        asking.open(self.to, EndTask::Traffic(traffic(vec![stream])))?;
        asking.start(self.to, None)?;
        asking.all_sent(self.to)?;
        // The switch may take a while to learn them.
        std::thread::sleep(self.plan.quiet);
        Ok(())
    }
}

impl Measurer for AgentMeasurer<'_> {
    type Error = PortTrialError;

    fn run(&mut self, phases: &[TrialInput]) -> Result<Vec<TrialOutput>, PortTrialError> {
        let mut asking = self.bed.asking(self.plan.stop);
        let outcome = self.carry(&mut asking, phases);
        asking.close([self.from, self.to]);
        outcome
    }
}

/// The clocks of the box that sends and of the one that receives, beside the lab's.
struct Clocks {
    boxes: [usize; 2],
    exchanges: [Vec<Exchange>; 2],
    /// When the trial began and when its clocks were last compared, nanoseconds of the lab's clock.
    between_ns: [i64; 2],
    /// The offsets that the frames' clocks were set by.
    set_ns: [i64; 2],
    /// By how much the receiver's was set ahead.
    ahead_ns: i64,
}

impl Clocks {
    fn compare(boxes: [usize; 2], asking: &mut Asking<'_>) -> Result<Self, PortTrialError> {
        let exchanges = [Vec::new(), Vec::new()];
        let mut clocks = Self { boxes, exchanges, between_ns: [0; 2], set_ns: [0; 2], ahead_ns: 0 };
        clocks.go_on(asking, QUESTIONS)?;
        clocks.between_ns[0] = clocks.between_ns[1];
        Ok(clocks)
    }

    /// Whether one box has both ends.
    fn is_one(&self) -> bool {
        self.boxes[0] == self.boxes[1]
    }

    fn go_on(&mut self, asking: &mut Asking<'_>, questions: usize) -> Result<(), PortTrialError> {
        for (at, exchanges) in self.boxes.iter().zip(&mut self.exchanges) {
            let best = asking.compare(*at, questions)?;
            self.between_ns[1] = best.at_ns();
            exchanges.push(best);
        }
        Ok(())
    }

    /// Zeros of the frames' clocks, each by the clock of its box, for a trial that begins now.
    fn zeros(&mut self, now_ns: i64, phases: &[TrialInput]) -> [i64; 2] {
        let last = |of: &Vec<Exchange>| {
            of.last().map_or((0.0, 0), |one| (one.offset_ns(), one.round_trip_ns()))
        };
        let [sender, receiver] = [last(&self.exchanges[0]), last(&self.exchanges[1])];
        self.set_ns = [sender.0 as i64, receiver.0 as i64];
        if self.is_one() {
            self.set_ns[1] = self.set_ns[0];
        } else {
            let error_ns = (sender.1 + receiver.1) as f64 / 2.0;
            let length_ns = phases_end(0, phases) as f64 + 1e9;
            let ahead_ns = AHEAD_ERRORS * error_ns + AHEAD_NS + AHEAD_DRIFT * length_ns;
            self.ahead_ns = ahead_ns as i64;
        }
        let [of_sender, of_receiver] = self.set_ns.map(|offset_ns| now_ns + offset_ns);
        [of_sender, of_receiver - self.ahead_ns]
    }

    /// Takes what the clocks differ off delays and arrivals; how well that is known.
    fn correct(
        &self,
        outputs: &mut [TrialOutput],
    ) -> Result<Option<ClockComparison>, PortTrialError> {
        if self.is_one() {
            return Ok(None);
        }
        let lines = [ClockLine::fit(&self.exchanges[0]), ClockLine::fit(&self.exchanges[1])];
        let [Some(sender), Some(receiver)] = lines else { return Err(no_stream()) };
        let [begun_ns, ended_ns] = self.between_ns;
        let middle_ns = begun_ns.midpoint(ended_ns);
        let apart = |at_ns: i64| {
            let [first, second] = [sender.at(at_ns), receiver.at(at_ns)];
            ClockReading {
                offset_ns: second.offset_ns - first.offset_ns,
                error_ns: first.error_ns + second.error_ns,
            }
        };
        let found = apart(middle_ns);
        let drift = receiver.drift() - sender.drift();
        let half_ns = ended_ns.saturating_sub(begun_ns) as f64 / 2.0;
        let set_ns = (self.set_ns[1] - self.set_ns[0]) as f64;
        let shift_ns = self.ahead_ns as f64 + found.offset_ns - set_ns;
        let drift_ns = drift.abs() * half_ns;
        let error_ns = found.error_ns + drift_ns + BUCKET * self.ahead_ns as f64;
        for report in outputs.iter_mut().map(|output| &mut output.report) {
            if report.delay.as_ref().is_some_and(|delay| delay.min_ns <= 0) {
                let what = format!(
                    "the clocks of the two boxes moved apart by more than {:.0} µs in the trial",
                    self.ahead_ns as f64 / 1e3
                );
                return Err(PortTrialError::Port(what));
            }
            shift(report, shift_ns);
        }
        let best = |of: &[Exchange]| Exchange::best(of).map_or(0, |one| one.round_trip_ns());
        let [there, back] = [best(&self.exchanges[0]), best(&self.exchanges[1])];
        Ok(Some(ClockComparison {
            error_us: error_ns / 1e3,
            drift_error_us: drift_ns / 1e3,
            offset_us: found.offset_ns / 1e3,
            drift_ppm: drift * 1e6,
            round_trips_us: [there as f64 / 1e3, back as f64 / 1e3],
            comparisons: self.exchanges[0].len(),
        }))
    }
}

/// Sets the clock of a report's arrivals back. Differences of delays stay.
fn shift(report: &mut StreamReport, by_ns: f64) {
    let by = by_ns.round() as i64;
    let earlier = |at_ns: u64| at_ns.saturating_add_signed(by.saturating_neg());
    report.first_ns = report.first_ns.map(earlier);
    report.last_ns = report.last_ns.map(earlier);
    if let Some(Distribution { min_ns, mean_ns, mean_amount_ns, max_ns, quantiles, .. }) =
        &mut report.delay
    {
        *mean_ns -= by_ns;
        *mean_amount_ns = *mean_ns;
        for value in [min_ns, max_ns] {
            *value -= by;
        }
        for quantile in quantiles {
            for value in [&mut quantile.value_ns, &mut quantile.low_ns, &mut quantile.high_ns] {
                *value -= by;
            }
        }
    }
}
