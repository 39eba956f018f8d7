//! Many comparisons at once: of a hundred rows without any change, one has a p-value below 0.01.

/// P-values adjusted by Holm ("A simple sequentially rejective multiple test procedure", 1979), in
/// the order of `p_values`. Those that are at most 0.01 then hold together: that any of them is
/// chance has a probability of at most 0.01, however the comparisons depend on each other.
#[must_use]
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut adjusted = vec![0.0; p_values.len()];
    let mut most = 0.0_f64;
    for (before, index) in order.into_iter().enumerate() {
        let left = (p_values.len() - before) as f64;
        most = most.max((left * p_values[index]).min(1.0));
        adjusted[index] = most;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use testkit::Random;

    use super::holm;
    use crate::stats::distributions::Known;
    use crate::stats::wilcoxon_signed_rank;

    /// By hand: 5 * 0.005, 4 * 0.01, 3 * 0.03, then 2 * 0.04 and 0.6, of which the first becomes
    /// the one before it.
    #[test]
    fn known_values() {
        let found = holm(&[0.04, 0.01, 0.03, 0.005, 0.6]);
        let known = [0.09, 0.04, 0.09, 0.025, 0.6];
        assert!(found.iter().zip(known).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?}");
        assert_eq!(holm(&[0.7, 0.9]), [1.0, 1.0]);
        assert!(holm(&[]).is_empty());
    }

    /// In 400 families of twenty comparisons without a difference, the raw p-values find one at
    /// 0.05 in most families, the adjusted ones in at most 5 % of them (20; by chance up to 34).
    #[test]
    fn families_without_a_difference_find_none() {
        let mut random = Random::new(20);
        let (mut raw, mut adjusted) = (0, 0);
        for _ in 0..400 {
            let p_values: Vec<f64> = (0..20)
                .map(|_| {
                    let samples = Known::Normal.samples(&mut random, 15);
                    let moved: Vec<f64> = samples.iter().map(|sample| sample - 10.0).collect();
                    wilcoxon_signed_rank(&moved, 0.99).unwrap().p_value
                })
                .collect();
            raw += usize::from(p_values.iter().any(|p| *p <= 0.05));
            adjusted += usize::from(holm(&p_values).iter().any(|p| *p <= 0.05));
        }
        assert!(raw > 200 && adjusted <= 34, "{raw} {adjusted}");
    }
}
