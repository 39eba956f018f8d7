//! Flow entries and frames that the lab makes itself, where a question is about their number and
//! not about what they say: Ethernet and IPv4 addresses, as in the workloads `l2l3`.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use openflow::flow::{FlowMod, FlowModCommand};
use openflow::{Action, Field, Instruction, MacAddr, Match, PortNo};
use packet::build::{FrameBuilder, Ipv4};

/// Entries that differ in their addresses.
pub(crate) const ENTRIES_MAX: u32 = 1 << 24;

/// Flows of a trace, a frame each: it is held in memory as a whole.
pub(crate) const FLOWS_MAX: u32 = 1_000_000;

const SOURCE: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const DESTINATION: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);

/// The addresses of the flow `number`.
fn addresses(number: u32) -> (u32, u32) {
    (0x0a00_0000 | (number & 0xff_ffff), 0x0a80_0000 | (number & 0x7f_ffff))
}

fn of_ethernet() -> Match {
    Match::any()
        .with(Field::EthSrc, SOURCE.to_u64().into())
        .with(Field::EthDst, DESTINATION.to_u64().into())
        .with(Field::EthType, 0x0800)
}

/// The entry of the flow `number`, which sends it out of port 2.
fn flow_mod(number: u32) -> FlowMod {
    let (from, to) = addresses(number);
    FlowMod {
        priority: 10,
        matching: of_ethernet().with(Field::Ipv4Src, from.into()).with(Field::Ipv4Dst, to.into()),
        instructions: vec![Instruction::ApplyActions(vec![Action::output(PortNo(2))])],
        ..FlowMod::new(FlowModCommand::Add)
    }
}

/// So many entries: one behind all others that takes every flow, and then one for each flow.
pub(crate) fn entries(count: u32) -> impl Iterator<Item = Result<FlowMod>> {
    let all = FlowMod { priority: 1, matching: of_ethernet(), ..flow_mod(0) };
    let each = (0..count.saturating_sub(1)).map(flow_mod);
    std::iter::once(all).chain(each).take(count as usize).map(Ok)
}

/// A frame of 64 bytes, FCS counted, of the flow `number`.
fn frame(number: u32) -> Vec<u8> {
    let (from, to) = addresses(number);
    let addresses = Ipv4::new(Ipv4Addr::from_bits(from), Ipv4Addr::from_bits(to));
    let headers = FrameBuilder::ethernet(DESTINATION, SOURCE).ipv4(addresses);
    headers.udp(1000, 2000).payload(&[0; 18]).build()
}

/// Writes a trace of `flows` flows, a frame each in an order without a pattern; its path.
pub(crate) fn trace(folder: &Path, flows: u32) -> Result<PathBuf> {
    let path = folder.join("made.pcap");
    let mut bytes = netdev::pcap::file_header();
    for number in scattered(flows) {
        let is_whole = netdev::pcap::append_record(&mut bytes, Duration::ZERO, &frame(number));
        ensure!(is_whole, "a frame longer than a capture takes");
    }
    std::fs::write(&path, bytes).with_context(|| format!("{}", path.display()))?;
    Ok(path)
}

/// The numbers below `count`, each once, in an order that no prefetcher guesses.
fn scattered(count: u32) -> impl Iterator<Item = u32> {
    let mask = u64::from(count.max(1)).next_power_of_two() - 1;
    let all = (0..=mask).map(move |n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) & mask) as u32);
    all.filter(move |n| *n < count)
}

#[cfg(test)]
mod tests {
    use openflow::text::format_flow_mod;

    use super::{entries, frame, scattered, trace};

    #[test]
    fn entries_are_counted_and_their_frames_belong_to_them() {
        let texts: Vec<String> = entries(3).map(|entry| format_flow_mod(&entry.unwrap())).collect();
        assert_eq!(texts.len(), 3);
        assert!(texts[0].contains("priority=1,") && !texts[0].contains("nw_src"), "{texts:?}");
        assert!(texts[2].contains("nw_src=10.0.0.1,nw_dst=10.128.0.1"), "{texts:?}");
        let frame = frame(1);
        assert_eq!(frame.len(), 60);
        assert_eq!(frame[26..34], [10, 0, 0, 1, 10, 128, 0, 1]);
        assert_eq!(entries(1).count(), 1);
    }

    #[test]
    fn every_flow_has_a_frame() {
        let mut numbers: Vec<u32> = scattered(1_000).collect();
        assert_ne!(numbers[..3], [0, 1, 2]);
        numbers.sort_unstable();
        assert_eq!(numbers, (0..1_000).collect::<Vec<u32>>());
        let folder = tempfile::tempdir().unwrap();
        let bytes = std::fs::read(trace(folder.path(), 7).unwrap()).unwrap();
        assert_eq!(netdev::pcap::Capture::parse(bytes).unwrap().len(), 7);
    }
}
