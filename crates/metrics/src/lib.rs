//! The counts of a running program for Prometheus: rows, their text, and the server of `--metrics`.
//!
//! A row is the whole declaration of a metric, of which text, documentation and checks are made. A
//! program gathers its counts only when a reader asks, and this crate asks one reader after the
//! other: who reads often or slowly costs the program little. Labels must never hold what outsiders
//! choose freely, such as addresses: each value is a series that Prometheus keeps.
//!
//! ```
//! use metrics::{Family, Labels, TextFormat, MetricRow, count, table, text};
//!
//! struct Port { packets: u64 }
//! const ROWS: &[MetricRow<Port>] =
//!     &[MetricRow::counter("port_packets", "Packets.", |it| count(it.packets))];
//!
//! let things = [(Labels::new(&["port"], &[&"eth1"]), &Port { packets: 7 })];
//! let families: Vec<Family> = table(ROWS, &["port"], &things).collect();
//! let expected = "# HELP port_packets_total Packets.\n# TYPE port_packets_total counter\n\
//!                 port_packets_total{port=\"eth1\"} 7\n";
//! assert_eq!(text(&families, TextFormat::Text), expected);
//! ```
#![forbid(unsafe_code)]

mod family;
mod process;
mod server;

pub use family::{Family, Kind, Labels, MetricRow, TextFormat, Value, count, seconds, table, text};
pub use process::of_process;
pub use server::{MetricsError, parse_address, serve};
pub use web::Server as MetricsServer;
