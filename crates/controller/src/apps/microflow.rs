//! The match of one packet's flow in OpenFlow 1.0: every field of the twelve-tuple that it has.
//!
//! 1.0 has one table, so an app cannot judge a packet there and let another table forward it. It
//! judges the first packet of a flow itself and leaves an entry for exactly that flow.

use openflow::field::FIELDS;
use openflow::{Field, Match, PortNo, Version};
use packet::header::ethernet;
use packet::{FlowKey, Meta, extract};

/// The key that rules are held against: the packet's fields and its ingress port.
pub(super) fn key_of(frame: &[u8], in_port: PortNo) -> FlowKey {
    extract(frame, &Meta::port(in_port))
}

/// The match of all packets that look like this one.
pub(super) fn microflow(key: &FlowKey) -> Match {
    let ether_type = key.get(Field::EthType);
    // The twelve-tuple has addresses, protocol and ports of IPv4 and ARP alone.
    let is_ipv4 = ether_type == u128::from(ethernet::IPV4);
    let is_arp = ether_type == u128::from(ethernet::ARP);
    let mut matching = Match::any().with(Field::VlanVid, key.get(Field::VlanVid));
    for row in FIELDS {
        let is_of_link = matches!(
            row.field,
            Field::InPort | Field::EthDst | Field::EthSrc | Field::EthType | Field::VlanPcp
        );
        let is_of_tuple = row.since <= Version::OLDEST && row.field != Field::VlanVid;
        if is_of_tuple && key.has(row.field) && (is_of_link || is_ipv4 || is_arp) {
            matching.set(row.field, key.get(row.field), row.field.full_mask());
        }
    }
    matching
}
