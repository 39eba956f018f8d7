//! The error message (clause 7.4.4 of 1.3, 5.4.4 of 1.0).
//!
//! Numbers go through as they came, known or not: what an unknown error means is not for the codec
//! to judge.

use openflow::Version;
use openflow::message::ErrorMessage;

use crate::error::EncodeError;
use crate::reader::{self, Reader};
use crate::writer::{self, Writer};

/// `OFPET_EXPERIMENTER`.
const EXPERIMENTER: u16 = 0xffff;

pub(crate) fn read(r: &mut Reader<'_>) -> reader::Result<ErrorMessage> {
    let error_type = r.u16()?;
    let code = r.u16()?;
    let experimenter = match (r.version, error_type) {
        (Version::V1_3, EXPERIMENTER) => Some(r.u32()?),
        (Version::V1_0 | Version::V1_3, _) => None,
    };
    Ok(ErrorMessage { error_type, code, experimenter, data: r.rest().to_vec() })
}

pub(crate) fn write(w: &mut Writer<'_>, error: &ErrorMessage) -> writer::Result<()> {
    w.u16(error.error_type);
    w.u16(error.code);
    let is_experimenter = error.error_type == EXPERIMENTER;
    match (w.version, error.experimenter) {
        (Version::V1_3, Some(experimenter)) if is_experimenter => w.u32(experimenter),
        (Version::V1_0, Some(_)) => return Err(w.unsupported("experimenter error")),
        (Version::V1_0, None) => {}
        (Version::V1_3, None) if !is_experimenter => {}
        (Version::V1_3, Some(_) | None) => {
            let what = "an error has an experimenter exactly when its type is 0xffff";
            return Err(EncodeError::Invalid { what });
        }
    }
    w.bytes(&error.data);
    Ok(())
}
