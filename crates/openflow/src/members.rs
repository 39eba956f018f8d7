//! One of several by the flow that a packet belongs to: a member of a bundle of ports, or a number
//! (Nicira's `NXAST_BUNDLE`, `NXAST_BUNDLE_LOAD` and `NXAST_MULTIPATH`).
//!
//! The choice itself is the datapath's; text and bytes stand in `text::members` and in the crate
//! `wire`.

use crate::field::Field;
use crate::id::ShortPort;
use crate::numbered::numbered;
use crate::subfield::BitRange;

numbered! {
    /// The fields by which flows are told apart (`NX_HASH_FIELDS_*`). Those that are symmetric give
    /// both directions of a flow the same choice.
    pub enum HashFields: u16 {
        /// The Ethernet source address.
        EthSrc = 0 => "eth_src",
        /// Ethernet and IP addresses, EtherType, VLAN, IP protocol, and the ports of TCP and SCTP.
        SymmetricL4 = 1 => "symmetric_l4",
        /// IP addresses and protocol, and the ports of TCP and SCTP.
        SymmetricL3L4 = 2 => "symmetric_l3l4",
        /// The same with the ports of UDP.
        SymmetricL3L4Udp = 3 => "symmetric_l3l4+udp",
        /// The IP source address.
        NwSrc = 4 => "nw_src",
        /// The IP destination address.
        NwDst = 5 => "nw_dst",
        /// The IP addresses.
        SymmetricL3 = 6 => "symmetric_l3",
    }
}

numbered! {
    /// Choice of a bundle among its live members (`NX_BD_ALG_*`).
    pub enum BundleAlgorithm: u16 {
        /// The first of them.
        ActiveBackup = 0 => "active_backup",
        /// The one with the highest weight for the flow: a member that goes moves its own flows
        /// only.
        Hrw = 1 => "hrw",
    }
}

numbered! {
    /// Choice of a number below another (`NX_MP_ALG_*`).
    pub enum MultipathAlgorithm: u16 {
        /// The remainder of the flow's hash.
        ModuloN = 0 => "modulo_n",
        /// The part of the range of hashes that the flow's lies in.
        HashThreshold = 1 => "hash_threshold",
        /// The number with the highest weight for the flow.
        Hrw = 2 => "hrw",
        /// The first of several hashes of the flow, in as many bits as the numbers have, that is
        /// one of them.
        IterHash = 3 => "iter_hash",
    }
}

/// A bundle of ports.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Members {
    /// The fields that make a flow.
    pub fields: HashFields,
    /// A number that makes the choice another one than that of other bundles.
    pub basis: u16,
    /// The choice among the live members.
    pub algorithm: BundleAlgorithm,
    /// The ports, the best one first.
    pub members: Vec<ShortPort>,
    /// The bits that the number of the chosen port is written to; none for an output.
    pub dst: Option<(BitRange, Field)>,
}

/// Flows of Ethernet alone.
const ETH_SRC: &[Field] = &[Field::EthSrc];
const NW_SRC: &[Field] = &[Field::EthType, Field::Ipv4Src, Field::Ipv6Src];
const NW_DST: &[Field] = &[Field::EthType, Field::Ipv4Dst, Field::Ipv6Dst];
const L3: &[Field] =
    &[Field::EthType, Field::Ipv4Src, Field::Ipv4Dst, Field::Ipv6Src, Field::Ipv6Dst];
const L3L4: &[Field] = &[
    Field::EthType,
    Field::IpProto,
    Field::Ipv4Src,
    Field::Ipv4Dst,
    Field::Ipv6Src,
    Field::Ipv6Dst,
    Field::TcpSrc,
    Field::TcpDst,
    Field::SctpSrc,
    Field::SctpDst,
];
const L3L4_UDP: &[Field] = &[
    Field::EthType,
    Field::IpProto,
    Field::Ipv4Src,
    Field::Ipv4Dst,
    Field::Ipv6Src,
    Field::Ipv6Dst,
    Field::TcpSrc,
    Field::TcpDst,
    Field::SctpSrc,
    Field::SctpDst,
    Field::UdpSrc,
    Field::UdpDst,
];
const L4: &[Field] = &[
    Field::EthSrc,
    Field::EthDst,
    Field::EthType,
    Field::VlanVid,
    Field::IpProto,
    Field::Ipv4Src,
    Field::Ipv4Dst,
    Field::Ipv6Src,
    Field::Ipv6Dst,
    Field::TcpSrc,
    Field::TcpDst,
    Field::SctpSrc,
    Field::SctpDst,
];

impl HashFields {
    /// The fields themselves, of which packets have some.
    #[must_use]
    pub fn fields(self) -> &'static [Field] {
        match self {
            Self::EthSrc => ETH_SRC,
            Self::SymmetricL4 => L4,
            Self::SymmetricL3L4 => L3L4,
            Self::SymmetricL3L4Udp => L3L4_UDP,
            Self::NwSrc => NW_SRC,
            Self::NwDst => NW_DST,
            Self::SymmetricL3 => L3,
            Self::Unknown(_) => &[],
        }
    }

    /// Whether both directions of a flow are the same.
    #[must_use]
    pub fn is_symmetric(self) -> bool {
        match self {
            Self::SymmetricL4
            | Self::SymmetricL3L4
            | Self::SymmetricL3L4Udp
            | Self::SymmetricL3 => true,
            Self::EthSrc | Self::NwSrc | Self::NwDst | Self::Unknown(_) => false,
        }
    }
}
