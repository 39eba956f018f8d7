//! Change points of a series: the runs of a history from which on figures are others.
//!
//! E-divisive means (Matteson and James, "A nonparametric approach for multiple change point
//! analysis of multivariate data", 2014; for performance tests Daly and others, "The use of change
//! point detection to identify software performance regressions", 2020): the place that divides a
//! segment best by the distances between its samples, kept when shuffled samples divide as well
//! only rarely. No distribution is taken for granted, and no threshold is chosen for a figure. The
//! samples are to be independent of each other where nothing changed.

use crate::error::{StatsError, check};
use crate::order::{quantile, sorted};

/// Settings for the search for changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangeSettings {
    /// Samples that lie between two changes at least, 2 or more.
    pub segment_min: usize,
    /// Up to this p-value a change is one.
    pub significance: f64,
    /// Shuffles of the samples for a p-value; the smallest is 1 / (this + 1).
    pub permutations: u32,
    /// Seed of the shuffling: the same series and settings have the same changes.
    pub seed: u64,
}

impl Default for ChangeSettings {
    fn default() -> Self {
        Self { segment_min: 3, significance: 0.01, permutations: 999, seed: 1 }
    }
}

/// A change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangePoint {
    /// The first sample after it, from 0.
    pub index: usize,
    /// The p-value of the permutation test.
    pub p_value: f64,
    /// The median from the change before to this one, or from the beginning.
    pub before: f64,
    /// The median from this change to the next, or to the end.
    pub after: f64,
}

impl ChangePoint {
    /// By how much the median grew, as a share of what it was: -0.1 is a tenth less; infinite where
    /// it was 0.
    #[must_use]
    pub fn relative(&self) -> f64 {
        (self.after - self.before) / self.before.abs()
    }
}

/// The changes of a series, ascending.
///
/// # Errors
/// A sample is not finite. A series that is too short for a change has none.
///
/// # Panics
/// When settings are not in their bounds: the caller's mistake.
pub fn change_points(
    series: &[f64],
    settings: &ChangeSettings,
) -> Result<Vec<ChangePoint>, StatsError> {
    assert!(settings.segment_min >= 2 && settings.permutations > 0, "{settings:?}");
    check(series, 0)?;
    let mut random = fastrand::Rng::with_seed(settings.seed);
    let mut distances = Distances::default();
    // Where each segment begins, with the p-value of the change there.
    let mut begins = vec![(0, 1.0)];
    let mut splits: Vec<Split> =
        distances.split(series, 0, settings.segment_min).into_iter().collect();
    while let Some(best) = splits.iter().copied().max_by(|a, b| a.energy.total_cmp(&b.energy)) {
        let segments: Vec<&[f64]> =
            splits.iter().map(|split| &series[split.from..split.to]).collect();
        let Some(p_value) = distances.p_value(best.energy, &segments, settings, &mut random) else {
            break;
        };
        begins.push((best.at, p_value));
        splits.retain(|split| *split != best);
        for (from, to) in [(best.from, best.at), (best.at, best.to)] {
            splits.extend(distances.split(&series[from..to], from, settings.segment_min));
        }
    }
    begins.sort_by_key(|(index, _)| *index);
    let ends = begins.iter().skip(1).map(|(index, _)| *index).chain([series.len()]);
    let medians: Vec<f64> = begins
        .iter()
        .zip(ends)
        .filter(|((from, _), to)| from < to)
        .map(|((from, _), to)| quantile(&sorted(&series[*from..to]), 0.5))
        .collect();
    let changes = begins.iter().skip(1).zip(medians.windows(2));
    Ok(changes
        .map(|(&(index, p_value), medians)| ChangePoint {
            index,
            p_value,
            before: medians[0],
            after: medians[1],
        })
        .collect())
}

/// The best division of a segment.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Split {
    from: usize,
    at: usize,
    to: usize,
    energy: f64,
}

/// Sums of distances between the samples of one segment.
#[derive(Debug, Default)]
struct Distances {
    /// Row i, column j: the sum of the distances from each of the first i samples to each of the
    /// first j. All sums within and between pieces follow from four of these.
    sums: Vec<f64>,
    width: usize,
}

impl Distances {
    fn of(&mut self, segment: &[f64]) {
        self.width = segment.len() + 1;
        self.sums.clear();
        self.sums.resize(self.width * self.width, 0.0);
        for (row, a) in segment.iter().enumerate() {
            let mut along = 0.0;
            for (column, b) in segment.iter().enumerate() {
                along += (a - b).abs();
                let above = self.sums[row * self.width + column + 1];
                self.sums[(row + 1) * self.width + column + 1] = above + along;
            }
        }
    }

    fn sum(&self, rows: usize, columns: usize) -> f64 {
        self.sums[rows * self.width + columns]
    }

    /// The greatest energy of any piece from the beginning that is divided in two parts of
    /// `least` or more, and where it is divided.
    fn best(&mut self, segment: &[f64], least: usize) -> Option<(f64, usize)> {
        self.of(segment);
        let mut best: Option<(f64, usize)> = None;
        for at in least..=segment.len().saturating_sub(least) {
            let first = self.sum(at, at);
            for to in at + least..=segment.len() {
                let both = self.sum(at, to);
                let between = both - first;
                let second = self.sum(to, to) - 2.0 * both + first;
                let (m, n) = (at as f64, (to - at) as f64);
                let energy =
                    2.0 * between / (m * n) - first / (m * (m - 1.0)) - second / (n * (n - 1.0));
                let energy = energy * m * n / (m + n);
                if best.is_none_or(|(most, _)| energy > most) {
                    best = Some((energy, at));
                }
            }
        }
        best
    }

    /// The best division of a segment that begins at `from`; none of a segment too short for one.
    fn split(&mut self, segment: &[f64], from: usize, least: usize) -> Option<Split> {
        let (energy, at) = self.best(segment, least)?;
        Some(Split { from, at: from + at, to: from + segment.len(), energy })
    }

    /// Share of shuffled segments that divide as well; `None` when it is not small enough.
    fn p_value(
        &mut self,
        energy: f64,
        segments: &[&[f64]],
        settings: &ChangeSettings,
        random: &mut fastrand::Rng,
    ) -> Option<f64> {
        let mut shuffled: Vec<Vec<f64>> = segments.iter().map(|segment| segment.to_vec()).collect();
        let of_all = f64::from(settings.permutations) + 1.0;
        // Sums of the same distances in another order differ by their rounding.
        let as_well = energy - 1e-9 * energy.abs();
        let mut reached = 1.0;
        for _ in 0..settings.permutations {
            let any = shuffled.iter_mut().any(|segment| {
                random.shuffle(segment);
                self.best(segment, settings.segment_min).is_some_and(|(most, _)| most >= as_well)
            });
            reached += f64::from(u8::from(any));
            // More shuffles cannot make it rare any more.
            if reached / of_all > settings.significance {
                return None;
            }
        }
        Some(reached / of_all)
    }
}

#[cfg(test)]
mod tests {
    use testkit::Random;

    use super::{ChangePoint, ChangeSettings, Distances, change_points};
    use crate::simulated::ALL;

    const SETTINGS: ChangeSettings =
        ChangeSettings { segment_min: 3, significance: 0.01, permutations: 199, seed: 7 };

    /// Normal samples, with this added from an index on.
    fn moved(random: &mut Random, n: usize, moves: &[(usize, f64)]) -> Vec<f64> {
        let shift = |at: usize| -> f64 {
            moves.iter().filter(|(from, _)| at >= *from).map(|(_, by)| by).sum()
        };
        (0..n).map(|at| 10.0 + 2.0 * random.normal() + shift(at)).collect()
    }

    /// By the definition in the paper, formula by formula.
    #[test]
    fn the_energy_is_that_of_the_definition() {
        let segment = [1.0, 4.0, 2.0, 8.0, 9.0, 7.0, 8.0];
        let (energy, at) = Distances::default().best(&segment, 3).unwrap();
        let distances = |xs: &[f64], ys: &[f64]| -> f64 {
            xs.iter().flat_map(|x| ys.iter().map(move |y| (x - y).abs())).sum()
        };
        let (x, y) = segment.split_at(3);
        let within = |z: &[f64]| distances(z, z) / (z.len() * (z.len() - 1)) as f64;
        let known = 12.0 / 7.0 * (2.0 * distances(x, y) / 12.0 - within(x) - within(y));
        assert_eq!(at, 3);
        assert!((energy - known).abs() < 1e-9, "{energy} {known}");
    }

    #[test]
    fn steps_are_found_where_they_are() {
        let mut random = Random::new(11);
        let (mut exact, mut near, mut found) = (0, 0, 0);
        for _ in 0..40 {
            let series = moved(&mut random, 60, &[(20, 8.0), (45, -8.0)]);
            let changes = change_points(&series, &SETTINGS).unwrap();
            found += changes.len();
            for truth in [20, 45] {
                exact += usize::from(changes.iter().any(|one| one.index == truth));
                near += usize::from(changes.iter().any(|one| one.index.abs_diff(truth) <= 2));
            }
            let Some(ChangePoint { before, after, p_value, .. }) = changes.first() else {
                continue;
            };
            assert!((before - 10.0).abs() < 3.0 && (after - 18.0).abs() < 3.0, "{changes:?}");
            assert!(*p_value <= 0.01 && changes[0].relative() > 0.3, "{changes:?}");
        }
        assert!(exact >= 70 && near >= 78 && found <= 82, "{exact} {near} {found}");
    }

    /// At a significance of 1 % at most 1 % of steady series have a change: 3 of 300, by chance up
    /// to 10.
    #[test]
    fn steady_series_of_any_distribution_have_no_change() {
        for truth in ALL {
            let mut random = Random::new(13);
            let alarms = (0..300)
                .filter(|seed| {
                    let series: Vec<f64> = (0..25).map(|_| truth.of_start(&mut random)).collect();
                    let settings = ChangeSettings { seed: *seed, ..SETTINGS };
                    !change_points(&series, &settings).unwrap().is_empty()
                })
                .count();
            assert!(alarms <= 10, "{truth:?}: {alarms} of 300");
        }
    }

    #[test]
    fn three_runs_suffice_after_a_great_change() {
        let mut random = Random::new(17);
        let series = moved(&mut random, 23, &[(20, 30.0)]);
        let changes = change_points(&series, &ChangeSettings::default()).unwrap();
        assert_eq!(changes.iter().map(|one| one.index).collect::<Vec<_>>(), [20]);
        assert_eq!(changes, change_points(&series, &ChangeSettings::default()).unwrap());
    }

    #[test]
    fn short_and_equal_series_have_no_change() {
        for series in [vec![], vec![1.0], vec![1.0, 1.0, 1.0, 9.0, 9.0], vec![5.0; 40]] {
            assert_eq!(change_points(&series, &SETTINGS), Ok(vec![]), "{series:?}");
        }
        assert!(change_points(&[1.0, f64::NAN], &SETTINGS).is_err());
    }
}
