//! Opening and closing ports on a thread of their own.
//!
//! Mapping the receive ring of a packet socket takes 9 ms and closing it 41 ms, in which a worker
//! would forward nothing. A [`PortOpener`] does both in its thread, in the order of the requests.
//! Its thread is in the network namespace of its creator. It must never make the caller wait: with
//! too many requests pending it refuses.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::thread::JoinHandle;

use crate::error::PortError;
use crate::kind;
use crate::port::Port;
use crate::spec::PortSpec;

/// A request to the opener's thread.
enum Request {
    Open { spec: PortSpec, reply: SyncSender<Result<Port, PortError>>, ready: Ready },
    Close(Port),
}

/// Called by the opener's thread when a result can be taken.
type Ready = Box<dyn FnOnce() + Send>;

/// A thread that opens and closes ports. Dropping it waits until all requests are done.
#[derive(Debug)]
pub struct PortOpener {
    requests: Option<SyncSender<Request>>,
    thread: Option<JoinHandle<()>>,
}

/// Too many requests are pending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many ports are being opened and closed")]
pub struct OpenerBusy;

impl PortOpener {
    /// Starts the thread in the namespace of the calling one; `pending_max` requests may wait.
    ///
    /// # Errors
    /// When no thread can be made.
    pub fn start(pending_max: usize) -> io::Result<Self> {
        let (requests, pending) = sync_channel(pending_max);
        let thread = std::thread::Builder::new().name("port-opener".to_owned());
        let thread = thread.spawn(move || serve(&pending))?;
        Ok(Self { requests: Some(requests), thread: Some(thread) })
    }

    /// Begins to open the port that `spec` names. `ready` is called on the opener's thread when the
    /// result can be taken: to wake the caller.
    ///
    /// # Errors
    /// [`OpenerBusy`]; try again later.
    pub fn open(
        &self,
        spec: PortSpec,
        ready: impl FnOnce() + Send + 'static,
    ) -> Result<Opening, OpenerBusy> {
        let (reply, result) = sync_channel(1);
        let request = Request::Open { spec, reply, ready: Box::new(ready) };
        self.send(request).map(|()| Opening { result }).map_err(|_| OpenerBusy)
    }

    /// Has the port closed.
    ///
    /// # Errors
    /// The port, when too many requests are pending: try again later, or drop it here.
    pub fn close(&self, port: Port) -> Result<(), Port> {
        self.send(Request::Close(port)).map_err(|request| match request {
            Request::Close(port) => port,
            Request::Open { .. } => unreachable!("the request that was sent comes back"),
        })
    }

    fn send(&self, request: Request) -> Result<(), Request> {
        let Some(requests) = &self.requests else { return Err(request) };
        requests.try_send(request).map_err(|error| match error {
            TrySendError::Full(request) | TrySendError::Disconnected(request) => request,
        })
    }
}

impl Drop for PortOpener {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that opens ports has panicked");
        }
    }
}

fn serve(pending: &Receiver<Request>) {
    while let Ok(request) = pending.recv() {
        match request {
            Request::Open { spec, reply, ready } => {
                // Without its receiver the port is closed again here.
                let _ = reply.send(kind::open(&spec));
                ready();
            }
            Request::Close(port) => drop(port),
        }
    }
}

/// A port that is being opened. Dropped before it is ready, the port is closed by the opener.
#[derive(Debug)]
pub struct Opening {
    result: Receiver<Result<Port, PortError>>,
}

impl Opening {
    /// The result, once; `None` while the port is being opened.
    pub fn poll(&mut self) -> Option<Result<Port, PortError>> {
        match self.result.try_recv() {
            Ok(result) => Some(result),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err(PortError::Io {
                what: "opening a port".to_owned(),
                source: io::Error::other("the thread that opens ports has ended"),
            })),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::PortOpener;
    use crate::pcap::file_header;

    const PATIENCE: Duration = Duration::from_secs(20);

    #[test]
    fn a_port_that_takes_long_to_open_makes_nobody_wait() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fifo");
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let opener = PortOpener::start(8).unwrap();
        let (told, ready) = channel();
        // Opening a FIFO blocks until somebody writes to it.
        let slow = format!("pcap:{}", path.display()).parse().unwrap();
        let wake = told.clone();
        let mut opening = opener.open(slow, move || wake.send(()).unwrap()).unwrap();
        let mut second = opener.open("null:x".parse().unwrap(), || ()).unwrap();
        assert!(opening.poll().is_none() && second.poll().is_none());
        let mut fifo = OpenOptions::new().write(true).open(&path).unwrap();
        std::io::Write::write_all(&mut fifo, &file_header()).unwrap();
        drop(fifo);
        ready.recv_timeout(PATIENCE).unwrap();
        let mut port = opening.poll().unwrap().unwrap();
        assert_eq!(port.info().kind, "pcap");
        opener.close(port).unwrap();
        let wrong = "pcap:/no/such/file".parse().unwrap();
        let mut wrong = opener.open(wrong, move || told.send(()).unwrap()).unwrap();
        ready.recv_timeout(PATIENCE).unwrap();
        assert!(wrong.poll().unwrap().unwrap_err().to_string().contains("/no/such/file"));
        assert!(second.poll().unwrap().is_ok(), "in the order of the requests");
    }

    #[test]
    fn too_many_requests_are_refused_and_a_port_is_given_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fifo");
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let opener = PortOpener::start(1).unwrap();
        let slow = || format!("pcap:{}", path.display()).parse().unwrap();
        let mut openings = Vec::new();
        // One is being opened and one waits, at most.
        while let Ok(opening) = opener.open(slow(), || ()) {
            openings.push(opening);
            assert!(openings.len() <= 2);
        }
        let port = crate::open_text("null:y").unwrap();
        let mut port = opener.close(port).unwrap_err();
        assert_eq!(port.info().name, "y");
        drop(openings);
        let ending = std::thread::spawn(move || drop(opener));
        while !ending.is_finished() {
            // Every reader of the FIFO gets a writer, and the end of the file.
            drop(OpenOptions::new().read(true).write(true).open(&path).unwrap());
            std::thread::sleep(Duration::from_millis(1));
        }
        ending.join().unwrap();
    }
}
