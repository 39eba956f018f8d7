//! A scenario for a terminal: the headline figures, one line a row, and what they say.
//!
//! A scenario of several methods has a line for each of them and a column for each cell; one of few
//! has a line for each point and a column for each switch. What does not fit is named and left to
//! `--all`. It must never show a cell without a figure or the reason that there is none, nor mark
//! as best what the starts do not carry.

use stats::range_confidence;

use super::entry::{Entry, NOT_MEASURED, ShownFigure, meanings};
use super::grid::{TextGrid, versus};
use super::number::{axis_value, capital, count};
use super::ratio::{best, ratio_text};
use super::section::{MetricTable, Section, TableRow, place_on, varies};
use super::verdict::headlines;
use crate::names::distinct;
use crate::results::{AxisInfo, Coordinates, Metric};

/// Lines of a scenario, and columns of figures, at most.
const ROWS_MAX: usize = 8;
const COLUMNS_MAX: usize = 4;

/// From so many methods on a line is a metric.
const METHODS_MIN: usize = 3;

/// Around what a terminal shows in bold; of no width.
pub(crate) const BOLD: char = '\u{2060}';

/// The points of so many cells: the last axes keep their first value until it is enough; of one
/// axis with too many values some that lie as far from each other as from both ends.
fn chosen<'a>(
    section: &Section<'a>,
    fits: impl Fn(&[&'a Coordinates]) -> bool,
) -> Vec<&'a Coordinates> {
    let mut points = section.points.clone();
    for axis in section.axes.iter().skip(1).rev() {
        let first = points.first().and_then(|at| at.get(&axis.name));
        if !fits(&points) {
            points.retain(|at| at.get(&axis.name) == first);
        }
    }
    let some = |wanted: usize| -> Vec<&'a Coordinates> {
        let last = points.len() - 1;
        (0..wanted).map(|n| points[n * last / (wanted - 1).max(1)]).collect()
    };
    let mut fewer = (1..=points.len()).rev().map(some);
    fewer.find(|points| points.len() == 1 || fits(points)).unwrap_or_default()
}

/// The axes on which points differ.
fn varying<'a>(section: &Section<'a>, points: &[&Coordinates]) -> Vec<&'a AxisInfo> {
    section.axes.iter().copied().filter(|axis| varies(axis, points)).collect()
}

/// A metric with its unit, in few letters.
fn name(metric: &Metric) -> String {
    capital(&metric.name()).replace("packets/s", "pps")
}

/// A line: its name, its entries where there are some, and what stands in further columns.
struct OverviewLine<'s, 'a> {
    name: String,
    entries: Vec<Option<&'s Entry<'a>>>,
    ratio: Option<String>,
    /// The row with its published figures, whose switches stand below the table.
    published: Option<Option<&'s TableRow<'a>>>,
}

impl<'s, 'a> OverviewLine<'s, 'a> {
    fn figures(&self) -> impl Iterator<Item = &'s ShownFigure<'a>> {
        self.entries.iter().copied().flatten().flatten()
    }

    fn texts(&self) -> Vec<String> {
        let none = || "-".to_owned();
        let figures = self.entries.iter().map(|entry| (*entry)?.as_ref().ok());
        let best = best(&figures.collect::<Vec<_>>());
        let entry = |(entry, is_best): (&Option<&Entry<'_>>, bool)| match entry {
            Some(Ok(figure)) if is_best => {
                format!("{BOLD}{}{BOLD}{}", figure.short_text(), figure.signs())
            }
            Some(Ok(figure)) => figure.short_text() + &figure.signs(),
            Some(Err((word, _))) if *word != NOT_MEASURED.0 => (*word).to_owned(),
            Some(Err(_)) | None => none(),
        };
        let mut texts = vec![self.name.clone()];
        texts.extend(self.entries.iter().zip(best).map(entry));
        texts.extend(self.ratio.clone());
        let published = |row: Option<&TableRow<'_>>| row.and_then(TableRow::published_range);
        texts.extend(self.published.map(|row| published(row).unwrap_or_else(none)));
        texts
    }
}

/// The signs, the starts, and how many of the section's figures are left out.
fn legend(section: &Section<'_>, lines: &[OverviewLine<'_, '_>]) -> String {
    let figures: Vec<&ShownFigure<'_>> = lines.iter().flat_map(OverviewLine::figures).collect();
    let starts = || figures.iter().map(|figure| figure.starts);
    let mut parts = Vec::new();
    parts.extend(starts().min().zip(starts().max()).map(|of| starts_text(section, of)));
    parts.extend(meanings(&figures, ", as --all says"));
    let old = lines.iter().filter_map(|line| line.published?).flat_map(|row| &row.published);
    let switches = distinct(old.map(|one| one.switch.as_str()));
    if !switches.is_empty() {
        parts.push(format!("{PUBLISHED}: {}", switches.join("; ")));
    }
    let all = section.tables.iter().flat_map(MetricTable::figures).count();
    let left_out = all.saturating_sub(figures.len());
    if left_out > 0 {
        parts.push(format!("{} more with --all", count(left_out, "figure", "figures")));
    }
    if parts.is_empty() { String::new() } else { format!("{}.", parts.join("; ")) }
}

/// The starts of a figure, and how sure a range of the fewest of them is.
fn starts_text(section: &Section<'_>, (least, most): (usize, usize)) -> String {
    let (one, many) = section.scenario.turns();
    let starts = match least == most {
        true => count(most, one, many),
        false => format!("{least} to {most} {many}"),
    };
    let held = (100.0 * range_confidence(least)).round();
    match least {
        // Another start may lie beyond all turns of this one.
        _ if section.scenario.is_held => {
            format!("Median of {starts} of one start [lowest–highest]")
        }
        1 => format!("Median of {starts} [lowest–highest]; one start has no range"),
        _ => format!(
            "Median of {starts} [lowest–highest]: {held} of 100 such ranges hold the true median"
        ),
    }
}

/// The lines of a section, and the words below them.
pub(crate) fn overview(section: &Section<'_>) -> (TextGrid, String) {
    let mut tables = headlines(section);
    let (header, lines) = if tables.len() >= METHODS_MIN {
        tables.truncate(ROWS_MAX);
        by_metric(section, &tables)
    } else {
        if section.points.len() > 1 {
            // They leave no room for more than the first.
            tables.truncate(1);
        }
        by_point(section, &tables)
    };
    let rows = lines.iter().map(|line| (String::new(), line.texts())).collect();
    let legend = legend(section, &lines);
    (TextGrid { title: String::new(), header, names: 1, rows }, legend)
}

const PUBLISHED: &str = "published";

/// A line for each metric, a column for each point and switch: the headings and the lines.
fn by_metric<'s, 'a>(
    section: &Section<'a>,
    tables: &[&'s MetricTable<'a>],
) -> (Vec<String>, Vec<OverviewLine<'s, 'a>>) {
    let has_row = |at: &Coordinates, is: &dyn Fn(&TableRow<'_>) -> bool| {
        tables.iter().filter_map(|table| table.row(at)).any(is)
    };
    let columns_of = |points: &[&'a Coordinates]| -> Vec<(&'a Coordinates, usize)> {
        let duts = 0..section.duts.len();
        let all = points.iter().flat_map(|at| duts.clone().map(move |dut| (*at, dut)));
        all.filter(|(at, dut)| has_row(at, &|row| row.figure(*dut).is_some())).collect()
    };
    let points = chosen(section, |points| columns_of(points).len() <= COLUMNS_MAX);
    let columns = columns_of(&points);
    let varying = varying(section, &columns.iter().map(|(at, _)| *at).collect::<Vec<_>>());
    let heading = |name: &str, at: &Coordinates| {
        let at = varying.iter().filter_map(|axis| at.get(&axis.name));
        format!("{name}\n{}", at.map(|value| axis_value(value)).collect::<Vec<_>>().join(", "))
    };
    // The published figures of one point, which their heading names.
    let mut points = columns.iter().map(|(at, _)| *at);
    let old = points.find(|at| has_row(at, &|row| !row.published.is_empty()));
    let mut header = vec![String::new()];
    header.extend(columns.iter().map(|(at, dut)| heading(section.duts[*dut], at)));
    header.extend(old.map(|at| heading(PUBLISHED, at)));
    let line = |table: &&'s MetricTable<'a>| OverviewLine {
        name: name(table.metric),
        entries: columns.iter().map(|(at, dut)| table.row(at)?.entries.get(*dut)).collect(),
        ratio: None,
        published: old.map(|at| table.row(at)),
    };
    (header, tables.iter().map(line).collect())
}

/// A line for each point, a column for each switch: the headings and the lines.
fn by_point<'s, 'a>(
    section: &Section<'a>,
    tables: &[&'s MetricTable<'a>],
) -> (Vec<String>, Vec<OverviewLine<'s, 'a>>) {
    let rows_at = |points: &[&Coordinates]| -> Vec<&'s TableRow<'a>> {
        let rows = tables.iter().flat_map(|table| &table.rows);
        rows.filter(|row| points.contains(&row.at)).collect()
    };
    let points = chosen(section, |points| rows_at(points).len() <= ROWS_MAX);
    let rows = rows_at(&points);
    let varying = varying(section, &points);
    // Why a switch has no figure at all stands below the table.
    let duts = 0..section.duts.len();
    let has_figure = |dut: &usize| rows.iter().any(|row| row.figure(*dut).is_some());
    let duts: Vec<usize> = duts.filter(has_figure).collect();
    let versus = versus(rows.iter().copied());
    let has_published = tables.iter().any(|table| table.has_published());
    let mut header = match tables {
        [only] if !varying.is_empty() => vec![name(only.metric)],
        [..] => vec![String::new()],
    };
    header.extend(duts.iter().map(|dut| section.duts[*dut].to_owned()));
    header.extend(versus.map(|dut| format!("÷ {}", section.duts[dut])));
    header.extend(has_published.then(|| PUBLISHED.to_owned()));
    let line = |row: &&'s TableRow<'a>| {
        let place = place_on(&varying, row.at, true);
        let name = match (tables.len(), place.is_empty()) {
            (1, false) => place,
            (_, false) => format!("{}, {place}", name(row.metric)),
            (_, true) => name(row.metric),
        };
        let ratio = |dut: usize| row.ratios[dut].as_ref().map_or("-".to_owned(), ratio_text);
        OverviewLine {
            name,
            entries: duts.iter().map(|dut| row.entries.get(*dut)).collect(),
            ratio: versus.map(ratio),
            published: has_published.then_some(Some(*row)),
        }
    };
    (header, rows.iter().map(line).collect())
}

#[cfg(test)]
mod tests {
    use super::{BOLD, overview};
    use crate::present::findings::main_findings;
    use crate::present::sample::{hostile, results};
    use crate::present::section::sections;
    use crate::results::{CellResults, CellState};

    #[test]
    fn a_scenario_has_eight_lines_at_most_and_no_cell_is_blank() {
        for results in [results(), hostile()] {
            for section in &sections(&results) {
                let (grid, _) = overview(section);
                assert!(grid.rows.len() <= 8 && main_findings(section).len() <= 2, "{grid:?}");
                let mut figures = grid.rows.iter().flat_map(|(_, texts)| &texts[grid.names..]);
                assert!(!figures.any(String::is_empty), "{grid:?}");
            }
        }
    }

    #[test]
    fn the_best_is_marked_where_ranges_do_not_meet() {
        let results = results();
        let sections = sections(&results);
        let (grid, legend) = overview(&sections[1]);
        let first = &grid.rows[0].1;
        assert!(first[1].starts_with(BOLD) && first[1].ends_with(" S"), "{grid:?}");
        assert!(!first[2].contains(BOLD) && first[5] == "143,000", "{grid:?}");
        assert!(legend.starts_with("Median of 5 starts [lowest–highest]: 94 of 100 "), "{legend}");
        assert!(legend.contains("at its limit: S switch"), "{legend}");
        let (grid, legend) = overview(&sections[0]);
        assert_eq!(grid.rows.len(), 3);
        assert!(legend.contains("published: test 1 (1 Gb/s control link)"), "{legend}");
        let is_bold = grid.rows[1].1.iter().any(|text| text.contains(BOLD));
        assert!(!is_bold, "the port is full: {grid:?}");
        // Beside whatever column they stand, their heading has their point.
        let point = grid.header.last().unwrap().strip_prefix("published\n").unwrap();
        let mut columns = grid.header.iter().filter_map(|head| head.split_once('\n'));
        assert!(columns.any(|(name, at)| name != "published" && at == point), "{grid:?}");
    }

    #[test]
    fn a_reason_that_switches_share_is_there_once() {
        let mut results = results();
        let cells = &mut results.scenarios[1].cells;
        let at = cells[0].at.clone();
        for cell in cells.iter_mut().filter(|cell| cell.at == at) {
            cell.state = CellState::Missing("no such program".to_owned());
        }
        let sections = sections(&results);
        let absences = sections[1].absences();
        let mut sentences = absences.iter().map(|one| one.sentence());
        assert!(
            sentences.any(|text| text.starts_with("weir, ovs, linux-bridge: missing here at "))
        );
    }

    /// The overview of the made-up rates after a change of every cell: the texts of its lines, and
    /// the legend.
    fn changed(change: impl Fn(&mut CellResults)) -> (Vec<Vec<String>>, String) {
        let mut results = results();
        results.scenarios[1].cells.iter_mut().for_each(change);
        let (grid, legend) = overview(&sections(&results)[1]);
        (grid.rows.into_iter().map(|(_, texts)| texts).collect(), legend)
    }

    #[test]
    fn what_is_not_sure_is_marked_and_no_other_is_best_beside_it() {
        let is_bold = |rows: &[Vec<String>]| rows.iter().flatten().any(|one| one.contains(BOLD));
        assert!(is_bold(&changed(|_| {}).0));
        let (low, legend) = changed(|cell| {
            if cell.dut == "ovs" {
                cell.rows.iter_mut().for_each(|row| row.floor = Some(1e9));
            }
        });
        assert!(!is_bold(&low) && low[0][2].contains(" ?"), "{low:?}");
        assert!(legend.contains("; ? not compared: "), "{legend}");
        let (single, legend) = changed(|cell| {
            for row in &mut cell.rows {
                row.samples.truncate(1);
                row.starts.truncate(1);
            }
        });
        assert!(!is_bold(&single) && legend.contains("one start has no range"), "{single:?}");
        // What its scenario did not ask for has no figure, and no blank cell either.
        let (other, _) = changed(|cell| cell.rows.retain(|_| cell.dut != "ovs"));
        assert!(other.iter().flatten().all(|text| !text.is_empty()), "{other:?}");
    }
}
