//! Places that stay where they are: a thing keeps its index while others come and go.
//!
//! Ports and shards are known by their indices to lanes, lists and the watch, so that removing one
//! must never move another.

/// Things, each at an index of its own.
#[derive(Debug)]
pub(crate) struct Slots<T> {
    slots: Vec<Option<T>>,
    count: usize,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), count: 0 }
    }
}

impl<T> FromIterator<T> for Slots<T> {
    fn from_iter<I: IntoIterator<Item = T>>(things: I) -> Self {
        let slots: Vec<Option<T>> = things.into_iter().map(Some).collect();
        Self { count: slots.len(), slots }
    }
}

impl<T> Slots<T> {
    /// The thing at an index.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        self.slots.get(index)?.as_ref()
    }

    /// The thing at an index, writable.
    #[inline]
    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        self.slots.get_mut(index)?.as_mut()
    }

    /// The number of things.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// One more than the highest index in use.
    pub(super) fn end(&self) -> usize {
        self.slots.len()
    }

    /// All things with their indices.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        self.slots.iter().enumerate().filter_map(|(index, slot)| Some((index, slot.as_ref()?)))
    }

    /// All things, writable.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().flatten()
    }

    /// Puts a thing at an index; what was there is returned.
    pub(super) fn put(&mut self, index: usize, thing: T) -> Option<T> {
        if self.slots.len() <= index {
            self.slots.resize_with(index + 1, || None);
        }
        let earlier = self.slots.get_mut(index)?.replace(thing);
        self.count += usize::from(earlier.is_none());
        earlier
    }

    /// Takes the thing at an index away.
    pub(super) fn take(&mut self, index: usize) -> Option<T> {
        let taken = self.slots.get_mut(index)?.take()?;
        self.count -= 1;
        while self.slots.pop_if(|slot| slot.is_none()).is_some() {}
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::Slots;

    #[test]
    fn a_thing_keeps_its_index_while_others_come_and_go() {
        let mut slots: Slots<char> = ['a', 'b', 'c'].into_iter().collect();
        assert_eq!((slots.take(1), slots.take(1)), (Some('b'), None));
        assert_eq!((slots.get(2), slots.len(), slots.end()), (Some(&'c'), 2, 3));
        assert_eq!(slots.put(5, 'f'), None);
        assert_eq!(slots.put(0, 'A'), Some('a'));
        assert_eq!(slots.iter().collect::<Vec<_>>(), [(0, &'A'), (2, &'c'), (5, &'f')]);
        assert_eq!((slots.take(5), slots.end(), slots.len()), (Some('f'), 3, 2));
        slots.iter_mut().for_each(|thing| *thing = 'x');
        assert_eq!(slots.get(0), Some(&'x'));
        assert_eq!(slots.get_mut(9), None);
    }
}
