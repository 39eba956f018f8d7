//! Paths: the entries that a packet matched, table by table. A cached decision counts packets; the
//! entries on its path are credited with them.
//!
//! A path of one entry is the entry's number; longer paths are stored once, with a reference count.
//! An unused path is freed only at the end of the batch, because packets of the batch may still be
//! on it.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use openflow::TableId;

use super::super::ids::EntryId;
use crate::fast::mix_hasher::BuildMixHasher;

/// One table of a path: the entry that was matched, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PathStep {
    pub(super) table: TableId,
    pub(super) entry: Option<EntryId>,
    /// Length of packets there less that with which they came, in bytes.
    pub(super) len_delta: i32,
}

impl Hash for PathStep {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let entry = self.entry.map_or(u32::MAX, |id| id.0);
        state.write_u64(u64::from(self.table.0) << 32 | u64::from(entry));
    }
}

/// A path's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PathId(pub(super) u32);

const MANY: u32 = 1 << 31;
const TIMED: u32 = 1 << 30;

impl PathId {
    /// No path: one without steps.
    pub(super) const NONE: Self = Self(u32::MAX);

    /// Whether some entry of the path has an idle timeout, so that every packet must be reported.
    #[inline]
    pub(super) fn is_timed(self) -> bool {
        self.0 & TIMED != 0
    }

    fn index(self) -> usize {
        (self.0 & !(MANY | TIMED)) as usize
    }

    fn is_many(self) -> bool {
        self.0 & MANY != 0
    }
}

#[derive(Debug)]
struct Held {
    steps: Arc<[PathStep]>,
    users: u32,
}

/// The paths that decisions lie on.
#[derive(Debug, Default)]
pub(super) struct Paths {
    known: HashMap<Arc<[PathStep]>, u32, BuildMixHasher>,
    list: Vec<Option<Held>>,
    free: Vec<u32>,
    unused: Vec<u32>,
}

/// The steps of a path.
pub(super) enum Steps<'a> {
    /// One entry, whose table the entry knows.
    One(EntryId),
    /// Several tables.
    Many(&'a [PathStep]),
}

impl Paths {
    /// The number of a path, with one more user; none when there are too many.
    pub(super) fn take(&mut self, steps: &[PathStep], is_timed: bool) -> Option<PathId> {
        let timed = if is_timed { TIMED } else { 0 };
        if let [PathStep { entry: Some(id), len_delta: 0, .. }] = steps {
            return (id.0 < TIMED).then_some(PathId(id.0 | timed));
        }
        if let Some(index) = self.known.get(steps) {
            if let Some(Some(held)) = self.list.get_mut(*index as usize) {
                held.users += 1;
            }
            return Some(PathId(index | MANY | timed));
        }
        let steps: Arc<[PathStep]> = steps.into();
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                self.list.push(None);
                u32::try_from(self.list.len() - 1).ok().filter(|index| *index < TIMED)?
            }
        };
        self.known.insert(Arc::clone(&steps), index);
        *self.list.get_mut(index as usize)? = Some(Held { steps, users: 1 });
        Some(PathId(index | MANY | timed))
    }

    /// One user more, of a path that has one.
    pub(super) fn share(&mut self, path: PathId) {
        if let Some(Some(held)) = self.list.get_mut(path.index()).filter(|_| path.is_many()) {
            held.users += 1;
        }
    }

    /// One user less.
    pub(super) fn release(&mut self, path: PathId) {
        if !path.is_many() {
            return;
        }
        if let Some(Some(held)) = self.list.get_mut(path.index()) {
            held.users = held.users.saturating_sub(1);
            if held.users == 0 {
                self.unused.push(path.0 & !(MANY | TIMED));
            }
        }
    }

    /// Frees the unused paths, at the end of a batch.
    pub(super) fn sweep(&mut self) {
        while let Some(index) = self.unused.pop() {
            let Some(slot) = self.list.get_mut(index as usize) else { continue };
            if let Some(held) = slot.take_if(|held| held.users == 0) {
                self.known.remove(&held.steps);
                self.free.push(index);
            }
        }
    }

    /// The steps of a path that somebody uses or used in this batch.
    #[inline]
    pub(super) fn steps(&self, path: PathId) -> Steps<'_> {
        if !path.is_many() {
            return Steps::One(EntryId(path.0 & !TIMED));
        }
        let held = self.list.get(path.index()).and_then(Option::as_ref);
        Steps::Many(held.map_or(&[], |held| &held.steps))
    }
}

#[cfg(test)]
mod tests {
    use super::{PathStep, Paths, Steps};
    use crate::fast::ids::EntryId;
    use openflow::TableId;

    #[test]
    fn equal_paths_are_one_until_nobody_uses_them() {
        let step = |table, entry| PathStep {
            table: TableId(table),
            entry: Some(EntryId(entry)),
            len_delta: 0,
        };
        let mut paths = Paths::default();
        let one = paths.take(&[step(0, 7)], true).unwrap();
        assert!(one.is_timed() && matches!(paths.steps(one), Steps::One(EntryId(7))));
        let steps = [step(0, 7), PathStep { table: TableId(1), entry: None, len_delta: 4 }];
        let two = paths.take(&steps, false).unwrap();
        assert_eq!(paths.take(&steps, false), Some(two));
        paths.release(two);
        paths.sweep();
        assert!(matches!(paths.steps(two), Steps::Many(held) if held == steps));
        paths.release(two);
        assert!(matches!(paths.steps(two), Steps::Many(held) if held == steps));
        paths.sweep();
        assert!(matches!(paths.steps(two), Steps::Many([])));
        assert_eq!(paths.take(&[step(3, 1), step(4, 1)], false), Some(two));
    }
}
