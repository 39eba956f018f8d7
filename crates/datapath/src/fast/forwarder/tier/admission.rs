//! The flows that are worth an entry in the kernel, and the order of their frames.
//!
//! An entry takes the worker a system call to make it, one to give another up, and the look at
//! the counts of both, which a flow that ends soon does not give back. So a flow gets its entry
//! with its second frame while few entries are made, and else when it has shown [`FRAMES`] of
//! them. They are counted in sets of four flows; a flow that comes new to a set takes the place
//! of the one with the fewest, and ages the others by a frame. So a flood of new flows can
//! neither fill the kernel's table nor hide a flow that lasts, and one whose frames are rarer
//! than new flows are in its set is not worth an entry.
//!
//! It decides about speed alone, never about a verdict.

use std::collections::BTreeMap;

use openflow::PortNo;

use crate::time::Nanos;

/// Frames that show a flow to be worth an entry: more than the ten that a short exchange takes, and
/// a flow of a hundred still has 88 % of its frames in the kernel.
const FRAMES: u32 = 12;

/// The same while few entries are made.
const FRAMES_EARLY: u32 = 2;

/// Entries in [`WINDOW_NS`] that are few, so that making them costs little.
const FEW: u32 = 128;
const WINDOW_NS: u64 = 100_000_000;

/// Flows in a set, of which there are as many as the table has slots.
const WAYS: usize = 4;

/// The bits of a place in a set that count a flow's frames; those below are of its digest.
const COUNT: u32 = 0xff00_0000;
const ONE: u32 = 0x0100_0000;

/// Time until a flow of `NORMAL` that the kernel cannot carry out is tried again.
const REFUSED_NS: u64 = 10_000_000;

/// Places for flows that were refused.
const REFUSED: usize = 1_024;

/// Time after which the flows of a port whose queue was never empty get entries all the same:
/// frames that wait are overtaken then, but the tier takes over from a worker that cannot keep up.
const WAITING_NS: u64 = 10_000_000;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Admission {
    /// A power of two of them.
    sets: Vec<[u32; WAYS]>,
    /// Entries made in this window, and its end.
    made: u32,
    window_ends: Nanos,
    /// Flows that rest, and until when.
    refused: Vec<(u128, Nanos)>,
    /// Ports in the tier; since when frames have waited behind each batch of theirs.
    pub(super) ports: BTreeMap<PortNo, Option<Nanos>>,
}

impl Admission {
    /// Begins with a table of this number of slots, and with what was counted before.
    pub(super) fn begin(&mut self, slots: usize) {
        self.sets.resize(slots.next_power_of_two(), [0; WAYS]);
        self.refused.resize(REFUSED, (0, Nanos(0)));
    }

    /// Counts a frame of a flow; whether the flow is worth an entry now.
    pub(super) fn is_worth(&mut self, digest: u128, now: Nanos) -> bool {
        let frames = self.count(digest);
        if now >= self.window_ends {
            self.made = 0;
            self.window_ends = Nanos(now.0.saturating_add(WINDOW_NS));
        }
        frames >= FRAMES || frames >= FRAMES_EARLY && self.made < FEW
    }

    /// An entry was made.
    pub(super) fn note_made(&mut self) {
        self.made = self.made.saturating_add(1);
    }

    /// The number of a flow's frames lately, with this one.
    fn count(&mut self, digest: u128) -> u32 {
        let (mask, tag) = (self.sets.len().wrapping_sub(1), (digest >> 32) as u32 & !COUNT);
        let Some(set) = self.sets.get_mut(digest as usize & mask) else { return 0 };
        if let Some(place) = set.iter_mut().find(|place| **place & !COUNT == tag) {
            *place = place.checked_add(ONE).unwrap_or(*place);
            return *place / ONE;
        }
        set.sort_unstable();
        for place in &mut *set {
            *place = place.checked_sub(ONE).unwrap_or(*place);
        }
        set[0] = tag | ONE;
        1
    }

    /// The kernel cannot carry out what a flow needs now. To find that out anew for each of its
    /// frames would cost more than to forward them.
    pub(super) fn refuse(&mut self, digest: u128, now: Nanos) {
        let until = Nanos(now.0.saturating_add(REFUSED_NS));
        if let Some(place) = self.refused.get_mut(digest as usize % REFUSED) {
            *place = (digest, until);
        }
    }

    /// Whether a flow was refused a moment ago.
    pub(super) fn rests(&self, digest: u128, now: Nanos) -> bool {
        let place = self.refused.get(digest as usize % REFUSED);
        place.is_some_and(|(refused, until)| *refused == digest && now < *until)
    }

    /// A port's next batch comes, behind which frames wait or do not.
    pub(super) fn note_waiting(&mut self, port: PortNo, waits: bool, now: Nanos) {
        if let Some(since) = self.ports.get_mut(&port) {
            *since = waits.then(|| since.unwrap_or(now));
        }
    }

    /// Whether entries may be made after this batch of a port: what comes next is not to overtake
    /// what waits.
    pub(super) fn may_make(&self, port: PortNo, now: Nanos) -> bool {
        let since = self.ports.get(&port).copied().flatten();
        since.is_none_or(|since| now.0.saturating_sub(since.0) >= WAITING_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::{Admission, FEW, FRAMES, WAITING_NS, WINDOW_NS};
    use crate::select::mix;
    use crate::time::Nanos;
    use openflow::PortNo;

    const NOW: Nanos = Nanos(7);

    /// The number of these flows that are ever worth an entry, each with this number of frames.
    fn worth(admission: &mut Admission, flows: std::ops::Range<u64>, frames: u32) -> usize {
        let is_worth = |flow| {
            let mut any = false;
            (0..frames).for_each(|_| any |= admission.is_worth(mix(flow).into(), NOW));
            any
        };
        flows.map(is_worth).filter(|is_worth| *is_worth).count()
    }

    fn begun() -> Admission {
        let mut admission = Admission::default();
        admission.begin(1 << 14);
        admission
    }

    #[test]
    fn a_second_frame_is_enough_while_few_entries_are_made() {
        let mut admission = begun();
        assert_eq!(worth(&mut admission, 0..50, 1), 0);
        assert_eq!(worth(&mut admission, 0..50, 1), 50);
        (0..FEW).for_each(|_| admission.note_made());
        assert_eq!(worth(&mut admission, 0..50, 1), 0);
        assert_eq!(worth(&mut admission, 0..50, FRAMES - 3), 50);
        assert_eq!(worth(&mut admission, 100..150, 2), 0);
        let later = Nanos(NOW.0 + WINDOW_NS);
        assert!(admission.is_worth(mix(100).into(), later));
    }

    #[test]
    fn a_long_flow_is_worth_it_among_200_000_short_ones() {
        let mut admission = begun();
        // It begins the window.
        worth(&mut admission, 0..1, 1);
        (0..FEW).for_each(|_| admission.note_made());
        let mut worth_it = 0;
        for first in (0..200_000).step_by(1_000) {
            worth_it += worth(&mut admission, first..first + 1_000, 10);
            // One frame of it after 1,000 other flows.
            worth(&mut admission, u64::MAX - 1..u64::MAX, 1);
        }
        assert!(worth_it < 200, "{worth_it} of 200,000");
        assert!(worth(&mut admission, u64::MAX - 1..u64::MAX, 1) == 1);
    }

    #[test]
    fn nothing_is_made_while_frames_wait_but_not_for_ever() {
        let (mut admission, port) = (begun(), PortNo(3));
        admission.ports.insert(port, None);
        let over = Nanos(NOW.0 + WAITING_NS);
        for (waits, at, may) in [
            (false, NOW, true),
            (true, NOW, false),
            (true, Nanos(over.0 - 1), false),
            (true, over, true),
            (false, over, true),
            (true, over, false),
        ] {
            admission.note_waiting(port, waits, at);
            assert_eq!(admission.may_make(port, at), may, "{waits} {at:?}");
        }
    }
}
