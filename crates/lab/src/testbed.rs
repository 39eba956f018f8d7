//! The testbed of a run: hosts, a switch and a controller, and the links between them.
//!
//! Five kinds. [`netns`] has kernel hosts in network namespaces joined by veth, with shaped links;
//! it needs root. [`memory`] has no hosts: the lab itself sits at the far end of in-memory ports
//! and sends its own traffic; it needs nothing. [`external`] has devices of this machine, or of
//! other boxes, that lead to a switch which runs already; it needs root. In [`replay`] the switch
//! replays a trace by itself, and nobody else sends. In a fleet emulated switches load a
//! controller. None leaves anything behind, however it ends.

mod box_ports;
pub mod cores;
pub mod external;
pub mod lab_hosts;
pub mod memory;
pub mod netns;
pub mod replay;
mod udp_port;

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::time::Duration;

use generator::method::on_ports::{PortTrialError, SessionMeasurer, TrialPorts};
use generator::method::{Measurer, MethodError, TrialInput, TrialOutput};
use generator::profile::StreamSpec;
use generator::session::{Session, SessionOptions, Waiting};
use netdev::Port;
use programs::cancel::{Cancel, Stopped};

use crate::agent::client::AgentLink;
use crate::agent::clock::ClockComparison;
use crate::agent::protocol::AgentRequest;
use crate::facts::BoxFacts;
use crate::hosts::{HOSTS, headers, reflect};
use crate::load::LinkSample;
use crate::stall::Stall;
use crate::trial_error::TrialError;
use box_ports::BoxPorts;
use cores::{Cores, OffCores};
use external::ExternalTestbed;
use memory::MemoryTestbed;
use netns::NetnsTestbed;
use replay::ReplayTestbed;

/// The port on which the controller listens.
pub const CONTROLLER_PORT: u16 = 6653;

/// A port as a testbed names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortName {
    /// A network device in the switch's namespace.
    Device(String),
    /// An in-memory port of Weir's, in the text that `weir switch --port` takes.
    Memory(String),
    /// A virtual device of DPDK's, in the words of its option `--vdev`.
    Dpdk(String),
}

/// Silence after which nothing is on its way any more, through a controller that stands still too.
const QUIET: Duration = Duration::from_millis(120);

/// Rate of a link without a line, bit/s: more than a session can send.
const NO_LINE_BPS: f64 = 1e12;

/// UDP port of the lab's own traffic at both hosts.
const PORT: u16 = 9201;

/// A testbed.
#[derive(Debug)]
pub enum Testbed {
    Kernel(NetnsTestbed),
    Memory(MemoryTestbed),
    External(ExternalTestbed),
    Replay(ReplayTestbed),
    /// No hosts and no switch: the cores of a controller, and of the switches that load it.
    Fleet(Cores),
}

/// Why a method does not run whose frames have to be one session's at both ends.
const APART: &str =
    "sends and counts at all ports at once: its ends have to be on the lab's machine";

/// Why a method does not run that needs a kernel's own addresses, or links of the lab's.
const NO_HOSTS: &str = "needs hosts and links that the lab makes; at the interfaces of an \
                        inventory it sends frames only";

/// Why a method does not run that needs hosts of any kind.
const REPLAYED: &str = "needs hosts that send; here the switch replays a trace by itself";

/// Why a method does not run that asks about a switch.
const FLEET: &str = "needs a switch; here emulated ones load a controller";

impl Testbed {
    /// The kernel hosts, where there are some.
    pub fn kernel(&self) -> Option<&NetnsTestbed> {
        if let Self::Kernel(bed) = self { Some(bed) } else { None }
    }

    /// The ends, where some are on other boxes.
    fn apart(&self) -> Option<&ExternalTestbed> {
        if let Self::External(bed) = self { Some(bed).filter(|bed| bed.is_apart) } else { None }
    }

    /// The replay, where the switch replays a trace by itself.
    pub(crate) fn replay(&self) -> Option<&ReplayTestbed> {
        if let Self::Replay(bed) = self { Some(bed) } else { None }
    }

    /// The kernel hosts, or why there are none: `in_memory` where the ports are in memory.
    pub fn kernel_or(&self, in_memory: &'static str) -> Result<&NetnsTestbed, &'static str> {
        match self {
            Self::Kernel(bed) => Ok(bed),
            Self::Memory(_) => Err(in_memory),
            Self::External(_) => Err(NO_HOSTS),
            Self::Replay(_) => Err(REPLAYED),
            Self::Fleet(_) => Err(FLEET),
        }
    }

    /// Rate of the hosts' links, bit/s.
    pub fn port_rate(&self) -> Option<u64> {
        match self {
            Self::Kernel(bed) => bed.port_rate.0,
            Self::Memory(_) | Self::Replay(_) | Self::Fleet(_) => None,
            Self::External(bed) => bed.rate_bps,
        }
    }

    /// Counters of all links; none where the lab has not made them.
    pub fn links(&self) -> Vec<LinkSample> {
        self.kernel().map(NetnsTestbed::links).unwrap_or_default()
    }

    /// Notes on the testbed for the reader of a report.
    pub fn notes(&self) -> Vec<String> {
        match self {
            Self::Kernel(bed) => bed.notes(),
            Self::Memory(_) => vec![memory::NOTE.to_owned()],
            Self::External(bed) => bed.notes(),
            Self::Replay(_) => vec![replay::NOTE.to_owned()],
            Self::Fleet(_) => Vec::new(),
        }
    }

    /// Keeps the calling thread off the cores that the subject has to itself, where it has some.
    pub(crate) fn keep_off(&self) -> io::Result<Option<OffCores>> {
        match self {
            Self::Kernel(_) | Self::Memory(_) | Self::External(_) => Ok(None),
            Self::Replay(ReplayTestbed { cores, .. }) | Self::Fleet(cores) => {
                cores.keep_off().map(Some)
            }
        }
    }

    /// The longest stall since the last call of another machine that sends or counts.
    pub(crate) fn take_stall(&self) -> Stall {
        self.apart().map(ExternalTestbed::take_stall).unwrap_or_default()
    }

    /// The boxes of agents that take part.
    pub(crate) fn boxes(&self) -> Vec<BoxFacts> {
        let boxes = |bed: &ExternalTestbed| {
            bed.links().iter().filter_map(AgentLink::facts).cloned().collect()
        };
        self.apart().map(boxes).unwrap_or_default()
    }

    /// The ports of the first two hosts, for one trial.
    fn host_ports(&self) -> Result<Vec<Port>, TrialError> {
        let Self::Kernel(bed) = self else {
            let mut ports = self.open_ports()?;
            ports.truncate(2);
            return Ok(ports);
        };
        let open = |host: usize| -> io::Result<Port> {
            let ends = [HOSTS[host], HOSTS[1 - host]];
            bed.hosts[host].ns.enter(|| udp_port::open(ends, [PORT; 2]))?
        };
        let what = "a socket of the lab's own traffic";
        let ports: io::Result<Vec<Port>> = [0, 1].into_iter().map(open).collect();
        ports.map_err(|source| TrialError::Io { what, source })
    }

    /// The far end of every port of the switch, for frames as they are.
    pub fn open_ports(&self) -> Result<Vec<Port>, TrialError> {
        let failed = |source| TrialError::Io { what: "the device of a host", source };
        match self {
            Self::Kernel(bed) => {
                (0..bed.hosts.len()).map(|host| bed.open_port(host).map_err(failed)).collect()
            }
            Self::Memory(bed) => bed.take_ports(),
            Self::External(bed) if bed.is_apart => Err(TrialError::Unfit(APART)),
            Self::External(bed) => bed.open_all(),
            Self::Replay(_) => Err(TrialError::Unfit(REPLAYED)),
            Self::Fleet(_) => Err(TrialError::Unfit(FLEET)),
        }
    }

    /// Gives them back for the next trial; sockets end here.
    fn give_back(&self, ports: Vec<Port>) {
        if let Self::Memory(bed) = self {
            bed.ports().extend(ports);
        }
    }

    /// Does `work` with a session over the far ends of all ports: port 0 of the session is joined
    /// to port 1 of the switch.
    pub fn with_session<T>(
        &self,
        waiting: Waiting,
        work: impl FnOnce(&mut Session) -> Result<T, TrialError>,
    ) -> Result<T, TrialError> {
        self.with_session_over(self.open_ports()?, waiting, work)
    }

    /// The same with ports that are open, and are given back.
    fn with_session_over<T>(
        &self,
        ports: Vec<Port>,
        waiting: Waiting,
        work: impl FnOnce(&mut Session) -> Result<T, TrialError>,
    ) -> Result<T, TrialError> {
        // The kernel says 10 Gbit/s of every veth, and carries more. Other devices say their own.
        let has_no_line = self.port_rate().is_none() && !matches!(self, Self::External(_));
        let line_rate_bps = if has_no_line { vec![NO_LINE_BPS; ports.len()] } else { Vec::new() };
        let first_stream = next_streams();
        let options =
            SessionOptions { line_rate_bps, waiting, first_stream, ..SessionOptions::default() };
        let session = Session::from_ports(ports, options);
        let mut session = session.map_err(|error| traffic_error(error.into()))?;
        let outcome = work(&mut session);
        self.give_back(session.into_ports());
        outcome
    }

    /// Does `work` with the ports of a trial, wherever their far ends are.
    pub fn with_ports<T>(
        &self,
        stop: &AtomicBool,
        work: impl FnOnce(&mut dyn TrialPorts) -> Result<T, TrialError>,
    ) -> Result<T, TrialError> {
        match self.apart() {
            Some(bed) => work(&mut BoxPorts::new(bed, bed.ends.len(), false, stop)),
            None => self.with_session(Waiting::Sleeping, |session| work(session)),
        }
    }

    /// The same with those of the first two hosts; the comparison of the clocks of their boxes,
    /// where they are two, in the trial in which they are known worst.
    pub fn with_two_ports<T>(
        &self,
        waiting: Waiting,
        stop: &AtomicBool,
        work: impl FnOnce(&mut dyn TrialPorts) -> Result<T, TrialError>,
    ) -> Result<(T, Option<ClockComparison>), TrialError> {
        let Some(bed) = self.apart() else {
            return Ok((self.with_session(waiting, |session| work(session))?, None));
        };
        let mut ports = BoxPorts::new(bed, 2, waiting == Waiting::Precise, stop);
        Ok((work(&mut ports)?, ports.worst.take()))
    }

    /// Sends from host 1 to host 2.
    pub fn one_way(&self, input: &TrialInput, cancel: &Cancel) -> Result<TrialOutput, TrialError> {
        let work = |ports: &mut dyn TrialPorts| trial(ports, (0, 1), input, cancel);
        if let Some(bed) = self.apart() {
            return work(&mut BoxPorts::new(bed, 2, false, cancel.flag()));
        }
        self.with_session_over(self.host_ports()?, Waiting::Sleeping, |session| work(session))
    }

    /// Sends from host 1, reflects at host 2, receives at host 1.
    pub fn round_trip(
        &self,
        input: &TrialInput,
        cancel: &Cancel,
    ) -> Result<TrialOutput, TrialError> {
        let work = |ports: &mut dyn TrialPorts| trial(ports, (0, 0), input, cancel);
        if let Some(bed) = self.apart() {
            let (at, interface) = bed.ends[1].clone();
            let request = AgentRequest::Reflect { interface, host: HOSTS[1] };
            let work = || work(&mut BoxPorts::new(bed, 1, false, cancel.flag()));
            return bed.while_asked(at..at + 1, &request, work);
        }
        let mut near = self.host_ports()?;
        let mut far = near.split_off(1);
        let done = AtomicBool::new(false);
        let (outcome, reflected) = std::thread::scope(|scope| {
            let reflector = scope.spawn(|| reflect(&mut far[0], &HOSTS[1], &done));
            let outcome = self.with_session_over(near, Waiting::Sleeping, |session| work(session));
            done.store(true, Ordering::Relaxed);
            let reflected = reflector.join();
            (outcome, reflected.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        });
        self.give_back(far);
        reflected.map_err(|error| traffic_error(PortTrialError::Port(error.to_string())))?;
        outcome
    }
}

/// Carries one trial out on ports. The hosts have talked before: there is nothing to learn.
fn trial(
    session: &mut dyn TrialPorts,
    (from, to): (usize, usize),
    input: &TrialInput,
    cancel: &Cancel,
) -> Result<TrialOutput, TrialError> {
    let (stream, is_learning, quiet, stop) = (usual_stream(), false, QUIET, cancel.flag());
    let mut measurer = SessionMeasurer { session, from, to, stream, is_learning, quiet, stop };
    measurer.trial(*input).map_err(method_error)
}

/// Datagrams from host 1 to host 2.
fn usual_stream() -> StreamSpec {
    StreamSpec { packet: headers(PORT, PORT), ..StreamSpec::default() }
}

/// Streams of a session, at most, that have numbers of their own.
const STREAMS: u16 = 64;

/// The number of the next session's first stream. Every session has numbers of its own, so that
/// frames that come too late are not counted in the next one.
fn next_streams() -> u16 {
    static SESSIONS: AtomicU16 = AtomicU16::new(0);
    let number = SESSIONS.fetch_add(1, Ordering::Relaxed) % (u16::MAX / STREAMS);
    1 + number * STREAMS
}

/// The error of a trial or of a method of trials.
pub(crate) fn method_error(error: MethodError<PortTrialError>) -> TrialError {
    match error {
        MethodError::Trial(error) => traffic_error(error),
        MethodError::NoOutput | MethodError::Options(_) => {
            TrialError::Traffic(PortTrialError::Port(error.to_string()))
        }
    }
}

pub(crate) fn traffic_error(error: PortTrialError) -> TrialError {
    let is_stop = matches!(error, PortTrialError::Stopped);
    if is_stop { TrialError::Stopped(Stopped) } else { TrialError::Traffic(error) }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use generator::method::TrialInput;
    use generator::profile::{FrameSize, Mode, Rate, StreamSpec};
    use generator::session::Waiting;
    use netdev::Port;
    use packet::Batch;

    use super::Testbed;
    use super::memory::MemoryTestbed;
    use programs::cancel::Cancel;

    const INPUT: TrialInput =
        TrialInput { frame_size: 64, rate_pps: 500.0, duration_s: 0.1, grace_s: 30.0 };

    /// A switch that is a wire between its two ports.
    fn forward(ports: &mut [Port; 2], stop: &AtomicBool) {
        let mut batch = Batch::default();
        while !stop.load(Ordering::Relaxed) {
            for (from, to) in [(0, 1), (1, 0)] {
                ports[from].rx(&mut batch, 64).unwrap();
                ports[to].tx(batch.frames()).unwrap();
                batch.clear();
            }
            std::thread::sleep(Duration::from_micros(100));
        }
    }

    #[test]
    fn a_link_without_a_rate_is_offered_more_than_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let bed = Testbed::Memory(MemoryTestbed::new(folder.path()).unwrap());
        // 4,000,000 frames of 1,518 bytes a second are 49 Gbit/s; a session refuses what its line
        // does not carry.
        let stream = StreamSpec {
            size: FrameSize::Fixed(1518),
            rate: Rate::PacketsPerSecond(4_000_000.0),
            mode: Mode::Burst(1),
            ..super::usual_stream()
        };
        bed.with_session(Waiting::Sleeping, |session| {
            session.load(0, &[stream]).unwrap();
            Ok(())
        })
        .unwrap();
    }

    #[test]
    fn trials_follow_each_other_on_the_same_memory_ports() {
        let folder = tempfile::tempdir().unwrap();
        let bed = MemoryTestbed::new(folder.path()).unwrap();
        let mut ports = bed.texts.clone().map(|text| netdev::open_text(&text).unwrap());
        let bed = Testbed::Memory(bed);
        let (stop, cancel) = (AtomicBool::new(false), Cancel::default());
        std::thread::scope(|scope| {
            scope.spawn(|| forward(&mut ports, &stop));
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                for _ in 0..2 {
                    for output in [
                        bed.one_way(&INPUT, &cancel).unwrap(),
                        bed.round_trip(&INPUT, &cancel).unwrap(),
                    ] {
                        let report = &output.report;
                        assert_eq!(report.sent, 50);
                        assert_eq!(report.received, 50 - output.unsent, "{output:?}");
                        assert_eq!((report.late, report.stale, report.duplicated), (0, 0, 0));
                    }
                }
            }));
            stop.store(true, Ordering::Relaxed);
            outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        });
    }
}
