//! `cargo xtask docs`: keeps the parts of the documentation that a program prints, and builds the
//! book.
//!
//! A part stands between `<!-- output of: COMMAND -->` and `<!-- end of output -->`, so that help
//! texts, tables of rows, examples and the crate graph in the documentation are the real ones. The
//! book is made by MkDocs, which fails on a link or an anchor that leads nowhere. It must never run
//! anything but `weir ... --help`, `list`, `--markdown` and `lab report`, the drawings of the
//! graph, print files, and MkDocs.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use clap::Args;

use crate::graph::{self, Graph};
use crate::tidy::SourceFile;
use crate::{shell, tidy};

const BEGIN: &str = "<!-- output of: ";
const BEGIN_CLOSE: &str = " -->";
const END: &str = "<!-- end of output -->";

/// End of a command that asks for the help of each subcommand too.
const OF_ALL: &str = ", and of each command";

/// Columns of a help text in the documentation.
const COLUMNS: &str = "100";

/// The packages that make the book.
const REQUIREMENTS: &str = "contrib/book/requirements.txt";

/// Options of `cargo xtask docs`.
#[derive(Debug, Args)]
pub(crate) struct DocsOptions {
    /// Change nothing; fail when a part is out of date
    #[arg(long)]
    pub(crate) check: bool,
    /// Do not install MkDocs; without it the book is not built
    #[arg(long)]
    pub(crate) no_install: bool,
}

/// Renews, or checks, every printed part, and builds the book. The result is the reason why the
/// book was not built, if it was not.
///
/// # Errors
/// When a command fails, a part has no end, a link leads nowhere, or with `--check` a part is out
/// of date.
pub(crate) fn run(root: &Path, options: &DocsOptions) -> Result<Option<String>> {
    let mut stale = Vec::new();
    for file in SourceFile::tracked(root)? {
        let Some(text) = file.text.as_deref().filter(|text| text.contains(BEGIN)) else { continue };
        if !file.is("md") {
            continue;
        }
        let fresh =
            renew(text, &|command| output_of(root, command)).with_context(|| file.path.clone())?;
        if fresh == text {
            continue;
        }
        if options.check {
            stale.push(file.path);
        } else {
            std::fs::write(root.join(&file.path), fresh)?;
            println!("{} renewed", file.path);
        }
    }
    if !stale.is_empty() {
        bail!("out of date: {}; run `cargo xtask docs`", stale.join(", "));
    }
    results(root, options.check)?;
    book(root, !options.no_install)
}

/// Draws, or checks, all that is shown of the committed results: a page, a picture, README's table.
fn results(root: &Path, is_check: bool) -> Result<()> {
    let mut draw = Command::new("python3");
    draw.arg("-B").arg(root.join("contrib/results/page.py")).arg(shell::debug_weir(root)?);
    shell::run(draw.args(is_check.then_some("--check")))
}

/// Builds the book, where MkDocs is there or may be installed.
fn book(root: &Path, install: bool) -> Result<Option<String>> {
    let wanted = std::fs::read_to_string(root.join(REQUIREMENTS)).context(REQUIREMENTS)?;
    let folder = shell::target(root).join("peers/weir/book");
    let program = folder.join("bin/mkdocs");
    let installed = folder.join("installed.txt");
    if std::fs::read_to_string(&installed).ok().as_deref() != Some(wanted.as_str()) {
        if !install {
            return Ok(Some("the book: MkDocs is missing (PyPI)".to_owned()));
        }
        println!("installing MkDocs into a virtual environment of its own");
        shell::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
        let mut pip = Command::new(folder.join("bin/pip"));
        pip.args(["install", "-q", "--disable-pip-version-check", "-r"]);
        shell::run(pip.arg(root.join(REQUIREMENTS)))?;
        std::fs::write(&installed, wanted)?;
    }
    let site = shell::target(root).join("book");
    let mut build = Command::new(program);
    build.current_dir(root).args(["build", "--strict", "--quiet", "--site-dir"]).arg(&site);
    // MkDocs keeps no compiled hooks beside the sources.
    build.env("PYTHONDONTWRITEBYTECODE", "1").env("NO_MKDOCS_2_WARNING", "1");
    shell::run(&mut build)?;
    let fetched = fetches(&site)?;
    if !fetched.is_empty() {
        bail!("pages of the book fetch from another host: {}", fetched.join(", "));
    }
    println!("{}", site.join("index.html").display());
    Ok(None)
}

/// The pages below a folder that a browser would complete from another host.
fn fetches(folder: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(fetches(&path)?);
        } else if path.extension().is_some_and(|e| e == "html") {
            let text = std::fs::read_to_string(&path)?;
            let is_fetched = |tag: &str| {
                let is_link = tag.starts_with("link") && !tag.contains("canonical");
                (tag.contains(" src=\"http") || is_link && tag.contains("href=\"http"))
                    && !tag.starts_with("a ")
            };
            if text.split('<').map(|rest| rest.split('>').next().unwrap_or(rest)).any(is_fetched) {
                found.push(path.display().to_string());
            }
        }
    }
    Ok(found)
}

/// The text with each part replaced by what `output_of` its command gives.
fn renew(text: &str, output_of: &dyn Fn(&str) -> Result<String>) -> Result<String> {
    let mut out = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        out.push_str(line);
        out.push('\n');
        let command = line.strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(BEGIN_CLOSE));
        let Some(command) = command else { continue };
        if !lines.by_ref().any(|line| line == END) {
            bail!("the part `{command}` has no line `{END}`");
        }
        let printed = output_of(command)?;
        let printed = printed.trim_end();
        let language = match command.rsplit_once('.') {
            Some((_, "patch")) => "diff",
            Some((_, "toml")) => "toml",
            Some(_) | None => "text",
        };
        if command.ends_with("--markdown") || printed.starts_with('|') || command.ends_with(OF_ALL)
        {
            out.push_str(&format!("{printed}\n{END}\n"));
        } else {
            out.push_str(&format!("```{language}\n{printed}\n```\n{END}\n"));
        }
    }
    Ok(out)
}

fn output_of(root: &Path, command: &str) -> Result<String> {
    if let Some(command) = command.strip_suffix(OF_ALL) {
        let ["weir", words @ .., "--help"] = &*command.split_whitespace().collect::<Vec<_>>()
        else {
            bail!("`{command}` is no `weir .. --help`");
        };
        let mut text = String::new();
        help_of_all(&shell::debug_weir(root)?, words, &mut text)?;
        return Ok(text);
    }
    match command.split_whitespace().collect::<Vec<_>>().as_slice() {
        ["cargo", "xtask", "graph"] => Ok(graph::text(&graph_of(root)?)),
        ["cargo", "xtask", "graph", "--markdown"] => Ok(graph::markdown(&graph_of(root)?)),
        ["weir", words @ .., last @ ("--help" | "list" | "--markdown")] => {
            printed(&shell::debug_weir(root)?, &[words, &[*last]].concat())
        }
        ["rows", "of", name, "in", path] => {
            let text = std::fs::read_to_string(root.join(path)).context((*path).to_owned())?;
            rows(&text, name).with_context(|| (*path).to_owned())
        }
        ["cat", path] => {
            std::fs::read_to_string(root.join(path)).with_context(|| (*path).to_owned())
        }
        _ => bail!(
            "`{command}` is none of: cargo xtask graph, weir .. --help, list, --markdown, rows of \
             .. in .., cat"
        ),
    }
}

/// The output of the program, as it is shown in a page.
fn printed(weir: &Path, words: &[&str]) -> Result<String> {
    let text = shell::capture(Command::new(weir).args(words).env("COLUMNS", COLUMNS))?;
    Ok(text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n"))
}

/// Adds the help of a command and of all its subcommands, each under a heading.
fn help_of_all(weir: &Path, words: &[&str], text: &mut String) -> Result<()> {
    let help = printed(weir, &[words, &["--help"]].concat())?;
    let title = [&["weir"], words].concat().join(" ");
    text.push_str(&format!("## {title}\n\n```text\n{}\n```\n\n", help.trim_end()));
    for name in commands(&help) {
        help_of_all(weir, &[words, &[name]].concat(), text)?;
    }
    Ok(())
}

/// The subcommands that a help text lists before its options, but `help` itself.
fn commands(help: &str) -> impl Iterator<Item = &str> {
    let listed = help.lines().take_while(|line| !line.starts_with("Options"));
    let mut are_listed = false;
    let names = listed.filter_map(move |line| {
        if line.ends_with(':') && !line.starts_with(' ') {
            are_listed = line != "Arguments:";
        }
        // Lines that go on with the text above are indented further.
        line.strip_prefix("  ").filter(|_| are_listed)?.split_once(' ')
    });
    names.map(|(name, _)| name).filter(|name| !name.is_empty() && *name != "help")
}

/// A table of the rows of an enum, or of a macro (`name!`), in a file. A row is
/// `Variant "name" "sentence";`, or a doc comment and `Variant "name";`.
fn rows(text: &str, name: &str) -> Result<String> {
    let head = if name.ends_with('!') { format!("{name} {{") } else { format!("enum {name} {{") };
    let (_, rest) = text.split_once(&format!("{head}\n")).context(name.to_owned())?;
    let lines: Vec<&str> = rest.lines().take_while(|line| line.trim() != "}").collect();
    let mut table = "| name | meaning |\n|---|---|\n".to_owned();
    for row in lines.split_inclusive(|line| line.ends_with(';')) {
        let row = row.join("\n");
        let (docs, code): (Vec<&str>, Vec<&str>) = row
            .trim_end_matches(';')
            .lines()
            .map(str::trim)
            .partition(|line| line.starts_with("///"));
        // A backslash at the end of a line joins it with the next one.
        let code = code.join("\n").replace("\\\n", "");
        let quoted: Vec<&str> = code.split('"').collect();
        let docs: Vec<&str> = docs.iter().map(|line| line.trim_start_matches(['/', ' '])).collect();
        let (name, meaning) = match quoted.as_slice() {
            [_, name, _] => (*name, docs.join(" ")),
            [_, name, _, sentence, _] => (*name, (*sentence).to_owned()),
            _ => bail!("a row is other: {row}"),
        };
        table.push_str(&format!("| `{name}` | {meaning} |\n"));
    }
    Ok(table)
}

fn graph_of(root: &Path) -> Result<Graph> {
    Graph::from_metadata(&tidy::metadata(root)?)
}

#[cfg(test)]
mod tests {
    use super::{commands, renew, rows};
    use anyhow::Result;

    fn echo(command: &str) -> Result<String> {
        Ok(format!("printed by {command}\n"))
    }

    #[test]
    fn a_part_is_replaced_and_the_rest_stays() {
        let text = "head\n<!-- output of: x y -->\nold\nolder\n<!-- end of output -->\ntail\n";
        let fresh = renew(text, &echo).unwrap();
        let expected = "head\n<!-- output of: x y -->\n```text\nprinted by x y\n```\n\
                        <!-- end of output -->\ntail\n";
        assert_eq!(fresh, expected);
        assert_eq!(renew(&fresh, &echo).unwrap(), fresh);
    }

    #[test]
    fn tables_are_not_fenced() {
        let text = "<!-- output of: t -->\n<!-- end of output -->\n";
        let fresh = renew(text, &|_| Ok("| a |\n".into())).unwrap();
        assert_eq!(fresh, "<!-- output of: t -->\n| a |\n<!-- end of output -->\n");
    }

    #[test]
    fn a_part_without_an_end_is_refused() {
        let error = renew("<!-- output of: x -->\n", &echo).unwrap_err();
        assert!(error.to_string().contains("`x` has no line"), "{error}");
    }

    #[test]
    fn the_commands_of_a_help_text_are_found() {
        let help = "Ask\n\nCommands:\n  show   Ports\n         and more\n  help   Print\n\n\
                    Options:\n  -h  x\n";
        assert_eq!(commands(help).collect::<Vec<_>>(), ["show"]);
        let groups = "Ask\n\nFlow entries:\n  add  One\n\nGroups:\n  del  One\n\nOptions, of every \
                      command:\n  -h  x\n";
        assert_eq!(commands(groups).collect::<Vec<_>>(), ["add", "del"]);
        let arguments = "Arguments:\n  [X]  One\n\nOptions:\n  -h  x\n";
        assert_eq!(commands(arguments).count(), 0);
    }

    #[test]
    fn rows_become_a_table() {
        let text = "rows! {\n    pub enum Why {\n        A \"a\" \"One.\";\n        B \"b\"\n\
                    \x20           \"Two \\\n             lines.\";\n    }\n}\n";
        let table = "| name | meaning |\n|---|---|\n| `a` | One. |\n| `b` | Two lines. |\n";
        assert_eq!(rows(text, "Why").unwrap(), table);
        let text = "all! {\n    /// One.\n    A \"a\";\n    /// Two\n    /// lines.\n\
                    \x20   B \"b\";\n}\n";
        assert_eq!(rows(text, "all!").unwrap(), table);
        assert!(rows(text, "Other").is_err());
    }
}
