//! The first switch beside each of the others, one metric at a time.
//!
//! It must never call a switch ahead at a point where no difference was seen.

use crate::present::number::{capital, times};
use crate::present::section::{MetricTable, Section, TableRow, is_reference};
use crate::present::switch_ratio::{Standing, SwitchRatio};
use crate::results::Better;

use super::{Claim, Tone, in_place};

/// A sentence for each other switch.
pub(super) fn claims(section: &Section<'_>, table: &MetricTable<'_>) -> Vec<Claim> {
    if table.derived_from.is_some() {
        return Vec::new();
    }
    let claim = |other: usize| {
        if is_reference(section.duts[other]) {
            of_reference(section, table, other)
        } else {
            against(section, table, other)
        }
    };
    (1..section.duts.len()).filter_map(claim).collect()
}

/// The rows on one side.
#[derive(Default)]
struct Side<'t> {
    rows: usize,
    /// The row with the greatest difference.
    farthest: Option<(&'t TableRow<'t>, &'t SwitchRatio)>,
}

impl<'t> Side<'t> {
    fn add(&mut self, row: &'t TableRow<'t>, ratio: &'t SwitchRatio) {
        self.rows += 1;
        let distance = |ratio: &SwitchRatio| ratio.ratio.ln().abs();
        if self.farthest.is_none_or(|(_, known)| distance(ratio) > distance(known)) {
            self.farthest = Some((row, ratio));
        }
    }
}

fn against(section: &Section<'_>, table: &MetricTable<'_>, other: usize) -> Option<Claim> {
    let (mut ahead, mut behind, mut none) = (Side::default(), Side::default(), Side::default());
    for row in &table.rows {
        let Some(ratio) = row.ratios.get(other).and_then(Option::as_ref) else { continue };
        match ratio.standing {
            Standing::Better => ahead.add(row, ratio),
            Standing::Worse => behind.add(row, ratio),
            Standing::NoDifference => none.add(row, ratio),
        }
    }
    let all = ahead.rows + behind.rows + none.rows;
    let tone = match (ahead.rows > 0, behind.rows > 0) {
        (true, true) => Tone::Both,
        (true, false) => Tone::Ahead,
        (false, true) => Tone::Behind,
        (false, false) => Tone::NoDifference,
    };
    let names = (section.duts.first()?, section.duts[other]);
    let claim = Claim::new(tone).strong(capital(&table.metric.label));
    match all {
        0 => None,
        1 => Some(at_one_point(claim, section, table, names, [&ahead, &behind, &none], other)),
        _ => Some(at_many(claim, section, table.metric.better, names, [&ahead, &behind, &none])),
    }
}

/// Share of the path without a switch that the first switch reaches: a fact, and no contest.
fn of_reference(section: &Section<'_>, table: &MetricTable<'_>, other: usize) -> Option<Claim> {
    let ratios = table.rows.iter().filter_map(|row| Some((row, row.ratios.get(other)?.as_ref()?)));
    let by_ratio = |a: &(&TableRow<'_>, &SwitchRatio), b: &(&TableRow<'_>, &SwitchRatio)| {
        a.1.ratio.total_cmp(&b.1.ratio)
    };
    let low = ratios.clone().min_by(by_ratio)?;
    let high = ratios.max_by(by_ratio)?;
    let claim = Claim::new(Tone::Fact)
        .strong(capital(&table.metric.label))
        .words(format!(" of {} is ", section.duts.first()?));
    let claim = claim.link(format!("{} times", times(low.1.ratio)), low.0);
    let claim = if low.0.anchor == high.0.anchor {
        claim
    } else {
        let there = |row: &TableRow<'_>| format!(" ({})", section.place(row.at));
        let claim = claim.words(format!("{} to ", there(low.0)));
        claim.link(format!("{} times", times(high.1.ratio)), high.0).words(there(high.0))
    };
    Some(claim.words(format!(" that of the path without a switch ({}).", section.duts[other])))
}

/// `Rate: weir 1,420,000 [1,410,000–1,430,000], ovs ...: 1.48 (1.46–1.50) times, better.`
fn at_one_point(
    claim: Claim,
    section: &Section<'_>,
    table: &MetricTable<'_>,
    (first, second): (&&str, &str),
    sides: [&Side<'_>; 3],
    other: usize,
) -> Claim {
    let [ahead, behind, none] = sides;
    let Some((row, ratio)) = [ahead, behind, none].iter().find_map(|side| side.farthest) else {
        return claim;
    };
    let figure = |index: usize| {
        let figure = row.entries.get(index).and_then(|entry| entry.figure());
        figure.map_or_else(String::new, |figure| figure.text(table.metric.decimals))
    };
    let unit = &table.metric.unit;
    let claim = claim
        .words(format!("{}: {first} ", in_place(section, row)))
        .link(figure(0), row)
        .words(format!(", {second} {} {unit}: ", figure(other)))
        .link(format!("{} times", ratio.text()), row);
    claim.words(match ratio.standing {
        Standing::Better => ", better.",
        Standing::Worse => ", worse.",
        Standing::NoDifference => ": no difference is seen.",
    })
}

/// `Rate: weir is ahead of ovs at 12 of 14 points, most at frame size 64 B (4.2 times), ...`
fn at_many(
    mut claim: Claim,
    section: &Section<'_>,
    better: Better,
    (first, second): (&&str, &str),
    sides: [&Side<'_>; 3],
) -> Claim {
    let [ahead, behind, none] = sides;
    let all = ahead.rows + behind.rows + none.rows;
    let word = |is_ahead: bool| match (better, is_ahead) {
        (Better::Higher, true) | (Better::Lower, false) => "higher",
        (Better::Higher, false) | (Better::Lower, true) => "lower",
    };
    let mut is_first = true;
    for (side, is_ahead) in [(ahead, true), (behind, false)] {
        let Some((row, ratio)) = side.farthest else { continue };
        let meaning = if is_ahead { "ahead" } else { "behind" };
        let rows = if side.rows == all {
            format!("at all {all} points")
        } else {
            format!("at {} of {all} points", side.rows)
        };
        claim = claim.words(if is_first {
            format!(" of {first} is {} than that of {second} ({meaning}) {rows}", word(is_ahead))
        } else {
            format!("; it is {} ({meaning}) {rows}", word(is_ahead))
        });
        claim = claim
            .words(", most with ")
            .link(format!("{} times", times(ratio.ratio)), row)
            .words(in_place(section, row));
        is_first = false;
    }
    if is_first {
        return claim
            .words(format!(
                " of {first} and {second}: no difference is seen at any of {all} points"
            ))
            .farthest(none, section);
    }
    let claim = match none.rows {
        0 => claim,
        rows => claim.words(format!("; no difference is seen at {rows}")),
    };
    claim.words(".")
}

/// From so many times between the ends of its interval on, a ratio leaves much open.
const WIDE: f64 = 1.5;

impl Claim {
    /// The row that is farthest from 1; where its interval is wide, that it may be chance.
    fn farthest(self, side: &Side<'_>, section: &Section<'_>) -> Self {
        let Some((row, ratio)) = side.farthest else { return self.words(".") };
        let (low, high) = ratio.interval;
        let is_wide = high > WIDE * low;
        let before = if is_wide {
            format!("; of {} starts even ", ratio.pairs)
        } else {
            ", farthest apart with ".to_owned()
        };
        let end = if is_wide { " may be chance." } else { "." };
        self.words(before)
            .link(format!("{} times", times(ratio.ratio)), row)
            .words(format!("{}{end}", in_place(section, row)))
    }
}
