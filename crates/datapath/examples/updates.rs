//! How fast flow entries can be added, found, modified, deleted and listed, and what each weighs.
//!
//! `cargo run --release -p weir-datapath --example updates [ENTRIES]` does it on one thread,
//! without packets, for so many entries (1,000,000 if no number is given): once for control alone,
//! as a switch's agent sees it, and once with a forwarder that takes every change over. Memory is
//! what the process has grown by. Numbers are the machine's, not a promise.

use std::time::Instant;

use datapath::fast::{Control, Forwarder, Op, RemovalReport};
use datapath::{DatapathConfig, Nanos};
use files::proc::ProcFolder;
use openflow::flow::{AggregateStats, FlowMod, FlowModCommand, FlowStatsRequest};
use openflow::{Action, Field, Instruction, Match, PortNo, Version};

const FORWARDER: &str = "control and a forwarder";

/// Commands between two times that ops are taken and removed entries are reported.
const TOGETHER: usize = 256;

/// A datapath as a switch has it, in one thread: control, and perhaps a forwarder.
struct Switch {
    control: Control,
    forwarder: Option<Forwarder>,
    ops: Vec<Op>,
    commands: usize,
}

impl Switch {
    fn new(has_forwarder: bool) -> Self {
        let config = DatapathConfig { max_entries: u32::MAX, ..DatapathConfig::default() };
        let control = Control::new(config, 1, RemovalReport::Asked);
        let forwarder = has_forwarder.then(|| control.forwarder(0, 1));
        Self { control, forwarder, ops: Vec::new(), commands: 0 }
    }

    fn take(&mut self, flow_mod: &FlowMod) {
        let done = self.control.flow_mod(flow_mod, Version::V1_3, Nanos(0));
        done.expect("the flow-mod is right");
        self.commands += 1;
        if self.commands.is_multiple_of(TOGETHER) {
            self.pass_on();
        }
    }

    fn pass_on(&mut self) {
        drop(self.control.reap());
        self.control.take_ops(&mut self.ops);
        match &mut self.forwarder {
            Some(forwarder) => {
                self.ops.drain(..).for_each(|op| forwarder.apply(op));
                forwarder.flush_some(1_000);
            }
            None => self.ops.clear(),
        }
    }
}

/// A match of Ethernet and IPv4 addresses, as a routing switch has them.
fn flow_mod(command: FlowModCommand, index: u32, port: u32) -> FlowMod {
    let mut flow_mod = FlowMod::new(command);
    flow_mod.matching = Match::any()
        .with(Field::EthSrc, 0x0200_0000_0001)
        .with(Field::EthDst, 0x0200_0000_0002)
        .with(Field::EthType, 0x0800)
        .with(Field::Ipv4Src, (0x0a00_0000 | index).into())
        .with(Field::Ipv4Dst, (0x0a80_0000 ^ index).into());
    flow_mod.instructions = vec![Instruction::ApplyActions(vec![Action::output(PortNo(port))])];
    flow_mod
}

/// Memory that the process holds now, in bytes.
fn resident() -> f64 {
    ProcFolder::own().memory("VmRSS").map_or(f64::NAN, |bytes| bytes as f64)
}

/// Numbers below `count` in an order that no cache likes.
fn shuffled(count: u32) -> impl Iterator<Item = u32> {
    let bits = count.next_power_of_two().trailing_zeros();
    let mask = (1_u64 << bits) - 1;
    let scattered = (0..=mask).map(move |n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15 | 1)) & mask);
    scattered.map(|n| n as u32).filter(move |n| *n < count)
}

/// Nanoseconds that this thread has had a processor, which a busy machine does not falsify.
fn on_processor() -> f64 {
    ProcFolder::own_thread().sched_time().map_or(f64::NAN, |time| time.ran_ns as f64)
}

fn per_second(what: &str, count: u32, mut each: impl FnMut()) {
    let (start, busy) = (Instant::now(), on_processor());
    each();
    let busy_ns = (on_processor() - busy) / f64::from(count);
    let rate = f64::from(count) / start.elapsed().as_secs_f64();
    println!("  {what:28} {rate:12.0}/s {busy_ns:8.0} ns of processor each");
}

fn measure(entries: u32, table: &mut Switch) {
    let before = resident();
    per_second("adds", entries, || {
        (0..entries).for_each(|index| table.take(&flow_mod(FlowModCommand::Add, index, 2)));
        table.pass_on();
    });
    println!("  {:28} {:12.0} bytes", "an entry", (resident() - before) / f64::from(entries));
    let some = entries.min(1_000_000);
    let order: Vec<u32> = shuffled(entries).take(some as usize).collect();
    let mut run = |what: &str, command, port| {
        per_second(what, some, || {
            order.iter().for_each(|index| table.take(&flow_mod(command, *index, port)));
        });
    };
    run("adds of equal ones", FlowModCommand::Add, 2);
    run("strict modifies", FlowModCommand::ModifyStrict, 3);
    run("modifies", FlowModCommand::Modify, 4);
    run("strict deletes", FlowModCommand::DeleteStrict, 2);
    run("adds again", FlowModCommand::Add, 2);
    run("deletes", FlowModCommand::Delete, 2);
    run("adds again", FlowModCommand::Add, 2);
}

/// What the caller's own part costs.
fn overhead(entries: u32) {
    let mut sum = 0;
    per_second("making a flow-mod", entries, || {
        for index in 0..entries {
            sum += flow_mod(FlowModCommand::Add, index, 2).matching.fields().len();
        }
    });
    assert!(sum > 0);
}

fn list(control: &Control, entries: u32) {
    let request = FlowStatsRequest::all();
    let mut pieces = Vec::new();
    per_second("listed in pieces of 1,000", entries, || {
        let mut dump = control.dump(&request).expect("all tables exist");
        loop {
            let start = Instant::now();
            let (flows, complete) = control.dump_next(&mut dump, 1_000, Nanos(0));
            pieces.push(start.elapsed());
            drop(flows);
            if complete {
                break;
            }
        }
    });
    pieces.sort_unstable();
    let of_hundred = |percent: usize| pieces[(pieces.len() - 1) * percent / 100].as_micros();
    println!("  {:28} {:12} us, 99 %: {} us", "a piece", of_hundred(50), of_hundred(99));
    per_second("summed", entries, || {
        let mut sums = AggregateStats::default();
        let mut dump = control.dump(&request).expect("all tables exist");
        while !control.dump_sum(&mut dump, 1_000, &mut sums) {}
        assert_eq!(sums.flow_count, entries);
    });
}

/// Measures in a process of its own, so that no memory of one measurement serves the next.
fn main() {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    if let [entries, kind] = asked.as_slice() {
        let entries = entries.parse().expect("the number of entries");
        let mut switch = Switch::new(kind == FORWARDER);
        println!("{entries} entries, {kind}");
        measure(entries, &mut switch);
        list(&switch.control, entries);
        return;
    }
    let entries = asked.first().map_or("1000000", String::as_str);
    overhead(entries.parse().expect("the number of entries"));
    let own = std::env::current_exe().expect("a program has a path");
    for kind in ["control", FORWARDER] {
        let run = std::process::Command::new(&own).args([entries, kind]).status();
        assert!(run.is_ok_and(|status| status.success()), "{kind} has failed");
    }
}
