//! Right messages: those of other implementations (the vectors), put together anew from their
//! matches, actions, instructions, buckets and bands, with numbers that exist.

use openflow::flow::{FlowMod, FlowModCommand, FlowModFlags, FlowStatsRequest};
use openflow::group::{Bucket, GroupMod, GroupModCommand, GroupType};
use openflow::message::{
    AsyncConfig, ControllerRole, MultipartRequest, MultipartRequestBody, PacketOut, Role,
    SwitchConfig,
};
use openflow::meter::{Band, BandKind, MeterFlags, MeterMod, MeterModCommand};
use openflow::port::{PortConfig, PortDesc, PortFeatures, PortMod};
use openflow::table::TableMod;
use openflow::{
    Action, Cookie, Field, GroupId, Instruction, InstructionKind, Match, Message, MeterId, PortNo,
    QueueId, TableId, Version, Xid,
};
use testkit::vectors::Vector;

use super::entropy::Entropy;

/// The high bits of the cookies of all that the fuzzer adds, by which it is deleted again.
pub(crate) const COOKIE: u64 = 0xf022 << 48;
/// The bits that say so.
pub(crate) const COOKIE_MASK: u64 = 0xffff << 48;
/// Flow tables of the switch.
pub(crate) const TABLES: u8 = 8;

/// Makes messages.
pub(crate) struct Maker {
    vectors: Vec<Vector>,
    matches: Vec<Match>,
    actions: Vec<Action>,
    ports: Vec<PortDesc>,
}

impl Maker {
    pub(crate) fn new(ports: Vec<PortDesc>) -> Result<Self, String> {
        let vectors = testkit::vectors::load_dir(&testkit::vectors_dir(""))
            .map_err(|error| error.to_string())?;
        let is_openflow = |vector: &Vector| matches!(vector.bytes.first(), Some(1 | 4));
        let vectors: Vec<Vector> = vectors.into_iter().filter(is_openflow).collect();
        let mut maker = Self { vectors, matches: Vec::new(), actions: Vec::new(), ports };
        let decoded: Vec<Message> = maker
            .vectors
            .iter()
            .filter_map(|vector| Some(wire::decode(&vector.bytes).ok()?.2))
            .collect();
        decoded.into_iter().for_each(|message| maker.take_apart(message));
        Ok(maker)
    }

    fn take_apart(&mut self, message: Message) {
        if let Message::FlowMod(flow) = message {
            self.matches.push(flow.matching);
            for instruction in flow.instructions {
                if let Instruction::ApplyActions(list) | Instruction::WriteActions(list) =
                    instruction
                {
                    self.actions.extend(list);
                }
            }
        } else if let Message::GroupMod(group) = message {
            self.actions.extend(group.buckets.into_iter().flat_map(|bucket| bucket.actions));
        } else if let Message::PacketOut(packet) = message {
            self.actions.extend(packet.actions);
        }
    }

    /// Wrong messages whose error somebody has looked up.
    pub(crate) fn malformed(&self) -> impl Iterator<Item = &Vector> {
        self.vectors.iter().filter(|vector| vector.error.is_some())
    }

    /// The bytes of any vector.
    pub(crate) fn vector(&self, e: &mut Entropy) -> Vec<u8> {
        e.pick(&self.vectors).map_or_else(Vec::new, |vector| vector.bytes.clone())
    }

    /// A right message that the version can say.
    pub(crate) fn frame(&self, e: &mut Entropy, version: Version, xid: Xid) -> Vec<u8> {
        loop {
            let message = self.message(e);
            if let Ok(frame) = wire::encode(version, xid, &message) {
                return frame;
            }
        }
    }

    fn message(&self, e: &mut Entropy) -> Message {
        match e.below(24) {
            0..=8 => Message::FlowMod(self.flow_mod(e)),
            9..=10 => Message::GroupMod(self.group_mod(e)),
            11..=12 => Message::MeterMod(meter_mod(e)),
            13..=14 => Message::PacketOut(self.packet_out(e)),
            15..=17 => {
                Message::MultipartRequest(MultipartRequest { more: false, body: self.multipart(e) })
            }
            18 => self.port_mod(e),
            19 => Message::EchoRequest(e.bytes_up_to(60)),
            20 => self.small(e),
            21 => {
                // A slave is refused most of what it asks, so that there are few.
                let role = match e.below(20) {
                    0 => ControllerRole::Slave,
                    1..=9 => ControllerRole::NoChange,
                    _ => ControllerRole::Equal,
                };
                Message::RoleRequest(Role { role, generation_id: e.u64() >> 60 })
            }
            22 => Message::SetAsync(AsyncConfig::new(
                [e.u32() & 7, e.u32() & 7],
                [e.u32() & 7, e.u32() & 7],
                [e.u32() & 15, e.u32() & 15],
            )),
            _ => Message::BarrierRequest,
        }
    }

    fn small(&self, e: &mut Entropy) -> Message {
        match e.below(6) {
            0 => Message::FeaturesRequest,
            1 => Message::GetConfigRequest,
            2 => Message::GetAsyncRequest,
            3 => Message::SetConfig(SwitchConfig {
                flags: u16::from(e.byte() & 1),
                miss_send_len: e.u32() as u16,
            }),
            4 => Message::TableMod(TableMod::new(table(e), e.u32() & 3)),
            _ => Message::QueueGetConfigRequest(port(e)),
        }
    }

    fn flow_mod(&self, e: &mut Entropy) -> FlowMod {
        let command = [
            FlowModCommand::Add,
            FlowModCommand::Modify,
            FlowModCommand::ModifyStrict,
            FlowModCommand::Delete,
            FlowModCommand::DeleteStrict,
        ][if e.once_in(3) { e.below(5) } else { 0 }];
        FlowMod {
            table_id: table(e),
            cookie: Cookie(COOKIE | u64::from(e.byte())),
            cookie_mask: if e.once_in(2) { COOKIE_MASK } else { 0 },
            idle_timeout_s: if e.once_in(8) { 1 } else { 0 },
            hard_timeout_s: if e.once_in(8) { 1 } else { 0 },
            priority: e.u32() as u16 & 0x7fff,
            flags: FlowModFlags::from_bits_retain(e.u32() as u16 & 0x1f),
            out_port: if e.once_in(8) { port(e) } else { PortNo::ANY },
            out_group: if e.once_in(8) { group(e) } else { GroupId::ANY },
            matching: self.matching(e),
            instructions: self.instructions(e),
            ..FlowMod::new(command)
        }
    }

    fn matching(&self, e: &mut Entropy) -> Match {
        match e.below(4) {
            0 => Match::any().with(Field::EthDst, u128::from(e.byte())),
            1 => {
                Match::any().with(Field::EthType, 0x0800).with(Field::Ipv4Dst, u128::from(e.byte()))
            }
            _ => e.pick(&self.matches).cloned().unwrap_or_default(),
        }
    }

    fn instructions(&self, e: &mut Entropy) -> Vec<Instruction> {
        let mut kinds: Vec<InstructionKind> = Vec::new();
        let mut all = Vec::new();
        for _ in 0..e.below(4) {
            let instruction = match e.below(8) {
                0..=3 => Instruction::ApplyActions(self.actions(e)),
                4 => Instruction::WriteActions(self.actions(e)),
                5 => Instruction::GotoTable(TableId(e.byte() % (TABLES + 1))),
                6 => Instruction::Meter(MeterId(u32::from(e.byte() % 8))),
                _ => Instruction::WriteMetadata { metadata: e.u64(), mask: u64::MAX },
            };
            if !kinds.contains(&instruction.kind()) {
                kinds.push(instruction.kind());
                all.push(instruction);
            }
        }
        all
    }

    fn actions(&self, e: &mut Entropy) -> Vec<Action> {
        let mut actions = Vec::new();
        for _ in 0..e.below(4) {
            actions.extend(match e.below(4) {
                0 => Some(Action::output(port(e))),
                1 => Some(Action::Group(group(e))),
                _ => e.pick(&self.actions).cloned(),
            });
        }
        actions
    }

    fn group_mod(&self, e: &mut Entropy) -> GroupMod {
        let group_type =
            [GroupType::All, GroupType::Select, GroupType::Indirect, GroupType::FastFailover]
                [e.below(4)];
        let count = if group_type == GroupType::Indirect { 1 } else { e.below(4) };
        let bucket = |e: &mut Entropy| Bucket {
            bucket_id: None,
            weight: if group_type == GroupType::Select { 1 + u16::from(e.byte()) } else { 0 },
            watch_port: if e.once_in(2) { PortNo(1) } else { PortNo::ANY },
            watch_group: if e.once_in(8) { group(e) } else { GroupId::ANY },
            actions: self.actions(e),
        };
        GroupMod {
            command: GroupModCommand::ALL[e.below(GroupModCommand::ALL.len())],
            group_type,
            group_id: group(e),
            buckets: (0..count).map(|_| bucket(e)).collect(),
            ..GroupMod::default()
        }
    }

    fn packet_out(&self, e: &mut Entropy) -> PacketOut {
        let length = 14 + e.below(200);
        let mut actions = self.actions(e);
        if e.once_in(3) {
            actions.push(Action::output(PortNo::TABLE));
        }
        PacketOut { buffer_id: None, in_port: PortNo::ANY, actions, data: e.bytes(length) }
    }

    fn port_mod(&self, e: &mut Entropy) -> Message {
        let Some(desc) = self.ports.get(e.below(2)) else { return Message::BarrierRequest };
        Message::PortMod(PortMod {
            port_no: desc.port_no,
            hw_addr: desc.hw_addr,
            config: PortConfig::from_bits_retain(e.u32() & 0x65),
            mask: PortConfig::from_bits_retain(0x65),
            advertise: PortFeatures::empty(),
        })
    }

    fn multipart(&self, e: &mut Entropy) -> MultipartRequestBody {
        let flows = |e: &mut Entropy, matching| FlowStatsRequest {
            table_id: if e.once_in(2) { table(e) } else { TableId::ALL },
            matching,
            ..FlowStatsRequest::all()
        };
        match e.below(13) {
            0 => MultipartRequestBody::Desc,
            1 => {
                let matching = self.matching(e);
                MultipartRequestBody::Flow(flows(e, matching))
            }
            2 => {
                let matching = self.matching(e);
                MultipartRequestBody::Aggregate(flows(e, matching))
            }
            3 => MultipartRequestBody::Table,
            4 => MultipartRequestBody::PortStats(port(e)),
            5 => MultipartRequestBody::Queue { port: port(e), queue: QueueId::ALL },
            6 => MultipartRequestBody::Group(group(e)),
            7 => MultipartRequestBody::GroupDesc,
            8 => MultipartRequestBody::GroupFeatures,
            9 => MultipartRequestBody::Meter(MeterId(u32::from(e.byte() % 8))),
            10 => MultipartRequestBody::MeterConfig(MeterId::ALL),
            11 => MultipartRequestBody::MeterFeatures,
            _ => MultipartRequestBody::PortDesc,
        }
    }
}

impl Entropy {
    fn bytes_up_to(&mut self, most: usize) -> Vec<u8> {
        let count = self.below(most + 1);
        self.bytes(count)
    }
}

fn table(e: &mut Entropy) -> TableId {
    TableId(e.byte() % TABLES)
}

fn group(e: &mut Entropy) -> GroupId {
    GroupId(u32::from(e.byte() % 8))
}

/// Mostly one that exists and that the unrelated flow does not use.
fn port(e: &mut Entropy) -> PortNo {
    [
        PortNo(1),
        PortNo(2),
        PortNo(99),
        PortNo::CONTROLLER,
        PortNo::IN_PORT,
        PortNo::FLOOD,
        PortNo::ALL,
        PortNo::NORMAL,
        PortNo::ANY,
    ][e.below(9)]
}

fn meter_mod(e: &mut Entropy) -> MeterMod {
    let band = |e: &mut Entropy| Band {
        kind: if e.once_in(2) { BandKind::Drop } else { BandKind::DscpRemark { prec_level: 1 } },
        rate: e.u32() >> 8,
        burst_size: e.u32() >> 16,
    };
    let unit = if e.once_in(2) { MeterFlags::KBPS } else { MeterFlags::PKTPS };
    MeterMod {
        command: [MeterModCommand::Add, MeterModCommand::Modify, MeterModCommand::Delete]
            [e.below(3)],
        flags: unit | MeterFlags::STATS,
        meter_id: MeterId(u32::from(e.byte() % 8)),
        bands: (0..e.below(3)).map(|_| band(e)).collect(),
    }
}
