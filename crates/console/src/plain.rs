//! The console without a screen: lines in, lines out, for pipes, files and terminals that cannot
//! move their cursor.
//!
//! A page is printed where a command asks for one. At the end of the input, ports with a number of
//! packets to send are waited for, all others are stopped, and the stats page is printed; a signal
//! does the same at once.

use std::io::{BufRead, IsTerminal, Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use crate::console::Console;
use crate::page::WIDTH;
use crate::runner::{Next, Output, Runner};
use crate::stderr::{bounded, print_line};

/// Time between two looks for ports that have stopped by themselves.
const TICK: Duration = Duration::from_millis(100);

/// Longest line in bytes.
const LINE_MAX: u64 = 64 << 10;

/// The end of a run without a screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlainEnd {
    /// All lines were carried out.
    Done,
    /// Some line was not.
    Errors,
    /// A signal came.
    Interrupted,
}

/// Writes results as lines.
pub(crate) struct PlainOutput<'a> {
    out: &'a mut dyn Write,
    /// Why something could not be written; nothing is written after it.
    failed: Option<std::io::Error>,
}

impl<'a> PlainOutput<'a> {
    /// Into `out`; errors go to the standard error.
    pub(crate) fn new(out: &'a mut dyn Write) -> Self {
        Self { out, failed: None }
    }

    /// The outcome of writing the output.
    ///
    /// # Errors
    /// The first: a full disk, or a reader that has gone.
    pub(crate) fn written(self) -> std::io::Result<()> {
        self.failed.map_or(Ok(()), Err)
    }
}

impl Output for PlainOutput<'_> {
    fn show(&mut self, text: &str) {
        if self.failed.is_none() {
            let written = writeln!(self.out, "{text}").and_then(|()| self.out.flush());
            self.failed = written.err();
        }
    }

    fn page(&mut self, console: &mut Console) {
        let text = console.page(WIDTH).join("\n");
        self.show(&text);
    }

    fn redraw(&mut self, _console: &mut Console) {}

    fn error(&mut self, text: &str) {
        let _ = self.out.flush();
        print_line(format_args!("weir gen: {}", bounded(text)));
    }
}

/// Lines of the standard input, or what is wrong with them, read by a thread of its own so that a
/// signal is seen meanwhile.
fn input_lines(prompt: Option<&'static str>) -> std::io::Result<Receiver<Result<String, String>>> {
    let (sender, receiver) = sync_channel(1);
    std::thread::Builder::new().name("input".to_owned()).spawn(move || {
        let mut input = std::io::stdin().lock();
        loop {
            if let Some(prompt) = prompt {
                let mut out = std::io::stdout();
                let _ = out.write_all(prompt.as_bytes()).and_then(|()| out.flush());
            }
            let (line, is_last) = match read_line(&mut input) {
                Ok(Some(line)) => (line, false),
                Ok(None) => break,
                Err(error) => (Err(format!("cannot be read: {error}")), true),
            };
            if sender.send(line).is_err() || is_last {
                break;
            }
        }
    })?;
    Ok(receiver)
}

/// One line without its end, or what is wrong with it; none at the end of the input.
fn read_line(input: &mut dyn BufRead) -> std::io::Result<Option<Result<String, String>>> {
    let mut line = Vec::new();
    // With the end of the line.
    Read::take(&mut *input, LINE_MAX + 1).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.pop_if(|last| *last == b'\n').is_some() {
        let _ = line.pop_if(|last| *last == b'\r');
    } else if line.len() as u64 > LINE_MAX {
        input.skip_until(b'\n')?;
        let column = LINE_MAX + 1;
        return Ok(Some(Err(format!("column {column}: a line has at most {LINE_MAX} bytes"))));
    }
    Ok(Some(String::from_utf8(line).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let column = String::from_utf8_lossy(valid).chars().count() + 1;
        format!("column {column}: this is no UTF-8")
    })))
}

/// Carries out the lines of the standard input.
///
/// # Errors
/// When no thread can be started, or the output cannot be written: then no further line is carried
/// out, and all ports stop.
pub(crate) fn run(runner: &Runner, out: &mut dyn Write) -> std::io::Result<PlainEnd> {
    let prompt = std::io::stdin().is_terminal().then_some("weir gen> ");
    let lines = input_lines(prompt)?;
    let mut output = PlainOutput::new(out);
    let mut end = PlainEnd::Done;
    let mut number = 0_u64;
    let mut noticed: Option<Instant> = None;
    loop {
        if runner.take_interrupt() {
            end = PlainEnd::Interrupted;
            break;
        }
        // Counting costs more than most lines do.
        if noticed.is_none_or(|at| at.elapsed() >= TICK) {
            noticed = Some(Instant::now());
            for notice in runner.console().notices() {
                output.show(&notice);
            }
        }
        let line = match lines.recv_timeout(TICK) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => {
                if !wait_for_counts(runner, &mut output) {
                    end = PlainEnd::Interrupted;
                }
                break;
            }
        };
        number += 1;
        let mut numbered = NumberedOutput { output: &mut output, number };
        let (next, is_right) = match line {
            Ok(line) => runner.line(&line, &mut numbered),
            Err(why) => {
                numbered.error(&why);
                (Next::More, false)
            }
        };
        if !is_right {
            end = PlainEnd::Errors;
        }
        if output.failed.is_some() {
            break;
        }
        match next {
            Next::More => {}
            Next::Quit => break,
            Next::Interrupted => {
                end = PlainEnd::Interrupted;
                break;
            }
        }
    }
    finish(runner, &mut output);
    output.written()?;
    Ok(end)
}

/// Stops all ports and prints the report.
pub(crate) fn finish(runner: &Runner, output: &mut dyn Output) {
    let text = runner.console().finish().join("\n");
    output.show(&text);
}

/// Waits for ports that have a number of packets to send; false when a signal came.
fn wait_for_counts(runner: &Runner, output: &mut PlainOutput<'_>) -> bool {
    while runner.console().has_end() {
        if !runner.wait(TICK) {
            return false;
        }
        for notice in runner.console().notices() {
            output.show(&notice);
        }
    }
    true
}

/// Errors with the number of the line of input.
struct NumberedOutput<'a, 'b> {
    output: &'a mut PlainOutput<'b>,
    number: u64,
}

impl Output for NumberedOutput<'_, '_> {
    fn show(&mut self, text: &str) {
        self.output.show(text);
    }

    fn page(&mut self, console: &mut Console) {
        self.output.page(console);
    }

    fn redraw(&mut self, console: &mut Console) {
        self.output.redraw(console);
    }

    fn error(&mut self, text: &str) {
        self.output.error(&format!("line {}, {text}", self.number));
    }
}

#[cfg(test)]
mod tests {
    use super::{LINE_MAX, read_line};

    #[test]
    fn lines_are_read_one_by_one_whatever_is_in_them() {
        let most = "x".repeat(LINE_MAX as usize);
        let text = format!("start all\r\n\n{most}\n{most}x\n");
        let mut input = [text.as_bytes(), "gr\u{fc}n ".as_bytes(), b"\xc3(\nend"].concat();
        let mut input = std::io::Cursor::new(&mut input);
        let mut line = || read_line(&mut input).unwrap();
        assert_eq!(line(), Some(Ok("start all".to_owned())));
        assert_eq!(line(), Some(Ok(String::new())));
        assert_eq!(line(), Some(Ok(most)));
        assert_eq!(line(), Some(Err("column 65537: a line has at most 65536 bytes".to_owned())));
        assert_eq!(line(), Some(Err("column 6: this is no UTF-8".to_owned())));
        assert_eq!(line(), Some(Ok("end".to_owned())));
        assert_eq!(line(), None);
    }
}
