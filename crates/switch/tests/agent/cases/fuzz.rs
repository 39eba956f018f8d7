//! Valid and damaged messages over live connections, half and half, while a flow entry that has
//! nothing to do with them forwards.
//!
//! What the codec refuses must be answered with the codec's error, quoting the message; everything
//! else is answered as the switch likes, but in time. `WEIR_FUZZ_MESSAGES` is how many are sent
//! (default 4,000; 3,000,000 take some minutes), `WEIR_FUZZ_SEED` which.

use std::collections::BTreeMap;

use openflow::message::{MultipartRequestBody, PacketInReason};
use openflow::{Message, TableId, Version, Xid};

use super::wire::{Host, PATIENCE, within};
use crate::harness::{Controller, Switch};

/// Messages between two looks at what came back.
const ROUND: usize = 25;

/// A run that is long enough to tell a leak, and how much more memory is one.
const LONG: usize = 200_000;
const LEAK_KIB: usize = 64 * 1024;

/// Numbers that are hard to predict and easy to repeat.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % end.max(1)
    }

    fn byte(&mut self) -> u8 {
        self.below(256) as u8
    }
}

/// Every message of the vectors in a version, but for hellos, which open a connection.
fn corpus(version: Version) -> Vec<Vec<u8>> {
    let areas = ["os-ken", "ovs-ofctl", "malformed"];
    let all = areas
        .iter()
        .flat_map(|area| testkit::vectors::load_dir(&testkit::vectors_dir(area)).unwrap());
    let frames = all.map(|vector| vector.bytes).filter(|frame| {
        frame.len() >= 8 && frame.len() < 4000 && frame[0] == version.number() && frame[1] != 0
    });
    frames.collect()
}

/// Damage that leaves the frame a frame.
fn damage(dice: &mut Dice, frame: &mut Vec<u8>, other: &[u8]) {
    for _ in 0..=dice.below(3) {
        let len = frame.len();
        match dice.below(6) {
            0 if len > 8 => {
                let at = 8 + dice.below(len - 8);
                frame[at] ^= 1 << dice.below(8);
            }
            1 if len > 8 => {
                let at = 8 + dice.below(len - 8);
                frame[at] = dice.byte();
            }
            2 if len > 10 => {
                let at = 8 + dice.below((len - 8) / 2) * 2;
                let value = [0, 1, 7, 8, 0x7fff, 0xffff, len as u16][dice.below(7)];
                frame[at..at + 2].copy_from_slice(&value.to_be_bytes());
            }
            3 if len > 16 => frame.truncate(8 + dice.below(len - 8)),
            4 => frame.extend((0..8 * (1 + dice.below(3))).map(|_| dice.byte())),
            _ if other.len() > 16 && len > 16 => {
                let at = 8 + dice.below(len - 8);
                let from = 8 + dice.below(other.len() - 8);
                let count = dice.below((len - at).min(other.len() - from) + 1);
                frame[at..at + count].copy_from_slice(&other[from..from + count]);
            }
            _ => {}
        }
    }
    if dice.below(40) == 0 {
        frame[1] = dice.byte().max(1);
    }
}

/// Whether a valid message may be sent: it must leave the entry, its ports and the role alone.
fn is_harmless(version: Version, message: &Message) -> bool {
    match message {
        Message::FlowMod(flow) => {
            version == Version::V1_3 && flow.table_id != TableId(0) && flow.table_id != TableId::ALL
        }
        Message::MultipartRequest(request) => {
            !matches!(&request.body, MultipartRequestBody::TableFeatures(set) if !set.is_empty())
        }
        // A controller that says that the hello failed has said that it ends the connection.
        Message::Error(error) => error.error_type != 0,
        Message::PortMod(_) | Message::RoleRequest(_) | Message::Hello(_) => false,
        _ => true,
    }
}

/// Type and code of the error that a message is owed, and the message.
type Sent = (Option<(u16, u16)>, Vec<u8>);

struct Peer {
    version: Version,
    corpus: Vec<Vec<u8>>,
    controller: Controller,
    /// The error that must answer a message, where the codec has one; and the message.
    sent: BTreeMap<u32, Sent>,
    next_xid: u32,
}

impl Peer {
    fn new(switch: &Switch, version: Version) -> Self {
        let corpus = corpus(version);
        assert!(corpus.len() > 100, "{version}: only {} messages", corpus.len());
        let controller = switch.controller(version);
        Self { version, corpus, controller, sent: BTreeMap::new(), next_xid: 0x1_0000 }
    }

    /// Sends a message, half of the time a damaged one.
    fn send(&mut self, dice: &mut Dice) {
        let mut frame = self.corpus[dice.below(self.corpus.len())].clone();
        if dice.below(2) == 0 {
            let other = self.corpus[dice.below(self.corpus.len())].clone();
            damage(dice, &mut frame, &other);
        }
        let len = u16::try_from(frame.len()).unwrap();
        frame[2..4].copy_from_slice(&len.to_be_bytes());
        frame[4..8].copy_from_slice(&self.next_xid.to_be_bytes());
        let refused = match wire::decode(&frame) {
            Ok((version, _, message)) if is_harmless(version, &message) => None,
            Ok(_) => return,
            Err(error) => match error.reply(&frame) {
                Some((_, Message::Error(reply))) => Some((reply.error_type, reply.code)),
                _ => return,
            },
        };
        self.controller.raw(&frame);
        self.sent.insert(self.next_xid, (refused, frame));
        self.next_xid += 1;
    }

    /// Reads until everything that was sent is done with.
    fn settle(&mut self) -> Result<(), String> {
        let last = Xid(self.next_xid);
        self.next_xid += 1;
        let barrier = wire::encode(self.version, last, &Message::BarrierRequest).unwrap();
        self.controller.raw(&barrier);
        loop {
            let Some(frame) = self.controller.frame() else {
                let frames =
                    self.sent.values().map(|(wanted, frame)| format!("{wanted:?} {frame:02x?}"));
                return Err(format!("closed after\n{}", frames.collect::<Vec<_>>().join("\n")));
            };
            let (_, xid, message) = wire::decode(&frame).map_err(|e| format!("it sent {e}"))?;
            match message {
                Message::BarrierReply if xid == last => break,
                Message::Error(error) => {
                    let Some((wanted, frame)) = self.sent.remove(&xid.0) else {
                        return Err(format!("{error:?} answers nothing"));
                    };
                    let found = (error.error_type, error.code);
                    if wanted.is_some_and(|wanted| wanted != found)
                        || !frame.starts_with(&error.data)
                    {
                        return Err(format!("{error:?} for {wanted:?}: {frame:02x?}"));
                    }
                }
                Message::PacketIn(packet) if packet.reason == PacketInReason::Unknown(9) => {
                    return Err("a reason that there is not".into());
                }
                _ => {}
            }
        }
        let unanswered = self.sent.values().find(|(wanted, _)| wanted.is_some());
        if let Some((wanted, frame)) = unanswered {
            return Err(format!("no answer, in place of {wanted:?}, to {frame:02x?}"));
        }
        self.sent.clear();
        Ok(())
    }
}

fn setting(variable: &str, default: usize) -> usize {
    let text = std::env::var(variable).ok();
    text.map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{variable}={text}")))
}

/// What this process holds of memory.
fn resident_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// A frame from port 1 arrives at port 2; whatever else does is not ours.
fn forwards(from: &mut Host, to: &mut Host, number: usize) -> Result<(), String> {
    let mut frame = vec![0; 60];
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5]);
    frame[14..22].copy_from_slice(&(number as u64).to_be_bytes());
    from.send(&frame)?;
    within(PATIENCE, || {
        loop {
            match to.poll() {
                Some(came) if came == frame => return Ok(Some(())),
                Some(_) => {}
                None => return Ok(None),
            }
        }
    })
    .map_err(|_| "the entry does not forward".into())
}

#[test]
fn damaged_messages_hurt_nobody() {
    let seed = setting("WEIR_FUZZ_SEED", 1);
    let count = setting("WEIR_FUZZ_MESSAGES", 4000);
    println!("WEIR_FUZZ_SEED={seed} WEIR_FUZZ_MESSAGES={count}");
    let mut hosts: Vec<Host> = (1..=3).map(|port| Host::new(&format!("fuzz{port}"))).collect();
    let specs = "\"memory:fuzz1\",\"memory:fuzz2\",\"memory:fuzz3\"";
    let switch = Switch::with_ports(specs, Vec::new(), "");
    let mut peers = [Peer::new(&switch, Version::V1_0), Peer::new(&switch, Version::V1_3)];
    let text = "priority=65535,in_port=1,dl_type=0x88b5,actions=output:2";
    let (added, _, err) = switch.ctl(&["add-flow", text]);
    assert!(added, "{err}");
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed as u64 + 1));
    let [from, to, _] = hosts.as_mut_slice() else { unreachable!("three hosts") };
    let rounds = count / ROUND;
    let mut halfway = 0;
    for round in 0..rounds {
        if round == rounds / 2 {
            halfway = resident_kib();
        }
        let peer = &mut peers[round % 2];
        for _ in 0..ROUND {
            peer.send(&mut dice);
        }
        let done = peer.settle().and_then(|()| forwards(from, to, round));
        done.unwrap_or_else(|failure| panic!("seed {seed}, round {round}: {failure}"));
    }
    switch.assert_serves();
    let end = resident_kib();
    println!("resident: {halfway} KiB halfway, {end} KiB at the end");
    // Other tests run beside this one unless it is run alone, and then for long.
    assert!(count < LONG || end < halfway + LEAK_KIB, "{halfway} KiB became {end} KiB");
}
