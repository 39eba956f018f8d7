//! One OpenFlow connection as a state machine without I/O, and the transports that carry it.
//!
//! [`Connection`] is what switch, controller and the lab's probes share. [`Pending`] pairs requests
//! with answers, [`Backoff`] says when to connect again, [`Endpoint`] names a place. [`transport`]
//! and [`driver`] alone touch sockets; [`memory`] joins two connections in virtual time.
#![forbid(unsafe_code)]

mod backoff;
mod connection;
pub mod driver;
mod endpoint;
mod event;
mod frame;
pub mod memory;
mod negotiate;
mod output;
mod parts;
mod pending;
mod settings;
pub mod transport;

pub use backoff::Backoff;
pub use connection::Connection;
pub use driver::Link;
pub use endpoint::{BadEndpoint, DEFAULT_PORT, Endpoint};
pub use event::{Counters, DownReason, Event, SendError};
pub use pending::{CannotWait, Paired, Pending, Unanswered};
pub use settings::{Role, Settings};
pub use transport::{Listener, Stream, TransportError};
