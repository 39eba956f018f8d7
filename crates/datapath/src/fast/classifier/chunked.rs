//! A sequence that grows without ever moving what it holds: a growing classifier of a million
//! entries must never pause to copy itself.
//!
//! It must never be indexed out of its length.

/// A sequence of up to 2^32 items in chunks of `CHUNK`, a power of two. Items of one chunk lie side
/// by side.
#[derive(Debug)]
pub(super) struct Chunked<T, const CHUNK: usize> {
    chunks: Vec<Box<[T; CHUNK]>>,
    len: u32,
}

impl<T, const CHUNK: usize> Default for Chunked<T, CHUNK> {
    fn default() -> Self {
        Self { chunks: Vec::new(), len: 0 }
    }
}

impl<T: Copy + Default, const CHUNK: usize> Chunked<T, CHUNK> {
    #[inline(always)]
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    #[inline(always)]
    pub(super) fn get(&self, at: u32) -> &T {
        &self.chunks[at as usize / CHUNK][at as usize % CHUNK]
    }

    #[inline(always)]
    pub(super) fn get_mut(&mut self, at: u32) -> &mut T {
        &mut self.chunks[at as usize / CHUNK][at as usize % CHUNK]
    }

    /// Adds an item and says where it is.
    pub(super) fn push(&mut self, item: T) -> u32 {
        let at = self.len;
        assert!(at < u32::MAX, "a sequence has less than 2^32 items");
        self.len += 1;
        if at as usize / CHUNK == self.chunks.len() {
            let chunk = vec![T::default(); CHUNK].into_boxed_slice();
            self.chunks.extend(<Box<[T; CHUNK]>>::try_from(chunk));
        }
        *self.get_mut(at) = item;
        at
    }

    /// Takes the last item away. One empty chunk is kept, so that a length that goes up and down
    /// at its edge costs nothing.
    pub(super) fn pop(&mut self) -> Option<T> {
        let at = self.len.checked_sub(1)?;
        let item = *self.get(at);
        self.len = at;
        self.chunks.truncate(at as usize / CHUNK + 2);
        Some(item)
    }

    /// Memory in use, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.chunks.len() * size_of::<[T; CHUNK]>()
            + self.chunks.capacity() * size_of::<Box<[T; CHUNK]>>()
    }
}

#[cfg(test)]
mod tests {
    use super::Chunked;

    #[test]
    fn keeps_what_it_is_given_through_growing_and_shrinking() {
        let mut items = Chunked::<u32, 64>::default();
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
