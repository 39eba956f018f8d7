//! Controllers: what one is for the lab, and the list of them.
//!
//! A new controller is one file under `controller/` and one line in [`ALL`]. A controller is a
//! process that listens on an address and runs one of the lab's applications.

mod os_ken;
mod testcontroller;
mod weir;

use std::fmt;
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::str::FromStr;
use std::time::Duration;

use netdev::sys::netns::Namespace;
use serde::{Deserialize, Serialize};

use crate::cancel::Cancel;
use crate::process::{self, Process};
use crate::service::{Error, Place, Service, Settings};
use crate::tools::{Missing, Program};

/// What a controller does with packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AppKind {
    /// Answers every packet-in with a packet-out FLOOD and installs nothing.
    Hub,
    /// Learns addresses and installs flow entries.
    LearningSwitch,
}

impl AppKind {
    /// Its name, as `weir controller` takes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Hub => "hub",
            Self::LearningSwitch => "learning-switch",
        }
    }
}

impl fmt::Display for AppKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for AppKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "hub" => Ok(Self::Hub),
            "learning-switch" => Ok(Self::LearningSwitch),
            other => Err(format!("{other:?} is no application of the lab: hub or learning-switch")),
        }
    }
}

/// What a controller is told.
#[derive(Clone, Copy, Debug)]
pub struct ControllerPlan<'a> {
    /// Where it runs.
    pub place: Place<'a>,
    /// The application.
    pub app: AppKind,
    /// Where it listens.
    pub address: Ipv4Addr,
    /// On which TCP port.
    pub port: u16,
}

/// A controller.
pub trait Controller: Sync {
    /// Its name on the command line and in reports.
    fn name(&self) -> &'static str;

    /// One sentence about it.
    fn about(&self) -> &'static str;

    /// The programs that it consists of.
    ///
    /// # Errors
    /// [`Missing`] with the remedy.
    fn programs(&self, settings: &Settings) -> Result<Vec<Program>, Missing>;

    /// Starts it and returns when it listens.
    ///
    /// # Errors
    /// [`Error`] with what the program said.
    fn start(&self, plan: &ControllerPlan<'_>) -> Result<Service, Error>;
}

/// Every controller.
pub const ALL: &[&dyn Controller] =
    &[&weir::Weir, &os_ken::OsKen, &testcontroller::OvsTestcontroller];

/// The controller of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static dyn Controller> {
    ALL.iter().copied().find(|controller| controller.name() == name)
}

/// How long a controller may take until it listens; Python's imports on a busy machine take long.
const START_LIMIT: Duration = Duration::from_secs(30);

/// Waits until a connection to `plan`'s address is accepted. The connection is closed at once;
/// controllers take that for a switch that went away.
fn wait_until_listening(
    process: &mut Process,
    plan: &ControllerPlan<'_>,
    cancel: &Cancel,
) -> Result<(), process::Error> {
    let address = SocketAddrV4::new(plan.address, plan.port);
    process.wait_until("listen", START_LIMIT, cancel, |_| accepts(plan.place.namespace, address))
}

fn accepts(namespace: Option<&Namespace>, address: SocketAddrV4) -> bool {
    let connect = || TcpStream::connect_timeout(&address.into(), Duration::from_secs(1)).is_ok();
    match namespace {
        Some(namespace) => namespace.enter(connect).unwrap_or(false),
        None => connect(),
    }
}
