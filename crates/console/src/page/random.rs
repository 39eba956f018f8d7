//! The page of random bits: the masks of each port.

use super::{PageInput, table, title};

const HEADS: [&str; 4] = ["Port", "index", "offset", "mask"];

pub(super) fn lines(input: &PageInput<'_>) -> Vec<String> {
    let mut lines = vec![title(input, "Random")];
    let ports = || input.state.ports.iter().enumerate();
    let rows: Vec<Vec<String>> = ports()
        .flat_map(|(port, settings)| settings.random.iter().map(move |mask| (port, mask)))
        .map(|(port, (number, bits))| {
            [port.to_string(), number.to_string(), bits.offset.to_string(), bits.mask.clone()]
                .to_vec()
        })
        .collect();
    if !rows.is_empty() {
        lines.extend(table(input, HEADS, rows));
    }
    for (port, settings) in ports() {
        let is_on = if settings.is_random_on { "on" } else { "off" };
        lines.push(format!("Port {port}: {is_on}, {} masks", settings.random.len()));
    }
    lines
}
