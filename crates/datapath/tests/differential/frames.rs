//! Frames of every kind that the datapath distinguishes, over a small universe of addresses.
//!
//! The universe is small so that matches which are made of one frame match others as well.

use std::net::{Ipv4Addr, Ipv6Addr};

use openflow::MacAddr;
use packet::build::{Arp, Extension, FrameBuilder, Ipv4, Ipv6, Tcp};
use testkit::Random;

/// Addresses and numbers that a scenario's frames are made of.
#[derive(Clone, Debug)]
pub(crate) struct Universe {
    macs: Vec<MacAddr>,
    v4: Vec<Ipv4Addr>,
    v6: Vec<Ipv6Addr>,
    ports: Vec<u16>,
    vids: Vec<u16>,
}

impl Universe {
    pub(crate) fn new(rng: &mut Random) -> Self {
        let mut macs = vec![
            MacAddr([0xff; 6]),
            MacAddr([0x01, 0x80, 0xc2, 0, 0, 0]),
            MacAddr([0x01, 0, 0x5e, 1, 2, 3]),
        ];
        macs.extend((0..6).map(|n| MacAddr::from_u64(0x0200_0000_0000 | n << (n * 5) | n)));
        let v4_base = rng.u64() as u32;
        // Neighbours at every distance, for prefixes of every length.
        let v4 = (0..12).map(|_| (v4_base ^ (1_u32 << rng.below(32)) >> rng.below(8)).into());
        let v4 = v4.collect();
        let v6_base = rng.u128();
        let v6 = (0..8).map(|_| (v6_base ^ 1 << rng.below(128)).into()).collect();
        let ports = vec![0, 53, 80, 443, 1000, 1001, rng.u64() as u16, rng.u64() as u16];
        let vids = vec![0, 1, 5, 7, 100, 4095, rng.below(4096) as u16];
        Self { macs, v4, v6, ports, vids }
    }

    pub(crate) fn mac(&self, rng: &mut Random) -> MacAddr {
        *rng.pick(&self.macs)
    }

    fn v4(&self, rng: &mut Random) -> Ipv4Addr {
        *rng.pick(&self.v4)
    }

    fn v6(&self, rng: &mut Random) -> Ipv6Addr {
        *rng.pick(&self.v6)
    }

    fn port(&self, rng: &mut Random) -> u16 {
        *rng.pick(&self.ports)
    }

    /// A frame; one of fifteen is damaged.
    pub(crate) fn frame(&self, rng: &mut Random) -> Vec<u8> {
        let mut frame = FrameBuilder::ethernet(self.mac(rng), self.mac(rng));
        for _ in 0..rng.weighted(&[60, 30, 8, 2]) {
            let ether_type = *rng.pick(&[0x8100, 0x8100, 0x8100, 0x88a8]);
            frame = frame.tag(ether_type, rng.below(8) as u8, *rng.pick(&self.vids));
        }
        if rng.percent(3) {
            frame = frame.snap();
        }
        let frame = match rng.weighted(&[55, 18, 8, 8, 5, 6]) {
            0 => self.ipv4(frame, rng),
            1 => self.ipv6(frame, rng),
            2 => frame.arp(Arp {
                op: rng.below(3) as u16,
                sha: self.mac(rng),
                spa: self.v4(rng),
                tha: self.mac(rng),
                tpa: self.v4(rng),
            }),
            3 => self.mpls(frame, rng),
            4 => self.pbb(frame, rng),
            _ => frame.ether_type(*rng.pick(&[0x88b5, 0x0800, 0x86dd, 0x9000, 0x0806])),
        };
        let payload: Vec<u8> = (0..rng.below(24)).map(|_| rng.byte()).collect();
        let size = *rng.pick(&[0, 60, 60, 64, 128, 300]);
        let mut bytes = frame.payload(&payload).fill_to(size).build();
        if rng.percent(7) {
            damage(&mut bytes, rng);
        }
        bytes
    }

    fn mpls(&self, frame: FrameBuilder, rng: &mut Random) -> FrameBuilder {
        let mut frame = frame;
        for _ in 0..1 + rng.weighted(&[60, 30, 10]) {
            frame = frame.mpls(rng.below(4) as u32 * 16, rng.below(8) as u8, ttl(rng));
        }
        if rng.percent(70) { self.ipv4(frame, rng) } else { frame }
    }

    fn pbb(&self, frame: FrameBuilder, rng: &mut Random) -> FrameBuilder {
        let isid = rng.below(3) as u32 + 100;
        let frame = frame.pbb(rng.below(8) as u8, isid, self.mac(rng), self.mac(rng));
        if rng.percent(60) { self.ipv4(frame, rng) } else { frame }
    }

    fn ipv4(&self, frame: FrameBuilder, rng: &mut Random) -> FrameBuilder {
        let mut header = Ipv4::new(self.v4(rng), self.v4(rng));
        header.dscp = dscp(rng);
        header.ecn = rng.below(4) as u8;
        header.ttl = ttl(rng);
        header.id = rng.u64() as u16;
        if rng.percent(6) {
            header.fragment = *rng.pick(&[0x2000, 0x2001, 0x0003, 0x4000]);
        }
        if rng.percent(4) {
            header.options = vec![1; 1 + rng.index(12)];
        }
        match rng.weighted(&[40, 35, 8, 12, 5]) {
            0 => frame.ipv4(header).udp(self.port(rng), self.port(rng)),
            1 => frame.ipv4(header).tcp(self.tcp(rng)),
            2 => frame.ipv4(header).sctp(self.port(rng), self.port(rng), 7),
            3 => frame.ipv4(header).icmpv4(*rng.pick(&[0, 8, 3]), rng.below(3) as u8, 0),
            _ => {
                header.proto = Some(*rng.pick(&[47, 89, 6, 17, 1]));
                frame.ipv4(header)
            }
        }
    }

    fn tcp(&self, rng: &mut Random) -> Tcp {
        let mut tcp = Tcp::new(self.port(rng), self.port(rng));
        tcp.flags = *rng.pick(&[2, 16, 18, 17, 4]);
        tcp.seq = rng.u64() as u32;
        tcp
    }

    fn ipv6(&self, frame: FrameBuilder, rng: &mut Random) -> FrameBuilder {
        let mut header = Ipv6::new(self.v6(rng), self.v6(rng));
        header.dscp = dscp(rng);
        header.ecn = rng.below(4) as u8;
        header.hop_limit = ttl(rng);
        header.flow_label = rng.below(3) as u32;
        if rng.percent(15) {
            let options = Extension::new(*rng.pick(&[0, 60, 43, 51]), &[1, 4, 0, 0, 0, 0]);
            header.extensions.push(options);
        }
        if rng.percent(8) {
            let offset = *rng.pick(&[0, 0, 5]);
            header.extensions.push(Extension::fragment(offset, rng.percent(50), 9));
        }
        match rng.weighted(&[30, 30, 5, 10, 10, 10, 5]) {
            0 => frame.ipv6(header).udp(self.port(rng), self.port(rng)),
            1 => frame.ipv6(header).tcp(self.tcp(rng)),
            2 => frame.ipv6(header).sctp(self.port(rng), self.port(rng), 7),
            3 => frame.ipv6(header).icmpv6(128, 0, &[0, 1, 0, 2]),
            4 => {
                let sll = rng.percent(70).then(|| self.mac(rng));
                frame.ipv6(header).neighbour_solicit(self.v6(rng), sll)
            }
            5 => {
                let tll = rng.percent(70).then(|| self.mac(rng));
                frame.ipv6(header).neighbour_advert(self.v6(rng), tll)
            }
            _ => {
                header.proto = Some(*rng.pick(&[59, 6, 17, 58]));
                frame.ipv6(header)
            }
        }
    }
}

fn dscp(rng: &mut Random) -> u8 {
    *rng.pick(&[0, 0, 10, 12, 14, 26, 46, 63])
}

fn ttl(rng: &mut Random) -> u8 {
    *rng.pick(&[64, 64, 64, 255, 2, 1, 0])
}

/// Cuts the frame off or turns bytes into others.
fn damage(frame: &mut Vec<u8>, rng: &mut Random) {
    if rng.percent(50) {
        frame.truncate(rng.index(frame.len() + 1));
        return;
    }
    // An IP header that says it is too short, or of another version.
    if rng.percent(30)
        && let Some(first) = frame.get_mut(14)
    {
        *first = *rng.pick(&[0x40, 0x44, 0x35, 0x65, 0x46]);
        return;
    }
    for _ in 0..1 + rng.below(4) {
        let at = rng.index(frame.len());
        frame[at] = rng.byte();
    }
}
