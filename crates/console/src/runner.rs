//! Carries lines out one after the other, as they come from a script, a pipe or a terminal.
//!
//! The console is locked for one command at a time, so that the screen is drawn while a command
//! waits. A signal ends a wait, and everything that is still to be done.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::console::{Console, Outcome};
use crate::script::ScriptLine;
use crate::stderr::bounded;

/// Time between two looks for a signal during a wait.
const STEP: Duration = Duration::from_millis(20);

/// The output to which the results of commands go.
pub(crate) trait Output {
    /// Text that a command asked for.
    fn show(&mut self, text: &str);
    /// A page was asked for, or the screen was switched on or off.
    fn page(&mut self, console: &mut Console);
    /// The screen is to be drawn anew.
    fn redraw(&mut self, console: &mut Console);
    /// A command was not carried out.
    fn error(&mut self, text: &str);
}

/// The state of the console after a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// It goes on.
    More,
    /// It ends as asked.
    Quit,
    /// A signal came.
    Interrupted,
}

/// Carries lines out on a console.
#[derive(Clone)]
pub(crate) struct Runner {
    console: Arc<Mutex<Console>>,
    is_interrupted: Arc<AtomicBool>,
}

impl Runner {
    /// Over `console`; a signal sets `is_interrupted`.
    pub(crate) fn new(console: Console, is_interrupted: Arc<AtomicBool>) -> Self {
        Self { console: Arc::new(Mutex::new(console)), is_interrupted }
    }

    /// The console, locked.
    pub(crate) fn console(&self) -> MutexGuard<'_, Console> {
        // A panic of another thread leaves settings and session whole: commands change copies.
        self.console.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a signal came; it is forgotten.
    pub(crate) fn take_interrupt(&self) -> bool {
        self.is_interrupted.swap(false, Ordering::SeqCst)
    }

    /// Carries out one line and all that follows from it. Errors go to the output; the result says
    /// too whether there was one.
    pub(crate) fn line(&self, text: &str, output: &mut dyn Output) -> (Next, bool) {
        let parsed = self.console().parse(text);
        let command = match parsed {
            Ok(Some(command)) => command,
            Ok(None) => return (Next::More, true),
            Err(error) => {
                self.report_error(&error.to_string(), output);
                return (Next::More, false);
            }
        };
        self.commands([ScriptLine { place: String::new(), command }].into(), output)
    }

    /// Carries out commands; the first that fails ends them.
    pub(crate) fn commands(
        &self,
        mut commands: VecDeque<ScriptLine>,
        output: &mut dyn Output,
    ) -> (Next, bool) {
        while let Some(ScriptLine { place, command }) = commands.pop_front() {
            let outcome = self.console().carry_out(&command);
            match outcome {
                Ok(Outcome::Done) => {}
                Ok(Outcome::Show(text)) => output.show(&text),
                Ok(Outcome::Page) => output.page(&mut self.console()),
                Ok(Outcome::Redraw) => output.redraw(&mut self.console()),
                Ok(Outcome::Wait(time)) => {
                    if !self.wait(time) {
                        return (Next::Interrupted, true);
                    }
                }
                // Scripts are read whole: none of their commands is another script.
                Ok(Outcome::Script(lines)) => commands.extend(lines),
                Ok(Outcome::Quit) => return (Next::Quit, true),
                Err(error) if place.is_empty() => {
                    self.report_error(&error, output);
                    return (Next::More, false);
                }
                Err(error) => {
                    self.report_error(&format!("{place}: {error}"), output);
                    return (Next::More, false);
                }
            }
        }
        (Next::More, true)
    }

    /// An error, for the output and the log.
    fn report_error(&self, error: &str, output: &mut dyn Output) {
        let error = bounded(error);
        self.console().note(&error);
        output.error(&error);
    }

    /// Waits; false when a signal came, which is forgotten.
    pub(crate) fn wait(&self, time: Duration) -> bool {
        let start = Instant::now();
        loop {
            if self.take_interrupt() {
                return false;
            }
            let left = time.saturating_sub(start.elapsed());
            if left.is_zero() {
                return true;
            }
            std::thread::sleep(left.min(STEP));
        }
    }
}
