//! Ends of a switch that the lab does not start: network devices of this machine, or of others.
//!
//! All this machine's are opened by the lab itself. Else an agent serves each box, this machine
//! too, and [`super::box_ports`] makes one session of them. It must never change a device: not its
//! address, its state or its offloads.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use generator::method::on_ports::PortTrialError;
use netdev::Port;
use netdev::sys::ethtool::Ethtool;
use netdev::sys::link::Rtnl;
use programs::cancel::Cancel;
use serde::Deserialize;

use super::traffic_error;
use crate::agent::client::AgentLink;
use crate::agent::protocol::{AgentRequest, BoxReport};
use crate::names::distinct;
use crate::stall::Stall;
use crate::trial_error::TrialError;

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

/// The ends of a switch that the lab does not start: of port 1, of port 2, ...
#[derive(Clone, Debug)]
pub struct Wiring {
    /// Place of each end.
    pub ends: Vec<EndPlace>,
    /// Whether hosts with addresses are made at them.
    pub makes_hosts: bool,
}

/// The testbed.
#[derive(Debug)]
pub struct ExternalTestbed {
    /// The box of each end, by its place in `links`, and the interface there.
    pub(crate) ends: Vec<(usize, String)>,
    /// The agents; none where all ends are this machine's.
    links: Mutex<Vec<AgentLink>>,
    pub(super) is_apart: bool,
    /// The binary of this machine's agents, for those of hosts.
    pub(super) weir: PathBuf,
    pub(super) makes_hosts: bool,
    /// Rate of the slowest end, where all are this machine's.
    pub(super) rate_bps: Option<u64>,
    /// Zero of the lab's own clock.
    pub(super) zero: Instant,
    /// The longest stall of a box since it was taken last.
    stall: Mutex<Stall>,
}

impl ExternalTestbed {
    /// Ends that lead to port 1, port 2, ... of the switch, with an agent started for each box.
    /// `weir` is this machine's binary, and logs go into `dir`.
    pub fn start(
        wiring: &Wiring,
        (weir, dir): (&Path, &Path),
        cancel: &Cancel,
    ) -> io::Result<Self> {
        let agents = distinct(wiring.ends.iter().map(|end| end.agent.as_deref()));
        let (mut ends, mut links, mut rate_bps) = (Vec::new(), Vec::new(), None);
        for EndPlace { agent, interface } in &wiring.ends {
            let at = agents.iter().position(|one| *one == agent.as_deref());
            ends.push((at.unwrap_or(0), interface.clone()));
        }
        for (at, agent) in agents.iter().enumerate() {
            let own = ends.iter().filter(|end| end.0 == at);
            let interfaces: Vec<String> = own.map(|end| end.1.clone()).collect();
            if agents == [None] {
                check_up(&interfaces)?;
                rate_bps = slowest_bps(&interfaces)?;
                break;
            }
            let link = AgentLink::start(*agent, &interfaces, (weir, dir), cancel);
            links.push(link.map_err(io::Error::other)?);
        }
        let (weir, makes_hosts) = (weir.to_owned(), wiring.makes_hosts);
        Ok(Self { weir, makes_hosts, rate_bps, ..Self::new(links, ends)? })
    }

    /// Ends at boxes with agents, each with the place of its box.
    pub(crate) fn new(links: Vec<AgentLink>, ends: Vec<(usize, String)>) -> io::Result<Self> {
        let mut all = ends.iter().enumerate();
        if let Some((_, (at, name))) = all.find(|(number, end)| ends[..*number].contains(end)) {
            let at = links.get(*at).map_or_else(String::new, |link| format!("{}: ", link.name()));
            return Err(io::Error::other(format!("{at}{name} is named twice")));
        }
        Ok(Self {
            ends,
            is_apart: !links.is_empty(),
            links: Mutex::new(links),
            weir: PathBuf::new(),
            makes_hosts: false,
            rate_bps: None,
            zero: Instant::now(),
            stall: Mutex::default(),
        })
    }

    /// The agents: of the boxes in their order.
    pub(super) fn links(&self) -> MutexGuard<'_, Vec<AgentLink>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The longest stall of a box since the last call.
    pub(crate) fn take_stall(&self) -> Stall {
        std::mem::take(&mut self.stall.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// State of a box, whose stall is noted; its reflector, where it has one, works.
    pub(super) fn look(&self, link: &mut AgentLink) -> Result<BoxReport, PortTrialError> {
        let mut report: BoxReport = link.ask(&AgentRequest::Look {})?;
        for port in &mut report.statistics.ports {
            if let Some(stop) = &mut port.stopped {
                stop.reason = format!("{}: {}: {}", link.name(), port.name, stop.reason);
            }
        }
        let seen = Stall { ms: report.stall_ms, at: link.facts().map(|_| link.name()) };
        let mut stall = self.stall.lock().unwrap_or_else(PoisonError::into_inner);
        *stall = std::mem::take(&mut *stall).or(seen);
        match report.reflect_error {
            Some(error) => Err(PortTrialError::Port(format!("{}: {error}", link.name()))),
            None => Ok(report),
        }
    }

    /// Notes on this testbed for the reader of a report.
    pub fn notes(&self) -> Vec<String> {
        let links = self.links();
        let place = |(at, interface): &(usize, String)| match links.get(*at) {
            Some(link) => format!("{interface} at {}", link.name()),
            None => interface.clone(),
        };
        let places: Vec<String> = self.ends.iter().map(place).collect();
        let clocks = match links.is_empty() {
            true => "",
            false => {
                " One-way delays between two boxes are corrected by the difference of their \
                 clocks, and their intervals hold the error of that (raw data: clock)."
            }
        };
        let mut notes = vec![format!(
            "The switch \"external\" is not started by the lab, whose ends are {}.{clocks} Delays \
             hold the boxes' own sending and receiving; the floor that stands beside them is that \
             of veth on the lab's machine.",
            places.join(", ")
        )];
        let facts = links.iter().filter_map(AgentLink::facts);
        notes.extend(facts.map(|of| format!("Measured with the agent on {}.", of.words())));
        notes
    }

    /// All devices, for one trial; all are this machine's.
    pub(super) fn open_all(&self) -> Result<Vec<Port>, TrialError> {
        let open = |(_, name): &(usize, String)| {
            let port = netdev::open_text(&format!("af_packet:{name}")).map_err(io::Error::other);
            let what = "an interface of the inventory";
            port.map_err(|source| TrialError::Io { what, source })
        };
        self.ends.iter().map(open).collect()
    }

    /// Does `work` while boxes do what they are asked for, and watch for stalls. That one of them
    /// is lost says more than what came of it.
    pub(super) fn while_asked<T>(
        &self,
        boxes: Range<usize>,
        request: &AgentRequest,
        work: impl FnOnce() -> Result<T, TrialError>,
    ) -> Result<T, TrialError> {
        let asked = with_each(&mut self.links(), boxes.clone(), |link| link.ask(request));
        let outcome = asked.map_err(traffic_error).and_then(|()| work());
        let ended = with_each(&mut self.links(), boxes, |link| {
            let looked = self.look(link);
            let closed = link.ask(&AgentRequest::Close {});
            looked.map(drop).and(closed)
        });
        ended.map_err(traffic_error)?;
        outcome
    }
}

/// Asks each of these boxes, the others too where one is lost: the errors of all.
pub(super) fn with_each(
    links: &mut [AgentLink],
    boxes: impl IntoIterator<Item = usize>,
    mut work: impl FnMut(&mut AgentLink) -> Result<(), PortTrialError>,
) -> Result<(), PortTrialError> {
    let errors = boxes.into_iter().filter_map(|at| work(&mut links[at]).err());
    let errors: Vec<String> = errors.map(|error| error.to_string()).collect();
    match errors.is_empty() {
        true => Ok(()),
        false => Err(PortTrialError::Port(errors.join("; "))),
    }
}

/// Checks that devices of this machine are there and up; an error has the remedy.
pub(crate) fn check_up(interfaces: &[String]) -> io::Result<()> {
    let rtnl = Rtnl::open().map_err(io::Error::other)?;
    for name in interfaces {
        let link = rtnl
            .link(name)
            .map_err(|error| io::Error::other(format!("the interface {name}: {error}")))?;
        if !(link.up && link.carrier) {
            let what = format!("{name} is down: ip link set {name} up, and look at its cable");
            return Err(io::Error::other(what));
        }
    }
    Ok(())
}

/// The speed of the slowest device, bit/s; none where no device says its own.
fn slowest_bps(interfaces: &[String]) -> io::Result<Option<u64>> {
    let ethtool = Ethtool::open().map_err(io::Error::other)?;
    let speed_bps = |name: &String| ethtool.link_settings(name).map(|of| of.speed_bps);
    let all: Result<Vec<u64>, _> = interfaces.iter().map(speed_bps).collect();
    Ok(all.map_err(io::Error::other)?.into_iter().filter(|bps| *bps > 0).min())
}
