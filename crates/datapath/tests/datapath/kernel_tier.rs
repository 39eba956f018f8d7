//! The forwarder's side of the kernel tier, over a table that only counts: whatever has to be asked
//! of many entries is asked in pieces, and no packet is missed by that.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::rc::Rc;

use datapath::fast::{
    Applied, Caches, Control, Forwarder, KernelTable, RemovalReport, TIER_BYTES, TierFlow,
    TierSlotCounts, TierVerdict,
};
use datapath::{BundleCommand, DatapathConfig, Nanos};
use openflow::flow::{FlowModCommand, FlowStatsRequest};
use openflow::group::GroupModCommand;
use openflow::message::PacketOut;
use openflow::port::{PortDesc, PortState};
use openflow::text::{parse_actions, parse_flow_mod, parse_group_mod};
use openflow::{MacAddr, PortNo, Version};
use packet::build::{FrameBuilder, Ipv4, Ipv6, Tcp};
use packet::{PacketBuf, Shape};

use crate::control::Nowhere;

const FLOWS: u64 = 500;
const AT_ONCE: usize = 64;

/// A table whose entries count what the test says; a clone is the same table.
#[derive(Clone, Default)]
struct Table {
    slots: Rc<RefCell<Vec<TierSlotCounts>>>,
    /// The number of counts that were read.
    reads: Rc<Cell<usize>>,
    received: Rc<Cell<u64>>,
    /// The outputs of the entry that was made last.
    outputs: Rc<RefCell<Vec<PortNo>>>,
}

impl Table {
    fn count(&self, packets: u64, at: Nanos) {
        for slot in self.slots.borrow_mut().iter_mut().take(usize::try_from(FLOWS).unwrap()) {
            slot.packets += packets;
            slot.bytes += 60 * packets;
            slot.sent_packets += packets;
            slot.sent_bytes += 60 * packets;
            slot.last_used = at;
        }
    }

    /// Calls until it is done; the number of calls, none of which may read more than a piece.
    fn in_pieces(&self, mut piece: impl FnMut() -> bool) -> usize {
        for calls in 1..10_000 {
            self.reads.set(0);
            let is_done = piece();
            assert!(self.reads.get() <= AT_ONCE, "{} at once", self.reads.get());
            if is_done {
                return calls;
            }
        }
        panic!("it does not end");
    }
}

impl KernelTable for Table {
    fn slots(&self) -> usize {
        self.slots.borrow().len()
    }

    fn start(&mut self, _masks: &[[u8; TIER_BYTES]; Shape::COUNT]) {}

    fn stop(&mut self) {}

    fn put(&mut self, _slot: u32, _flow: &TierFlow, does: &TierVerdict, _until: Nanos) -> bool {
        *self.outputs.borrow_mut() = does.outputs.to_vec();
        true
    }

    fn extend(&mut self, _slot: u32, _until: Nanos) {}

    fn end(&mut self, _slots: &[u32]) {}

    fn remove(&mut self, _flow: &TierFlow) {}

    fn leave(&mut self, _flows: &[TierFlow]) {}

    fn slots_at_once(&self) -> usize {
        AT_ONCE
    }

    fn counts(&self, slot: u32) -> TierSlotCounts {
        self.reads.set(self.reads.get() + 1);
        self.slots.borrow()[slot as usize]
    }

    fn credit(&mut self, _in_port: PortNo, _outputs: &[PortNo], counts: &TierSlotCounts) {
        self.received.set(self.received.get() + counts.packets);
    }

    fn take_back_unsent(&mut self, _slot: u32, _outputs: &[PortNo]) {}
}

/// A control and its forwarder, whose entries about [`FLOWS`] flows are all in the table.
struct Rig {
    control: Control,
    forwarder: Forwarder<Table>,
    table: Table,
    now: Nanos,
    /// Packets that the forwarder was given itself.
    sent: u64,
}

impl Rig {
    fn new() -> Self {
        Self::of(&["idle_timeout=10,in_port=1,actions=output:2"])
    }

    fn of(entries: &[&str]) -> Self {
        let config = DatapathConfig { n_tables: 2, ..DatapathConfig::default() };
        let mut control = Control::new(config, 1, RemovalReport::Asked);
        for number in 1..=2 {
            let state = PortState::LIVE;
            let desc = PortDesc { port_no: PortNo(number), state, ..PortDesc::default() };
            control.port_set(desc, Nanos(0));
        }
        // So that the address makes a difference.
        let by_address = "priority=2,in_port=1,eth_src=0e:00:00:00:00:01,actions=drop";
        for text in entries.iter().copied().chain([by_address]) {
            let flow_mod = parse_flow_mod(text, FlowModCommand::Add).unwrap();
            control.flow_mod(&flow_mod, Version::V1_3, Nanos(0)).unwrap();
        }
        let mut forwarder = control.forwarder(0, 7);
        let table = Table::default();
        table.slots.borrow_mut().resize(8_192, TierSlotCounts::default());
        forwarder.set_caches(Caches { kernel: true, ..Caches::default() }, Nanos(0));
        forwarder.set_kernel(table.clone());
        forwarder.enter_tier(PortNo(1));
        forwarder.set_tier_outputs(BTreeSet::from([PortNo(2)]));
        let mut rig = Self { control, forwarder, table, now: Nanos(10_000_000), sent: 0 };
        rig.apply();
        // As many frames as show a flow to be worth an entry while many are made.
        for _ in 0..12 {
            rig.now.0 += 10_000_000;
            rig.send();
        }
        assert_eq!(rig.forwarder.figures().kernel_entries, FLOWS);
        rig
    }

    /// Applies what there is.
    fn apply(&mut self) {
        let mut ops = Vec::new();
        self.control.take_ops(&mut ops);
        for op in ops {
            let (forwarder, now, mut waiting) = (&mut self.forwarder, self.now, Some(op));
            self.table.in_pieces(|| match forwarder.apply(waiting.take().unwrap(), now) {
                Applied::Done => true,
                Applied::Busy(op) | Applied::AtOnce(op) => {
                    waiting = Some(op);
                    false
                }
            });
        }
    }

    /// Sends two packets of each flow, one after the other.
    fn send(&mut self) {
        for first in (0..FLOWS).step_by(50) {
            let frame = |flow| {
                let from = MacAddr::from_u64(0x0200_0000_0000 + flow);
                let built = FrameBuilder::ethernet(MacAddr::from_u64(1), from).fill_to(60).build();
                PacketBuf::from_slice(&built)
            };
            let flows = (first..first + 50).flat_map(|flow| [flow; 2]);
            let mut frames: Vec<PacketBuf> = flows.map(frame).collect();
            self.sent += frames.len() as u64;
            self.forwarder.process_batch(&mut frames, PortNo(1), self.now, &mut Nowhere);
            self.forwarder.make_entries(self.now);
        }
    }

    /// Moves all counts to the shared counters; the number of pieces.
    fn flush(&mut self) -> usize {
        let (forwarder, now) = (&mut self.forwarder, self.now);
        self.table.in_pieces(|| !forwarder.flush_some(usize::MAX, now))
    }

    fn packets(&mut self) -> u64 {
        self.control.flush();
        self.apply();
        self.flush();
        self.control.aggregate_stats(&FlowStatsRequest::all()).unwrap().packet_count
    }
}

/// An entry that is made earlier lets the next frames of its flow overtake those of the batch.
#[test]
fn entries_are_made_when_the_frames_of_a_batch_have_left() {
    let mut rig = Rig::new();
    let built = FrameBuilder::ethernet(MacAddr::from_u64(1), MacAddr::from_u64(0x0200_0001_0000));
    let frame = built.fill_to(60).build();
    for _ in 0..24 {
        rig.now.0 += 10_000_000;
        let mut frames = vec![PacketBuf::from_slice(&frame); 2];
        rig.forwarder.process_batch(&mut frames, PortNo(1), rig.now, &mut Nowhere);
        assert_eq!(rig.forwarder.figures().kernel_entries, FLOWS, "its frames are still here");
    }
    rig.forwarder.make_entries(rig.now);
    assert_eq!(rig.forwarder.figures().kernel_entries, FLOWS + 1);
}

/// The flags of TCP over IPv6 stand behind the bytes that the kernel looks at.
#[test]
fn flows_whose_flags_the_kernel_does_not_see_have_no_entries() {
    let mut rig = Rig::of(&[
        "in_port=1,actions=output:2",
        "priority=40000,tcp6,tcp_flags=+syn-ack,actions=drop",
    ]);
    let ethernet = || FrameBuilder::ethernet(MacAddr::from_u64(1), MacAddr::from_u64(2));
    let v4 = Ipv4::new(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
    let v6 = Ipv6::new(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST);
    for (frame, entries) in [(ethernet().ipv6(v6), FLOWS), (ethernet().ipv4(v4), FLOWS + 1)] {
        let frame = frame.tcp(Tcp::new(1, 2)).build();
        for _ in 0..24 {
            rig.now.0 += 10_000_000;
            let mut frames = vec![PacketBuf::from_slice(&frame); 2];
            rig.forwarder.process_batch(&mut frames, PortNo(1), rig.now, &mut Nowhere);
            rig.forwarder.make_entries(rig.now);
        }
        assert_eq!(rig.forwarder.figures().kernel_entries, entries);
    }
}

#[test]
fn a_bundle_ends_the_entries_that_it_concerns() {
    let mut rig = Rig::new();
    rig.table.count(3, rig.now);
    let drops = (0..2).map(|flow| {
        let from = MacAddr::from_u64(0x0200_0000_0000 + flow);
        let text = format!("priority=2,in_port=1,eth_src={from},actions=drop");
        BundleCommand::FlowMod(parse_flow_mod(&text, FlowModCommand::Add).unwrap())
    });
    let mut commands: Vec<BundleCommand> = drops.collect();
    rig.control.bundle(&commands, Version::V1_3, rig.now).unwrap();
    rig.apply();
    // Others may share the place of an address.
    let left = rig.forwarder.figures().kernel_entries;
    assert!((FLOWS - 50..=FLOWS - 2).contains(&left), "{left} entries are left");
    // A packet-out changes nothing for others.
    let packet_out = PacketOut {
        buffer_id: None,
        in_port: PortNo::CONTROLLER,
        actions: parse_actions("output:2").unwrap(),
        data: FrameBuilder::ethernet(MacAddr::from_u64(1), MacAddr::from_u64(3)).build(),
    };
    commands.push(BundleCommand::PacketOut(packet_out));
    rig.control.bundle(&commands, Version::V1_3, rig.now).unwrap();
    rig.apply();
    let after = rig.forwarder.figures().kernel_entries;
    assert!((left - 50..=left).contains(&after), "{after} of {left} entries are left");
    // What a group changes may concern any packet.
    let group = parse_group_mod("group_id=1,type=all", GroupModCommand::Add).unwrap();
    commands.push(BundleCommand::GroupMod(group));
    rig.control.bundle(&commands, Version::V1_3, rig.now).unwrap();
    rig.apply();
    assert_eq!(rig.forwarder.figures().kernel_entries, 0);
    assert_eq!(rig.packets(), rig.sent + 3 * FLOWS);
}

#[test]
fn all_that_resubmits_led_to_is_counted() {
    let mut rig = Rig::of(&[
        "in_port=1,actions=load:0x2->reg0[],resubmit(3,1),resubmit(4,1),output:reg0[]",
        "table=1,idle_timeout=10,in_port=3,reg0=0x2,actions=load:0x1->reg0[1]",
    ]);
    rig.table.count(3, rig.now);
    assert_eq!(*rig.table.outputs.borrow(), [PortNo(2)]);
    assert_eq!(rig.packets(), 2 * (rig.sent + 3 * FLOWS));
    let tables = rig.control.table_stats();
    assert_eq!(tables[1].lookup_count, 2 * tables[1].matched_count);
    assert_eq!(rig.forwarder.figures().walked, 0);
}

#[test]
fn counts_are_asked_for_in_pieces() {
    let mut rig = Rig::new();
    rig.table.count(3, rig.now);
    assert!(rig.flush() > 5);
    assert_eq!(rig.table.received.get(), 3 * FLOWS);
    assert_eq!(rig.packets(), rig.sent + 3 * FLOWS);
}

#[test]
fn changes_between_its_pieces_do_not_hold_up_a_flush() {
    let mut rig = Rig::new();
    rig.table.count(3, rig.now);

    for flow in 0..100 {
        let from = MacAddr::from_u64(0x0200_0000_0000 + flow);
        let text = format!("priority=2,in_port=1,eth_src={from},actions=drop");
        let flow_mod = parse_flow_mod(&text, FlowModCommand::Add).unwrap();
        rig.control.flow_mod(&flow_mod, Version::V1_3, rig.now).unwrap();
        rig.apply();
        assert!(rig.forwarder.figures().kernel_entries < FLOWS, "an entry has ended");
        rig.table.reads.set(0);
        let more = rig.forwarder.flush_some(usize::MAX, rig.now);
        assert!(rig.table.reads.get() <= AT_ONCE);
        if !more {
            assert!(flow > 5, "{flow} pieces");
            assert_eq!(rig.packets(), rig.sent + 3 * FLOWS);
            return;
        }
    }
    panic!("the flush does not end");
}

#[test]
fn what_ends_is_credited_in_pieces_before_the_next_change() {
    let mut rig = Rig::new();
    rig.table.count(2, rig.now);
    // A group ends all entries before it is there.
    let text = "group_id=1,type=all,bucket=output:2";
    let group = parse_group_mod(text, GroupModCommand::Add).unwrap();
    rig.control.group_mod(&group, rig.now).unwrap();
    rig.apply();
    assert_eq!(rig.table.received.get(), 2 * FLOWS);
    assert_eq!(rig.forwarder.figures().kernel_entries, 0);
    assert_eq!(rig.packets(), rig.sent + 2 * FLOWS);
    // They come back, and their slots count on from where they were.
    for _ in 0..3 {
        rig.now.0 += 10_000_000;
        rig.send();
    }
    assert_eq!(rig.forwarder.figures().kernel_entries, FLOWS);
    rig.table.count(1, rig.now);
    rig.flush();
    assert_eq!(rig.packets(), rig.sent + 3 * FLOWS);
}

#[test]
fn a_port_that_goes_is_credited_in_pieces() {
    let mut rig = Rig::new();
    rig.table.count(2, rig.now);
    rig.table.reads.set(0);
    rig.forwarder.leave_tier(PortNo(1), rig.now);
    assert_eq!(rig.table.reads.get(), 0);
    let (forwarder, now) = (&mut rig.forwarder, rig.now);
    let calls = rig.table.in_pieces(|| {
        forwarder.turn(now);
        forwarder.due().is_none()
    });
    assert!(calls > 5, "{calls}");
    assert_eq!(rig.packets(), rig.sent + 2 * FLOWS);
}

#[test]
fn entries_end_with_the_port_that_they_send_by_and_no_other() {
    let mut rig = Rig::new();
    rig.table.count(2, rig.now);
    for (port, left) in [(1, FLOWS), (3, FLOWS), (2, 0)] {
        rig.forwarder.end_tier_output(PortNo(port));
        assert_eq!(rig.forwarder.figures().kernel_entries, left, "after a change of port {port}");
    }
    assert_eq!(rig.packets(), rig.sent + 2 * FLOWS);
}

#[test]
fn a_mirror_is_one_more_output_of_new_entries() {
    let mut rig = Rig::new();
    let state = PortState::LIVE;
    let desc = PortDesc { port_no: PortNo(3), state, ..PortDesc::default() };
    rig.control.port_set(desc, Nanos(0));
    rig.forwarder.set_tier_outputs(BTreeSet::from([PortNo(2), PortNo(3)]));
    for (mirror, entries, outputs) in [
        ("m,src=1,output=3", FLOWS, &[3, 2][..]),
        // What is cut or changed for the copy goes to the worker.
        ("m,dst=2,output=3,snaplen=64", 0, &[]),
        ("m,dst=2,output=3", FLOWS, &[3, 2]),
    ] {
        rig.control.set_mirrors(vec![mirror.parse().unwrap()]);
        rig.apply();
        assert_eq!(rig.forwarder.figures().kernel_entries, 0, "{mirror}");
        rig.table.outputs.borrow_mut().clear();
        for _ in 0..20 {
            rig.now.0 += 10_000_000;
            rig.send();
        }
        assert_eq!(rig.forwarder.figures().kernel_entries, entries, "{mirror}");
        assert_eq!(
            *rig.table.outputs.borrow(),
            outputs.iter().map(|port| PortNo(*port)).collect::<Vec<_>>()
        );
    }
}

#[test]
fn leases_are_renewed_in_pieces() {
    let mut rig = Rig::new();
    rig.now.0 += 6_000_000_000;
    rig.table.count(1, rig.now);
    assert!(rig.forwarder.due().is_some_and(|due| due <= rig.now));
    let (forwarder, now) = (&mut rig.forwarder, rig.now);
    let calls = rig.table.in_pieces(|| {
        forwarder.turn(now);
        forwarder.due().is_some_and(|due| due > now)
    });
    assert!(calls > 5, "{calls}");
    assert_eq!(rig.table.received.get(), FLOWS);
    assert_eq!(rig.packets(), rig.sent + FLOWS);
}
