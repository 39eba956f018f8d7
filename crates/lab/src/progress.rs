//! Progress of a run: a bar on a terminal, plain lines elsewhere.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Shows how far a run is. Everything goes to standard error.
#[derive(Debug)]
pub struct RunProgress {
    bar: Option<ProgressBar>,
    quiet: bool,
    done: u64,
    total: u64,
}

impl RunProgress {
    /// A run of `total` steps; `quiet` shows nothing at all.
    #[must_use]
    pub fn new(total: u64, quiet: bool) -> Self {
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::new(total);
            let template = "{bar:20} {pos}/{len} {elapsed} gone, {eta} left  {wide_msg}";
            // A template that does not parse leaves the default style, which shows the same.
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        Self { bar, quiet, done: 0, total }
    }

    /// A step begins.
    pub fn begin(&mut self, what: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(what.to_owned());
        } else if !self.quiet {
            files::eprint_line(format_args!("[{:>3}/{}] {what}", self.done + 1, self.total));
        }
    }

    /// Steps done, and all of them.
    #[must_use]
    pub fn steps(&self) -> (u64, u64) {
        (self.done, self.total)
    }

    /// `steps` steps are to be done beside those that were planned.
    pub fn more(&mut self, steps: u64) {
        self.total += steps;
        if let Some(bar) = &self.bar {
            bar.set_length(self.total);
        }
    }

    /// `steps` steps are done.
    pub fn advance(&mut self, steps: u64) {
        self.done = (self.done + steps).min(self.total);
        if let Some(bar) = &self.bar {
            bar.set_position(self.done);
        }
    }

    /// Something that the user should see at once.
    pub fn say(&self, line: &str) {
        let print = || files::eprint_line(format_args!("{line}"));
        match &self.bar {
            Some(bar) => bar.suspend(print),
            None if !self.quiet => print(),
            None => {}
        }
    }
}

impl Drop for RunProgress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
