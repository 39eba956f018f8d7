//! For shells and `man`: completions and manual pages, made of the
//! same tree of commands as the help.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_complete::Shell;

/// Arguments of `weir completions`.
#[derive(Args)]
#[command(after_help = "Examples:
  weir completions bash > /usr/share/bash-completion/completions/weir
  weir completions zsh > ~/.zfunc/_weir")]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Arguments of `weir man`.
#[derive(Args)]
#[command(after_help = "Examples:\n  weir man | man -l -\n  weir man /usr/local/share/man/man1")]
pub(crate) struct ManArgs {
    /// The folder for the pages of all commands, a file each; without it the page of weir itself
    /// goes to the standard output
    dir: Option<PathBuf>,
}

/// Writes the completions of the whole tree of commands.
///
/// # Errors
/// When the output cannot be written.
pub(crate) fn completions(
    mut command: Command,
    arguments: &CompletionsArgs,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "weir", &mut script);
    out.write_all(&script)
}

/// Writes the manual page of the program, or those of all commands to a folder.
///
/// # Errors
/// When the folder or the output cannot be written.
pub(crate) fn man(command: Command, arguments: &ManArgs, out: &mut dyn Write) -> io::Result<()> {
    match &arguments.dir {
        Some(dir) => pages(command, dir),
        None => clap_mangen::Man::new(command).render(out),
    }
}

fn pages(command: Command, dir: &Path) -> io::Result<()> {
    let place =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", dir.display()));
    fs::create_dir_all(dir).map_err(place)?;
    clap_mangen::generate_to(command, dir).map_err(place)
}

/// An error of the command line whose suggestions stand best first.
pub(crate) fn best_first(mut error: clap::Error) -> clap::Error {
    use clap::error::{ContextKind, ContextValue};

    let kinds =
        [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::SuggestedValue];
    for kind in kinds {
        // clap sorts them by likeness, the least alike first.
        if let Some(ContextValue::Strings(names)) = error.get(kind) {
            let best_first = names.iter().rev().cloned().collect();
            error.insert(kind, ContextValue::Strings(best_first));
        }
    }
    error
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::io::Write;
    use std::process::{Command as Process, Stdio};

    use clap::{CommandFactory, Parser, ValueEnum};
    use clap_complete::Shell;

    use super::{Command, CompletionsArgs, ManArgs, best_first, completions, man};
    use crate::Arguments;

    #[test]
    fn completions_know_every_command_and_bash_reads_them() {
        for &shell in Shell::value_variants() {
            let mut script = Vec::new();
            completions(Arguments::command(), &CompletionsArgs { shell }, &mut script).unwrap();
            let text = String::from_utf8(script).unwrap();
            for word in ["dump-flows", "switch", "completions", "add-meters"] {
                assert!(text.contains(word), "{shell}: {word} is missing");
            }
            if shell == Shell::Bash {
                let mut bash =
                    Process::new("bash").arg("-n").stdin(Stdio::piped()).spawn().unwrap();
                bash.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
                assert!(bash.wait().unwrap().success(), "bash does not read the script");
            }
        }
    }

    #[test]
    fn there_is_a_page_for_every_command() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("man1");
        man(Arguments::command(), &ManArgs { dir: Some(dir.clone()) }, &mut Vec::new()).unwrap();
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
        let mut whole = Vec::new();
        man(Arguments::command(), &ManArgs { dir: None }, &mut whole).unwrap();
        assert!(String::from_utf8(whole).unwrap().contains(".TH weir 1"));
    }

    #[test]
    fn the_likest_word_is_suggested_first() {
        let error = |words: &[&str]| {
            let error = Arguments::try_parse_from(words).err().unwrap();
            best_first(error).to_string()
        };
        let tip = error(&["weir", "ctl", "dump-flow"]);
        let first = tip.split('\'').nth(3).unwrap_or_default();
        assert_eq!(first, "dump-flows", "{tip}");
        let tip = error(&["weir", "ctl", "add-metr"]);
        assert_eq!(tip.split('\'').nth(3), Some("add-meter"), "{tip}");
    }
}
