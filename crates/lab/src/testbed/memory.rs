//! No namespaces and no root: in-memory ports between the lab and the switch.
//!
//! Each port of the switch is one end of a `memory:` wire over a file that both processes map; the
//! lab holds the other end and sends its own traffic. The control connection is TCP over the
//! loopback interface, unshaped. Only Weir's switch has such ports.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::sync::{Arc, Mutex};

use generator::endpoint::TrafficEndpoint;
use generator::port_endpoint::{PortEndpoint, SharedPort};
use generator::stream::Host;

use super::HOSTS;

/// UDP port of the lab's traffic.
const PORT: u16 = 9201;

/// The testbed; its files are in the folder that it was given.
pub struct MemoryTestbed {
    ports: [SharedPort; 2],
    texts: [String; 2],
    controller_port: u16,
}

impl std::fmt::Debug for MemoryTestbed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryTestbed").field("texts", &self.texts).finish_non_exhaustive()
    }
}

impl MemoryTestbed {
    /// Makes both wires in `dir` and looks for a free TCP port for the controller.
    ///
    /// # Errors
    /// When a wire cannot be made or no port is free.
    pub fn new(dir: &Path) -> io::Result<Self> {
        let wire = |number: usize, end: char| {
            format!("memory:{}?end={end}", dir.join(format!("wire-{number}")).display())
        };
        let open = |number: usize| -> io::Result<SharedPort> {
            let port = netdev::open_text(&wire(number, 'a')).map_err(io::Error::other)?;
            Ok(Arc::new(Mutex::new(port)))
        };
        // The listener is closed again: the controller binds the port a moment later.
        let controller_port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        Ok(Self {
            ports: [open(1)?, open(2)?],
            texts: [wire(1, 'b'), wire(2, 'b')],
            controller_port,
        })
    }

    /// The switch's ends of the wires, in the text that `weir switch --port` takes.
    #[must_use]
    pub fn port_texts(&self) -> &[String; 2] {
        &self.texts
    }

    /// The TCP port on the loopback interface for the controller.
    #[must_use]
    pub fn controller_port(&self) -> u16 {
        self.controller_port
    }

    /// An endpoint at host 0 or 1 that talks to the other.
    ///
    /// # Errors
    /// When no file descriptor is left.
    pub fn endpoint(&self, host: usize) -> io::Result<Box<dyn TrafficEndpoint>> {
        let at = |index: usize| Host { mac: HOSTS[index].mac, ip: HOSTS[index].ip, port: PORT };
        let port = Arc::clone(&self.ports[host]);
        Ok(Box::new(PortEndpoint::new(port, at(host), at(1 - host))?))
    }

    /// What the reader of a report should know about this testbed.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        vec![
            "Without root: in-memory ports between the lab and the switch, Weir's own traffic, no \
             kernel hosts, no links and so no link rates. The control connection is TCP over the \
             loopback interface. These figures cannot be set beside those of a run as root."
                .to_owned(),
        ]
    }
}
