//! The due times of one stream: at a rate, in bursts, at random gaps, or as a capture file has
//! them.
//!
//! A frame's due time follows from what went before it in the schedule, never from when anything
//! left: cumulated frames, or bits where the rate is in bits, times the time that one takes. So a
//! rate in bits is exact over any mix of sizes, and rounding does not drift. It must never look at
//! what was sent or received.

use crate::profile::{Arrival, Mode, Rate};
use crate::random::SplitMix64;

/// The due time of a stream's next frame.
#[derive(Clone, Debug)]
pub(crate) struct StreamSchedule {
    plan: SchedulePlan,
    /// Frames of the whole stream that are left; `None` without end.
    left: Option<u64>,
    /// When the frame is due that stands at the beginning of the plan.
    base_ns: u64,
    due_ns: u64,
    /// The due time after that, if the next frame has the size that stands before it (0 for none).
    ///
    /// It is known one frame ahead, so that the merge of many streams by their due times waits for
    /// a number in memory and not for a conversion to floating point and back: with a hundred
    /// streams that was a third of the time that a frame takes.
    ahead: (u32, u64),
}

#[derive(Clone, Debug)]
enum SchedulePlan {
    /// As fast as the port takes frames.
    Greedy,
    Rated(RatedPlan),
    Recorded(RecordedPlan),
}

/// Frames at a rate, perhaps with gaps after bursts of them.
#[derive(Clone, Debug)]
struct RatedPlan {
    rate: Rate,
    line_rate_bps: f64,
    /// Units of each frame, and of each of its bytes.
    per_frame: f64,
    per_byte: f64,
    ns_per_unit: f64,
    /// Units since the beginning; with random gaps, each frame's times a random number of mean 1.
    units: f64,
    random: Option<SplitMix64>,
    /// Frames of a burst, those of this burst that are left, and the gap after it.
    burst: Option<(u64, u64, f64)>,
    /// All gaps since the beginning.
    gaps_ns: f64,
    /// Whether there are neither random gaps nor bursts.
    is_steady: bool,
}

/// Frames at the distances that a file has.
#[derive(Clone, Debug)]
struct RecordedPlan {
    /// From the first frame, in nanoseconds, times [`RecordedPlan::scale`].
    offsets_ns: Vec<u64>,
    /// From the first frame of one loop to that of the next.
    period_ns: u64,
    /// The scale of the stream and that of the session.
    stream_scale: f64,
    scale: f64,
    next: usize,
    loops: u64,
}

impl RatedPlan {
    fn set_rate(&mut self, factor: f64) {
        let unit = self.rate.times(factor).unit_rate(self.line_rate_bps);
        self.per_frame = f64::from(unit.per_frame);
        self.per_byte = f64::from(unit.per_byte);
        self.ns_per_unit = unit.per_second.map_or(0.0, |per_second| 1e9 / per_second);
        self.units = 0.0;
        self.gaps_ns = 0.0;
    }

    /// Units of a frame.
    #[inline]
    fn cost(&self, size: u32) -> f64 {
        self.per_frame + self.per_byte * f64::from(size)
    }

    fn advance(&mut self, size: u32) -> f64 {
        let cost = self.cost(size);
        self.units += match &mut self.random {
            None => cost,
            Some(random) => cost * random.exponential(),
        };
        if let Some((frames, left, gap_ns)) = &mut self.burst {
            *left -= 1;
            if *left == 0 {
                *left = *frames;
                self.gaps_ns += *gap_ns;
            }
        }
        self.units * self.ns_per_unit + self.gaps_ns
    }
}

impl RecordedPlan {
    fn advance(&mut self) -> f64 {
        self.next += 1;
        if self.next == self.offsets_ns.len() {
            self.next = 0;
            self.loops += 1;
        }
        self.passed_ns() * self.scale
    }

    /// Time of the file from the first frame to the next that is due.
    fn passed_ns(&self) -> f64 {
        let loops = self.loops.saturating_mul(self.period_ns);
        loops.saturating_add(self.offsets_ns[self.next]) as f64
    }
}

impl StreamSchedule {
    /// Frames at a rate on a line of `line_rate_bps`.
    pub(crate) fn rated(rate: Rate, line_rate_bps: f64, mode: Mode, arrival: Arrival) -> Self {
        let burst = match mode {
            Mode::Continuous | Mode::Burst(_) => None,
            Mode::Bursts { packets, gap_us, .. } => Some((packets, packets, gap_us * 1e3)),
        };
        let random = match arrival {
            Arrival::Constant => None,
            Arrival::Poisson(seed) => Some(SplitMix64::new(seed)),
        };
        let mut plan = RatedPlan {
            rate,
            line_rate_bps,
            per_frame: 0.0,
            per_byte: 0.0,
            ns_per_unit: 0.0,
            units: 0.0,
            is_steady: random.is_none() && burst.is_none(),
            random,
            burst,
            gaps_ns: 0.0,
        };
        plan.set_rate(1.0);
        // Without a rate, bursts still have their gaps; without these there is nothing to plan.
        let is_greedy = rate == Rate::Max && plan.burst.is_none();
        let plan = if is_greedy { SchedulePlan::Greedy } else { SchedulePlan::Rated(plan) };
        Self { plan, left: mode.frames(), base_ns: 0, due_ns: 0, ahead: (0, 0) }
    }

    /// Frames at these offsets from the first, in nanoseconds, `loops` times; 0 is for ever. One
    /// loop follows the other at the mean distance of its frames.
    pub(crate) fn recorded(offsets_ns: Vec<u64>, scale: f64, loops: u64) -> Self {
        let last = offsets_ns.last().copied().unwrap_or_default();
        let mean = last / (offsets_ns.len() as u64).saturating_sub(1).max(1);
        let left = (loops != 0).then(|| loops.saturating_mul(offsets_ns.len() as u64));
        let plan = RecordedPlan {
            offsets_ns,
            period_ns: last.saturating_add(mean),
            stream_scale: scale,
            scale,
            next: 0,
            loops: 0,
        };
        Self { plan: SchedulePlan::Recorded(plan), left, base_ns: 0, due_ns: 0, ahead: (0, 0) }
    }

    /// Starts it: the first frame is due at `at_ns`, all rates are times `factor`.
    pub(crate) fn start(&mut self, at_ns: u64, factor: f64) {
        self.base_ns = at_ns;
        self.due_ns = at_ns;
        self.ahead = (0, 0);
        match &mut self.plan {
            SchedulePlan::Greedy => {}
            SchedulePlan::Rated(plan) => plan.set_rate(factor),
            SchedulePlan::Recorded(plan) => plan.scale = plan.stream_scale / factor,
        }
    }

    /// Whether frames have no due times.
    pub(crate) fn is_greedy(&self) -> bool {
        matches!(self.plan, SchedulePlan::Greedy)
    }

    /// Whether each frame has a due time of its own, after which it is late; those without a rate
    /// between gaps, and those of a capture that takes no time, have not.
    #[inline]
    pub(crate) fn is_timed(&self) -> bool {
        match &self.plan {
            SchedulePlan::Greedy => false,
            SchedulePlan::Rated(plan) => plan.ns_per_unit > 0.0,
            SchedulePlan::Recorded(plan) => plan.period_ns > 0,
        }
    }

    /// Whether all frames have been planned.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.left == Some(0)
    }

    /// When the next frame is due; of a stream that is over, the end of its last frame's interval.
    #[inline]
    pub(crate) fn due_ns(&self) -> u64 {
        self.due_ns
    }

    /// Goes on after the next frame, which has `size` bytes with FCS.
    #[inline]
    pub(crate) fn advance(&mut self, size: u32) {
        if let Some(left) = &mut self.left {
            *left = left.saturating_sub(1);
        }
        let passed_ns = match &mut self.plan {
            SchedulePlan::Greedy => return,
            SchedulePlan::Rated(plan) if plan.is_steady => {
                let cost = plan.cost(size);
                plan.units += cost;
                let after =
                    |units: f64| self.base_ns.saturating_add((units * plan.ns_per_unit) as u64);
                let (known_size, known_ns) = self.ahead;
                self.due_ns = if size == known_size { known_ns } else { after(plan.units) };
                self.ahead = (size, after(plan.units + cost));
                return;
            }
            SchedulePlan::Rated(plan) => plan.advance(size),
            SchedulePlan::Recorded(plan) => plan.advance(),
        };
        self.due_ns = self.base_ns.saturating_add(passed_ns as u64);
    }

    /// Takes `count` frames, or those that are left, of a stream whose frames have no due times.
    pub(crate) fn take_greedy(&mut self, count: usize) -> usize {
        let Some(left) = &mut self.left else { return count };
        let taken = usize::try_from(*left).map_or(count, |left| left.min(count));
        *left -= taken as u64;
        taken
    }

    /// Moves everything that is still to come.
    pub(crate) fn shift(&mut self, by_ns: u64) {
        self.base_ns = self.base_ns.saturating_add(by_ns);
        self.due_ns = self.due_ns.saturating_add(by_ns);
        self.ahead = (0, 0);
    }

    /// Changes the rate from `old` to `new` times the stream's own; the time until the next frame
    /// is due shrinks or grows with it.
    pub(crate) fn change_rate(&mut self, now_ns: u64, old: f64, new: f64) {
        let wait_ns = self.due_ns.saturating_sub(now_ns) as f64 * old / new;
        let due_ns = self.due_ns.min(now_ns.saturating_add(wait_ns as u64));
        self.ahead = (0, 0);
        match &mut self.plan {
            SchedulePlan::Greedy => return,
            SchedulePlan::Rated(plan) => {
                plan.set_rate(new);
                self.base_ns = due_ns;
            }
            SchedulePlan::Recorded(plan) => {
                plan.scale = plan.stream_scale / new;
                self.base_ns = due_ns.saturating_sub((plan.passed_ns() * plan.scale) as u64);
            }
        }
        self.due_ns = due_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::StreamSchedule;
    use crate::profile::{Arrival, FrameSize, Mode, Rate};
    use proptest::prelude::{any, proptest};

    const LINE: f64 = 10e9;

    fn constant(rate: &str, mode: Mode) -> StreamSchedule {
        let mut schedule =
            StreamSchedule::rated(rate.parse().unwrap(), LINE, mode, Arrival::Constant);
        schedule.start(1_000, 1.0);
        schedule
    }

    fn due_times(schedule: &mut StreamSchedule, count: usize) -> Vec<u64> {
        let mut times = Vec::new();
        while times.len() < count && !schedule.is_over() {
            times.push(schedule.due_ns());
            schedule.advance(64);
        }
        times
    }

    #[test]
    fn every_mode_has_its_count_and_its_due_times() {
        let burst = Mode::Burst(3);
        assert_eq!(due_times(&mut constant("1Mpps", burst), 9), [1_000, 2_000, 3_000]);
        let bursts = Mode::Bursts { count: 2, packets: 2, gap_us: 10.0 };
        let times = due_times(&mut constant("1Mpps", bursts), 9);
        assert_eq!(times, [1_000, 2_000, 13_000, 14_000]);
        let times = due_times(&mut constant("max", bursts), 9);
        assert_eq!(times, [1_000, 1_000, 11_000, 11_000]);
        assert_eq!(due_times(&mut constant("max", Mode::Continuous), 5), [1_000; 5]);
        // 84 bytes of the line take 67.2 ns.
        let times = due_times(&mut constant("100%", Mode::Continuous), 6);
        assert_eq!(times, [1_000, 1_067, 1_134, 1_201, 1_268, 1_336]);
        assert_eq!(due_times(&mut constant("512Mbps", Mode::Continuous), 2), [1_000, 2_000]);
        assert_eq!(due_times(&mut constant("672Mbps_l1", Mode::Continuous), 2), [1_000, 2_000]);
    }

    proptest! {
        /// After any number of frames of any sizes the time that has passed is what they take of
        /// the line at the rate: the defect of generators that divide by the length of one frame.
        #[test]
        fn rates_in_bits_are_exact_over_all_sizes(seed in any::<u64>(), percent in 1_u32..1000) {
            let rate = Rate::PercentOfLine(f64::from(percent) / 10.0);
            let mut schedule =
                StreamSchedule::rated(rate, LINE, Mode::Continuous, Arrival::Constant);
            schedule.start(0, 1.0);
            let sizes = FrameSize::Range { min: 64, max: 9000, step: 1, random: Some(seed) };
            let mut sizes = sizes.sequence().unwrap();
            let mut bits = 0_u64;
            for _ in 0..2_000 {
                let index = sizes.next_index();
                let size = sizes.sizes()[index];
                schedule.advance(size);
                bits += 8 * (u64::from(size) + 20);
                let right = bits as f64 * 1e9 / (LINE * f64::from(percent) / 1000.0);
                assert!((schedule.due_ns() as f64 - right).abs() <= 1.0);
            }
        }
    }

    #[test]
    fn random_gaps_have_the_rate_as_their_mean() {
        let mut schedule = StreamSchedule::rated(
            Rate::PacketsPerSecond(1e6),
            LINE,
            Mode::Continuous,
            Arrival::Poisson(5),
        );
        schedule.start(0, 1.0);
        let mut below_mean = 0;
        for _ in 0..100_000 {
            let before = schedule.due_ns();
            schedule.advance(64);
            below_mean += u32::from(schedule.due_ns() - before < 1_000);
        }
        assert!((schedule.due_ns() as f64 / 1e8 - 1.0).abs() < 0.02, "{}", schedule.due_ns());
        // 1 - 1/e of the gaps of a Poisson process are shorter than the mean.
        assert!((f64::from(below_mean) / 1e5 - 0.632).abs() < 0.01, "{below_mean}");
    }

    #[test]
    fn a_capture_is_sent_in_its_own_time_or_scaled() {
        let mut schedule = StreamSchedule::recorded(vec![0, 10, 40], 2.0, 2);
        schedule.start(100, 1.0);
        assert_eq!(due_times(&mut schedule, 9), [100, 120, 180, 220, 240, 300]);
        assert!(schedule.is_over());
        let mut faster = StreamSchedule::recorded(vec![0, 10], 1.0, 0);
        faster.start(0, 2.0);
        assert_eq!(due_times(&mut faster, 4), [0, 5, 10, 15]);
    }

    #[test]
    fn absurd_numbers_are_due_at_the_end_of_time() {
        let slow = Rate::PacketsPerSecond(1e-11);
        let burst = Mode::Bursts { count: 9, packets: 1, gap_us: 1e17 };
        for (rate, mode) in [(slow, Mode::Continuous), (Rate::Max, burst)] {
            let mut schedule = StreamSchedule::rated(rate, LINE, mode, Arrival::Constant);
            schedule.start(u64::MAX - 5, 1.0);
            schedule.advance(64);
            schedule.shift(9);
            schedule.change_rate(7, 1.0, 1e-9);
            schedule.advance(64);
            assert_eq!(schedule.due_ns(), u64::MAX);
        }
        let mut recorded = StreamSchedule::recorded(vec![0, u64::MAX / 2, u64::MAX], 1e300, 0);
        recorded.start(1, 1.0);
        for _ in 0..9 {
            recorded.advance(64);
        }
        assert_eq!(recorded.due_ns(), u64::MAX);
        recorded.change_rate(7, 1.0, 2.0);
        recorded.advance(64);
    }

    #[test]
    fn the_rate_changes_in_the_middle_and_pauses_move_the_rest() {
        let mut schedule = constant("1Mpps", Mode::Continuous);
        due_times(&mut schedule, 2);
        assert_eq!(schedule.due_ns(), 3_000);
        schedule.change_rate(2_000, 1.0, 2.0);
        assert_eq!(due_times(&mut schedule, 3), [2_500, 3_000, 3_500]);
        schedule.shift(1_000);
        assert_eq!(due_times(&mut schedule, 2), [5_000, 5_500]);
        // Slower: the next frame stays where it is.
        schedule.change_rate(5_000, 2.0, 0.5);
        assert_eq!(due_times(&mut schedule, 2), [6_000, 8_000]);
    }
}
