//! A scenario: what a datapath is built with, and everything that is done to it, in order.
//!
//! All of it follows from one number. It is made before it is run, so that a part of it can be run
//! again when something differs.

use datapath::{
    BundleCommand, Datapath, DatapathConfig, Fragments, Mirror, MirrorOutput, Miss, Reference,
    Settings, Vids,
};
use openflow::flow::{FlowMod, FlowModCommand, FlowModFlags, FlowStatsRequest};
use openflow::group::{GroupMod, GroupModCommand, GroupType};
use openflow::message::PacketOut;
use openflow::meter::{Band, BandKind, MeterFlags, MeterMod, MeterModCommand};
use openflow::port::{PortConfig, PortDesc, PortFeatures, PortMod, PortState};
use openflow::table::{TableFeatures, TableMod, TableProperty, Vacancy};
use openflow::{
    Action, Cookie, Field, GroupId, Instruction, InstructionKind, MacAddr, Match, MeterId, PortNo,
    TableId, TupleForm, TwelveTuple, Version,
};
use packet::{FlowKey, Meta, extract};
use testkit::Random;

use crate::frames::Universe;
use crate::{actions, matches};

/// One thing that is done.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// A flow-mod; where it is refused, the second one is tried.
    FlowMod(Version, Box<FlowMod>, Option<Box<FlowMod>>),
    GroupMod(GroupMod),
    MeterMod(MeterMod),
    /// All of these or none.
    Bundle(Vec<BundleCommand>),
    /// Eviction and vacancy events.
    TableMod(TableMod),
    PortMod(PortMod),
    PortSet(PortDesc),
    PortRemove(PortNo),
    Settings(Settings),
    /// A port's part in VLANs, as a user writes it.
    PortVlans(PortNo, &'static str),
    /// The mirrors from now on.
    Mirrors(Vec<Mirror>),
    /// Another pipeline: the tables that stay, and whether they may hold less than all.
    Tables(Vec<TableFeatures>),
    PacketOut(PacketOut),
    /// A batch of frames, by their places in the list of frames, from one port.
    Packets(PortNo, Vec<u32>),
    /// Time passes, in nanoseconds.
    Wait(u64),
    /// Entries expire, and everything that can be seen is compared.
    Look(Box<FlowStatsRequest>),
    /// The lines of a trace are compared.
    Trace(PortNo, u32),
}

/// A scenario.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) seed: u64,
    pub(crate) config: DatapathConfig,
    pub(crate) frames: Vec<Vec<u8>>,
    pub(crate) steps: Vec<Step>,
}

/// Size of a scenario.
#[derive(Clone, Copy, Debug)]
struct Size {
    entries: usize,
    frames: usize,
    rounds: usize,
    batches: usize,
    batch: usize,
}

/// Many packets over a few entries, or few packets over many entries: the reference searches one
/// by one.
fn size(rng: &mut Random) -> Size {
    let batch = *rng.pick(&[1, 2, 7, 32, 32, 64, 256]);
    let (entries, frames, rounds, packets) = match rng.weighted(&[45, 40, 15]) {
        0 => (3 + rng.index(12), 8 + rng.index(40), 12, 12_000),
        1 => (20 + rng.index(60), 40 + rng.index(150), 10, 10_000),
        _ => (150 + rng.index(300), 200 + rng.index(600), 5, 6_000),
    };
    Size { entries, frames, rounds, batches: (packets / rounds / batch).max(1), batch }
}

/// Makes a part of a conjunctive match of an entry, or one with `conj_id`. They lie close together,
/// so that packets match what makes up a conjunction.
fn conjunctive(flow_mod: &mut FlowMod, key: &FlowKey, rng: &mut Random) {
    flow_mod.table_id = TableId(u8::from(rng.percent(20)));
    let is_part = rng.percent(70);
    let fields = [Field::Ipv4Src, Field::Ipv4Dst, Field::EthDst, Field::EthSrc, Field::Ipv6Src];
    match rng.weighted(&[50, 20, 30]) {
        0 => flow_mod.matching = matches::prefix(*rng.pick(&fields), key, rng),
        1 => flow_mod.matching = Match::any(),
        _ => {}
    }
    if is_part {
        flow_mod.priority = *rng.pick(&[2, 3, 3, 3]);
        flow_mod.instructions = actions::conjunctions(rng);
        if rng.percent(30) {
            flow_mod.idle_timeout_s = rng.below(3) as u16;
            flow_mod.hard_timeout_s = rng.below(3) as u16;
        }
    } else {
        flow_mod.matching.set(Field::ConjId, rng.below(4).into(), u128::MAX);
    }
}

/// Trait that the entries share, so that every kind of table comes about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    /// Nothing.
    Mixed,
    /// The fields and the masks.
    OneShape,
    /// One field, under prefixes, the longer ones with higher priority.
    Prefixes(Field),
}

fn style(rng: &mut Random) -> Style {
    match rng.weighted(&[60, 20, 20]) {
        0 => Style::Mixed,
        1 => Style::OneShape,
        _ => Style::Prefixes(*rng.pick(&[
            Field::Ipv4Dst,
            Field::Ipv4Dst,
            Field::Ipv4Src,
            Field::Ipv6Dst,
            Field::EthDst,
        ])),
    }
}

/// Lets a modify look for one cookie and give another, or leave that of entries as it is.
fn cookies_of_nicira(flow_mod: &mut FlowMod) {
    let is_modify =
        matches!(flow_mod.command, FlowModCommand::Modify | FlowModCommand::ModifyStrict);
    let Cookie(drawn) = flow_mod.cookie;
    if is_modify && flow_mod.cookie_mask != 0 {
        flow_mod.new_cookie = (drawn > 1).then_some(Cookie(drawn ^ 1));
    } else if is_modify && drawn == 3 {
        flow_mod.cookie = Cookie::NONE;
    }
}

/// Takes the actions by which packets change entries out of a step.
fn forget_learns(step: &mut Step) {
    let forget = |flow_mod: &mut FlowMod| {
        for instruction in &mut flow_mod.instructions {
            if let Instruction::ApplyActions(list) = instruction {
                forget_in(list);
            }
        }
    };
    match step {
        Step::FlowMod(_, flow_mod, fallback) => {
            forget(flow_mod);
            fallback.iter_mut().for_each(|flow_mod| forget(flow_mod));
        }
        Step::Bundle(commands) => commands.iter_mut().for_each(|command| match command {
            BundleCommand::FlowMod(flow_mod) => forget(flow_mod),
            BundleCommand::PacketOut(packet_out) => forget_in(&mut packet_out.actions),
            _ => {}
        }),
        Step::PacketOut(packet_out) => {
            forget_in(&mut packet_out.actions);
        }
        _ => {}
    }
}

fn forget_in(list: &mut Vec<Action>) {
    let changes =
        |action: &Action| action.learns().is_some() || matches!(action, Action::FinTimeout { .. });
    list.retain(|action| !changes(action));
    for action in list {
        if let Action::Clone(inner) = action {
            forget_in(inner);
        }
    }
}

impl Scenario {
    pub(crate) fn new(seed: u64) -> Self {
        let mut maker = Maker::new(seed);
        maker.begin();
        for _ in 0..maker.size.rounds {
            maker.round();
        }
        let Maker { config, frames, steps, .. } = maker;
        let mut scenario = Self { seed, config, frames, steps };
        if !scenario.learns() {
            scenario.steps.iter_mut().for_each(forget_learns);
        }
        scenario
    }

    /// Whether packets teach entries.
    pub(crate) fn learns(&self) -> bool {
        self.seed.is_multiple_of(7)
    }

    /// Packets in all batches.
    pub(crate) fn packets(&self) -> u64 {
        let count = |step: &Step| match step {
            Step::Packets(_, frames) => frames.len() as u64,
            _ => 0,
        };
        self.steps.iter().map(count).sum()
    }
}

struct Maker {
    rng: Random,
    size: Size,
    style: Style,
    /// Batches of a hundred that have commands before them.
    churn: u64,
    has_bundles: bool,
    /// None while packets teach: what those of bundles teach holds after the bundle.
    has_bundled_packet_outs: bool,
    has_conjunctions: bool,
    config: DatapathConfig,
    frames: Vec<Vec<u8>>,
    keys: Vec<FlowKey>,
    /// Matches that were used, for strict commands and for entries of the same shape.
    used: Vec<(TableId, u16, Match)>,
    steps: Vec<Step>,
}

impl Maker {
    fn new(seed: u64) -> Self {
        let mut rng = Random::new(seed);
        let size = size(&mut rng);
        let style = style(&mut rng);
        let churn = *rng.pick(&[0, 3, 20, 80]);
        let universe = Universe::new(&mut rng);
        let frames: Vec<Vec<u8>> = (0..size.frames).map(|_| universe.frame(&mut rng)).collect();
        let key = |frame: &Vec<u8>| extract(frame, &Meta::port(PortNo(1)));
        let config = DatapathConfig {
            n_tables: *rng.pick(&[1, 2, 3, 4, 8, 64]),
            max_entries: if rng.percent(10) { 8 } else { 1_000_000 },
            max_macs: if rng.percent(50) { 4 } else { 8_192 },
            mac_age_s: 1 + rng.below(4) as u16,
            max_groups: 5,
            ..DatapathConfig::default()
        };
        let config = DatapathConfig { settings: settings(&mut rng), ..config };
        let keys = frames.iter().map(key).collect();
        // Half of the scenarios are those that they were before there were bundles.
        let has_bundles = !seed.is_multiple_of(2);
        let has_conjunctions = seed % 5 < 2;
        let (used, steps) = (Vec::new(), Vec::new());
        Self {
            size,
            style,
            churn,
            has_bundles,
            has_bundled_packet_outs: seed % 4 == 1 && !seed.is_multiple_of(7),
            has_conjunctions,
            config,
            keys,
            frames,
            used,
            steps,
            rng,
        }
    }

    fn begin(&mut self) {
        for number in 1..=4 + self.rng.below(3) as u32 {
            let desc = self.port(number);
            self.steps.push(Step::PortSet(desc));
        }
        if self.rng.percent(30) {
            let mirrors = mirrors(&mut self.rng);
            self.steps.push(Step::Mirrors(mirrors));
        }
        for _ in 0..4 {
            self.meter_mod();
            self.group_mod();
        }
        for table in 0..self.config.n_tables {
            if self.rng.percent(60) {
                self.table_miss(table);
            }
        }
        if self.config.max_entries == 8 && !self.size.entries.is_multiple_of(3) {
            let config = TableMod::EVICTION | TableMod::VACANCY_EVENTS;
            let vacancy = Some(Vacancy { down: 25, up: 50, now: 0 });
            let table_mod = TableMod { vacancy, ..TableMod::new(TableId::ALL, config) };
            self.steps.push(Step::TableMod(table_mod));
        }
        for _ in 0..self.size.entries {
            self.flow_mod(&[100, 0, 0, 0, 0]);
        }
    }

    /// Some commands, many packets, and a look at everything.
    fn round(&mut self) {
        for _ in 0..self.rng.below(8) {
            self.command();
        }
        for _ in 0..self.size.batches {
            if self.rng.percent(self.churn) {
                self.command();
            }
            if self.has_bundles && self.rng.percent(15) {
                self.bundle();
            }
            self.batch();
        }
        let frame = self.rng.index(self.frames.len()) as u32;
        self.steps.push(Step::Trace(PortNo(1 + self.rng.below(5) as u32), frame));
        let request = self.request();
        self.steps.push(Step::Look(Box::new(request)));
    }

    /// Changes something.
    fn command(&mut self) {
        match self.rng.weighted(&[65, 10, 6, 4, 5, 1, 4, 5, 3, 2, 1]) {
            0 => self.flow_mod(&[55, 15, 10, 8, 12]),
            1 => self.group_mod(),
            2 => self.meter_mod(),
            3 => self.port_mod(),
            4 => {
                let number = 1 + self.rng.below(6) as u32;
                let desc = self.port(number);
                self.steps.push(Step::PortSet(desc));
            }
            5 => {
                let port = PortNo(1 + self.rng.below(6) as u32);
                self.steps.push(Step::PortRemove(port));
            }
            6 => {
                let settings = settings(&mut self.rng);
                self.steps.push(Step::Settings(settings));
            }
            7 => self.packet_out(),
            8 => {
                let port = PortNo(1 + self.rng.below(5) as u32);
                self.steps.push(Step::PortVlans(port, self.rng.pick::<&str>(&PORT_VLANS)));
            }
            9 => {
                let mirrors = mirrors(&mut self.rng);
                self.steps.push(Step::Mirrors(mirrors));
            }
            _ => self.tables(),
        }
    }

    /// A bundle of commands that are all carried out, or of which one, anywhere, is refused.
    fn bundle(&mut self) {
        let begin = self.steps.len();
        let is_refused = self.rng.percent(40);
        let has_packet_outs = self.has_bundled_packet_outs && self.rng.percent(50);
        for _ in 0..2 + self.rng.below(20) {
            if has_packet_outs && self.rng.percent(20) {
                self.packet_out();
            }
            match self.rng.weighted(&[80, 10, 5, 5]) {
                0 => self.flow_mod(&[45, 15, 12, 10, 18]),
                1 => self.group_mod(),
                2 => self.meter_mod(),
                _ => self.port_mod(),
            }
        }
        let commands = self.steps.drain(begin..).filter_map(|step| match step {
            Step::FlowMod(Version::V1_3, flow_mod, None) => Some(BundleCommand::FlowMod(*flow_mod)),
            Step::FlowMod(Version::V1_3, flow_mod, Some(fallback)) => {
                Some(BundleCommand::FlowMod(if is_refused { *flow_mod } else { *fallback }))
            }
            Step::GroupMod(group_mod) if is_refused => Some(BundleCommand::GroupMod(group_mod)),
            Step::GroupMod(group_mod) => {
                let command = match group_mod.command {
                    GroupModCommand::Add => GroupModCommand::Delete,
                    other => other,
                };
                Some(BundleCommand::GroupMod(GroupMod { command, ..group_mod }))
            }
            // The bands of a meter change before the packet-outs are sent.
            Step::MeterMod(meter_mod) if !has_packet_outs => {
                Some(BundleCommand::MeterMod(meter_mod))
            }
            Step::PortMod(port_mod) => Some(BundleCommand::PortMod(port_mod)),
            Step::PacketOut(packet_out) => Some(BundleCommand::PacketOut(packet_out)),
            _ => None,
        });
        let commands = commands.collect();
        self.steps.push(Step::Bundle(commands));
    }

    /// Some of the tables, or all, some of them with fewer fields.
    fn tables(&mut self) {
        let mut tables = Reference::new(self.config.clone()).table_features(Version::V1_3);
        let rng = &mut self.rng;
        if rng.percent(60) {
            tables.retain(|table| table.table_id.0 == 0 || rng.percent(85));
        }
        let stay: Vec<TableId> = tables.iter().map(|table| table.table_id).collect();
        for table in &mut tables {
            let without = rng.percent(8).then(|| rng.index(8));
            table.properties.iter_mut().for_each(|property| narrow(property, &stay, without));
        }
        self.steps.push(Step::Tables(tables));
    }

    fn batch(&mut self) {
        let rng = &mut self.rng;
        let port = PortNo(1 + rng.weighted(&[62, 22, 10, 5, 1, 1]) as u32);
        let len = if rng.percent(80) { self.size.batch } else { 1 + rng.index(self.size.batch) };
        // Some of the frames, so that flows repeat, or one of them again and again.
        let hot = rng.percent(20).then(|| rng.index(self.frames.len()) as u32);
        let frame = |_| hot.unwrap_or_else(|| rng.index(self.frames.len()) as u32);
        let frames = (0..len).map(frame).collect();
        self.steps.push(Step::Packets(port, frames));
        match rng.weighted(&[70, 25, 4, 1]) {
            0 => {}
            1 => self.steps.push(Step::Wait(rng.below(2_000_000))),
            2 => self.steps.push(Step::Wait(rng.below(400_000_000))),
            _ => self.steps.push(Step::Wait(rng.below(2_500_000_000))),
        }
    }

    fn key(&mut self) -> FlowKey {
        self.rng.pick(&self.keys).clone()
    }

    /// Another match like one before, or a new one.
    fn matching(&mut self) -> (Match, FlowKey) {
        let key = self.key();
        if let Style::Prefixes(field) = self.style
            && self.rng.percent(90)
        {
            let matching = matches::prefix(field, &key, &mut self.rng);
            return (matching, key);
        }
        let like = if self.style == Style::OneShape { 97 } else { 50 };
        if !self.used.is_empty() && self.rng.percent(like) {
            let one = self.style == Style::OneShape;
            // The first ones are table-miss entries.
            let mut shapes = self.used.iter().map(|used| &used.2);
            let first = shapes.find(|shape| !shape.is_any()).filter(|_| one);
            let shape = first.unwrap_or_else(|| &self.rng.pick(&self.used).2);
            if let Some(matching) = matches::reshaped(shape, &key) {
                return (matching, key);
            }
        }
        (matches::of_key(&key, &mut self.rng), key)
    }

    fn table(&mut self) -> TableId {
        // Most in the first tables, where packets come by.
        let highest = u64::from(self.config.n_tables);
        let end = 1 + self.rng.below(highest.min(4));
        TableId(if self.rng.percent(3) { 255 } else { self.rng.below(end) as u8 })
    }

    /// An entry for all that no other one takes, mostly leading to the next table.
    fn table_miss(&mut self, table: u8) {
        let mut flow_mod = FlowMod::new(FlowModCommand::Add);
        flow_mod.priority = 0;
        flow_mod.table_id = TableId(table);
        let rng = &mut self.rng;
        let leads = table + 1 < self.config.n_tables && rng.percent(85);
        flow_mod.instructions = if leads {
            vec![Instruction::GotoTable(TableId(table + 1))]
        } else {
            actions::simple(rng)
        };
        self.used.push((flow_mod.table_id, 0, Match::any()));
        let is_list =
            flow_mod.instructions.iter().all(|i| i.kind() == InstructionKind::ApplyActions);
        let version = if is_list && rng.percent(30) { Version::V1_0 } else { Version::V1_3 };
        self.steps.push(Step::FlowMod(version, Box::new(flow_mod), None));
    }

    fn flow_mod(&mut self, weights: &[u64; 5]) {
        let commands = [
            FlowModCommand::Add,
            FlowModCommand::Modify,
            FlowModCommand::ModifyStrict,
            FlowModCommand::Delete,
            FlowModCommand::DeleteStrict,
        ];
        let command = commands[self.rng.weighted(weights)];
        let mut flow_mod = FlowMod::new(command);
        let (matching, key) = self.matching();
        let rng_table = self.table();
        let rng = &mut self.rng;
        flow_mod.table_id = rng_table;
        flow_mod.matching = matching;
        flow_mod.priority = priority(self.style, &flow_mod.matching, rng);
        flow_mod.cookie = Cookie(rng.below(4));
        flow_mod.cookie_mask = if rng.percent(15) { rng.below(4) } else { 0 };
        if rng.percent(20) {
            flow_mod.idle_timeout_s = rng.below(4) as u16;
            flow_mod.hard_timeout_s = rng.below(5) as u16;
        }
        flow_mod.flags = flags(rng);
        if rng.percent(10) {
            flow_mod.out_port = PortNo(1 + rng.below(5) as u32);
        }
        if rng.percent(5) {
            flow_mod.out_group = GroupId(1 + rng.below(5) as u32);
        }
        let is_add = command == FlowModCommand::Add;
        if !self.used.is_empty() && rng.percent(if is_add { 10 } else { 60 }) {
            let (table, priority, matching) = rng.pick(&self.used).clone();
            (flow_mod.table_id, flow_mod.priority, flow_mod.matching) = (table, priority, matching);
        } else if rng.percent(5) {
            flow_mod.matching = Match::any();
        }
        let version = if rng.percent(12) { Version::V1_0 } else { Version::V1_3 };
        if version == Version::V1_0 && rng.percent(50) {
            flow_mod.matching = flow_mod.matching.in_form(form(rng));
        }
        if version == Version::V1_0 {
            cookies_of_nicira(&mut flow_mod);
        }
        if version != Version::V1_0 && flow_mod.matching.form().is_none() && rng.percent(20) {
            flow_mod.importance = rng.below(3) as u16;
        }
        if !version.has_pipeline() && !is_add && rng.percent(50) {
            flow_mod.table_id = TableId::ALL;
        }
        let table = flow_mod.table_id.0.min(self.config.n_tables - 1);
        flow_mod.instructions = if version.has_instructions() {
            let tables = self.config.n_tables;
            actions::instructions(table, tables, &flow_mod.matching, &key, rng)
        } else {
            actions::instructions_1_0(&key, rng)
        };
        if self.has_conjunctions && rng.percent(50) {
            conjunctive(&mut flow_mod, &key, rng);
        }
        if is_add {
            let used = (flow_mod.table_id, flow_mod.priority, flow_mod.matching.clone());
            self.used.push(used);
        }
        let fallback = FlowMod { instructions: actions::simple(rng), ..flow_mod.clone() };
        let fallback = is_add.then(|| Box::new(fallback));
        self.steps.push(Step::FlowMod(version, Box::new(flow_mod), fallback));
    }

    fn group_mod(&mut self) {
        let key = self.key();
        let rng = &mut self.rng;
        let types =
            [GroupType::All, GroupType::Select, GroupType::Indirect, GroupType::FastFailover];
        let group_type = *rng.pick(&types);
        let command = GroupModCommand::ALL[rng.weighted(&[50, 30, 10, 10])];
        let all = command == GroupModCommand::Delete && rng.percent(20);
        let group_id = if all { GroupId::ALL } else { GroupId(1 + rng.below(6) as u32) };
        let buckets = actions::buckets(group_type, &key, rng);
        let is_select = group_type == GroupType::Select;
        let selection = is_select.then(|| actions::selection(rng)).flatten();
        self.steps.push(Step::GroupMod(GroupMod {
            command,
            group_type,
            group_id,
            buckets,
            selection,
            ..GroupMod::default()
        }));
    }

    fn meter_mod(&mut self) {
        let rng = &mut self.rng;
        let commands = [MeterModCommand::Add, MeterModCommand::Modify, MeterModCommand::Delete];
        let command = commands[rng.weighted(&[60, 30, 10])];
        let unit = *rng.pick(&[MeterFlags::KBPS, MeterFlags::PKTPS]);
        let mut flags = unit | MeterFlags::STATS;
        flags.set(MeterFlags::BURST, rng.percent(60));
        let band = |_| {
            let kind = match rng.below(2) {
                0 => BandKind::Drop,
                _ => BandKind::DscpRemark { prec_level: 1 + rng.below(2) as u8 },
            };
            let rate = *rng.pick(&[1, 10, 1_000, 100_000]);
            Band { kind, rate, burst_size: rng.below(50) as u32 }
        };
        let bands: Vec<Band> = (0..3).map(band).collect();
        let bands = bands[..rng.index(3)].to_vec();
        let meter_id = MeterId(1 + rng.below(3) as u32);
        self.steps.push(Step::MeterMod(MeterMod { command, flags, meter_id, bands }));
    }

    fn port(&mut self, number: u32) -> PortDesc {
        let mut state = PortState::LIVE;
        let rng = &mut self.rng;
        if rng.percent(7) {
            state = *rng.pick(&[
                PortState::LINK_DOWN,
                PortState::BLOCKED | PortState::LIVE,
                PortState::empty(),
            ]);
        }
        PortDesc { port_no: PortNo(number), hw_addr: address(number), state, ..PortDesc::default() }
    }

    fn port_mod(&mut self) {
        let rng = &mut self.rng;
        let port = 1 + rng.below(6) as u32;
        let bits = [
            PortConfig::PORT_DOWN,
            PortConfig::NO_RECV,
            PortConfig::NO_RECV_STP,
            PortConfig::NO_FLOOD,
            PortConfig::NO_FWD,
            PortConfig::NO_PACKET_IN,
        ];
        let mask = *rng.pick(&bits);
        let config = if rng.percent(25) { mask } else { PortConfig::empty() };
        self.steps.push(Step::PortMod(PortMod {
            port_no: PortNo(port),
            hw_addr: address(port),
            config,
            mask,
            advertise: PortFeatures::empty(),
        }));
    }

    fn packet_out(&mut self) {
        let key = self.key();
        let rng = &mut self.rng;
        let frame = rng.index(self.frames.len());
        let mut list = actions::list_of((0, self.config.n_tables), &Match::any(), &key, rng);
        if rng.percent(40) {
            list.push(openflow::Action::output(PortNo::TABLE));
        }
        let ports = [PortNo(1), PortNo(2), PortNo::CONTROLLER, PortNo::ANY];
        let data = self.frames[frame].clone();
        let in_port = *rng.pick(&ports);
        self.steps.push(Step::PacketOut(PacketOut {
            buffer_id: None,
            in_port,
            actions: list,
            data,
        }));
    }

    fn request(&mut self) -> FlowStatsRequest {
        let table_id = self.table();
        let (matching, _) = self.matching();
        let rng = &mut self.rng;
        let mut request = FlowStatsRequest { matching, ..FlowStatsRequest::all() };
        if rng.percent(50) {
            request.table_id = table_id;
        }
        if rng.percent(30) {
            request.cookie = Cookie(rng.below(4));
            request.cookie_mask = rng.below(4);
        }
        if rng.percent(20) {
            request.out_port = PortNo(1 + rng.below(5) as u32);
        }
        if rng.percent(10) {
            request.out_group = GroupId(1 + rng.below(5) as u32);
        }
        request
    }
}

/// Cuts a property of a table down to the tables that stay, and by one of the first fields.
fn narrow(property: &mut TableProperty, stay: &[TableId], without: Option<usize>) {
    match property {
        TableProperty::NextTables(_, next) => next.retain(|next| stay.contains(next)),
        TableProperty::Match(fields)
        | TableProperty::Wildcards(fields)
        | TableProperty::ApplySetField(_, fields) => {
            if let Some(without) = without {
                fields.remove(without);
            }
        }
        TableProperty::Instructions(..)
        | TableProperty::WriteActions(..)
        | TableProperty::ApplyActions(..)
        | TableProperty::WriteSetField(..)
        | TableProperty::SynchronisedFrom(_)
        | TableProperty::WriteCopyField(..)
        | TableProperty::ApplyCopyField(..)
        | TableProperty::PacketTypes(_)
        | TableProperty::Experimenter { .. } => {}
    }
}

/// Ways in which ports take part in the VLANs of the frames.
const PORT_VLANS: [&str; 9] = [
    "trunk:protected",
    "access:5:protected",
    "trunk",
    "trunk",
    "trunk:0,5,100",
    "access:5",
    "access:7",
    "native-untagged:5",
    "native-tagged:7:0-100",
];

/// None, or up to four mirrors, some of which share an output.
fn mirrors(rng: &mut Random) -> Vec<Mirror> {
    let ports = |rng: &mut Random| (1..=5).filter(|_| rng.percent(30)).map(PortNo).collect();
    let mirror = |rng: &mut Random| {
        let mut vlans = Vids::ALL;
        if rng.percent(30) {
            [0, 5, 7].iter().filter(|_| rng.percent(60)).for_each(|vid| vlans.add(*vid));
        }
        Mirror {
            name: String::new(),
            selects_all: rng.percent(30),
            sources: ports(rng),
            destinations: ports(rng),
            vlans,
            output: match rng.percent(70) {
                true => MirrorOutput::Port(PortNo(4 + rng.below(4) as u32)),
                false => MirrorOutput::Vlan(*rng.pick(&[5, 7, 9])),
            },
            snaplen: rng.percent(30).then(|| 14 + rng.below(100) as u16),
        }
    };
    (0..rng.index(5)).map(|_| mirror(rng)).collect()
}

fn address(port: u32) -> MacAddr {
    MacAddr::from_u64(0x0600_0000_0000 | u64::from(port))
}

/// A form of 1.0's match: few of them, so that entries are equal in one thing and not in another.
fn form(rng: &mut Random) -> TupleForm {
    let (nw_tos, wildcards) = (rng.below(3) as u8, rng.below(2) as u32);
    let difference = TwelveTuple { nw_tos, wildcards, ..TwelveTuple::default() };
    TupleForm { is_exact: rng.percent(60), difference }
}

fn priority(style: Style, matching: &Match, rng: &mut Random) -> u16 {
    match style {
        Style::Prefixes(field) if rng.percent(95) => {
            matching.get(field).map_or(0, |held| held.mask).count_ones() as u16
        }
        Style::Mixed | Style::OneShape | Style::Prefixes(_) => {
            *rng.pick(&[0, 1, 1, 2, 3, 100, 0x8000, 0xffff])
        }
    }
}

fn flags(rng: &mut Random) -> FlowModFlags {
    let mut flags = FlowModFlags::empty();
    flags.set(FlowModFlags::SEND_FLOW_REM, rng.percent(40));
    flags.set(FlowModFlags::CHECK_OVERLAP, rng.percent(6));
    flags.set(FlowModFlags::RESET_COUNTS, rng.percent(20));
    flags.set(FlowModFlags::NO_PKT_COUNTS, rng.percent(5));
    flags.set(FlowModFlags::NO_BYT_COUNTS, rng.percent(5));
    flags
}

fn settings(rng: &mut Random) -> Settings {
    Settings {
        miss: if rng.percent(40) { Miss::Controller } else { Miss::Drop },
        fragments: match rng.below(10) {
            0 => Fragments::Drop,
            1..=3 => Fragments::Reassemble,
            _ => Fragments::Normal,
        },
        invalid_ttl_to_controller: rng.percent(40),
        miss_send_len: 128,
    }
}
