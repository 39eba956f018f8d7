//! Announced is exactly what runs: every capability with the test that shows it.
//!
//! The announcement is asked of the datapath; the rest is read from the cases, each of which runs
//! on the reference, on the fast datapath and through the wire. Something announced that no case
//! uses fails here, and `docs/capabilities.md` must be the table that this gives.
//! `WEIR_WRITE_DOCS=1 cargo test -p weir-datapath --test datapath capabilities` writes it.

mod announced;
mod evidence;

use std::fmt::Write;

use announced::{Announced, announced};
use evidence::Evidence;

const HEAD: &str = "# Announced capabilities and their tests

Written by `WEIR_WRITE_DOCS=1 cargo test -p weir-datapath --test datapath capabilities`; without
the variable the test fails when this page is not what the switch announces, or when something that
is announced has no test.

A name such as `push/push_vlan` is a case below [cases](../cases): it runs on the reference
datapath, on the fast one, and through the wire, but for a few that need the time to be chosen. It
is the first of mostly several. A name such as `statistics.rs:a_test` is a test in the code.

Not announced, because it does not run: buffers (`n_buffers` is 0), spanning tree (`OFPC_STP`,
`OFPC_PORT_BLOCKED`), the virtual meters, experimenter actions, instructions, bands and fields. What
a port announces (`curr`, speeds) is what its device reports.
";

fn page(announced: &[Announced], evidence: &Evidence) -> String {
    let mut page = HEAD.to_owned();
    let mut part = "";
    for item in announced {
        if item.part != part {
            part = item.part;
            let _ = write!(page, "\n## {part}\n\n| announced | test |\n|---|---|\n");
        }
        let test = item.test.or_else(|| evidence.first(&item.key())).unwrap_or("none");
        let _ = writeln!(page, "| {} | `{test}` |", item.name);
    }
    page
}

#[test]
fn everything_announced_has_a_test() {
    let evidence = Evidence::of_cases();
    let announced = announced();
    let lacks = |item: &&Announced| item.test.is_none() && evidence.first(&item.key()).is_none();
    let without: Vec<String> = announced.iter().filter(lacks).map(Announced::key).collect();
    assert!(without.is_empty(), "announced, but in no case: {}", without.join(", "));
    for test in announced.iter().filter_map(|item| item.test) {
        assert!(evidence.has_test(test), "there is no test {test}");
    }
}

#[test]
fn the_page_says_what_is_announced() {
    let path = testkit::workspace_root().join("docs/capabilities.md");
    let expected = page(&announced(), &Evidence::of_cases());
    if std::env::var_os("WEIR_WRITE_DOCS").is_some() {
        std::fs::write(&path, &expected).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == expected, "docs/capabilities.md is out of date; see the head of this test");
}
