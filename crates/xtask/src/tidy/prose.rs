//! Rules about lines of text, in any language: width, length of files, markers of unfinished work,
//! paths of somebody's machine, host names of registries, size.
//!
//! The words that are looked for are put together from halves, so that this file passes its own
//! rules. It must never judge a file by its meaning; that is `syntax`.

use super::{Problem, SourceFile};

const COLUMNS: usize = 100;
const LINES_WARN: usize = 800;
const LINES_MAX: usize = 1200;
const BYTES_MAX: u64 = 1 << 20;

/// Words of unfinished work.
const MARKERS: &[&str] =
    &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("X", "XX"), concat!("HA", "CK")];

/// Beginnings of paths that exist on one person's machine only.
const MACHINE_PATHS: &[&str] =
    &[concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/Us", "ers/"), concat!("/wo", "rk/")];

/// Host names of package registries: the ordinary clients know where theirs is.
const REGISTRIES: &[&str] = &[
    concat!("crates", ".io"),
    concat!("pypi", ".org"),
    concat!("pythonhosted", ".org"),
    concat!("npmjs", ".org"),
    concat!("proxy.golang", ".org"),
    concat!("deb.debian", ".org"),
    concat!("repo1.maven", ".org"),
];

/// Files that a program writes; their lines are not ours.
const GENERATED: &[&str] = &["Cargo.lock", "fuzz/Cargo.lock"];

pub(super) fn check(file: &SourceFile) -> Vec<Problem> {
    let mut problems = Vec::new();
    if file.size_bytes > BYTES_MAX {
        let what = format!(
            "{} bytes; tracked files stay below {BYTES_MAX}: generate it or keep it outside",
            file.size_bytes
        );
        problems.push(Problem::error(&file.path, 0, what));
    }
    let Some(text) = &file.text else { return problems };
    if GENERATED.contains(&file.path.as_str()) {
        return problems;
    }
    let is_code = ["rs", "sh", "py"].iter().any(|e| file.is(e));
    for (index, line) in text.lines().enumerate() {
        let width = line.chars().count();
        if is_code && width > COLUMNS {
            let what = format!("{width} columns; break the line at {COLUMNS}");
            problems.push(Problem::error(&file.path, index + 1, what));
        }
        problems.extend(words(file, index + 1, line));
    }
    if file.is("rs") {
        problems.extend(length(file, text));
    }
    problems
}

fn words(file: &SourceFile, number: usize, line: &str) -> Option<Problem> {
    let found = |list: &[&'static str]| list.iter().copied().find(|w| stands_in(line, w));
    let what = if let Some(word) = found(MARKERS) {
        format!("`{word}`: debt is not stored; do it, or open an issue and delete the marker")
    } else if let Some(path) = MACHINE_PATHS.iter().find(|path| line.contains(*path)) {
        format!("`{path}`: a path of one machine; derive it or take it as an option")
    } else if let Some(host) = found(REGISTRIES) {
        format!("`{host}`: host name of a registry; name the package, its client knows the host")
    } else {
        return None;
    };
    Some(Problem::error(&file.path, number, what))
}

/// Whether `word` stands in `text` with no letter, digit or `_` on either side.
pub(super) fn stands_in(text: &str, word: &str) -> bool {
    let joins = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text.get(..at).and_then(|s| s.chars().next_back());
        let after = text.get(at + word.len()..).and_then(|s| s.chars().next());
        !before.is_some_and(joins) && !after.is_some_and(joins)
    })
}

fn length(file: &SourceFile, text: &str) -> Option<Problem> {
    let lines = text.lines().take_while(|line| !line.starts_with("#[cfg(test)]")).count();
    let advice = "a file has one subject; split it";
    if lines > LINES_MAX {
        let what = format!("{lines} lines before the tests, at most {LINES_MAX}; {advice}");
        Some(Problem::error(&file.path, 0, what))
    } else if lines > LINES_WARN {
        let what = format!("{lines} lines before the tests; {advice}");
        Some(Problem::warning(&file.path, 0, what))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::{BYTES_MAX, MACHINE_PATHS, MARKERS, REGISTRIES, SourceFile, check};
    use crate::tidy::Severity;

    fn problems(path: &str, text: &str) -> Vec<String> {
        check(&SourceFile::new(path, text)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn lines_have_a_hundred_columns() {
        assert!(problems("a.rs", &"x".repeat(100)).is_empty());
        assert!(problems("a.rs", &"ü".repeat(100)).is_empty());
        let found = problems("a.rs", &format!("//! x\n{}", "x".repeat(101)));
        assert_eq!(found, ["a.rs:2: 101 columns; break the line at 100"]);
        assert!(problems("a.md", &"x".repeat(200)).is_empty());
    }

    #[test]
    fn markers_are_found_as_words_only() {
        for marker in MARKERS {
            let found = problems("doc.md", &format!("a\nsee {marker}: later"));
            assert!(found[0].starts_with("doc.md:2: "), "{found:?}");
            assert!(problems("doc.md", &format!("mktemp a.{marker}{marker}")).is_empty());
        }
    }

    #[test]
    fn paths_of_a_machine_and_hosts_of_registries_are_found() {
        for path in MACHINE_PATHS {
            assert_eq!(problems("a.sh", &format!("cd {path}ann")).len(), 1);
        }
        for host in REGISTRIES {
            assert_eq!(problems("a.toml", &format!("https://{host}/x")).len(), 1);
            assert!(problems("Cargo.lock", &format!("https://{host}/x")).is_empty());
        }
        assert!(problems("a.sh", "cd /usr/share").is_empty());
    }

    #[test]
    fn long_files_warn_then_fail_and_tests_do_not_count() {
        let lines = |n: usize| "x\n".repeat(n);
        assert!(problems("a.rs", &lines(800)).is_empty());
        let warned = check(&SourceFile::new("a.rs", &lines(801)));
        assert_eq!(warned[0].severity, Severity::Warning);
        let failed = check(&SourceFile::new("a.rs", &lines(1201)));
        assert_eq!(failed[0].severity, Severity::Error);
        let tests = format!("{}#[cfg(test)]\n{}", lines(10), lines(2000));
        assert!(problems("a.rs", &tests).is_empty());
    }

    #[test]
    fn large_files_fail() {
        let mut file = SourceFile::new("a.bin", "");
        file.text = None;
        file.size_bytes = BYTES_MAX;
        assert!(check(&file).is_empty());
        file.size_bytes += 1;
        assert_eq!(check(&file).len(), 1);
    }
}
