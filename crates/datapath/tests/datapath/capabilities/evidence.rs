//! Capabilities that the cases use: the fields that are matched and set, the actions, instructions,
//! groups and meters in them, and the names of tests.

use std::collections::{BTreeMap, BTreeSet};

use openflow::flow::FlowModCommand;
use openflow::group::GroupModCommand;
use openflow::meter::{BandKind, MeterFlags, MeterModCommand};
use openflow::text::{parse_actions, parse_flow_mod, parse_group_mod, parse_meter_mod};
use openflow::{Action, Instruction};
use testkit::cases::{Case, Step, load_dir};

/// The used capabilities by name, and the cases and tests that there are.
pub(crate) struct Evidence {
    used: BTreeMap<String, String>,
    cases: BTreeSet<String>,
}

impl Evidence {
    /// The capabilities that the cases of the workspace use.
    pub(crate) fn of_cases() -> Self {
        let mut evidence = Self { used: BTreeMap::new(), cases: BTreeSet::new() };
        for case in load_dir(&testkit::cases_dir("")).unwrap() {
            evidence.cases.insert(case.name.clone());
            for key in used_by(&case) {
                evidence.used.entry(key).or_insert_with(|| case.name.clone());
            }
        }
        evidence
    }

    /// The first case that uses something.
    pub(crate) fn first(&self, key: &str) -> Option<&str> {
        self.used.get(key).map(String::as_str)
    }

    /// Whether there is a case of this name, or a test written as `file.rs:name`.
    pub(crate) fn has_test(&self, name: &str) -> bool {
        let Some((file, test)) = name.split_once(".rs:") else { return self.cases.contains(name) };
        let crates = testkit::workspace_root().join("crates");
        let places = ["datapath/tests/datapath", "datapath/src", "switch/tests/agent"];
        let texts = places.iter().filter_map(|place| {
            std::fs::read_to_string(crates.join(place).join(format!("{file}.rs"))).ok()
        });
        texts.into_iter().any(|text| text.contains(&format!("fn {test}(")))
    }
}

/// The capabilities that a case uses. A refused command shows none, so it is left out.
fn used_by(case: &Case) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    for (index, (_, step)) in case.steps.iter().enumerate() {
        let next = case.steps.get(index + 1).map(|(_, step)| step);
        if matches!(next, Some(Step::Error(_))) {
            continue;
        }
        match step {
            Step::Flow(text) => flow(text, &mut used),
            Step::Group(text) => group(text, &mut used),
            Step::Meter(text) => meter(text, &mut used),
            Step::PacketOut { actions: text, .. } => {
                actions(&parse_actions(text).unwrap_or_default(), &mut used);
            }
            _ => {}
        }
    }
    used
}

fn flow(text: &str, used: &mut BTreeSet<String>) {
    let Ok(flow_mod) = parse_flow_mod(text, FlowModCommand::Add) else { return };
    for field in flow_mod.matching.fields() {
        let mask = if field.is_exact() { "" } else { " with a mask" };
        used.insert(format!("match {}{mask}", field.field.row().name));
    }
    for instruction in &flow_mod.instructions {
        used.insert(format!("instruction {}", instruction.kind().row().text));
        match instruction {
            Instruction::ApplyActions(list) | Instruction::WriteActions(list) => {
                actions(list, used);
            }
            _ => {}
        }
    }
}

fn actions(list: &[Action], used: &mut BTreeSet<String>) {
    for action in list {
        used.insert(format!("action {}", action.kind().row().text));
        if let Action::SetField { field, .. } = action {
            used.insert(format!("set {}", field.row().name));
        }
    }
}

fn group(text: &str, used: &mut BTreeSet<String>) {
    let Ok(group_mod) = parse_group_mod(text, GroupModCommand::Add) else { return };
    used.insert(format!("group type {}", group_mod.group_type.text()));
    group_mod.buckets.iter().for_each(|bucket| actions(&bucket.actions, used));
}

fn meter(text: &str, used: &mut BTreeSet<String>) {
    let Ok(meter_mod) = parse_meter_mod(text, MeterModCommand::Add) else { return };
    let flags = [
        (MeterFlags::KBPS, "KBPS"),
        (MeterFlags::PKTPS, "PKTPS"),
        (MeterFlags::BURST, "BURST"),
        (MeterFlags::STATS, "STATS"),
    ];
    for (flag, name) in flags {
        if meter_mod.flags.contains(flag) {
            used.insert(format!("meter {name}"));
        }
    }
    for band in &meter_mod.bands {
        let name = match band.kind {
            BandKind::Drop => "drop band",
            BandKind::DscpRemark { .. } => "dscp_remark band",
            BandKind::Experimenter { .. } => continue,
        };
        used.insert(format!("meter {name}"));
    }
}
