//! Actions and instructions: every kind, and mostly such that a match allows them.

use openflow::field::{ALL_FIELDS, FieldRow, Place, Prereq};
use openflow::group::{Bucket, GroupType, Selection, SelectionMethod};
use openflow::learn::{LearnFlags, LearnSource, LearnSpec, LearnTarget};
use openflow::members::{BundleAlgorithm, HashFields, MultipathAlgorithm};
use openflow::message::PacketInReason;
use openflow::{
    Action, BitRange, Cookie, Field, GroupId, Instruction, Learn, MacAddr, Match, Members, MeterId,
    PortNo, QueueId, ShortPort, TableId, ToController,
};
use packet::FlowKey;
use testkit::Random;

const RESERVED: [PortNo; 6] = [
    PortNo::IN_PORT,
    PortNo::NORMAL,
    PortNo::FLOOD,
    PortNo::ALL,
    PortNo::CONTROLLER,
    PortNo::LOCAL,
];

fn port(rng: &mut Random) -> PortNo {
    match rng.weighted(&[80, 4, 16]) {
        // The ingress port is mostly 1.
        0 => PortNo(*rng.pick(&[1, 2, 2, 2, 3, 3, 4])),
        1 => PortNo(5 + rng.below(2) as u32),
        _ => *rng.pick(&RESERVED),
    }
}

fn output(rng: &mut Random) -> Action {
    let max_len = *rng.pick(&[0, 64, 128, 0xffff]);
    Action::Output { port: port(rng), max_len }
}

fn set_field(matching: &Match, key: &FlowKey, rng: &mut Random) -> Action {
    let can = |row: &&FieldRow| row.settable && matching.matches(row.prereq) && is_drawn(row);
    let mut fields: Vec<Field> = ALL_FIELDS.iter().filter(can).map(|row| row.field).collect();
    if rng.percent(3) {
        fields = ALL_FIELDS.iter().map(|row| row.field).collect();
    }
    let field = *rng.pick(&fields);
    let value = match rng.weighted(&[40, 40, 20]) {
        _ if is_register(field.row()) => u128::from(rng.below(4)) << (32 * rng.below(4)),
        0 => key.get(field),
        1 => rng.below(4).into(),
        _ => rng.u128(),
    };
    let value = value & field.full_mask();
    // A VLAN id without the bit that says that there is one makes no sense.
    let value = if field == Field::VlanVid { value | 0x1000 } else { value };
    Action::set_field(field, value)
}

fn is_register(row: &FieldRow) -> bool {
    matches!(row.place, Place::Register(_) | Place::Registers(..))
}

/// Few of the registers, so that some entry looks at what another has written.
pub(crate) fn is_drawn(row: &FieldRow) -> bool {
    !matches!(row.place, Place::Register(3..) | Place::Registers(4.., _))
}

/// A field with some of its bits.
fn part(fields: &[&FieldRow], most: u16, rng: &mut Random) -> (Field, BitRange) {
    let row = *rng.pick(fields);
    let most = most.min(row.bits);
    let n_bits = if rng.percent(50) { most } else { 1 + rng.below(most.into()) as u16 };
    let offset =
        if rng.percent(50) { 0 } else { rng.below(u64::from(row.bits - n_bits) + 1) as u16 };
    (row.field, BitRange { offset, n_bits })
}

/// Load, move or an output by register, mostly with registers.
fn with_parts(matching: &Match, rng: &mut Random) -> Action {
    let mut fields = |is: &dyn Fn(&FieldRow) -> bool| -> Vec<&FieldRow> {
        let registers = rng.percent(60);
        let can = |row: &&FieldRow| matching.matches(row.prereq) && is_drawn(row) && is(row);
        ALL_FIELDS.iter().filter(can).filter(|row| !registers || is_register(row)).collect()
    };
    let (sources, targets) = (fields(&|_| true), fields(&|row| row.settable));
    match rng.weighted(&[40, 40, 20]) {
        0 => {
            let (dst, bits) = part(&targets, 64, rng);
            let value = if rng.percent(60) { rng.below(4).into() } else { rng.u128() };
            Action::Load { bits, dst, value: (value & bits.largest()) as u64 }
        }
        1 => {
            let (src, from) = part(&sources, 128, rng);
            let (dst, to) = part(&targets, from.n_bits, rng);
            let (n_bits, src_offset, dst_offset) = (to.n_bits, from.offset, to.offset);
            Action::Move { n_bits, src_offset, dst_offset, src, dst }
        }
        _ => {
            let (src, bits) = part(&sources, 64, rng);
            Action::OutputReg { bits, src, max_len: *rng.pick(&[64, 0xffff]) }
        }
    }
}

/// A push or a pop, mostly of registers.
fn on_stack(matching: &Match, rng: &mut Random) -> Action {
    let registers = rng.percent(60);
    let can = |row: &&FieldRow| matching.matches(row.prereq) && is_drawn(row);
    let all = ALL_FIELDS.iter().filter(can).filter(|row| !registers || is_register(row));
    if rng.percent(50) {
        let (src, BitRange { offset, n_bits }) = part(&all.collect::<Vec<_>>(), 128, rng);
        Action::Push { offset, src, n_bits }
    } else {
        let targets: Vec<&FieldRow> = all.filter(|row| row.settable).collect();
        let (dst, BitRange { offset, n_bits }) = part(&targets, 128, rng);
        Action::Pop { offset, dst, n_bits }
    }
}

/// A member of a bundle, or a number, mostly in a register.
fn choice(matching: &Match, rng: &mut Random) -> Action {
    let registers = rng.percent(70);
    let can = |row: &&FieldRow| row.settable && matching.matches(row.prereq) && is_drawn(row);
    let fields = ALL_FIELDS.iter().filter(can).filter(|row| !registers || is_register(row));
    let (dst, bits) = part(&fields.collect::<Vec<_>>(), 64, rng);
    if rng.percent(15) {
        let pkt_len = *rng.pick(&[0, 59, 60, 64, 100, 1500]);
        return Action::CheckPktLarger { pkt_len, offset: bits.offset, dst };
    }
    let (fields, basis) = (*rng.pick(HashFields::ALL), rng.below(3) as u16);
    if rng.percent(35) {
        let max_link = (rng.below(6) as u16).min(bits.largest().min(9) as u16);
        let algorithm = *rng.pick(MultipathAlgorithm::ALL);
        return Action::Multipath { fields, basis, algorithm, max_link, arg: 0, bits, dst };
    }
    let members = (0..rng.below(5)).filter_map(|_| ShortPort::new(port(rng))).collect();
    let algorithm = *rng.pick(BundleAlgorithm::ALL);
    let bundle = |dst| Box::new(Members { fields, basis, algorithm, members, dst });
    if rng.percent(50) {
        Action::Bundle(bundle(None))
    } else {
        Action::BundleLoad(bundle(Some((bits, dst))))
    }
}

/// One action; `key` gives values that some packets have.
pub(crate) fn action(matching: &Match, key: &FlowKey, rng: &mut Random) -> Action {
    match rng.weighted(&[30, 24, 12, 4, 6, 4, 4, 4, 4, 2, 2, 3, 3, 3, 3, 3, 14]) {
        16 => with_parts(matching, rng),
        0 => output(rng),
        1 if rng.percent(10) => action_1_1(rng),
        1 => set_field(matching, key, rng),
        2 => Action::Group(GroupId(1 + rng.below(6) as u32)),
        3 => Action::SetQueue(QueueId(rng.below(3) as u32)),
        4 if rng.percent(15) => Action::DecNwTtlTo(vec![1; rng.index(4)]),
        4 => Action::DecNwTtl,
        5 => Action::PushVlan(*rng.pick(&[0x8100, 0x8100, 0x88a8])),
        6 => Action::PopVlan,
        7 => Action::PushMpls(*rng.pick(&[0x8847, 0x8848])),
        8 => Action::PopMpls(*rng.pick(&[0x0800, 0x86dd, 0x8847, 0x1234])),
        9 => Action::PushPbb(0x88e7),
        10 => Action::PopPbb,
        11 => Action::SetNwTtl(*rng.pick(&[0, 1, 64])),
        12 => Action::SetMplsTtl(*rng.pick(&[0, 1, 64])),
        13 => Action::DecMplsTtl,
        14 => Action::CopyTtlOut,
        _ => Action::CopyTtlIn,
    }
}

/// One of 1.1's actions that no other version has, which groups keep as they are.
fn action_1_1(rng: &mut Random) -> Action {
    match rng.below(5) {
        0 => Action::SetTagVid(rng.below(4096) as u16),
        1 => Action::SetTagPcp(rng.below(8) as u8),
        2 => Action::SetNwEcn(rng.below(4) as u8),
        3 => Action::SetMplsLabel(rng.below(1 << 20) as u32),
        _ => Action::SetMplsTc(rng.below(8) as u8),
    }
}

/// One action of 1.0.
fn action_1_0(key: &FlowKey, rng: &mut Random) -> Action {
    let mac = MacAddr::from_u64(0x0200_0000_0000 | rng.below(4));
    let address = (key.get(Field::Ipv4Dst) as u32 ^ rng.below(4) as u32).into();
    match rng.weighted(&[40, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6]) {
        0 => output(rng),
        1 => Action::SetVlanVid(rng.below(4096) as u16),
        2 => Action::SetVlanPcp(rng.below(8) as u8),
        3 => Action::StripVlan,
        4 => Action::SetDlSrc(mac),
        5 => Action::SetDlDst(mac),
        6 => Action::SetNwSrc(address),
        7 => Action::SetNwDst(address),
        8 => Action::SetNwTos((rng.below(64) << 2) as u8),
        9 => Action::SetTpSrc(rng.below(2000) as u16),
        10 => Action::SetTpDst(rng.below(2000) as u16),
        _ => Action::Enqueue { port: PortNo(1 + rng.below(5) as u32), queue: QueueId(1) },
    }
}

pub(crate) fn list(matching: &Match, key: &FlowKey, rng: &mut Random) -> Vec<Action> {
    let mut list: Vec<Action> =
        (0..rng.weighted(&[40, 25, 15, 10, 10])).map(|_| action(matching, key, rng)).collect();
    if rng.percent(85) {
        list.push(output(rng));
    }
    list
}

/// The same, of which some search further tables, or end the list; most lead on from `table`.
pub(crate) fn list_of(
    tables: (u8, u8),
    matching: &Match,
    key: &FlowKey,
    rng: &mut Random,
) -> Vec<Action> {
    nested_list(0, tables, matching, key, rng)
}

/// The same of a list that lies in so many clones.
fn nested_list(
    depth: usize,
    (table, tables): (u8, u8),
    matching: &Match,
    key: &FlowKey,
    rng: &mut Random,
) -> Vec<Action> {
    let mut list = list(matching, key, rng);
    while rng.percent(18) {
        let at = if rng.percent(40) { list.len() } else { rng.index(list.len() + 1) };
        list.insert(at, resubmit((table, tables), rng));
    }
    while rng.percent(14) {
        let at = rng.index(list.len() + 1);
        list.insert(at, on_stack(matching, rng));
    }
    if rng.percent(3) {
        let at = rng.index(list.len() + 1);
        list.insert(at, Action::PopQueue);
    }
    if rng.percent(8) {
        let at = rng.index(list.len() + 1);
        list.insert(at, choice(matching, rng));
    }
    if rng.percent(if depth == 0 { 12 } else { 25 }) && depth < 3 {
        let inner = nested_list(depth + 1, (table, tables), matching, key, rng);
        let at = rng.index(list.len() + 1);
        list.insert(at, Action::Clone(inner));
    }
    if rng.percent(2) {
        let at = rng.index(list.len() + 1);
        list.insert(at, Action::Exit);
    }
    if rng.percent(12) {
        let at = rng.index(list.len() + 1);
        list.insert(at, learn(tables, matching, rng));
    }
    if rng.percent(15) {
        let at = rng.index(list.len() + 1);
        let [idle_timeout, hard_timeout] = [*rng.pick(&[0, 1, 3]), *rng.pick(&[0, 2, 4])];
        list.insert(at, Action::FinTimeout { idle_timeout, hard_timeout });
    }
    while rng.percent(9) {
        let at = rng.index(list.len() + 1);
        list.insert(
            at,
            if rng.percent(90) { to_controller(rng) } else { Action::Note(vec![7; 6]) },
        );
    }
    list
}

/// A learn action of which most packets teach an entry that some others match.
fn learn(tables: u8, matching: &Match, rng: &mut Random) -> Action {
    let can = |row: &&FieldRow| matching.matches(row.prereq) && is_drawn(row);
    let fields: Vec<&FieldRow> = ALL_FIELDS.iter().filter(can).collect();
    let sure: Vec<&FieldRow> = ALL_FIELDS.iter().filter(|row| row.prereq == Prereq::None).collect();
    let mut specs = Vec::new();
    if rng.percent(70) {
        let from = *rng.pick(&[Field::EthSrc, Field::EthDst]);
        let target = LearnTarget::Match(Field::EthDst, 0);
        specs.push(LearnSpec { n_bits: 48, source: LearnSource::Field(from, 0), target });
    }
    for _ in 0..rng.below(4) {
        let (src, from) = part(&fields, 128, rng);
        let (dst, to) = part(if rng.percent(95) { &sure } else { &fields }, from.n_bits, rng);
        let value = LearnSource::Immediate(rng.u128() & to.largest());
        let source = if rng.percent(70) { LearnSource::Field(src, from.offset) } else { value };
        let target = match rng.below(3) {
            0 => LearnTarget::Match(dst, to.offset),
            1 => LearnTarget::Load(dst, to.offset),
            _ if matches!(source, LearnSource::Field(..)) => LearnTarget::Output,
            _ => LearnTarget::Load(Field::Reg0, 0),
        };
        let n_bits = if target == LearnTarget::Load(Field::Reg0, 0) { 1 } else { to.n_bits };
        let source = match source {
            LearnSource::Immediate(value) if n_bits == 1 => LearnSource::Immediate(value & 1),
            other => other,
        };
        specs.push(LearnSpec { n_bits, source, target });
    }
    if rng.percent(70) {
        let n_bits = *rng.pick(&[16, 32]);
        let source = LearnSource::Field(Field::InPort, 0);
        specs.push(LearnSpec { n_bits, source, target: LearnTarget::Output });
    }
    Action::Learn(Box::new(Learn {
        idle_timeout_s: *rng.pick(&[0, 0, 1, 4]),
        hard_timeout_s: *rng.pick(&[0, 0, 2, 5]),
        priority: *rng.pick(&[0, 1, 2, 32_768]),
        cookie: Cookie(rng.below(3)),
        flags: LearnFlags::from_bits_retain(rng.below(4) as u16),
        table: TableId(rng.below(tables.min(4).into()) as u8),
        fin_timeouts_s: *rng.pick(&[[0, 0], [0, 0], [1, 0], [0, 2]]),
        specs,
    }))
}

/// A packet for some of the controllers, with whatever such an action has; now and then the packet
/// waits for them.
fn to_controller(rng: &mut Random) -> Action {
    let reasons = [PacketInReason::Action, PacketInReason::NoMatch, PacketInReason::Group];
    let asked = ToController {
        max_len: *rng.pick(&[0, 64, 0xffff]),
        controller_id: *rng.pick(&[0, 0, 1, 500]),
        reason: *rng.pick(&reasons),
        userdata: (0..rng.below(3) as u8).collect(),
        pauses: rng.percent(60),
        meter: rng.percent(15).then(|| MeterId(1 + rng.below(4) as u32)),
    };
    asked.into_action()
}

/// A resubmit from a table, mostly to a later one.
fn resubmit((table, tables): (u8, u8), rng: &mut Random) -> Action {
    let port = match rng.weighted(&[60, 35, 5]) {
        0 => PortNo::IN_PORT,
        1 => PortNo(1 + rng.below(4) as u32),
        _ => port(rng),
    };
    let port = ShortPort::new(port).unwrap();
    if rng.percent(3) {
        return Action::Resubmit(port);
    }
    // Tables beyond the first few have next to no entries.
    let end = tables.min(5);
    let table = match end.saturating_sub(table + 1) {
        0 if rng.percent(70) => tables - 1,
        0 => rng.below(u64::from(tables)) as u8,
        _ if rng.percent(4) => rng.below(u64::from(end)) as u8,
        later => table + 1 + rng.below(later.into()) as u8,
    };
    let table = if rng.percent(1) { TableId::ALL } else { TableId(table) };
    Action::ResubmitTable { port, table }
}

/// Instructions for an entry of `table`, one of `n_tables`.
pub(crate) fn instructions(
    table: u8,
    tables: u8,
    matching: &Match,
    key: &FlowKey,
    rng: &mut Random,
) -> Vec<Instruction> {
    let mut all = Vec::new();
    if rng.percent(60) {
        all.push(Instruction::ApplyActions(list_of((table, tables), matching, key, rng)));
    }
    if rng.percent(30) {
        let mut list = list(matching, key, rng);
        if rng.percent(15) {
            list.pop();
            list.push(resubmit((table, tables), rng));
        }
        all.push(Instruction::WriteActions(list));
    }
    if table + 1 < tables && rng.percent(55) {
        let next = table + 1 + rng.below(u64::from(tables - table - 1)) as u8;
        all.push(Instruction::GotoTable(TableId(next)));
    }
    if rng.percent(8) {
        all.push(Instruction::ClearActions);
    }
    if rng.percent(15) {
        let mask = *rng.pick(&[1, 2, 3, u64::MAX]);
        all.push(Instruction::WriteMetadata { metadata: rng.below(4) & mask, mask });
    }
    if rng.percent(12) {
        all.push(Instruction::Meter(MeterId(1 + rng.below(3) as u32)));
    }
    let turn = rng.index(all.len() + 1);
    all.rotate_left(turn);
    all
}

/// The instructions of a part of a conjunctive match; now and then such as are refused.
pub(crate) fn conjunctions(rng: &mut Random) -> Vec<Instruction> {
    let part = |rng: &mut Random| {
        let n_dimensions = *rng.pick(&[2, 2, 2, 2, 2, 2, 3, 64]);
        let end = if rng.percent(3) { 4 } else { n_dimensions.min(3) };
        let dimension = rng.below(end) as u8;
        let id = 1 + rng.below(2) as u32;
        Action::Conjunction { dimension, n_dimensions: n_dimensions as u8, id }
    };
    let mut list: Vec<Action> = (0..1 + rng.below(3)).map(|_| part(rng)).collect();
    if rng.percent(3) {
        list.push(output(rng));
    }
    let is_written = rng.percent(2);
    vec![if is_written { Instruction::WriteActions(list) } else { Instruction::ApplyActions(list) }]
}

/// The instructions of an entry of 1.0.
pub(crate) fn instructions_1_0(key: &FlowKey, rng: &mut Random) -> Vec<Instruction> {
    let list: Vec<Action> = (0..rng.below(4)).map(|_| action_1_0(key, rng)).collect();
    if list.is_empty() { Vec::new() } else { vec![Instruction::ApplyActions(list)] }
}

/// Instructions that are never refused.
pub(crate) fn simple(rng: &mut Random) -> Vec<Instruction> {
    vec![Instruction::ApplyActions(vec![Action::output(PortNo(1 + rng.below(5) as u32))])]
}

/// Perhaps a choice of buckets by some fields, or by bits of them.
pub(crate) fn selection(rng: &mut Random) -> Option<Selection> {
    if rng.percent(40) {
        return None;
    }
    let param = rng.below(3);
    let mut fields: Vec<(Field, u128)> = Vec::new();
    for _ in 0..rng.below(4) {
        let row = *rng.pick(&openflow::field::FIELDS.iter().collect::<Vec<_>>());
        let bits = match row.maskable && rng.percent(30) {
            true => row.field.full_mask() & 0x5555_5555_5555_5555_5555_5555_5555_5555,
            false => row.field.full_mask(),
        };
        fields.push((row.field, bits));
    }
    Some(Selection { method: SelectionMethod::Hash, param, fields })
}

pub(crate) fn buckets(group_type: GroupType, key: &FlowKey, rng: &mut Random) -> Vec<Bucket> {
    let count = if group_type == GroupType::Indirect { 1 } else { rng.index(5) };
    let bucket = |_| {
        let weight = if group_type == GroupType::Select { rng.below(4) as u16 } else { 0 };
        let watches_port = group_type == GroupType::FastFailover || rng.percent(15);
        let watch_port = if watches_port { PortNo(1 + rng.below(5) as u32) } else { PortNo::ANY };
        let watch_group =
            if rng.percent(8) { GroupId(1 + rng.below(6) as u32) } else { GroupId::ANY };
        let mut actions: Vec<Action> =
            (0..rng.index(3)).map(|_| action(&Match::any(), key, rng)).collect();
        if rng.percent(12) {
            actions.push(resubmit((rng.below(3) as u8, 5), rng));
        } else {
            actions.push(output(rng));
        }
        Bucket { bucket_id: None, weight, watch_port, watch_group, actions }
    };
    (0..count).map(bucket).collect()
}
