//! Frames of 64 bytes as fast as Weir's generator hands them to a packet socket of a host, and how
//! many the device of another host takes in.
//!
//! What came is counted by the kernel at the far host's device, so that no receiver takes the cores
//! that a switch needs. Where what came is what was sent, the sender was the limit.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use generator::profile::{FieldModifier, Modifier, ModifierOp, Rate, StreamSpec, TupleModifier};
use generator::session::{Session, SessionOptions, StartOptions};
use netdev::open_text;
use openflow::MacAddr;

use super::bed::{NOBODY, PortsTestbed, address};
use super::dut::RunningDut;
use crate::bench::common::Run;
use crate::testbed::netns::HOST_DEVICE;

/// Load before what is measured: caches are filled, and the kernel tier has its decisions.
const WARM_UP: Duration = Duration::from_millis(500);

/// A line that carries any rate.
const LINE_BPS: f64 = 1e13;

/// UDP ports of a flow that is one.
const PORTS: (u16, u16) = (1_000, 2_000);

/// Many flows: as many source ports, from this one on.
pub(super) const MANY: u16 = 10_000;
pub(super) const FLOW_PORTS_FROM: u16 = 20_000;

/// Flows whose entries are changed, the first of these; and how many of their packets a second
/// meet the changes.
pub(super) const CHANGED: u16 = 500;
const CHANGED_PPS: f64 = 50_000.0;

/// Which flows are sent.
#[derive(Clone, Debug)]
pub(super) enum Flows {
    /// One, from the first of the many source ports.
    One,
    /// So many source ports in turn.
    Many,
    /// Another one with each packet.
    New,
    /// Those whose entries are changed, in turn and at a rate that leaves room; to nobody, so that
    /// no host has to answer.
    Changed,
    /// Pairs of IPv4 addresses, in turn.
    Addresses(Vec<[String; 2]>),
}

impl Flows {
    fn stream(&self, from: usize, to: usize) -> StreamSpec {
        let (near, far) = (address(from), address(to));
        let far_mac = if matches!(self, Self::Changed) { NOBODY } else { far.mac };
        let (src_mac, dst_mac) = (MacAddr(near.mac), MacAddr(far_mac));
        let src_port = match self {
            Self::One | Self::Many | Self::New | Self::Changed => FLOW_PORTS_FROM,
            Self::Addresses(_) => PORTS.0,
        };
        let packet = format!(
            "eth(src={src_mac},dst={dst_mac})/ipv4(src={},dst={})/udp(src={src_port},dst={})",
            near.ip, far.ip, PORTS.1
        );
        let modifiers = match self {
            Self::One => Vec::new(),
            Self::Many => vec![ports_of(MANY)],
            Self::Changed => vec![ports_of(CHANGED)],
            Self::New => ["udp.src", "udp.dst", "ipv4.dst"]
                .map(|field| Modifier::Field(FieldModifier::new(field, ModifierOp::Random)))
                .to_vec(),
            Self::Addresses(pairs) => vec![Modifier::Tuples(TupleModifier {
                fields: ["ipv4.src", "ipv4.dst"].map(str::to_owned).to_vec(),
                tuples: pairs
                    .iter()
                    .map(|pair| pair.iter().map(|text| text.as_str().into()).collect())
                    .collect(),
            })],
        };
        let name = format!("from-{}", from + 1);
        let rate = match self {
            Self::Changed => Rate::PacketsPerSecond(CHANGED_PPS),
            Self::One | Self::Many | Self::New | Self::Addresses(_) => Rate::Max,
        };
        StreamSpec { name, packet, modifiers, rate, ..StreamSpec::default() }
    }
}

/// So many source ports in turn.
fn ports_of(count: u16) -> Modifier {
    Modifier::Field(FieldModifier {
        min: Some(u64::from(FLOW_PORTS_FROM).into()),
        max: Some(u64::from(FLOW_PORTS_FROM + count - 1).into()),
        ..FieldModifier::new("udp.src", ModifierOp::Increment)
    })
}

/// A host that sends to another until this value goes.
pub(super) struct Flood {
    _session: Session,
}

impl Flood {
    /// Starts sending.
    ///
    /// # Errors
    /// The port cannot be opened.
    pub(super) fn start(bed: &PortsTestbed, from: usize, to: usize, flows: &Flows) -> Result<Self> {
        let text = format!("af_packet:{HOST_DEVICE}");
        let port = bed.host(from).enter(|| open_text(&text))??;
        let never = u64::MAX;
        let options = SessionOptions {
            line_rate_bps: vec![LINE_BPS],
            late_after_ns: never,
            unsent_after_ns: never,
            ..SessionOptions::default()
        };
        let mut session = Session::from_ports(vec![port], options)?;
        session.load(0, &[flows.stream(from, to)])?;
        session.start(&[0], &StartOptions::default())?;
        Ok(Self { _session: session })
    }
}

/// What hosts have taken in at a moment.
#[derive(Debug)]
struct Arrivals {
    at: Instant,
    packets: Vec<u64>,
}

impl Arrivals {
    fn read(bed: &PortsTestbed, hosts: &[usize]) -> Result<Self> {
        let read = |host: &usize| Ok(bed.host_stats(*host)?.rx_packets);
        let packets = hosts.iter().map(read).collect::<Result<Vec<_>>>()?;
        Ok(Self { at: Instant::now(), packets })
    }

    /// Thousands of packets a second since `first`, by host.
    fn kpps_since(&self, first: &Self) -> Vec<f64> {
        let seconds = self.at.duration_since(first.at).as_secs_f64().max(1e-9);
        let pairs = self.packets.iter().zip(&first.packets);
        pairs.map(|(now, then)| now.saturating_sub(*then) as f64 / seconds / 1e3).collect()
    }
}

/// Thousands of packets a second that these hosts take in while something is sent.
///
/// # Errors
/// What the kernel says, or the run was interrupted.
pub(super) fn kpps(bed: &PortsTestbed, hosts: &[usize], run: &Run) -> Result<Vec<f64>> {
    run.cancel.sleep(WARM_UP)?;
    let first = Arrivals::read(bed, hosts)?;
    run.cancel.sleep(Duration::from_secs_f64(run.window.seconds))?;
    Ok(Arrivals::read(bed, hosts)?.kpps_since(&first))
}

/// Thousands of packets a second that come from host 1 to host 2.
///
/// # Errors
/// The port cannot be opened, nothing came, or the run was interrupted.
pub(super) fn forwarded(dut: &RunningDut, flows: &Flows, run: &Run) -> Result<f64> {
    let _flood = Flood::start(&dut.bed, 0, 1, flows)?;
    let came = kpps(&dut.bed, &[1], run)?.first().copied().context("no host")?;
    ensure!(came > 0.0, "no frame has come");
    Ok(came)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use generator::profile::Modifier;

    use super::{Arrivals, Flows};

    #[test]
    fn rates_are_what_came_by_time() {
        let at = Instant::now();
        let first = Arrivals { at, packets: vec![5, 100] };
        let last = Arrivals { at: at + Duration::from_millis(500), packets: vec![5, 1_100] };
        assert_eq!(last.kpps_since(&first), [0.0, 2.0]);
    }

    #[test]
    fn flows_differ_in_what_they_are_said_to_differ_in() {
        let stream = |flows: Flows| flows.stream(0, 1);
        let one = stream(Flows::One);
        assert!(one.modifiers.is_empty(), "{one:?}");
        assert!(one.packet.contains("src=10.0.0.1,dst=10.0.0.2"), "{one:?}");
        let Modifier::Field(many) = &stream(Flows::Many).modifiers[0] else { panic!() };
        assert_eq!(many.field, "udp.src");
        assert_eq!(stream(Flows::New).modifiers.len(), 3);
        assert!(stream(Flows::Changed).packet.contains("dst=02:00:00:00:00:ff"));
        let pairs = vec![["10.1.0.0".to_owned(), "10.2.0.0".to_owned()]];
        let Modifier::Tuples(both) = &stream(Flows::Addresses(pairs)).modifiers[0] else {
            panic!()
        };
        assert_eq!((both.fields.len(), both.tuples.len()), (2, 1));
    }
}
