//! Invariants of both datapaths under random commands, packets and times, through the seam.
//!
//! The universe is small on purpose: few tables, ports, priorities and addresses, so that random
//! commands concern each other often. Nothing here may know how a datapath works inside.

mod random;

use std::collections::BTreeMap;

use datapath::fast::Fast;
use datapath::{Counter, Datapath, DropReason, Nanos, Out, Reference, Verdict};
use openflow::flow::{FlowMod, FlowModCommand, FlowModFlags, FlowRemovedReason, FlowStatsRequest};
use openflow::{Action, Cookie, Instruction, Match, MeterId, PortNo, Version};
use packet::{Meta, PacketBuf, extract};
use proptest::prelude::{ProptestConfig, any, prop, proptest};
use proptest::test_runner::RngSeed;

use random::{Op, datapath, flow_mod, frame, matching, ops};

/// The result of an operation, in a form that can be compared and printed.
fn carry_out(dp: &mut dyn Datapath, op: &Op, now: Nanos) -> String {
    match op {
        Op::FlowMod(flow_mod, version) => format!("{:?}", dp.flow_mod(flow_mod, *version, now)),
        Op::GroupMod(group_mod) => format!("{:?}", dp.group_mod(group_mod, now)),
        Op::MeterMod(meter_mod) => format!("{:?}", dp.meter_mod(meter_mod, now)),
        Op::Packet(port, frame) => {
            let mut out = Out::new();
            dp.process(PacketBuf::from_slice(frame), *port, now, &mut out);
            format!("{:?}", out.verdicts())
        }
        Op::PacketOut(packet_out) => {
            let mut out = Out::new();
            let sent = dp.packet_out(packet_out, now, &mut out);
            format!("{sent:?} {:?}", out.verdicts())
        }
        Op::Wait(_) => format!("{:?}", dp.expire(now)),
    }
}

/// Everything that can be seen of a datapath, but for how many commands it has refused.
fn state(dp: &dyn Datapath, now: Nanos) -> String {
    let drops = DropReason::ALL.iter().map(|reason| dp.counters().drops(*reason));
    let drops: Vec<u64> = drops.collect();
    format!(
        "{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{drops:?}",
        dp.flow_stats(&FlowStatsRequest::all(), now),
        dp.table_stats(),
        dp.group_desc(),
        dp.group_stats(openflow::GroupId::ALL, now),
        dp.meter_stats(MeterId::ALL, now),
        dp.port_stats(PortNo::ANY, now),
        dp.next_expiry(),
    )
}

fn run(dp: &mut dyn Datapath, ops: &[Op], mut each: impl FnMut(&mut dyn Datapath, &Op, Nanos)) {
    let mut now = Nanos(0);
    for op in ops {
        if let Op::Wait(ns) = op {
            now = Nanos(now.0 + ns);
        }
        each(dp, op, now);
    }
}

/// The same cases in every run; `PROPTEST_CASES` asks for more of them.
fn config() -> ProptestConfig {
    let default = ProptestConfig::default();
    let cases = std::env::var_os("PROPTEST_CASES").map_or(64, |_| default.cases);
    let rng_seed = RngSeed::Fixed(2);
    ProptestConfig { cases, rng_seed, failure_persistence: None, ..default }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_lookup_is_the_first_match_of_the_highest_priority(
        entries in prop::collection::vec((0_u16..4, matching()), 0..16),
        frame in frame(),
        in_port in 1_u32..4,
        fast in any::<bool>(),
    ) {
        let mut dp = datapath(fast);
        // Later equal entries replace earlier ones but keep their place.
        let mut model: Vec<(u16, Match, u64)> = Vec::new();
        for (index, (priority, matching)) in entries.into_iter().enumerate() {
            let cookie = index as u64;
            let mut add = FlowMod::new(FlowModCommand::Add);
            add.priority = priority;
            add.matching = matching.clone();
            add.cookie = Cookie(cookie);
            dp.flow_mod(&add, Version::V1_3, Nanos(0)).unwrap();
            match model.iter_mut().find(|(p, m, _)| *p == priority && *m == matching) {
                Some(held) => held.2 = cookie,
                None => model.push((priority, matching, cookie)),
            }
        }
        let key = extract(&frame, &Meta::port(PortNo(in_port)));
        let matching = model.iter().filter(|(_, matching, _)| key.matches(matching));
        // `max_by_key` takes the last of equals; the older one must win.
        let expected = matching.rev().max_by_key(|(priority, _, _)| *priority).map(|held| held.2);
        dp.process(PacketBuf::from_slice(&frame), PortNo(in_port), Nanos(0), &mut Out::new());
        let flows = dp.flow_stats(&FlowStatsRequest::all(), Nanos(0)).unwrap();
        let hit: Vec<u64> =
            flows.iter().filter(|flow| flow.packet_count == 1).map(|flow| flow.cookie.0).collect();
        assert_eq!(hit, expected.into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn the_same_operations_give_the_same_results(ops in ops(40), fast in any::<bool>()) {
        let mut first = Vec::new();
        let mut second = Vec::new();
        let mut dp = datapath(fast);
        run(&mut *dp, &ops, |dp, op, now| first.push(carry_out(dp, op, now) + &state(dp, now)));
        let mut dp = datapath(fast);
        run(&mut *dp, &ops, |dp, op, now| second.push(carry_out(dp, op, now) + &state(dp, now)));
        assert_eq!(first, second);
    }

    #[test]
    fn a_refused_command_changes_nothing(ops in ops(40), fast in any::<bool>()) {
        run(&mut *datapath(fast), &ops, |dp, op, now| {
            let is_command = matches!(op, Op::FlowMod(..) | Op::GroupMod(_) | Op::MeterMod(_));
            let before = state(dp, now);
            let counted = dp.counters().get(Counter::FlowModErrors);
            if carry_out(dp, op, now).starts_with("Err") && is_command {
                let is_flow_mod = matches!(op, Op::FlowMod(..));
                let after = dp.counters().get(Counter::FlowModErrors);
                assert_eq!(after, counted + u64::from(is_flow_mod));
                assert_eq!(state(dp, now), before, "{op:?}");
            }
        });
    }

    #[test]
    fn every_packet_has_a_verdict_a_trace_and_counters_that_agree(
        ops in ops(60),
        fast in any::<bool>(),
    ) {
        let mut dp = datapath(fast);
        let mut tally: BTreeMap<&str, u64> = BTreeMap::new();
        run(&mut *dp, &ops, |dp, op, now| {
            let mut out = Out::new();
            match op {
                Op::Packet(port, frame) => {
                    let before = state(dp, now);
                    let trace = dp.trace(PacketBuf::from_slice(frame), *port, now);
                    assert_eq!(before, state(dp, now), "the trace changed something");
                    dp.process(PacketBuf::from_slice(frame), *port, now, &mut out);
                    assert!(!out.is_empty());
                    assert_eq!(out.verdicts(), trace.verdicts);
                    *tally.entry("received").or_default() += 1;
                }
                Op::PacketOut(packet_out) => {
                    let sent = dp.packet_out(packet_out, now, &mut out);
                    assert_eq!(sent.is_ok(), !out.is_empty());
                }
                Op::FlowMod(..) | Op::GroupMod(_) | Op::MeterMod(_) | Op::Wait(_) => {
                    carry_out(dp, op, now);
                }
            }
            for verdict in out.drain() {
                let name = match verdict {
                    Verdict::Output { .. } => "outputs",
                    Verdict::PacketIn { .. } => "packet_ins",
                    Verdict::Drop { .. } => "drops",
                    Verdict::Held => "fragments_held",
                };
                *tally.entry(name).or_default() += 1;
            }
        });
        let counters = dp.counters();
        for name in ["received", "outputs", "packet_ins", "drops"] {
            let counter = Counter::from_name(name).unwrap();
            assert_eq!(counters.get(counter), tally.get(name).copied().unwrap_or(0), "{name}");
        }
        let by_reason: u64 = DropReason::ALL.iter().map(|reason| counters.drops(*reason)).sum();
        assert_eq!(by_reason, counters.get(Counter::Drops));
        let ports = dp.port_stats(PortNo::ANY, Nanos(0)).unwrap();
        let sent: u64 = ports.iter().map(|port| port.tx_packets).sum();
        assert_eq!(sent, counters.get(Counter::Outputs));
        let active: u64 = dp.table_stats().iter().map(|table| u64::from(table.active_count)).sum();
        let (added, removed) =
            (counters.get(Counter::FlowsAdded), counters.get(Counter::FlowsRemoved));
        assert!(active + removed <= added, "{active} + {removed} > {added}");
    }

    #[test]
    fn matches_of_a_table_are_the_packets_of_its_entries(
        flow_mods in prop::collection::vec(flow_mod(), 0..16),
        frames in prop::collection::vec(frame(), 0..16),
        fast in any::<bool>(),
    ) {
        let mut dp = datapath(fast);
        for mut flow_mod in flow_mods {
            flow_mod.command = FlowModCommand::Add;
            flow_mod.flags = FlowModFlags::empty();
            // What is refused is not there and counts nothing.
            let _maybe = dp.flow_mod(&flow_mod, Version::V1_3, Nanos(0));
        }
        for frame in frames {
            dp.process(PacketBuf::from_slice(&frame), PortNo(1), Nanos(0), &mut Out::new());
        }
        let flows = dp.flow_stats(&FlowStatsRequest::all(), Nanos(0)).unwrap();
        for table in dp.table_stats() {
            let own = flows.iter().filter(|flow| flow.table_id == table.table_id);
            assert_eq!(own.map(|flow| flow.packet_count).sum::<u64>(), table.matched_count);
            assert!(table.matched_count <= table.lookup_count);
        }
        let sums = dp.aggregate_stats(&FlowStatsRequest::all()).unwrap();
        assert_eq!(sums.packet_count, flows.iter().map(|flow| flow.packet_count).sum::<u64>());
        assert_eq!(sums.flow_count as usize, flows.len());
    }

    #[test]
    fn expiry_is_exact(
        idle_s in 0_u16..5,
        hard_s in 0_u16..9,
        gaps_ns in prop::collection::vec(0_u64..3_000_000_000, 0..8),
        late_ns in any::<u32>(),
        fast in any::<bool>(),
    ) {
        let mut dp = datapath(fast);
        let mut add = FlowMod::new(FlowModCommand::Add);
        add.idle_timeout_s = idle_s;
        add.hard_timeout_s = hard_s;
        add.instructions = vec![Instruction::ApplyActions(vec![Action::output(PortNo(2))])];
        dp.flow_mod(&add, Version::V1_3, Nanos(0)).unwrap();
        let hard = Some(Nanos::from_s(hard_s.into())).filter(|_| hard_s != 0);
        let (mut now, mut used) = (Nanos(0), Nanos(0));
        let deadline = |used: Nanos| {
            let idle = Some(used.plus_s(idle_s.into())).filter(|_| idle_s != 0);
            hard.into_iter().chain(idle).min()
        };
        for gap in gaps_ns {
            now = Nanos(now.0 + gap);
            let alive = deadline(used).is_none_or(|at| now < at);
            let mut out = Out::new();
            dp.process(PacketBuf::from_slice(&[0; 60]), PortNo(1), now, &mut out);
            let met = matches!(out.verdicts(), [Verdict::Output { .. }]);
            assert_eq!(met, alive, "at {now:?}");
            if alive {
                used = now;
            }
            assert_eq!(dp.next_expiry(), deadline(used));
        }
        let Some(at) = deadline(used) else { return Ok(()) };
        assert!(dp.expire(Nanos(at.0 - 1)).is_empty());
        let removed = dp.expire(Nanos(at.0 + u64::from(late_ns)));
        let reason = if hard == Some(at) {
            FlowRemovedReason::HardTimeout
        } else {
            FlowRemovedReason::IdleTimeout
        };
        assert_eq!(removed.iter().map(|gone| gone.flow.reason).collect::<Vec<_>>(), [reason]);
        assert_eq!(dp.next_expiry(), None);
    }
}

#[test]
fn both_are_datapaths_that_can_move_to_a_thread() {
    fn takes(_: Box<dyn Datapath>) {}
    takes(Box::new(Reference::new(datapath::DatapathConfig::default())));
    takes(Box::new(Fast::new(datapath::DatapathConfig::default(), 1)));
}
