//! Rows of the tables `QoS` and `Queue` as the rate and the queues of a port.
//!
//! Rates of queues are bounded by those of the port, as the kernel's `htb` bounds them.

use datapath::{QueueRate, QueueRates, check_queues};
use openflow::QueueId;
use ovsdb::{Atom, Replica, Row};

/// The types that are carried out; with the last one the port has neither rate nor queues.
pub(super) const TYPES: [&str; 3] = ["linux-htb", "linux-hfsc", "linux-noop"];

/// The rate of a port whose device has no speed, and for which none is set: Open vSwitch's.
const DEFAULT_BPS: u64 = 100_000_000;

/// Rate and queues of a port.
#[derive(Debug, PartialEq)]
pub(super) struct Qos {
    pub(super) rate_bps: u64,
    pub(super) queues: Vec<QueueRates>,
}

/// Reads a row, for a port whose device has this speed; `None` where there is nothing to do.
///
/// # Errors
/// The type, or a rate, cannot be carried out.
pub(super) fn qos(
    row: &Row,
    replica: &Replica,
    speed_bps: Option<u64>,
) -> Result<Option<Qos>, String> {
    match row.text("type").unwrap_or_default() {
        "" | "linux-noop" => return Ok(None),
        "linux-htb" | "linux-hfsc" => {}
        other => return Err(format!("{other} is no type here; there are {}", TYPES.join(", "))),
    }
    let rate_bps = bits(row, "max-rate")?.or(speed_bps).unwrap_or(DEFAULT_BPS);
    let mut queues = Vec::new();
    for (number, uuid) in row.pairs("queues") {
        let (Atom::Integer(number), Atom::Uuid(uuid)) = (number, uuid) else { continue };
        let Some(queue) = replica.row("Queue", *uuid) else { continue };
        let id = u32::try_from(*number).map_err(|_| format!("queue {number}: no number"))?;
        let min = bits(queue, "min-rate")?.map(|min| min.min(rate_bps));
        let max = bits(queue, "max-rate")?;
        let max = max.map(|max| max.max(min.unwrap_or_default()).min(rate_bps));
        queues.push(QueueRates {
            min_rate: min.map(QueueRate::Bps),
            max_rate: max.map(QueueRate::Bps),
            ..QueueRates::new(QueueId(id))
        });
    }
    check_queues(rate_bps, &queues).map_err(|error| error.to_string())?;
    Ok(Some(Qos { rate_bps, queues }))
}

/// A rate in bits per second.
fn bits(row: &Row, key: &str) -> Result<Option<u64>, String> {
    let Some(text) = row.entry("other_config", key) else { return Ok(None) };
    let bits = text.parse().map_err(|_| format!("{key}={text}: no number of bits a second"))?;
    Ok(Some(bits).filter(|bits| *bits > 0))
}

#[cfg(test)]
mod tests {
    use datapath::QueueRate;
    use ovsdb::{Atom, Datum, Replica, Row, Uuid};

    use super::{Qos, qos};

    fn row(kind: &str, max: Option<&str>, queues: &[(i64, u128)]) -> Row {
        let queues = queues.iter().map(|(id, uuid)| (Atom::from(*id), Atom::Uuid(Uuid(*uuid))));
        let config = Datum::map(max.map(|max| ("max-rate", max)));
        Row::of([
            ("type", Datum::one(kind)),
            ("other_config", config),
            ("queues", Datum::Map(queues.collect())),
        ])
    }

    #[test]
    fn rows_are_rates_and_queues_or_have_a_fault() {
        let mut replica = Replica::default();
        let mut queue = |uuid, pairs: &[(&str, &str)]| {
            let config = Datum::map(pairs.iter().copied());
            replica.insert("Queue", Uuid(uuid), Row::of([("other_config", config)]));
        };
        queue(1, &[("min-rate", "1000000"), ("burst", "7")]);
        queue(2, &[("min-rate", "90000000000"), ("max-rate", "500")]);
        queue(3, &[("max-rate", "0")]);
        queue(4, &[("max-rate", "fast")]);
        let read = |kind, max, queues: &[(i64, u128)], speed| {
            qos(&row(kind, max, queues), &replica, speed)
        };
        let Qos { rate_bps, queues } =
            read("linux-htb", Some("10000000"), &[(0, 1), (5, 3), (6, 9)], None).unwrap().unwrap();
        assert_eq!((rate_bps, queues.len()), (10_000_000, 2));
        assert_eq!(queues[0].min_rate, Some(QueueRate::Bps(1_000_000)));
        assert_eq!((queues[1].id.0, queues[1].max_rate), (5, None));
        let whole = read("linux-hfsc", Some("1000"), &[(2, 2)], None).unwrap().unwrap().queues;
        let thousand = Some(QueueRate::Bps(1_000));
        assert_eq!((whole[0].min_rate, whole[0].max_rate), (thousand, thousand));
        let rate = |speed| read("linux-htb", None, &[], speed).unwrap().unwrap().rate_bps;
        assert_eq!((rate(None), rate(Some(7))), (100_000_000, 7));
        assert_eq!(read("linux-noop", Some("1"), &[(0, 1)], None), Ok(None));
        for (kind, max, queues) in [
            ("linux-codel", None, &[][..]),
            ("linux-htb", Some("-1"), &[]),
            ("linux-htb", Some("2000000"), &[(1, 1), (2, 2)]),
            ("linux-htb", None, &[(-1, 1)]),
            ("linux-htb", None, &[(4_294_967_295, 1)]),
            ("linux-htb", None, &[(1, 4)]),
        ] {
            assert!(read(kind, max, queues, None).is_err(), "{kind} {queues:?}");
        }
    }
}
