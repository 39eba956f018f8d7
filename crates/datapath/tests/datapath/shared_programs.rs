//! Entries that do the same with other values share one code: each packet gets the values of its
//! own entry, whatever else is in its batch. The reference says what they are.

use std::collections::BTreeMap;

use datapath::fast::{Fast, Sink};
use datapath::{Datapath, DatapathConfig, DropReason, Nanos, Out, Reference, Verdict};
use openflow::flow::FlowStatsRequest;
use openflow::message::PacketIn;
use openflow::{MacAddr, PortNo, QueueId};
use packet::PacketBuf;
use packet::build::{FrameBuilder, Ipv4, Ipv6, Tcp};

use crate::support::with;

/// Flows; more than a batch has frames.
const FLOWS: u32 = 300;

/// The flow entry of a number, and a frame that it matches.
type Flow = fn(u32) -> (String, Vec<u8>);

/// The frames that leave by each port, in their order.
#[derive(Debug, Default, PartialEq)]
struct Left(BTreeMap<(u32, Option<u32>), Vec<Vec<u8>>>);

impl Left {
    fn add(&mut self, port: PortNo, queue: Option<QueueId>, frame: &PacketBuf) {
        let left = self.0.entry((port.0, queue.map(|queue| queue.0))).or_default();
        left.push(frame.bytes().to_vec());
    }
}

impl Sink for Left {
    fn output(&mut self, port: PortNo, queue: Option<QueueId>, frame: PacketBuf) {
        self.add(port, queue, &frame);
    }

    fn packet_in(&mut self, message: PacketIn, _max_len: u16) {
        panic!("{message:?}");
    }

    fn dropped(&mut self, reason: DropReason) {
        panic!("{reason:?}");
    }

    fn done(&mut self, _frame: PacketBuf) {}

    fn spare(&mut self) -> PacketBuf {
        PacketBuf::default()
    }
}

fn start() -> FrameBuilder {
    FrameBuilder::ethernet(MacAddr::from_u64(2), MacAddr::from_u64(1))
}

fn v4(number: u32) -> Ipv4 {
    let to = 0x0a80_0000 | number;
    Ipv4::new((0x0a00_0000 | number).to_be_bytes().into(), to.to_be_bytes().into())
}

/// Addresses and ports of its own for each flow: the usual case, which one line has room for.
fn nat(number: u32) -> (String, Vec<u8>) {
    let [a, b] = [number >> 8, number & 0xff];
    let entry = format!(
        "udp,nw_src=10.0.{a}.{b},actions=mod_nw_src:192.0.{a}.{b},mod_nw_dst:198.51.{b}.{a},\
         mod_tp_src:{},mod_tp_dst:{},output:2",
        60_000 - number,
        1_000 + number
    );
    (entry, start().ipv4(v4(number)).udp(1_000, 53).fill_to(60).build())
}

/// All addresses and ports of IPv6, and a TTL: more values than a line has room for.
fn nat_v6(number: u32) -> (String, Vec<u8>) {
    let address = |prefix: u128| std::net::Ipv6Addr::from_bits(prefix << 112 | u128::from(number));
    let entry = format!(
        "udp6,ipv6_src={},actions=dec_ttl,set_field:{}->ipv6_src,set_field:{}->ipv6_dst,\
         set_field:02:00:00:00:{:02x}:{:02x}->eth_dst,set_field:02:00:00:00:00:aa->eth_src,\
         set_field:{}->udp_src,set_field:{}->udp_dst,output:{}",
        address(0xfd00),
        address(0xfd01),
        address(0xfd02),
        number >> 8,
        number & 0xff,
        60_000 - number,
        1_000 + number,
        2 + number % 2
    );
    let ip = Ipv6::new(address(0xfd00), address(0xfd03));
    (entry, start().ipv6(ip).udp(1_000, 53).fill_to(80).build())
}

/// A label of its own for each tag, and two rewrites around it.
fn label(number: u32) -> (String, Vec<u8>) {
    let vid = 1 + number;
    let entry = format!(
        "dl_vlan={vid},actions=mod_dl_dst:02:00:00:00:00:{:02x},pop_vlan,push_mpls:0x8847,\
         set_field:{vid}->mpls_label,set_field:{}->mpls_tc,\
         mod_dl_src:02:00:00:00:00:{:02x},output:2",
        number & 0xff,
        number % 8,
        number / 2
    );
    let frame = start().vlan(0, u16::try_from(vid).unwrap());
    (entry, frame.ipv4(v4(number)).udp(1_000, 53).fill_to(64).build())
}

/// The same change, another port and queue: values of the end alone.
fn by_port(number: u32) -> (String, Vec<u8>) {
    let entry = format!(
        "tcp,nw_src=10.0.{}.{},actions=dec_ttl,set_queue:{},output:{}",
        number >> 8,
        number & 0xff,
        number % 2,
        2 + number % 3
    );
    (entry, start().ipv4(v4(number)).tcp(Tcp::new(1, 2)).fill_to(60).build())
}

/// A copy before the change and one behind it: no program with one end.
fn two_copies(number: u32) -> (String, Vec<u8>) {
    let [a, b] = [number >> 8, number & 0xff];
    let entry = format!(
        "icmp,nw_src=10.0.{a}.{b},actions=mod_nw_src:192.0.{a}.{b},output:2,\
         mod_nw_dst:198.51.{b}.{a},output:3"
    );
    (entry, start().ipv4(v4(number)).echo_request(1, 1).fill_to(60).build())
}

/// Packets of one decision, of which some are too long for it. The entries that lead on do nothing
/// else, so that one program is that of both.
#[test]
fn packets_that_are_not_longer_go_by_a_program() {
    let lead_on = ["table=1,reg0=0,actions=goto_table:2", "table=1,reg0=1,actions=goto_table:2"];
    for (check, ends) in [
        ("check_pkt_larger(100)->reg0[0]", &["table=2,actions=output:2"][..]),
        ("push_vlan:0x8100,check_pkt_larger(104)->reg0[0]", &["table=2,actions=output:2"]),
        (
            "check_pkt_larger(100)->reg0[0],check_pkt_larger(1500)->reg1[0]",
            &["table=2,reg0=0,actions=output:2", "table=2,reg0=1,actions=output:3"],
        ),
    ] {
        let first = format!("ip,actions={check},goto_table:1");
        let entries: Vec<String> = [first.as_str()]
            .iter()
            .chain(&lead_on)
            .chain(ends)
            .map(|text| (*text).to_owned())
            .collect();
        let lens = [101, 60, 100, 1_000, 99, 60, 101, 100];
        let frame = |len: &usize| start().ipv4(v4(7)).udp(1, 53).fill_to(*len).build();
        let frames: Vec<Vec<u8>> = lens.iter().map(frame).collect();
        let mut reference = with(Reference::new(DatapathConfig::default()), 4, &entries);
        let mut datapath = with(Fast::new(DatapathConfig::default(), 1), 4, &entries);
        for _ in 0..3 {
            for frame in &frames {
                let (mut expected, mut left) = (Out::new(), Out::new());
                let frame = PacketBuf::from_slice(frame);
                reference.process(frame.clone(), PortNo(1), Nanos(0), &mut expected);
                datapath.process(frame, PortNo(1), Nanos(0), &mut left);
                assert_eq!(expected.verdicts(), left.verdicts(), "{check}");
            }
        }
        let all = FlowStatsRequest::all();
        let stats = |dp: &dyn Datapath| dp.flow_stats(&all, Nanos(0)).unwrap();
        assert_eq!(stats(&reference), stats(&datapath), "{check}");
        let figures = datapath.forwarder().figures();
        assert_eq!(figures.walked, 3 * 3, "the longer ones go step by step: {check}");
    }
}

#[test]
fn every_packet_gets_the_values_of_its_own_entry() {
    let cases: [&[Flow]; 5] =
        [&[nat], &[nat_v6], &[label], &[by_port], &[nat, nat_v6, label, two_copies]];
    for kinds in cases {
        let flows = (0..FLOWS).map(|number| kinds[number as usize % kinds.len()](number));
        let (entries, frames): (Vec<_>, Vec<_>) = flows.unzip();
        let mut expected = Left::default();
        let mut reference = with(Reference::new(DatapathConfig::default()), 4, &entries);
        for frame in &frames {
            let mut out = Out::new();
            reference.process(PacketBuf::from_slice(frame), PortNo(1), Nanos(0), &mut out);
            for verdict in out.drain() {
                let Verdict::Output { port, queue, frame } = verdict else { panic!("{verdict:?}") };
                expected.add(port, queue, &frame);
            }
        }
        let mut datapath = with(Fast::new(DatapathConfig::default(), 1), 4, &entries);
        // The first pass compiles, the others find programs of many flows in each batch.
        for pass in 0..3 {
            let mut left = Left::default();
            for batch in frames.chunks(64) {
                let mut batch = batch.iter().map(|frame| PacketBuf::from_slice(frame)).collect();
                datapath.process_batch(&mut batch, PortNo(1), Nanos(0), &mut left);
            }
            assert_eq!(left, expected, "pass {pass}");
        }
        let figures = datapath.forwarder().figures();
        assert_eq!(figures.walked, 0, "programs did it");
    }
}
