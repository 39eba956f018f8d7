//! Bars of Weir's kernel ports, compared with the rows of `weir bench ports --bars`.
//!
//! A ratio to a peer holds on any machine; microseconds and shares of a core are asked for as they
//! were on the machine of the issue.

use crate::bench::bar::ThresholdOf;

/// Bar of one figure of one switch.
#[derive(Clone, Copy, Debug)]
pub(super) struct PortsBar {
    pub(super) row: &'static str,
    pub(super) dut: &'static str,
    /// Beside whom; nobody where the value itself is asked for.
    pub(super) peer: Option<&'static str>,
    pub(super) of: ThresholdOf,
    pub(super) limit: f64,
}

/// A figure that is held against another one of the same switch, under less.
#[derive(Clone, Copy, Debug)]
pub(super) struct SameSwitchPeer {
    pub(super) row: &'static str,
    /// The other figure.
    pub(super) figure: &'static str,
    /// Its name as a peer.
    pub(super) peer: &'static str,
}

/// All of these.
pub(super) const SAME_SWITCH_PEERS: &[SameSwitchPeer] = &[
    SameSwitchPeer { row: "udp64_10k_flows", figure: "udp64_one_flow", peer: "one flow" },
    SameSwitchPeer { row: "udp64_61k_entries", figure: "udp64_one_flow", peer: "one flow" },
];

const fn at_least(
    row: &'static str,
    dut: &'static str,
    peer: &'static str,
    limit: f64,
) -> PortsBar {
    PortsBar { row, dut, peer: Some(peer), of: ThresholdOf::RatioAtLeast, limit }
}

const fn value(row: &'static str, dut: &'static str, of: ThresholdOf, limit: f64) -> PortsBar {
    PortsBar { row, dut, peer: None, of, limit }
}

const KERNEL: &str = "weir-kernel";

/// Every bar.
pub(super) const ALL: &[PortsBar] = &[
    at_least("tcp_1", KERNEL, "linux-bridge", 0.9),
    at_least("tcp_1", KERNEL, "ovs-tso", 1.5),
    at_least("tcp_1", "weir", "ovs-tso", 1.0),
    at_least("tcp_1_reverse", KERNEL, "linux-bridge", 0.9),
    at_least("tcp_1_reverse", KERNEL, "ovs-tso", 1.5),
    at_least("tcp_1_reverse", "weir", "ovs-tso", 1.0),
    at_least("tcp_4", KERNEL, "linux-bridge", 0.9),
    at_least("tcp_4", KERNEL, "ovs-tso", 1.5),
    at_least("tcp_4", "weir", "ovs-tso", 1.0),
    at_least("tcp_4_reverse", KERNEL, "linux-bridge", 0.9),
    at_least("tcp_4_reverse", KERNEL, "ovs-tso", 1.5),
    at_least("tcp_4_reverse", "weir", "ovs-tso", 1.0),
    PortsBar {
        row: "ping_avg",
        dut: KERNEL,
        peer: Some("linux-bridge"),
        of: ThresholdOf::RatioAtMost,
        limit: 1.2,
    },
    value("ping_avg", "weir", ThresholdOf::ValueAtMost, 100.0),
    value("ping_avg", "weir-busy", ThresholdOf::ValueAtMost, 60.0),
    at_least("udp64", KERNEL, "linux-bridge", 0.9),
    at_least("udp64", "weir", "ovs", 1.5),
    at_least("udp64_10k_flows", KERNEL, "one flow", 0.85),
    at_least("udp64_61k_entries", KERNEL, "one flow", 0.85),
    value("flow_changes", KERNEL, ThresholdOf::ValueAtLeast, 50_000.0),
    value("flow_changes_wrong", KERNEL, ThresholdOf::LargestAtMost, 0.0),
    value("flow_changes_lost", KERNEL, ThresholdOf::LargestAtMost, 0.0),
    value("fair_share", "weir", ThresholdOf::ValueAtLeast, 80.0),
    value("fair_share", KERNEL, ThresholdOf::ValueAtLeast, 80.0),
    value("idle_cpu", KERNEL, ThresholdOf::ValueAtMost, 0.5),
];

#[cfg(test)]
mod tests {
    use super::{ALL, SAME_SWITCH_PEERS};
    use crate::bench::ports::DUTS;
    use crate::bench::ports::figure::ROWS;
    use crate::bench::ports::rows::is_weir;

    #[test]
    fn every_bar_has_a_measured_figure_and_a_measured_peer() {
        let is_figure =
            |name: &str| ROWS.iter().any(|row| row.figures.iter().any(|known| known.name == name));
        for bar in ALL {
            assert!(is_figure(bar.row) && is_weir(bar.dut) && DUTS.contains(&bar.dut), "{bar:?}");
            let is_switch = |peer: &str| DUTS.contains(&peer) && !is_weir(peer);
            let is_less = |peer: &str| {
                SAME_SWITCH_PEERS.iter().any(|it| it.row == bar.row && it.peer == peer)
            };
            assert!(bar.peer.is_none_or(|peer| is_switch(peer) || is_less(peer)), "{bar:?}");
        }
        assert!(SAME_SWITCH_PEERS.iter().all(|less| is_figure(less.row) && is_figure(less.figure)));
    }
}
