//! Network devices of this machine that lead to a switch which the lab does not start.
//!
//! The lab sends and receives frames as they are at these devices, so there are no hosts with
//! addresses. It must never change a device: not its address, its state or its offloads.

use std::io;

use netdev::Port;
use netdev::sys::ethtool::Ethtool;
use netdev::sys::link::Rtnl;

use crate::trial_error::TrialError;

/// The testbed.
#[derive(Debug)]
pub struct WiredTestbed {
    interfaces: Vec<String>,
    rate_bps: Option<u64>,
}

impl WiredTestbed {
    /// The devices that lead to port 1, port 2, ... of the switch, and their rate in bit/s, which
    /// is that of the slowest of them otherwise.
    ///
    /// # Errors
    /// A device that is not there, or is down, with the remedy.
    pub fn new(interfaces: Vec<String>, rate_bps: Option<u64>) -> io::Result<Self> {
        let rtnl = Rtnl::open().map_err(io::Error::other)?;
        for name in &interfaces {
            let link = rtnl
                .link(name)
                .map_err(|error| io::Error::other(format!("the interface {name}: {error}")))?;
            if !(link.up && link.carrier) {
                let what = format!("{name} is down: ip link set {name} up, and look at its cable");
                return Err(io::Error::other(what));
            }
        }
        let rate_bps = match rate_bps {
            Some(rate_bps) => Some(rate_bps),
            None => slowest_bps(&interfaces)?,
        };
        Ok(Self { interfaces, rate_bps })
    }

    /// The devices' names.
    #[must_use]
    pub fn interfaces(&self) -> &[String] {
        &self.interfaces
    }

    /// Their rate, bit/s.
    #[must_use]
    pub fn port_rate(&self) -> Option<u64> {
        self.rate_bps
    }

    /// All devices, for one trial.
    pub(super) fn open_all(&self) -> Result<Vec<Port>, TrialError> {
        let failed = |source| TrialError::Io { what: "an interface of the inventory", source };
        let open = |name: &String| {
            netdev::open_text(&format!("af_packet:{name}")).map_err(io::Error::other)
        };
        self.interfaces.iter().map(|name| open(name).map_err(failed)).collect()
    }

    /// The first two.
    pub(super) fn open_two(&self) -> Result<[Port; 2], TrialError> {
        let mut ports = self.open_all()?;
        ports.truncate(2);
        let too_few = |_| TrialError::Unfit("the inventory has fewer than two interfaces");
        <[Port; 2]>::try_from(ports).map_err(too_few)
    }

    /// Notes on this testbed for the reader of a report.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        vec![format!(
            "The switch \"external\" is not started by the lab, which sends at the interfaces {}. \
             Delays hold this machine's own sending and receiving; the floor that stands beside \
             them is that of veth.",
            self.interfaces.join(", ")
        )]
    }
}

/// The speed of the slowest device, bit/s; none where no device says its own.
fn slowest_bps(interfaces: &[String]) -> io::Result<Option<u64>> {
    let ethtool = Ethtool::open().map_err(io::Error::other)?;
    let mut slowest = None;
    for name in interfaces {
        let speed_bps = ethtool.link_settings(name).map_err(io::Error::other)?.speed_bps;
        let known = Some(speed_bps).filter(|bps| *bps > 0);
        slowest = slowest.into_iter().chain(known).min();
    }
    Ok(slowest)
}
