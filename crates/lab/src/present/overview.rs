//! A scenario for a terminal: the headline figures, one line a row, and what they say.
//!
//! A scenario of several methods has a line for each of them and a column for each cell; one of few
//! has a line for each point and a column for each switch. What does not fit is named and left to
//! `--all`. It must never show a cell without a figure or the reason that there is none, nor mark
//! as best what the starts do not carry.

use stats::range_confidence;

use super::entry::TableEntry;
use super::findings::main_findings;
use super::mark::{OPEN, best, leaves_open, mark, marked};
use super::number::{axis_value, capital, count};
use super::section::{MetricTable, Section, TableRow};
use super::switch_ratio::SwitchRatio;
use super::verdict::headlines;
use crate::limit::Part;
use crate::results::{AxisInfo, Coordinates};

/// Lines of a scenario, and columns of figures, at most.
const ROWS_MAX: usize = 8;
const COLUMNS_MAX: usize = 4;

/// From so many methods on a line is a metric.
const METHODS_MIN: usize = 3;

/// Around what a terminal shows in bold; of no width.
pub(crate) const BOLD: char = '\u{2060}';

/// The lines of a scenario.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Overview {
    /// The headings; those that name the row come first.
    pub(crate) header: Vec<String>,
    /// Number of the columns with names.
    pub(crate) names: usize,
    /// The rows.
    pub(crate) rows: Vec<Vec<String>>,
    /// Words below the table: signs, starts, and how much is left out.
    pub(crate) legend: String,
    /// Sentences made from the rows.
    pub(crate) sentences: Vec<String>,
}

/// The points of so many cells: the last axes keep their first value until it is enough; of one
/// axis with too many values some that lie as far from each other as from both ends.
fn chosen<'a>(
    section: &Section<'a>,
    fits: impl Fn(&[&'a Coordinates]) -> bool,
) -> Vec<&'a Coordinates> {
    let mut points = section.points.clone();
    for axis in section.axes.iter().skip(1).rev() {
        if fits(&points) {
            return points;
        }
        let first = points.first().and_then(|at| at.get(&axis.name));
        points.retain(|at| at.get(&axis.name) == first);
    }
    let all = points.clone();
    let mut wanted = all.len();
    while wanted > 1 && !fits(&points) {
        wanted -= 1;
        let place = |n: usize| all[n * (all.len() - 1) / (wanted - 1).max(1)];
        points = (0..wanted).map(place).collect();
    }
    points
}

/// The axes on which points differ.
fn varying<'s>(section: &'s Section<'_>, points: &[&Coordinates]) -> Vec<&'s AxisInfo> {
    let differs = |axis: &&AxisInfo| {
        let first = points.first().and_then(|at| at.get(&axis.name));
        points.iter().any(|at| at.get(&axis.name) != first)
    };
    section.axes.iter().filter(differs).collect()
}

/// A metric with its unit, in few letters.
fn name(table: &MetricTable<'_>) -> String {
    capital(&table.name()).replace("packets/s", "pps")
}

/// Figures and the entries that have none, as they are collected.
struct Cells<'s, 'a> {
    section: &'s Section<'a>,
    marks: Vec<Part>,
    starts: Vec<usize>,
    /// Whether one of them has a remark.
    has_remark: bool,
    /// Whether one of them has a range beyond its starts.
    leaves_open: bool,
    /// The switches of published figures.
    published: Vec<&'a str>,
}

impl<'a> Cells<'_, 'a> {
    /// The text of an entry; `is_best` where it is better than all others of its row.
    fn text(&mut self, entry: Option<&TableEntry<'_>>, decimals: usize, is_best: bool) -> String {
        let Some(figure) = entry.and_then(TableEntry::figure) else {
            let word = entry.and_then(TableEntry::absence).map_or("-", |(word, _)| word);
            return if word == "not measured" { "-".to_owned() } else { word.to_owned() };
        };
        if !self.starts.contains(&figure.starts) {
            self.starts.push(figure.starts);
        }
        self.leaves_open |= leaves_open(figure);
        self.has_remark |= !figure.remarks().is_empty();
        let part = figure.limit.map_or(Part::None, |limit| limit.part);
        if mark(part).is_some() && !self.marks.contains(&part) {
            self.marks.push(part);
        }
        let (text, marks) = marked(figure, decimals);
        if is_best { format!("{BOLD}{text}{BOLD}{marks}") } else { text + &marks }
    }

    /// The signs, the starts, and what is left out.
    fn legend(&self, left_out: usize) -> String {
        let mut parts: Vec<String> = Vec::new();
        let (least, most) = (self.starts.iter().min(), self.starts.iter().max());
        if let (Some(least), Some(most)) = (least, most) {
            let is_held = self.section.scenario.is_held;
            let (one, many) = self.section.turns();
            let starts = if least == most {
                count(*most, one, many)
            } else {
                format!("{least} to {most} {many}")
            };
            let held = (100.0 * range_confidence(*least)).round();
            parts.push(match least {
                // Another start may lie beyond all turns of this one.
                _ if is_held => format!("Median of {starts} of one start [lowest–highest]"),
                1 => format!("Median of {starts} [lowest–highest]; one start has no range"),
                _ => format!(
                    "Median of {starts} [lowest–highest]: {held} of 100 such ranges hold the true \
                     median"
                ),
            });
        }
        let signs = self.marks.iter().filter_map(|part| mark(*part));
        let signs: Vec<String> = signs.map(|(sign, words)| format!("{sign} {words}")).collect();
        if !signs.is_empty() {
            parts.push(format!("at its limit: {}", signs.join(", ")));
        }
        if self.leaves_open {
            parts.push(OPEN.to_owned());
        }
        if self.has_remark {
            let why = "below the floor, clock error or doubtful, as --all says";
            parts.push(format!("? not compared: {why}"));
        }
        if !self.published.is_empty() {
            parts.push(format!("{PUBLISHED}: {}", self.published.join("; ")));
        }
        if left_out > 0 {
            parts.push(format!("{} more with --all", count(left_out, "figure", "figures")));
        }
        if parts.is_empty() { String::new() } else { format!("{}.", parts.join("; ")) }
    }
}

/// The lines of a section.
pub(crate) fn overview(section: &Section<'_>) -> Overview {
    let headlines = headlines(section);
    let (marks, starts, published) = (Vec::new(), Vec::new(), Vec::new());
    let (has_remark, leaves_open) = (false, false);
    let mut cells = Cells { section, marks, starts, has_remark, leaves_open, published };
    let by_method = headlines.len() >= METHODS_MIN;
    let mut found = if by_method {
        cells.by_metric(&headlines[..headlines.len().min(ROWS_MAX)])
    } else {
        // More points leave no room for more than the first.
        let tables = if section.points.len() > 1 {
            &headlines[..1.min(headlines.len())]
        } else {
            &headlines
        };
        cells.by_point(tables)
    };
    let all = section.tables.iter().flat_map(|table| &table.rows).flat_map(|row| &row.entries);
    let all = all.filter(|entry| entry.figure().is_some()).count();
    let shown =
        found.rows.iter().flatten().filter(|text| text.contains(|c: char| c.is_ascii_digit()));
    let shown = shown.count().saturating_sub(found.names_with_digits());
    found.legend = cells.legend(all.saturating_sub(shown));
    found.sentences = main_findings(section);
    found
}

impl Overview {
    /// Names and published figures are no figures of the run.
    fn names_with_digits(&self) -> usize {
        let is_other = |at: usize| {
            let head = self.header.get(at).map_or("", String::as_str);
            at < self.names || head.starts_with(PUBLISHED) || head.starts_with(RATIO)
        };
        let cells = self.rows.iter().flat_map(|row| row.iter().enumerate());
        let others = cells.filter(|(at, _)| is_other(*at)).map(|(_, text)| text);
        others.filter(|text| text.contains(|c: char| c.is_ascii_digit())).count()
    }
}

const PUBLISHED: &str = "published";
const RATIO: &str = "÷ ";

impl<'a> Cells<'_, 'a> {
    /// A line for each metric, a column for each point and switch.
    fn by_metric(&mut self, tables: &[&MetricTable<'a>]) -> Overview {
        let section = self.section;
        let has_some = |at: &Coordinates, dut: usize| {
            let mut rows = tables.iter().flat_map(|table| &table.rows).filter(|row| row.at == at);
            rows.any(|row| row.entries.get(dut).and_then(TableEntry::figure).is_some())
        };
        let columns_of = |points: &[&'a Coordinates]| -> Vec<(&'a Coordinates, usize)> {
            let duts = 0..section.duts.len();
            let all = points.iter().flat_map(|at| duts.clone().map(move |dut| (*at, dut)));
            all.filter(|(at, dut)| has_some(at, *dut)).collect()
        };
        let points = chosen(section, |points| columns_of(points).len() <= COLUMNS_MAX);
        let columns = columns_of(&points);
        let mut header = vec![String::new()];
        let varying = varying(section, &columns.iter().map(|(at, _)| *at).collect::<Vec<_>>());
        let on_varying = |at: &Coordinates| {
            let at = varying.iter().filter_map(|axis| at.get(&axis.name));
            at.map(|value| axis_value(value)).collect::<Vec<_>>().join(", ")
        };
        header.extend(
            columns.iter().map(|(at, dut)| format!("{}\n{}", section.duts[*dut], on_varying(at))),
        );
        // Those of one point, which their heading names.
        let at_point = |table: &&&MetricTable<'a>, at: &Coordinates| {
            let mut rows = table.rows.iter();
            rows.any(|row| row.at == at && !row.published.is_empty())
        };
        let old = columns.iter().map(|(at, _)| *at);
        let old = old.clone().find(|at| tables.iter().any(|table| at_point(&table, at)));
        let mut rows = Vec::new();
        for table in tables {
            let row_at = |at: &Coordinates| table.rows.iter().find(|row| row.at == at);
            let entries = columns
                .iter()
                .map(|(at, dut)| (*dut, row_at(at).and_then(|row| row.entries.get(*dut))));
            let mut line = vec![name(table)];
            self.figures(&mut line, &entries.collect::<Vec<_>>(), table);
            line.extend(old.map(|at| match row_at(at) {
                Some(row) => self.published(row, table.metric.decimals),
                None => "-".to_owned(),
            }));
            rows.push(line);
        }
        header.extend(old.map(|at| format!("{PUBLISHED}\n{}", on_varying(at))));
        Overview { header, names: 1, rows, ..Overview::default() }
    }

    /// A line for each point, a column for each switch.
    fn by_point(&mut self, tables: &[&MetricTable<'a>]) -> Overview {
        let section = self.section;
        let lines = |table: &MetricTable<'_>, points: &[&'a Coordinates]| {
            table.rows.iter().filter(|row| points.contains(&row.at)).count()
        };
        let points = chosen(section, |points| {
            tables.iter().map(|table| lines(table, points)).sum::<usize>() <= ROWS_MAX
        });
        let shown = |row: &&TableRow<'_>| points.contains(&row.at);
        let has_figure = |dut: &usize| {
            let mut rows = tables.iter().flat_map(|table| &table.rows).filter(shown);
            rows.any(|row| row.entries.get(*dut).and_then(TableEntry::figure).is_some())
        };
        // Why a switch has no figure at all stands below the table.
        let duts: Vec<usize> = (0..section.duts.len()).filter(has_figure).collect();
        let varying = varying(section, &points);
        let versus = (1..section.duts.len()).find(|dut| {
            let mut rows = tables.iter().flat_map(|table| &table.rows).filter(shown);
            rows.any(|row| row.ratios.get(*dut).is_some_and(Option::is_some))
        });
        let has_published = tables.iter().any(|table| table.has_published());
        let is_single = tables.len() == 1;
        let mut header = match tables {
            [only] if !varying.is_empty() => vec![name(only)],
            [..] => vec![String::new()],
        };
        header.extend(duts.iter().map(|dut| section.duts[*dut].to_owned()));
        header.extend(versus.map(|dut| format!("{RATIO}{}", section.duts[dut])));
        header.extend(has_published.then(|| PUBLISHED.to_owned()));
        let mut rows = Vec::new();
        for table in tables {
            for row in table.rows.iter().filter(shown) {
                let place = Section::place_on(&varying, row.at);
                let label = match (is_single, place.is_empty()) {
                    (true, false) => place,
                    (false, false) => format!("{}, {place}", name(table)),
                    (_, true) => name(table),
                };
                let mut line = vec![label];
                let entries = duts.iter().map(|dut| (*dut, row.entries.get(*dut)));
                self.figures(&mut line, &entries.collect::<Vec<_>>(), table);
                line.extend(versus.map(|dut| {
                    let ratio = row.ratios.get(dut).and_then(Option::as_ref);
                    ratio.map_or_else(|| "-".to_owned(), SwitchRatio::text)
                }));
                line.extend(has_published.then(|| self.published(row, table.metric.decimals)));
                rows.push(line);
            }
        }
        Overview { header, names: 1, rows, ..Overview::default() }
    }

    /// The published figures of a row; their switches stand below the table.
    fn published(&mut self, row: &TableRow<'a>, decimals: usize) -> String {
        for one in &row.published {
            if !self.published.contains(&one.switch.as_str()) {
                self.published.push(&one.switch);
            }
        }
        row.published_range(decimals).unwrap_or_else(|| "-".to_owned())
    }

    /// The texts of a row's entries.
    fn figures(
        &mut self,
        line: &mut Vec<String>,
        entries: &[(usize, Option<&TableEntry<'_>>)],
        table: &MetricTable<'_>,
    ) {
        let best = best(self.section, entries, table.metric.better);
        for ((_, entry), is_best) in entries.iter().zip(best) {
            line.push(self.text(*entry, table.metric.decimals, is_best));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BOLD, Overview, overview};
    use crate::present::sample::{hostile, results};
    use crate::present::section::sections;
    use crate::results::{CellResults, CellState};

    #[test]
    fn a_scenario_has_eight_lines_at_most_and_no_cell_is_blank() {
        for results in [results(), hostile()] {
            for section in &sections(&results) {
                let found = overview(section);
                assert!(found.rows.len() <= 8 && found.sentences.len() <= 3, "{found:?}");
                let figures = found.rows.iter().flat_map(|row| &row[found.names..]);
                for text in figures {
                    assert!(!text.is_empty(), "{found:?}");
                }
            }
        }
    }

    #[test]
    fn the_best_is_marked_where_ranges_do_not_meet() {
        let results = results();
        let sections = sections(&results);
        let forwarding = overview(&sections[1]);
        assert!(forwarding.rows[0][1].starts_with(BOLD), "{forwarding:?}");
        assert!(forwarding.rows[0][1].ends_with(" S"), "{forwarding:?}");
        assert_eq!(forwarding.rows[0][5], "143,000");
        assert!(!forwarding.rows[0][2].contains(BOLD), "{forwarding:?}");
        assert!(forwarding.legend.starts_with("Median of 5 starts [lowest–highest]: 94 of 100 "));
        assert!(forwarding.legend.contains("at its limit: S switch"), "{}", forwarding.legend);
        let hub = overview(&sections[0]);
        assert_eq!(hub.rows.len(), 3);
        assert!(hub.legend.contains("published: test 1 (1 Gb/s control link)"), "{}", hub.legend);
        assert!(!hub.rows[1].iter().any(|text| text.contains(BOLD)), "the port is full: {hub:?}");
        // Beside whatever column they stand, their heading has their point.
        let point = hub.header.last().unwrap().strip_prefix("published\n").unwrap();
        let mut columns = hub.header.iter().filter_map(|head| head.split_once('\n'));
        assert!(columns.any(|(name, at)| name != "published" && at == point), "{hub:?}");
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

    /// The overview of the made-up rates after a change of every cell.
    fn changed(change: impl Fn(&mut CellResults)) -> Overview {
        let mut results = results();
        results.scenarios[1].cells.iter_mut().for_each(change);
        overview(&sections(&results)[1])
    }

    #[test]
    fn what_is_not_sure_is_marked_and_no_other_is_best_beside_it() {
        let is_bold = |of: &Overview| of.rows.iter().flatten().any(|text| text.contains(BOLD));
        assert!(is_bold(&changed(|_| {})));
        let low = changed(|cell| {
            if cell.dut == "ovs" {
                cell.rows.iter_mut().for_each(|row| row.floor = Some(1e9));
            }
        });
        assert!(!is_bold(&low) && low.rows[0][2].contains(" ?"), "{low:?}");
        assert!(low.legend.contains("; ? not compared: "), "{}", low.legend);
        let single = changed(|cell| {
            for row in &mut cell.rows {
                row.samples.truncate(1);
                row.starts.truncate(1);
            }
        });
        assert!(
            !is_bold(&single) && single.legend.contains("one start has no range"),
            "{single:?}"
        );
        // What its scenario did not ask for has no figure, and no blank cell either.
        let other = changed(|cell| cell.rows.retain(|_| cell.dut != "ovs"));
        assert!(other.rows.iter().flatten().all(|text| !text.is_empty()), "{other:?}");
    }
}
