//! The number of a port in the text of an option. It must never take a reserved number but `LOCAL`.

use openflow::PortNo;
use openflow::text::parse_number;

/// A port's number, or `LOCAL`.
pub(super) fn port_name(text: &str) -> Result<PortNo, String> {
    match text {
        "LOCAL" => Ok(PortNo::LOCAL),
        digits => port_number(digits),
    }
}

/// A port's number.
pub(super) fn port_number(digits: &str) -> Result<PortNo, String> {
    let port =
        PortNo(parse_number(digits).map_err(|error| format!("port number: {}", error.what))?);
    if port.0 >= 1 && port <= PortNo::MAX {
        return Ok(port);
    }
    Err(format!("port number {digits:?} must be 1 to {}", PortNo::MAX.0))
}
