//! The console on a terminal: a page that is drawn anew every second, and below it the line that is
//! edited.
//!
//! The lowest rows are a scrolling region of their own (DECSTBM, ECMA-48 and DEC STD 070), in which
//! the line editor and all messages stay; a thread draws the page above it between saving and
//! restoring the cursor, each time in one write. So neither knows of the other. Text that does not
//! fit below the page has the whole terminal until the next line.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, Editor, Helper};
use signal_hook::consts::{SIGHUP, SIGTERM};

use crate::console::Console;
use crate::page::WIDTH;
use crate::runner::{Next, Output, Runner};
use crate::usage::EXIT_INTERRUPTED;
use crate::words;

/// Rows below the page: two for messages, one for the line that is edited.
const ROWS_BELOW: u16 = 3;

/// Time between two drawings of the page.
const PERIOD: Duration = Duration::from_secs(1);

/// Time between two looks of the thread that draws, whether it is to end or to draw.
const STEP: Duration = Duration::from_millis(50);

/// Columns and rows of the terminal.
fn size() -> (usize, u16) {
    let (width, rows) = ::terminal::size().unwrap_or((WIDTH, 24));
    (width, u16::try_from(rows).unwrap_or(u16::MAX))
}

/// One write of all bytes, so that it cannot mix with what the line editor writes. A terminal that
/// is gone shows as the end of the input.
fn write(bytes: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(bytes.as_bytes()).and_then(|()| out.flush());
}

/// Draws the page. The sequences are those of ECMA-48 and, for the cursor, of the VT100.
struct Screen {
    /// Rows of the terminal for which the scrolling region was set; 0 where there is none.
    rows: u16,
    has_colour: bool,
    /// Whether a long text has the terminal, until the next line.
    is_paused: bool,
}

impl Screen {
    fn new() -> Self {
        let has_colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self { rows: 0, has_colour, is_paused: false }
    }

    /// Draws the page, or takes the screen down where it is off.
    fn draw(&mut self, console: &mut Console) {
        if self.is_paused {
            return;
        }
        let (width, rows) = size();
        if !console.is_screen_on() || rows <= ROWS_BELOW + 1 {
            self.leave();
            return;
        }
        let first = rows - ROWS_BELOW + 1;
        let mut text = match self.rows {
            // Clears all, keeps the lowest rows for the line editor, and puts the cursor there.
            0 => format!("\x1b[2J\x1b[{first};{rows}r\x1b[{rows};1H"),
            old if old == rows => String::new(),
            // The line editor is at work: its cursor and its line stay.
            _ => format!("\x1b7\x1b[{first};{rows}r\x1b8"),
        };
        self.rows = rows;
        text += "\x1b7";
        let lines = console.page(width);
        for row in 1..=rows - ROWS_BELOW {
            let line = lines.get(usize::from(row) - 1).map_or("", String::as_str);
            match (row, self.has_colour) {
                (1, true) => text += &format!("\x1b[{row};1H\x1b[1m{line}\x1b[m\x1b[K"),
                _ => text += &format!("\x1b[{row};1H{line}\x1b[K"),
            }
        }
        text += "\x1b8";
        write(&text);
    }

    /// Leaves the terminal to a long text; whether the page was there.
    fn pause(&mut self) -> bool {
        let was_there = self.rows != 0;
        self.leave();
        self.is_paused |= was_there;
        was_there
    }

    /// Draws the page again after a long text.
    fn resume(&mut self, console: &mut Console) {
        if std::mem::take(&mut self.is_paused) {
            self.draw(console);
        }
    }

    /// Gives the whole terminal back to the line editor.
    fn leave(&mut self) {
        if self.rows != 0 {
            write(&format!("\x1b[r\x1b[{};1H\r\n", self.rows));
            self.rows = 0;
        }
    }
}

/// The thread that draws. Dropping it gives the terminal back.
struct Painter {
    screen: Arc<Mutex<Screen>>,
    is_ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Painter {
    fn start(runner: &Runner) -> std::io::Result<Self> {
        let mut first = Screen::new();
        // Before the line editor writes its prompt, because this clears the terminal.
        first.draw(&mut runner.console());
        let screen = Arc::new(Mutex::new(first));
        let is_terminated = Arc::new(AtomicBool::new(false));
        for signal in [SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&is_terminated))?;
        }
        let modes = tcgetattr(std::io::stdin())?;
        let is_ended = Arc::new(AtomicBool::new(false));
        let (ended, drawn, runner) = (Arc::clone(&is_ended), Arc::clone(&screen), runner.clone());
        let thread = std::thread::Builder::new().name("screen".to_owned()).spawn(move || {
            let mut drawn_at: Option<Instant> = None;
            while !ended.load(Ordering::SeqCst) {
                if is_terminated.load(Ordering::SeqCst) {
                    terminate(&runner, &drawn, &modes);
                }
                if drawn_at.is_none_or(|at| at.elapsed() >= PERIOD) {
                    let mut console = runner.console();
                    lock(&drawn).draw(&mut console);
                    drawn_at = Some(Instant::now());
                }
                std::thread::sleep(STEP);
            }
        })?;
        Ok(Self { screen, is_ended, thread: Some(thread) })
    }
}

/// Ends the process after SIGTERM or SIGHUP, with the report and the terminal as it was: the line
/// editor waits for a key and cannot be asked to.
fn terminate(runner: &Runner, screen: &Mutex<Screen>, modes: &Termios) -> ! {
    let report = runner.console().finish().join("\n");
    lock(screen).leave();
    // A terminal that is gone has no modes.
    let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, modes);
    write(&format!("{report}\n"));
    std::process::exit(EXIT_INTERRUPTED.into())
}

/// Locks the screen, always behind the console. A panic while it was drawn leaves rows at most.
fn lock(screen: &Mutex<Screen>) -> MutexGuard<'_, Screen> {
    screen.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Painter {
    fn drop(&mut self) {
        self.is_ended.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            // It ends by itself within a step; a panic in it has been reported.
            let _ = thread.join();
        }
        lock(&self.screen).leave();
    }
}

struct TerminalOutput<'a> {
    painter: &'a Painter,
}

impl Output for TerminalOutput<'_> {
    fn show(&mut self, text: &str) {
        if text.lines().count() < usize::from(ROWS_BELOW) {
            write(&format!("{text}\n"));
            return;
        }
        let hint = match lock(&self.painter.screen).pause() {
            true => "(the page comes back with the next line, also an empty one)\n",
            false => "",
        };
        write(&format!("{text}\n{hint}"));
    }

    fn page(&mut self, console: &mut Console) {
        match console.is_screen_on() {
            true => lock(&self.painter.screen).draw(console),
            false => write(&format!("{}\n", console.page(size().0).join("\n"))),
        }
    }

    fn redraw(&mut self, console: &mut Console) {
        let mut screen = lock(&self.painter.screen);
        screen.rows = 0;
        screen.draw(console);
    }

    fn error(&mut self, text: &str) {
        // The place and the reason stand first; they must not scroll away.
        let room = (usize::from(ROWS_BELOW) - 1) * size().0;
        let text = format!("error: {text}");
        match text.chars().count() < room {
            true => write(&format!("{text}\n")),
            false => {
                let head: String = text.chars().take(room.saturating_sub(4)).collect();
                write(&format!("{head}...\n"));
            }
        }
    }
}

/// Completion for the line editor: the words that fit in place of the one before the cursor.
struct WordHelper {
    ports: usize,
    screen: Arc<Mutex<Screen>>,
}

impl Completer for WordHelper {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _context: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let (start, mut found) = words::complete(line.get(..at).unwrap_or(line), self.ports);
        // The next word can follow at once.
        if let [only] = &mut found[..] {
            only.push(' ');
        }
        // The editor lists them, each in as many columns as the longest.
        let longest = found.iter().map(String::len).max().unwrap_or(0) + 2;
        let in_a_row = (size().0 / longest).max(1);
        if found.len() > 1 && found.len().div_ceil(in_a_row) >= usize::from(ROWS_BELOW) {
            lock(&self.screen).pause();
        }
        Ok((start, found))
    }
}

impl Hinter for WordHelper {
    type Hint = String;
}

impl Highlighter for WordHelper {}
impl Validator for WordHelper {}
impl Helper for WordHelper {}

type LineEditor = Editor<WordHelper, DefaultHistory>;

fn editor(ports: usize, screen: Arc<Mutex<Screen>>) -> rustyline::Result<LineEditor> {
    let config = Config::builder()
        .completion_type(CompletionType::List)
        .completion_show_all_if_ambiguous(true)
        .auto_add_history(true)
        .max_history_size(1_000)?
        .build();
    let mut editor = Editor::with_config(config)?;
    editor.set_helper(Some(WordHelper { ports, screen }));
    Ok(editor)
}

/// Carries out what is typed, until the end of the input, `quit`, or two signals. The history is
/// that of the session: nothing is left behind.
///
/// # Errors
/// When the terminal cannot be used or no thread can be started.
pub(crate) fn run(runner: &Runner) -> anyhow::Result<()> {
    {
        let painter = Painter::start(runner)?;
        let mut editor = editor(runner.console().count(), Arc::clone(&painter.screen))?;
        let mut output = TerminalOutput { painter: &painter };
        loop {
            // The terminal sends a signal where Ctrl-C comes between two lines.
            let line = match runner.take_interrupt() {
                true => Err(ReadlineError::Interrupted),
                false => editor.readline("weir gen> "),
            };
            if line.is_ok() {
                let mut console = runner.console();
                lock(&painter.screen).resume(&mut console);
            }
            let next = match line {
                Ok(line) => runner.line(&line, &mut output).0,
                Err(ReadlineError::Interrupted) => Next::Interrupted,
                Err(ReadlineError::Eof) => Next::Quit,
                Err(error) => return Err(error.into()),
            };
            match next {
                Next::More => {}
                Next::Quit => break,
                // Ctrl-C stops the ports first, and ends the console where none transmits.
                Next::Interrupted if !runner.console().is_transmitting() => break,
                Next::Interrupted => {
                    let report = runner.console().finish().join("\n");
                    output.show(&report);
                }
            }
            for notice in runner.console().notices() {
                output.show(&notice);
            }
        }
    }
    let report = runner.console().finish().join("\n");
    write(&format!("{report}\n"));
    Ok(())
}
