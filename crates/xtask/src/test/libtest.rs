//! What cargo's test runner prints, read: totals, the tests that failed and what they said.
//!
//! It exists so that the end of a long run names each failure, and so that a failed test can be run
//! once more. It must never take a program that ended in the middle for one that passed.

use std::collections::BTreeSet;

/// How many lines of a failed test's output the end of a run repeats.
const SAID_MAX: usize = 24;

/// Proptest's words for an input that it found: such a failure is true whatever a second run says,
/// as that one draws other inputs.
const FOUND_INPUT: &str = "minimal failing input";

/// A test that failed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) name: String,
    /// The first lines of its output; none where output was not captured.
    pub(super) said: Vec<String>,
    /// Whether another run of the test may say something else.
    pub(super) may_pass_again: bool,
}

/// What the lines of one or more test programs said so far.
#[derive(Debug, Default)]
pub(super) struct Reading {
    pub(super) passed: u64,
    pub(super) failed: u64,
    pub(super) ignored: u64,
    pub(super) failures: Vec<Failure>,
    /// The tests that passed, by name; none where output is not captured, which comes between.
    pub(super) passed_names: BTreeSet<String>,
    /// Whether proptest's words stood anywhere.
    pub(super) found_input: bool,
    started: u64,
    ended: u64,
    /// Outputs of the program that runs, in the order in which it shows them.
    outputs: Vec<Failure>,
    /// Names below the last line `failures:`.
    names: Vec<String>,
    part: Part,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Part {
    #[default]
    Tests,
    Output,
    Names,
}

impl Reading {
    /// Test programs that began and did not come to their own totals: a crash, an exit.
    pub(super) fn unfinished(&self) -> u64 {
        self.started.saturating_sub(self.ended)
    }

    /// Reads one line, without its end. What a failed test printed is not taken for the runner's
    /// own words.
    pub(super) fn read(&mut self, line: &str) {
        self.found_input |= line.contains(FOUND_INPUT);
        let is_output = self.part == Part::Output;
        if let Some(counts) = line.strip_prefix("test result: ").filter(|_| !is_output) {
            self.end_program(counts);
        } else if is_start(line) && !is_output {
            self.started += 1;
        } else if line == "failures:" {
            self.names.clear();
            self.part = Part::Names;
        } else if let Some(name) = output_of(line) {
            let failure = Failure { name: name.to_owned(), said: Vec::new(), may_pass_again: true };
            self.outputs.push(failure);
            self.part = Part::Output;
        } else {
            self.read_within(line);
        }
    }

    fn read_within(&mut self, line: &str) {
        match self.part {
            Part::Tests => self.passed_names.extend(passed_of(line).map(str::to_owned)),
            Part::Names => self.names.extend(line.strip_prefix("    ").map(str::to_owned)),
            Part::Output => {
                let Some(output) = self.outputs.last_mut() else { return };
                output.may_pass_again &= !line.contains(FOUND_INPUT);
                if output.said.len() < SAID_MAX && !line.is_empty() {
                    output.said.push(line.to_owned());
                }
            }
        }
    }

    /// Takes in `ok. 12 passed; 0 failed; 1 ignored; ...`.
    fn end_program(&mut self, counts: &str) {
        self.ended += 1;
        self.part = Part::Tests;
        let outputs = std::mem::take(&mut self.outputs);
        for name in self.names.drain(..) {
            let said = outputs.iter().find(|output| output.name == name).cloned();
            let unsaid = Failure { name, said: Vec::new(), may_pass_again: true };
            self.failures.push(said.unwrap_or(unsaid));
        }
        let counts = counts.split_once(". ").map_or("", |(_, counts)| counts);
        for count in counts.split(';') {
            let mut words = count.split_whitespace();
            let Some(Ok(number)) = words.next().map(str::parse::<u64>) else { continue };
            match words.next() {
                Some("passed") => self.passed += number,
                Some("failed") => self.failed += number,
                Some("ignored") => self.ignored += number,
                _ => {}
            }
        }
    }
}

/// Whether a line is `running 14 tests`.
fn is_start(line: &str) -> bool {
    let mut words = line.split(' ');
    words.next() == Some("running")
        && words.next().is_some_and(|count| count.parse::<u64>().is_ok())
        && matches!(words.next(), Some("test" | "tests"))
        && words.next().is_none()
}

/// The test of `test NAME ... ok`.
fn passed_of(line: &str) -> Option<&str> {
    line.strip_prefix("test ")?.strip_suffix(" ... ok")
}

/// The test of `---- NAME stdout ----`.
fn output_of(line: &str) -> Option<&str> {
    line.strip_prefix("---- ")?.strip_suffix(" stdout ----")
}

#[cfg(test)]
mod tests {
    use super::{Failure, Reading};

    fn read(text: &str) -> Reading {
        let mut reading = Reading::default();
        text.lines().for_each(|line| reading.read(line));
        reading
    }

    const TWO_FAIL: &str = "\
running 3 tests
test a::one ... ok
test a::two ... FAILED
test three ... FAILED

failures:

---- a::two stdout ----

thread 'a::two' panicked at x.rs:1:
    in a line of its own
test result: ok. 100 passed; 0 failed
---- three stdout ----
minimal failing input: x = 3


failures:
    a::two
    three

test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out

running 2 tests
test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out
";

    #[test]
    fn totals_add_up_over_test_programs() {
        let reading = read(TWO_FAIL);
        assert_eq!((reading.passed, reading.failed, reading.ignored), (3, 2, 1));
        assert_eq!(reading.unfinished(), 0);
        assert!(reading.passed_names.contains("a::one") && reading.found_input);
    }

    #[test]
    fn failures_have_their_names_and_words() {
        let reading = read(TWO_FAIL);
        let [two, three] = &reading.failures[..] else { panic!("{:?}", reading.failures) };
        assert_eq!(two.name, "a::two");
        assert_eq!(
            two.said[..2],
            ["thread 'a::two' panicked at x.rs:1:", "    in a line of its own"]
        );
        assert!(two.may_pass_again);
        assert!(three.name == "three" && !three.may_pass_again);
    }

    #[test]
    fn without_captured_output_names_are_read_alone() {
        let text = "running 1 test\nfailures:\n    a b\n\ntest result: FAILED. 0 passed; 1 failed";
        let name = "a b".to_owned();
        let failure = Failure { name, said: Vec::new(), may_pass_again: true };
        assert_eq!(read(text).failures, [failure]);
    }

    #[test]
    fn a_program_that_dies_is_unfinished() {
        let reading =
            read("running 2 tests\ntest a ... ok\nrunning 1 test\ntest result: ok. 1 passed");
        assert_eq!(reading.unfinished(), 1);
    }
}
