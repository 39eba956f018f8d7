//! Identifiers as types of their own, so that a port number is never taken for a queue.

use std::fmt;

macro_rules! id {
    ($(#[$meta:meta])* $name:ident($int:ty)) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $int);
    };
}

id!(
    /// The 64-bit identity of a datapath: lower 48 bits a MAC address by custom.
    DatapathId(u64)
);
id!(
    /// A port number of OpenFlow 1.1 and later; the 16-bit numbers of 1.0 are translated by `wire`.
    PortNo(u32)
);
id!(
    /// A flow table's number; [`TableId::ALL`] is a wildcard in some requests.
    TableId(u8)
);
id!(
    /// A group's number.
    GroupId(u32)
);
id!(
    /// A bucket's number in its group.
    BucketId(u32)
);
id!(
    /// A meter's number.
    MeterId(u32)
);
id!(
    /// A queue's number within its port.
    QueueId(u32)
);
id!(
    /// The transaction number that pairs a reply with its request.
    Xid(u32)
);
id!(
    /// The opaque value that a controller attaches to a flow entry.
    Cookie(u64)
);
id!(
    /// A packet kept by the switch; absence is `Option::None`, on the wire `0xffffffff`.
    BufferId(u32)
);

impl fmt::Display for DatapathId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl Cookie {
    /// No cookie: of no entry's packet-in, and of a modify that leaves cookies as they are.
    pub const NONE: Self = Self(u64::MAX);
}

impl PortNo {
    /// Highest number of a physical or logical port (`OFPP_MAX`).
    pub const MAX: Self = Self(0xffff_ff00);
    /// Back out of the port that the packet came in by.
    pub const IN_PORT: Self = Self(0xffff_fff8);
    /// Through the flow tables, in a packet-out only.
    pub const TABLE: Self = Self(0xffff_fff9);
    /// Non-OpenFlow forwarding.
    pub const NORMAL: Self = Self(0xffff_fffa);
    /// All ports but the ingress port and those with `NO_FLOOD`.
    pub const FLOOD: Self = Self(0xffff_fffb);
    /// All ports but the ingress port.
    pub const ALL: Self = Self(0xffff_fffc);
    /// To the controller, as a packet-in.
    pub const CONTROLLER: Self = Self(0xffff_fffd);
    /// The switch's own network stack.
    pub const LOCAL: Self = Self(0xffff_fffe);
    /// A wildcard in requests (`OFPP_ANY`; `OFPP_NONE` in 1.0). Not a destination.
    pub const ANY: Self = Self(0xffff_ffff);

    const RESERVED: [(Self, &'static str); 8] = [
        (Self::IN_PORT, "IN_PORT"),
        (Self::TABLE, "TABLE"),
        (Self::NORMAL, "NORMAL"),
        (Self::FLOOD, "FLOOD"),
        (Self::ALL, "ALL"),
        (Self::CONTROLLER, "CONTROLLER"),
        (Self::LOCAL, "LOCAL"),
        (Self::ANY, "ANY"),
    ];

    /// The port of a number of 16 bits, in which the reserved ports have those of 1.0; none of a
    /// larger number.
    #[must_use]
    pub fn of_short(number: u128) -> Option<Self> {
        let short = u16::try_from(number).ok()?;
        Some(Self(if short >= 0xff00 { u32::from(short) | 0xffff_0000 } else { short.into() }))
    }

    /// The name of a reserved port, such as `CONTROLLER`.
    #[must_use]
    pub fn reserved_name(self) -> Option<&'static str> {
        Self::RESERVED.iter().find(|(port, _)| *port == self).map(|(_, name)| *name)
    }

    /// The reserved port of a name, in any case of letters; `NONE` is 1.0's word for `ANY`.
    #[must_use]
    pub fn from_reserved_name(name: &str) -> Option<Self> {
        if name.eq_ignore_ascii_case("NONE") {
            return Some(Self::ANY);
        }
        Self::RESERVED.iter().find(|(_, n)| n.eq_ignore_ascii_case(name)).map(|(port, _)| *port)
    }

    /// Whether the number can belong to a port that exists: 1 to [`PortNo::MAX`], or `LOCAL`.
    #[must_use]
    pub fn is_port(self) -> bool {
        (self.0 >= 1 && self <= Self::MAX) || self == Self::LOCAL
    }
}

/// A port's number where there are 16 bits for it in every version, as Nicira's actions have it.
/// The reserved ports have their numbers of 1.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShortPort(pub(crate) PortNo);

impl ShortPort {
    /// The same where 16 bits are enough for the port.
    #[must_use]
    pub fn new(port: PortNo) -> Option<Self> {
        let low = PortNo::of_short(u128::from(port.0 & 0xffff));
        (low == Some(port)).then_some(Self(port))
    }

    /// The one of a number, cut to 16 bits.
    #[must_use]
    pub(crate) fn of(number: u64) -> Self {
        Self(PortNo::of_short(u128::from(number & 0xffff)).unwrap_or(PortNo::ANY))
    }

    /// The port.
    #[must_use]
    pub fn port(self) -> PortNo {
        self.0
    }

    /// The number of 16 bits.
    #[must_use]
    pub fn number(self) -> u16 {
        self.0.0 as u16
    }
}

impl fmt::Display for PortNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reserved_name() {
            Some(name) => f.write_str(name),
            None => write!(f, "{}", self.0),
        }
    }
}

impl TableId {
    /// Highest number of a table that can exist (`OFPTT_MAX`).
    pub const MAX: Self = Self(0xfe);
    /// Wildcard in delete and statistics requests (`OFPTT_ALL`).
    pub const ALL: Self = Self(0xff);
}

impl BucketId {
    /// Highest number of a bucket (`OFPG_BUCKET_MAX`).
    pub const MAX: Self = Self(0xffff_ff00);
    /// The first bucket of the group, in commands (`OFPG_BUCKET_FIRST`).
    pub const FIRST: Self = Self(0xffff_fffd);
    /// The last bucket of the group, in commands (`OFPG_BUCKET_LAST`).
    pub const LAST: Self = Self(0xffff_fffe);
    /// All buckets of the group, in commands (`OFPG_BUCKET_ALL`).
    pub const ALL: Self = Self(0xffff_ffff);
}

impl GroupId {
    /// Highest number of a group that can exist (`OFPG_MAX`).
    pub const MAX: Self = Self(0xffff_ff00);
    /// All groups, in delete and statistics requests (`OFPG_ALL`).
    pub const ALL: Self = Self(0xffff_fffc);
    /// No restriction, in flow deletes and flow statistics (`OFPG_ANY`).
    pub const ANY: Self = Self(0xffff_ffff);
}

impl MeterId {
    /// Highest number of a meter that can exist (`OFPM_MAX`).
    pub const MAX: Self = Self(0xffff_0000);
    /// Virtual meter for the slow path (`OFPM_SLOWPATH`).
    pub const SLOWPATH: Self = Self(0xffff_fffd);
    /// Virtual meter for the controller connection (`OFPM_CONTROLLER`).
    pub const CONTROLLER: Self = Self(0xffff_fffe);
    /// All meters, in delete and statistics requests (`OFPM_ALL`).
    pub const ALL: Self = Self(0xffff_ffff);
}

impl QueueId {
    /// All queues, in statistics requests (`OFPQ_ALL`).
    pub const ALL: Self = Self(0xffff_ffff);
}

/// An Ethernet address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MacAddr(pub [u8; 6]);

impl MacAddr {
    /// The address as the low 48 bits of an integer, first byte highest.
    #[must_use]
    pub fn to_u64(self) -> u64 {
        self.0.iter().fold(0, |bits, byte| bits << 8 | u64::from(*byte))
    }

    /// The address of the low 48 bits of `bits`.
    #[must_use]
    pub fn from_u64(bits: u64) -> Self {
        let [_, _, a, b, c, d, e, f] = bits.to_be_bytes();
        Self([a, b, c, d, e, f])
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl std::str::FromStr for MacAddr {
    type Err = BadMac;

    fn from_str(text: &str) -> Result<Self, BadMac> {
        let mut bytes = [0; 6];
        let mut parts = text.split(':');
        for byte in &mut bytes {
            let part = parts.next().ok_or(BadMac)?;
            if part.is_empty() || part.len() > 2 {
                return Err(BadMac);
            }
            *byte = u8::from_str_radix(part, 16).map_err(|_| BadMac)?;
        }
        if parts.next().is_some() { Err(BadMac) } else { Ok(Self(bytes)) }
    }
}

/// A text that is not an Ethernet address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadMac;

impl fmt::Display for BadMac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not an Ethernet address (six hex bytes joined by colons)")
    }
}

impl std::error::Error for BadMac {}
