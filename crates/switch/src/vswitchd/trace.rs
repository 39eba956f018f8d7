//! `ofproto/trace`: the way of a packet through the tables of a bridge, and by patch ports through
//! those of others.
//!
//! The steps are in Weir's form. The last two lines, `Final flow:` and `Datapath actions:`, are in
//! the words of Open vSwitch, since tools read them.

use std::rc::Rc;

use control::unhex;
use datapath::{DropReason, Verdict};
use netdev::{PATCH_HOPS_MAX, PortSpec};
use openflow::PortNo;
use packet::{FRAME_CAPACITY, Meta, describe};

use super::Daemon;
use super::commands::{datapath_name, datapath_ports};
use super::datapath_actions::{Leaving, datapath_actions, to_controller};
use super::flow_key::FlowKeyText;
use crate::agent::Agent;
use crate::control::{Traced, assumed, trace_frame};

/// The Ethernet type of packets of which none is named, which is one for experiments.
const ASSUMED_TYPE: &str = "dl_type=0x88b5";
/// Such packets have no type in Open vSwitch.
const NO_TYPE: &str = "dl_type=0x0000";

/// Traces a packet.
pub(super) async fn trace(daemon: &Daemon, words: &[String]) -> Result<String, String> {
    let (options, words): (Vec<&str>, Vec<&str>) =
        words.iter().map(String::as_str).partition(|word| word.starts_with('-'));
    let mut has_names = false;
    for option in options {
        match option {
            "--names" => has_names = true,
            "--no-names" => has_names = false,
            "-generate" | "--generate" => {
                return Err(format!("{option}: a trace changes nothing; send a packet instead"));
            }
            _ => return Err(format!("unknown option {option}")),
        }
    }
    let (agent, in_port, frame) = packet_of(daemon, &words)?;
    let shown_type = if is_without_type(&words) { Some(NO_TYPE) } else { None };
    let mut walk = Walk { daemon, has_names, shown_type, text: String::new(), leaving: Vec::new() };
    walk.text = format!("Flow: {}\n", walk.flow(&agent, &frame, &Meta::port(in_port)));
    let traced = walk.follow(&agent, in_port, &frame).await?;
    let last = match &traced.left {
        Some((packet, meta)) if packet.bytes() != frame || *meta != Meta::port(in_port) => {
            walk.flow(&agent, packet.bytes(), meta)
        }
        Some(_) | None => "unchanged".to_owned(),
    };
    let actions = datapath_actions(&frame, &walk.leaving);
    let failed = traced.trace.verdicts.iter().find_map(failure).unwrap_or_default();
    Ok(format!("{}\nFinal flow: {last}\nDatapath actions: {actions}{failed}", walk.text))
}

/// Whether the words are a bridge and a flow that names no Ethernet type, nor a protocol.
fn is_without_type(words: &[&str]) -> bool {
    let [_, flow] = words else { return false };
    !flow.contains("dl_type=") && !flow.contains("eth_type=") && !flow.contains('(')
}

/// The last line of a packet that asked for too much, and before it what that was, where the line
/// does not say it.
fn failure(verdict: &Verdict) -> Option<&'static str> {
    let Verdict::Drop { reason } = verdict else { return None };
    if *reason == DropReason::StackTooDeep {
        Some(
            "\n >>>> resubmits yielded over 64 kB of stack <<<<\n\
             Translation failed (Stack too deep), packet is dropped.",
        )
    } else if *reason == DropReason::TooManyResubmits {
        Some("\nTranslation failed (Too many resubmits), packet is dropped.")
    } else {
        None
    }
}

/// The bridge, port and frame that words name: a bridge and a flow of OpenFlow, or a flow of the
/// datapath, which may be named; behind either the packet in hex.
fn packet_of(daemon: &Daemon, words: &[&str]) -> Result<(Rc<Agent>, PortNo, Vec<u8>), String> {
    let is_flow_key = |word: &&str| word.contains('(');
    let (flow, packet) = match *words {
        [bridge, flow, ref rest @ ..] if rest.len() <= 1 && !is_flow_key(&bridge) => {
            match daemon.bridges.find(Some(bridge)) {
                Ok(agent) if !is_flow_key(&flow) => {
                    let (in_port, frame) = assumed(&agent, flow, rest.first().copied())?;
                    return Ok((agent, in_port, frame));
                }
                Err(_) if !is_flow_key(&flow) => return Err("Unknown bridge name".to_owned()),
                Err(_) if is_datapath(daemon, bridge) => (flow, rest.first()),
                Ok(_) | Err(_) => return Err("Cannot find the datapath".to_owned()),
            }
        }
        [flow, ref rest @ ..] if rest.len() <= 1 && is_flow_key(&flow) => (flow, rest.first()),
        _ => return Err("Syntax error: a bridge and a flow, or a flow of the datapath".to_owned()),
    };
    let key = FlowKeyText::read(flow)?;
    let in_port = key.in_port.as_deref().ok_or("the flow has no in_port(..)")?;
    let ports = datapath_ports(daemon);
    let port = ports.iter().find(|port| {
        port.name == in_port || port.index.is_some_and(|index| index.to_string() == in_port)
    });
    let port = port.ok_or_else(|| format!("in_port({in_port}): there is no such port"))?;
    let frame = match packet {
        Some(packet) => unhex(packet, FRAME_CAPACITY)?,
        None => key.frame(None)?,
    };
    Ok((daemon.bridges.find(Some(&port.bridge))?, port.number, frame))
}

/// Whether a name is that of the datapath.
fn is_datapath(daemon: &Daemon, name: &str) -> bool {
    let whole = datapath_name(daemon);
    name == whole || whole.split_once('@').is_some_and(|(_, short)| name == short)
}

/// A packet on its way from bridge to bridge.
struct Walk<'a> {
    daemon: &'a Daemon,
    /// Ports are printed by name.
    has_names: bool,
    /// The Ethernet type that is printed where the packet has one that no word has named.
    shown_type: Option<&'static str>,
    text: String,
    leaving: Vec<Leaving>,
}

impl Walk<'_> {
    /// Traces a frame to its end; what came of it in the first bridge.
    async fn follow(
        &mut self,
        agent: &Rc<Agent>,
        in_port: PortNo,
        frame: &[u8],
    ) -> Result<Traced, String> {
        let first = self.bridge(agent, in_port, frame).await?;
        let mut hops = 0;
        let mut under_way = vec![(Rc::clone(agent), first.trace.verdicts.clone().into_iter())];
        while let Some((agent, verdicts)) = under_way.last_mut() {
            let leaving = match verdicts.next() {
                None => {
                    under_way.pop();
                    continue;
                }
                Some(Verdict::Held | Verdict::Drop { .. }) => continue,
                Some(Verdict::PacketIn { message, max_len }) => {
                    let action = to_controller(&message, max_len);
                    Leaving { frame: message.data, queue: None, action }
                }
                Some(Verdict::Output { port, queue, frame }) => {
                    let agent = Rc::clone(agent);
                    let Some(peer) = self.peer(&agent, port) else {
                        let (frame, action) = (frame.bytes().to_vec(), self.port(&agent, port));
                        self.leaving.push(Leaving { frame, queue, action });
                        continue;
                    };
                    let Some((other, number)) = peer else { continue };
                    hops += 1;
                    if hops > PATCH_HOPS_MAX {
                        self.text += "\nthe packet has passed too many patch ports: dropped\n";
                        continue;
                    }
                    let traced = self.bridge(&other, number, frame.bytes()).await?;
                    under_way.push((other, traced.trace.verdicts.into_iter()));
                    continue;
                }
            };
            self.leaving.push(leaving);
        }
        Ok(first)
    }

    /// Traces a frame through the tables of a bridge.
    async fn bridge(
        &mut self,
        agent: &Agent,
        in_port: PortNo,
        frame: &[u8],
    ) -> Result<Traced, String> {
        let traced = trace_frame(agent, in_port, frame).await?;
        let head = format!("bridge(\"{}\")", agent.name);
        let line = "-".repeat(head.len());
        self.text += &format!("\n{head}\n{line}\n{}\n", traced.text(frame));
        Ok(traced)
    }

    /// The other end of a port, if it is a patch port and its peer is there; none if it is no patch
    /// port.
    fn peer(&self, agent: &Agent, port: PortNo) -> Option<Option<(Rc<Agent>, PortNo)>> {
        let views = agent.bridge.port_views();
        let spec = &views.iter().find(|view| view.port.number == port)?.port.spec;
        let is_patch = |spec: &PortSpec| spec.kind().word == "patch";
        if !is_patch(spec) {
            return None;
        }
        let is_peer = |other: &PortSpec| {
            let (here, there) = (spec.option("peer"), other.option("peer"));
            is_patch(other) && here == Some(other.name()) && there == Some(spec.name())
        };
        Some(self.daemon.bridges.all().into_iter().find_map(|other| {
            let views = other.bridge.port_views();
            let view = views.into_iter().find(|view| is_peer(&view.port.spec))?;
            Some((other, view.port.number))
        }))
    }

    /// A port as an action of the datapath names it.
    fn port(&self, agent: &Agent, number: PortNo) -> String {
        let ports = datapath_ports(self.daemon);
        let port =
            ports.into_iter().find(|port| port.bridge == agent.name && port.number == number);
        match port {
            Some(port) if self.has_names => port.name,
            Some(port) => port.index.map_or_else(String::new, |index| index.to_string()),
            None => number.to_string(),
        }
    }

    /// A packet as the flow that Open vSwitch prints.
    fn flow(&self, agent: &Agent, frame: &[u8], meta: &Meta) -> String {
        let mut described = describe(frame);
        if let Some(shown) = self.shown_type {
            described = described.replace(ASSUMED_TYPE, shown);
        }
        let described = described.split(' ').next().unwrap_or_default();
        let registers = meta.registers.written();
        let registers = registers.map(|(field, value)| (field.row().text, value.into()));
        let others = [("tun_id", meta.tunnel_id), ("metadata", meta.metadata)];
        let mut fields = String::new();
        for (name, value) in registers.chain(others) {
            if value != 0 {
                fields += &format!("{name}={value:#x},");
            }
        }
        let views = agent.bridge.port_views();
        let named = views.into_iter().find(|view| view.port.number == meta.in_port);
        let port = match named.filter(|_| self.has_names) {
            Some(view) => view.port.info.name,
            None => meta.in_port.to_string(),
        };
        let fields = format!("{fields}in_port={port}");
        match described.split_once(',') {
            Some((word, rest)) if !word.contains('=') => format!("{word},{fields},{rest}"),
            Some(_) | None => format!("{fields},{described}"),
        }
    }
}
