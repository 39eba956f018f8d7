//! Features and settings of a switch: features reply and switch configuration
//! (clauses 7.3.1 and 7.3.2).
//!
//! 1.0 lists the actions and ports of the switch here, 1.1 and 1.2 the ports; 1.3 asks for them by
//! multipart requests, so a features reply of 1.3 that holds them is refused rather than cut.

use openflow::DatapathId;
use openflow::message::{Capabilities, Features, SwitchConfig};

use crate::layout;
use crate::reader::{self, Reader};
use crate::writer::{self, Writer};

pub(crate) fn read_features_v1_0(r: &mut Reader<'_>) -> reader::ReadResult<Features> {
    let mut features = read_identity(r)?;
    r.skip(3)?;
    features.capabilities = Capabilities::from_bits_retain(r.u32()?);
    features.actions = r.u32()?;
    read_ports(r, &mut features)?;
    Ok(features)
}

pub(crate) fn read_features_v1_1(r: &mut Reader<'_>) -> reader::ReadResult<Features> {
    let mut features = read_identity(r)?;
    r.skip(3)?;
    features.capabilities = Capabilities::from_bits_retain(r.u32()?);
    r.skip(4)?;
    read_ports(r, &mut features)?;
    Ok(features)
}

fn read_ports(r: &mut Reader<'_>, features: &mut Features) -> reader::ReadResult<()> {
    while !r.is_empty() {
        features.ports.push(layout::PORT_DESC.read(r)?);
    }
    Ok(())
}

pub(crate) fn read_features_v1_3(r: &mut Reader<'_>) -> reader::ReadResult<Features> {
    let mut features = read_identity(r)?;
    features.auxiliary_id = r.u8()?;
    r.skip(2)?;
    features.capabilities = Capabilities::from_bits_retain(r.u32()?);
    r.skip(4)?;
    Ok(features)
}

fn read_identity(r: &mut Reader<'_>) -> reader::ReadResult<Features> {
    Ok(Features {
        datapath_id: DatapathId(r.u64()?),
        n_buffers: r.u32()?,
        n_tables: r.u8()?,
        ..Features::default()
    })
}

pub(crate) fn write_features_v1_0(
    w: &mut Writer<'_>,
    features: &Features,
) -> writer::WriteResult<()> {
    w.require(features.auxiliary_id == 0, "auxiliary connection")?;
    write_identity(w, features);
    w.zeros(3);
    w.u32(features.capabilities.bits());
    w.u32(features.actions);
    features.ports.iter().try_for_each(|desc| layout::PORT_DESC.write(w, desc))
}

pub(crate) fn write_features_v1_1(
    w: &mut Writer<'_>,
    features: &Features,
) -> writer::WriteResult<()> {
    w.require(features.auxiliary_id == 0, "auxiliary connection")?;
    w.require(features.actions == 0, "actions in a features reply")?;
    write_identity(w, features);
    w.zeros(3);
    w.u32(features.capabilities.bits());
    w.zeros(4);
    features.ports.iter().try_for_each(|desc| layout::PORT_DESC.write(w, desc))
}

pub(crate) fn write_features_v1_3(
    w: &mut Writer<'_>,
    features: &Features,
) -> writer::WriteResult<()> {
    w.require(features.ports.is_empty(), "ports in a features reply")?;
    w.require(features.actions == 0, "actions in a features reply")?;
    write_identity(w, features);
    w.u8(features.auxiliary_id);
    w.zeros(2);
    w.u32(features.capabilities.bits());
    w.zeros(4);
    Ok(())
}

fn write_identity(w: &mut Writer<'_>, features: &Features) {
    w.u64(features.datapath_id.0);
    w.u32(features.n_buffers);
    w.u8(features.n_tables);
}

pub(crate) fn read_config(r: &mut Reader<'_>) -> reader::ReadResult<SwitchConfig> {
    Ok(SwitchConfig { flags: r.u16()?, miss_send_len: r.u16()? })
}

pub(crate) fn write_config(w: &mut Writer<'_>, config: &SwitchConfig) {
    w.u16(config.flags);
    w.u16(config.miss_send_len);
}
