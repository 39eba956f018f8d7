//! Instructions that the sender and the receiver execute for a frame: counts, so that a loaded
//! machine gives the same as a quiet one.
//!
//! `cargo xtask instructions` runs it under Callgrind and compares with the committed figures. Each
//! case takes 6,400 frames in batches of 64. It must never count what makes the receiver's frames.
#![allow(missing_docs, reason = "the macros make public items that nobody sees")]

use std::hint::black_box;

use generator::probe::{ProbeHeader, StreamId};
use generator::profile::{FieldModifier, Modifier, ModifierOp, Rate, StreamSpec};
use generator::receiver::{Receiver, ReceiverOptions};
use generator::session::virtual_sender::VirtualSender;
use gungraun::{library_benchmark, library_benchmark_group, main};
use netdev::{TxQueue, open_text};
use packet::Batch;

const BATCHES: u64 = 100;
const BATCH: u64 = 64;

/// Frames of `streams` streams in turns, with delays about 10 us, of which `order` makes the place
/// in the order of sending.
fn frames(streams: u16, order: fn(u64) -> Option<u64>) -> (Receiver, Vec<Batch>) {
    let mut receiver = Receiver::new(ReceiverOptions::default());
    for stream in 0..streams {
        assert!(receiver.start_stream(StreamId(stream), 0));
    }
    let turns = u64::from(streams);
    let batch = |number: u64| {
        let mut batch = Batch::default();
        for place in number * BATCH..(number + 1) * BATCH {
            let Some(sent) = order(place) else { continue };
            let mut frame = [0; 60];
            let (stream, sequence) = (StreamId((sent % turns) as u16), (sent / turns) as u32);
            let due_ns = 1_000_000 + number * 6_400 - sent % 13 * 97;
            ProbeHeader { stream, sequence, due_ns }.write(&mut frame);
            batch.push_slice(&frame);
        }
        batch
    };
    (receiver, (0..BATCHES).map(batch).collect())
}

fn in_order(place: u64) -> Option<u64> {
    Some(place)
}

/// Every hundredth frame is lost, and every tenth but that one changes places with the next.
fn lossy(place: u64) -> Option<u64> {
    match place % 100 {
        7 => None,
        last if last % 10 == 2 => Some(place + 1),
        last if last % 10 == 3 => Some(place - 1),
        _ => Some(place),
    }
}

#[library_benchmark(setup = frames)]
#[bench::one_stream(1, in_order)]
#[bench::streams_100(100, in_order)]
#[bench::lossy(1, lossy)]
fn receive((mut receiver, batches): (Receiver, Vec<Batch>)) -> (Receiver, Vec<Batch>) {
    for (number, batch) in batches.iter().enumerate() {
        receiver.take_batch(black_box(batch), 1_010_000 + number as u64 * 6_400);
    }
    (receiver, batches)
}

/// `count` streams that ask for `rate` each, and a queue that takes all frames. What is made anew
/// for each start is made already.
fn sender(
    count: u16,
    rate: Rate,
    probe: bool,
    fields: &[&str],
) -> (VirtualSender, Box<dyn TxQueue>) {
    let count_up = |field: &&str| Modifier::Field(FieldModifier::new(field, ModifierOp::Increment));
    let modifiers: Vec<Modifier> = fields.iter().map(count_up).collect();
    let streams: Vec<StreamSpec> = (0..count)
        .map(|number| {
            let (name, modifiers) = (format!("stream-{number}"), modifiers.clone());
            StreamSpec { name, rate, probe, modifiers, ..StreamSpec::default() }
        })
        .collect();
    let mut sender = VirtualSender::start(&streams, 1e13).expect("streams that can be sent");
    let mut queue = open_text("null:").expect("a port that is nothing").tx;
    // Buffers are filled, and histograms grow, with the first bursts.
    (0..BATCHES).for_each(|_| drop(sender.step(WARM_NS, queue.as_mut())));
    (sender, queue)
}

/// When frames are sent before those that are counted.
const WARM_NS: u64 = 1_000;

/// So many frames a second that all that are counted are due soon, and none is too old.
const FAST: Rate = Rate::PacketsPerSecond(1e8);

const NO_FIELD: &[&str] = &[];
const FOUR_FIELDS: &[&str] = &["ipv4.src", "ipv4.dst", "udp.src", "udp.dst"];

#[library_benchmark(setup = sender)]
#[bench::one_stream(1, Rate::Max, false, NO_FIELD)]
#[bench::range_4_fields(1, Rate::Max, false, FOUR_FIELDS)]
#[bench::streams_100(100, Rate::Max, true, NO_FIELD)]
#[bench::streams_100_due(100, FAST, true, NO_FIELD)]
fn send(
    (mut sender, mut queue): (VirtualSender, Box<dyn TxQueue>),
) -> (VirtualSender, Box<dyn TxQueue>) {
    let until = sender.sent() + BATCHES * BATCH;
    while sender.sent() < until {
        assert_eq!(sender.step(black_box(WARM_NS + 50_000), queue.as_mut()).ok(), Some(true));
    }
    (sender, queue)
}

library_benchmark_group!(name = receiver, benchmarks = [receive]);
library_benchmark_group!(name = transmitter, benchmarks = [send]);
main!(library_benchmark_groups = receiver, transmitter);
