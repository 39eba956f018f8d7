//! Choice of the next load.
//!
//! A pure function of the bounds so far. It must always name a load that is not a bound yet, so
//! that a search ends.

use super::SearchGoal;

/// The next step of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Selection {
    /// The bounds are near enough, or at the end of the range.
    Done,
    /// A load between the bounds, or a bound of the coarser target.
    Inside(f64),
    /// A load beyond the only bound: the next such is further away.
    Outside(f64),
}

/// The next load for `target`. `bounds` and `hint` are lower and upper: the target's own and those
/// of the coarser target before it; `range` is what can be offered; `forwarding_pps` is the rate at
/// which frames came out at the upper bound; `expansion` grows with each load outside the bounds.
pub(super) fn select(
    target: &SearchGoal,
    bounds: (Option<f64>, Option<f64>),
    hint: (Option<f64>, Option<f64>),
    range: (f64, f64),
    forwarding_pps: Option<f64>,
    expansion: f64,
) -> Selection {
    let (lower, upper) = bounds;
    let is_inside = |rate: f64| {
        lower.is_none_or(|lower| rate > lower) && upper.is_none_or(|upper| rate < upper)
    };
    let (min, max) = range;
    let width = (target.relative_width * expansion).min(0.9);
    match (lower, upper) {
        (Some(lower), Some(upper)) if upper - lower <= target.relative_width * upper => {
            return Selection::Done;
        }
        (Some(lower), None) if lower >= max => return Selection::Done,
        (None, Some(upper)) if upper <= min => return Selection::Done,
        (Some(_) | None, Some(_) | None) => {}
    }
    // The bounds of the coarser target are tried at this one's durations first.
    if let Some(rate) = [hint.0, hint.1].into_iter().flatten().find(|rate| is_inside(*rate)) {
        return Selection::Inside(rate);
    }
    match (lower, upper) {
        (Some(lower), Some(upper)) => {
            let middle = (lower * upper).sqrt();
            // Neighbouring numbers have no middle.
            if is_inside(middle) { Selection::Inside(middle) } else { Selection::Done }
        }
        (None, None) => Selection::Outside(max),
        (Some(lower), None) => Selection::Outside((lower / (1.0 - width)).min(max)),
        (None, Some(upper)) => {
            // What came out of an overloaded device is near to what it can do.
            let forwarded = forwarding_pps.map(|pps| pps / (1.0 - target.loss_ratio));
            let least = upper * (1.0 - width);
            let next = forwarded.filter(|pps| *pps < least).unwrap_or(least);
            Selection::Outside(next.max(min))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Selection, select};
    use crate::method::mlrsearch::SearchGoal;

    const RANGE: (f64, f64) = (1.0, 1000.0);

    fn next(lower: Option<f64>, upper: Option<f64>, hint: (Option<f64>, Option<f64>)) -> Selection {
        let goal = SearchGoal { relative_width: 0.1, ..SearchGoal::ndr() };
        select(&goal, (lower, upper), hint, RANGE, None, 1.0)
    }

    #[test]
    fn a_search_begins_at_the_top_and_ends_between_near_bounds() {
        let none = (None, None);
        assert_eq!(next(None, None, none), Selection::Outside(1000.0));
        assert_eq!(next(None, Some(1000.0), none), Selection::Outside(900.0));
        assert_eq!(next(Some(400.0), Some(900.0), none), Selection::Inside(600.0));
        assert_eq!(next(Some(820.0), Some(900.0), none), Selection::Done);
        assert_eq!(next(Some(1000.0), None, none), Selection::Done);
        assert_eq!(next(None, Some(1.0), none), Selection::Done);
        assert_eq!(next(Some(990.0), None, none), Selection::Outside(1000.0));
    }

    #[test]
    fn bounds_of_a_coarser_target_come_first() {
        let hint = (Some(400.0), Some(500.0));
        assert_eq!(next(None, None, hint), Selection::Inside(400.0));
        assert_eq!(next(Some(400.0), None, hint), Selection::Inside(500.0));
        assert_eq!(next(None, Some(400.0), hint), Selection::Outside(360.0));
        assert_eq!(next(Some(500.0), None, hint), Selection::Outside(500.0 / 0.9));
    }

    #[test]
    fn what_came_out_is_tried_where_nothing_passed() {
        let goal = SearchGoal { relative_width: 0.1, ..SearchGoal::ndr() };
        let found = select(&goal, (None, Some(1000.0)), (None, None), RANGE, Some(300.0), 1.0);
        assert_eq!(found, Selection::Outside(300.0));
        let expanded = select(&goal, (None, Some(250.0)), (None, None), RANGE, Some(250.0), 4.0);
        assert_eq!(expanded, Selection::Outside(150.0));
    }
}
