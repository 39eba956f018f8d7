//! The config page: what each port is, and how it is used.

use netdev::PortInfo;

use super::{PageInput, port_heads, table, title};
use crate::state::packet::mac_text;
use crate::state::{PortSettings, SendMode};

/// A row: its label, and the value of a port.
type Row = (&'static str, fn(&PortInfo, &PortSettings, f64) -> String);

const ROWS: [Row; 11] = [
    ("Kind", |info, _, _| info.kind.to_owned()),
    ("Name", |info, _, _| {
        info.name.chars().rev().take(24).collect::<String>().chars().rev().collect()
    }),
    ("MAC address", |_, settings, _| mac_text(settings.mac)),
    ("Link", |info, _, _| if info.link_up { "up" } else { "down" }.to_owned()),
    ("MTU", |info, _, _| info.mtu.to_string()),
    ("Speed, Mbit/s", |info, _, _| match info.speed_bps {
        0 => "unknown".to_owned(),
        bps => (bps / 1_000_000).to_string(),
    }),
    ("Line, Mbit/s", |_, _, line_bps| format!("{:.0}", line_bps / 1e6)),
    ("Sends", |_, settings, _| match settings.mode() {
        SendMode::Single => "single".to_owned(),
        SendMode::Range => "range".to_owned(),
        SendMode::Sequence => format!("{} packets in turn", settings.sequence_count),
        SendMode::Capture => "pcap".to_owned(),
    }),
    ("Number and time", |_, settings, _| on(settings.is_latency_on)),
    ("Late after, us", |_, settings, _| {
        settings.late_after_us.map_or_else(|| "never".to_owned(), |us| us.to_string())
    }),
    ("Verify", |_, settings, _| on(settings.verifies)),
];

fn on(is_on: bool) -> String {
    if is_on { "on" } else { "off" }.to_owned()
}

pub(super) fn lines(input: &PageInput<'_>) -> Vec<String> {
    let mut lines = vec![title(input, "Config")];
    let heads = port_heads(input);
    let row = |(label, value): &Row| {
        let ports = input.infos.iter().zip(&input.state.ports).zip(&input.statistics.ports);
        let cells = ports.map(|((info, settings), port)| value(info, settings, port.line_rate_bps));
        std::iter::once((*label).to_owned()).chain(cells).collect::<Vec<_>>()
    };
    lines.extend(table(input, heads, ROWS.iter().map(row)));
    for (port, info) in input.infos.iter().enumerate() {
        lines.extend(info.notes.iter().map(|note| format!("Port {port}: {note}")));
    }
    lines
}
