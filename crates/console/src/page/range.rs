//! The range page: start, least, most and step of each field, a table for each port.

use super::{PageInput, title};
use crate::state::range::RangeFieldRow;
use crate::state::{Bound, RANGE_FIELDS};

/// Columns of a value: those of an Ethernet address.
const VALUE: usize = 17;

/// Columns of a field's word.
const LABEL: usize = 8;

/// The order of the values, as Pktgen has it.
const BOUNDS: [Bound; 4] = [Bound::Start, Bound::Inc, Bound::Min, Bound::Max];

pub(super) fn lines(input: &PageInput<'_>) -> Vec<String> {
    let mut lines = vec![title(input, "Range")];
    // The chosen port comes first, because a terminal cuts what is below.
    let ports = input.state.ports.iter().enumerate();
    let chosen = input.state.port;
    for (port, settings) in ports.clone().skip(chosen).chain(ports.take(chosen)) {
        let range = &settings.range;
        let mode = if settings.is_range_on { "on" } else { "off" };
        lines.push(format!("Port {port}: range {mode}, ip.proto {}", range.protocol.word()));
        let line = |label: &str, values: [String; 4]| {
            let [start, inc, min, max] = values;
            format!("{label:<LABEL$} {start:>VALUE$} {inc:>VALUE$} {min:>VALUE$} {max:>VALUE$}")
        };
        lines.push(line("", BOUNDS.map(|bound| bound.word().to_owned())));
        let is_shown =
            |row: &&RangeFieldRow| row.field.is_usual() || range.span(row.field).is_set();
        lines.extend(RANGE_FIELDS.iter().filter(is_shown).map(|row: &RangeFieldRow| {
            let span = range.span(row.field);
            let value = |bound| row.field.text(span.get(bound), range.is_ipv6());
            line(short(row.word), BOUNDS.map(value))
        }));
    }
    lines
}

/// A field's word where its header is known from the rest, so that it fits its columns.
fn short(word: &str) -> &str {
    match word.split_once('.') {
        Some(("gtpu" | "mpls" | "vxlan", rest)) => rest,
        Some(("tcp", "flags")) => "tcp.flag",
        Some(("qinq", "outer")) => "qinq.out",
        Some(("qinq", "inner")) => "qinq.in",
        Some(_) | None => word,
    }
}
