//! Deletes of groups and meters in pieces: how large a piece is, that the end is that of a delete
//! at once, and what others may do meanwhile.

use std::fmt::Debug;

use openflow::flow::{FlowMod, FlowModCommand, FlowStatsRequest};
use openflow::group::{Bucket, GroupMod, GroupModCommand, GroupType};
use openflow::meter::{Band, BandKind, MeterFlags, MeterMod, MeterModCommand};
use openflow::{
    Action, Error, Field, GroupId, Instruction, Match, MeterId, PortNo, TableId, Version,
};

use super::{AT_ONCE, CommandCounts, CommandProgress, Control, Sweep};
use crate::config::DatapathConfig;
use crate::fast::control::RemovalReport;
use crate::reference::Reference;
use crate::seam::Datapath;
use crate::time::Nanos;

/// Groups, meters, and entries that use one of each.
const MANY: u32 = 1_000;
const PIECE: usize = 50;
/// One that comes later.
const NEW: u32 = MANY + 5;
const NOW: Nanos = Nanos(5);

fn bucket(actions: Vec<Action>) -> Bucket {
    Bucket {
        bucket_id: None,
        weight: 0,
        watch_port: PortNo::ANY,
        watch_group: GroupId::ANY,
        actions,
    }
}

/// Each tenth group leads to its successor, which must be there before.
fn group_mod(command: GroupModCommand, id: u32) -> GroupMod {
    let next = Action::Group(GroupId(id + 1));
    let leads_on = id % 10 == 1 && command == GroupModCommand::Add;
    let buckets = if leads_on { vec![bucket(vec![next])] } else { Vec::new() };
    GroupMod {
        command,
        group_type: GroupType::All,
        group_id: GroupId(id),
        buckets,
        ..GroupMod::default()
    }
}

fn meter_mod(command: MeterModCommand, id: u32) -> MeterMod {
    let bands = vec![Band { kind: BandKind::Drop, rate: 1, burst_size: 0 }];
    MeterMod { command, flags: MeterFlags::KBPS, meter_id: MeterId(id), bands }
}

/// An entry that uses a group, and a meter if it is not 0.
fn entry(number: u32, group: u32, meter: u32) -> FlowMod {
    let actions = vec![Action::Group(GroupId(group))];
    let meter = Some(Instruction::Meter(MeterId(meter))).filter(|_| meter != 0);
    FlowMod {
        table_id: TableId((number % 3) as u8),
        priority: (number.wrapping_mul(0x9e37_79b9) >> 30) as u16,
        matching: Match::any().with(Field::Metadata, u128::from(number)),
        instructions: meter.into_iter().chain([Instruction::ApplyActions(actions)]).collect(),
        ..FlowMod::new(FlowModCommand::Add)
    }
}

/// Content that fills a datapath: a half of the entries uses the first group and the first meter,
/// the others one each of their own.
struct Commands {
    groups: Vec<GroupMod>,
    meters: Vec<MeterMod>,
    entries: Vec<FlowMod>,
}

fn commands() -> Commands {
    let shared = |number| if number > MANY { 1 } else { number };
    Commands {
        groups: (1..=MANY).rev().map(|id| group_mod(GroupModCommand::Add, id)).collect(),
        meters: (1..=MANY).map(|id| meter_mod(MeterModCommand::Add, id)).collect(),
        entries: (1..=2 * MANY)
            .map(|number| entry(number, shared(number), shared(number)))
            .collect(),
    }
}

fn control() -> Control {
    let mut control = Control::new(DatapathConfig::default(), 1, RemovalReport::All);
    let Commands { groups, meters, entries } = commands();
    for group in &groups {
        control.group_mod(group, Nanos(0)).unwrap();
    }
    for meter in &meters {
        control.meter_mod(meter, Nanos(0)).unwrap();
    }
    for entry in &entries {
        control.flow_mod(entry, Version::V1_3, Nanos(0)).unwrap();
    }
    control.take_ops(&mut Vec::new());
    control
}

/// A delete of groups or of meters.
#[derive(Clone, Debug)]
enum Delete {
    Group(GroupMod),
    Meter(MeterMod),
}

impl Delete {
    fn group(id: u32) -> Self {
        Self::Group(group_mod(GroupModCommand::Delete, id))
    }

    fn meter(id: u32) -> Self {
        Self::Meter(meter_mod(MeterModCommand::Delete, id))
    }

    fn at_once(&self, control: &mut Control) -> CommandCounts {
        match self {
            Self::Group(delete) => control.group_mod(delete, NOW),
            Self::Meter(delete) => control.meter_mod(delete, NOW),
        }
        .unwrap()
    }

    fn begin(&self, control: &mut Control) -> CommandProgress {
        match self {
            Self::Group(delete) => control.begin_group_mod(delete, NOW),
            Self::Meter(delete) => control.begin_meter_mod(delete, NOW),
        }
        .unwrap()
    }

    /// Begins it in pieces, however few it selects.
    fn begin_pieces(&self, control: &mut Control) -> Box<Sweep> {
        let begun = match self {
            Self::Group(delete) => control.begin_group_delete(delete.group_id).unwrap(),
            Self::Meter(delete) => control.begin_meter_delete(delete.meter_id),
        };
        let CommandProgress::Sweep(sweep) = begun else { panic!("{self:?}: {begun:?}") };
        sweep
    }
}

fn ops(control: &mut Control) -> Vec<String> {
    let mut ops = Vec::new();
    control.take_ops(&mut ops);
    ops.iter().map(|op| format!("{op:?}")).collect()
}

fn end(control: &mut Control, sweep: &mut Sweep) -> CommandCounts {
    loop {
        if let Some(done) = control.sweep(sweep, PIECE, NOW) {
            break done.unwrap();
        }
    }
}

/// Everything that can be asked for about entries, groups and meters.
fn seen(flows: impl Debug, groups: impl Debug, meters: impl Debug) -> String {
    format!("{flows:?} {groups:?} {meters:?}")
}

#[test]
fn small_pieces_delete_the_same_in_the_same_order() {
    for delete in
        [Delete::group(GroupId::ALL.0), Delete::group(1), Delete::meter(u32::MAX), Delete::meter(1)]
    {
        let (mut whole, mut pieces) = (control(), control());
        let expected = delete.at_once(&mut whole);
        let expected_ops = ops(&mut whole);
        let mut sweep = delete.begin_pieces(&mut pieces);
        let (mut found_ops, mut count) = (Vec::new(), 0);
        let done = loop {
            let done = pieces.sweep(&mut sweep, PIECE, NOW);
            let of_piece = ops(&mut pieces);
            assert!(of_piece.len() <= PIECE / 2, "{delete:?}: {}", of_piece.len());
            found_ops.extend(of_piece);
            count += 1;
            if let Some(done) = done {
                break done.unwrap();
            }
        };
        assert_eq!(done, expected, "{delete:?}");
        assert!(done.removed > MANY as usize, "{delete:?}: {done:?}");
        assert_eq!(found_ops, expected_ops, "{delete:?}");
        let looks = 2 * MANY as usize / PIECE;
        assert!(count >= looks + expected_ops.len() / (PIECE / 2), "{delete:?}: {count} pieces");
    }
}

#[test]
fn after_the_last_piece_the_rest_is_that_of_the_reference() {
    for delete in
        [Delete::group(GroupId::ALL.0), Delete::group(1), Delete::meter(u32::MAX), Delete::meter(1)]
    {
        let mut reference = Reference::new(DatapathConfig::default());
        let Commands { groups, meters, entries } = commands();
        for group in &groups {
            reference.group_mod(group, Nanos(0)).unwrap();
        }
        for meter in &meters {
            reference.meter_mod(meter, Nanos(0)).unwrap();
        }
        // Every tenth, as the reference looks at all of them for each.
        let entries = || entries.iter().step_by(10);
        for entry in entries() {
            reference.flow_mod(entry, Version::V1_3, Nanos(0)).unwrap();
        }
        let mut control = control();
        let all = FlowMod { table_id: TableId::ALL, ..FlowMod::new(FlowModCommand::Delete) };
        control.flow_mod(&all, Version::V1_3, Nanos(0)).unwrap();
        for entry in entries() {
            control.flow_mod(entry, Version::V1_3, Nanos(0)).unwrap();
        }
        let removed = match &delete {
            Delete::Group(delete) => reference.group_mod(delete, NOW).unwrap().removed.len(),
            Delete::Meter(delete) => reference.meter_mod(delete, NOW).unwrap().removed.len(),
        };
        let mut sweep = delete.begin_pieces(&mut control);
        assert_eq!(end(&mut control, &mut sweep).removed, removed, "{delete:?}");
        let (flows, groups) = (FlowStatsRequest::all(), GroupId::ALL);
        let expected = seen(
            reference.flow_stats(&flows, NOW),
            (reference.group_desc(), reference.group_stats(groups, NOW)),
            reference.meter_stats(MeterId::ALL, NOW),
        );
        let found = seen(
            control.flow_stats(&flows, NOW),
            (control.group_desc(), control.group_stats(groups, NOW)),
            control.meter_stats(MeterId::ALL, NOW),
        );
        assert!(found == expected, "{delete:?}");
    }
}

#[test]
fn nothing_new_may_name_the_deleted_and_new_entries_stay() {
    for pieces in [0, 60, 130] {
        let mut control = control();
        let mut groups = Delete::group(GroupId::ALL.0).begin_pieces(&mut control);
        let mut meters = Delete::meter(u32::MAX).begin_pieces(&mut control);
        for _ in 0..pieces {
            assert!(control.sweep(&mut groups, PIECE, NOW).is_none());
            // The entries went with the groups: the rest of them is looked at and met again.
            assert!(control.sweep(&mut meters, 2, NOW).is_none());
        }
        let last = MANY;
        let mut flow_mod = |group, meter| {
            control.flow_mod(&entry(3 * MANY, group, meter), Version::V1_3, NOW).map(|_| ())
        };
        assert_eq!(flow_mod(last, 0), Err(Error::BadActionBadOutGroup));
        let mut group = |command, id| control.group_mod(&group_mod(command, id), NOW).map(|_| ());
        assert_eq!(group(GroupModCommand::Add, last), Err(Error::GroupModGroupExists));
        assert_eq!(group(GroupModCommand::Modify, last), Err(Error::GroupModUnknownGroup));
        // It would lead to a group that goes.
        assert_eq!(group(GroupModCommand::Add, NEW), Ok(()));
        let leads_on = GroupMod {
            buckets: vec![bucket(vec![Action::Group(GroupId(last))])],
            ..group_mod(GroupModCommand::Add, NEW + 1)
        };
        assert_eq!(control.group_mod(&leads_on, NOW), Err(Error::BadActionBadOutGroup));
        let mut meter = |command, id| control.meter_mod(&meter_mod(command, id), NOW).map(|_| ());
        assert_eq!(meter(MeterModCommand::Add, last), Err(Error::MeterModMeterExists));
        assert_eq!(meter(MeterModCommand::Modify, last), Err(Error::MeterModUnknownMeter));
        assert_eq!(meter(MeterModCommand::Add, NEW), Ok(()));
        let mut flow_mod = |group, meter| {
            control.flow_mod(&entry(3 * MANY, group, meter), Version::V1_3, NOW).map(|_| ())
        };
        assert_eq!(flow_mod(NEW, last), Err(Error::MeterModUnknownMeter));
        assert_eq!(flow_mod(NEW, NEW), Ok(()));
        end(&mut control, &mut groups);
        end(&mut control, &mut meters);
        assert_eq!(control.flow_stats(&FlowStatsRequest::all(), NOW).unwrap().len(), 1);
        let groups = control.group_desc();
        assert_eq!(groups.iter().map(|group| group.group_id.0).collect::<Vec<_>>(), [NEW]);
        assert_eq!(control.meter_config(MeterId::ALL).unwrap()[0].meter_id, MeterId(NEW));
    }
}

#[test]
fn a_number_that_comes_back_before_the_end_is_not_selected() {
    let mut control = control();
    let mut groups = Delete::group(1).begin_pieces(&mut control);
    let mut meters = Delete::meter(1).begin_pieces(&mut control);
    for _ in 0..30 {
        assert!(control.sweep(&mut groups, PIECE, NOW).is_none());
        assert!(control.sweep(&mut meters, PIECE, NOW).is_none());
    }
    Delete::group(GroupId::ALL.0).at_once(&mut control);
    Delete::meter(u32::MAX).at_once(&mut control);
    control.group_mod(&group_mod(GroupModCommand::Add, 2), NOW).unwrap();
    control.group_mod(&group_mod(GroupModCommand::Add, 1), NOW).unwrap();
    control.meter_mod(&meter_mod(MeterModCommand::Add, 1), NOW).unwrap();
    control.flow_mod(&entry(1, 1, 1), Version::V1_3, NOW).unwrap();
    assert_eq!(end(&mut control, &mut groups).removed, 0);
    assert_eq!(end(&mut control, &mut meters).removed, 0);
    assert_eq!(control.flow_stats(&FlowStatsRequest::all(), NOW).unwrap().len(), 1);
    assert_eq!(control.group_desc().len(), 2);
    assert_eq!(control.meter_config(MeterId::ALL).unwrap().len(), 1);
}

#[test]
fn what_a_dropped_delete_has_not_done_stays_and_may_be_named() {
    let mut control = control();
    let mut sweep = Delete::group(GroupId::ALL.0).begin_pieces(&mut control);
    for _ in 0..70 {
        assert!(control.sweep(&mut sweep, PIECE, NOW).is_none());
    }
    drop(sweep);
    control.flow_mod(&entry(3 * MANY, MANY, 0), Version::V1_3, NOW).unwrap();
    let left = control.flow_stats(&FlowStatsRequest::all(), NOW).unwrap().len();
    assert!(left > 1 && left < 2 * MANY as usize, "{left}");
}

#[test]
fn a_delete_of_few_is_done_at_once_and_one_of_many_begun() {
    let mut control = Control::new(DatapathConfig::default(), 1, RemovalReport::All);
    let at_once = AT_ONCE as u32;
    for id in 1..=at_once {
        control.group_mod(&group_mod(GroupModCommand::Add, 10 * id), NOW).unwrap();
        control.meter_mod(&meter_mod(MeterModCommand::Add, 10 * id), NOW).unwrap();
        control.flow_mod(&entry(id, 10, 10), Version::V1_3, NOW).unwrap();
    }
    // One more of each, and of each one more than is done at once.
    control.group_mod(&group_mod(GroupModCommand::Add, 5), NOW).unwrap();
    control.meter_mod(&meter_mod(MeterModCommand::Add, 5), NOW).unwrap();
    for (delete, is_at_once) in [
        (Delete::group(GroupId::ALL.0), false),
        (Delete::meter(u32::MAX), false),
        (Delete::group(5), true),
        (Delete::meter(5), true),
        (Delete::group(7), true),
        (Delete::meter(7), true),
    ] {
        let begun = delete.begin(&mut control);
        assert_eq!(matches!(begun, CommandProgress::Done(_)), is_at_once, "{delete:?}");
    }
    control.flow_mod(&entry(at_once + 1, 10, 10), Version::V1_3, NOW).unwrap();
    for delete in [Delete::group(10), Delete::meter(10)] {
        let begun = delete.begin(&mut control);
        assert!(matches!(begun, CommandProgress::Sweep(_)), "{delete:?}: {begun:?}");
    }
}

#[test]
fn a_group_that_others_lead_to_is_refused_at_first() {
    let mut control = control();
    let refused = control.begin_group_delete(GroupId(2)).map(|_| ());
    assert_eq!(refused, Err(Error::GroupModChainedGroup));
    assert!(control.groups.is_nameable(GroupId(2)));
}
