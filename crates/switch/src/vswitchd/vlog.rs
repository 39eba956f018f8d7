//! The log in the form of Open vSwitch's vlog, with levels by module and destination that change
//! while the daemon runs.
//!
//! A line is `TIME|NUMBER|MODULE(THREAD)|LEVEL|TEXT`. Destinations are standard error and a file;
//! what is set for `syslog` is kept and shown, and nothing is sent there. Whoever logs never waits
//! for standard error, and for a file no longer than the kernel takes to append a line.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// The destinations, as columns.
const DESTINATIONS: [&str; 3] = ["console", "syslog", "file"];
const CONSOLE: usize = 0;
const FILE: usize = 2;

/// The levels by their names; `emer` is above all that is logged.
const LEVELS: [(&str, LevelFilter); 6] = [
    ("off", LevelFilter::OFF),
    ("emer", LevelFilter::OFF),
    ("err", LevelFilter::ERROR),
    ("warn", LevelFilter::WARN),
    ("info", LevelFilter::INFO),
    ("dbg", LevelFilter::DEBUG),
];

/// The levels of a module for each destination.
type Levels = [LevelFilter; DESTINATIONS.len()];

/// The log of the process.
pub(super) static VLOG: Vlog = Vlog {
    state: Mutex::new(State {
        every: [LevelFilter::INFO; DESTINATIONS.len()],
        modules: BTreeMap::new(),
        file: None,
        has_console: true,
    }),
    lines: AtomicU64::new(0),
};

/// Levels, file and count of lines.
pub(super) struct Vlog {
    state: Mutex<State>,
    lines: AtomicU64,
}

struct State {
    every: Levels,
    /// Modules with levels of their own.
    modules: BTreeMap<String, Levels>,
    file: Option<(PathBuf, File)>,
    /// Whether anybody reads standard error.
    has_console: bool,
}

impl State {
    fn levels_of(&self, module: &str) -> Levels {
        self.modules.get(module).copied().unwrap_or(self.every)
    }
}

impl Vlog {
    /// Logs all that the process logs from now on.
    pub(super) fn begin(&'static self) {
        // Where a test has one already, that one stays.
        drop(tracing::subscriber::set_global_default(VlogSubscriber));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Logs to a file too.
    pub(super) fn open_file(&self, path: &Path) -> io::Result<()> {
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        self.state().file = Some((path.to_owned(), file));
        Ok(())
    }

    /// Opens the file of that name again, for programs that rotate logs.
    pub(super) fn reopen(&self) -> Result<(), String> {
        let path = self.state().file.as_ref().map(|(path, _)| path.clone());
        let path = path.ok_or("Logging to file not enabled")?;
        self.open_file(&path).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Logs no longer to standard error.
    pub(super) fn close_console(&self) {
        self.state().has_console = false;
    }

    /// Logs no longer to a file.
    pub(super) fn close_file(&self) {
        self.state().file = None;
    }

    /// Sets a level: words of a module, a destination and a level in any order.
    pub(super) fn set(&self, spec: &str) -> Result<(), String> {
        let (mut module, mut destination, mut level) = (None, None, None);
        let words = spec.split([':', ',', ' ', '\t']).filter(|word| !word.is_empty());
        for word in words {
            let known = LEVELS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
            let place = DESTINATIONS.iter().position(|name| name.eq_ignore_ascii_case(word));
            match (word, known, place) {
                ("PATTERN" | "FACILITY", ..) => {
                    return Err(format!("{spec}: the form of lines does not change"));
                }
                (_, Some((_, found)), _) => level = Some(*found),
                (_, None, Some(place)) => destination = Some(place),
                (word, None, None) if word.eq_ignore_ascii_case("any") => {}
                (word, None, None) if is_module(word) => module = Some(word.to_owned()),
                (word, None, None) => {
                    return Err(format!("no destination, level, or module \"{word}\""));
                }
            }
        }
        // Open vSwitch's: a word without a level asks for everything.
        let level = level.unwrap_or(LevelFilter::DEBUG);
        let set = |levels: &mut Levels| {
            for (index, held) in levels.iter_mut().enumerate() {
                if destination.is_none_or(|wanted| wanted == index) {
                    *held = level;
                }
            }
        };
        let state = &mut *self.state();
        match module {
            Some(module) => set(state.modules.entry(module).or_insert(state.every)),
            None => {
                set(&mut state.every);
                state.modules.values_mut().for_each(set);
            }
        }
        Ok(())
    }

    /// The levels, as a table.
    pub(super) fn list(&self) -> String {
        let mut text = String::from(
            "                 console    syslog    file\n                 \
             -------    ------    ------\n",
        );
        let state = self.state();
        let every = ("ANY".to_owned(), state.every);
        for (module, levels) in std::iter::once(every).chain(state.modules.clone()) {
            let [console, syslog, file] = levels.map(level_name);
            text += &format!("{module:<16}  {console:>4}       {syslog:>4}       {file:>4}\n");
        }
        text
    }

    fn log(&self, event: &Event<'_>) {
        let (metadata, module) = (event.metadata(), module_of(event.metadata().target()));
        let mut line = Line::default();
        event.record(&mut line);
        let mut state = self.state();
        let levels = state.levels_of(module);
        let goes = |place: usize| {
            levels.get(place).is_some_and(|most: &LevelFilter| *metadata.level() <= *most)
        };
        let text = self.line(module, metadata, &line.text);
        if goes(CONSOLE) && state.has_console {
            files::log_line(&text);
        }
        if let (true, Some((_, file))) = (goes(FILE), &mut state.file) {
            // A full disk must not end the switch.
            drop(file.write_all(format!("{text}\n").as_bytes()));
        }
    }

    fn line(&self, module: &str, metadata: &Metadata<'_>, text: &str) -> String {
        let number = self.lines.fetch_add(1, Ordering::Relaxed) + 1;
        let thread = std::thread::current();
        let thread = thread.name().filter(|name| *name != "main");
        let thread = thread.map(|name| format!("({name})")).unwrap_or_default();
        let level = level_name(LevelFilter::from_level(*metadata.level()));
        let time = time_text(SystemTime::now());
        format!("{time}|{number:05}|{module}{thread}|{level}|{}", files::printable(text))
    }
}

fn is_module(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// The last part of a target such as `switch::vswitchd::unixctl`.
fn module_of(target: &str) -> &str {
    target.rsplit("::").next().unwrap_or(target)
}

fn level_name(level: LevelFilter) -> &'static str {
    match level.into_level() {
        None => "OFF",
        Some(tracing::Level::ERROR) => "ERR",
        Some(tracing::Level::WARN) => "WARN",
        Some(tracing::Level::INFO) => "INFO",
        Some(tracing::Level::DEBUG | tracing::Level::TRACE) => "DBG",
    }
}

/// `2026-11-27T00:17:24.123Z`, by the calendar of ISO 8601.
fn time_text(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (seconds, millis) = (since.as_secs(), since.subsec_millis());
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    // Howard Hinnant's "civil from days", for days after 1970: eras of 400 years from 1 March 0.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// The text of an event: its message, and its fields behind it.
#[derive(Default)]
struct Line {
    text: String,
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, format_args!("{value:?}"));
    }
}

impl Line {
    fn add(&mut self, field: &Field, value: fmt::Arguments<'_>) {
        if field.name() == "message" {
            self.text.insert_str(0, &value.to_string());
        } else {
            // Writing to a string does not fail.
            let _ = write!(self.text, " {}={value}", field.name());
        }
    }
}

/// The process's subscriber of events; spans are not used.
struct VlogSubscriber;

impl Subscriber for VlogSubscriber {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let levels = VLOG.state().levels_of(module_of(metadata.target()));
        levels.iter().any(|most| *metadata.level() <= *most)
    }

    fn register_callsite(&self, _: &'static Metadata<'static>) -> tracing::subscriber::Interest {
        // Levels change, and a decision that is kept would not.
        tracing::subscriber::Interest::sometimes()
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::DEBUG)
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        VLOG.log(event);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Mutex;
    use std::sync::atomic::AtomicU64;
    use std::time::{Duration, UNIX_EPOCH};

    use tracing::level_filters::LevelFilter;

    use super::{State, Vlog, time_text};

    #[test]
    fn times_have_their_dates() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.007Z"),
            (951_782_400, "2000-02-29T00:00:00.007Z"),
            (1_798_761_599, "2026-12-31T23:59:59.007Z"),
            (4_107_542_400, "2100-03-01T00:00:00.007Z"),
        ] {
            let time = UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_millis(7);
            assert_eq!(time_text(time), text);
        }
    }

    #[test]
    fn levels_are_set_by_words_in_any_order() {
        let (every, modules) = ([LevelFilter::INFO; 3], BTreeMap::new());
        let state = State { every, modules, file: None, has_console: true };
        let vlog = Vlog { state: Mutex::new(state), lines: AtomicU64::new(0) };
        vlog.set("vconn:dbg").unwrap();
        vlog.set("console:off").unwrap();
        vlog.set("warn file bridge").unwrap();
        let state = vlog.state();
        assert_eq!(state.every, [LevelFilter::OFF, LevelFilter::INFO, LevelFilter::INFO]);
        let vconn = [LevelFilter::OFF, LevelFilter::DEBUG, LevelFilter::DEBUG];
        assert_eq!(state.levels_of("vconn"), vconn);
        let bridge = [LevelFilter::OFF, LevelFilter::INFO, LevelFilter::WARN];
        assert_eq!(state.levels_of("bridge"), bridge);
        drop(state);
        let shown = vlog.list();
        assert!(shown.contains("bridge             OFF       INFO       WARN\n"), "{shown}");
        assert!(vlog.set("PATTERN:file:x").is_err() && vlog.set("a;b").is_err());
        assert_eq!(vlog.reopen().unwrap_err(), "Logging to file not enabled");
    }
}
