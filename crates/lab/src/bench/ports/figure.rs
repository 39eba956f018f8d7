//! The rows of `weir bench ports`: which figure of which scenario each one is.
//!
//! A row's figures come from one scenario, at points of its axes; a figure is made of a trial's
//! values and of nothing else.

use programs::tools::Tool;

use crate::results::{CellResults, TrialRecord};
use crate::stall;

/// A figure of a row, its unit, and whether it is held against that of others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figure {
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    pub(super) is_compared: bool,
    /// Point of the measurement: values of the scenario's axes.
    pub(super) at: &'static [(&'static str, &'static str)],
    /// Its value in a trial.
    value: fn(&TrialRecord) -> Option<f64>,
}

/// A row, or some that one measurement gives.
pub(super) struct RowKind {
    pub(super) name: &'static str,
    pub(super) scenario: &'static str,
    pub(super) figures: &'static [Figure],
    /// The program of others that it needs.
    pub(super) tool: Option<Tool>,
    /// Whether packets are forwarded.
    pub(super) is_traffic: bool,
}

const fn figure(
    name: &'static str,
    unit: &'static str,
    at: &'static [(&'static str, &'static str)],
    value: fn(&TrialRecord) -> Option<f64>,
) -> Figure {
    Figure { name, unit, is_compared: true, at, value }
}

/// One that is not held against others.
const fn alone(
    name: &'static str,
    unit: &'static str,
    value: fn(&TrialRecord) -> Option<f64>,
) -> Figure {
    shown(name, unit, &[], value)
}

/// The same, at a point of the measurement.
const fn shown(
    name: &'static str,
    unit: &'static str,
    at: &'static [(&'static str, &'static str)],
    value: fn(&TrialRecord) -> Option<f64>,
) -> Figure {
    Figure { name, unit, is_compared: false, at, value }
}

const fn row(name: &'static str, scenario: &'static str, figures: &'static [Figure]) -> RowKind {
    RowKind { name, scenario, figures, tool: None, is_traffic: true }
}

const fn tcp(name: &'static str, figures: &'static [Figure]) -> RowKind {
    RowKind { tool: Some(Tool::Iperf3), ..row(name, "ports-tcp", figures) }
}

/// A metric of a trial times `factor`.
fn scaled(trial: &TrialRecord, metric: &str, factor: f64) -> Option<f64> {
    Some(trial.values.get(metric)? * factor)
}

fn tcp_gbps(trial: &TrialRecord) -> Option<f64> {
    scaled(trial, "tcp_mbps", 1e-3)
}

fn unpaced_kpps(trial: &TrialRecord) -> Option<f64> {
    scaled(trial, "unpaced_pps", 1e-3)
}

/// Echo requests that were not answered.
fn unanswered(trial: &TrialRecord) -> Option<f64> {
    let (sent, answered) = (trial.raw["sent"].as_f64()?, trial.raw["rtt_ms"].as_array()?.len());
    Some(sent - answered as f64)
}

/// Points of the measurement of short flows.
const SHORT_5K: &[(&str, &str)] = &[("flows", "5,000/s of 10 frames")];
const SHORT_10K: &[(&str, &str)] = &[("flows", "10,000/s of 3 frames")];
const SHORT_30K: &[(&str, &str)] = &[("flows", "30,000/s of 2 frames")];

fn short_lost(trial: &TrialRecord) -> Option<f64> {
    scaled(trial, "short_flows_lost_pct", 1.0)
}

fn short_cpu(trial: &TrialRecord) -> Option<f64> {
    scaled(trial, "short_flows_cpu_us", 1.0)
}

fn short_delay(trial: &TrialRecord) -> Option<f64> {
    scaled(trial, "short_flows_delay_us", 1.0)
}

/// All rows; those of the same scenario stand together.
pub(super) const ROWS: &[RowKind] = &[
    tcp("tcp_1", &[figure("tcp_1", "Gb/s", &[("streams", "1"), ("direction", "there")], tcp_gbps)]),
    tcp(
        "tcp_1_reverse",
        &[figure("tcp_1_reverse", "Gb/s", &[("streams", "1"), ("direction", "back")], tcp_gbps)],
    ),
    tcp("tcp_4", &[figure("tcp_4", "Gb/s", &[("streams", "4"), ("direction", "there")], tcp_gbps)]),
    tcp(
        "tcp_4_reverse",
        &[figure("tcp_4_reverse", "Gb/s", &[("streams", "4"), ("direction", "back")], tcp_gbps)],
    ),
    RowKind {
        tool: Some(Tool::Ping),
        ..row(
            "ping_avg",
            "ports-ping",
            &[
                figure("ping_avg", "us", &[], |trial| scaled(trial, "ping_avg_ms", 1e3)),
                alone("ping_lost", "requests", unanswered),
            ],
        )
    },
    RowKind {
        tool: Some(Tool::Iperf3),
        ..row(
            "udp64",
            "ports-datagrams",
            &[
                figure("udp64", "kpps", &[], |trial| scaled(trial, "datagrams_pps", 1e-3)),
                alone("udp64_offered", "kpps", |trial| {
                    scaled(trial, "datagrams_offered_pps", 1e-3)
                }),
            ],
        )
    },
    row(
        "udp64_flows",
        "ports-flows",
        &[
            figure("udp64_one_flow", "kpps", &[("flows", "one of 10,000")], unpaced_kpps),
            figure("udp64_10k_flows", "kpps", &[("flows", "10,000")], unpaced_kpps),
            figure(
                "udp64_61k_entries",
                "kpps",
                &[("flows", "953 through 61,000 entries, 64 tables")],
                unpaced_kpps,
            ),
        ],
    ),
    row(
        "fair_share",
        "ports-fair-share",
        &[
            figure("fair_share", "%", &[], |trial| scaled(trial, "fair_share_pct", 1.0)),
            alone("fair_share_left", "kpps", |trial| scaled(trial, "fair_share_left_pps", 1e-3)),
        ],
    ),
    row(
        "short_flows",
        "ports-short-flows",
        &[
            shown("short_flows_lost_5k_x10", "%", SHORT_5K, short_lost),
            shown("short_flows_cpu_5k_x10", "us", SHORT_5K, short_cpu),
            shown("short_flows_delay_5k_x10", "us", SHORT_5K, short_delay),
            shown("short_flows_lost_10k_x3", "%", SHORT_10K, short_lost),
            shown("short_flows_cpu_10k_x3", "us", SHORT_10K, short_cpu),
            shown("short_flows_delay_10k_x3", "us", SHORT_10K, short_delay),
            shown("short_flows_lost_30k_x2", "%", SHORT_30K, short_lost),
            shown("short_flows_cpu_30k_x2", "us", SHORT_30K, short_cpu),
            shown("short_flows_delay_30k_x2", "us", SHORT_30K, short_delay),
        ],
    ),
    row(
        "flow_changes",
        "ports-changes",
        &[
            figure("flow_changes", "changes/s", &[], |trial| scaled(trial, "flow_changes_ps", 1.0)),
            alone("flow_changes_wrong", "packets", |trial| {
                scaled(trial, "flow_changes_wrong", 1.0)
            }),
            alone("flow_changes_lost", "packets", |trial| scaled(trial, "flow_changes_lost", 1.0)),
        ],
    ),
    RowKind {
        is_traffic: false,
        ..row(
            "idle_cpu",
            "ports-idle",
            &[figure("idle_cpu", "%", &[], |trial| scaled(trial, "idle_cores", 100.0))],
        )
    },
];

impl RowKind {
    /// Remarks on the trials beside the figures.
    pub(super) fn remarks(&self, cells: &[CellResults]) -> Vec<String> {
        let mut remarks = Vec::new();
        for cell in cells {
            let trials = cell.trials.iter().filter(|trial| trial.error.is_none());
            for trial in trials {
                let unknown = trial.raw["rounds_without_room_at_a_host"].as_u64().unwrap_or(0);
                if unknown > 0 {
                    remarks.push(format!(
                        "{}: {}: in {unknown} of {} rounds a host's own socket had no room: their \
                         missing frames are not counted as lost",
                        self.name, cell.dut, trial.raw["rounds"]
                    ));
                }
            }
        }
        remarks
    }
}

/// So many repeats make a figure, where others were left out for stalls.
pub(super) const REPEATS_MIN: usize = 3;

/// The figure's value in each repeat, in order, or why there is none. A repeat has no value where
/// the machine stalled at every attempt; [`REPEATS_MIN`] with one are a figure then.
///
/// With `has_tier` the tier inside the kernel must have decided packets in each: else it is not
/// what was measured.
///
/// # Errors
/// The words for the row that stands in its place.
pub(super) fn values_of_repeats(
    cell: &CellResults,
    figure: &Figure,
    repeats: usize,
    has_tier: bool,
) -> Result<Vec<Option<f64>>, String> {
    let (mut values, mut last_stall) = (Vec::new(), None);
    for repeat in 0..repeats {
        match value_of_repeat(cell, figure, repeat, has_tier) {
            Ok(value) => values.push(Some(value)),
            Err(why) if stall::is_error(&why) => {
                values.push(None);
                last_stall = Some(why);
            }
            Err(why) => return Err(why),
        }
    }
    match last_stall {
        Some(why) if values.iter().flatten().count() < REPEATS_MIN => Err(why),
        Some(_) | None => Ok(values),
    }
}

fn value_of_repeat(
    cell: &CellResults,
    figure: &Figure,
    repeat: usize,
    has_tier: bool,
) -> Result<f64, String> {
    let of_repeat = || cell.trials.iter().filter(|trial| trial.start == repeat);
    let Some(trial) = of_repeat().find(|trial| trial.error.is_none()) else {
        let why = of_repeat().next_back().and_then(|trial| trial.error.clone());
        return Err(why.unwrap_or_else(|| format!("repeat {} has no trial", repeat + 1)));
    };
    if has_tier && trial.tier_hits.is_none_or(|hits| hits == 0) {
        return Err(match &trial.tier_error {
            Some(error) => format!("what the kernel tier has decided is not known: {error}"),
            None => "the kernel tier has decided nothing".to_owned(),
        });
    }
    (figure.value)(trial).ok_or_else(|| format!("its trial has no {}", figure.name))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{ROWS, values_of_repeats};
    use crate::campaign::catalogue;
    use crate::results::{CellResults, CellState, TrialRecord};

    fn trial(repeat: usize, ms: f64, error: Option<&str>, tier_hits: Option<u64>) -> TrialRecord {
        TrialRecord {
            method: "ping".to_owned(),
            start: repeat,
            error: error.map(str::to_owned),
            values: BTreeMap::from([("ping_avg_ms".to_owned(), ms)]),
            tier_hits,
            raw: serde_json::json!({ "sent": 3, "rtt_ms": [0.1, 0.2] }),
            ..<_>::default()
        }
    }

    fn cell(trials: Vec<TrialRecord>) -> CellResults {
        CellResults {
            dut: "weir-kernel".to_owned(),
            at: BTreeMap::new(),
            state: CellState::Measured,
            rows: Vec::new(),
            bounds: Vec::new(),
            distributions: Vec::new(),
            commands: Vec::new(),
            trials,
        }
    }

    #[test]
    fn every_row_is_of_a_scenario_that_has_its_points() {
        for row in ROWS {
            let scenario = catalogue::find(row.scenario).unwrap().swap_remove(0);
            let axes = scenario.axis_infos(false).unwrap();
            for (axis, value) in row.figures.iter().flat_map(|figure| figure.at) {
                let has =
                    axes.iter().any(|it| it.name == *axis && it.values.contains(&(*value).into()));
                assert!(has, "{}: {axis}={value}", row.name);
            }
        }
    }

    #[test]
    fn a_figure_has_a_value_in_every_repeat_or_none_at_all() {
        let row = ROWS.iter().find(|row| row.name == "ping_avg").unwrap();
        let [avg, lost] = [&row.figures[0], &row.figures[1]];
        let again = vec![
            trial(0, 9.0, Some("the machine stalled for 60 ms"), None),
            trial(0, 0.05, None, Some(7)),
            trial(1, 0.0625, None, Some(7)),
        ];
        let found = cell(again);
        assert_eq!(values_of_repeats(&found, avg, 2, true), Ok(vec![Some(50.0), Some(62.5)]));
        assert_eq!(values_of_repeats(&found, lost, 2, true), Ok(vec![Some(1.0), Some(1.0)]));
        assert!(values_of_repeats(&found, avg, 3, true).unwrap_err().contains("repeat 3"));
        let broken =
            cell(vec![trial(0, 0.05, None, Some(7)), trial(1, 1.0, Some("it ended"), None)]);
        assert_eq!(values_of_repeats(&broken, avg, 2, true), Err("it ended".to_owned()));
    }

    #[test]
    fn a_stalled_repeat_is_left_out_where_three_remain() {
        let avg = &ROWS.iter().find(|row| row.name == "ping_avg").unwrap().figures[0];
        let stalled = |repeat, ms: &str| {
            let error = format!("the machine stalled for {ms} ms");
            trial(repeat, 9.0, Some(&error), Some(7))
        };
        let mut trials = vec![
            trial(0, 0.05, None, Some(7)),
            stalled(1, "60"),
            stalled(1, "70"),
            stalled(1, "80"),
        ];
        trials.push(trial(2, 0.0625, None, Some(7)));
        let two = cell(trials.clone());
        let why = "the machine stalled for 80 ms".to_owned();
        assert_eq!(values_of_repeats(&two, avg, 3, true), Err(why));
        trials.push(trial(3, 0.075, None, Some(7)));
        let values = Ok(vec![Some(50.0), None, Some(62.5), Some(75.0)]);
        assert_eq!(values_of_repeats(&cell(trials.clone()), avg, 4, true), values);
        // What failed for another reason behind a stall is no stall.
        trials.push(trial(1, 9.0, Some("it ended"), None));
        let ended = Err("it ended".to_owned());
        assert_eq!(values_of_repeats(&cell(trials), avg, 4, true), ended);
    }

    #[test]
    fn a_kernel_tier_that_decided_nothing_has_no_figure() {
        let avg = &ROWS.iter().find(|row| row.name == "ping_avg").unwrap().figures[0];
        for hits in [None, Some(0)] {
            let idle = cell(vec![trial(0, 0.05, None, hits)]);
            assert!(
                values_of_repeats(&idle, avg, 1, true).unwrap_err().contains("decided nothing")
            );
            assert_eq!(values_of_repeats(&idle, avg, 1, false), Ok(vec![Some(50.0)]));
        }
        let mut unknown = trial(0, 0.05, None, None);
        unknown.tier_error = Some("no answer".to_owned());
        let reason = values_of_repeats(&cell(vec![unknown]), avg, 1, true).unwrap_err();
        assert_eq!(reason, "what the kernel tier has decided is not known: no answer");
    }
}
