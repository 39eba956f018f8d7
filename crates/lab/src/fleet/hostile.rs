//! Connections of nobody: what a controller must bear while it serves switches (RFC 8456, 5.3.2).
//!
//! A thread opens them at a rate. Of three, one closes at once, one sends bytes that are no
//! OpenFlow and closes, and one says hello and then nothing; of those a few hundred stay open. It
//! must never touch a connection of an emulated switch, and ends with the value.

use std::collections::VecDeque;
use std::io::Write;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use channel::Endpoint;
use netdev::sys::affinity;
use openflow::message::Hello;
use openflow::{Message, Version, Xid};

use emulator::THREAD_NAME;

/// Connections that say hello and nothing else, at a time.
const SILENT_MAX: usize = 256;
/// A controller that takes no connection for so long refuses it.
const CONNECT_LIMIT: Duration = Duration::from_millis(500);

/// Fate of the connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HostileCount {
    /// Were made.
    pub(crate) made: u64,
    /// Were refused, or not taken in time.
    pub(crate) refused: u64,
}

/// The thread that opens connections.
#[derive(Debug)]
pub(crate) struct HostilePeers {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<HostileCount>>,
}

impl HostilePeers {
    /// Opens `rate` connections a second to `target`, from these cores.
    ///
    /// # Errors
    /// The target is no TCP port, or there is no thread.
    pub(crate) fn start(
        target: &Endpoint,
        rate: f64,
        version: Version,
        cores: &[usize],
    ) -> Result<Self> {
        let (Endpoint::Tcp { host, port } | Endpoint::Ssl { host, port }) = target else {
            anyhow::bail!(
                "fleet.hostile_ps needs a controller at a TCP port, and {target} is none"
            );
        };
        let address = (host.as_str(), *port).to_socket_addrs()?.next();
        let address = address.with_context(|| format!("{target} has no address"))?;
        let hello = wire::encode(version, Xid(0), &Message::Hello(Hello::default()))?;
        let (is_over, cores) = (Arc::new(AtomicBool::new(false)), cores.to_vec());
        let over = Arc::clone(&is_over);
        let thread = std::thread::Builder::new().name(format!("{THREAD_NAME}-hostile"));
        let thread = thread.spawn(move || {
            if let Err(error) = affinity::allow(None, &cores) {
                tracing::debug!(%error, "the hostile peers run on any core");
            }
            emulator::prefer(None);
            flood(address, rate, &hello, &over)
        });
        let thread = Some(thread.context("starting the thread of hostile peers")?);
        Ok(Self { is_over, thread })
    }

    /// Ends them; what has become of them.
    pub(crate) fn stop(mut self) -> HostileCount {
        self.end()
    }

    fn end(&mut self) -> HostileCount {
        self.is_over.store(true, Ordering::Relaxed);
        let Some(thread) = self.thread.take() else { return HostileCount::default() };
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for HostilePeers {
    fn drop(&mut self) {
        self.end();
    }
}

fn flood(address: SocketAddr, rate: f64, hello: &[u8], is_over: &AtomicBool) -> HostileCount {
    let mut count = HostileCount::default();
    let mut silent: VecDeque<TcpStream> = VecDeque::new();
    let begun = Instant::now();
    for number in 0_u64.. {
        let due = begun + Duration::from_secs_f64(number as f64 / rate);
        while !is_over.load(Ordering::Relaxed) && Instant::now() < due {
            let wait = due.saturating_duration_since(Instant::now());
            std::thread::sleep(wait.min(Duration::from_millis(20)));
        }
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let Ok(mut stream) = TcpStream::connect_timeout(&address, CONNECT_LIMIT) else {
            count.refused += 1;
            continue;
        };
        count.made += 1;
        // The controller may have closed it already, which is its right.
        match number % 3 {
            0 => {}
            1 => drop(stream.write_all(b"GET / HTTP/1.1\r\nHost: nobody\r\n\r\n")),
            _ => {
                drop(stream.write_all(hello));
                silent.push_back(stream);
            }
        }
        if silent.len() > SILENT_MAX {
            silent.pop_front();
        }
    }
    count
}
