//! The actions of Open vSwitch's datapath that make what a trace found of a packet: the line
//! `Datapath actions:` of `ofproto/trace`, which tools read.
//!
//! Weir has no such actions. They are read off the frames that leave: what has changed from one to
//! the next, in the order and in the words of Open vSwitch.

use openflow::message::PacketIn;
use openflow::text::format_value;
use openflow::{Field, PortNo, QueueId};
use packet::header::{be16, chunk, ethernet, ipv4, ipv6, mpls, vlan};
use packet::{FlowKey, Layout, Meta, Network, extract};

/// A value that `set(..)` writes.
#[derive(Clone, Copy)]
enum Part {
    Of(Field),
    /// DSCP and ECN in one byte.
    TypeOfService,
    TimeToLive,
}

use Part::{Of, TimeToLive, TypeOfService};

/// A header and its values, by Open vSwitch's names.
type Header = (&'static str, &'static [(&'static str, Part)]);

const ETHERNET: Header = ("eth", &[("src", Of(Field::EthSrc)), ("dst", Of(Field::EthDst))]);

/// Headers behind the EtherType.
#[rustfmt::skip]
const OTHERS: &[Header] = &[
    ("ipv4", &[
        ("src", Of(Field::Ipv4Src)), ("dst", Of(Field::Ipv4Dst)), ("tos", TypeOfService),
        ("ttl", TimeToLive),
    ]),
    ("ipv6", &[
        ("src", Of(Field::Ipv6Src)), ("dst", Of(Field::Ipv6Dst)), ("label", Of(Field::Ipv6Flabel)),
        ("tclass", TypeOfService), ("hlimit", TimeToLive),
    ]),
    ("arp", &[
        ("sip", Of(Field::ArpSpa)), ("tip", Of(Field::ArpTpa)), ("op", Of(Field::ArpOp)),
        ("sha", Of(Field::ArpSha)), ("tha", Of(Field::ArpTha)),
    ]),
    ("tcp", &[("src", Of(Field::TcpSrc)), ("dst", Of(Field::TcpDst))]),
    ("udp", &[("src", Of(Field::UdpSrc)), ("dst", Of(Field::UdpDst))]),
    ("sctp", &[("src", Of(Field::SctpSrc)), ("dst", Of(Field::SctpDst))]),
    ("icmp", &[("type", Of(Field::Icmpv4Type)), ("code", Of(Field::Icmpv4Code))]),
    ("icmpv6", &[("type", Of(Field::Icmpv6Type)), ("code", Of(Field::Icmpv6Code))]),
    ("nd", &[
        ("target", Of(Field::Ipv6NdTarget)), ("sll", Of(Field::Ipv6NdSll)),
        ("tll", Of(Field::Ipv6NdTll)),
    ]),
];

/// A frame on its way out of the datapath.
pub(super) struct Leaving {
    pub(super) frame: Vec<u8>,
    /// The queue that was chosen, if one was.
    pub(super) queue: Option<QueueId>,
    /// The action that sends it.
    pub(super) action: String,
}

/// The actions of a packet that arrived as `arrived`.
pub(super) fn datapath_actions(arrived: &[u8], leaving: &[Leaving]) -> String {
    let (mut all, mut before, mut priority) = (Vec::new(), arrived, 0);
    for Leaving { frame, queue, action } in leaving {
        let wanted = queue.map_or(0, |queue| queue.0);
        if wanted != priority {
            priority = wanted;
            all.push(format!("set(skb_priority({wanted:#x}))"));
        }
        if let (Some(before), Some(after)) = (Headers::of(before), Headers::of(frame)) {
            changes(&before, &after, &mut all);
        }
        all.push(action.clone());
        before = frame;
    }
    if all.is_empty() { "drop".to_owned() } else { all.join(",") }
}

/// The action that sends a packet to the controller.
pub(super) fn to_controller(message: &PacketIn, max_len: u16) -> String {
    format!(
        "userspace(pid=0,controller(reason={},dont_send=0,continuation=0,recirc_id=0,\
         rule_cookie={:#x},controller_id=0,max_len={max_len}))",
        message.reason.number(),
        message.cookie.0
    )
}

/// The headers of a frame.
struct Headers<'a> {
    frame: &'a [u8],
    layout: Layout,
    key: FlowKey,
    /// EtherType and control information of each tag, the outermost first.
    tags: Vec<(u16, u16)>,
    /// Entries of the label stack, the outermost first.
    labels: Vec<u32>,
}

impl<'a> Headers<'a> {
    fn of(frame: &'a [u8]) -> Option<Self> {
        let layout = Layout::of(frame)?;
        let at = |tag: usize| ethernet::ETHER_TYPE + tag * vlan::TAG_LEN;
        let tag = |tag: usize| Some((be16(frame, at(tag))?, be16(frame, at(tag) + 2)?));
        let tags = (0..layout.tags).filter_map(tag).collect();
        let mut labels: Vec<u32> = Vec::new();
        while layout.network == Network::Mpls && labels.last().is_none_or(|it| !mpls::bos(*it)) {
            let entry = chunk(frame, layout.l3 + labels.len() * mpls::ENTRY_LEN);
            let Some(entry) = entry.map(|bytes| u32::from_be_bytes(*bytes)) else { break };
            labels.push(entry);
        }
        let key = extract(frame, &Meta::port(PortNo(0)));
        Some(Self { frame, layout, key, tags, labels })
    }

    fn value(&self, part: Part) -> Option<u128> {
        match part {
            Of(field) => self.key.has(field).then(|| self.key.get(field)),
            TypeOfService => self
                .key
                .has(Field::IpDscp)
                .then(|| self.key.get(Field::IpDscp) << 2 | self.key.get(Field::IpEcn)),
            TimeToLive => {
                let offset = match self.layout.network {
                    Network::Ipv4 => ipv4::TTL,
                    Network::Ipv6 => ipv6::HOP_LIMIT,
                    Network::Other | Network::Mpls | Network::Pbb | Network::Arp => return None,
                };
                self.frame.get(self.layout.l3 + offset).map(|ttl| u128::from(*ttl))
            }
        }
    }
}

/// Appends the actions that make one frame of another.
fn changes(before: &Headers<'_>, after: &Headers<'_>, all: &mut Vec<String>) {
    all.extend(set(&ETHERNET, before, after));
    let has_popped = !before.labels.is_empty() && after.labels.is_empty();
    if has_popped {
        labels(before, after, all);
    }
    all.extend(OTHERS.iter().filter_map(|header| set(header, before, after)));
    if !has_popped {
        labels(before, after, all);
    }
    let kept = kept(&before.tags, &after.tags);
    all.extend((kept..before.tags.len()).map(|_| "pop_vlan".to_owned()));
    for (ether_type, tci) in after.tags.iter().rev().skip(kept) {
        let tpid = match *ether_type {
            ethernet::VLAN => String::new(),
            other => format!("tpid={other:#06x},"),
        };
        all.push(format!("push_vlan({tpid}vid={},pcp={})", vlan::vid(*tci), vlan::pcp(*tci)));
    }
}

/// The number of entries, from the innermost, that two stacks have in common.
fn kept<T: PartialEq>(before: &[T], after: &[T]) -> usize {
    before.iter().rev().zip(after.iter().rev()).take_while(|(a, b)| a == b).count()
}

/// Appends the actions on the label stack.
fn labels(before: &Headers<'_>, after: &Headers<'_>, all: &mut Vec<String>) {
    let kept = kept(&before.labels, &after.labels);
    let mut here = before.labels.len();
    while here > kept {
        let entry = after.labels.len().checked_sub(kept + 1).and_then(|at| after.labels.get(at));
        match entry.filter(|_| here - 1 == kept) {
            Some(entry) => {
                all.push(format!("set(mpls({}))", entry_text(*entry)));
                return pushed(after, kept + 1, all);
            }
            None => {
                here -= 1;
                let inner = match here {
                    0 => after.layout.eth_type,
                    _ => before.layout.eth_type,
                };
                all.push(format!("pop_mpls(eth_type={inner:#x})"));
            }
        }
    }
    pushed(after, kept, all);
}

/// Appends the pushes of all labels but the innermost ones.
fn pushed(after: &Headers<'_>, innermost: usize, all: &mut Vec<String>) {
    for entry in after.labels.iter().rev().skip(innermost) {
        let (entry, ether_type) = (entry_text(*entry), after.layout.eth_type);
        all.push(format!("push_mpls({entry},eth_type={ether_type:#x})"));
    }
}

fn entry_text(entry: u32) -> String {
    let (label, tc, bos) = (mpls::label(entry), mpls::tc(entry), u8::from(mpls::bos(entry)));
    format!("label={label},tc={tc},ttl={},bos={bos}", entry & 0xff)
}

/// The action that writes the values of a header that differ.
fn set(header: &Header, before: &Headers<'_>, after: &Headers<'_>) -> Option<String> {
    let (name, parts) = header;
    // Both versions of IP have a TTL and a type of service.
    let is_there = match *name {
        "ipv4" => before.layout.network == Network::Ipv4,
        "ipv6" => before.layout.network == Network::Ipv6,
        _ => true,
    };
    let parts = if is_there { *parts } else { &[] };
    let written = parts.iter().filter_map(|(name, part)| {
        let (old, new) = (before.value(*part)?, after.value(*part)?);
        let text = match part {
            Of(Field::Ipv6Flabel) => format!("{new:#x}"),
            Of(field) => format_value(*field, new),
            TimeToLive => new.to_string(),
            TypeOfService => match old ^ new {
                bits if bits & 0x3 == 0 => format!("{new:#x}/0xfc"),
                bits if bits & 0xfc == 0 => format!("{new:#x}/0x3"),
                _ => format!("{new:#x}"),
            },
        };
        (old != new).then(|| format!("{name}={text}"))
    });
    let written: Vec<String> = written.collect();
    (!written.is_empty()).then(|| format!("set({name}({}))", written.join(",")))
}

#[cfg(test)]
mod tests {
    use openflow::{Field, QueueId};
    use packet::PacketBuf;
    use packet::rewrite::{
        dec_nw_ttl, pop_mpls, pop_vlan, push_mpls, push_vlan, set_field, set_nw_ttl,
    };

    use super::{Leaving, datapath_actions};
    use crate::vswitchd::flow_key::FlowKeyText;

    /// The actions of a packet that is changed and sent, again and again.
    fn actions(flow: &str, steps: &[fn(&mut PacketBuf)]) -> String {
        let frame = FlowKeyText::read(flow).unwrap().frame(None).unwrap();
        let mut packet = PacketBuf::from_slice(&frame);
        let leaving = (2..).zip(steps).map(|(port, change)| {
            change(&mut packet);
            Leaving { frame: packet.bytes().to_vec(), queue: None, action: port_text(port) }
        });
        datapath_actions(&frame, &leaving.collect::<Vec<_>>())
    }

    fn port_text(port: u32) -> String {
        port.to_string()
    }

    const ETH: &str = "eth(src=50:54:00:00:00:05,dst=50:54:00:00:00:07)";

    fn ip(rest: &str) -> String {
        format!("{ETH},eth_type(0x0800),ipv4(src=10.0.0.1,dst=10.0.0.2,proto=17,ttl=3),{rest}")
    }

    #[test]
    fn changes_are_in_the_words_of_open_vswitch() {
        let udp = ip("udp(src=1,dst=2)");
        assert_eq!(actions(&udp, &[]), "drop");
        assert_eq!(actions(&udp, &[|_| {}, |_| {}]), "2,3");
        let ttl: &[fn(&mut PacketBuf)] = &[
            |packet| assert!(dec_nw_ttl(packet).is_ok()),
            |packet| assert!(set_nw_ttl(packet, 1)),
        ];
        assert_eq!(actions(&udp, ttl), "set(ipv4(ttl=2)),2,set(ipv4(ttl=1)),3");
        let several: &[fn(&mut PacketBuf)] = &[|packet| {
            assert!(set_field(packet, Field::UdpDst, 80));
            assert!(set_field(packet, Field::Ipv4Src, 0x0a00_0009));
            assert!(set_field(packet, Field::IpDscp, 8));
            assert!(set_field(packet, Field::EthDst, 1));
        }];
        let expected = "set(eth(dst=00:00:00:00:00:01)),set(ipv4(src=10.0.0.9,tos=0x20/0xfc)),\
                        set(udp(dst=80)),2";
        assert_eq!(actions(&udp, several), expected);
    }

    #[test]
    fn tags_and_labels_are_pushed_and_popped() {
        let udp = ip("udp(src=1,dst=2)");
        let tags: &[fn(&mut PacketBuf)] = &[
            |packet| {
                assert!(push_vlan(packet, 0x8100) && set_field(packet, Field::VlanVid, 0x1011));
            },
            |packet| assert!(pop_vlan(packet)),
        ];
        assert_eq!(actions(&udp, tags), "push_vlan(vid=17,pcp=0),2,pop_vlan,3");
        let labels: &[fn(&mut PacketBuf)] = &[
            |packet| assert!(push_mpls(packet, 0x8847) && set_field(packet, Field::MplsLabel, 9)),
            |packet| assert!(set_field(packet, Field::MplsLabel, 10)),
            |packet| assert!(pop_mpls(packet, 0x0800)),
        ];
        let expected = "push_mpls(label=9,tc=0,ttl=3,bos=1,eth_type=0x8847),2,\
                        set(mpls(label=10,tc=0,ttl=3,bos=1)),3,pop_mpls(eth_type=0x800),4";
        assert_eq!(actions(&udp, labels), expected);
    }

    #[test]
    fn a_queue_is_a_priority_until_there_is_another() {
        let frame = FlowKeyText::read(ETH).unwrap().frame(None).unwrap();
        let leaving = [None, Some(1), Some(1), None].map(|queue| Leaving {
            frame: frame.clone(),
            queue: queue.map(QueueId),
            action: "1".to_owned(),
        });
        let expected = "1,set(skb_priority(0x1)),1,1,set(skb_priority(0x0)),1";
        assert_eq!(datapath_actions(&frame, &leaving), expected);
    }
}
