//! The words of the switch's control socket, and a blocking client of it.
//!
//! The control socket is for what OpenFlow has no message for: JSON lines over a Unix socket, one
//! [`ControlRequest`] in, [`ControlLine`]s out up to [`ControlLine::Done`] or
//! [`ControlLine::Refused`]. After [`ControlCommand::Openflow`] the same stream speaks OpenFlow.
//! The switch answers these words, `weir ctl` and the benches say them; none of them imports
//! another for it.
//!
//! ```no_run
//! use control::{ControlCommand, ControlLine, ControlRequest};
//!
//! let request = ControlRequest { json: false, bridge: None, command: ControlCommand::Counters };
//! for line in control::ask(&control::default_path(), &request)? {
//!     if let ControlLine::Text(text) = line {
//!         println!("{text}");
//!     }
//! }
//! # Ok::<(), control::AskError>(())
//! ```
#![forbid(unsafe_code)]

mod ask;
mod counts;
mod hex;
mod place;
mod socket;
mod words;

pub use ask::{AskError, SILENCE_MAX, ask, ask_within, openflow};
pub use counts::{BridgeCounts, CountsRecord, PortCounts, WorkerCounts};
pub use hex::{hex, unhex};
pub use place::default_path;
pub use socket::{ControlSocket, SocketError};
pub use words::{ControlCommand, ControlLine, ControlRequest, LINE_MAX, PortSettings};
