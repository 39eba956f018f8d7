//! Experimenter messages and experimenter multiparts (clauses 7.5.4 and 7.3.5.15; vendor in 1.0).
//!
//! Bodies are carried, never interpreted. 1.0 has no type within an experimenter: its body begins
//! right behind the vendor id.

use openflow::message::Experimenter;

use crate::reader::{self, Reader};
use crate::writer::{self, Writer};

pub(crate) fn read(r: &mut Reader<'_>) -> reader::ReadResult<Experimenter> {
    let experimenter = r.u32()?;
    let exp_type = if r.version.has_experimenter_types() { r.u32()? } else { 0 };
    Ok(Experimenter { experimenter, exp_type, data: r.rest().to_vec() })
}

pub(crate) fn write(w: &mut Writer<'_>, body: &Experimenter) -> writer::WriteResult<()> {
    w.u32(body.experimenter);
    if w.version.has_experimenter_types() {
        w.u32(body.exp_type);
    } else {
        w.require(body.exp_type == 0, "type of an experimenter message")?;
    }
    w.bytes(&body.data);
    Ok(())
}
