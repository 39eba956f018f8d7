//! The report as a table on a terminal.
//!
//! Few cells stand side by side, one column each, so that hub and learning switch can be compared
//! line by line; many cells have a line each. Every figure is a mean with its 99 % interval.

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{ContentArrangement, Table};

use super::{Cell, Measurement, Report, State, links};
use crate::limit::{Limit, Part};
use crate::stats::Reported;

/// Up to so many cells stand side by side.
const SIDE_BY_SIDE: usize = 4;

/// The table, and what belongs under it.
#[must_use]
pub fn render(report: &Report, width: Option<u16>) -> String {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED).set_content_arrangement(ContentArrangement::Dynamic);
    if let Some(width) = width {
        table.set_width(width);
    }
    if report.cells.len() <= SIDE_BY_SIDE {
        side_by_side(report, &mut table);
    } else {
        line_by_line(report, &mut table);
    }
    let mut text = format!("{table}\n");
    text += &footer(report);
    text
}

fn side_by_side(report: &Report, table: &mut Table) {
    let mut header = vec![String::new()];
    header.extend(report.cells.iter().map(|cell| {
        format!("{}\n{}", cell.key.title(), links(&cell.key).replace(", OpenFlow", "\nOpenFlow"))
    }));
    table.set_header(header);
    let Some(first) = report.cells.first() else { return };
    for (index, measurement) in first.measurements.iter().enumerate() {
        for figure in &measurement.figures {
            if !is_shown(&figure.id) || fits_nowhere(report, index) {
                continue;
            }
            let mut row = vec![format!("{}, {}", figure.label, figure.unit)];
            row.extend(report.cells.iter().map(|cell| {
                let text = cell.measurements.get(index).map(|m| value(cell, m, &figure.id));
                text.unwrap_or_default()
            }));
            table.add_row(row);
        }
        if is_loading(report, index) {
            let mut row = vec!["  limited by".to_owned()];
            row.extend(report.cells.iter().map(|cell| {
                cell.measurements
                    .get(index)
                    .and_then(|m| m.limit.as_ref())
                    .map_or_else(|| "-".to_owned(), limit_text)
            }));
            table.add_row(row);
        }
    }
}

/// Whether the testbed carries the method in no cell; the footer then says why.
fn fits_nowhere(report: &Report, index: usize) -> bool {
    let of = |cell: &Cell| cell.measurements.get(index).is_some_and(|m| m.unfit.is_some());
    let mut measured = report.cells.iter().filter(|cell| cell.state == State::Measured).peekable();
    measured.peek().is_some() && measured.all(of)
}

fn is_loading(report: &Report, index: usize) -> bool {
    report.cells.iter().any(|cell| cell.measurements.get(index).is_some_and(|m| m.limit.is_some()))
}

/// Whether it is a part of the path that can be full beside a busy machine.
fn is_part(part: Part) -> bool {
    match part {
        Part::Port | Part::ControlLink | Part::Controller | Part::Switch | Part::Host => true,
        Part::Machine | Part::OfferedLoad | Part::None => false,
    }
}

/// The limiting part in a few words.
#[must_use]
pub fn limit_text(limit: &Limit) -> String {
    let part = limit.part.label();
    if limit.machine_full && is_part(limit.part) {
        format!("{part} (all cores busy)")
    } else {
        part.to_owned()
    }
}

/// The figures that the terminal shows; the rest are in the files.
fn is_shown(id: &str) -> bool {
    let hidden = [
        "ping_min_ms",
        "ping_max_ms",
        "ping_loss_pct",
        "probe_mean_us",
        "probe_loss_pct",
        "tcp_retransmits",
    ];
    !hidden.contains(&id)
}

/// A figure, or why there is none.
fn value(cell: &Cell, measurement: &Measurement, id: &str) -> String {
    match &cell.state {
        State::Missing(_) => return "missing".to_owned(),
        State::Failed(_) => return "failed".to_owned(),
        State::Skipped(_) => return "skipped".to_owned(),
        State::Measured => {}
    }
    if let Some(reason) = &measurement.unfit {
        return format!("not here: {reason}");
    }
    match measurement.figure(id) {
        Some(figure) => figure.text(),
        None if measurement.errors.is_empty() => "-".to_owned(),
        None => "failed".to_owned(),
    }
}

/// A column of the long form.
struct Column {
    heading: &'static str,
    figure: &'static str,
    /// The figure that stands in parentheses after it, and its unit.
    beside: Option<(&'static str, &'static str)>,
}

const fn column(heading: &'static str, figure: &'static str) -> Column {
    Column { heading, figure, beside: None }
}

const fn with(column: Column, figure: &'static str, unit: &'static str) -> Column {
    Column { beside: Some((figure, unit)), ..column }
}

const COLUMNS: [Column; 6] = [
    column("ping avg\nms", "ping_avg_ms"),
    with(column("probe p50 (p99)\nµs", "probe_p50_us"), "probe_p99_us", ""),
    column("TCP\nMb/s", "tcp_mbps"),
    with(column("UDP (loss)\nMb/s", "udp_mbps"), "udp_loss_pct", " %"),
    with(column("UDP iperf 2 (loss)\nMb/s", "udp2_mbps"), "udp2_loss_pct", " %"),
    column("packets/s\nsaturated", "pps_saturated"),
];

fn line_by_line(report: &Report, table: &mut Table) {
    let mut header: Vec<String> =
        ["port", "control", "switch", "controller"].map(str::to_owned).to_vec();
    header.extend(COLUMNS.iter().map(|column| column.heading.to_owned()));
    header.push("limited by\n(TCP; UDP; packets/s)".to_owned());
    table.set_header(header);
    for cell in &report.cells {
        let key = &cell.key;
        let mut row = vec![
            key.port_rate.to_string(),
            key.control_rate.to_string(),
            key.dut.clone(),
            format!("{} {}", key.controller, key.app),
        ];
        row.extend(COLUMNS.iter().map(|column| long_value(cell, column)));
        row.push(limits(cell));
        table.add_row(row);
    }
}

fn long_value(cell: &Cell, column: &Column) -> String {
    let holds = |m: &&Measurement| m.figures.iter().any(|figure| figure.id == column.figure);
    let Some(measurement) = cell.measurements.iter().find(holds) else { return "-".to_owned() };
    let text = value(cell, measurement, column.figure);
    let beside = column.beside.and_then(|(id, unit)| {
        let figure = measurement.figure(id)?;
        let decimals = figure.decimals;
        Some(format!("{text} ({:.decimals$}{unit})", figure.summary.as_ref()?.mean))
    });
    beside.unwrap_or(text)
}

/// The limiting part, with a star where all cores were busy besides.
#[must_use]
pub fn starred(limit: &Limit) -> String {
    let star = if limit.machine_full && is_part(limit.part) { "*" } else { "" };
    format!("{}{star}", limit.part.label())
}

fn limits(cell: &Cell) -> String {
    let of = |method: &str| {
        let limit = cell.measurement(method).and_then(|m| m.limit.as_ref());
        limit.map_or_else(|| "-".to_owned(), starred)
    };
    let parts = ["tcp", "udp", "pps"].map(of);
    if parts.iter().all(|part| *part == parts[0]) {
        let [part, ..] = parts;
        part
    } else {
        parts.join("; ")
    }
}

fn footer(report: &Report) -> String {
    let mut text = format!(
        "Mean ± half of the 99 % interval (Student's t) over {}, in turns. {:.0} s.\n",
        report.repeats_text(),
        report.duration_s
    );
    let figures = report.cells.iter().flat_map(|cell| &cell.measurements).flat_map(|m| &m.figures);
    let mut reported = figures.filter_map(|figure| Some(figure.summary.as_ref()?.reported_mean()));
    if reported.any(|reported| matches!(reported, Reported::TooFew { .. })) {
        text += "Too few repeats: the interval would be wider than the figure.\n";
    }
    if report.cells.len() > SIDE_BY_SIDE {
        text += "* all cores of the machine were busy too.\n";
    }
    if let Some(disturbance) = report.disturbance() {
        text += &format!("{disturbance}\n");
    }
    for comparison in report.headlines() {
        text += &format!(
            "{}: {} the packets/s of {} ({}).\n",
            comparison.cell,
            comparison.text(),
            comparison.baseline,
            comparison.links
        );
    }
    let hints = report.notes.iter().filter(|note| note.contains("install"));
    text.extend(hints.map(|note| format!("{note}\n")));
    for index in 0..report.cells.first().map_or(0, |cell| cell.measurements.len()) {
        let unfit = report.cells.iter().filter_map(|cell| cell.measurements.get(index));
        if let Some((label, reason)) = unfit
            .filter_map(|m| Some((&m.label, m.unfit.as_ref()?)))
            .next()
            .filter(|_| fits_nowhere(report, index))
        {
            text += &format!("{label}: left out, {reason}.\n");
        }
    }
    for tool in own_tools(report) {
        text += &format!("{tool}\n");
    }
    for cell in &report.cells {
        let title = cell.key.title();
        match &cell.state {
            State::Missing(reason) | State::Failed(reason) | State::Skipped(reason) => {
                text += &format!("{title} ({}): {reason}\n", links(&cell.key));
            }
            State::Measured => {}
        }
        let errors: usize = cell.measurements.iter().map(|m| m.errors.len()).sum();
        if errors > 0 {
            text += &format!("{title}: {errors} measurements failed; the report says why.\n");
        }
    }
    text
}

/// Where equivalents of Weir's own stood in for a program.
fn own_tools(report: &Report) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for measurement in report.cells.iter().flat_map(|cell| &cell.measurements) {
        for tool in measurement.tools.iter().filter(|tool| tool.contains('(')) {
            let line = format!("{}: measured by {tool}.", measurement.label);
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::render;
    use crate::report::{State, sample};
    use crate::stats::summarise;

    #[test]
    fn a_report_with_a_cell_that_failed_is_not_whole() {
        let mut report = sample::report(5);
        assert!(report.is_whole(), "what is missing is no failure");
        report.cells[0].state = State::Failed("no packet crossed".into());
        assert!(!report.is_whole());
    }

    #[test]
    fn few_cells_stand_side_by_side_with_spread_and_limit() {
        let text = render(&sample::report(2), Some(120));
        for word in ["hub", "learning-switch", "94.10 ±", "limited by", "port", "99 %"] {
            assert!(text.contains(word), "{word} is missing in\n{text}");
        }
    }

    /// A demo once printed 7875 ± 73943.
    #[test]
    fn an_interval_wider_than_its_figure_is_not_printed() {
        let mut report = sample::report(2);
        assert!(!render(&report, Some(120)).contains("oo few"));
        let cell = &mut report.cells[0].measurements;
        let figure = cell.iter_mut().flat_map(|m| &mut m.figures);
        let figure = figure.into_iter().find(|figure| figure.id == "pps_saturated").unwrap();
        figure.samples = vec![2056.0, 13694.0];
        figure.summary = summarise(&figure.samples);
        let text = render(&report, Some(160));
        assert!(text.contains("too few repeats: needs 33") && !text.contains("7875"), "{text}");
        assert!(text.contains("Too few repeats: the interval would be wider"), "{text}");
        let page = crate::report::html::render(&report);
        assert!(page.matches("too few repeats: needs 33").count() >= 3, "table, plot and details");
        assert!(!page.contains("± 370"), "an interval of 370,000");
    }

    #[test]
    fn many_cells_have_a_line_each_and_none_vanishes() {
        let text = render(&sample::report(6), Some(160));
        assert!(text.contains("apt-get install openvswitch-switch"), "{text}");
        assert!(text.lines().filter(|line| line.contains("94.1")).count() >= 4, "{text}");
    }
}
