//! TCP ports of this machine: free ones, and whether somebody listens.
//!
//! The kernel's list of sockets is asked, and no connection made: a controller would take that for
//! a switch. It must never keep a port.

use std::io;
use std::net::{Ipv4Addr, TcpListener};

use files::proc::ProcFolder;
use netdev::sys::netns::Namespace;

/// Free TCP ports of the loopback interface. The listeners are closed again: a program binds the
/// ports a moment later.
pub fn free_ports(count: usize) -> io::Result<Vec<u16>> {
    let bind = |_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let listeners = (0..count).map(bind).collect::<io::Result<Vec<TcpListener>>>()?;
    listeners.iter().map(|listener| Ok(listener.local_addr()?.port())).collect()
}

/// One of them.
pub fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// Whether somebody listens on each of these TCP ports in the namespace.
pub fn is_listened_on(namespace: Option<&Namespace>, ports: &[u16]) -> bool {
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
    use super::{TcpListener, free_port, free_ports, has_listener, is_listened_on};

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
    fn free_ports_differ_and_can_be_listened_on() {
        let ports = free_ports(3).unwrap();
        assert!(ports[0] != ports[1] && ports[1] != ports[2] && ports[0] != ports[2]);
        let port = free_port().unwrap();
        let _listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        assert!(is_listened_on(None, &[port]));
    }
}
