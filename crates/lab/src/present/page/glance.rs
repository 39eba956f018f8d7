//! All scenarios in one table: how the first switch stands beside each of the others.

use std::fmt::Write;

use super::escape::escape;
use super::parts::tone_class;
use crate::present::claims::Tone;
use crate::present::number::{capital, count, times};
use crate::present::section::{MetricTable, Section, TableRow, is_reference};
use crate::present::switch_ratio::{Standing, SwitchRatio};

/// So many metrics of a scenario are shown; the others are in its tables.
const METRICS: usize = 3;

/// The table; nothing where no switch can be compared.
pub(super) fn write(page: &mut String, sections: &[Section<'_>]) {
    let mut others: Vec<&str> = Vec::new();
    for section in sections {
        for (other, dut) in section.duts.iter().enumerate().skip(1) {
            if !others.contains(dut) && section.tables.iter().any(|t| !rows(t, other).is_empty()) {
                others.push(dut);
            }
        }
    }
    if others.is_empty() {
        return;
    }
    page.push_str(
        "<div class=\"scroll card\" role=\"region\" tabindex=\"0\" aria-label=\"At a glance\">\
         <table class=\"glance\"><caption>At a glance: the first switch's figure divided by the \
         other's, from the lowest to the highest over all points</caption><thead><tr>\
         <th scope=\"col\">scenario</th><th scope=\"col\">metric</th>",
    );
    for other in &others {
        let _ = write!(page, "<th scope=\"col\">÷ {}</th>", escape(other));
    }
    page.push_str("</tr></thead><tbody>");
    for section in sections {
        let with_ratios: Vec<&MetricTable<'_>> = section
            .tables
            .iter()
            .filter(|table| table.derived_from.is_none())
            .filter(|table| (1..section.duts.len()).any(|other| !rows(table, other).is_empty()))
            .collect();
        let more = with_ratios.len().saturating_sub(METRICS);
        for (index, table) in with_ratios.iter().take(METRICS).enumerate() {
            page.push_str("<tr>");
            if index == 0 {
                let _ = write!(
                    page,
                    "<th scope=\"rowgroup\" rowspan=\"{}\"><a href=\"#s{}\">{}</a>{}</th>",
                    with_ratios.len().min(METRICS),
                    section.index,
                    escape(&section.heading()),
                    if more > 0 {
                        let metrics = count(more, "more metric", "more metrics");
                        format!("<div class=\"sub\">and {metrics}</div>")
                    } else {
                        String::new()
                    }
                );
            }
            let _ = write!(page, "<td>{}</td>", escape(&capital(&table.metric.label)));
            for other in &others {
                let column = section.duts.iter().position(|dut| dut == other);
                page.push_str("<td>");
                if let Some(column) = column.filter(|column| *column > 0) {
                    range(page, &rows(table, column), is_reference(other));
                }
                page.push_str("</td>");
            }
            page.push_str("</tr>");
        }
    }
    page.push_str("</tbody></table></div>");
}

type Placed<'t> = (&'t TableRow<'t>, &'t SwitchRatio);

fn rows<'t>(table: &'t MetricTable<'t>, other: usize) -> Vec<Placed<'t>> {
    let ratio = |row: &'t TableRow<'t>| Some((row, row.ratios.get(other)?.as_ref()?));
    table.rows.iter().filter_map(ratio).collect()
}

/// The lowest and the highest ratio with their rows, and what all of them say.
fn range(page: &mut String, rows: &[Placed<'_>], is_reference: bool) {
    let by_ratio = |a: &&Placed<'_>, b: &&Placed<'_>| a.1.ratio.total_cmp(&b.1.ratio);
    let (Some(low), Some(high)) = (rows.iter().min_by(by_ratio), rows.iter().max_by(by_ratio))
    else {
        page.push_str("<span class=\"soft\">not compared</span>");
        return;
    };
    let (mut ahead, mut behind) = (false, false);
    for (_, ratio) in rows {
        match ratio.standing {
            Standing::Better => ahead = true,
            Standing::Worse => behind = true,
            Standing::NoDifference => {}
        }
    }
    let tone = match (ahead, behind) {
        (true, true) => Tone::Both,
        (true, false) => Tone::Ahead,
        (false, true) => Tone::Behind,
        (false, false) => Tone::NoDifference,
    };
    let link = |row: &Placed<'_>| {
        format!("<a class=\"claim\" href=\"#{}\">{}</a>", row.0.anchor, times(row.1.ratio))
    };
    let text = if low.0.anchor == high.0.anchor {
        link(low)
    } else {
        format!("{}–{}", link(low), link(high))
    };
    if is_reference {
        let _ = write!(page, "<span class=\"nowrap\">{text} ×</span>");
        return;
    }
    let _ = write!(
        page,
        "<span class=\"nowrap\">{text} ×</span> <span class=\"chip {}\">{}</span>",
        tone_class(tone),
        tone.label()
    );
}
