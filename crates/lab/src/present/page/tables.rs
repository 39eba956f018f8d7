//! The figures of a scenario as HTML tables: a row for each point, with the anchor of its claims.
//!
//! Without JavaScript these are the whole of the report.

use std::fmt::Write;

use super::data::all_duts;
use super::escape::escape;
use super::parts::{state_class, swatch};
use crate::present::entry::TableEntry;
use crate::present::limit_label;
use crate::present::number::{axis_value, number};
use crate::present::section::{MetricTable, Section, TableRow, is_reference};
use crate::present::switch_ratio::{Standing, SwitchRatio};
use crate::results::Better;
use crate::results::Results;

/// A table of more rows than this is folded, unless it is the first.
const OPEN_ROWS: usize = 12;

/// All tables of a section.
pub(super) fn write(page: &mut String, results: &Results, section: &Section<'_>) {
    if section.tables.is_empty() {
        return;
    }
    page.push_str("<h3>Figures</h3>");
    if section.points.len() == 1 {
        open(page, "Figures");
        head(page, results, section, &["metric".to_owned()], has_published(section));
        for table in &section.tables {
            for row in &table.rows {
                let name = format!("<th scope=\"row\">{}</th>", escape(&table.heading()));
                line(page, section, table, row, &name, has_published(section));
            }
        }
        page.push_str("</tbody></table></div>");
        return;
    }
    for (index, table) in section.tables.iter().enumerate() {
        let is_open = index == 0 || table.rows.len() <= OPEN_ROWS;
        let _ = write!(
            page,
            "<details class=\"figures\"{}><summary>{}</summary>",
            if is_open { " open" } else { "" },
            escape(&table.heading())
        );
        open(page, &table.name());
        let axes: Vec<String> = section
            .axes
            .iter()
            .map(|axis| match axis.unit.as_str() {
                "" => axis.label.clone(),
                unit => format!("{}, {unit}", axis.label),
            })
            .collect();
        head(page, results, section, &axes, table.has_published());
        for row in &table.rows {
            let places: String = section
                .axes
                .iter()
                .map(|axis| {
                    let value = row.at.get(&axis.name).map_or("-", String::as_str);
                    format!("<th scope=\"row\">{}</th>", escape(&axis_value(value)))
                })
                .collect();
            line(page, section, table, row, &places, table.has_published());
        }
        page.push_str("</tbody></table></div></details>");
    }
}

fn has_published(section: &Section<'_>) -> bool {
    section.tables.iter().any(MetricTable::has_published)
}

fn open(page: &mut String, name: &str) {
    let _ = write!(
        page,
        "<div class=\"scroll card\" role=\"region\" tabindex=\"0\" aria-label=\"{}\"><table \
         class=\"rows\">",
        escape(name)
    );
}

fn head(
    page: &mut String,
    results: &Results,
    section: &Section<'_>,
    names: &[String],
    has_published: bool,
) {
    page.push_str("<thead><tr>");
    for name in names {
        let _ = write!(page, "<th scope=\"col\">{}</th>", escape(name));
    }
    let duts = all_duts(results);
    for dut in &section.duts {
        let colour = duts.iter().position(|known| known == dut).unwrap_or_default();
        let _ = write!(page, "<th scope=\"col\">{}{}</th>", swatch(colour), escape(dut));
    }
    if has_published {
        page.push_str("<th scope=\"col\">published</th>");
    }
    page.push_str("</tr></thead><tbody>");
}

fn line(
    page: &mut String,
    section: &Section<'_>,
    table: &MetricTable<'_>,
    row: &TableRow<'_>,
    name: &str,
    has_published: bool,
) {
    let _ = write!(page, "<tr id=\"{}\">{name}", row.anchor);
    for (index, entry) in row.entries.iter().enumerate() {
        let ratio = row.ratios.get(index).and_then(Option::as_ref);
        cell(page, entry, table);
        if let (Some(ratio), Some(first)) = (ratio, section.duts.first()) {
            let is_reference = section.duts.get(index).is_some_and(|dut| is_reference(dut));
            versus(page, ratio, first, (table.metric.better, is_reference));
        }
        page.push_str("</td>");
    }
    if has_published {
        page.push_str("<td class=\"published\">");
        let decimals = table.metric.decimals;
        for figure in &row.published {
            let to = figure.to.map_or(String::new(), |to| format!("–{}", number(to, decimals)));
            let _ = write!(
                page,
                "<div>{}{to} <span class=\"sub\">{}</span></div>",
                number(figure.value, decimals),
                escape(&figure.switch)
            );
        }
        page.push_str("</td>");
    }
    page.push_str("</tr>");
}

/// An entry; the cell is left open.
fn cell(page: &mut String, entry: &TableEntry<'_>, table: &MetricTable<'_>) {
    if let Some((word, reason)) = entry.absence() {
        let _ = write!(
            page,
            "<td class=\"none\"><span class=\"chip {}\" title=\"{}\">{word}</span>",
            state_class(word),
            escape(reason)
        );
        return;
    }
    let Some(figure) = entry.figure() else { return };
    let decimals = table.metric.decimals;
    let text = figure.text(decimals);
    // The value stands out from its range.
    let (value, range) = text.split_at(text.find(" [").unwrap_or(text.len()));
    let samples: Vec<String> =
        figure.row.samples.iter().map(|sample| number(*sample, decimals)).collect();
    let _ = write!(
        page,
        "<td title=\"starts: {}\"><span class=\"value\">{}</span><span class=\"pm\">{}</span>",
        samples.join("; "),
        escape(value),
        escape(range)
    );
    for remark in figure.remarks() {
        let _ = write!(page, "<div><span class=\"chip caution\">{}</span></div>", escape(&remark));
    }
    if let Some(bound) = figure.bound {
        let value = number(bound.value, decimals);
        let _ = write!(
            page,
            "<div class=\"sub\" title=\"by arithmetic, before anything is measured\">at most \
             {value} ({})</div>",
            escape(&bound.by)
        );
    }
    if let Some(limit) = figure.limit {
        let _ = write!(
            page,
            "<div class=\"sub\" title=\"{}\">limit: {}</div>",
            escape(&limit.why),
            limit_label(limit)
        );
    }
}

/// Ratio of the first switch to the one of this cell.
fn versus(
    page: &mut String,
    ratio: &SwitchRatio,
    first: &str,
    (better, is_reference): (Better, bool),
) {
    let (class, word) = match ratio.standing {
        _ if is_reference => ("fact", "of the path without a switch"),
        Standing::Better => ("ahead", "better"),
        Standing::Worse => ("behind", "worse"),
        Standing::NoDifference => ("even", "no difference seen"),
    };
    let good = match better {
        Better::Higher => "more is better",
        Better::Lower => "less is better",
    };
    let _ = write!(
        page,
        "<div class=\"sub {class}\" title=\"{first}: {word} ({} pairs of starts; {good})\">\
         {first} ×&nbsp;{} <span class=\"sr\">{word}</span></div>",
        ratio.pairs,
        escape(&ratio.text()),
        first = escape(first),
    );
}
