//! Cuts a text into its keys and values, each with the place where it stands.
//!
//! A key ends at `=`, `:` or `(`; a value ends at a comma or blank outside of parentheses. Nothing
//! here knows what a key means.

use super::{PortNames, TextError};
use crate::field::Field;
use crate::id::PortNo;
use crate::matching::Match;
use bitflags::Flags;

/// A piece of the text, its byte offset, and what the whole text may mean by names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece<'a> {
    pub(crate) text: &'a str,
    pub(crate) at: usize,
    ports: Option<&'a PortNames>,
    matching: Option<&'a Match>,
}

impl<'a> Piece<'a> {
    pub(crate) fn whole(text: &'a str) -> Self {
        Self { text, at: 0, ports: None, matching: None }
    }

    /// A whole text in which ports may have names.
    pub(crate) fn with_ports(text: &'a str, ports: &'a PortNames) -> Self {
        Self { ports: Some(ports), ..Self::whole(text) }
    }

    /// A part of this piece: `text`, which begins at `at` of the whole text.
    pub(crate) fn part(self, text: &'a str, at: usize) -> Self {
        Self { text, at, ..self }
    }

    /// The same without blanks around it.
    pub(crate) fn trimmed(self) -> Self {
        let blank = self.text.len() - self.text.trim_start().len();
        self.part(self.text.trim(), self.at + blank)
    }

    /// The same text, of actions on packets that meet a match.
    pub(crate) fn on_packets(self, matching: &'a Match) -> Self {
        Self { matching: Some(matching), ..self }
    }

    /// Whether it is of actions, on packets that have a field for certain.
    pub(crate) fn packets_have(self, field: Field) -> bool {
        self.matching.is_some_and(|matching| matching.matches(field.row().prereq))
    }

    /// The port that has this piece as its name, in quotes or without.
    pub(crate) fn named_port(self) -> Option<PortNo> {
        self.ports?.find(unquoted(self.text))
    }

    pub(crate) fn error(self, what: impl Into<String>) -> TextError {
        TextError::new(self.at, what)
    }

    /// The two sides of the first `separator`, if there is one.
    pub(crate) fn split_once(self, separator: &str) -> Option<(Self, Self)> {
        let index = self.text.find(separator)?;
        let (left, rest) = self.text.split_at(index);
        let right = &rest[separator.len()..];
        Some((self.part(left, self.at), self.part(right, self.at + index + separator.len())))
    }

    /// The text before and after the first `word` that begins a token.
    pub(crate) fn split_at_token(self, word: &str) -> Option<(Self, Self)> {
        let mut from = 0;
        while let Some(found) = self.text[from..].find(word) {
            let index = from + found;
            if self.text[..index].chars().next_back().is_none_or(is_separator) {
                let end = index + word.len();
                return Some((
                    self.part(&self.text[..index], self.at),
                    self.part(&self.text[end..], self.at + end),
                ));
            }
            from = index + word.len();
        }
        None
    }
}

/// A key with its value; the value is `None` for a word that stands alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pair<'a> {
    pub(crate) key: Piece<'a>,
    pub(crate) value: Option<Piece<'a>>,
}

impl<'a> Pair<'a> {
    /// The value.
    ///
    /// # Errors
    /// When the key stands alone.
    pub(crate) fn needed(self) -> Result<Piece<'a>, TextError> {
        self.value.ok_or_else(|| {
            self.key.error(format!("`{}` needs a value: `{}=...`", self.key.text, self.key.text))
        })
    }

    /// Checks that the key stands alone.
    ///
    /// # Errors
    /// When it has a value.
    pub(crate) fn alone(self) -> Result<(), TextError> {
        match self.value {
            Some(value) => Err(value.error(format!("`{}` takes no value", self.key.text))),
            None => Ok(()),
        }
    }

    /// The error of a key that may be given once.
    pub(crate) fn twice(self) -> TextError {
        self.key.error(format!("`{}` is given twice", self.key.text))
    }

    /// Takes the value of a key that may be given once.
    ///
    /// # Errors
    /// When it is given twice, or the value is wrong.
    pub(crate) fn once<T>(
        self,
        place: &mut Option<T>,
        read: impl FnOnce(Piece<'a>) -> Result<T, TextError>,
    ) -> Result<(), TextError> {
        let value = read(self.needed()?)?;
        match place.replace(value) {
            Some(_) => Err(self.twice()),
            None => Ok(()),
        }
    }

    /// Takes a flag, whose key stands alone and may be given once.
    ///
    /// # Errors
    /// When it has a value or is given twice.
    pub(crate) fn flag<F: Flags + Copy>(self, flags: &mut F, flag: F) -> Result<(), TextError> {
        self.alone()?;
        if flags.contains(flag) {
            return Err(self.twice());
        }
        flags.insert(flag);
        Ok(())
    }
}

/// The text between double quotes; the whole text where there are none.
fn unquoted(text: &str) -> &str {
    text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text)
}

fn is_separator(c: char) -> bool {
    c == ',' || c.is_ascii_whitespace()
}

/// The pairs of a text.
pub(crate) fn pairs(piece: Piece<'_>) -> Pairs<'_> {
    Pairs { rest: piece }
}

/// Iterates over the pairs of a text.
pub(crate) struct Pairs<'a> {
    rest: Piece<'a>,
}

impl<'a> Pairs<'a> {
    fn take(&mut self, len: usize) -> Piece<'a> {
        let (head, tail) = self.rest.text.split_at(len);
        let piece = self.rest.part(head, self.rest.at);
        self.rest = self.rest.part(tail, self.rest.at + len);
        piece
    }

    fn skip(&mut self, len: usize) {
        let _ = self.take(len);
    }

    /// Length of the value that begins here: up to a separator outside of parentheses.
    fn value_len(&self) -> Result<usize, TextError> {
        let mut depth = 0usize;
        let mut is_quoted = false;
        for (index, c) in self.rest.text.char_indices() {
            match c {
                '"' => is_quoted = !is_quoted,
                _ if is_quoted => {}
                '(' => depth += 1,
                ')' if depth == 0 => {
                    return Err(TextError::new(self.rest.at + index, "`)` without `(`"));
                }
                ')' => depth -= 1,
                c if depth == 0 && is_separator(c) => return Ok(index),
                _ => {}
            }
        }
        if depth == 0 { Ok(self.rest.text.len()) } else { Err(self.rest.error("`(` without `)`")) }
    }

    fn pair(&mut self) -> Result<Pair<'a>, TextError> {
        let text = self.rest.text;
        let quoted = text.strip_prefix('"').and_then(|inner| inner.find('"'));
        let end = match quoted {
            Some(len) => len + 2,
            None => text.find(|c| is_separator(c) || "=:()".contains(c)).unwrap_or(text.len()),
        };
        if end == 0 {
            return Err(self.rest.error("a name was expected here"));
        }
        let key = self.take(end);
        let value = match self.rest.text.chars().next() {
            Some('=' | ':') => {
                self.skip(1);
                let len = self.value_len()?;
                Some(self.take(len))
            }
            Some('(') => {
                let len = self.value_len()?;
                let whole = self.take(len);
                let inner = whole.text.strip_prefix('(').and_then(|t| t.strip_suffix(')'));
                match inner {
                    Some(inner) => Some(whole.part(inner, whole.at + 1)),
                    // With the place for what comes of the arguments.
                    None if whole.text.contains(")->") => Some(whole),
                    None => return Err(whole.error("text behind the closing `)`")),
                }
            }
            Some(')') => return Err(self.rest.error("`)` without `(`")),
            Some(_) | None => None,
        };
        Ok(Pair { key, value })
    }
}

impl<'a> Iterator for Pairs<'a> {
    type Item = Result<Pair<'a>, TextError>;

    fn next(&mut self) -> Option<Self::Item> {
        let text = self.rest.text;
        let blank = text.len() - text.trim_start_matches(is_separator).len();
        self.skip(blank);
        if self.rest.text.is_empty() {
            return None;
        }
        let pair = self.pair();
        if pair.is_err() {
            let all = self.rest.text.len();
            self.skip(all);
        }
        Some(pair)
    }
}

#[cfg(test)]
mod tests {
    use super::{Piece, pairs};

    fn cut(text: &str) -> Vec<(String, Option<String>, usize)> {
        pairs(Piece::whole(text))
            .map(|pair| {
                let pair = pair.unwrap();
                (
                    pair.key.text.to_owned(),
                    pair.value.map(|value| value.text.to_owned()),
                    pair.key.at,
                )
            })
            .collect()
    }

    #[test]
    fn keys_and_values_are_cut_where_they_end() {
        let found = cut("ip, dl_src=00:11:22:33:44:55,write_actions(output:1,group:2) x:1:2");
        let text = |s: &str| Some(s.to_owned());
        assert_eq!(
            found,
            vec![
                ("ip".to_owned(), None, 0),
                ("dl_src".to_owned(), text("00:11:22:33:44:55"), 4),
                ("write_actions".to_owned(), text("output:1,group:2"), 29),
                ("x".to_owned(), text("1:2"), 61),
            ]
        );
    }

    #[test]
    fn bad_parentheses_are_errors_with_a_place() {
        for (text, at) in [("a(b", 1), ("a)b", 1), ("a=b)", 3), (")", 0), ("a(b)c", 1), ("=", 0)] {
            let error = pairs(Piece::whole(text)).find_map(Result::err).unwrap();
            assert_eq!(error.at, at, "{text}: {error}");
        }
    }
}
