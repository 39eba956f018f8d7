//! A traffic endpoint over a `netdev` port: it puts payloads into frames and takes them out again.
//!
//! Sender and receiver of one host share the port behind a lock that is held for single calls
//! only. Frames that are not for this host are passed over: a hub floods.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use netdev::Port;
use netdev::sys::event::wait;
use packet::{Batch, PacketBuf};

use crate::endpoint::{RECEIVE_WAIT, SendOutcome, TrafficEndpoint};
use crate::frame;
use crate::stream::Host;

/// Frames taken from the port at once.
const BURST: usize = 64;

/// How long a port without a descriptor is left alone between two looks.
const NAP: Duration = Duration::from_micros(100);

/// A port that several endpoints of one host use.
pub type SharedPort = Arc<Mutex<Port>>;

/// One end of a conversation of UDP payloads over a raw port.
pub struct PortEndpoint {
    port: SharedPort,
    descriptor: Option<OwnedFd>,
    local: Host,
    remote: Host,
    bytes: Vec<u8>,
    outgoing: [PacketBuf; 1],
    inbox: Batch,
}

impl PortEndpoint {
    /// Talks from `local` to `remote` over `port`.
    ///
    /// # Errors
    /// When no file descriptor is left.
    pub fn new(port: SharedPort, local: Host, remote: Host) -> io::Result<Self> {
        let descriptor = {
            let guard = port.lock().unwrap_or_else(PoisonError::into_inner);
            guard.fd().map(|fd| fd.try_clone_to_owned()).transpose()?
        };
        Ok(Self {
            port,
            descriptor,
            local,
            remote,
            bytes: Vec::new(),
            outgoing: [PacketBuf::default()],
            inbox: Batch::default(),
        })
    }

    fn fill_inbox(&mut self) -> io::Result<usize> {
        let mut port = self.port.lock().unwrap_or_else(PoisonError::into_inner);
        port.rx(&mut self.inbox, BURST).map_err(io::Error::other)
    }

    /// The first payload of the inbox that is for this host; what stands before it is dropped.
    fn next_payload(&mut self, buffer: &mut [u8]) -> Option<usize> {
        let mut used = 0;
        let mut found = None;
        for frame in self.inbox.frames() {
            used += 1;
            if let Some(payload) = frame::payload(frame.bytes(), &self.local) {
                let length = payload.len().min(buffer.len());
                buffer[..length].copy_from_slice(&payload[..length]);
                found = Some(length);
                break;
            }
        }
        self.inbox.recycle_front(used);
        found
    }
}

impl TrafficEndpoint for PortEndpoint {
    fn send(&mut self, payload: &[u8]) -> io::Result<SendOutcome> {
        frame::build(&mut self.bytes, &self.local, &self.remote, payload);
        self.outgoing[0].assign(&self.bytes);
        let mut port = self.port.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = port.tx(&self.outgoing).map_err(io::Error::other)?;
        Ok(if taken == 1 { SendOutcome::Taken } else { SendOutcome::Refused })
    }

    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        if let Some(length) = self.next_payload(buffer) {
            return Ok(Some(length));
        }
        if self.fill_inbox()? == 0 {
            match &self.descriptor {
                Some(descriptor) => drop(wait(&[descriptor.as_fd()], Some(RECEIVE_WAIT))?),
                None => std::thread::sleep(NAP),
            }
            self.fill_inbox()?;
        }
        Ok(self.next_payload(buffer))
    }
}

#[cfg(test)]
mod tests {
    use super::{PortEndpoint, SharedPort};
    use crate::clock::RunClock;
    use crate::endpoint::TrafficEndpoint;
    use crate::pacing::Schedule;
    use crate::probe::StreamId;
    use crate::run::{ReceiveLimits, trial};
    use crate::stream::{Host, TestStream};
    use std::net::Ipv4Addr;
    use std::sync::atomic::AtomicBool;
    use std::sync::{Arc, Mutex};

    const LIMITS: ReceiveLimits = ReceiveLimits {
        grace_ns: 10_000_000_000,
        quiet_ns: 5_000_000_000,
        drain_ns: 10_000_000_000,
    };

    fn host(last: u8) -> Host {
        Host { mac: [2, 0, 0, 0, 0, last], ip: Ipv4Addr::new(10, 0, 0, last), port: 9200 }
    }

    fn port(text: &str) -> SharedPort {
        Arc::new(Mutex::new(netdev::open_text(text).unwrap()))
    }

    #[test]
    fn a_stream_crosses_a_wire_in_memory() {
        let (a, b) = (port("memory:generator-a?end=a"), port("memory:generator-a?end=b"));
        let mut tx = PortEndpoint::new(a, host(1), host(2)).unwrap();
        let mut rx = PortEndpoint::new(b, host(2), host(1)).unwrap();
        let clock = RunClock::start();
        let mut stream = TestStream::new(StreamId(9), 64).unwrap();
        let schedule = Schedule::new(clock.now_ns(), 2000.0, 0.05);
        let stop = AtomicBool::new(false);
        let outcome =
            trial(&mut tx, &mut rx, &mut stream, &schedule, &LIMITS, &clock, &stop).unwrap();
        assert_eq!((outcome.sent.sent, outcome.report.received), (100, 100));
    }

    #[test]
    fn frames_for_others_are_passed_over() {
        let (a, b) = (port("memory:generator-b?end=a"), port("memory:generator-b?end=b"));
        let mut to_other = PortEndpoint::new(Arc::clone(&a), host(1), host(3)).unwrap();
        let mut to_us = PortEndpoint::new(a, host(1), host(2)).unwrap();
        let mut rx = PortEndpoint::new(b, host(2), host(1)).unwrap();
        to_other.send(b"not for us").unwrap();
        to_us.send(b"for us").unwrap();
        let mut buffer = [0; 64];
        let length = rx.receive(&mut buffer).unwrap().unwrap();
        assert_eq!(&buffer[..length], b"for us");
    }
}
