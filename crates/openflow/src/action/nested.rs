//! Actions with those inside them, one after the other.

use super::Action;
use std::slice::Iter;

/// Iterates over actions, each before those inside it.
#[derive(Clone, Debug)]
pub struct Nested<'a> {
    present: Iter<'a, Action>,
    /// The rest of the lists that the present one lies in.
    outer: Vec<Iter<'a, Action>>,
}

/// The actions of a list and those inside them.
#[must_use]
pub fn nested(actions: &[Action]) -> Nested<'_> {
    Nested { present: actions.iter(), outer: Vec::new() }
}

impl<'a> Iterator for Nested<'a> {
    type Item = &'a Action;

    fn next(&mut self) -> Option<&'a Action> {
        loop {
            if let Some(action) = self.present.next() {
                if !action.inner().is_empty() {
                    let outer = std::mem::replace(&mut self.present, action.inner().iter());
                    self.outer.push(outer);
                }
                return Some(action);
            }
            self.present = self.outer.pop()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::nested;
    use crate::text::{format_actions, parse_actions};

    #[test]
    fn inner_actions_come_after_the_one_they_are_in() {
        let list = parse_actions("output:1,clone(output:2,clone(output:3),exit),output:4").unwrap();
        let words: Vec<String> =
            nested(&list).map(|action| format_actions(std::slice::from_ref(action))).collect();
        assert_eq!(
            words,
            [
                "output:1",
                "clone(output:2,clone(output:3),exit)",
                "output:2",
                "clone(output:3)",
                "output:3",
                "exit",
                "output:4"
            ]
        );
    }
}
