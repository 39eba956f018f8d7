//! Python's literals as `ast.literal_eval` reads them: what Ryu's scripts send as bodies.
//!
//! Numbers, strings, bytes, lists, tuples, dictionaries, `True`, `False` and `None`; JSON's words
//! are taken too, so that a body may mix them. Sets and complex numbers have no JSON value and are
//! refused. Nothing is evaluated, and a nested body costs a bounded depth.

use serde_json::{Map, Number, Value};
use std::fmt;

/// The most lists and dictionaries that may lie in each other.
const DEPTH_MAX: usize = 64;

/// A text that is no literal: what is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LiteralError {
    line: usize,
    column: usize,
    what: String,
}

impl fmt::Display for LiteralError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at line {} column {}", self.what, self.line, self.column)
    }
}

/// The value of a literal.
///
/// # Errors
/// When the text is no literal.
pub(crate) fn parse(text: &str) -> Result<Value, LiteralError> {
    let mut parser = Parser { text, at: 0 };
    let value = parser.value(0)?;
    parser.blanks();
    if parser.at < text.len() {
        return Err(parser.error("something stands behind the value"));
    }
    Ok(value)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl Parser<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn take(&mut self, expected: char) -> bool {
        let is_there = self.peek() == Some(expected);
        if is_there {
            self.at += expected.len_utf8();
        }
        is_there
    }

    fn error(&self, what: impl Into<String>) -> LiteralError {
        let before = self.text.get(..self.at).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        LiteralError { line, column, what: what.into() }
    }

    /// Blanks, ends of lines and comments.
    fn blanks(&mut self) {
        while let Some(next) = self.peek() {
            if next == '#' {
                while self.peek().is_some_and(|c| c != '\n') {
                    self.next();
                }
            } else if next.is_ascii_whitespace() {
                self.next();
            } else {
                return;
            }
        }
    }

    fn value(&mut self, depth: usize) -> Result<Value, LiteralError> {
        if depth > DEPTH_MAX {
            return Err(self.error(format!("lists lie more than {DEPTH_MAX} deep")));
        }
        self.blanks();
        match self.peek() {
            Some('{') => self.dictionary(depth),
            Some('[') => {
                self.next();
                self.items(']', depth).map(|(items, _)| Value::Array(items))
            }
            Some('(') => self.tuple(depth),
            Some('\'' | '"') => self.strings().map(Value::String),
            Some(c) if c.is_ascii_digit() || matches!(c, '-' | '+' | '.') => self.number(),
            Some(c) if c.is_alphabetic() || c == '_' => self.word(),
            Some(c) => Err(self.error(format!("`{c}` begins no value"))),
            None => Err(self.error("a value is missing")),
        }
    }

    /// A tuple is a list; one value in parentheses without a comma is that value.
    fn tuple(&mut self, depth: usize) -> Result<Value, LiteralError> {
        self.next();
        let (mut items, has_comma) = self.items(')', depth)?;
        match items.pop() {
            Some(only) if items.is_empty() && !has_comma => Ok(only),
            Some(last) => {
                items.push(last);
                Ok(Value::Array(items))
            }
            None => Ok(Value::Array(items)),
        }
    }

    /// Values up to the closing bracket, and whether a comma stands among them.
    fn items(&mut self, close: char, depth: usize) -> Result<(Vec<Value>, bool), LiteralError> {
        let (mut items, mut has_comma) = (Vec::new(), false);
        loop {
            self.blanks();
            if self.take(close) {
                return Ok((items, has_comma));
            }
            items.push(self.value(depth + 1)?);
            self.blanks();
            if self.take(',') {
                has_comma = true;
            } else if self.take(close) {
                return Ok((items, has_comma));
            } else {
                return Err(self.error(format!("a comma or `{close}` is missing")));
            }
        }
    }

    fn dictionary(&mut self, depth: usize) -> Result<Value, LiteralError> {
        self.next();
        let mut object = Map::new();
        loop {
            self.blanks();
            if self.take('}') {
                return Ok(Value::Object(object));
            }
            let Value::String(key) = self.value(depth + 1)? else {
                return Err(self.error("a key must be a string"));
            };
            self.blanks();
            if !self.take(':') {
                return Err(self.error("a colon is missing behind the key"));
            }
            if object.contains_key(&key) {
                return Err(self.error(format!("the key `{key}` stands twice")));
            }
            let value = self.value(depth + 1)?;
            object.insert(key, value);
            self.blanks();
            if !self.take(',') && self.peek() != Some('}') {
                return Err(self.error("a comma or `}` is missing"));
            }
        }
    }

    /// A word: a constant, or the prefix of a string.
    fn word(&mut self) -> Result<Value, LiteralError> {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let len = self.rest().find(|c| !is_part(c)).unwrap_or(self.rest().len());
        let word = self.rest().get(..len).unwrap_or("").to_owned();
        let behind = self.rest().get(len..).unwrap_or("").chars().next();
        if matches!(behind, Some('\'' | '"')) {
            return self.strings().map(Value::String);
        }
        let value = match word.as_str() {
            "True" | "true" => Value::Bool(true),
            "False" | "false" => Value::Bool(false),
            "None" | "null" => Value::Null,
            _ => return Err(self.error(format!("`{word}` is no literal"))),
        };
        self.at += len;
        Ok(value)
    }

    /// Strings that follow each other are one.
    fn strings(&mut self) -> Result<String, LiteralError> {
        let mut whole = String::new();
        loop {
            let len = self.rest().find(['\'', '"']).unwrap_or(0);
            let prefix = self.rest().get(..len).unwrap_or("").to_ascii_lowercase();
            if !["", "u", "b", "r", "br", "rb"].contains(&prefix.as_str()) {
                return Err(self.error(format!("`{prefix}` is no prefix of a string")));
            }
            self.at += len;
            self.string(&mut whole, prefix.contains('r'))?;
            let behind = self.at;
            self.blanks();
            let starts = self.rest().trim_start_matches(['u', 'b', 'r', 'U', 'B', 'R']);
            if !starts.starts_with(['\'', '"']) {
                self.at = behind;
                return Ok(whole);
            }
        }
    }

    fn string(&mut self, out: &mut String, raw: bool) -> Result<(), LiteralError> {
        let Some(quote) = self.next() else { return Err(self.error("a string is missing")) };
        let triple: String = std::iter::repeat_n(quote, 3).collect();
        let is_long = self.rest().starts_with(&triple[1..]);
        if is_long {
            self.at += 2;
        }
        loop {
            if is_long && self.rest().starts_with(&triple) {
                self.at += 3;
                return Ok(());
            }
            match self.next() {
                Some(c) if c == quote && !is_long => return Ok(()),
                Some('\n') if !is_long => return Err(self.error("a string ends at no quote")),
                Some('\\') if raw => {
                    out.push('\\');
                    out.extend(self.next());
                }
                Some('\\') => self.escape(out)?,
                Some(c) => out.push(c),
                None => return Err(self.error("a string ends at no quote")),
            }
        }
    }

    fn escape(&mut self, out: &mut String) -> Result<(), LiteralError> {
        let plain = match self.next() {
            Some('\n') => return Ok(()),
            Some(c @ ('\\' | '\'' | '"' | '/')) => c,
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('a') => '\x07',
            Some('b') => '\x08',
            Some('f') => '\x0c',
            Some('v') => '\x0b',
            Some('x') => self.code(2)?,
            Some('u') => self.code(4)?,
            Some('U') => self.code(8)?,
            Some(c @ '0'..='7') => self.octal(c)?,
            Some(c) => return Err(self.error(format!("`\\{c}` is no escape"))),
            None => return Err(self.error("a string ends at no quote")),
        };
        out.push(plain);
        Ok(())
    }

    fn code(&mut self, digits: usize) -> Result<char, LiteralError> {
        let text = self.rest().get(..digits).unwrap_or("").to_owned();
        let is_hex = !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit());
        let number = u32::from_str_radix(&text, 16).ok().filter(|_| is_hex);
        let code = number.and_then(char::from_u32);
        let code = code.ok_or_else(|| self.error("an escape names no character"))?;
        self.at += digits;
        Ok(code)
    }

    fn octal(&mut self, first: char) -> Result<char, LiteralError> {
        let mut number = first.to_digit(8).unwrap_or(0);
        for _ in 0..2 {
            let Some(digit) = self.peek().and_then(|c| c.to_digit(8)) else { break };
            self.next();
            number = number * 8 + digit;
        }
        char::from_u32(number).ok_or_else(|| self.error("an escape names no character"))
    }

    fn number(&mut self) -> Result<Value, LiteralError> {
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '+');
        let len = self.rest().find(|c| !is_part(c)).unwrap_or(self.rest().len());
        let written = self.rest().get(..len).unwrap_or("").to_owned();
        let value = number(&written)
            .ok_or_else(|| self.error(format!("`{written}` is not a number of at most 64 bits")))?;
        self.at += len;
        Ok(value)
    }
}

fn number(written: &str) -> Option<Value> {
    let is_negative = written.starts_with('-');
    let digits = written.strip_prefix(['-', '+']).unwrap_or(written);
    let well_joined = !digits.starts_with('_') && !digits.ends_with('_') && !digits.contains("__");
    let plain = digits.replace('_', "").to_ascii_lowercase();
    if !well_joined || plain.starts_with(['-', '+']) {
        return None;
    }
    let radix = [("0x", 16), ("0o", 8), ("0b", 2)];
    let based = radix.iter().find_map(|(prefix, radix)| {
        plain.strip_prefix(prefix).map(|digits| u64::from_str_radix(digits, *radix).ok())
    });
    let whole = match based {
        Some(number) => Some(number?),
        None if plain.bytes().all(|b| b.is_ascii_digit()) => {
            // Python knows no number that begins with a zero but zero.
            let is_odd =
                plain.len() > 1 && plain.starts_with('0') && plain.bytes().any(|b| b != b'0');
            Some(plain.parse().ok().filter(|_| !is_odd)?)
        }
        None => None,
    };
    match whole {
        Some(number) if is_negative => i64::try_from(-i128::from(number)).ok().map(Value::from),
        Some(number) => Some(Value::from(number)),
        None => {
            let starts = plain.starts_with(|c: char| c.is_ascii_digit() || c == '.');
            let number: f64 = plain.parse().ok().filter(|_| starts)?;
            Number::from_f64(if is_negative { -number } else { number }).map(Value::Number)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::parse;
    use serde_json::json;

    #[test]
    fn literals_are_read_as_python_reads_them() {
        for (text, expected) in [
            (
                "{'a': 1, \"b\": [1, 2,], 'c': (1,), 'd': (1), 'e': ()}",
                json!({"a": 1, "b": [1, 2], "c": [1], "d": 1, "e": []}),
            ),
            (
                "[0x10, 0o17, 0b11, 1_000, -5, +5, 1.5, -2e3]",
                json!([16, 15, 3, 1000, -5, 5, 1.5, -2000.0]),
            ),
            (
                "[True, False, None, true, false, null]",
                json!([true, false, null, true, false, null]),
            ),
            ("u'a' 'b' \"c\"", json!("abc")),
            ("'''a\n'b'''", json!("a\n'b")),
            ("r'\\d'", json!("\\d")),
            ("b'\\x00\\x41\\n'", json!("\0A\n")),
            ("'\\u00e9\\101'", json!("éA")),
            ("{ # a comment\n 'a' : 1 }", json!({"a": 1})),
            ("18446744073709551615", json!(u64::MAX)),
            ("''", json!("")),
        ] {
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_literal_is_refused_with_its_place() {
        for (text, what) in [
            ("", "a value is missing at line 1 column 1"),
            ("{'a': 1\n 'b'}", "a comma or `}` is missing at line 2 column 2"),
            ("{1: 2}", "a key must be a string"),
            ("[1 2]", "a comma or `]` is missing"),
            ("[,]", "`,` begins no value"),
            ("'abc", "ends at no quote"),
            ("__import__('os')", "is no literal"),
            ("18446744073709551616", "not a number of at most 64 bits"),
            ("0123", "not a number"),
            ("1__0", "not a number"),
            ("1j", "not a number"),
            ("--1", "not a number"),
            ("'\\q'", "is no escape"),
            ("'\\ud800'", "names no character"),
            ("{'a': 1} x", "behind the value"),
            ("{'a'}", "a colon is missing"),
            ("x'a'", "no prefix of a string"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(what), "{text}: {error}");
        }
    }

    #[test]
    fn every_prefix_of_a_literal_is_refused_or_read_without_a_panic() {
        let text = "{'ä': [1, (2, 0x3), b'\\x00', '''é''', -4.5e6], 'b': {'c': None}}";
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
            assert!(parse(&text[..end]).is_err(), "{}", &text[..end]);
        }
        assert!(parse(text).is_ok());
    }
}
