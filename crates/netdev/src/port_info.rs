//! The properties of a port, and the way by which changes of them become known.
//!
//! Users of ports ask here for what a port can do; they must never compare the word of its kind.

use serde::Serialize;

/// The way by which a change of [`PortInfo`] becomes known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkNotification {
    /// It never changes.
    Never,
    /// By netlink messages about the device with this interface index: see
    /// [`crate::LinkMonitor`].
    Netlink(u32),
    /// Only by polling [`crate::PortDevice::info`].
    Polled,
}

/// The properties of a port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PortInfo {
    /// The name within the kind: a device, a ring, a file.
    pub name: String,
    /// The kind's word in the spec text, for example `af_packet`.
    pub kind: &'static str,
    /// The Ethernet address; kinds without a device make up a locally administered one.
    pub mac: [u8; 6],
    /// The longest payload of a frame in bytes, without the Ethernet header and one VLAN tag.
    pub mtu: u32,
    /// Whether the port is administratively up and operational.
    pub link_up: bool,
    /// Whether somebody has taken the link down, where nothing else does; `None` where the link is
    /// that of a device.
    #[serde(skip)]
    pub is_set_down: Option<bool>,
    /// Speed in bit/s; 0 when unknown.
    pub speed_bps: u64,
    /// Whether both directions work at once; `None` when unknown.
    pub full_duplex: Option<bool>,
    /// False once the device behind the port has disappeared.
    pub exists: bool,
    /// False for a kind whose ports never receive a frame.
    #[serde(skip)]
    pub receives: bool,
    /// Whether the port carries no more than its speed: the kernel calls every TAP device one of
    /// 10 Mbit/s, and limits none.
    #[serde(skip)]
    pub has_line_rate: bool,
    /// The Ethernet address of a veth's far end, where the kernel tier may hand frames straight to
    /// it.
    #[serde(skip)]
    pub peer: Option<[u8; 6]>,
    /// Remarks for the user, for example offloads that the port switched off.
    pub notes: Vec<String>,
}

impl PortInfo {
    /// The properties of a port without a device: its link is up, its speed is unknown and no
    /// limit, and its address is made up from `address`.
    #[must_use]
    pub fn without_device(kind: &'static str, name: &str, address: &str) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            mac: made_up_mac(address),
            mtu: u16::MAX.into(),
            link_up: true,
            is_set_down: None,
            speed_bps: 0,
            full_duplex: Some(true),
            exists: true,
            receives: true,
            has_line_rate: false,
            peer: None,
            notes: Vec::new(),
        }
    }
}

/// A locally administered unicast address made from `name`: the same name gives the same address.
fn made_up_mac(name: &str) -> [u8; 6] {
    // FNV-1a, 64 bits.
    let hash = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
    let [a, b, c, d, e, ..] = hash.to_be_bytes();
    [0x02, a, b, c, d, e]
}
