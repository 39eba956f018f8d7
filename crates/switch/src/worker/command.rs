//! What goes between agent and worker: commands down, upcalls up.

use std::fmt;

use datapath::Miss;
use openflow::flow::FlowRemoved;
use openflow::message::PacketIn;
use openflow::port::PortStatus;
use openflow::{Error, Message, Version, Xid};

use super::Worker;

/// One of the connections that there are and were; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ConnectionId(pub(crate) u64);

/// Whose a message is and what it begins with, for the answer.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// Who sent it.
    pub(crate) from: ConnectionId,
    /// In which version.
    pub(crate) version: Version,
    /// Its number.
    pub(crate) xid: Xid,
    /// Whether the connection's further requests wait for the answer, which may be long.
    pub(crate) is_awaited: bool,
    /// Its first bytes, for an error about it.
    pub(crate) quote: Quote,
}

/// The first bytes of a message, at most 64 (clause 7.5.4 asks for at least so many), kept without
/// an allocation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quote {
    bytes: [u8; 64],
    len: u8,
}

impl Quote {
    pub(crate) fn new(message: &[u8]) -> Self {
        let mut bytes = [0; 64];
        let len = message.len().min(bytes.len());
        for (to, from) in bytes.iter_mut().zip(message) {
            *to = *from;
        }
        Self { bytes, len: len as u8 }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len.into()).unwrap_or_default()
    }
}

/// A command to the worker.
pub(crate) enum Command {
    /// A message of a controller.
    Message(Request, Message),
    /// How packets are treated, which depends on who is connected.
    Treat(Treatment),
    /// A question of the control socket, which answers by a channel of its own.
    Ask(Box<dyn FnOnce(&mut Worker) + Send>),
    /// Close the ports and end.
    Stop,
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message(request, message) => {
                f.debug_tuple("Message").field(request).field(&message.kind()).finish()
            }
            Self::Treat(treatment) => f.debug_tuple("Treat").field(treatment).finish(),
            Self::Ask(_) => f.write_str("Ask"),
            Self::Stop => f.write_str("Stop"),
        }
    }
}

/// What becomes of packets that no entry handles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Treatment {
    /// Of misses: to the controller while one of 1.0 is connected.
    pub(crate) miss: Miss,
    /// Whether any controller wants packets whose TTL is used up.
    pub(crate) invalid_ttl: bool,
}

/// Something for the agent, packet-ins apart.
#[derive(Debug)]
pub(crate) enum Upcall {
    /// The reply to a request.
    Reply(Request, Message),
    /// A request was refused.
    Refused(Request, Error),
    /// A flow entry that asked for it is gone.
    FlowRemoved(FlowRemoved),
    /// A port has changed.
    PortStatus(PortStatus),
    /// The worker has ended.
    Stopped,
}

/// Packet-ins and upcalls on their way.
pub(crate) type Outbox = super::outbox::Outbox<PacketIn, Upcall>;
/// Packet-ins and upcalls in hand.
pub(crate) type Waiting = super::outbox::Waiting<PacketIn, Upcall>;
/// Commands on their way.
pub(crate) type Inbox = super::inbox::Inbox<Command>;

#[cfg(test)]
mod tests {
    use super::Quote;

    #[test]
    fn a_quote_has_at_most_64_bytes() {
        assert_eq!(Quote::new(&[7; 100]).bytes(), &[7; 64]);
        assert_eq!(Quote::new(&[1, 2]).bytes(), &[1, 2]);
        assert!(Quote::new(&[]).bytes().is_empty());
    }
}
