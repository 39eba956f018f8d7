//! Made-up results for the tests of the forms: known figures, all states, and hostile texts.

use std::collections::BTreeMap;

use programs::tools::Program;

use crate::facts::Machine;
use crate::limit::{Limit, Part, RULE};
use crate::results::Better;
use crate::results::{
    AxisInfo, CellResults, CellState, Coordinates, DutInfo, FORMAT, MeasuredDistribution,
    MetricInfo, Plot, PlotKind, Published, ResultRow, Results, ScenarioResults, TrialRecord,
    UpperLimit,
};

/// Measurements of each cell of the sample.
const STARTS: usize = 5;

/// A text that no form may pass on as it is.
pub(crate) const HOSTILE: &str =
    "</script><script>alert(1)</script> \"quoted\" 'single' |pipe| `tick`\nsecond & <b>line</b>";

/// Numbers between 0 and 1 that are always the same.
pub(crate) struct Noise(u64);

impl Noise {
    pub(crate) fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}

fn texts(of: &[&str]) -> Vec<String> {
    of.iter().map(|text| (*text).to_owned()).collect()
}

fn axis(name: &str, label: &str, unit: &str, values: &[&str]) -> AxisInfo {
    let values = texts(values);
    AxisInfo { name: name.into(), label: label.into(), unit: unit.into(), values }
}

fn metric(id: &str, label: &str, unit: &str, better: Better, decimals: usize) -> MetricInfo {
    MetricInfo { id: id.into(), label: label.into(), unit: unit.into(), better, decimals }
}

pub(crate) fn at(pairs: &[(&str, &str)]) -> Coordinates {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn plot(kind: PlotKind, metric: &str, x: Option<&str>) -> Plot {
    let x = x.map(str::to_owned);
    Plot { kind, metric: metric.into(), x, log: kind == PlotKind::Sweep }
}

fn published(
    switch: &str,
    at: Coordinates,
    metric: &str,
    value: f64,
    to: Option<f64>,
) -> Published {
    Published { switch: switch.into(), at, metric: metric.into(), value, to }
}

/// A cell without figures.
pub(crate) fn empty(dut: &str, at: &Coordinates, state: CellState) -> CellResults {
    CellResults {
        dut: dut.into(),
        at: at.clone(),
        state,
        rows: Vec::new(),
        bounds: Vec::new(),
        distributions: Vec::new(),
        commands: vec![format!("{dut} --start")],
        trials: Vec::new(),
    }
}

/// Adds a metric: one good trial for each sample.
pub(crate) fn add(cell: &mut CellResults, metric: &str, part: Option<Part>, samples: &[f64]) {
    for (start, value) in samples.iter().enumerate() {
        cell.trials.push(TrialRecord {
            method: format!("method-{metric}"),
            start,
            tool: "weir generator".into(),
            stall_ms: 0.4,
            values: BTreeMap::from([(metric.to_owned(), *value)]),
            limit: part.map(|part| Limit {
                part,
                why: format!("{} at 97.1 % of what it can", part.label()),
                machine_full: false,
            }),
            ..<_>::default()
        });
    }
    cell.rows.push(ResultRow {
        metric: metric.to_owned(),
        samples: samples.to_vec(),
        starts: (0..samples.len()).collect(),
        resolutions: Vec::new(),
        floor: None,
        clock_error: None,
    });
}

fn around(noise: &mut Noise, centre: f64, spread: f64) -> Vec<f64> {
    let value = |_| (centre * (1.0 + spread * (noise.next() - 0.5)) * 100.0).round() / 100.0;
    (0..STARTS).map(value).collect()
}

/// Delay in microseconds with a tail, as quantiles.
fn distribution(noise: &mut Noise, metric: &str, start: usize, base: f64) -> MeasuredDistribution {
    let shift = 1.0 + 0.06 * (noise.next() - 0.5);
    let quantile = |index: u32| {
        let share = match index {
            100 => 0.999,
            101 => 1.0,
            index => f64::from(index) / 100.0,
        };
        let tail = 1.0 / (1.002 - share).powf(0.33);
        (share, (base * shift * (0.85 + 0.15 * tail) * 100.0).round() / 100.0)
    };
    let quantiles = (0..=101).map(quantile).collect();
    MeasuredDistribution { metric: metric.into(), start, count: 20_000, quantiles }
}

/// Forwarding by frame size, entries and match: sweeps, bars, published figures.
fn forwarding(noise: &mut Noise) -> ScenarioResults {
    let sizes = ["64", "128", "512", "1280", "1518"];
    let entries = ["1", "1000", "61000"];
    let mut cells = Vec::new();
    for size in sizes {
        for fill in entries {
            let at = at(&[("size", size), ("entries", fill), ("fields", "1")]);
            let bytes: f64 = size.parse().unwrap();
            let many: f64 = fill.parse::<f64>().unwrap().log10();
            for (dut, top) in [("weir", 1_420_000.0), ("ovs", 960_000.0), ("linux-bridge", 8e5)] {
                if dut == "linux-bridge" && fill != "1" {
                    let reason = "a Linux bridge has no flow entries".to_owned();
                    cells.push(empty(dut, &at, CellState::NotSupported(reason)));
                    continue;
                }
                if dut == "ovs" && size == "1280" && fill == "61000" {
                    let reason = "ovs-vswitchd ended with signal 9\nlast line of its log";
                    cells.push(empty(dut, &at, CellState::Failed(reason.into())));
                    continue;
                }
                let slope = if dut == "ovs" { 0.09 } else { 0.02 };
                let rate = (top * (1.0 - slope * many)).min(1.9e9 / (8.0 * bytes + 300.0));
                let part = if rate < top * 0.6 { Part::Port } else { Part::Switch };
                let mut cell = empty(dut, &at, CellState::Measured);
                add(&mut cell, "rate_pps", Some(part), &around(noise, rate, 0.04));
                add(&mut cell, "cpu_pct", None, &around(noise, 55.0 + many * 4.0, 0.1));
                cells.push(cell);
            }
        }
    }
    let rates = [("64", 143_000.0), ("128", 143_000.0), ("512", 123_000.0), ("1280", 96_000.0)];
    let old = "Open vSwitch, Xeon L5640";
    ScenarioResults {
        id: "cached-forwarding".into(),
        evaluation: Some("E4".into()),
        title: "Cached forwarding".into(),
        question: "How many packets a second does a switch forward when its caches know them?"
            .into(),
        background: "The published evaluation found 143,000 packets a second on 1 GbE.\n\nA frame \
                     of 64 bytes takes 84 byte times of the line."
            .into(),
        source: "[axes]\nsize = [64, 128, 512, 1280, 1518]\n".into(),
        conditions: at(&[("seed", "7"), ("trial", "2 s"), ("starts", "5"), ("testbed", "veth")]),
        axes: vec![
            axis("size", "frame size", "B", &sizes),
            axis("entries", "entries", "", &entries),
            axis("fields", "match fields", "", &["1"]),
        ],
        metrics: vec![
            metric("rate_pps", "Rate", "packets/s", Better::Higher, 0),
            metric("cpu_pct", "CPU of the switch", "%", Better::Lower, 1),
        ],
        plots: vec![
            plot(PlotKind::Sweep, "rate_pps", Some("size")),
            plot(PlotKind::Bars, "rate_pps", Some("size")),
        ],
        published: rates
            .iter()
            .map(|(size, rate)| published(old, at(&[("size", size)]), "rate_pps", *rate, None))
            .collect(),
        cells,
        ..<_>::default()
    }
}

/// Delay by match: distributions, floors, a single start.
fn delay(noise: &mut Noise) -> ScenarioResults {
    let kinds = ["port", "MACs", "exact"];
    let mut cells = Vec::new();
    for (index, kind) in kinds.iter().enumerate() {
        let at = at(&[("match", kind)]);
        for (dut, base) in [("weir", 11.0), ("ovs", 17.0), ("linux-bridge", 9.4)] {
            if dut == "linux-bridge" && *kind == "exact" {
                let reason = "iperf3 is not installed: apt-get install iperf3".to_owned();
                cells.push(empty(dut, &at, CellState::Missing(reason)));
                continue;
            }
            let mut cell = empty(dut, &at, CellState::Measured);
            let base = base * (1.0 + 0.05 * index as f64);
            let mut samples = around(noise, base, 0.06);
            if dut == "ovs" && *kind == "MACs" {
                samples.truncate(1);
            }
            add(&mut cell, "delay_us", None, &samples);
            let floor = if dut == "linux-bridge" { 12.5 } else { 3.2 };
            for row in &mut cell.rows {
                row.floor = Some(floor);
            }
            for start in 0..samples.len() {
                cell.distributions.push(distribution(noise, "delay_us", start, base));
            }
            if dut == "weir" {
                let mut stalled = cell.trials[0].clone();
                stalled.values.clear();
                stalled.stall_ms = 41.0;
                stalled.error = Some("the machine stalled for 41 ms".into());
                cell.trials.insert(0, stalled);
                cell.trials[1].attempt = 1;
            }
            cells.push(cell);
        }
    }
    let old = |switch: &str, low, high| published(switch, at(&[]), "delay_us", low, Some(high));
    ScenarioResults {
        id: "delay-by-match".into(),
        evaluation: Some("E5".into()),
        title: "Delay by kind of match".into(),
        question: "How much delay does a switch add, and does the kind of match matter?".into(),
        background: "One order of magnitude lay between the published switches.".into(),
        source: "[axes]\nmatch = [\"port\", \"MACs\", \"exact\"]\n".into(),
        conditions: at(&[("seed", "11"), ("probes", "20,000 at 2,000 a second")]),
        axes: vec![axis("match", "match", "", &kinds)],
        metrics: vec![metric("delay_us", "Delay, median", "µs", Better::Lower, 1)],
        plots: vec![
            plot(PlotKind::Bars, "delay_us", Some("match")),
            plot(PlotKind::Cdf, "delay_us", None),
        ],
        published: vec![
            old("Extreme x460", 121.0, 125.0),
            old("HP 2920", 1_049.0, 1_120.0),
            old("Open vSwitch 2.3.0", 508.0, 511.0),
        ],
        cells,
        ..<_>::default()
    }
}

/// One point, several metrics, and a switch for which there was no time.
fn hub(noise: &mut Noise) -> ScenarioResults {
    let nowhere = at(&[]);
    let mut cells = Vec::new();
    for (dut, scale) in [("weir", 1.0), ("ovs", 0.93)] {
        let mut cell = empty(dut, &nowhere, CellState::Measured);
        add(&mut cell, "ping_ms", None, &around(noise, 0.121 / scale, 0.1));
        add(&mut cell, "tcp_mbps", Some(Part::Port), &around(noise, 94.1, 0.002));
        add(&mut cell, "udp_mbps", Some(Part::Controller), &around(noise, 95.3 * scale, 0.01));
        for (metric, value) in [("tcp_mbps", 94.15), ("udp_mbps", 95.70)] {
            cell.bounds.push(UpperLimit { metric: metric.into(), value, by: "ports".into() });
        }
        cells.push(cell);
    }
    cells.push(empty("linux-bridge", &nowhere, CellState::Skipped("the budget of 60 s".into())));
    ScenarioResults {
        id: "packet-in-hub".into(),
        evaluation: Some("E1".into()),
        title: "Every packet through the controller".into(),
        question: "What does it cost when every packet goes through the controller?".into(),
        background: String::new(),
        source: String::new(),
        conditions: Coordinates::new(),
        axes: Vec::new(),
        metrics: vec![
            metric("ping_ms", "Ping, mean", "ms", Better::Lower, 3),
            metric("tcp_mbps", "TCP", "Mb/s", Better::Higher, 1),
            metric("udp_mbps", "UDP received", "Mb/s", Better::Higher, 1),
        ],
        plots: vec![plot(PlotKind::Bars, "udp_mbps", None)],
        published: vec![
            published("test 1 (1 Gb/s control link)", at(&[]), "tcp_mbps", 94.1, None),
            published("test 1 (1 Gb/s control link)", at(&[]), "udp_mbps", 95.3, None),
            published("test 1 (1 Gb/s control link)", at(&[]), "ping_ms", 1.346, None),
        ],
        cells,
        ..<_>::default()
    }
}

/// Results of three scenarios on three switches.
pub(crate) fn results() -> Results {
    let mut noise = Noise(0x5eed_1234_5678_9abc);
    let scenarios = vec![hub(&mut noise), forwarding(&mut noise), delay(&mut noise)];
    let dut = |name: &str, about: &str| DutInfo { name: name.into(), about: about.into() };
    Results {
        format: FORMAT,
        weir: "0.1.0".into(),
        started: "2026-11-23T08:00:00Z".into(),
        duration_s: 725.4,
        command: texts(&["weir", "lab", "run", "E1,E4,E5", "--dut", "weir,ovs,linux-bridge"]),
        is_quick: true,
        machine: Machine {
            id: String::new(),
            cpu: "A CPU @ 2.50GHz".into(),
            cores: 2,
            memory_mib: 24_000,
            kernel: "Linux 6.1".into(),
            os: "An OS 12".into(),
            virtual_machine: true,
            load_average: "0.10".into(),
            real_time_error: None,
        },
        machines: Vec::new(),
        parts: Vec::new(),
        programs: vec![Program {
            name: "ovs-vswitchd".into(),
            version: "ovs-vswitchd (Open vSwitch) 3.1.0".into(),
            path: "/usr/sbin/ovs-vswitchd".into(),
        }],
        switches: vec![
            dut("weir", "Weir's user-space switch"),
            dut("ovs", "Open vSwitch, user-space datapath"),
            dut("linux-bridge", "the kernel's bridge"),
        ],
        scenarios,
        notes: vec!["A note of the run.".into()],
        rule: RULE.into(),
    }
}

/// Results whose every text is hostile, with labels of 200 characters, a scenario without cells,
/// one without metrics, and a metric of one sample.
pub(crate) fn hostile() -> Results {
    let mut results = results();
    let long = "W".repeat(200);
    results.command.push(HOSTILE.into());
    results.notes.push(HOSTILE.into());
    results.machine.cpu = HOSTILE.into();
    results.programs[0].version = HOSTILE.into();
    results.switches[0].about = HOSTILE.into();
    for dut in &mut results.switches {
        dut.name = renamed(&dut.name, &long);
    }
    for scenario in &mut results.scenarios {
        for text in [&mut scenario.title, &mut scenario.question, &mut scenario.background] {
            *text = HOSTILE.into();
        }
        scenario.source = HOSTILE.into();
        scenario.conditions.insert(HOSTILE.into(), HOSTILE.into());
        for axis in &mut scenario.axes {
            axis.label = format!("{HOSTILE}{long}");
        }
        for metric in &mut scenario.metrics {
            metric.label = format!("{HOSTILE}{long}");
            metric.unit = HOSTILE.into();
        }
        for published in &mut scenario.published {
            published.switch = HOSTILE.into();
        }
        for cell in &mut scenario.cells {
            cell.dut = renamed(&cell.dut, &long);
            cell.commands = vec![HOSTILE.into(), long.clone()];
            for trial in &mut cell.trials {
                trial.tool = HOSTILE.into();
            }
            for bound in &mut cell.bounds {
                bound.by = HOSTILE.into();
            }
        }
    }
    let mut bare = results.scenarios[0].clone();
    bare.cells.clear();
    results.scenarios.push(bare);
    let mut failed = results.scenarios[0].clone();
    failed.metrics.clear();
    failed.cells =
        vec![empty(HOSTILE, &at(&[(HOSTILE, HOSTILE)]), CellState::Failed(HOSTILE.into()))];
    results.scenarios.push(failed);
    results
}

/// A name for each switch that tells it from the others.
fn renamed(name: &str, long: &str) -> String {
    match name {
        "weir" => HOSTILE.to_owned(),
        "ovs" => long.to_owned(),
        other => other.to_owned(),
    }
}

/// The samples as pages, for the tests in a browser and for a look by hand: `WEIR_WRITE_PAGES`
/// names the folder in which they are written.
#[test]
fn the_samples_are_pages() {
    for (name, results) in [("results.html", results()), ("hostile.html", hostile())] {
        let page = super::page(&results, None);
        assert!(page.trim_end().ends_with("</html>"), "{name}");
        if let Some(folder) = std::env::var_os("WEIR_WRITE_PAGES") {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(std::path::Path::new(&folder).join(name), page).unwrap();
        }
    }
}
