//! What goes between the agent and its workers: commands down, upcalls up.

use std::fmt;

use datapath::fast::Op;
use netdev::PortInfo;
use openflow::message::{PacketIn, PacketOut};
use openflow::{Error, PortNo, Version, Xid};

use super::Branch;

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
    /// Where its answer stands among those of the connection.
    pub(crate) turn: Turn,
    /// Its first bytes, for an error about it.
    pub(crate) quote: Quote,
}

/// Where an answer stands among those of a connection, which leave in the order of their requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// In this place, which is kept for it.
    At(u64),
    /// If there is one at all, behind the answers in front of this place.
    Before(u64),
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

/// A point in the stream of commands that every worker must have reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Mark(pub(crate) u64);

/// A command to a bridge's branch on a worker.
pub(crate) enum Command {
    /// A change of the forwarder's replica.
    Op(Op),
    /// A packet of a controller's.
    PacketOut(Box<(Request, PacketOut)>),
    /// Send what is queued, then tell that all before is done.
    Reach(Mark),
    /// Tell when the flushes that were asked for before are done.
    FlushCounters(Mark),
    /// A question, which answers by a channel of its own.
    Ask(Box<dyn FnOnce(&mut Branch) + Send>),
    /// Close the ports of all bridges and end.
    Stop,
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Op(_) => "Op",
            Self::PacketOut(_) => "PacketOut",
            Self::Reach(_) => "Reach",
            Self::FlushCounters(_) => "FlushCounters",
            Self::Ask(_) => "Ask",
            Self::Stop => "Stop",
        })
    }
}

/// Something for the agent, packet-ins apart.
#[derive(Debug)]
pub(crate) enum Upcall {
    /// A packet-out was refused.
    Refused(Request, Error),
    /// This worker has done everything up to the mark.
    Reached(Mark),
    /// A port's device has changed: the facts as they are now.
    Port(PortNo, Box<PortInfo>),
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
