//! The messages: one row each, and their version-neutral bodies (clauses 7.1, 7.3, 7.4, 7.5).
//!
//! A [`Message`] says what all versions mean; what a version cannot say is an error when it is
//! encoded, never a silent drop.

use crate::action::Action;
use crate::bundle::{BundleAdd, BundleControl};
use crate::error::Error;
use crate::flow::{
    AggregateStats, FlowMod, FlowRemoved, FlowRemovedReason, FlowStats, FlowStatsRequest,
};
use crate::flow_monitor::{FlowMonitorRequest, FlowUpdate};
use crate::group::{GroupDesc, GroupFeatures, GroupMod, GroupStats};
use crate::id::{BufferId, Cookie, DatapathId, GroupId, MeterId, PortNo, QueueId, TableId};
use crate::matching::Match;
use crate::meter::{MeterConfig, MeterFeatures, MeterMod, MeterStats};
use crate::numbered::numbered;
use crate::port::{PacketQueue, PortDesc, PortMod, PortReason, PortStats, PortStatus, QueueStats};
use crate::table::{TableFeatures, TableMod, TableReason, TableStats, TableStatus};
use crate::version::{Numbers, Version, VersionBitmap, numbers};

pub use crate::packet_in_reason::PacketInReason;

/// The side that may send a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// Either side.
    Both,
    /// The controller.
    Controller,
    /// The switch.
    Switch,
}

/// One message's row.
#[derive(Clone, Copy, Debug)]
pub struct MessageRow {
    /// The message.
    pub kind: MessageKind,
    /// The name as `ovs-ofctl` prints it: `OFPT_FLOW_MOD`.
    pub name: &'static str,
    /// Type numbers.
    pub numbers: Numbers<u8>,
    /// The side that may send it.
    pub sender: Sender,
    /// The message that answers it.
    pub reply: Option<MessageKind>,
    /// Type among ONF's messages, by which it is sent in versions that have experimenters' types
    /// and no number of its own for it.
    pub onf: Option<u32>,
}

macro_rules! messages {
    ($($(#[doc = $doc:literal])* $variant:ident $( ( $arg:ty ) )? $name:literal
        [$($numbers:tt)*], $sender:ident, $reply:expr $(, onf $onf:literal)?;)+) => {
        /// A message without its header's version and xid.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Message {
            $($(#[doc = $doc])* $variant $( ($arg) )?,)+
        }

        /// A message without its body: the row's key.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum MessageKind {
            $($(#[doc = $doc])* $variant,)+
        }

        /// Every row, in the order of [`MessageKind`].
        pub const MESSAGES: &[MessageRow] = &[$(MessageRow {
            kind: MessageKind::$variant,
            name: $name,
            numbers: numbers!($($numbers)*),
            sender: Sender::$sender,
            reply: $reply,
            onf: { const ONF: &[u32] = &[$($onf)?]; ONF.first().copied() },
        },)+];

        impl Message {
            /// The message's row key.
            #[must_use]
            #[inline]
            pub fn kind(&self) -> MessageKind {
                match self {
                    $(Self::$variant { .. } => MessageKind::$variant,)+
                }
            }
        }
    };
}

messages! {
    /// First message of both sides.
    Hello(Hello) "OFPT_HELLO" [V1_0: 0], Both, None;
    /// Something went wrong with a message.
    Error(ErrorMessage) "OFPT_ERROR" [V1_0: 1], Both, None;
    /// Are you there; the body comes back.
    EchoRequest(Vec<u8>) "OFPT_ECHO_REQUEST" [V1_0: 2], Both,
        Some(MessageKind::EchoReply);
    /// I am.
    EchoReply(Vec<u8>) "OFPT_ECHO_REPLY" [V1_0: 3], Both, None;
    /// A message of somebody's own (`OFPT_VENDOR` in 1.0).
    Experimenter(Experimenter) "OFPT_EXPERIMENTER" [V1_0: 4], Both, None;
    /// Ask for the switch's features.
    FeaturesRequest "OFPT_FEATURES_REQUEST" [V1_0: 5], Controller,
        Some(MessageKind::FeaturesReply);
    /// Features of the switch.
    FeaturesReply(Features) "OFPT_FEATURES_REPLY" [V1_0: 6], Switch, None;
    /// Ask for the switch's settings.
    GetConfigRequest "OFPT_GET_CONFIG_REQUEST" [V1_0: 7], Controller,
        Some(MessageKind::GetConfigReply);
    /// Settings of the switch.
    GetConfigReply(SwitchConfig) "OFPT_GET_CONFIG_REPLY" [V1_0: 8], Switch, None;
    /// Set the switch.
    SetConfig(SwitchConfig) "OFPT_SET_CONFIG" [V1_0: 9], Controller, None;
    /// A packet for the controller.
    PacketIn(PacketIn) "OFPT_PACKET_IN" [V1_0: 10], Switch, None;
    /// A flow entry is gone.
    FlowRemoved(FlowRemoved) "OFPT_FLOW_REMOVED" [V1_0: 11], Switch, None;
    /// A port has come, gone or changed.
    PortStatus(PortStatus) "OFPT_PORT_STATUS" [V1_0: 12], Switch, None;
    /// Send a packet.
    PacketOut(PacketOut) "OFPT_PACKET_OUT" [V1_0: 13], Controller, None;
    /// Change flow entries.
    FlowMod(FlowMod) "OFPT_FLOW_MOD" [V1_0: 14], Controller, None;
    /// Change a group.
    GroupMod(GroupMod) "OFPT_GROUP_MOD" [V1_1: 15], Controller, None;
    /// Change a port's settings.
    PortMod(PortMod) "OFPT_PORT_MOD" [V1_0: 15, V1_1: 16], Controller, None;
    /// Change a table's settings.
    TableMod(TableMod) "OFPT_TABLE_MOD" [V1_1: 17], Controller, None;
    /// Ask for statistics or descriptions (`OFPT_STATS_REQUEST` in 1.0).
    MultipartRequest(MultipartRequest) "OFPT_MULTIPART_REQUEST" [V1_0: 16, V1_1: 18],
        Controller, Some(MessageKind::MultipartReply);
    /// A part of the answer.
    MultipartReply(MultipartReply) "OFPT_MULTIPART_REPLY" [V1_0: 17, V1_1: 19], Switch,
        None;
    /// Finish what came before.
    BarrierRequest "OFPT_BARRIER_REQUEST" [V1_0: 18, V1_1: 20], Controller,
        Some(MessageKind::BarrierReply);
    /// It is finished.
    BarrierReply "OFPT_BARRIER_REPLY" [V1_0: 19, V1_1: 21], Switch, None;
    /// Ask for the queues of a port.
    QueueGetConfigRequest(PortNo) "OFPT_QUEUE_GET_CONFIG_REQUEST" [V1_0: 20, V1_1: 22; V1_3],
        Controller, Some(MessageKind::QueueGetConfigReply);
    /// The queues of a port.
    QueueGetConfigReply(QueueConfig) "OFPT_QUEUE_GET_CONFIG_REPLY" [V1_0: 21, V1_1: 23; V1_3],
        Switch, None;
    /// Ask for a role.
    RoleRequest(Role) "OFPT_ROLE_REQUEST" [V1_2: 24], Controller,
        Some(MessageKind::RoleReply);
    /// The role that the controller has.
    RoleReply(Role) "OFPT_ROLE_REPLY" [V1_2: 25], Switch, None;
    /// Ask for the choice of asynchronous messages.
    GetAsyncRequest "OFPT_GET_ASYNC_REQUEST" [V1_3: 26], Controller,
        Some(MessageKind::GetAsyncReply);
    /// Those that the controller gets.
    GetAsyncReply(AsyncConfig) "OFPT_GET_ASYNC_REPLY" [V1_3: 27], Switch, None;
    /// Choose asynchronous messages.
    SetAsync(AsyncConfig) "OFPT_SET_ASYNC" [V1_3: 28], Controller, None;
    /// Change a meter.
    MeterMod(MeterMod) "OFPT_METER_MOD" [V1_3: 29], Controller, None;
    /// A controller's role has changed.
    RoleStatus(RoleStatus) "OFPT_ROLE_STATUS" [V1_4: 30], Switch, None, onf 1911;
    /// A table's state has changed.
    TableStatus(TableStatus) "OFPT_TABLE_STATUS" [V1_4: 31], Switch, None;
    /// A request of another controller: the whole message.
    RequestForward(Vec<u8>) "OFPT_REQUESTFORWARD" [V1_4: 32], Switch, None;
    /// Open, close, commit or discard a bundle; and the switch's answer.
    BundleControl(BundleControl) "OFPT_BUNDLE_CONTROL" [V1_4: 33], Both,
        Some(MessageKind::BundleControl), onf 2300;
    /// Add a message to a bundle.
    BundleAdd(BundleAdd) "OFPT_BUNDLE_ADD_MESSAGE" [V1_4: 34], Controller, None, onf 2301;
    /// The state of a connection to a controller has changed (1.5, clause 7.4.6).
    ControllerStatus(ControllerStatus) "OFPT_CONTROLLER_STATUS" [V1_5: 35], Switch, None;
}

/// The type numbers of a version, by the index of the row.
type TypeNumbers = [Option<u8>; MESSAGES.len()];

/// Type numbers of every version, by the version's index.
static NUMBERS: [TypeNumbers; Version::ALL.len()] = {
    let mut all = [[None; MESSAGES.len()]; Version::ALL.len()];
    let mut version = 0;
    while version < Version::ALL.len() {
        let mut row = 0;
        while row < MESSAGES.len() {
            all[version][row] = MESSAGES[row].numbers.of(Version::ALL[version]);
            row += 1;
        }
        version += 1;
    }
    all
};

/// The message of each type number, by the version's index.
static KINDS: [[Option<MessageKind>; 1 << u8::BITS]; Version::ALL.len()] = {
    let mut all = [[None; 1 << u8::BITS]; Version::ALL.len()];
    let mut version = 0;
    while version < Version::ALL.len() {
        let mut row = 0;
        while row < MESSAGES.len() {
            if let Some(number) = NUMBERS[version][row] {
                all[version][number as usize] = Some(MESSAGES[row].kind);
            }
            row += 1;
        }
        version += 1;
    }
    all
};

impl MessageKind {
    /// The message's row.
    #[must_use]
    #[inline]
    pub const fn row(self) -> &'static MessageRow {
        &MESSAGES[self as usize]
    }

    /// The type number on the wire, if the version has the message.
    #[must_use]
    #[inline]
    pub const fn number(self, version: Version) -> Option<u8> {
        NUMBERS[version as usize][self as usize]
    }

    /// The type by which a version has the message among ONF's, having no number of its own for it.
    #[must_use]
    pub fn onf_type(self, version: Version) -> Option<u32> {
        let is_sent_so = version.has_onf_extensions() && self.number(version).is_none();
        self.row().onf.filter(|_| is_sent_so)
    }

    /// Whether a version has the message, be it as one of ONF's.
    #[must_use]
    pub fn is_in(self, version: Version) -> bool {
        self.number(version).is_some() || self.onf_type(version).is_some()
    }

    /// The message of a type among ONF's.
    #[must_use]
    pub fn from_onf_type(version: Version, exp_type: u32) -> Option<Self> {
        let row = MESSAGES.iter().find(|row| row.kind.onf_type(version) == Some(exp_type));
        row.map(|row| row.kind)
    }

    /// The message of a type number.
    #[must_use]
    #[inline]
    pub fn from_number(version: Version, number: u8) -> Option<Self> {
        KINDS[version as usize][usize::from(number)]
    }
}

/// The body of a hello.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hello {
    /// The versions in the bitmap element; `None` when there is no such element.
    pub versions: Option<VersionBitmap>,
}

/// The body of an error message. Numbers stay as they came, so that unknown ones survive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorMessage {
    /// Type number.
    pub error_type: u16,
    /// Code number; an experimenter error's own type.
    pub code: u16,
    /// Experimenter errors only: whose.
    pub experimenter: Option<u32>,
    /// The beginning of the message that was wrong, or a text.
    pub data: Vec<u8>,
}

impl ErrorMessage {
    /// The error message for `error` about the message that `data` begins.
    #[must_use]
    pub fn new(version: Version, error: Error, data: Vec<u8>) -> Self {
        let (error_type, code) = error.numbers(version);
        let experimenter = error.experimenter(version);
        Self { error_type, code, experimenter, data }
    }

    /// The row of the numbers, if there is one.
    #[must_use]
    pub fn error(&self, version: Version) -> Option<Error> {
        let known = Error::from_numbers(version, self.error_type, self.code);
        known.filter(|error| error.experimenter(version) == self.experimenter)
    }

    /// Its name for people, or its numbers where no row has them.
    #[must_use]
    pub fn name(&self, version: Version) -> String {
        match self.error(version) {
            Some(known) => known.name().to_owned(),
            None => format!("error of type {}, code {}", self.error_type, self.code),
        }
    }

    /// The same with the row's clause: why, and what to do.
    #[must_use]
    pub fn explained(&self, version: Version) -> String {
        match self.error(version) {
            Some(known) => format!("{} ({})", known.name(), known.advice()),
            None => self.name(version),
        }
    }
}

/// The body of an experimenter (vendor) message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Experimenter {
    /// Its owner.
    pub experimenter: u32,
    /// Its type; 1.0 has none, there it is zero and the body begins behind the vendor id.
    pub exp_type: u32,
    /// The body.
    pub data: Vec<u8>,
}

/// Features of a switch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// Its datapath id.
    pub datapath_id: DatapathId,
    /// Packets that it can buffer.
    pub n_buffers: u32,
    /// Flow tables.
    pub n_tables: u8,
    /// Zero for the main connection; 1.0 has none.
    pub auxiliary_id: u8,
    /// Capabilities.
    pub capabilities: Capabilities,
    /// 1.0: bit n says that action type n is supported.
    pub actions: u32,
    /// 1.0: the ports; 1.3 asks for them by a multipart request.
    pub ports: Vec<PortDesc>,
}

bitflags::bitflags! {
    /// Capabilities of a switch (`OFPC_*`).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Capabilities: u32 {
        /// Flow statistics.
        const FLOW_STATS = 1;
        /// Table statistics.
        const TABLE_STATS = 1 << 1;
        /// Port statistics.
        const PORT_STATS = 1 << 2;
        /// Group statistics; 1.0 has spanning tree here.
        const GROUP_STATS = 1 << 3;
        /// Reassembles IP fragments.
        const IP_REASM = 1 << 5;
        /// Queue statistics.
        const QUEUE_STATS = 1 << 6;
        /// Until 1.1: matches the IP addresses in ARP packets.
        const ARP_MATCH_IP = 1 << 7;
        /// Blocks ports to prevent loops.
        const PORT_BLOCKED = 1 << 8;
        /// Carries bundles out; since 1.4.
        const BUNDLES = 1 << 9;
        const _ = !0;
    }
}

/// Treatment of fragments, and the part of a packet that is sent to the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchConfig {
    /// 0 normal, 1 drop, 2 reassemble.
    pub flags: u16,
    /// Bytes of a buffered packet in a packet-in that no action asked for.
    pub miss_send_len: u16,
}

impl SwitchConfig {
    /// The flag that asks for packets with an invalid TTL (`OFPC_INVALID_TTL_TO_CONTROLLER`), in
    /// versions that have it ([`Version::has_invalid_ttl_flag`]); masks ask for them in later ones.
    pub const INVALID_TTL: u16 = 1 << 2;
}

/// A packet for the controller. In 1.0 the match holds `in_port` alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketIn {
    /// The buffer in which the switch keeps the packet, if it does.
    pub buffer_id: Option<BufferId>,
    /// Length of the whole packet.
    pub total_len: u16,
    /// Why.
    pub reason: PacketInReason,
    /// Table of the entry that sent it.
    pub table_id: TableId,
    /// Cookie of that entry; all ones when there is none.
    pub cookie: Cookie,
    /// `in_port` and other fields that the packet does not show.
    pub matching: Match,
    /// The packet, or its beginning.
    pub data: Vec<u8>,
    /// Data of a `controller` action, of packet-ins in properties only.
    pub userdata: Vec<u8>,
    /// The switch's own record of a packet that waits to be resumed, likewise.
    pub continuation: Vec<u8>,
    /// The controllers that get it, by the number that they have chosen; no part of the message on
    /// the wire.
    pub controller_id: u16,
}

/// Layout of packet-ins on a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PacketInForm {
    /// The specification's.
    #[default]
    Standard,
    /// `NXT_PACKET_IN`: in 1.0, too, with table, cookie and all fields of the match.
    Nicira,
    /// `NXT_PACKET_IN2`: the same as properties.
    Properties,
}

impl PacketIn {
    /// The port that the packet came in by.
    #[must_use]
    pub fn in_port(&self) -> Option<PortNo> {
        let value = self.matching.exact(crate::field::Field::InPort)?;
        u32::try_from(value).ok().map(PortNo)
    }
}

/// A packet to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketOut {
    /// The packet that the switch keeps; `data` is empty then.
    pub buffer_id: Option<BufferId>,
    /// The port it came in by, or [`PortNo::CONTROLLER`].
    pub in_port: PortNo,
    /// Actions for it.
    pub actions: Vec<Action>,
    /// The packet.
    pub data: Vec<u8>,
}

/// A request for statistics or descriptions, one part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MultipartRequest {
    /// More parts follow (`OFPMPF_REQ_MORE`).
    pub more: bool,
    /// The question.
    pub body: MultipartRequestBody,
}

/// Question of a multipart request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MultipartRequestBody {
    /// The switch's description.
    Desc,
    /// Flow entries.
    Flow(FlowStatsRequest),
    /// Sums over flow entries.
    Aggregate(FlowStatsRequest),
    /// Tables' counters.
    Table,
    /// Counters of a port, or of all ([`PortNo::ANY`]).
    PortStats(PortNo),
    /// Counters of queues.
    Queue {
        /// The port, or [`PortNo::ANY`].
        port: PortNo,
        /// The queue, or [`QueueId::ALL`].
        queue: QueueId,
    },
    /// Counters of a group, or of all ([`GroupId::ALL`]).
    Group(GroupId),
    /// All groups' descriptions.
    GroupDesc,
    /// The description of one group (1.5).
    OneGroupDesc(GroupId),
    /// Features of groups.
    GroupFeatures,
    /// Counters of a meter, or of all ([`MeterId::ALL`]).
    Meter(MeterId),
    /// Configuration of a meter, or of all ([`MeterId::ALL`]).
    MeterConfig(MeterId),
    /// Features of meters.
    MeterFeatures,
    /// Features of tables; with a body, the features to set.
    TableFeatures(Vec<TableFeatures>),
    /// All ports' descriptions.
    PortDesc,
    /// The description of one port (1.5).
    OnePortDesc(PortNo),
    /// All tables' settings.
    TableDesc,
    /// Descriptions of queues.
    QueueDesc {
        /// The port, or [`PortNo::ANY`].
        port: PortNo,
        /// The queue, or [`QueueId::ALL`].
        queue: QueueId,
    },
    /// Reports of changes of flow entries from now on (1.4; Nicira's and ONF's before).
    FlowMonitor(Vec<FlowMonitorRequest>),
    /// Somebody's own.
    Experimenter(Experimenter),
}

/// A part of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MultipartReply {
    /// More parts follow (`OFPMPF_REPLY_MORE`).
    pub more: bool,
    /// The answer.
    pub body: MultipartReplyBody,
}

/// Answer of a multipart reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MultipartReplyBody {
    /// The switch's description.
    Desc(SwitchDesc),
    /// Flow entries.
    Flow(Vec<FlowStats>),
    /// Sums over flow entries.
    Aggregate(AggregateStats),
    /// Tables' counters.
    Table(Vec<TableStats>),
    /// Ports' counters.
    PortStats(Vec<PortStats>),
    /// Queues' counters.
    Queue(Vec<QueueStats>),
    /// Groups' counters.
    Group(Vec<GroupStats>),
    /// Groups' descriptions.
    GroupDesc(Vec<GroupDesc>),
    /// Features of groups.
    GroupFeatures(GroupFeatures),
    /// Meters' counters.
    Meter(Vec<MeterStats>),
    /// Meters' configurations.
    MeterConfig(Vec<MeterConfig>),
    /// Features of meters.
    MeterFeatures(MeterFeatures),
    /// Features of tables.
    TableFeatures(Vec<TableFeatures>),
    /// Ports' descriptions.
    PortDesc(Vec<PortDesc>),
    /// Tables' settings.
    TableDesc(Vec<TableMod>),
    /// Queues' descriptions.
    QueueDesc(Vec<PacketQueue>),
    /// Changes of flow entries: the reply, and by the transaction number zero each later one.
    FlowMonitor(Vec<FlowUpdate>),
    /// Somebody's own.
    Experimenter(Experimenter),
}

impl MultipartReplyBody {
    /// Its type.
    #[must_use]
    pub const fn kind(&self) -> MultipartType {
        match self {
            Self::Desc(_) => MultipartType::Desc,
            Self::Flow(_) => MultipartType::Flow,
            Self::Aggregate(_) => MultipartType::Aggregate,
            Self::Table(_) => MultipartType::Table,
            Self::PortStats(_) => MultipartType::PortStats,
            Self::Queue(_) => MultipartType::Queue,
            Self::Group(_) => MultipartType::Group,
            Self::GroupDesc(_) => MultipartType::GroupDesc,
            Self::GroupFeatures(_) => MultipartType::GroupFeatures,
            Self::Meter(_) => MultipartType::Meter,
            Self::MeterConfig(_) => MultipartType::MeterConfig,
            Self::MeterFeatures(_) => MultipartType::MeterFeatures,
            Self::TableFeatures(_) => MultipartType::TableFeatures,
            Self::PortDesc(_) => MultipartType::PortDesc,
            Self::TableDesc(_) => MultipartType::TableDesc,
            Self::QueueDesc(_) => MultipartType::QueueDesc,
            Self::FlowMonitor(_) => MultipartType::FlowMonitor,
            Self::Experimenter(_) => MultipartType::Experimenter,
        }
    }
}

numbered! {
    /// Type of a multipart message (`OFPMP_*`; 1.0's `OFPST_*` have the same numbers to 5).
    pub enum MultipartType: u16 {
        /// Description.
        Desc = 0 => "OFPMP_DESC",
        /// Flow entries.
        Flow = 1 => "OFPMP_FLOW",
        /// Sums over flow entries.
        Aggregate = 2 => "OFPMP_AGGREGATE",
        /// Tables' counters.
        Table = 3 => "OFPMP_TABLE",
        /// Ports' counters.
        PortStats = 4 => "OFPMP_PORT_STATS",
        /// Queues' counters.
        Queue = 5 => "OFPMP_QUEUE",
        /// Groups' counters.
        Group = 6 => "OFPMP_GROUP" since V1_1,
        /// Groups' descriptions.
        GroupDesc = 7 => "OFPMP_GROUP_DESC" since V1_1,
        /// Features of groups.
        GroupFeatures = 8 => "OFPMP_GROUP_FEATURES" since V1_2,
        /// Meters' counters.
        Meter = 9 => "OFPMP_METER" since V1_3,
        /// Meters' configurations.
        MeterConfig = 10 => "OFPMP_METER_CONFIG" since V1_3,
        /// Features of meters.
        MeterFeatures = 11 => "OFPMP_METER_FEATURES" since V1_3,
        /// Features of tables.
        TableFeatures = 12 => "OFPMP_TABLE_FEATURES" since V1_3,
        /// Ports' descriptions. Tools of Open vSwitch ask for them in 1.0 too, under this number.
        PortDesc = 13 => "OFPMP_PORT_DESC",
        /// Tables' settings.
        TableDesc = 14 => "OFPMP_TABLE_DESC" since V1_4,
        /// Queues' descriptions.
        QueueDesc = 15 => "OFPMP_QUEUE_DESC" since V1_4,
        /// Changes of flow entries. Earlier versions have them by ONF or Nicira.
        FlowMonitor = 16 => "OFPMP_FLOW_MONITOR" since V1_4,
        /// Somebody's own.
        Experimenter = 0xffff => "OFPMP_EXPERIMENTER",
    }
}

/// A switch's description; each text is cut to its field on the wire (256 bytes, 32 for the serial
/// number).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SwitchDesc {
    /// Manufacturer.
    pub mfr_desc: String,
    /// Hardware.
    pub hw_desc: String,
    /// Software.
    pub sw_desc: String,
    /// Serial number.
    pub serial_num: String,
    /// The datapath, for people.
    pub dp_desc: String,
}

/// The queues of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueConfig {
    /// The port.
    pub port: PortNo,
    /// Its queues.
    pub queues: Vec<PacketQueue>,
}

numbered! {
    /// A controller's role (`OFPCR_ROLE_*`).
    pub enum ControllerRole: u32 {
        /// Ask only.
        NoChange = 0 => "nochange",
        /// Full access, beside others.
        Equal = 1 => "equal",
        /// Full access, at most one.
        Master = 2 => "primary",
        /// Read only.
        Slave = 3 => "secondary",
    }
}

/// A role request or reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Role {
    /// The role.
    pub role: ControllerRole,
    /// The election's number; all ones in a reply before there was any.
    pub generation_id: u64,
}

numbered! {
    /// Why a controller's role has changed (`OFPCRR_*`).
    pub enum RoleReason: u8 {
        /// Another controller became master.
        MasterRequest = 0 => "another controller became master",
        /// The switch's configuration changed.
        Config = 1 => "configuration changed",
        /// Somebody's own.
        Experimenter = 2 => "experimenter data changed",
    }
}

/// The role that a controller has now, and the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoleStatus {
    /// The role and the election's number.
    pub role: Role,
    /// The reason.
    pub reason: RoleReason,
}

/// The state of a switch's connection to a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControllerStatus {
    /// The controller's number, zero for none.
    pub short_id: u16,
    /// Its role.
    pub role: ControllerRole,
    /// Why the status is sent (`OFPCSR_*`).
    pub reason: u8,
    /// Zero where the connection is up (`OFPCT_STATUS_*`).
    pub channel: u8,
}

/// A kind of asynchronous messages, in the order of the masks on the wire. 1.3 has the first three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum AsyncEvent {
    /// Packet-in.
    PacketIn,
    /// Port status.
    PortStatus,
    /// Flow removed.
    FlowRemoved,
    /// Role status.
    RoleStatus,
    /// Table status.
    TableStatus,
    /// Requests of other controllers.
    RequestForward,
}

impl AsyncEvent {
    /// Every kind, in this order.
    pub const ALL: [Self; 6] = [
        Self::PacketIn,
        Self::PortStatus,
        Self::FlowRemoved,
        Self::RoleStatus,
        Self::TableStatus,
        Self::RequestForward,
    ];

    /// The reasons that a version has for such messages, as the bits of a mask.
    #[must_use]
    pub fn reasons(self, version: Version) -> u32 {
        match self {
            Self::PacketIn => PacketInReason::mask(version),
            Self::PortStatus => PortReason::mask(version),
            Self::FlowRemoved => FlowRemovedReason::mask(version),
            Self::RoleStatus => RoleReason::mask(version),
            Self::TableStatus => TableReason::mask(version),
            // Group-mods and meter-mods.
            Self::RequestForward => 0b11,
        }
    }
}

/// Choice of asynchronous messages: bit n of a mask is reason n. The first mask of each pair counts
/// for master and equal, the second for slave. A mask that is not given changes nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AsyncConfig {
    /// The masks, by the kind of message.
    pub masks: [[Option<u32>; 2]; AsyncEvent::ALL.len()],
}

impl AsyncConfig {
    /// The masks of 1.3: packet-in, port status, flow removed.
    #[must_use]
    pub const fn new(packet_in: [u32; 2], port_status: [u32; 2], flow_removed: [u32; 2]) -> Self {
        let none = Self { masks: [[None; 2]; AsyncEvent::ALL.len()] };
        none.with(AsyncEvent::PacketIn, packet_in)
            .with(AsyncEvent::PortStatus, port_status)
            .with(AsyncEvent::FlowRemoved, flow_removed)
    }

    /// This choice with the masks of a kind of message.
    #[must_use]
    pub const fn with(mut self, event: AsyncEvent, [full, slave]: [u32; 2]) -> Self {
        self.masks[event as usize] = [Some(full), Some(slave)];
        self
    }

    /// The masks of a kind of message; those that are not given ask for none.
    #[must_use]
    pub fn of(&self, event: AsyncEvent) -> [u32; 2] {
        self.masks[event as usize].map(Option::unwrap_or_default)
    }

    /// This choice after `change`.
    #[must_use]
    pub fn changed_by(mut self, change: &Self) -> Self {
        for (mask, new) in self.masks.as_flattened_mut().iter_mut().zip(change.masks.as_flattened())
        {
            *mask = new.or(*mask);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::{MESSAGES, MessageKind};
    use crate::version::Version;

    #[test]
    fn rows_are_in_the_enum_order_and_numbers_lead_back() {
        for (index, row) in MESSAGES.iter().enumerate() {
            assert_eq!(row.kind as usize, index);
            for &version in Version::ALL {
                if let Some(number) = row.kind.number(version) {
                    assert_eq!(MessageKind::from_number(version, number), Some(row.kind));
                }
            }
        }
    }

    #[test]
    fn every_version_numbers_its_messages_without_a_gap() {
        // 1.4 has no messages of queues any more.
        let ended = [22, 23];
        let last_of = [
            (Version::V1_0, 21),
            (Version::V1_1, 23),
            (Version::V1_2, 25),
            (Version::V1_3, 29),
            (Version::V1_4, 34),
            (Version::V1_5, 35),
        ];
        for (version, last) in last_of {
            for number in 0..=last {
                let is_known = MessageKind::from_number(version, number).is_some();
                let has_ended = Version::V1_4 <= version && ended.contains(&number);
                assert_eq!(is_known, !has_ended, "{version} {number}");
            }
            assert_eq!(MessageKind::from_number(version, last + 1), None);
        }
    }
}
