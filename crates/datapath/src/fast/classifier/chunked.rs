//! A sequence that grows without ever moving what it holds: a growing classifier of a million
//! entries must never pause to copy itself.
//!
//! The first chunk doubles, so that small tables stay small; further ones have a fixed size. It
//! must never be indexed out of its length.

const SHIFT: u32 = 10;
const CHUNK: usize = 1 << SHIFT;

/// Places of one chunk: a run of places within a chunk is contiguous.
pub(super) const CHUNK_PLACES: u32 = CHUNK as u32;

/// A sequence of up to 2^32 items.
#[derive(Debug)]
pub(super) struct Chunked<T> {
    first: Vec<T>,
    further: Vec<Box<[T; CHUNK]>>,
    len: u32,
}

impl<T> Default for Chunked<T> {
    fn default() -> Self {
        Self { first: Vec::new(), further: Vec::new(), len: 0 }
    }
}

impl<T: Copy + Default> Chunked<T> {
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    #[inline(always)]
    pub(super) fn get(&self, at: u32) -> &T {
        let (chunk, place) = ((at >> SHIFT) as usize, at as usize % CHUNK);
        match chunk {
            0 => &self.first[place],
            _ => &self.further[chunk - 1][place],
        }
    }

    #[inline(always)]
    pub(super) fn get_mut(&mut self, at: u32) -> &mut T {
        let (chunk, place) = ((at >> SHIFT) as usize, at as usize % CHUNK);
        match chunk {
            0 => &mut self.first[place],
            _ => &mut self.further[chunk - 1][place],
        }
    }

    /// Adds an item and says where it is.
    pub(super) fn push(&mut self, item: T) -> u32 {
        let at = self.len;
        assert!(at < u32::MAX, "a sequence has less than 2^32 items");
        self.len += 1;
        if (at as usize) < CHUNK {
            self.first.truncate(at as usize);
            self.first.push(item);
        } else {
            if at.is_multiple_of(CHUNK_PLACES) && self.further.len() < (at >> SHIFT) as usize {
                let chunk = vec![T::default(); CHUNK].into_boxed_slice();
                self.further.extend(<Box<[T; CHUNK]>>::try_from(chunk));
            }
            *self.get_mut(at) = item;
        }
        at
    }

    /// Takes the last item away. One empty chunk is kept, so that a length that goes up and down
    /// at its edge costs nothing.
    pub(super) fn pop(&mut self) -> Option<T> {
        let at = self.len.checked_sub(1)?;
        let item = *self.get(at);
        self.len = at;
        self.further.truncate((at >> SHIFT) as usize + 1);
        Some(item)
    }

    /// Memory in use, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let items = self.first.capacity() + self.further.len() * CHUNK;
        items * size_of::<T>() + self.further.capacity() * size_of::<Box<[T; CHUNK]>>()
    }
}

#[cfg(test)]
mod tests {
    use super::Chunked;

    #[test]
    fn keeps_what_it_is_given_through_growing_and_shrinking() {
        let mut items = Chunked::<u32>::default();
        for round in 0..3 {
            for n in 0..5000 {
                assert_eq!(items.push(n ^ round), n);
            }
            assert!((0..5000).all(|n| *items.get(n) == n ^ round));
            for n in (0..5000).rev() {
                assert_eq!(items.pop(), Some(n ^ round));
            }
            assert_eq!((items.pop(), items.len()), (None, 0));
        }
    }
}
