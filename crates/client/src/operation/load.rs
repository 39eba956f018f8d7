//! Changes: any number of messages in their order, a barrier after them, and which of them the
//! switch refuses (clause 6.2).
//!
//! Messages are encoded where they wait for the stream, and written in large pieces; while they
//! are, what comes is read, so that two peers that both wait to write never wait for each other.
//! The xids of a load follow each other, so that an error finds its message without a map of a
//! million entries.
//!
//! In a bundle each message goes within a bundle-add, and behind the barrier comes the commit, or
//! where one was refused until then the bundle is discarded.

use std::collections::VecDeque;
use std::time::Instant;

use channel::Connection;
use openflow::bundle::{BundleAdd, BundleControl, BundleControlType, BundleFlags};
use openflow::message::ErrorMessage;
use openflow::{Message, Version, Xid};

use crate::core::{Came, Core, Operation};
use crate::error::ClientError;

/// Refusals that are kept of one load; beyond them they are counted.
const REFUSALS_MAX: usize = 1_000;

/// The number of the bundle of a connection; there is one at a time.
pub(crate) const BUNDLE: u32 = 1;

/// The outcome of a load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadOutcome {
    /// Messages, with those that were refused.
    pub messages: u64,
    /// Refusals, with those that are not kept.
    pub refused: u64,
    /// The first thousand refusals, in the order of their messages.
    pub refusals: Vec<Refusal>,
}

/// A message that was not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Index of the message, from 0.
    pub index: u64,
    /// Why.
    pub why: RefusalReason,
}

/// Why a message was not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefusalReason {
    /// The switch answers with an error.
    Error(Version, ErrorMessage),
    /// The version of the connection has no encoding for it.
    NotEncodable(String),
}

impl std::fmt::Display for RefusalReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Error(version, error) => f.write_str(&error.explained(*version)),
            Self::NotEncodable(why) => f.write_str(why),
        }
    }
}

/// Xids that follow each other, and the index of the message of the first.
#[derive(Clone, Copy, Debug)]
struct Run {
    first: Xid,
    count: u32,
    index: u64,
}

/// Messages, and a barrier after them.
pub(crate) struct Load<I> {
    messages: Option<I>,
    /// One, unless a message has no encoding or the xids have gone round.
    runs: VecDeque<Run>,
    barrier: Option<Xid>,
    /// The bundle that it goes in.
    bundle: Option<u32>,
    /// The request that ends it.
    bundle_end: Option<Xid>,
    outcome: LoadOutcome,
}

/// The message about a whole bundle that is carried out in order and at one moment.
pub(crate) fn bundle_control(bundle_id: u32, control: BundleControlType) -> Message {
    let flags = BundleFlags::ATOMIC | BundleFlags::ORDERED;
    Message::BundleControl(BundleControl { bundle_id, control, flags })
}

impl<I> Load<I> {
    /// A load of these messages.
    pub(crate) fn new(messages: I) -> Self {
        let (runs, outcome) = (VecDeque::new(), LoadOutcome::default());
        Self {
            messages: Some(messages),
            runs,
            barrier: None,
            bundle: None,
            bundle_end: None,
            outcome,
        }
    }

    /// The same in a bundle that is open.
    pub(crate) fn in_bundle(self, bundle_id: u32) -> Self {
        Self { bundle: Some(bundle_id), ..self }
    }

    fn note(&mut self, xid: Xid) {
        let index = self.outcome.messages;
        match self.runs.back_mut() {
            Some(run)
                if run.first.0.checked_add(run.count) == Some(xid.0)
                    && run.index + u64::from(run.count) == index =>
            {
                run.count += 1;
            }
            Some(_) | None => self.runs.push_back(Run { first: xid, count: 1, index }),
        }
    }

    /// Whether this is the xid of the barrier or of the bundle's end.
    fn is_end(&self, xid: Xid) -> bool {
        self.barrier == Some(xid) || self.bundle_end == Some(xid)
    }

    /// Index of the message that had the xid.
    fn index_of(&self, xid: Xid) -> Option<u64> {
        let offset = |run: &Run| xid.0.checked_sub(run.first.0).filter(|by| *by < run.count);
        self.runs.iter().rev().find_map(|run| offset(run).map(|by| run.index + u64::from(by)))
    }

    fn refuse(&mut self, index: u64, why: RefusalReason) {
        self.outcome.refused += 1;
        if self.outcome.refusals.len() < REFUSALS_MAX {
            self.outcome.refusals.push(Refusal { index, why });
        }
    }

    /// Takes what has come; whether all has that is awaited.
    fn take(&mut self, core: &mut Core, connection: &mut Connection) -> Result<bool, ClientError> {
        loop {
            let (xid, message) = match core.come(connection)? {
                Came::Nothing => return Ok(false),
                Came::Message(xid, message) => (xid, message),
            };
            let index = self.index_of(xid);
            if index.is_some() || self.is_end(xid) {
                core.begin(Instant::now());
            }
            match message {
                Ok(Message::BarrierReply) if self.barrier == Some(xid) => {
                    let Some(bundle_id) = self.bundle else { return Ok(true) };
                    let end = match self.outcome.refused {
                        0 => BundleControlType::CommitRequest,
                        _ => BundleControlType::DiscardRequest,
                    };
                    let end = core.send(connection, &bundle_control(bundle_id, end))?;
                    self.bundle_end = Some(end);
                }
                Ok(Message::BundleControl(_)) if self.bundle_end == Some(xid) => return Ok(true),
                // The error of the message that was refused came before.
                Ok(Message::Error(_))
                    if self.bundle_end == Some(xid) && self.outcome.refused > 0 =>
                {
                    return Ok(true);
                }
                Ok(Message::Error(error)) if index.is_some() => {
                    let why = RefusalReason::Error(Core::version(connection), error);
                    self.refuse(index.unwrap_or_default(), why);
                }
                Ok(Message::Error(error)) if self.is_end(xid) => {
                    let version = Core::version(connection);
                    return Err(ClientError::Refused { version, error });
                }
                Ok(message) => core.keep(xid, message),
                Err(error) if index.is_some() || self.is_end(xid) => {
                    return Err(ClientError::Unreadable(error));
                }
                Err(_) => {}
            }
        }
    }
}

/// Sends a message, within a bundle-add where it is one of a bundle.
fn send(
    core: &mut Core,
    connection: &mut Connection,
    bundle: Option<u32>,
    message: &Message,
) -> Result<Xid, ClientError> {
    let Some(bundle_id) = bundle else { return core.send(connection, message) };
    let (xid, version) = (core.fresh_xid(), Core::version(connection));
    let message = wire::encode(version, xid, message).map_err(ClientError::Encode)?;
    let flags = BundleFlags::ATOMIC | BundleFlags::ORDERED;
    let add = Message::BundleAdd(BundleAdd { bundle_id, flags, message });
    core.send_as(connection, xid, &add)?;
    Ok(xid)
}

impl<I: Iterator<Item = Message>> Load<I> {
    /// Queues messages until there is no more room, and the barrier after the last.
    fn fill(&mut self, core: &mut Core, connection: &mut Connection) -> Result<(), ClientError> {
        while let Some(messages) = &mut self.messages
            && !connection.is_full()
        {
            core.begin(Instant::now());
            let Some(message) = messages.next() else {
                self.messages = None;
                self.barrier = Some(core.send(connection, &Message::BarrierRequest)?);
                return Ok(());
            };
            match send(core, connection, self.bundle, &message) {
                Ok(xid) => self.note(xid),
                Err(ClientError::Encode(error)) => {
                    let why = RefusalReason::NotEncodable(error.to_string());
                    self.refuse(self.outcome.messages, why);
                }
                Err(other) => return Err(other),
            }
            self.outcome.messages += 1;
        }
        Ok(())
    }
}

impl<I: Iterator<Item = Message>> Operation for Load<I> {
    type Output = LoadOutcome;

    fn step(
        &mut self,
        core: &mut Core,
        connection: &mut Connection,
    ) -> Result<Option<LoadOutcome>, ClientError> {
        self.fill(core, connection)?;
        if !self.take(core, connection)? {
            return Ok(None);
        }
        self.outcome.refusals.sort_by_key(|refusal| refusal.index);
        Ok(Some(std::mem::take(&mut self.outcome)))
    }
}

#[cfg(test)]
mod tests {
    use super::Load;
    use openflow::Xid;

    #[test]
    fn an_xid_finds_its_message_over_gaps() {
        let mut load: Load<std::iter::Empty<openflow::Message>> = Load::new(std::iter::empty());
        for (index, xid) in [(0, 5), (1, 6), (3, 8), (4, 9), (5, 1)] {
            load.outcome.messages = index;
            load.note(Xid(xid));
        }
        let found = [4, 5, 6, 7, 8, 9, 10, 1].map(|xid| load.index_of(Xid(xid)));
        assert_eq!(found, [None, Some(0), Some(1), None, Some(3), Some(4), None, Some(5)]);
    }
}
