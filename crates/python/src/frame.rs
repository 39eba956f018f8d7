//! Building packets: headers from the outside in, lengths and checksums by themselves.

use std::net::{Ipv4Addr, Ipv6Addr};

use openflow::MacAddr;
use packet::build::{Arp, FrameBuilder, Ipv4, Ipv6, Tcp};
use pyo3::prelude::{Bound, PyResult, Python, pyclass, pymethods};
use pyo3::types::PyBytes;

use crate::errors::word;

/// A packet in the making: `Frame(dst, src).ipv4("10.0.0.1", "10.0.0.2").udp(1, 53).build()`.
///
/// Each method gives a new one, so that a beginning can be used again.
#[pyclass(frozen, module = "weir")]
pub(crate) struct Frame {
    builder: FrameBuilder,
}

fn mac(text: &str) -> PyResult<MacAddr> {
    text.parse().map_err(|error| word(format!("{text:?} is {error}")))
}

fn ip4(text: &str) -> PyResult<Ipv4Addr> {
    text.parse().map_err(|_| word(format!("{text:?} is not an IPv4 address")))
}

fn ip6(text: &str) -> PyResult<Ipv6Addr> {
    text.parse().map_err(|_| word(format!("{text:?} is not an IPv6 address")))
}

impl Frame {
    fn with(&self, add: impl FnOnce(FrameBuilder) -> FrameBuilder) -> Self {
        Self { builder: add(self.builder.clone()) }
    }
}

#[pymethods]
impl Frame {
    #[new]
    fn new(dst: &str, src: &str) -> PyResult<Self> {
        Ok(Self { builder: FrameBuilder::ethernet(mac(dst)?, mac(src)?) })
    }

    /// Adds a VLAN tag, with the priority `pcp`.
    #[pyo3(signature = (vid, pcp=0))]
    fn vlan(&self, vid: u16, pcp: u8) -> Self {
        self.with(|builder| builder.vlan(pcp, vid))
    }

    /// Sets the EtherType of the payload, where no header says it.
    fn ether_type(&self, ether_type: u16) -> Self {
        self.with(|builder| builder.ether_type(ether_type))
    }

    /// Adds ARP: `op` 1 asks, 2 answers; `sha` and `spa` are the sender's addresses, `tha` and
    /// `tpa` the target's.
    fn arp(&self, op: u16, sha: &str, spa: &str, tha: &str, tpa: &str) -> PyResult<Self> {
        let arp = Arp { op, sha: mac(sha)?, spa: ip4(spa)?, tha: mac(tha)?, tpa: ip4(tpa)? };
        Ok(self.with(|builder| builder.arp(arp)))
    }

    /// Adds an IPv4 header; `proto` is that of the header behind it, unless it is given.
    #[pyo3(signature = (src, dst, *, ttl=64, dscp=0, proto=None))]
    fn ipv4(&self, src: &str, dst: &str, ttl: u8, dscp: u8, proto: Option<u8>) -> PyResult<Self> {
        let header = Ipv4 { ttl, dscp, proto, ..Ipv4::new(ip4(src)?, ip4(dst)?) };
        Ok(self.with(|builder| builder.ipv4(header)))
    }

    /// Adds an IPv6 header; `proto` is that of the header behind it, unless it is given.
    #[pyo3(signature = (src, dst, *, hop_limit=64, proto=None))]
    fn ipv6(&self, src: &str, dst: &str, hop_limit: u8, proto: Option<u8>) -> PyResult<Self> {
        let header = Ipv6 { hop_limit, proto, ..Ipv6::new(ip6(src)?, ip6(dst)?) };
        Ok(self.with(|builder| builder.ipv6(header)))
    }

    /// Adds a UDP header.
    fn udp(&self, src: u16, dst: u16) -> Self {
        self.with(|builder| builder.udp(src, dst))
    }

    /// Adds a TCP header; `flags` are its bits, FIN lowest: 2 is a SYN.
    #[pyo3(signature = (src, dst, *, flags=2, seq=0, ack=0))]
    fn tcp(&self, src: u16, dst: u16, flags: u8, seq: u32, ack: u32) -> Self {
        let header = Tcp { flags, seq, ack, ..Tcp::new(src, dst) };
        self.with(|builder| builder.tcp(header))
    }

    /// Adds an echo request, of the ICMP of the IP header before it.
    fn echo_request(&self, id: u16, seq: u16) -> Self {
        self.with(|builder| builder.echo_request(id, seq))
    }

    /// Adds an echo reply, of the ICMP of the IP header before it.
    fn echo_reply(&self, id: u16, seq: u16) -> Self {
        self.with(|builder| builder.echo_reply(id, seq))
    }

    /// Adds the bytes behind all headers.
    fn payload(&self, data: &[u8]) -> Self {
        self.with(|builder| builder.payload(data))
    }

    /// The bytes of the packet, without FCS.
    fn build<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.builder.clone().build())
    }
}
