//! The values of the configuration: each is read from text alike in a flag and in the file.
//!
//! Impossible values are refused here, with the allowed ones named; nothing is opened.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

use datapath::{Mirror, PortVlans};
use netdev::PortSpec;
use openflow::text::{decimal_where, parse_decimal, zero_advice};
use openflow::{DatapathId, PortNo, Version};
use serde::de::{Deserialize, Deserializer, Error as _, Visitor};

use super::port_number::{port_name, port_number};
use super::{QueueArg, RateArg};

/// Makes a type that reads from text read from the file's strings too.
macro_rules! from_text {
    ($($name:ident),+) => {$(
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
            }
        }
    )+};
}

from_text!(
    CachesArg,
    Dpid,
    PortArg,
    QueueArg,
    RateArg,
    VlanArg,
    MirrorArg,
    EndpointArg,
    FailMode,
    Forward,
    Poll
);

/// A datapath id as hex digits, with or without `0x`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dpid(pub DatapathId);

impl FromStr for Dpid {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.strip_prefix("0x").unwrap_or(text);
        let hex = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        match u64::from_str_radix(digits, 16) {
            Ok(0) => Err("datapath id 0 is not allowed; use 1 to 16 hex digits".to_owned()),
            Ok(id) if hex => Ok(Self(DatapathId(id))),
            _ => Err(format!("{text:?} is not a datapath id; use 1 to 16 hex digits")),
        }
    }
}

/// A time in seconds, for example `8` or `0.5`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seconds(pub Duration);

/// The longest time that an option may name, in seconds: a day.
const SECONDS_MAX: f64 = 86_400.0;

impl Seconds {
    fn new(seconds: f64) -> Result<Self, String> {
        if (0.0..=SECONDS_MAX).contains(&seconds) {
            Ok(Self(Duration::from_secs_f64(seconds)))
        } else {
            Err(format!("{seconds} is not a time in seconds from 0 to {SECONDS_MAX}"))
        }
    }
}

impl FromStr for Seconds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let no_time = format_args!("{text:?} is not a number of seconds");
        Self::new(decimal_where(text, |_| true, no_time)?)
    }
}

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number;
        impl Visitor<'_> for Number {
            type Value = Seconds;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of seconds")
            }

            fn visit_i64<E: serde::de::Error>(self, seconds: i64) -> Result<Seconds, E> {
                Seconds::new(seconds as f64).map_err(E::custom)
            }

            fn visit_f64<E: serde::de::Error>(self, seconds: f64) -> Result<Seconds, E> {
                Seconds::new(seconds).map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Number)
    }
}

/// An amount of memory, for example `512M` or `2G`: bytes, or with K, M, G or T units of 1,024.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemorySize(pub u64);

/// The least that can be asked for: a switch without entries needs some.
const MEMORY_LEAST: u64 = 32 << 20;

impl FromStr for MemorySize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let units = [('K', 10), ('M', 20), ('G', 30), ('T', 40)];
        let unit =
            units.iter().find(|(unit, _)| text.ends_with([*unit, unit.to_ascii_lowercase()]));
        let (digits, shift) = match unit {
            Some((_, shift)) => (&text[..text.len() - 1], *shift),
            None => (text, 0),
        };
        let wrong = || format!("{text:?} is no amount of memory such as 512M{}", zero_advice(text));
        let number: u64 = parse_decimal(digits).ok_or_else(wrong)?;
        let bytes = number.checked_mul(1 << shift).ok_or_else(wrong)?;
        if bytes < MEMORY_LEAST {
            return Err(format!("{text:?} is too little: the least is 32M"));
        }
        Ok(Self(bytes))
    }
}

impl<'de> Deserialize<'de> for MemorySize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A port with its number, if it was given one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortArg {
    /// The number before the equals sign.
    pub number: Option<PortNo>,
    /// The port's device.
    pub spec: PortSpec,
}

impl FromStr for PortArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, rest) = match text.split_once('=') {
            Some((digits, rest)) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                (Some(port_number(digits)?), rest)
            }
            _ => (None, text),
        };
        Ok(Self { number, spec: spec(rest)? })
    }
}

/// The part in VLANs of the port of a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VlanArg {
    /// The port's number.
    pub number: PortNo,
    /// Its VLANs.
    pub vlans: PortVlans,
}

impl FromStr for VlanArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, vlans) = text
            .split_once('=')
            .ok_or_else(|| format!("{text:?} names no port; write it in front, as 1={text}"))?;
        let number = port_name(number)?;
        let vlans = vlans.parse().map_err(|error: datapath::BadVlans| error.to_string())?;
        Ok(Self { number, vlans })
    }
}

/// A mirror, as [`datapath::BadMirror`] describes its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MirrorArg(pub Mirror);

impl FromStr for MirrorArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().map(Self).map_err(|error: datapath::BadMirror| error.to_string())
    }
}

/// Reads a port's spec text.
pub(super) fn spec(text: &str) -> Result<PortSpec, String> {
    text.parse::<PortSpec>().map_err(|error| error.to_string())
}

pub(super) fn optional_spec<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<PortSpec>, D::Error> {
    spec(&String::deserialize(deserializer)?).map(Some).map_err(D::Error::custom)
}

/// Reads a version's name.
pub(super) fn version(text: &str) -> Result<Version, String> {
    Version::from_name(text.trim()).ok_or_else(|| {
        let names: Vec<&str> = Version::ALL.iter().map(|version| version.name()).collect();
        format!("unknown version {text:?}; versions are: {}", names.join(", "))
    })
}

pub(super) fn versions<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<Version>>, D::Error> {
    let names = Vec::<String>::deserialize(deserializer)?;
    let read = names.iter().map(|name| version(name).map_err(D::Error::custom));
    read.collect::<Result<_, _>>().map(Some)
}

pub(super) fn metrics_address<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<SocketAddr>, D::Error> {
    let text = String::deserialize(deserializer)?;
    metrics::parse_address(&text).map(Some).map_err(D::Error::custom)
}

/// A controller to connect to, or a place where controllers may connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointArg(pub channel::Endpoint);

impl FromStr for EndpointArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().map(Self).map_err(|error: channel::BadEndpoint| error.to_string())
    }
}

/// The mode of the switch while no controller is connected (clause 6.3.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailMode {
    /// Flow entries stay and expire; packets for the controller are dropped.
    #[default]
    Secure,
    /// The switch learns addresses and forwards by them, as one without a controller would.
    Standalone,
}

impl FailMode {
    /// The modes by their names.
    pub const NAMES: [(&'static str, Self); 2] =
        [("secure", Self::Secure), ("standalone", Self::Standalone)];

    /// The name that the configuration has for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Secure => "secure",
            Self::Standalone => "standalone",
        }
    }
}

impl FromStr for FailMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        named(text, "fail mode", &Self::NAMES)
    }
}

/// The mode of forwarding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Forward {
    /// The flow tables.
    #[default]
    Openflow,
    /// No tables: frames from one port of a pair leave by the other.
    Wire(Wire),
}

/// The change that a wire makes to frames. The names are DPDK testpmd's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// Nothing: no byte is read.
    Io,
    /// The source becomes the sending port's address, the destination one made of its number.
    Mac,
    /// Source and destination are exchanged.
    MacSwap,
}

impl Forward {
    /// The modes by their names.
    pub const NAMES: [(&'static str, Self); 4] = [
        ("openflow", Self::Openflow),
        ("io", Self::Wire(Wire::Io)),
        ("mac", Self::Wire(Wire::Mac)),
        ("macswap", Self::Wire(Wire::MacSwap)),
    ];

    /// The name that the configuration has for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Openflow => "openflow",
            Self::Wire(Wire::Io) => "io",
            Self::Wire(Wire::Mac) => "mac",
            Self::Wire(Wire::MacSwap) => "macswap",
        }
    }
}

impl FromStr for Forward {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        named(text, "forwarding mode", &Self::NAMES)
    }
}

/// The caches of decisions in use; by default all, the kernel tier where it is possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachesArg(pub datapath::fast::Caches);

impl Default for CachesArg {
    fn default() -> Self {
        Self(datapath::fast::Caches { kernel: true, ..datapath::fast::Caches::default() })
    }
}

impl CachesArg {
    /// Every set of caches, that of none first.
    pub fn all() -> impl Iterator<Item = Self> {
        let sets = (0..8).map(|bits| datapath::fast::Caches {
            frame: bits & 1 != 0,
            key: bits & 2 != 0,
            kernel: bits & 4 != 0,
        });
        // The kernel carries out what the frame cache would.
        sets.filter(|set| set.frame || !set.kernel).map(Self)
    }
}

/// The word for no cache.
const NO_CACHE: &str = "off";

impl FromStr for CachesArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut caches = datapath::fast::Caches { frame: false, key: false, kernel: false };
        if text == NO_CACHE {
            return Ok(Self(caches));
        }
        for name in text.split(',') {
            match name.trim() {
                // The second word of each is an earlier name that still works.
                "frame" | "exact" => caches.frame = true,
                "key" | "flow" => caches.key = true,
                // The kernel carries out what the frame cache would.
                "kernel" => (caches.frame, caches.kernel) = (true, true),
                other => {
                    return Err(format!(
                        "unknown cache {other:?}; use off, or some of frame, key and kernel with \
                         commas between them"
                    ));
                }
            }
        }
        Ok(Self(caches))
    }
}

impl fmt::Display for CachesArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [(self.0.frame, "frame"), (self.0.key, "key"), (self.0.kernel, "kernel")];
        let names: Vec<&str> = names.iter().filter(|(is_on, _)| *is_on).map(|it| it.1).collect();
        if names.is_empty() { f.write_str(NO_CACHE) } else { f.write_str(&names.join(",")) }
    }
}

/// The wait policy of forwarding threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Poll {
    /// They sleep while there are no frames.
    #[default]
    Adaptive,
    /// They never sleep.
    Busy,
}

impl Poll {
    /// The policies by their names.
    pub const NAMES: [(&'static str, Self); 2] =
        [("adaptive", Self::Adaptive), ("busy", Self::Busy)];

    /// The name that the configuration has for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Adaptive => "adaptive",
            Self::Busy => "busy",
        }
    }
}

impl FromStr for Poll {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        named(text, "polling policy", &Self::NAMES)
    }
}

/// The value of a name, or an error that lists the names.
fn named<T: Copy>(text: &str, what: &str, names: &[(&str, T)]) -> Result<T, String> {
    names.iter().find(|(name, _)| *name == text).map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
        format!("unknown {what} {text:?}; use one of: {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::{CachesArg, FailMode, Forward, MemorySize, Poll};

    #[test]
    fn amounts_of_memory_have_units() {
        let size = |text: &str| text.parse::<MemorySize>().map(|size| size.0);
        assert_eq!(size("512M"), Ok(512 << 20));
        assert_eq!(size("2g"), Ok(2 << 30));
        assert_eq!(size("67108864"), Ok(64 << 20));
        for wrong in ["", "M", "1M", "-1G", "99999999999T", "2GiB"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
        assert!(size("0512M").unwrap_err().ends_with("write 512, or 330 if it is octal"));
    }

    #[test]
    fn names_lead_back() {
        for (name, value) in Forward::NAMES {
            assert_eq!((value.name(), name.parse()), (name, Ok(value)));
        }
        for (name, value) in Poll::NAMES {
            assert_eq!((value.name(), name.parse()), (name, Ok(value)));
        }
        for (name, value) in FailMode::NAMES {
            assert_eq!((value.name(), name.parse()), (name, Ok(value)));
        }
        let all: Vec<String> = CachesArg::all().map(|set| set.to_string()).collect();
        assert_eq!(all.join(" "), "off frame key frame,key frame,kernel frame,key,kernel");
        for (name, set) in all.iter().zip(CachesArg::all()) {
            assert_eq!(name.parse(), Ok(set));
        }
        assert_eq!("exact,flow".parse::<CachesArg>(), "frame,key".parse::<CachesArg>());
        let message = "frame,off".parse::<CachesArg>().unwrap_err();
        let expected = "unknown cache \"off\"; use off, or some of frame, key and kernel with \
                        commas between them";
        assert_eq!(message, expected);
        let message = "fast".parse::<Poll>().unwrap_err();
        assert_eq!(message, "unknown polling policy \"fast\"; use one of: adaptive, busy");
    }
}
