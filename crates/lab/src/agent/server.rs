//! The agent: takes connections, works for one lab at a time, and goes on when a lab has died.
//!
//! A lab that ends, dies or says what is no message loses its connection; its programs end with it
//! and the interfaces are closed, which the log says with their counts. A second lab is refused
//! with the name of the first. Of one address few connections may wait in the handshake, so that
//! one host without a certificate keeps no lab at another address out.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use channel::{BlockingStream, Tls};
use netdev::sys::event::wait;
use programs::cancel::Cancel;

use super::executor::Executor;
use super::protocol::{self, AgentHello, AgentRequest, VERSION, Welcome};
use super::stream::{MessageStream, StreamError, watch_over};
use crate::facts::{self, Machine};

/// Longest time for a new peer's first request, and for an answer to leave.
const HELLO_LIMIT: Duration = Duration::from_secs(10);

/// A lab loads a switch for longer than this between two requests only in theory; a dead box is
/// found by the kernel's own questions long before.
const IDLE_LIMIT: Duration = Duration::from_secs(86_400);

/// Time between two looks whether the agent is to end.
const LOOK: Duration = Duration::from_millis(100);

/// Longest time in which the work for a lab may end with the agent.
const END_LIMIT: Duration = Duration::from_secs(5);

/// Connections at once: the lab's own, and those that are refused or wait in the handshake.
const CONNECTIONS_MAX: usize = 16;

/// Connections of one address that have not said who they are, or are being refused.
const WAITING_MAX: usize = 4;

/// Characters of a lab's name that are shown.
const NAME_MAX: usize = 100;

/// Says what happens, a line each.
pub type Say = Arc<dyn Fn(&str) + Send + Sync>;

/// An agent that listens.
pub struct Agent {
    listener: TcpListener,
    tls: Option<Tls>,
    shared: Arc<Shared>,
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent").field("listener", &self.listener).finish_non_exhaustive()
    }
}

/// State shared by all connections.
struct Shared {
    /// The box's name.
    host: String,
    machine: Machine,
    interfaces: Vec<String>,
    makes_hosts: bool,
    executor: Mutex<Executor>,
    /// The lab that it works for.
    lab: Mutex<Option<String>>,
    slots: Mutex<Slots>,
    cancel: Cancel,
    say: Say,
}

/// The connections that there are.
#[derive(Default)]
struct Slots {
    all: usize,
    /// By their address those that wait in the handshake, or to be refused.
    waiting: BTreeMap<IpAddr, usize>,
}

/// The place of a connection, given back however its work ends.
struct Slot {
    shared: Arc<Shared>,
    peer: IpAddr,
    is_waiting: bool,
}

impl Slot {
    /// A place for a connection of that address; or why there is none.
    fn take(shared: &Arc<Shared>, peer: IpAddr) -> Result<Self, String> {
        let mut slots = lock(&shared.slots);
        let of_peer = slots.waiting.get(&peer).copied().unwrap_or(0);
        if slots.all >= CONNECTIONS_MAX {
            return Err(format!("there are {CONNECTIONS_MAX} connections"));
        }
        if of_peer >= WAITING_MAX {
            return Err(format!("{WAITING_MAX} connections of this address wait"));
        }
        slots.all += 1;
        slots.waiting.insert(peer, of_peer + 1);
        Ok(Self { shared: Arc::clone(shared), peer, is_waiting: true })
    }

    /// Its lab is worked for.
    fn wait_no_more(&mut self) {
        if std::mem::take(&mut self.is_waiting) {
            lock(&self.shared.slots).leave(self.peer);
        }
    }
}

impl Slots {
    fn leave(&mut self, peer: IpAddr) {
        let left = self.waiting.remove(&peer).unwrap_or(0).saturating_sub(1);
        if left > 0 {
            self.waiting.insert(peer, left);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.wait_no_more();
        lock(&self.shared.slots).all -= 1;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Agent {
    /// Listens for labs that are to use the interfaces of `executor`, without TLS where there is
    /// none: any host that reaches the address may then send frames.
    ///
    /// # Errors
    /// When the address cannot be bound.
    pub fn bind(
        address: SocketAddr,
        tls: Option<Tls>,
        executor: Executor,
        (cancel, say): (Cancel, Say),
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let host = facts::host_name();
        let interfaces = executor.interfaces().to_vec();
        let shared = Shared {
            host,
            machine: Machine::read(),
            interfaces,
            makes_hosts: executor.makes_hosts(),
            executor: Mutex::new(executor),
            lab: Mutex::new(None),
            slots: Mutex::default(),
            cancel,
            say,
        };
        Ok(Self { listener, tls, shared: Arc::new(shared) })
    }

    /// Address at which the agent listens.
    ///
    /// # Errors
    /// The system's.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Works for labs until it is told to end; then all interfaces are closed.
    ///
    /// # Errors
    /// When no connections can be accepted any more.
    pub fn serve(&self) -> io::Result<()> {
        let shared = &self.shared;
        while shared.cancel.check().is_ok() {
            match self.listener.accept() {
                Ok((stream, peer)) => self.take(stream, peer),
                Err(error) if is_passing(&error) => {
                    drop(wait(&[self.listener.as_fd()], Some(LOOK)));
                }
                Err(error) => {
                    // No descriptor left, for example: it may be better in a moment.
                    (shared.say)(&format!("no connection could be accepted: {error}"));
                    std::thread::sleep(LOOK);
                }
            }
        }
        // The lab's own thread sees the flag and closes what is open.
        let begun = std::time::Instant::now();
        while lock(&shared.lab).is_some() && begun.elapsed() < END_LIMIT {
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// Works for a peer on a thread of its own.
    fn take(&self, stream: TcpStream, peer: SocketAddr) {
        let (shared, tls) = (Arc::clone(&self.shared), self.tls.clone());
        let mut slot = match Slot::take(&shared, peer.ip()) {
            Ok(slot) => slot,
            Err(why) => return (shared.say)(&format!("{peer}: refused, {why}")),
        };
        let run = move || {
            if let Err(why) = shared.work(stream, tls.as_ref(), peer, &mut slot) {
                (shared.say)(&format!("{peer}: {why}"));
            }
        };
        if let Err(error) = std::thread::Builder::new().name("lab".to_owned()).spawn(run) {
            (self.shared.say)(&format!("{peer}: no thread: {error}"));
        }
    }
}

/// Whether an error of `accept` is about nothing, or about the one peer that has just come.
fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock
            | io::ErrorKind::Interrupted
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
    )
}

impl Shared {
    /// One connection, from its handshake to its end.
    fn work(
        &self,
        stream: TcpStream,
        tls: Option<&Tls>,
        peer: SocketAddr,
        slot: &mut Slot,
    ) -> Result<(), String> {
        watch_over(&stream).map_err(|error| error.to_string())?;
        let stream = BlockingStream::accept(stream, tls).map_err(|error| error.to_string())?;
        let mut stream = MessageStream::new(stream);
        let goes_on = || self.cancel.check().is_ok();
        let hello = stream.receive(HELLO_LIMIT, &goes_on).map_err(|error| error.to_string())?;
        let Some(hello) = hello else { return Ok(()) };
        let hello: AgentHello = protocol::decode(&hello).map_err(|error| error.to_string())?;
        let name: String =
            hello.lab.chars().filter(|letter| !letter.is_control()).take(NAME_MAX).collect();
        let name = format!("{name} at {peer}");
        let held = match hello.version {
            VERSION => self.hold(&name),
            other => Err(format!("it speaks version {VERSION}, and this lab {other}")),
        };
        let welcome = Welcome {
            version: VERSION,
            host: self.host.clone(),
            interfaces: self.interfaces.clone(),
            makes_hosts: self.makes_hosts,
            refusal: held.as_ref().err().cloned(),
            weir: Some(env!("CARGO_PKG_VERSION").to_owned()),
            machine: Some(self.machine.clone()),
        };
        stream.send(&welcome, HELLO_LIMIT).map_err(|error| error.to_string())?;
        let held = match held {
            Ok(held) => held,
            Err(why) => {
                stream.finish(HELLO_LIMIT);
                return Err(format!("refused: {why}"));
            }
        };
        slot.wait_no_more();
        (self.say)(&format!("works for {name}"));
        let ended = self.answer(&mut stream, &goes_on);
        drop(held);
        match ended {
            Ok(()) => (self.say)(&format!("ends its work for {name}")),
            Err(StreamError::Ended) => (self.say)(&format!("{name} has gone")),
            Err(error) => (self.say)(&format!("{name} is given up: {error}")),
        }
        Ok(())
    }

    /// Answers request after request.
    fn answer(
        &self,
        stream: &mut MessageStream,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<(), StreamError> {
        let mut executor = lock(&self.executor);
        while let Some(content) = stream.receive(IDLE_LIMIT, goes_on)? {
            let received_ns = executor.now_ns();
            let request: AgentRequest = protocol::decode(&content)?;
            let answer = executor.carry_out(request, received_ns);
            stream.send(&answer, HELLO_LIMIT)?;
        }
        Ok(())
    }

    /// Works for this lab and no other, until what is returned is dropped.
    fn hold(&self, name: &str) -> Result<Held<'_>, String> {
        let mut lab = lock(&self.lab);
        match &*lab {
            Some(first) => Err(format!("it works for {first}; one lab at a time")),
            None => {
                *lab = Some(name.to_owned());
                Ok(Held(self))
            }
        }
    }
}

/// The work for one lab.
struct Held<'a>(&'a Shared);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // Before another lab may come.
        for (interface, account) in lock(&self.0.executor).close_all() {
            (self.0.say)(&format!("{interface} is closed in the middle of a trial: {account}"));
        }
        *lock(&self.0.lab) = None;
    }
}
