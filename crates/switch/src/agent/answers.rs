//! The answers of one connection in the order of its requests, those that are there and those that
//! are still to come.

use std::collections::VecDeque;

use super::peer::Letter;
use crate::worker::Turn;

/// Answers that wait, the first to leave in front.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// The place of the front one.
    first: u64,
    waiting: VecDeque<Option<Letter>>,
    /// Errors that workers have found, and the place that each comes before.
    late: VecDeque<(u64, Letter)>,
}

impl Answers {
    /// Whether none waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.late.is_empty()
    }

    fn end(&self) -> u64 {
        self.first + self.waiting.len() as u64
    }

    /// A place for an answer that comes later.
    pub(super) fn reserve(&mut self) -> Turn {
        self.waiting.push_back(None);
        Turn::At(self.end() - 1)
    }

    /// The turn of an answer that may come later, or never.
    pub(super) fn next(&self) -> Turn {
        Turn::Before(self.end())
    }

    /// An answer behind those that wait.
    pub(super) fn push(&mut self, letter: Letter) {
        self.waiting.push_back(Some(letter));
    }

    /// Takes an answer for its turn.
    pub(super) fn fill(&mut self, letter: Letter) {
        match letter.request().turn {
            Turn::At(place) => {
                let at = place.checked_sub(self.first).and_then(|at| usize::try_from(at).ok());
                if let Some(waiting) = at.and_then(|at| self.waiting.get_mut(at)) {
                    *waiting = Some(letter);
                }
            }
            Turn::Before(place) => self.late.push_back((place, letter)),
        }
    }

    /// Takes the one whose turn it is, when it is there.
    pub(super) fn pop(&mut self) -> Option<Letter> {
        if self.late.front().is_some_and(|(place, _)| *place <= self.first) {
            return self.late.pop_front().map(|(_, letter)| letter);
        }
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
    use crate::worker::{ConnectionId, Quote, Request, Turn};

    fn letter(xid: u32, turn: Turn) -> Letter {
        let (from, quote) = (ConnectionId(1), Quote::new(&[]));
        let request = Request { from, version: Version::V1_3, xid: Xid(xid), turn, quote };
        Letter::Refused(request, Error::BadRequestBadType)
    }

    #[test]
    fn answers_leave_in_the_order_of_requests() {
        let mut answers = Answers::default();
        let mut left = Vec::new();
        for round in 0..3 {
            let first = answers.reserve();
            answers.push(letter(round * 10 + 1, Turn::Before(0)));
            let (late, third) = (answers.next(), answers.reserve());
            answers.fill(letter(round * 10 + 2, late));
            assert!(answers.pop().is_none());
            answers.fill(letter(round * 10 + 3, third));
            assert!(answers.pop().is_none());
            answers.fill(letter(round * 10, first));
            left.extend(std::iter::from_fn(|| answers.pop()).map(|l| l.request().xid.0));
            assert!(answers.is_empty());
        }
        assert_eq!(left, [0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23]);
        // Nothing is in front of it any more.
        answers.fill(letter(5, Turn::Before(2)));
        assert_eq!(answers.pop().map(|letter| letter.request().xid), Some(Xid(5)));
    }
}
