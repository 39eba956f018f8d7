//! The forwarding rate of a switch under other work, beside its rate without: all phases of a run.

use serde::Serialize;

use super::outcome::rounded;
use super::replay::Replayed;
use super::series::{Spread, dip_percent};
use crate::method::busy::{BusyPhase, PhasePair};
use stats::quantile;

/// Times of answers to echo requests, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Echoed {
    count: usize,
    p50_ms: f64,
    p99_ms: f64,
    max_ms: f64,
}

impl Echoed {
    /// Of the times in seconds; all 0 for none.
    fn of(times_s: impl Iterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = times_s.map(|time_s| 1e3 * time_s).collect();
        sorted.sort_by(f64::total_cmp);
        if sorted.is_empty() {
            return Self::default();
        }
        let at = |q| rounded(quantile(&sorted, q));
        Self { count: sorted.len(), p50_ms: at(0.5), p99_ms: at(0.99), max_ms: at(1.0) }
    }
}

/// All phases of one kind.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Phases {
    /// Millions of packets a second that left, window by window.
    pub(super) mpps: Spread,
    /// Number of windows of a tenth of a second.
    windows: usize,
    /// Packets that left.
    packets: u64,
    /// Packets for which there was no room at the port where they came in.
    missed: u64,
    /// Packets that came in and did not leave.
    lost: i64,
    /// Time in which the forwarding thread waited for its core, in milliseconds.
    kept_off_ms: f64,
    /// Answers to echo requests.
    echo: Echoed,
}

impl Phases {
    fn of(all: &[&BusyPhase]) -> Self {
        let mpps: Vec<f64> = all.iter().flat_map(|phase| phase.mpps.iter().copied()).collect();
        let echoes_s = all.iter().flat_map(|phase| phase.echoes_s.iter().copied());
        Self {
            mpps: Spread::of(&mpps),
            windows: mpps.len(),
            packets: all.iter().map(|phase| phase.packets).sum(),
            missed: all.iter().map(|phase| phase.missed).sum(),
            lost: all.iter().map(|phase| phase.lost).sum(),
            kept_off_ms: rounded(all.iter().map(|phase| phase.kept_off_ms).sum()),
            echo: Echoed::of(echoes_s),
        }
    }

    /// The lines for people.
    fn text(&self, what: &str) -> String {
        let Echoed { count, p50_ms, p99_ms, max_ms } = self.echo;
        format!(
            "    {what:10} {:8.3} Mpps ({:.3} to {:.3} in {} windows), {} missed, {} lost of {}; \
             kept off its core {:.1} ms\n               echo p50 {p50_ms:.3}, p99 {p99_ms:.3}, \
             longest {max_ms:.3} ms of {count}\n",
            self.mpps.median,
            self.mpps.min,
            self.mpps.max,
            self.windows,
            self.missed,
            self.lost,
            self.packets,
            self.kept_off_ms,
        )
    }
}

/// Phases in peace and phases with work, in turns.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Compared {
    pub(super) quiet: Phases,
    busy: Phases,
    /// Percent that the median window with work lacks to the median one in peace.
    dip_percent: f64,
    /// The same of the worst window with work.
    worst_percent: f64,
    /// Seconds of each phase with work.
    work_s: Spread,
}

impl Compared {
    /// Of all trials of a cell.
    ///
    /// # Errors
    /// They are of another method.
    pub(super) fn of(found: &Replayed) -> anyhow::Result<Self> {
        Ok(Self::of_pairs(&found.raw::<PhasePair>("compared")?))
    }

    fn of_pairs(all: &[PhasePair]) -> Self {
        let quiet = Phases::of(&all.iter().map(|pair| &pair.quiet).collect::<Vec<_>>());
        let busy = Phases::of(&all.iter().map(|pair| &pair.busy).collect::<Vec<_>>());
        Self {
            dip_percent: dip_percent(quiet.mpps.median, busy.mpps.median),
            worst_percent: dip_percent(quiet.mpps.median, busy.mpps.min),
            work_s: Spread::of(&all.iter().map(|pair| pair.work_s).collect::<Vec<_>>()),
            quiet,
            busy,
        }
    }

    /// Whether nothing was lost that was not lost in peace too.
    pub(super) fn is_good(&self) -> bool {
        self.busy.lost == 0 && self.quiet.lost == 0
    }

    /// The lines for people.
    pub(super) fn text(&self, work: &str) -> String {
        let (quiet, busy) = (self.quiet.text("in peace"), self.busy.text(work));
        format!(
            "{quiet}{busy}    dip        {:.2} % of the median window, {:.2} % in the worst\n",
            self.dip_percent, self.worst_percent
        )
    }
}

#[cfg(test)]
mod tests {
    use super::{BusyPhase, Compared, PhasePair};

    #[test]
    fn phases_add_up() {
        let busy = |mpps: &[f64], missed, lost, slowest_s| BusyPhase {
            mpps: mpps.to_vec(),
            echoes_s: vec![0.001, 0.001, slowest_s],
            packets: 100,
            missed,
            lost,
            kept_off_ms: 250.0,
        };
        let pair = |busy| PhasePair { busy, work_s: 1.0, ..PhasePair::default() };
        let all = [pair(busy(&[2.0, 4.0], 2, 0, 0.001)), pair(busy(&[3.0], 0, 1, 0.5))];
        let compared = Compared::of_pairs(&all);
        let found = &compared.busy;
        assert_eq!((found.packets, found.missed, found.lost), (200, 2, 1));
        assert_eq!((found.kept_off_ms, found.echo.count, found.windows), (500.0, 6, 3));
        assert_eq!((found.mpps.median, found.echo.p50_ms), (3.0, 1.0));
        let text = compared.text("changes");
        assert!(!compared.is_good() && text.contains("2 missed, 1 lost"), "{text}");
        assert!(text.contains("longest 500.000 ms of 6"), "{text}");
    }
}
