//! The forwarder's side of the kernel tier, over a table that only counts: whatever has to be asked
//! of many entries is asked in pieces, and no packet is missed by that.

use std::cell::Cell;
use std::collections::BTreeSet;

use datapath::fast::{
    Caches, Control, Forwarder, KernelTable, RemovalReport, Sink, TIER_BYTES, TierFlow,
    TierSlotCounts, TierVerdict,
};
use datapath::{DatapathConfig, DropReason, Nanos};
use openflow::flow::{FlowModCommand, FlowStatsRequest};
use openflow::group::GroupModCommand;
use openflow::message::PacketIn;
use openflow::port::{PortDesc, PortState};
use openflow::text::{parse_flow_mod, parse_group_mod};
use openflow::{MacAddr, PortNo, QueueId, Version};
use packet::build::FrameBuilder;
use packet::{PacketBuf, Shape};

const FLOWS: u64 = 500;
const AT_ONCE: usize = 64;

/// Takes everything and keeps nothing.
struct Nowhere;

impl Sink for Nowhere {
    fn output(&mut self, _port: PortNo, _queue: Option<QueueId>, _frame: PacketBuf) {}

    fn packet_in(&mut self, _message: PacketIn, _max_len: u16) {}

    fn dropped(&mut self, _reason: DropReason) {}

    fn done(&mut self, _frame: PacketBuf) {}

    fn spare(&mut self) -> PacketBuf {
        PacketBuf::default()
    }
}

/// A table whose entries count what the test says.
struct Table {
    slots: Vec<TierSlotCounts>,
    /// How often counts were asked for.
    asked: Cell<usize>,
    received: u64,
}

impl Table {
    fn count(&mut self, packets: u64, at: Nanos) {
        for slot in self.slots.iter_mut().take(usize::try_from(FLOWS).unwrap()) {
            slot.packets += packets;
            slot.bytes += 60 * packets;
            slot.sent_packets += packets;
            slot.sent_bytes += 60 * packets;
            slot.last_used = at;
        }
    }

    /// Calls until it is done; how many calls, none of which may ask for more than a piece.
    fn in_pieces(&mut self, mut piece: impl FnMut(&mut Self) -> bool) -> usize {
        for calls in 1..10_000 {
            self.asked.set(0);
            let is_done = piece(self);
            assert!(self.asked.get() <= AT_ONCE, "{} at once", self.asked.get());
            if is_done {
                return calls;
            }
        }
        panic!("it does not end");
    }
}

impl KernelTable for Table {
    fn slots(&self) -> usize {
        self.slots.len()
    }

    fn start(&mut self, _masks: &[[u8; TIER_BYTES]; Shape::COUNT]) {}

    fn stop(&mut self) {}

    fn put(&mut self, _slot: u32, _flow: &TierFlow, _does: &TierVerdict, _until: Nanos) -> bool {
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
        self.asked.set(self.asked.get() + 1);
        self.slots[slot as usize]
    }

    fn credit(&mut self, _in_port: PortNo, _outputs: &[PortNo], counts: &TierSlotCounts) {
        self.received += counts.packets;
    }

    fn take_back_unsent(&mut self, _slot: u32, _outputs: &[PortNo]) {}
}

/// A control and its forwarder, whose entries about so many flows are all in the table.
struct Rig {
    control: Control,
    forwarder: Forwarder,
    table: Table,
    now: Nanos,
    /// What the forwarder was given itself.
    sent: u64,
}

impl Rig {
    fn new() -> Self {
        let config = DatapathConfig { n_tables: 2, ..DatapathConfig::default() };
        let mut control = Control::new(config, 1, RemovalReport::Asked);
        for number in 1..=2 {
            let state = PortState::LIVE;
            let desc = PortDesc { port_no: PortNo(number), state, ..PortDesc::default() };
            control.port_set(desc, Nanos(0));
        }
        for text in [
            "idle_timeout=10,in_port=1,actions=output:2",
            // So that the address makes a difference.
            "priority=2,in_port=1,eth_src=0e:00:00:00:00:01,actions=drop",
        ] {
            let flow_mod = parse_flow_mod(text, FlowModCommand::Add).unwrap();
            control.flow_mod(&flow_mod, Version::V1_3, Nanos(0)).unwrap();
        }
        let mut forwarder = control.forwarder(0, 7);
        forwarder.set_caches(Caches { kernel: true, ..Caches::default() });
        forwarder.enter_tier(PortNo(1));
        forwarder.set_tier_outputs(BTreeSet::from([PortNo(2)]));
        let slots = vec![TierSlotCounts::default(); 1_024];
        let table = Table { slots, asked: Cell::new(0), received: 0 };
        let mut rig = Self { control, forwarder, table, now: Nanos(10_000_000), sent: 0 };
        rig.apply();
        for _ in 0..4 {
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
            if op.is_change() {
                let (forwarder, now) = (&mut self.forwarder, self.now);
                self.table.in_pieces(|table| forwarder.make_way(&op, table, now));
                self.table.asked.set(0);
                forwarder.apply_in_tier(op, &mut self.table, now);
                assert!(self.table.asked.get() <= AT_ONCE);
            } else {
                self.forwarder.apply(op);
            }
        }
    }

    /// Sends two packets of each flow, one after the other: the second makes it known.
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
            self.forwarder.update_tier(&mut self.table, self.now);
        }
    }

    /// Credits all that was counted; in how many pieces.
    fn harvest(&mut self) -> usize {
        let (forwarder, now) = (&mut self.forwarder, self.now);
        forwarder.begin_harvest();
        self.table.in_pieces(|table| !forwarder.harvest_some(table, now))
    }

    fn packets(&mut self) -> u64 {
        self.control.flush();
        self.apply();
        while self.forwarder.flush_some(16) {}
        self.control.aggregate_stats(&FlowStatsRequest::all()).unwrap().packet_count
    }
}

#[test]
fn counts_are_asked_for_in_pieces() {
    let mut rig = Rig::new();
    rig.table.count(3, rig.now);
    assert!(rig.harvest() > 5);
    assert_eq!(rig.table.received, 3 * FLOWS);
    assert_eq!(rig.packets(), rig.sent + 3 * FLOWS);
}

#[test]
fn changes_between_its_pieces_do_not_hold_up_a_harvest() {
    let mut rig = Rig::new();
    rig.table.count(3, rig.now);
    rig.forwarder.begin_harvest();
    for flow in 0..100 {
        let from = MacAddr::from_u64(0x0200_0000_0000 + flow);
        let text = format!("priority=2,in_port=1,eth_src={from},actions=drop");
        let flow_mod = parse_flow_mod(&text, FlowModCommand::Add).unwrap();
        rig.control.flow_mod(&flow_mod, Version::V1_3, rig.now).unwrap();
        rig.apply();
        assert!(rig.forwarder.figures().kernel_entries < FLOWS, "an entry has ended");
        rig.table.asked.set(0);
        let more = rig.forwarder.harvest_some(&mut rig.table, rig.now);
        assert!(rig.table.asked.get() <= AT_ONCE);
        if !more {
            assert!(flow > 5, "{flow} pieces");
            assert_eq!(rig.packets(), rig.sent + 3 * FLOWS);
            return;
        }
    }
    panic!("the harvest does not end");
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
    assert_eq!(rig.table.received, 2 * FLOWS);
    assert_eq!(rig.forwarder.figures().kernel_entries, 0);
    assert_eq!(rig.packets(), rig.sent + 2 * FLOWS);
    // They come back, and their slots count on from where they were.
    for _ in 0..3 {
        rig.now.0 += 10_000_000;
        rig.send();
    }
    assert_eq!(rig.forwarder.figures().kernel_entries, FLOWS);
    rig.table.count(1, rig.now);
    rig.harvest();
    assert_eq!(rig.packets(), rig.sent + 3 * FLOWS);
}

#[test]
fn a_port_that_goes_is_settled_in_pieces() {
    let mut rig = Rig::new();
    rig.table.count(2, rig.now);
    rig.table.asked.set(0);
    rig.forwarder.leave_tier(PortNo(1), &mut rig.table, rig.now);
    assert_eq!(rig.table.asked.get(), 0);
    let (forwarder, now) = (&mut rig.forwarder, rig.now);
    assert!(rig.table.in_pieces(|table| forwarder.settle_tier(table, now)) > 5);
    assert_eq!(rig.packets(), rig.sent + 2 * FLOWS);
}

#[test]
fn leases_are_renewed_in_pieces() {
    let mut rig = Rig::new();
    rig.now.0 += 6_000_000_000;
    rig.table.count(1, rig.now);
    assert!(rig.forwarder.tier_due().is_some_and(|due| due <= rig.now));
    let (forwarder, now) = (&mut rig.forwarder, rig.now);
    let calls = rig.table.in_pieces(|table| {
        forwarder.tend_tier(table, now);
        forwarder.tier_due().is_some_and(|due| due > now)
    });
    assert!(calls > 5, "{calls}");
    assert_eq!(rig.table.received, FLOWS);
    assert_eq!(rig.packets(), rig.sent + FLOWS);
}
