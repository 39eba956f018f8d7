//! Measurements of several switches in turns, as rows: each figure of Weir beside that of every
//! other switch.
//!
//! A row is the median of the repeats; a ratio is the median of the ratios of one round, with its
//! 99 % interval. A switch that is not measured has no row here, and its absence is said elsewhere.

use serde::Serialize;

use super::bars::{self, Ask};
use super::dut::DutKind;
use crate::bench::bar::{Beside, Threshold};
use crate::bench::common;
use crate::bench::measure::{Pairs, median};
use crate::bench::outcome::rounded;

/// What one switch gave for one figure, round by round.
#[derive(Clone, Debug)]
pub(super) struct Samples {
    /// The figure's name.
    pub(super) row: &'static str,
    pub(super) unit: &'static str,
    /// Whether it is held against that of others.
    pub(super) is_compared: bool,
    pub(super) dut: DutKind,
    pub(super) values: Vec<f64>,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct PortsRow {
    row: &'static str,
    dut: &'static str,
    /// The median.
    value: f64,
    unit: &'static str,
    /// The least.
    min: f64,
    /// The most.
    max: f64,
    /// How often it was measured.
    repeats: usize,
    /// The same of another switch, or of the same one under less.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    beside: Option<Beside>,
    /// What is asked of it.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    bar: Option<Threshold>,
}

impl PortsRow {
    fn new(samples: &Samples) -> Self {
        let values = &samples.values;
        Self {
            row: samples.row,
            dut: samples.dut.name(),
            value: rounded(median(values)),
            unit: samples.unit,
            min: rounded(values.iter().copied().fold(f64::INFINITY, f64::min)),
            max: rounded(values.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
            repeats: values.len(),
            beside: None,
            bar: None,
        }
    }

    fn beside(samples: &Samples, peer: &str, theirs: &Samples) -> Self {
        let (ours, theirs) = (samples.values.clone(), theirs.values.clone());
        let beside = Some(Beside::of(peer, &Pairs { ours, theirs, again: 0 }));
        Self { beside, ..Self::new(samples) }
    }

    fn held_against(mut self, ask: &Ask) -> Self {
        let ratio = self.beside.as_ref().and_then(|beside| beside.ratio);
        self.bar = Some(Threshold::held(ask.bar, ask.of, (self.value, self.max), ratio));
        self
    }
}

/// The lines of all figures, one for each peer, and one for each thing that is asked of a figure
/// where `asks` has some.
pub(super) fn lines(all: &[Samples], asks: &[Ask]) -> Vec<PortsRow> {
    all.iter().flat_map(|samples| lines_of(samples, all, asks)).collect()
}

fn lines_of(samples: &Samples, all: &[Samples], asks: &[Ask]) -> Vec<PortsRow> {
    let asked = |peer: Option<&str>| -> Vec<&Ask> {
        let is_meant =
            |ask: &&Ask| ask.row == samples.row && ask.dut == samples.dut && ask.peer == peer;
        asks.iter().filter(is_meant).collect()
    };
    let mut lines: Vec<PortsRow> =
        asked(None).iter().map(|ask| PortsRow::new(samples).held_against(ask)).collect();
    for (peer, theirs) in peers(samples, all) {
        let line = PortsRow::beside(samples, peer, theirs);
        let asked = asked(Some(peer));
        if asked.is_empty() {
            lines.push(line);
        } else {
            lines.extend(asked.iter().map(|ask| line.clone().held_against(ask)));
        }
    }
    if lines.is_empty() {
        lines.push(PortsRow::new(samples));
    }
    lines
}

/// What Weir's figure is held against: the same of others, and the same switch under less.
fn peers<'a>(samples: &Samples, all: &'a [Samples]) -> Vec<(&'static str, &'a Samples)> {
    if !samples.dut.is_weir() || !samples.is_compared {
        return Vec::new();
    }
    let others = all.iter().filter(|other| other.row == samples.row && !other.dut.is_weir());
    let under_less = bars::UNDER_LESS.iter().filter(|less| less.row == samples.row);
    let under_less = under_less.filter_map(|less| {
        let is_it = |other: &&Samples| other.row == less.than && other.dut == samples.dut;
        Some((less.peer, all.iter().find(is_it)?))
    });
    others.map(|other| (other.dut.name(), other)).chain(under_less).collect()
}

impl common::Row for PortsRow {
    fn text(&self) -> String {
        let mut text =
            format!("{:22} {:13} {:>11} {:9}", self.row, self.dut, self.value, self.unit);
        if self.repeats > 1 {
            text += &format!(" ({} to {}, {} times)", self.min, self.max, self.repeats);
        }
        text += &self.beside.as_ref().map(Beside::text).unwrap_or_default();
        text += &self.bar.as_ref().map(Threshold::text).unwrap_or_default();
        text + "\n"
    }

    fn is_good(&self) -> bool {
        self.bar.is_none_or(|bar| bar.met)
    }
}

#[cfg(test)]
mod tests {
    use super::{Samples, lines};
    use crate::bench::bar::ThresholdOf;
    use crate::bench::common::Row as _;
    use crate::bench::ports::bars::Ask;
    use crate::bench::ports::dut::DutKind;

    fn samples(row: &'static str, dut: DutKind, values: &[f64]) -> Samples {
        Samples { row, unit: "Gb/s", is_compared: true, dut, values: values.to_vec() }
    }

    #[test]
    fn weir_is_held_against_each_other_switch_and_others_against_nobody() {
        let all = [
            samples("tcp_1", DutKind::Weir, &[8.0, 10.0, 9.0]),
            samples("tcp_1", DutKind::WeirKernel, &[16.0, 20.0, 18.0]),
            samples("tcp_1", DutKind::LinuxBridge, &[16.0, 20.0, 18.0]),
            samples("tcp_1", DutKind::OvsTso, &[4.0, 5.0, 4.5]),
            samples("tcp_4", DutKind::OvsTso, &[1.0, 1.0, 1.0]),
        ];
        let lines = lines(&all, &[]);
        let peers: Vec<_> = lines
            .iter()
            .map(|line| (line.dut, line.beside.as_ref().map(|beside| beside.peer.as_str())))
            .collect();
        let (bridge, tso) = (Some("linux-bridge"), Some("ovs-tso"));
        assert_eq!(
            peers,
            [
                ("weir", bridge),
                ("weir", tso),
                ("weir-kernel", bridge),
                ("weir-kernel", tso),
                ("linux-bridge", None),
                ("ovs-tso", None),
                ("ovs-tso", None),
            ]
        );
        let json = serde_json::to_value(&lines[1]).unwrap();
        for (key, value) in [("value", 9.0), ("peer_value", 4.5), ("min", 8.0), ("ratio", 2.0)] {
            assert_eq!(json[key], value, "{json}");
        }
        assert!(json["low"].as_f64() <= Some(2.0) && json["high"].as_f64() >= Some(2.0), "{json}");
        assert!(json.get("met").is_none() && lines.iter().all(|line| line.is_good()));
        let text = lines[1].text();
        assert!(text.contains("9 Gb/s") && text.contains("ovs-tso 4.5, ratio 2 ("), "{text}");
    }

    #[test]
    fn a_bar_is_held_against_the_peer_that_it_names() {
        let all = [
            samples("tcp_1", DutKind::Weir, &[9.0, 9.0]),
            samples("tcp_1", DutKind::LinuxBridge, &[18.0, 18.0]),
            samples("tcp_1", DutKind::OvsTso, &[9.0, 9.0]),
        ];
        let ask = |peer, of, bar| Ask { row: "tcp_1", dut: DutKind::Weir, peer, of, bar };
        let asks = [
            ask(Some("ovs-tso"), ThresholdOf::RatioAtLeast, 1.0),
            ask(Some("linux-bridge"), ThresholdOf::RatioAtLeast, 0.9),
            ask(None, ThresholdOf::ValueAtMost, 9.5),
        ];
        let lines = lines(&all, &asks);
        let weir: Vec<_> = lines.iter().filter(|line| line.dut == "weir").collect();
        let met: Vec<_> = weir.iter().map(|line| line.bar.map(|bar| bar.met)).collect();
        assert_eq!(met, [Some(true), Some(false), Some(true)], "{lines:?}");
        assert!(weir[0].beside.is_none() && !weir[1].is_good());
        assert!(weir[1].text().contains("bar: ratio at least 0.9, NOT MET"), "{}", weir[1].text());
    }

    #[test]
    fn many_flows_are_held_against_one_flow_of_the_same_switch() {
        let all = [
            samples("udp64_one_flow", DutKind::WeirKernel, &[100.0, 100.0]),
            samples("udp64_10k_flows", DutKind::WeirKernel, &[90.0, 90.0]),
            samples("udp64_one_flow", DutKind::Weir, &[50.0, 50.0]),
        ];
        let lines = lines(&all, &[]);
        let beside = lines[1].beside.as_ref().unwrap();
        assert_eq!((beside.peer.as_str(), beside.ratio), ("one flow", Some(0.9)));
        assert!(lines[0].beside.is_none() && lines[2].beside.is_none());
    }
}
