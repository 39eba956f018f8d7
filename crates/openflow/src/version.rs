//! Protocol versions, as they stand in the first byte of every message.

use std::fmt;

/// A version of the OpenFlow wire protocol that Weir speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// OpenFlow 1.0 (wire number 1).
    V1_0,
    /// OpenFlow 1.3 (wire number 4).
    V1_3,
}

impl Version {
    /// Every version, oldest first.
    pub const ALL: &'static [Self] = &[Self::V1_0, Self::V1_3];

    /// The number in the header's first byte.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::V1_0 => 1,
            Self::V1_3 => 4,
        }
    }

    /// The version of a header's first byte, if Weir speaks it.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.iter().copied().find(|version| version.number() == number)
    }

    /// The name that `ovs-ofctl -O` takes, for example `OpenFlow13`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::V1_0 => "OpenFlow10",
            Self::V1_3 => "OpenFlow13",
        }
    }

    /// Takes `OpenFlow13`, `OpenFlow1.3`, `1.3` or `13`, in any case of letters.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let lower = name.to_ascii_lowercase();
        let digits = lower.strip_prefix("openflow").unwrap_or(&lower).replace('.', "");
        match digits.as_str() {
            "10" => Some(Self::V1_0),
            "13" => Some(Self::V1_3),
            _ => None,
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of wire version numbers, as a hello's version bitmap carries it (bit n = version n).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct VersionBitmap(pub u32);

impl VersionBitmap {
    /// The set of `versions`.
    #[must_use]
    pub fn of(versions: &[Version]) -> Self {
        Self(versions.iter().fold(0, |bits, version| bits | 1 << version.number()))
    }

    /// Whether the wire version number is in the set.
    #[must_use]
    pub fn contains(self, number: u8) -> bool {
        number < 32 && self.0 & (1 << number) != 0
    }

    /// The highest version that both sets hold and Weir speaks (clause 6.3.1).
    #[must_use]
    pub fn highest_common(self, other: Self) -> Option<Version> {
        let both = Self(self.0 & other.0);
        Version::ALL.iter().rev().copied().find(|version| both.contains(version.number()))
    }
}
