//! What a switch is and how it is set: features reply and switch configuration
//! (clauses 7.3.1 and 7.3.2).
//!
//! 1.0 lists the actions and ports of the switch here; 1.3 asks for them by multipart requests,
//! so a features reply of 1.3 that holds them is refused rather than cut.

use openflow::DatapathId;
use openflow::Version;
use openflow::message::{Capabilities, Features, SwitchConfig};

use crate::port;
use crate::reader::{self, Reader};
use crate::writer::{self, Writer};

pub(crate) fn read_features(r: &mut Reader<'_>) -> reader::Result<Features> {
    let mut features = Features {
        datapath_id: DatapathId(r.u64()?),
        n_buffers: r.u32()?,
        n_tables: r.u8()?,
        ..Features::default()
    };
    match r.version {
        Version::V1_0 => r.skip(3)?,
        Version::V1_3 => {
            features.auxiliary_id = r.u8()?;
            r.skip(2)?;
        }
    }
    features.capabilities = Capabilities::from_bits_retain(r.u32()?);
    match r.version {
        Version::V1_0 => {
            features.actions = r.u32()?;
            while !r.is_empty() {
                features.ports.push(port::read_desc(r)?);
            }
        }
        Version::V1_3 => r.skip(4)?,
    }
    Ok(features)
}

pub(crate) fn write_features(w: &mut Writer<'_>, features: &Features) -> writer::Result<()> {
    w.u64(features.datapath_id.0);
    w.u32(features.n_buffers);
    w.u8(features.n_tables);
    match w.version {
        Version::V1_0 => {
            w.require(features.auxiliary_id == 0, "auxiliary connection")?;
            w.zeros(3);
            w.u32(features.capabilities.bits());
            w.u32(features.actions);
            for desc in &features.ports {
                port::write_desc(w, desc)?;
            }
        }
        Version::V1_3 => {
            w.require(features.ports.is_empty(), "ports in a features reply")?;
            w.require(features.actions == 0, "actions in a features reply")?;
            w.u8(features.auxiliary_id);
            w.zeros(2);
            w.u32(features.capabilities.bits());
            w.zeros(4);
        }
    }
    Ok(())
}

pub(crate) fn read_config(r: &mut Reader<'_>) -> reader::Result<SwitchConfig> {
    Ok(SwitchConfig { flags: r.u16()?, miss_send_len: r.u16()? })
}

pub(crate) fn write_config(w: &mut Writer<'_>, config: &SwitchConfig) {
    w.u16(config.flags);
    w.u16(config.miss_send_len);
}
