//! Common parts of the rows of several benches: a peer's figure beside ours, and a row with the
//! reason that there is no figure.

use serde::Serialize;

use super::common::Row;
use super::measure::{Pairs, median, rounded};

/// Another's figure beside ours.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Beside {
    /// Name of the peer.
    pub(super) peer: String,
    /// Its median.
    pub(super) peer_value: f64,
    /// Ours divided by its: the mean of the pairs; none for less than two.
    pub(super) ratio: Option<f64>,
    /// The lower end of the 95 % interval.
    pub(super) low: Option<f64>,
    /// The upper end.
    pub(super) high: Option<f64>,
}

impl Beside {
    /// The peer's figure, and the ratio of measurements that follow each other.
    pub(super) fn of(peer: &str, pairs: &Pairs) -> Self {
        let ratio = pairs.ratio();
        Self {
            peer: peer.to_owned(),
            peer_value: rounded(median(&pairs.theirs)),
            ratio: ratio.map(|ratio| rounded(ratio.value)),
            low: ratio.map(|ratio| rounded(ratio.low)),
            high: ratio.map(|ratio| rounded(ratio.high)),
        }
    }

    /// The words behind a figure, for people.
    pub(super) fn text(&self) -> String {
        let mut text = format!("; {} {}", self.peer, self.peer_value);
        if let (Some(ratio), Some(low), Some(high)) = (self.ratio, self.low, self.high) {
            text += &format!(", ratio {ratio} ({low} to {high})");
        }
        text
    }
}

/// A row that cannot be measured here.
#[derive(Debug, Serialize)]
pub(super) struct AbsentRow {
    /// Its name.
    pub(super) row: &'static str,
    /// The missing program, and the remedy.
    pub(super) absent: String,
}

impl Row for AbsentRow {
    fn text(&self) -> String {
        format!("{:32} not measured: {}\n", self.row, self.absent)
    }

    fn is_good(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::Beside;
    use crate::bench::measure::Pairs;

    #[test]
    fn one_pair_has_a_peer_and_no_ratio() {
        let beside = Beside::of("other", &Pairs { ours: vec![2.0], theirs: vec![1.0] });
        assert_eq!((beside.peer_value, beside.ratio, beside.low), (1.0, None, None));
        assert_eq!(beside.text(), "; other 1");
    }
}
