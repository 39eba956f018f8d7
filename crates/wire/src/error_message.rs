//! The error message (clause 7.4.4 of 1.3, 5.4.4 of 1.0).
//!
//! Numbers go through as they came, known or not: what an unknown error means is not for the codec
//! to judge.

use openflow::message::ErrorMessage;

use crate::error::EncodeError;
use crate::reader::{self, Reader};
use crate::writer::{self, Writer};

/// `OFPET_EXPERIMENTER`.
const EXPERIMENTER: u16 = 0xffff;

pub(crate) fn read(r: &mut Reader<'_>) -> reader::ReadResult<ErrorMessage> {
    let error_type = r.u16()?;
    let code = r.u16()?;
    let is_experimenter = r.version.has_experimenter_errors() && error_type == EXPERIMENTER;
    let experimenter = if is_experimenter { Some(r.u32()?) } else { None };
    Ok(ErrorMessage { error_type, code, experimenter, data: r.rest().to_vec() })
}

pub(crate) fn write(w: &mut Writer<'_>, error: &ErrorMessage) -> writer::WriteResult<()> {
    w.u16(error.error_type);
    w.u16(error.code);
    if w.version.has_experimenter_errors() {
        if error.experimenter.is_some() != (error.error_type == EXPERIMENTER) {
            let what = "an error has an experimenter exactly when its type is 0xffff";
            return Err(EncodeError::Invalid { what });
        }
        error.experimenter.into_iter().for_each(|experimenter| w.u32(experimenter));
    } else {
        w.require(error.experimenter.is_none(), "experimenter error")?;
    }
    w.bytes(&error.data);
    Ok(())
}
