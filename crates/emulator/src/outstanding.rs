//! The packet-ins of one switch that wait for an answer.
//!
//! A ring of times by the packet-in's number: what is answered twice, or was never sent, is told
//! apart from an answer, and the time in which an answer came is known for each. It has no clock.

/// Numbers are below this one, so that none is that of no buffer.
const NUMBERS: u32 = 1 << 31;

/// Packet-ins on their way; times are nanoseconds since a beginning that all share.
#[derive(Debug)]
pub(crate) struct Outstanding {
    /// When each was due, plus one; 0 where none waits.
    due_ns: Box<[u64]>,
    next: u32,
    waiting: u32,
}

impl Outstanding {
    /// Room for at least `room` packet-ins.
    pub(crate) fn new(room: u32) -> Self {
        let room = room.clamp(1, NUMBERS / 4).next_power_of_two();
        Self { due_ns: vec![0; room as usize].into(), next: 0, waiting: 0 }
    }

    /// Number of those that wait.
    pub(crate) fn waiting(&self) -> u32 {
        self.waiting
    }

    fn slot(&mut self, number: u32) -> &mut u64 {
        let mask = self.due_ns.len() - 1;
        &mut self.due_ns[number as usize & mask]
    }

    /// The number of a new packet-in that was due then; `None` while the one that is as many
    /// before it as there is room still waits.
    pub(crate) fn issue(&mut self, due_ns: u64) -> Option<u32> {
        let number = self.next;
        let slot = self.slot(number);
        if *slot != 0 {
            return None;
        }
        *slot = due_ns + 1;
        self.next = (number + 1) % NUMBERS;
        self.waiting += 1;
        Some(number)
    }

    /// When the packet-in of this number was due; `None` when it does not wait.
    pub(crate) fn answer(&mut self, number: u32) -> Option<u64> {
        let age = self.next.wrapping_sub(number) % NUMBERS;
        if number >= NUMBERS || age == 0 || age as usize > self.due_ns.len() {
            return None;
        }
        let due_ns = std::mem::take(self.slot(number)).checked_sub(1)?;
        self.waiting -= 1;
        Some(due_ns)
    }

    /// Waits for none of them any more; when each was due.
    pub(crate) fn give_up(&mut self) -> impl Iterator<Item = u64> {
        self.waiting = 0;
        self.due_ns.iter_mut().filter_map(|slot| std::mem::take(slot).checked_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::{NUMBERS, Outstanding};

    #[test]
    fn each_is_answered_once() {
        let mut outstanding = Outstanding::new(3);
        let numbers: Vec<u32> = (0..4).filter_map(|n| outstanding.issue(n * 10)).collect();
        assert_eq!((numbers, outstanding.waiting()), (vec![0, 1, 2, 3], 4));
        assert_eq!(outstanding.issue(99), None, "the first still waits");
        assert_eq!(outstanding.answer(2), Some(20));
        assert_eq!(outstanding.answer(2), None, "a second answer");
        assert_eq!(outstanding.answer(4), None, "never sent");
        assert_eq!(outstanding.answer(u32::MAX), None, "no number");
        assert_eq!(outstanding.answer(0), Some(0));
        assert_eq!(outstanding.issue(40), Some(4));
        assert_eq!(outstanding.answer(0), None, "of the same place, an age ago");
        assert_eq!(outstanding.give_up().collect::<Vec<_>>(), [40, 10, 30]);
        assert_eq!((outstanding.waiting(), outstanding.answer(1)), (0, None));
    }

    #[test]
    fn numbers_begin_anew_before_they_are_that_of_no_buffer() {
        let mut outstanding = Outstanding::new(2);
        outstanding.next = NUMBERS - 1;
        assert_eq!(outstanding.issue(1), Some(NUMBERS - 1));
        assert_eq!(outstanding.issue(2), Some(0));
        assert_eq!((outstanding.answer(NUMBERS - 1), outstanding.answer(0)), (Some(1), Some(2)));
    }
}
