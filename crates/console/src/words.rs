//! The words of the console: a row each, for parser, help, completion and action.
//!
//! They are those of Pktgen 3.1.2 and of today's, in both grammars, as far as they make sense
//! without DPDK. A command with more to say than a row is a function in the file of its family. A
//! word of Pktgen that is not here has a row in [`REFUSED`], with the reason and what to use
//! instead.

mod other;
mod packet;
mod port;
mod range;
mod row;
mod sequence;

use std::collections::BTreeSet;

use openflow::text::nearest;

use self::row::WordRow;
use crate::effect::{Effect, Values};
use crate::form::{self, FormValue, Mismatch, Token};
use crate::state::ConsoleState;

/// The families of words, with their headings in the help.
pub(crate) const FAMILIES: [(&str, &[WordRow]); 5] = [
    ("Ports", port::ROWS),
    ("Packets", packet::ROWS),
    ("Range", range::ROWS),
    ("Sequence", sequence::ROWS),
    ("Console", other::ROWS),
];

/// Words of Pktgen that are not here, and why; `set WORD` follows the ports.
pub(crate) const REFUSED: &[(&str, &str)] = &[
    ("dev.list", "ports are named when the console starts: weir gen --port KIND:NAME"),
    ("pci.list", "ports are named when the console starts: weir gen --port KIND:NAME"),
    ("blink", "ports have no lamps here"),
    ("theme", "the terminal's own colours are used"),
    ("theme.show", "the terminal's own colours are used"),
    ("geometry", "the screen follows the terminal"),
    ("tx_cycles", "the rate is held by due times, not by cycles"),
    ("process", "what arrives is always counted"),
    ("pcap.index", "the frames of pcap.file PORTS FILE are sent from the first one on"),
    (
        "pcap.filter",
        "all frames of pcap.file PORTS FILE are sent; tcpdump -r -w makes a shorter one",
    ),
    ("rxtap", "the ports are those of the session"),
    ("txtap", "the ports are those of the session"),
    ("mac_from_arp", "use set PORTS dst mac MAC"),
    ("ppp", "use set PORTS seqCnt SLOTS"),
    ("port.restart", "use stop PORTS, then start PORTS"),
    (
        "lua",
        "a script holds words of this console, without variables and loops; for those, a \
             Python program drives weir gen serve",
    ),
    ("ping4", "use weir gen ping"),
    ("ping6", "use weir gen ping"),
    ("capture", "use weir gen capture"),
    ("jitter", "page latency shows the jitter of each stream; it has no threshold"),
    ("set rxburst", "the receiver takes all that has come"),
    ("set tx_cycles", "the rate is held by due times, not by cycles"),
    ("set dump", "received frames are counted, not kept"),
];

/// All rows.
pub(crate) fn rows() -> impl Iterator<Item = &'static WordRow> {
    FAMILIES.into_iter().flat_map(|(_, rows)| rows)
}

/// A line that has been read and not carried out yet.
#[derive(Debug, Clone)]
pub(crate) struct ParsedLine {
    row: &'static WordRow,
    values: Vec<FormValue>,
}

impl ParsedLine {
    /// Changes the settings, and returns what else is to be done.
    ///
    /// # Errors
    /// Why it cannot be done; then nothing is changed.
    pub(crate) fn apply(&self, state: &mut ConsoleState) -> Result<Effect, String> {
        (self.row.act)(state, Values(&self.values))
    }
}

/// The mistake in a line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {reason}")]
pub(crate) struct LineError {
    /// The column of the word that is wrong, from 1.
    pub(crate) column: usize,
    /// The mistake, and what is allowed.
    pub(crate) reason: String,
}

/// Reads a line in a session of `count` ports. `None` is an empty line.
///
/// # Errors
/// The first word that fits no form, with what could stand there.
pub(crate) fn parse(line: &str, count: usize) -> Result<Option<ParsedLine>, LineError> {
    let tokens = form::tokens(line);
    let Some(first) = tokens.first() else { return Ok(None) };
    let mut mismatches = Vec::new();
    for row in rows() {
        match form::read(row.form, &tokens, count) {
            Ok(values) => return Ok(Some(ParsedLine { row, values })),
            Err(mismatch) => mismatches.push(mismatch),
        }
    }
    let third = tokens.get(2);
    let set = third.map(|token| (token, format!("{} {}", first.text, token.text)));
    for (token, word) in [(first, first.text.to_owned())].into_iter().chain(set) {
        if let Some(reason) = refusal(&word) {
            return Err(LineError { column: token.column, reason });
        }
    }
    Err(error(line, &tokens, &mismatches))
}

/// The reason why a word of Pktgen is not here.
fn refusal(word: &str) -> Option<String> {
    let (word, why) = REFUSED.iter().find(|(refused, _)| *refused == word)?;
    Some(format!("{word} is not done here: {why}"))
}

/// The message about the first word that fits no form.
fn error(line: &str, tokens: &[Token<'_>], mismatches: &[Mismatch]) -> LineError {
    let depth = mismatches.iter().map(|mismatch| mismatch.depth).max().unwrap_or(0);
    let deepest = || mismatches.iter().filter(|mismatch| mismatch.depth == depth);
    let allowed: BTreeSet<&str> = deepest().flat_map(|m| m.allowed.iter().copied()).collect();
    let why: BTreeSet<&str> = deepest().filter_map(|m| m.why.as_deref()).collect();
    let token = tokens.get(depth);
    let column = token.map_or(line.trim_end().chars().count() + 2, |token| token.column);
    let mut reason = match (token, why.len()) {
        (None, _) => "something is missing".to_owned(),
        (Some(_), 1) => why.iter().copied().collect(),
        (Some(token), _) => format!("{:?} cannot stand here", token.text),
    };
    let list: Vec<&str> = allowed.into_iter().collect();
    // The nearest word comes first: a terminal has room for little more.
    let near = token.and_then(|token| similar(token.text, &list));
    let hint = near.map_or("; ".to_owned(), |word| format!("; did you mean {word}? "));
    reason += &match (list.is_empty(), depth) {
        (true, _) => "; the line ends before it".to_owned(),
        // There are too many commands for one line.
        (false, 0) => hint + "help lists all commands",
        (false, _) => format!("{hint}allowed: {}", list.join(", ")),
    };
    LineError { column, reason }
}

/// The word that was probably meant: the nearest by its letters, or the first that begins alike.
fn similar<'w>(text: &str, words: &[&'w str]) -> Option<&'w str> {
    // Kinds of values are described in several words.
    let words = || words.iter().copied().filter(|word| !word.contains(' '));
    nearest(text, words()).or_else(|| words().find(|word| word.starts_with(text)))
}

/// The words that may stand in place of the last word of `line`, which may be a part of a word or
/// empty: the place where it begins, in bytes, and the words.
pub(crate) fn complete(line: &str, count: usize) -> (usize, Vec<String>) {
    let start = line.rfind(char::is_whitespace).map_or(0, |at| at + 1);
    let (before, begun) = line.split_at(start);
    let tokens = form::tokens(before);
    let all = rows().flat_map(|row| form::candidates(row.form, &tokens, count));
    let fitting: BTreeSet<String> = all.filter(|word| word.starts_with(begun)).collect();
    (start, fitting.into_iter().collect())
}

/// The help: all commands, or those that have the word `about`.
pub(crate) fn help(about: Option<&str>) -> Result<String, String> {
    let mut text = String::new();
    let has = |row: &&WordRow| {
        let mut words = row.form.split([' ', '|']);
        about.is_none_or(|about| words.any(|word| word == about))
    };
    for (heading, rows) in FAMILIES {
        let shown: Vec<&WordRow> = rows.iter().filter(has).collect();
        if shown.is_empty() {
            continue;
        }
        text += &format!("{heading}\n");
        for row in shown {
            match row.form.len() {
                0..=36 => text += &format!("  {:36}  {}\n", row.form, row.help),
                _ => text += &format!("  {}\n  {:36}  {}\n", row.form, "", row.help),
            }
        }
    }
    match (text.is_empty(), about) {
        (true, Some(about)) => refusal(about)
            .ok_or_else(|| format!("no command has the word {about:?}; help lists all")),
        (true, None) | (false, _) => Ok(text.trim_end().to_owned()),
    }
}

#[cfg(test)]
#[path = "words/tests.rs"]
mod tests;
