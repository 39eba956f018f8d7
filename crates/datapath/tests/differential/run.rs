//! A scenario on both datapaths at once: whatever can be seen must be the same.

use std::collections::BTreeMap;
use std::fmt::Debug;

use datapath::fast::testing::Template;
use datapath::fast::{Fast, Sink};
use datapath::{
    BundleCommand, Datapath, DatapathConfig, DropReason, Nanos, Out, PortVlans, Reference, Verdict,
};
use openflow::flow::{FlowStats, FlowStatsRequest};
use openflow::message::{PacketIn, PacketOut};
use openflow::{Field, GroupId, MeterId, PortNo, QueueId, TupleForm, Version};
use packet::PacketBuf;

use crate::how::How;
use crate::scenario::{Scenario, Step};

/// Fate of a batch, in a form in which a forwarder that sends port by port can say it: in
/// order for each port and for the controller, and how many went nowhere for each reason.
#[derive(Debug, Default, PartialEq, Eq)]
struct Batch {
    outputs: BTreeMap<PortNo, Vec<(Option<QueueId>, PacketBuf)>>,
    packet_ins: Vec<(PacketIn, u16)>,
    drops: BTreeMap<DropReason, u64>,
}

impl Batch {
    fn of(out: &mut Out) -> Self {
        let mut batch = Self::default();
        for verdict in out.drain() {
            match verdict {
                Verdict::Output { port, queue, frame } => {
                    batch.outputs.entry(port).or_default().push((queue, frame));
                }
                Verdict::PacketIn { message, max_len } => {
                    batch.packet_ins.push((message, max_len));
                }
                Verdict::Drop { reason } => *batch.drops.entry(reason).or_default() += 1,
                Verdict::Held => {}
            }
        }
        batch
    }

    /// The packets that wait for a controller.
    fn waiting(&self) -> Vec<PacketIn> {
        let packets = self.packet_ins.iter().map(|(packet, _)| packet);
        packets.filter(|packet| !packet.continuation.is_empty()).cloned().collect()
    }
}

/// Most resumptions after a batch.
const RESUMED_MAX: usize = 24;

/// Collects a batch, and counts that every buffer comes back.
#[derive(Debug, Default)]
struct Collect {
    batch: Batch,
    spared: usize,
    back: usize,
}

impl Sink for Collect {
    fn output(&mut self, port: PortNo, queue: Option<QueueId>, frame: PacketBuf) {
        self.back += 1;
        self.batch.outputs.entry(port).or_default().push((queue, frame));
    }

    fn packet_in(&mut self, message: PacketIn, max_len: u16) {
        self.batch.packet_ins.push((message, max_len));
    }

    fn dropped(&mut self, reason: DropReason) {
        *self.batch.drops.entry(reason).or_default() += 1;
    }

    fn done(&mut self, _frame: PacketBuf) {
        self.back += 1;
    }

    fn spare(&mut self) -> PacketBuf {
        self.spared += 1;
        PacketBuf::default()
    }
}

struct Pair<'a> {
    scenario: &'a Scenario,
    reference: Reference,
    fast: Fast,
    now: Nanos,
    out: Out,
    frames: Vec<PacketBuf>,
    /// Packets of a batch. One where packets teach entries: those hold for the next one in the
    /// reference, and for the next batch in the other.
    batch_max: usize,
}

/// A difference, in words.
pub(crate) type Difference = String;

fn same<T: PartialEq + Debug>(what: &str, expected: T, found: T) -> Result<(), Difference> {
    if expected == found {
        return Ok(());
    }
    Err(format!("{what}\n  reference: {expected:?}\n  fast:      {found:?}"))
}

/// Lists row by row, so that the first row that differs is shown and not all.
fn same_rows<T: PartialEq + Debug>(what: &str, rows: (Vec<T>, Vec<T>)) -> Result<(), Difference> {
    for (expected, found) in rows.0.iter().zip(&rows.1) {
        same(what, expected, found)?;
    }
    same(what, rows.0, rows.1)
}

/// Lookups in flow tables by the template that was at work, in the order of [`Template::ALL`].
pub(crate) type Lookups = [u64; Template::ALL.len()];

/// Runs a scenario: the lookups that were made, or the place of the step at which something
/// differs, and what.
pub(crate) fn run(scenario: &Scenario, how: &How) -> Result<Lookups, (usize, Difference)> {
    let config: DatapathConfig = scenario.config.clone();
    let mut fast = Fast::new(config.clone(), scenario.seed);
    how.set(&mut fast);
    let mut pair = Pair {
        scenario,
        reference: Reference::new(config),
        fast,
        now: Nanos(0),
        out: Out::new(),
        frames: Vec::new(),
        batch_max: if scenario.learns() { 1 } else { usize::MAX },
    };
    for (at, step) in scenario.steps.iter().enumerate() {
        pair.step(step).map_err(|difference| (at, difference))?;
        // Caches are switched while decisions lie in them.
        if matches!(step, Step::Look(_)) && how.switches {
            How::new(scenario.seed ^ at as u64).switch(&mut pair.fast);
        }
    }
    let last = scenario.steps.len();
    pair.look(&FlowStatsRequest::all()).map_err(|difference| (last, difference))?;
    Ok(pair.fast.forwarder().figures().lookups)
}

impl Pair<'_> {
    fn both(&mut self, change: impl Fn(&mut dyn Datapath)) -> Result<(), Difference> {
        change(&mut self.reference);
        change(&mut self.fast);
        Ok(())
    }

    fn step(&mut self, step: &Step) -> Result<(), Difference> {
        let (r, f, now) = (&mut self.reference, &mut self.fast, self.now);
        match step {
            Step::FlowMod(version, flow_mod, fallback) => {
                let done = r.flow_mod(flow_mod, *version, now);
                let refused = done.is_err();
                same("flow-mod", done, f.flow_mod(flow_mod, *version, now))?;
                match fallback {
                    Some(flow_mod) if refused => {
                        let done = r.flow_mod(flow_mod, *version, now);
                        same("flow-mod", done, f.flow_mod(flow_mod, *version, now))
                    }
                    Some(_) | None => Ok(()),
                }
            }
            Step::GroupMod(group_mod) => {
                same("group-mod", r.group_mod(group_mod, now), f.group_mod(group_mod, now))
            }
            Step::MeterMod(meter_mod) => {
                same("meter-mod", r.meter_mod(meter_mod, now), f.meter_mod(meter_mod, now))
            }
            Step::Bundle(commands) => self.bundle(commands),
            Step::TableMod(table_mod) => {
                let done = r.table_mod(table_mod, Version::V1_4);
                same("table-mod", done, f.table_mod(table_mod, Version::V1_4))
            }
            Step::PortMod(port_mod) => same("port-mod", r.port_mod(port_mod), f.port_mod(port_mod)),
            Step::PortSet(desc) => {
                same("port", r.port_set(desc.clone(), now), f.port_set(desc.clone(), now))
            }
            Step::PortRemove(port) => same("port", r.port_remove(*port), f.port_remove(*port)),
            Step::Settings(settings) => self.both(|dp| dp.set_settings(*settings)),
            Step::PortVlans(port, text) => {
                let vlans: PortVlans = text.parse().expect("the text is right");
                self.both(|dp| dp.port_vlans(*port, vlans.clone()))
            }
            Step::Mirrors(mirrors) => self.both(|dp| dp.set_mirrors(mirrors.clone())),
            Step::Tables(tables) => {
                let done = r.set_table_features(tables, Version::V1_3, now);
                same("table features", done, f.set_table_features(tables, Version::V1_3, now))?;
                same(
                    "table features",
                    r.table_features(Version::V1_3),
                    f.table_features(Version::V1_3),
                )
            }
            Step::PacketOut(packet_out) => self.packet_out(packet_out),
            Step::Packets(port, frames) => self.packets(*port, frames),
            Step::Wait(ns) => {
                self.now = Nanos(now.0 + ns);
                Ok(())
            }
            Step::Look(request) => {
                same("next expiry", r.next_expiry(), f.next_expiry())?;
                same("expiry", r.expire(now), f.expire(now))?;
                same("table events", r.take_table_events(), f.take_table_events())?;
                self.look(request)
            }
            Step::Trace(port, frame) => {
                let frame = PacketBuf::from_slice(&self.scenario.frames[*frame as usize]);
                let expected = r.trace(frame.clone(), *port, now);
                same("trace", expected, f.trace(frame, *port, now))
            }
        }
    }

    fn bundle(&mut self, commands: &[BundleCommand]) -> Result<(), Difference> {
        let (r, f, now) = (&mut self.reference, &mut self.fast, self.now);
        let version = Version::V1_3;
        let done = r.bundle(commands, version, now, &mut self.out);
        let expected = Batch::of(&mut self.out);
        same("bundle", done, f.bundle(commands, version, now, &mut self.out))?;
        self.resume_all("bundle", expected)?;
        self.look(&FlowStatsRequest::all())
    }

    fn packet_out(&mut self, packet_out: &PacketOut) -> Result<(), Difference> {
        let (r, f, now) = (&mut self.reference, &mut self.fast, self.now);
        let sent = r.packet_out(packet_out, now, &mut self.out);
        let expected = Batch::of(&mut self.out);
        same("packet-out", sent, f.packet_out(packet_out, now, &mut self.out))?;
        self.resume_all("packet-out", expected)
    }

    fn packets(&mut self, port: PortNo, frames: &[u32]) -> Result<(), Difference> {
        frames.chunks(self.batch_max).try_for_each(|frames| self.batch(port, frames))
    }

    fn batch(&mut self, port: PortNo, frames: &[u32]) -> Result<(), Difference> {
        for frame in frames {
            let frame = PacketBuf::from_slice(&self.scenario.frames[*frame as usize]);
            self.frames.push(frame.clone());
            self.reference.process(frame, port, self.now, &mut self.out);
        }
        let expected = Batch::of(&mut self.out);
        let mut collect = Collect::default();
        self.fast.process_batch(&mut self.frames, port, self.now, &mut collect);
        same("packets that are left in the batch", 0, self.frames.len())?;
        let Collect { batch, spared, back } = collect;
        if let Err(text) = same("buffers that came back", frames.len() + spared, back) {
            return Err(format!("{text}\n{}", self.traces(port, frames)));
        }
        if expected == batch {
            return self.resume(batch.waiting());
        }
        let mut text = format!("packets from port {port}");
        for (port, sent) in expected.outputs.iter().chain(&batch.outputs) {
            let (wanted, found) = (expected.outputs.get(port), batch.outputs.get(port));
            let count = |frames: Option<&Vec<_>>| frames.map_or(0, Vec::len);
            if wanted != found && (Some(sent) == wanted || wanted.is_none()) {
                let (wanted_len, found_len) = (count(wanted), count(found));
                text += &format!("\n port {port}: {wanted_len} expected, {found_len} left");
                text += &first_difference(wanted, found);
            }
        }
        if expected.packet_ins != batch.packet_ins {
            let (wanted, found) = (&expected.packet_ins, &batch.packet_ins);
            text += &format!("\n packet-ins: expected {wanted:?}\n  found {found:?}");
        }
        if expected.drops != batch.drops {
            let (wanted, found) = (&expected.drops, &batch.drops);
            text += &format!("\n drops: expected {wanted:?}, found {found:?}");
        }
        Err(format!("{text}\n{}", self.traces(port, frames)))
    }

    /// The same verdicts as these, after which packets that wait go on.
    fn resume_all(&mut self, what: &str, expected: Batch) -> Result<(), Difference> {
        let waiting = expected.waiting();
        same(what, expected, Batch::of(&mut self.out))?;
        self.resume(waiting)
    }

    /// Packets that wait go on, and those of them that wait again. Every third is changed by its
    /// controller, every seventh is damaged.
    fn resume(&mut self, mut waiting: Vec<PacketIn>) -> Result<(), Difference> {
        for turn in 0..RESUMED_MAX {
            let Some(mut paused) = waiting.pop() else { break };
            if turn % 3 == 2 {
                paused.matching = paused.matching.with(Field::Reg0, 1).with(Field::InPort, 2);
                paused.data.truncate(40);
            }
            let middle = paused.continuation.len() / 2;
            if let Some(byte) = paused.continuation.get_mut(middle).filter(|_| turn % 7 == 6) {
                *byte ^= 1;
            }
            let resumed = self.reference.resume(&paused, self.now, &mut self.out);
            let expected = Batch::of(&mut self.out);
            let found = self.fast.resume(&paused, self.now, &mut self.out);
            let what = format!("resumption of {paused:?}");
            same(&what, resumed, found)?;
            waiting.extend(expected.waiting());
            same(&what, expected, Batch::of(&mut self.out))?;
        }
        Ok(())
    }

    /// The way of the first few frames, as the reference sees it after the batch.
    fn traces(&self, port: PortNo, frames: &[u32]) -> String {
        let traces = frames.iter().take(2).map(|frame| {
            let bytes = &self.scenario.frames[*frame as usize];
            let frame = PacketBuf::from_slice(bytes);
            let trace = self.reference.trace(frame, port, self.now);
            format!(" frame {}\n{trace}", testkit::hex::format(bytes))
        });
        traces.collect()
    }

    /// Everything that can be seen.
    fn look(&mut self, request: &FlowStatsRequest) -> Result<(), Difference> {
        self.fast.reap();
        let (r, f, now) = (&self.reference, &self.fast, self.now);
        let all = FlowStatsRequest::all();
        same("counters", r.counters(), f.counters())?;
        same_rows("table", (r.table_stats(), f.table_stats()))?;
        let flows = |dp: &dyn Datapath| dp.flow_stats(&all, now).unwrap_or_default();
        let forms = |flows: Vec<FlowStats>| -> Vec<Option<TupleForm>> {
            flows.iter().map(|flow| flow.matching.form().copied()).collect()
        };
        same_rows("flow", (flows(r), flows(f)))?;
        same_rows("form of a match", (forms(flows(r)), forms(flows(f))))?;
        same("some flows", r.flow_stats(request, now), f.flow_stats(request, now))?;
        same("aggregate", r.aggregate_stats(request), f.aggregate_stats(request))?;
        let groups = |dp: &dyn Datapath| dp.group_stats(GroupId::ALL, now);
        same_rows("group", (groups(r), groups(f)))?;
        same("group descriptions", r.group_desc(), f.group_desc())?;
        same("meters", r.meter_stats(MeterId::ALL, now), f.meter_stats(MeterId::ALL, now))?;
        same("meter settings", r.meter_config(MeterId::ALL), f.meter_config(MeterId::ALL))?;
        let ports = |dp: &dyn Datapath| dp.port_stats(PortNo::ANY, now).unwrap_or_default();
        same_rows("port", (ports(r), ports(f)))?;
        let queues = |dp: &dyn Datapath| dp.queue_stats(PortNo::ANY, QueueId::ALL, now);
        same("queues", queues(r), queues(f))?;
        same("port descriptions", r.ports(), f.ports())?;
        same("next expiry", r.next_expiry(), f.next_expiry())
    }
}

type Sent<'a> = Option<&'a Vec<(Option<QueueId>, PacketBuf)>>;

fn first_difference(wanted: Sent<'_>, found: Sent<'_>) -> String {
    let (wanted, found) = (wanted.into_iter().flatten(), found.into_iter().flatten());
    let mut pairs = wanted.zip(found);
    let differing = pairs.find(|(wanted, found)| wanted != found);
    let text = |(queue, frame): &(Option<QueueId>, PacketBuf)| {
        format!("{queue:?} {}", testkit::hex::format(frame.bytes()))
    };
    differing.map_or(String::new(), |(wanted, found)| {
        format!("\n  expected {}\n  left     {}", text(wanted), text(found))
    })
}
