//! Rules about words: a doc comment opens with the thing or the act, a name holds no verb of
//! speech, the name of a test is short.
//!
//! It reads the tokens of a file, so that the words of a macro count and those of a string do not.
//! Words that may stand are in lists with their reasons. It must never judge the words of a
//! protocol, of help texts or of scenarios: these are strings.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};

use super::{Problem, SourceFile};

/// Words that begin a question or a clause, where a doc comment names a thing.
const QUESTIONS: &[&str] = &["What", "Who", "Whom", "Whose", "How", "Where", "Which"];

/// Lines of doc comments that may begin so, with the reason.
const ALLOWED_DOCS: &[(&str, &str)] = &[];

/// Verbs of speech and metaphors that name no act of a program.
const SPEECH: &[&str] = &["said", "told", "tell", "heed", "tend", "settle"];

/// Names that may hold such a word, with the reason.
const ALLOWED_NAMES: &[(&str, &str)] = &[];

/// Letters of the name of a test.
const TEST_NAME: usize = 60;

pub(super) fn check(file: &SourceFile) -> Vec<Problem> {
    let Some(text) = file.text.as_deref().filter(|_| file.is("rs")) else { return Vec::new() };
    // A text that is not Rust is a problem of `syntax`.
    let Ok(tokens) = text.parse::<TokenStream>() else { return Vec::new() };
    let mut search = Search { path: &file.path, names: BTreeSet::new(), problems: Vec::new() };
    search.stream(tokens);
    search.problems
}

struct Search<'f> {
    path: &'f str,
    /// Names already reported in this file.
    names: BTreeSet<String>,
    problems: Vec<Problem>,
}

impl Search<'_> {
    fn stream(&mut self, tokens: TokenStream) {
        let (mut in_test, mut after_fn) = (false, false);
        let mut tokens = tokens.into_iter().peekable();
        while let Some(token) = tokens.next() {
            match token {
                TokenTree::Punct(punct) if punct.as_char() == '#' => {
                    // Inner attributes: `#!`.
                    tokens.next_if(is_exclamation);
                    let Some(TokenTree::Group(group)) = tokens.next_if(is_brackets) else {
                        continue;
                    };
                    let line = group.span_open().start().line;
                    if let Some(text) = doc(group.stream()) {
                        self.doc(line, &text);
                    } else {
                        in_test |= is_test(group.stream());
                        self.stream(group.stream());
                    }
                }
                TokenTree::Ident(name) => {
                    if after_fn && in_test {
                        self.test(&name);
                        in_test = false;
                    }
                    after_fn = name == "fn";
                    self.name(&name);
                }
                TokenTree::Group(group) => self.stream(group.stream()),
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
    }

    /// Looks at each line, since a paragraph below the first one names a thing too.
    fn doc(&mut self, line: usize, text: &str) {
        for (index, text) in text.lines().map(str::trim).enumerate() {
            let word = text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
            let is_allowed = ALLOWED_DOCS.iter().any(|(allowed, _)| *allowed == text);
            if QUESTIONS.contains(&word) && !is_allowed {
                let what = format!(
                    "`{word}` opens a line of a doc comment; name the thing or the act: `Contents \
                     of a probe`, `Path of the key`"
                );
                self.problems.push(Problem::error(self.path, line + index, what));
            }
        }
    }

    /// One problem for each name, at its first place in the file.
    fn name(&mut self, name: &Ident) {
        let text = name.to_string();
        let Some(word) = SPEECH.iter().find(|word| parts(&text).iter().any(|p| p == *word)) else {
            return;
        };
        let is_allowed = ALLOWED_NAMES.iter().any(|(allowed, _)| *allowed == text);
        if !is_allowed && self.names.insert(text.clone()) {
            let what = format!(
                "`{word}` in the name `{text}`; name the act or its result: send, log, report, \
                 print, publish, recheck, maintain, credit, yield"
            );
            self.problems.push(Problem::error(self.path, name.span().start().line, what));
        }
    }

    fn test(&mut self, name: &Ident) {
        let letters = name.to_string().chars().count();
        if letters > TEST_NAME {
            let what = format!(
                "the name of a test has {letters} letters, at most {TEST_NAME}; say what holds, \
                 and leave the circumstances to its doc comment"
            );
            self.problems.push(Problem::error(self.path, name.span().start().line, what));
        }
    }
}

/// The text of a doc comment, from the tokens of its attribute: `doc = "text"`.
fn doc(attribute: TokenStream) -> Option<String> {
    let mut tokens = attribute.into_iter();
    match (tokens.next()?, tokens.next()?, tokens.next()?) {
        (TokenTree::Ident(name), TokenTree::Punct(_), TokenTree::Literal(text))
            if name == "doc" =>
        {
            syn::parse_str::<syn::LitStr>(&text.to_string()).ok().map(|text| text.value())
        }
        _ => None,
    }
}

/// Whether a token is the `!` of an inner attribute.
fn is_exclamation(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == '!')
}

/// Whether a token is the brackets of an attribute.
fn is_brackets(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket)
}

/// Whether an attribute is `test`, `tokio::test(..)` or the like.
fn is_test(attribute: TokenStream) -> bool {
    let is_path = |token: &TokenTree| !matches!(token, TokenTree::Group(_));
    let last = attribute.into_iter().take_while(is_path).last();
    matches!(last, Some(TokenTree::Ident(name)) if name == "test")
}

/// The words of a name in small letters: `is_told`, `SaidOfRole` and `LISTENERS_TOLD` have theirs.
fn parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut was_small = false;
    for letter in name.chars() {
        if letter == '_' || (letter.is_uppercase() && was_small) {
            parts.push(String::new());
        }
        was_small = letter.is_lowercase() || letter.is_ascii_digit();
        if let Some(part) = parts.last_mut().filter(|_| letter != '_') {
            part.extend(letter.to_lowercase());
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::{SourceFile, check};

    fn problems(text: &str) -> Vec<String> {
        check(&SourceFile::new("a.rs", text)).iter().map(ToString::to_string).collect()
    }

    fn one(text: &str, expected: &str) {
        let found = problems(text);
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        assert!(found[0].starts_with(expected), "{found:?}");
    }

    #[test]
    fn doc_comments_name_a_thing_or_an_act() {
        one("//! How it is.\n", "a.rs:1: `How` opens a line of a doc comment; name");
        one("//! A.\n\n/// What a probe says.\nfn f() {}\n", "a.rs:3: `What` opens");
        one("struct A {\n /// Whose it is.\n a: u8,\n}\n", "a.rs:2: `Whose` opens");
        one("#[doc = \"Which one.\"]\nfn f() {}\n", "a.rs:1: `Which` opens");
        one("rows! {\n /// It.\n ///\n /// Where it lies.\n A,\n}\n", "a.rs:4: `Where` opens");
        one("/** It.\n Who asks. */\nfn f() {}\n", "a.rs:2: `Who` opens");
        for good in [
            "/// Whether it is.\nfn f() {}\n",
            "// What a line says.\nfn f() {}\n",
            "const A: &str = \"/// What\";\n",
            "/// However.\nfn f() {}\n",
        ] {
            assert_eq!(problems(good), [""; 0], "{good}");
        }
    }

    #[test]
    fn names_hold_no_verb_of_speech() {
        one("fn tell_port() { tell_port() }\n", "a.rs:1: `tell` in the name `tell_port`; name");
        one("struct SaidOfRole;\n", "a.rs:1: `said` in");
        one("\nconst LISTENERS_TOLD: u8 = 1;\n", "a.rs:2: `told` in");
        one("rows! { (heed) }\n", "a.rs:1: `heed` in");
        let good = "fn f(extend: u8, intended: Satellite) { teller.settles(\"told\") }\n// told\n";
        assert_eq!(problems(good), [""; 0]);
    }

    #[test]
    fn names_of_tests_have_sixty_letters() {
        let name = |letters: usize| "a".repeat(letters);
        let test = |attribute: &str, letters| format!("{attribute}\nfn {}() {{}}\n", name(letters));
        let long = "a.rs:2: the name of a test has 61 letters, at most 60";
        one(&test("#[test]", 61), long);
        one(&test("#[tokio::test(start_paused = true)]", 61), long);
        one(&format!("mod t {{ #[test]\n#[ignore]\nasync fn {}() {{}} }}\n", name(61)), "a.rs:3:");
        one(&format!("proptest! {{ #[test]\nfn {}() {{}} }}\n", name(61)), "a.rs:2:");
        assert_eq!(problems(&test("#[test]", 60)), [""; 0]);
        assert_eq!(problems(&test("#[inline]", 61)), [""; 0]);
        assert_eq!(problems(&test("#[cfg(test)]", 61)), [""; 0]);
    }
}
