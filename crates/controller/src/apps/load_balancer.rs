//! The load balancer: one address for a service, many servers behind it.
//!
//! A select group chooses the server of a connection by weight; its buckets write the server's
//! addresses and watch its port, so that the switch itself leaves out a server whose port is down.
//! Answers get the service's addresses back on their way. All other packets go through a learning
//! switch in table 1. Groups came after OpenFlow 1.0: a switch that speaks it is told so in the log
//! and left without entries. The controller must never be in the way of a connection's packets.

use super::config_values::{Fault, StationMac, SwitchId};
use super::frame::{bridged, entry, to_controller};
use super::learning_switch::{LearningSwitch, pair};
use super::log::needs;
use super::microflow::key_of;
use crate::app::App;
use crate::switch::Switch;
use openflow::flow::FlowMod;
use openflow::group::{Bucket, GroupMod, GroupModCommand, GroupType};
use openflow::message::{PacketIn, PacketOut};
use openflow::port::PortStatus;
use openflow::text::parse_number;
use openflow::{
    Action, DatapathId, Field, GroupId, Instruction, MacAddr, Match, Message, PortNo, TableId,
};
use packet::build::{Arp, FrameBuilder};
use packet::header::{ethernet, ipv4};
use serde::Deserialize;
use std::net::Ipv4Addr;
use std::sync::Arc;
use toml::Spanned;

/// The table in which the learning switch forwards.
const FORWARDING: TableId = TableId(1);
/// The servers' group.
const SERVERS: GroupId = GroupId(1);
/// Priorities: ARP for the service, the service, other packets for its address.
const ARP_PRIORITY: u16 = 300;
const SERVICE_PRIORITY: u16 = 200;
const ADDRESS_PRIORITY: u16 = 100;
/// Most servers.
const SERVERS_MAX: usize = 256;
const ARP_REQUEST: u16 = 1;
const ARP_REPLY: u16 = 2;

/// `[load-balancer]` in the file of the apps' settings.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LoadBalancerConfig {
    /// The switch that balances.
    pub switch: SwitchId,
    /// The service's IPv4 address, which no server has.
    pub address: Ipv4Addr,
    /// The service's Ethernet address, which no station has.
    pub mac: StationMac,
    /// The service's port: `tcp:80`, `udp:53`.
    pub service: BalancedService,
    /// The servers.
    pub server: Vec<Spanned<BalancedServer>>,
}

/// `[[load-balancer.server]]`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct BalancedServer {
    /// Its IPv4 address.
    pub address: Ipv4Addr,
    /// Its Ethernet address.
    pub mac: StationMac,
    /// The switch's port to it.
    pub port: u32,
    /// Its share of the connections.
    #[serde(default = "one")]
    pub weight: u16,
}

fn one() -> u16 {
    1
}

/// A transport protocol and a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct BalancedService {
    protocol: u8,
    port: u16,
}

impl TryFrom<String> for BalancedService {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let wrong = || format!("{text:?}: tcp:PORT or udp:PORT");
        let (protocol, port) = text.split_once(':').ok_or_else(wrong)?;
        let port = parse_number(port).map_err(|error| format!("{}; {}", wrong(), error.what))?;
        match protocol {
            "tcp" => Ok(Self { protocol: ipv4::PROTO_TCP, port }),
            "udp" => Ok(Self { protocol: ipv4::PROTO_UDP, port }),
            _ => Err(wrong()),
        }
    }
}

impl BalancedService {
    /// Packets to the service's port, or from it.
    fn matching(self, is_to: bool) -> Match {
        let field = match (self.protocol == ipv4::PROTO_TCP, is_to) {
            (true, true) => Field::TcpDst,
            (true, false) => Field::TcpSrc,
            (false, true) => Field::UdpDst,
            (false, false) => Field::UdpSrc,
        };
        let protocol = Match::any()
            .with(Field::EthType, ethernet::IPV4.into())
            .with(Field::IpProto, self.protocol.into());
        protocol.with(field, self.port.into())
    }
}

impl LoadBalancerConfig {
    pub(super) fn check(&self) -> Result<(), Fault> {
        for (index, server) in self.server.iter().enumerate() {
            let own = server.get_ref();
            let before = self.server.iter().take(index);
            let wrong = if index >= SERVERS_MAX {
                Some(format!("at most {SERVERS_MAX} servers"))
            } else if own.weight == 0 {
                Some("weight: at least 1".to_owned())
            } else if !PortNo(own.port).is_port() {
                Some(format!("port: {} is no port's number", own.port))
            } else if own.address == self.address || own.mac == self.mac {
                Some("a server's addresses are not those of the service".to_owned())
            } else if before.into_iter().any(|other| other.get_ref().address == own.address) {
                Some(format!("address: there is another server {}", own.address))
            } else {
                None
            };
            if let Some(wrong) = wrong {
                return Err(Fault::at(server, "load-balancer.server", wrong));
            }
        }
        Ok(())
    }

    fn servers(&self) -> impl Iterator<Item = &BalancedServer> {
        self.server.iter().map(Spanned::get_ref)
    }

    fn group(&self, command: GroupModCommand) -> GroupMod {
        let bucket = |server: &BalancedServer| Bucket {
            bucket_id: None,
            weight: server.weight,
            watch_port: PortNo(server.port),
            watch_group: GroupId::ANY,
            actions: vec![
                Action::set_field(Field::EthDst, server.mac.0.to_u64().into()),
                Action::set_field(Field::Ipv4Dst, server.address.to_bits().into()),
                Action::output(PortNo(server.port)),
            ],
        };
        let is_delete = command == GroupModCommand::Delete;
        let buckets = if is_delete { Vec::new() } else { self.servers().map(bucket).collect() };
        GroupMod {
            command,
            group_type: GroupType::Select,
            group_id: SERVERS,
            buckets,
            ..GroupMod::default()
        }
    }

    /// The entries of table 0.
    fn entries(&self) -> Vec<FlowMod> {
        let address = u128::from(self.address.to_bits());
        let arp =
            Match::any().with(Field::EthType, ethernet::ARP.into()).with(Field::ArpTpa, address);
        let service = self.service.matching(true).with(Field::Ipv4Dst, address);
        let others =
            Match::any().with(Field::EthType, ethernet::IPV4.into()).with(Field::Ipv4Dst, address);
        let mut entries = vec![
            entry(ARP_PRIORITY, arp, vec![to_controller()]),
            entry(SERVICE_PRIORITY, service, vec![Action::Group(SERVERS)]),
            entry(ADDRESS_PRIORITY, others, Vec::new()),
        ];
        for server in self.servers() {
            let answers = self.service.matching(false);
            let answers = answers
                .with(Field::InPort, server.port.into())
                .with(Field::Ipv4Src, server.address.to_bits().into());
            let rewrite = vec![
                Action::set_field(Field::EthSrc, self.mac.0.to_u64().into()),
                Action::set_field(Field::Ipv4Src, address),
            ];
            entries.push(onwards(entry(SERVICE_PRIORITY, answers, rewrite)));
        }
        // In place of the learning switch's table-miss entry.
        entries.push(onwards(entry(0, Match::any(), Vec::new())));
        entries
    }
}

fn onwards(mut entry: FlowMod) -> FlowMod {
    entry.instructions.push(Instruction::GotoTable(FORWARDING));
    entry
}

/// The app.
#[derive(Debug)]
pub struct LoadBalancer {
    config: Arc<LoadBalancerConfig>,
    forwarding: LearningSwitch,
}

impl LoadBalancer {
    /// An instance with this service.
    #[must_use]
    pub fn new(config: Arc<LoadBalancerConfig>) -> Self {
        Self { config, forwarding: LearningSwitch::in_table(FORWARDING) }
    }

    fn serves(&self, sw: &Switch) -> bool {
        sw.dpid() == self.config.switch.0 && sw.version().has_groups()
    }

    /// Sends an ARP packet of the service out of a port.
    fn send_arp(&self, sw: &mut Switch, op: u16, tha: MacAddr, tpa: Ipv4Addr, port: PortNo) {
        let (sha, spa) = (self.config.mac.0, self.config.address);
        let dst = if op == ARP_REQUEST { MacAddr([0xff; 6]) } else { tha };
        let frame = FrameBuilder::ethernet(dst, sha).arp(Arp { op, sha, spa, tha, tpa });
        let (in_port, actions) = (PortNo::CONTROLLER, vec![Action::output(port)]);
        let data = frame.fill_to(ethernet::FRAME_MIN_LEN).build();
        sw.send(Message::PacketOut(PacketOut { buffer_id: None, in_port, actions, data }));
    }

    /// ARP for the service's address: its sender is learned, and a request is answered.
    fn take_arp(&mut self, sw: &mut Switch, packet_in: &PacketIn, in_port: PortNo) {
        let key = key_of(&packet_in.data, in_port);
        self.forwarding.destination(sw, packet_in);
        let sender = u64::try_from(key.get(Field::ArpSha)).map(MacAddr::from_u64);
        let spa = u32::try_from(key.get(Field::ArpSpa)).map(Ipv4Addr::from);
        if let (Ok(sender), Ok(spa)) = (sender, spa)
            && key.get(Field::ArpOp) == u128::from(ARP_REQUEST)
        {
            // Back where it came from.
            self.send_arp(sw, ARP_REPLY, sender, spa, in_port);
        }
    }
}

impl LoadBalancer {
    /// An answer of a server. The service's address has no place of its own and is not learned.
    fn forward_answer(&self, sw: &mut Switch, packet_in: &PacketIn, in_port: PortNo) {
        let Some((dst, src)) = bridged(&packet_in.data) else { return };
        if let Some(port) = self.forwarding.port_of(sw.dpid(), dst) {
            return self.forwarding.forward(sw, packet_in, port, pair(in_port, src, dst));
        }
        // Nothing was heard of the client; its answer to ARP will tell its place.
        sw.flood(packet_in);
        let key = key_of(&packet_in.data, in_port);
        if let Ok(client) = u32::try_from(key.get(Field::Ipv4Dst))
            && key.has(Field::Ipv4Dst)
        {
            let (nobody, client) = (MacAddr::default(), Ipv4Addr::from(client));
            self.send_arp(sw, ARP_REQUEST, nobody, client, PortNo::FLOOD);
        }
    }
}

impl App for LoadBalancer {
    fn switch_ready(&mut self, sw: &mut Switch) {
        if sw.dpid() != self.config.switch.0 {
            return;
        }
        if !sw.version().has_groups() {
            return needs(sw, "load-balancer", "groups (OpenFlow 1.1)");
        }
        self.forwarding.switch_ready(sw);
        // To delete a group is to delete the entries that use it: not from under another master's.
        let commands = match sw.is_set_up() {
            true => &[GroupModCommand::Modify][..],
            false => &[GroupModCommand::Delete, GroupModCommand::Add],
        };
        for command in commands {
            sw.send(Message::GroupMod(self.config.group(*command)));
        }
        for entry in self.config.entries() {
            sw.flow_mod(entry);
        }
    }

    fn switch_down(&mut self, dpid: DatapathId) {
        self.forwarding.switch_down(dpid);
    }

    fn packet_in(&mut self, sw: &mut Switch, packet_in: &PacketIn) {
        let Some(in_port) = packet_in.in_port().filter(|_| self.serves(sw)) else { return };
        let key = key_of(&packet_in.data, in_port);
        let address = u128::from(self.config.address.to_bits());
        if key.has(Field::ArpTpa) && key.get(Field::ArpTpa) == address {
            self.take_arp(sw, packet_in, in_port);
        } else if key.get(Field::EthSrc) == u128::from(self.config.mac.0.to_u64()) {
            self.forward_answer(sw, packet_in, in_port);
        } else {
            self.forwarding.packet_in(sw, packet_in);
        }
    }

    fn port_status(&mut self, sw: &mut Switch, status: &PortStatus) {
        if self.serves(sw) {
            self.forwarding.port_status(sw, status);
        }
    }
}
