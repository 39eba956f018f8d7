//! Common parts of the rank tests: null distributions of rank sums, and order statistics of sums.
//!
//! Exact up to [`EXACT_MAX`] samples, ties included; above it the normal approximation with the
//! variance of the ties and the correction for whole numbers (Hollander, Wolfe and Chicken,
//! "Nonparametric statistical methods", 3rd edition, sections 3.1 and 4.1).

use statrs::distribution::{ContinuousCDF, Normal};

use super::interval::normal_cdf;

/// Up to this number of samples the distributions are exact.
pub(super) const EXACT_MAX: usize = 60;

/// The distribution of a rank statistic where there is no difference.
#[derive(Debug)]
pub(super) struct NullDistribution {
    mean: f64,
    deviation: f64,
    /// The probability that twice the statistic is the index, if it is exact. Ranks of ties are
    /// halves.
    exact: Option<Vec<f64>>,
}

impl NullDistribution {
    /// That of the sum of the ranks of positive differences; `doubled` are the ranks, doubled.
    pub(super) fn of_signed_ranks(doubled: &[usize]) -> Self {
        let exact = (doubled.len() <= EXACT_MAX).then(|| {
            let mut probability = vec![0.0; doubled.iter().sum::<usize>() + 1];
            probability[0] = 1.0;
            for rank in doubled {
                for sum in (0..probability.len()).rev() {
                    let with = sum.checked_sub(*rank).map_or(0.0, |rest| probability[rest]);
                    probability[sum] = f64::midpoint(probability[sum], with);
                }
            }
            probability
        });
        let squares: f64 = doubled.iter().map(|rank| (*rank as f64 / 2.0).powi(2)).sum();
        let mean = doubled.iter().sum::<usize>() as f64 / 4.0;
        Self { mean, deviation: squares.sqrt() / 2.0, exact }
    }

    /// That of Mann and Whitney's U of `first` samples among all whose ranks, doubled, are given.
    pub(super) fn of_rank_sums(doubled: &[usize], first: usize) -> Self {
        let all = doubled.len();
        let (m, n) = (first as f64, (all - first) as f64);
        let exact = (all <= EXACT_MAX).then(|| rank_sums(doubled, first));
        let middle = doubled.iter().sum::<usize>() as f64 / all as f64 / 2.0;
        let squares: f64 = doubled.iter().map(|rank| (*rank as f64 / 2.0 - middle).powi(2)).sum();
        let variance = m * n / all as f64 * squares / (all as f64 - 1.0);
        Self { mean: m * n / 2.0, deviation: variance.sqrt(), exact }
    }

    /// That of the number of pairs in falling order among all orders of `n` different values
    /// (Kendall).
    pub(super) fn of_inversions(n: usize) -> Self {
        let exact = (n <= EXACT_MAX).then(|| inversions(n));
        let n = n as f64;
        let variance = n * (n - 1.0) * (2.0 * n + 5.0) / 72.0;
        Self { mean: n * (n - 1.0) / 4.0, deviation: variance.sqrt(), exact }
    }

    /// The probability of at most `statistic`.
    fn at_most(&self, statistic: f64) -> f64 {
        match &self.exact {
            Some(_) if statistic < 0.0 => 0.0,
            Some(probability) => {
                let end = ((2.0 * statistic).floor() as usize + 1).min(probability.len());
                probability[..end].iter().sum()
            }
            None if self.deviation == 0.0 => 1.0,
            None => normal_cdf((statistic + 0.5 - self.mean) / self.deviation),
        }
    }

    /// The p-value of the two-sided test: twice that of the side that is less likely.
    pub(super) fn p_value(&self, statistic: f64) -> f64 {
        let below = self.at_most(statistic);
        let above = match &self.exact {
            Some(probability) => probability[(2.0 * statistic).round() as usize..].iter().sum(),
            // The normal approximation is symmetric.
            None => self.at_most(2.0 * self.mean - statistic),
        };
        (2.0 * below.min(above)).min(1.0)
    }

    /// The highest rank r from 1 with P(T < r) at most `tail`, and that probability. Where there
    /// is none it is rank 1, which is the widest interval that there is.
    pub(super) fn rank(&self, tail: f64) -> (usize, f64) {
        let below = |rank: usize| self.at_most(rank as f64 - 1.0);
        let mut rank = match &self.exact {
            Some(_) => 1,
            None => {
                let z = Normal::standard().inverse_cdf(tail);
                ((self.mean + z * self.deviation - 1.5).floor()).max(1.0) as usize
            }
        };
        while (rank as f64) < self.mean && below(rank + 1) <= tail {
            rank += 1;
        }
        (rank, below(rank))
    }
}

/// The probability of each value of 2 U: how many of all choices of `first` ranks have that sum.
fn rank_sums(doubled: &[usize], first: usize) -> Vec<f64> {
    let most: usize = doubled.iter().sum();
    // By how many are chosen, and by the sum of their ranks.
    let mut choices = vec![vec![0.0; most + 1]; first + 1];
    choices[0][0] = 1.0;
    // The sum of all ranks so far: nothing is counted above it.
    let mut so_far = 0;
    for rank in doubled {
        for chosen in (1..=first).rev() {
            let (fewer, these) = choices.split_at_mut(chosen);
            let from = fewer[chosen - 1][..=so_far].iter();
            these[0][*rank..].iter_mut().zip(from).for_each(|(count, more)| *count += more);
        }
        so_far += rank;
    }
    let least = first * (first + 1);
    let total: f64 = choices[first].iter().sum();
    choices[first][least..].iter().map(|count| count / total).collect()
}

/// The probability of each even number, as twice the number of inversions of `n` values.
fn inversions(n: usize) -> Vec<f64> {
    let mut probability = vec![1.0];
    // The k-th value stands before 0 to k - 1 of those that are lower, each as likely.
    for k in 2..=n {
        let mut next = vec![0.0; probability.len() + k - 1];
        for (count, part) in probability.iter().enumerate() {
            next[count..count + k].iter_mut().for_each(|sum| *sum += part / k as f64);
        }
        probability = next;
    }
    let mut doubled = vec![0.0; 2 * probability.len() - 1];
    doubled.iter_mut().step_by(2).zip(probability).for_each(|(place, part)| *place = part);
    doubled
}

/// Twice the ranks of sorted values, those of ties being their mean.
pub(super) fn doubled_ranks(sorted: &[f64]) -> Vec<usize> {
    let mut ranks = Vec::with_capacity(sorted.len());
    for tied in sorted.chunk_by(|a, b| a == b) {
        let before = ranks.len();
        ranks.extend(std::iter::repeat_n(2 * before + tied.len() + 1, tied.len()));
    }
    ranks
}

/// Sums that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PairSums {
    /// Each of the first list with each of the second.
    Product,
    /// Both lists are one: each value with itself and with each later one.
    Triangle,
}

impl PairSums {
    /// Number of sums.
    pub(super) fn count(self, xs: &[f64], ys: &[f64]) -> usize {
        match self {
            Self::Product => xs.len() * ys.len(),
            Self::Triangle => xs.len() * (xs.len() + 1) / 2,
        }
    }

    fn at_most(self, xs: &[f64], ys: &[f64], limit: f64) -> usize {
        let mut end = ys.len();
        let mut count = 0;
        for x in xs {
            while end > 0 && x + ys[end - 1] > limit {
                end -= 1;
            }
            count += end;
        }
        match self {
            Self::Product => count,
            Self::Triangle => (count + xs.partition_point(|x| x + x <= limit)) / 2,
        }
    }

    /// The `rank`-th smallest sum, from 1, of two ascending lists. It halves the range of the
    /// numbers instead of making all sums, so that ten thousand samples need no memory.
    pub(super) fn nth(self, xs: &[f64], ys: &[f64], rank: usize) -> f64 {
        let (last_x, last_y) = (xs[xs.len() - 1], ys[ys.len() - 1]);
        let (mut low, mut high) = (place(xs[0] + ys[0]), place(last_x + last_y));
        while low < high {
            let middle = low + (high - low) / 2;
            if self.at_most(xs, ys, number(middle)) >= rank {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        // Without the sign of a zero.
        number(low) + 0.0
    }

    /// The median of all sums.
    pub(super) fn median(self, xs: &[f64], ys: &[f64]) -> f64 {
        let count = self.count(xs, ys);
        let lower = self.nth(xs, ys, count.div_ceil(2));
        if count % 2 == 1 { lower } else { f64::midpoint(lower, self.nth(xs, ys, count / 2 + 1)) }
    }
}

const SIGN: u64 = 1 << 63;

/// The place of a number among all numbers.
fn place(number: f64) -> u64 {
    let bits = number.to_bits();
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}

fn number(place: u64) -> f64 {
    f64::from_bits(if place & SIGN == 0 { !place } else { place & !SIGN })
}

#[cfg(test)]
mod tests {
    use testkit::Random;

    use super::{NullDistribution, PairSums, doubled_ranks, number, place};
    use crate::stats::distributions::normal;
    use crate::stats::sorted;

    #[test]
    fn ranks_of_ties_are_their_mean() {
        assert_eq!(doubled_ranks(&[1.0, 2.0, 2.0, 5.0]), [2, 5, 5, 8]);
        assert_eq!(doubled_ranks(&[3.0; 3]), [4, 4, 4]);
    }

    /// The exact distribution and its approximation for as many samples are close.
    #[test]
    fn the_approximation_is_close_to_the_exact_distribution() {
        let ranks: Vec<usize> = (1..=50).map(|rank| 2 * rank).collect();
        let signed = || NullDistribution::of_signed_ranks(&ranks);
        let sums = || NullDistribution::of_rank_sums(&ranks, 20);
        for (exact, mut near) in [(signed(), signed()), (sums(), sums())] {
            near.exact = None;
            for z in [-3.0, -2.0, -1.0, 0.0, 1.5] {
                let statistic = (exact.mean + z * exact.deviation).round();
                let (a, b) = (exact.p_value(statistic), near.p_value(statistic));
                // Far in the tail it errs by a fifth of a small number.
                assert!((a - b).abs() < 0.25 * a.max(b) && (a - b).abs() < 0.005, "{a} {b}");
            }
            let (a, b) = (exact.rank(0.005).0, near.rank(0.005).0);
            assert!(a.abs_diff(b) <= 3, "{a} {b}");
        }
    }

    #[test]
    fn the_nth_sum_is_that_of_all_sums() {
        let mut random = Random::new(7);
        for n in [1, 2, 5, 12] {
            let mut draw = |n: usize| {
                let list: Vec<f64> = (0..n).map(|_| (4.0 * normal(&mut random)).round()).collect();
                sorted(&list)
            };
            let (xs, ys) = (draw(n), draw(n + 3));
            let products = xs.iter().flat_map(|x| ys.iter().map(move |y| x + y));
            let triangle =
                xs.iter().enumerate().flat_map(|(at, x)| xs[at..].iter().map(move |y| x + y));
            for (rank, sum) in sorted(&products.collect::<Vec<_>>()).iter().enumerate() {
                assert_eq!(PairSums::Product.nth(&xs, &ys, rank + 1), *sum);
            }
            for (rank, sum) in sorted(&triangle.collect::<Vec<_>>()).iter().enumerate() {
                assert_eq!(PairSums::Triangle.nth(&xs, &xs, rank + 1), *sum);
            }
        }
        assert_eq!(PairSums::Triangle.median(&[1.0, 2.0], &[1.0, 2.0]), 3.0);
    }

    #[test]
    fn places_keep_the_order_of_numbers() {
        let numbers = [f64::NEG_INFINITY, -1e300, -1.0, -1e-300, 0.0, 1e-9, 2.0, f64::INFINITY];
        assert!(numbers.is_sorted_by_key(|one| place(*one)));
        assert!(numbers.iter().all(|one| number(place(*one)) == *one));
    }
}
