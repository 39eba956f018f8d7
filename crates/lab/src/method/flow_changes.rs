//! Flow entries that are changed as fast as a switch says that they are in force, while their flows
//! have packets; and whether one packet is decided by what was before.
//!
//! Each round sends all flows out of another port and waits for the barrier reply. Then marked
//! frames of some of the flows are sent: every one has to come out of the new port, and all have
//! come before the next round begins. Beside them other frames of all flows go on all the time, so
//! that there are decisions in caches, and in the kernel, which a change has to end.

use std::time::{Duration, Instant};

use generator::profile::{FieldModifier, FrameSize, Modifier, ModifierOp, Rate, StreamSpec};
use netdev::{Port, PortError, open_text};
use openflow::MacAddr;
use openflow::flow::{FlowMod, FlowModCommand};
use openflow::text::parse_flow_mod;
use packet::build::{FrameBuilder, Ipv4};
use packet::{Batch, PacketBuf};

use super::flood::{Flood, WARM_UP, device_error};
use super::{Method, MethodContext, Metric, Trial, TrialError, channel_error, four_hosts};
use crate::hosts::{HOST_DEVICE, HostAddress, host_address};
use crate::settings::Settings;
use crate::switch_client::SwitchClient;
use crate::testbed::netns::NetnsTestbed;

/// Flow entries, and flows, where the cell does not count them.
const ENTRIES: u64 = 500;

/// Packets a second of the flows under change, unless the cell sets a rate.
const RATE_PPS: f64 = 50_000.0;

/// The first flow's source port.
const PORTS_FROM: u16 = 20_000;

/// An Ethernet address that no host has, so that none answers.
const NOBODY: [u8; 6] = [2, 0, 0, 0, 0, 0xff];

/// The ports that flows go out of in turn, from this number on; as many hosts are behind them.
const OUTPUTS: usize = 3;

/// Flows of a round that have marked frames, and how many each: a decision gets its place in the
/// kernel with the second.
const MARKED: u16 = 16;
const FRAMES: usize = 3;

/// Beginning of a marked frame after its headers.
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

pub(super) const FLOW_CHANGES: Method = Method {
    id: "flow-changes",
    label: "Flow changes",
    about: "`count` flows (500) with `rate_pps` packets a second are sent out of another of three \
            ports, up to the barrier reply, again and again: how many entries a second, and how \
            many frames behind a reply were decided by what was before, or lost",
    metrics: &[
        Metric::higher(
            "flow_changes_ps",
            "flow entries changed while packets meet them",
            "changes/s",
            0,
        ),
        Metric::lower("flow_changes_wrong", "frames decided by what was before", "frames", 0),
        Metric::lower("flow_changes_lost", "frames lost behind a change", "frames", 0),
    ],
    cost: |settings| Duration::from_secs_f64(settings.duration_s()) + WARM_UP,
    fits: four_hosts,
    run,
    ..Method::USUAL
};

fn run(context: &MethodContext<'_>) -> Result<Trial, TrialError> {
    let bed = context.bed.kernel().ok_or(TrialError::Unfit("no kernel hosts"))?;
    let mut client = context.client("has no flow entries")?;
    let flows = flows(context.settings)?;
    let (measured, load) = context.observe(|| measure(bed, &mut client, flows, context));
    // As the cell was set up, for what is measured next, also where measuring failed.
    let gone = entries(FlowModCommand::DeleteStrict, flows, None)
        .and_then(|entries| load_entries(&mut client, &entries, context));
    let (count, rounds, seconds) = measured?;
    gone?;
    if count.right == 0 {
        return Err(wrong(format!("no frame came out of the port that it was to: {count:?}")));
    }
    let changes = rounds as f64 * f64::from(flows);
    Ok(Trial {
        values: vec![
            ("flow_changes_ps", changes / seconds),
            ("flow_changes_wrong", count.wrong as f64),
            ("flow_changes_lost", count.lost as f64),
        ],
        tool: "the lab's OpenFlow client and packet sockets".into(),
        load,
        raw: serde_json::json!({
            "rounds": rounds,
            "right": count.right,
            "rounds_without_room_at_a_host": count.unknown_rounds,
        }),
        ..Trial::default()
    })
}

fn wrong(what: String) -> TrialError {
    TrialError::Output { program: "flow-changes", what }
}

fn port_error(error: PortError) -> TrialError {
    device_error(std::io::Error::other(error))
}

/// Number of flows: more than have marked frames, and no more than source ports.
fn flows(settings: &Settings) -> Result<u16, TrialError> {
    let count = settings.count.unwrap_or(ENTRIES);
    let most = u16::MAX - PORTS_FROM;
    u16::try_from(count)
        .ok()
        .filter(|count| (MARKED..=most).contains(count))
        .ok_or_else(|| wrong(format!("count = {count}: use {MARKED} to {most}")))
}

/// An entry for each flow, out of a port where the command takes actions.
fn entries(
    command: FlowModCommand,
    flows: u16,
    to: Option<usize>,
) -> Result<Vec<FlowMod>, TrialError> {
    let actions = to.map(|to| format!(",actions=output:{to}")).unwrap_or_default();
    let entry = |flow: u16| {
        let text = format!("in_port=1,udp,udp_src={}{actions}", PORTS_FROM + flow);
        parse_flow_mod(&text, command).map_err(|error| wrong(format!("{text}: {error}")))
    };
    (0..flows).map(entry).collect()
}

fn load_entries(
    client: &mut SwitchClient,
    entries: &[FlowMod],
    context: &MethodContext<'_>,
) -> Result<(), TrialError> {
    let loaded = client.load(entries.iter().cloned().map(Ok));
    loaded.map(drop).map_err(|error| channel_error(&error, context))
}

/// Frames of all flows in turn, to nobody.
fn background(flows: u16, settings: &Settings) -> StreamSpec {
    let (near, far) = (host_address(0), HostAddress { mac: NOBODY, ..host_address(1) });
    let (src, dst) = (MacAddr(near.mac), MacAddr(far.mac));
    let packet = format!(
        "eth(src={src},dst={dst})/ipv4(src={},dst={})/udp(src={PORTS_FROM},dst=2000)",
        near.ip, far.ip
    );
    let ports = FieldModifier {
        min: Some(u64::from(PORTS_FROM).into()),
        max: Some(u64::from(PORTS_FROM + flows - 1).into()),
        ..FieldModifier::new("udp.src", ModifierOp::Increment)
    };
    StreamSpec {
        packet,
        modifiers: vec![Modifier::Field(ports)],
        size: FrameSize::Fixed(settings.frame_size()),
        rate: Rate::PacketsPerSecond(settings.rate_pps.unwrap_or(RATE_PPS)),
        ..StreamSpec::default()
    }
}

/// Counts of the marked frames, the number of rounds, and their seconds.
fn measure(
    bed: &NetnsTestbed,
    client: &mut SwitchClient,
    flows: u16,
    context: &MethodContext<'_>,
) -> Result<(MarkedCount, u64, f64), TrialError> {
    load_entries(client, &entries(FlowModCommand::Add, flows, Some(output(0)))?, context)?;
    let _background = Flood::start(bed, 0, background(flows, context.settings))?;
    context.cancel.sleep(WARM_UP)?;
    let mut hosts = Hosts::open(bed)?;
    let of = |round| entries(FlowModCommand::ModifyStrict, flows, Some(output(round)));
    let changes = (0..OUTPUTS as u64).map(of).collect::<Result<Vec<_>, _>>()?;
    let (mut count, mut rounds, begun) = (MarkedCount::default(), 0_u64, Instant::now());
    while begun.elapsed().as_secs_f64() < context.settings.duration_s() {
        rounds += 1;
        load_entries(client, &changes[(rounds % OUTPUTS as u64) as usize], context)?;
        hosts.check(rounds, &mut count, context)?;
    }
    Ok((count, rounds, begun.elapsed().as_secs_f64()))
}

/// A marked frame of a flow.
fn marked(flow: u16, round: u64) -> PacketBuf {
    let near = host_address(0);
    let payload: Vec<u8> = MARK.into_iter().chain(round.to_be_bytes()).chain([0; 2]).collect();
    let headers = FrameBuilder::ethernet(MacAddr(NOBODY), MacAddr(near.mac))
        .ipv4(Ipv4::new(near.ip, host_address(1).ip));
    let frame = headers.udp(PORTS_FROM + flow, 2_000).payload(&payload).build();
    PacketBuf::from_slice(&frame)
}

/// The round that a frame was marked in, if it was.
fn round_of(frame: &[u8]) -> Option<u64> {
    let marks = frame.get(HEADERS_LEN..)?.strip_prefix(&MARK)?;
    Some(u64::from_be_bytes(marks.get(..8)?.try_into().ok()?))
}

/// Fate of the marked frames of one measurement.
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
    fn open(bed: &NetnsTestbed) -> Result<Self, TrialError> {
        let open = |host: usize, options: &str| -> Result<Port, TrialError> {
            let text = format!("af_packet:{HOST_DEVICE}{options}");
            let opened = bed.host(host).enter(|| open_text(&text)).map_err(device_error)?;
            opened.map_err(|error| device_error(std::io::Error::other(error)))
        };
        let slots = format!("?slots={FAR_SLOTS}");
        let far = (1..=OUTPUTS).map(|host| open(host, &slots)).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { near: open(0, "")?, far, came: Batch::default() })
    }

    /// Takes what waits at the far hosts, so that there is room for what comes next.
    fn empty(&mut self) -> Result<(), TrialError> {
        for port in &mut self.far {
            // Others' frames go on coming: no more than the ring can hold.
            for _ in 0..FAR_SLOTS.div_ceil(TAKEN) {
                self.came.clear();
                if port.rx(&mut self.came, TAKEN).map_err(port_error)? == 0 {
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
    fn check(
        &mut self,
        round: u64,
        count: &mut MarkedCount,
        context: &MethodContext<'_>,
    ) -> Result<(), TrialError> {
        self.empty()?;
        let without_room = self.without_room();
        let frames: Vec<PacketBuf> =
            (0..MARKED).flat_map(|flow| [flow; FRAMES]).map(|flow| marked(flow, round)).collect();
        let begun = Instant::now();
        let mut sent = 0;
        while sent < frames.len() {
            sent += self.near.tx(&frames[sent..]).map_err(port_error)?;
            if begun.elapsed() >= STUCK {
                return Err(wrong("a host cannot send".to_owned()));
            }
            context.cancel.check()?;
        }
        let (begun, mut missing) = (Instant::now(), frames.len() as u64);
        while missing > 0 && begun.elapsed() < LOST {
            for (host, port) in self.far.iter_mut().enumerate() {
                self.came.clear();
                port.rx(&mut self.came, TAKEN).map_err(port_error)?;
                let rounds = self.came.frames().iter().filter_map(|frame| round_of(frame.bytes()));
                for _ in rounds.filter(|marked| *marked == round) {
                    missing = missing.saturating_sub(1);
                    let is_right = output(round) == host + 2;
                    count.right += u64::from(is_right);
                    count.wrong += u64::from(!is_right);
                }
            }
            context.cancel.check()?;
        }
        count.miss(missing, self.without_room().saturating_sub(without_room));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use openflow::flow::FlowModCommand;
    use openflow::text::format_flow_mod;

    use super::{MarkedCount, entries, flows, marked, output, round_of};
    use crate::settings::Settings;

    #[test]
    fn a_round_has_another_port_than_the_ones_beside_it() {
        for round in 0..9 {
            assert_ne!(output(round), output(round + 1));
            assert_ne!(output(round), output(round + 2), "a late decision is told from a new one");
            assert!((2..=4).contains(&output(round)));
        }
        let all = entries(FlowModCommand::Add, 500, Some(output(1))).unwrap();
        assert_eq!(all.len(), 500);
        assert!(format_flow_mod(&all[0]).contains("output:3"), "{:?}", all[0]);
        let gone = entries(FlowModCommand::DeleteStrict, 500, None).unwrap();
        assert_eq!(gone[499].matching, all[499].matching);
    }

    #[test]
    fn a_count_that_has_no_ports_is_an_error() {
        let flows = |count| flows(&Settings { count, ..<_>::default() });
        assert_eq!(flows(None).unwrap(), 500);
        assert_eq!(flows(Some(16)).unwrap(), 16);
        for wrong in [15, 45_536, 1 << 40] {
            let error = flows(Some(wrong)).unwrap_err().to_string();
            assert!(error.contains("use 16 to 45535"), "{error}");
        }
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
