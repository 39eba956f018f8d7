//! One connection's part of a shard: its switch, and the answers that it waits for.
//!
//! State only; `shard` acts on it. It may move from one shard to another before
//! its switch is ready, and never after.

use crate::answers::{Answers, Asker};
use crate::commands::SwitchEntry;
use crate::mastership::OrderBox;
use crate::role::RoleMachine;
use crate::shared::SwitchBounds;
use crate::switch::Switch;
use channel::{Connection, DownReason};
use openflow::message::{Features, MultipartRequest, MultipartRequestBody};
use openflow::{DatapathId, Message, Version};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A switch must have sent its features and ports within this time.
pub(crate) const READY_DEADLINE: Duration = Duration::from_secs(15);

/// The memory that a port takes where links are observed; else it is 140 bytes. Measured by the
/// resident memory of controllers with switches of 65,000 ports.
const PORT_BYTES: usize = 320;

/// An answer in memory is about this many times as large as on the wire.
const ANSWER_FACTOR: usize = 3;

/// Most that a switch with many ports waits until handles see a change of them.
pub(crate) const PORTS_SHOWN_EVERY: Duration = Duration::from_millis(500);

/// Ports of a switch whose handles see each change at once.
const PORTS_SHOWN_AT_ONCE: usize = 1_024;

/// A session's part in the cluster.
#[derive(Debug)]
pub(crate) struct Standby {
    pub(crate) orders: Arc<OrderBox>,
    pub(crate) machine: RoleMachine,
}

/// One connection's part of a shard.
#[derive(Debug)]
pub struct Session {
    pub(crate) peer: Arc<str>,
    pub(crate) opened: Instant,
    pub(crate) next_tick: Option<Instant>,
    /// Of the switch that this speaks for, or beside whose main connection it is (clause 6.3.6).
    pub(crate) entry: Option<Arc<SwitchEntry>>,
    pub(crate) is_auxiliary: bool,
    pub(crate) phase: Phase,
    /// In a cluster, of a main connection.
    pub(crate) standby: Option<Standby>,
    pub(crate) answers: Answers,
    /// The switch has been asked for our role.
    pub(crate) is_role_checked: bool,
    /// The time since which the connection is full while commands wait.
    pub(crate) stalled_since: Option<Instant>,
    /// When handles saw the ports last.
    pub(crate) ports_shown: Instant,
    /// The counts of the switch that are in the shard's already.
    pub(crate) counted: Counted,
    outcomes: Vec<Outcome>,
}

/// Counts that a switch keeps and that its shard adds up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    pub(crate) not_forwarded: u64,
    pub(crate) beyond_bounds: u64,
}

#[derive(Debug)]
pub(crate) enum Phase {
    /// The hello exchange or the features are awaited.
    Unknown,
    /// The switch is at home at another shard, which goes on from here.
    Migrating(Box<Features>),
    /// The ports of a 1.3 switch are awaited.
    Ports(Box<Switch>),
    /// Another controller of the cluster is its master, or none.
    Standby(Box<Switch>),
    /// The apps know it.
    Ready(Box<Switch>),
    /// The session has ended.
    Over,
}

/// A change in the life of a session, for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The switch is ready.
    Ready {
        /// Its datapath id.
        dpid: DatapathId,
        /// The version spoken.
        version: Version,
        /// The number of its ports.
        ports: usize,
    },
    /// The switch is known; the cluster decides who is its master.
    Standby {
        /// Its datapath id.
        dpid: DatapathId,
    },
    /// The switch has made us its master.
    Master {
        /// Its datapath id.
        dpid: DatapathId,
        /// The generation id.
        generation: u64,
    },
    /// An auxiliary connection of a switch that is ready.
    Auxiliary {
        /// The switch.
        dpid: DatapathId,
        /// The number of the auxiliary connection.
        id: u8,
    },
    /// The connection is over.
    Down {
        /// The switch, if it was ready.
        dpid: Option<DatapathId>,
        /// The reason.
        reason: DownReason,
    },
    /// We end it, for this reason.
    Refused(String),
}

impl Session {
    pub(crate) fn new(peer: &str, bounds: &SwitchBounds, now: Instant) -> Self {
        Self {
            peer: peer.into(),
            opened: now,
            next_tick: None,
            entry: None,
            is_auxiliary: false,
            phase: Phase::Unknown,
            standby: None,
            answers: Answers::new(bounds),
            is_role_checked: false,
            stalled_since: None,
            ports_shown: now,
            counted: Counted::default(),
            outcomes: Vec::new(),
        }
    }

    /// Takes the changes since the last call.
    pub fn take_outcomes(&mut self) -> Vec<Outcome> {
        std::mem::take(&mut self.outcomes)
    }

    /// The session's switch, when that is at home at another shard.
    pub(crate) fn migrating(&self) -> Option<DatapathId> {
        match &self.phase {
            Phase::Migrating(features) => Some(features.datapath_id),
            Phase::Unknown
            | Phase::Ports(_)
            | Phase::Standby(_)
            | Phase::Ready(_)
            | Phase::Over => None,
        }
    }

    /// About the memory that is kept for the switch: its ports, with the copies of apps and
    /// handles, and what has come of answers, which is a few times as large as on the wire.
    pub(crate) fn bytes(&self) -> usize {
        let ports = match &self.phase {
            Phase::Ports(switch) | Phase::Standby(switch) | Phase::Ready(switch) => {
                switch.ports().len()
            }
            Phase::Unknown | Phase::Migrating(_) | Phase::Over => 0,
        };
        PORT_BYTES * ports + ANSWER_FACTOR * self.answers.bytes()
    }

    /// The entry that wakes the main connection of a switch that is ready.
    pub(crate) fn wakes(&self) -> Option<&SwitchEntry> {
        self.entry.as_deref().filter(|_| !self.is_auxiliary)
    }

    /// The box of the cluster's orders, if there is a cluster.
    pub(crate) fn orders(&self) -> Option<&OrderBox> {
        self.standby.as_ref().map(|standby| standby.orders.as_ref())
    }

    pub(crate) fn report(&mut self, outcome: Outcome) {
        self.outcomes.push(outcome);
    }

    /// Asks the switch for its features or its ports.
    pub(crate) fn ask(&mut self, connection: &mut Connection, asker: Asker) {
        let message = match asker {
            Asker::Features | Asker::Role | Asker::RoleCheck | Asker::App | Asker::Handle => {
                Message::FeaturesRequest
            }
            Asker::Ports => {
                let body = MultipartRequestBody::PortDesc;
                Message::MultipartRequest(MultipartRequest { more: false, body })
            }
        };
        let xid = connection.allocate_xid();
        self.answers.expect_own(xid, &message, asker);
        if let Err(error) = connection.send_as(xid, &message) {
            self.refuse(connection, format!("asking it failed: {error}"));
        }
    }

    /// Ends the connection.
    pub(crate) fn refuse(&mut self, connection: &mut Connection, reason: String) {
        self.report(Outcome::Refused(reason));
        connection.close();
    }
}

/// Whether it is time to show handles the changed ports of a switch with this number of them: all
/// that they see is copied at the next change. `shown` is the time when they saw the ports last.
pub(crate) fn may_show_ports(shown: &mut Instant, ports: usize, now: Instant) -> bool {
    let may = ports <= PORTS_SHOWN_AT_ONCE || now >= *shown + PORTS_SHOWN_EVERY;
    if may {
        *shown = now;
    }
    may
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready { dpid, version, ports } => {
                write!(f, "switch {dpid} is ready: {version}, {ports} ports")
            }
            Self::Standby { dpid } => write!(f, "switch {dpid} stands by"),
            Self::Master { dpid, generation } => {
                write!(f, "switch {dpid}: this node is master of it, generation {generation}")
            }
            Self::Auxiliary { dpid, id } => {
                write!(f, "switch {dpid}: auxiliary connection {id}")
            }
            Self::Down { dpid: Some(dpid), reason } => write!(f, "switch {dpid} is down: {reason}"),
            Self::Down { dpid: None, reason } => write!(f, "dropped: {reason}"),
            Self::Refused(reason) => write!(f, "dropped: {reason}"),
        }
    }
}
