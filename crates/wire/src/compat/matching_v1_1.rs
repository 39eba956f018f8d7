//! `ofp_match` of 1.1 (clause A.2.3 of 1.1), 88 bytes, to and from match fields.
//!
//! It has the members of 1.0's twelve-tuple, a mask beside each address, and the MPLS entry and the
//! metadata. As in 1.0 a member whose prerequisite is missing is ignored, and what a member means
//! depends on others; unlike there, values that are none are refused. A match that this struct has
//! no room for is written as a list of OXM fields, which has a type of its own: Open vSwitch writes
//! and reads such in 1.1 too, and to leave a field out would be another match.

use openflow::field::VID_PRESENT;
use openflow::{Error, Field, MacAddr, Match, MatchField};

use super::matching::{Member, member_of};
use crate::matching::{Purpose, TYPE_OXM};
use crate::reader::{self, Reader};
use crate::writer::{self, Writer};
use crate::{nxm, oxm};

/// `OFPMT_STANDARD`, and the length of such a match.
const TYPE_STANDARD: u16 = 0;
const LEN: usize = 88;

const IN_PORT: u32 = 1;
const DL_VLAN: u32 = 1 << 1;
const DL_VLAN_PCP: u32 = 1 << 2;
const DL_TYPE: u32 = 1 << 3;
const NW_TOS: u32 = 1 << 4;
const NW_PROTO: u32 = 1 << 5;
const TP_SRC: u32 = 1 << 6;
const TP_DST: u32 = 1 << 7;
const MPLS_LABEL: u32 = 1 << 8;
const MPLS_TC: u32 = 1 << 9;
/// Every wildcard (`OFPFW_ALL`).
const NOTHING: u32 = (1 << 10) - 1;

/// `dl_vlan` of packets with any tag (`OFPVID_ANY`), and of those without one (`OFPVID_NONE`).
const VLAN_ANY: u16 = 0xfffe;
const VLAN_NONE: u16 = 0xffff;

const ETH_TYPE_IPV4: u16 = 0x0800;
const ETH_TYPE_ARP: u16 = 0x0806;
const ETH_TYPES_MPLS: [u16; 2] = [0x8847, 0x8848];

/// A value and its mask as this match has them: ones in the mask are bits that do not count.
type Ignoring = (u64, u64);

/// The members as they stand on the wire.
#[derive(Clone, Copy, Debug)]
struct Members {
    in_port: u32,
    wildcards: u32,
    dl_src: Ignoring,
    dl_dst: Ignoring,
    dl_vlan: u16,
    dl_vlan_pcp: u8,
    dl_type: u16,
    nw_tos: u8,
    nw_proto: u8,
    nw_src: Ignoring,
    nw_dst: Ignoring,
    tp_src: u16,
    tp_dst: u16,
    mpls_label: u32,
    mpls_tc: u8,
    metadata: Ignoring,
}

impl Members {
    /// The match of all packets.
    const ANY: Self = Self {
        in_port: 0,
        wildcards: NOTHING,
        dl_src: (0, 0xffff_ffff_ffff),
        dl_dst: (0, 0xffff_ffff_ffff),
        dl_vlan: 0,
        dl_vlan_pcp: 0,
        dl_type: 0,
        nw_tos: 0,
        nw_proto: 0,
        nw_src: (0, 0xffff_ffff),
        nw_dst: (0, 0xffff_ffff),
        tp_src: 0,
        tp_dst: 0,
        mpls_label: 0,
        mpls_tc: 0,
        metadata: (0, u64::MAX),
    };

    fn read(r: &mut Reader<'_>) -> reader::ReadResult<Self> {
        let (in_port, wildcards) = (r.u32()?, r.u32()?);
        let mut mac =
            || -> reader::ReadResult<Ignoring> { Ok((r.mac()?.to_u64(), r.mac()?.to_u64())) };
        let (dl_src, dl_dst) = (mac()?, mac()?);
        let (dl_vlan, dl_vlan_pcp) = (r.u16()?, r.u8()?);
        r.skip(1)?;
        let (dl_type, nw_tos, nw_proto) = (r.u16()?, r.u8()?, r.u8()?);
        let nw_src = (r.u32()?.into(), r.u32()?.into());
        let nw_dst = (r.u32()?.into(), r.u32()?.into());
        let (tp_src, tp_dst) = (r.u16()?, r.u16()?);
        let (mpls_label, mpls_tc) = (r.u32()?, r.u8()?);
        r.skip(3)?;
        let metadata = (r.u64()?, r.u64()?);
        Ok(Self {
            in_port,
            wildcards,
            dl_src,
            dl_dst,
            dl_vlan,
            dl_vlan_pcp,
            dl_type,
            nw_tos,
            nw_proto,
            nw_src,
            nw_dst,
            tp_src,
            tp_dst,
            mpls_label,
            mpls_tc,
            metadata,
        })
    }

    fn write(&self, w: &mut Writer<'_>) {
        w.u16(TYPE_STANDARD);
        w.u16(LEN as u16);
        w.u32(self.in_port);
        w.u32(self.wildcards);
        for (address, mask) in [self.dl_src, self.dl_dst] {
            w.mac(MacAddr::from_u64(address));
            w.mac(MacAddr::from_u64(mask));
        }
        w.u16(self.dl_vlan);
        w.u8(self.dl_vlan_pcp);
        w.zeros(1);
        w.u16(self.dl_type);
        w.u8(self.nw_tos);
        w.u8(self.nw_proto);
        for (address, mask) in [self.nw_src, self.nw_dst] {
            w.u32(address as u32);
            w.u32(mask as u32);
        }
        w.u16(self.tp_src);
        w.u16(self.tp_dst);
        w.u32(self.mpls_label);
        w.u8(self.mpls_tc);
        w.zeros(3);
        w.u64(self.metadata.0);
        w.u64(self.metadata.1);
    }

    /// Whether the member counts.
    fn has(&self, wildcard: u32) -> bool {
        self.wildcards & wildcard == 0
    }

    fn to_match(self) -> Result<Match, Error> {
        let mut matching = Match::any();
        if self.has(IN_PORT) {
            matching = matching.with(Field::InPort, self.in_port.into());
        }
        add_masked(&mut matching, Field::EthSrc, self.dl_src)?;
        add_masked(&mut matching, Field::EthDst, self.dl_dst)?;
        self.add_vlan(&mut matching)?;
        if self.has(DL_TYPE) {
            add(&mut matching, Field::EthType, self.dl_type)?;
            self.add_network(&mut matching)?;
        }
        add_masked(&mut matching, Field::Metadata, self.metadata)?;
        Ok(matching)
    }

    /// A tag's id, any tag, or none. A priority says nothing where no tag is asked for.
    fn add_vlan(&self, matching: &mut Match) -> Result<(), Error> {
        if !self.has(DL_VLAN) {
            return Ok(());
        }
        match self.dl_vlan {
            VLAN_NONE => return add(matching, Field::VlanVid, 0_u16),
            VLAN_ANY => matching.add(Field::VlanVid, VID_PRESENT, VID_PRESENT)?,
            vid if u128::from(vid) < VID_PRESENT => {
                add(matching, Field::VlanVid, u128::from(vid) | VID_PRESENT)?;
            }
            _ => return Err(Error::BadMatchBadValue),
        }
        if self.has(DL_VLAN_PCP) {
            add(matching, Field::VlanPcp, self.dl_vlan_pcp)?;
        }
        Ok(())
    }

    fn add_network(&self, matching: &mut Match) -> Result<(), Error> {
        match self.dl_type {
            ETH_TYPE_ARP => {
                if self.has(NW_PROTO) {
                    add(matching, Field::ArpOp, self.nw_proto)?;
                }
                add_masked(matching, Field::ArpSpa, self.nw_src)?;
                add_masked(matching, Field::ArpTpa, self.nw_dst)
            }
            ETH_TYPE_IPV4 => {
                if self.has(NW_TOS) {
                    if self.nw_tos & 3 != 0 {
                        return Err(Error::BadMatchBadValue);
                    }
                    add(matching, Field::IpDscp, self.nw_tos >> 2)?;
                }
                add_masked(matching, Field::Ipv4Src, self.nw_src)?;
                add_masked(matching, Field::Ipv4Dst, self.nw_dst)?;
                self.add_transport(matching)
            }
            number if ETH_TYPES_MPLS.contains(&number) => {
                if self.has(MPLS_LABEL) {
                    let label = u128::from(self.mpls_label) & Field::MplsLabel.full_mask();
                    add(matching, Field::MplsLabel, label)?;
                }
                if self.has(MPLS_TC) {
                    let class = u128::from(self.mpls_tc) & Field::MplsTc.full_mask();
                    add(matching, Field::MplsTc, class)?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn add_transport(&self, matching: &mut Match) -> Result<(), Error> {
        if !self.has(NW_PROTO) {
            return Ok(());
        }
        add(matching, Field::IpProto, self.nw_proto)?;
        let Some((src, dst)) = super::matching::ports_of(matching) else { return Ok(()) };
        for (wildcard, field, number) in [(TP_SRC, src, self.tp_src), (TP_DST, dst, self.tp_dst)] {
            if self.has(wildcard) {
                // A type or code of ICMP that has more than a byte is refused as by Open vSwitch.
                if u128::from(number) > field.full_mask() {
                    return Err(Error::BadMatchBadField);
                }
                add(matching, field, number)?;
            }
        }
        Ok(())
    }

    /// The members of a match whose prerequisites hold, if they can say it.
    fn of(matching: &Match) -> Option<Self> {
        let mut members = Self::ANY;
        let eth_type = matching.exact(Field::EthType);
        let is_ipv6 = eth_type == Some(0x86dd);
        matching.fields().iter().try_for_each(|held| members.put(held, is_ipv6))?;
        Some(members)
    }

    /// Puts one field.
    fn put(&mut self, held: &MatchField, is_ipv6: bool) -> Option<()> {
        let wildcard = if held.field == Field::Metadata {
            self.metadata = masked(held)?;
            0
        } else if held.field == Field::MplsLabel {
            self.mpls_label = number(held)?;
            MPLS_LABEL
        } else if held.field == Field::MplsTc {
            self.mpls_tc = number(held)?.try_into().ok()?;
            MPLS_TC
        } else {
            self.put_member(member_of(held.field)?, held, is_ipv6)?
        };
        self.wildcards &= !wildcard;
        Some(())
    }

    /// Puts a field that 1.0 has too; its wildcard. Those of IP are IPv4's alone.
    fn put_member(&mut self, member: Member, held: &MatchField, is_ipv6: bool) -> Option<u32> {
        let short = || u16::try_from(number(held)?).ok();
        let byte = || u8::try_from(number(held)?).ok();
        let of_ipv4 = || (!is_ipv6).then_some(());
        let wildcard = match member {
            Member::DlSrc => {
                self.dl_src = masked(held)?;
                0
            }
            Member::DlDst => {
                self.dl_dst = masked(held)?;
                0
            }
            Member::NwSrc => {
                self.nw_src = masked(held)?;
                0
            }
            Member::NwDst => {
                self.nw_dst = masked(held)?;
                0
            }
            Member::InPort => {
                self.in_port = number(held)?;
                IN_PORT
            }
            Member::DlVlan => {
                self.dl_vlan = vlan_of(held)?;
                DL_VLAN
            }
            Member::DlVlanPcp => {
                self.dl_vlan_pcp = byte()?;
                DL_VLAN_PCP
            }
            Member::DlType => {
                self.dl_type = short()?;
                DL_TYPE
            }
            Member::NwTos => {
                self.nw_tos = of_ipv4().and(byte())? << 2;
                NW_TOS
            }
            Member::NwProto => {
                self.nw_proto = of_ipv4().and(byte())?;
                NW_PROTO
            }
            Member::TpSrc => {
                self.tp_src = of_ipv4().and(short())?;
                TP_SRC
            }
            Member::TpDst => {
                self.tp_dst = of_ipv4().and(short())?;
                TP_DST
            }
        };
        Some(wildcard)
    }
}

/// The value of a field, and the bits of it that do not count.
fn masked(held: &MatchField) -> Option<Ignoring> {
    let width = u64::try_from(held.field.full_mask()).ok()?;
    Some((u64::try_from(held.value).ok()?, !u64::try_from(held.mask).ok()? & width))
}

/// The value of a field of which all bits count.
fn number(held: &MatchField) -> Option<u32> {
    u32::try_from(held.value).ok().filter(|_| held.is_exact())
}

/// `dl_vlan` of an exact id, of any tag, or of none.
fn vlan_of(held: &MatchField) -> Option<u16> {
    match (held.value, held.mask) {
        (VID_PRESENT, VID_PRESENT) => Some(VLAN_ANY),
        (0, _) if held.is_exact() => Some(VLAN_NONE),
        (value, _) if held.is_exact() && value & VID_PRESENT != 0 => {
            u16::try_from(value & !VID_PRESENT).ok()
        }
        _ => None,
    }
}

/// Adds a field of which all bits count.
fn add(matching: &mut Match, field: Field, value: impl Into<u128>) -> Result<(), Error> {
    matching.add(field, value.into(), field.full_mask())
}

/// Adds the bits that count, if some do.
fn add_masked(matching: &mut Match, field: Field, (value, ignored): Ignoring) -> Result<(), Error> {
    let mask = !u128::from(ignored) & field.full_mask();
    if mask == 0 { Ok(()) } else { matching.add(field, u128::from(value) & mask, mask) }
}

/// Reads a match of either type.
pub(crate) fn read(r: &mut Reader<'_>, purpose: Purpose) -> reader::ReadResult<Match> {
    let start = r.clone().reading("match", Error::BadMatchBadLen);
    let mut inner = start.clone();
    let (number, len, mut body) = inner.element()?;
    let matching = match number {
        TYPE_STANDARD if len == LEN => {
            let members = Members::read(&mut body)?;
            members.to_match().map_err(|error| start.fault_in(error, "ofp_match"))?
        }
        TYPE_STANDARD => return Err(start.bad_len()),
        TYPE_OXM => {
            let found = nxm::read_entries(&mut body, purpose)?;
            if found.cookie_mask != 0 {
                return Err(start.fault(Error::BadMatchBadField));
            }
            if purpose == Purpose::Select {
                found.matching.check_prerequisites().map_err(|error| start.fault(error))?;
            }
            found.matching
        }
        _ => return Err(start.fault(Error::BadMatchBadType)),
    };
    inner.skip(len.next_multiple_of(8) - len)?;
    r.skip(len.next_multiple_of(8))?;
    Ok(matching)
}

/// Writes a match, as a list of OXM fields where the struct has no room for it.
pub(crate) fn write(w: &mut Writer<'_>, matching: &Match) -> writer::WriteResult<()> {
    let sayable = Members::of(matching).filter(|_| matching.check_prerequisites().is_ok());
    if let Some(members) = sayable {
        members.write(w);
        return Ok(());
    }
    let start = w.place();
    w.u16(TYPE_OXM);
    w.u16(0);
    matching.fields().iter().for_each(|held| oxm::write_held(w, held));
    w.fill_len(start + 2, start, "match")?;
    w.pad_from(start);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{LEN, Members, VLAN_ANY, VLAN_NONE, read, write};
    use crate::matching::Purpose;
    use crate::reader::Reader;
    use crate::writer::Writer;
    use openflow::field::VID_PRESENT;
    use openflow::{Error, Field, Match, Version};
    use testkit::Random;

    fn encoded(matching: &Match) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(&mut Writer::new(Version::V1_1, &mut bytes), matching).unwrap();
        bytes
    }

    fn decoded(bytes: &[u8]) -> Result<Match, Error> {
        let mut r = Reader::new(Version::V1_1, bytes, 0, "test");
        let matching = read(&mut r, Purpose::Select).map_err(|fault| fault.error)?;
        assert!(r.is_empty());
        Ok(matching)
    }

    fn of(members: Members) -> Result<Match, Error> {
        let mut bytes = Vec::new();
        members.write(&mut Writer::new(Version::V1_1, &mut bytes));
        assert_eq!(bytes.len(), LEN);
        decoded(&bytes)
    }

    const ANY: Members = Members::ANY;

    /// As Open vSwitch 3.1 reads and refuses the same matches.
    #[test]
    fn a_tag_is_asked_for_by_id_any_or_none() {
        let vlan = |dl_vlan| Members { wildcards: ANY.wildcards & !0b110, dl_vlan, ..ANY };
        let with = |dl_vlan, dl_vlan_pcp| of(Members { dl_vlan_pcp, ..vlan(dl_vlan) });
        let any = Match::any().with_masked(Field::VlanVid, VID_PRESENT, VID_PRESENT);
        assert_eq!(with(VLAN_ANY, 3), Ok(any.clone().with(Field::VlanPcp, 3)));
        assert_eq!(with(VLAN_NONE, 3), Ok(Match::any().with(Field::VlanVid, 0)));
        let five = Match::any().with(Field::VlanVid, VID_PRESENT | 5);
        assert_eq!(with(5, 7), Ok(five.with(Field::VlanPcp, 7)));
        assert_eq!(with(5, 8), Err(Error::BadMatchBadValue));
        assert_eq!(with(4096, 0), Err(Error::BadMatchBadValue));
        let priority_alone = Members { wildcards: ANY.wildcards & !0b100, dl_vlan_pcp: 3, ..ANY };
        assert_eq!(of(priority_alone), Ok(Match::any()));
        let tag_alone = Members { wildcards: ANY.wildcards & !0b010, dl_vlan: VLAN_ANY, ..ANY };
        assert_eq!(of(tag_alone), Ok(any));
    }

    #[test]
    fn a_member_without_its_prerequisite_is_ignored() {
        let all = Members { wildcards: 0, dl_vlan: VLAN_NONE, ..ANY };
        let untagged = Match::any().with(Field::InPort, 0).with(Field::VlanVid, 0);
        for dl_type in [0x88cc, 0x86dd] {
            let members = Members { dl_type, nw_tos: 3, nw_proto: 6, nw_src: (1, 0), ..all };
            let matching = untagged.clone().with(Field::EthType, dl_type.into());
            assert_eq!(of(members), Ok(matching), "{dl_type:#x}");
        }
        let gre = Members { dl_type: 0x0800, nw_proto: 47, tp_src: 80, ..all };
        let matching = of(gre).unwrap();
        assert_eq!(matching.exact(Field::IpProto), Some(47));
        assert_eq!(matching.get(Field::TcpSrc), None);
        let mpls = Members { dl_type: 0x8848, mpls_label: u32::MAX, mpls_tc: 9, ..all };
        let matching = of(mpls).unwrap();
        assert_eq!(matching.exact(Field::MplsLabel), Some(0xf_ffff));
        assert_eq!(matching.exact(Field::MplsTc), Some(1));
    }

    #[test]
    fn what_the_struct_has_no_room_for_is_a_list_of_oxm_fields() {
        let ipv6 = Match::any().with(Field::EthType, 0x86dd);
        let sayable = [
            Match::any(),
            Match::any().with_masked(Field::EthSrc, 0x0200_0000_0000, 0xff00_0000_0000),
            Match::any().with_masked(Field::Metadata, 5, 0xff),
            ipv6.clone(),
        ];
        for matching in sayable {
            let bytes = encoded(&matching);
            assert_eq!((bytes[..4].to_vec(), bytes.len()), (vec![0, 0, 0, 88], LEN));
            assert_eq!(decoded(&bytes), Ok(matching));
        }
        let others = [
            ipv6.clone().with(Field::IpProto, 6),
            ipv6.clone().with(Field::IpDscp, 6),
            ipv6.with(Field::Ipv6Src, 1),
            Match::any().with_masked(Field::VlanVid, VID_PRESENT | 4, 0x1ffc),
            Match::any().with(Field::Reg0, 5),
            Match::any().with(Field::EthType, 0x0806).with(Field::ArpOp, 256),
        ];
        for matching in others {
            let bytes = encoded(&matching);
            assert_eq!(bytes[..2], [0, 1], "{matching:?}");
            assert_eq!(decoded(&bytes), Ok(matching));
        }
    }

    /// Members with values that mean something, those that do not, and any wildcards.
    fn random_members(random: &mut Random) -> Members {
        let mut masked = |width: u32| {
            let (value, mask) = (random.u64(), random.u64());
            let mask = *random.pick(&[0, u64::MAX, mask, mask & value]);
            (value >> (64 - width), mask >> (64 - width))
        };
        let (dl_src, dl_dst) = (masked(48), masked(48));
        let (nw_src, nw_dst, metadata) = (masked(32), masked(32), masked(64));
        let wildcards = random.u64() as u32;
        let ports = [random.u64() as u16, random.u64() as u16];
        let [tp_src, tp_dst] = ports.map(|port| port & *random.pick(&[0xff, 0xffff]));
        Members {
            in_port: random.u64() as u32,
            wildcards: *random.pick(&[0, u32::MAX, wildcards]),
            dl_src,
            dl_dst,
            dl_vlan: *random.pick(&[VLAN_NONE, VLAN_ANY, 0, 5, 4095, 4096]),
            dl_vlan_pcp: random.byte() & 0xf,
            dl_type: *random.pick(&[0x0800, 0x0806, 0x86dd, 0x8847, 0x8848, 0x88cc]),
            nw_tos: random.byte() & 0xfd,
            nw_proto: *random.pick(&[1, 2, 6, 17, 58, 132]),
            nw_src,
            nw_dst,
            tp_src,
            tp_dst,
            mpls_label: random.u64() as u32,
            mpls_tc: random.byte(),
            metadata,
        }
    }

    #[test]
    fn members_that_are_read_are_written_with_the_same_meaning() {
        let mut random = Random::new(1);
        let mut count = 0;
        for _ in 0..20_000 {
            let members = random_members(&mut random);
            let Ok(matching) = of(members) else { continue };
            let bytes = encoded(&matching);
            assert_eq!(bytes[..2], [0, 0], "{members:?}");
            assert_eq!(decoded(&bytes), Ok(matching), "{members:?}");
            count += 1;
        }
        assert!(count > 10_000, "{count}");
    }
}
