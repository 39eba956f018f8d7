//! The reader of the TOML file, and its errors: line, column, key, what is allowed.
//!
//! The keys and what they take are those of the flags; nothing is listed here a second time.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use openflow::text::nearest;
use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};

use super::SwitchArgs;
use super::problem::Problem;

/// A fault in a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The file, when it was one.
    pub file: Option<PathBuf>,
    /// Line and column, from 1, when the text has the fault.
    pub place: Option<(usize, usize)>,
    /// The bridge's name, when there are several and one is at fault.
    pub bridge: Option<String>,
    /// The key or flag, when one is at fault.
    pub key: Option<String>,
    /// The fault, and the values that are allowed.
    pub message: String,
}

impl ConfigError {
    pub(super) fn plain(key: Option<&str>, message: String) -> Self {
        Self { file: None, place: None, bridge: None, key: key.map(str::to_owned), message }
    }

    pub(super) fn in_file(mut self, file: &Path) -> Self {
        self.file = Some(file.to_owned());
        self
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{}:", file.display())?;
        }
        if let Some((line, column)) = self.place {
            write!(f, "{line}:{column}:")?;
        }
        if self.file.is_some() || self.place.is_some() {
            f.write_str(" ")?;
        }
        if let Some(bridge) = &self.bridge {
            write!(f, "bridge {bridge}: ")?;
        }
        match &self.key {
            Some(key) => write!(f, "{key}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for ConfigError {}

/// Reads the text of a configuration file. Does no input or output.
///
/// # Errors
/// Reads a configuration. An error has line, column and key; the caller adds the file's name.
pub fn parse_config(text: &str) -> Result<SwitchArgs, ConfigError> {
    let document = DeTable::parse(text).map_err(|error| ConfigError {
        place: error.span().map(|span| line_column(text, span.start)),
        ..ConfigError::plain(None, one_line(error.message()))
    })?;
    let span = document.span();
    let (bridges, top): (DeTable<'_>, DeTable<'_>) =
        document.into_inner().into_iter().partition(|(key, _)| key.get_ref() == BRIDGE);
    let file =
        File { text, keys: keys(), top: Spanned::new(span, top), tables: tables(text, bridges)? };
    let mut args = file.read(&file.top)?;
    for (index, table) in file.tables.iter().enumerate() {
        let read = file.read(table).and_then(|bridge| match bridge.key_of_the_process() {
            Some(key) => Err(file.error(table, &Problem::new(key, OF_THE_PROCESS))),
            None => Ok(bridge),
        });
        args.bridge.push(read.map_err(|error| file.of_bridge(error, index))?);
    }
    let bridges = args.bridges();
    args.check(&bridges).map_err(|problem| {
        let Some(index) = problem.bridge else { return file.error(&file.top, &problem) };
        // What the table does not say stands outside.
        let own = file.tables.get(index).filter(|table| has(table.get_ref(), problem.key));
        file.of_bridge(file.error(own.unwrap_or(&file.top), &problem), index)
    })?;
    Ok(args)
}

/// The error for a problem with a key of a text that was read without error, with its place where
/// the text has the key.
pub(super) fn locate(text: &str, problem: &Problem) -> ConfigError {
    let plain = || ConfigError::plain(Some(problem.key), problem.message.clone());
    let Ok(document) = DeTable::parse(text) else { return plain() };
    let span = document.span();
    let (bridges, top): (DeTable<'_>, DeTable<'_>) =
        document.into_inner().into_iter().partition(|(key, _)| key.get_ref() == BRIDGE);
    let Ok(tables) = tables(text, bridges) else { return plain() };
    let file = File { text, keys: keys(), top: Spanned::new(span, top), tables };
    let index = problem.bridge.filter(|index| *index < file.tables.len());
    let Some(index) = index else { return file.error(&file.top, problem) };
    let own = file.tables.get(index).filter(|table| has(table.get_ref(), problem.key));
    file.of_bridge(file.error(own.unwrap_or(&file.top), problem), index)
}

/// The key of the tables of several bridges.
const BRIDGE: &str = "bridge";

const OF_THE_PROCESS: &str = "is the whole process's: it stands outside of the tables [[bridge]]";

/// A file that is being read.
struct File<'a> {
    text: &'a str,
    /// All keys that there are.
    keys: Vec<String>,
    top: Spanned<DeTable<'a>>,
    tables: Vec<Spanned<DeTable<'a>>>,
}

/// The tables `[[bridge]]`.
fn tables<'a>(text: &str, bridges: DeTable<'a>) -> Result<Vec<Spanned<DeTable<'a>>>, ConfigError> {
    let no_table = |at: usize| ConfigError {
        place: Some(line_column(text, at)),
        ..ConfigError::plain(Some(BRIDGE), "is a list of tables, each written [[bridge]]".into())
    };
    let mut tables = Vec::new();
    for (key, value) in bridges {
        let start = key.span().start;
        let begin = value.span().start;
        let value = value.into_inner();
        if value.is_table() {
            return Err(no_table(start.saturating_sub(1)));
        }
        let DeValue::Array(entries) = value else { return Err(no_table(begin)) };
        for entry in entries {
            let span = entry.span();
            let DeValue::Table(table) = entry.into_inner() else {
                return Err(no_table(span.start));
            };
            tables.push(Spanned::new(span, table));
        }
    }
    Ok(tables)
}

impl File<'_> {
    /// Reads one table: types and keys.
    fn read(&self, table: &Spanned<DeTable<'_>>) -> Result<SwitchArgs, ConfigError> {
        unknown_key(self.text, table.get_ref(), &self.keys)?;
        let document = table.get_ref();
        SwitchArgs::deserialize(Deserializer::from(table.clone())).map_err(|error| {
            let span = error.span().unwrap_or(0..0);
            let key = key_at(document, &span);
            let mut message = one_line(error.message());
            if let Some(allowed) = key.and_then(allowed) {
                message = format!("{message}; {allowed}");
            }
            let wrong = key.and_then(|key| wrong_entry(self.text, document, key));
            let place = Some(line_column(self.text, wrong.unwrap_or(span.start)));
            ConfigError { place, ..ConfigError::plain(key, message) }
        })
    }

    /// The error for a problem with a key of this table.
    fn error(&self, table: &Spanned<DeTable<'_>>, problem: &Problem) -> ConfigError {
        let place = place_of(table.get_ref(), problem.key, problem.index);
        ConfigError {
            place: place.map(|at| line_column(self.text, at)),
            ..ConfigError::plain(Some(problem.key), problem.message.clone())
        }
    }

    /// The error as one of the bridge of this table.
    fn of_bridge(&self, error: ConfigError, index: usize) -> ConfigError {
        let table = self.tables.get(index).map(Spanned::get_ref);
        let named = table.and_then(|table| table.iter().find(|(key, _)| key.get_ref() == "name"));
        let name = named.and_then(|(_, value)| value.get_ref().as_str()).map(str::to_owned);
        // A bridge whose name alone is wrong is found by its line.
        ConfigError { bridge: Some(name.unwrap_or_else(|| format!("br{index}"))), ..error }
    }
}

fn has(table: &DeTable<'_>, key: &str) -> bool {
    table.keys().any(|held| held.get_ref() == key)
}

/// The flags as `clap` knows them: the one list of keys.
fn flags() -> Command {
    SwitchArgs::augment_args(Command::new("weir"))
}

fn keys() -> Vec<String> {
    let not_keys = ["config", "check-config"];
    flags()
        .get_arguments()
        .filter_map(|arg| arg.get_long())
        .filter(|long| !not_keys.contains(long))
        .map(str::to_owned)
        .collect()
}

/// The values that a key takes, from its flag's help.
fn allowed(key: &str) -> Option<String> {
    let command = flags();
    let arg = command.get_arguments().find(|arg| arg.get_long() == Some(key))?;
    let value = arg.get_value_names()?.first()?;
    Some(format!("{key} takes {value}: {}", arg.get_help()?))
}

fn unknown_key(text: &str, document: &DeTable<'_>, keys: &[String]) -> Result<(), ConfigError> {
    for key in document.keys() {
        let name: &str = key.get_ref();
        if keys.iter().any(|known| known == name) {
            continue;
        }
        let near = nearest(name, keys.iter().map(String::as_str));
        let hint = near.map_or_else(String::new, |near| format!("did you mean {near}? "));
        let message = format!("unknown key; {hint}allowed are: {}", keys.join(", "));
        let place = Some(line_column(text, key.span().start));
        return Err(ConfigError { place, ..ConfigError::plain(Some(name), message) });
    }
    Ok(())
}

/// The key whose name or value the span touches.
fn key_at<'a>(document: &'a DeTable<'_>, span: &Range<usize>) -> Option<&'a str> {
    document
        .iter()
        .find(|(key, value)| {
            let whole = key.span().start.min(value.span().start)..value.span().end;
            whole.start <= span.start && span.start < whole.end.max(whole.start + 1)
        })
        .map(|(key, _)| -> &str { key.get_ref() })
}

/// The place of the value of a key, or of one entry of its list.
fn place_of(document: &DeTable<'_>, key: &str, index: Option<usize>) -> Option<usize> {
    let (_, value) = document.iter().find(|(held, _)| held.get_ref() == key)?;
    match (value.get_ref(), index) {
        (DeValue::Array(entries), Some(index)) => {
            entries.get(index).map(|entry| entry.span().start)
        }
        _ => Some(value.span().start),
    }
}

/// The place of the first wrong entry of a key's list: the first that is wrong when it is alone.
/// (An error of a list's entry carries the span of the whole list.)
fn wrong_entry(text: &str, document: &DeTable<'_>, key: &str) -> Option<usize> {
    let (_, value) = document.iter().find(|(held, _)| held.get_ref() == key)?;
    let DeValue::Array(entries) = value.get_ref() else { return None };
    entries
        .iter()
        .find(|entry| {
            let alone = text.get(entry.span()).unwrap_or("");
            toml::from_str::<SwitchArgs>(&format!("{key} = [{alone}]")).is_err()
        })
        .map(|entry| entry.span().start)
}

/// Line and column of a byte, both from 1; columns count characters.
fn line_column(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
    (line, column)
}

fn one_line(message: &str) -> String {
    message.trim().replace('\n', ", ")
}

#[cfg(test)]
mod tests {
    use super::{allowed, keys, parse_config};

    #[test]
    fn every_key_says_what_it_takes() {
        for key in keys() {
            assert!(allowed(&key).is_some(), "{key}");
        }
    }

    #[test]
    fn a_full_file_is_read() {
        let text = r#"
            dpid = "00000000000000a1"
            port = ["1=null:a", "null:b"]
            controller = ["tcp:127.0.0.1:6653"]
            listen = ["ptcp:6634:127.0.0.1"]
            protocols = ["OpenFlow13"]
            fail-mode = "secure"
            control = "/tmp/x.sock"
            tables = 10
            max-entries = 5
            inactivity-probe = 0
            max-backoff = 0.5
            mfr-desc = "me"
        "#;
        let args = parse_config(text).unwrap();
        let config = args.resolve().unwrap();
        let [bridge] = &config.bridges[..] else { panic!("one bridge") };
        assert_eq!((bridge.ports.len(), bridge.ports[1].number.0), (2, 2));
        assert_eq!((bridge.tables, bridge.inactivity_probe_s), (10, 0));
        assert_eq!(bridge.max_backoff.as_millis(), 500);
    }

    #[test]
    fn errors_say_line_column_key_and_what_is_allowed() {
        let cases: &[(&str, &[&str])] = &[
            ("prot = []\n", &["1:1: prot: unknown key", "did you mean port?", "allowed are: dpid"]),
            ("dpid = 5\n", &["1:8: dpid: ", "integer", "HEX16"]),
            ("\ndpid = \"xyz\"\n", &["2:8: dpid: ", "1 to 16 hex digits"]),
            ("port = [\"1=null:a\", \"1=null:b\"]\n", &["1:21: port: ", "number 1 is given twice"]),
            (
                "port = [\"memory:a\", \"memory:a?end=b\", \"7=memory:a?frame_max=100\"]\n",
                &["1:39: port: ", "a, end a is another port's device already"],
            ),
            (
                "local = \"tap:br0\"\nport = [\"tap:br0\"]\n",
                &["1:9: local: ", "br0 is another port's device already"],
            ),
            ("port = [\"0=null:a\"]\n", &["1:9: port: port number", "must be 1 to"]),
            ("port = [\"null:a\"]\nvlan = [\"1=acess:5\"]\n", &["2:9: vlan: ", "access:VID"]),
            ("port = [\"null:a\"]\nvlan = [\"access:5\"]\n", &["names no port", "1=access:5"]),
            ("port = [\"null:a\"]\nqueue = [\"1:1,mim=5%\"]\n", &["2:10: queue: ", "min=PERCENT"]),
            (
                "port = [\"null:a\"]\nqueue = [\"1:1,min=60%\", \"1:2,min=50%\"]\n",
                &["2:25: queue: ", "more than the port's"],
            ),
            ("port = [\"null:a\"]\nrate = [\"2=5M\"]\n", &["2:9: rate: ", "no port 2"]),
            ("port = [\"null:a\"]\nvlan = [\"2=trunk\"]\n", &["2:9: vlan: ", "no port 2"]),
            (
                "port = [\"null:a\"]\nvlan = [\"1=trunk\", \"1=trunk:5\"]\n",
                &["2:20: vlan: ", "port 1 is given twice"],
            ),
            ("port = [\"1=nul:a\"]\n", &["1:9: port: ", "unknown port kind \"nul\"", "null"]),
            ("port = [\"1=null:a?x=1\"]\n", &["port: ", "no option \"x\""]),
            ("port = \"1=null:a\"\n", &["1:8: port: ", "expected a sequence"]),
            ("port = [\"70000=null:a\"]\n", &["1:9: port: ", "OpenFlow10"]),
            ("tables = 0\n", &["1:10: tables: ", "1 to 254"]),
            ("tables = 300\n", &["1:10: tables: ", "1 to 254"]),
            ("tables = \"x\"\n", &["1:10: tables: ", "invalid type"]),
            ("max-entries = 0\n", &["1:15: max-entries: ", "at least 1"]),
            ("max-backoff = 0\n", &["1:15: max-backoff: ", "at least 0.1"]),
            ("max-backoff = 0.05\n", &["1:15: max-backoff: ", "at least 0.1"]),
            ("max-backoff = -1\n", &["1:15: max-backoff: ", "-1 is not a time in seconds"]),
            ("max-backoff = nan\n", &["1:15: max-backoff: ", "not a time in seconds"]),
            ("max-backoff = \"8\"\n", &["1:15: max-backoff: ", "expected a number of seconds"]),
            ("max-backoff = 8\n", &[]),
            ("protocols = [\"OpenFlow16\"]\n", &["1:14: protocols: ", "OpenFlow14, OpenFlow15"]),
            ("port = [\n \"null:a\",\n \"nul:b\"\n]\n", &["3:2: port: ", "nul"]),
            ("controller = [\"10.0.0.1\"]\n", &["1:15: controller: ", "tcp:HOST"]),
            ("controller = [\"ptcp:6653\"]\n", &["1:15: controller: ", "listen"]),
            ("listen = [\"udp:1\"]\n", &["1:11: listen: ", "ptcp:"]),
            ("protocols = []\n", &[]),
            ("fail-mode = \"alone\"\n", &["1:13: fail-mode: ", "secure, standalone"]),
            ("fail-mode = \"open\"\n", &["1:13: fail-mode: ", "use one of: secure"]),
            ("dpid = \"1\"\ndpid = \"2\"\n", &["2:1: ", "duplicate key"]),
            ("dpid = \n", &["1:"]),
            ("[switch]\ndpid = \"1\"\n", &["1:2: switch: unknown key"]),
        ];
        for (text, parts) in cases {
            match parse_config(text) {
                Ok(_) => assert!(parts.is_empty(), "{text:?} was taken"),
                Err(error) => {
                    let message = error.to_string();
                    assert!(!parts.is_empty(), "{text:?}: {message}");
                    for part in *parts {
                        assert!(
                            message.contains(part),
                            "{text:?} gives {message:?}, without {part:?}"
                        );
                    }
                }
            }
        }
    }
}
