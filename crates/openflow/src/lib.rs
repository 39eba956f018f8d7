//! The vocabulary of OpenFlow 1.0 to 1.5: messages, match fields, actions, errors and text.
//!
//! Clauses are those of the OpenFlow Switch Specification 1.3.4 and, where the text says 1.0 or
//! 1.4, of 1.0.2 and 1.4.0. Five tables define the protocol: [`field`] (match fields), [`action`],
//! [`instruction`], [`message`] and [`error`]. Codec, checks, text and announced features are
//! derived from their rows. Values are version-neutral; `wire` translates between the versions. The
//! crate has no bytes of the wire, no input and output, and no clock.
//!
//! A flow-mod from text, as `ovs-ofctl` writes it, and the row of a field:
//!
//! ```
//! use openflow::flow::FlowModCommand;
//! use openflow::text::{format_match, parse_flow_mod};
//! use openflow::{Action, Field, Instruction, Version};
//!
//! let text = "priority=7,udp,nw_dst=10.0.0.0/8,actions=dec_ttl,output:2";
//! let add = parse_flow_mod(text, FlowModCommand::Add)?;
//! assert_eq!(add.priority, 7);
//! assert_eq!(add.matching.get(Field::Ipv4Dst).unwrap().mask, 0xff00_0000);
//! assert_eq!(format_match(&add.matching), "udp,nw_dst=10.0.0.0/8");
//! let Instruction::ApplyActions(actions) = &add.instructions[0] else { panic!() };
//! assert_eq!(actions[0], Action::DecNwTtl);
//!
//! // The prerequisite of a field is in its row (clause 7.2.3.8 of 1.3.4).
//! assert!(add.matching.matches(Field::UdpDst.row().prereq));
//! assert_eq!(Version::V1_3.number(), 0x04);
//! # Ok::<(), openflow::text::TextError>(())
//! ```
#![forbid(unsafe_code)]

pub mod action;
pub mod bundle;
pub mod error;
pub mod field;
pub mod flow;
pub mod flow_monitor;
pub mod group;
pub mod id;
pub mod instruction;
pub mod learn;
mod learnt;
pub mod matching;
pub mod members;
pub mod message;
pub mod meter;
mod numbered;
mod packet_in_reason;
pub mod port;
pub mod subfield;
pub mod table;
pub mod text;
mod to_controller;
pub mod translate;
pub mod twelve_tuple;
pub mod version;

pub use action::{Action, ActionKind};
pub use error::Error;
pub use field::Field;
pub use id::{
    BucketId, BufferId, Cookie, DatapathId, GroupId, MacAddr, MeterId, PortNo, QueueId, ShortPort,
    TableId, Xid,
};
pub use instruction::{Instruction, InstructionKind};
pub use learn::Learn;
pub use matching::{Match, MatchField};
pub use members::Members;
pub use message::{Message, MessageKind};
pub use subfield::BitRange;
pub use to_controller::ToController;
pub use twelve_tuple::{TupleForm, TwelveTuple};
pub use version::{Version, VersionBitmap};
