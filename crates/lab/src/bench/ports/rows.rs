//! Measurements of several switches in turns, as rows: each figure of Weir beside that of every
//! other switch.
//!
//! A row is the median of the repeats; a ratio is the median of the ratios of one round, with its
//! 95 % interval. A repeat that was left out for stalls is in no pair. A switch that is not
//! measured has no row here, and its absence is said elsewhere.

use serde::Serialize;

use super::bars::{self, PortsBar};
use super::figure::{Figure, REPEATS_MIN};
use crate::bench::bar::{AbsentRow, Beside, Threshold};
use crate::bench::common;
use crate::bench::measure::{Pairs, median};
use crate::bench::outcome::rounded;

/// Values of one switch for one figure, round by round.
#[derive(Clone, Debug)]
pub(super) struct Samples {
    /// The figure's name.
    pub(super) row: &'static str,
    pub(super) unit: &'static str,
    /// Whether it is held against that of others.
    pub(super) is_compared: bool,
    pub(super) dut: &'static str,
    /// By repeat; none where the machine stalled at every attempt.
    pub(super) values: Vec<Option<f64>>,
}

impl Samples {
    fn measured(&self) -> Vec<f64> {
        self.values.iter().copied().flatten().collect()
    }

    /// The repeats that both have. Few of many are no ratio.
    fn pairs(&self, theirs: &Self) -> Pairs {
        let both = self.values.iter().zip(&theirs.values);
        let both: Vec<_> = both.filter_map(|(ours, theirs)| ours.zip(*theirs)).collect();
        let is_enough = both.len() == self.values.len() || both.len() >= REPEATS_MIN;
        let both = if is_enough { both } else { Vec::new() };
        let (ours, theirs) = both.into_iter().unzip();
        Pairs { ours, theirs, again: 0 }
    }
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
    /// Number of its measurements.
    repeats: usize,
    /// Number of further repeats that were left out, since the machine stalled at every attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    stalled: Option<usize>,
    /// The same of another switch, or of the same one under less.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    beside: Option<Beside>,
    /// Its bar.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    bar: Option<Threshold>,
}

impl PortsRow {
    fn new(samples: &Samples) -> Self {
        let values = &samples.measured();
        let stalled = samples.values.len() - values.len();
        Self {
            row: samples.row,
            dut: samples.dut,
            value: rounded(median(values)),
            unit: samples.unit,
            min: rounded(values.iter().copied().fold(f64::INFINITY, f64::min)),
            max: rounded(values.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
            repeats: values.len(),
            stalled: (stalled > 0).then_some(stalled),
            beside: None,
            bar: None,
        }
    }

    fn beside(samples: &Samples, peer: &str, theirs: &Samples) -> Self {
        let peer_value = rounded(median(&theirs.measured()));
        let beside = Beside { peer_value, ..Beside::of(peer, &samples.pairs(theirs)) };
        Self { beside: Some(beside), ..Self::new(samples) }
    }

    fn held_against(mut self, bar: &PortsBar) -> Self {
        let ratio = self.beside.as_ref().and_then(|beside| beside.ratio);
        self.bar = Some(Threshold::held(bar.limit, bar.of, (self.value, self.max), ratio));
        self
    }
}

/// Whether a switch is Weir, which is held against all that are not.
pub(super) fn is_weir(dut: &str) -> bool {
    dut.starts_with("weir")
}

/// The lines of all figures, one for each peer, and one for each thing that is asked of a figure
/// where `bars` has some.
pub(super) fn lines(all: &[Samples], bars: &[PortsBar]) -> Vec<PortsRow> {
    all.iter().flat_map(|samples| lines_of(samples, all, bars)).collect()
}

fn lines_of(samples: &Samples, all: &[Samples], bars: &[PortsBar]) -> Vec<PortsRow> {
    let bars_beside = |peer: Option<&str>| -> Vec<&PortsBar> {
        let is_meant =
            |bar: &&PortsBar| bar.row == samples.row && bar.dut == samples.dut && bar.peer == peer;
        bars.iter().filter(is_meant).collect()
    };
    let mut lines: Vec<PortsRow> =
        bars_beside(None).iter().map(|bar| PortsRow::new(samples).held_against(bar)).collect();
    for (peer, theirs) in peers(samples, all) {
        let line = PortsRow::beside(samples, peer, theirs);
        let bars = bars_beside(Some(peer));
        if bars.is_empty() {
            lines.push(line);
        } else {
            lines.extend(bars.iter().map(|bar| line.clone().held_against(bar)));
        }
    }
    if lines.is_empty() {
        lines.push(PortsRow::new(samples));
    }
    lines
}

/// A row for each bar of these figures that is held against nothing: its switch or its peer is not
/// among those that were measured.
pub(super) fn bars_not_held(
    figures: &[Figure],
    all: &[Samples],
    bars: &[PortsBar],
) -> Vec<AbsentRow> {
    let is_of_row = |bar: &&PortsBar| figures.iter().any(|figure| figure.name == bar.row);
    let missing = |bar: &PortsBar| {
        let samples = all.iter().find(|one| one.row == bar.row && one.dut == bar.dut);
        let has_peer = |samples: &Samples, peer: &str| {
            peers(samples, all).iter().any(|(measured, _)| *measured == peer)
        };
        match (samples, bar.peer) {
            (None, _) => Some(bar.dut),
            (Some(samples), Some(peer)) if !has_peer(samples, peer) => Some(peer),
            (Some(_), _) => None,
        }
    };
    let absent = |bar: &PortsBar| {
        let missing = missing(bar)?;
        let beside = bar.peer.map(|peer| format!(" beside {peer}")).unwrap_or_default();
        let limit = format!("{} {}{beside}", bar.of.text(), bar.limit);
        let absent = format!("its bar, {limit}, is not held: {missing} was not measured");
        Some(AbsentRow { row: bar.row, dut: Some(bar.dut), absent })
    };
    bars.iter().filter(is_of_row).filter_map(absent).collect()
}

/// Peers of Weir's figure: the same of others, and the same switch under less.
fn peers<'a>(samples: &Samples, all: &'a [Samples]) -> Vec<(&'static str, &'a Samples)> {
    if !is_weir(samples.dut) || !samples.is_compared {
        return Vec::new();
    }
    let others = all.iter().filter(|other| other.row == samples.row && !is_weir(other.dut));
    let own = bars::SAME_SWITCH_PEERS.iter().filter(|own| own.row == samples.row);
    let own = own.filter_map(|own| {
        let is_it = |other: &&Samples| other.row == own.figure && other.dut == samples.dut;
        Some((own.peer, all.iter().find(is_it)?))
    });
    others.map(|other| (other.dut, other)).chain(own).collect()
}

impl common::Row for PortsRow {
    fn text(&self) -> String {
        let mut text =
            format!("{:22} {:13} {:>11} {:9}", self.row, self.dut, self.value, self.unit);
        if self.repeats > 1 {
            text += &format!(" ({} to {}, {} times)", self.min, self.max, self.repeats);
        }
        if let Some(stalled) = self.stalled {
            text += &format!("; {stalled} more left out: the machine stalled");
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
    use super::{Samples, bars_not_held, lines};
    use crate::bench::bar::ThresholdOf;
    use crate::bench::common::Row as _;
    use crate::bench::ports::bars::PortsBar;
    use crate::bench::ports::figure::ROWS;

    fn samples(row: &'static str, dut: &'static str, values: &[f64]) -> Samples {
        let values = values.iter().copied().map(Some).collect();
        Samples { row, unit: "Gb/s", is_compared: true, dut, values }
    }

    #[test]
    fn a_repeat_that_stalled_is_named_and_is_in_no_pair() {
        let mut ours = samples("tcp_1", "weir", &[10.0, 90.0, 10.0, 10.0, 10.0]);
        let mut theirs = samples("tcp_1", "linux-bridge", &[5.0, 5.0, 5.0, 5.0, 80.0]);
        (ours.values[1], theirs.values[4]) = (None, None);
        let found = lines(&[ours.clone(), theirs.clone()], &[]);
        let json = serde_json::to_value(&found[0]).unwrap();
        for (key, value) in [("value", 10.0), ("max", 10.0), ("peer_value", 5.0), ("ratio", 2.0)] {
            assert_eq!(json[key], value, "{json}");
        }
        assert_eq!((&json["repeats"], &json["stalled"]), (&4.into(), &1.into()));
        let text = found[0].text();
        assert!(text.contains("4 times); 1 more left out: the machine stalled;"), "{text}");
        // Two of the five are left to be compared.
        theirs.values[0] = None;
        let few = serde_json::to_value(&lines(&[ours, theirs], &[])[0]).unwrap();
        assert!(few["ratio"].is_null() && few["peer_value"] == 5.0, "{few}");
        let whole = lines(&[samples("tcp_1", "weir", &[1.0, 2.0])], &[]);
        assert!(serde_json::to_value(&whole[0]).unwrap().get("stalled").is_none());
    }

    #[test]
    fn weir_alone_is_compared_with_each_other_switch() {
        let all = [
            samples("tcp_1", "weir", &[8.0, 10.0, 9.0]),
            samples("tcp_1", "weir-kernel", &[16.0, 20.0, 18.0]),
            samples("tcp_1", "linux-bridge", &[16.0, 20.0, 18.0]),
            samples("tcp_1", "ovs-tso", &[4.0, 5.0, 4.5]),
            samples("tcp_4", "ovs-tso", &[1.0, 1.0, 1.0]),
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
            samples("tcp_1", "weir", &[9.0, 9.0]),
            samples("tcp_1", "linux-bridge", &[18.0, 18.0]),
            samples("tcp_1", "ovs-tso", &[9.0, 9.0]),
        ];
        let bar = |peer, of, limit| PortsBar { row: "tcp_1", dut: "weir", peer, of, limit };
        let bars = [
            bar(Some("ovs-tso"), ThresholdOf::RatioAtLeast, 1.0),
            bar(Some("linux-bridge"), ThresholdOf::RatioAtLeast, 0.9),
            bar(None, ThresholdOf::ValueAtMost, 9.5),
        ];
        let lines = lines(&all, &bars);
        let weir: Vec<_> = lines.iter().filter(|line| line.dut == "weir").collect();
        let met: Vec<_> = weir.iter().map(|line| line.bar.map(|bar| bar.met)).collect();
        assert_eq!(met, [Some(true), Some(false), Some(true)], "{lines:?}");
        assert!(weir[0].beside.is_none() && !weir[1].is_good());
        assert!(weir[1].text().contains("bar: ratio at least 0.9, NOT MET"), "{}", weir[1].text());
    }

    #[test]
    fn a_bar_whose_switch_or_peer_was_not_measured_is_named() {
        let all = [samples("tcp_1", "weir", &[9.0, 9.0]), samples("tcp_1", "ovs-tso", &[9.0, 9.0])];
        let of = ThresholdOf::RatioAtLeast;
        let bar = |row, dut, peer| PortsBar { row, dut, peer, of, limit: 0.9 };
        let bars = [
            bar("tcp_1", "weir", Some("ovs-tso")),
            bar("tcp_1", "weir", Some("linux-bridge")),
            bar("tcp_1", "weir-kernel", Some("ovs-tso")),
            bar("tcp_1", "weir", None),
            bar("tcp_4", "weir", Some("linux-bridge")),
        ];
        let reasons: Vec<_> = bars_not_held(ROWS[0].figures, &all, &bars)
            .into_iter()
            .map(|row| (row.dut, row.absent))
            .collect();
        let text = |beside: &str, missing: &str| {
            format!(
                "its bar, ratio at least 0.9 beside {beside}, is not held: {missing} was not \
                 measured"
            )
        };
        assert_eq!(
            reasons,
            [
                (Some("weir"), text("linux-bridge", "linux-bridge")),
                (Some("weir-kernel"), text("ovs-tso", "weir-kernel")),
            ]
        );
    }

    #[test]
    fn many_flows_are_held_against_one_flow_of_the_same_switch() {
        let all = [
            samples("udp64_one_flow", "weir-kernel", &[100.0, 100.0]),
            samples("udp64_10k_flows", "weir-kernel", &[90.0, 90.0]),
            samples("udp64_one_flow", "weir", &[50.0, 50.0]),
        ];
        let lines = lines(&all, &[]);
        let beside = lines[1].beside.as_ref().unwrap();
        assert_eq!((beside.peer.as_str(), beside.ratio), ("one flow", Some(0.9)));
        assert!(lines[0].beside.is_none() && lines[2].beside.is_none());
    }
}
