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
#[derive(Clone, Copy, Debug)]
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
    pub fn round_trip_ns(&self) -> i64 {
        let whole = self.returned_ns.saturating_sub(self.asked_ns);
        whole.saturating_sub(self.answered_ns.saturating_sub(self.received_ns)).max(0)
    }

    /// Lead of the answering clock, were both ways as long as each other.
    pub fn offset_ns(&self) -> f64 {
        let there = self.received_ns.saturating_sub(self.asked_ns);
        let back = self.answered_ns.saturating_sub(self.returned_ns);
        there as f64 / 2.0 + back as f64 / 2.0
    }

    /// Half the round trip: by so much the offset may be wrong.
    fn half_ns(&self) -> f64 {
        self.round_trip_ns().max(1) as f64 / 2.0
    }

    /// The moment to which the offset belongs, by the clock of the asking side.
    fn at_ns(&self) -> i64 {
        self.asked_ns.midpoint(self.returned_ns)
    }

    /// That of the least round trip.
    pub fn best(of: &[Self]) -> Option<Self> {
        of.iter().copied().min_by_key(Self::round_trip_ns)
    }
}

/// Comparison of the clocks of the two boxes of a trial, for its raw data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// Keys of the metrics that it is about, whose unit is a microsecond.
    pub metrics: Vec<String>,
}

impl ClockComparison {
    /// Of the exchanges with the box that sends and of those with the one that receives, from
    /// before the trial until after it. `further_ns` is by how much a delay may be wrong for
    /// another reason. `None` without any exchange.
    pub fn of([sender, receiver]: [&[Exchange]; 2], further_ns: f64) -> Option<Self> {
        let (begun_ns, ended_ns) = (receiver.first()?.at_ns(), receiver.last()?.at_ns());
        let middle_ns = begun_ns.midpoint(ended_ns);
        let (first, second) = (Lead::at(sender, middle_ns)?, Lead::at(receiver, middle_ns)?);
        let drift = second.drift - first.drift;
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
            metrics: Vec::new(),
        })
    }

    /// The same for these metrics.
    pub fn of_metrics(self, metrics: &[&str]) -> Self {
        Self { metrics: metrics.iter().map(|metric| (*metric).to_owned()).collect(), ..self }
    }

    /// The error of a metric in a trial with these raw data, microseconds; `None` where it had one
    /// clock.
    pub fn error_us(raw: &serde_json::Value, metric: &str) -> Option<f64> {
        let clock = Self::deserialize(raw.get("clock")?).ok()?;
        clock.metrics.iter().any(|one| one == metric).then_some(clock.error_us)
    }
}

/// Lead of a clock at some moment, on the line through exchanges of different times.
struct Lead {
    offset_ns: f64,
    /// By how much that may be wrong, either way.
    error_ns: f64,
    /// Slope of the line.
    drift: f64,
}

impl Lead {
    /// At a moment of the asking side's clock. Short round trips count more: by the square. Far
    /// from the exchanges the error grows with the distance. `None` without any exchange.
    fn at(exchanges: &[Exchange], at_ns: i64) -> Option<Self> {
        let zero = exchanges.first()?.at_ns();
        let sum: f64 = exchanges.iter().map(|one| one.half_ns().powi(-2)).sum();
        let mean = |value: &dyn Fn(&Exchange) -> f64| -> f64 {
            exchanges.iter().map(|one| one.half_ns().powi(-2) / sum * value(one)).sum()
        };
        let from_zero = |one: &Exchange| one.at_ns().saturating_sub(zero) as f64;
        let centre = mean(&from_zero);
        let from_centre = |one: &Exchange| from_zero(one) - centre;
        let spread = mean(&|one| from_centre(one).powi(2));
        let by_spread = |value: f64| if spread > 0.0 { value / spread } else { 0.0 };
        let middle_ns = mean(&Exchange::offset_ns);
        let off_middle = |one: &Exchange| one.offset_ns() - middle_ns;
        let drift = by_spread(mean(&|one| from_centre(one) * off_middle(one)));
        let off = |one: &Exchange| (off_middle(one) - drift * from_centre(one)).abs();
        let residual_ns = exchanges.iter().map(|one| off(one) - one.half_ns()).fold(0.0, f64::max);
        let from_middle = at_ns as f64 - (zero as f64 + centre);
        // The offset there is a sum of the exchanges' offsets times factors, so its error is at
        // most the sum of their errors times the amounts of these factors.
        let factor = |one: &Exchange| 1.0 + by_spread(from_middle * from_centre(one));
        Some(Self {
            offset_ns: middle_ns + drift * from_middle,
            error_ns: residual_ns + mean(&|one| factor(one).abs() * one.half_ns()),
            drift,
        })
    }
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::{Exchange, Lead};

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

        /// Twelve rounds, each the best of eight that are a millisecond apart.
        fn rounds(&mut self, every_ns: f64) -> Vec<Exchange> {
            let round = |number: i32| {
                let at_ns = |of: i32| f64::from(number) * every_ns + f64::from(of) * 1e6;
                let all: Vec<Exchange> = (0..8).map(|of| self.exchange(at_ns(of))).collect();
                Exchange::best(&all).unwrap()
            };
            (0..12).map(round).collect()
        }
    }

    #[test]
    fn the_truth_lies_within_the_stated_error() {
        let (mut right, mut errors, mut shortest) = (0, Vec::new(), Vec::new());
        for seed in 0..100 {
            let mut boxes = Boxes::new(seed);
            let rounds = boxes.rounds(0.1 * SECOND_NS);
            let lead = |at_ns: f64| Lead::at(&rounds, at_ns as i64).unwrap();
            let all_right = (0..=11).all(|tenth| {
                let at_ns = f64::from(tenth) * 0.1 * SECOND_NS;
                let found = lead(at_ns);
                (found.offset_ns - boxes.truth_ns(at_ns)).abs() <= found.error_ns
            });
            right += u32::from(all_right);
            errors.push(lead(0.55 * SECOND_NS).error_ns);
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
            let found = Lead::at(&boxes.rounds(SECOND_NS), 0).unwrap().drift;
            // Half of a round trip at either end, over eleven seconds.
            let reach = 2.0 * boxes.shortest_ns[0].max(boxes.shortest_ns[1]) / (11.0 * SECOND_NS);
            let off = (found - boxes.drift).abs();
            assert!(off < reach + 20e-6, "{seed}: {found} {}", boxes.drift);
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
        let even = times.map(|at_ns| exchange(at_ns, 500));
        let step = |at_ns: i64| if at_ns > 1_500_000_000 { 2_000_500 } else { 500 };
        let odd = times.map(|at_ns| exchange(at_ns, step(at_ns)));
        let [even, odd] = [even, odd].map(|all| Lead::at(&all, 1_500_000_000).unwrap().error_ns);
        assert!(even < 10_001.0 && odd > 300_000.0, "{even} {odd}");
    }

    #[test]
    fn one_exchange_has_half_its_round_trip_and_none_has_nothing() {
        let once = Exchange { asked_ns: 0, received_ns: 700, answered_ns: 800, returned_ns: 300 };
        assert_eq!((once.round_trip_ns(), once.offset_ns()), (200, 600.0));
        let found = Lead::at(&[once], i64::MAX / 2).unwrap();
        assert!((found.offset_ns - 600.0).abs() < 1e-6 && (found.error_ns - 100.0).abs() < 1e-6);
        assert!(Lead::at(&[], 0).is_none());
        // Hostile numbers overflow nothing.
        let odd = Exchange {
            asked_ns: i64::MIN,
            received_ns: i64::MAX,
            answered_ns: i64::MIN,
            returned_ns: i64::MAX,
        };
        assert!(odd.offset_ns().is_finite());
        assert!(Lead::at(&[odd, once], 0).unwrap().error_ns >= 0.0);
    }
}
