//! One match field on the wire: OXM header, value, mask (clause 7.2.3.2).
//!
//! Everything comes from the fields' rows; no field has code of its own here.

use openflow::field::{ALL_FIELDS, OXM_CLASS_EXPERIMENTER};
use openflow::table::OxmId;
use openflow::{Error, Field, Match, MatchField, Version};

use crate::error::{EncodeError, Fault};
use crate::reader::{self, Reader};
use crate::writer::{self, Writer};

/// The 32 bits before a value: class, field, has-mask bit, length of value and mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OxmHeader(u32);

/// The bits of the length.
const LEN: u32 = 0xff;

/// The headers of all fields without a mask.
static HEADERS: [u32; ALL_FIELDS.len()] = {
    let mut headers = [0; ALL_FIELDS.len()];
    let mut index = 0;
    while index < headers.len() {
        let row = &ALL_FIELDS[index];
        let named = (row.class as u32) << 16 | (row.oxm as u32) << 9;
        headers[index] = named | row.field.bytes() as u32;
        index += 1;
    }
    headers
};

impl OxmHeader {
    #[inline]
    fn of(field: Field, has_mask: bool) -> Self {
        let bits = HEADERS[field as usize];
        Self(if has_mask { with_mask(bits) } else { bits })
    }

    fn class(self) -> u16 {
        u16::from_be_bytes([self.0.to_be_bytes()[0], self.0.to_be_bytes()[1]])
    }

    /// The field, if it is one of the version.
    fn field(self, version: Version) -> Option<Field> {
        self.field_of_any().filter(|field| field.is_in(version))
    }

    /// The field, if it is one of any version.
    fn field_of_any(self) -> Option<Field> {
        let number = u8::try_from(self.0 >> 9 & 0x7f).ok()?;
        Field::from_class(self.class(), number)
    }

    fn has_mask(self) -> bool {
        self.0 & 1 << 8 != 0
    }

    fn len(self) -> usize {
        usize::from(self.0.to_be_bytes()[3])
    }
}

/// The value of a field: of sixteen bytes, or of eight at most. Most lengths are one load.
fn number(bytes: &[u8]) -> u128 {
    match *bytes {
        [a] => a.into(),
        [a, b] => u16::from_be_bytes([a, b]).into(),
        [a, b, c, d] => u32::from_be_bytes([a, b, c, d]).into(),
        [a, b, c, d, e, f] => u64::from_be_bytes([0, 0, a, b, c, d, e, f]).into(),
        _ => match bytes.try_into() {
            Ok(wide) => u128::from_be_bytes(wide),
            Err(_) => bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)).into(),
        },
    }
}

#[inline(always)]
fn write_number(w: &mut Writer<'_>, field: Field, number: u128) {
    let len = field.bytes();
    match u64::try_from(number) {
        Ok(number) if len <= 8 => w.front(number << (64 - 8 * len), len),
        Ok(_) | Err(_) => w.bytes(number.to_be_bytes().get(16 - len..).unwrap_or_default()),
    }
}

/// Reads a field into the match.
///
/// The faults are those of clause 7.2.3.3: `OFPBMC_BAD_FIELD` for unknown classes and fields,
/// `OFPBMC_BAD_LEN` for a length that is not the field's, `OFPBMC_BAD_MASK` for a mask that the
/// field does not take, and those of [`Match::add`].
pub(crate) fn read_into(r: &mut Reader<'_>, matching: &mut Match) -> reader::ReadResult<()> {
    let offset = r.offset();
    let header = OxmHeader(r.u32()?);
    let bytes = r.bytes(header.len())?;
    let known = header.field(r.version).map(|field| (field, bytes));
    let known = known.or_else(|| of_onf(header, bytes).filter(|(field, _)| field.is_in(r.version)));
    // One call of `add`, which is compiled into this function then: fields are most of a match.
    match known {
        Some((field, bytes)) => add(matching, field, header.has_mask(), bytes, offset),
        None => pass_over(header, bytes, r.version, offset),
    }
}

/// Refuses a field that is none here, but for the one packet type that all packets have.
#[cold]
fn pass_over(
    header: OxmHeader,
    bytes: &[u8],
    version: Version,
    offset: usize,
) -> reader::ReadResult<()> {
    match bytes {
        [0, 0, 0, 0] if is_packet_type(header, version) => Ok(()),
        _ if is_packet_type(header, version) => {
            Err(Fault { error: Error::BadMatchBadValue, what: "packet_type", offset })
        }
        _ => Err(Fault { error: Error::BadMatchBadField, what: "match", offset }),
    }
}

/// Adds the field whose value and mask these bytes are.
#[inline]
fn add(
    matching: &mut Match,
    field: Field,
    has_mask: bool,
    bytes: &[u8],
    offset: usize,
) -> reader::ReadResult<()> {
    let row = field.row();
    let fail = |error| Fault { error, what: row.name, offset };
    if has_mask && !row.maskable {
        return Err(fail(Error::BadMatchBadMask));
    }
    if bytes.len() != field.bytes() << u32::from(has_mask) {
        return Err(fail(Error::BadMatchBadLen));
    }
    let (value, mask) = bytes.split_at_checked(field.bytes()).unwrap_or_default();
    let value = number(value);
    let mask = if has_mask { number(mask) } else { field.full_mask() };
    if mask & !field.full_mask() != 0 {
        return Err(fail(Error::BadMatchBadMask));
    }
    matching.add(field, value, mask).map_err(fail)
}

/// Reads a field of Nicira's match, which has the fields of all versions and ONF's. Bits of the
/// value outside of the mask mean nothing there.
///
/// The faults are those of [`read_into`].
#[cold]
pub(crate) fn read_nxm_into(r: &mut Reader<'_>, matching: &mut Match) -> reader::ReadResult<()> {
    let offset = r.offset();
    let header = OxmHeader(r.u32()?);
    let bytes = r.bytes(header.len())?;
    let known = header.field_of_any().map(|field| (field, bytes));
    let known = known.or_else(|| of_onf(header, bytes));
    let Some((field, bytes)) = known else {
        return Err(Fault { error: Error::BadMatchBadField, what: "nx_match", offset });
    };
    let fail = |error| Fault { error, what: field.row().name, offset };
    if bytes.len() != field.bytes() << u32::from(header.has_mask()) {
        return Err(fail(Error::BadMatchBadLen));
    }
    let (value, mask) = bytes.split_at_checked(field.bytes()).unwrap_or_default();
    let mask = if header.has_mask() { number(mask) } else { field.full_mask() };
    if mask & !field.full_mask() != 0 {
        return Err(fail(Error::BadMatchBadMask));
    }
    let outside = !mask & field.full_mask();
    matching.add(field, number(value) & !outside, mask).map_err(fail)
}

/// The header of an entry without its mask, and whether it has one. An uneven length of both leaves
/// it as it is, since no field has such a one.
pub(crate) fn split_mask(header: u32) -> (u32, bool) {
    let has_mask = OxmHeader(header).has_mask() && header.is_multiple_of(2);
    let len = header & LEN;
    (if has_mask { header & !(1 << 8 | LEN) | (len / 2) } else { header }, has_mask)
}

/// The header of an entry with a mask.
pub(crate) fn with_mask(header: u32) -> u32 {
    (header + (header & LEN)) | 1 << 8
}

/// The Open Networking Foundation, as the owner of fields.
const ONF: u32 = 0x4f4e_4600;

/// Bytes of the owner before the value of its field.
const OWNER_LEN: usize = 4;

/// Whether a version has the field as one of ONF's only.
#[inline]
fn is_onf(field: Field, version: Version) -> bool {
    field == Field::TcpFlags && !version.has_tcp_flags()
}

/// The header of a field of ONF's.
#[cold]
fn onf_header(field: Field, has_mask: bool) -> u32 {
    let owned = OxmHeader::of(field, has_mask).0 + OWNER_LEN as u32;
    u32::from(OXM_CLASS_EXPERIMENTER) << 16 | owned & 0xffff
}

/// The field of ONF's that a header names, with the owner behind it.
#[cold]
fn onf_field(header: OxmHeader, owner: u32) -> Option<Field> {
    let is_it = |field: &Field| onf_header(*field, header.has_mask()) == header.0;
    Some(Field::TcpFlags).filter(|field| owner == ONF && is_it(field))
}

/// The field of ONF's that a header names, and its value and mask behind the owner.
#[cold]
fn of_onf(header: OxmHeader, bytes: &[u8]) -> Option<(Field, &[u8])> {
    let (owner, bytes) = bytes.split_first_chunk()?;
    Some((onf_field(header, u32::from_be_bytes(*owner))?, bytes))
}

/// `OXM_OF_PACKET_TYPE` of 1.5, which is no field here: all packets are Ethernet frames, of type
/// zero.
const PACKET_TYPE: OxmHeader = OxmHeader(0x8000_5804);

fn is_packet_type(header: OxmHeader, version: Version) -> bool {
    version.has_packet_types() && header == PACKET_TYPE
}

/// Reads the packet types of a table's features; values of other fields are left out.
pub(crate) fn read_packet_types(r: &mut Reader<'_>) -> reader::ReadResult<Vec<u32>> {
    let mut types = Vec::new();
    while !r.is_empty() {
        let header = OxmHeader(r.u32()?);
        let mut value = r.part(header.len())?;
        if header == PACKET_TYPE {
            types.push(value.u32()?);
        }
    }
    Ok(types)
}

/// Writes a packet type among those of a table's features.
pub(crate) fn write_packet_type(w: &mut Writer<'_>, packet_type: u32) {
    w.u32(PACKET_TYPE.0);
    w.u32(packet_type);
}

/// Writes a field of a match.
pub(crate) fn write(w: &mut Writer<'_>, held: &MatchField) -> writer::WriteResult<()> {
    check_version(w, held.field)?;
    write_held(w, held);
    Ok(())
}

/// Writes a field of any version.
pub(crate) fn write_held(w: &mut Writer<'_>, held: &MatchField) {
    let has_mask = !held.is_exact();
    if is_onf(held.field, w.version) {
        w.u32(onf_header(held.field, has_mask));
        w.u32(ONF);
    } else {
        w.u32(OxmHeader::of(held.field, has_mask).0);
    }
    write_number(w, held.field, held.value);
    if has_mask {
        write_number(w, held.field, held.mask);
    }
}

/// Refuses a field that the version does not have.
fn check_version(w: &Writer<'_>, field: Field) -> writer::WriteResult<()> {
    if field.is_in(w.version) {
        return Ok(());
    }
    Err(EncodeError::Unsupported { version: w.version, what: field.row().name })
}

/// Reads the OXM header by which an action names a field of a version: one without a mask.
///
/// The faults are those of clause 7.2.5: `OFPBAC_BAD_SET_TYPE` for unknown fields and for masks,
/// `OFPBAC_BAD_SET_LEN` for lengths.
pub(crate) fn read_field(r: &mut Reader<'_>, version: Version) -> reader::ReadResult<Field> {
    let start = r.clone();
    let header = OxmHeader(r.u32()?);
    let known = header.field(version).filter(|_| !header.has_mask());
    let field = known.ok_or_else(|| start.fault(Error::BadActionBadSetType))?;
    if header.len() != field.bytes() {
        return Err(start.fault_in(Error::BadActionBadSetLen, field.row().name));
    }
    Ok(field)
}

/// Reads the value of the field that a set-field names at `start`, with its padding.
///
/// The faults are those of clause 7.2.5: `OFPBAC_BAD_SET_TYPE` for what cannot be set,
/// `OFPBAC_BAD_SET_LEN` for lengths, `OFPBAC_BAD_SET_ARGUMENT` for values beyond the field's width.
pub(crate) fn read_value(
    r: &mut Reader<'_>,
    field: Field,
    start: &Reader<'_>,
) -> reader::ReadResult<u128> {
    if !field.row().settable {
        return Err(start.fault(Error::BadActionBadSetType));
    }
    let fail = |error| start.fault_in(error, field.row().name);
    let padded = (8 + field.bytes()).next_multiple_of(8) - 8;
    if r.remaining() != padded {
        return Err(fail(Error::BadActionBadSetLen));
    }
    let value = number(r.bytes(field.bytes())?);
    r.rest();
    if value & !field.full_mask() != 0 {
        return Err(fail(Error::BadActionBadSetArgument));
    }
    Ok(value)
}

/// Reads a field whose value says which of its bits count.
///
/// The faults are those of [`read_into`]. Bits that the field has not are passed over: Open vSwitch
/// sets them where all of the field counts.
pub(crate) fn read_bits(r: &mut Reader<'_>) -> reader::ReadResult<(Field, u128)> {
    let start = r.clone();
    let header = OxmHeader(r.u32()?);
    let known = header.field_of_any().filter(|_| !header.has_mask());
    let field = known.ok_or_else(|| start.fault(Error::BadMatchBadField))?;
    let fail = |error| start.fault_in(error, field.row().name);
    if header.len() != field.bytes() {
        return Err(fail(Error::BadMatchBadLen));
    }
    let bits = number(r.bytes(field.bytes())?) & field.full_mask();
    let is_part = bits != field.full_mask();
    if is_part && !field.row().maskable {
        return Err(fail(Error::BadMatchBadMask));
    }
    Ok((field, bits))
}

/// Writes a field whose value says which of its bits count.
pub(crate) fn write_bits(w: &mut Writer<'_>, field: Field, bits: u128) -> writer::WriteResult<()> {
    write_field(w, field)?;
    // Open vSwitch takes all of a field by its bytes.
    let is_whole = bits == field.full_mask();
    write_number(w, field, if is_whole { u128::MAX >> (128 - 8 * field.bytes()) } else { bits });
    Ok(())
}

/// Whether the field that begins here has a mask.
pub(crate) fn has_mask(mut r: Reader<'_>) -> bool {
    r.u32().is_ok_and(|header| OxmHeader(header).has_mask())
}

/// Reads the field, value and mask of a set-field, with its padding.
///
/// The faults are those of [`read_value`], and `OFPBAC_BAD_SET_MASK` for an empty mask and for a
/// value outside of it.
pub(crate) fn read_masked(mut r: Reader<'_>) -> reader::ReadResult<(Field, u128, u128)> {
    let start = r.clone();
    let header = OxmHeader(r.u32()?);
    let known = header.field(r.version).filter(|field| field.row().settable);
    let field = known.ok_or_else(|| start.fault(Error::BadActionBadSetType))?;
    let fail = |error| start.fault_in(error, field.row().name);
    let padded = (8 + 2 * field.bytes()).next_multiple_of(8) - 8;
    if header.len() != 2 * field.bytes() || r.remaining() != padded {
        return Err(fail(Error::BadActionBadSetLen));
    }
    let (value, mask) = (number(r.bytes(field.bytes())?), number(r.bytes(field.bytes())?));
    if mask & !field.full_mask() != 0 {
        return Err(fail(Error::BadActionBadSetArgument));
    }
    if mask == 0 || value & !mask != 0 {
        return Err(fail(Error::BadActionBadSetMask));
    }
    Ok((field, value, mask))
}

/// Writes the field, value and mask of a set-field; no mask where it is the whole field.
pub(crate) fn write_masked(
    w: &mut Writer<'_>,
    field: Field,
    value: u128,
    mask: u128,
) -> writer::WriteResult<()> {
    check_version(w, field)?;
    let has_mask = mask != field.full_mask();
    w.u32(OxmHeader::of(field, has_mask).0);
    write_value(w, field, value)?;
    if has_mask {
        write_value(w, field, mask)?;
    }
    Ok(())
}

/// Writes the OXM header by which an action names a field.
pub(crate) fn write_field(w: &mut Writer<'_>, field: Field) -> writer::WriteResult<()> {
    check_version(w, field)?;
    w.u32(OxmHeader::of(field, false).0);
    Ok(())
}

/// Writes the header by which an action of Nicira's names a field.
pub(crate) fn write_nxm_field(w: &mut Writer<'_>, field: Field) {
    w.u32(nxm_header(field));
}

fn nxm_header(field: Field) -> u32 {
    let (class, number) = field.nxm();
    let named = u32::from(class) << 16 | u32::from(number) << 9;
    named | OxmHeader::of(field, false).0 & LEN
}

/// Writes a field of Nicira's match.
pub(crate) fn write_nxm(w: &mut Writer<'_>, held: &MatchField) {
    let header = nxm_header(held.field);
    w.u32(if held.is_exact() { header } else { with_mask(header) });
    write_number(w, held.field, held.value);
    if !held.is_exact() {
        write_number(w, held.field, held.mask);
    }
}

/// Writes the value of a set-field action.
pub(crate) fn write_value(
    w: &mut Writer<'_>,
    field: Field,
    value: u128,
) -> writer::WriteResult<()> {
    if !field.row().settable {
        return Err(EncodeError::Invalid { what: "set-field of a field that cannot be set" });
    }
    if value & !field.full_mask() != 0 {
        return Err(EncodeError::Invalid { what: "set-field of a value wider than its field" });
    }
    write_number(w, field, value);
    Ok(())
}

/// Reads the name of a field in a table's features. A header that is not exactly that of a known
/// field stays as it came.
pub(crate) fn read_id(r: &mut Reader<'_>) -> Result<OxmId, Fault> {
    let header = OxmHeader(r.u32()?);
    if header.class() == OXM_CLASS_EXPERIMENTER {
        let experimenter = r.u32()?;
        return Ok(match onf_field(header, experimenter) {
            Some(field) => OxmId::Basic { field, maskable: header.has_mask() },
            None => OxmId::Experimenter { header: header.0, experimenter },
        });
    }
    let known =
        header.field(r.version).filter(|field| header == OxmHeader::of(*field, header.has_mask()));
    Ok(match known {
        Some(field) => OxmId::Basic { field, maskable: header.has_mask() },
        None => OxmId::Unknown(header.0),
    })
}

/// Writes the name of a field in a table's features.
pub(crate) fn write_id(w: &mut Writer<'_>, id: OxmId) {
    match id {
        OxmId::Basic { field, maskable } if is_onf(field, w.version) => {
            w.u32(onf_header(field, maskable));
            w.u32(ONF);
        }
        OxmId::Basic { field, maskable } => w.u32(OxmHeader::of(field, maskable).0),
        OxmId::Unknown(header) => w.u32(header),
        OxmId::Experimenter { header, experimenter } => {
            w.u32(header);
            w.u32(experimenter);
        }
    }
}
