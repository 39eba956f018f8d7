//! Test traffic: streams, pacing, probes, the receiver that counts them, and methods of
//! measurement.
//!
//! A [`session::Session`] has open ports. Streams ([`profile::StreamSpec`]) are loaded into them,
//! each with headers ([`stack`]), sizes, a rate and fields that differ from frame to frame; a
//! thread for each port sends them by their due times, another accounts for what arrives, and
//! [`statistics`] account for every frame. [`method`] asks with them what RFC 2544 asks of a
//! device, and [`testing`] has a simulated one of known properties. The sending side is open loop:
//! a frame's time is fixed before the run and never waits for an answer, so that a stalled switch
//! shows as delay instead of as fewer samples. It must never know what a controller is.
//!
//! ```
//! use std::time::Duration;
//!
//! use generator::profile::{Mode, Rate, StreamSpec};
//! use generator::session::{Session, SessionOptions, StartOptions};
//!
//! let ports = ["memory:generator-lib?end=a".parse()?, "memory:generator-lib?end=b".parse()?];
//! let mut session = Session::open(&ports, SessionOptions::default())?;
//! let stream = StreamSpec {
//!     packet: "eth/vlan(vid=5)/ipv4/udp(dst=53)".to_owned(),
//!     rate: Rate::PacketsPerSecond(1_000.0),
//!     mode: Mode::Burst(10),
//!     ..StreamSpec::default()
//! };
//! session.load(0, &[stream])?;
//! session.start(&[0], &StartOptions::default())?;
//! session.wait(None);
//! session.wait_until_quiet(Duration::from_millis(20), Duration::from_secs(1));
//! let streams = session.statistics().streams;
//! assert_eq!(streams[0].sent + streams[0].unsent, 10);
//! assert_eq!(streams[0].lost, Some(0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod clock;
pub mod file_conflicts;
pub mod method;
pub mod probe;
pub mod profile;
mod random;
pub mod receiver;
pub mod responder;
mod schedule;
pub mod session;
pub mod stack;
pub mod statistics;
mod template;
pub mod testing;
mod transmit;
