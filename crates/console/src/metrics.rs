//! The metrics of the generator: a row for each count of a port.
//!
//! Frames and bytes are those of the reports: since the last clear, bytes with FCS. So their names
//! are not those of a switch's ports.

use std::net::SocketAddr;

use ::metrics::{
    Family, Labels, MetricRow, MetricsError, MetricsServer, count, of_process, serve, table,
};
use generator::session::counts::{CountsReader, SessionPortCounts};

#[rustfmt::skip]
const PORTS: &[MetricRow<SessionPortCounts>] = &[
    MetricRow::gauge("weir_generator_up", "1 where the port is there and has a link, else 0.",
        |it| count(it.is_up.into())),
    MetricRow::gauge("weir_generator_transmitting", "1 where the port has frames to send, else 0.",
        |it| count(it.is_transmitting.into())),
    MetricRow::counter("weir_generator_transmit_packets", "Frames that the port took.",
        |it| count(it.tx_packets)),
    MetricRow::counter("weir_generator_transmit_bytes", "Their bytes, with FCS.",
        |it| count(it.tx_bytes)),
    MetricRow::counter("weir_generator_unsent_packets",
        "Frames that were due and that the port did not take in time.", |it| count(it.unsent)),
    MetricRow::counter("weir_generator_late_packets", "Frames that left late.",
        |it| count(it.late)),
    MetricRow::counter("weir_generator_transmit_errors",
        "Frames that the port took and that its device did not carry.", |it| count(it.tx_errors)),
    MetricRow::counter("weir_generator_receive_packets", "Frames that came.",
        |it| count(it.rx_packets)),
    MetricRow::counter("weir_generator_receive_bytes", "Bytes of frames that came, with FCS.",
        |it| count(it.rx_bytes)),
    MetricRow::counter("weir_generator_foreign_packets",
        "Frames that came without a number of the generator's streams.", |it| count(it.rx_foreign)),
    MetricRow::counter("weir_generator_receive_dropped",
        "Frames that the device lost for want of room.", |it| count(it.rx_drops)),
    MetricRow::counter("weir_generator_receive_errors", "Frames that arrived broken.",
        |it| count(it.rx_errors)),
];

/// Every metric of the generator, without samples: what `--metrics` serves.
#[must_use]
pub fn declared() -> Vec<Family> {
    families(&[])
}

fn families(ports: &[SessionPortCounts]) -> Vec<Family> {
    let names = &["port", "name"];
    let mut labelled = Vec::new();
    for (index, port) in ports.iter().enumerate() {
        labelled.push((Labels::new(names, &[&index, &port.name]), port));
    }
    let mut all = of_process("gen");
    all.extend(table(PORTS, names, &labelled));
    all
}

/// Serves the counts of a session's ports until the server is dropped.
///
/// # Errors
/// When it cannot listen there.
pub(crate) fn serve_metrics(
    address: SocketAddr,
    ports: CountsReader,
) -> Result<MetricsServer, MetricsError> {
    serve(address, move || std::future::ready(Some(families(&ports.read()))))
}
