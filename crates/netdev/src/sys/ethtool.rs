//! Offload features and link speed of a device, by `SIOCETHTOOL`.
//!
//! An [`Ethtool`] belongs to the namespace in which it was opened. Features have the names that
//! `ethtool -k` calls fixed strings of the kernel (`tx-tcp-segmentation`, `rx-gro`, ...).

use std::io;

use super::ifreq::IoctlSocket;
use super::link::LinkError;
use super::netns::Namespace;

const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETHTOOL_GFEATURES: u32 = 0x3a;
const ETHTOOL_SFEATURES: u32 = 0x3b;
const ETHTOOL_GLINKSETTINGS: u32 = 0x4c;
const ETHTOOL_SLINKSETTINGS: u32 = 0x4d;
const ETH_SS_FEATURES: u32 = 4;
const GSTRING_WORDS: usize = 8;
const SPEED_UNKNOWN: u32 = u32::MAX;
/// More features than any kernel has; a larger answer is not believed.
const FEATURES_MAX: u32 = 1_024;

/// The features by which a device leaves checksums or segmentation to somebody else, so that what
/// its peer sees are not the frames of a wire.
const OFFLOAD_PREFIXES: [&str; 7] = [
    "tx-checksum-",
    "tx-generic-segmentation",
    "tx-tcp",
    "tx-udp-segmentation",
    "tx-sctp-segmentation",
    "rx-gro",
    "rx-lro",
];

/// One offload feature of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feature {
    /// The kernel's name.
    pub name: String,
    /// Whether it is on.
    pub active: bool,
    /// Whether it can be switched.
    pub changeable: bool,
}

/// A device's report of its link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkSettings {
    /// Speed in bit/s; 0 when unknown.
    pub speed_bps: u64,
    /// `None` when unknown.
    pub full_duplex: Option<bool>,
}

/// Questions and orders about the devices of one namespace.
#[derive(Debug)]
pub struct Ethtool {
    socket: IoctlSocket,
}

impl Ethtool {
    /// For the namespace of the calling thread.
    ///
    /// # Errors
    /// When no socket can be had.
    pub fn open() -> Result<Self, LinkError> {
        let socket = IoctlSocket::open()
            .map_err(|source| LinkError { what: "opening a control socket".into(), source })?;
        Ok(Self { socket })
    }

    /// For the namespace `ns`.
    ///
    /// # Errors
    /// When the namespace cannot be entered or no socket can be had.
    pub fn open_in(ns: &Namespace) -> Result<Self, LinkError> {
        ns.enter(Self::open)
            .map_err(|source| LinkError { what: "entering a network namespace".into(), source })?
    }

    /// The features of a device, in the kernel's order.
    ///
    /// # Errors
    /// `ENODEV` when there is no such device, `EOPNOTSUPP` when it has no features.
    pub fn features(&self, device: &str) -> Result<Vec<Feature>, LinkError> {
        self.read_features(device)
            .map_err(|source| LinkError { what: format!("features of {device}"), source })
    }

    fn read_features(&self, device: &str) -> io::Result<Vec<Feature>> {
        let names = self.feature_names(device)?;
        let blocks = names.len().div_ceil(32);
        let mut command = vec![0; 2 + 4 * blocks];
        command[0] = ETHTOOL_GFEATURES;
        command[1] = u32::try_from(blocks).unwrap_or_default();
        self.socket.ethtool(device, &mut command)?;
        let bit = |word: usize, n: usize| {
            let block = command.get(2 + 4 * (n / 32) + word).copied().unwrap_or_default();
            block >> (n % 32) & 1 == 1
        };
        // Words of a block: available, requested, active, never changed.
        let feature =
            |(n, name)| Feature { name, active: bit(2, n), changeable: bit(0, n) && !bit(3, n) };
        Ok(names.into_iter().enumerate().map(feature).collect())
    }

    fn feature_names(&self, device: &str) -> io::Result<Vec<String>> {
        let mut info = [ETHTOOL_GSSET_INFO, 0, 1 << ETH_SS_FEATURES, 0, 0];
        self.socket.ethtool(device, &mut info)?;
        let count = info[4];
        if count > FEATURES_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut command = vec![0; 3 + count as usize * GSTRING_WORDS];
        command[..3].copy_from_slice(&[ETHTOOL_GSTRINGS, ETH_SS_FEATURES, count]);
        self.socket.ethtool(device, &mut command)?;
        let text = |words: &[u32]| {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
            super::netlink::read_text(&bytes)
        };
        Ok(command[3..].chunks(GSTRING_WORDS).map(text).collect())
    }

    /// Switches features on or off. The kernel silently keeps what depends on others as it must;
    /// read [`Ethtool::features`] to see what is on.
    ///
    /// # Errors
    /// A name that the device does not know, or a feature that it cannot switch.
    pub fn set_features(&self, device: &str, wishes: &[(&str, bool)]) -> Result<(), LinkError> {
        let all = self.features(device)?;
        let mut command = vec![0; 2 + 2 * all.len().div_ceil(32)];
        command[0] = ETHTOOL_SFEATURES;
        command[1] = u32::try_from(all.len().div_ceil(32)).unwrap_or_default();
        for &(name, on) in wishes {
            let found = all.iter().position(|feature| feature.name == name);
            let Some(n) = found.filter(|&n| all[n].changeable || all[n].active == on) else {
                let what = format!("feature {name} of {device}");
                return Err(LinkError { what, source: io::ErrorKind::Unsupported.into() });
            };
            // Words of a block: valid, requested.
            let block = 2 + 2 * (n / 32);
            if all[n].changeable {
                command[block] |= 1 << (n % 32);
                command[block + 1] |= u32::from(on) << (n % 32);
            }
        }
        self.socket
            .ethtool(device, &mut command)
            .map(drop)
            .map_err(|source| LinkError { what: format!("features of {device}"), source })
    }

    /// Switches off every feature by which the device leaves checksums or segmentation to others
    /// (transmit checksums, TCP and UDP segmentation, GSO, GRO, LRO), and returns the names of
    /// those that were on.
    ///
    /// # Errors
    /// `ENODEV` when there is no such device.
    pub fn switch_off_offloads(&self, device: &str) -> Result<Vec<String>, LinkError> {
        let all = self.features(device)?;
        let offload = |f: &&Feature| {
            let named = OFFLOAD_PREFIXES.iter().any(|prefix| f.name.starts_with(prefix));
            named && f.active && f.changeable
        };
        let on: Vec<String> = all.iter().filter(offload).map(|f| f.name.clone()).collect();
        let wishes: Vec<(&str, bool)> = on.iter().map(|name| (name.as_str(), false)).collect();
        self.set_features(device, &wishes)?;
        Ok(on)
    }

    /// Sets the speed of a device's link in Mbit/s, full duplex, without negotiation. A TAP device
    /// shows it and is no slower.
    ///
    /// # Errors
    /// `EOPNOTSUPP` when the device has no speed that could be set, `EPERM` without rights.
    pub fn set_speed(&self, device: &str, mbps: u32) -> Result<(), LinkError> {
        let set = || -> io::Result<()> {
            let mut command = settings_command(&self.socket, device)?;
            command[0] = ETHTOOL_SLINKSETTINGS;
            command[1] = mbps;
            let [_, port, phy, _] = command[2].to_ne_bytes();
            command[2] = u32::from_ne_bytes([1, port, phy, 0]);
            self.socket.ethtool(device, &mut command).map(drop)
        };
        let failed = |source| LinkError { what: format!("setting the speed of {device}"), source };
        set().map_err(failed)
    }

    /// Speed and duplex of a device; all unknown where it does not say.
    ///
    /// # Errors
    /// `ENODEV` when there is no such device.
    pub fn link_settings(&self, device: &str) -> Result<LinkSettings, LinkError> {
        link_settings(&self.socket, device)
            .map_err(|source| LinkError { what: format!("link settings of {device}"), source })
    }
}

/// The settings as the kernel has them. `struct ethtool_link_settings` is 12 words, then three
/// masks of a length that the kernel gives when asked with length 0.
fn settings_command(socket: &IoctlSocket, device: &str) -> io::Result<Vec<u32>> {
    const WORDS: usize = 12;
    const MASK_WORDS_BYTE: usize = 3;
    let mut command = vec![0; WORDS + 3 * 127];
    command[0] = ETHTOOL_GLINKSETTINGS;
    socket.ethtool(device, &mut command)?;
    // Byte 15: number of mask words; the kernel answers minus the number that it wants.
    let mut word = command[3].to_ne_bytes();
    word[MASK_WORDS_BYTE] = word[MASK_WORDS_BYTE].wrapping_neg() & 0x7f;
    command.fill(0);
    command[0] = ETHTOOL_GLINKSETTINGS;
    command[3] = u32::from_ne_bytes([0, 0, 0, word[MASK_WORDS_BYTE]]);
    socket.ethtool(device, &mut command)?;
    Ok(command)
}

/// Speed and duplex; all unknown where the device does not say.
pub(crate) fn link_settings(socket: &IoctlSocket, device: &str) -> io::Result<LinkSettings> {
    let unknown = |error: &io::Error| error.raw_os_error() == Some(libc::EOPNOTSUPP);
    let command = match settings_command(socket, device) {
        Err(error) if unknown(&error) => return Ok(LinkSettings::default()),
        other => other?,
    };
    let speed_mbps = if command[1] == SPEED_UNKNOWN { 0 } else { command[1] };
    let full_duplex = match command[2].to_ne_bytes()[0] {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    };
    Ok(LinkSettings { speed_bps: u64::from(speed_mbps) * 1_000_000, full_duplex })
}
