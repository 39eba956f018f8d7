//! The changes that flow monitors hear of: taken together they are the tables, whatever made them.

use std::collections::BTreeMap;

use datapath::fast::{CommandProgress, Control, RemovalReport};
use datapath::{BundleCommand, DatapathConfig, Nanos};
use openflow::flow::{FlowModCommand, FlowStatsRequest};
use openflow::flow_monitor::{FlowChange, FlowEvent};
use openflow::group::GroupModCommand;
use openflow::text::{parse_flow_mod, parse_group_mod};
use openflow::{Cookie, Instruction, Match, TableId, Version};
use testkit::Random;

const ROUNDS: u64 = 4_000;

type Known = BTreeMap<(TableId, u16, Match), (u64, Cookie, Vec<Instruction>)>;

/// Enters a change; it must fit what is known.
fn enter(known: &mut Known, change: FlowChange, seq: u64, has_before: bool) {
    let key = (change.table_id, change.priority, change.matching);
    if change.event == FlowEvent::Removed {
        let gone = known.remove(&key).expect("an entry that was removed had been there");
        assert_eq!(gone, (seq, change.cookie, change.instructions));
        assert!(change.reason.is_some());
        return;
    }
    assert!(change.reason.is_none());
    let (instructions, cookie) = (change.instructions, change.cookie);
    let old = known.insert(key, (seq, cookie, instructions.clone()));
    let Some((old_seq, old_cookie, old)) = old else {
        assert_eq!((change.event, has_before), (FlowEvent::Added, false));
        return;
    };
    assert_eq!((old_seq, has_before), (seq, old != instructions));
    let is_other = has_before || old_cookie != cookie;
    assert!(change.event == FlowEvent::Added || is_other, "a modify that changes nothing");
}

fn command(rng: &mut Random) -> BundleCommand {
    let (table, port, out) = (rng.below(3), rng.below(6), rng.below(4) + 1);
    let action = if rng.percent(20) { format!("group:{out}") } else { format!("output:{out}") };
    let flow_mod =
        |text: &str, command| BundleCommand::FlowMod(parse_flow_mod(text, command).unwrap());
    match rng.below(10) {
        0..5 => {
            let more = *rng.pick(&["", "idle_timeout=2,", "hard_timeout=3,", "reset_counts,"]);
            let cookie = rng.below(3);
            let rule = format!("table={table},priority=5,in_port={port}");
            let text = format!("{rule},cookie={cookie},{more}actions={action}");
            flow_mod(&text, FlowModCommand::Add)
        }
        5..7 => {
            let more = if rng.percent(30) { "reset_counts," } else { "" };
            let text = format!("table={table},{more}actions={action}");
            flow_mod(&text, FlowModCommand::Modify)
        }
        7 => flow_mod(&format!("table={table},in_port={port}"), FlowModCommand::Delete),
        8 => {
            let text = format!("group_id={out},type=all,bucket=output:{port}");
            BundleCommand::GroupMod(parse_group_mod(&text, GroupModCommand::Add).unwrap())
        }
        _ => {
            let text = format!("group_id={out}");
            BundleCommand::GroupMod(parse_group_mod(&text, GroupModCommand::Delete).unwrap())
        }
    }
}

#[test]
fn the_changes_together_are_the_tables() {
    let mut rng = Random::new(7);
    let config = DatapathConfig { n_tables: 3, ..DatapathConfig::default() };
    let mut control = Control::new(config, 1, RemovalReport::Asked);
    control.watch(true);
    let (mut known, mut now) = (Known::new(), Nanos(0));
    let (mut changes, mut refused, mut moved) = (0, 0, 0);
    let mut ids = BTreeMap::new();
    for round in 0..ROUNDS {
        let version = *rng.pick(&[Version::V1_0, Version::V1_3]);
        match rng.below(10) {
            0 => {
                now = Nanos(now.0 + rng.below(2_000_000_000));
                control.expire(now, 100);
            }
            1 => {
                // One that is refused leaves no trace.
                let bundle: Vec<BundleCommand> = (0..4).map(|_| command(&mut rng)).collect();
                refused += u32::from(control.bundle(&bundle, version, now).is_err());
            }
            2 => {
                let all = parse_flow_mod("table=0", FlowModCommand::Delete).unwrap();
                let begun = control.begin_flow_mod(&all, version, now).unwrap();
                assert!(matches!(begun, CommandProgress::Done(_)));
            }
            _ => drop(control.command(&command(&mut rng), version, now)),
        }
        for watched in control.take_changes() {
            match watched.change.event {
                FlowEvent::Removed => ids.remove(&watched.seq),
                _ => ids.insert(watched.seq, watched.id),
            };
            if watched.is_only_moved {
                moved += 1;
                continue;
            }
            let has_before = watched.instructions_before().is_some();
            assert!(watched.seq < control.next_seq());
            enter(&mut known, watched.change, watched.seq, has_before);
            changes += 1;
        }
        // Each entry is found by the number that its last change has.
        assert_eq!(ids.len(), known.len());
        for (seq, id) in &ids {
            let entry = control.watched_entry(*id, *seq, FlowEvent::Modified);
            assert!(entry.is_some(), "round {round}: entry {seq}");
        }
        let there = control.flow_stats(&FlowStatsRequest::all(), now).unwrap();
        let there = there.into_iter().map(|flow| {
            ((flow.table_id, flow.priority, flow.matching), (flow.cookie, flow.instructions))
        });
        let reported =
            known.iter().map(|(key, (_, cookie, list))| (key.clone(), (*cookie, list.clone())));
        assert!(there.collect::<BTreeMap<_, _>>() == reported.collect(), "round {round}");
    }
    assert!(changes > ROUNDS / 2 && refused > 20, "{changes} changes, {refused} bundles");
    assert!(moved > 20, "{moved} entries with other numbers only");
    // Nobody watches any more.
    control.watch(false);
    let add = parse_flow_mod("actions=drop", FlowModCommand::Add).unwrap();
    control.flow_mod(&add, Version::V1_3, now).unwrap();
    assert!(control.take_changes().is_empty());
}
