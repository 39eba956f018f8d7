//! Help texts: the short form of `-h`, with one line an option, and what belongs to one app.
//!
//! Both forms are made from the one tree of commands, so that no option has two texts to keep: the
//! short text of an option is the first clause of the long one.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Arg, Command, ValueEnum};
use controller::apps::AppName;

/// Columns of a line of the short form.
const COLUMNS: usize = 100;

/// Prints the help that a command line asks for.
pub(crate) fn print(command: Command, words: &[OsString], error: clap::Error) -> ExitCode {
    if let Some(app) = app_of(words) {
        return crate::ended("controller", files::print(&controller::cli::app_help(app)));
    }
    let is_short = words.iter().any(|word| word == "-h");
    match decorated(command, is_short).try_get_matches_from(words) {
        Err(fresh) if !fresh.use_stderr() => crate::shell::print(fresh),
        Ok(_) | Err(_) => crate::shell::print(error),
    }
}

/// The one app of `weir controller APP --help`.
fn app_of(words: &[OsString]) -> Option<AppName> {
    let end = words.iter().position(|word| word == "-h" || word == "--help")?;
    let [.., program, app] = words.get(..end)? else { return None };
    let app = AppName::from_str(app.to_str()?, false).ok();
    app.filter(|_| program == "controller")
}

/// The tree of commands as help shows it: options that belong to every command once, with the
/// command that has them.
pub(crate) fn decorated(mut command: Command, is_short: bool) -> Command {
    command.build();
    shown(command, is_short, &[])
}

fn shown(command: Command, is_short: bool, known: &[String]) -> Command {
    let is_known = |arg: &Arg| known.iter().any(|id| arg.get_id() == id.as_str());
    let globals: Vec<String> = command
        .get_arguments()
        .filter(|arg| arg.is_global_set())
        .map(|arg| arg.get_id().to_string())
        .collect();
    let left_out = command.get_arguments().any(is_known);
    let options = command.get_opts().filter(|arg| !is_known(arg));
    let widest = options.map(width).max().unwrap_or_default();
    let mut command = command.mut_args(|arg| match (is_known(&arg), is_short) {
        (true, _) => arg.hide(true),
        (false, true) => short(arg, COLUMNS.saturating_sub(widest)),
        (false, false) => arg,
    });
    let after = command.get_after_help().map(ToString::to_string);
    let after = after.filter(|_| is_short).map(|text| first_paragraph(&text));
    if let Some(after) = after {
        command = command.after_help(after);
    }
    if left_out {
        let above = command.get_bin_name().and_then(|name| name.rsplit_once(' '));
        let above = above.map_or("weir", |(above, _)| above);
        let note = format!("{above} --help has the options that every command takes.");
        let after = command.get_after_help().map_or(String::new(), |text| format!("{text}\n\n"));
        command = command.after_help(after + &note);
    }
    command.mut_subcommands(|sub| shown(sub, is_short, &globals))
}

/// Name of an option's value without what may be left out, where it is long.
fn value_name(arg: &Arg) -> Option<String> {
    const LONG: usize = 16;
    let name = arg.get_value_names()?.first()?.to_string();
    let parts = name.split('[').map(|part| part.split_once(']').map_or(part, |(_, rest)| rest));
    Some(if name.len() > LONG { parts.collect() } else { name })
}

/// Columns before the text of an option: `  -x, --long <VALUE>  `.
fn width(arg: &Arg) -> usize {
    let value = value_name(arg).map_or(0, |name| name.len() + "[=<>]".len());
    "  -x, --".len() + arg.get_long().map_or(0, str::len) + value + "  ".len()
}

/// An option with as much of the first clause of its text, and of its values, as fits.
fn short(arg: Arg, columns: usize) -> Arg {
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let mut text = fitting(first_clause(&help), columns);
    if arg.get_id() == "help" {
        text = "Print help; --help has all".to_owned();
    }
    let mut left = columns.saturating_sub(text.len());
    let mut fits = |words: Vec<&str>, title: &str| {
        let length = title.len() + words.iter().map(|word| word.len() + 2).sum::<usize>();
        let does = length <= left;
        left = left.saturating_sub(if does { length } else { 0 });
        does
    };
    let defaults = arg.get_default_values().iter().filter_map(|value| value.to_str()).collect();
    let shows_default = fits(defaults, " [default: ]");
    let values = arg.get_possible_values();
    let shows_values = fits(values.iter().map(|v| v.get_name()).collect(), " [possible values: ]");
    let arg = match value_name(&arg) {
        // The program ends after it has printed its help.
        Some(name) => arg.value_name(&*name.leak()),
        None => arg,
    };
    let arg = arg.help(text).hide_env(true).hide_default_value(!shows_default);
    arg.hide_possible_values(!shows_values)
}

/// The text, or its part up to a comma or a word that fits.
fn fitting(text: &str, columns: usize) -> String {
    const REST: &str = " ..";
    if text.len() <= columns {
        return text.to_owned();
    }
    let room = columns.saturating_sub(REST.len());
    let end = text.char_indices().map(|(at, _)| at).take_while(|at| *at <= room).last();
    let kept = text.get(..end.unwrap_or_default()).unwrap_or(text);
    match (kept.rsplit_once(", "), kept.rsplit_once(' ')) {
        (Some((clause, _)), _) if clause.len() > columns / 2 => clause.to_owned(),
        (_, Some((words, _))) => words.to_owned() + REST,
        (_, None) => kept.to_owned(),
    }
}

/// The text up to the end of its first clause. The default stays behind it.
fn first_clause(text: &str) -> &str {
    /// A title, such as `TLS: `, ends before this.
    const TITLE: usize = 14;
    let ends = ["; ", ": ", ". ", ", for example ", ", such as ", " (", " [default"];
    let behind = |end: &str| text.match_indices(end).map(|(at, _)| at).find(|at| *at >= TITLE);
    let end = ends.into_iter().filter_map(behind).min();
    text.get(..end.unwrap_or(text.len())).unwrap_or(text).trim_end_matches('.')
}

fn first_paragraph(text: &str) -> String {
    text.split("\n\n").next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use clap::{Command, CommandFactory};

    use super::{COLUMNS, decorated, first_clause, fitting};
    use crate::Arguments;

    /// Each command with its words, from the program on.
    fn all(command: &Command, words: &str, take: &mut dyn FnMut(&Command, &str)) {
        take(command, words);
        for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
            all(sub, &format!("{words} {}", sub.get_name()), take);
        }
    }

    #[test]
    fn the_short_help_has_one_line_an_option() {
        let tree = decorated(Arguments::command().term_width(COLUMNS), true);
        let mut wrong = Vec::new();
        all(&tree, "weir", &mut |command, words| {
            let text = command.clone().term_width(COLUMNS).render_help().to_string();
            let options = text.split("\nOptions").nth(1).unwrap_or_default();
            for line in options.lines().skip(1).take_while(|line| line.starts_with(' ')) {
                if !line.trim_start().starts_with('-') {
                    wrong.push(format!("{words}: {}", line.trim()));
                }
            }
        });
        assert!(wrong.is_empty(), "options of more than a line:\n{}", wrong.join("\n"));
    }

    #[test]
    fn options_of_the_connection_are_shown_once() {
        let tree = decorated(Arguments::command(), false);
        let mut ctl = tree.find_subcommand("ctl").unwrap().clone();
        let has = |text: &str| text.contains("--private-key") && text.contains("--timeout");
        assert!(has(&ctl.render_long_help().to_string()));
        for group in ["Flow entries:", "Groups:", "Meters:", "Weir's own switch:"] {
            assert!(ctl.render_long_help().to_string().contains(group), "{group}");
        }
        let show = ctl.find_subcommand_mut("dump-flows").unwrap().render_long_help().to_string();
        assert!(!has(&show) && show.contains("--rsort"), "{show}");
        assert!(
            show.contains("weir ctl --help has the options that every command takes"),
            "{show}"
        );
    }

    #[test]
    fn a_text_that_is_too_long_ends_at_a_comma_or_a_word() {
        assert_eq!(fitting("all of it", 9), "all of it");
        assert_eq!(fitting("the first part, and more of it", 24), "the first part");
        assert_eq!(fitting("words without end or comma", 17), "words without ..");
    }

    #[test]
    fn a_clause_ends_before_its_details() {
        for (text, clause) in [
            ("Leave testpmd out", "Leave testpmd out"),
            ("The running bridge; list-bridges lists them", "The running bridge"),
            ("A rate of the link, for example 100M, or none", "A rate of the link"),
            ("The place of it [default: here]", "The place of it"),
            ("TLS: the certificate, in PEM", "TLS: the certificate, in PEM"),
        ] {
            assert_eq!(first_clause(text), clause);
        }
    }
}
