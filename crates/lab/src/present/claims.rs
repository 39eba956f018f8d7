//! Claims of the rows, in sentences: each is derived from rows by rule, and links to them.
//!
//! A sentence must never say more than its rows: a difference is clear only where its interval is,
//! corrected for the number of comparisons, and otherwise called what it is.

mod comparison;
mod effect;
mod run;

use super::entry::ShownFigure;
use super::number::{count, number};
use super::section::{MetricTable, Section, TableRow};

pub(crate) use run::{overall, warnings};

/// Direction of a sentence, for the first switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// It is ahead.
    Ahead,
    /// It is behind.
    Behind,
    /// Ahead here, behind there.
    Both,
    /// No difference was seen.
    NoDifference,
    /// A fact without a direction.
    Fact,
    /// Something to beware of.
    Caution,
}

impl Tone {
    /// The word for it, empty for a mere fact.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Ahead => "ahead",
            Self::Behind => "behind",
            Self::Both => "both ways",
            Self::NoDifference => "no difference seen",
            Self::Fact => "",
            Self::Caution => "caution",
        }
    }
}

/// A piece of a sentence.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ClaimPart {
    /// Words.
    Words(String),
    /// Words that stand out.
    Strong(String),
    /// A figure, and the anchor of the row that it is from.
    Link(String, String),
}

/// A sentence.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Claim {
    /// Its direction.
    pub(crate) tone: Tone,
    /// Its pieces, in order.
    pub(crate) parts: Vec<ClaimPart>,
}

impl Claim {
    fn new(tone: Tone) -> Self {
        Self { tone, parts: Vec::new() }
    }

    fn words(mut self, text: impl Into<String>) -> Self {
        self.parts.push(ClaimPart::Words(text.into()));
        self
    }

    fn strong(mut self, text: impl Into<String>) -> Self {
        self.parts.push(ClaimPart::Strong(text.into()));
        self
    }

    fn link(mut self, text: impl Into<String>, row: &TableRow<'_>) -> Self {
        self.parts.push(ClaimPart::Link(text.into(), row.anchor.clone()));
        self
    }

    /// The sentence without links.
    pub(crate) fn text(&self) -> String {
        let part = |part: &ClaimPart| match part {
            ClaimPart::Words(text) | ClaimPart::Strong(text) | ClaimPart::Link(text, _) => {
                text.clone()
            }
        };
        self.parts.iter().map(part).collect()
    }
}

/// Claims of a scenario's rows.
pub(crate) fn claims(section: &Section<'_>) -> Vec<Claim> {
    let mut claims = Vec::new();
    for table in &section.tables {
        claims.extend(comparison::claims(section, table));
    }
    for table in &section.tables {
        claims.extend(published(section, table));
    }
    if let Some(table) = section.tables.first() {
        claims.extend(effect::claims(section, table));
    }
    claims.extend(section.tables.iter().find_map(|table| limits(section, table)));
    claims.extend(kernel_tier(section));
    claims.extend(cautions(section));
    claims
}

/// Largest number of published figures in one sentence.
const PUBLISHED_MAX: usize = 4;

/// The first row with published figures, beside ours.
fn published(section: &Section<'_>, table: &MetricTable<'_>) -> Option<Claim> {
    let has_both = |row: &&TableRow<'_>| {
        !row.published.is_empty() && row.entries.iter().any(|entry| entry.figure().is_some())
    };
    let row = table.rows.iter().find(has_both)?;
    let decimals = table.metric.decimals;
    let mut claim = Claim::new(Tone::Fact).strong("Published").words(format!(
        " for {}{}: ",
        table.name(),
        in_place(section, row)
    ));
    let figure = |figure: &&crate::results::Published| {
        let to = figure.to.map_or(String::new(), |to| format!("–{}", number(to, decimals)));
        format!("{}{to} ({})", number(figure.value, decimals), figure.switch)
    };
    let shown: Vec<String> = row.published.iter().take(PUBLISHED_MAX).map(figure).collect();
    claim = claim.words(shown.join(", "));
    if row.published.len() > PUBLISHED_MAX {
        claim = claim.words(format!(" and {} more", row.published.len() - PUBLISHED_MAX));
    }
    claim = claim.words(". Here: ");
    let mut is_first = true;
    for (dut, entry) in section.duts.iter().zip(&row.entries) {
        let Some(figure) = entry.figure() else { continue };
        let comma = if is_first { "" } else { ", " };
        claim = claim.words(format!("{comma}{dut} ")).link(figure.text(decimals), row);
        is_first = false;
    }
    Some(claim.words("."))
}

/// The part that limited each switch, and the number of rows.
fn limits(section: &Section<'_>, table: &MetricTable<'_>) -> Option<Claim> {
    let mut claim =
        Claim::new(Tone::Fact).strong("What limited").words(format!(" {}: ", table.metric.label));
    let mut is_first = true;
    for (index, dut) in section.duts.iter().enumerate() {
        let limited = table.rows.iter().filter_map(|row| {
            let limit = row.entries.get(index)?.figure()?.limit?;
            Some((row, super::limit_label(limit)))
        });
        let mut parts: Vec<(String, usize, &TableRow<'_>)> = Vec::new();
        for (row, label) in limited {
            match parts.iter_mut().find(|(known, ..)| *known == label) {
                Some((_, rows, _)) => *rows += 1,
                None => parts.push((label, 1, row)),
            }
        }
        parts.sort_by_key(|(_, rows, _)| std::cmp::Reverse(*rows));
        for (at, (label, rows, row)) in parts.into_iter().enumerate() {
            let before = match (is_first, at) {
                (true, _) => format!("{dut} "),
                (false, 0) => format!("; {dut} "),
                (false, _) => ", ".to_owned(),
            };
            is_first = false;
            let rows = count(rows, "row", "rows");
            claim = claim.words(before).link(label, row).words(format!(" ({rows})"));
        }
    }
    (!is_first).then(|| claim.words("."))
}

/// Packets that a tier inside the kernel decided, of switches that may have one.
fn kernel_tier(section: &Section<'_>) -> Option<Claim> {
    let mut sentences = Vec::new();
    for dut in &section.duts {
        let cells = section.scenario.cells.iter().filter(|cell| cell.dut == *dut);
        let trials: Vec<_> =
            cells.flat_map(|cell| &cell.trials).filter(|trial| trial.error.is_none()).collect();
        let hits: Vec<u64> = trials.iter().filter_map(|trial| trial.tier_hits).collect();
        let errors: Vec<&str> =
            trials.iter().filter_map(|trial| trial.tier_error.as_deref()).collect();
        if !hits.is_empty() {
            let packets = number(hits.iter().sum::<u64>() as f64, 0);
            let in_use = number(hits.iter().filter(|hits| **hits > 0).count() as f64, 0);
            let of = count(hits.len(), "trial", "trials");
            sentences.push(format!("{dut} {packets} packets, in {in_use} of {of}"));
        }
        if let Some(error) = errors.first() {
            let of = count(errors.len(), "trial", "trials");
            sentences.push(format!("{dut} does not say of {of}: {error}"));
        }
    }
    let claim = Claim::new(Tone::Fact).strong("The kernel tier").words(" decided: ");
    (!sentences.is_empty()).then(|| claim.words(format!("{}.", sentences.join("; "))))
}

/// Figures that are below the floor or the error of the clocks.
fn cautions(section: &Section<'_>) -> Vec<Claim> {
    let rows = || section.tables.iter().flat_map(|table| &table.rows);
    let figures = || {
        rows().flat_map(|row| {
            row.entries.iter().filter_map(move |entry| Some((row, entry.figure()?)))
        })
    };
    let mut claims = Vec::new();
    let below: Vec<_> = figures().filter(|(_, figure)| figure.is_below_floor).collect();
    if let Some((row, _)) = below.first() {
        let claim = Claim::new(Tone::Caution)
            .link(count(below.len(), "figure is", "figures are"), row)
            .words(
                " below the lab's own floor, what is measured without a switch: no more is known \
                    than that the switch adds less.",
            );
        claims.push(claim);
    }
    let apart = |figure: &ShownFigure<'_>| figure.exceeding_clock_error().is_some();
    let clocks: Vec<_> = figures().filter(|(_, figure)| apart(figure)).collect();
    if let Some((row, _)) = clocks.first() {
        let claim = Claim::new(Tone::Caution)
            .link(count(clocks.len(), "figure is", "figures are"), row)
            .words(
                " not above the error of the clocks of two boxes: no more is known than that the \
                 delay is not more than both together.",
            );
        claims.push(claim);
    }
    claims
}

/// ` at frame size 64 B`, or nothing where there is one point.
fn in_place(section: &Section<'_>, row: &TableRow<'_>) -> String {
    let place = section.place(row.at);
    if place.is_empty() { place } else { format!(" at {place}") }
}

#[cfg(test)]
mod tests;
