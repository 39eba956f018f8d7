//! Ports in messages: description, status, mod, statistics (clauses 7.2.1, 7.4.3, 7.3.4.2,
//! 7.3.5.6).
//!
//! Descriptions and statistics for 1.0 leave out what it has no room for: speeds, rates above
//! 10 Gb/s, liveness, durations.

use openflow::port::{
    PortConfig, PortDesc, PortFeatures, PortMod, PortReason, PortState, PortStats, PortStatus,
};

use openflow::{MacAddr, PortNo};

use crate::compat::port as compat;
use crate::layout;
use crate::property::{self, Unknown};
use crate::reader::{self, Reader};
use crate::writer::{self, Writer};

/// `OFP_MAX_PORT_NAME_LEN`.
const NAME_LEN: usize = 16;

/// Reads one description of 48 bytes.
pub(crate) fn read_desc_v1_0(r: &mut Reader<'_>) -> reader::ReadResult<PortDesc> {
    Ok(PortDesc {
        port_no: r.port()?,
        hw_addr: r.mac()?,
        name: r.text(NAME_LEN)?,
        config: PortConfig::from_bits_retain(r.u32()?),
        state: compat::state_from_v1_0(r.u32()?),
        curr: compat::features_from_v1_0(r.u32()?),
        advertised: compat::features_from_v1_0(r.u32()?),
        supported: compat::features_from_v1_0(r.u32()?),
        peer: compat::features_from_v1_0(r.u32()?),
        curr_speed_kbps: 0,
        max_speed_kbps: 0,
    })
}

/// Reads one description of 64 bytes.
pub(crate) fn read_desc_v1_1(r: &mut Reader<'_>) -> reader::ReadResult<PortDesc> {
    Ok(PortDesc {
        port_no: r.port()?,
        hw_addr: read_hw_addr(r)?,
        name: r.text(NAME_LEN)?,
        config: PortConfig::from_bits_retain(r.u32()?),
        state: PortState::from_bits_retain(r.u32()?),
        curr: PortFeatures::from_bits_retain(r.u32()?),
        advertised: PortFeatures::from_bits_retain(r.u32()?),
        supported: PortFeatures::from_bits_retain(r.u32()?),
        peer: PortFeatures::from_bits_retain(r.u32()?),
        curr_speed_kbps: r.u32()?,
        max_speed_kbps: r.u32()?,
    })
}

/// Reads one description and its properties, of which that of an Ethernet port is kept.
pub(crate) fn read_desc_v1_4(r: &mut Reader<'_>) -> reader::ReadResult<PortDesc> {
    let start = r.clone();
    let (port_no, len) = (r.port()?, usize::from(r.u16()?));
    r.skip(2)?;
    let mut desc = PortDesc {
        port_no,
        hw_addr: r.mac()?,
        name: r.skip(2).and_then(|()| r.text(NAME_LEN))?,
        config: PortConfig::from_bits_retain(r.u32()?),
        state: PortState::from_bits_retain(r.u32()?),
        ..PortDesc::default()
    };
    let mut rest = r.rest_of(&start, len)?;
    property::read_all(&mut rest, Unknown::LeftOut, |number, body| {
        if number != property::ETHERNET {
            return Ok(false);
        }
        body.skip(4)?;
        desc.curr = PortFeatures::from_bits_retain(body.u32()?);
        desc.advertised = PortFeatures::from_bits_retain(body.u32()?);
        desc.supported = PortFeatures::from_bits_retain(body.u32()?);
        desc.peer = PortFeatures::from_bits_retain(body.u32()?);
        (desc.curr_speed_kbps, desc.max_speed_kbps) = (body.u32()?, body.u32()?);
        Ok(true)
    })?;
    Ok(desc)
}

/// An address between the paddings that it has since port numbers are wide.
fn read_hw_addr(r: &mut Reader<'_>) -> reader::ReadResult<MacAddr> {
    r.skip(4)?;
    let address = r.mac()?;
    r.skip(2)?;
    Ok(address)
}

fn write_hw_addr(w: &mut Writer<'_>, address: MacAddr) {
    w.zeros(4);
    w.mac(address);
    w.zeros(2);
}

pub(crate) fn write_desc_v1_0(w: &mut Writer<'_>, desc: &PortDesc) -> writer::WriteResult<()> {
    w.port(desc.port_no)?;
    w.mac(desc.hw_addr);
    w.text(&desc.name, NAME_LEN);
    w.u32(desc.config.bits());
    w.u32(compat::state_to_v1_0(desc.state));
    for features in [desc.curr, desc.advertised, desc.supported, desc.peer] {
        w.u32(compat::features_to_v1_0(features));
    }
    Ok(())
}

pub(crate) fn write_desc_v1_1(w: &mut Writer<'_>, desc: &PortDesc) -> writer::WriteResult<()> {
    w.port(desc.port_no)?;
    write_hw_addr(w, desc.hw_addr);
    w.text(&desc.name, NAME_LEN);
    w.u32(desc.config.bits());
    w.u32(desc.state.bits());
    write_ethernet(w, desc);
    Ok(())
}

pub(crate) fn write_desc_v1_4(w: &mut Writer<'_>, desc: &PortDesc) -> writer::WriteResult<()> {
    let start = w.place();
    w.port(desc.port_no)?;
    let len_at = w.place();
    w.zeros(4);
    w.mac(desc.hw_addr);
    w.zeros(2);
    w.text(&desc.name, NAME_LEN);
    w.u32(desc.config.bits());
    w.u32(desc.state.bits());
    property::write(w, property::ETHERNET, |w| {
        w.zeros(4);
        write_ethernet(w, desc);
    })?;
    w.fill_len(len_at, start, "port description")
}

/// Features and speeds of an Ethernet port.
fn write_ethernet(w: &mut Writer<'_>, desc: &PortDesc) {
    for features in [desc.curr, desc.advertised, desc.supported, desc.peer] {
        w.u32(features.bits());
    }
    w.u32(desc.curr_speed_kbps);
    w.u32(desc.max_speed_kbps);
}

pub(crate) fn read_status(r: &mut Reader<'_>) -> reader::ReadResult<PortStatus> {
    let reason = PortReason::from_number(r.u8()?);
    r.skip(7)?;
    Ok(PortStatus { reason, desc: layout::PORT_DESC.read(r)? })
}

pub(crate) fn write_status(w: &mut Writer<'_>, status: &PortStatus) -> writer::WriteResult<()> {
    w.u8(status.reason.number());
    w.zeros(7);
    layout::PORT_DESC.write(w, &status.desc)
}

pub(crate) fn read_mod_v1_0(r: &mut Reader<'_>) -> reader::ReadResult<PortMod> {
    let (port_no, hw_addr) = (r.port()?, r.mac()?);
    let config = PortConfig::from_bits_retain(r.u32()?);
    let mask = PortConfig::from_bits_retain(r.u32()?);
    let advertise = compat::features_from_v1_0(r.u32()?);
    r.skip(4)?;
    Ok(PortMod { port_no, hw_addr, config, mask, advertise })
}

pub(crate) fn read_mod_v1_1(r: &mut Reader<'_>) -> reader::ReadResult<PortMod> {
    let (port_no, hw_addr) = (r.port()?, read_hw_addr(r)?);
    let config = PortConfig::from_bits_retain(r.u32()?);
    let mask = PortConfig::from_bits_retain(r.u32()?);
    let advertise = PortFeatures::from_bits_retain(r.u32()?);
    r.skip(4)?;
    Ok(PortMod { port_no, hw_addr, config, mask, advertise })
}

pub(crate) fn read_mod_v1_4(r: &mut Reader<'_>) -> reader::ReadResult<PortMod> {
    let (port_no, hw_addr) = (r.port()?, read_hw_addr(r)?);
    let config = PortConfig::from_bits_retain(r.u32()?);
    let mask = PortConfig::from_bits_retain(r.u32()?);
    let mut advertise = PortFeatures::empty();
    property::read_all(r, Unknown::Refused, |number, body| {
        let is_known = number == property::ETHERNET;
        if is_known {
            advertise = PortFeatures::from_bits_retain(body.u32()?);
        }
        Ok(is_known)
    })?;
    Ok(PortMod { port_no, hw_addr, config, mask, advertise })
}

pub(crate) fn write_mod_v1_0(w: &mut Writer<'_>, port: &PortMod) -> writer::WriteResult<()> {
    w.require(compat::features_sayable(port.advertise), "features to advertise")?;
    w.port(port.port_no)?;
    w.mac(port.hw_addr);
    w.u32(port.config.bits());
    w.u32(port.mask.bits());
    w.u32(compat::features_to_v1_0(port.advertise));
    w.zeros(4);
    Ok(())
}

pub(crate) fn write_mod_v1_1(w: &mut Writer<'_>, port: &PortMod) -> writer::WriteResult<()> {
    w.port(port.port_no)?;
    write_hw_addr(w, port.hw_addr);
    w.u32(port.config.bits());
    w.u32(port.mask.bits());
    w.u32(port.advertise.bits());
    w.zeros(4);
    Ok(())
}

pub(crate) fn write_mod_v1_4(w: &mut Writer<'_>, port: &PortMod) -> writer::WriteResult<()> {
    w.port(port.port_no)?;
    write_hw_addr(w, port.hw_addr);
    w.u32(port.config.bits());
    w.u32(port.mask.bits());
    if !port.advertise.is_empty() {
        property::write(w, property::ETHERNET, |w| w.u32(port.advertise.bits()))?;
    }
    Ok(())
}

/// A port number padded to eight bytes.
pub(crate) fn read_stats_request(r: &mut Reader<'_>) -> reader::ReadResult<PortNo> {
    let start = r.clone();
    let port = r.port()?;
    r.skip_padding(&start, 8)?;
    Ok(port)
}

pub(crate) fn write_stats_request(w: &mut Writer<'_>, port: PortNo) -> writer::WriteResult<()> {
    let start = w.place();
    w.port(port)?;
    w.pad_from(start);
    Ok(())
}

pub(crate) fn read_stats_v1_0(r: &mut Reader<'_>) -> reader::ReadResult<PortStats> {
    let port_no = read_stats_request(r)?;
    Ok(PortStats {
        port_no,
        rx_packets: r.u64()?,
        tx_packets: r.u64()?,
        rx_bytes: r.u64()?,
        tx_bytes: r.u64()?,
        rx_dropped: r.u64()?,
        tx_dropped: r.u64()?,
        rx_errors: r.u64()?,
        tx_errors: r.u64()?,
        rx_frame_err: r.u64()?,
        rx_over_err: r.u64()?,
        rx_crc_err: r.u64()?,
        collisions: r.u64()?,
        duration_s: 0,
        duration_ns: 0,
    })
}

pub(crate) fn read_stats_v1_3(r: &mut Reader<'_>) -> reader::ReadResult<PortStats> {
    let counters = read_stats_v1_0(r)?;
    Ok(PortStats { duration_s: r.u32()?, duration_ns: r.u32()?, ..counters })
}

/// Counters of an Ethernet port are not kept where its property is missing.
pub(crate) fn read_stats_v1_4(r: &mut Reader<'_>) -> reader::ReadResult<PortStats> {
    let mut r = r.sized("port statistics")?;
    r.skip(2)?;
    let mut stats = PortStats {
        port_no: r.port()?,
        duration_s: r.u32()?,
        duration_ns: r.u32()?,
        rx_packets: r.u64()?,
        tx_packets: r.u64()?,
        rx_bytes: r.u64()?,
        tx_bytes: r.u64()?,
        rx_dropped: r.u64()?,
        tx_dropped: r.u64()?,
        rx_errors: r.u64()?,
        tx_errors: r.u64()?,
        rx_frame_err: u64::MAX,
        rx_over_err: u64::MAX,
        rx_crc_err: u64::MAX,
        collisions: u64::MAX,
    };
    property::read_all(&mut r, Unknown::LeftOut, |number, body| {
        if number != property::ETHERNET {
            return Ok(false);
        }
        body.skip(4)?;
        (stats.rx_frame_err, stats.rx_over_err) = (body.u64()?, body.u64()?);
        (stats.rx_crc_err, stats.collisions) = (body.u64()?, body.u64()?);
        Ok(true)
    })?;
    Ok(stats)
}

pub(crate) fn write_stats_v1_4(w: &mut Writer<'_>, stats: &PortStats) -> writer::WriteResult<()> {
    let start = w.place();
    w.zeros(4);
    w.port(stats.port_no)?;
    w.u32(stats.duration_s);
    w.u32(stats.duration_ns);
    write_counters(w, stats);
    property::write(w, property::ETHERNET, |w| {
        w.zeros(4);
        write_ethernet_counters(w, stats);
    })?;
    w.fill_len(start, start, "port statistics")
}

pub(crate) fn write_stats_v1_0(w: &mut Writer<'_>, stats: &PortStats) -> writer::WriteResult<()> {
    write_stats_request(w, stats.port_no)?;
    write_counters(w, stats);
    write_ethernet_counters(w, stats);
    Ok(())
}

fn write_counters(w: &mut Writer<'_>, stats: &PortStats) {
    for counter in [
        stats.rx_packets,
        stats.tx_packets,
        stats.rx_bytes,
        stats.tx_bytes,
        stats.rx_dropped,
        stats.tx_dropped,
        stats.rx_errors,
        stats.tx_errors,
    ] {
        w.u64(counter);
    }
}

fn write_ethernet_counters(w: &mut Writer<'_>, stats: &PortStats) {
    for counter in [stats.rx_frame_err, stats.rx_over_err, stats.rx_crc_err, stats.collisions] {
        w.u64(counter);
    }
}

pub(crate) fn write_stats_v1_3(w: &mut Writer<'_>, stats: &PortStats) -> writer::WriteResult<()> {
    write_stats_v1_0(w, stats)?;
    w.u32(stats.duration_s);
    w.u32(stats.duration_ns);
    Ok(())
}
