//! One OpenFlow connection as a state machine without I/O, and the transports that carry it.
//!
//! [`Connection`] is what switch, controller and the lab's probes share. [`Pending`] pairs requests
//! with answers, [`Backoff`] says when to connect again, [`Admission`] whom to serve of those who
//! come, [`Endpoint`] names a place. [`Tls`] says who we are and whom we trust, by the files that
//! [`pki`] makes. [`transport`] and [`driver`] alone touch sockets; [`memory`] joins two
//! connections in virtual time.
#![forbid(unsafe_code)]

mod admission;
mod backoff;
mod connection;
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
pub mod pki;
mod settings;
mod tls;
pub mod transport;

pub use admission::{
    Admission, AdmissionDecision, AdmissionId, AdmissionLimits, ListenerFull, Source,
};
pub use backoff::Backoff;
pub use connection::Connection;
pub use driver::Link;
pub use endpoint::{BadEndpoint, DEFAULT_PORT, Endpoint};
pub use event::{ConnectionCounters, DownReason, Event, SendError};
pub use gate::{AcceptedConnection, ConnectionGate};
pub use log_throttle::LogThrottle;
pub use pending::{CannotWait, Paired, Pending, Unanswered};
pub use settings::{ConnectionSettings, Side};
pub use tls::{Tls, TlsError, TlsFiles};
pub use transport::{Incoming, Listener, Stream, TransportError};
