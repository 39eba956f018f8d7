//! From a long scenario in which something differs to a short one that still does, in words.

use std::panic::{AssertUnwindSafe, catch_unwind};

use openflow::flow::FlowModCommand;
use openflow::group::GroupDesc;
use openflow::text::{format_actions, format_flow_mod, format_group};

use crate::how::How;
use crate::run::{Difference, Lookups, run};
use crate::scenario::{Scenario, Step};

/// Runs that a search for a shorter scenario may take.
const RUNS: usize = 3_000;

/// Runs a scenario, a panic being a difference too.
pub(crate) fn check(scenario: &Scenario, how: &How) -> Result<Lookups, (usize, Difference)> {
    let ran = catch_unwind(AssertUnwindSafe(|| run(scenario, how)));
    ran.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err((scenario.steps.len(), format!("panic: {}", text.unwrap_or_default())))
    })
}

/// Leaves out whatever can be left out while something still differs.
pub(crate) fn shrink(scenario: &Scenario, how: &How, at: usize) -> Scenario {
    let mut least = scenario.clone();
    least.steps.truncate(at + 1);
    let mut runs = RUNS;
    let mut still_differs = |candidate: &Scenario| {
        runs = runs.saturating_sub(1);
        runs > 0 && check(candidate, how).is_err()
    };
    if !still_differs(&least) {
        return scenario.clone();
    }
    least.steps = without(&least.steps, |steps| {
        still_differs(&Scenario { steps: steps.to_vec(), ..least.clone() })
    });
    for place in 0..least.steps.len() {
        if let Step::Bundle(commands) = least.steps[place].clone() {
            let commands = without(&commands, |commands| {
                let mut candidate = least.clone();
                candidate.steps[place] = Step::Bundle(commands.to_vec());
                still_differs(&candidate)
            });
            least.steps[place] = Step::Bundle(commands);
            continue;
        }
        let Step::Packets(port, frames) = least.steps[place].clone() else { continue };
        let frames = without(&frames, |frames| {
            let mut candidate = least.clone();
            candidate.steps[place] = Step::Packets(port, frames.to_vec());
            still_differs(&candidate)
        });
        least.steps[place] = Step::Packets(port, frames);
    }
    least
}

/// The list without all that it can do without, found by leaving out ever smaller pieces.
fn without<T: Clone>(list: &[T], mut still: impl FnMut(&[T]) -> bool) -> Vec<T> {
    let mut kept = list.to_vec();
    let mut piece = kept.len().div_ceil(2).max(1);
    loop {
        let mut from = 0;
        while from < kept.len() {
            let mut candidate = kept.clone();
            candidate.drain(from..(from + piece).min(candidate.len()));
            if still(&candidate) {
                kept = candidate;
            } else {
                from += piece;
            }
        }
        if piece == 1 {
            return kept;
        }
        piece = piece.div_ceil(2);
    }
}

/// A scenario for people, a step a line.
pub(crate) fn describe(scenario: &Scenario) -> String {
    let config = &scenario.config;
    let mut text = format!(
        "tables {}, entries {}, macs {} for {} s, {:?}\n",
        config.n_tables, config.max_entries, config.max_macs, config.mac_age_s, config.settings
    );
    for step in &scenario.steps {
        text += &line(scenario, step);
        text += "\n";
    }
    text
}

fn line(scenario: &Scenario, step: &Step) -> String {
    let hex = |frame: &u32| testkit::hex::format(&scenario.frames[*frame as usize]);
    match step {
        Step::FlowMod(version, flow_mod, fallback) => {
            let command = match flow_mod.command {
                FlowModCommand::Add => "add",
                FlowModCommand::Modify => "modify",
                FlowModCommand::ModifyStrict => "modify strict",
                FlowModCommand::Delete => "delete",
                FlowModCommand::DeleteStrict => "delete strict",
                FlowModCommand::Unknown(_) => "unknown",
            };
            let otherwise = fallback.as_ref().map(|flow| format_flow_mod(flow));
            let otherwise = otherwise.map_or(String::new(), |text| format!("\n    or {text}"));
            let flags = flow_mod.flags;
            format!("{command} ({version:?}, {flags:?}) {}{otherwise}", format_flow_mod(flow_mod))
        }
        Step::GroupMod(group) => {
            let desc = GroupDesc {
                group_type: group.group_type,
                group_id: group.group_id,
                buckets: group.buckets.clone(),
                selection: group.selection.clone(),
            };
            format!("group {:?} {}", group.command, format_group(&desc))
        }
        Step::PortSet(desc) => {
            format!("port {} {:?} {:?}", desc.port_no, desc.config, desc.state)
        }
        Step::PacketOut(packet_out) => format!(
            "packet-out in_port={} {} {}",
            packet_out.in_port,
            format_actions(&packet_out.actions),
            testkit::hex::format(&packet_out.data)
        ),
        Step::Packets(port, frames) => {
            let frames: Vec<String> = frames.iter().map(hex).collect();
            format!("from port {port}\n    {}", frames.join("\n    "))
        }
        Step::Tables(tables) => {
            let ids: Vec<u8> = tables.iter().map(|table| table.table_id.0).collect();
            format!("table features for {ids:?}, perhaps with fewer fields")
        }
        Step::Trace(port, frame) => format!("trace from port {port} {}", hex(frame)),
        Step::MeterMod(_)
        | Step::Bundle(_)
        | Step::TableMod(_)
        | Step::PortMod(_)
        | Step::PortRemove(_)
        | Step::PortVlans(..)
        | Step::Mirrors(_)
        | Step::Settings(_)
        | Step::Wait(_)
        | Step::Look(_) => format!("{step:?}"),
    }
}
