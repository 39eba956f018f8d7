//! The OpenFlow channel: one connection as a state machine without I/O, and the transports that
//! carry it. Clauses are those of the OpenFlow Switch Specification 1.3.4; where 1.0 differs, the
//! text says so.
//!
//! - [`Connection`]: hello exchange, framing, echo, deadlines, flow control. Bytes in and events
//!   out; messages in and bytes out.
//! - [`Link`] drives a connection over a [`Stream`] on tokio; [`Listener`] accepts streams;
//!   [`Endpoint`] is the text form of an address (`tcp:192.0.2.7:6653`). [`BlockingStream`] is a
//!   stream for programs without a runtime.
//! - [`Pending`] matches replies to requests and joins the parts of a multipart reply.
//! - [`Backoff`] is the wait before the next attempt to connect; [`Admission`] and
//!   [`ConnectionGate`] decide which connections a listener serves; [`LogThrottle`] limits the log
//!   lines that a peer can cause.
//! - [`Tls`] holds key and certificates; module `pki` (the feature of that name) makes them.
//! - [`memory`] joins two connections in virtual time, with seeded faults.
//!
//! A controller and a switch, joined without a socket:
//!
//! ```
//! use channel::{Connection, ConnectionSettings, Event, Side};
//! use openflow::{Message, Version};
//! use std::time::Instant;
//!
//! /// Carries what `from` has to send to `to`.
//! fn carry(from: &mut Connection, to: &mut Connection, now: Instant) {
//!     let bytes = from.transmit().to_vec();
//!     from.transmitted(bytes.len(), now);
//!     to.receive(&bytes, now);
//! }
//!
//! let now = Instant::now();
//! let mut controller = Connection::new(ConnectionSettings::new(Side::Controller), now);
//! let mut switch = Connection::new(ConnectionSettings::new(Side::Switch), now);
//! carry(&mut controller, &mut switch, now);
//! carry(&mut switch, &mut controller, now);
//! assert_eq!(switch.poll_event(), Some(Event::Up { version: Version::V1_3 }));
//! assert_eq!(controller.poll_event(), Some(Event::Up { version: Version::V1_3 }));
//!
//! let xid = controller.send(&Message::BarrierRequest)?;
//! carry(&mut controller, &mut switch, now);
//! let message = Message::BarrierRequest;
//! assert_eq!(switch.poll_event(), Some(Event::Message { xid, message }));
//! # Ok::<(), channel::SendError>(())
//! ```
#![forbid(unsafe_code)]

mod admission;
mod backoff;
pub mod blocking;
mod connection;
mod connection_log;
pub mod driver;
mod endpoint;
mod event;
mod frame;
mod gate;
mod log_throttle;
pub mod memory;
mod negotiate;
mod output;
mod parts;
mod pending;
#[cfg(feature = "pki")]
pub mod pki;
mod settings;
mod socket;
mod tls;
pub mod transport;

pub use admission::{
    Admission, AdmissionDecision, AdmissionId, AdmissionLimits, NotServed, PeerProgress, Source,
};
pub use backoff::Backoff;
pub use blocking::BlockingStream;
pub use connection::Connection;
pub use connection_log::{ConnectionLog, LogLine, Pass};
pub use driver::{DetachedLink, Link};
pub use endpoint::{BadEndpoint, DEFAULT_PORT, Endpoint};
pub use event::{ConnectionCounters, DownReason, Event, SendError};
pub use gate::{AcceptedConnection, ConnectionGate};
pub use log_throttle::LogThrottle;
pub use pending::{CannotWait, Paired, Pending, Unanswered};
pub use settings::{ConnectionSettings, Side};
pub use tls::{Tls, TlsError, TlsFiles};
pub use transport::{DetachedStream, Incoming, Listener, Stream, TransportError};
