//! Expiry timers: a 4-ary heap in which every entry knows its place.
//!
//! An entry stands with a moment before which it does not expire. Packets that match it move its
//! idle timeout but not its place in the heap; only when that moment comes is its last use looked
//! at, and the entry put where it belongs now. So a packet costs nothing here, and each entry at
//! most one move for each idle timeout that passes.

use super::index::NONE;
use super::slab::Slab;
use crate::time::Nanos;

const CHILDREN: usize = 4;

#[derive(Clone, Copy, Debug)]
struct Timer {
    at: Nanos,
    number: u32,
}

/// The heap.
#[derive(Clone, Debug, Default)]
pub(super) struct Timers {
    heap: Vec<Timer>,
}

impl Timers {
    /// The entry with the earliest moment.
    pub(super) fn first(&self) -> Option<(Nanos, u32)> {
        self.heap.first().map(|timer| (timer.at, timer.number))
    }

    /// The moment of the entry at a place in the heap.
    pub(super) fn at(&self, place: u32) -> Option<Nanos> {
        self.heap.get(place as usize).map(|timer| timer.at)
    }

    /// The entries whose moments have come, in no order.
    pub(super) fn due(&self, now: Nanos) -> Vec<u32> {
        let (mut due, mut places) = (Vec::new(), vec![0]);
        while let Some(place) = places.pop() {
            if let Some(timer) = self.heap.get(place).filter(|timer| timer.at <= now) {
                due.push(timer.number);
                places.extend((place * CHILDREN + 1..).take(CHILDREN));
            }
        }
        due
    }

    /// Sets or changes an entry's moment; `None` takes it out.
    pub(super) fn set(&mut self, slab: &mut Slab, number: u32, at: Option<Nanos>) {
        let place = slab.get(number).timer;
        match (at, place) {
            (None, NONE) => {}
            (None, place) => self.take_out(slab, place as usize),
            (Some(at), NONE) => {
                self.heap.push(Timer { at, number });
                self.rise(slab, self.heap.len() - 1);
            }
            (Some(at), place) => {
                let place = place as usize;
                let old = std::mem::replace(&mut self.heap[place].at, at);
                if at < old {
                    self.rise(slab, place);
                } else {
                    self.sink(slab, place);
                }
            }
        }
    }

    fn take_out(&mut self, slab: &mut Slab, place: usize) {
        let gone = self.heap.swap_remove(place);
        slab.get_mut(gone.number).timer = NONE;
        if let Some(moved) = self.heap.get(place) {
            if moved.at < gone.at {
                self.rise(slab, place);
            } else {
                self.sink(slab, place);
            }
        }
    }

    fn rise(&mut self, slab: &mut Slab, mut place: usize) {
        let timer = self.heap[place];
        while place > 0 {
            let parent = (place - 1) / CHILDREN;
            if self.heap[parent].at <= timer.at {
                break;
            }
            self.put(slab, place, self.heap[parent]);
            place = parent;
        }
        self.put(slab, place, timer);
    }

    fn sink(&mut self, slab: &mut Slab, mut place: usize) {
        let timer = self.heap[place];
        loop {
            let first = place * CHILDREN + 1;
            let children = first..(first + CHILDREN).min(self.heap.len());
            let Some(least) = children.min_by_key(|child| self.heap[*child].at) else { break };
            if self.heap[least].at >= timer.at {
                break;
            }
            self.put(slab, place, self.heap[least]);
            place = least;
        }
        self.put(slab, place, timer);
    }

    fn put(&mut self, slab: &mut Slab, place: usize, timer: Timer) {
        self.heap[place] = timer;
        slab.get_mut(timer.number).timer = place as u32;
    }
}
