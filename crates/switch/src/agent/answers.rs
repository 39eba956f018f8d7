//! The answers of one connection in the order of its requests, those that are there and those that
//! are still to come.

use std::collections::VecDeque;

use super::peer::Letter;

/// Answers that wait, the first to leave in front.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// The place of the front one.
    first: u64,
    waiting: VecDeque<Option<Letter>>,
}

impl Answers {
    /// Whether none waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// A place for an answer that comes later.
    pub(super) fn reserve(&mut self) -> u64 {
        self.waiting.push_back(None);
        self.first + self.waiting.len() as u64 - 1
    }

    /// An answer behind those that wait.
    pub(super) fn push(&mut self, letter: Letter) {
        self.waiting.push_back(Some(letter));
    }

    /// Puts an answer in its place; returns one that has none.
    pub(super) fn fill(&mut self, letter: Letter) -> Option<Letter> {
        let Some(place) = letter.request().place else { return Some(letter) };
        let at = place.checked_sub(self.first).and_then(|at| usize::try_from(at).ok());
        if let Some(waiting) = at.and_then(|at| self.waiting.get_mut(at)) {
            *waiting = Some(letter);
        }
        None
    }

    /// Takes the front one, when it is there.
    pub(super) fn pop(&mut self) -> Option<Letter> {
        let letter = self.waiting.front_mut()?.take()?;
        self.waiting.pop_front();
        self.first += 1;
        Some(letter)
    }
}

#[cfg(test)]
mod tests {
    use openflow::{Error, Version, Xid};

    use super::Answers;
    use crate::agent::peer::Letter;
    use crate::worker::{ConnectionId, Quote, Request};

    fn letter(xid: u32, place: Option<u64>) -> Letter {
        let (from, quote) = (ConnectionId(1), Quote::new(&[]));
        let request = Request { from, version: Version::V1_3, xid: Xid(xid), place, quote };
        Letter::Refused(request, Error::BadRequestBadType)
    }

    #[test]
    fn answers_leave_in_the_order_of_requests() {
        let mut answers = Answers::default();
        let mut left = Vec::new();
        for round in 0..3 {
            let first = answers.reserve();
            answers.push(letter(round * 10 + 1, None));
            let third = answers.reserve();
            assert!(answers.pop().is_none());
            assert!(answers.fill(letter(round * 10 + 2, Some(third))).is_none());
            assert!(answers.pop().is_none());
            assert!(answers.fill(letter(round * 10, Some(first))).is_none());
            left.extend(std::iter::from_fn(|| answers.pop()).map(|l| l.request().xid.0));
            assert!(answers.is_empty());
        }
        assert_eq!(left, [0, 1, 2, 10, 11, 12, 20, 21, 22]);
        assert!(answers.fill(letter(5, None)).is_some(), "it has no place");
    }
}
