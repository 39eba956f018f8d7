//! Facts beside a packet's bytes that the caches must know: its port, and nothing else.
//!
//! A key that lacked what a decision depends on would hand one packet the decision about another.

use datapath::fast::{Caches, Fast};
use datapath::{Datapath, DatapathConfig, Nanos, Out, Verdict};
use openflow::{MacAddr, PortNo};
use packet::build::{FrameBuilder, Ipv4};
use packet::{Meta, Offload, PacketBuf};

use crate::support::with;

fn frame(src_port: u16) -> PacketBuf {
    let ip = Ipv4::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    let frame = FrameBuilder::ethernet(MacAddr::from_u64(2), MacAddr::from_u64(1));
    PacketBuf::from_slice(&frame.ipv4(ip).udp(src_port, 53).payload(&[7; 3_000]).build())
}

fn datapath(caches: Caches, entries: &[&str]) -> Fast {
    let mut datapath = with(Fast::new(DatapathConfig::default(), 1), 6, entries);
    datapath.forwarder().set_caches(caches, Nanos(0));
    datapath
}

/// The port that a frame leaves by.
fn leaves_by(datapath: &mut Fast, frame: &PacketBuf, in_port: u32) -> u32 {
    let mut out = Out::new();
    datapath.process(frame.clone(), PortNo(in_port), Nanos(0), &mut out);
    match out.drain().collect::<Vec<_>>().as_slice() {
        [Verdict::Output { port, .. }] => port.0,
        other => panic!("{other:?}"),
    }
}

fn all_caches() -> impl Iterator<Item = Caches> {
    let one = |frame, key| Caches { frame, key, kernel: false };
    [one(true, true), one(true, false), one(false, true), one(false, false)].into_iter()
}

/// Every pipeline field of a packet that comes in follows from its port, and of what stands beside
/// its bytes nothing is a match field. A new one of either kind does not compile here: it belongs
/// into both digests (`decide.rs`) if it varies between packets of a port.
#[test]
fn a_packet_comes_with_its_port_alone() {
    let Meta { in_port, in_phy_port, metadata, tunnel_id, pkt_mark, registers } =
        Meta::port(PortNo(7));
    assert_eq!((in_port, in_phy_port), (PortNo(7), PortNo(7)));
    assert_eq!((metadata, tunnel_id, pkt_mark), (0, 0, 0));
    assert_eq!(registers, packet::Registers::ZERO);
    let Offload { segment_len: _, payload_len: _ } = Offload::CHECKSUM;
}

/// The same bytes with another tunnel_id have another way: it follows from the port here, and would
/// be a wrong hit if the key had no port.
#[test]
fn a_tunnel_id_of_the_pipeline_follows_from_the_key() {
    let entries = [
        "table=0,priority=2,in_port=1,actions=set_field:1->tunnel_id,goto_table:1",
        "table=0,priority=2,in_port=2,actions=set_field:2->tunnel_id,goto_table:1",
        "table=0,priority=2,in_port=3,udp,tp_src=7,actions=set_field:1->tunnel_id,goto_table:1",
        "table=0,priority=1,actions=goto_table:1",
        "table=1,tun_id=0,actions=output:4",
        "table=1,tun_id=1,actions=output:5",
        "table=1,tun_id=2,actions=output:6",
    ];
    for caches in all_caches() {
        let mut datapath = datapath(caches, &entries);
        for round in 0..3 {
            let mut by = |src_port, in_port| leaves_by(&mut datapath, &frame(src_port), in_port);
            assert_eq!(
                [by(7, 1), by(7, 2), by(7, 3), by(8, 3)],
                [5, 6, 5, 4],
                "{caches:?} {round}"
            );
        }
    }
}

/// A frame with work left to do has the way of its bytes: what is left is no field.
#[test]
fn an_offload_changes_no_decision() {
    let entries = ["udp,tp_src=7,actions=output:2", "udp,tp_src=8,actions=output:3"];
    for caches in all_caches() {
        let mut datapath = datapath(caches, &entries);
        for _ in 0..2 {
            for offload in [None, Some(Offload::CHECKSUM)] {
                for (src_port, out) in [(7, 2), (8, 3)] {
                    let mut frame = frame(src_port);
                    assert!(frame.set_offload(offload));
                    assert_eq!(leaves_by(&mut datapath, &frame, 1), out, "{caches:?}");
                }
            }
        }
        let figures = datapath.forwarder().figures();
        let hits = figures.frame_hits + figures.key_hits;
        assert_eq!(hits > 0, caches.frame || caches.key, "{caches:?}");
    }
}
