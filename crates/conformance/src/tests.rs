//! A switch in memory that lies in one way, or in none.

use std::collections::BTreeSet;

use openflow::message::{Message, MultipartReplyBody, MultipartRequestBody};
use openflow::text::format_match;

use super::{CheckError, CheckedSwitch, Truth, barrier, table};

/// Kind of lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lie {
    None,
    /// The last entry behind a barrier comes in force one look later.
    Barrier,
    /// It takes more entries than it has room for, and its statistics count them.
    Traffic,
    /// It takes more than it has room for, and its statistics do not count them.
    Statistics,
}

/// Room for that many entries.
const ROOM: usize = 100;

struct Mock {
    lie: Lie,
    /// The matches in force.
    held: BTreeSet<String>,
    late: Option<String>,
    taken: u64,
}

impl Mock {
    fn new(lie: Lie) -> Self {
        Self { lie, held: BTreeSet::new(), late: None, taken: 0 }
    }

    /// Whether it is not refused.
    fn add(&mut self, message: &Message) -> bool {
        let Message::FlowMod(entry) = message else { return false };
        let is_full = self.held.len() >= ROOM;
        if is_full && matches!(self.lie, Lie::None | Lie::Barrier) {
            return false;
        }
        self.taken += 1;
        if !is_full {
            let text = format_match(&entry.matching);
            if self.lie == Lie::Barrier {
                self.held.extend(self.late.replace(text));
            } else {
                self.held.insert(text);
            }
        }
        true
    }
}

impl CheckedSwitch for Mock {
    fn clear(&mut self) -> Result<(), CheckError> {
        self.held.clear();
        (self.late, self.taken) = (None, 0);
        Ok(())
    }

    fn send(&mut self, messages: Vec<Message>) -> Result<(u64, Option<String>), CheckError> {
        let taken = messages.iter().filter(|message| self.add(message)).count();
        let is_refused = taken < messages.len();
        Ok((taken as u64, is_refused.then(|| "OFPFMFC_TABLE_FULL".to_owned())))
    }

    fn multipart(&mut self, _body: MultipartRequestBody) -> Result<MultipartReplyBody, CheckError> {
        Ok(MultipartReplyBody::Table(Vec::new()))
    }

    fn entries(&mut self) -> Result<u64, CheckError> {
        Ok(match self.lie {
            Lie::Traffic => self.taken,
            Lie::None | Lie::Barrier | Lie::Statistics => self.held.len() as u64,
        })
    }

    fn forwards(&mut self, frames: &[Vec<u8>]) -> Result<Vec<bool>, CheckError> {
        let forwards = |frame: &Vec<u8>| {
            let address = std::net::Ipv4Addr::new(frame[30], frame[31], frame[32], frame[33]);
            self.held.iter().any(|held| held.ends_with(&format!("={address}")))
        };
        let came = frames.iter().map(forwards).collect();
        self.held.extend(self.late.take());
        Ok(came)
    }
}

#[test]
fn a_switch_that_answers_barriers_too_early_is_found_out() {
    for (lie, verdict, words) in [
        (Lie::None, Truth::Yes, "0 late, 0 never"),
        (Lie::Barrier, Truth::Lies, "20 late, 0 never"),
    ] {
        let found = barrier(&mut Mock::new(lie), 20, 10).unwrap();
        assert_eq!(found.verdict, verdict, "{lie:?}: {}", found.note);
        assert!(found.note.contains(words), "{lie:?}: {}", found.note);
    }
}

#[test]
fn a_switch_that_drops_entries_is_found_out() {
    for (lie, entries, verdict, words) in [
        (Lie::None, 50, Truth::Yes, "50 not refused, 50 by its statistics, 50 by traffic"),
        // What it refuses is no lie.
        (Lie::None, 150, Truth::Yes, "100 not refused, 100 by its statistics, 100 by traffic"),
        (Lie::Traffic, 150, Truth::Lies, "150 by its statistics, 100 by traffic"),
        (Lie::Statistics, 150, Truth::Lies, "100 by its statistics, 100 by traffic"),
    ] {
        let found = table(&mut Mock::new(lie), entries).unwrap();
        assert_eq!(found.verdict, verdict, "{lie:?}: {}", found.note);
        assert!(found.note.contains(words), "{lie:?}: {}", found.note);
    }
}
