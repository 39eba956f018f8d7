//! The kinds of port: a file each, and its name here, declared and listed.
//!
//! All that a user meets of a kind follows from its [`KindRow`]: the spec text, its errors, the
//! help, the file that two ports may not share. A kind that is not listed fails a test.

pub mod af_packet;
pub mod dpdk;
pub mod dummy;
pub mod internal;
pub mod memory;
pub mod null;
pub mod patch;
pub mod pcap;
pub mod tap;

use std::str::FromStr;
use std::thread::{self, Builder};

use crate::error::PortError;
use crate::port::Port;
use crate::port_info::LinkNotification;
use crate::spec::{KindRow, Policing, PortSpec, QUEUES};
use crate::spec_error::SpecError;
use crate::sys::claim::DeviceClaim;
use crate::sys::ifreq::IoctlSocket;
use crate::tier::HandoverPlace;

/// The rows of all kinds, in the order of help texts.
pub const KINDS: &[KindRow] = &[
    af_packet::ROW,
    tap::ROW,
    internal::ROW,
    patch::ROW,
    memory::ROW,
    pcap::ROW,
    null::ROW,
    dpdk::ROW,
    dummy::ROW,
];

impl FromStr for PortSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        Self::parse(text, KINDS)
    }
}

/// Opens the port that `spec` names, with one queue.
///
/// # Errors
/// Those of the kind; every error names what was tried. [`PortError::Spec`] for a port of several
/// queues, which are for a caller that uses them all: [`open_queues`].
pub fn open(spec: &PortSpec) -> Result<Port, PortError> {
    if spec.queues()? > 1 {
        return Err(spec.bad_value(QUEUES, "1 here: only switch and generator use several").into());
    }
    open_queues(spec)
}

/// Opens the port that `spec` names, with all the queues that it asks for.
///
/// # Errors
/// Those of the kind.
pub fn open_queues(spec: &PortSpec) -> Result<Port, PortError> {
    spec.policing()?;
    (spec.kind().open)(spec)
}

/// Opens the port that `spec` names with all its queues, for a switch, which claims its device.
///
/// # Errors
/// Those of the kind; [`PortError::OtherSwitch`] where another switch has the device.
pub fn open_claimed(spec: &PortSpec) -> Result<Port, PortError> {
    let mut port = open_queues(spec)?;
    if let LinkNotification::Netlink(index) = port.link_notification() {
        port.claim = DeviceClaim::take(&spec.to_string(), index)?;
    }
    Ok(port)
}

/// As [`open_claimed`], for a switch whose tier a device of the kernel is to enter at once: the
/// place where frames are handed over is made meanwhile, since both wait for the kernel.
///
/// # Errors
/// As [`open_claimed`].
pub fn open_for_tier(spec: &PortSpec) -> Result<Port, PortError> {
    if spec.kind().word != af_packet::ROW.word || spec.policing()? != Policing::default() {
        return open_claimed(spec);
    }
    let index = IoctlSocket::open().and_then(|control| control.index(spec.name()));
    let Ok(index) = index else { return open_claimed(spec) };
    let claim = DeviceClaim::take(&spec.to_string(), index)?;
    thread::scope(|scope| {
        let make = || HandoverPlace::for_device(index);
        let place = Builder::new().name("tier".to_owned()).spawn_scoped(scope, make);
        let port = open_queues(spec)?;
        let place = place.ok().and_then(|place| place.join().ok().flatten());
        Ok(Port { claim, place, ..port })
    })
}

/// Parses `text` and opens the port.
///
/// # Errors
/// [`PortError::Spec`] for a wrong text, else as [`open`].
pub fn open_text(text: &str) -> Result<Port, PortError> {
    open(&text.parse()?)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::KINDS;

    #[test]
    fn every_file_of_a_kind_is_in_the_list() {
        let folder = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/kinds")).unwrap();
        let files: BTreeSet<String> = folder
            .filter_map(|file| {
                file.unwrap()
                    .file_name()
                    .into_string()
                    .unwrap()
                    .strip_suffix(".rs")
                    .map(str::to_owned)
            })
            .collect();
        let words: BTreeSet<String> = KINDS.iter().map(|row| row.word.to_owned()).collect();
        assert_eq!(files, words);
    }
}
