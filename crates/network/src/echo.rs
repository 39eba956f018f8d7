//! ICMP echo from every host to every other, without the program `ping`.
//!
//! Each host has a raw socket of its own kernel and a thread; the requests of a round leave
//! together and are waited for together, so that a network that loses everything costs one timeout
//! a round and not one a pair.

use std::io::ErrorKind;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use netdev::sys::echo::EchoSocket;

use crate::error::Error;
use crate::state::LivingHost;

/// Longest wait of a socket before the thread looks at its clock.
const STEP: Duration = Duration::from_millis(100);
/// Errors of a request that is lost.
const NO_WAY: [ErrorKind; 3] =
    [ErrorKind::NetworkUnreachable, ErrorKind::HostUnreachable, ErrorKind::NetworkDown];

/// Count of the answers between two hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct EchoCount {
    pub(crate) sent: u32,
    pub(crate) received: u32,
    /// Of the fastest, in milliseconds.
    pub(crate) rtt_ms: Option<f64>,
}

/// Sends `count` requests from each of `hosts` to each other; the rows are the senders.
pub(crate) fn ping_all(
    hosts: &[LivingHost<'_>],
    count: u16,
    timeout: Duration,
) -> Result<Vec<Vec<Option<EchoCount>>>, Error> {
    let targets: Vec<Ipv4Addr> = hosts.iter().map(|host| host.plan.ip).collect();
    std::thread::scope(|scope| {
        let senders: Vec<_> = hosts
            .iter()
            .enumerate()
            .map(|(own, host)| {
                let targets = &targets;
                scope.spawn(move || Sender::open(host)?.rounds(own, targets, count, timeout))
            })
            .collect();
        let joined = senders
            .into_iter()
            .map(|sender| sender.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        joined.collect()
    })
}

/// The requests of one host.
struct Sender {
    socket: EchoSocket,
    name: String,
}

impl Sender {
    fn open(host: &LivingHost<'_>) -> Result<Self, Error> {
        let name = host.plan.name.clone();
        let socket = host.namespace()?.enter(|| EchoSocket::open(STEP)).and_then(|socket| socket);
        let socket = socket.map_err(Error::io(format!("a raw socket of {name}")))?;
        Ok(Self { socket, name })
    }

    fn rounds(
        &self,
        own: usize,
        targets: &[Ipv4Addr],
        count: u16,
        timeout: Duration,
    ) -> Result<Vec<Option<EchoCount>>, Error> {
        let mut row: Vec<Option<EchoCount>> =
            (0..targets.len()).map(|at| (at != own).then(EchoCount::default)).collect();
        for round in 0..count {
            self.round(round, targets, &mut row, timeout)?;
        }
        Ok(row)
    }

    /// One request to each target, and the wait for what comes back.
    fn round(
        &self,
        round: u16,
        targets: &[Ipv4Addr],
        row: &mut [Option<EchoCount>],
        timeout: Duration,
    ) -> Result<(), Error> {
        let begun = Instant::now();
        let mut waiting = Vec::with_capacity(targets.len());
        for (at, target) in targets.iter().enumerate() {
            let Some(Some(cell)) = row.get_mut(at) else { continue };
            cell.sent += 1;
            match self.socket.send(*target, round) {
                Ok(()) => waiting.push((at, *target, Instant::now())),
                // No way there, or its neighbour did not answer: lost, as the row says.
                Err(error) if NO_WAY.contains(&error.kind()) => {}
                Err(error) => {
                    let what = format!("an echo request from {} to {target}", self.name);
                    return Err(Error::io(what)(error));
                }
            }
        }
        while !waiting.is_empty() && begun.elapsed() < timeout {
            let from = self.socket.receive(round).map_err(|error| {
                Error::io(format!("waiting for echo replies at {}", self.name))(error)
            })?;
            let Some(from) = from else { continue };
            let Some(place) = waiting.iter().position(|(_, target, _)| *target == from) else {
                continue;
            };
            let (at, _, sent) = waiting.swap_remove(place);
            if let Some(Some(cell)) = row.get_mut(at) {
                cell.received += 1;
                let rtt_ms = sent.elapsed().as_secs_f64() * 1e3;
                cell.rtt_ms = Some(cell.rtt_ms.map_or(rtt_ms, |least| least.min(rtt_ms)));
            }
        }
        Ok(())
    }
}
