//! The port of each address of one switch: bounded, and forgetting.
//!
//! Anybody can make up addresses. A full table takes no new address until old ones have been silent
//! for [`AGE_S`]; packets to those that found no room are flooded, as to any unknown one.

use openflow::{MacAddr, PortNo};
use std::collections::HashMap;
use std::time::Duration;

/// Addresses kept per switch.
pub(super) const ADDRESSES_MAX: usize = 1 << 17;
/// Seconds of silence after which a full table forgets an address.
pub(super) const AGE_S: u32 = 300;

/// The addresses of one switch.
#[derive(Clone, Debug, Default)]
pub(super) struct AddressTable {
    places: HashMap<MacAddr, Place>,
    swept_s: u32,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    port: PortNo,
    seen_s: u32,
}

/// Whole seconds; enough for a century.
fn seconds(now: Duration) -> u32 {
    u32::try_from(now.as_secs()).unwrap_or(u32::MAX)
}

/// The outcome of learning an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Learned {
    /// It is new.
    New,
    /// It is where it was.
    Same,
    /// It was at this port before.
    Moved(PortNo),
    /// There is no room for it.
    Refused,
}

impl AddressTable {
    pub(super) fn learn(&mut self, mac: MacAddr, port: PortNo, now: Duration) -> Learned {
        let now_s = seconds(now);
        let place = Place { port, seen_s: now_s };
        if let Some(known) = self.places.get_mut(&mac) {
            let before = std::mem::replace(known, place).port;
            return if before == port { Learned::Same } else { Learned::Moved(before) };
        }
        if self.places.len() >= ADDRESSES_MAX {
            if self.swept_s < now_s {
                // Once a second at most, since it looks at all of them.
                self.swept_s = now_s;
                self.places.retain(|_, place| now_s.saturating_sub(place.seen_s) < AGE_S);
            }
            if self.places.len() >= ADDRESSES_MAX {
                return Learned::Refused;
            }
        }
        self.places.insert(mac, place);
        Learned::New
    }

    pub(super) fn port_of(&self, mac: MacAddr) -> Option<PortNo> {
        self.places.get(&mac).map(|place| place.port)
    }

    pub(super) fn forget_port(&mut self, port: PortNo) {
        self.places.retain(|_, place| place.port != port);
    }
}

#[cfg(test)]
mod tests {
    use super::{ADDRESSES_MAX, AGE_S, AddressTable, Learned};
    use openflow::{MacAddr, PortNo};
    use std::time::Duration;

    fn s(seconds: u32) -> Duration {
        Duration::from_secs(seconds.into())
    }

    #[test]
    fn a_full_table_keeps_those_that_speak_and_forgets_the_silent() {
        let mut table = AddressTable::default();
        let mac = |number: usize| MacAddr::from_u64(0x0200_0000_0000 + number as u64);
        assert_eq!(table.learn(mac(0), PortNo(1), s(0)), Learned::New);
        for number in 1..ADDRESSES_MAX {
            table.learn(mac(number), PortNo(2), s(10));
        }
        assert_eq!(table.learn(mac(ADDRESSES_MAX), PortNo(3), s(20)), Learned::Refused);
        assert_eq!(table.learn(mac(0), PortNo(1), s(AGE_S)), Learned::Same);
        assert_eq!(table.learn(mac(ADDRESSES_MAX), PortNo(3), s(AGE_S + 10)), Learned::New);
        assert_eq!(table.port_of(mac(0)), Some(PortNo(1)), "it has spoken");
        assert_eq!(table.port_of(mac(1)), None);
        assert_eq!(table.learn(mac(0), PortNo(4), s(AGE_S + 11)), Learned::Moved(PortNo(1)));
        table.forget_port(PortNo(4));
        assert_eq!(table.port_of(mac(0)), None);
    }
}
