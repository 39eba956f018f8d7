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

/// What was found in one measurement.
#[derive(Debug, Default)]
struct Found {
    /// Marked frames that came out of the port of their round.
    right: u64,
    /// Those that came out of another one.
    wrong: u64,
    /// Those that did not come.
    lost: u64,
}

/// The hosts' own sockets.
struct Hosts {
    near: Port,
    far: Vec<Port>,
    came: Batch,
}

impl Hosts {
    fn open(bed: &PortsTestbed) -> Result<Self> {
        let text = format!("af_packet:{HOST_DEVICE}");
        let open =
            |host: usize| -> Result<Port> { Ok(bed.host(host).enter(|| open_text(&text))??) };
        let far = (1..=OUTPUTS).map(open).collect::<Result<Vec<_>>>()?;
        Ok(Self { near: open(0)?, far, came: Batch::default() })
    }

    /// Sends the marked frames of a round, and waits until all have come.
    fn check(&mut self, round: u64, found: &mut Found, run: &Run) -> Result<()> {
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
                port.rx(&mut self.came, 64)?;
                let rounds = self.came.frames().iter().filter_map(|frame| round_of(frame.bytes()));
                for _ in rounds.filter(|marked| *marked == round) {
                    missing = missing.saturating_sub(1);
                    let is_right = output(round) == host + 2;
                    found.right += u64::from(is_right);
                    found.wrong += u64::from(!is_right);
                }
            }
            run.cancel.check()?;
        }
        found.lost += missing;
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
    let (mut found, mut rounds) = (Found::default(), 0_u64);
    let of = |round| entries(FlowModCommand::ModifyStrict, round).collect::<Result<Vec<_>>>();
    let changes = (0..OUTPUTS as u64).map(of).collect::<Result<Vec<_>>>()?;
    let begun = Instant::now();
    while begun.elapsed().as_secs_f64() < run.window.seconds {
        rounds += 1;
        let now = &changes[(rounds % OUTPUTS as u64) as usize];
        dut.load(now.iter().cloned().map(Ok))?;
        hosts.check(rounds, &mut found, run)?;
    }
    let seconds = begun.elapsed().as_secs_f64();
    ensure!(found.right > 0, "no frame came out of the port that it was to: {found:?}");
    let rate = rounds as f64 * f64::from(CHANGED) / seconds;
    Ok([rate, found.wrong as f64, found.lost as f64])
}

#[cfg(test)]
mod tests {
    use openflow::flow::FlowModCommand;
    use openflow::text::format_flow_mod;

    use super::{entries, marked, output, round_of};

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
    fn marked_frames_are_known_again() {
        let frame = marked(3, 258);
        assert_eq!(frame.bytes().len(), 60);
        assert_eq!(round_of(frame.bytes()), Some(258));
        assert_eq!(round_of(&[0; 60]), None);
        assert_eq!(round_of(&[0; 10]), None);
    }
}
