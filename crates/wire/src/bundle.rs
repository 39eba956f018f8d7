//! Bundles in messages (1.4, clauses 7.3.9.2 and 7.3.9.6).

use openflow::Error;
use openflow::bundle::{BundleAdd, BundleControl, BundleControlType, BundleFlags};

use crate::header::{HEADER_LEN, MessageHeader};
use crate::property::{self, BUNDLE_TIME, Unknown};
use crate::reader::{self, Reader};
use crate::writer::Writer;

pub(crate) fn read_control(r: &mut Reader<'_>) -> reader::ReadResult<BundleControl> {
    let control = BundleControl {
        bundle_id: r.u32()?,
        control: BundleControlType::from_number(r.u16()?),
        flags: BundleFlags::from_bits_retain(r.u16()?),
    };
    property::read_all(r, Unknown::Refused, known)?;
    Ok(control)
}

/// Knows no property, and refuses a time by its own error.
fn known(number: u16, body: &mut Reader<'_>) -> reader::ReadResult<bool> {
    if number == BUNDLE_TIME && body.version.has_scheduled_bundles() {
        return Err(body.fault(Error::BundleSchedNotSupported));
    }
    Ok(false)
}

pub(crate) fn write_control(w: &mut Writer<'_>, control: &BundleControl) {
    w.u32(control.bundle_id);
    w.u16(control.control.number());
    w.u16(control.flags.bits());
}

/// Reads a bundle-add. The message in it stays bytes; only its length is looked at.
pub(crate) fn read_add(r: &mut Reader<'_>) -> reader::ReadResult<BundleAdd> {
    let bundle_id = r.u32()?;
    r.skip(2)?;
    let flags = BundleFlags::from_bits_retain(r.u16()?);
    let start = r.clone();
    let bad_len = || start.fault_in(Error::BundleMsgBadLen, "message in a bundle");
    let mut header = r.clone();
    let header = MessageHeader::parse(header.rest()).ok_or_else(bad_len)?;
    let len = usize::from(header.length);
    if len < HEADER_LEN || len > r.remaining() {
        return Err(bad_len());
    }
    let message = r.bytes(len)?.to_vec();
    if !r.is_empty() {
        r.skip_padding(&start, 8)?;
        property::read_all(r, Unknown::Refused, known)?;
    }
    Ok(BundleAdd { bundle_id, flags, message })
}

pub(crate) fn write_add(w: &mut Writer<'_>, add: &BundleAdd) {
    w.u32(add.bundle_id);
    w.zeros(2);
    w.u16(add.flags.bits());
    w.bytes(&add.message);
}
