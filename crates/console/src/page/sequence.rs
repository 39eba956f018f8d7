//! The sequence page: the packets of the chosen port's sequence.

use super::{PageInput, table, title};
use crate::state::packet::mac_text;

pub(super) fn lines(input: &PageInput<'_>) -> Vec<String> {
    let mut lines = vec![title(input, "Sequence")];
    let port = input.state.port;
    let Some(settings) = input.state.ports.get(port) else { return lines };
    let count = settings.sequence_count;
    let mode = match (settings.is_range_on, count) {
        (_, 0) => "off".to_owned(),
        (true, _) => format!("{count} packets, but range mode is on"),
        (false, _) => format!("{count} packets in turn"),
    };
    lines.push(format!("Port {port}: {mode}"));
    let shown = settings.sequence.iter().take(count.max(1)).enumerate();
    let rows: Vec<Vec<String>> = shown
        .clone()
        .map(|(slot, packet)| {
            vec![
                slot.to_string(),
                packet.dst_ip.to_string(),
                format!("{}/{}", packet.src_ip, packet.src_prefix),
                format!("{}/{}", packet.src_port, packet.dst_port),
                format!("{}/{}", packet.kind.word(), packet.protocol.word()),
                packet.vlan_id.to_string(),
                packet.size.to_string(),
            ]
        })
        .collect();
    let heads = ["Seq", "Dst IP", "Src IP", "Port S/D", "Type", "VLAN", "Size"];
    lines.extend(table(input, heads, rows));
    let macs: Vec<Vec<String>> = shown
        .map(|(slot, packet)| {
            let teid = if packet.has_gtpu() { packet.teid.to_string() } else { "-".to_owned() };
            vec![slot.to_string(), mac_text(packet.dst_mac), mac_text(packet.src_mac), teid]
        })
        .collect();
    lines.extend(table(input, ["Seq", "Dst MAC", "Src MAC", "GTP-U TEID"], macs));
    lines
}
