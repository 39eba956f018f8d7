//! The table of port kinds, and `open`.
//!
//! A new kind is one file under `kinds/`, one variant and one row here: the spec text, its errors,
//! the reference and the contract test are derived from the row. Nothing else may list the kinds.

use crate::error::PortError;
use crate::kinds;
use crate::port::Port;
use crate::spec::PortSpec;

/// The kinds of port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PortKind {
    /// A Linux network device through an `AF_PACKET` socket.
    AfPacket,
    /// A TAP device that the port makes.
    Tap,
    /// Two rings in shared memory, one per direction.
    Memory,
    /// A capture file, read or written.
    Pcap,
    /// Nothing: receives nothing and takes everything.
    Null,
    /// A device that DPDK drives; needs the cargo feature `dpdk`.
    Dpdk,
}

/// One kind in the table.
#[derive(Debug)]
pub struct KindRow {
    /// The kind.
    pub kind: PortKind,
    /// Its word in the spec text.
    pub word: &'static str,
    /// What the name stands for; empty when a name is not needed.
    pub name_hint: &'static str,
    /// One sentence for help texts.
    pub help: &'static str,
    /// The options.
    pub options: &'static [OptionRow],
    open: fn(&PortSpec) -> Result<Box<dyn Port>, PortError>,
}

/// One option of a kind.
#[derive(Debug)]
pub struct OptionRow {
    /// The name.
    pub name: &'static str,
    /// The values in short, default first.
    pub values: &'static str,
    /// One sentence for help texts.
    pub help: &'static str,
}

const fn option(name: &'static str, values: &'static str, help: &'static str) -> OptionRow {
    OptionRow { name, values, help }
}

/// Every kind.
pub const KINDS: &[KindRow] = &[
    KindRow {
        kind: PortKind::AfPacket,
        word: "af_packet",
        name_hint: "DEVICE",
        help: "a Linux network device, through packet sockets",
        options: &[
            option("slots", "2048", "frames that the receiving ring holds; 64 to 65536"),
            option("qdisc_bypass", "false|true", "send past the device's queueing discipline"),
        ],
        open: kinds::af_packet::open,
    },
    KindRow {
        kind: PortKind::Tap,
        word: "tap",
        name_hint: "DEVICE",
        help: "a TAP device that is made, brought up and removed again",
        options: &[
            option("mtu", "1500", "the device's MTU in bytes; 68 to 65521"),
            option("vnet_hdr", "false|true", "take unsegmented frames and segment them here"),
        ],
        open: kinds::tap::open,
    },
    KindRow {
        kind: PortKind::Memory,
        word: "memory",
        name_hint: "NAME, or /a/path to join two processes",
        help: "a wire in shared memory, between two ports of one process or of two",
        options: &[
            option("end", "a|b", "which end of the wire this port is"),
            option("slots", "1024", "frames that a direction holds; 1 to 65536"),
            option("frame_max", "2104", "longest frame in bytes; 14 to 65535"),
        ],
        open: kinds::memory::open,
    },
    KindRow {
        kind: PortKind::Pcap,
        word: "pcap",
        name_hint: "FILE",
        help: "a capture file: received once, or in a loop, or written",
        options: &[
            option("loop", "false|true", "start again at the file's end"),
            option("write", "false|true", "write what is sent instead of receiving"),
            option(
                "rate",
                "none|COUNT",
                "in a loop: frames that come in a second, waited for or not",
            ),
            option("slots", "4096", "frames of a rate that wait; what comes then is dropped"),
            option(
                "number",
                "none|OFFSET",
                "in a loop: number each frame in the 4 bytes from here on",
            ),
        ],
        open: kinds::pcap::open,
    },
    KindRow {
        kind: PortKind::Null,
        word: "null",
        name_hint: "",
        help: "receives nothing and takes everything",
        options: &[],
        open: kinds::null::open,
    },
    KindRow {
        kind: PortKind::Dpdk,
        word: "dpdk",
        name_hint: "DEVARGS",
        help: "a device that DPDK drives, by its devargs (cargo feature dpdk; EAL options in \
               WEIR_DPDK_EAL, number of buffers in WEIR_DPDK_BUFFERS)",
        options: &[],
        open: kinds::dpdk::open,
    },
];

impl PortKind {
    /// The kind's row in the table.
    ///
    /// # Panics
    /// Never for a kind of the table; a test holds that each has a row.
    #[must_use]
    pub fn row(self) -> &'static KindRow {
        match KINDS.iter().find(|row| row.kind == self) {
            Some(row) => row,
            None => unreachable!("every kind has a row"),
        }
    }
}

/// Opens the port that `spec` names.
///
/// # Errors
/// What the kind's file says; every error names what was tried.
pub fn open(spec: &PortSpec) -> Result<Box<dyn Port>, PortError> {
    (spec.kind().row().open)(spec)
}

/// Parses `text` and opens the port.
///
/// # Errors
/// [`PortError::Spec`] for a wrong text, else as [`open`].
pub fn open_text(text: &str) -> Result<Box<dyn Port>, PortError> {
    open(&text.parse()?)
}
