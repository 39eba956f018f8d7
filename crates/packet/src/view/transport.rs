//! Questions about ICMP, IGMP, TCP, UDP and SCTP. A later fragment has none of these headers.

use std::net::Ipv4Addr;

use super::{PacketView, byte, half, word};
use crate::header::{chunk, icmpv4, icmpv6, sctp, tcp, udp};
use crate::layout::{Network, Transport};

/// Protocol number of IGMP.
const PROTO_IGMP: u8 = 2;
/// Bytes that every IGMP message has.
const IGMP_LEN: usize = 8;

/// Types of ICMP (RFC 792).
const ICMP_UNREACHABLE: u8 = 3;
const ICMP_REDIRECT: u8 = 5;

/// Types of IGMP (RFC 1112, 2236, 3376).
const IGMP_QUERY: u8 = 0x11;
const IGMP_V1_REPORT: u8 = 0x12;
const IGMP_V2_REPORT: u8 = 0x16;
const IGMP_LEAVE: u8 = 0x17;
const IGMP_V3_REPORT: u8 = 0x22;

impl<'a> PacketView<'a> {
    fn icmpv4(&self) -> Option<&'a [u8]> {
        self.transport(Transport::Icmpv4)
    }

    fn icmpv6(&self) -> Option<&'a [u8]> {
        self.transport(Transport::Icmpv6)
    }

    fn igmp(&self) -> Option<&'a [u8]> {
        let layout = self.layout.filter(|layout| layout.network == Network::Ipv4)?;
        if layout.ip_proto != Some(PROTO_IGMP) || layout.later_fragment {
            return None;
        }
        self.frame.get(layout.l4..layout.end).filter(|message| message.len() >= IGMP_LEN)
    }

    fn tcp(&self) -> Option<&'a [u8]> {
        self.transport(Transport::Tcp)
    }

    fn udp(&self) -> Option<&'a [u8]> {
        self.transport(Transport::Udp)
    }

    /// Whether it is ICMP over IPv4.
    #[must_use]
    pub fn is_icmpv4(&self) -> bool {
        self.has_transport(Transport::Icmpv4)
    }

    /// Type of ICMP.
    #[must_use]
    pub fn icmpv4_type(&self) -> Option<u8> {
        byte(self.icmpv4(), icmpv4::TYPE)
    }

    /// Code of ICMP.
    #[must_use]
    pub fn icmpv4_code(&self) -> Option<u8> {
        byte(self.icmpv4(), icmpv4::CODE)
    }

    /// Checksum of ICMP.
    #[must_use]
    pub fn icmpv4_checksum(&self) -> Option<u16> {
        half(self.icmpv4(), icmpv4::CHECKSUM.start)
    }

    /// Identifier of an ICMP echo.
    #[must_use]
    pub fn icmpv4_id(&self) -> Option<u16> {
        half(self.icmpv4_echo(), icmpv4::CHECKSUM.end)
    }

    /// Sequence number of an ICMP echo.
    #[must_use]
    pub fn icmpv4_seq(&self) -> Option<u16> {
        half(self.icmpv4_echo(), icmpv4::CHECKSUM.end + 2)
    }

    fn icmpv4_echo(&self) -> Option<&'a [u8]> {
        let is_echo = self.is_icmpv4_echo_request() || self.is_icmpv4_echo_reply();
        self.icmpv4().filter(|_| is_echo)
    }

    /// The gateway that an ICMP redirect names.
    #[must_use]
    pub fn icmpv4_gateway(&self) -> Option<Ipv4Addr> {
        let message = self.icmpv4().filter(|_| self.is_icmpv4_redirect())?;
        chunk::<4>(message, icmpv4::CHECKSUM.end).map(|bytes| Ipv4Addr::from(*bytes))
    }

    /// Whether it is an ICMP echo request.
    #[must_use]
    pub fn is_icmpv4_echo_request(&self) -> bool {
        self.icmpv4_type() == Some(icmpv4::ECHO_REQUEST)
    }

    /// Whether it is an ICMP echo reply.
    #[must_use]
    pub fn is_icmpv4_echo_reply(&self) -> bool {
        self.icmpv4_type() == Some(icmpv4::ECHO_REPLY)
    }

    /// Whether it is the ICMP message "destination unreachable".
    #[must_use]
    pub fn is_icmpv4_dst_unreach(&self) -> bool {
        self.icmpv4_type() == Some(ICMP_UNREACHABLE)
    }

    /// Whether it is an ICMP redirect.
    #[must_use]
    pub fn is_icmpv4_redirect(&self) -> bool {
        self.icmpv4_type() == Some(ICMP_REDIRECT)
    }

    /// Whether it is ICMPv6.
    #[must_use]
    pub fn is_icmpv6(&self) -> bool {
        self.has_transport(Transport::Icmpv6)
    }

    /// Type of ICMPv6.
    #[must_use]
    pub fn icmpv6_type(&self) -> Option<u8> {
        byte(self.icmpv6(), icmpv6::TYPE)
    }

    /// Code of ICMPv6.
    #[must_use]
    pub fn icmpv6_code(&self) -> Option<u8> {
        byte(self.icmpv6(), icmpv6::CODE)
    }

    /// Whether it is IGMP.
    #[must_use]
    pub fn is_igmp(&self) -> bool {
        self.igmp().is_some()
    }

    /// Type of IGMP.
    #[must_use]
    pub fn igmp_type(&self) -> Option<u8> {
        byte(self.igmp(), 0)
    }

    /// Checksum of IGMP.
    #[must_use]
    pub fn igmp_checksum(&self) -> Option<u16> {
        half(self.igmp(), 2)
    }

    /// Group of IGMP; reports of version 3 have their groups elsewhere.
    #[must_use]
    pub fn igmp_group(&self) -> Option<Ipv4Addr> {
        let message = self.igmp().filter(|_| !self.is_igmp_v3_membership_report())?;
        chunk::<4>(message, 4).map(|bytes| Ipv4Addr::from(*bytes))
    }

    /// Whether it is an IGMP membership query.
    #[must_use]
    pub fn is_igmp_membership_query(&self) -> bool {
        self.igmp_type() == Some(IGMP_QUERY)
    }

    /// Whether it is an IGMP version 1 membership report.
    #[must_use]
    pub fn is_igmp_v1_membership_report(&self) -> bool {
        self.igmp_type() == Some(IGMP_V1_REPORT)
    }

    /// Whether it is an IGMP version 2 membership report.
    #[must_use]
    pub fn is_igmp_v2_membership_report(&self) -> bool {
        self.igmp_type() == Some(IGMP_V2_REPORT)
    }

    /// Whether it is an IGMP version 2 leave of a group.
    #[must_use]
    pub fn is_igmp_v2_leave_group(&self) -> bool {
        self.igmp_type() == Some(IGMP_LEAVE)
    }

    /// Whether it is an IGMP version 3 membership report.
    #[must_use]
    pub fn is_igmp_v3_membership_report(&self) -> bool {
        self.igmp_type() == Some(IGMP_V3_REPORT)
    }

    /// Whether it is TCP.
    #[must_use]
    pub fn is_tcp(&self) -> bool {
        self.has_transport(Transport::Tcp)
    }

    /// Source port of TCP.
    #[must_use]
    pub fn tcp_src_port(&self) -> Option<u16> {
        half(self.tcp(), tcp::SRC.start)
    }

    /// Destination port of TCP.
    #[must_use]
    pub fn tcp_dst_port(&self) -> Option<u16> {
        half(self.tcp(), tcp::DST.start)
    }

    /// Sequence number of TCP.
    #[must_use]
    pub fn tcp_seq_no(&self) -> Option<u32> {
        word(self.tcp(), 4)
    }

    /// Acknowledgement number of TCP.
    #[must_use]
    pub fn tcp_ack_no(&self) -> Option<u32> {
        word(self.tcp(), 8)
    }

    /// Length of the header of TCP in units of four bytes, as it states.
    #[must_use]
    pub fn tcp_offset(&self) -> Option<u8> {
        byte(self.tcp(), 12).map(|bits| bits >> 4)
    }

    pub(super) fn tcp_header_len(&self) -> Option<usize> {
        self.tcp_offset().map(|units| usize::from(units).max(5) * 4)
    }

    /// Flags of TCP: FIN is 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32.
    #[must_use]
    pub fn tcp_flags(&self) -> Option<u8> {
        byte(self.tcp(), 13)
    }

    /// Window of TCP.
    #[must_use]
    pub fn tcp_window(&self) -> Option<u16> {
        half(self.tcp(), 14)
    }

    /// Checksum of TCP.
    #[must_use]
    pub fn tcp_checksum(&self) -> Option<u16> {
        half(self.tcp(), tcp::CHECKSUM.start)
    }

    /// Urgent pointer of TCP.
    #[must_use]
    pub fn tcp_urgent(&self) -> Option<u16> {
        half(self.tcp(), tcp::CHECKSUM.end)
    }

    /// Whether it is UDP.
    #[must_use]
    pub fn is_udp(&self) -> bool {
        self.has_transport(Transport::Udp)
    }

    /// Source port of UDP.
    #[must_use]
    pub fn udp_src_port(&self) -> Option<u16> {
        half(self.udp(), udp::SRC.start)
    }

    /// Destination port of UDP.
    #[must_use]
    pub fn udp_dst_port(&self) -> Option<u16> {
        half(self.udp(), udp::DST.start)
    }

    /// Length of header and payload of UDP in bytes, as it states.
    #[must_use]
    pub fn udp_len(&self) -> Option<u16> {
        half(self.udp(), udp::LEN.start)
    }

    /// Checksum of UDP; zero says that there is none.
    #[must_use]
    pub fn udp_checksum(&self) -> Option<u16> {
        half(self.udp(), udp::CHECKSUM.start)
    }

    /// Payload of UDP.
    #[must_use]
    pub fn udp_payload(&self) -> Option<&'a [u8]> {
        self.udp()?.get(udp::HEADER_LEN..)
    }

    /// Whether it is SCTP.
    #[must_use]
    pub fn is_sctp(&self) -> bool {
        self.has_transport(Transport::Sctp)
    }

    /// Source port of SCTP.
    #[must_use]
    pub fn sctp_src_port(&self) -> Option<u16> {
        half(self.transport(Transport::Sctp), sctp::SRC.start)
    }

    /// Destination port of SCTP.
    #[must_use]
    pub fn sctp_dst_port(&self) -> Option<u16> {
        half(self.transport(Transport::Sctp), sctp::DST.start)
    }
}
