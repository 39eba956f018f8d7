//! Ports in messages: description, status, mod, statistics (clauses 7.2.1, 7.4.3, 7.3.4.2,
//! 7.3.5.6).
//!
//! Descriptions and statistics for 1.0 leave out what it has no room for: speeds, rates above
//! 10 Gb/s, liveness, durations.

use openflow::Version;
use openflow::port::{
    PortConfig, PortDesc, PortFeatures, PortMod, PortReason, PortState, PortStats, PortStatus,
};

use crate::compat::port as compat;
use crate::reader::{self, Reader};
use crate::writer::{self, Writer};

/// `OFP_MAX_PORT_NAME_LEN`.
const NAME_LEN: usize = 16;

fn read_state(r: &mut Reader<'_>) -> reader::Result<PortState> {
    Ok(match r.version {
        Version::V1_0 => compat::state_from_v1_0(r.u32()?),
        Version::V1_3 => PortState::from_bits_retain(r.u32()?),
    })
}

fn read_features(r: &mut Reader<'_>) -> reader::Result<PortFeatures> {
    Ok(match r.version {
        Version::V1_0 => compat::features_from_v1_0(r.u32()?),
        Version::V1_3 => PortFeatures::from_bits_retain(r.u32()?),
    })
}

fn write_features(w: &mut Writer<'_>, features: PortFeatures) {
    w.u32(match w.version {
        Version::V1_0 => compat::features_to_v1_0(features),
        Version::V1_3 => features.bits(),
    });
}

/// Reads one description: 48 bytes in 1.0, 64 in 1.3.
pub(crate) fn read_desc(r: &mut Reader<'_>) -> reader::Result<PortDesc> {
    let mut desc = PortDesc { port_no: r.port()?, ..PortDesc::default() };
    match r.version {
        Version::V1_0 => desc.hw_addr = r.mac()?,
        Version::V1_3 => {
            r.skip(4)?;
            desc.hw_addr = r.mac()?;
            r.skip(2)?;
        }
    }
    desc.name = r.text(NAME_LEN)?;
    desc.config = PortConfig::from_bits_retain(r.u32()?);
    desc.state = read_state(r)?;
    desc.curr = read_features(r)?;
    desc.advertised = read_features(r)?;
    desc.supported = read_features(r)?;
    desc.peer = read_features(r)?;
    if r.version == Version::V1_3 {
        desc.curr_speed_kbps = r.u32()?;
        desc.max_speed_kbps = r.u32()?;
    }
    Ok(desc)
}

pub(crate) fn write_desc(w: &mut Writer<'_>, desc: &PortDesc) -> writer::Result<()> {
    w.port(desc.port_no)?;
    match w.version {
        Version::V1_0 => w.mac(desc.hw_addr),
        Version::V1_3 => {
            w.zeros(4);
            w.mac(desc.hw_addr);
            w.zeros(2);
        }
    }
    w.text(&desc.name, NAME_LEN);
    w.u32(desc.config.bits());
    w.u32(match w.version {
        Version::V1_0 => compat::state_to_v1_0(desc.state),
        Version::V1_3 => desc.state.bits(),
    });
    for features in [desc.curr, desc.advertised, desc.supported, desc.peer] {
        write_features(w, features);
    }
    if w.version == Version::V1_3 {
        w.u32(desc.curr_speed_kbps);
        w.u32(desc.max_speed_kbps);
    }
    Ok(())
}

pub(crate) fn read_status(r: &mut Reader<'_>) -> reader::Result<PortStatus> {
    let reason = PortReason::from_number(r.u8()?);
    r.skip(7)?;
    Ok(PortStatus { reason, desc: read_desc(r)? })
}

pub(crate) fn write_status(w: &mut Writer<'_>, status: &PortStatus) -> writer::Result<()> {
    w.u8(status.reason.number());
    w.zeros(7);
    write_desc(w, &status.desc)
}

pub(crate) fn read_mod(r: &mut Reader<'_>) -> reader::Result<PortMod> {
    let port_no = r.port()?;
    let hw_addr = match r.version {
        Version::V1_0 => r.mac()?,
        Version::V1_3 => {
            r.skip(4)?;
            let mac = r.mac()?;
            r.skip(2)?;
            mac
        }
    };
    let config = PortConfig::from_bits_retain(r.u32()?);
    let mask = PortConfig::from_bits_retain(r.u32()?);
    let advertise = read_features(r)?;
    r.skip(4)?;
    Ok(PortMod { port_no, hw_addr, config, mask, advertise })
}

pub(crate) fn write_mod(w: &mut Writer<'_>, port: &PortMod) -> writer::Result<()> {
    w.port(port.port_no)?;
    match w.version {
        Version::V1_0 => {
            let sayable = compat::features_sayable(port.advertise);
            w.require(sayable, "features to advertise")?;
            w.mac(port.hw_addr);
        }
        Version::V1_3 => {
            w.zeros(4);
            w.mac(port.hw_addr);
            w.zeros(2);
        }
    }
    w.u32(port.config.bits());
    w.u32(port.mask.bits());
    write_features(w, port.advertise);
    w.zeros(4);
    Ok(())
}

/// Bytes that pad a port number to eight.
fn port_padding(version: Version) -> usize {
    match version {
        Version::V1_0 => 6,
        Version::V1_3 => 4,
    }
}

pub(crate) fn read_stats_request(r: &mut Reader<'_>) -> reader::Result<openflow::PortNo> {
    let port = r.port()?;
    r.skip(port_padding(r.version))?;
    Ok(port)
}

pub(crate) fn write_stats_request(
    w: &mut Writer<'_>,
    port: openflow::PortNo,
) -> writer::Result<()> {
    w.port(port)?;
    w.zeros(port_padding(w.version));
    Ok(())
}

pub(crate) fn read_stats(r: &mut Reader<'_>) -> reader::Result<PortStats> {
    let port_no = read_stats_request(r)?;
    let mut stats = PortStats {
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
    };
    if r.version == Version::V1_3 {
        stats.duration_s = r.u32()?;
        stats.duration_ns = r.u32()?;
    }
    Ok(stats)
}

pub(crate) fn write_stats(w: &mut Writer<'_>, stats: &PortStats) -> writer::Result<()> {
    write_stats_request(w, stats.port_no)?;
    for counter in [
        stats.rx_packets,
        stats.tx_packets,
        stats.rx_bytes,
        stats.tx_bytes,
        stats.rx_dropped,
        stats.tx_dropped,
        stats.rx_errors,
        stats.tx_errors,
        stats.rx_frame_err,
        stats.rx_over_err,
        stats.rx_crc_err,
        stats.collisions,
    ] {
        w.u64(counter);
    }
    if w.version == Version::V1_3 {
        w.u32(stats.duration_s);
        w.u32(stats.duration_ns);
    }
    Ok(())
}
