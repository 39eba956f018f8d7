//! The testbed of a run: hosts, a switch and a controller, and the links between them.
//!
//! Two kinds. [`netns`] has kernel hosts in network namespaces joined by veth, with shaped links;
//! it needs root. [`memory`] has no hosts: the lab itself sits at the far end of in-memory ports
//! and sends its own traffic; it needs nothing. Neither leaves anything behind, however it ends.

pub mod memory;
pub mod netns;

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};

use generator::clock::RunClock;
use generator::endpoint::{TrafficEndpoint, UdpEndpoint};
use generator::pacing::Schedule;
use generator::probe::StreamId;
use generator::run::{self, ReceiveLimits, TrialResult};
use generator::stream::TestStream;
use serde::{Deserialize, Serialize};

use crate::cancel::Cancel;
use crate::load::LinkSample;
use crate::rate::LinkRate;
use crate::trial_error::TrialError;
use memory::MemoryTestbed;
use netns::NetnsTestbed;

/// The port on which the controller listens.
pub const CONTROLLER_PORT: u16 = 6653;

/// The datapath id of every switch under test, sixteen hex digits.
pub const DPID: &str = "0000000000000001";

/// The links' parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkShape {
    /// Rate of each host's link, both directions.
    pub port_rate: LinkRate,
    /// Rate of the link between switch and controller, both directions.
    pub control_rate: LinkRate,
}

/// One of the two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostAddress {
    /// IPv4 address.
    pub ip: Ipv4Addr,
    /// Ethernet address.
    pub mac: [u8; 6],
}

/// The hosts, one behind each port of the switch.
pub const HOSTS: [HostAddress; 2] = [
    HostAddress { ip: Ipv4Addr::new(10, 0, 0, 1), mac: [2, 0, 0, 0, 0, 1] },
    HostAddress { ip: Ipv4Addr::new(10, 0, 0, 2), mac: [2, 0, 0, 0, 0, 2] },
];

/// UDP port of the lab's own traffic at both hosts.
const PORT: u16 = 9201;

/// Silence after the end of a schedule that ends a trial.
const QUIET_S: f64 = 0.3;

/// How far ahead a schedule starts, so that the receiver is there first.
const LEAD_NS: u64 = 5_000_000;

/// A testbed.
#[derive(Debug)]
pub enum Testbed {
    /// Kernel hosts.
    Kernel(NetnsTestbed),
    /// In-memory ports.
    Memory(MemoryTestbed),
}

/// One trial of the lab's own traffic.
#[derive(Clone, Copy, Debug)]
pub struct Traffic {
    /// Bytes of a frame, FCS counted.
    pub frame_size: usize,
    /// Offered load, frames a second.
    pub rate_pps: f64,
    /// For how long, seconds.
    pub duration_s: f64,
    /// How long after the end a frame is still in time, seconds.
    pub grace_s: f64,
    /// How long after the end the trial waits at most, seconds.
    pub drain_s: f64,
}

impl Testbed {
    /// The kernel hosts, where there are some.
    #[must_use]
    pub fn kernel(&self) -> Option<&NetnsTestbed> {
        match self {
            Self::Kernel(bed) => Some(bed),
            Self::Memory(_) => None,
        }
    }

    /// Rate of the hosts' links, bit/s.
    #[must_use]
    pub fn port_rate(&self) -> Option<u64> {
        match self {
            Self::Kernel(bed) => bed.shape().port_rate.0,
            Self::Memory(_) => None,
        }
    }

    /// Counters of all links; none on in-memory ports.
    #[must_use]
    pub fn links(&self) -> Vec<LinkSample> {
        match self {
            Self::Kernel(bed) => bed.links(),
            Self::Memory(_) => Vec::new(),
        }
    }

    /// What the reader of a report should know about the testbed.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        match self {
            Self::Kernel(bed) => bed.notes(),
            Self::Memory(bed) => bed.notes(),
        }
    }

    /// Two endpoints at one host that share a socket or port: one to send, one to receive.
    fn pair(&self, host: usize) -> Result<[Box<dyn TrafficEndpoint>; 2], TrialError> {
        let failed = |source| TrialError::Io { what: "a socket of the lab's own traffic", source };
        match self {
            Self::Kernel(bed) => {
                let first = udp(bed, host).map_err(failed)?;
                let second = first.share().map_err(failed)?;
                Ok([Box::new(first), Box::new(second)])
            }
            Self::Memory(_) => Ok([self.endpoint(host)?, self.endpoint(host)?]),
        }
    }

    /// An endpoint at host 0 or 1, talking to the other.
    fn endpoint(&self, host: usize) -> Result<Box<dyn TrafficEndpoint>, TrialError> {
        let failed = |source| TrialError::Io { what: "a socket of the lab's own traffic", source };
        match self {
            Self::Kernel(bed) => {
                let endpoint = udp(bed, host).map_err(failed)?;
                Ok(Box::new(endpoint))
            }
            Self::Memory(bed) => bed.endpoint(host).map_err(failed),
        }
    }

    /// Sends from host 1 to host 2.
    ///
    /// # Errors
    /// [`TrialError::Io`] of a socket or port, [`TrialError::Stopped`].
    pub fn one_way(&self, traffic: &Traffic, cancel: &Cancel) -> Result<TrialResult, TrialError> {
        let (mut tx, mut rx) = (self.endpoint(0)?, self.endpoint(1)?);
        carry(&mut *tx, &mut *rx, traffic, cancel)
    }

    /// Sends from host 1, reflects at host 2, receives at host 1.
    ///
    /// # Errors
    /// [`TrialError::Io`] of a socket or port, [`TrialError::Stopped`].
    pub fn round_trip(
        &self,
        traffic: &Traffic,
        cancel: &Cancel,
    ) -> Result<TrialResult, TrialError> {
        let [mut tx, mut rx] = self.pair(0)?;
        let mut far = self.endpoint(1)?;
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let reflector = scope.spawn(|| run::reflect(&mut *far, &done));
            let outcome = carry(&mut *tx, &mut *rx, traffic, cancel);
            done.store(true, Ordering::Relaxed);
            let reflected =
                reflector.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            let reflected =
                reflected.map_err(|source| TrialError::Io { what: "reflecting", source });
            reflected.and(outcome)
        })
    }
}

fn udp(bed: &NetnsTestbed, host: usize) -> io::Result<UdpEndpoint> {
    let (own, other) = (HOSTS[host].ip, HOSTS[1 - host].ip);
    let connect =
        || UdpEndpoint::connect(SocketAddrV4::new(own, PORT), SocketAddrV4::new(other, PORT));
    bed.host(host).enter(connect)?
}

/// Every trial has a number of its own, so that frames that come too late are not counted in the
/// next one.
fn next_stream() -> StreamId {
    static NEXT: AtomicU16 = AtomicU16::new(1);
    StreamId(NEXT.fetch_add(1, Ordering::Relaxed))
}

fn carry(
    tx: &mut dyn TrafficEndpoint,
    rx: &mut dyn TrafficEndpoint,
    traffic: &Traffic,
    cancel: &Cancel,
) -> Result<TrialResult, TrialError> {
    let nanos = |seconds: f64| (seconds * 1e9) as u64;
    let clock = RunClock::start();
    let mut stream = TestStream::new(next_stream(), traffic.frame_size)
        .map_err(|error| TrialError::Output { program: "generator", what: error.to_string() })?;
    let schedule = Schedule::new(clock.now_ns() + LEAD_NS, traffic.rate_pps, traffic.duration_s);
    let limits = ReceiveLimits {
        grace_ns: nanos(traffic.grace_s),
        quiet_ns: nanos(QUIET_S),
        drain_ns: nanos(traffic.drain_s),
    };
    let outcome = run::trial(tx, rx, &mut stream, &schedule, &limits, &clock, cancel.flag())
        .map_err(|source| TrialError::Io { what: "the lab's own traffic", source })?;
    cancel.check()?;
    Ok(outcome)
}
