//! The choice of a select group's bucket for a flow: weighted rendezvous hashing.
//!
//! Every bucket draws a number from the flow and from its own identity; the best one wins. Packets
//! of one flow always get the same bucket, shares follow the weights, and a bucket that comes,
//! goes or dies moves only its own share of the flows. There is no randomness and no state: the
//! same packet goes the same way in every datapath and in every run.

use openflow::group::Selection;
use openflow::{Field, GroupId};
use packet::FlowKey;

/// The fields that make a flow. Left out is what changes within one: ECN, TTLs, lengths, flags; and
/// the ingress port, so that both links of a bundle lead to the same bucket.
pub(crate) const FLOW_FIELDS: [Field; 21] = [
    Field::EthDst,
    Field::EthSrc,
    Field::EthType,
    Field::VlanVid,
    Field::IpProto,
    Field::Ipv4Src,
    Field::Ipv4Dst,
    Field::TcpSrc,
    Field::TcpDst,
    Field::UdpSrc,
    Field::UdpDst,
    Field::SctpSrc,
    Field::SctpDst,
    Field::ArpSpa,
    Field::ArpTpa,
    Field::Ipv6Src,
    Field::Ipv6Dst,
    Field::Ipv6Flabel,
    Field::MplsLabel,
    Field::PbbIsid,
    Field::TunnelId,
];

/// Fields that only the first fragment of a packet shows.
const TRANSPORT: [Field; 6] =
    [Field::TcpSrc, Field::TcpDst, Field::UdpSrc, Field::UdpDst, Field::SctpSrc, Field::SctpDst];

/// A flow's number. All fragments of a packet have the same one.
pub(crate) fn flow_hash(key: &FlowKey, is_fragment: bool) -> u64 {
    hash_of(FLOW_FIELDS.into_iter().map(|field| (field, u128::MAX)), key, is_fragment)
}

/// A flow's number by what a group wants its choice to follow from.
pub(crate) fn selection_hash(selection: &Selection, key: &FlowKey, is_fragment: bool) -> u64 {
    let Selection { param, fields, .. } = selection;
    let hash = match fields.as_slice() {
        [] => flow_hash(key, is_fragment),
        named => hash_of(named.iter().copied(), key, is_fragment),
    };
    if *param == 0 { hash } else { mix(hash ^ param) }
}

/// The hash of these bits of fields; those that a packet has not are zero.
fn hash_of(fields: impl Iterator<Item = (Field, u128)>, key: &FlowKey, is_fragment: bool) -> u64 {
    let mut hash = 0;
    for (field, bits) in fields {
        if is_fragment && TRANSPORT.contains(&field) {
            continue;
        }
        let value = key.get(field) & bits;
        hash = mix(hash ^ value as u64);
        if field.row().bits > 64 {
            hash = mix(hash ^ (value >> 64) as u64);
        }
    }
    hash
}

/// The winner among buckets given as (identity, weight); none when no weight is above zero.
///
/// Bucket i draws u from (0, 1) and scores -log2(u) / weight; the lowest score wins, which happens
/// with a probability of weight / sum of weights. Scores are compared as fractions, so that
/// nothing depends on floating point.
pub(crate) fn choose(group: GroupId, flow: u64, buckets: &[(u64, u16)]) -> Option<usize> {
    let salt = mix(flow ^ u64::from(group.0));
    let mut best: Option<(usize, u64, u16)> = None;
    for (index, (identity, weight)) in buckets.iter().enumerate() {
        let score = minus_log2(mix(salt ^ identity));
        let wins = best.is_none_or(|(_, lowest, of_weight)| {
            u128::from(score) * u128::from(of_weight) < u128::from(lowest) * u128::from(*weight)
        });
        if *weight > 0 && wins {
            best = Some((index, score, *weight));
        }
    }
    best.map(|(index, _, _)| index)
}

/// The summand of [`mix`]: 2^64 by the golden ratio, odd. Numbers so far apart are the states of
/// SplitMix64, whose outputs `mix` makes of them.
pub(crate) const MIX_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A bijection that spreads every input bit over all output bits (the finalizer of Stafford's
/// variant 13 of the 64-bit hash mixers, behind an added odd constant so that 0 does not stay 0).
pub(crate) fn mix(value: u64) -> u64 {
    let mut x = value.wrapping_add(MIX_STEP);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// -log2((x + 1) / 2^64) with 32 bits behind the point, by squaring a mantissa bit by bit.
fn minus_log2(x: u64) -> u64 {
    let x = u128::from(x) + 1;
    let whole = 127 - x.leading_zeros();
    // The mantissa lies in [1, 2) with 62 bits behind the point.
    let mut mantissa = if whole > 62 { x >> (whole - 62) } else { x << (62 - whole) };
    let mut fraction = 0_u64;
    for _ in 0..32 {
        mantissa = (mantissa * mantissa) >> 62;
        fraction <<= 1;
        if mantissa >> 63 != 0 {
            mantissa >>= 1;
            fraction |= 1;
        }
    }
    (64_u64 << 32) - (u64::from(whole) << 32 | fraction)
}

#[cfg(test)]
mod tests {
    use super::{choose, flow_hash, minus_log2, mix};
    use openflow::{Field, GroupId};
    use packet::FlowKey;

    const GROUP: GroupId = GroupId(1);

    fn shares(buckets: &[(u64, u16)], flows: u64) -> Vec<u64> {
        let mut counts = vec![0; buckets.len()];
        for flow in 0..flows {
            counts[choose(GROUP, mix(flow), buckets).unwrap()] += 1;
        }
        counts
    }

    #[test]
    fn the_logarithm_is_right_to_nine_digits() {
        for x in [0, 1, 2, 3, 1000, 1 << 40, u64::MAX / 3, u64::MAX - 1, u64::MAX] {
            let exact = 64.0 - ((x as f64) + 1.0).log2();
            let ours = minus_log2(x) as f64 / 2_f64.powi(32);
            assert!((exact - ours).abs() < 1e-8, "{x}: {exact} {ours}");
        }
    }

    #[test]
    fn shares_follow_the_weights() {
        let counts = shares(&[(1, 1), (2, 2), (3, 5), (4, 0)], 80_000);
        for (count, expected) in counts.iter().zip([10_000, 20_000, 50_000, 0]) {
            assert!(count.abs_diff(expected) < 700, "{counts:?}");
        }
        assert_eq!(choose(GROUP, 1, &[]), None);
        assert_eq!(choose(GROUP, 1, &[(1, 0)]), None);
    }

    #[test]
    fn a_bucket_that_goes_moves_its_own_flows_only() {
        let all = [(11, 3), (12, 1), (13, 2)];
        let without = [(11, 3), (13, 2)];
        for flow in 0..5_000 {
            let before = all[choose(GROUP, mix(flow), &all).unwrap()].0;
            let after = without[choose(GROUP, mix(flow), &without).unwrap()].0;
            assert!(before == 12 || before == after);
        }
    }

    #[test]
    fn chained_groups_choose_independently() {
        let buckets = [(1, 1), (2, 1)];
        let flows: Vec<u64> = (0..4_000).map(mix).collect();
        let first = flows.iter().filter(|flow| choose(GroupId(1), **flow, &buckets) == Some(0));
        let both = first.filter(|flow| choose(GroupId(2), **flow, &buckets) == Some(0)).count();
        assert!(both.abs_diff(1_000) < 150, "{both}");
    }

    #[test]
    fn fragments_of_a_packet_stay_together() {
        let mut first = FlowKey::default();
        first.set(Field::Ipv4Src, 1);
        let later = first.clone();
        first.set(Field::UdpSrc, 53);
        assert_eq!(flow_hash(&first, true), flow_hash(&later, true));
        assert_ne!(flow_hash(&first, false), flow_hash(&later, false));
    }
}
