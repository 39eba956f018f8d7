//! Texts that become messages: one from the command line, or many from a file, a line each.
//!
//! A text that cannot be parsed is reported with line, column and a caret below it, before anything
//! is sent. A file of `-` is the standard input.

use files::{FLOWS_MAX, read_text, read_text_from};
use openflow::Message;
use openflow::text::{PortNames, TextError};

use super::asking::Asking;
use super::failure::Failure;
use super::ports;
use super::session::Refusal;

/// A line of a file that says something.
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

    /// What is wrong with the text, and where.
    pub(super) fn error(&self, error: &TextError) -> LineError {
        let caret = " ".repeat(self.text.get(..error.at).map_or(0, |left| left.chars().count()));
        let told = format!("{}: {error}\n  {}\n  {caret}^", self.place, self.text);
        LineError { failure: Failure::Refused(told), may_be_port: error.may_be_port }
    }

    /// The text as what `parse` makes of it.
    pub(super) fn read<T>(
        &self,
        parse: impl FnOnce(&str) -> Result<T, TextError>,
    ) -> Result<T, LineError> {
        parse(&self.text).map_err(|error| self.error(&error))
    }
}

/// Reads all of `lines`. Where a word may be the name of a port, the switch is asked for its ports
/// once; a switch that cannot be asked leaves the text's own error.
pub(super) async fn read_all<T>(
    asking: &mut Asking<'_>,
    lines: &[Line],
    read: impl Fn(&Line, &PortNames) -> Result<T, LineError>,
) -> Result<Vec<T>, Failure> {
    let mut names = PortNames::default();
    let mut has_asked = false;
    let mut all = Vec::with_capacity(lines.len());
    for line in lines {
        let outcome = match read(line, &names) {
            Err(LineError { may_be_port: true, .. }) if !has_asked => {
                has_asked = true;
                if let Ok(ports) = ports::descriptions(asking).await {
                    names =
                        PortNames::new(ports.iter().map(|port| (port.name.as_str(), port.port_no)));
                }
                read(line, &names)
            }
            outcome => outcome,
        };
        all.push(outcome.map_err(|error| error.failure)?);
    }
    Ok(all)
}

/// Reads one line, as [`read_all`] does.
pub(super) async fn read_one<T>(
    asking: &mut Asking<'_>,
    line: Line,
    read: impl Fn(&Line, &PortNames) -> Result<T, LineError>,
) -> Result<T, Failure> {
    let read = read_all(asking, &[line], read).await?.pop();
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

/// Has the switch carry out the messages of these lines. All refusals are reported, each with
/// its line.
pub(super) async fn carry_out(
    asking: &mut Asking<'_>,
    lines: &[Line],
    messages: Vec<Message>,
) -> Result<(), Failure> {
    let refused = asking.session().await?.carry_out(messages).await?;
    if refused.is_empty() {
        return Ok(());
    }
    let told = |Refusal { index, why }: &Refusal| match lines.get(*index) {
        Some(line) if lines.len() > 1 => format!("{}: {why}", line.place),
        Some(_) | None => why.clone(),
    };
    Err(Failure::Refused(refused.iter().map(told).collect::<Vec<_>>().join("\n")))
}

#[cfg(test)]
mod tests {
    use openflow::text::parse_match;

    use super::Line;
    use crate::failure::Failure;

    #[test]
    fn a_caret_stands_below_what_is_wrong() {
        let line = Line { place: "f:3".into(), text: "ip,colour=red".into() };
        let Err(Failure::Refused(told)) = line.read(parse_match).map_err(Failure::from) else {
            panic!("read")
        };
        let told: Vec<&str> = told.lines().collect();
        assert!(told[0].starts_with("f:3: column 4: unknown word `colour`"), "{told:?}");
        assert_eq!(&told[1..], ["  ip,colour=red", "     ^"]);
    }
}
