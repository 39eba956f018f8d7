//! Codec of OpenFlow messages, 1.0 to 1.5: decode a frame to a message, encode a message to a
//! frame.
//!
//! Clauses are those of the OpenFlow Switch Specification 1.3.4 and, where the text says 1.0, 1.1,
//! 1.2 or 1.4, of 1.0.2, 1.1.0, 1.2 and 1.4.0.
//!
//! ```
//! use openflow::{Error, Message, Version, Xid};
//!
//! let frame = wire::encode(Version::V1_3, Xid(7), &Message::BarrierRequest)?;
//! assert_eq!(frame, [4, 20, 0, 8, 0, 0, 0, 7]);
//! assert_eq!(wire::decode(&frame)?, (Version::V1_3, Xid(7), Message::BarrierRequest));
//!
//! // In 1.0 the same message has another number.
//! assert_eq!(wire::encode(Version::V1_0, Xid(7), &Message::BarrierRequest)?[..2], [1, 18]);
//! // A bad message decodes to the protocol error that answers it.
//! let bad = wire::decode(&[4, 99, 0, 8, 0, 0, 0, 7]).unwrap_err();
//! assert_eq!(bad.error, Error::BadRequestBadType);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! All versions stand side by side in one file per concept (a flow-mod, an action, a port),
//! because what they say alike is most of it; what 1.0 and 1.1 say in words of their own is
//! translated in `compat`. A decode error *is* one of the protocol's errors, so a bad message
//! becomes its `OFPT_ERROR` without translation. The crate has no state, no input and output, and
//! no clock; bytes from outside must never make it panic or allocate more than they justify.
#![forbid(unsafe_code)]

mod action;
mod bundle;
mod compat;
mod controller;
mod error;
mod error_message;
mod experimenter;
mod flow;
mod flow_monitor;
mod forms;
mod group;
mod header;
mod hello;
mod instruction;
mod layout;
mod learn;
mod matching;
mod members;
mod message;
mod meter;
mod multipart;
mod multipart_frame;
mod nicira;
mod nxm;
mod oxm;
mod oxs;
mod packet;
mod port;
mod property;
mod queue;
mod reader;
mod role;
mod split;
mod switch;
mod table;
mod table_features;
mod writer;

pub use error::{DecodeError, EncodeError, quote};
pub use forms::Forms;
pub use header::{Frame, HEADER_LEN, MAX_FRAME_LEN, MessageHeader, frame_len};
pub use hello::decode_hello;
pub use message::{decode, decode_in, encode, encode_in, encode_into};
pub use multipart_frame::MultipartReplyFrame;
pub use nicira::{read_resume, write_resume};
pub use split::ReplyFrames;
