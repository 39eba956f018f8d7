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

    fn send(&mut self, messages: Vec<Message>) -> Result<Option<String>, CheckError> {
        let count = messages.len() as u64;
        let is_refused = self.send_each(messages)? < count;
        Ok(is_refused.then(|| "OFPFMFC_TABLE_FULL".to_owned()))
    }

    fn send_each(&mut self, messages: Vec<Message>) -> Result<u64, CheckError> {
        Ok(messages.iter().filter(|message| self.add(message)).count() as u64)
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
fn an_honest_switch_is_not_accused() {
    let mut switch = Mock::new(Lie::None);
    assert_eq!(barrier(&mut switch, 20, 10).unwrap().verdict, Truth::Yes);
    let held = table(&mut switch, 50).unwrap();
    assert_eq!(held.verdict, Truth::Yes, "{}", held.note);
    let full = table(&mut switch, 150).unwrap();
    assert_eq!(full.verdict, Truth::Yes, "what it refuses is no lie: {}", full.note);
    assert!(full.note.contains("100 not refused"), "{}", full.note);
}

#[test]
fn a_switch_that_answers_barriers_too_early_is_found_out() {
    let found = barrier(&mut Mock::new(Lie::Barrier), 20, 10).unwrap();
    assert_eq!(found.verdict, Truth::Lies, "{}", found.note);
    assert!(found.note.contains("20 late, 0 never"), "{}", found.note);
}

#[test]
fn a_switch_that_drops_entries_is_found_out() {
    for (lie, part) in [(Lie::Traffic, "150 by its statistics"), (Lie::Statistics, "100 by its")] {
        let found = table(&mut Mock::new(lie), 150).unwrap();
        assert_eq!(found.verdict, Truth::Lies, "{lie:?}: {}", found.note);
        assert!(found.note.contains(part), "{lie:?}: {}", found.note);
        assert!(found.note.contains("100 by traffic"), "{lie:?}: {}", found.note);
    }
}
