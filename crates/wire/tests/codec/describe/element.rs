//! Ports, queues, buckets and bands in os-ken's words.

use openflow::group::Bucket;
use openflow::meter::{Band, BandKind};
use openflow::port::{PacketQueue, PortDesc, PortState, QueueProperty};
use openflow::{PortNo, Version};
use serde_json::{Value, json};

use super::class;
use super::flow;

pub(crate) fn list<T>(all: &[T], describe: impl Fn(&T) -> Value) -> Value {
    Value::Array(all.iter().map(describe).collect())
}

/// The number as the version has it.
pub(crate) fn port_no(version: Version, port: PortNo) -> Value {
    match version.has_oxm() {
        false => (port.0 & 0xffff).into(),
        true => port.0.into(),
    }
}

/// Copper, fibre, autonegotiation and pause lie four bits lower in 1.0.
pub(crate) fn features(version: Version, bits: u32) -> u32 {
    match version.has_oxm() {
        false => bits & 0x7f | bits >> 4 & 0xf80,
        true => bits,
    }
}

/// The port states of the spanning tree share two bits in 1.0; blocked is both.
fn state(version: Version, state: PortState) -> u32 {
    match version.has_oxm() {
        false if state.contains(PortState::BLOCKED) => state.bits() & 0x101 | 0x300,
        false => state.bits() & 0x301,
        true => state.bits(),
    }
}

pub(crate) fn port(version: Version, port: &PortDesc) -> Value {
    let mut members = json!({
        "port_no": port_no(version, port.port_no),
        "hw_addr": port.hw_addr.to_string(),
        "name": port.name,
        "config": port.config.bits(),
        "state": state(version, port.state),
        "curr": features(version, port.curr.bits()),
        "advertised": features(version, port.advertised.bits()),
        "supported": features(version, port.supported.bits()),
        "peer": features(version, port.peer.bits()),
    });
    match version.has_oxm() {
        false => class("OFPPhyPort", members),
        true => {
            members["curr_speed"] = port.curr_speed_kbps.into();
            members["max_speed"] = port.max_speed_kbps.into();
            class("OFPPort", members)
        }
    }
}

pub(crate) fn bucket(bucket: &Bucket) -> Value {
    let members = json!({
        "weight": bucket.weight,
        "watch_port": bucket.watch_port.0,
        "watch_group": bucket.watch_group.0,
        "actions": flow::actions(Version::V1_3, &bucket.actions),
    });
    class("OFPBucket", members)
}

pub(crate) fn band(band: &Band) -> Value {
    let (name, number) = match band.kind {
        BandKind::Drop => ("OFPMeterBandDrop", 1),
        BandKind::DscpRemark { .. } => ("OFPMeterBandDscpRemark", 2),
        BandKind::Experimenter { .. } => ("OFPMeterBandExperimenter", 0xffff),
    };
    let mut members = json!({ "type": number, "rate": band.rate, "burst_size": band.burst_size });
    match band.kind {
        BandKind::Drop => {}
        BandKind::DscpRemark { prec_level } => members["prec_level"] = prec_level.into(),
        BandKind::Experimenter { experimenter } => members["experimenter"] = experimenter.into(),
    }
    class(name, members)
}

/// In 1.0 the port is given once for all queues.
pub(crate) fn queue(version: Version, queue: &PacketQueue) -> Value {
    let mut members = json!({
        "queue_id": queue.queue_id.0,
        "properties": list(&queue.properties, property),
    });
    if version.has_oxm() {
        members["port"] = queue.port.0.into();
    }
    class("OFPPacketQueue", members)
}

fn property(property: &QueueProperty) -> Value {
    match property {
        QueueProperty::MinRate(rate) => {
            class("OFPQueuePropMinRate", json!({ "property": 1, "rate": rate }))
        }
        QueueProperty::MaxRate(rate) => {
            class("OFPQueuePropMaxRate", json!({ "property": 2, "rate": rate }))
        }
        QueueProperty::Experimenter { experimenter, data } => class(
            "OFPQueuePropExperimenter",
            json!({ "property": 0xffff, "experimenter": experimenter, "data": data }),
        ),
        QueueProperty::Unknown { property, .. } => panic!("os-ken has no property {property}"),
    }
}
