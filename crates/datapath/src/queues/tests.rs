//! Tests of the scheduler in virtual time: rates within one percent, order, bounds.

use openflow::QueueId;
use openflow::port::QueueProperty;

use super::{BadQueues, QueueRate, QueueRates, Scheduler, check_queues};
use crate::time::{NS_PER_S, Nanos};

fn queue(id: u32, min: u16, max: u16) -> QueueRates {
    let some = |rate| (rate != 0).then_some(QueueRate::Tenths(rate));
    QueueRates { min_rate: some(min), max_rate: some(max), ..QueueRates::new(QueueId(id)) }
}

/// A source: queue, bytes of its frames, offered rate in bits per second.
#[derive(Clone, Copy)]
struct Source(u32, usize, u64);

/// The rates of the sources' queues in bits per second, over three seconds after half a second of
/// settling. Frames are taken as soon as they may go, or every `nap_ns` where that is not zero.
fn rates(rate_bps: u64, queues: &[QueueRates], sources: &[Source], nap_ns: u64) -> Vec<f64> {
    let mut scheduler = Scheduler::new(rate_bps, queues).unwrap();
    let gap = |source: &Source| source.1 as u64 * 8 * NS_PER_S / source.2;
    let mut next: Vec<u64> = (0..sources.len() as u64).collect();
    let (begin, end) = (NS_PER_S / 2, NS_PER_S / 2 + 3 * NS_PER_S);
    let mut sent = vec![0_u64; sources.len()];
    let mut now = 0;
    let mut wakes = 0;
    while now < end {
        for (index, source) in sources.iter().enumerate() {
            while next[index] <= now {
                let at = Nanos(next[index]);
                // What finds no room is lost, as the load is more than the link can carry.
                let _ = scheduler.offer(Some(QueueId(source.0)), source.1, index, at);
                next[index] += gap(source);
            }
        }
        if now >= wakes {
            while let Some(index) = scheduler.take(Nanos(now)) {
                if now >= begin {
                    sent[index] += sources[index].1 as u64 * 8;
                }
            }
            wakes = scheduler.next_at().map_or(u64::MAX, |at| at.0);
            if nap_ns != 0 {
                wakes = now + nap_ns;
            }
        }
        now = next.iter().copied().min().unwrap_or(end).min(wakes).max(now + 1);
        if wakes == u64::MAX {
            wakes = now;
        }
    }
    sent.iter().map(|bits| *bits as f64 / 3.0).collect()
}

fn assert_rates(found: &[f64], expected: &[f64]) {
    for (found, expected) in found.iter().zip(expected) {
        let error = (found - expected).abs() / expected;
        assert!(error < 0.01, "found {found}, expected {expected}");
    }
}

const M: u64 = 1_000_000;

#[test]
fn the_link_is_kept_to_its_rate() {
    for (rate, bytes) in [(M, 64), (10 * M, 300), (100 * M, 1518)] {
        let found = rates(rate, &[], &[Source(9, bytes, 2 * rate)], 0);
        assert_rates(&found, &[rate as f64]);
    }
}

#[test]
fn a_rate_below_the_links_passes_whole() {
    let found = rates(10 * M, &[queue(1, 0, 0)], &[Source(1, 300, 7 * M)], 0);
    assert_rates(&found, &[7e6]);
}

#[test]
fn a_guarantee_holds_against_any_load() {
    let queues = [queue(1, 700, 0), queue(2, 100, 0)];
    let both = [Source(1, 300, 60 * M), Source(2, 1518, 200 * M)];
    // Guarantees 70 and 10 of 100 Mb/s; the rest of 20 by 7 to 1, as long as it is wanted.
    assert_rates(&rates(100 * M, &queues, &both, 0), &[60e6, 40e6]);
    let both = [Source(1, 64, 300 * M), Source(2, 1518, 300 * M)];
    assert_rates(&rates(100 * M, &queues, &both, 0), &[87.5e6, 12.5e6]);
}

#[test]
fn a_highest_rate_holds_and_the_others_take_the_rest() {
    let queues = [queue(1, 0, 200), queue(2, 0, 0)];
    let alone = [Source(1, 300, 50 * M)];
    assert_rates(&rates(10 * M, &queues, &alone, 0), &[2e6]);
    let both = [Source(1, 300, 50 * M), Source(2, 700, 50 * M)];
    assert_rates(&rates(10 * M, &queues, &both, 0), &[2e6, 8e6]);
}

#[test]
fn rates_in_bits_hold_and_are_reported_as_shares() {
    let bits = |id, min, max| QueueRates {
        min_rate: Some(QueueRate::Bps(min)),
        max_rate: Some(QueueRate::Bps(max)),
        ..QueueRates::new(QueueId(id))
    };
    let queues = [bits(1, 1_230_000, 4_560_000), bits(2, 5 * M, 10 * M)];
    let both = [Source(1, 300, 50 * M), Source(2, 700, 50 * M)];
    assert_rates(&rates(10 * M, &queues, &both, 0), &[1_974_334.0, 8_025_666.0]);
    assert_rates(&rates(10 * M, &queues, &both[..1], 0), &[4.56e6]);
    let properties = queues[0].properties(10 * M);
    assert_eq!(properties, [QueueProperty::MinRate(123), QueueProperty::MaxRate(456)]);
    assert_eq!(check_queues(M, &queues), Err(BadQueues::TooMuch));
}

#[test]
fn the_rest_is_shared_by_weight_whatever_the_sizes_of_frames() {
    let queues = [queue(1, 300, 0), queue(2, 100, 0), queue(3, 100, 0)];
    let all = [Source(1, 64, 20 * M), Source(2, 1518, 20 * M), Source(3, 300, 20 * M)];
    // 10 Mb/s: guarantees 3, 1, 1; the rest of 5 by 3 to 1 to 1.
    assert_rates(&rates(10 * M, &queues, &all, 0), &[6e6, 2e6, 2e6]);
    // A queue that sends nothing leaves its part to the others.
    let two = [Source(2, 64, 20 * M), Source(3, 1518, 20 * M)];
    assert_rates(&rates(10 * M, &queues, &two, 0), &[5e6, 5e6]);
}

#[test]
fn frames_of_no_queue_have_one() {
    let queues = [queue(1, 500, 0)];
    let both = [Source(1, 300, 20 * M), Source(77, 300, 20 * M)];
    // The rest of 5 by 50 to 1.
    let rest = 5e6 / 51.0;
    assert_rates(&rates(10 * M, &queues, &both, 0), &[10e6 - rest, rest]);
    let with_zero = [queue(0, 500, 0), queue(1, 500, 0)];
    assert_rates(&rates(10 * M, &with_zero, &both, 0), &[5e6, 5e6]);
}

#[test]
fn late_takers_lose_no_rate() {
    let queues = [queue(1, 300, 400), queue(2, 0, 0)];
    let both = [Source(1, 300, 200 * M), Source(2, 1518, 200 * M)];
    assert_rates(&rates(100 * M, &queues, &both, 1_000_000), &[40e6, 60e6]);
}

#[test]
fn a_gigabit_of_small_frames_is_exact() {
    let queues = [queue(1, 250, 0), queue(2, 500, 600)];
    let mut scheduler = Scheduler::new(1_000 * M, &queues).unwrap();
    let mut sent = [0_u64; 2];
    let mut now = Nanos(0);
    while now.0 < NS_PER_S / 10 {
        for id in 0..2_u32 {
            while scheduler.offer(Some(QueueId(id + 1)), 64, id, now).is_ok() {}
        }
        while let Some(id) = scheduler.take(now) {
            sent[id as usize] += 64 * 8 * 10;
        }
        now = scheduler.next_at().unwrap();
    }
    assert_rates(&[sent[0] as f64, sent[1] as f64], &[400e6, 600e6]);
}

#[test]
fn frames_of_a_queue_keep_their_order_and_full_queues_hand_back() {
    let small = QueueRates { frames_max: 3, ..queue(1, 0, 0) };
    let mut scheduler = Scheduler::new(M, &[small]).unwrap();
    let offered: Vec<_> =
        (0..5).map(|n| scheduler.offer(Some(QueueId(1)), 125, n, Nanos(0))).collect();
    assert_eq!(offered, [Ok(()), Ok(()), Ok(()), Err(3), Err(4)]);
    assert_eq!((scheduler.len(), scheduler.next_at()), (3, Some(Nanos(0))));
    assert_eq!(scheduler.take(Nanos(0)), Some(0));
    assert_eq!(scheduler.take(Nanos(0)), None, "125 bytes take a millisecond");
    assert_eq!(scheduler.next_at(), Some(Nanos(1_000_000)));
    assert_eq!(scheduler.take(Nanos(999_999)), None);
    assert_eq!(scheduler.take(Nanos(1_000_000)), Some(1));
    let tallies: Vec<_> = scheduler.tallies().collect();
    assert_eq!((tallies[0].0, tallies[1].0), (QueueId(1), QueueId(0)));
    let tally = tallies[0].1;
    assert_eq!((tally.packets, tally.bytes, tally.dropped), (2, 250, 2));
    assert_eq!(scheduler.drain().collect::<Vec<_>>(), [2]);
    assert!(scheduler.is_empty() && scheduler.next_at().is_none());
}

#[test]
fn queues_that_cannot_be_are_refused() {
    let bad = |queues: &[QueueRates]| check_queues(M, queues).unwrap_err();
    assert_eq!(check_queues(0, &[]), Err(BadQueues::NoRate));
    assert_eq!(bad(&[queue(1, 0, 0), queue(1, 5, 0)]), BadQueues::BadId(QueueId(1)));
    assert_eq!(bad(&[queue(u32::MAX, 0, 0)]), BadQueues::BadId(QueueId::ALL));
    assert_eq!(bad(&[queue(1, 1001, 0)]), BadQueues::BadRate(QueueId(1)));
    assert_eq!(bad(&[queue(1, 500, 400)]), BadQueues::BadRate(QueueId(1)));
    assert_eq!(bad(&[queue(1, 600, 0), queue(2, 500, 0)]), BadQueues::TooMuch);
    let none = QueueRates { frames_max: 0, ..queue(4, 0, 0) };
    assert_eq!(bad(&[none]), BadQueues::NoRoom(QueueId(4)));
    let properties = queue(1, 100, 900).properties(M);
    assert_eq!(properties, [QueueProperty::MinRate(100), QueueProperty::MaxRate(900)]);
}
