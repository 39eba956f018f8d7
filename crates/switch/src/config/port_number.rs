//! The number of a port in the text of an option. It must never take a reserved number but `LOCAL`.

use openflow::PortNo;

/// A port's number, or `LOCAL`.
pub(super) fn port_name(text: &str) -> Result<PortNo, String> {
    match text {
        "LOCAL" => Ok(PortNo::LOCAL),
        digits => port_number(digits),
    }
}

/// A port's number.
pub(super) fn port_number(digits: &str) -> Result<PortNo, String> {
    match digits.parse().map(PortNo) {
        Ok(port) if port.0 >= 1 && port <= PortNo::MAX => Ok(port),
        _ => Err(format!("port number {digits:?} must be 1 to {}", PortNo::MAX.0)),
    }
}
