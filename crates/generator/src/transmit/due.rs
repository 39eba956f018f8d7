//! The streams of a port by the time at which their next frame is due: a tree of minima.
//!
//! With hundreds of streams nearly every frame is another stream's, so the next stream is looked
//! for once a frame. Here this takes as many steps as the number of streams has bits, each a
//! comparison without a branch that is hard to foresee; a heap has twice as many, and guesses wrong
//! at each other one. It must never put a stream before another that is due earlier; of two that
//! are due at one time, the one that was loaded first comes first.

/// Streams and when they are due.
#[derive(Debug)]
pub(super) struct DueTree {
    /// Nodes from 1 on, in pairs, so that two of one parent stand together; below node `n` are `2n`
    /// and `2n + 1`, and each has the least of what is below. The last half are the leaves, one for
    /// each stream.
    pairs: Vec<[u128; 2]>,
}

/// The key of a stream that is not waited for.
const NEVER: u128 = u128::MAX;

fn key(due_ns: u64, stream: u32) -> u128 {
    u128::from(due_ns) << 32 | u128::from(stream)
}

impl DueTree {
    /// So many streams, none of which is waited for.
    pub(super) fn new(streams: usize) -> Self {
        Self { pairs: vec![[NEVER; 2]; streams.next_power_of_two()] }
    }

    /// The stream whose frame is due first, with the time.
    #[inline]
    pub(super) fn first(&self) -> Option<(u64, u32)> {
        let [_, first] = self.pairs[0];
        (first != NEVER).then_some(((first >> 32) as u64, first as u32))
    }

    /// A stream's next frame is due at this time.
    #[inline]
    pub(super) fn set(&mut self, stream: u32, due_ns: u64) {
        self.put(stream, key(due_ns, stream));
    }

    /// The stream is not waited for any more.
    #[inline]
    pub(super) fn remove(&mut self, stream: u32) {
        self.put(stream, NEVER);
    }

    #[inline]
    fn put(&mut self, stream: u32, key: u128) {
        // There are as many leaves as pairs.
        let mut node = self.pairs.len() + stream as usize;
        let mut least = key;
        while node > 1 {
            let pair = &mut self.pairs[node / 2];
            pair[node % 2] = least;
            least = pair[0].min(pair[1]);
            node /= 2;
        }
        self.pairs[0][1] = least;
    }

    /// No stream is waited for any more.
    pub(super) fn clear(&mut self) {
        self.pairs.fill([NEVER; 2]);
    }

    /// The streams that are waited for.
    pub(super) fn streams(&self) -> Vec<u32> {
        let nodes = self.pairs.as_flattened();
        let waiting = nodes[nodes.len() / 2..].iter().filter(|key| **key != NEVER);
        waiting.map(|key| *key as u32).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::DueTree;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    #[test]
    fn nothing_is_due_where_there_is_no_stream() {
        assert_eq!(DueTree::new(0).first(), None);
        let mut tree = DueTree::new(1);
        tree.set(0, u64::MAX);
        assert_eq!((tree.first(), tree.streams()), (Some((u64::MAX, 0)), vec![0]));
        tree.remove(0);
        assert_eq!((tree.first(), tree.streams()), (None, vec![]));
    }

    proptest! {
        /// After any changes the first is that of a sorted set.
        #[test]
        fn the_first_is_the_least(
            count in 1_u32..70,
            changes in proptest::collection::vec((any::<u32>(), 0_u64..50, any::<bool>()), 1..200),
        ) {
            let mut tree = DueTree::new(count as usize);
            let mut sorted: BTreeSet<(u64, u32)> = BTreeSet::new();
            for (stream, due_ns, is_removed) in changes {
                let stream = stream % count;
                sorted.retain(|(_, known)| *known != stream);
                if is_removed {
                    tree.remove(stream);
                } else {
                    tree.set(stream, due_ns);
                    sorted.insert((due_ns, stream));
                }
                prop_assert_eq!(tree.first(), sorted.first().copied());
                prop_assert_eq!(tree.streams().len(), sorted.len());
            }
            tree.clear();
            prop_assert_eq!(tree.first(), None);
        }
    }
}
