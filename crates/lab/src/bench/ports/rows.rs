//! Measurements of several switches in turns, as rows: each figure of Weir beside that of every
//! other switch.
//!
//! A row is the median of the repeats; a ratio is the median of the ratios of one round, with its
//! 95 % interval. A repeat that was left out for stalls is in no pair. A switch that is not
//! measured has no row here, and its absence is said elsewhere.

use serde::Serialize;

use super::figure::REPEATS_MIN;
use crate::bench::common;
use crate::bench::measure::{Pairs, median};
use crate::bench::outcome::rounded;
use crate::bench::peer::Beside;

/// A figure that stands beside another one of the same switch, under less.
#[derive(Clone, Copy, Debug)]
struct SameSwitchPeer {
    row: &'static str,
    /// The other figure.
    figure: &'static str,
    /// Its name as a peer.
    peer: &'static str,
}

/// All of these.
const SAME_SWITCH_PEERS: &[SameSwitchPeer] = &[
    SameSwitchPeer { row: "udp64_10k_flows", figure: "udp64_one_flow", peer: "one flow" },
    SameSwitchPeer { row: "udp64_61k_entries", figure: "udp64_one_flow", peer: "one flow" },
];

/// Values of one switch for one figure, round by round.
#[derive(Clone, Debug)]
pub(super) struct Samples {
    /// The figure's name.
    pub(super) row: &'static str,
    pub(super) unit: &'static str,
    /// Whether it stands beside that of others.
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
        }
    }

    fn beside(samples: &Samples, peer: &str, theirs: &Samples) -> Self {
        let peer_value = rounded(median(&theirs.measured()));
        let beside = Beside { peer_value, ..Beside::of(peer, &samples.pairs(theirs)) };
        Self { beside: Some(beside), ..Self::new(samples) }
    }
}

/// Whether a switch is Weir, which stands beside all that are not.
pub(super) fn is_weir(dut: &str) -> bool {
    dut.starts_with("weir")
}

/// The lines of all figures, one for each peer.
pub(super) fn lines(all: &[Samples]) -> Vec<PortsRow> {
    all.iter().flat_map(|samples| lines_of(samples, all)).collect()
}

fn lines_of(samples: &Samples, all: &[Samples]) -> Vec<PortsRow> {
    let peers = peers(samples, all).into_iter();
    let lines: Vec<_> =
        peers.map(|(peer, theirs)| PortsRow::beside(samples, peer, theirs)).collect();
    if lines.is_empty() { vec![PortsRow::new(samples)] } else { lines }
}

/// Peers of Weir's figure: the same of others, and the same switch under less.
fn peers<'a>(samples: &Samples, all: &'a [Samples]) -> Vec<(&'static str, &'a Samples)> {
    if !is_weir(samples.dut) || !samples.is_compared {
        return Vec::new();
    }
    let others = all.iter().filter(|other| other.row == samples.row && !is_weir(other.dut));
    let own = SAME_SWITCH_PEERS.iter().filter(|own| own.row == samples.row);
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
        text + "\n"
    }

    fn is_good(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::{Samples, lines};
    use crate::bench::common::Row as _;

    fn samples(row: &'static str, dut: &'static str, values: &[f64]) -> Samples {
        let values = values.iter().copied().map(Some).collect();
        Samples { row, unit: "Gb/s", is_compared: true, dut, values }
    }

    #[test]
    fn a_repeat_that_stalled_is_named_and_is_in_no_pair() {
        let mut ours = samples("tcp_1", "weir", &[10.0, 90.0, 10.0, 10.0, 10.0]);
        let mut theirs = samples("tcp_1", "linux-bridge", &[5.0, 5.0, 5.0, 5.0, 80.0]);
        (ours.values[1], theirs.values[4]) = (None, None);
        let found = lines(&[ours.clone(), theirs.clone()]);
        let json = serde_json::to_value(&found[0]).unwrap();
        for (key, value) in [("value", 10.0), ("max", 10.0), ("peer_value", 5.0), ("ratio", 2.0)] {
            assert_eq!(json[key], value, "{json}");
        }
        assert_eq!((&json["repeats"], &json["stalled"]), (&4.into(), &1.into()));
        let text = found[0].text();
        assert!(text.contains("4 times); 1 more left out: the machine stalled;"), "{text}");
        // Two of the five are left to be compared.
        theirs.values[0] = None;
        let few = serde_json::to_value(&lines(&[ours, theirs])[0]).unwrap();
        assert!(few["ratio"].is_null() && few["peer_value"] == 5.0, "{few}");
        let whole = lines(&[samples("tcp_1", "weir", &[1.0, 2.0])]);
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
        let lines = lines(&all);
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

        let text = lines[1].text();
        assert!(text.contains("9 Gb/s") && text.contains("ovs-tso 4.5, ratio 2 ("), "{text}");
    }

    #[test]
    fn many_flows_stand_beside_one_flow_of_the_same_switch() {
        let all = [
            samples("udp64_one_flow", "weir-kernel", &[100.0, 100.0]),
            samples("udp64_10k_flows", "weir-kernel", &[90.0, 90.0]),
            samples("udp64_one_flow", "weir", &[50.0, 50.0]),
        ];
        let lines = lines(&all);
        let beside = lines[1].beside.as_ref().unwrap();
        assert_eq!((beside.peer.as_str(), beside.ratio), ("one flow", Some(0.9)));
        assert!(lines[0].beside.is_none() && lines[2].beside.is_none());
    }
}
