//! The results as one HTML page that opens from disk: it needs nothing from elsewhere.
//!
//! The verdict comes first, then each scenario with its charts, its tables folded. All of it is
//! markup; the script only chooses colours, unfolds and follows a run. It must never fetch.

mod conditions;

use super::chart::{Scale, charts, extent, track};
use super::findings::{findings, verdict};
use super::grid::{TextGrid, TextRow, grids};
use super::markup::{Markup, markup};
use super::number::{count, duration};
use super::section::{Absence, Section, sections};
use super::verdict::{Line, all_duts, chosen, legend, lines};
use super::{Form, View};
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
const SCRIPT: &str = concat!(include_str!("assets/theme.js"), include_str!("assets/page.js"));

/// Seconds after which the page of a campaign that runs is loaded anew.
const RELOAD_S: &str = "15";

/// The page.
#[must_use]
pub(crate) fn render(results: &Results, state: Option<&str>) -> String {
    let sections = sections(results);
    let duts = all_duts(results);
    let mut parts = first(results, &sections, &duts);
    for section in &sections {
        parts += scenario(section, &duts);
    }
    parts += conditions::part(results);
    let (title, when) = (title(&sections), when(&results.started));
    framed(&title, &when, contents(&sections), state, parts).into_text()
}

/// All around the parts of the page.
fn framed(title: &str, when: &str, contents: Markup, state: Option<&str>, parts: Markup) -> Markup {
    let reload = state.map(|_| markup!("<meta http-equiv=\"refresh\" content=\"{}\">", RELOAD_S));
    let state = state.map(|words| {
        markup!(
            "<p class=\"live card\" role=\"status\"><span class=\"chip ahead\">measuring</span> \
             {}</p>",
            words
        )
    });
    markup!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         {}<title>weir lab: {}</title><style>{}</style><script>{}</script></head><body>\n\
         <a class=\"skip\" href=\"#main\">Skip to the results</a>\
         <header class=\"topbar\"><a class=\"brand\" href=\"#top\"><svg viewBox=\"0 0 24 24\" \
         aria-hidden=\"true\"><path d=\"M2 8c3-3 5-3 8 0s5 3 8 0l4-2M2 14c3-3 5-3 8 0s5 3 8 0l4-2\
         M2 20c3-3 5-3 8 0s5 3 8 0l4-2\"/></svg>weir lab</a><span class=\"when\">{}</span>\
         <div class=\"theme\" role=\"group\" aria-label=\"Colours\">\
         <button type=\"button\" data-theme=\"auto\">Auto</button>\
         <button type=\"button\" data-theme=\"light\">Light</button>\
         <button type=\"button\" data-theme=\"dark\">Dark</button></div></header>\
         <div class=\"frame\">{}<main id=\"main\">{}{}</main></div>\n\
         <script>\"use strict\";\n{}</script></body></html>\n",
        reload,
        title,
        Markup::made(STYLES.concat()),
        Markup::made(EARLY.to_owned()),
        when,
        contents,
        state,
        parts,
        Markup::made(SCRIPT.to_owned())
    )
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
    let mut before = None;
    let line = |section: &Section<'_>| {
        let evaluation = section.scenario.evaluation.as_deref();
        // Scenarios of one evaluation stand together; the first of them names it.
        let is_first = evaluation.is_some() && before != evaluation.map(str::to_owned);
        before = evaluation.map(str::to_owned);
        markup!(
            "<li class=\"{}\"><a href=\"#s{}\"><span \
             class=\"tag\">{}</span><span>{}</span></a></li>",
            if is_first { "first" } else { "" },
            section.index,
            evaluation.filter(|_| is_first),
            section.scenario.name()
        )
    };
    markup!(
        "<nav class=\"contents\" aria-label=\"Contents\"><details open><summary>Contents</summary>\
         <ol><li><a href=\"#top\">Verdict</a></li>{}<li><a href=\"#conditions\">Conditions</a></li>\
         </ol></details></nav>",
        sections.iter().map(line).collect::<Markup>()
    )
}

/// The first screen: the verdict in a sentence, and a figure of each switch for each scenario.
fn first(results: &Results, sections: &[Section<'_>], duts: &[&str]) -> Markup {
    let machine = &results.machine;
    let lines = lines(sections);
    let sentences = verdict(results, sections, &lines);
    let (lead, rest) = sentences.split_at(sentences.len().min(1));
    let (lines, more) = chosen(lines);
    let more = (!more.is_empty()).then(|| {
        let (number, more) = (more.len(), matrix(&more, duts, results));
        markup!("<details><summary>{} more scenarios</summary>{}</details>", number, more)
    });
    markup!(
        "<section id=\"top\"><p class=\"eyebrow\">Results of weir lab{}</p><h1>{}</h1>\
         <p class=\"lead\">{}</p>{}{}{}<p class=\"soft\">Measured on {} in {}: a {} with {} cores \
         ({}), \
         {}.</p></section>",
        results
            .is_quick
            .then(|| markup!(" <span class=\"chip caution\">quick run: for a look</span>")),
        title(sections),
        lead.first().map(String::as_str),
        matrix(&lines, duts, results),
        more,
        list("claims", rest),
        when(&results.started),
        duration(results.duration_s),
        if machine.virtual_machine { "virtual machine" } else { "machine" },
        machine.cores,
        machine.cpu,
        machine.kernel
    )
}

fn list(class: &str, sentences: &[String]) -> Option<Markup> {
    let line = |text: &String| {
        let kind =
            if text.contains("behind in") || text.starts_with("Behind") { "behind" } else { "" };
        markup!("<li class=\"{}\">{}</li>", kind, text)
    };
    let lines: Markup = sentences.iter().map(line).collect();
    (!lines.is_empty()).then(|| markup!("<ul class=\"{}\">{}</ul>", class, lines))
}

/// The headlines: a row for each scenario, a column for each switch, and the published figures.
fn matrix(lines: &[Line<'_, '_>], duts: &[&str], results: &Results) -> Markup {
    let has_published = lines.iter().any(|line| line.published().is_some());
    let head = |(index, dut): (usize, &&str)| {
        let about = results.switches.iter().find(|known| known.name == **dut);
        let about = about.map_or("", |known| known.about.as_str());
        markup!("<th scope=\"col\" title=\"{}\">{}{}</th>", about, swatch(index), *dut)
    };
    let row = |line: &Line<'_, '_>| {
        let values: Vec<f64> = line.figures().flat_map(extent).collect();
        let scale = Scale::new(&values, false, (0.0, 200.0));
        let cell = |(index, dut): (usize, &&str)| {
            let (text, is_best) = line.text(dut);
            let Some(figure) = line.entry(dut).and_then(|entry| entry.figure()) else {
                return markup!("<td data-dut=\"{}\" class=\"none\">{}</td>", *dut, text);
            };
            markup!(
                "<td data-dut=\"{}\"><a href=\"#{}\" class=\"figure{}\">{}<svg class=\"drawing \
                 c{}\" \
                 viewBox=\"0 0 200 14\">{}</svg></a></td>",
                *dut,
                line.row.anchor,
                if is_best { " best" } else { "" },
                value_with_range(&text),
                index % 8,
                track(line.section, figure, &scale, 1.0, 12.0)
            )
        };
        let old = has_published.then(|| {
            markup!(
                "<td data-dut=\"published\" class=\"soft\">{}</td>",
                line.published().unwrap_or_else(|| "-".to_owned())
            )
        });
        markup!(
            "<tr><th scope=\"row\"><a href=\"#s{}\">{}</a><div \
             class=\"sub\">{}</div></th>{}{}</tr>",
            line.section.index,
            line.section.heading(),
            line.about(false),
            duts.iter().enumerate().map(cell).collect::<Markup>(),
            old
        )
    };
    if lines.is_empty() {
        return markup!("<p class=\"chip caution\">No cell has a figure.</p>");
    }
    markup!(
        "<div class=\"scroll card\" role=\"region\" tabindex=\"0\" aria-label=\"Verdict\">\
         <table class=\"matrix\"><thead><tr><th scope=\"col\">headline figure</th>{}{}</tr></thead>\
         <tbody>{}</tbody></table></div><p class=\"soft\">{}</p>",
        duts.iter().enumerate().map(head).collect::<Markup>(),
        has_published.then(|| markup!("<th scope=\"col\">published</th>")),
        lines.iter().map(row).collect::<Markup>(),
        legend(lines)
    )
}

/// The value stands out from its range.
fn value_with_range(text: &str) -> Markup {
    let (value, range) = split(text);
    let range = range.map(|range| markup!("<span class=\"pm\">{}</span>", range));
    markup!("<span class=\"value\">{}</span>{}", value, range)
}

/// A value and its range.
fn split(text: &str) -> (&str, Option<&str>) {
    let (value, range) = text.split_at(text.find(" [").unwrap_or(text.len()));
    (value, Some(range).filter(|range| !range.is_empty()))
}

/// The mark of a switch's colour; there are eight, and each has its shape.
fn swatch(index: usize) -> Markup {
    markup!("<i class=\"swatch s{}\" aria-hidden=\"true\"></i>", index % 8)
}

fn scenario(section: &Section<'_>, duts: &[&str]) -> Markup {
    let scenario = section.scenario;
    let fixed = section.fixed_text();
    let fixed =
        (!fixed.is_empty()).then(|| markup!("<p class=\"soft\">Everywhere: {}.</p>", fixed));
    let background = (!scenario.background.is_empty()).then(|| {
        let paragraphs = scenario.background.split("\n\n");
        let paragraphs: Markup = paragraphs.map(|text| markup!("<p>{}</p>", text)).collect();
        markup!(
            "<details><summary>Background</summary><div class=\"prose\">{}</div></details>",
            paragraphs
        )
    });
    let nothing = scenario
        .cells
        .is_empty()
        .then(|| markup!("<p class=\"chip caution\">No cell was measured.</p>"));
    markup!(
        "<section class=\"scenario\" id=\"s{}\"><p class=\"eyebrow\">{} \
         <code>{}</code></p><h2>{}</h2>\
         <p class=\"lead\">{}</p>{}{}{}{}{}{}{}</section>",
        section.index,
        scenario.evaluation.as_deref().unwrap_or("Our own question"),
        scenario.id,
        scenario.name(),
        scenario.question,
        fixed,
        nothing,
        list("claims", &findings(section)),
        charts(section, duts),
        grids(section).iter().map(table).collect::<Markup>(),
        absences(&section.absences()),
        background
    )
}

/// A table, folded. There are thousands of cells: they are without the ends that HTML knows by
/// itself.
fn table(grid: &TextGrid) -> Markup {
    let head = |text: &String| markup!("<th scope=col>{}", broken(text));
    let row = |row: &TextRow| {
        // A row of one figure is itself the end of a link; of several each has a mark of its own.
        let marks = row.anchors.iter().skip(1).map(|anchor| markup!("<i id=\"{}\"></i>", anchor));
        let mut marks: Markup = marks.collect();
        let cell = |(at, text): (usize, &String)| match at < grid.names {
            true => {
                markup!("<th scope=row>{}{}", std::mem::take(&mut marks), broken(text))
            }
            false => {
                let (first, more) = text.split_once('\n').unwrap_or((text, ""));
                let (value, range) = split(first);
                let range = range.map(|range| markup!("<i>{}</i>", range));
                let more = more.lines().map(|line| markup!("<div class=sub>{}</div>", line));
                markup!("<td>{}{}{}", value, range, more.collect::<Markup>())
            }
        };
        let cells: Markup = row.texts.iter().enumerate().map(cell).collect();
        markup!("<tr id=\"{}\">{}", row.anchors.first().map_or("", String::as_str), cells)
    };
    let title = if grid.title.is_empty() { "All figures" } else { grid.title.as_str() };
    markup!(
        "<details class=\"figures\"><summary>{}</summary><div class=\"scroll card\" \
         role=\"region\" \
         tabindex=\"0\" aria-label=\"{0}\"><table \
         class=\"rows\"><thead><tr>{}<tbody>{}</table></div></details>",
        title,
        grid.header.iter().map(head).collect::<Markup>(),
        grid.rows.iter().map(row).collect::<Markup>()
    )
}

/// A text with its line ends.
fn broken(text: &str) -> Markup {
    let lines = text.lines().enumerate();
    lines.map(|(n, line)| markup!("{}{}", (n > 0).then(|| markup!("<br>")), line)).collect()
}

/// Why cells have no figures, each reason once.
fn absences(absences: &[Absence<'_>]) -> Option<Markup> {
    let line = |absence: &Absence<'_>| {
        let places = absence.places.iter().map(|place| markup!("<li>{}</li>", place));
        let places = (!absence.is_everywhere && !absence.places.is_empty()).then(|| {
            markup!(
                "<details><summary>{}</summary><ul>{}</ul></details>",
                count(absence.places.len(), "point", "points"),
                places.collect::<Markup>()
            )
        });
        markup!(
            "<li><b>{}</b> <span class=\"chip {}\">{}</span> {}{}</li>",
            absence.duts.join(", "),
            if absence.word == "failed" { "behind" } else { "even" },
            absence.word,
            absence.reason,
            places
        )
    };
    let lines: Markup = absences.iter().map(line).collect();
    (!lines.is_empty())
        .then(|| markup!("<h3>Without figures</h3><ul class=\"absences\">{}</ul>", lines))
}

/// `23 November 2026, 08:00 UTC` for `2026-11-23T08:00:00Z`; anything else as it is.
fn when(started: &str) -> String {
    const MONTHS: &str = "January February March April May June July August September October \
                          November December";
    let parse = || {
        let (date, time) = started.split_once('T')?;
        let mut date = date.splitn(3, '-');
        let (year, month, day) = (date.next()?, date.next()?, date.next()?);
        let month = MONTHS.split(' ').nth(month.parse::<usize>().ok()?.checked_sub(1)?)?;
        let day: u8 = day.parse().ok()?;
        Some(format!("{day} {month} {year}, {} UTC", time.get(..5)?))
    };
    parse().unwrap_or_else(|| started.to_owned())
}

#[cfg(test)]
mod tests;
