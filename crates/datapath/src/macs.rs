//! The MAC learning table of `NORMAL`: the port at which each address was last seen.
//!
//! A learning switch as IEEE 802.1D has it, for each VLAN id apart, without spanning tree. Tags are
//! neither pushed nor popped. An address is forgotten when it has sent nothing for the ageing time.
//! The kernel tier's packets are reported later, so an address may be refreshed with a time that
//! has passed, but is never moved back to a port that it has left.

use std::collections::BTreeMap;

use openflow::{MacAddr, PortNo};

use crate::config::DatapathConfig;
use crate::time::{NS_PER_S, Nanos};

/// A VLAN id (zero for none) and an address.
pub(crate) type Station = (u16, MacAddr);

/// An address that `NORMAL` has learnt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LearntAddress {
    /// The port at which it was last seen.
    pub port: PortNo,
    /// Its VLAN id; zero for none.
    pub vlan: u16,
    /// The address.
    pub address: MacAddr,
    /// Seconds since it was last seen.
    pub age_s: u64,
    /// Whether it was set by hand: it stays there.
    pub is_static: bool,
}

/// Counts of the addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddressStats {
    /// Those that are known.
    pub known: usize,
    /// Those of them that were set by hand.
    pub set_by_hand: usize,
    /// The most that there may be.
    pub most: u32,
    /// Those that were learnt.
    pub learnt: u64,
    /// Those that were forgotten because they were not seen for long.
    pub expired: u64,
    /// Those that were seen at another port than before.
    pub moved: u64,
}

/// Port and time at which an address was last seen.
#[derive(Clone, Copy, Debug)]
struct Seen {
    port: PortNo,
    at: Nanos,
    is_static: bool,
}

/// The addresses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Macs {
    seen: BTreeMap<Station, Seen>,
    /// The ageing time, where it is not that of the configuration any more.
    age_s: Option<u16>,
    learnt: u64,
    expired: u64,
    moved: u64,
}

impl Macs {
    /// The time after which an address that sent nothing is forgotten.
    pub(crate) fn age_ns(&self, config: &DatapathConfig) -> u64 {
        u64::from(self.age_s.unwrap_or(config.mac_age_s)) * NS_PER_S
    }

    /// Sets that time; the stations that are known, where it was another one.
    pub(crate) fn set_age(&mut self, age_s: u16, config: &DatapathConfig) -> Vec<Station> {
        let before = self.age_s.replace(age_s).unwrap_or(config.mac_age_s);
        if before == age_s { Vec::new() } else { self.seen.keys().copied().collect() }
    }

    /// The port behind which a station is, if that is known and not too old.
    pub(crate) fn port(
        &self,
        station: Station,
        config: &DatapathConfig,
        now: Nanos,
    ) -> Option<PortNo> {
        let seen = self.seen.get(&station)?;
        (!is_old(seen, self.age_ns(config), now)).then_some(seen.port)
    }

    /// Learns where a station is; whether it was at another port before. When the table is full of
    /// fresh addresses, new ones are not learnt and their packets keep being flooded.
    pub(crate) fn learn(
        &mut self,
        station: Station,
        port: PortNo,
        config: &DatapathConfig,
        now: Nanos,
    ) -> bool {
        if self.seen.get(&station).is_some_and(|seen| seen.is_static) {
            return false;
        }
        if !self.has_room(station, config, now) {
            return false;
        }
        let before = self.seen.insert(station, Seen { port, at: now, is_static: false });
        let is_old = before.is_some_and(|before| is_old(&before, self.age_ns(config), now));
        self.expired += u64::from(is_old);
        self.learnt += u64::from(is_old || before.is_none());
        let has_moved = before.is_some_and(|before| before.port != port);
        self.moved += u64::from(has_moved && !is_old);
        has_moved
    }

    /// Whether a station is known, or there is room for it once the old ones are forgotten.
    fn has_room(&mut self, station: Station, config: &DatapathConfig, now: Nanos) -> bool {
        let is_full = |seen: &BTreeMap<Station, Seen>| seen.len() >= config.max_macs as usize;
        if self.seen.contains_key(&station) || !is_full(&self.seen) {
            return true;
        }
        self.forget_old(config, now);
        !is_full(&self.seen)
    }

    fn forget_old(&mut self, config: &DatapathConfig, now: Nanos) {
        let (before, age_ns) = (self.seen.len(), self.age_ns(config));
        self.seen.retain(|_, seen| !is_old(seen, age_ns, now));
        self.expired += (before - self.seen.len()) as u64;
    }

    /// Sets where a station is, for good; false where there is no room for it.
    pub(crate) fn set(
        &mut self,
        station: Station,
        port: PortNo,
        config: &DatapathConfig,
        now: Nanos,
    ) -> bool {
        let has_room = self.has_room(station, config, now);
        if has_room {
            self.seen.insert(station, Seen { port, at: now, is_static: true });
        }
        has_room
    }

    /// Forgets a station that was set by hand; false where none was.
    pub(crate) fn unset(&mut self, station: Station) -> bool {
        let is_set = self.seen.get(&station).is_some_and(|seen| seen.is_static);
        if is_set {
            self.seen.remove(&station);
        }
        is_set
    }

    /// Forgets what was learnt; those stations.
    pub(crate) fn flush(&mut self) -> Vec<Station> {
        let learnt: Vec<Station> = self
            .seen
            .iter()
            .filter(|(_, seen)| !seen.is_static)
            .map(|(station, _)| *station)
            .collect();
        self.seen.retain(|_, seen| seen.is_static);
        learnt
    }

    /// The counts; those of events since [`Macs::clear_stats`].
    pub(crate) fn stats(&mut self, config: &DatapathConfig, now: Nanos) -> AddressStats {
        self.forget_old(config, now);
        let Self { seen, learnt, expired, moved, age_s: _ } = self;
        AddressStats {
            known: seen.len(),
            set_by_hand: seen.values().filter(|seen| seen.is_static).count(),
            most: config.max_macs,
            learnt: *learnt,
            expired: *expired,
            moved: *moved,
        }
    }

    /// Counts of events begin at zero.
    pub(crate) fn clear_stats(&mut self) {
        (self.learnt, self.expired, self.moved) = (0, 0, 0);
    }

    /// The stations that are known and not too old, by VLAN and address.
    pub(crate) fn known(
        &self,
        config: &DatapathConfig,
        now: Nanos,
    ) -> impl Iterator<Item = LearntAddress> {
        let age_ns = self.age_ns(config);
        let fresh = self.seen.iter().filter(move |(_, seen)| !is_old(seen, age_ns, now));
        fresh.map(move |(&(vlan, address), seen)| LearntAddress {
            port: seen.port,
            vlan,
            address,
            age_s: now.since(seen.at) / NS_PER_S,
            is_static: seen.is_static,
        })
    }

    /// When a station was last seen behind a port; none where it is not any more.
    pub(crate) fn seen_at(&self, station: Station, port: PortNo) -> Option<Nanos> {
        self.seen.get(&station).filter(|seen| seen.port == port).map(|seen| seen.at)
    }

    /// A station was seen behind a port at that time, which may have passed: it changes nothing but
    /// the time of one that is still there.
    pub(crate) fn refresh(&mut self, station: Station, port: PortNo, at: Nanos) {
        if let Some(seen) = self.seen.get_mut(&station).filter(|seen| seen.port == port) {
            seen.at = seen.at.max(at);
        }
    }

    /// Forgets what was seen behind a port that is gone.
    pub(crate) fn forget_port(&mut self, port: PortNo) {
        self.seen.retain(|_, seen| seen.port != port);
    }
}

fn is_old(seen: &Seen, age_ns: u64, now: Nanos) -> bool {
    !seen.is_static && now.since(seen.at) >= age_ns
}

/// Whether an address names several stations.
pub(crate) fn is_multicast(address: MacAddr) -> bool {
    address.0[0] & 1 != 0
}

/// Whether frames to the address end at the next bridge (IEEE 802.1D, table 7-10).
pub(crate) fn is_link_local(address: MacAddr) -> bool {
    address.0[..5] == [0x01, 0x80, 0xc2, 0, 0] && address.0[5] & 0xf0 == 0
}

#[cfg(test)]
mod tests {
    use super::{Macs, is_link_local};
    use crate::config::DatapathConfig;
    use crate::time::Nanos;
    use openflow::{MacAddr, PortNo};

    fn station(number: u64) -> (u16, MacAddr) {
        (0, MacAddr::from_u64(number))
    }

    #[test]
    fn addresses_move_age_and_go_with_their_port() {
        let config = DatapathConfig::default();
        let mut macs = Macs::default();
        assert!(!macs.learn(station(1), PortNo(1), &config, Nanos(0)));
        assert!(macs.learn(station(1), PortNo(2), &config, Nanos::from_s(10)));
        let at = |macs: &Macs, s| macs.port(station(1), &config, Nanos::from_s(s));
        assert_eq!(at(&macs, 309), Some(PortNo(2)));
        assert_eq!(at(&macs, 310), None);
        assert_eq!(macs.port((7, MacAddr::from_u64(1)), &config, Nanos(0)), None);
        macs.forget_port(PortNo(2));
        assert_eq!(at(&macs, 11), None);
    }

    #[test]
    fn the_known_addresses_are_listed_with_their_ages() {
        let config = DatapathConfig::default();
        let mut macs = Macs::default();
        macs.learn((7, MacAddr::from_u64(2)), PortNo(1), &config, Nanos::from_s(100));
        macs.learn(station(1), PortNo(3), &config, Nanos(0));
        let listed = |s| {
            let known = macs.known(&config, Nanos::from_s(s));
            known.map(|one| (one.port.0, one.vlan, one.age_s)).collect::<Vec<_>>()
        };
        assert_eq!(listed(130), [(3, 0, 130), (1, 7, 30)]);
        assert_eq!(listed(300), [(1, 7, 200)]);
        assert_eq!(macs.set_age(60, &config), [station(1), (7, MacAddr::from_u64(2))]);
        assert!(macs.set_age(60, &config).is_empty(), "it is that already");
        let known = |s| macs.known(&config, Nanos::from_s(s)).count();
        assert_eq!((known(59), known(130), known(160)), (2, 1, 0));
    }

    #[test]
    fn a_refresh_neither_moves_nor_adds_nor_turns_back() {
        let config = DatapathConfig::default();
        let mut macs = Macs::default();
        macs.refresh(station(1), PortNo(1), Nanos::from_s(5));
        assert_eq!(macs.seen_at(station(1), PortNo(1)), None);
        macs.learn(station(1), PortNo(1), &config, Nanos::from_s(10));
        for (port, at, expected) in [(1, 20, 20), (1, 15, 20), (2, 30, 20)] {
            macs.refresh(station(1), PortNo(port), Nanos::from_s(at));
            assert_eq!(macs.seen_at(station(1), PortNo(1)), Some(Nanos::from_s(expected)));
            assert_eq!(macs.seen_at(station(1), PortNo(2)), None);
        }
    }

    #[test]
    fn a_full_table_drops_the_old_and_keeps_the_fresh() {
        let config = DatapathConfig { max_macs: 1, ..DatapathConfig::default() };
        let mut macs = Macs::default();
        macs.learn(station(1), PortNo(1), &config, Nanos(0));
        macs.learn(station(2), PortNo(1), &config, Nanos(1));
        assert_eq!(macs.port(station(2), &config, Nanos(1)), None);
        let later = Nanos::from_s(400);
        macs.learn(station(2), PortNo(1), &config, later);
        assert_eq!(macs.port(station(2), &config, later), Some(PortNo(1)));
    }

    #[test]
    fn what_is_set_by_hand_stays_and_events_are_counted() {
        let config = DatapathConfig { max_macs: 2, ..DatapathConfig::default() };
        let mut macs = Macs::default();
        assert!(macs.set(station(1), PortNo(4), &config, Nanos(0)));
        let later = Nanos::from_s(1_000);
        assert!(!macs.learn(station(1), PortNo(5), &config, later));
        assert_eq!(macs.port(station(1), &config, later), Some(PortNo(4)));
        macs.learn(station(2), PortNo(5), &config, later);
        macs.learn(station(2), PortNo(6), &config, later);
        assert!(!macs.set(station(3), PortNo(5), &config, later), "full");
        let stats = macs.stats(&config, later);
        assert_eq!((stats.known, stats.set_by_hand, stats.most), (2, 1, 2));
        assert_eq!((stats.learnt, stats.expired, stats.moved), (1, 0, 1));
        assert_eq!(macs.stats(&config, Nanos::from_s(2_000)).expired, 1);
        macs.learn(station(2), PortNo(6), &config, later);
        assert_eq!(macs.flush(), [station(2)]);
        assert!(!macs.unset(station(2)) && macs.unset(station(1)));
        macs.clear_stats();
        assert_eq!(
            macs.stats(&config, later),
            super::AddressStats { most: 2, ..Default::default() }
        );
    }

    #[test]
    fn link_local_addresses_are_sixteen() {
        assert!(is_link_local(MacAddr([0x01, 0x80, 0xc2, 0, 0, 0x0e])));
        assert!(!is_link_local(MacAddr([0x01, 0x80, 0xc2, 0, 0, 0x10])));
    }
}
