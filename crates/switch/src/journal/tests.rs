//! The journal against tables that random commands change: whatever of the file is left, what is
//! restored is what the tables held after some batch, and no damage is taken for a state.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use datapath::fast::{Changed, Control, Forwarder, NoKernel, Op, RemovalReport};
use datapath::{BundleCommand, DatapathConfig, Nanos};
use openflow::flow::{FlowForm, FlowMod, FlowModCommand, FlowModFlags, FlowStatsRequest};
use openflow::group::{Bucket, GroupMod, GroupModCommand, GroupType};
use openflow::meter::{Band, BandKind, MeterFlags, MeterMod, MeterModCommand};
use openflow::port::{PortDesc, PortState};
use openflow::table::{TableMod, Vacancy};
use openflow::{
    Action, Cookie, DatapathId, Field, GroupId, Instruction, MacAddr, Match, Message, MeterId,
    PortNo, TableId, Version, Xid,
};
use testkit::Random;
use wire::Forms;

use super::batch::FORMS;
use super::folder::with_ending;
use super::read::Parsed;
use super::{Journal, JournalFault, JournalOwner, Output, RETRY_AFTER, StateFolder, read_journal};
use crate::counters::{Counter, Counters};

/// When everything is looked at, so that ages are the same.
const END: Nanos = Nanos::from_s(10_000);

/// All that a controller sees of the tables.
fn shown(control: &Control) -> String {
    format!(
        "{:#?}\n{:#?}\n{:#?}\n{:#?}\n{:#?}",
        control.flow_stats(&FlowStatsRequest::all(), END).unwrap(),
        control.group_desc(),
        control.group_stats(GroupId::ALL, END),
        control.meter_config(MeterId::ALL).unwrap(),
        control.meter_stats(MeterId::ALL, END).unwrap(),
    )
}

fn addresses(rig: &Rig) -> Vec<(MacAddr, PortNo)> {
    rig.control.learnt_addresses(rig.now).iter().map(|it| (it.address, it.port)).collect()
}

fn tables() -> Control {
    let config = DatapathConfig { n_tables: 4, ..DatapathConfig::default() };
    let mut control = Control::new(config, 1, RemovalReport::Asked);
    for number in 1..=4 {
        let (port_no, state) = (PortNo(number), PortState::LIVE);
        let desc = PortDesc { port_no, state, name: format!("p{number}"), ..PortDesc::default() };
        control.port_set(desc, Nanos(0));
    }
    control
}

fn owner(counters: &Arc<Counters>) -> JournalOwner {
    JournalOwner {
        name: "br0".to_owned(),
        dpid: DatapathId(0xa1),
        ports: (1..=4).map(|number| (PortNo(number), format!("p{number}"))).collect(),
        counters: Arc::clone(counters),
    }
}

/// Tables with a journal in a folder.
struct Rig {
    dir: tempfile::TempDir,
    folder: Option<StateFolder>,
    control: Control,
    forwarder: Forwarder<NoKernel>,
    journal: Journal,
    counters: Arc<Counters>,
    now: Nanos,
}

impl Rig {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let folder = StateFolder::open(dir.path()).unwrap();
        let (mut control, counters) = (tables(), Arc::default());
        let now = Nanos::from_s(1);
        let (journal, restored) =
            Journal::open(&folder, owner(&counters), &mut control, now).unwrap();
        assert_eq!(restored, datapath::fast::Restored::default());
        let forwarder = control.forwarder(0, 7);
        Self { dir, folder: Some(folder), control, forwarder, journal, counters, now }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("br0.journal")
    }

    fn bytes(&self) -> Vec<u8> {
        fs::read(self.path()).unwrap()
    }

    /// Has the forwarder apply what there is; the ops.
    fn catch_up(&mut self) -> Vec<Op> {
        let mut ops = Vec::new();
        self.control.take_ops(&mut ops);
        for mut op in ops.iter().cloned() {
            while let Some(again) = self.forwarder.apply(op, self.now).again() {
                op = again;
            }
        }
        while self.forwarder.flush_some(64, self.now) {}
        ops
    }

    /// Saves what the commands so far have changed.
    fn save(&mut self) {
        let mut changed = Changed::default();
        self.catch_up().iter().for_each(|op| op.note_changed(&mut changed));
        self.journal.save(&self.control, changed);
        // Numbers become free.
        for _ in 0..2 {
            drop(self.control.reap());
            self.catch_up();
        }
    }

    fn save_counts(&mut self) {
        self.control.flush();
        self.catch_up();
        let mut next = Some(0);
        while let Some(from) = next {
            next = self.journal.save_counts(&self.control, from, 3);
        }
        self.journal.save_shared_counts(&self.control);
        self.journal.save_addresses(&self.control, self.now);
    }

    fn flow(&mut self, command: FlowModCommand, port: u32) {
        let flow_mod = FlowMod {
            matching: Match::any().with(Field::InPort, port.into()),
            instructions: vec![to(Action::output(PortNo(1)))],
            ..FlowMod::new(command)
        };
        self.control.flow_mod(&flow_mod, Version::V1_3, self.now).unwrap();
        self.save();
    }

    /// Another start of the same switch.
    fn restart(mut self) -> Self {
        self.folder = None;
        let folder = StateFolder::open(self.dir.path()).unwrap();
        let mut control = tables();
        let opened = Journal::open(&folder, owner(&self.counters), &mut control, self.now);
        let journal = opened.unwrap().0;
        let forwarder = control.forwarder(0, 7);
        Self { folder: Some(folder), control, forwarder, journal, ..self }
    }
}

fn to(action: Action) -> Instruction {
    Instruction::ApplyActions(vec![action])
}

fn random_flow_mod(random: &mut Random) -> FlowMod {
    use FlowModCommand::{Add, Delete, DeleteStrict, Modify, ModifyStrict};
    let port = random.below(4) as u32 + 1;
    let matching = match random.below(4) {
        0 => Match::any(),
        1 if random.percent(50) => Match::any().with(Field::Reg0, random.below(4).into()),
        1 => Match::any().with(Field::EthDst, random.below(4).into()),
        _ => Match::any().with(Field::InPort, port.into()),
    };
    let action = match random.below(4) {
        0 => Action::Group(GroupId(random.below(4) as u32)),
        1 => Action::output(PortNo::NORMAL),
        _ => Action::output(PortNo(random.below(4) as u32 + 1)),
    };
    let mut instructions = vec![to(action)];
    if random.percent(20) {
        instructions.push(Instruction::Meter(MeterId(random.below(3) as u32 + 1)));
    }
    FlowMod {
        table_id: TableId(random.below(3) as u8),
        priority: random.below(3) as u16,
        cookie: Cookie(random.below(4)),
        idle_timeout_s: *random.pick(&[0, 0, 5]),
        hard_timeout_s: *random.pick(&[0, 0, 9]),
        flags: *random.pick(&[
            FlowModFlags::empty(),
            FlowModFlags::SEND_FLOW_REM,
            FlowModFlags::CHECK_OVERLAP,
            FlowModFlags::RESET_COUNTS,
        ]),
        matching,
        instructions,
        ..FlowMod::new(*random.pick(&[Add, Add, Add, Modify, ModifyStrict, Delete, DeleteStrict]))
    }
}

/// The same as it comes from a controller of 1.0, where that has words for it.
fn of_1_0(flow_mod: FlowMod) -> (FlowMod, Version) {
    let message = Message::FlowMod(flow_mod.clone());
    for flows in [FlowForm::Standard, FlowForm::Nicira] {
        let (mut frame, forms) = (Vec::new(), Forms { has_table_ids: true, flows, ..FORMS });
        if wire::encode_in(&mut frame, forms, Version::V1_0, Xid(1), &message).is_ok()
            && let Message::FlowMod(decoded) = wire::decode_in(&frame, forms).unwrap().2
        {
            return (decoded, Version::V1_0);
        }
    }
    (flow_mod, Version::V1_3)
}

fn random_command(random: &mut Random) -> BundleCommand {
    use {GroupModCommand as Group, MeterModCommand as Meter};
    match random.below(8) {
        0 => BundleCommand::GroupMod(GroupMod {
            command: *random.pick(&[Group::Add, Group::Add, Group::Modify, Group::Delete]),
            group_type: *random.pick(&[GroupType::All, GroupType::Indirect, GroupType::Select]),
            group_id: GroupId(random.below(4) as u32),
            buckets: (0..random.below(3))
                .map(|_| Bucket {
                    bucket_id: None,
                    weight: random.below(2) as u16,
                    watch_port: PortNo::ANY,
                    watch_group: GroupId::ANY,
                    actions: vec![match random.percent(50) {
                        true => Action::Group(GroupId(random.below(4) as u32)),
                        false => Action::output(PortNo(2)),
                    }],
                })
                .collect(),
            ..GroupMod::default()
        }),
        1 => BundleCommand::MeterMod(MeterMod {
            command: *random.pick(&[Meter::Add, Meter::Add, Meter::Modify, Meter::Delete]),
            flags: MeterFlags::PKTPS,
            meter_id: MeterId(random.below(3) as u32 + 1),
            bands: vec![Band { kind: BandKind::Drop, rate: 1, burst_size: 0 }],
        }),
        _ => BundleCommand::FlowMod(random_flow_mod(random)),
    }
}

/// A batch of commands, some of them in a bundle, each perhaps refused.
fn random_batch(rig: &mut Rig, random: &mut Random) {
    let now = rig.now;
    for _ in 0..=random.below(3) {
        let _is_refused = match random.below(10) {
            0 => {
                let commands: Vec<_> = (0..4).map(|_| random_command(random)).collect();
                rig.control.bundle(&commands, Version::V1_3, now).is_err()
            }
            1 => rig.control.expire(now, 8).removed == 0,
            2 => {
                let (flow_mod, version) = of_1_0(random_flow_mod(random));
                rig.control.flow_mod(&flow_mod, version, now).is_err()
            }
            _ => rig.control.command(&random_command(random), Version::V1_3, now).is_err(),
        };
    }
}

fn send(rig: &mut Rig, random: &mut Random) {
    let mut frames: Vec<_> = (0..4)
        .map(|_| {
            let (from, to) = (MacAddr::from_u64(0x0200_0000_0000), MacAddr::from_u64(2));
            let from = MacAddr::from_u64(from.to_u64() + random.below(3));
            let frame = packet::build::FrameBuilder::ethernet(from, to).fill_to(60).build();
            packet::PacketBuf::from_slice(&frame)
        })
        .collect();
    let port = PortNo(random.below(4) as u32 + 1);
    rig.forwarder.process_batch(&mut frames, port, rig.now, &mut Nowhere);
}

/// Takes everything and keeps nothing.
struct Nowhere;

impl datapath::fast::Sink for Nowhere {
    fn output(&mut self, _: PortNo, _: Option<openflow::QueueId>, _: packet::PacketBuf) {}

    fn packet_in(&mut self, _: openflow::message::PacketIn, _: u16) {}

    fn dropped(&mut self, _: datapath::DropReason) {}

    fn done(&mut self, _: packet::PacketBuf) {}

    fn spare(&mut self) -> packet::PacketBuf {
        packet::PacketBuf::default()
    }
}

/// The tables that a journal says; the number of items that were not read or refused.
fn restored(bytes: &[u8]) -> Result<(String, usize), JournalFault> {
    let parsed = Parsed::of(bytes)?;
    let (saved, unreadable) = parsed.saved(None);
    let mut control = tables();
    let restored = control.restore(saved, END);
    Ok((shown(&control), unreadable + restored.refused.map_or(0, |(count, _)| count)))
}

#[test]
fn what_is_left_of_a_journal_is_the_state_after_a_batch() {
    for seed in 0..10 {
        let (mut rig, mut random) = (Rig::new(), Random::new(seed));
        // The states by the length that the file had then.
        let mut states = BTreeMap::from([(rig.bytes().len(), shown(&rig.control))]);
        for _ in 0..60 {
            rig.now = Nanos(rig.now.0 + random.below(3_000_000_000));
            random_batch(&mut rig, &mut random);
            rig.save();
            if random.percent(40) {
                send(&mut rig, &mut random);
            }
            rig.save_counts();
            if random.percent(4) {
                rig.journal.write_anew(&rig.control).unwrap();
                states.clear();
            }
            states.insert(rig.bytes().len(), shown(&rig.control));
        }
        let bytes = rig.bytes();
        let first = *states.keys().next().unwrap();
        for (len, state) in &states {
            assert_eq!(restored(&bytes[..*len]).unwrap(), (state.clone(), 0), "{seed}: {len}");
            // The next record has begun.
            let more = (len + 1 + random.index(11)).min(bytes.len());
            assert_eq!(restored(&bytes[..more]).unwrap().0, *state, "{seed}: {more}");
        }
        for _ in 0..40 {
            let cut = first + random.index(bytes.len() - first + 1);
            assert_eq!(restored(&bytes[..cut]).unwrap().1, 0, "{seed}: {cut}");
        }
        for _ in 0..40 {
            let mut spoilt = bytes.clone();
            spoilt[random.index(bytes.len())] ^= 1 << random.below(8);
            assert!(read_journal(&spoilt).is_err(), "{seed}");
        }
        let (last, known) = (shown(&rig.control), addresses(&rig));
        let rig = rig.restart();
        assert_eq!((shown(&rig.control), addresses(&rig)), (last.clone(), known), "{seed}");
        assert_eq!(rig.counters.get(Counter::StateError), 0);
        let (again, read) = (shown(&rig.restart().control), restored(&bytes).unwrap());
        assert_eq!((again, read), (last.clone(), (last, 0)), "{seed}");
    }
}

#[test]
fn tables_keep_their_settings() {
    let mut rig = Rig::new();
    rig.flow(FlowModCommand::Add, 1);
    let config = TableMod::EVICTION | TableMod::VACANCY_EVENTS;
    let vacancy = Some(Vacancy { down: 20, up: 80, now: 0 });
    let table_mod = TableMod { vacancy, ..TableMod::new(TableId(1), config) };
    rig.control.table_mod(&table_mod, Version::V1_4).unwrap();
    rig.journal.save_tables(&rig.control);
    let before = rig.control.table_desc();
    assert!(before[1].config == config && before[1].vacancy.is_some());
    let mut rig = rig.restart();
    assert_eq!(rig.control.table_desc(), before);
    assert!(rig.control.take_table_events().is_empty());
    // Once more, from the file that was written anew at the start; then they go.
    let table_mod = TableMod::new(TableId(1), TableMod::EVICTION);
    rig.control.table_mod(&table_mod, Version::V1_4).unwrap();
    rig = rig.restart();
    assert_eq!(rig.control.table_desc(), before, "nothing was saved");
    rig.control.table_mod(&TableMod::new(TableId::ALL, 0), Version::V1_4).unwrap();
    rig.journal.save_tables(&rig.control);
    assert!(rig.restart().control.table_desc().iter().all(|table| table.config == 0));
}

#[test]
fn entries_of_1_0_keep_their_match_and_instructions_of_1_3() {
    let mut rig = Rig::new();
    // An add of 1.0 whose match says more than its fields mean.
    let add = FlowMod {
        matching: Match::any().with(Field::EthType, 0x88b5),
        ..FlowMod::new(FlowModCommand::Add)
    };
    let mut frame = wire::encode(Version::V1_0, Xid(1), &Message::FlowMod(add)).unwrap();
    // No wildcards: port 1, untagged, and the port of a protocol that has none.
    frame[8..14].copy_from_slice(&[0, 0, 0, 0, 0, 1]);
    frame[8 + 18..8 + 20].copy_from_slice(&[0xff, 0xff]);
    frame[8 + 36] = 9;
    let Message::FlowMod(add) = wire::decode(&frame).unwrap().2 else { panic!() };
    assert!(add.matching.form().is_some());
    rig.control.flow_mod(&add, Version::V1_0, rig.now).unwrap();
    let modify = FlowMod {
        instructions: vec![Instruction::GotoTable(TableId(2))],
        ..FlowMod::new(FlowModCommand::Modify)
    };
    rig.control.flow_mod(&modify, Version::V1_3, rig.now).unwrap();
    rig.save();
    let before = shown(&rig.control);
    let rig = rig.restart();
    assert_eq!(shown(&rig.control), before);
    let stats = rig.control.flow_stats(&FlowStatsRequest::all(), END).unwrap();
    assert_eq!(stats[0].matching.form(), add.matching.form());
}

#[test]
fn a_full_disk_loses_the_file_and_not_the_switch() {
    let mut rig = Rig::new();
    rig.flow(FlowModCommand::Add, 1);
    let full = OpenOptions::new().append(true).open("/dev/full").unwrap();
    rig.journal.output = Some(Output { file: full, len: 0, compact_len: 0 });
    rig.flow(FlowModCommand::Add, 2);
    assert_eq!(rig.counters.get(Counter::StateError), 1);
    assert!(!rig.path().exists(), "an outdated state would be restored");
    // Nothing more is lost by changes meanwhile.
    rig.flow(FlowModCommand::Add, 3);
    assert_eq!(rig.counters.get(Counter::StateError), 1);
    assert!(!rig.journal.begin_due_compaction(&rig.control, Instant::now()), "too early");
    let later = Instant::now() + RETRY_AFTER;
    assert!(rig.journal.begin_due_compaction(&rig.control, later));
    // What changes while a compaction is made is in it.
    assert!(rig.journal.go_on_with_compaction(&rig.control, 1));
    rig.flow(FlowModCommand::DeleteStrict, 1);
    while rig.journal.go_on_with_compaction(&rig.control, 1) {}
    rig.flow(FlowModCommand::Add, 4);
    let before = shown(&rig.control);
    assert_eq!(rig.control.table_stats()[0].active_count, 3);
    assert_eq!(shown(&rig.restart().control), before);
}

#[test]
fn a_journal_that_has_grown_is_written_anew() {
    let mut rig = Rig::new();
    for port in 0..100 {
        rig.flow(FlowModCommand::Add, port + 1);
    }
    let mut longest = 0;
    for round in 0..9_000_u32 {
        rig.flow(FlowModCommand::Add, round % 100 + 1);
        if rig.journal.begin_due_compaction(&rig.control, Instant::now()) {
            longest = longest.max(rig.bytes().len());
            while rig.journal.go_on_with_compaction(&rig.control, 7) {}
        }
    }
    assert!((1 << 20..1 << 21).contains(&longest), "{longest}");
    let before = shown(&rig.control);
    assert_eq!(shown(&rig.restart().control), before);
}

#[test]
fn counts_while_a_compaction_is_made_are_in_both_files() {
    let (mut rig, mut random) = (Rig::new(), Random::new(1));
    let group = GroupMod {
        command: GroupModCommand::Add,
        group_type: GroupType::All,
        group_id: GroupId(1),
        buckets: Vec::new(),
        ..GroupMod::default()
    };
    rig.control.group_mod(&group, rig.now).unwrap();
    let meter = MeterMod {
        command: MeterModCommand::Add,
        flags: MeterFlags::PKTPS,
        meter_id: MeterId(1),
        bands: Vec::new(),
    };
    rig.control.meter_mod(&meter, rig.now).unwrap();
    for port in 1..=3 {
        rig.flow(FlowModCommand::Add, port);
    }
    let shared = FlowMod {
        matching: Match::any().with(Field::InPort, 4),
        instructions: vec![Instruction::Meter(MeterId(1)), to(Action::Group(GroupId(1)))],
        ..FlowMod::new(FlowModCommand::Add)
    };
    rig.control.flow_mod(&shared, Version::V1_3, rig.now).unwrap();
    rig.save();
    let mut count = |rig: &mut Rig| {
        (0..16).for_each(|_| send(rig, &mut random));
        rig.control.flush();
        rig.catch_up();
    };
    count(&mut rig);
    rig.journal.begin_compaction(&rig.control).unwrap();
    let mut goes_on = true;
    while goes_on {
        // These are saved before the new file has all entries, and those before the old one has
        // them.
        rig.save_counts();
        count(&mut rig);
        goes_on = rig.journal.go_on_with_compaction(&rig.control, 1);
        rig.save_counts();
        assert_eq!(restored(&rig.bytes()), Ok((shown(&rig.control), 0)));
    }
    let before = shown(&rig.control);
    assert_eq!(shown(&rig.restart().control), before);
}

#[test]
fn nothing_is_left_of_a_bridge_that_goes() {
    let mut rig = Rig::new();
    assert_eq!(fs::metadata(rig.path()).unwrap().permissions().mode() & 0o777, 0o600);
    rig.journal.begin_compaction(&rig.control).unwrap();
    rig.journal.discard();
    assert_eq!(fs::read_dir(rig.dir.path()).unwrap().count(), 0);
}

#[test]
fn addresses_at_a_port_that_is_gone_are_not_restored() {
    let mut rig = Rig::new();
    for port in [3, 4] {
        let address = MacAddr::from_u64(port.into());
        assert!(rig.control.set_address(0, address, PortNo(port), rig.now));
    }
    rig.save_counts();
    let (mut control, mut owner) = (tables(), owner(&rig.counters));
    owner.ports.remove(&PortNo(3));
    let folder = rig.folder.take().unwrap();
    Journal::open(&folder, owner, &mut control, rig.now).unwrap();
    let known = control.learnt_addresses(rig.now);
    assert_eq!(known.iter().map(|it| it.port).collect::<Vec<_>>(), [PortNo(4)]);
}

#[test]
fn a_journal_of_another_bridge_is_set_aside() {
    type Change = fn(&mut JournalOwner);
    let cases: [(&str, &str, Change); 3] = [
        ("dpid", "refused", |owner| owner.dpid = DatapathId(0xa2)),
        ("port", "refused", |owner| {
            owner.ports.insert(PortNo(3), "other".to_owned());
        }),
        ("none", "", |owner| {
            owner.ports.remove(&PortNo(3));
        }),
    ];
    for (name, suffix, change) in cases {
        let mut rig = Rig::new();
        rig.flow(FlowModCommand::Add, 1);
        let (mut control, mut owner) = (tables(), owner(&rig.counters));
        change(&mut owner);
        let folder = rig.folder.take().unwrap();
        let opened = Journal::open(&folder, owner, &mut control, rig.now).unwrap();
        let is_aside = with_ending(&rig.path(), "refused").exists();
        let is_used = suffix.is_empty();
        assert_eq!((opened.1.entries, is_aside), (usize::from(is_used), !is_used), "{name}");
    }
}

#[test]
fn smaller_tables_keep_the_file_with_what_they_refuse() {
    let mut rig = Rig::new();
    (1..=4).for_each(|port| rig.flow(FlowModCommand::Add, port));
    let bytes = rig.bytes();
    let mut small = Control::new(
        DatapathConfig { max_entries: 3, ..DatapathConfig::default() },
        1,
        RemovalReport::Asked,
    );
    let folder = rig.folder.take().unwrap();
    let open = |control: &mut Control| {
        let restored = Journal::open(&folder, owner(&rig.counters), control, rig.now).unwrap().1;
        (restored.entries, restored.refused.map(|(count, _)| count))
    };
    assert_eq!(open(&mut small), (3, Some(1)));
    let aside = with_ending(&rig.path(), "refused");
    assert_eq!(fs::read(&aside).unwrap(), bytes);
    // By its name of before it is whole again, and nothing is set aside.
    fs::rename(&aside, rig.path()).unwrap();
    assert_eq!(open(&mut tables()), (4, None));
    assert!(!aside.exists());
}

#[test]
fn a_file_that_is_no_journal_is_set_aside() {
    for bytes in [&b"hello, this is text"[..], &[0; 64], &[7; 3]] {
        let mut rig = Rig::new();
        fs::write(rig.path(), bytes).unwrap();
        let aside = with_ending(&rig.path(), "damaged");
        rig = rig.restart();
        assert_eq!(fs::read(&aside).unwrap(), bytes);
        rig.flow(FlowModCommand::Add, 1);
        assert_eq!(rig.restart().control.table_stats()[0].active_count, 1);
    }
    assert_eq!(read_journal(&[]).unwrap_err(), JournalFault::NoJournal);
}

#[test]
fn a_file_that_is_set_aside_replaces_no_other_of_few() {
    let mut rig = Rig::new();
    for number in 1..=10_u8 {
        fs::write(rig.path(), [number; 9]).unwrap();
        rig = rig.restart();
    }
    for (suffix, number) in [("damaged", 1), ("damaged.2", 2), ("damaged.8", 8), ("damaged.9", 10)]
    {
        assert_eq!(fs::read(with_ending(&rig.path(), suffix)).unwrap(), [number; 9], "{suffix}");
    }
}

#[test]
fn times_of_an_earlier_boot_begin_anew() {
    let mut rig = Rig::new();
    rig.flow(FlowModCommand::Add, 1);
    let bytes = rig.bytes();
    let (saved, _) = Parsed::of(&bytes).unwrap().saved(Some(END));
    assert_eq!((saved.entries[0].created, saved.entries[0].counts.last_used), (END, END));
}
