//! A cheap hasher for keys that come from entries, on the way to a program and in the control: one
//! [`mix`] for each word. It does not resist chosen collisions, so a value from a packet must never
//! be a key; a map of a peer's values by it compares them in full.

use std::hash::{BuildHasherDefault, Hasher};

use crate::select::mix;

/// A hasher for keys that come from entries, not from packets.
#[derive(Debug, Default)]
pub(in crate::fast) struct MixHasher(u64);

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

    fn write_u8(&mut self, value: u8) {
        self.write_u64(value.into());
    }

    fn write_u16(&mut self, value: u16) {
        self.write_u64(value.into());
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(value.into());
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = mix(self.0 ^ value);
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    fn write_isize(&mut self, value: isize) {
        self.write_u64(value as u64);
    }
}

/// Builds [`MixHasher`].
pub(in crate::fast) type BuildMixHasher = BuildHasherDefault<MixHasher>;
