//! The streams of a port by the time at which their next frame is due: a tree of minima.
//!
//! With hundreds of streams nearly every frame is another stream's, so the next stream is looked
//! for once a frame. Here this takes as many steps as the number of streams has bits, each a
//! minimum without a branch, of a number that is at hand and one whose place was known before; a
//! heap has twice as many, and guesses wrong at each other one. A key is one number of 64 bits,
//! time and stream: keys of 128 bits, which are written in halves and read whole, took twice the
//! time of all the rest. It must never put a stream before another that is due earlier; of two
//! that are due at one time, the one that was loaded first comes first.

/// Bits of a key that say which stream it is of; those above are the time.
const STREAM_BITS: u32 = 16;

/// The key of a stream that is not waited for.
const NEVER: u64 = u64::MAX;

/// The time in a key of what is due this long after the tree's zero or later: 78 hours.
const FAR_NS: u64 = (NEVER >> STREAM_BITS) - 1;

/// Distance of the zero before the first due time.
const ROOM_NS: u64 = FAR_NS / 4;

/// The nodes of a tree of more streams than [`FEW`], at least: a tree of this size is climbed
/// without a look at its length (40 Mpps of 100 streams, and then 43).
const USUAL_NODES: usize = 256;

/// Streams of a tree that is climbed in at most three steps.
const FEW: usize = 8;

/// Puts a key into a leaf, and the least of each two nodes above them.
#[inline]
fn climb(nodes: &mut [u64; USUAL_NODES], leaf: usize, key: u64) {
    let (mut node, mut least) = (leaf, key);
    for _ in 0..USUAL_NODES.ilog2() - 1 {
        nodes[node % USUAL_NODES] = least;
        least = least.min(nodes[(node ^ 1) % USUAL_NODES]);
        node /= 2;
    }
    nodes[1] = least;
}

/// Streams and when they are due.
#[derive(Debug)]
pub(super) struct DueTree {
    /// From 1 on; below node `n` are `2n` and `2n + 1`, and each has the least of what is below.
    /// The last half are the leaves, one for each stream.
    nodes: Vec<u64>,
    /// When each stream is due.
    dues_ns: Vec<u64>,
    /// The zero of the times in the keys: nothing that is waited for is due before it, and what is
    /// due first is not [`FAR_NS`].
    zero_ns: u64,
}

impl DueTree {
    /// So many streams, none of which is waited for.
    pub(super) fn new(streams: usize) -> Self {
        assert!(streams <= 1 << STREAM_BITS, "{streams} streams of one port");
        let least = if streams > FEW { USUAL_NODES / 2 } else { 1 };
        let leaves = streams.next_power_of_two().max(least);
        Self { nodes: vec![NEVER; 2 * leaves], dues_ns: vec![0; leaves], zero_ns: 0 }
    }

    /// The stream whose frame is due first, with the time.
    #[inline]
    pub(super) fn first(&self) -> Option<(u64, u32)> {
        let key = self.nodes[1];
        let stream = key as u32 & ((1 << STREAM_BITS) - 1);
        (key != NEVER).then(|| (self.zero_ns + (key >> STREAM_BITS), stream))
    }

    fn key(&self, due_ns: u64, stream: u32) -> u64 {
        (due_ns - self.zero_ns).min(FAR_NS) << STREAM_BITS | u64::from(stream)
    }

    /// A stream's next frame is due at this time.
    #[inline]
    pub(super) fn set(&mut self, stream: u32, due_ns: u64) {
        self.dues_ns[stream as usize] = due_ns;
        if due_ns < self.zero_ns {
            self.move_zero(due_ns);
        }
        self.put(stream, self.key(due_ns, stream));
        self.check_first();
    }

    /// The stream is not waited for any more.
    #[inline]
    pub(super) fn remove(&mut self, stream: u32) {
        self.put(stream, NEVER);
        self.check_first();
    }

    #[inline]
    fn check_first(&mut self) {
        let key = self.nodes[1];
        if key >> STREAM_BITS == FAR_NS && key != NEVER {
            self.move_zero(u64::MAX);
        }
    }

    /// Counts times from before `before_ns` and all that is waited for.
    #[cold]
    fn move_zero(&mut self, before_ns: u64) {
        let waiting = self.streams();
        let dues_ns = waiting.iter().map(|stream| self.dues_ns[*stream as usize]);
        self.zero_ns = dues_ns.fold(before_ns, u64::min).saturating_sub(ROOM_NS);
        for stream in waiting {
            self.put(stream, self.key(self.dues_ns[stream as usize], stream));
        }
    }

    #[inline]
    fn put(&mut self, stream: u32, key: u64) {
        let mut node = self.nodes.len() / 2 + stream as usize;
        if let Ok(nodes) = <&mut [u64; USUAL_NODES]>::try_from(&mut self.nodes[..]) {
            climb(nodes, node, key);
            return;
        }
        let mut least = key;
        while node > 1 {
            self.nodes[node] = least;
            least = least.min(self.nodes[node ^ 1]);
            node /= 2;
        }
        self.nodes[1] = least;
    }

    /// No stream is waited for any more.
    pub(super) fn clear(&mut self) {
        self.nodes.fill(NEVER);
    }

    /// The streams that are waited for.
    pub(super) fn streams(&self) -> Vec<u32> {
        let leaves = self.nodes[self.nodes.len() / 2..].iter();
        (0..).zip(leaves).filter(|(_, key)| **key != NEVER).map(|(stream, _)| stream).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::DueTree;
    use proptest::prelude::{any, prop_assert_eq, prop_oneof, proptest};
    use proptest::sample::select;

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
            count in prop_oneof![1_u32..10, 10_u32..300],
            changes in proptest::collection::vec((any::<u32>(), 0_u64..50, any::<bool>()), 1..200),
            // Of times that keys have room for, and of those that are years apart.
            scale in select(vec![1, 1_000_000_000, 1 << 44, 1 << 48, u64::MAX / 49]),
        ) {
            let mut tree = DueTree::new(count as usize);
            let mut sorted: BTreeSet<(u64, u32)> = BTreeSet::new();
            for (stream, due_ns, is_removed) in changes {
                let (stream, due_ns) = (stream % count, due_ns.saturating_mul(scale));
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
