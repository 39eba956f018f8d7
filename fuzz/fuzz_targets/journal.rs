//! The journal of a bridge: any file is read or refused, and what is read can be restored, without
//! a panic. The input is a file, and the items of a record whose checksums are right.
#![no_main]

use datapath::fast::{Control, RemovalReport};
use datapath::{DatapathConfig, Nanos};
use packet::checksum::crc32c;
use switch::read_journal;

/// The beginning of a file: an item with the owner.
const HEADER: &[u8] = br#"{"format":1,"dpid":"a1","boot":""}"#;

fn record(payload: &[u8]) -> Vec<u8> {
    let (len, sum) = ((payload.len() as u32).to_le_bytes(), crc32c(&[payload]).to_le_bytes());
    let own_sum = crc32c(&[&len, &sum]).to_le_bytes();
    [&len[..], &sum, &own_sum, payload].concat()
}

fn restore(bytes: &[u8]) {
    let Ok(saved) = read_journal(bytes) else { return };
    let config = DatapathConfig { n_tables: 4, ..DatapathConfig::default() };
    let mut control = Control::new(config, 1, RemovalReport::Asked);
    let now = Nanos::from_s(5);
    let all = saved.entries.len() + saved.groups.len() + saved.meters.len();
    let done = control.restore(saved, now);
    let refused = done.refused.map_or(0, |(count, _)| count);
    assert_eq!(done.entries + done.groups + done.meters + refused, all);
    control.expire(now, usize::MAX);
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    restore(data);
    let header = [&[1][..], &(HEADER.len() as u32).to_le_bytes(), HEADER].concat();
    restore(&[record(&header), record(data)].concat());
});
