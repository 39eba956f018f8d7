//! Controllers: what one is for the lab, and the list of them.
//!
//! A new controller is one file under `controller/` and one line in [`ALL`]. A controller is a
//! process that listens on an address and runs one of the lab's applications.

mod os_ken;
mod testcontroller;
mod weir;

use std::net::Ipv4Addr;
use std::time::Duration;

use files::proc::ProcFolder;
use netdev::sys::netns::Namespace;

use crate::cancel::Cancel;
use crate::keys::ChannelKeys;
use crate::process::{self, Process};
use crate::service::{ProgramPaths, Service, ServiceContext, ServiceError};
use crate::settings::AppKind;
use crate::tools::{Missing, Program};

/// The settings of a controller.
#[derive(Clone, Copy, Debug)]
pub struct ControllerPlan<'a> {
    /// Place where it runs.
    pub context: ServiceContext<'a>,
    /// The application.
    pub app: AppKind,
    /// Address at which it listens.
    pub address: Ipv4Addr,
    /// On which TCP port.
    pub port: u16,
    /// Keys and certificates, where it is to listen with TLS.
    pub keys: Option<&'a ChannelKeys>,
}

/// A controller.
pub trait ControllerProgram: Sync {
    /// Its name on the command line and in reports.
    fn name(&self) -> &'static str;

    /// One sentence about it.
    fn about(&self) -> &'static str;

    /// Whether the lab can start it with TLS.
    fn has_tls(&self) -> bool {
        false
    }

    /// About how long it takes to start, be found by the switch, and end.
    fn start_cost(&self) -> Duration {
        Duration::from_millis(300)
    }

    /// The programs that it consists of.
    ///
    /// # Errors
    /// [`Missing`] with the remedy.
    fn programs(&self, paths: &ProgramPaths) -> Result<Vec<Program>, Missing>;

    /// Starts it and returns when it listens.
    ///
    /// # Errors
    /// [`ServiceError`] with what the program said.
    fn start(&self, plan: &ControllerPlan<'_>) -> Result<Service, ServiceError>;
}

/// Every controller.
pub const ALL: &[&dyn ControllerProgram] =
    &[&weir::WeirController, &os_ken::OsKen, &testcontroller::OvsTestcontroller];

/// The controller of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static dyn ControllerProgram> {
    ALL.iter().copied().find(|controller| controller.name() == name)
}

/// Longest time until a controller listens; Python's imports on a busy machine take long.
const START_LIMIT: Duration = Duration::from_secs(30);

/// Waits until `plan`'s port is listened on. The kernel's list of sockets is asked, and no
/// connection made: a controller would take that for a switch.
pub(crate) fn wait_until_listening(
    process: &mut Process,
    plan: &ControllerPlan<'_>,
    cancel: &Cancel,
) -> Result<(), process::ProcessError> {
    process.wait_until("listen", START_LIMIT, cancel, |_| {
        is_listened_on(plan.context.namespace, &[plan.port])
    })
}

/// Whether somebody listens on each of these TCP ports in the namespace.
pub(crate) fn is_listened_on(namespace: Option<&Namespace>, ports: &[u16]) -> bool {
    let read = || ProcFolder::own_thread().read("net/tcp").unwrap_or_default();
    let sockets = match namespace {
        Some(namespace) => namespace.enter(read).unwrap_or_default(),
        None => read(),
    };
    ports.iter().all(|port| has_listener(&sockets, *port))
}

/// Whether `/proc/net/tcp` lists a socket that listens on `port`: local address and port in
/// hexadecimal digits in the second column, state 0A in the fourth.
fn has_listener(sockets: &str, port: u16) -> bool {
    let ending = format!(":{port:04X}");
    sockets.lines().skip(1).any(|line| {
        let mut words = line.split_ascii_whitespace().skip(1);
        let local = words.next().is_some_and(|local| local.ends_with(&ending));
        local && words.nth(1) == Some("0A")
    })
}

#[cfg(test)]
mod tests {
    use super::{ALL, ProcFolder, find, has_listener};

    #[test]
    fn a_listener_is_found_in_the_kernels_list() {
        let text = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt\n\
            0: 0200FF0A:19FD 00000000:0000 0A 00000000:00000000 00:00000000 00000000\n\
            1: 0200FF0A:1F90 0100FF0A:C350 01 00000000:00000000 00:00000000 00000000\n";
        assert!(has_listener(text, 0x19fd));
        assert!(!has_listener(text, 0x1f90), "connected, not listening");
        assert!(!has_listener(text, 0xc350) && !has_listener("", 1));
    }

    #[test]
    fn this_process_is_found_listening() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let text = ProcFolder::own_thread().read("net/tcp").unwrap();
        assert!(has_listener(&text, port));
    }

    #[test]
    fn names_are_found() {
        for controller in ALL {
            assert_eq!(find(controller.name()).unwrap().about(), controller.about());
        }
        assert!(find("nothing").is_none());
    }
}
