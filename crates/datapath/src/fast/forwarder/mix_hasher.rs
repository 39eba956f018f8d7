//! A cheap hasher for maps on the way to a program. It does not resist chosen collisions, so
//! a value from a packet must never be a key.

use std::hash::{BuildHasherDefault, Hasher};

use crate::select::mix;

/// A hasher for keys that come from entries, not from packets.
#[derive(Debug, Default)]
pub(super) struct MixHasher(u64);

impl Hasher for MixHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(value.into());
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = mix(self.0 ^ value);
    }
}

/// Builds [`MixHasher`].
pub(super) type BuildMixHasher = BuildHasherDefault<MixHasher>;
