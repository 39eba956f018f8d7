//! Values of the apps' settings file: datapath ids, matches, addresses, networks; and the fault
//! that the check of a section finds.

use openflow::text::{parse_match, parse_number};
use openflow::{DatapathId, MacAddr, Match};
use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};
use std::fmt;
use std::net::Ipv4Addr;
use std::ops::Range;
use std::str::FromStr;
use toml::Spanned;

/// A fault that a section's check finds, with its place in the text.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub(super) at: Range<usize>,
    pub(super) message: String,
}

impl Fault {
    pub(super) fn at<T>(entry: &Spanned<T>, key: &str, message: impl Into<String>) -> Self {
        Self { at: entry.span(), message: format!("{key}: {}", message.into()) }
    }
}

/// A datapath id: a number, or sixteen hexadecimal digits in quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SwitchId(pub DatapathId);

impl<'de> Deserialize<'de> for SwitchId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl Visitor<'_> for Reader {
            type Value = SwitchId;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a datapath id: a number, or up to 16 hexadecimal digits in quotes")
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<SwitchId, E> {
                let number = u64::try_from(number);
                let wrong = |_| E::invalid_value(de::Unexpected::Other("a negative number"), &self);
                number.map(|number| SwitchId(DatapathId(number))).map_err(wrong)
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<SwitchId, E> {
                Ok(SwitchId(DatapathId(number)))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<SwitchId, E> {
                let digits = text.strip_prefix("0x").unwrap_or(text);
                let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
                let number = u64::from_str_radix(digits, 16).ok().filter(|_| is_hex);
                let wrong = || E::invalid_value(de::Unexpected::Str(text), &self);
                number.map(|number| SwitchId(DatapathId(number))).ok_or_else(wrong)
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

/// A match in the words of `ovs-ofctl`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct MatchText(pub Match);

impl TryFrom<String> for MatchText {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let matching = parse_match(&text).map_err(|error| format!("{text:?}, {error}"))?;
        let check = matching.check_prerequisites();
        check.map_err(|error| format!("{text:?}: {error}"))?;
        Ok(Self(matching))
    }
}

/// An Ethernet address of one station.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct StationMac(pub MacAddr);

impl TryFrom<String> for StationMac {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let mac = MacAddr::from_str(&text).map_err(|error| format!("{text:?}: {error}"))?;
        let [first, ..] = mac.0;
        if first & 1 != 0 || mac == MacAddr::default() {
            return Err(format!("{text:?}: not the address of one station"));
        }
        Ok(Self(mac))
    }
}

/// An IPv4 network, `10.1.0.0/16`, or an address in it, `10.1.0.1/16`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct NetworkPrefix {
    /// The address as written.
    pub address: Ipv4Addr,
    /// Bits of the network.
    pub len: u8,
}

impl NetworkPrefix {
    /// The bits of the network.
    #[must_use]
    pub fn mask(self) -> u32 {
        u32::MAX.checked_shl(32 - u32::from(self.len)).unwrap_or(0)
    }

    /// The network's first address.
    #[must_use]
    pub fn network(self) -> Ipv4Addr {
        Ipv4Addr::from(self.address.to_bits() & self.mask())
    }

    /// The network's last address.
    #[must_use]
    pub fn broadcast(self) -> Ipv4Addr {
        Ipv4Addr::from(self.address.to_bits() | !self.mask())
    }

    /// Whether an address is in the network.
    #[must_use]
    pub fn holds(self, address: Ipv4Addr) -> bool {
        (address.to_bits() ^ self.address.to_bits()) & self.mask() == 0
    }
}

impl TryFrom<String> for NetworkPrefix {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let wrong = || format!("{text:?}: an IPv4 address and a length, as in 10.1.0.1/16");
        let (address, len) = text.split_once('/').ok_or_else(wrong)?;
        let address = address.parse().map_err(|_| wrong())?;
        let len = parse_number(len).map_err(|error| format!("{}; {}", wrong(), error.what))?;
        if len > 32 {
            return Err(wrong());
        }
        Ok(Self { address, len })
    }
}

impl fmt::Display for NetworkPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.len)
    }
}
