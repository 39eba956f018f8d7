//! The results as one HTML page that opens from disk: it needs nothing from elsewhere.
//!
//! Tables, sentences and conditions are in the markup; the charts are drawn by the page's script
//! from the results that it carries. Every text from outside is escaped. It must never fetch.

mod conditions;
mod data;
mod escape;
mod glance;
mod live;
mod parts;
mod tables;

use std::fmt::Write;

use super::claims::{claims, overall};
use super::number::duration;
use super::section::{Section, sections};
use crate::campaign::run::Seen;
use crate::results::Results;

use escape::escape;
use parts::{claim_list, claim_paragraph, swatch, when};

const PLOT_STYLE: &str = include_str!("assets/uPlot.min.css");
const PLOT_SCRIPT: &str = include_str!("assets/uPlot.iife.min.js");
const STYLE: &str = include_str!("assets/page.css");
const EARLY: &str = include_str!("assets/early.js");
const SCRIPTS: [&str; 6] = [
    include_str!("assets/theme.js"),
    include_str!("assets/chart.js"),
    include_str!("assets/sweep.js"),
    include_str!("assets/cdf.js"),
    include_str!("assets/blocks.js"),
    include_str!("assets/page.js"),
];

/// The page.
#[must_use]
pub(crate) fn render(results: &Results) -> String {
    whole(results, None)
}

/// The page of a campaign that is being served: how it stands, and what there is of its results.
#[must_use]
pub(crate) fn render_live(results: Option<&Results>, seen: &Seen) -> String {
    match results {
        Some(results) => whole(results, Some(seen)),
        None => waiting(seen),
    }
}

/// A page without results, which becomes one with results as soon as there are some.
fn waiting(seen: &Seen) -> String {
    let mut page = String::new();
    begin(&mut page, "no results yet");
    bar(&mut page, "");
    page.push_str("<div class=\"frame\"><main id=\"main\">");
    live::write(&mut page, seen);
    let _ = write!(
        page,
        "</main></div>\n<script>\"use strict\";\n{}{}{}</script></body></html>\n",
        live::EARLY,
        SCRIPTS[0],
        live::SCRIPT
    );
    page
}

fn begin(page: &mut String, title: &str) {
    let title = escape(title);
    let _ = write!(
        page,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>weir lab: {title}</title><style>{PLOT_STYLE}</style><style>{STYLE}</style>\
         <script>{EARLY}</script></head><body>\n\
         <a class=\"skip\" href=\"#main\">Skip to the results</a>"
    );
}

fn whole(results: &Results, seen: Option<&Seen>) -> String {
    let sections = sections(results);
    let mut page = String::new();
    begin(&mut page, &title(&sections));
    bar(&mut page, &results.started);
    page.push_str("<div class=\"frame\">");
    contents(&mut page, &sections);
    page.push_str("<main id=\"main\">");
    if let Some(seen) = seen {
        live::write(&mut page, seen);
    }
    head(&mut page, results, &sections);
    summary(&mut page, results, &sections);
    for section in &sections {
        scenario(&mut page, results, section);
    }
    conditions::write(&mut page, results);
    page.push_str("</main></div>\n");
    data::write(&mut page, results, &sections);
    let _ = write!(page, "<script>{PLOT_SCRIPT}</script>\n<script>\"use strict\";\n");
    let (early, late) = if seen.is_some() { (live::EARLY, live::SCRIPT) } else { ("", "") };
    page.push_str(early);
    for script in SCRIPTS {
        page.push_str(script);
    }
    page.push_str(late);
    page.push_str("</script></body></html>\n");
    page
}

/// Subject of the page, in a line.
fn title(sections: &[Section<'_>]) -> String {
    match sections {
        [] => "no scenario".to_owned(),
        [one] => one.heading(),
        several => {
            let mut names: Vec<&str> = Vec::new();
            for section in several {
                let id = section.scenario.id.as_str();
                let name = section.scenario.evaluation.as_deref().unwrap_or(id);
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            match names.split_last() {
                Some((last, [])) => (*last).to_owned(),
                Some((last, before)) if before.len() < 6 => {
                    format!("{} and {last}", before.join(", "))
                }
                Some(_) | None => format!("{} scenarios", several.len()),
            }
        }
    }
}

/// The bar at the top: the name, and the choice of colours.
fn bar(page: &mut String, started: &str) {
    let _ = write!(
        page,
        "<header class=\"bar\"><a class=\"brand\" href=\"#top\"><svg viewBox=\"0 0 24 24\" \
         aria-hidden=\"true\"><path d=\"M2 8c3-3 5-3 8 0s5 3 8 0l4-2M2 14c3-3 5-3 8 0s5 3 8 0l4-2\
         M2 20c3-3 5-3 8 0s5 3 8 0l4-2\"/></svg>weir lab</a><span class=\"bar-when\">{}</span>\
         <div class=\"theme\" role=\"group\" aria-label=\"Colours\">\
         <button type=\"button\" data-theme=\"auto\">Auto</button>\
         <button type=\"button\" data-theme=\"light\">Light</button>\
         <button type=\"button\" data-theme=\"dark\">Dark</button></div></header>",
        escape(&when(started))
    );
}

fn contents(page: &mut String, sections: &[Section<'_>]) {
    page.push_str(
        "<nav class=\"contents\" aria-label=\"Contents\"><details open><summary>Contents</summary>\
         <ol><li><a href=\"#summary\">Summary</a></li>",
    );
    let mut before = None;
    for section in sections {
        let evaluation = section.scenario.evaluation.as_deref();
        // Scenarios of one evaluation stand together; the first of them names it.
        let badge = match evaluation {
            Some(evaluation) if before != Some(evaluation) => escape(evaluation),
            Some(_) | None => String::new(),
        };
        before = evaluation;
        let title = if section.scenario.title.is_empty() {
            &section.scenario.id
        } else {
            &section.scenario.title
        };
        let _ = write!(
            page,
            "<li{}><a href=\"#s{}\"><span class=\"tag\">{badge}</span><span>{}</span></a></li>",
            if badge.is_empty() { "" } else { " class=\"first\"" },
            section.index,
            escape(title)
        );
    }
    page.push_str("<li><a href=\"#conditions\">Conditions</a></li></ol></details></nav>");
}

fn head(page: &mut String, results: &Results, sections: &[Section<'_>]) {
    let machine = &results.machine;
    let kind = if machine.virtual_machine { "virtual machine" } else { "machine" };
    let quick = if results.is_quick {
        " <span class=\"chip caution\">quick run: for a look</span>"
    } else {
        ""
    };
    let _ = write!(
        page,
        "<section id=\"top\" class=\"head\"><p class=\"eyebrow\">Results of weir lab{quick}</p>\
         <h1>{}</h1><p class=\"lead\">Measured on {} in {}: a {kind} with {} cores ({}), {}.</p>",
        escape(&title(sections)),
        escape(&when(&results.started)),
        escape(&duration(results.duration_s)),
        machine.cores,
        escape(&machine.cpu),
        escape(&machine.kernel),
    );
    page.push_str("<ul class=\"switches\" aria-label=\"Switches under test\">");
    for (index, dut) in data::all_duts(results).into_iter().enumerate() {
        let about = results.switches.iter().find(|known| known.name == dut);
        let about = about.map_or("", |known| known.about.as_str());
        let _ = write!(
            page,
            "<li>{}<b>{}</b><span>{}</span></li>",
            swatch(index),
            escape(dut),
            escape(about)
        );
    }
    page.push_str(
        "</ul><p class=\"actions\"><button type=\"button\" id=\"save-json\">Save the data (JSON)\
         </button><button type=\"button\" id=\"print\">Print</button></p></section>",
    );
}

fn summary(page: &mut String, results: &Results, sections: &[Section<'_>]) {
    page.push_str("<section id=\"summary\"><h2>Summary</h2>");
    claim_paragraph(page, &overall(results, sections));
    glance::write(page, sections);
    page.push_str(
        "<p class=\"soft\">Each sentence is made from the rows by rule, and its figures link to \
         them. A figure is the median of the starts of a switch with their range. Switches take \
         turns, so starts of one turn are a pair: a ratio is the geometric mean of the pairs' \
         ratios with its 95 % interval by Student's t of their logarithms, and ahead or behind is \
         said where that interval leaves out 1. Where a figure is not above the lab's own \
         floor nothing is compared.</p></section>",
    );
}

fn scenario(page: &mut String, results: &Results, section: &Section<'_>) {
    let scenario = section.scenario;
    let eyebrow = scenario.evaluation.as_deref().unwrap_or("Our own question");
    let title = if scenario.title.is_empty() { &scenario.id } else { &scenario.title };
    let _ = write!(
        page,
        "<section class=\"scenario\" id=\"s{}\"><p class=\"eyebrow\">{} <code>{}</code></p>\
         <h2>{}</h2><p class=\"lead\">{}</p>",
        section.index,
        escape(eyebrow),
        escape(&scenario.id),
        escape(title),
        escape(&scenario.question)
    );
    let fixed = section.fixed_text();
    if !fixed.is_empty() {
        let _ = write!(page, "<p class=\"soft\">Everywhere: {}.</p>", escape(&fixed));
    }
    let found = claims(section);
    if !found.is_empty() {
        page.push_str("<h3>Findings</h3>");
        claim_list(page, &found);
    }
    charts(page, section);
    tables::write(page, results, section);
    if scenario.cells.is_empty() {
        page.push_str("<p class=\"chip caution\">No cell was measured.</p>");
    }
    absences(page, section);
    if !scenario.background.is_empty() {
        page.push_str("<details><summary>Background</summary><div class=\"prose\">");
        for paragraph in scenario.background.split("\n\n") {
            let _ = write!(page, "<p>{}</p>", escape(paragraph));
        }
        page.push_str("</div></details>");
    }
    page.push_str("</section>");
}

/// A place for each chart; the script draws it.
fn charts(page: &mut String, section: &Section<'_>) {
    let plots = data::plots(section);
    if plots.is_empty() {
        return;
    }
    page.push_str(
        "<h3>Charts</h3><noscript><p class=\"soft\">The charts need JavaScript; the \
                   tables below hold the same figures.</p></noscript>",
    );
    for (index, plot) in plots.iter().enumerate() {
        let _ = write!(
            page,
            "<figure class=\"chart\" data-scenario=\"{}\" data-plot=\"{index}\"><figcaption>{}\
             </figcaption><div class=\"plots\"></div></figure>",
            section.index,
            escape(&data::caption(section, plot)),
        );
    }
}

/// Why cells have no figures, each reason once.
fn absences(page: &mut String, section: &Section<'_>) {
    let absences = section.absences();
    if absences.is_empty() {
        return;
    }
    page.push_str("<h3>Without figures</h3><ul class=\"absences\">");
    for absence in absences {
        let class = parts::state_class(absence.word);
        let places = if absence.is_everywhere || absence.places.is_empty() {
            String::new()
        } else {
            format!(
                "<details><summary>{}</summary><ul>{}</ul></details>",
                super::number::count(absence.places.len(), "point", "points"),
                absence
                    .places
                    .iter()
                    .map(|place| format!("<li>{}</li>", escape(place)))
                    .collect::<String>()
            )
        };
        let _ = write!(
            page,
            "<li><b>{}</b> <span class=\"chip {class}\">{}</span> {}{places}</li>",
            escape(absence.dut),
            absence.word,
            escape(absence.reason)
        );
    }
    page.push_str("</ul>");
}

#[cfg(test)]
mod tests;
