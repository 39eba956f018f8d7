//! The error of a meter's rate: packets of one size at one offered rate through a drop band, on the
//! fast datapath, in virtual time.
//!
//! A meter lets its burst pass at first. So its rate is taken over ten seconds from its first drop
//! on; what had passed by then beyond the rate is shown beside it, as the burst.

use datapath::fast::{Fast, Sink};
use datapath::{Datapath, DatapathConfig, DropReason, NS_PER_S, Nanos};
use openflow::flow::{FlowMod, FlowModCommand};
use openflow::message::PacketIn;
use openflow::meter::{Band, BandKind, MeterFlags, MeterMod, MeterModCommand};
use openflow::port::{PortDesc, PortState};
use openflow::{Action, Instruction, MeterId, PortNo, QueueId, Version};
use packet::PacketBuf;

/// Seconds over which a rate is measured.
pub(crate) const SECONDS: u64 = 10;

/// Unit of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Kilobits per second.
    Kbps,
    /// Packets per second.
    Pktps,
}

/// One measurement to make.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point {
    /// Unit of the rate.
    pub(crate) unit: Unit,
    /// The meter's rate.
    pub(crate) rate: u32,
    /// `burst_size` in kilobits or packets; `None` without the flag `BURST`.
    pub(crate) burst: Option<u32>,
    /// Bytes of a frame without FCS.
    pub(crate) bytes: usize,
    /// The offered rate in packets per second.
    pub(crate) offered_pps: f64,
}

/// The rates of a measurement, in the unit of the meter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    /// Offered.
    pub(crate) offered: f64,
    /// Passed.
    pub(crate) passed: f64,
    /// Passed beyond the rate before the first drop.
    pub(crate) burst: f64,
    /// Difference between the rate that passed and the one that should have, in percent.
    pub(crate) error_percent: f64,
}

/// Counts what leaves and keeps the buffer.
#[derive(Default)]
struct Count {
    left: u64,
    frame: Option<PacketBuf>,
}

impl Sink for Count {
    fn output(&mut self, _port: PortNo, _queue: Option<QueueId>, frame: PacketBuf) {
        self.left += 1;
        self.frame = Some(frame);
    }

    fn packet_in(&mut self, _message: PacketIn, _max_len: u16) {}

    fn dropped(&mut self, _reason: DropReason) {}

    fn done(&mut self, frame: PacketBuf) {
        self.frame = Some(frame);
    }

    fn spare(&mut self) -> PacketBuf {
        PacketBuf::default()
    }
}

fn datapath(point: &Point) -> Fast {
    let mut dp = Fast::new(DatapathConfig { n_tables: 1, ..DatapathConfig::default() }, 1);
    for number in 1..=2 {
        let (port_no, state) = (PortNo(number), PortState::LIVE);
        dp.port_set(PortDesc { port_no, state, ..PortDesc::default() }, Nanos(0));
    }
    let unit = match point.unit {
        Unit::Kbps => MeterFlags::KBPS,
        Unit::Pktps => MeterFlags::PKTPS,
    };
    let burst = if point.burst.is_some() { MeterFlags::BURST } else { MeterFlags::empty() };
    let meter_mod = MeterMod {
        command: MeterModCommand::Add,
        flags: unit | burst,
        meter_id: MeterId(1),
        bands: vec![Band {
            kind: BandKind::Drop,
            rate: point.rate,
            burst_size: point.burst.unwrap_or(0),
        }],
    };
    dp.meter_mod(&meter_mod, Nanos(0)).unwrap_or_else(|error| panic!("the meter: {error}"));
    let mut add = FlowMod::new(FlowModCommand::Add);
    let output = vec![Action::output(PortNo(2))];
    add.instructions = vec![Instruction::Meter(MeterId(1)), Instruction::ApplyActions(output)];
    let added = dp.flow_mod(&add, Version::V1_3, Nanos(0));
    added.unwrap_or_else(|error| panic!("the entry: {error}"));
    dp
}

/// Measures one point.
#[must_use]
pub(crate) fn measure(point: &Point) -> Measured {
    let mut dp = datapath(point);
    let mut sink = Count { frame: Some(PacketBuf::from_slice(&vec![0; point.bytes])), left: 0 };
    let mut batch = Vec::with_capacity(1);
    // Packet n comes at n / offered_pps seconds, rounded once.
    let gap_ns = NS_PER_S as f64 / point.offered_pps;
    let per_packet = match point.unit {
        Unit::Kbps => point.bytes as f64 * 8.0 / 1_000.0,
        Unit::Pktps => 1.0,
    };
    let (mut number, mut warm, mut begin) = (0_u64, 0_u64, None);
    loop {
        let now = Nanos((number as f64 * gap_ns) as u64);
        // Where nothing is dropped there is nothing to wait for.
        if begin.is_none() && (sink.left < number || now.0 >= SECONDS * NS_PER_S) {
            (warm, begin) = (sink.left, Some((now, number)));
        }
        if let Some((from, first)) = begin
            && now.0 >= from.0 + SECONDS * NS_PER_S
        {
            let passed = (sink.left - warm) as f64 * per_packet / SECONDS as f64;
            let offered = (number - first) as f64 * per_packet / SECONDS as f64;
            let expected = offered.min(f64::from(point.rate));
            let had = from.0 as f64 / NS_PER_S as f64 * f64::from(point.rate);
            return Measured {
                offered,
                passed,
                burst: (warm as f64 * per_packet - had).max(0.0),
                error_percent: (passed - expected) / expected * 100.0,
            };
        }
        batch.extend(sink.frame.take());
        dp.process_batch(&mut batch, PortNo(1), now, &mut sink);
        number += 1;
    }
}
