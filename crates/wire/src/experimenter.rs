//! Experimenter messages and experimenter multiparts (clauses 7.5.4 and 7.3.5.15; vendor in 1.0).
//!
//! Bodies are carried, never interpreted. 1.0 has no type within an experimenter: its body begins
//! right behind the vendor id.

use openflow::Version;
use openflow::message::Experimenter;

use crate::reader::{self, Reader};
use crate::writer::{self, Writer};

pub(crate) fn read(r: &mut Reader<'_>) -> reader::Result<Experimenter> {
    let experimenter = r.u32()?;
    let exp_type = match r.version {
        Version::V1_0 => 0,
        Version::V1_3 => r.u32()?,
    };
    Ok(Experimenter { experimenter, exp_type, data: r.rest().to_vec() })
}

pub(crate) fn write(w: &mut Writer<'_>, body: &Experimenter) -> writer::Result<()> {
    w.u32(body.experimenter);
    match w.version {
        Version::V1_0 => w.require(body.exp_type == 0, "type of an experimenter message")?,
        Version::V1_3 => w.u32(body.exp_type),
    }
    w.bytes(&body.data);
    Ok(())
}
