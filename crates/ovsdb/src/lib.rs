//! A client of Open vSwitch's database: JSON-RPC and the methods of RFC 7047, without input and
//! output.
//!
//! [`Session`] takes the bytes of a connection and has the bytes to send; it keeps a [`Replica`] of
//! the monitored columns, holds a lock of the database, and carries [`Transaction`]s there.
//! [`COLUMNS`] has a row for each column and key that a switch reads or writes. Sockets, time and
//! the meaning of rows are the caller's. All that comes from the database is input from outside:
//! bounded, checked, and never a panic.
//!
//! ```
//! use std::time::{Duration, Instant};
//! let mut session = ovsdb::Session::new("ovs_vswitchd", None, Instant::now());
//! let request = String::from_utf8(session.take_output()).unwrap();
//! assert!(request.contains("get_schema"));
//! ```
#![forbid(unsafe_code)]

mod columns;
mod message;
mod replica;
mod session;
mod splitter;
mod transaction;
mod value;

pub use columns::{COLUMNS, ColumnAccess, ColumnRow, DATABASE, Use};
pub use message::{BadMessage, Message};
pub use replica::{BadUpdate, Replica, Row};
pub use session::{DatabaseError, DatabaseEvent, Session, TransactionId};
pub use splitter::{BadStream, Splitter};
pub use transaction::{Transaction, TransactionError};
pub use value::{Atom, BadValue, Datum, Uuid};
