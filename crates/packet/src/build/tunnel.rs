//! Headers of tunnels: GRE, VXLAN and GTP-U.

/// Protocol number of GRE.
const PROTO_GRE: u8 = 47;

/// "Key present" of GRE (RFC 2890).
const GRE_KEY: u16 = 0x2000;

/// "VNI is valid" of VXLAN (RFC 7348, section 5).
const VXLAN_VNI: u8 = 0x08;

/// Version 1, protocol type GTP, no optional field (TS 29.281, section 5.1).
const GTPU_FLAGS: u8 = 0x30;

/// Message type of a G-PDU, which carries a user's packet (TS 29.281, section 6.1).
const GTPU_G_PDU: u8 = 255;

#[derive(Clone, Copy, Debug)]
pub(super) enum TunnelHeader {
    Gre { key: Option<u32> },
    Vxlan { vni: u32 },
    Gtpu { teid: u32 },
}

impl TunnelHeader {
    /// The IP protocol number; VXLAN and GTP-U come after UDP.
    pub(super) const fn proto(self) -> Option<u8> {
        match self {
            Self::Gre { .. } => Some(PROTO_GRE),
            Self::Vxlan { .. } | Self::Gtpu { .. } => None,
        }
    }

    /// Whether the header says by an EtherType what it carries.
    pub(super) const fn is_typed(self) -> bool {
        matches!(self, Self::Gre { .. })
    }

    /// The header with what it carries; for GRE, `inner` begins with its EtherType, which is a part
    /// of the header.
    pub(super) fn around(self, inner: Vec<u8>) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self {
            Self::Gre { key } => {
                let flags = if key.is_some() { GRE_KEY } else { 0 };
                let (ether_type, rest) = inner.split_at(inner.len().min(2));
                bytes.extend(flags.to_be_bytes());
                bytes.extend(ether_type);
                bytes.extend(key.iter().flat_map(|key| key.to_be_bytes()));
                bytes.extend(rest);
                return bytes;
            }
            Self::Vxlan { vni } => {
                bytes.extend([VXLAN_VNI, 0, 0, 0]);
                bytes.extend((vni << 8).to_be_bytes());
            }
            Self::Gtpu { teid } => {
                bytes.extend([GTPU_FLAGS, GTPU_G_PDU]);
                bytes.extend((inner.len() as u16).to_be_bytes());
                bytes.extend(teid.to_be_bytes());
            }
        }
        bytes.extend(inner);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use openflow::MacAddr;

    use crate::build::{FrameBuilder, Ipv4};
    use crate::verify;

    fn ip(last: u8) -> Ipv4 {
        Ipv4::new(Ipv4Addr::new(10, 0, 0, last), Ipv4Addr::new(10, 0, 1, last))
    }

    fn outer() -> FrameBuilder {
        FrameBuilder::ethernet(MacAddr::from_u64(2), MacAddr::from_u64(1)).ipv4(ip(1))
    }

    #[test]
    fn a_frame_in_vxlan_is_whole_and_so_is_the_frame_around_it() {
        let frame = outer()
            .udp(5555, 4789)
            .vxlan(0x12_3456)
            .inner_ethernet(MacAddr::from_u64(4), MacAddr::from_u64(3))
            .ipv4(ip(2))
            .udp(1, 2)
            .fill_to(128)
            .build();
        assert_eq!(frame.len(), 128);
        verify(&frame).unwrap();
        assert_eq!(frame[42..50], [8, 0, 0, 0, 0x12, 0x34, 0x56, 0]);
        assert_eq!(frame[62..64], [8, 0]);
        verify(&frame[50..]).unwrap();
    }

    #[test]
    fn gtp_u_carries_a_packet_and_its_length() {
        let frame = outer().udp(2152, 2152).gtpu(7).ipv4(ip(2)).udp(1, 2).fill_to(100).build();
        verify(&frame).unwrap();
        assert_eq!(frame[42..50], [0x30, 255, 0, 50, 0, 0, 0, 7]);
        // The inner packet, behind an Ethernet header of its own.
        verify(&[&frame[..14], &frame[50..]].concat()).unwrap();
    }

    #[test]
    fn gre_says_what_it_carries_in_front_of_its_key() {
        let frame = outer().gre(Some(9)).ipv4(ip(2)).udp(1, 2).build();
        assert_eq!((frame[23], &frame[34..42]), (47, &[0x20, 0, 8, 0, 0, 0, 0, 9][..]));
        verify(&[&frame[..14], &frame[42..]].concat()).unwrap();
        let bridged = outer()
            .gre(None)
            .inner_ethernet(MacAddr::from_u64(4), MacAddr::from_u64(3))
            .ipv4(ip(2))
            .udp(1, 2)
            .build();
        assert_eq!(bridged[34..38], [0, 0, 0x65, 0x58]);
        verify(&bridged[38..]).unwrap();
    }
}
