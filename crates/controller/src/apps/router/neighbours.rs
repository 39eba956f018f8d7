//! Neighbours on the networks of a router: the answers of ARP, and packets that wait for them.
//!
//! Everybody can ask for hosts that do not exist and answer for ones that nobody asked for. So the
//! table takes those who were asked for, or who ask for the router, up to a bound, and few packets
//! wait for a short time.

use openflow::{MacAddr, PortNo};
use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::time::Duration;

/// Seconds after which a neighbour is asked for again.
pub(super) const AGE_S: u16 = 300;
/// Neighbours kept.
const NEIGHBOURS_MAX: usize = 8_192;
/// Addresses asked for at once.
const WAITING_MAX: usize = 256;
/// Packets kept for one of them.
const PARCELS_MAX: usize = 8;
/// A full table is looked through for old ones no more often than this.
const SWEEP: Duration = Duration::from_secs(1);
/// Requests for one address, a second apart.
const TRIES: u8 = 3;

/// A frame that waits, and where it came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Parcel {
    pub(super) frame: Vec<u8>,
    pub(super) in_port: PortNo,
}

/// The table.
#[derive(Debug, Default)]
pub(super) struct Neighbours {
    known: HashMap<Ipv4Addr, Neighbour>,
    waiting: HashMap<Ipv4Addr, Waiting>,
    swept: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Neighbour {
    mac: MacAddr,
    port: PortNo,
    heard: Duration,
}

#[derive(Debug)]
struct Waiting {
    parcels: Vec<Parcel>,
    tries: u8,
}

/// The outcome of an ARP packet.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Heard {
    /// The neighbour was known by another Ethernet address or at another port.
    pub(super) is_changed: bool,
    /// The packets that have waited for it.
    pub(super) waiting: Vec<Parcel>,
}

fn age() -> Duration {
    Duration::from_secs(AGE_S.into())
}

impl Neighbours {
    /// Takes what an ARP packet says of its sender (RFC 826: those known are corrected; those
    /// unknown are added when the packet is for the router).
    pub(super) fn learn(
        &mut self,
        address: Ipv4Addr,
        mac: MacAddr,
        port: PortNo,
        is_for_us: bool,
        now: Duration,
    ) -> Heard {
        let heard = Neighbour { mac, port, heard: now };
        let waiting = self.waiting.remove(&address).map_or_else(Vec::new, |it| it.parcels);
        if let Some(known) = self.known.get_mut(&address) {
            let before = std::mem::replace(known, heard);
            let is_changed = (before.mac, before.port) != (mac, port);
            return Heard { is_changed, waiting };
        }
        if is_for_us || !waiting.is_empty() {
            if self.known.len() >= NEIGHBOURS_MAX && now >= self.swept + SWEEP {
                self.swept = now;
                self.known.retain(|_, neighbour| now < neighbour.heard + age());
            }
            if self.known.len() < NEIGHBOURS_MAX {
                self.known.insert(address, heard);
                return Heard { is_changed: false, waiting };
            }
        }
        Heard::default()
    }

    /// A neighbour that was heard of not too long ago.
    pub(super) fn get(&self, address: Ipv4Addr, now: Duration) -> Option<(MacAddr, PortNo)> {
        let neighbour = self.known.get(&address)?;
        (now < neighbour.heard + age()).then_some((neighbour.mac, neighbour.port))
    }

    /// Keeps a packet until its next hop answers, if there is room; whether the next hop is to be
    /// asked for.
    pub(super) fn wait(&mut self, address: Ipv4Addr, parcel: Parcel, now: Duration) -> bool {
        if let Some(waiting) = self.waiting.get_mut(&address) {
            if waiting.parcels.len() < PARCELS_MAX {
                waiting.parcels.push(parcel);
            }
            return false;
        }
        debug_assert!(self.get(address, now).is_none(), "who is known is not waited for");
        if self.waiting.len() >= WAITING_MAX {
            return false;
        }
        self.waiting.insert(address, Waiting { parcels: vec![parcel], tries: 1 });
        true
    }

    /// Once a second: who is to be asked for again, and packets whose next hop does not answer.
    pub(super) fn tick(&mut self, now: Duration) -> (Vec<Ipv4Addr>, Vec<Parcel>) {
        let (mut again, mut lost) = (Vec::new(), Vec::new());
        self.waiting.retain(|address, waiting| {
            if waiting.tries >= TRIES {
                lost.append(&mut waiting.parcels);
                return false;
            }
            waiting.tries += 1;
            again.push(*address);
            true
        });
        again.sort_unstable();
        self.known.retain(|_, neighbour| now < neighbour.heard + 2 * age());
        (again, lost)
    }

    /// Forgets those that are no neighbours any more, and the packets for them.
    pub(super) fn keep(&mut self, is_neighbour: impl Fn(Ipv4Addr) -> bool) {
        self.known.retain(|address, _| is_neighbour(*address));
        self.waiting.retain(|address, _| is_neighbour(*address));
    }

    pub(super) fn forget_port(&mut self, port: PortNo) {
        self.known.retain(|_, neighbour| neighbour.port != port);
    }
}

#[cfg(test)]
mod tests {
    use super::{AGE_S, NEIGHBOURS_MAX, Neighbours, PARCELS_MAX, Parcel, WAITING_MAX};
    use openflow::{MacAddr, PortNo};
    use std::net::Ipv4Addr;
    use std::time::Duration;

    const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 7]);
    const OTHER: MacAddr = MacAddr([2, 0, 0, 0, 0, 8]);

    fn s(seconds: u16) -> Duration {
        Duration::from_secs(seconds.into())
    }

    fn address(number: u32) -> Ipv4Addr {
        Ipv4Addr::from(0x0a00_0000 + number)
    }

    fn parcel() -> Parcel {
        Parcel { frame: vec![0; 60], in_port: PortNo(1) }
    }

    #[test]
    fn who_was_neither_asked_for_nor_asks_is_not_learned() {
        let mut table = Neighbours::default();
        table.learn(address(1), MAC, PortNo(1), false, s(0));
        assert_eq!(table.get(address(1), s(0)), None);
        assert!(table.wait(address(1), parcel(), s(0)), "the first packet asks");
        assert!(!table.wait(address(1), parcel(), s(0)));
        let heard = table.learn(address(1), MAC, PortNo(1), false, s(1));
        assert_eq!(heard.waiting.len(), 2);
        assert_eq!(table.get(address(1), s(1)), Some((MAC, PortNo(1))));
        let heard = table.learn(address(1), OTHER, PortNo(1), false, s(2));
        assert!(heard.is_changed);
        assert_eq!(table.get(address(1), s(2 + AGE_S)), None, "too old");
        table.forget_port(PortNo(1));
        assert_eq!(table.get(address(1), s(2)), None);
    }

    #[test]
    fn a_next_hop_that_does_not_answer_is_given_up() {
        let mut table = Neighbours::default();
        table.wait(address(1), parcel(), s(0));
        assert_eq!(table.tick(s(1)), (vec![address(1)], vec![]));
        assert_eq!(table.tick(s(2)), (vec![address(1)], vec![]));
        assert_eq!(table.tick(s(3)), (vec![], vec![parcel()]));
        assert_eq!(table.tick(s(4)), (vec![], vec![]));
    }

    #[test]
    fn everything_is_bounded() {
        let mut table = Neighbours::default();
        for _ in 0..100 {
            table.wait(address(0), parcel(), s(0));
        }
        for number in 1..10_000 {
            table.wait(address(number), parcel(), s(0));
        }
        let kept: usize = table.waiting.values().map(|waiting| waiting.parcels.len()).sum();
        assert_eq!((table.waiting.len(), kept), (WAITING_MAX, WAITING_MAX - 1 + PARCELS_MAX));
        for number in 0..100_000 {
            table.learn(address(number), MAC, PortNo(1), true, s(0));
        }
        assert_eq!(table.known.len(), NEIGHBOURS_MAX);
        table.learn(address(200_000), MAC, PortNo(1), true, s(AGE_S));
        assert_eq!(table.known.len(), 1, "the old ones have made room");
        table.tick(s(4 * AGE_S));
        assert!(table.known.is_empty());
    }
}
