//! The pcap page: the capture files that ports send.

use super::{PageInput, title};
use crate::state::SendMode;

pub(super) fn lines(input: &PageInput<'_>) -> Vec<String> {
    let mut lines = vec![title(input, "Pcap")];
    for (port, settings) in input.state.ports.iter().enumerate() {
        let mode = if settings.mode() == SendMode::Capture { "on" } else { "off" };
        lines.push(match &settings.pcap_file {
            Some(file) => format!("Port {port}: {mode}, {}", file.display()),
            None => format!("Port {port}: no file; pcap.file {port} FILE names one"),
        });
    }
    lines
}
