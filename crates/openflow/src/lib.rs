//! The vocabulary of OpenFlow 1.0 and 1.3.
//!
//! Five tables say what there is: [`field`] (match fields), [`action`], [`instruction`],
//! [`message`] and [`error`]. Everything else in Weir that must know all fields, all actions and so
//! on reads these rows. Values are version-neutral: what the versions say differently, `wire`
//! translates. No bytes, no input and output, no clock.
#![forbid(unsafe_code)]

pub mod action;
pub mod error;
pub mod field;
pub mod flow;
pub mod group;
pub mod id;
pub mod instruction;
pub mod matching;
pub mod message;
pub mod meter;
mod numbered;
pub mod port;
pub mod table;
pub mod text;
pub mod twelve_tuple;
pub mod version;

pub use action::{Action, ActionKind};
pub use error::Error;
pub use field::Field;
pub use id::{
    BufferId, Cookie, DatapathId, GroupId, MacAddr, MeterId, PortNo, QueueId, TableId, Xid,
};
pub use instruction::{Instruction, InstructionKind};
pub use matching::{Match, MatchField};
pub use message::{Message, MessageKind};
pub use twelve_tuple::{TupleForm, TwelveTuple};
pub use version::{Version, VersionBitmap};
