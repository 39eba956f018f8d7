//! The results as one HTML page that opens from disk: it needs nothing from elsewhere.
//!
//! The verdict comes first, then each scenario with its charts, its tables folded. All of it is
//! markup; the script only chooses colours, unfolds and follows a run. It must never fetch.

mod conditions;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use time::Month;

use super::chart::{Scale, charts, extent, track};
use super::findings::{findings, verdict};
use super::grid::{TextGrid, grids};
use super::number::{count, duration};
use super::section::{Section, all_duts, sections};
use super::verdict::{Line, chosen, legend, lines};
use super::{Form, View, machine, text_of};
use crate::names::distinct;
use crate::results::Results;

pub(super) const FORM: Form = Form {
    name: "html",
    about: "One page that needs nothing from elsewhere",
    endings: &["html", "htm"],
    draw: |results, _: &View| render(results, None),
};

const STYLES: [&str; 3] = [
    include_str!("assets/colours.css"),
    include_str!("assets/chart.css"),
    include_str!("assets/page.css"),
];
const EARLY: &str = include_str!("assets/early.js");
const SCRIPT: &str =
    concat!("\"use strict\";\n", include_str!("assets/theme.js"), include_str!("assets/page.js"));

/// Seconds after which the page of a campaign that runs is loaded anew.
const RELOAD_S: &str = "15";

/// The page; while the campaign runs with its state, and loaded anew by itself.
pub(crate) fn render(results: &Results, state: Option<&str>) -> String {
    let sections = sections(results);
    let duts = all_duts(results);
    let parts = html! {
        (first(results, &sections, &duts))
        @for section in &sections { (scenario(section)) }
        (conditions::part(results))
    };
    let title = title(&sections);
    text_of(html! {
        (DOCTYPE) "\n"
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                @if state.is_some() { meta http-equiv="refresh" content=(RELOAD_S); }
                title { "weir lab: " (title) }
                style { (PreEscaped(STYLES.concat())) }
                script { (PreEscaped(EARLY)) }
            }
            body {
                a.skip href="#main" { "Skip to the results" }
                (topbar(&when(&results.started)))
                div.frame {
                    (contents(&sections))
                    main #main {
                        @if let Some(words) = state {
                            p.live.card role="status" {
                                span.chip.ahead { "measuring" } " " (words)
                            }
                        }
                        (parts)
                    }
                }
                script { (PreEscaped(SCRIPT)) }
            }
        }
        "\n"
    })
}

fn topbar(when: &str) -> Markup {
    let waves = "M2 8c3-3 5-3 8 0s5 3 8 0l4-2M2 14c3-3 5-3 8 0s5 3 8 0l4-2\
                 M2 20c3-3 5-3 8 0s5 3 8 0l4-2";
    html! {
        header.topbar {
            a.brand href="#top" {
                svg viewBox="0 0 24 24" aria-hidden="true" { path d=(waves) {} } "weir lab"
            }
            span.when { (when) }
            div.theme role="group" aria-label="Colours" {
                @for (theme, name) in [("auto", "Auto"), ("light", "Light"), ("dark", "Dark")] {
                    button type="button" data-theme=(theme) { (name) }
                }
            }
        }
    }
}

/// Subject of the page, in a line.
fn title(sections: &[Section<'_>]) -> String {
    let name = |section: &'_ Section<'_>| {
        let scenario = section.scenario;
        scenario.evaluation.as_ref().unwrap_or(&scenario.id).clone()
    };
    let names = distinct(sections.iter().map(name));
    match (sections, names.split_last()) {
        ([one], _) => one.heading(),
        (_, Some((last, before))) if before.len() < 6 && !before.is_empty() => {
            format!("{} and {last}", before.join(", "))
        }
        (_, Some((only, []))) => only.clone(),
        (_, _) => count(sections.len(), "scenario", "scenarios"),
    }
}

fn contents(sections: &[Section<'_>]) -> Markup {
    let evaluation = |n: usize| sections.get(n).and_then(|one| one.scenario.evaluation.as_deref());
    // Scenarios of one evaluation stand together; the first of them names it.
    let first = |n: usize| {
        let before = n.checked_sub(1).and_then(evaluation);
        evaluation(n).filter(|own| Some(*own) != before)
    };
    html! {
        nav.contents aria-label="Contents" {
            details open {
                summary { "Contents" }
                ol {
                    li { a href="#top" { "Verdict" } }
                    @for (n, section) in sections.iter().enumerate() {
                        li.first[first(n).is_some()] {
                            a href={ "#s" (section.index) } {
                                span.tag { (first(n).unwrap_or_default()) }
                                span { (section.scenario.name()) }
                            }
                        }
                    }
                    li { a href="#conditions" { "Conditions" } }
                }
            }
        }
    }
}

/// The first screen: the verdict in a sentence, and a figure of each switch for each scenario.
fn first(results: &Results, sections: &[Section<'_>], duts: &[&str]) -> Markup {
    let sentences = verdict(results, sections);
    let (lead, rest) = sentences.split_at(sentences.len().min(1));
    let (lines, more) = chosen(lines(sections));
    html! {
        section #top {
            p.eyebrow {
                "Results of weir lab"
                @if results.is_quick { " " span.chip.caution { "quick run: for a look" } }
            }
            h1 { (title(sections)) }
            p.lead { (lead.concat()) }
            (matrix(&lines, duts, results))
            @if !more.is_empty() {
                details {
                    summary { (more.len()) " more scenarios" }
                    (matrix(&more, duts, results))
                }
            }
            (claims(rest))
            p.soft {
                "Measured on " (when(&results.started)) " in " (duration(results.duration_s))
                ": a " (machine(results)) "."
            }
        }
    }
}

/// Sentences; those of losses stand out.
fn claims(sentences: &[String]) -> Markup {
    let is_loss = |text: &str| text.contains("behind in") || text.starts_with("Behind");
    html! {
        @if !sentences.is_empty() {
            ul.claims {
                @for text in sentences { li.behind[is_loss(text)] { (text) } }
            }
        }
    }
}

/// The headlines: a row for each scenario, a column for each switch, and the published figures.
fn matrix(lines: &[Line<'_, '_>], duts: &[&str], results: &Results) -> Markup {
    let has_published = lines.iter().any(|line| !line.row.published.is_empty());
    let about = |dut: &str| {
        let about = results.switches.iter().find(|known| known.name == dut);
        about.map_or("", |known| known.about.as_str())
    };
    if lines.is_empty() {
        return html! { p.chip.caution { "No cell has a figure." } };
    }
    html! {
        div.scroll.card role="region" tabindex="0" aria-label="Verdict" {
            table.matrix {
                thead {
                    tr {
                        th scope="col" { "headline figure" }
                        @for (index, dut) in duts.iter().enumerate() {
                            // A colour; there are eight, and each has its shape.
                            th scope="col" title=(about(dut)) {
                                i class={ "swatch s" (index % 8) } aria-hidden="true" {} (dut)
                            }
                        }
                        @if has_published { th scope="col" { "published" } }
                    }
                }
                tbody { @for line in lines { (headline(line, duts, has_published)) } }
            }
        }
        p.soft { (legend(lines)) }
    }
}

fn headline(line: &Line<'_, '_>, duts: &[&str], has_published: bool) -> Markup {
    let values: Vec<f64> = line.row.figures().flat_map(extent).collect();
    let scale = Scale::new(&values, false, (0.0, 200.0));
    html! {
        tr {
            th scope="row" {
                a href={ "#s" (line.section.index) } { (line.section.heading()) }
                div.sub { (line.about(false)) }
            }
            @for dut in duts {
                @let (text, is_best) = line.text(dut);
                @if let Some(figure) = line.figure(dut) {
                    @let (value, range) = split(&text);
                    td data-dut=(dut) {
                        a.figure.best[is_best] href={ "#" (line.row.anchor) } {
                            // The value stands out from its range.
                            span.value { (value) }
                            @if !range.is_empty() { span.pm { (range) } }
                            svg class={ "drawing c" (figure.colour) } viewBox="0 0 200 14" {
                                (track(figure, &scale, 1.0, 12.0))
                            }
                        }
                    }
                } @else {
                    td.none data-dut=(dut) { (text) }
                }
            }
            @if has_published {
                @let old = line.row.published_range();
                td.soft data-dut="published" { (old.as_deref().unwrap_or("-")) }
            }
        }
    }
}

/// A value and its range.
fn split(text: &str) -> (&str, &str) {
    text.split_at(text.find(" [").unwrap_or(text.len()))
}

fn scenario(section: &Section<'_>) -> Markup {
    let (scenario, fixed) = (section.scenario, &section.fixed);
    html! {
        section.scenario id={ "s" (section.index) } {
            p.eyebrow {
                (scenario.evaluation.as_deref().unwrap_or("Our own question")) " "
                code { (scenario.id) }
            }
            h2 { (scenario.name()) }
            p.lead { (scenario.question) }
            @if !fixed.is_empty() { p.soft { "Everywhere: " (fixed) "." } }
            @if scenario.cells.is_empty() { p.chip.caution { "No cell was measured." } }
            (claims(&findings(section)))
            (charts(section))
            @for grid in grids(section) { (table(&grid)) }
            (absences(section))
            @if !scenario.background.is_empty() {
                details {
                    summary { "Background" }
                    div.prose {
                        @for text in scenario.background.split("\n\n") { p { (text) } }
                    }
                }
            }
        }
    }
}

/// A table, folded.
fn table(grid: &TextGrid) -> Markup {
    let title = if grid.title.is_empty() { "All figures" } else { grid.title.as_str() };
    html! {
        details.figures {
            summary { (title) }
            div.scroll.card role="region" tabindex="0" aria-label=(title) {
                table.rows {
                    thead { tr { @for text in &grid.header { th scope="col" { (broken(text)) } } } }
                    tbody {
                        @for (anchor, texts) in &grid.rows {
                            tr id=(anchor) {
                                @for text in &texts[..grid.names] {
                                    th scope="row" { (broken(text)) }
                                }
                                @for text in &texts[grid.names..] { (cell(text)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A figure with its range, and its remarks below.
fn cell(text: &str) -> Markup {
    let mut lines = text.lines();
    let (value, range) = split(lines.next().unwrap_or_default());
    html! {
        td {
            (value)
            @if !range.is_empty() { i { (range) } }
            @for line in lines { div.sub { (line) } }
        }
    }
}

/// A text with its line ends.
fn broken(text: &str) -> Markup {
    html! { @for (n, line) in text.lines().enumerate() { @if n > 0 { br; } (line) } }
}

/// Why cells have no figures, each reason once.
fn absences(section: &Section<'_>) -> Markup {
    let absences = section.absences();
    let kind = |word: &str| if word == "failed" { "behind" } else { "even" };
    html! {
        @if !absences.is_empty() {
            h3 { "Without figures" }
            ul.absences {
                @for absence in &absences {
                    li {
                        b { (absence.duts.join(", ")) } " "
                        span class={ "chip " (kind(absence.word)) } { (absence.word) } " "
                        (absence.reason)
                        @if !absence.places.is_empty() {
                            details {
                                summary { (count(absence.places.len(), "point", "points")) }
                                ul { @for place in &absence.places { li { (place) } } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// `23 November 2026, 08:00 UTC` for `2026-11-23T08:00:00Z`; anything else as it is.
fn when(started: &str) -> String {
    let parse = || {
        let (date, time) = started.split_once('T')?;
        let mut date = date.splitn(3, '-');
        let (year, month, day) = (date.next()?, date.next()?, date.next()?);
        let month = Month::try_from(month.parse::<u8>().ok()?).ok()?;
        Some(format!("{} {month} {year}, {} UTC", day.parse::<u8>().ok()?, time.get(..5)?))
    };
    parse().unwrap_or_else(|| started.to_owned())
}

#[cfg(test)]
mod tests;
