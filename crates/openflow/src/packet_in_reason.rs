//! Reasons of packet-ins (clause 7.4.1).

use crate::numbered::numbered;
use crate::version::Version;

numbered! {
    /// Why a packet-in is sent.
    pub enum PacketInReason: u8 {
        /// The table-miss entry sent it, or in 1.0 no entry matched.
        NoMatch = 0 => "no_match",
        /// An action sent it.
        Action = 1 => "action",
        /// Its TTL was not valid.
        InvalidTtl = 2 => "invalid_ttl",
        /// An action of the action set sent it; an action's in earlier versions.
        ActionSet = 3 => "action_set" since V1_4,
        /// A bucket of a group sent it; an action's in earlier versions.
        Group = 4 => "group" since V1_4,
        /// A packet-out sent it; an action's in earlier versions.
        PacketOut = 5 => "packet_out" since V1_4,
    }
}

impl PacketInReason {
    /// The reason as a version has it: earlier ones have one for all actions that send packets.
    #[must_use]
    pub fn nearest_in(self, version: Version) -> Self {
        match self {
            Self::ActionSet | Self::Group | Self::PacketOut if !self.is_in(version) => Self::Action,
            Self::NoMatch
            | Self::Action
            | Self::InvalidTtl
            | Self::ActionSet
            | Self::Group
            | Self::PacketOut
            | Self::Unknown(_) => self,
        }
    }
}
