//! The far ends of a case's switch: hosts at its ports and controllers of both versions.
//!
//! A message to a controller that it did not ask for is kept until a step asks for it. Nothing here
//! panics on what the switch does: a case fails with its place.

use std::time::{Duration, Instant};

use netdev::Port;
use openflow::Message;
use openflow::message::{MultipartReplyBody, MultipartRequest, MultipartRequestBody};
use packet::{Batch, PacketBuf};

use crate::harness::Controller;

/// How long anything may take that must come.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// Tries until it gives something.
pub(super) fn within<T>(
    patience: Duration,
    mut attempt: impl FnMut() -> Result<Option<T>, String>,
) -> Result<T, String> {
    let end = Instant::now() + patience;
    let mut pause = Duration::from_micros(50);
    loop {
        if let Some(found) = attempt()? {
            return Ok(found);
        }
        if Instant::now() >= end {
            return Err("in vain".into());
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(5));
    }
}

/// The other end of a port; without it the port has no link.
pub(super) struct Host {
    name: String,
    port: Option<Port>,
    batch: Batch,
}

impl Host {
    pub(super) fn new(name: &str) -> Self {
        let mut host = Self { name: name.into(), port: None, batch: Batch::default() };
        host.set_link(true);
        host
    }

    pub(super) fn has_link(&self) -> bool {
        self.port.is_some()
    }

    pub(super) fn set_link(&mut self, up: bool) {
        let open = || netdev::open_text(&format!("memory:{}?end=b", self.name)).unwrap();
        self.port = up.then(open);
    }

    pub(super) fn send(&mut self, frame: &[u8]) -> Result<(), String> {
        let port = self.port.as_mut().ok_or("the port has no link")?;
        let frames = [PacketBuf::from_slice(frame)];
        within(PATIENCE, || {
            let sent = port.tx(&frames).map_err(|error| error.to_string())?;
            Ok((sent == 1).then_some(()))
        })
    }

    /// A frame that has come, if any.
    pub(super) fn poll(&mut self) -> Option<Vec<u8>> {
        let port = self.port.as_mut()?;
        if self.batch.is_empty() {
            port.rx(&mut self.batch, 32).unwrap();
        }
        let first = self.batch.frames().first().map(|frame| frame.bytes().to_vec());
        self.batch.recycle_front(1);
        first
    }
}

/// Sends and waits for the answer; what comes before on the switch's own account is given too.
pub(super) fn ask(controller: &mut Controller, message: &Message) -> (Vec<Message>, Message) {
    let xid = controller.send(message);
    let mut before = Vec::new();
    loop {
        let (got, message) = controller.next();
        if got == xid {
            return (before, message);
        }
        before.push(message);
    }
}

/// The whole answer to a multipart request, in one part.
pub(super) fn multipart(
    controller: &mut Controller,
    body: MultipartRequestBody,
) -> Result<(Vec<Message>, MultipartReplyBody), String> {
    let request = Message::MultipartRequest(MultipartRequest { more: false, body });
    match ask(controller, &request) {
        (before, Message::MultipartReply(reply)) if !reply.more => Ok((before, reply.body)),
        (_, other) => Err(format!("the answer is {other:?}")),
    }
}
