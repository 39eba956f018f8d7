//! Answers of an emulated switch: its identity, its ports, and that it holds nothing.
//!
//! Every request has an answer, so that no controller waits: a reply, or the protocol's error for
//! what such a switch does not have. It keeps the role and the settings that it is given, and no
//! flow entry: a measurement of a controller must not be one of a switch.

use openflow::flow::AggregateStats;
use openflow::group::GroupFeatures;
use openflow::message::{
    AsyncConfig, Capabilities, ControllerRole, Features, MultipartReply, MultipartReplyBody,
    MultipartRequest, MultipartRequestBody, QueueConfig, Role, SwitchConfig, SwitchDesc,
};
use openflow::meter::MeterFeatures;
use openflow::port::{PortDesc, PortFeatures, PortStats};
use openflow::table::{TableMod, TableStats};
use openflow::{DatapathId, Error, MacAddr, Message, MessageKind, PortNo, TableId, Version};

/// Packets that the switch says it can hold: more than can be outstanding.
const N_BUFFERS: u32 = 1 << 20;

/// A speed of 1 Gb/s, in kb/s.
const SPEED_KBPS: u32 = 1_000_000;

/// Answer to a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// This message, under the request's xid.
    Message(Box<Message>),
    /// This error.
    Refusal(Error),
    /// Nothing: it was no request.
    None,
}

/// Identity of a switch, and the settings that it was given.
#[derive(Clone, Debug)]
pub struct Identity {
    version: Version,
    dpid: DatapathId,
    ports: u32,
    config: SwitchConfig,
    role: ControllerRole,
    /// The greatest generation id that a master or slave has named.
    generation: Option<u64>,
    asynchronous: AsyncConfig,
}

impl Identity {
    /// The switch of this number, from 0, with `ports` ports.
    pub fn new(version: Version, number: u32, ports: u32) -> Self {
        let both = [u32::MAX, 0];
        Self {
            version,
            dpid: DatapathId(u64::from(number) + 1),
            ports,
            config: SwitchConfig { flags: 0, miss_send_len: 128 },
            role: ControllerRole::Equal,
            generation: None,
            asynchronous: AsyncConfig::new(both, [u32::MAX; 2], both),
        }
    }

    /// Whether the controller is a slave, which gets no packet-ins (clause 6.3.4).
    pub fn is_slave(&self) -> bool {
        self.role == ControllerRole::Slave
    }

    fn port(&self, number: u32) -> PortDesc {
        let [_, _, s0, s1] = (self.dpid.0 as u32).to_be_bytes();
        let [_, _, p0, p1] = number.to_be_bytes();
        let curr = PortFeatures::FD_1GB | PortFeatures::COPPER;
        let speed = if self.version.has_port_speeds() { SPEED_KBPS } else { 0 };
        PortDesc {
            port_no: PortNo(number),
            hw_addr: MacAddr([6, 0, s0, s1, p0, p1]),
            name: format!("port{number}"),
            curr,
            curr_speed_kbps: speed,
            max_speed_kbps: speed,
            ..PortDesc::default()
        }
    }

    /// Descriptions of all ports.
    pub fn ports(&self) -> Vec<PortDesc> {
        (1..=self.ports).map(|number| self.port(number)).collect()
    }

    fn features(&self) -> Features {
        let ports = if self.version.has_port_desc() { Vec::new() } else { self.ports() };
        Features {
            datapath_id: self.dpid,
            n_buffers: N_BUFFERS,
            n_tables: 1,
            auxiliary_id: 0,
            capabilities: Capabilities::FLOW_STATS
                | Capabilities::TABLE_STATS
                | Capabilities::PORT_STATS,
            // 1.0's actions, from output to enqueue.
            actions: if self.version.has_instructions() { 0 } else { 0xfff },
            ports,
        }
    }

    /// Answer to this message, if its row has one.
    pub fn reply(&mut self, message: &Message) -> Reply {
        if let Message::SetConfig(config) = message {
            self.config = *config;
        } else if let Message::SetAsync(config) = message {
            self.asynchronous = self.asynchronous.changed_by(config);
        } else if let Message::Experimenter(_) = message {
            return Reply::Refusal(Error::BadRequestBadExperimenter);
        }
        let Some(kind) = message.kind().row().reply else { return Reply::None };
        let reply = if let Message::QueueGetConfigRequest(port) = message {
            Message::QueueGetConfigReply(QueueConfig { port: *port, queues: Vec::new() })
        } else if let Message::RoleRequest(role) = message {
            match self.take_role(*role) {
                Ok(role) => Message::RoleReply(role),
                Err(error) => return Reply::Refusal(error),
            }
        } else if let Message::MultipartRequest(MultipartRequest { more: true, .. }) = message {
            return Reply::None;
        } else if let Message::MultipartRequest(MultipartRequest { body, .. }) = message {
            match self.multipart(body) {
                Ok(body) => Message::MultipartReply(MultipartReply { more: false, body }),
                Err(error) => return Reply::Refusal(error),
            }
        } else if kind == MessageKind::FeaturesReply {
            Message::FeaturesReply(self.features())
        } else if kind == MessageKind::GetConfigReply {
            Message::GetConfigReply(self.config)
        } else if kind == MessageKind::BarrierReply {
            Message::BarrierReply
        } else if kind == MessageKind::GetAsyncReply {
            Message::GetAsyncReply(self.asynchronous)
        } else {
            // The connection itself answers an echo request.
            return Reply::None;
        };
        Reply::Message(Box::new(reply))
    }

    /// Takes a role (clause 6.3.4), unless the election that gave it is over.
    fn take_role(&mut self, wish: Role) -> Result<Role, Error> {
        match wish.role {
            ControllerRole::NoChange => {}
            ControllerRole::Equal => self.role = wish.role,
            ControllerRole::Master | ControllerRole::Slave => {
                // Numbers are compared as a distance around the circle.
                let is_stale = |seen: u64| (wish.generation_id.wrapping_sub(seen) as i64) < 0;
                if self.generation.is_some_and(is_stale) {
                    return Err(Error::RoleRequestStale);
                }
                self.generation = Some(wish.generation_id);
                self.role = wish.role;
            }
            ControllerRole::Unknown(_) => return Err(Error::RoleRequestBadRole),
        }
        let generation_id = self.generation.unwrap_or(u64::MAX);
        Ok(Role { role: self.role, generation_id })
    }

    fn multipart(&self, body: &MultipartRequestBody) -> Result<MultipartReplyBody, Error> {
        Ok(match body {
            MultipartRequestBody::Desc => MultipartReplyBody::Desc(SwitchDesc {
                mfr_desc: "Weir".to_owned(),
                hw_desc: "none".to_owned(),
                sw_desc: "weir lab".to_owned(),
                serial_num: self.dpid.to_string(),
                dp_desc: format!("emulated switch {}", self.dpid),
            }),
            MultipartRequestBody::Flow(_) => MultipartReplyBody::Flow(Vec::new()),
            MultipartRequestBody::Aggregate(_) => {
                MultipartReplyBody::Aggregate(AggregateStats::default())
            }
            MultipartRequestBody::Table => {
                let name = "flow table".to_owned();
                MultipartReplyBody::Table(vec![TableStats { name, ..TableStats::default() }])
            }
            MultipartRequestBody::PortStats(port) => {
                let wanted = |number: &u32| *port == PortNo::ANY || *port == PortNo(*number);
                let stats = |number| PortStats { port_no: PortNo(number), ..PortStats::default() };
                let ports = (1..=self.ports).filter(wanted).map(stats).collect();
                MultipartReplyBody::PortStats(ports)
            }
            MultipartRequestBody::Queue { .. } => MultipartReplyBody::Queue(Vec::new()),
            MultipartRequestBody::Group(_) => MultipartReplyBody::Group(Vec::new()),
            MultipartRequestBody::GroupDesc | MultipartRequestBody::OneGroupDesc(_) => {
                MultipartReplyBody::GroupDesc(Vec::new())
            }
            MultipartRequestBody::GroupFeatures => {
                MultipartReplyBody::GroupFeatures(GroupFeatures::default())
            }
            MultipartRequestBody::Meter(_) => MultipartReplyBody::Meter(Vec::new()),
            MultipartRequestBody::MeterConfig(_) => MultipartReplyBody::MeterConfig(Vec::new()),
            MultipartRequestBody::MeterFeatures => {
                MultipartReplyBody::MeterFeatures(MeterFeatures::default())
            }
            MultipartRequestBody::TableFeatures(_) => MultipartReplyBody::TableFeatures(Vec::new()),
            MultipartRequestBody::PortDesc => MultipartReplyBody::PortDesc(self.ports()),
            MultipartRequestBody::OnePortDesc(port) => {
                let mut ports = self.ports();
                ports.retain(|desc| desc.port_no == *port);
                MultipartReplyBody::PortDesc(ports)
            }
            MultipartRequestBody::TableDesc => {
                MultipartReplyBody::TableDesc(vec![TableMod::new(TableId(0), 0)])
            }
            MultipartRequestBody::QueueDesc { .. } => MultipartReplyBody::QueueDesc(Vec::new()),
            MultipartRequestBody::FlowMonitor(_) => return Err(Error::BadRequestBadMultipart),
            MultipartRequestBody::Experimenter(_) => {
                return Err(Error::BadRequestBadExperimenter);
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use openflow::message::{
        ControllerRole, MultipartReply, MultipartReplyBody, MultipartRequest, MultipartRequestBody,
        Role,
    };
    use openflow::{Error, Message, PortNo, Version, Xid};

    use super::{Identity, Reply};

    fn ask(identity: &mut Identity, body: MultipartRequestBody) -> MultipartReplyBody {
        let request = MultipartRequest { more: false, body };
        let Reply::Message(reply) = identity.reply(&Message::MultipartRequest(request)) else {
            panic!("no reply");
        };
        let Message::MultipartReply(MultipartReply { more: false, body }) = *reply else {
            panic!("another reply");
        };
        body
    }

    #[test]
    fn a_switch_says_who_it_is_in_every_version() {
        for &version in Version::ALL {
            let mut identity = Identity::new(version, 6, 4);
            let Reply::Message(reply) = identity.reply(&Message::FeaturesRequest) else { panic!() };
            let frame = wire::encode(version, Xid(1), &reply).unwrap();
            let (_, _, Message::FeaturesReply(features)) = wire::decode(&frame).unwrap() else {
                panic!("{reply:?}");
            };
            assert_eq!(features.datapath_id.0, 7);
            assert_eq!(features.ports.len(), if version.has_port_desc() { 0 } else { 4 });
            let MultipartReplyBody::PortDesc(ports) =
                ask(&mut identity, MultipartRequestBody::PortDesc)
            else {
                panic!();
            };
            assert_eq!((ports.len(), ports[3].name.as_str()), (4, "port4"));
            let one = MultipartRequestBody::PortStats(PortNo(2));
            let MultipartReplyBody::PortStats(stats) = ask(&mut identity, one) else { panic!() };
            assert_eq!(stats.len(), 1);
            let barrier = identity.reply(&Message::BarrierRequest);
            assert_eq!(barrier, Reply::Message(Box::new(Message::BarrierReply)));
        }
    }

    #[test]
    fn a_late_master_is_refused() {
        let mut identity = Identity::new(Version::V1_3, 0, 2);
        let mut wish = |role, generation_id| {
            identity.reply(&Message::RoleRequest(Role { role, generation_id }))
        };
        let granted = |role, generation_id| {
            Reply::Message(Box::new(Message::RoleReply(Role { role, generation_id })))
        };
        let (master, slave) = (ControllerRole::Master, ControllerRole::Slave);
        assert_eq!(wish(ControllerRole::NoChange, 5), granted(ControllerRole::Equal, u64::MAX));
        assert_eq!(wish(master, u64::MAX), granted(master, u64::MAX));
        assert_eq!(wish(slave, 1), granted(slave, 1), "numbers go around");
        assert_eq!(wish(master, u64::MAX), Reply::Refusal(Error::RoleRequestStale));
        assert_eq!(wish(ControllerRole::NoChange, 0), granted(slave, 1));
        assert!(identity.is_slave());
    }
}
