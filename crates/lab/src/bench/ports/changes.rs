//! Flow entries that are changed as fast as a switch says that they are in force, while their flows
//! have packets; and whether one packet is decided by what was before.
//!
//! Each round sends all flows out of another port and waits for the barrier reply. Then marked
//! frames of some of the flows are sent: every one has to come out of the new port, and all have
//! come before the next round begins. Beside them other frames of all flows go on all the time, so
//! that there are decisions in caches, and in the kernel, which a change has to end.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use netdev::{Port, open_text};
use openflow::MacAddr;
use openflow::flow::{FlowMod, FlowModCommand};
use openflow::text::parse_flow_mod;
use packet::build::{FrameBuilder, Ipv4};
use packet::{Batch, PacketBuf};

use super::bed::{NOBODY, PortsTestbed, address};
use super::dut::RunningDut;
use super::flood::{CHANGED, FLOW_PORTS_FROM, Flood, Flows};
use crate::bench::common::Run;
use crate::testbed::netns::HOST_DEVICE;

/// The ports that flows go out of in turn, from this number on; as many hosts are behind them.
const OUTPUTS: usize = 3;

/// Flows of a round that have marked frames, and how many each: a decision gets its place in the
/// kernel with the second.
const MARKED: u16 = 16;
const FRAMES: usize = 3;

/// What marked frames begin with, behind their headers.
const MARK: [u8; 8] = *b"weirmark";

/// Bytes of the headers: Ethernet 14, IPv4 20, UDP 8.
const HEADERS_LEN: usize = 42;

/// Frames that a far host's socket holds: what comes beside the marked ones while entries are
/// changed, and nobody takes any.
const FAR_SLOTS: usize = 16_384;

/// Frames that are taken from a socket at once.
const TAKEN: usize = 64;

/// Marked frames that have not come after so long are lost.
const LOST: Duration = Duration::from_secs(2);

/// A host that cannot send for so long will not.
const STUCK: Duration = Duration::from_secs(30);

/// The port that the flows of a round go out of.
fn output(round: u64) -> usize {
    2 + (round % OUTPUTS as u64) as usize
}

/// All entries as they are in a round.
pub(super) fn entries(
    command: FlowModCommand,
    round: u64,
) -> impl Iterator<Item = Result<FlowMod>> {
    let ports = FLOW_PORTS_FROM..FLOW_PORTS_FROM + CHANGED;
    ports.map(move |port| {
        let text = format!("in_port=1,udp,udp_src={port},actions=output:{}", output(round));
        parse_flow_mod(&text, command).context(text)
    })
}

/// A marked frame of a flow.
fn marked(flow: u16, round: u64) -> PacketBuf {
    let near = address(0);
    let payload: Vec<u8> = MARK.into_iter().chain(round.to_be_bytes()).chain([0; 2]).collect();
    let headers = FrameBuilder::ethernet(MacAddr(NOBODY), MacAddr(near.mac))
        .ipv4(Ipv4::new(near.ip, address(1).ip));
    let frame = headers.udp(FLOW_PORTS_FROM + flow, 2_000).payload(&payload).build();
    PacketBuf::from_slice(&frame)
}

/// The round that a frame was marked in, if it was.
fn round_of(frame: &[u8]) -> Option<u64> {
    let marks = frame.get(HEADERS_LEN..)?.strip_prefix(&MARK)?;
    Some(u64::from_be_bytes(marks.get(..8)?.try_into().ok()?))
}

/// What became of the marked frames of one measurement.
#[derive(Debug, Default)]
struct MarkedCount {
    /// Marked frames that came out of the port of their round.
    right: u64,
    /// Those that came out of another one.
    wrong: u64,
    /// Those that did not come, of rounds in which the hosts' sockets had room for all.
    lost: u64,
    /// Rounds in which frames did not come and a host's own socket had no room: whether the switch
    /// has lost them is not known.
    unknown_rounds: u64,
}

impl MarkedCount {
    /// Counts the frames of a round that did not come, where so many found no room at a host.
    fn miss(&mut self, missing: u64, without_room: u64) {
        if without_room == 0 {
            self.lost += missing;
        } else {
            self.unknown_rounds += u64::from(missing > 0);
        }
    }
}

/// The hosts' own sockets.
struct Hosts {
    near: Port,
    far: Vec<Port>,
    came: Batch,
}

impl Hosts {
    fn open(bed: &PortsTestbed) -> Result<Self> {
        let open = |host: usize, options: &str| -> Result<Port> {
            let text = format!("af_packet:{HOST_DEVICE}{options}");
            Ok(bed.host(host).enter(|| open_text(&text))??)
        };
        let slots = format!("?slots={FAR_SLOTS}");
        let far = (1..=OUTPUTS).map(|host| open(host, &slots)).collect::<Result<Vec<_>>>()?;
        Ok(Self { near: open(0, "")?, far, came: Batch::default() })
    }

    /// Takes what waits at the far hosts, so that there is room for what comes next.
    fn empty(&mut self) -> Result<()> {
        for port in &mut self.far {
            // Others' frames go on coming: no more than the ring can hold.
            for _ in 0..FAR_SLOTS.div_ceil(TAKEN) {
                self.came.clear();
                if port.rx(&mut self.came, TAKEN)? == 0 {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Frames that the far hosts' sockets had no room for.
    fn without_room(&mut self) -> u64 {
        self.far.iter_mut().map(|port| port.device.counters().rx_drops).sum()
    }

    /// Sends the marked frames of a round, and waits until all have come.
    fn check(&mut self, round: u64, count: &mut MarkedCount, run: &Run) -> Result<()> {
        self.empty()?;
        let without_room = self.without_room();
        let frames: Vec<PacketBuf> =
            (0..MARKED).flat_map(|flow| [flow; FRAMES]).map(|flow| marked(flow, round)).collect();
        let begun = Instant::now();
        let mut sent = 0;
        while sent < frames.len() {
            sent += self.near.tx(&frames[sent..])?;
            ensure!(begun.elapsed() < STUCK, "a host cannot send");
            run.cancel.check()?;
        }
        let (begun, mut missing) = (Instant::now(), frames.len() as u64);
        while missing > 0 && begun.elapsed() < LOST {
            for (host, port) in self.far.iter_mut().enumerate() {
                self.came.clear();
                port.rx(&mut self.came, TAKEN)?;
                let rounds = self.came.frames().iter().filter_map(|frame| round_of(frame.bytes()));
                for _ in rounds.filter(|marked| *marked == round) {
                    missing = missing.saturating_sub(1);
                    let is_right = output(round) == host + 2;
                    count.right += u64::from(is_right);
                    count.wrong += u64::from(!is_right);
                }
            }
            run.cancel.check()?;
        }
        count.miss(missing, self.without_room().saturating_sub(without_room));
        Ok(())
    }
}

/// Changes a second, marked frames that came out of a wrong port, and marked frames that did not
/// come.
///
/// # Errors
/// The switch refuses a change, or no marked frame came.
pub(super) fn measure(dut: &mut RunningDut, run: &Run) -> Result<[f64; 3]> {
    let _flood = Flood::start(&dut.bed, 0, 1, &Flows::Changed)?;
    let mut hosts = Hosts::open(&dut.bed)?;
    let (mut count, mut rounds) = (MarkedCount::default(), 0_u64);
    let of = |round| entries(FlowModCommand::ModifyStrict, round).collect::<Result<Vec<_>>>();
    let changes = (0..OUTPUTS as u64).map(of).collect::<Result<Vec<_>>>()?;
    let begun = Instant::now();
    while begun.elapsed().as_secs_f64() < run.window.seconds {
        rounds += 1;
        let now = &changes[(rounds % OUTPUTS as u64) as usize];
        dut.load(now.iter().cloned().map(Ok))?;
        hosts.check(rounds, &mut count, run)?;
    }
    let seconds = begun.elapsed().as_secs_f64();
    ensure!(count.right > 0, "no frame came out of the port that it was to: {count:?}");
    if count.unknown_rounds > 0 {
        run.progress.say(&format!(
            "flow_changes: in {} of {rounds} rounds a host's own socket had no room: their missing \
             frames are not counted as lost",
            count.unknown_rounds
        ));
    }
    let rate = rounds as f64 * f64::from(CHANGED) / seconds;
    Ok([rate, count.wrong as f64, count.lost as f64])
}

#[cfg(test)]
mod tests {
    use openflow::flow::FlowModCommand;
    use openflow::text::format_flow_mod;

    use super::{MarkedCount, entries, marked, output, round_of};

    #[test]
    fn a_round_has_another_port_than_the_ones_beside_it() {
        for round in 0..9 {
            assert_ne!(output(round), output(round + 1));
            assert_ne!(output(round), output(round + 2), "a late decision is told from a new one");
            assert!((2..=4).contains(&output(round)));
        }
        let all: Vec<_> = entries(FlowModCommand::Add, 1).map(|entry| entry.unwrap()).collect();
        assert_eq!(all.len(), 500);
        assert!(format_flow_mod(&all[0]).contains("output:3"), "{:?}", all[0]);
    }

    #[test]
    fn what_a_host_had_no_room_for_is_no_loss_of_the_switch() {
        let mut count = MarkedCount::default();
        for (missing, without_room) in [(0, 0), (3, 0), (0, 7), (48, 2)] {
            count.miss(missing, without_room);
        }
        assert_eq!((count.lost, count.unknown_rounds), (3, 1));
    }

    #[test]
    fn marked_frames_are_known_again() {
        let frame = marked(3, 258);
        assert_eq!(frame.bytes().len(), 60);
        assert_eq!(round_of(frame.bytes()), Some(258));
        assert_eq!(round_of(&[0; 60]), None);
        assert_eq!(round_of(&[0; 10]), None);
    }
}
