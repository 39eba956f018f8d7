//! By how much the clocks of two boxes differ, and how well that is known.
//!
//! A lab asks an agent for its time and notes four time stamps, as NTP does (RFC 5905, clause 8).
//! The agent read its clock at some moment between question and answer, so that the difference is
//! known to half the round trip, whatever the two ways took. Of several exchanges that of the least
//! round trip is kept; kept ones from before, during and after a trial give a line, whose slope is
//! the drift. The error that is stated holds for any asymmetry of the ways as long as the clocks
//! drift evenly, and what of the points no even drift explains is added to it. Nothing here looks
//! at a clock.

use serde::{Deserialize, Serialize};

/// One question for the time, and its answer. Nanoseconds; the first and the last by the clock of
/// the asking side, the others by that of the answering one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    /// When the question left.
    pub asked_ns: i64,
    /// When it came.
    pub received_ns: i64,
    /// When the answer left.
    pub answered_ns: i64,
    /// When that came.
    pub returned_ns: i64,
}

impl Exchange {
    /// The time on both ways, without that between question and answer.
    #[must_use]
    pub fn round_trip_ns(&self) -> i64 {
        let whole = self.returned_ns.saturating_sub(self.asked_ns);
        whole.saturating_sub(self.answered_ns.saturating_sub(self.received_ns)).max(0)
    }

    /// Lead of the answering clock, were both ways as long as each other.
    #[must_use]
    pub fn offset_ns(&self) -> f64 {
        let there = self.received_ns.saturating_sub(self.asked_ns);
        let back = self.answered_ns.saturating_sub(self.returned_ns);
        there as f64 / 2.0 + back as f64 / 2.0
    }

    /// The moment to which the offset belongs, by the clock of the asking side.
    #[must_use]
    pub fn at_ns(&self) -> i64 {
        self.asked_ns.midpoint(self.returned_ns)
    }

    /// That of the least round trip.
    #[must_use]
    pub fn best(of: &[Self]) -> Option<Self> {
        of.iter().copied().min_by_key(Self::round_trip_ns)
    }
}

/// Lead of a clock at some moment, nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClockReading {
    /// The lead.
    pub offset_ns: f64,
    /// By how much that may be wrong, either way.
    pub error_ns: f64,
}

/// Comparison of the clocks of the two boxes of a trial, for the results.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClockComparison {
    /// By how much a one-way delay of the trial may be wrong, either way, microseconds: half the
    /// round trips, what no even drift explains, and the next.
    pub error_us: f64,
    /// Drift of the clocks against each other in half the trial, microseconds.
    pub drift_error_us: f64,
    /// Lead of the receiver's clock in the middle of the trial, microseconds. An agent's clock is
    /// zero when it starts.
    pub offset_us: f64,
    /// By how much it is faster, parts in a million.
    pub drift_ppm: f64,
    /// The least round trip from the lab to the sender, and that to the receiver, microseconds.
    pub round_trips_us: [f64; 2],
    /// Comparisons before, during and after the trial, each the best of several exchanges.
    pub comparisons: usize,
}

/// The same in the raw data of a trial, with the metrics that it is about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClockRecord {
    /// Comparison of the clocks.
    #[serde(flatten)]
    pub comparison: ClockComparison,
    /// Keys of the metrics, whose unit is a microsecond.
    pub metrics: Vec<String>,
}

impl ClockComparison {
    /// Of the exchanges with the box that sends and of those with the one that receives, from
    /// before the trial until after it. `further_ns` is by how much a delay may be wrong for
    /// another reason. `None` without any exchange.
    #[must_use]
    pub fn of([sender, receiver]: [&[Exchange]; 2], further_ns: f64) -> Option<Self> {
        let lines = [ClockLine::fit(sender)?, ClockLine::fit(receiver)?];
        let (begun_ns, ended_ns) = (receiver.first()?.at_ns(), receiver.last()?.at_ns());
        let [first, second] = lines.each_ref().map(|line| line.at(begun_ns.midpoint(ended_ns)));
        let drift = lines[1].drift - lines[0].drift;
        let drift_ns = drift.abs() * ended_ns.saturating_sub(begun_ns) as f64 / 2.0;
        let error_ns = first.error_ns + second.error_ns + drift_ns + further_ns;
        let best = |of| Exchange::best(of).map_or(0.0, |one| one.round_trip_ns() as f64 / 1e3);
        Some(Self {
            error_us: error_ns / 1e3,
            drift_error_us: drift_ns / 1e3,
            offset_us: (second.offset_ns - first.offset_ns) / 1e3,
            drift_ppm: drift * 1e6,
            round_trips_us: [best(sender), best(receiver)],
            comparisons: sender.len(),
        })
    }

    /// For the raw data of a trial whose metrics these are.
    #[must_use]
    pub fn of_metrics(self, metrics: &[&str]) -> ClockRecord {
        let metrics = metrics.iter().map(|metric| (*metric).to_owned()).collect();
        ClockRecord { comparison: self, metrics }
    }
}

impl ClockRecord {
    /// The error of a metric in a trial with these raw data, microseconds; `None` where it had one
    /// clock.
    #[must_use]
    pub fn error_us(raw: &serde_json::Value, metric: &str) -> Option<f64> {
        let record = Self::deserialize(raw.get("clock")?).ok()?;
        record.metrics.iter().any(|one| one == metric).then_some(record.comparison.error_us)
    }
}

/// The difference of two clocks as a line over time.
#[derive(Clone, Debug, PartialEq)]
pub struct ClockLine {
    /// Centre of the weighted points, by the clock of the asking side.
    middle_ns: f64,
    /// Sum of the weights' products with the squared distance from the centre.
    spread: f64,
    points: Vec<Point>,
    drift: f64,
    /// Distance of the points from the line, nanoseconds.
    residual_ns: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    /// From the centre, nanoseconds.
    at_ns: f64,
    offset_ns: f64,
    /// Half the round trip: by so much the offset may be wrong.
    half_ns: f64,
    /// The weights of all points are one together.
    weight: f64,
}

impl ClockLine {
    /// The line through exchanges of different times, the best of each. Short round trips count
    /// more: by the square. `None` without any exchange.
    #[must_use]
    pub fn fit(exchanges: &[Exchange]) -> Option<Self> {
        let zero = exchanges.first()?.at_ns();
        let half = |exchange: &Exchange| exchange.round_trip_ns().max(1) as f64 / 2.0;
        let sum: f64 = exchanges.iter().map(|exchange| half(exchange).powi(-2)).sum();
        let point = |exchange: &Exchange| Point {
            at_ns: exchange.at_ns().saturating_sub(zero) as f64,
            offset_ns: exchange.offset_ns(),
            half_ns: half(exchange),
            weight: half(exchange).powi(-2) / sum,
        };
        let mut points: Vec<Point> = exchanges.iter().map(point).collect();
        let centre: f64 = points.iter().map(|point| point.weight * point.at_ns).sum();
        points.iter_mut().for_each(|point| point.at_ns -= centre);
        let spread: f64 = points.iter().map(|point| point.weight * point.at_ns.powi(2)).sum();
        let of_time = |point: &Point| point.weight * point.at_ns * point.offset_ns;
        let drift =
            if spread > 0.0 { points.iter().map(of_time).sum::<f64>() / spread } else { 0.0 };
        let middle_ns = zero as f64 + centre;
        let mut line = Self { middle_ns, spread, points, drift, residual_ns: 0.0 };
        let off = |point: &Point| {
            (point.offset_ns - line.reading(point.at_ns).offset_ns).abs() - point.half_ns
        };
        line.residual_ns = line.points.iter().map(off).fold(0.0, f64::max);
        Some(line)
    }

    /// The difference at a moment of the asking side's clock. Far from the points the error grows
    /// with the distance.
    #[must_use]
    pub fn at(&self, at_ns: i64) -> ClockReading {
        self.reading(at_ns as f64 - self.middle_ns)
    }

    /// At a time from the centre. The offset there is a sum of the points' offsets times factors,
    /// so its error is at most the sum of their errors times the amounts of these factors.
    fn reading(&self, from_middle_ns: f64) -> ClockReading {
        let mut reading = ClockReading { offset_ns: 0.0, error_ns: self.residual_ns };
        for point in &self.points {
            let of_slope = match self.spread > 0.0 {
                true => from_middle_ns * point.at_ns / self.spread,
                false => 0.0,
            };
            let factor = point.weight * (1.0 + of_slope);
            reading.offset_ns += factor * point.offset_ns;
            reading.error_ns += factor.abs() * point.half_ns;
        }
        reading
    }
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::{ClockLine, Exchange};

    const SECOND_NS: f64 = 1e9;

    /// Two boxes of known clocks and a network of unequal, random ways.
    struct Boxes {
        random: Rng,
        offset_ns: f64,
        drift: f64,
        /// The shortest way there and back, and the mean of what comes on top.
        shortest_ns: [f64; 2],
        queue_ns: f64,
    }

    impl Boxes {
        fn new(seed: u64) -> Self {
            let mut random = Rng::with_seed(seed);
            let mut between = |low: f64, high: f64| low + random.f64() * (high - low);
            let offset_ns = between(-1e13, 1e13);
            // Up to 100 parts in a million.
            let drift = between(-100e-6, 100e-6);
            let shortest_ns = [between(10e3, 80e3), between(10e3, 80e3)];
            let queue_ns = between(1e3, 200e3);
            Self { random, offset_ns, drift, shortest_ns, queue_ns }
        }

        /// The agent's clock at a moment of the lab's.
        fn truth_ns(&self, at_ns: f64) -> f64 {
            self.offset_ns + self.drift * at_ns
        }

        fn exchange(&mut self, at_ns: f64) -> Exchange {
            let mut way =
                |shortest: f64| shortest - self.queue_ns * self.random.f64().max(1e-12).ln();
            let [there, back] = self.shortest_ns.map(&mut way);
            let received = at_ns + there;
            let answered = received + 5e3;
            let agent = |at_ns: f64| (at_ns + self.truth_ns(at_ns)) as i64;
            Exchange {
                asked_ns: at_ns as i64,
                received_ns: agent(received),
                answered_ns: agent(answered),
                returned_ns: (answered + back) as i64,
            }
        }

        /// The best of eight, a millisecond apart.
        fn round(&mut self, at_ns: f64) -> Exchange {
            let all: Vec<Exchange> =
                (0..8).map(|number| self.exchange(at_ns + f64::from(number) * 1e6)).collect();
            Exchange::best(&all).unwrap()
        }
    }

    #[test]
    fn the_truth_lies_within_the_stated_error() {
        let (mut right, mut errors, mut shortest) = (0, Vec::new(), Vec::new());
        for seed in 0..100 {
            let mut boxes = Boxes::new(seed);
            let rounds: Vec<Exchange> =
                (0..12).map(|round| boxes.round(f64::from(round) * 0.1 * SECOND_NS)).collect();
            let line = ClockLine::fit(&rounds).unwrap();
            let all_right = (0..=11).all(|tenth| {
                let at_ns = f64::from(tenth) * 0.1 * SECOND_NS;
                let found = line.at(at_ns as i64);
                (found.offset_ns - boxes.truth_ns(at_ns)).abs() <= found.error_ns
            });
            right += u32::from(all_right);
            errors.push(line.at((0.55 * SECOND_NS) as i64).error_ns);
            shortest.push(Exchange::best(&rounds).unwrap().round_trip_ns() as f64 / 2.0);
        }
        assert!(right >= 98, "{right} of 100");
        // And the error says something: in the middle it is about half the least round trip.
        let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64;
        assert!(mean(&errors) < 1.5 * mean(&shortest), "{} {}", mean(&errors), mean(&shortest));
    }

    #[test]
    fn a_drift_is_found() {
        for seed in 0..100 {
            let mut boxes = Boxes::new(seed);
            let rounds: Vec<Exchange> =
                (0..12).map(|round| boxes.round(f64::from(round) * SECOND_NS)).collect();
            let line = ClockLine::fit(&rounds).unwrap();
            // Half of a round trip at either end, over eleven seconds.
            let reach = 2.0 * boxes.shortest_ns[0].max(boxes.shortest_ns[1]) / (11.0 * SECOND_NS);
            let off = (line.drift - boxes.drift).abs();
            assert!(off < reach + 20e-6, "{seed}: {} {}", line.drift, boxes.drift);
        }
    }

    #[test]
    fn a_clock_that_was_set_in_between_widens_the_error() {
        let exchange = |at_ns: i64, ahead_ns: i64| Exchange {
            asked_ns: at_ns,
            received_ns: at_ns + ahead_ns + 10_000,
            answered_ns: at_ns + ahead_ns + 10_000,
            returned_ns: at_ns + 20_000,
        };
        let times = [0, 1, 2, 3].map(|second| second * 1_000_000_000);
        let even: Vec<Exchange> = times.iter().map(|at_ns| exchange(*at_ns, 500)).collect();
        let step = |at_ns: i64| if at_ns > 1_500_000_000 { 2_000_500 } else { 500 };
        let odd: Vec<Exchange> = times.iter().map(|at_ns| exchange(*at_ns, step(*at_ns))).collect();
        let middle = 1_500_000_000;
        assert!(ClockLine::fit(&even).unwrap().at(middle).error_ns < 10_001.0);
        assert!(ClockLine::fit(&odd).unwrap().at(middle).error_ns > 300_000.0);
    }

    #[test]
    fn one_exchange_has_half_its_round_trip_and_none_has_nothing() {
        let once = Exchange { asked_ns: 0, received_ns: 700, answered_ns: 800, returned_ns: 300 };
        assert_eq!((once.round_trip_ns(), once.offset_ns()), (200, 600.0));
        let line = ClockLine::fit(&[once]).unwrap();
        let found = line.at(i64::MAX / 2);
        assert!((found.offset_ns - 600.0).abs() < 1e-6 && (found.error_ns - 100.0).abs() < 1e-6);
        assert!(ClockLine::fit(&[]).is_none());
        // Hostile numbers overflow nothing.
        let odd = Exchange {
            asked_ns: i64::MIN,
            received_ns: i64::MAX,
            answered_ns: i64::MIN,
            returned_ns: i64::MAX,
        };
        assert!(odd.offset_ns().is_finite());
        assert!(ClockLine::fit(&[odd, once]).unwrap().at(0).error_ns >= 0.0);
    }
}
