//! The choice of one of several for a flow by Open vSwitch's actions: of a member of a bundle of
//! ports, and of a number.
//!
//! Packets of one flow always get the same one, flows are spread evenly, and by the algorithms that
//! promise it a member that comes or goes moves its own share of the flows only. The same packet
//! goes the same way in every datapath and in every run; the way need not be that of Open vSwitch.

use openflow::members::{BundleAlgorithm, HashFields, MultipathAlgorithm};
use openflow::{Action, Field, Members, PortNo};
use packet::FlowKey;

use crate::ports::Ports;
use crate::select::mix;

/// Fields of a source, with those of the destination.
const PAIRS: [(Field, Field); 6] = [
    (Field::EthSrc, Field::EthDst),
    (Field::Ipv4Src, Field::Ipv4Dst),
    (Field::Ipv6Src, Field::Ipv6Dst),
    (Field::TcpSrc, Field::TcpDst),
    (Field::UdpSrc, Field::UdpDst),
    (Field::SctpSrc, Field::SctpDst),
];

/// The number of a flow, spread over 64 bits.
pub(crate) fn hash(fields: HashFields, basis: u16, key: &FlowKey) -> u64 {
    let folded = |value: u128| mix(value as u64) ^ mix(!(value >> 64) as u64);
    let mut hash = mix(basis.into());
    for field in fields.fields() {
        let pair = PAIRS.iter().find(|(src, dst)| field == src || field == dst);
        let value = match pair.filter(|_| fields.is_symmetric()) {
            // Both directions come to the same; once for the two.
            Some((src, dst)) if field == src => {
                folded(key.get(*src)).wrapping_add(folded(key.get(*dst)))
            }
            Some(_) => continue,
            None => folded(key.get(*field)),
        };
        hash = mix(hash ^ value);
    }
    hash
}

/// The port of a bundle for a packet with this key, if one is live.
pub(crate) fn member(bundle: &Members, key: &FlowKey, ports: &Ports) -> Option<PortNo> {
    let live = |port: &PortNo| {
        let sends_always =
            matches!(*port, PortNo::IN_PORT | PortNo::NORMAL | PortNo::FLOOD | PortNo::ALL);
        sends_always || ports.is_live(*port)
    };
    let mut alive = bundle.members.iter().map(|member| member.port()).filter(live);
    match bundle.algorithm {
        BundleAlgorithm::ActiveBackup => alive.next(),
        BundleAlgorithm::Hrw => {
            let flow = hash(bundle.fields, bundle.basis, key);
            alive.max_by_key(|port| mix(flow ^ mix(port.0.into())))
        }
        BundleAlgorithm::Unknown(_) => None,
    }
}

/// The number of actions that an action counts as where those of a packet are bounded: a choice
/// among thousands takes as long as many others.
pub(crate) fn weight(action: &Action) -> usize {
    let choices = if let Action::Multipath { algorithm, max_link, .. } = action {
        if *algorithm == MultipathAlgorithm::Hrw { usize::from(*max_link) + 1 } else { 1 }
    } else {
        action.members().map_or(1, |bundle| bundle.members.len())
    };
    choices / 64 + 1
}

/// The number of a flow of this hash, up to `max_link`.
pub(crate) fn link(algorithm: MultipathAlgorithm, hash: u64, max_link: u16) -> u16 {
    let n_links = u64::from(max_link) + 1;
    let link = match algorithm {
        MultipathAlgorithm::ModuloN => hash % n_links,
        MultipathAlgorithm::HashThreshold => {
            ((u128::from(hash) * u128::from(n_links)) >> u64::BITS) as u64
        }
        MultipathAlgorithm::Hrw => {
            (0..n_links).max_by_key(|link| mix(hash ^ mix(*link))).unwrap_or_default()
        }
        MultipathAlgorithm::IterHash => {
            let all = n_links.next_power_of_two();
            let mut draw = hash;
            // More than half of all draws are a link.
            while draw % all >= n_links {
                draw = mix(draw);
            }
            draw % all
        }
        MultipathAlgorithm::Unknown(_) => 0,
    };
    u16::try_from(link).unwrap_or(max_link)
}

#[cfg(test)]
mod tests {
    use super::{hash, link, mix, weight};
    use openflow::Field;
    use openflow::members::{HashFields, MultipathAlgorithm};
    use openflow::text::parse_actions;
    use packet::FlowKey;

    #[test]
    fn flows_are_spread_evenly_over_links() {
        for algorithm in MultipathAlgorithm::ALL {
            for max_link in [0, 1, 2, 6, 9] {
                let mut counts = vec![0_u32; usize::from(max_link) + 1];
                for flow in 0..20_000 {
                    counts[usize::from(link(*algorithm, mix(flow), max_link))] += 1;
                }
                let even = 20_000 / (u32::from(max_link) + 1);
                assert!(counts.iter().all(|count| count.abs_diff(even) < 400), "{counts:?}");
            }
        }
    }

    #[test]
    fn a_choice_among_many_counts_as_many_actions() {
        let members = vec!["1"; 2_048].join(",");
        for (text, expected) in [
            ("output:1", 1),
            ("multipath(eth_src,0,hrw,65536,0,reg0[])", 1_025),
            ("multipath(eth_src,0,hrw,63,0,reg0[])", 1),
            ("multipath(eth_src,0,modulo_n,65536,0,reg0[])", 1),
            (&format!("bundle(eth_src,0,hrw,ofport,members:{members})"), 33),
            (&format!("bundle_load(eth_src,0,hrw,ofport,reg0[],members:{members})"), 33),
        ] {
            assert_eq!(weight(&parse_actions(text).unwrap()[0]), expected, "{text}");
        }
    }

    #[test]
    fn a_link_more_moves_the_flows_that_it_gets() {
        for flow in 0..2_000 {
            let (before, after) = (
                link(MultipathAlgorithm::Hrw, mix(flow), 4),
                link(MultipathAlgorithm::Hrw, mix(flow), 5),
            );
            assert!(before == after || after == 5);
        }
    }

    #[test]
    fn symmetric_fields_are_the_same_in_both_directions() {
        let mut there = FlowKey::default();
        let mut back = FlowKey::default();
        for (key, src, dst) in [(&mut there, 1, 2), (&mut back, 2, 1)] {
            for (from, to) in super::PAIRS {
                key.set(from, src);
                key.set(to, dst);
            }
        }
        for fields in HashFields::ALL {
            let same = hash(*fields, 7, &there) == hash(*fields, 7, &back);
            assert_eq!(same, fields.is_symmetric(), "{fields:?}");
            assert_ne!(hash(*fields, 7, &there), hash(*fields, 8, &there));
        }
        let mut other = there.clone();
        other.set(Field::UdpSrc, 9);
        let udp = HashFields::SymmetricL3L4Udp;
        assert_ne!(hash(udp, 7, &there), hash(udp, 7, &other));
        assert_eq!(
            hash(HashFields::SymmetricL4, 7, &there),
            hash(HashFields::SymmetricL4, 7, &other)
        );
    }
}
