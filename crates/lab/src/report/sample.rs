//! A made-up report for the tests of its forms.

use openflow::Version;

use super::{Cell, CellKey, FORMAT, Measurement, Report, SampleRecord, State};
use crate::ceilings::Ceilings;
use crate::controller::AppKind;
use crate::facts::Machine;
use crate::limit::{RULE, limiting};
use crate::load::{LinkId, LinkLoad, Load, ProcessLoad, ProcessRole};
use crate::method::{self, Timing};
use crate::rate::LinkRate;
use crate::tools::Program;

/// A report with `count` cells; the last of more than four has its switch missing.
pub(super) fn report(count: usize) -> Report {
    Report {
        format: FORMAT,
        scenario: "packet-in-hub".into(),
        question: "What does <it> cost?".into(),
        started: "2026-11-20T12:00:00Z".into(),
        duration_s: 61.5,
        repeats: 3,
        idle_repeats: 3,
        timing: Timing::quick(),
        machine: Machine {
            cpu: "A CPU".into(),
            cores: 2,
            memory_mib: 24_000,
            kernel: "Linux 6.1".into(),
            os: "An OS & more".into(),
            virtual_machine: true,
            load_average: "0.10".into(),
        },
        programs: vec![Program {
            name: "iperf3".into(),
            version: "iperf 3.12".into(),
            path: "/usr/bin/iperf3".into(),
        }],
        notes: vec!["A note.".into()],
        rule: RULE.into(),
        cells: (0..count).map(|index| cell(index, count > 4 && index + 1 == count)).collect(),
    }
}

fn cell(index: usize, missing: bool) -> Cell {
    let app = if index.is_multiple_of(2) { AppKind::Hub } else { AppKind::LearningSwitch };
    let rate = LinkRate(Some(100_000_000));
    let dut = if index < 2 { "weir" } else { "ovs" };
    let reason = "ovs-vswitchd not installed: apt-get install openvswitch-switch";
    Cell {
        key: CellKey {
            dut: dut.into(),
            controller: if index < 2 { "weir" } else { "os-ken" }.into(),
            app,
            version: Version::V1_0,
            port_rate: rate,
            control_rate: LinkRate(None),
        },
        state: if missing { State::Missing(reason.into()) } else { State::Measured },
        ceilings: Ceilings::new(rate.0, None, Version::V1_0, true),
        commands: vec!["weir switch".into()],
        measurements: method::ALL
            .iter()
            .map(|method| measurement(*method, index, missing))
            .collect(),
    }
}

fn measurement(method: &dyn method::Method, index: usize, missing: bool) -> Measurement {
    let mut measurement = Measurement::new(method);
    for repeat in (0..3).take_while(|_| !missing) {
        let values: Vec<(&'static str, f64)> = method
            .metrics()
            .iter()
            .map(|metric| {
                let base = if metric.id == "tcp_mbps" { 94.1 } else { 10.0 * (index + 1) as f64 };
                (metric.id, base + 0.05 * (repeat as f64 - 1.0))
            })
            .collect();
        let load = load(if method.saturates() { 0.99 } else { 0.1 });
        let limit = method.saturates().then(|| limiting(&load, None));
        let raw = serde_json::json!({ "quantiles_us": [[0.0, 50.0], [0.5, 80.0], [1.0, 900.0]] });
        measurement.add(&values, SampleRecord { repeat, load: Some(load), limit, raw });
    }
    measurement.tools.push("a tool".into());
    measurement
}

fn load(port: f64) -> Load {
    Load {
        window_s: 1.0,
        links: vec![LinkLoad {
            id: LinkId::Port2Out,
            rate_bps: Some(100_000_000),
            used_bps: port * 1e8,
            utilisation: Some(port),
            packets_ps: 8_000.0,
            drops: 3,
        }],
        processes: vec![ProcessLoad {
            role: ProcessRole::Switch,
            name: "weir-switch".into(),
            cpu_cores: 0.4,
            thread_cores: 0.4,
            thread: "worker".into(),
            saturation: 0.4,
        }],
        tools_cores: 0.2,
        machine: 0.6,
        cores: 2,
    }
}
