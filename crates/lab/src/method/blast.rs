//! TCP from host 1 to host 2 over real kernel sockets, for where `iperf3` is not installed.
//!
//! As iperf3 counts it: payload that the receiver has read, over the time of the run.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddrV4, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use programs::cancel::Cancel;

use super::{MethodContext, TrialError};
use crate::hosts::HOSTS;

const PORT: u16 = 5202;
const CHUNK: usize = 128 << 10;
const WAIT: Duration = Duration::from_millis(100);
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// Counts of the receiver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Received {
    /// Payload bytes.
    pub(super) bytes: u64,
    /// From the first byte to the last, seconds.
    pub(super) seconds: f64,
}

fn io(what: &'static str) -> impl FnOnce(std::io::Error) -> TrialError {
    move |source| TrialError::Io { what, source }
}

/// Sends for as long as the context's timing says.
pub(super) fn tcp(context: &MethodContext<'_>) -> Result<Received, TrialError> {
    let bed = context.bed.kernel().ok_or(TrialError::Unfit("no kernel hosts"))?;
    let address = SocketAddrV4::new(HOSTS[1].ip, PORT);
    let listener = bed
        .host(1)
        .enter(|| TcpListener::bind(address))
        .and_then(|listener| listener)
        .map_err(io("listening at host 2"))?;
    let stream = bed
        .host(0)
        .enter(|| TcpStream::connect_timeout(&address.into(), CONNECT_LIMIT))
        .and_then(|stream| stream)
        .map_err(io("connecting host 1 to host 2"))?;
    let (peer, _) = listener.accept().map_err(io("accepting at host 2"))?;
    let duration = Duration::from_secs(u64::from(context.settings.whole_seconds()));
    transfer(stream, peer, duration, context.cancel)
}

/// Blasts from `stream` to `peer` for `duration`.
fn transfer(
    stream: TcpStream,
    peer: TcpStream,
    duration: Duration,
    cancel: &Cancel,
) -> Result<Received, TrialError> {
    stream.set_write_timeout(Some(WAIT)).map_err(io("a write time-out"))?;
    peer.set_read_timeout(Some(WAIT)).map_err(io("a read time-out"))?;
    let received = std::thread::scope(|scope| {
        let receiver = scope.spawn(|| receive(peer, duration, cancel));
        let sent = send(stream, duration, cancel);
        let received = receiver.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        sent.and(received)
    });
    let received = received.map_err(io("TCP between the hosts"))?;
    cancel.check()?;
    Ok(received)
}

fn waits(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

fn send(mut stream: TcpStream, duration: Duration, cancel: &Cancel) -> std::io::Result<()> {
    let chunk = vec![0x57; CHUNK];
    let start = Instant::now();
    while start.elapsed() < duration && cancel.check().is_ok() {
        match stream.write(&chunk) {
            Ok(_) => {}
            Err(error) if waits(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn receive(mut peer: TcpStream, duration: Duration, cancel: &Cancel) -> std::io::Result<Received> {
    let mut buffer = vec![0; CHUNK];
    let (mut bytes, mut first, mut last) = (0_u64, None, Instant::now());
    let end = Instant::now() + duration;
    while Instant::now() < end && cancel.check().is_ok() {
        match peer.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => {
                last = Instant::now();
                first.get_or_insert(last);
                bytes += length as u64;
            }
            Err(error) if waits(&error) => {}
            Err(error) => return Err(error),
        }
    }
    let seconds = first.map_or(0.0, |first| (last - first).as_secs_f64());
    Ok(Received { bytes, seconds })
}

#[cfg(test)]
mod tests {
    use super::transfer;
    use programs::cancel::Cancel;
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;

    #[test]
    fn bytes_cross_the_loopback() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (peer, _) = listener.accept().unwrap();
        // A machine that stands still for one of the tries makes the next one count.
        for milliseconds in [100, 1_000, 10_000] {
            let (near, far) = (stream.try_clone().unwrap(), peer.try_clone().unwrap());
            let duration = Duration::from_millis(milliseconds);
            let received = transfer(near, far, duration, &Cancel::default()).unwrap();
            if received.bytes > 0 && received.seconds > 0.0 {
                return;
            }
        }
        panic!("nothing crossed");
    }
}
