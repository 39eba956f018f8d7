//! The metrics of the controller: a row for each of its counts.

use crate::handle::Handle;
use crate::stats::Stats;
use metrics::{Family, Labels, MetricRow, MetricsError, count, of_process, table};
use std::net::SocketAddr;

#[rustfmt::skip]
const ROWS: &[MetricRow<Stats>] = &[
    MetricRow::gauge("weir_controller_switches", "Switches that are ready.",
        |it| count(it.switches)),
    MetricRow::counter("weir_controller_packet_ins", "Packet-ins received.",
        |it| count(it.packet_ins)),
    MetricRow::counter("weir_controller_packet_ins_dropped",
        "Packet-ins that no handler saw, since the switch does not take messages fast enough.",
        |it| count(it.packet_ins_dropped)),
    MetricRow::counter("weir_controller_packet_ins_held_back",
        "Packet-ins that no handler saw, since another controller is the master.",
        |it| count(it.held_back)),
    MetricRow::counter("weir_controller_packet_ins_not_forwarded",
        "Packet-ins whose packet an app could not forward.", |it| count(it.not_forwarded)),
    MetricRow::counter("weir_controller_packet_outs", "Packet-outs sent.",
        |it| count(it.packet_outs)),
    MetricRow::counter("weir_controller_flow_mods", "Flow-mods sent.", |it| count(it.flow_mods)),
    MetricRow::counter("weir_controller_refused",
        "Wrong messages of switches, answered by an error.",
        |it| count(it.refused)),
    MetricRow::counter("weir_controller_unsent", "Messages of apps that could not be sent.",
        |it| count(it.unsent)),
    MetricRow::counter("weir_controller_errors",
        "Errors of switches about messages of the controller.",
        |it| count(it.errors)),
    MetricRow::counter("weir_controller_unanswered", "Requests without an answer in time.",
        |it| count(it.unanswered)),
    MetricRow::counter("weir_controller_beyond_bounds",
        "Ports and timers left out, of switches that had as many as may be.",
        |it| count(it.beyond_bounds)),
    MetricRow::counter("weir_controller_commands_full",
        "Messages of handles left out, since the switch does not take what it is sent.",
        |it| count(it.commands_full)),
    MetricRow::counter("weir_controller_events_lagged",
        "Events that those who watch by a handle were too slow for.",
        |it| count(it.events_lagged)),
];

/// Every metric of the controller, without the counts: what `--metrics` serves.
#[must_use]
pub fn declared() -> Vec<Family> {
    families(&Stats::default())
}

fn families(stats: &Stats) -> Vec<Family> {
    let mut all = of_process("controller");
    all.extend(table(ROWS, &[], &[(Labels::default(), stats)]));
    all
}

/// Serves the counts of a controller until the server is dropped.
///
/// # Errors
/// When it cannot listen there.
pub(crate) fn serve_metrics(
    address: SocketAddr,
    handle: Handle,
) -> Result<impl Sized, MetricsError> {
    metrics::serve(address, move || std::future::ready(Some(families(&handle.stats()))))
}
