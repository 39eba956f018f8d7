//! The order in which counters are published, under a model checker that tries every interleaving.
//!
//! `cargo test -p weir-datapath --lib --features loom shared::model` runs it; in other builds this
//! file does not exist. Threads here do what control and forwarders do, with the
//! very counters that they share, and one op at a time on its way.

use loom::sync::{Arc, Mutex};
use loom::thread;
use openflow::TableId;

use super::Shared;
use crate::config::DatapathConfig;
use crate::counter::{Counter, DatapathCounters};
use crate::fast::ids::{EntryId, Ticket};
use crate::time::Nanos;

const ENTRY: EntryId = EntryId(0);

fn shared(forwarders: usize) -> Arc<Shared> {
    let config = DatapathConfig { n_tables: 1, ..DatapathConfig::default() };
    let shared = Shared::new(forwarders, &config);
    shared.clear_entry(ENTRY, Nanos(0));
    Arc::new(shared)
}

fn wait_for(is_there: impl Fn() -> bool) {
    while !is_there() {
        thread::yield_now();
    }
}

#[test]
fn a_flush_that_is_done_shows_every_count_from_before_it() {
    loom::model(|| {
        let shared = shared(2);
        let forwarders: Vec<_> = (0..2)
            .map(|number| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    let counters = shared.of_forwarder(number);
                    counters.entries.add(ENTRY, 1, 60);
                    counters.entries.add(ENTRY, 2, 120);
                    counters.set_flushed(Ticket(1));
                })
            })
            .collect();
        if shared.flushed() >= Ticket(1) {
            let counts = shared.entry(ENTRY);
            assert_eq!((counts.packets, counts.bytes), (6, 360));
        }
        for forwarder in forwarders {
            forwarder.join().unwrap();
        }
        assert_eq!(shared.entry(ENTRY).packets, 6);
    });
}

#[test]
fn what_was_counted_before_a_flush_is_seen_with_it() {
    loom::model(|| {
        let shared = shared(1);
        let forwarder = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let counters = shared.of_forwarder(0);
                counters.add(Counter::Received, 1);
                counters.table(TableId(0)).unwrap().lookups.add(1);
                counters.entries.touch(ENTRY, Nanos(7));
                counters.set_flushed(Ticket(1));
                counters.add(Counter::Received, 1);
            })
        };
        if shared.flushed() >= Ticket(1) {
            let mut sums = DatapathCounters::default();
            shared.add_counters(&mut sums);
            assert!(sums.get(Counter::Received) >= 1);
            assert_eq!(shared.table(TableId(0)).0, 1);
            assert_eq!(shared.last_used(ENTRY), Nanos(7));
        }
        forwarder.join().unwrap();
    });
}

/// An entry is removed, its last counts are read, and its number is given to another one, which a
/// forwarder learns of by an op: neither may see a packet of the other.
#[test]
fn an_entrys_number_is_given_to_another_one_without_its_counts() {
    loom::model(|| {
        let shared = shared(1);
        let op = Arc::new(Mutex::new(None));
        let forwarder = {
            let (shared, op) = (Arc::clone(&shared), Arc::clone(&op));
            thread::spawn(move || {
                let counters = shared.of_forwarder(0);
                counters.entries.add(ENTRY, 5, 300);
                counters.set_flushed(Ticket(1));
                wait_for(|| op.lock().unwrap().take().is_some());
                counters.entries.add(ENTRY, 1, 60);
                counters.set_flushed(Ticket(2));
            })
        };
        wait_for(|| shared.flushed() >= Ticket(1));
        assert_eq!(shared.entry(ENTRY).packets, 5);
        shared.clear_entry(ENTRY, Nanos(9));
        *op.lock().unwrap() = Some(());
        let early = shared.entry(ENTRY).packets;
        assert!(early <= 1, "{early}");
        wait_for(|| shared.flushed() >= Ticket(2));
        let counts = shared.entry(ENTRY);
        assert_eq!((counts.packets, counts.bytes), (1, 60));
        forwarder.join().unwrap();
    });
}
