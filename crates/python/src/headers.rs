//! The headers of a packet, as values with names: `pkt.ipv4.src`.
//!
//! A header that the packet does not have, or not whole, is `None`; nothing here raises on any
//! bytes.

use std::net::{Ipv4Addr, Ipv6Addr};

use openflow::field::Header;
use packet::Layout;
use packet::header::{arp, be16, chunk, ethernet, icmpv4, icmpv6, ipv4, ipv6, vlan};
use pyo3::prelude::{Bound, IntoPyObject, PyResult, Python, pyclass, pymethods};
use pyo3::types::PyString;

use crate::class::{Attribute, Hint, all_attributes, stub};

/// An Ethernet address, which is a text in Python.
#[derive(Clone, Copy)]
pub(crate) struct Mac(pub(crate) [u8; 6]);

impl Mac {
    /// The address of a text in the form that apps get it in, which is read without splitting it;
    /// `None` for other forms, which the reader of all texts knows.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let text: &[u8; 17] = text.as_bytes().try_into().ok()?;
        let mut bytes = [0; 6];
        for (index, byte) in bytes.iter_mut().enumerate() {
            let at = 3 * index;
            if index > 0 && text[at - 1] != b':' {
                return None;
            }
            let digit = |place: usize| char::from(text[place]).to_digit(16);
            *byte = u8::try_from(digit(at)? << 4 | digit(at + 1)?).ok()?;
        }
        Some(Self(bytes))
    }

    /// Its number, as a match has it.
    pub(crate) fn number(self) -> u128 {
        self.0.iter().fold(0, |number, byte| number << 8 | u128::from(*byte))
    }
}

impl<'py> IntoPyObject<'py> for Mac {
    type Target = PyString;
    type Output = Bound<'py, PyString>;
    type Error = std::convert::Infallible;

    fn into_pyobject(self, py: Python<'py>) -> Result<Self::Output, Self::Error> {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = [b':'; 17];
        for (place, byte) in text.chunks_mut(3).zip(self.0) {
            place[0] = DIGITS[usize::from(byte >> 4)];
            place[1] = DIGITS[usize::from(byte & 15)];
        }
        Ok(PyString::new(py, std::str::from_utf8(&text).unwrap_or_default()))
    }
}

impl Hint for Mac {
    fn hint() -> String {
        String::hint()
    }
}

impl Hint for Ip {
    fn hint() -> String {
        String::hint()
    }
}

/// An IP address, which is a text in Python.
#[derive(Clone)]
pub(crate) struct Ip(String);

impl<'py> IntoPyObject<'py> for Ip {
    type Target = PyString;
    type Output = Bound<'py, PyString>;
    type Error = std::convert::Infallible;

    fn into_pyobject(self, py: Python<'py>) -> Result<Self::Output, Self::Error> {
        self.0.into_pyobject(py)
    }
}

fn mac(frame: &[u8], at: usize) -> Option<Mac> {
    chunk(frame, at).map(|bytes| Mac(*bytes))
}

fn ip4(frame: &[u8], at: usize) -> Option<Ip> {
    chunk::<4>(frame, at).map(|bytes| Ip(Ipv4Addr::from(*bytes).to_string()))
}

fn ip6(frame: &[u8], at: usize) -> Option<Ip> {
    chunk::<16>(frame, at).map(|bytes| Ip(Ipv6Addr::from(*bytes).to_string()))
}

fn be32(frame: &[u8], at: usize) -> Option<u32> {
    chunk(frame, at).map(|bytes| u32::from_be_bytes(*bytes))
}

/// Defines a header: its class in Python, and how it is read from the bytes.
macro_rules! header {
    ($(#[doc = $doc:literal])* $name:ident, $python:literal, $header:expr,
        |$frame:ident, $at:ident, $layout:ident|
        { $($(#[doc = $fdoc:literal])* $field:ident : $ty:ty = $value:expr;)+ }) => {
        $(#[doc = $doc])*
        #[pyclass(frozen, get_all, module = "weir")]
        #[derive(Clone)]
        pub(crate) struct $name {
            $($(#[doc = $fdoc])* $field: $ty,)+
        }

        impl $name {
            pub(crate) fn read($frame: &[u8], $layout: &Layout) -> Option<Self> {
                let $at = $layout.at($header)?;
                Some(Self { $($field: $value,)+ })
            }
        }

        #[pymethods]
        impl $name {
            fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
                all_attributes(slf, $python, &[$(stringify!($field)),+])
            }
        }

        impl $name {
            pub(crate) fn stub() -> String {
                let rows: &[Attribute<'_>] =
                    &[$((stringify!($field), <$ty as Hint>::hint(), &[$($fdoc),*])),+];
                stub($python, &[$($doc),*], rows, "")
            }
        }

        impl Hint for $name {
            fn hint() -> String {
                $python.to_owned()
            }
        }
    };
}

header! {
    /// Destination, source and EtherType of the frame; the type is that after VLAN tags.
    Ethernet, "Ethernet", Header::Ethernet, |frame, at, layout| {
        /// Destination address.
        dst: Mac = mac(frame, at + ethernet::DST.start)?;
        /// Source address.
        src: Mac = mac(frame, at + ethernet::SRC.start)?;
        /// EtherType.
        r#type: u16 = layout.eth_type;
    }
}

header! {
    /// The outermost VLAN tag.
    Vlan, "Vlan", Header::Vlan, |frame, at, layout| {
        /// VLAN id.
        vid: u16 = vlan::vid(be16(frame, at)?);
        /// Priority.
        pcp: u8 = vlan::pcp(be16(frame, at)?);
        /// Tags there are.
        tags: usize = layout.tags;
    }
}

header! {
    /// ARP for IPv4 over Ethernet.
    Arp, "Arp", Header::Arp, |frame, at, _layout| {
        /// 1 asks, 2 answers.
        op: u16 = be16(frame, at + arp::OP.start)?;
        /// Sender's Ethernet address.
        sha: Mac = mac(frame, at + arp::SHA.start)?;
        /// Sender's IPv4 address.
        spa: Ip = ip4(frame, at + arp::SPA.start)?;
        /// Target's Ethernet address.
        tha: Mac = mac(frame, at + arp::THA.start)?;
        /// Target's IPv4 address.
        tpa: Ip = ip4(frame, at + arp::TPA.start)?;
    }
}

header! {
    /// IPv4.
    Ipv4, "Ipv4", Header::Ipv4, |frame, at, layout| {
        /// Source address.
        src: Ip = ip4(frame, at + ipv4::SRC.start)?;
        /// Destination address.
        dst: Ip = ip4(frame, at + ipv4::DST.start)?;
        /// Protocol number.
        proto: u8 = *frame.get(at + ipv4::PROTO)?;
        /// Time to live.
        ttl: u8 = *frame.get(at + ipv4::TTL)?;
        /// Differentiated services code point.
        dscp: u8 = *frame.get(at + ipv4::TOS)? >> 2;
        /// Congestion notification.
        ecn: u8 = *frame.get(at + ipv4::TOS)? & 3;
        /// Bytes of header and payload.
        total_len: u16 = be16(frame, at + ipv4::TOTAL_LEN.start)?;
        /// Whether it is a fragment, the first one included.
        is_fragment: bool = layout.fragment;
    }
}

header! {
    /// IPv6.
    Ipv6, "Ipv6", Header::Ipv6, |frame, at, layout| {
        /// Source address.
        src: Ip = ip6(frame, at + ipv6::SRC.start)?;
        /// Destination address.
        dst: Ip = ip6(frame, at + ipv6::DST.start)?;
        /// Number of the header behind all extension headers, where they are whole.
        proto: Option<u8> = layout.ip_proto;
        /// Hop limit.
        hop_limit: u8 = *frame.get(at + ipv6::HOP_LIMIT)?;
        /// Flow label.
        flow_label: u32 = be32(frame, at)? & 0xf_ffff;
        /// Whether it is a fragment, the first one included.
        is_fragment: bool = layout.fragment;
    }
}

header! {
    /// TCP.
    Tcp, "Tcp", Header::Tcp, |frame, at, _layout| {
        /// Source port.
        src: u16 = be16(frame, at)?;
        /// Destination port.
        dst: u16 = be16(frame, at + 2)?;
        /// Sequence number.
        seq: u32 = be32(frame, at + 4)?;
        /// Acknowledgement number.
        ack: u32 = be32(frame, at + 8)?;
        /// The flags' bits, FIN lowest.
        flags: u16 = be16(frame, at + 12)? & 0xfff;
        /// Window.
        window: u16 = be16(frame, at + 14)?;
    }
}

header! {
    /// UDP.
    Udp, "Udp", Header::Udp, |frame, at, _layout| {
        /// Source port.
        src: u16 = be16(frame, at)?;
        /// Destination port.
        dst: u16 = be16(frame, at + 2)?;
        /// Bytes of header and payload.
        length: u16 = be16(frame, at + 4)?;
    }
}

header! {
    /// SCTP.
    Sctp, "Sctp", Header::Sctp, |frame, at, _layout| {
        /// Source port.
        src: u16 = be16(frame, at)?;
        /// Destination port.
        dst: u16 = be16(frame, at + 2)?;
        /// Verification tag.
        verification_tag: u32 = be32(frame, at + 4)?;
    }
}

header! {
    /// ICMP.
    Icmpv4, "Icmpv4", Header::Icmpv4, |frame, at, _layout| {
        /// Type.
        r#type: u8 = *frame.get(at + icmpv4::TYPE)?;
        /// Code.
        code: u8 = *frame.get(at + icmpv4::CODE)?;
        /// Identifier of an echo request or reply.
        id: u16 = be16(frame, at + 4)?;
        /// Sequence number of an echo request or reply.
        seq: u16 = be16(frame, at + 6)?;
    }
}

header! {
    /// ICMPv6.
    Icmpv6, "Icmpv6", Header::Icmpv6, |frame, at, layout| {
        /// Type.
        r#type: u8 = *frame.get(at + icmpv6::TYPE)?;
        /// Code.
        code: u8 = *frame.get(at + icmpv6::CODE)?;
        /// Target of a neighbour solicitation or advertisement.
        nd_target: Option<Ip> = layout.nd_target_at(frame).and_then(|at| ip6(frame, at));
    }
}
