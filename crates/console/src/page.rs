//! The pages: text from settings and statistics, 80 columns wide and 21 lines high where the ports
//! allow it, without colour.
//!
//! They are functions of their input, so that tests compare whole screens. Rates are those of layer
//! 1, as Pktgen shows them: with FCS, preamble and gap.

mod config;
mod latency;
mod main;
mod pcap;
mod random;
mod range;
mod sequence;
mod stats;
mod streams;
mod xstats;

use std::collections::VecDeque;

use ::terminal::{Table, wrap};
use generator::statistics::{PortStatistics, SessionStatistics};

use netdev::{PortCounters, PortInfo};

use crate::cpu_use::ThreadUse;
use crate::state::{ConsoleState, PageName};

/// The input of a page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageInput<'a> {
    /// The settings.
    pub(crate) state: &'a ConsoleState,
    /// The counts.
    pub(crate) statistics: &'a SessionStatistics,
    /// The threads of the process.
    pub(crate) threads: &'a [ThreadUse],
    /// The devices of the ports, for the page that shows them.
    pub(crate) infos: &'a [PortInfo],
    /// Their counters, for the page that shows them.
    pub(crate) counters: &'a [PortCounters],
    /// Lines that were shown, the last one last.
    pub(crate) log: &'a VecDeque<String>,
    /// Columns of the screen.
    pub(crate) width: usize,
}

/// Columns where nothing says how many there are.
pub(crate) const WIDTH: usize = 80;

/// The page that is shown, line by line.
pub(crate) fn render(input: &PageInput<'_>) -> Vec<String> {
    let lines = match input.state.page {
        PageName::Main => main::lines(input),
        PageName::Range => range::lines(input),
        PageName::Sequence => sequence::lines(input),
        PageName::Latency => latency::lines(input),
        PageName::Stats => stats::lines(input),
        PageName::Cpu => threads(input),
        PageName::Streams => streams::lines(input),
        PageName::Config => config::lines(input),
        PageName::Pcap => pcap::lines(input),
        PageName::Random => random::lines(input),
        PageName::Log => log(input),
        PageName::Xstats => xstats::lines(input),
    };
    let cut = |line: String| line.chars().take(input.width).collect::<String>();
    lines.into_iter().map(cut).map(|line| line.trim_end().to_owned()).collect()
}

/// The first line of a page.
fn title(input: &PageInput<'_>, page: &str) -> String {
    let count = input.state.ports.len();
    let ports = match count {
        1 => "Port 0 of 1".to_owned(),
        _ => format!("Ports 0-{} of {count}", count.saturating_sub(1)),
    };
    format!("{ports}  <{page} Page>  weir gen {}", env!("CARGO_PKG_VERSION"))
}

/// The counts of a port.
fn port_statistics<'a>(input: &PageInput<'a>, port: usize) -> Option<&'a PortStatistics> {
    input.statistics.ports.get(port)
}

/// Lines of the log that are shown: those that fit a screen of 24.
const LOG_LINES: usize = 19;

fn log(input: &PageInput<'_>) -> Vec<String> {
    let mut lines = vec![title(input, "Log")];
    let log: Vec<String> = input.log.iter().flat_map(|line| wrap(line, input.width, "")).collect();
    let skipped = log.len().saturating_sub(LOG_LINES);
    lines.extend(log.into_iter().skip(skipped));
    if input.log.is_empty() {
        lines.push("no messages yet".to_owned());
    }
    lines
}

fn threads(input: &PageInput<'_>) -> Vec<String> {
    let row = |thread: &ThreadUse| [thread.name.clone(), format!("{:.1}", thread.percent)];
    let mut lines = vec![title(input, "CPU")];
    lines.extend(table(input, ["Thread", "% of core"], input.threads.iter().map(row)));
    lines
}

/// The lines of a table, whose first column names the row.
fn table<C: Into<String>>(
    input: &PageInput<'_>,
    heads: impl IntoIterator<Item = impl Into<String>>,
    rows: impl IntoIterator<Item = impl IntoIterator<Item = C>>,
) -> Vec<String> {
    let mut table = Table::new(heads);
    rows.into_iter().for_each(|row| table.row(row));
    table.plain(input.width)
}

/// The heads of a table with a column for each port.
fn port_heads(input: &PageInput<'_>) -> Vec<String> {
    let ports = (0..input.state.ports.len()).map(|port| format!("Port {port}"));
    [String::new()].into_iter().chain(ports).collect()
}

#[cfg(test)]
#[path = "page/tests.rs"]
mod tests;
