//! Exactness of the generator's rate, in every mode, from 1,000 frames a second to nine tenths of
//! the most that it reaches.
//!
//! The most of a mode is what leaves when far more is asked for: every frame has its due time, and
//! all are late. An error is that of the time between the first and the last departure, against
//! what the schedule says of these two; a rate that is not reached shows as one, since frames that
//! were given up are not counted.

use anyhow::{Result, ensure};
use generator::profile::{Arrival, Mode, Rate, StreamSpec};
use generator::session::SessionOptions;
use generator::statistics::TxStatistics;

use super::{Bench, Figure, LINE_BPS, greedy, mpps};

/// The rates, in frames a second; behind them comes a share of the most.
const RATES: [f64; 4] = [1e3, 1e4, 1e5, 1e6];

/// The share of the most that is still to be exact.
const SHARE: f64 = 0.9;

/// Frames of a burst.
const BURST: u64 = 10;

/// Ratio of the rate in a burst to the average.
const IN_BURST: f64 = 2.0;

/// Rate above that of any machine, to see the most.
const BEYOND: f64 = 4e8;

/// A way in which frames follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spacing {
    /// At equal distances.
    Constant,
    /// Ten at twice the rate, then a gap.
    Bursts,
    /// At exponentially distributed distances.
    Poisson,
}

impl Spacing {
    #[cfg(test)]
    pub(super) const ALL: [Self; 3] = [Self::Constant, Self::Bursts, Self::Poisson];

    fn word(self) -> &'static str {
        match self {
            Self::Constant => "constant",
            Self::Bursts => "bursts",
            Self::Poisson => "poisson",
        }
    }

    /// A stream of `pps` frames a second on average.
    fn spec(self, pps: f64) -> StreamSpec {
        let gap_us = BURST as f64 * 1e6 / pps * (1.0 - 1.0 / IN_BURST);
        let bursts = Mode::Bursts { count: u64::MAX, packets: BURST, gap_us };
        let (rate, mode, arrival) = match self {
            Self::Constant => (pps, Mode::Continuous, Arrival::Constant),
            Self::Bursts => (pps * IN_BURST, bursts, Arrival::Constant),
            Self::Poisson => (pps, Mode::Continuous, Arrival::Poisson(1)),
        };
        let rate = Rate::PacketsPerSecond(rate);
        StreamSpec { rate, mode, arrival, ..greedy(self.word(), false) }
    }

    /// When frame `number` is due after the first, in nanoseconds; on average where it is random.
    fn due_ns(self, number: u64, pps: f64) -> f64 {
        let interval_ns = 1e9 / pps;
        match self {
            Self::Constant | Self::Poisson => number as f64 * interval_ns,
            Self::Bursts => {
                let (bursts, rest) = (number / BURST, number % BURST);
                bursts as f64 * BURST as f64 * interval_ns + rest as f64 * interval_ns / IN_BURST
            }
        }
    }
}

/// Figures of one rate of one mode.
fn figures(spacing: Spacing, row: &str, pps: f64, seconds: f64, tx: &TxStatistics) -> Vec<Figure> {
    let packets = tx.traffic.packets;
    let accuracy = match spacing {
        Spacing::Constant | Spacing::Bursts => {
            let planned_ns = spacing.due_ns(packets.saturating_sub(1), pps);
            let error = planned_ns / tx.span_ns.max(1) as f64 - 1.0;
            Figure::new(format!("{row}_error"), 100.0 * error.abs(), "%")
        }
        // A Poisson process has a number of frames that deviates by its root.
        Spacing::Poisson => {
            let mean = pps * seconds;
            let deviation = (packets as f64 - mean) / mean.sqrt();
            Figure::new(format!("{row}_deviation"), deviation, "sigma")
        }
    };
    let gap = |which: &str, ns: u64| Figure::new(format!("{row}_gap_{which}"), ns as f64, "ns");
    vec![
        accuracy,
        Figure::new(format!("{row}_unsent"), tx.unsent as f64, "frames"),
        gap("p50", tx.gaps.p50_ns),
        gap("p99", tx.gaps.p99_ns),
        gap("max", tx.gaps.max_ns),
    ]
}

impl Bench {
    /// [`Bench::rate_errors_of`] frames at equal distances.
    pub(super) fn rate_constant(&mut self) -> Result<Vec<Figure>> {
        self.rate_errors_of(Spacing::Constant)
    }

    /// [`Bench::rate_errors_of`] bursts.
    pub(super) fn rate_bursts(&mut self) -> Result<Vec<Figure>> {
        self.rate_errors_of(Spacing::Bursts)
    }

    /// [`Bench::rate_errors_of`] frames at random distances.
    pub(super) fn rate_poisson(&mut self) -> Result<Vec<Figure>> {
        self.rate_errors_of(Spacing::Poisson)
    }

    /// Error of the departure rate in one mode.
    pub(super) fn rate_errors_of(&self, spacing: Spacing) -> Result<Vec<Figure>> {
        let word = spacing.word();
        let most = self.most_pps(spacing)?;
        let mut figures_of_mode =
            vec![Figure::new(format!("rate_{word}_most"), most / 1e6, "Mpps")];
        let share = format!("{word}_{:.0}_percent_of_most", 100.0 * SHARE);
        let fixed = RATES.iter().filter(|pps| **pps < SHARE * most);
        let rows = fixed.map(|pps| (format!("rate_{word}_{pps:.0}pps"), *pps));
        for (row, pps) in rows.chain([(format!("rate_{share}"), SHARE * most)]) {
            self.cancel.check()?;
            let tx =
                self.send_at(spacing.spec(pps), SessionOptions::default(), self.args.seconds)?;
            figures_of_mode.extend(figures(spacing, &row, pps, self.args.seconds, &tx));
        }
        Ok(figures_of_mode)
    }

    /// Frames a second that leave when more are asked for than any machine makes. None is given up
    /// and none is looked at for being late, which would cost time too.
    fn most_pps(&self, spacing: Spacing) -> Result<f64> {
        let options = SessionOptions {
            unsent_after_ns: u64::MAX,
            late_after_ns: u64::MAX,
            ..SessionOptions::default()
        };
        let tx = self.send_overdue("null:bench-rate", &[spacing.spec(BEYOND)], options)?;
        ensure!(tx.traffic.packets > 1, "no frame left at {BEYOND:.0} frames a second");
        Ok(mpps(&tx) * 1e6)
    }

    /// Sends one stream into nothing, whose line carries any rate.
    fn send_at(
        &self,
        spec: StreamSpec,
        options: SessionOptions,
        seconds: f64,
    ) -> Result<TxStatistics> {
        let options = SessionOptions { line_rate_bps: vec![LINE_BPS], ..options };
        let mut session = self.session(&["null:bench-rate"], options)?;
        Ok(self.send(&mut session, 1, &[spec], seconds)?.ports[0].tx)
    }
}

#[cfg(test)]
mod tests {
    use generator::statistics::{GapStatistics, PortTraffic, TxStatistics};

    use super::super::tests::bench;
    use super::{Spacing, figures};

    #[test]
    fn a_schedule_says_when_each_frame_of_a_burst_is_due() {
        // A burst each 10 ms: ten frames 0.5 ms apart.
        let due = |number| Spacing::Bursts.due_ns(number, 1e3) as u64;
        assert_eq!([0, 1, 9, 10, 11].map(due), [0, 500_000, 4_500_000, 10_000_000, 10_500_000]);
        assert_eq!(Spacing::Constant.due_ns(3, 1e3) as u64, 3_000_000);
    }

    #[test]
    fn an_error_is_that_of_the_time_from_the_first_to_the_last() {
        let traffic = PortTraffic { packets: 1_001, ..PortTraffic::default() };
        let tx = |span_ns| TxStatistics { traffic, span_ns, ..TxStatistics::default() };
        let error = |span_ns| figures(Spacing::Constant, "row", 1e3, 1.0, &tx(span_ns))[0].value;
        assert!(error(1_000_000_000) < 1e-9);
        assert!((error(1_010_000_000) - 0.990_1).abs() < 1e-3);
        let gaps = GapStatistics { count: 9, p50_ns: 1, p99_ns: 2, max_ns: 3 };
        let rows = figures(Spacing::Poisson, "row", 1e3, 1.0, &TxStatistics { gaps, ..tx(1) });
        let named: Vec<(&str, f64)> =
            rows.iter().map(|figure| (figure.row.as_str(), figure.value)).collect();
        assert_eq!(named[2..], [("row_gap_p50", 1.0), ("row_gap_p99", 2.0), ("row_gap_max", 3.0)]);
    }

    /// Every mode has all of its rows. How far off the rates are is no matter of a test: the
    /// machine that runs it may be busy.
    #[test]
    fn every_mode_has_a_row_for_each_rate() {
        for spacing in Spacing::ALL {
            let rows = bench(|bench| bench.rate_errors_of(spacing).unwrap());
            assert_eq!(rows[0].row, format!("rate_{}_most", spacing.word()));
            assert!(rows[0].value > 0.0, "{rows:?}");
            assert!(rows.last().unwrap().row.contains("90_percent_of_most"), "{rows:?}");
            assert!(rows.len() > 5 && rows.len() % 5 == 1, "{rows:?}");
            assert!(rows.iter().all(|figure| figure.value.is_finite()), "{rows:?}");
        }
    }

    /// Bursts have gaps: of ten frames one is a gap longer than the mean behind the one before.
    #[test]
    fn bursts_leave_gaps() {
        bench(|bench| {
            let options = generator::session::SessionOptions::default();
            let tx = bench.send_at(Spacing::Bursts.spec(1e3), options, 0.2).unwrap();
            assert!(tx.gaps.max_ns > 2_000_000, "{tx:?}");
            assert_eq!(tx.traffic.packets + tx.unsent, 200);
        });
    }
}
