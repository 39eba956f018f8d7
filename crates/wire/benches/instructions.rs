//! Number of instructions that the codec executes for a message: a loaded machine counts
//! the same as a quiet one.
//!
//! `cargo xtask instructions` runs it under Callgrind and compares with the committed figures. The
//! messages are vectors, whose bytes never change. It must never count what prepares a message.
#![allow(missing_docs, reason = "the macros make public items that nobody sees")]

use std::hint::black_box;

use gungraun::{library_benchmark, library_benchmark_group, main};
use openflow::flow::FlowStats;
use openflow::message::{MultipartReply, MultipartReplyBody};
use openflow::{Message, Version, Xid};

/// Often enough that what happens once, such as the first allocation, does not show.
const TIMES: usize = 100;

const OVS_1_0: &str = include_str!("../../../vectors/ovs-ofctl/of10.vec");
const OVS_1_3: &str = include_str!("../../../vectors/ovs-ofctl/of13.vec");
const OS_KEN: &str = include_str!("../../../vectors/os-ken/of13.vec");

/// The frame of a vector: the text of its file, and its name.
///
/// The file is not parsed as a whole: that would leave holes in the heap whose number depends on
/// the other vectors, and what an allocation costs depends on the holes.
fn frame((text, name): (&str, &str)) -> Vec<u8> {
    let (_, behind) = text.split_once(&format!("name: {name}\n")).expect("a vector's name");
    let (_, behind) = behind.split_once("\nhex: ").expect("a vector has bytes");
    let (hex, _) = behind.split_once("\n\n").unwrap_or((behind, ""));
    testkit::hex::parse(hex).expect("the bytes are hex")
}

/// A part of a dump: flow entries with the match and actions of a vector.
fn flow_stats(entries: u64) -> (Version, Xid, Message) {
    let (version, xid, one) = message((OVS_1_3, "add-flow/match_twelve"));
    let Message::FlowMod(one) = one else { panic!("the vector is a flow-mod") };
    let stats = (0..entries).map(|number| FlowStats {
        table_id: one.table_id,
        duration_s: 1,
        duration_ns: 0,
        priority: one.priority,
        idle_timeout_s: 0,
        hard_timeout_s: 0,
        flags: one.flags,
        importance: one.importance,
        cookie: one.cookie,
        packet_count: number,
        byte_count: 60 * number,
        matching: one.matching.clone(),
        instructions: one.instructions.clone(),
    });
    let body = MultipartReplyBody::Flow(stats.collect());
    (version, xid, Message::MultipartReply(MultipartReply { more: false, body }))
}

fn flow_stats_frame(entries: u64) -> Vec<u8> {
    let (version, xid, message) = flow_stats(entries);
    wire::encode(version, xid, &message).expect("a frame")
}

fn message(vector: (&str, &str)) -> (Version, Xid, Message) {
    wire::decode(&frame(vector)).expect("a message")
}

#[library_benchmark(setup = frame)]
#[bench::flow_mod_1_0((OVS_1_0, "add-flow/match_twelve"))]
#[bench::flow_mod((OVS_1_3, "add-flow/match_twelve"))]
#[bench::packet_in((OS_KEN, "4-4-ofp_packet_in"))]
#[bench::packet_out((OS_KEN, "4-1-ofp_packet_out"))]
#[bench::group_mod((OS_KEN, "4-21-ofp_group_mod"))]
#[bench::table_features((OS_KEN, "4-56-ofp_table_features_reply"))]
#[bench::flow_stats(args = (100), setup = flow_stats_frame)]
fn decode(frame: Vec<u8>) -> Vec<u8> {
    for _ in 0..TIMES {
        let message = wire::decode(black_box(&frame));
        assert!(black_box(message).is_ok(), "decoded before");
    }
    frame
}

#[library_benchmark(setup = message)]
#[bench::flow_mod_1_0((OVS_1_0, "add-flow/match_twelve"))]
#[bench::flow_mod((OVS_1_3, "add-flow/match_twelve"))]
#[bench::packet_in((OS_KEN, "4-4-ofp_packet_in"))]
#[bench::packet_out((OS_KEN, "4-1-ofp_packet_out"))]
#[bench::group_mod((OS_KEN, "4-21-ofp_group_mod"))]
#[bench::table_features((OS_KEN, "4-56-ofp_table_features_reply"))]
#[bench::flow_stats(args = (100), setup = flow_stats)]
fn encode((version, xid, message): (Version, Xid, Message)) -> Message {
    let mut bytes = Vec::with_capacity(1 << 16);
    for _ in 0..TIMES {
        bytes.clear();
        let written = wire::encode_into(&mut bytes, version, xid, black_box(&message));
        assert!(black_box(written).is_ok(), "decoded before");
    }
    message
}

library_benchmark_group!(name = codec, benchmarks = [decode, encode]);
main!(library_benchmark_groups = codec);
