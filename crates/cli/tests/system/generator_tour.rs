//! The guided tour of docs/generator.md, run as it is written: the commands of its blocks, and what
//! they print up to figures, where a loss that is shown as zero must be zero again, whatever prints
//! it.
//!
//! It runs in a folder of its own with the repository's `contrib` in it, and what needs root in
//! network and mount namespaces of its own, behind the blocks of that kind before it.
//! `WEIR_WRITE_DOCS=1` writes what was printed into the page.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PAGE: &str = "../../docs/generator.md";
const BEGIN: &str = "```console\n";
const END: &str = "```\n";
const AS_ROOT: &str = "<!-- as root -->\n";

/// A block of commands and what they print.
#[derive(Debug)]
struct Block {
    /// Offset in the page of the text between the fences.
    start: usize,
    end: usize,
    commands: Vec<String>,
    printed: String,
    needs_root: bool,
}

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE)
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut from = 0;
    while let Some(at) = text[from..].find(BEGIN) {
        let start = from + at + BEGIN.len();
        let end = start + text[start..].find(END).expect("a block ends");
        let (commands, printed): (Vec<&str>, Vec<&str>) =
            text[start..end].lines().partition(|line| line.starts_with("$ "));
        blocks.push(Block {
            start,
            end,
            commands: commands.into_iter().map(|line| line[2..].to_owned()).collect(),
            printed: printed.join("\n"),
            needs_root: text[..start - BEGIN.len()].ends_with(AS_ROOT),
        });
        from = end;
    }
    blocks
}

/// The program of the page's Python block.
fn python(text: &str) -> &str {
    let (_, rest) = text.split_once("```python\n").unwrap();
    rest.split_once(END).unwrap().0
}

/// Waits for both ends of a pair, of which the kernel's own would not answer the first frames: no
/// person types the next command that soon.
const UNTIL_UP: &str =
    "until [ $(ip -br link show type veth | awk '$2 == \"UP\"' | wc -l) = 2 ]; do sleep 0.02; done";

/// Output of the commands, both streams, in a folder as the page assumes it.
fn output(block: &Block, before: &[&Block], text: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    std::os::unix::fs::symlink(repository.join("contrib"), folder.path().join("contrib")).unwrap();
    std::fs::write(folder.path().join("load.py"), python(text)).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_weir")).parent().unwrap();
    let commands = |block: &Block| {
        let whole = |line: &String| {
            if line.starts_with("ip link add") {
                format!("{line}; {UNTIL_UP}")
            } else {
                line.clone()
            }
        };
        block.commands.iter().map(whole).collect::<Vec<_>>().join("\n")
    };
    let mut script = String::from("exec 2>&1\n");
    for block in before {
        script += &format!("{{ {}\n}} > before.txt 2>&1\n", commands(block));
    }
    script += &format!("{}\n", commands(block));
    let mut command = Command::new("timeout");
    command.arg("120");
    if block.needs_root {
        command.args(["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child"]);
    }
    let output = command
        .args(["bash", "-c", &script])
        .current_dir(folder.path())
        .env("PATH", format!("{}:{}", program.display(), std::env::var("PATH").unwrap()))
        .env("PYTHONPATH", repository.join("python"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// The text without its figures, and without what their width changes: blanks and rules of tables.
fn shape(text: &str) -> String {
    let mut shape = String::new();
    for c in text.chars() {
        let c = if c.is_ascii_digit() { '#' } else { c };
        // A point in a figure, and the mark of a delay below the floor.
        let is_of_figure = ".*".contains(c) && shape.ends_with('#');
        let is_rule = c.is_whitespace() || "─═".contains(c) || is_of_figure;
        if !(is_rule || c == '#' && shape.ends_with('#')) {
            shape.push(c);
        }
    }
    shape
}

/// Columns that tell a loss. Frames that did not leave in time are the machine's doing.
const LOSS_COLUMNS: [&str; 3] = ["lost", "%", "lost by port"];

/// Words of which figures tell a loss, outside of tables.
const LOSS_WORDS: [&str; 4] = ["lost", "loss", "drop", "error"];

/// The figures of all sentences and rows of pages that tell a loss: whether each is a zero.
fn lossless_figures(text: &str) -> Vec<bool> {
    let tells = |clause: &&str| {
        let clause = clause.to_lowercase();
        LOSS_WORDS.iter().any(|word| clause.contains(word))
    };
    let is_figure = |c: char| !(c.is_ascii_digit() || c == '.');
    let clauses = text.lines().filter(|line| !line.starts_with('│')).flat_map(|l| l.split(','));
    let words = clauses.filter(tells).flat_map(|clause| clause.split(is_figure));
    words.filter_map(|word| word.parse::<f64>().ok()).map(|figure| figure == 0.0).collect()
}

/// The cells of all tables that tell a loss: whether each is a zero.
fn lossless_cells(text: &str) -> Vec<bool> {
    let mut columns = Vec::new();
    let mut cells = Vec::new();
    for line in text.lines().filter(|line| line.starts_with('│')) {
        let row: Vec<&str> = line.trim_matches('│').split('┆').map(str::trim).collect();
        let is_named = |column: &usize| LOSS_COLUMNS.contains(&row[*column]);
        let named: Vec<usize> = (0..row.len()).filter(is_named).collect();
        if named.is_empty() {
            let is_zero = |column: &usize| row[*column].parse() == Ok(0.0);
            cells.extend(columns.iter().map(is_zero));
        } else {
            columns = named;
        }
    }
    cells
}

/// Whether `printed` has a loss where `shown` has none.
fn has_new_loss(shown: &str, printed: &str) -> bool {
    let all = |text| [lossless_cells(text), lossless_figures(text)].concat();
    let (shown, printed) = (all(shown), all(printed));
    assert_eq!(shown.len(), printed.len(), "as many losses are told as are shown");
    shown.into_iter().zip(printed).any(|(shown, printed)| shown && !printed)
}

#[test]
fn a_loss_is_not_taken_for_another_figure() {
    let table = |sent: &str, lost: &str, share: &str| {
        format!("┌──┐\n│ stream ┆ sent ┆ lost ┆ % │\n╞══╡\n│ 0 a ┆ {sent} ┆ {lost} ┆ {share} │\n")
    };
    let shown = table("100", "0", "0.0000");
    for (printed, is_new) in [
        (table("99", "0", "0.0000"), false),
        (table("100", "7", "7.0000"), true),
        (table("100000", "1", "0.0010"), true),
    ] {
        assert_eq!(shape(&printed), shape(&shown));
        assert_eq!(has_new_loss(&shown, &printed), is_new, "{printed}");
    }
    assert!(!has_new_loss(&table("9", "5", "55.5556"), &shown));
    for (shown, printed, is_new) in [
        ("2000 packets, 0 lost", "1999 packets, 0 lost", false),
        ("2000 packets, 0 lost", "1999 packets, 1 lost", true),
        ("100 streams, 0.0 % lost", "100 streams, 0.01 % lost", true),
        ("3 received, 0% packet loss, time 9ms", "3 received, 0% packet loss, time 8ms", false),
        ("3 received, 0% packet loss, time 9ms", "2 received, 33% packet loss, time 9ms", true),
        ("52 received, 0 dropped by the port", "52 received, 9 dropped by the port", true),
        ("Rx Drops/Errors :  0/0  0/0", "Rx Drops/Errors :  0/0  0/1", true),
        ("Rx drops  0  0\nRx errors  0  0", "Rx drops  0  3\nRx errors  0  0", true),
    ] {
        assert_eq!(has_new_loss(shown, printed), is_new, "{printed}");
    }
}

fn check(needs_root: bool) {
    let text = std::fs::read_to_string(page()).unwrap();
    let write = std::env::var_os("WEIR_WRITE_DOCS").is_some();
    let mut fresh = text.clone();
    let blocks = blocks(&text);
    assert!(blocks.len() > 8, "{} blocks", blocks.len());
    // From the last one, so that the places of the others stay right.
    let chosen: Vec<&Block> =
        blocks.iter().filter(|block| block.needs_root == needs_root).collect();
    for (place, block) in chosen.iter().enumerate().rev() {
        let before = if needs_root { &chosen[..place] } else { &[] };
        let printed = output(block, before, &text);
        if write {
            let commands: String = block.commands.iter().map(|c| format!("$ {c}\n")).collect();
            fresh.replace_range(block.start..block.end, &format!("{commands}{printed}"));
        } else {
            let commands = &block.commands;
            assert_eq!(
                shape(&printed),
                shape(&block.printed),
                "{commands:?} prints:\n{printed}\nWEIR_WRITE_DOCS=1 writes it into the page"
            );
            let has_new_loss = has_new_loss(&block.printed, &printed);
            assert!(!has_new_loss, "{commands:?} lost frames:\n{printed}");
        }
    }
    if write {
        std::fs::write(page(), fresh).unwrap();
    }
}

#[test]
fn the_tour_prints_what_it_shows() {
    check(false);
}

#[test]
#[ignore = "needs root"]
fn the_tour_on_a_real_network_prints_what_it_shows() {
    check(true);
}
