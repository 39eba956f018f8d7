//! The words of the switch's control socket, and a blocking client of it.
//!
//! The control socket is for what OpenFlow has no message for: JSON lines over a Unix socket, one
//! [`Request`] in, [`Line`]s out up to [`Line::Done`] or [`Line::Refused`]. After
//! [`Command::Openflow`] the same stream speaks OpenFlow. The switch answers these words, `weir
//! ctl` and the benches say them; none of them imports another for it.
//!
//! ```no_run
//! use control::{Command, Line, Request};
//!
//! let request = Request { json: false, bridge: None, command: Command::Counters };
//! for line in control::ask(&control::default_path(), &request)? {
//!     if let Line::Text(text) = line {
//!         println!("{text}");
//!     }
//! }
//! # Ok::<(), control::AskError>(())
//! ```
#![forbid(unsafe_code)]

mod ask;
mod hex;
mod place;
mod words;

pub use ask::{AskError, SILENCE_MAX, ask, openflow};
pub use hex::{hex, unhex};
pub use place::default_path;
pub use words::{Command, LINE_MAX, Line, Request};
