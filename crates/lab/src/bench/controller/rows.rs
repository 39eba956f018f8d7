//! Measurements of one controller, or of several in turns, as rows.
//!
//! A row is one figure: the median of the repeats and, beside a peer, the median of the ratios of
//! measurements that follow each other, with its 95 % interval. The worst that happened in any
//! repeat stands in every row: a busy emulator, messages that did not parse, packet-ins without an
//! answer.

use std::collections::BTreeMap;

use serde::Serialize;

use super::super::common;
use super::super::measure::{Pairs, median, rounded};
use super::super::peer::Beside;
use super::cpu::BenchLimit;
use super::trial::{Measured, TrialFigure};

/// One figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct FigureRow {
    /// Its name.
    pub(super) row: String,
    /// The median.
    pub(super) value: f64,
    /// The unit.
    pub(super) unit: &'static str,
    /// The least.
    pub(super) min: f64,
    /// The most.
    pub(super) max: f64,
    /// Number of its measurements.
    pub(super) repeats: usize,
    /// The limit in the worst repeat; of a silence there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) limit: Option<BenchLimit>,
    /// Cores that the controller's busiest thread used: the median.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) controller_core: Option<f64>,
    /// Cores that the emulator's busiest thread used: the median.
    pub(super) emulator_core: f64,
    /// Faults: the sum over all repeats.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) faults: BTreeMap<&'static str, u64>,
    /// The same of another controller.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub(super) beside: Option<Beside>,
}

impl FigureRow {
    /// Rows of one controller alone.
    pub(super) fn alone(name: &str, measured: &[Measured]) -> Vec<Self> {
        let figures = measured.first().map(|first| first.figures.clone()).unwrap_or_default();
        let row = |(index, figure): (usize, &TrialFigure)| Self::new(name, measured, index, figure);
        figures.iter().enumerate().map(row).collect()
    }

    /// Rows of a controller beside another, measured in turns.
    pub(super) fn beside(
        name: &str,
        ours: &[Measured],
        peer: &str,
        theirs: &[Measured],
    ) -> Vec<Self> {
        let mut rows = Self::alone(name, ours);
        for (index, row) in rows.iter_mut().enumerate() {
            let (ours, theirs) = (values(ours, index), values(theirs, index));
            row.beside = Some(Beside::of(peer, &Pairs { ours, theirs }));
        }
        rows
    }

    fn new(name: &str, measured: &[Measured], index: usize, figure: &TrialFigure) -> Self {
        let values = values(measured, index);
        let join = if figure.suffix.is_empty() { "" } else { "-" };
        let mut faults = BTreeMap::new();
        for (fault, count) in measured.iter().flat_map(Measured::faults) {
            *faults.entry(fault).or_default() += count;
        }
        let controller: Vec<f64> =
            measured.iter().filter_map(|one| Some(one.used.controller?.busiest)).collect();
        let emulator: Vec<f64> = measured.iter().map(|one| one.used.emulator.busiest).collect();
        Self {
            row: format!("{name}{join}{}", figure.suffix),
            value: rounded(median(&values)),
            unit: figure.unit,
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(0.0, f64::max),
            repeats: values.len(),
            limit: measured.iter().map(|one| one.limit).max().filter(|_| figure.has_limit),
            controller_core: (!controller.is_empty()).then(|| rounded(median(&controller))),
            emulator_core: rounded(median(&emulator)),
            faults,
            beside: None,
        }
    }
}

fn values(measured: &[Measured], index: usize) -> Vec<f64> {
    measured.iter().filter_map(|one| Some(one.figures.get(index)?.value)).collect()
}

impl common::Row for FigureRow {
    fn text(&self) -> String {
        let mut text = format!("{:32} {:>14} {:12}", self.row, self.value, self.unit);
        if self.repeats > 1 {
            text += &format!(" ({} to {}, {} times)", self.min, self.max, self.repeats);
        }
        if let Some(beside) = &self.beside {
            text += &beside.text();
        }
        if let Some(limit) = self.limit {
            text += &format!("; {}", limit.text());
            if let Some(core) = self.controller_core {
                text += &format!(", controller {:.0} %", 100.0 * core);
            }
            text += &format!(", emulator {:.0} % of a core", 100.0 * self.emulator_core);
        }
        for (fault, count) in &self.faults {
            text += &format!(", {count} {fault}");
        }
        text + "\n"
    }

    /// A figure that the emulator limited says nothing of the controller.
    fn is_good(&self) -> bool {
        self.limit != Some(BenchLimit::Emulator) && self.faults.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::FigureRow;
    use crate::bench::common::Row as _;
    use crate::bench::controller::cpu::{BenchLimit, CpuUse};
    use crate::bench::controller::trial::{Measured, TrialFigure};
    use emulator::Oddities;

    fn measured(value: f64, limit: BenchLimit, malformed: u64) -> Measured {
        let figures = vec![
            TrialFigure { suffix: "", value, unit: "responses/s", has_limit: true },
            TrialFigure {
                suffix: "answered",
                value: value / 2.0,
                unit: "packet-ins/s",
                has_limit: true,
            },
        ];
        let oddities = Oddities { malformed, ..Oddities::default() };
        Measured { figures, used: CpuUse::default(), limit, oddities }
    }

    #[test]
    fn a_row_has_the_median_the_peer_and_the_worst() {
        let fine = BenchLimit::Controller;
        let ours = [measured(20.0, fine, 0), measured(22.0, fine, 0), measured(21.0, fine, 0)];
        let theirs = [measured(10.0, fine, 0), measured(11.0, fine, 0), measured(10.5, fine, 0)];
        let rows = FigureRow::beside("throughput-16", &ours, "other", &theirs);
        assert_eq!(rows[1].row, "throughput-16-answered");
        assert_eq!((rows[0].value, rows[0].min, rows[0].max), (21.0, 20.0, 22.0));
        assert!(rows[0].is_good(), "{:?}", rows[0]);
        let line = serde_json::to_value(&rows[0]).unwrap();
        for (key, value) in [("peer", "other"), ("unit", "responses/s"), ("limit", "controller")] {
            assert_eq!(line[key], value, "{line}");
        }
        assert_eq!(line["ratio"].as_f64(), Some(2.0));
        assert!(line["low"].as_f64() <= Some(2.0) && line["high"].as_f64() >= Some(2.0), "{line}");
        assert!(rows[0].text().contains("ratio 2"), "{}", rows[0].text());
    }

    #[test]
    fn the_emulators_own_limit_and_wrong_messages_are_never_hidden() {
        let runs =
            [measured(9.0, BenchLimit::Controller, 0), measured(9.0, BenchLimit::Emulator, 3)];
        let rows = FigureRow::alone("throughput-1", &runs);
        assert!(!rows[0].is_good());
        let text = rows[0].text();
        assert!(text.contains("EMULATOR WAS THE LIMIT") && text.contains("3 malformed"), "{text}");
        let line = serde_json::to_value(&rows[0]).unwrap();
        assert_eq!((&line["limit"], &line["faults"]["malformed"]), (&"emulator".into(), &3.into()));
        assert!(line.get("peer").is_none(), "{line}");
    }
}
