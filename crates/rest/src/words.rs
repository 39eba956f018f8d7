//! Reserved numbers and their names, as Ryu takes and prints them.
//!
//! A number that has a name is printed by it (`"OUTPUT:CONTROLLER"`, `"table_id": "ALL"`), as
//! Ryu does. Port numbers of 1.0 have 16 bits, and scripts send and expect those; inside they are
//! the wide ones.

use crate::problem::Problem;
use crate::shape::{self, Fields, Reserved};
use openflow::{GroupId, MeterId, PortNo, QueueId, TableId, Version};
use serde_json::Value;

/// Ports (`OFPP_*`).
pub(crate) static PORTS: Reserved = Reserved {
    prefix: "OFPP_",
    names: &[
        ("MAX", PortNo::MAX.0),
        ("IN_PORT", PortNo::IN_PORT.0),
        ("TABLE", PortNo::TABLE.0),
        ("NORMAL", PortNo::NORMAL.0),
        ("FLOOD", PortNo::FLOOD.0),
        ("ALL", PortNo::ALL.0),
        ("CONTROLLER", PortNo::CONTROLLER.0),
        ("LOCAL", PortNo::LOCAL.0),
        ("ANY", PortNo::ANY.0),
        ("NONE", PortNo::ANY.0),
    ],
};

/// Tables (`OFPTT_*`).
pub(crate) static TABLES: Reserved = Reserved {
    prefix: "OFPTT_",
    names: &[("MAX", TableId::MAX.0 as u32), ("ALL", TableId::ALL.0 as u32)],
};

/// Groups (`OFPG_*`).
pub(crate) static GROUPS: Reserved = Reserved {
    prefix: "OFPG_",
    names: &[("MAX", GroupId::MAX.0), ("ALL", GroupId::ALL.0), ("ANY", GroupId::ANY.0)],
};

/// Meters (`OFPM_*`).
pub(crate) static METERS: Reserved = Reserved {
    prefix: "OFPM_",
    names: &[
        ("MAX", MeterId::MAX.0),
        ("SLOWPATH", MeterId::SLOWPATH.0),
        ("CONTROLLER", MeterId::CONTROLLER.0),
        ("ALL", MeterId::ALL.0),
    ],
};

/// Queues (`OFPQ_*`).
pub(crate) static QUEUES: Reserved =
    Reserved { prefix: "OFPQ_", names: &[("ALL", QueueId::ALL.0)] };

/// Bytes of a packet for the controller (`OFPCML_*`).
pub(crate) static MAX_LENS: Reserved =
    Reserved { prefix: "OFPCML_", names: &[("MAX", 0xffe5), ("NO_BUFFER", 0xffff)] };

/// Buffers (`OFP_NO_BUFFER`).
pub(crate) static BUFFERS: Reserved =
    Reserved { prefix: "OFP_", names: &[("NO_BUFFER", 0xffff_ffff)] };

/// Roles (`OFPCR_ROLE_*`).
pub(crate) static ROLES: Reserved = Reserved {
    prefix: "OFPCR_ROLE_",
    names: &[("NOCHANGE", 0), ("EQUAL", 1), ("MASTER", 2), ("SLAVE", 3)],
};

/// The first of 1.0's reserved port numbers (`OFPP_MAX`).
const RESERVED_FROM: u32 = 0xff00;
/// The upper 16 bits of a reserved number where ports are wide.
const WIDE: u32 = 0xffff_0000;

/// The port that a number or name means in a version.
///
/// # Errors
/// When it is neither, or the version has no such number.
pub(crate) fn port(version: Version, value: &Value) -> Result<PortNo, Problem> {
    let number = shape::named(value, &PORTS)?;
    if version.has_wide_ports() {
        return Ok(PortNo(number));
    }
    match number {
        0..RESERVED_FROM => Ok(PortNo(number)),
        RESERVED_FROM..=0xffff => Ok(PortNo(number | WIDE)),
        _ if number & WIDE == WIDE && number & 0xffff >= RESERVED_FROM => Ok(PortNo(number)),
        _ => Err(Problem::bad(format!("{version} has port numbers of 16 bits, not {number}"))),
    }
}

/// The port of a key.
///
/// # Errors
/// As [`port`].
pub(crate) fn port_of(
    fields: &Fields<'_>,
    key: &str,
    version: Version,
) -> Result<Option<PortNo>, Problem> {
    let Some(value) = fields.get(key) else { return Ok(None) };
    port(version, value).map(Some).map_err(|problem| problem.at(fields.path(key)))
}

/// The number of a port as a version has it.
pub(crate) fn port_number(version: Version, port: PortNo) -> u32 {
    if version.has_wide_ports() { port.0 } else { port.0 & 0xffff }
}

/// A port as Ryu prints it: its name, else its number.
pub(crate) fn port_value(version: Version, port: PortNo) -> Value {
    if port == PortNo::ANY && !version.has_wide_ports() {
        return Value::from("NONE");
    }
    match PORTS.name(port.0) {
        Some(name) => Value::from(name),
        None => Value::from(port_number(version, port)),
    }
}

/// A value in a text: strings without quotes.
pub(crate) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::{port, port_value};
    use openflow::{PortNo, Version};
    use serde_json::json;

    #[test]
    fn ports_of_1_0_have_16_bits_outside_and_32_inside() {
        let of = |value| port(Version::V1_0, &value).ok();
        assert_eq!(of(json!(65533)), Some(PortNo::CONTROLLER));
        assert_eq!(of(json!("CONTROLLER")), Some(PortNo::CONTROLLER));
        assert_eq!(of(json!("OFPP_NONE")), Some(PortNo::ANY));
        assert_eq!(of(json!(65279)), Some(PortNo(65279)));
        assert_eq!(of(json!(65536)), None);
        assert_eq!(port(Version::V1_3, &json!(65533)).ok(), Some(PortNo(65533)));
        assert_eq!(port_value(Version::V1_0, PortNo::ANY), json!("NONE"));
        assert_eq!(port_value(Version::V1_3, PortNo::ANY), json!("ANY"));
        assert_eq!(port_value(Version::V1_0, PortNo::MAX), json!("MAX"));
        assert_eq!(port_value(Version::V1_3, PortNo(7)), json!(7));
    }

    #[test]
    fn a_port_that_there_is_not_is_refused_with_the_names() {
        let shown = port(Version::V1_3, &json!("eth0")).unwrap_err().to_value();
        assert!(shown["allowed"].as_array().unwrap().contains(&json!("LOCAL")), "{shown}");
        assert!(port(Version::V1_3, &json!(1_u64 << 32)).is_err());
    }
}
