//! Progress of a run: a bar on a terminal, plain lines elsewhere.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Shows how far a run is. Everything goes to standard error.
#[derive(Debug)]
pub struct RunProgress {
    /// Hidden where lines or nothing are shown.
    bar: ProgressBar,
    has_lines: bool,
}

impl RunProgress {
    /// A run of `total` steps; `quiet` shows nothing at all.
    pub fn new(total: u64, quiet: bool) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        if is_terminal && !quiet {
            bar.set_draw_target(ProgressDrawTarget::stderr());
            let template = "{bar:20} {pos}/{len} {elapsed} gone, {eta} left  {wide_msg}";
            // A template that does not parse leaves the default style, which shows the same.
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        Self { bar, has_lines: !is_terminal && !quiet }
    }

    /// A step begins.
    pub fn begin(&self, what: &str) {
        self.bar.set_message(what.to_owned());
        if self.has_lines {
            let (done, all) = self.steps();
            files::eprint_line(format_args!("[{:>3}/{all}] {what}", done + 1));
        }
    }

    /// Steps done, and all of them.
    pub fn steps(&self) -> (u64, u64) {
        (self.bar.position(), self.bar.length().unwrap_or_default())
    }

    /// `steps` steps are to be done beside those that were planned.
    pub fn more(&self, steps: u64) {
        self.bar.inc_length(steps);
    }

    /// `steps` steps are done.
    pub fn advance(&self, steps: u64) {
        let (done, all) = self.steps();
        self.bar.set_position((done + steps).min(all));
    }

    /// Something that the user should see at once.
    pub fn say(&self, line: &str) {
        if self.has_lines || !self.bar.is_hidden() {
            self.bar.suspend(|| files::eprint_line(format_args!("{line}")));
        }
    }
}

impl Drop for RunProgress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
