//! Manual pages, made of the same tree of commands as the help, and refusals of the command line.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue};
use clap::{Args, Command};
use ctl::CtlTip;

use crate::flow_language;

/// Arguments of `weir man`.
#[derive(Args)]
#[command(after_help = "Examples:
  weir man | man -l -
  weir man --flows | man -l -
  weir man /usr/local/share/man/man1")]
pub(crate) struct ManArgs {
    /// The folder for the pages of all commands, a file each; without it the page of weir itself
    /// goes to the standard output. The page of the flow language goes to a folder man7 beside a
    /// folder man1
    dir: Option<PathBuf>,
    /// Print the page of the flow language, weir-flows(7)
    #[arg(long, conflicts_with = "dir")]
    flows: bool,
    /// Print it as Markdown
    #[arg(long, requires = "flows")]
    markdown: bool,
}

/// Writes the manual page of the program, or those of all commands to a folder.
///
/// # Errors
/// When the folder or the output cannot be written.
pub(crate) fn man(command: Command, arguments: &ManArgs, out: &mut dyn Write) -> io::Result<()> {
    match &arguments.dir {
        Some(dir) => pages(command, dir),
        None if arguments.markdown => out.write_all(flow_language::markdown().as_bytes()),
        None if arguments.flows => out.write_all(flow_language::manual().as_bytes()),
        None => clap_mangen::Man::new(command).render(out),
    }
}

fn pages(command: Command, dir: &Path) -> io::Result<()> {
    let place =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", dir.display()));
    fs::create_dir_all(dir).map_err(place)?;
    clap_mangen::generate_to(command, dir).map_err(place)?;
    let of_commands = dir.file_name().is_some_and(|name| name == "man1");
    let beside = if of_commands { dir.with_file_name("man7") } else { dir.to_owned() };
    fs::create_dir_all(&beside).map_err(place)?;
    fs::write(beside.join("weir-flows.7"), flow_language::manual()).map_err(place)
}

/// Kinds of suggestions that clap makes.
const SUGGESTED: [ContextKind; 3] =
    [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::SuggestedValue];

/// An error of the command line with what helps: the suggestions best first, why a word was not
/// taken for a bridge, and why there is no such word of `ovs-ofctl`.
pub(crate) fn with_tips(mut error: clap::Error, tip: Option<CtlTip>) -> clap::Error {
    let unknown = [ContextKind::InvalidArg, ContextKind::InvalidSubcommand];
    let absent = unknown.into_iter().find_map(|kind| match error.get(kind) {
        Some(ContextValue::String(word)) => ctl::absent(word),
        Some(_) | None => None,
    });
    // The tip is about a word too many, where the first one was to be a bridge.
    let has_surplus = matches!(error.get(ContextKind::InvalidArg),
        Some(ContextValue::String(word)) if !word.starts_with('-'));
    let tip = tip.filter(|_| has_surplus).map(|tip| tip.text);
    let tips = [absent.map(str::to_owned), tip].into_iter().flatten();
    let tips: Vec<StyledStr> = tips.map(Into::into).collect();
    if !tips.is_empty() {
        SUGGESTED.into_iter().for_each(|kind| drop(error.remove(kind)));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
        return error;
    }
    for kind in SUGGESTED {
        // clap sorts them by likeness, the least alike first.
        if let Some(ContextValue::Strings(names)) = error.get(kind) {
            let best_first = names.iter().rev().cloned().collect();
            error.insert(kind, ContextValue::Strings(best_first));
        }
    }
    error
}

/// Prints a help text or a mistake in the arguments, and gives the exit code.
pub(crate) fn print(error: clap::Error) -> ExitCode {
    let is_odd =
        |word: OsString| matches!(files::printable(&word.to_string_lossy()), Cow::Owned(_));
    if error.use_stderr() && std::env::args_os().any(is_odd) {
        crate::print_line(format_args!("{}", error.render()));
        return ExitCode::from(crate::EXIT_USAGE);
    }
    let printed = error.print().and_then(|()| io::stdout().flush()).map_err(files::output_error);
    match (error.use_stderr(), printed) {
        (true, _) => ExitCode::from(crate::EXIT_USAGE),
        (false, printed) => crate::ended("help", printed),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::{CommandFactory, Parser};

    use super::{Command, ManArgs, man, with_tips};
    use crate::Arguments;

    #[test]
    fn there_is_a_page_for_every_command() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("man1");
        man(
            Arguments::command(),
            &ManArgs { dir: Some(dir.clone()), flows: false, markdown: false },
            &mut Vec::new(),
        )
        .unwrap();
        let files = std::fs::read_dir(&dir).unwrap();
        let names: BTreeSet<String> =
            files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        let mut tree = Arguments::command();
        tree.build();
        // One that only the program itself calls is shown nowhere.
        let is_shown = |program: &&Command| program.get_name() != "help" && !program.is_hide_set();
        for program in tree.get_subcommands().filter(is_shown) {
            let page = format!("weir-{}.1", program.get_name());
            assert!(names.contains(&page), "{page} is missing of {names:?}");
        }
        let page = std::fs::read_to_string(dir.join("weir-ctl-add-flow.1")).unwrap();
        assert!(page.contains(".TH weir-ctl-add-flow 1"), "{page}");
        assert!(page.contains("Add a flow entry"), "{page}");
        assert!(folder.path().join("man7/weir-flows.7").is_file());
        let mut whole = Vec::new();
        man(
            Arguments::command(),
            &ManArgs { dir: None, flows: false, markdown: false },
            &mut whole,
        )
        .unwrap();
        assert!(String::from_utf8(whole).unwrap().contains(".TH weir 1"));
    }

    #[test]
    fn the_likest_word_is_suggested_first() {
        let error = |words: &[&str]| {
            let error = Arguments::try_parse_from(words).err().unwrap();
            with_tips(error, None).to_string()
        };
        let tip = error(&["weir", "ctl", "dump-flow"]);
        let first = tip.split('\'').nth(3).unwrap_or_default();
        assert_eq!(first, "dump-flows", "{tip}");
        let tip = error(&["weir", "ctl", "add-metr"]);
        assert_eq!(tip.split('\'').nth(3), Some("add-meter"), "{tip}");
    }
}
