//! One run of a command: where its output goes, and the switch that it asks.
//!
//! A connection is made when the first message is sent, so that an error in a text is reported
//! even where no switch is.

use std::io::Write;

use openflow::message::{MultipartReplyBody, MultipartRequest, MultipartRequestBody};
use openflow::text::format_reply;
use openflow::{Message, Version, Xid};
use serde_json::Value;

use super::address::SwitchAddress;
use super::failure::Failure;
use super::session::Session;
use super::{switch, value};

/// The output: texts, or a JSON value a line.
pub(super) struct Out<'a> {
    write: &'a mut dyn Write,
    json: bool,
    is_terminal: bool,
}

impl<'a> Out<'a> {
    pub(super) fn new(write: &'a mut dyn Write, json: bool, is_terminal: bool) -> Self {
        Self { write, json, is_terminal }
    }

    /// Whether texts are printed, and a person reads them.
    pub(super) fn is_for_people(&self) -> bool {
        self.is_terminal && !self.json
    }

    /// Columns of a text: those of the terminal; others get lines as long as they are.
    pub(super) fn width(&self) -> usize {
        if self.is_terminal { terminal::width() } else { usize::MAX }
    }

    pub(super) fn is_json(&self) -> bool {
        self.json
    }

    /// A record: as a text, which may be several lines, or as a value.
    pub(super) fn record(
        &mut self,
        text: impl AsRef<str>,
        value: impl FnOnce() -> Value,
    ) -> Result<(), Failure> {
        if self.json {
            self.value(&value())
        } else {
            Ok(writeln!(self.write, "{}", files::printable(text.as_ref()))?)
        }
    }

    /// A value in a line. JSON leaves control characters from DEL on as they are; escaped, they are
    /// the same strings.
    fn value(&mut self, value: &Value) -> Result<(), Failure> {
        Ok(writeln!(self.write, "{}", files::printable(&value.to_string()))?)
    }

    /// The page of a terminal, in place of that before it.
    pub(super) fn screen(&mut self, lines: &[String]) -> Result<(), Failure> {
        let lines: Vec<_> = lines.iter().map(|line| files::printable(line)).collect();
        Ok(write!(self.write, "\x1b[H{}\x1b[K\x1b[J", lines.join("\x1b[K\r\n"))?)
    }

    /// A record of sentences, which a terminal shows in lines that fit it.
    pub(super) fn sentences(&mut self, text: &str) -> Result<(), Failure> {
        let width = self.width();
        let wrapped = text.lines().flat_map(|line| {
            let blanks = line.len() - line.trim_start().len();
            terminal::wrap(line, width, &" ".repeat(blanks + 2))
        });
        self.record(wrapped.collect::<Vec<_>>().join("\n"), || Value::Null)
    }

    /// A reply: its text, or its values.
    pub(super) fn reply(
        &mut self,
        version: Version,
        xid: Xid,
        reply: &Message,
    ) -> Result<(), Failure> {
        if self.json {
            for value in value::of_message(reply) {
                self.value(&value)?;
            }
        } else if let Some(text) = format_reply(version, xid, reply) {
            writeln!(self.write, "{}", files::printable(&text))?;
        }
        Ok(())
    }

    /// Brings all that was printed to the reader.
    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        Ok(self.write.flush()?)
    }
}

/// Execution of a command with its arguments.
pub(super) trait Execute {
    /// Does it.
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure>;
}

/// Context of one run of a command.
pub(super) struct CommandContext<'a> {
    pub(super) place: &'a SwitchAddress,
    pub(super) out: Out<'a>,
    session: Option<Session>,
}

impl<'a> CommandContext<'a> {
    pub(super) fn new(place: &'a SwitchAddress, out: Out<'a>) -> Self {
        Self { place, out, session: None }
    }

    /// The connection to the switch, and the output beside it.
    pub(super) async fn connected(&mut self) -> Result<(&mut Session, &mut Out<'a>), Failure> {
        let session = match self.session.take() {
            Some(session) => session,
            None => switch::connect(self.place).await?,
        };
        Ok((self.session.insert(session), &mut self.out))
    }

    /// The connection to the switch.
    pub(super) async fn session(&mut self) -> Result<&mut Session, Failure> {
        Ok(self.connected().await?.0)
    }

    /// Asks, and prints the answer.
    pub(super) async fn show(&mut self, request: &Message) -> Result<(), Failure> {
        let (session, out) = self.connected().await?;
        let (xid, reply) = session.ask(request).await?;
        out.reply(session.version, xid, &reply)
    }

    /// Asks for a description or statistics, and prints the answer.
    pub(super) async fn describe(&mut self, body: MultipartRequestBody) -> Result<(), Failure> {
        self.show(&Message::MultipartRequest(MultipartRequest { more: false, body })).await
    }

    /// Asks for a description or statistics.
    pub(super) async fn statistics(
        &mut self,
        body: MultipartRequestBody,
    ) -> Result<MultipartReplyBody, Failure> {
        self.session().await?.statistics(body).await
    }

    /// Has the switch carry out a message, and waits until it is done.
    pub(super) async fn change(&mut self, message: Message) -> Result<(), Failure> {
        self.session().await?.change(vec![message]).await
    }

    /// Closes the connection, if there is one.
    pub(super) async fn end(&mut self) {
        if let Some(session) = self.session.take() {
            session.end().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Out;

    #[test]
    fn values_obey_no_terminal_and_stay_the_same() {
        let (mut printed, value) = (Vec::new(), json!({"name": "a\u{1b}\u{7f}\u{9b}31mé"}));
        Out::new(&mut printed, true, true).record("", || value.clone()).unwrap();
        let text = String::from_utf8(printed).unwrap();
        assert!(!text.trim_end().contains(char::is_control), "{text:?}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }
}
