//! How many instructions the receiver executes for a frame: a count, so that a loaded machine says
//! the same as a quiet one.
//!
//! `cargo xtask instructions` runs it under Callgrind and compares with the committed figures. Each
//! case takes 6,400 frames in batches of 64. It must never count what makes the frames.
#![allow(missing_docs, reason = "the macros make public items that nobody sees")]

use std::hint::black_box;

use generator::probe::{ProbeHeader, StreamId};
use generator::receiver::{Receiver, ReceiverOptions};
use gungraun::{library_benchmark, library_benchmark_group, main};
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

library_benchmark_group!(name = receiver, benchmarks = [receive]);
main!(library_benchmark_groups = receiver);
