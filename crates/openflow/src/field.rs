//! The match fields: one row each (clause 7.2.3 of OpenFlow 1.3).
//!
//! A row is all that a field is: its name and number, its width, whether a mask is allowed, what
//! the packet must be for it to exist, whether set-field may write it, and where it lies in a
//! packet. Codec, checks, text, table features, the flow key and the reference page are derived
//! from these rows. Behaviour never goes in here.

use crate::version::Version;

/// The class of the basic match fields, `OFPXMC_OPENFLOW_BASIC`.
pub const OXM_CLASS_BASIC: u16 = 0x8000;

/// The class of Nicira's extensible match (`OFPXMC_NXM_1`), of which Open vSwitch's registers are.
pub const OXM_CLASS_NXM_1: u16 = 0x0001;

/// The class of experimenters' fields, `OFPXMC_EXPERIMENTER`; the owner stands before the value.
pub const OXM_CLASS_EXPERIMENTER: u16 = 0xffff;

/// The class of packet registers, `OFPXMC_PACKET_REGS`: registers of 64 bits.
pub const OXM_CLASS_PACKET_REGS: u16 = 0x8001;

/// In `VLAN_VID`: a tag is present (`OFPVID_PRESENT`). A value of zero means that there is none.
pub const VID_PRESENT: u128 = 0x1000;

/// Header that holds a field, for the row-driven reader and the reference page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// Destination, source and EtherType of the frame.
    Ethernet,
    /// The outermost VLAN tag, from its TCI on.
    Vlan,
    /// The outermost MPLS label stack entry.
    Mpls,
    /// The PBB I-TAG, from its flags on.
    Pbb,
    /// ARP for IPv4 over Ethernet.
    Arp,
    /// IPv4.
    Ipv4,
    /// IPv6, the fixed header.
    Ipv6,
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
    /// ICMP.
    Icmpv4,
    /// ICMPv6.
    Icmpv6,
}

/// Source of a field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Not in the packet: given by the port or written by the pipeline.
    Meta,
    /// A register of this number: not in the packet, zero when it comes in.
    Register(u8),
    /// Several registers as one: the first of them, which has the highest bits, and their number.
    Registers(u8, u8),
    /// At a fixed bit offset in one of these headers, whichever the packet has.
    At(&'static [(Header, u16)]),
    /// Found by parsing: behind a chain of headers or options, or computed from several bits.
    Parsed,
}

impl Place {
    /// Whether no byte of the packet shows the value.
    #[must_use]
    pub const fn is_beside_packet(self) -> bool {
        matches!(self, Self::Meta | Self::Register(_) | Self::Registers(..))
    }
}

/// Notation of a field's value in `ovs-ofctl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A decimal number.
    Dec,
    /// A hexadecimal number with `0x`.
    Hex,
    /// A port number or a reserved port's name.
    Port,
    /// An Ethernet address.
    Mac,
    /// An IPv4 address; a mask as prefix length or as an address.
    Ipv4,
    /// An IPv6 address; a mask as prefix length or as an address.
    Ipv6,
    /// Flags of TCP: their names, or `+` and `-` with the names of those that are looked at.
    TcpFlags,
    /// Whether a packet is a fragment: `no`, `yes`, `first`, `later`, `not_later`.
    Fragment,
}

/// Field that a match must also hold for this one to be allowed (clause 7.2.3.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prereq {
    /// Nothing.
    None,
    /// The field itself, with any value.
    Present(Field),
    /// `VLAN_VID` with a value other than "no tag".
    VlanTag,
    /// The field, unmasked, with one of these values.
    OneOf(Field, &'static [u128]),
}

/// One match field's row.
#[derive(Clone, Copy, Debug)]
pub struct FieldRow {
    /// The field.
    pub field: Field,
    /// The specification's name in lower case, as Ryu and os-ken use it: `ipv4_src`.
    pub name: &'static str,
    /// The name that `ovs-ofctl` prints in a match: `nw_src`. `tp_src`, `icmp_type` and the like
    /// name several fields there: the protocol beside them says which.
    pub text: &'static str,
    /// The name that `ovs-ofctl` prints in a set-field action: `ip_src`.
    pub set_text: &'static str,
    /// Notation of a value.
    pub format: Format,
    /// The first paragraph of its documentation.
    pub doc: &'static str,
    /// Ryu's name of it.
    pub ryu: RyuName,
    /// Further names that the parser takes.
    pub aliases: &'static [&'static str],
    /// OXM class: [`OXM_CLASS_BASIC`], or that of an extension.
    pub class: u16,
    /// OXM number within the class.
    pub oxm: u8,
    /// Width of the value in bits.
    pub bits: u16,
    /// Whether a mask is allowed.
    pub maskable: bool,
    /// Field that the match must also hold.
    pub prereq: Prereq,
    /// Whether set-field may write it.
    pub settable: bool,
    /// The first version whose matches have it.
    pub since: Version,
    /// Place of the value in a packet.
    pub place: Place,
}

/// Name of a field in Ryu's `ofctl_rest`, beside the specification's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RyuName {
    /// No other.
    Spec,
    /// Also this older one, by which it is printed.
    Old(&'static str),
    /// In 1.0 this older one.
    OldIn1_0(&'static str),
}

macro_rules! fields {
    (@ryu) => { RyuName::Spec };
    (@ryu $ryu:ident $old:literal) => { RyuName::$ryu($old) };
    (@class oxm) => { OXM_CLASS_BASIC };
    (@class nxm) => { OXM_CLASS_NXM_1 };
    (@class packet_regs) => { OXM_CLASS_PACKET_REGS };
    ($($(#[doc = $doc:literal])* $field:ident $name:literal $text:literal $set_text:literal
        [$($alias:literal)*] $format:ident $class:ident $oxm:literal, $bits:literal bits,
        mask $mask:literal,
        needs $prereq:expr,
        set $set:literal, since $since:ident, $place:expr $(, ryu $ryu:ident $old:literal)?;)+)
    => {
        /// A match field, in the order of the OXM classes' rows and of their numbers.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Field {
            $($(#[doc = $doc])* $field,)+
        }

        /// Every row, in the order of [`Field`]: those of [`FIELDS`], then registers as one.
        pub const ALL_FIELDS: &[FieldRow] = &[$(FieldRow {
            field: Field::$field,
            name: $name,
            text: $text,
            doc: concat!($($doc),*),
            ryu: fields!(@ryu $($ryu $old)?),
            set_text: $set_text,
            format: Format::$format,
            aliases: &[$($alias),*],
            class: fields!(@class $class),
            oxm: $oxm,
            bits: $bits,
            maskable: $mask,
            prereq: $prereq,
            settable: $set,
            since: Version::$since,
            place: $place,
        },)+];
    };
}

pub(crate) const IP: Prereq = Prereq::OneOf(Field::EthType, &[0x0800, 0x86dd]);
const IPV4: Prereq = Prereq::OneOf(Field::EthType, &[0x0800]);
const IPV6: Prereq = Prereq::OneOf(Field::EthType, &[0x86dd]);
const ARP: Prereq = Prereq::OneOf(Field::EthType, &[0x0806]);
pub(crate) const MPLS: Prereq = Prereq::OneOf(Field::EthType, &[0x8847, 0x8848]);
pub(crate) const PBB: Prereq = Prereq::OneOf(Field::EthType, &[0x88e7]);
pub(crate) const TCP: Prereq = Prereq::OneOf(Field::IpProto, &[6]);
const UDP: Prereq = Prereq::OneOf(Field::IpProto, &[17]);
const SCTP: Prereq = Prereq::OneOf(Field::IpProto, &[132]);
const ICMPV4: Prereq = Prereq::OneOf(Field::IpProto, &[1]);
const ICMPV6: Prereq = Prereq::OneOf(Field::IpProto, &[58]);
const ND: Prereq = Prereq::OneOf(Field::Icmpv6Type, &[135, 136]);
const ND_SOLICIT: Prereq = Prereq::OneOf(Field::Icmpv6Type, &[135]);
const ND_ADVERT: Prereq = Prereq::OneOf(Field::Icmpv6Type, &[136]);

fields! {
    /// Port that the packet came in by: physical, logical or `LOCAL`/`CONTROLLER`.
    InPort "in_port" "in_port" "in_port" [] Port oxm 0, 32 bits, mask false, needs Prereq::None,
        set false, since V1_0, Place::Meta;
    /// Physical port below a logical ingress port.
    InPhyPort "in_phy_port" "in_phy_port" "in_phy_port" [] Port oxm 1, 32 bits, mask false,
        needs Prereq::Present(Field::InPort), set false, since V1_2, Place::Meta;
    /// Metadata passed from table to table.
    Metadata "metadata" "metadata" "metadata" [] Hex oxm 2, 64 bits, mask true, needs Prereq::None,
        set true, since V1_1, Place::Meta;
    /// Ethernet destination address.
    EthDst "eth_dst" "dl_dst" "eth_dst" [] Mac oxm 3, 48 bits, mask true, needs Prereq::None,
        set true, since V1_0, Place::At(&[(Header::Ethernet, 0)]), ryu Old "dl_dst";
    /// Ethernet source address.
    EthSrc "eth_src" "dl_src" "eth_src" [] Mac oxm 4, 48 bits, mask true, needs Prereq::None,
        set true, since V1_0, Place::At(&[(Header::Ethernet, 48)]), ryu Old "dl_src";
    /// EtherType behind the VLAN tags.
    EthType "eth_type" "dl_type" "eth_type" [] Hex oxm 5, 16 bits, mask false, needs Prereq::None,
        set true, since V1_0, Place::Parsed, ryu Old "dl_type";
    /// VLAN id of the outermost tag, with `OFPVID_PRESENT`; zero when there is no tag.
    VlanVid "vlan_vid" "vlan_vid" "vlan_vid" [] Dec oxm 6, 13 bits, mask true, needs Prereq::None,
        set true, since V1_0, Place::Parsed, ryu Old "dl_vlan";
    /// Priority of the outermost VLAN tag.
    VlanPcp "vlan_pcp" "dl_vlan_pcp" "vlan_pcp" [] Dec oxm 7, 3 bits, mask false,
        needs Prereq::VlanTag, set true, since V1_0, Place::At(&[(Header::Vlan, 0)]),
        ryu OldIn1_0 "dl_vlan_pcp";
    /// Differentiated services code point.
    IpDscp "ip_dscp" "ip_dscp" "ip_dscp" [] Dec oxm 8, 6 bits, mask false, needs IP,
        set true, since V1_0, Place::At(&[(Header::Ipv4, 8), (Header::Ipv6, 4)]),
        ryu OldIn1_0 "nw_tos";
    /// Explicit congestion notification bits.
    IpEcn "ip_ecn" "nw_ecn" "nw_ecn" [] Dec oxm 9, 2 bits, mask false, needs IP,
        set true, since V1_2, Place::At(&[(Header::Ipv4, 14), (Header::Ipv6, 10)]);
    /// IPv4 protocol, or the IPv6 upper-layer header behind the extension headers.
    IpProto "ip_proto" "nw_proto" "nw_proto" [] Dec oxm 10, 8 bits, mask false, needs IP,
        set true, since V1_0, Place::Parsed, ryu Old "nw_proto";
    /// IPv4 source address.
    Ipv4Src "ipv4_src" "nw_src" "ip_src" [] Ipv4 oxm 11, 32 bits, mask true, needs IPV4,
        set true, since V1_0, Place::At(&[(Header::Ipv4, 96)]), ryu Old "nw_src";
    /// IPv4 destination address.
    Ipv4Dst "ipv4_dst" "nw_dst" "ip_dst" [] Ipv4 oxm 12, 32 bits, mask true, needs IPV4,
        set true, since V1_0, Place::At(&[(Header::Ipv4, 128)]), ryu Old "nw_dst";
    /// TCP source port.
    TcpSrc "tcp_src" "tp_src" "tcp_src" [] Dec oxm 13, 16 bits, mask true, needs TCP,
        set true, since V1_0, Place::At(&[(Header::Tcp, 0)]), ryu Old "tp_src";
    /// TCP destination port.
    TcpDst "tcp_dst" "tp_dst" "tcp_dst" [] Dec oxm 14, 16 bits, mask true, needs TCP,
        set true, since V1_0, Place::At(&[(Header::Tcp, 16)]), ryu Old "tp_dst";
    /// UDP source port.
    UdpSrc "udp_src" "tp_src" "udp_src" [] Dec oxm 15, 16 bits, mask true, needs UDP,
        set true, since V1_0, Place::At(&[(Header::Udp, 0)]), ryu Old "tp_src";
    /// UDP destination port.
    UdpDst "udp_dst" "tp_dst" "udp_dst" [] Dec oxm 16, 16 bits, mask true, needs UDP,
        set true, since V1_0, Place::At(&[(Header::Udp, 16)]), ryu Old "tp_dst";
    /// SCTP source port.
    SctpSrc "sctp_src" "tp_src" "sctp_src" [] Dec oxm 17, 16 bits, mask true, needs SCTP,
        set true, since V1_0, Place::At(&[(Header::Sctp, 0)]), ryu OldIn1_0 "tp_src";
    /// SCTP destination port.
    SctpDst "sctp_dst" "tp_dst" "sctp_dst" [] Dec oxm 18, 16 bits, mask true, needs SCTP,
        set true, since V1_0, Place::At(&[(Header::Sctp, 16)]), ryu OldIn1_0 "tp_dst";
    /// ICMP type.
    Icmpv4Type "icmpv4_type" "icmp_type" "icmp_type" [] Dec oxm 19, 8 bits, mask false,
        needs ICMPV4, set true, since V1_0, Place::At(&[(Header::Icmpv4, 0)]),
        ryu OldIn1_0 "tp_src";
    /// ICMP code.
    Icmpv4Code "icmpv4_code" "icmp_code" "icmp_code" [] Dec oxm 20, 8 bits, mask false,
        needs ICMPV4, set true, since V1_0, Place::At(&[(Header::Icmpv4, 8)]),
        ryu OldIn1_0 "tp_dst";
    /// ARP opcode.
    ArpOp "arp_op" "arp_op" "arp_op" [] Dec oxm 21, 16 bits, mask false, needs ARP,
        set true, since V1_0, Place::At(&[(Header::Arp, 48)]), ryu OldIn1_0 "nw_proto";
    /// ARP sender's IPv4 address.
    ArpSpa "arp_spa" "arp_spa" "arp_spa" [] Ipv4 oxm 22, 32 bits, mask true, needs ARP,
        set true, since V1_0, Place::At(&[(Header::Arp, 112)]), ryu OldIn1_0 "nw_src";
    /// ARP target's IPv4 address.
    ArpTpa "arp_tpa" "arp_tpa" "arp_tpa" [] Ipv4 oxm 23, 32 bits, mask true, needs ARP,
        set true, since V1_0, Place::At(&[(Header::Arp, 192)]), ryu OldIn1_0 "nw_dst";
    /// ARP sender's Ethernet address.
    ArpSha "arp_sha" "arp_sha" "arp_sha" [] Mac oxm 24, 48 bits, mask true, needs ARP,
        set true, since V1_2, Place::At(&[(Header::Arp, 64)]);
    /// ARP target's Ethernet address.
    ArpTha "arp_tha" "arp_tha" "arp_tha" [] Mac oxm 25, 48 bits, mask true, needs ARP,
        set true, since V1_2, Place::At(&[(Header::Arp, 144)]);
    /// IPv6 source address.
    Ipv6Src "ipv6_src" "ipv6_src" "ipv6_src" [] Ipv6 oxm 26, 128 bits, mask true, needs IPV6,
        set true, since V1_2, Place::At(&[(Header::Ipv6, 64)]);
    /// IPv6 destination address.
    Ipv6Dst "ipv6_dst" "ipv6_dst" "ipv6_dst" [] Ipv6 oxm 27, 128 bits, mask true, needs IPV6,
        set true, since V1_2, Place::At(&[(Header::Ipv6, 192)]);
    /// IPv6 flow label.
    Ipv6Flabel "ipv6_flabel" "ipv6_label" "ipv6_label" [] Hex oxm 28, 20 bits, mask true,
        needs IPV6, set true, since V1_2, Place::At(&[(Header::Ipv6, 12)]);
    /// ICMPv6 type.
    Icmpv6Type "icmpv6_type" "icmp_type" "icmpv6_type" [] Dec oxm 29, 8 bits, mask false,
        needs ICMPV6, set true, since V1_2, Place::At(&[(Header::Icmpv6, 0)]);
    /// ICMPv6 code.
    Icmpv6Code "icmpv6_code" "icmp_code" "icmpv6_code" [] Dec oxm 30, 8 bits, mask false,
        needs ICMPV6, set true, since V1_2, Place::At(&[(Header::Icmpv6, 8)]);
    /// Target address of a neighbour solicitation or advertisement.
    Ipv6NdTarget "ipv6_nd_target" "nd_target" "nd_target" [] Ipv6 oxm 31, 128 bits, mask false,
        needs ND, set true, since V1_2, Place::At(&[(Header::Icmpv6, 64)]);
    /// Source link-layer address option of a neighbour solicitation.
    Ipv6NdSll "ipv6_nd_sll" "nd_sll" "nd_sll" [] Mac oxm 32, 48 bits, mask false, needs ND_SOLICIT,
        set true, since V1_2, Place::Parsed;
    /// Target link-layer address option of a neighbour advertisement.
    Ipv6NdTll "ipv6_nd_tll" "nd_tll" "nd_tll" [] Mac oxm 33, 48 bits, mask false, needs ND_ADVERT,
        set true, since V1_2, Place::Parsed;
    /// Label of the outermost MPLS entry.
    MplsLabel "mpls_label" "mpls_label" "mpls_label" [] Dec oxm 34, 20 bits, mask false, needs MPLS,
        set true, since V1_1, Place::At(&[(Header::Mpls, 0)]);
    /// Traffic class of the outermost MPLS entry.
    MplsTc "mpls_tc" "mpls_tc" "mpls_tc" [] Dec oxm 35, 3 bits, mask false, needs MPLS,
        set true, since V1_1, Place::At(&[(Header::Mpls, 20)]);
    /// Bottom-of-stack bit of the outermost MPLS entry.
    MplsBos "mpls_bos" "mpls_bos" "mpls_bos" [] Dec oxm 36, 1 bits, mask false, needs MPLS,
        set true, since V1_3, Place::At(&[(Header::Mpls, 23)]);
    /// PBB service instance.
    PbbIsid "pbb_isid" "pbb_isid" "pbb_isid" [] Hex oxm 37, 24 bits, mask true, needs PBB,
        set true, since V1_3, Place::At(&[(Header::Pbb, 8)]);
    /// Metadata of a logical port's tunnel.
    TunnelId "tunnel_id" "tun_id" "tun_id" [] Hex oxm 38, 64 bits, mask true, needs Prereq::None,
        set true, since V1_3, Place::Meta;
    /// IPv6 extension headers that there are, and their order (`OFPIEH_*` bits).
    Ipv6Exthdr "ipv6_exthdr" "ipv6_exthdr" "ipv6_exthdr" [] Hex oxm 39, 9 bits, mask true,
        needs IPV6, set false, since V1_3, Place::Parsed;
    /// Use of customer addresses, a flag of PBB.
    PbbUca "pbb_uca" "pbb_uca" "pbb_uca" [] Dec oxm 41, 1 bits, mask false, needs PBB,
        set true, since V1_4, Place::At(&[(Header::Pbb, 4)]);
    /// Flags of TCP, and the reserved bits before them.
    TcpFlags "tcp_flags" "tcp_flags" "tcp_flags" [] TcpFlags oxm 42, 12 bits, mask true, needs TCP,
        set false, since V1_3, Place::At(&[(Header::Tcp, 100)]);
    /// Register 0 of the pipeline (Open vSwitch's).
    Reg0 "reg0" "reg0" "reg0" [] Hex nxm 0, 32 bits, mask true, needs Prereq::None,
        set true, since V1_2, Place::Register(0);
    /// Register 1 of the pipeline (Open vSwitch's).
    Reg1 "reg1" "reg1" "reg1" [] Hex nxm 1, 32 bits, mask true, needs Prereq::None,
        set true, since V1_2, Place::Register(1);
    /// Register 2 of the pipeline (Open vSwitch's).
    Reg2 "reg2" "reg2" "reg2" [] Hex nxm 2, 32 bits, mask true, needs Prereq::None,
        set true, since V1_2, Place::Register(2);
    /// Register 3 of the pipeline (Open vSwitch's).
    Reg3 "reg3" "reg3" "reg3" [] Hex nxm 3, 32 bits, mask true, needs Prereq::None,
        set true, since V1_2, Place::Register(3);
    /// Register 4 of the pipeline (Open vSwitch's).
    Reg4 "reg4" "reg4" "reg4" [] Hex nxm 4, 32 bits, mask true, needs Prereq::None,
        set true, since V1_2, Place::Register(4);
    /// Register 5 of the pipeline (Open vSwitch's).
    Reg5 "reg5" "reg5" "reg5" [] Hex nxm 5, 32 bits, mask true, needs Prereq::None,
        set true, since V1_2, Place::Register(5);
    /// Register 6 of the pipeline (Open vSwitch's).
    Reg6 "reg6" "reg6" "reg6" [] Hex nxm 6, 32 bits, mask true, needs Prereq::None,
        set true, since V1_2, Place::Register(6);
    /// Register 7 of the pipeline (Open vSwitch's).
    Reg7 "reg7" "reg7" "reg7" [] Hex nxm 7, 32 bits, mask true, needs Prereq::None,
        set true, since V1_2, Place::Register(7);
    /// Register 8 of the pipeline (Open vSwitch's).
    Reg8 "reg8" "reg8" "reg8" [] Hex nxm 8, 32 bits, mask true, needs Prereq::None,
        set true, since V1_2, Place::Register(8);
    /// Register 9 of the pipeline (Open vSwitch's).
    Reg9 "reg9" "reg9" "reg9" [] Hex nxm 9, 32 bits, mask true, needs Prereq::None,
        set true, since V1_2, Place::Register(9);
    /// Register 10 of the pipeline (Open vSwitch's).
    Reg10 "reg10" "reg10" "reg10" [] Hex nxm 10, 32 bits, mask true, needs Prereq::None,
        set true, since V1_2, Place::Register(10);
    /// Register 11 of the pipeline (Open vSwitch's).
    Reg11 "reg11" "reg11" "reg11" [] Hex nxm 11, 32 bits, mask true, needs Prereq::None,
        set true, since V1_2, Place::Register(11);
    /// Register 12 of the pipeline (Open vSwitch's).
    Reg12 "reg12" "reg12" "reg12" [] Hex nxm 12, 32 bits, mask true, needs Prereq::None,
        set true, since V1_2, Place::Register(12);
    /// Register 13 of the pipeline (Open vSwitch's).
    Reg13 "reg13" "reg13" "reg13" [] Hex nxm 13, 32 bits, mask true, needs Prereq::None,
        set true, since V1_2, Place::Register(13);
    /// Register 14 of the pipeline (Open vSwitch's).
    Reg14 "reg14" "reg14" "reg14" [] Hex nxm 14, 32 bits, mask true, needs Prereq::None,
        set true, since V1_2, Place::Register(14);
    /// Register 15 of the pipeline (Open vSwitch's).
    Reg15 "reg15" "reg15" "reg15" [] Hex nxm 15, 32 bits, mask true, needs Prereq::None,
        set true, since V1_2, Place::Register(15);
    /// Whether the packet is a fragment (bit 0), and one that is not the first (bit 1); Open
    /// vSwitch's.
    IpFrag "ip_frag" "nw_frag" "ip_frag" [] Fragment nxm 26, 2 bits, mask true, needs IP,
        set false, since V1_2, Place::Parsed;
    /// TTL of IPv4, or hop limit of IPv6 (Open vSwitch's).
    NwTtl "nw_ttl" "nw_ttl" "nw_ttl" ["ip_ttl"] Dec nxm 29, 8 bits, mask false, needs IP,
        set true, since V1_2, Place::At(&[(Header::Ipv4, 64), (Header::Ipv6, 56)]);
    /// Mark of a packet for the host: zero when it comes in (Open vSwitch's).
    PktMark "pkt_mark" "pkt_mark" "pkt_mark" [] Hex nxm 33, 32 bits, mask true, needs Prereq::None,
        set true, since V1_2, Place::Meta;
    /// Conjunction of which every dimension has an entry that the packet matches; zero but in the
    /// search that follows then (Open vSwitch's).
    ConjId "conj_id" "conj_id" "conj_id" [] Dec nxm 37, 32 bits, mask false, needs Prereq::None,
        set false, since V1_2, Place::Meta;
    /// Registers 0 and 1 as one (Open vSwitch's).
    Xreg0 "xreg0" "xreg0" "xreg0" [] Hex packet_regs 0, 64 bits, mask true,
        needs Prereq::None, set true, since V1_2, Place::Registers(0, 2);
    /// Registers 2 and 3 as one (Open vSwitch's).
    Xreg1 "xreg1" "xreg1" "xreg1" [] Hex packet_regs 1, 64 bits, mask true,
        needs Prereq::None, set true, since V1_2, Place::Registers(2, 2);
    /// Registers 4 and 5 as one (Open vSwitch's).
    Xreg2 "xreg2" "xreg2" "xreg2" [] Hex packet_regs 2, 64 bits, mask true,
        needs Prereq::None, set true, since V1_2, Place::Registers(4, 2);
    /// Registers 6 and 7 as one (Open vSwitch's).
    Xreg3 "xreg3" "xreg3" "xreg3" [] Hex packet_regs 3, 64 bits, mask true,
        needs Prereq::None, set true, since V1_2, Place::Registers(6, 2);
    /// Registers 8 and 9 as one (Open vSwitch's).
    Xreg4 "xreg4" "xreg4" "xreg4" [] Hex packet_regs 4, 64 bits, mask true,
        needs Prereq::None, set true, since V1_2, Place::Registers(8, 2);
    /// Registers 10 and 11 as one (Open vSwitch's).
    Xreg5 "xreg5" "xreg5" "xreg5" [] Hex packet_regs 5, 64 bits, mask true,
        needs Prereq::None, set true, since V1_2, Place::Registers(10, 2);
    /// Registers 12 and 13 as one (Open vSwitch's).
    Xreg6 "xreg6" "xreg6" "xreg6" [] Hex packet_regs 6, 64 bits, mask true,
        needs Prereq::None, set true, since V1_2, Place::Registers(12, 2);
    /// Registers 14 and 15 as one (Open vSwitch's).
    Xreg7 "xreg7" "xreg7" "xreg7" [] Hex packet_regs 7, 64 bits, mask true,
        needs Prereq::None, set true, since V1_2, Place::Registers(14, 2);
    /// Registers 0 to 3 as one (Open vSwitch's).
    Xxreg0 "xxreg0" "xxreg0" "xxreg0" [] Hex nxm 111, 128 bits, mask true,
        needs Prereq::None, set true, since V1_2, Place::Registers(0, 4);
    /// Registers 4 to 7 as one (Open vSwitch's).
    Xxreg1 "xxreg1" "xxreg1" "xxreg1" [] Hex nxm 112, 128 bits, mask true,
        needs Prereq::None, set true, since V1_2, Place::Registers(4, 4);
    /// Registers 8 to 11 as one (Open vSwitch's).
    Xxreg2 "xxreg2" "xxreg2" "xxreg2" [] Hex nxm 113, 128 bits, mask true,
        needs Prereq::None, set true, since V1_2, Place::Registers(8, 4);
    /// Registers 12 to 15 as one (Open vSwitch's).
    Xxreg3 "xxreg3" "xxreg3" "xxreg3" [] Hex nxm 114, 128 bits, mask true,
        needs Prereq::None, set true, since V1_2, Place::Registers(12, 4);
}

/// The fields of a packet's key, in the order of [`Field`]: a match has no others. Several
/// registers as one are matched as each of them.
pub const FIELDS: &[FieldRow] = ALL_FIELDS.split_at(Field::Xreg0 as usize).0;

/// The field of each number of the basic class, so that a decoder need not search the rows.
static OF_OXM: [Option<Field>; 128] = {
    let mut of_oxm = [None; 128];
    let mut index = 0;
    while index < ALL_FIELDS.len() {
        if ALL_FIELDS[index].class == OXM_CLASS_BASIC {
            of_oxm[ALL_FIELDS[index].oxm as usize] = Some(ALL_FIELDS[index].field);
        }
        index += 1;
    }
    of_oxm
};

/// The names and numbers of Nicira's match (`NXM_OF_*` in class 0, `NXM_NX_*` in class 1) for
/// fields that OpenFlow has too, of the same width.
const NXM: &[(Field, &str, u16, u8)] = &[
    (Field::EthDst, "NXM_OF_ETH_DST", 0, 1),
    (Field::EthSrc, "NXM_OF_ETH_SRC", 0, 2),
    (Field::EthType, "NXM_OF_ETH_TYPE", 0, 3),
    (Field::IpProto, "NXM_OF_IP_PROTO", 0, 6),
    (Field::Ipv4Src, "NXM_OF_IP_SRC", 0, 7),
    (Field::Ipv4Dst, "NXM_OF_IP_DST", 0, 8),
    (Field::TcpSrc, "NXM_OF_TCP_SRC", 0, 9),
    (Field::TcpDst, "NXM_OF_TCP_DST", 0, 10),
    (Field::UdpSrc, "NXM_OF_UDP_SRC", 0, 11),
    (Field::UdpDst, "NXM_OF_UDP_DST", 0, 12),
    (Field::Icmpv4Type, "NXM_OF_ICMP_TYPE", 0, 13),
    (Field::Icmpv4Code, "NXM_OF_ICMP_CODE", 0, 14),
    (Field::ArpOp, "NXM_OF_ARP_OP", 0, 15),
    (Field::ArpSpa, "NXM_OF_ARP_SPA", 0, 16),
    (Field::ArpTpa, "NXM_OF_ARP_TPA", 0, 17),
    (Field::TunnelId, "NXM_NX_TUN_ID", 1, 16),
    (Field::ArpSha, "NXM_NX_ARP_SHA", 1, 17),
    (Field::ArpTha, "NXM_NX_ARP_THA", 1, 18),
    (Field::Ipv6Src, "NXM_NX_IPV6_SRC", 1, 19),
    (Field::Ipv6Dst, "NXM_NX_IPV6_DST", 1, 20),
    (Field::Icmpv6Type, "NXM_NX_ICMPV6_TYPE", 1, 21),
    (Field::Icmpv6Code, "NXM_NX_ICMPV6_CODE", 1, 22),
    (Field::Ipv6NdTarget, "NXM_NX_ND_TARGET", 1, 23),
    (Field::Ipv6NdSll, "NXM_NX_ND_SLL", 1, 24),
    (Field::Ipv6NdTll, "NXM_NX_ND_TLL", 1, 25),
    (Field::Ipv6Flabel, "NXM_NX_IPV6_LABEL", 1, 27),
    (Field::IpEcn, "NXM_NX_IP_ECN", 1, 28),
    (Field::NwTtl, "NXM_NX_IP_TTL", 1, 29),
    (Field::TcpFlags, "NXM_NX_TCP_FLAGS", 1, 34),
];

impl Field {
    /// Whether matches of the version have it.
    #[must_use]
    #[inline]
    pub fn is_in(self, version: Version) -> bool {
        self.row().since <= version
    }

    /// Class and number by which Nicira's actions name the field: those of Nicira's match, where it
    /// has the field.
    #[must_use]
    pub fn nxm(self) -> (u16, u8) {
        let row = self.row();
        let older = NXM.iter().find(|older| older.0 == self);
        older.map_or((row.class, row.oxm), |(_, _, class, number)| (*class, *number))
    }

    /// The name that `ovs-ofctl` prints for a part of the field: `NXM_OF_ETH_DST`,
    /// `NXM_NX_REG0`, `OXM_OF_METADATA`.
    #[must_use]
    pub fn nxm_name(self) -> String {
        let row = self.row();
        match NXM.iter().find(|older| older.0 == self) {
            Some((_, name, ..)) => (*name).to_owned(),
            None if row.class == OXM_CLASS_NXM_1 => format!("NXM_NX_{}", row.name.to_uppercase()),
            None if row.class == OXM_CLASS_PACKET_REGS => format!("OXM_OF_PKT_REG{}", row.oxm),
            None => format!("OXM_OF_{}", row.name.to_uppercase()),
        }
    }

    /// The field's row.
    #[must_use]
    #[inline]
    pub const fn row(self) -> &'static FieldRow {
        &ALL_FIELDS[self as usize]
    }

    /// The registers that the field is, the one with the highest bits first; none where it is no
    /// more than one.
    #[must_use]
    #[inline]
    pub fn registers(self) -> Option<impl DoubleEndedIterator<Item = Self> + ExactSizeIterator> {
        // Every part of a match is asked.
        if (self as usize) < FIELDS.len() {
            return None;
        }
        let Place::Registers(first, count) = self.row().place else { return None };
        let first = Self::Reg0 as usize + usize::from(first);
        Some((first..first + usize::from(count)).map(|register| FIELDS[register].field))
    }

    /// The field of an OXM number in the basic class.
    #[must_use]
    #[inline]
    pub fn from_oxm(number: u8) -> Option<Self> {
        *OF_OXM.get(usize::from(number))?
    }

    /// The field of an OXM number in a class.
    #[must_use]
    #[inline]
    pub fn from_class(class: u16, number: u8) -> Option<Self> {
        if class == OXM_CLASS_BASIC {
            return Self::from_oxm(number);
        }
        Self::from_other_class(class, number)
    }

    #[cold]
    fn from_other_class(class: u16, number: u8) -> Option<Self> {
        let is_it = |row: &&FieldRow| row.class == class && row.oxm == number;
        let older = || NXM.iter().find(|older| (older.2, older.3) == (class, number));
        let own = ALL_FIELDS.iter().find(is_it).map(|row| row.field);
        own.or_else(|| older().map(|(field, ..)| *field))
    }

    /// The field of one of its names: the specification's, `ovs-ofctl`'s, or an alias. A name that
    /// several fields share leads to none of them, but for `icmp_type` and `icmp_code`, which
    /// name ICMP's own (as they do in `ovs-ofctl`).
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let own = |row: &&FieldRow| {
            row.name == name || row.set_text == name || row.aliases.contains(&name)
        };
        if let Some(row) = ALL_FIELDS.iter().find(own) {
            return Some(row.field);
        }
        let mut shared = FIELDS.iter().filter(|row| row.text == name);
        shared.next().filter(|_| shared.next().is_none()).map(|row| row.field)
    }

    /// All bits of the field set: the mask of an exact match.
    #[must_use]
    #[inline]
    pub const fn full_mask(self) -> u128 {
        u128::MAX >> (128 - self.row().bits)
    }

    /// Bytes of the value on the wire: as many as the bits need, but four for the labels of 20
    /// bits.
    #[must_use]
    #[inline]
    pub const fn bytes(self) -> usize {
        match self.row().bits {
            20 => 4,
            bits => (bits as usize).div_ceil(8),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ALL_FIELDS, FIELDS, Field, OXM_CLASS_BASIC, Place};
    use std::collections::HashSet;

    #[test]
    fn rows_stand_in_the_order_of_the_enum_and_of_the_numbers() {
        let basic = FIELDS.iter().filter(|row| row.class == OXM_CLASS_BASIC);
        let of_1_3 = basic.map(|row| row.oxm).filter(|oxm| *oxm < 40);
        assert!(of_1_3.eq(0..40), "OpenFlow 1.3 has the fields 0 to 39");
        let registers = FIELDS.iter().filter_map(|row| match row.place {
            Place::Register(number) => Some((number, row.oxm)),
            Place::Meta | Place::Registers(..) | Place::At(_) | Place::Parsed => None,
        });
        assert!(registers.eq((0..16).map(|number| (number, number))));
        // A key says in 64 bits which of them a packet has.
        assert!(FIELDS.len() <= 64);
        for (index, row) in ALL_FIELDS.iter().enumerate() {
            assert_eq!(row.field as usize, index);
            assert_eq!(Field::from_class(row.class, row.oxm), Some(row.field));
            let (class, number) = row.field.nxm();
            assert_eq!(Field::from_class(class, number), Some(row.field));
        }
    }

    #[test]
    fn every_name_leads_to_one_field() {
        let mut seen = HashSet::new();
        for row in ALL_FIELDS {
            let names: HashSet<&str> =
                [row.name, row.set_text].into_iter().chain(row.aliases.iter().copied()).collect();
            for name in names {
                assert!(seen.insert(name), "{name} names two fields");
                assert_eq!(Field::from_name(name), Some(row.field));
            }
        }
        assert_eq!(Field::from_name("dl_src"), Some(Field::EthSrc));
        assert_eq!(Field::from_name("tp_src"), None);
    }
}
