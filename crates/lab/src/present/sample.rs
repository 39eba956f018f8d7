//! Made-up results for the tests of the forms: known figures, all states, and hostile texts.

use std::collections::BTreeMap;

use fastrand::Rng;
use serde::Deserialize;

use crate::limit::{Limit, Part, RULE};
use crate::results::{
    CellResults, CellState, Coordinates, FORMAT, MeasuredDistribution, ResultRow, Results, RunPart,
    ScenarioResults, TrialRecord, UpperLimit,
};

/// Measurements of each cell of the sample.
const STARTS: usize = 5;

/// A text that no form may pass on as it is.
pub(crate) const HOSTILE: &str =
    "</script><script>alert(1)</script> \"quoted\" 'single' |pipe| `tick`\nsecond & <b>line</b>";

pub(crate) fn at(pairs: &[(&str, &str)]) -> Coordinates {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// A cell without figures.
pub(crate) fn empty(dut: &str, at: &Coordinates, state: CellState) -> CellResults {
    CellResults {
        dut: dut.into(),
        at: at.clone(),
        state,
        commands: vec![format!("{dut} --start")],
        ..<_>::default()
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

fn around(noise: &mut Rng, centre: f64, spread: f64) -> Vec<f64> {
    let value = |_| (centre * (1.0 + spread * (noise.f64() - 0.5)) * 100.0).round() / 100.0;
    (0..STARTS).map(value).collect()
}

/// Delay in microseconds with a tail, as quantiles.
fn distribution(noise: &mut Rng, metric: &str, start: usize, base: f64) -> MeasuredDistribution {
    let shift = 1.0 + 0.06 * (noise.f64() - 0.5);
    let shares = (0..100).map(|index| f64::from(index) / 100.0).chain([0.999, 1.0]);
    let quantile = |share: f64| {
        let tail = 1.0 / (1.002 - share).powf(0.33);
        (share, (base * shift * (0.85 + 0.15 * tail) * 100.0).round() / 100.0)
    };
    let quantiles = shares.map(quantile).collect();
    MeasuredDistribution { metric: metric.into(), start, count: 20_000, quantiles }
}

fn hub(noise: &mut Rng) -> Vec<CellResults> {
    let cell = |(dut, scale): (&str, f64)| {
        let mut cell = empty(dut, &at(&[]), CellState::Measured);
        add(&mut cell, "ping_ms", None, &around(noise, 0.121 / scale, 0.1));
        add(&mut cell, "tcp_mbps", Some(Part::Port), &around(noise, 94.1, 0.002));
        add(&mut cell, "udp_mbps", Some(Part::Controller), &around(noise, 95.3 * scale, 0.01));
        for (metric, value) in [("tcp_mbps", 94.15), ("udp_mbps", 95.70)] {
            cell.bounds.push(UpperLimit { metric: metric.into(), value, by: "ports".into() });
        }
        cell
    };
    let skipped = CellState::Skipped("the budget of 60 s".into());
    let measured = [("weir", 1.0), ("ovs", 0.93)].into_iter().map(cell);
    measured.chain([empty("linux-bridge", &at(&[]), skipped)]).collect()
}

fn forwarding(noise: &mut Rng) -> Vec<CellResults> {
    let sizes = [64.0, 128.0, 512.0, 1280.0, 1518.0];
    let fills = [1.0, 1e3, 61e3_f64];
    let mut cell = |size: f64, fill: f64, (dut, top): (&str, f64)| {
        let (size_text, fill_text) = (size.to_string(), fill.to_string());
        let at = at(&[("size", &size_text), ("entries", &fill_text), ("fields", "1")]);
        if dut == "linux-bridge" && fill > 1.0 {
            let reason = "a Linux bridge has no flow entries".to_owned();
            return empty(dut, &at, CellState::NotSupported(reason));
        }
        if dut == "ovs" && (size, fill) == (1280.0, 61e3) {
            let reason = "ovs-vswitchd ended with signal 9\nlast line of its log";
            return empty(dut, &at, CellState::Failed(reason.into()));
        }
        let many = fill.log10();
        let slope = if dut == "ovs" { 0.09 } else { 0.02 };
        let rate = (top * (1.0 - slope * many)).min(1.9e9 / (8.0 * size + 300.0));
        let part = if rate < top * 0.6 { Part::Port } else { Part::Switch };
        let mut cell = empty(dut, &at, CellState::Measured);
        add(&mut cell, "rate_pps", Some(part), &around(noise, rate, 0.04));
        add(&mut cell, "cpu_pct", None, &around(noise, 55.0 + many * 4.0, 0.1));
        cell
    };
    let duts = [("weir", 1_420_000.0), ("ovs", 960_000.0), ("linux-bridge", 8e5)];
    let points = sizes.into_iter().flat_map(|size| fills.map(|fill| (size, fill)));
    points.flat_map(|(size, fill)| duts.map(|dut| cell(size, fill, dut))).collect()
}

fn delay(noise: &mut Rng) -> Vec<CellResults> {
    let mut cell = |kind: &str, (dut, base): (&str, f64)| {
        let at = at(&[("match", kind)]);
        if dut == "linux-bridge" && kind == "exact" {
            let reason = "iperf3 is not installed: apt-get install iperf3".to_owned();
            return empty(dut, &at, CellState::Missing(reason));
        }
        let mut cell = empty(dut, &at, CellState::Measured);
        let mut samples = around(noise, base, 0.06);
        if dut == "ovs" && kind == "MACs" {
            samples.truncate(1);
        }
        add(&mut cell, "delay_us", None, &samples);
        cell.rows[0].floor = Some(if dut == "linux-bridge" { 12.5 } else { 3.2 });
        let starts = 0..samples.len();
        cell.distributions.extend(starts.map(|start| distribution(noise, "delay_us", start, base)));
        if dut == "weir" {
            let mut stalled = cell.trials[0].clone();
            stalled.values.clear();
            stalled.stall_ms = 41.0;
            stalled.error = Some("the machine stalled for 41 ms".into());
            cell.trials.insert(0, stalled);
            cell.trials[1].attempt = 1;
        }
        cell
    };
    let duts = [("weir", 11.0), ("ovs", 17.0), ("linux-bridge", 9.4)];
    let points = [("port", 1.0), ("MACs", 1.05), ("exact", 1.1)].into_iter();
    points.flat_map(|(kind, k)| duts.map(|(dut, base)| cell(kind, (dut, base * k)))).collect()
}

/// A run without its cells.
#[derive(Deserialize)]
struct Sample {
    part: RunPart,
    scenarios: Vec<ScenarioResults>,
}

/// Results of three scenarios on three switches.
pub(crate) fn results() -> Results {
    let Sample { part, mut scenarios } = toml::from_str(include_str!("sample.toml")).unwrap();
    let mut noise = Rng::with_seed(26);
    let cells: [fn(&mut Rng) -> Vec<CellResults>; 3] = [hub, forwarding, delay];
    for (scenario, cells) in scenarios.iter_mut().zip(cells) {
        scenario.cells = cells(&mut noise);
    }
    Results {
        format: FORMAT,
        weir: part.weir,
        started: part.started,
        duration_s: part.duration_s.unwrap(),
        command: part.command,
        is_quick: true,
        machine: part.machine,
        machines: Vec::new(),
        parts: Vec::new(),
        programs: part.programs,
        switches: part.switches,
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
    // A name for each switch that tells it from the others.
    let renamed = |name: &str| match name {
        "weir" => HOSTILE.to_owned(),
        "ovs" => long.clone(),
        other => other.to_owned(),
    };
    for dut in &mut results.switches {
        dut.name = renamed(&dut.name);
    }
    for scenario in &mut results.scenarios {
        let own = [&mut scenario.title, &mut scenario.question, &mut scenario.background];
        let old = scenario.published.iter_mut().map(|published| &mut published.switch);
        for text in own.into_iter().chain([&mut scenario.source]).chain(old) {
            *text = HOSTILE.into();
        }
        scenario.conditions.insert(HOSTILE.into(), HOSTILE.into());
        for axis in &mut scenario.axes {
            axis.label = format!("{HOSTILE}{long}");
        }
        for metric in &mut scenario.metrics {
            metric.label = format!("{HOSTILE}{long}").into();
            metric.unit = HOSTILE.into();
        }
        for cell in &mut scenario.cells {
            cell.dut = renamed(&cell.dut);
            cell.commands = vec![HOSTILE.into(), long.clone()];
            cell.trials.iter_mut().for_each(|trial| trial.tool = HOSTILE.into());
            cell.bounds.iter_mut().for_each(|bound| bound.by = HOSTILE.into());
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
