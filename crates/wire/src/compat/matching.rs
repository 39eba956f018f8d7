//! The twelve-tuple of 1.0, `ofp_match` (clause 5.2.3 of 1.0), to and from match fields.
//!
//! Reading normalizes as Open vSwitch does: a field whose prerequisite is missing is ignored (an
//! IP address without an EtherType, ports of a protocol that has none), because many controllers
//! leave rubbish there. What a field means depends on others: `nw_proto` is the opcode in ARP,
//! `tp_src` and `tp_dst` are type and code in ICMP. Of a member that is wider than its field only
//! the field's bits count. What was sent beside the fields stays with the match as its
//! [`TupleForm`] and is written again. Writing is strict: what 1.0 cannot say is an error.

use openflow::field::{FIELDS, VID_PRESENT};
use openflow::twelve_tuple::WILDCARDS_ALL;
use openflow::{Error, Field, MacAddr, Match, MatchField, PortNo, TupleForm, TwelveTuple};

use super::{port_from_v1_0, port_to_v1_0};
use crate::matching::Purpose;
use crate::reader::{self, Reader};
use crate::writer::{self, Writer};

const IN_PORT: u32 = 1;
const DL_VLAN: u32 = 1 << 1;
const DL_SRC: u32 = 1 << 2;
const DL_DST: u32 = 1 << 3;
const DL_TYPE: u32 = 1 << 4;
const NW_PROTO: u32 = 1 << 5;
const TP_SRC: u32 = 1 << 6;
const TP_DST: u32 = 1 << 7;
const NW_SRC_SHIFT: u32 = 8;
const NW_DST_SHIFT: u32 = 14;
const DL_VLAN_PCP: u32 = 1 << 20;
const NW_TOS: u32 = 1 << 21;
/// Every wildcard, the two addresses with 32 bits (`OFPFW_NW_SRC_ALL`, `OFPFW_NW_DST_ALL`).
const NOTHING: u32 = 0x3820ff;
/// Width of the wildcard count of an address.
const NW_BITS_MASK: u32 = 0x3f;

/// `dl_vlan` of a packet without a tag (`OFP_VLAN_NONE`).
const VLAN_NONE: u16 = 0xffff;

const ETH_TYPE_IPV4: u16 = 0x0800;
const ETH_TYPE_IPV6: u16 = 0x86dd;
const ETH_TYPE_ARP: u16 = 0x0806;

/// A member of the struct that a match field goes to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Member {
    InPort,
    DlSrc,
    DlDst,
    DlVlan,
    DlVlanPcp,
    DlType,
    NwTos,
    NwProto,
    NwSrc,
    NwDst,
    TpSrc,
    TpDst,
}

/// Member of the twelve-tuple for each field.
const MEMBERS: &[(Field, Member)] = &[
    (Field::InPort, Member::InPort),
    (Field::EthSrc, Member::DlSrc),
    (Field::EthDst, Member::DlDst),
    (Field::VlanVid, Member::DlVlan),
    (Field::VlanPcp, Member::DlVlanPcp),
    (Field::EthType, Member::DlType),
    (Field::IpDscp, Member::NwTos),
    (Field::IpProto, Member::NwProto),
    (Field::ArpOp, Member::NwProto),
    (Field::Ipv4Src, Member::NwSrc),
    (Field::ArpSpa, Member::NwSrc),
    (Field::Ipv4Dst, Member::NwDst),
    (Field::ArpTpa, Member::NwDst),
    (Field::TcpSrc, Member::TpSrc),
    (Field::UdpSrc, Member::TpSrc),
    (Field::SctpSrc, Member::TpSrc),
    (Field::Icmpv4Type, Member::TpSrc),
    (Field::TcpDst, Member::TpDst),
    (Field::UdpDst, Member::TpDst),
    (Field::SctpDst, Member::TpDst),
    (Field::Icmpv4Code, Member::TpDst),
];

/// The member of each field, by the field's index.
static MEMBER_OF: [Option<Member>; FIELDS.len()] = {
    let mut member_of = [None; FIELDS.len()];
    let mut index = 0;
    while index < MEMBERS.len() {
        let (field, member) = MEMBERS[index];
        member_of[field as usize] = Some(member);
        index += 1;
    }
    member_of
};

/// The member that a match field goes to.
pub(super) fn member_of(field: Field) -> Option<Member> {
    MEMBER_OF[field as usize]
}

/// The tuple, with what its members mean.
#[derive(Clone, Copy, Debug)]
struct Tuple(TwelveTuple);

impl Tuple {
    fn read(r: &mut Reader<'_>) -> reader::ReadResult<Self> {
        let mut tuple = TwelveTuple {
            wildcards: r.u32()?,
            in_port: r.u16()?,
            dl_src: r.mac()?,
            dl_dst: r.mac()?,
            dl_vlan: r.u16()?,
            dl_vlan_pcp: r.u8()?,
            ..TwelveTuple::default()
        };
        r.skip(1)?;
        tuple.dl_type = r.u16()?;
        tuple.nw_tos = r.u8()?;
        tuple.nw_proto = r.u8()?;
        r.skip(2)?;
        tuple.nw_src = r.u32()?;
        tuple.nw_dst = r.u32()?;
        tuple.tp_src = r.u16()?;
        tuple.tp_dst = r.u16()?;
        Ok(Self(tuple))
    }

    fn write(&self, w: &mut Writer<'_>) {
        w.u32(self.0.wildcards);
        w.u16(self.0.in_port);
        w.mac(self.0.dl_src);
        w.mac(self.0.dl_dst);
        w.u16(self.0.dl_vlan);
        w.u8(self.0.dl_vlan_pcp);
        w.zeros(1);
        w.u16(self.0.dl_type);
        w.u8(self.0.nw_tos);
        w.u8(self.0.nw_proto);
        w.zeros(2);
        w.u32(self.0.nw_src);
        w.u32(self.0.nw_dst);
        w.u16(self.0.tp_src);
        w.u16(self.0.tp_dst);
    }

    /// The tuple without the rubbish in members that are wildcarded: two tuples that ask the same
    /// in the same words are equal then.
    fn tidied(&self) -> TwelveTuple {
        let sent = self.0;
        let kept = |wildcard: u32, value: u16| if self.has(wildcard) { value } else { 0 };
        let kept_byte = |wildcard: u32, value: u8| if self.has(wildcard) { value } else { 0 };
        let kept_mac = |wildcard: u32, value: MacAddr| {
            if self.has(wildcard) { value } else { MacAddr::default() }
        };
        let ignored = |shift: u32| (sent.wildcards >> shift & NW_BITS_MASK).min(32) << shift;
        let addresses = NW_BITS_MASK << NW_SRC_SHIFT | NW_BITS_MASK << NW_DST_SHIFT;
        TwelveTuple {
            wildcards: sent.wildcards & WILDCARDS_ALL & !addresses
                | ignored(NW_SRC_SHIFT)
                | ignored(NW_DST_SHIFT),
            in_port: kept(IN_PORT, sent.in_port),
            dl_src: kept_mac(DL_SRC, sent.dl_src),
            dl_dst: kept_mac(DL_DST, sent.dl_dst),
            dl_vlan: kept(DL_VLAN, sent.dl_vlan),
            dl_vlan_pcp: kept_byte(DL_VLAN_PCP, sent.dl_vlan_pcp),
            dl_type: kept(DL_TYPE, sent.dl_type),
            nw_tos: kept_byte(NW_TOS, sent.nw_tos),
            nw_proto: kept_byte(NW_PROTO, sent.nw_proto),
            nw_src: sent.nw_src & self.address_mask(NW_SRC_SHIFT),
            nw_dst: sent.nw_dst & self.address_mask(NW_DST_SHIFT),
            tp_src: kept(TP_SRC, sent.tp_src),
            tp_dst: kept(TP_DST, sent.tp_dst),
        }
    }

    /// The tuple of a match whose prerequisites hold; the name of the field that 1.0 cannot say.
    fn of(matching: &Match) -> Result<Self, &'static str> {
        let mut tuple = Self(TwelveTuple { wildcards: NOTHING, ..TwelveTuple::default() });
        for held in matching.fields() {
            tuple.put(held).ok_or(held.field.row().name)?;
        }
        Ok(tuple)
    }

    /// Whether the field counts.
    fn has(&self, wildcard: u32) -> bool {
        self.0.wildcards & wildcard == 0
    }

    /// The mask of the address whose wildcard count stands at `shift`; 32 and more leave nothing.
    fn address_mask(&self, shift: u32) -> u32 {
        u32::MAX.checked_shl(self.0.wildcards >> shift & NW_BITS_MASK).unwrap_or(0)
    }

    fn to_match(self) -> Result<Match, Error> {
        let mut matching = Match::any();
        if self.has(IN_PORT) {
            matching = matching.with(Field::InPort, port_from_v1_0(self.0.in_port).0.into());
        }
        if self.has(DL_SRC) {
            matching = matching.with(Field::EthSrc, self.0.dl_src.to_u64().into());
        }
        if self.has(DL_DST) {
            matching = matching.with(Field::EthDst, self.0.dl_dst.to_u64().into());
        }
        self.add_vlan(&mut matching)?;
        if self.has(DL_TYPE) {
            matching = matching.with(Field::EthType, self.0.dl_type.into());
            self.add_network(&mut matching)?;
        }
        Ok(matching)
    }

    /// A tag's id, or no tag, or any tag of a priority. Where no tag is wanted, a priority says
    /// nothing.
    fn add_vlan(&self, matching: &mut Match) -> Result<(), Error> {
        if self.has(DL_VLAN) {
            if self.0.dl_vlan == VLAN_NONE {
                return matching.add(Field::VlanVid, 0, Field::VlanVid.full_mask());
            }
            let vid = u128::from(self.0.dl_vlan) & (VID_PRESENT - 1);
            add(matching, Field::VlanVid, VID_PRESENT | vid)?;
        } else if self.has(DL_VLAN_PCP) {
            matching.add(Field::VlanVid, VID_PRESENT, VID_PRESENT)?;
        }
        if self.has(DL_VLAN_PCP) {
            add(matching, Field::VlanPcp, self.0.dl_vlan_pcp.into())?;
        }
        Ok(())
    }

    fn add_network(&self, matching: &mut Match) -> Result<(), Error> {
        match self.0.dl_type {
            ETH_TYPE_ARP => {
                if self.has(NW_PROTO) {
                    add(matching, Field::ArpOp, self.0.nw_proto.into())?;
                }
                self.add_addresses(matching, Field::ArpSpa, Field::ArpTpa);
            }
            ETH_TYPE_IPV4 => {
                self.add_addresses(matching, Field::Ipv4Src, Field::Ipv4Dst);
                self.add_transport(matching)?;
            }
            ETH_TYPE_IPV6 => self.add_transport(matching)?,
            _ => {}
        }
        Ok(())
    }

    fn add_addresses(&self, matching: &mut Match, src: Field, dst: Field) {
        matching.set(src, self.0.nw_src.into(), self.address_mask(NW_SRC_SHIFT).into());
        matching.set(dst, self.0.nw_dst.into(), self.address_mask(NW_DST_SHIFT).into());
    }

    fn add_transport(&self, matching: &mut Match) -> Result<(), Error> {
        if self.has(NW_TOS) {
            add(matching, Field::IpDscp, (self.0.nw_tos >> 2).into())?;
        }
        if self.has(NW_PROTO) {
            add(matching, Field::IpProto, self.0.nw_proto.into())?;
            if let Some((src, dst)) = ports_of(matching) {
                if self.has(TP_SRC) {
                    add(matching, src, self.0.tp_src.into())?;
                }
                if self.has(TP_DST) {
                    add(matching, dst, self.0.tp_dst.into())?;
                }
            }
        }
        Ok(())
    }

    /// Puts one field of a match whose prerequisites hold; `None` when 1.0 cannot say it.
    fn put(&mut self, held: &MatchField) -> Option<()> {
        let member = member_of(held.field)?;
        let number = || held.is_exact().then_some(held.value);
        let wildcard = match member {
            Member::DlVlan => return self.put_vlan_vid(held),
            Member::NwSrc => return self.put_address(NW_SRC_SHIFT, held),
            Member::NwDst => return self.put_address(NW_DST_SHIFT, held),
            Member::InPort => {
                self.0.in_port = port_to_v1_0(PortNo(u32::try_from(number()?).ok()?))?;
                IN_PORT
            }
            Member::DlSrc => {
                self.0.dl_src = mac(number()?)?;
                DL_SRC
            }
            Member::DlDst => {
                self.0.dl_dst = mac(number()?)?;
                DL_DST
            }
            Member::DlVlanPcp => {
                self.0.dl_vlan_pcp = number()?.try_into().ok()?;
                DL_VLAN_PCP
            }
            Member::DlType => {
                self.0.dl_type = number()?.try_into().ok()?;
                DL_TYPE
            }
            Member::NwTos => {
                self.0.nw_tos = u8::try_from(number()?).ok()? << 2;
                NW_TOS
            }
            Member::NwProto => {
                self.0.nw_proto = number()?.try_into().ok()?;
                NW_PROTO
            }
            Member::TpSrc => {
                self.0.tp_src = number()?.try_into().ok()?;
                TP_SRC
            }
            Member::TpDst => {
                self.0.tp_dst = number()?.try_into().ok()?;
                TP_DST
            }
        };
        self.0.wildcards &= !wildcard;
        Some(())
    }

    /// Puts an address whose mask is a prefix.
    fn put_address(&mut self, shift: u32, held: &MatchField) -> Option<()> {
        let value = u32::try_from(held.value).ok()?;
        let mask = u32::try_from(held.mask).ok()?;
        let ignored = mask.trailing_zeros();
        if u32::MAX.checked_shl(ignored) != Some(mask) {
            return None;
        }
        *(if shift == NW_SRC_SHIFT { &mut self.0.nw_src } else { &mut self.0.nw_dst }) = value;
        self.0.wildcards = self.0.wildcards & !(NW_BITS_MASK << shift) | ignored << shift;
        Some(())
    }

    /// "Any tag" has an encoding together with a priority only, which [`write()`] checks. Where no
    /// tag is wanted the priority counts, and is zero: so ovs-ofctl has it.
    fn put_vlan_vid(&mut self, held: &MatchField) -> Option<()> {
        match (held.value, held.mask) {
            (VID_PRESENT, VID_PRESENT) => return Some(()),
            (0, _) if held.is_exact() => {
                self.0.dl_vlan = VLAN_NONE;
                self.0.wildcards &= !DL_VLAN_PCP;
            }
            (value, _) if held.is_exact() && value & VID_PRESENT != 0 => {
                self.0.dl_vlan = u16::try_from(value & !VID_PRESENT).ok()?;
            }
            _ => return None,
        }
        self.0.wildcards &= !DL_VLAN;
        Some(())
    }
}

/// Adds a field with the bits that it has room for.
fn add(matching: &mut Match, field: Field, value: u128) -> Result<(), Error> {
    matching.add(field, value & field.full_mask(), field.full_mask())
}

/// The fields that `tp_src` and `tp_dst` are, by the protocol; `None` when it has none in 1.0.
pub(super) fn ports_of(matching: &Match) -> Option<(Field, Field)> {
    [
        (Field::TcpSrc, Field::TcpDst),
        (Field::UdpSrc, Field::UdpDst),
        (Field::SctpSrc, Field::SctpDst),
        (Field::Icmpv4Type, Field::Icmpv4Code),
    ]
    .into_iter()
    .find(|(src, _)| matching.matches(src.row().prereq))
}

fn mac(value: u128) -> Option<MacAddr> {
    u64::try_from(value).ok().map(MacAddr::from_u64)
}

/// Reads a twelve-tuple of 40 bytes.
pub(crate) fn read(r: &mut Reader<'_>, _purpose: Purpose) -> reader::ReadResult<Match> {
    let start = r.clone();
    let tuple = Tuple::read(r)?;
    let matching = tuple.to_match().map_err(|error| start.fault_in(error, "ofp_match"))?;
    let sent = tuple.tidied();
    // What a tuple means can be written as one, which a test holds. Were it not so, the entry would
    // still rank as it was sent.
    let kept = Tuple::of(&matching).map_or(sent, |tuple| tuple.0);
    let form = TupleForm { is_exact: sent.wildcards == 0, difference: sent.difference(kept) };
    Ok(matching.in_form(form))
}

/// Writes a match as a twelve-tuple, in the form in which it was sent if it was.
pub(crate) fn write(w: &mut Writer<'_>, matching: &Match) -> writer::WriteResult<()> {
    let prerequisites = matching.check_prerequisites().is_ok();
    w.require(prerequisites, "match field without its prerequisite")?;
    let tuple = Tuple::of(matching).map_err(|what| w.unsupported(what))?;
    let any_tag = matching.get(Field::VlanVid).is_some_and(|vid| !vid.is_exact());
    w.require(!any_tag || tuple.has(DL_VLAN_PCP), "any VLAN tag")?;
    let form = matching.form().map(|form| form.difference).unwrap_or_default();
    Tuple(tuple.0.difference(form)).write(w);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{IN_PORT, NOTHING, Tuple, WILDCARDS_ALL, read, write};
    use crate::error::EncodeError;
    use crate::matching::Purpose;
    use crate::reader::Reader;
    use crate::writer::Writer;
    use openflow::field::VID_PRESENT;
    use openflow::{Error, Field, MacAddr, Match, TwelveTuple, Version};
    use testkit::Random;

    fn decoded(tuple: TwelveTuple) -> Result<Match, Error> {
        let mut bytes = Vec::new();
        Tuple(tuple).write(&mut Writer::new(Version::V1_0, &mut bytes));
        assert_eq!(bytes.len(), 40);
        let mut reader = Reader::new(Version::V1_0, &bytes, 0, "test");
        read(&mut reader, Purpose::Select).map_err(|fault| fault.error)
    }

    fn encoded(matching: &Match) -> Result<(), EncodeError> {
        let mut bytes = Vec::new();
        write(&mut Writer::new(Version::V1_0, &mut bytes), matching)?;
        let mut reader = Reader::new(Version::V1_0, &bytes, 0, "test");
        assert_eq!(read(&mut reader, Purpose::Select).as_ref(), Ok(matching));
        Ok(())
    }

    #[test]
    fn a_field_without_its_prerequisite_is_ignored() {
        let rubbish = TwelveTuple {
            wildcards: IN_PORT,
            dl_vlan: 0xffff,
            dl_type: 0x88cc,
            nw_proto: 6,
            nw_src: 1,
            tp_src: 80,
            ..TwelveTuple::default()
        };
        let lldp = decoded(rubbish).unwrap();
        let fields: Vec<Field> = lldp.fields().iter().map(|held| held.field).collect();
        assert_eq!(fields, [Field::EthDst, Field::EthSrc, Field::EthType, Field::VlanVid]);
        let ports_of_nothing = TwelveTuple { dl_type: 0x0800, nw_proto: 47, ..rubbish };
        assert!(decoded(ports_of_nothing).unwrap().get(Field::TcpSrc).is_none());
    }

    /// The tuple that a match is written as after it was read from this one.
    fn given_back(tuple: TwelveTuple) -> TwelveTuple {
        let matching = decoded(tuple).unwrap();
        let mut bytes = Vec::new();
        write(&mut Writer::new(Version::V1_0, &mut bytes), &matching).unwrap();
        Tuple::read(&mut Reader::new(Version::V1_0, &bytes, 0, "test")).unwrap().0
    }

    const EXACT: TwelveTuple = TwelveTuple {
        wildcards: 0,
        in_port: 1,
        dl_src: MacAddr([2, 0, 0, 0, 0, 1]),
        dl_dst: MacAddr([2, 0, 0, 0, 0, 2]),
        dl_vlan: 0xffff,
        dl_vlan_pcp: 0,
        dl_type: 0x0800,
        nw_tos: 0,
        nw_proto: 6,
        nw_src: 0x0a00_0001,
        nw_dst: 0x0a00_0002,
        tp_src: 1,
        tp_dst: 2,
    };

    #[test]
    fn a_match_is_written_as_it_was_read() {
        let icmp = TwelveTuple { nw_proto: 1, tp_src: 0x0108, tp_dst: 0x0203, ..EXACT };
        let tagged = TwelveTuple { dl_vlan: 0x1005, dl_vlan_pcp: 0x0d, ..EXACT };
        for tuple in [
            EXACT,
            TwelveTuple { dl_vlan_pcp: 3, ..EXACT },
            TwelveTuple { wildcards: 1 << 20, ..EXACT },
            TwelveTuple { dl_type: 0x88cc, ..EXACT },
            TwelveTuple { dl_type: 0x0806, ..EXACT },
            TwelveTuple { dl_type: 0x86dd, ..EXACT },
            TwelveTuple { nw_tos: 0x2b, ..EXACT },
            TwelveTuple { in_port: 0, ..EXACT },
            icmp,
            tagged,
        ] {
            assert_eq!(given_back(tuple), tuple);
        }
    }

    /// A tuple with values that mean something, those that do not, and any wildcards.
    fn random_tuple(random: &mut Random) -> TwelveTuple {
        let wildcards = match random.below(4) {
            0 => 0,
            1 => 1 << random.below(32),
            2 => random.u64() as u32,
            _ => (random.u64() & random.u64()) as u32,
        };
        TwelveTuple {
            wildcards,
            in_port: random.u64() as u16 | *random.pick(&[0, 0xff00]),
            dl_src: MacAddr::from_u64(random.u64() >> 16),
            dl_dst: MacAddr::from_u64(random.u64() >> 16),
            dl_vlan: *random.pick(&[0xffff, 0, 5, 0x1005, 0xfffe]),
            dl_vlan_pcp: random.byte(),
            dl_type: *random.pick(&[0x0800, 0x0806, 0x86dd, 0x8100, 0x88cc, 0]),
            nw_tos: random.byte(),
            nw_proto: *random.pick(&[1, 2, 6, 17, 58, 132]),
            nw_src: random.u64() as u32,
            nw_dst: random.u64() as u32,
            tp_src: random.u64() as u16,
            tp_dst: random.u64() as u16,
        }
    }

    #[test]
    fn whatever_a_tuple_means_is_written_as_that_tuple() {
        let mut random = Random::new(1);
        for _ in 0..20_000 {
            let tuple = random_tuple(&mut random);
            let matching = decoded(tuple).unwrap();
            assert!(Tuple::of(&matching).is_ok(), "{tuple:?}");
            assert_eq!(given_back(tuple), Tuple(tuple).tidied(), "{tuple:?}");
            let is_exact = matching.form().is_some_and(|form| form.is_exact);
            assert_eq!(is_exact, tuple.wildcards & WILDCARDS_ALL == 0, "{tuple:?}");
        }
    }

    #[test]
    fn a_wildcarded_member_is_no_part_of_the_form() {
        let rubbish = TwelveTuple { wildcards: NOTHING | 63 << 8, ..EXACT };
        let any = TwelveTuple { wildcards: NOTHING, ..TwelveTuple::default() };
        assert_eq!(given_back(rubbish), any);
        assert_eq!(decoded(rubbish).unwrap().form(), None);
        let net = TwelveTuple { wildcards: 8 << 8, ..EXACT };
        assert_eq!(given_back(net), TwelveTuple { nw_src: 0x0a00_0000, ..net });
    }

    #[test]
    fn exact_is_what_has_no_wildcards() {
        let is_exact = |tuple| decoded(tuple).unwrap().form().is_some_and(|form| form.is_exact);
        let tagged = TwelveTuple { dl_vlan: 5, ..EXACT };
        assert!(is_exact(EXACT) && is_exact(tagged));
        assert!(is_exact(TwelveTuple { dl_type: 0x88cc, wildcards: 0xff00_0000, ..EXACT }));
        assert!(!is_exact(TwelveTuple { wildcards: 1 << 20, ..EXACT }));
        assert!(!is_exact(TwelveTuple { wildcards: NOTHING, ..EXACT }));
    }

    #[test]
    fn of_a_member_the_bits_of_its_field_count() {
        let icmp = TwelveTuple { nw_proto: 1, tp_src: 0x0108, tp_dst: 0x0203, ..EXACT };
        let icmp = decoded(icmp).unwrap();
        assert_eq!(icmp.exact(Field::Icmpv4Type), Some(8));
        assert_eq!(icmp.exact(Field::Icmpv4Code), Some(3));
        let tagged = decoded(TwelveTuple { dl_vlan: 0x1005, dl_vlan_pcp: 0x0d, ..EXACT }).unwrap();
        assert_eq!(tagged.exact(Field::VlanVid), Some(VID_PRESENT | 5));
        assert_eq!(tagged.exact(Field::VlanPcp), Some(5));
        let none = decoded(TwelveTuple { dl_vlan_pcp: 3, ..EXACT }).unwrap();
        assert_eq!(none.exact(Field::VlanVid), Some(0));
        assert_eq!(none.get(Field::VlanPcp), None);
    }

    #[test]
    fn thirty_two_ignored_bits_and_more_ignore_the_address() {
        for (bits, mask) in [(0, Some(0xffff_ffff)), (8, Some(0xffff_ff00)), (31, Some(1 << 31))]
            .into_iter()
            .chain([(32, None), (40, None), (63, None)])
        {
            let wildcards = NOTHING & !(1 << 4) & !(0x3f << 8) | bits << 8;
            let tuple = TwelveTuple {
                wildcards,
                dl_type: 0x0800,
                nw_src: 0xc0a8_0101,
                ..TwelveTuple::default()
            };
            let matching = decoded(tuple).unwrap();
            assert_eq!(matching.get(Field::Ipv4Src).map(|held| held.mask), mask, "{bits} bits");
        }
    }

    #[test]
    fn tags_are_asked_for_by_id_by_priority_or_not_at_all() {
        let vid = Match::any().with(Field::VlanVid, VID_PRESENT | 5);
        let none = Match::any().with(Field::VlanVid, 0);
        let any = Match::any().with_masked(Field::VlanVid, VID_PRESENT, VID_PRESENT);
        for sayable in [vid.clone().with(Field::VlanPcp, 3), vid, none] {
            assert_eq!(encoded(&sayable), Ok(()));
        }
        assert_eq!(encoded(&any.clone().with(Field::VlanPcp, 0)), Ok(()));
        assert!(encoded(&any).is_err());
    }

    #[test]
    fn where_no_tag_is_wanted_a_priority_of_zero_counts() {
        let Tuple(none) = Tuple::of(&Match::any().with(Field::VlanVid, 0)).unwrap();
        assert_eq!(none.wildcards, NOTHING & !super::DL_VLAN & !super::DL_VLAN_PCP);
        assert_eq!((none.dl_vlan, none.dl_vlan_pcp), (0xffff, 0));
    }

    #[test]
    fn what_the_tuple_has_no_room_for_is_named() {
        let ip = Match::any().with(Field::EthType, 0x0800);
        let arp = Match::any().with(Field::EthType, 0x0806);
        for (unsayable, what) in [
            (Match::any().with(Field::Metadata, 1), "metadata"),
            (Match::any().with_masked(Field::EthDst, 1, 1), "eth_dst"),
            (Match::any().with(Field::InPort, 0xff00), "in_port"),
            (ip.clone().with_masked(Field::Ipv4Src, 1, 0xff), "ipv4_src"),
            (ip.with(Field::IpEcn, 1), "ip_ecn"),
            (arp.with(Field::ArpOp, 256), "arp_op"),
        ] {
            let error = EncodeError::Unsupported { version: Version::V1_0, what };
            assert_eq!(encoded(&unsayable), Err(error));
        }
        assert!(encoded(&Match::any().with(Field::IpProto, 6)).is_err());
    }
}
