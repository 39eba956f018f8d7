//! Switches with the kernel tier at veths in a namespace of their own, and hosts at the other ends.
//!
//! A [`TierPair`] is a switch with the tier beside one without: both get the same, and must send
//! the same frames and count the same.
//!
//! A few rounds by default; `WEIR_TIER_ROUNDS` and `WEIR_TIER_SEED` ask for more and for others.

use std::collections::BTreeMap;

use netdev::sys::link::Rtnl;
use netdev::sys::netns::Namespace;
use openflow::flow::{FlowMod, FlowModCommand};
use openflow::group::GroupModCommand;
use openflow::message::{MultipartReplyBody, MultipartRequestBody};
use openflow::text::{parse_flow_mod, parse_group_mod};
use openflow::{Action, Field, GroupId, MacAddr, Match, Message, PortNo, TableId, Version};
use testkit::Random;

use crate::harness::{Controller, Host, Switch, add_flow, until};
use crate::veth::{add_veth, add_veth_into, in_namespace};

pub(crate) const PORTS: usize = 3;

/// A number from the environment.
pub(crate) fn number(name: &str, usual: u64) -> u64 {
    let Ok(text) = std::env::var(name) else { return usual };
    // `x20` is twenty times the usual number, which differs between tests.
    text.strip_prefix('x')
        .map_or_else(|| text.parse().unwrap(), |times| usual * times.parse::<u64>().unwrap())
}

/// A switch with these lines of TOML at the ends of `count` new veths.
pub(crate) fn switch_at_veths(rtnl: &Rtnl, count: usize, toml: &str) -> Switch {
    (1..=count).for_each(|port| add_veth(rtnl, &format!("sw{port}"), &format!("host{port}")));
    let ports: Vec<String> =
        (1..=count).map(|port| format!("\"{port}=af_packet:sw{port}\"")).collect();
    Switch::with_ports(&ports.join(","), Vec::new(), toml)
}

/// The hosts at the other ends of the first veths.
pub(crate) fn hosts<const COUNT: usize>() -> [Host; COUNT] {
    std::array::from_fn(|at| Host::open(&format!("af_packet:host{}", at + 1)))
}

/// A switch with these lines of TOML at three veths, and hosts at the others.
pub(crate) fn at_veths(toml: &str, test: impl FnOnce(&Switch, &mut [Host; 3], &Rtnl) + Send) {
    in_namespace(|rtnl| {
        let switch = switch_at_veths(rtnl, PORTS, toml);
        test(&switch, &mut hosts(), rtnl);
        switch.stop();
        assert_eq!(handovers(rtnl), 0);
    });
}

/// The same with the kernel tier.
pub(crate) fn with_tier(test: impl FnOnce(&Switch, &mut [Host; 3], &Rtnl) + Send) {
    at_veths("caches = \"frame,key,kernel\"\n", test);
}

/// The number of TAP devices by which the kernel hands frames over: one for each port in a tier.
pub(crate) fn handovers(rtnl: &Rtnl) -> usize {
    rtnl.links().unwrap().iter().filter(|link| link.kind == "tun").count()
}

/// A value that `weir ctl` shows with these words, of all workers.
pub(crate) fn sum_shown(switch: &Switch, words: &[&str], name: &str) -> u64 {
    switch.records(words).iter().filter_map(|worker| worker[name].as_u64()).sum()
}

/// The number of frames that the kernel has decided about, on a bridge.
pub(crate) fn kernel_hits_of(switch: &Switch, bridge: &str) -> u64 {
    sum_shown(switch, &["--bridge", bridge, "caches"], "kernel_hits")
}

/// The same on the only bridge.
pub(crate) fn kernel_hits(switch: &Switch) -> u64 {
    kernel_hits_of(switch, "br0")
}

/// Attempts until the kernel has decided about more frames than `more`; the number of attempts.
pub(crate) fn until_hits(switch: &Switch, more: u64, mut attempt: impl FnMut()) -> u64 {
    let (before, mut count) = (kernel_hits(switch), 0);
    until("a decision of the kernel", || {
        attempt();
        count += 1;
        (kernel_hits(switch) > before + more).then_some(count)
    })
}

/// Sends frames until the kernel decides about them; how many were sent and have arrived.
pub(crate) fn until_in_kernel(
    switch: &Switch,
    from: &mut Host,
    to: &mut Host,
    bytes: &[u8],
) -> u64 {
    until_hits(switch, 0, || {
        from.send(bytes);
        assert_eq!(to.receive(), bytes);
    })
}

/// Packets and bytes of the entries, by the port that they match.
pub(crate) fn flow_counts(controller: &mut Controller) -> BTreeMap<u128, (u64, u64)> {
    let counts = controller.flow_stats().into_iter().map(|entry| {
        let in_port = entry.matching.get(Field::InPort).map_or(0, |port| port.value);
        (in_port, (entry.packet_count, entry.byte_count))
    });
    counts.collect()
}

pub(crate) fn from_port(port: u128) -> Match {
    Match::any().with(Field::InPort, port)
}

/// A controller that has port 1 forwarded to other ports.
pub(crate) fn forward_first(switch: &Switch, to: &[u32]) -> Controller {
    let mut controller = switch.controller(Version::V1_3);
    let outputs = to.iter().map(|port| Action::output(PortNo(*port)));
    controller.send(&add_flow(1, from_port(1), outputs.collect()));
    controller.barrier();
    controller
}

/// A flow entry from text.
pub(crate) fn flow(text: &str, command: FlowModCommand) -> Message {
    let parsed = parse_flow_mod(text, command);
    Message::FlowMod(parsed.unwrap_or_else(|error| panic!("{text}: {error}")))
}

/// A group from text.
pub(crate) fn group(text: &str, command: GroupModCommand) -> Message {
    Message::GroupMod(parse_group_mod(text, command).unwrap())
}

/// All flow entries go.
pub(crate) fn no_flows() -> Message {
    let all = FlowMod { table_id: TableId::ALL, ..FlowMod::new(FlowModCommand::Delete) };
    Message::FlowMod(all)
}

/// A switch, its controller, and the hosts at its ports, in a namespace of their own. The address
/// of the host at port `n` is `02:00:00:00:00:0n`.
pub(crate) struct Side {
    pub(crate) switch: Switch,
    pub(crate) controller: Controller,
    hosts: Vec<Host>,
    /// The frames that came out of each port.
    frames: Vec<Vec<Vec<u8>>>,
    _far: Namespace,
}

/// Packets, bytes and more of everything that counts, by name.
type Counts = Vec<(String, Vec<u64>)>;

impl Side {
    fn new(rtnl: &Rtnl, letter: char, (caches, option, queues): (&str, &str, usize)) -> Self {
        let mut specs = Vec::new();
        let far = Namespace::new().unwrap();
        let far_rtnl = Rtnl::open_in(&far).unwrap();
        for number in 1..=PORTS {
            let ends = (format!("{letter}{number}"), format!("{letter}h{number}"));
            let MacAddr(mac) = MacAddr::from_u64(0x0200_0000_0000 | number as u64);
            add_veth_into(rtnl, (&ends.0, &ends.1), mac, &far);
            specs.push(format!("\"{number}=af_packet:{letter}{number}{option}\""));
        }
        // Port 1 takes two more tags than the others.
        rtnl.set_mtu(&format!("{letter}1"), 1_508).unwrap();
        far_rtnl.set_mtu(&format!("{letter}h1"), 1_508).unwrap();
        let toml = format!("caches = \"{caches}\"\nworkers = {queues}\nqueues = {queues}\n");
        let switch = Switch::with_ports(&specs.join(","), Vec::new(), &toml);
        let controller = switch.controller(Version::V1_3);
        let host = |number| Host::open(&format!("af_packet:{letter}h{number}"));
        let hosts = far.enter(|| (1..=PORTS).map(host).collect()).unwrap();
        Self { switch, controller, hosts, frames: vec![Vec::new(); PORTS], _far: far }
    }

    /// Waits until all frames that were sent are decided and have come out.
    fn await_all(&mut self, sent: u64) {
        until("the decisions", || {
            (self.controller.table_stats()[0].lookup_count == sent).then_some(())
        });
        let stats = self.controller.port_stats(PortNo::ANY);
        for ((host, frames), stats) in self.hosts.iter_mut().zip(&mut self.frames).zip(stats) {
            while (frames.len() as u64) < stats.tx_packets {
                frames.push(host.receive());
            }
            frames.extend(std::iter::from_fn(|| host.poll()));
        }
    }

    fn counts(&mut self) -> Counts {
        let ports = self.controller.port_stats(PortNo::ANY).into_iter().map(|it| {
            let counts = [it.rx_packets, it.tx_packets, it.rx_bytes, it.tx_bytes];
            let lost = [it.rx_dropped, it.tx_dropped];
            (format!("port {}", it.port_no), [&counts[..], &lost].concat())
        });
        let mut all: Counts = ports.collect();
        all.extend(self.controller.flow_stats().iter().map(|it| {
            let name = format!("{:?} {} {:?}", it.table_id, it.priority, it.matching);
            (name, vec![it.packet_count, it.byte_count])
        }));
        let tables = self.controller.table_stats();
        all.extend(tables.iter().filter(|it| it.lookup_count > 0).map(|it| {
            (format!("table {:?}", it.table_id), vec![it.lookup_count, it.matched_count])
        }));
        let body = MultipartRequestBody::Group(GroupId::ALL);
        let MultipartReplyBody::Group(groups) = self.controller.multipart(body) else { panic!() };
        all.extend(groups.iter().map(|it| {
            let mut counts = vec![it.packet_count, it.byte_count];
            counts.extend(it.buckets.iter().flat_map(|it| [it.packet_count, it.byte_count]));
            (format!("group {:?}", it.group_id), counts)
        }));
        all.sort();
        all
    }
}

/// A switch with the kernel tier, and one without.
pub(crate) struct TierPair {
    pub(crate) sides: [Side; 2],
    sent: u64,
    way: Way,
}

/// The way of frames through the kernel tier.
#[derive(Clone, Copy)]
pub(crate) struct Way {
    /// Straight to the hosts, or only by way of the ports' devices.
    pub(crate) is_straight: bool,
    /// The number of queues of each port, and of workers.
    pub(crate) queues: usize,
}

impl TierPair {
    pub(crate) fn new(rtnl: &Rtnl, way: Way) -> Self {
        let option = if way.is_straight { "" } else { "?peer=false" };
        let sides = [('a', ("frame,key,kernel", option, way.queues)), ('b', ("frame,key", "", 1))];
        let sides = sides.map(|(letter, how)| Side::new(rtnl, letter, how));
        Self { sides, sent: 0, way }
    }

    /// Both controllers send these messages, and wait for a barrier.
    pub(crate) fn change(&mut self, messages: &[Message]) {
        for side in &mut self.sides {
            for message in messages {
                side.controller.send(message);
            }
            side.controller.barrier();
        }
    }

    /// Sets the VLANs of a port of both.
    pub(crate) fn set_vlans(&mut self, port: usize, vlans: &str) {
        for side in &self.sides {
            let words = ["set-port", "br0", &port.to_string(), "--vlan", vlans];
            side.switch.ctl(&words);
        }
    }

    /// Frames pass both switches, all at once or one after the other.
    pub(crate) fn pass(&mut self, packets: &[(usize, Vec<u8>)], is_one_by_one: bool) {
        for packets in packets.chunks(if is_one_by_one { 1 } else { packets.len() }) {
            self.sent += packets.len() as u64;
            for side in &mut self.sides {
                packets.iter().for_each(|(port, frame)| side.hosts[*port].send(frame));
            }
            self.sides.iter_mut().for_each(|side| side.await_all(self.sent));
        }
    }

    /// The number of frames that the kernel has decided about, and of all.
    pub(crate) fn hits(&self) -> (u64, u64) {
        let [hits, none] = self.sides.each_ref().map(|side| kernel_hits(&side.switch));
        assert_eq!(none, 0, "without the tier");
        (hits, self.sent)
    }

    /// The number of frames that the kernel has sent by ports without their devices.
    fn sent_straight(&mut self) -> u64 {
        let rtnl = Rtnl::open().unwrap();
        let stats = self.sides[0].controller.port_stats(PortNo::ANY).into_iter();
        let straight = stats.map(|it| {
            let device = rtnl.link(&format!("a{}", it.port_no)).unwrap();
            it.tx_packets.saturating_sub(device.stats.tx_packets)
        });
        straight.sum()
    }

    /// Both have sent and counted the same.
    pub(crate) fn compare(&mut self, place: &str) {
        let [a, b] = &mut self.sides;
        for (port, (one, other)) in a.frames.iter_mut().zip(&mut b.frames).enumerate() {
            one.sort();
            other.sort();
            assert!(one == other, "{place}: other frames out of port {}", port + 1);
        }
        assert_eq!(a.counts(), b.counts(), "{place}");
    }

    /// Changes and frames at random: `round` makes a change, and gives the frames that pass `times`
    /// times after it.
    pub(crate) fn run(
        mut self,
        rounds: u64,
        (times, is_one_by_one): (usize, bool),
        mut round: impl FnMut(&mut Self, &mut Random, u64) -> Vec<(usize, Vec<u8>)>,
    ) {
        let seed = number("WEIR_TIER_SEED", 1);
        let mut random = Random::new(seed);
        for at in 0..number("WEIR_TIER_ROUNDS", rounds) {
            let packets = round(&mut self, &mut random, at);
            (0..times).for_each(|_| self.pass(&packets, is_one_by_one));
            self.compare(&format!("round {at} of seed {seed}"));
        }
        let (hits, sent) = self.hits();
        assert!(hits > sent / 10, "{hits} of {sent} in the kernel");
        let straight = self.sent_straight();
        assert_eq!(straight > 0, self.way.is_straight, "{straight} of {hits}");
        let workers = self.sides[0].switch.records(&["caches"]);
        let hits: Vec<_> = workers.iter().map(|it| it["kernel_hits"].as_u64().unwrap()).collect();
        assert_eq!(hits.len(), self.way.queues);
        assert!(hits.iter().all(|it| *it > 0), "{hits:?} by the tables of the workers");
        self.stop();
    }

    pub(crate) fn stop(self) {
        self.sides.into_iter().for_each(|side| side.switch.stop());
    }
}
