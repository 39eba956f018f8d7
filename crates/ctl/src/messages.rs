//! Texts that become messages: one from the command line, or many from a file, a line each.
//!
//! A text that cannot be parsed is reported with line, column and a caret below it, before anything
//! is sent. A file of `-` is the standard input.

use clap::Args;
use files::{FLOWS_MAX, read_text, read_text_from};
use openflow::Message;
use openflow::text::{PortNames, TextError};

use super::context::CommandContext;
use super::failure::Failure;
use super::port_names;
use super::session::{Refusal, Refusals};

/// A line of a file that says something.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// `flows.txt:3`, or what a text of the command line is called.
    pub(super) place: String,
    /// The text, without a comment.
    pub(super) text: String,
}

/// Why a line is not understood.
pub(super) struct LineError {
    pub(super) failure: Failure,
    /// Whether the names of the switch's ports might help.
    pub(super) may_be_port: bool,
}

impl From<LineError> for Failure {
    fn from(error: LineError) -> Self {
        error.failure
    }
}

impl Line {
    /// A text of the command line.
    pub(super) fn argument(what: &str, text: &str) -> Self {
        Self { place: what.to_owned(), text: text.to_owned() }
    }

    /// The mistake in the text, with its place.
    pub(super) fn error(&self, error: &TextError) -> LineError {
        let caret = " ".repeat(self.text.get(..error.at).map_or(0, |left| left.chars().count()));
        let why = format!("{}: {error}\n  {}\n  {caret}^", self.place, self.text);
        LineError { failure: Failure::NotUnderstood(why), may_be_port: error.may_be_port }
    }

    /// The text as what `parse` makes of it.
    pub(super) fn read<T>(
        &self,
        parse: impl FnOnce(&str) -> Result<T, TextError>,
    ) -> Result<T, LineError> {
        parse(&self.text).map_err(|error| self.error(&error))
    }

    /// The text as what `parse` makes of it, where the key before a number alone may be left out.
    /// An error is about the text as it was written.
    pub(super) fn read_id<T>(
        &self,
        key: &str,
        parse: impl FnOnce(&str) -> Result<T, TextError>,
    ) -> Result<T, LineError> {
        if self.text.contains('=') {
            return self.read(parse);
        }
        let added = key.len() + 1;
        parse(&format!("{key}={}", self.text))
            .map_err(|error| self.error(&TextError { at: error.at.saturating_sub(added), ..error }))
    }
}

/// Reads all of `lines`. Where a word may be the name of a port, the switch is asked for its ports
/// once. Where it cannot be asked, the word stays unknown: the failure has the text's own error and
/// why the switch was of no help.
pub(super) async fn read_all<T>(
    context: &mut CommandContext<'_>,
    lines: &[Line],
    read: impl Fn(&Line, &PortNames) -> Result<T, LineError>,
) -> Result<Vec<T>, Failure> {
    let mut names = PortNames::default();
    let (mut has_asked, mut unasked) = (false, None);
    let mut all = Vec::with_capacity(lines.len());
    for line in lines {
        let outcome = match read(line, &names) {
            Err(LineError { may_be_port: true, .. }) if !has_asked => {
                has_asked = true;
                match port_names::names(context).await {
                    Ok(known) => names = known,
                    Err(failure) => unasked = Some(failure),
                }
                read(line, &names)
            }
            outcome => outcome,
        };
        all.push(outcome.map_err(|error| match unasked.take() {
            Some(unasked) if error.may_be_port => without_names(&error.failure, unasked),
            Some(_) | None => error.failure,
        })?);
    }
    Ok(all)
}

/// The failure of a text whose word may be the name of a port, where the switch could not be asked
/// for its ports: of the kind that the switch's failure is.
fn without_names(text: &Failure, unasked: Failure) -> Failure {
    let both = |why: &str| {
        let text = text.message().unwrap_or_default();
        format!("{text}\nthe switch could not be asked for its ports: {why}")
    };
    match unasked {
        Failure::NotUnderstood(why) | Failure::Refused(why) => Failure::NotUnderstood(both(&why)),
        Failure::Unreached(why) => Failure::Unreached(both(&why)),
        Failure::Differs | Failure::TimedOut | Failure::Pipe => unasked,
    }
}

/// Reads one line, as [`read_all`] does.
pub(super) async fn read_one<T>(
    context: &mut CommandContext<'_>,
    line: Line,
    read: impl Fn(&Line, &PortNames) -> Result<T, LineError>,
) -> Result<T, Failure> {
    let read = read_all(context, &[line], read).await?.pop();
    read.ok_or_else(|| Failure::refused("nothing was read"))
}

/// The lines of a file that are neither empty nor a comment (`#`).
pub(super) fn lines_of(file: &str) -> Result<Vec<Line>, Failure> {
    let unread = |error| Failure::refused(format!("{file}: {error}"));
    let (name, text) = if file == "-" {
        ("standard input", read_text_from(std::io::stdin(), FLOWS_MAX).map_err(unread)?)
    } else {
        (file, read_text(file.as_ref(), FLOWS_MAX).map_err(unread)?)
    };
    let lines = text.lines().enumerate().filter_map(|(index, line)| {
        let text = line.split('#').next().unwrap_or_default().trim_end();
        let says = !text.trim().is_empty();
        says.then(|| Line { place: format!("{name}:{}", index + 1), text: text.to_owned() })
    });
    Ok(lines.collect())
}

/// The text of the command line, or the lines of the standard input where it is `-`.
pub(super) fn lines_or_stdin(what: &str, text: &str) -> Result<Vec<Line>, Failure> {
    if text == "-" { lines_of("-") } else { Ok(vec![Line::argument(what, text)]) }
}

/// The way in which messages are carried out.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(super) struct Bundled {
    /// As a bundle: all at one moment, or nothing where one is refused
    #[arg(long)]
    bundle: bool,
}

/// Has the switch carry out the messages of these lines. The refusals that are known one by one
/// are reported each with its line, and of several messages how many were refused.
pub(super) async fn carry_out(
    context: &mut CommandContext<'_>,
    lines: &[Line],
    messages: Vec<Message>,
    Bundled { bundle }: Bundled,
) -> Result<(), Failure> {
    let session = context.session().await?;
    let Refusals { messages, refused, listed } = match bundle {
        true => session.bundle(messages).await?,
        false => session.carry_out(messages).await?,
    };
    if refused == 0 {
        return Ok(());
    }
    let text = |Refusal { index, why, .. }: &Refusal| match lines.get(*index) {
        Some(line) if lines.len() > 1 => format!("{}: {why}", line.place),
        Some(_) | None => why.clone(),
    };
    let mut texts: Vec<String> = listed.iter().map(text).collect();
    if messages > 1 {
        let left_out = match refused.saturating_sub(listed.len() as u64) {
            0 => String::new(),
            _ => format!("; the first {} are listed", listed.len()),
        };
        let undone = if bundle { ", so that nothing is done" } else { "" };
        texts.push(format!("{refused} of {messages} refused{left_out}{undone}"));
    }
    Err(Failure::Refused(texts.join("\n")))
}

#[cfg(test)]
mod tests {
    use openflow::text::parse_match;

    use super::{Line, without_names};
    use crate::failure::Failure;

    #[test]
    fn a_caret_stands_below_what_is_wrong() {
        let line = Line { place: "f:3".into(), text: "ip,colour=red".into() };
        let Err(Failure::NotUnderstood(why)) = line.read(parse_match).map_err(Failure::from) else {
            panic!("read")
        };
        let why: Vec<&str> = why.lines().collect();
        assert!(why[0].starts_with("f:3: column 4: unknown word `colour`"), "{why:?}");
        assert_eq!(&why[1..], ["  ip,colour=red", "     ^"]);
    }

    #[test]
    fn a_switch_that_could_not_be_asked_is_named_below_the_text() {
        let text = Failure::refused("f:3: `p1` is not a port");
        let silent = Failure::Unreached("no answer from br0 after 60 s".into());
        let both = without_names(&text, silent);
        let why = "f:3: `p1` is not a port\n\
                   the switch could not be asked for its ports: no answer from br0 after 60 s";
        assert_eq!(both, Failure::Unreached(why.into()));
        assert_eq!(without_names(&text, Failure::TimedOut), Failure::TimedOut);
    }
}
