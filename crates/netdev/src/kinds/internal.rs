//! `internal`: a TAP device by which the host itself is at a bridge.
//!
//! It differs from `tap` in what the host relies on: its address stays the same as long as the
//! process runs, also when somebody deletes the device and it is made anew, and with
//! `persist=true` the device stays with its address when the process ends. Super-frames pass
//! whole.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use openflow::MacAddr;

use super::tap::{TapSettings, UP, open_tap};
use crate::error::PortError;
use crate::port::Port;
use crate::spec::{DEVICE, KindRow, PortRight, PortSpec, by_name, no_file, option};

/// The row in the table of kinds.
pub const ROW: KindRow = KindRow {
    word: "internal",
    name_hint: DEVICE,
    help: "a TAP device for the host's own use, which keeps its address",
    options: &[
        option("mac", "ADDRESS", "its Ethernet address; else what it got when it was first made"),
        option("mtu", "1500", "the device's MTU in bytes; 68 to 65521"),
        UP,
        option("persist", "false|true", "the device stays when the switch ends"),
    ],
    exclusive: by_name,
    file_use: no_file,
    rights: &[PortRight::TunDevice, PortRight::DeviceSettings],
    open,
};

/// The addresses of devices that were made, by name.
static ADDRESSES: LazyLock<Mutex<HashMap<String, [u8; 6]>>> = LazyLock::new(Mutex::default);

fn open(spec: &PortSpec) -> Result<Port, PortError> {
    let given = spec.option("mac").map(str::parse::<MacAddr>).transpose();
    let given = given.ok().filter(|mac| mac.is_none_or(|mac| mac.0[0] & 1 == 0));
    let Some(given) = given else {
        return Err(spec.bad_value("mac", "a unicast address, as 02:00:00:00:00:01").into());
    };
    let persists = Some(spec.flag("persist", false)?);
    let mut addresses = ADDRESSES.lock().unwrap_or_else(PoisonError::into_inner);
    let mac = given.map(|mac| mac.0).or_else(|| addresses.get(spec.name()).copied());
    let mut port = open_tap(spec, &TapSettings { vnet: true, mac, persists })?;
    addresses.insert(spec.name().to_owned(), port.info().mac);
    Ok(port)
}
