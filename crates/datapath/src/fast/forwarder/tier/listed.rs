//! The entries that an index is about, by slot and serial. Some of them have gone, and are taken
//! out when the list is twice as long as the last time had left it: so a list costs each of its
//! entries the same, however long it is, and never holds more than twice those that are there.

/// Lists shorter than this are never looked through.
const SHORT: usize = 32;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Listed {
    entries: Vec<(u32, u32)>,
    sweep_at: usize,
}

impl Listed {
    /// Adds an entry; `is_there` is asked of earlier ones.
    pub(super) fn push(&mut self, entry: (u32, u32), is_there: impl Fn((u32, u32)) -> bool) {
        if self.entries.len() >= self.sweep_at.max(SHORT) {
            self.entries.retain(|entry| is_there(*entry));
            self.sweep_at = 2 * self.entries.len();
        }
        self.entries.push(entry);
    }

    /// All of them.
    pub(super) fn entries(&self) -> impl Iterator<Item = (u32, u32)> {
        self.entries.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::Listed;

    /// As many entries as a table holds, of which each one is in the place of the oldest.
    #[test]
    fn an_entry_costs_the_same_in_a_long_list_as_in_a_short_one() {
        for slots in [16_u32, 16_384] {
            let (mut listed, asked, made) = (Listed::default(), Cell::new(0_u32), 4 * 16_384);
            for serial in 0..made {
                listed.push((serial % slots, serial), |(_, other)| {
                    asked.set(asked.get() + 1);
                    other + slots > serial
                });
            }
            assert!(asked.get() <= 2 * made, "{} for {made} of {slots}", asked.get());
            assert!(listed.entries().count() <= 2 * slots.max(32) as usize);
        }
    }
}
