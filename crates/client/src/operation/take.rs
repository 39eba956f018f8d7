//! Operations that ask nothing: taking what comes, and waiting for room.

use channel::Connection;
use openflow::{Message, Xid};

use crate::core::{Came, Core, Operation};
use crate::error::ClientError;

/// The next message, whatever it is.
#[derive(Debug)]
pub(crate) struct Next;

impl Operation for Next {
    type Output = (Xid, Message);

    fn step(
        &mut self,
        core: &mut Core,
        connection: &mut Connection,
    ) -> Result<Option<(Xid, Message)>, ClientError> {
        if let Some(kept) = core.kept() {
            return Ok(Some(kept));
        }
        loop {
            match core.come(connection)? {
                Came::Message(xid, Ok(message)) => return Ok(Some((xid, message))),
                Came::Message(_, Err(_)) => {}
                Came::Nothing => return Ok(None),
            }
        }
    }
}

/// The next message as bytes.
#[derive(Debug)]
pub(crate) struct NextFrame;

impl Operation for NextFrame {
    type Output = Vec<u8>;

    fn step(
        &mut self,
        core: &mut Core,
        connection: &mut Connection,
    ) -> Result<Option<Vec<u8>>, ClientError> {
        loop {
            let mut frame = None;
            let event = connection.poll_event_or_take(|_, bytes| {
                frame = Some(bytes.to_vec());
                true
            });
            match event {
                None => return Ok(frame),
                // What a connection reports beside its messages.
                Some(event) => core.take_event(event)?,
            };
        }
    }
}

/// Keeps what has come, until there is nothing more.
#[derive(Debug)]
pub(crate) struct Drain;

impl Operation for Drain {
    type Output = ();

    fn step(
        &mut self,
        core: &mut Core,
        connection: &mut Connection,
    ) -> Result<Option<()>, ClientError> {
        loop {
            match core.come(connection)? {
                Came::Message(xid, Ok(message)) => core.keep(xid, message),
                Came::Message(_, Err(_)) => {}
                Came::Nothing => return Ok(Some(())),
            }
        }
    }
}

/// Waits until at most this many bytes wait for the stream; keeps what comes meanwhile.
#[derive(Debug)]
pub(crate) struct Room(pub(crate) usize);

impl Operation for Room {
    type Output = ();

    fn step(
        &mut self,
        core: &mut Core,
        connection: &mut Connection,
    ) -> Result<Option<()>, ClientError> {
        Drain.step(core, connection)?;
        Ok((connection.transmit().len() <= self.0).then_some(()))
    }
}
