//! The decision's program against [`Shape::of`] and the masks, on frames that the kernel runs it
//! on. Needs root, as all that loads programs.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use openflow::MacAddr;
use packet::build::{FrameBuilder, Ipv4, Ipv6};
use packet::{MaskedRewrite, MaskedWord, Shape, TagChange, Transport};
use testkit::Random;

use super::assembler::{Alu, Assembler, Helper, R0, R1, R2};
use super::layout::STATE_UNTIL;
use super::program::{self, Entrance};
use super::{KernelTier, TIER_BYTES, TierFrames, TierKey, TierPort, TierPrograms};
use crate::device::KernelDevice;
use crate::sys::bpf::{Hook, Program};
use crate::sys::link::{Rtnl, VethEnd, VethPair};
use crate::sys::netns::Namespace;
use crate::sys::tun::Tun;
use crate::tier_port::{TierDevice, TierWay};

/// In `BPF_PROG_TEST_RUN` every frame comes from the loopback device.
const DEVICE: u32 = 1;
fn tier_port(device: Arc<KernelDevice>) -> TierPort {
    let (counters, queues) = (Arc::default(), Arc::default());
    let way =
        TierWay::Device(TierDevice { device, queues, peer: None, gso: true, ring: Weak::new() });
    TierPort { way, counters }
}

/// The program's return value for a drop, and for a frame that goes elsewhere.
const DROP: u32 = 2;
const REDIRECT: u32 = 7;
const NEXT: u32 = u32::MAX;

/// Masks of all ones: a key is the first 64 bytes.
const ALL: [[u8; TIER_BYTES]; Shape::COUNT] = [[0xff; TIER_BYTES]; Shape::COUNT];

/// No rewrite.
const NONE: MaskedRewrite = MaskedRewrite {
    words: Vec::new(),
    ttl: None,
    ip_checksum: None,
    l4_checksum: None,
    is_udp: false,
    tag: TagChange::None,
};

fn key(frame: &[u8], shape: Shape, masks: &[[u8; TIER_BYTES]; Shape::COUNT]) -> TierKey {
    let mut bytes = [0; TIER_BYTES];
    for ((place, byte), mask) in bytes.iter_mut().zip(frame).zip(&masks[shape.index()]) {
        *place = byte & mask;
    }
    TierKey { device: DEVICE, shape, bytes }
}

/// A frame near the limits of what a shape is, by damage to the bytes that decide.
fn frame(random: &mut Random) -> Vec<u8> {
    let mut draw = |below: u64| random.below(below);
    let types = [0x0800, 0x0800, 0x0806, 0x86dd, 0x86dd, 0x8847, 0x8848, 0x88e7, 0x8100, 0x1234];
    let protos = [0, 1, 2, 6, 6, 17, 17, 41, 43, 44, 50, 51, 58, 58, 59, 60, 132, 255];
    let mut frame: Vec<u8> = (0..60 + draw(60)).map(|_| draw(256) as u8).collect();
    let mut at = 12;
    while draw(2) == 0 && at < 24 {
        let tag = [0x8100_u16, 0x88a8, 0x9100][draw(3) as usize];
        frame[at..at + 2].copy_from_slice(&tag.to_be_bytes());
        at += 4;
    }
    let eth_type: u16 = if draw(8) == 0 { 0x40 } else { types[draw(types.len() as u64) as usize] };
    frame[at..at + 2].copy_from_slice(&eth_type.to_be_bytes());
    let l3 = at + 2;
    let proto = protos[draw(protos.len() as u64) as usize];
    match eth_type {
        0x0800 => {
            frame[l3] = if draw(8) == 0 { 0x46 } else { 0x45 };
            let len = if draw(2) == 0 { 1_000 } else { draw(70) as u16 };
            frame[l3 + 2..l3 + 4].copy_from_slice(&len.to_be_bytes());
            let fragment = if draw(4) == 0 { draw(0x1_0000) as u16 } else { 0x4000 };
            frame[l3 + 6..l3 + 8].copy_from_slice(&fragment.to_be_bytes());
            frame[l3 + 9] = proto;
        }
        0x86dd => {
            frame[l3] = if draw(8) == 0 { 0x50 } else { 0x60 };
            let len = if draw(2) == 0 { 1_000 } else { draw(40) as u16 };
            frame[l3 + 4..l3 + 6].copy_from_slice(&len.to_be_bytes());
            frame[l3 + 6] = proto;
            if draw(2) == 0 && l3 + 40 < frame.len() {
                frame[l3 + 40] = 133 + draw(5) as u8;
            }
        }
        _ => {
            if draw(4) != 0 {
                frame[l3..l3 + 6].copy_from_slice(&[0, 1, 8, 0, 6, 4]);
            }
        }
    }
    // The kernel refuses to run a program on less than a header of IPv6.
    let least = if eth_type == 0x86dd { 60 } else { 42 };
    let len = if draw(4) == 0 { least + draw(30) } else { 200 };
    frame.truncate(len as usize);
    frame
}

/// A tier whose entries hold, in a namespace of its own.
fn with_tier(slots: usize, test: impl FnOnce(&mut KernelTier) + Send) {
    let namespace = Namespace::new().expect("needs root: run by `cargo xtask test`");
    let inside = || {
        let rtnl = Rtnl::open().unwrap();
        rtnl.set_up("lo", true).unwrap();
        let (here, there) = (VethEnd::new("one"), VethEnd::new("two"));
        rtnl.add_veth(&VethPair { here, there, there_in: None }).unwrap();
        let mut tier = KernelTier::new(slots).unwrap();
        test(&mut tier);
    };
    namespace.enter(inside).unwrap();
}

/// The verifier gives a program up after a million instructions. Ours is the same whatever the flow
/// entries are, so that it is far from the limit or always refused.
#[test]
#[ignore = "needs root"]
fn the_verifier_has_little_to_look_at() {
    const LIMIT: u32 = 1_000_000;
    with_tier(16_384, |tier| {
        let looked_at =
            tier.programs().load(DEVICE, DEVICE, Entrance::Device).unwrap().verified_instructions();
        let looked_at = looked_at.unwrap();
        assert!(looked_at > 100 && looked_at < LIMIT / 4, "{looked_at}");
    });
}

/// Frames go on as if the program were not there.
#[test]
#[ignore = "needs root"]
fn a_kept_program_ends_with_its_time() {
    with_tier(4, |tier| {
        let facts = tier.programs().facts(DEVICE, DEVICE, Entrance::Device).unwrap();
        let code = program::decision(&program::Facts { is_kept: true, ..facts });
        let program = Program::load(&code, Hook::Ingress).unwrap();
        let frame = [0x22; 64];
        tier.start(&ALL);
        tier.put(0, &key(&frame, Shape::of(&frame), &ALL), &[], (u64::MAX, &NONE)).unwrap();
        let until = |time| tier.state.number(STATE_UNTIL).store(time, Ordering::Relaxed);
        for (time, verdict) in [(u64::MAX, DROP), (KernelTier::now_ns(), NEXT), (u64::MAX, DROP)] {
            until(time);
            assert_eq!(program.run(&frame).unwrap(), verdict, "{time}");
        }
        assert_eq!(tier.counts(0).packets, 2);
    });
}

#[test]
#[ignore = "needs root"]
fn the_program_finds_the_shapes_that_the_datapath_finds() {
    with_tier(4, |tier| {
        let program = tier.programs().load(DEVICE, DEVICE, Entrance::Device).unwrap();
        let mut random = Random::new(1);
        let mut hits = [0_u32; Shape::COUNT];
        let mut masks = ALL;
        for round in 0..6_000 {
            if round % 100 == 0 {
                for byte in masks.iter_mut().flatten() {
                    *byte = if random.below(2) == 0 { 0xff } else { random.below(256) as u8 };
                }
                tier.start(&masks);
            }
            let frame = frame(&mut random);
            let shape = Shape::of(&frame);
            let key = key(&frame, shape, &masks);
            tier.put(0, &key, &[], (u64::MAX, &NONE)).unwrap();
            let before = tier.counts(0);
            let expected = if shape.is_rare() { REDIRECT } else { DROP };
            assert_eq!(program.run(&frame).unwrap(), expected, "{shape:?} {frame:02x?}");
            let counts = tier.counts(0);
            let is_hit = u64::from(!shape.is_rare());
            assert_eq!(counts.packets - before.packets, is_hit);
            assert_eq!(counts.bytes - before.bytes, is_hit * frame.len() as u64);
            hits[shape.index()] += 1;
            // Another byte that makes a difference is another flow.
            if let Some(at) = (0..12).find(|at| key_mask(&masks, shape, *at) == 0xff) {
                let mut other = frame.clone();
                other[at] ^= 1;
                assert_eq!(program.run(&other).unwrap(), REDIRECT);
            }
            tier.remove(&key);
            assert_eq!(program.run(&frame).unwrap(), REDIRECT, "{frame:02x?}");
        }
        // With two tags before IPv6, ports are beyond the key.
        let has_ports =
            |it: Shape| matches!(it.transport(), Transport::Tcp | Transport::Udp | Transport::Sctp);
        let fits = |it: Shape| !has_ports(it) || it.l4().is_some_and(|l4| l4 + 4 <= TIER_BYTES);
        let shapes = (0..Shape::COUNT).filter_map(Shape::from_index).filter(|it| fits(*it));
        let missing: Vec<Shape> = shapes.filter(|shape| hits[shape.index()] == 0).collect();
        assert!(missing.is_empty(), "no frame of the shapes {missing:?}");
    });
}

fn key_mask(masks: &[[u8; TIER_BYTES]; Shape::COUNT], shape: Shape, at: usize) -> u8 {
    masks[shape.index()][at]
}

#[test]
#[ignore = "needs root"]
fn an_entry_holds_in_its_generation_only() {
    with_tier(2, |tier| {
        let program = tier.programs().load(DEVICE, DEVICE, Entrance::Device).unwrap();
        let mut frame = vec![0; 60];
        frame[12..14].copy_from_slice(&[0x12, 0x34]);
        let flow = key(&frame, Shape::of(&frame), &ALL);
        tier.start(&ALL);
        tier.put(1, &flow, &[], (u64::MAX, &NONE)).unwrap();
        assert_eq!(program.run(&frame).unwrap(), DROP);
        tier.stop();
        assert_eq!(program.run(&frame).unwrap(), REDIRECT);
        tier.start(&ALL);
        assert_eq!(program.run(&frame).unwrap(), REDIRECT, "of an earlier generation");
        tier.put(1, &flow, &[], (u64::MAX, &NONE)).unwrap();
        assert_eq!(program.run(&frame).unwrap(), DROP);
        assert_eq!((tier.counts(0).packets, tier.counts(1).packets), (0, 2));
    });
}

#[test]
#[ignore = "needs root"]
fn a_full_map_refuses_and_keeps_what_it_has() {
    with_tier(64, |tier| {
        tier.start(&ALL);
        let mut frame = vec![0; 60];
        frame[12..14].copy_from_slice(&[0x12, 0x34]);
        let (mut refused, mut kept) = (0, 0);
        for number in 0..1_000_u32 {
            frame[20..24].copy_from_slice(&number.to_be_bytes());
            let flow = key(&frame, Shape::of(&frame), &ALL);
            match tier.put(number % 64, &flow, &[], (u64::MAX, &NONE)) {
                Ok(()) => kept = number,
                Err(_) => refused += 1,
            }
        }
        assert!(refused > 800, "{refused}");
        frame[20..24].copy_from_slice(&kept.to_be_bytes());
        let program = tier.programs().load(DEVICE, DEVICE, Entrance::Device).unwrap();
        assert_eq!(program.run(&frame).unwrap(), DROP);
    });
}

#[test]
#[ignore = "needs root"]
fn an_entry_holds_until_its_time_is_over_or_its_slot_ends() {
    with_tier(2, |tier| {
        let program = tier.programs().load(DEVICE, DEVICE, Entrance::Device).unwrap();
        let mut frame = vec![0; 60];
        frame[12..14].copy_from_slice(&[0x12, 0x34]);
        let flow = key(&frame, Shape::of(&frame), &ALL);
        tier.start(&ALL);
        let begun = KernelTier::now_ns();
        tier.put(0, &flow, &[], (begun + 3_600_000_000_000, &NONE)).unwrap();
        assert_eq!(program.run(&frame).unwrap(), DROP);
        let used = tier.counts(0).last_used_ns;
        assert!(begun < used && used < KernelTier::now_ns());
        tier.extend(0, KernelTier::now_ns());
        assert_eq!(program.run(&frame).unwrap(), REDIRECT, "its time is over");
        tier.extend(0, u64::MAX);
        assert_eq!(program.run(&frame).unwrap(), DROP);
        tier.end(&[0]);
        assert_eq!(program.run(&frame).unwrap(), REDIRECT, "its slot ended");
        tier.put(1, &flow, &[], (u64::MAX, &NONE)).unwrap();
        assert_eq!(program.run(&frame).unwrap(), DROP);
        tier.end(&[0]);
        assert_eq!(program.run(&frame).unwrap(), DROP, "another slot");
        assert_eq!((tier.counts(0).packets, tier.counts(1).packets), (2, 2));
    });
}

/// A frame whose headers cannot be changed is lost: it was received, and nobody has got it.
#[test]
#[ignore = "needs root"]
fn what_cannot_be_rewritten_is_counted_as_lost() {
    with_tier(2, |tier| {
        let program = tier.programs().load(DEVICE, DEVICE, Entrance::Device).unwrap();
        let device = Arc::new(KernelDevice::find("test", "lo").unwrap());
        let port = tier_port(device);
        let mut frame = vec![0; 60];
        frame[12..14].copy_from_slice(&[0x12, 0x34]);
        let flow = key(&frame, Shape::of(&frame), &ALL);
        tier.start(&ALL);
        // A place that this frame does not have.
        let word = MaskedWord { at: 200, ..MaskedWord::default() };
        let beyond = MaskedRewrite { words: vec![word], ..NONE };
        tier.put(0, &flow, &[&port], (u64::MAX, &beyond)).unwrap();
        assert_eq!(program.run(&frame).unwrap(), DROP);
        let counts = tier.counts(0);
        let sent = (counts.sent_packets, counts.sent_bytes);
        assert_eq!((counts.packets, counts.bytes, sent, counts.lost), (1, 60, (0, 0), 1));
        tier.end(&[0]);
        tier.put(1, &flow, &[&port], (u64::MAX, &NONE)).unwrap();
        assert_eq!(program.run(&frame).unwrap(), REDIRECT);
        let counts = tier.counts(1);
        assert_eq!((counts.sent_packets, counts.sent_bytes, counts.lost), (1, 60, 0));
    });
}

/// A copy for a device that is gone is lost, and the other outputs get theirs.
#[test]
#[ignore = "needs root"]
fn a_copy_that_does_not_come_to_its_device_is_counted() {
    with_tier(2, |tier| {
        let program = tier.programs().load(DEVICE, DEVICE, Entrance::Device).unwrap();
        let port = |name: &str| {
            let device = Arc::new(KernelDevice::find("test", name).unwrap());
            tier_port(device)
        };
        let (lo, one) = (port("lo"), port("one"));
        let mut frame = vec![0; 60];
        frame[12..14].copy_from_slice(&[0x12, 0x34]);
        let flow = key(&frame, Shape::of(&frame), &ALL);
        tier.start(&ALL);
        tier.put(1, &flow, &[&lo, &one, &lo], (u64::MAX, &NONE)).unwrap();
        let unsent = |tier: &KernelTier| [0, 1, 2].map(|nth| tier.take_unsent(1, nth));
        // The device is down, and counts it.
        assert_eq!(program.run(&frame).unwrap(), REDIRECT);
        assert_eq!(unsent(tier), [(0, 0); 3]);
        let dropped = || Rtnl::open().unwrap().link("one").unwrap().stats.tx_dropped;
        assert_eq!(dropped(), 1);
        // It is up, and its other end is not: it drops, and counts that.
        let rtnl = Rtnl::open().unwrap();
        rtnl.set_up("one", true).unwrap();
        assert_eq!(program.run(&frame).unwrap(), REDIRECT);
        assert_eq!((unsent(tier), dropped()), ([(0, 0); 3], 2));
        rtnl.delete("one").unwrap();
        for _ in 0..2 {
            assert_eq!(program.run(&frame).unwrap(), REDIRECT);
        }
        assert_eq!(unsent(tier), [(0, 0), (2, 120), (0, 0)]);
        assert_eq!(unsent(tier), [(0, 0); 3], "once");
        assert_eq!(tier.counts(1).sent_packets, 4);
        one.count_tx(4, 240);
        one.count_unsent(2, 120);
        let counted = one.counters.read();
        assert_eq!((counted.tx_packets, counted.tx_bytes, counted.tx_drops), (2, 120, 2));
    });
}

/// A program that does nothing but answer so.
fn answers(verdict: i32, hook: Hook) -> Program {
    let mut code = Assembler::default();
    code.alu(Alu::Mov, R0, verdict);
    code.exit();
    Program::load(&code.finish(), hook).unwrap()
}

/// It goes on at the program of the other end.
#[test]
#[ignore = "needs root"]
fn a_frame_goes_on_through_a_patch_port_or_is_lost_there() {
    const BEYOND: i32 = 5;
    with_tier(2, |tier| {
        let program = tier.programs().load(DEVICE, DEVICE, Entrance::Device).unwrap();
        let open = |text: &str| crate::open_text(text).unwrap();
        let mut near = open("patch:go-a?peer=go-b");
        let port = near.device.tier_port().unwrap();
        let mut frame = vec![0; 60];
        frame[12..14].copy_from_slice(&[0x12, 0x34]);
        let flow = key(&frame, Shape::of(&frame), &ALL);
        tier.start(&ALL);
        let put = |tier: &mut KernelTier, outputs: &[&TierPort]| {
            tier.put(1, &flow, outputs, (u64::MAX, &NONE))
        };
        assert!(put(tier, &[&port]).is_err(), "there is no other end");
        let far = open("patch:go-b?peer=go-a");
        assert!(put(tier, &[&port]).is_err(), "which is in no tier");
        let end = far.device.patch().unwrap();
        end.enter_tier(8, answers(BEYOND, Hook::Ingress));
        assert!(put(tier, &[&port, &port]).is_err(), "only the last output is one");
        put(tier, &[&port]).unwrap();
        assert_eq!(program.run(&frame).unwrap(), BEYOND as u32);
        end.leave_tier(7);
        assert_eq!(program.run(&frame).unwrap(), BEYOND as u32, "another place of it");
        end.leave_tier(8);
        assert_eq!(program.run(&frame).unwrap(), DROP);
        // Another one of the same name.
        drop(far);
        let far = open("patch:go-b?peer=go-a");
        assert_eq!(program.run(&frame).unwrap(), DROP);
        far.device.patch().unwrap().enter_tier(9, answers(BEYOND, Hook::Ingress));
        assert_eq!(program.run(&frame).unwrap(), BEYOND as u32);
        drop(far);
        assert_eq!(program.run(&frame).unwrap(), DROP);
        let counts = tier.counts(1);
        assert_eq!((counts.sent_packets, counts.sent_bytes), (6, 360));
        port.count_tx(counts.sent_packets, counts.sent_bytes);
        let counted = near.counters();
        assert_eq!((counted.tx_packets, counted.tx_bytes, counted.tx_drops), (3, 180, 3));
        assert!(tier.frames() == TierFrames { seen: 6, handed_over: 0 }, "all runs have ended");
    });
}

/// Neither the tier's program nor device or queueing discipline learn of it, as the documents say.
#[test]
#[ignore = "needs root"]
fn what_another_program_drops_at_an_output_counts_as_sent() {
    with_tier(2, |tier| {
        let program = tier.programs().load(DEVICE, DEVICE, Entrance::Device).unwrap();
        let rtnl = Rtnl::open().unwrap();
        for name in ["one", "two"] {
            crate::sys::link::quiet_ipv6(name).unwrap();
            rtnl.set_up(name, true).unwrap();
        }
        let port = |name: &str| {
            let device = Arc::new(KernelDevice::find("test", name).unwrap());
            tier_port(device)
        };
        let (lo, one) = (port("lo"), port("one"));
        let mut frame = vec![0; 60];
        frame[12..14].copy_from_slice(&[0x12, 0x34]);
        tier.start(&ALL);
        let flow = key(&frame, Shape::of(&frame), &ALL);
        tier.put(0, &flow, &[&one, &lo], (u64::MAX, &NONE)).unwrap();
        let device = || rtnl.link("one").unwrap().stats;
        let (before, index) = (device(), one.index());
        let drops = answers(DROP.cast_signed(), Hook::Egress).attach(index).unwrap();
        assert_eq!(program.run(&frame).unwrap(), REDIRECT);
        assert_eq!((tier.counts(0).sent_packets, tier.take_unsent(0, 0)), (1, (0, 0)));
        let after = device();
        assert_eq!((after.tx_packets, after.tx_dropped), (before.tx_packets, before.tx_dropped));
        drop(drops);
        assert_eq!(program.run(&frame).unwrap(), REDIRECT);
        assert_eq!(device().tx_packets, before.tx_packets + 1);
    });
}

/// Programs at a hook run in the order in which they came. One before the tier's may take a frame
/// or let it pass; one after it sees none.
#[test]
#[ignore = "needs root"]
fn another_program_at_the_hook_goes_before_or_sees_nothing() {
    const NEXT: i32 = -1;
    with_tier(2, |tier| {
        let rtnl = Rtnl::open().unwrap();
        for name in ["one", "two"] {
            crate::sys::link::quiet_ipv6(name).unwrap();
            rtnl.set_up(name, true).unwrap();
        }
        let device = rtnl.link("two").unwrap().index;
        let mut frame = vec![0; 60];
        frame[12..14].copy_from_slice(&[0x12, 0x34]);
        let flow = TierKey { device, ..key(&frame, Shape::of(&frame), &ALL) };
        let mut behind = KernelTier::new(2).unwrap();
        for tier in [&mut *tier, &mut behind] {
            tier.start(&ALL);
            tier.put(0, &flow, &[], (u64::MAX, &NONE)).unwrap();
        }
        let mut sender = crate::open_text("af_packet:one").unwrap();
        let frames = [packet::PacketBuf::from_slice(&frame)];
        let mut send_20 = || (0..20).for_each(|_| assert_eq!(sender.tx(&frames).unwrap(), 1));
        let until = |count: u64, counted: &dyn Fn() -> u64| {
            let begun = std::time::Instant::now();
            while counted() < count {
                assert!(begun.elapsed().as_secs() < 30, "{} of {count}", counted());
                std::thread::yield_now();
            }
            assert_eq!(counted(), count);
        };
        let other = |verdict| answers(verdict, Hook::Ingress).attach(device).unwrap();
        let received = || rtnl.link("two").unwrap().stats.rx_packets;
        let before = received();
        let drops = other(DROP.cast_signed());
        let passes = other(NEXT);
        let _ours =
            tier.programs().load(device, DEVICE, Entrance::Device).unwrap().attach(device).unwrap();
        let _behind = behind
            .programs()
            .load(device, DEVICE, Entrance::Device)
            .unwrap()
            .attach(device)
            .unwrap();
        send_20();
        until(before + 20, &received);
        assert_eq!((tier.counts(0).packets, behind.counts(0).packets), (0, 0));
        drop(drops);
        send_20();
        until(20, &|| tier.counts(0).packets);
        drop(passes);
        send_20();
        until(40, &|| tier.counts(0).packets);
        assert_eq!(behind.counts(0).packets, 0);
    });
}

/// A datagram of a flow, or its answer: over IPv4, with options too, and over IPv6, each with a tag
/// in the frame and without.
fn datagram(kind: usize, flow: u8, is_back: bool) -> Vec<u8> {
    let turn = |pair: [u8; 2]| if is_back { [pair[1], pair[0]] } else { pair };
    let (hosts, mac) = (turn([1, 2]), MacAddr::from_u64(2));
    let mut ports = (0x2000 + u16::from(flow), 0x3001);
    if is_back {
        ports = (ports.1, ports.0);
    }
    let builder = FrameBuilder::ethernet(mac, mac);
    let builder = if kind.is_multiple_of(2) { builder } else { builder.vlan(0, 7) };
    if kind > 3 {
        let [from, to] = hosts.map(|host| (0xfd00 << 112 | u128::from(host)).into());
        return builder.ipv6(Ipv6::new(from, to)).udp(ports.0, ports.1).fill_to(90).build();
    }
    let [from, to] = hosts.map(|host| [10, 0, 0, host].into());
    let mut bytes = builder.ipv4(Ipv4::new(from, to)).udp(ports.0, ports.1).fill_to(90).build();
    if kind > 1 {
        let l3 = if kind.is_multiple_of(2) { 14 } else { 18 };
        bytes[l3] += 1;
        bytes.splice(l3 + 20..l3 + 20, [1; 4]);
    }
    bytes
}

/// Each flow comes to the program of one queue, both ways, with all of its fragments; and flows
/// spread.
#[test]
#[ignore = "needs root"]
fn a_flow_has_one_queue_both_ways() {
    const FLOWS: u8 = 64;
    with_tier(2, |tier| {
        let other = KernelTier::new(2).unwrap();
        let tap = Rtnl::open().unwrap().link("two").unwrap().index;
        for queues in [2, 3, 5] {
            let all = [tier.programs(), other.programs()];
            let of_queues: Vec<&TierPrograms> = all.into_iter().cycle().take(queues).collect();
            let (program, _decisions) = TierPrograms::choose(&of_queues, DEVICE, tap).unwrap();
            let seen = || [tier.frames().seen, other.frames().seen];
            let comes_to = |bytes: &[u8]| {
                let before = seen();
                assert_eq!(program.run(bytes).unwrap(), REDIRECT);
                let after = seen();
                [0, 1].map(|at| after[at] - before[at])
            };
            for kind in 0..6 {
                let mut flows_of = [0; 2];
                for flow in 0..FLOWS {
                    let by = comes_to(&datagram(kind, flow, false));
                    let text = format!("{queues} queues, kind {kind}, flow {flow}");
                    assert_eq!(by.iter().sum::<u64>(), 1, "{text}");
                    assert_eq!(by, comes_to(&datagram(kind, flow, true)), "{text}");
                    flows_of = [0, 1].map(|at| flows_of[at] + by[at]);
                }
                assert!(flows_of.iter().all(|of| *of > u64::from(FLOWS) / 8), "{flows_of:?}");
            }
            // Whatever ports the first one has, or stands in their place.
            let mut by = [0; 2];
            for (flow, fragment) in [(1, 0x20), (2, 0x20), (3, 0x20), (9, 0x20), (1, 1), (2, 2)] {
                let mut bytes = datagram(0, flow, false);
                bytes[20] = fragment;
                let one = comes_to(&bytes);
                by = [0, 1].map(|at| by[at] + one[at]);
            }
            assert!(by.contains(&6), "{by:?}: all at one");
        }
    });
}

/// Therefore no TAP port is in the tier: its device is where its user has moved it, and the kernel
/// looks for the output by its number there.
#[test]
#[ignore = "needs root"]
fn a_redirection_finds_no_device_of_another_namespace() {
    with_tier(2, |_| {
        let rtnl = Rtnl::open().unwrap();
        for name in ["one", "two"] {
            crate::sys::link::quiet_ipv6(name).unwrap();
            rtnl.set_up(name, true).unwrap();
        }
        let output = rtnl.link("two").unwrap();
        let (tun, name) = Tun::open("moved", false).unwrap();
        let there = Namespace::new().unwrap();
        rtnl.move_to(&name, &there).unwrap();
        let mut code = Assembler::default();
        code.alu(Alu::Mov, R1, output.index.cast_signed());
        code.alu(Alu::Mov, R2, 0);
        code.call(Helper::Redirect);
        code.exit();
        let program = Program::load(&code.finish(), Hook::Egress).unwrap();
        let place_and_send = || {
            let far = Rtnl::open().unwrap();
            crate::sys::link::quiet_ipv6(&name).unwrap();
            far.set_up(&name, true).unwrap();
            assert!(far.link_at(output.index).is_err(), "no device has that number there");
            let link = program.attach(far.link(&name).unwrap().index).unwrap();
            let mut port = crate::open_text(&format!("af_packet:{name}")).unwrap();
            let frames = [packet::PacketBuf::from_slice(&[2; 60])];
            (0..20).for_each(|_| assert_eq!(port.tx(&frames).unwrap(), 1));
            drop(link);
        };
        there.enter(place_and_send).unwrap();
        assert_eq!(rtnl.link("two").unwrap().stats.tx_packets, output.stats.tx_packets);
        assert!(tun.read(&mut [0; 2_000]).is_err(), "they did not pass the program");
    });
}
