//! Bundles as messages speak of them (1.4, clauses 7.3.9.1 to 7.3.9.6): messages that a switch
//! carries out together or not at all. 1.3 has them by ONF's extension 230, with other numbers.

use crate::numbered::numbered;

numbered! {
    /// Command on a bundle, and the answer to each (`OFPBCT_*`).
    pub enum BundleControlType: u16 {
        /// Open it.
        OpenRequest = 0 => "OPEN_REQUEST",
        /// It is open.
        OpenReply = 1 => "OPEN_REPLY",
        /// Let no further message in.
        CloseRequest = 2 => "CLOSE_REQUEST",
        /// It is closed.
        CloseReply = 3 => "CLOSE_REPLY",
        /// Carry it out.
        CommitRequest = 4 => "COMMIT_REQUEST",
        /// It is carried out.
        CommitReply = 5 => "COMMIT_REPLY",
        /// Forget it.
        DiscardRequest = 6 => "DISCARD_REQUEST",
        /// It is forgotten.
        DiscardReply = 7 => "DISCARD_REPLY",
    }
}

impl BundleControlType {
    /// The answer to a request.
    #[must_use]
    pub fn reply(self) -> Option<Self> {
        match self {
            Self::OpenRequest => Some(Self::OpenReply),
            Self::CloseRequest => Some(Self::CloseReply),
            Self::CommitRequest => Some(Self::CommitReply),
            Self::DiscardRequest => Some(Self::DiscardReply),
            Self::OpenReply
            | Self::CloseReply
            | Self::CommitReply
            | Self::DiscardReply
            | Self::Unknown(_) => None,
        }
    }
}

bitflags::bitflags! {
    /// Flags of a bundle (`OFPBF_*`).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct BundleFlags: u16 {
        /// No packet sees a part of it.
        const ATOMIC = 1;
        /// Its messages are carried out in their order.
        const ORDERED = 1 << 1;
        /// It is carried out at a time that it names (1.5).
        const TIME = 1 << 2;
        const _ = !0;
    }
}

/// A command on a bundle, or the answer to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BundleControl {
    /// The bundle.
    pub bundle_id: u32,
    /// The command.
    pub control: BundleControlType,
    /// The bundle's flags.
    pub flags: BundleFlags,
}

/// A message for a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleAdd {
    /// The bundle.
    pub bundle_id: u32,
    /// The bundle's flags.
    pub flags: BundleFlags,
    /// The whole message, with a header of its own.
    pub message: Vec<u8>,
}
