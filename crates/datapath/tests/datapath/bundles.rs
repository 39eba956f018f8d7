//! Bundles while packets pass: each packet sees all of a bundle or nothing of it.
//!
//! The forwarder is given a bundle piece by piece here, and packets between any two pieces.

use std::collections::BTreeMap;
use std::fmt::Debug;

use datapath::fast::{Applied, Caches, Control, Forwarder, Op, RemovalReport, Sink};
use datapath::{BundleCommand, DatapathConfig, DropReason, Nanos};
use openflow::flow::{FlowModCommand, FlowStatsRequest};
use openflow::group::GroupModCommand;
use openflow::message::{PacketIn, PacketOut};
use openflow::port::{PortDesc, PortState};
use openflow::text::{parse_actions, parse_flow_mod, parse_group_mod};
use openflow::{Error, MacAddr, PortNo, QueueId, Version};
use packet::PacketBuf;
use packet::build::FrameBuilder;

const NOW: Nanos = Nanos(0);

/// The ports that frames left by.
#[derive(Default)]
struct Left(Vec<PortNo>);

impl Sink for Left {
    fn output(&mut self, port: PortNo, _queue: Option<QueueId>, _frame: PacketBuf) {
        self.0.push(port);
    }

    fn packet_in(&mut self, _message: PacketIn, _max_len: u16) {}

    fn dropped(&mut self, _reason: DropReason) {
        self.0.push(PortNo::ANY);
    }

    fn done(&mut self, _frame: PacketBuf) {}

    fn spare(&mut self) -> PacketBuf {
        PacketBuf::default()
    }
}

/// A bundle's way into a forwarder.
struct Passage<T> {
    /// The answer before its moment, with the number of pieces, and the one after it.
    before: (T, usize),
    after: (T, usize),
    /// The ports that its packet-outs left by, and the most verdicts that waited at one time.
    sent: Vec<PortNo>,
    most: usize,
}

struct Rig {
    control: Control,
    forwarder: Forwarder,
}

fn add(text: &str) -> BundleCommand {
    BundleCommand::FlowMod(parse_flow_mod(text, FlowModCommand::Add).unwrap())
}

fn delete(text: &str) -> BundleCommand {
    BundleCommand::FlowMod(parse_flow_mod(text, FlowModCommand::DeleteStrict).unwrap())
}

/// A packet-out of a frame from this address.
fn packet_out(from: u64, actions: &str) -> BundleCommand {
    let frame = FrameBuilder::ethernet(MacAddr::from_u64(9), MacAddr::from_u64(from));
    BundleCommand::PacketOut(PacketOut {
        buffer_id: None,
        in_port: PortNo::CONTROLLER,
        actions: parse_actions(actions).unwrap(),
        data: frame.fill_to(60).build(),
    })
}

/// Entries about this many addresses from one on.
fn about(from: u64, count: u64) -> impl Iterator<Item = BundleCommand> {
    (0..count).map(move |at| {
        let address = MacAddr::from_u64(0x0200_0000_0000 + from + at);
        add(&format!("priority=5,eth_src={address},actions=output:4"))
    })
}

impl Rig {
    fn new(caches: Caches) -> Self {
        let config = DatapathConfig { n_tables: 4, ..DatapathConfig::default() };
        let mut control = Control::new(config, 1, RemovalReport::All);
        for number in 1..=4 {
            let state = PortState::LIVE;
            let desc = PortDesc { port_no: PortNo(number), state, ..PortDesc::default() };
            control.port_set(desc, NOW);
        }
        let mut forwarder = control.forwarder(0, 7);
        forwarder.set_caches(caches, NOW);
        Self { control, forwarder }
    }

    fn take_ops(&mut self) -> Vec<Op> {
        let mut ops = Vec::new();
        self.control.take_ops(&mut ops);
        ops
    }

    fn apply_all(&mut self) {
        for mut op in self.take_ops() {
            while let Some(again) = self.forwarder.apply(op, NOW).again() {
                op = again;
            }
        }
    }

    fn bundle(&mut self, commands: &[BundleCommand]) {
        self.control.bundle(commands, Version::V1_3, NOW).unwrap();
    }

    /// The port by which a frame from this address leaves.
    fn send(&mut self, from: u64) -> PortNo {
        let frame = FrameBuilder::ethernet(MacAddr::from_u64(9), MacAddr::from_u64(from));
        let mut frames = vec![PacketBuf::from_slice(&frame.fill_to(60).build())];
        let mut left = Left::default();
        self.forwarder.process_batch(&mut frames, PortNo(1), NOW, &mut left);
        assert_eq!(left.0.len(), 1, "one frame, one fate");
        left.0[0]
    }

    /// Applies what there is, asking wherever packets may pass: two answers, one after the other.
    fn pass<T: PartialEq + Debug>(&mut self, mut ask: impl FnMut(&mut Self) -> T) -> Passage<T> {
        let before = ask(self);
        let (mut pieces, mut after, mut left, mut most) = ([0; 2], None, Left::default(), 0);
        for mut op in self.take_ops() {
            loop {
                let applied = self.forwarder.apply(op, NOW);
                let earlier = left.0.len();
                self.forwarder.give_sent(&mut left);
                most = most.max(left.0.len() - earlier);
                if let Applied::AtOnce(again) = applied {
                    op = again;
                    continue;
                }
                let answer = ask(self);
                if answer != before {
                    assert_eq!(*after.get_or_insert_with(|| ask(self)), answer);
                }
                assert!(answer != before || after.is_none(), "back to {answer:?}");
                pieces[usize::from(after.is_some())] += 1;
                let Some(again) = applied.again() else { break };
                op = again;
            }
        }
        let after = after.expect("the bundle has been shown");
        Passage { before: (before, pieces[0]), after: (after, pieces[1]), sent: left.0, most }
    }

    /// Applies what there is, asking after each piece; the answers, each once as they came.
    fn watch<T: PartialEq>(&mut self, mut ask: impl FnMut(&mut Self) -> T) -> (usize, Vec<T>) {
        let mut answers = vec![ask(self)];
        let mut pieces = 0;
        for mut op in self.take_ops() {
            loop {
                let applied = self.forwarder.apply(op, NOW);
                pieces += 1;
                let answer = ask(self);
                if answers.last() != Some(&answer) {
                    answers.push(answer);
                }
                let Some(again) = applied.again() else { break };
                op = again;
            }
        }
        (pieces, answers)
    }
}

fn all_caches() -> [Caches; 3] {
    [(true, true), (false, true), (false, false)].map(|(frame, key)| Caches {
        frame,
        key,
        kernel: false,
    })
}

/// Two entries that swap, in every way in which entries come, change and go, and many others.
#[test]
fn no_packet_sees_half_of_a_bundle() {
    let others = |from: u64| about(from, 300);
    let swaps: [&[BundleCommand]; 4] = [
        &[
            add("priority=7,eth_src=0:0:0:0:0:1,actions=output:3"),
            add("priority=7,eth_src=0:0:0:0:0:2,actions=output:2"),
        ],
        &[
            add("priority=7,reset_counts,eth_src=0:0:0:0:0:1,actions=output:3"),
            add("priority=7,reset_counts,eth_src=0:0:0:0:0:2,actions=output:2"),
        ],
        &[
            delete("priority=7,eth_src=0:0:0:0:0:1"),
            add("priority=7,eth_src=0:0:0:0:0:2,actions=goto_table:1"),
            add("priority=7,eth_src=0:0:0:0:0:1,actions=goto_table:1"),
            add("table=1,eth_src=0:0:0:0:0:1,actions=output:3"),
            add("table=1,actions=output:2"),
        ],
        &[
            add("priority=9,eth_src=0:0:0:0:0:2/ff:0:0:0:0:2,actions=output:2"),
            add("priority=8,eth_src=0:0:0:0:0:1/ff:0:0:0:0:1,actions=output:3"),
            delete("priority=7,eth_src=0:0:0:0:0:2"),
            delete("priority=7,eth_src=0:0:0:0:0:1"),
        ],
    ];
    for caches in all_caches() {
        for (number, swap) in swaps.iter().enumerate() {
            let mut rig = Rig::new(caches);
            rig.bundle(&[
                add("priority=7,eth_src=0:0:0:0:0:1,actions=output:2"),
                add("priority=7,eth_src=0:0:0:0:0:2,actions=output:3"),
            ]);
            rig.bundle(&others(0).collect::<Vec<_>>());
            rig.apply_all();
            let (first, second) = swap.split_at(1);
            let gone = (0..200).map(|at| {
                delete(&format!("priority=5,eth_src={}", MacAddr::from_u64(0x0200_0000_0000 + at)))
            });
            let commands: Vec<BundleCommand> =
                first.iter().cloned().chain(others(1_000)).chain(gone).collect();
            rig.bundle(&[&commands, second].concat());
            let mut fresh = 0x0200_0000_0000;
            let (pieces, answers) = rig.watch(|rig| {
                // Another flow that goes and one that comes, which no cache knows.
                fresh += 1;
                let others = [fresh, fresh + 1_000].map(|from| rig.send(from));
                (rig.send(1), rig.send(2), others)
            });
            let is_known = |port: PortNo| port == PortNo(4);
            let seen: Vec<_> = answers
                .iter()
                .map(|(one, two, others)| (one.0, two.0, others.map(is_known)))
                .collect();
            let expected = [(2, 3, [true, false]), (3, 2, [false, true])];
            assert_eq!(seen, expected, "{number} {caches:?}: {answers:?}");
            assert!(pieces > 20, "made in {pieces} pieces");
        }
    }
}

/// Packet-outs at the end see all of a bundle, so that it is made and finished in pieces.
#[test]
fn packet_outs_at_the_end_make_no_packet_wait() {
    for caches in all_caches() {
        let mut rig = Rig::new(caches);
        rig.bundle(&[
            add("priority=7,eth_src=0:0:0:0:0:1,actions=output:2"),
            add("priority=7,eth_src=0:0:0:0:0:2,actions=output:3"),
        ]);
        rig.apply_all();
        let mut commands: Vec<BundleCommand> = about(0, 500).collect();
        commands.push(add("priority=7,eth_src=0:0:0:0:0:1,actions=output:3"));
        commands.push(add("priority=7,eth_src=0:0:0:0:0:2,actions=output:2"));
        commands.extend((1..=500).map(|number| packet_out(1 + number % 2, "output:TABLE")));
        rig.bundle(&commands);
        let Passage { before, after, sent, most } = rig.pass(|rig| (rig.send(1), rig.send(2)));
        assert!(before.1 > 10 && after.1 > 10, "{} pieces and {}", before.1, after.1);
        assert_eq!((before.0, after.0), ((PortNo(2), PortNo(3)), (PortNo(3), PortNo(2))));
        assert!(most <= 64, "{most} verdicts at once");
        assert_eq!(sent.len(), 500);
        let of = |port| sent.iter().filter(|sent| **sent == PortNo(port)).count();
        assert_eq!((of(2), of(3)), (250, 250), "all of them see all of it");
    }
}

/// A packet-out among other messages sees those before it, and no packet passes at that moment.
#[test]
fn packet_outs_in_the_middle_are_sent_one_by_one() {
    for caches in all_caches() {
        let mut rig = Rig::new(caches);
        rig.bundle(&[add("priority=7,eth_src=0:0:0:0:0:1,actions=output:2")]);
        rig.apply_all();
        let mut commands: Vec<BundleCommand> = about(0, 500).collect();
        for port in [3, 2, 3, 4, 2, 3] {
            commands.push(add(&format!("eth_src=0:0:0:0:0:1,priority=7,actions=output:{port}")));
            commands.push(packet_out(1, "output:TABLE"));
        }
        commands.push(add("priority=7,eth_src=0:0:0:0:0:1,actions=output:4"));
        commands.extend((0..500).map(|at| {
            delete(&format!("priority=5,eth_src={}", MacAddr::from_u64(0x0200_0000_0000 + at)))
        }));
        rig.bundle(&commands);
        let Passage { before, after, sent, most } = rig.pass(|rig| rig.send(1));
        assert!(before.1 > 10 && after.1 > 10, "{} pieces and {}", before.1, after.1);
        assert_eq!((before.0, after.0), (PortNo(2), PortNo(4)));
        assert_eq!(most, 1, "verdicts at once");
        assert_eq!(sent, [3, 2, 3, 4, 2, 3].map(PortNo));
        assert_eq!(rig.send(0x0200_0000_0000 + 7), PortNo::ANY);
    }
}

/// Groups change at the moment in which entries do.
#[test]
fn entries_and_groups_change_together() {
    let group = |command, text| BundleCommand::GroupMod(parse_group_mod(text, command).unwrap());
    for caches in all_caches() {
        let mut rig = Rig::new(caches);
        rig.bundle(&[
            group(GroupModCommand::Add, "group_id=1,type=indirect,bucket=output:2"),
            add("eth_src=0:0:0:0:0:1,actions=group:1"),
            add("eth_src=0:0:0:0:0:2,actions=output:3"),
        ]);
        rig.apply_all();
        rig.bundle(&[
            group(GroupModCommand::Modify, "group_id=1,type=indirect,bucket=output:3"),
            group(GroupModCommand::Add, "group_id=2,type=indirect,bucket=output:2"),
            add("eth_src=0:0:0:0:0:2,actions=group:2"),
        ]);
        let (_, answers) = rig.watch(|rig| (rig.send(1), rig.send(2)));
        assert_eq!(answers, [(PortNo(2), PortNo(3)), (PortNo(3), PortNo(2))]);
    }
}

#[test]
fn a_refused_bundle_leaves_nothing_behind() {
    let mut rig = Rig::new(Caches::default());
    let group =
        |text| BundleCommand::GroupMod(parse_group_mod(text, GroupModCommand::Add).unwrap());
    rig.bundle(&[
        group("group_id=1,type=all,bucket=output:2"),
        add("priority=7,idle_timeout=5,send_flow_rem,eth_src=0:0:0:0:0:1,actions=group:1"),
        add("priority=7,eth_src=0:0:0:0:0:2,actions=output:3"),
    ]);
    rig.apply_all();
    let state = |rig: &mut Rig| {
        let flows = rig.control.flow_stats(&FlowStatsRequest::all(), NOW).unwrap();
        (flows, rig.control.group_desc(), rig.control.next_expiry(), rig.control.ports())
    };
    let before = state(&mut rig);
    let delete_group = parse_group_mod("group_id=1", GroupModCommand::Delete).unwrap();
    let commands = [
        add("priority=7,eth_src=0:0:0:0:0:2,actions=output:2"),
        add("priority=7,reset_counts,eth_src=0:0:0:0:0:2,actions=drop"),
        BundleCommand::GroupMod(delete_group),
        group("group_id=1,type=all,bucket=output:4"),
        add("priority=7,eth_src=0:0:0:0:0:1,actions=group:1"),
        delete("priority=7,eth_src=0:0:0:0:0:2"),
        add("priority=8,hard_timeout=1,eth_src=0:0:0:0:0:2,actions=output:2"),
        add("actions=group:9"),
    ];
    let refused = rig.control.bundle(&commands, Version::V1_3, NOW).unwrap_err();
    assert_eq!((refused.at, refused.error), (7, Error::BadActionBadOutGroup));
    assert_eq!(state(&mut rig), before);
    assert!(rig.take_ops().is_empty() && rig.control.is_reaped());
    // What is done next is as if there had been no bundle.
    rig.bundle(&commands[..7]);
    rig.apply_all();
    let flows = rig.control.flow_stats(&FlowStatsRequest::all(), NOW).unwrap();
    let by_priority: BTreeMap<u16, usize> = BTreeMap::from([(8, 1), (7, 1)]);
    let mut found = BTreeMap::new();
    flows.iter().for_each(|flow| *found.entry(flow.priority).or_default() += 1);
    assert_eq!(found, by_priority);
    assert_eq!((rig.send(1), rig.send(2)), (PortNo(4), PortNo(2)));
}
