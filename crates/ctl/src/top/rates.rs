//! Rates between two answers of the switch, and their forms: lines for people, a value for scripts.

use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use control::{BridgeCounts, PortCounts, WorkerCounts};
use serde_json::{Value, json};
use terminal::Table;

use super::SortKey;

/// Reasons for drops that a line names.
const REASONS_MAX: usize = 4;

/// Workers that have a line each.
const WORKERS_MAX: usize = 8;

/// Columns of a name; a longer one is cut.
const NAME_MAX: usize = 11;

/// An answer of the switch.
pub(super) struct Counts {
    at: Instant,
    pub(super) bridges: Vec<BridgeCounts>,
    pub(super) workers: Vec<WorkerCounts>,
}

impl Counts {
    /// Of this moment, without any count.
    pub(super) fn at(at: Instant) -> Self {
        Self { at, bridges: Vec::new(), workers: Vec::new() }
    }
}

/// The rates of a port, each a second.
struct PortRates {
    bridge: String,
    port_no: u32,
    name: String,
    is_up: bool,
    rx_packets: f64,
    tx_packets: f64,
    rx_bytes: f64,
    tx_bytes: f64,
    drops: f64,
}

/// The state of a bridge, and its rates a second.
struct BridgeRates {
    name: String,
    entries: u64,
    connections: u64,
    drops: BTreeMap<String, f64>,
}

/// The use of a worker.
struct WorkerRates {
    index: usize,
    rx_packets: f64,
    tx_packets: f64,
    /// The part of its time in which it worked.
    busy: f64,
}

/// The rates of a switch between two answers.
pub(super) struct Rates {
    seconds: f64,
    ports: Vec<PortRates>,
    bridges: Vec<BridgeRates>,
    workers: Vec<WorkerRates>,
}

impl Rates {
    /// The rates from one answer to a later one.
    pub(super) fn between(before: &Counts, now: &Counts) -> Self {
        let seconds = now.at.duration_since(before.at).as_secs_f64().max(1e-3);
        // A bridge or port that was made anew meanwhile counts from zero.
        let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
        let old: HashMap<&str, &BridgeCounts> =
            before.bridges.iter().map(|bridge| (bridge.bridge.as_str(), bridge)).collect();
        let (mut ports, mut bridges) = (Vec::new(), Vec::new());
        for bridge in &now.bridges {
            let old = old.get(bridge.bridge.as_str());
            let old_ports: HashMap<u32, &PortCounts> = old
                .iter()
                .flat_map(|old| old.ports.iter().map(|port| (port.port_no, port)))
                .collect();
            for port in &bridge.ports {
                // A port that has come since has no rate yet.
                let old = old_ports.get(&port.port_no).copied().unwrap_or(port);
                ports.push(PortRates {
                    bridge: bridge.bridge.clone(),
                    port_no: port.port_no,
                    name: port.name.clone(),
                    is_up: port.up,
                    rx_packets: rate(port.rx_packets, old.rx_packets),
                    tx_packets: rate(port.tx_packets, old.tx_packets),
                    rx_bytes: rate(port.rx_bytes, old.rx_bytes),
                    tx_bytes: rate(port.tx_bytes, old.tx_bytes),
                    drops: rate(port.rx_dropped, old.rx_dropped)
                        + rate(port.tx_dropped, old.tx_dropped),
                });
            }
            let before = |reason: &String, count: u64| match old {
                Some(old) => old.drops.get(reason).copied().unwrap_or(0),
                None => count,
            };
            let drops = bridge.drops.iter();
            let drops = drops.map(|(why, count)| (why.clone(), rate(*count, before(why, *count))));
            bridges.push(BridgeRates {
                name: bridge.bridge.clone(),
                entries: bridge.entries,
                connections: bridge.connections,
                drops: drops.filter(|(_, rate)| *rate > 0.0).collect(),
            });
        }
        let old: HashMap<usize, &WorkerCounts> =
            before.workers.iter().map(|worker| (worker.worker, worker)).collect();
        let worker = |now: &WorkerCounts| {
            let old = old.get(&now.worker).copied().unwrap_or(now);
            let lived = now.lived_ns.saturating_sub(old.lived_ns);
            let unused = (now.idle_ns + now.asleep_ns).saturating_sub(old.idle_ns + old.asleep_ns);
            let busy = 1.0 - unused.min(lived) as f64 / lived.max(1) as f64;
            WorkerRates {
                index: now.worker,
                rx_packets: rate(now.rx_packets, old.rx_packets),
                tx_packets: rate(now.tx_packets, old.tx_packets),
                busy: if lived == 0 { 0.0 } else { busy },
            }
        };
        Self { seconds, ports, bridges, workers: now.workers.iter().map(worker).collect() }
    }

    /// Puts the ports into this order.
    pub(super) fn sort(&mut self, key: SortKey) {
        let of = |port: &PortRates| match key {
            SortKey::Packets => port.rx_packets + port.tx_packets,
            SortKey::Bytes => port.rx_bytes + port.tx_bytes,
            SortKey::Drops => port.drops,
            SortKey::Number => 0.0,
        };
        self.ports.sort_by(|a, b| {
            let by_number = || (&a.bridge, a.port_no).cmp(&(&b.bridge, b.port_no));
            of(b).total_cmp(&of(a)).then_with(by_number)
        });
    }

    /// The page of a terminal of this size.
    pub(super) fn page(&self, sort: SortKey, width: usize, rows: usize) -> Vec<String> {
        let mark = |key, text: &str| match key == sort {
            true => format!("[{text}]"),
            false => text.to_owned(),
        };
        let keys = [
            mark(SortKey::Packets, "p packets"),
            mark(SortKey::Bytes, "b bytes"),
            mark(SortKey::Drops, "d drops"),
            mark(SortKey::Number, "n number"),
        ];
        let mut lines = self.lines(width, rows.saturating_sub(1));
        lines.truncate(rows.saturating_sub(1));
        lines.push(format!("sorted by: {}   q ends", keys.join("  ")));
        lines.iter().map(|line| line.chars().take(width).collect()).collect()
    }

    /// The lines for people, at most so many.
    pub(super) fn lines(&self, width: usize, rows: usize) -> Vec<String> {
        let sum = |of: fn(&PortRates) -> f64| human(self.ports.iter().map(of).sum());
        let entries: u64 = self.bridges.iter().map(|bridge| bridge.entries).sum();
        let connections: u64 = self.bridges.iter().map(|bridge| bridge.connections).sum();
        let mut lines = vec![
            format!(
                "bridges {}, ports {}, flow entries {entries}, connections {connections}",
                self.bridges.len(),
                self.ports.len(),
            ),
            format!(
                "in {} packets/s, {} bit/s; out {} packets/s, {} bit/s; drops {}/s",
                sum(|port| port.rx_packets),
                sum(|port| port.rx_bytes * 8.0),
                sum(|port| port.tx_packets),
                sum(|port| port.tx_bytes * 8.0),
                human(self.drops().values().sum()),
            ),
        ];
        for worker in self.workers.iter().take(WORKERS_MAX) {
            let WorkerRates { index, rx_packets, tx_packets, busy } = worker;
            let (rx, tx) = (human(*rx_packets), human(*tx_packets));
            lines.push(format!(
                "worker {index}: {:.0} % busy, in {rx} packets/s, out {tx} packets/s",
                busy * 100.0
            ));
        }
        if let Some(more) = self.workers.len().checked_sub(WORKERS_MAX).filter(|more| *more > 0) {
            lines.push(format!("and {more} more workers"));
        }
        lines.extend(self.reasons());
        lines.push(String::new());
        // The heads, and perhaps a line about the ports that are not shown.
        let room = rows.saturating_sub(lines.len() + 1);
        let shown = if self.ports.len() > room { room.saturating_sub(1) } else { room };
        let heads =
            ["bridge", "port", "name", "rx pkt/s", "rx bit/s", "tx pkt/s", "tx bit/s", "drop/s"];
        let mut table = Table::new(heads).left([0, 2]).unbroken();
        for port in self.ports.iter().take(shown) {
            let received = if port.is_up { human(port.rx_packets) } else { "down".to_owned() };
            table.row([
                cut(&port.bridge),
                openflow::PortNo(port.port_no).to_string(),
                cut(&port.name),
                received,
                human(port.rx_bytes * 8.0),
                human(port.tx_packets),
                human(port.tx_bytes * 8.0),
                human(port.drops),
            ]);
        }
        lines.extend(table.plain(width));
        if let Some(more) = self.ports.len().checked_sub(shown).filter(|more| *more > 0) {
            lines.push(format!("and {more} more ports"));
        }
        lines
    }

    /// The drops of all bridges, by reason.
    fn drops(&self) -> BTreeMap<&str, f64> {
        let mut all = BTreeMap::new();
        for (reason, rate) in self.bridges.iter().flat_map(|bridge| &bridge.drops) {
            *all.entry(reason.as_str()).or_insert(0.0) += rate;
        }
        all
    }

    /// The line about the reasons for drops, where there are any.
    fn reasons(&self) -> Option<String> {
        let mut drops: Vec<(&str, f64)> = self.drops().into_iter().collect();
        drops.sort_by(|a, b| b.1.total_cmp(&a.1));
        let named = drops.iter().take(REASONS_MAX);
        let named: Vec<String> =
            named.map(|(reason, rate)| format!("{reason} {}/s", human(*rate))).collect();
        (!named.is_empty()).then(|| format!("drops: {}", named.join(", ")))
    }

    /// The same for scripts, whole.
    pub(super) fn value(&self) -> Value {
        let port = |port: &PortRates| {
            json!({
                "bridge": port.bridge,
                "port_no": port.port_no,
                "name": port.name,
                "up": port.is_up,
                "rx_packets_per_s": port.rx_packets,
                "tx_packets_per_s": port.tx_packets,
                "rx_bytes_per_s": port.rx_bytes,
                "tx_bytes_per_s": port.tx_bytes,
                "drops_per_s": port.drops,
            })
        };
        let bridge = |bridge: &BridgeRates| {
            json!({
                "bridge": bridge.name,
                "entries": bridge.entries,
                "connections": bridge.connections,
                "drops_per_s": bridge.drops,
            })
        };
        let worker = |worker: &WorkerRates| {
            json!({
                "worker": worker.index,
                "rx_packets_per_s": worker.rx_packets,
                "tx_packets_per_s": worker.tx_packets,
                "busy_share": worker.busy,
            })
        };
        json!({
            "seconds": self.seconds,
            "ports": self.ports.iter().map(port).collect::<Vec<_>>(),
            "bridges": self.bridges.iter().map(bridge).collect::<Vec<_>>(),
            "workers": self.workers.iter().map(worker).collect::<Vec<_>>(),
        })
    }
}

/// A name within the columns of names: the end, by which names differ.
fn cut(name: &str) -> String {
    match name.chars().count().checked_sub(NAME_MAX) {
        None | Some(0) => name.to_owned(),
        Some(over) => "..".chars().chain(name.chars().skip(over + 2)).collect(),
    }
}

/// A number in at most five signs: `0`, `12`, `1.23k`, `45.6M`.
fn human(number: f64) -> String {
    // The sum of no numbers is -0.
    let (scaled, unit) = match number + 0.0 {
        small if small < 999.5 => (small, ""),
        kilo if kilo < 999.5e3 => (kilo / 1e3, "k"),
        mega if mega < 999.5e6 => (mega / 1e6, "M"),
        giga if giga < 999.5e9 => (giga / 1e9, "G"),
        tera => (tera / 1e12, "T"),
    };
    match scaled {
        whole if unit.is_empty() && (whole.fract() == 0.0 || whole >= 99.95) => {
            format!("{whole:.0}")
        }
        small if small < 9.995 => format!("{small:.2}{unit}"),
        middle if middle < 99.95 => format!("{middle:.1}{unit}"),
        large => format!("{large:.0}{unit}"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use control::{BridgeCounts, PortCounts, WorkerCounts};

    use super::{Counts, Rates, human};
    use crate::top::SortKey;

    fn counts(at: Instant, ports: u32, packets: u64) -> Counts {
        let port = |port_no: u32| PortCounts {
            port_no,
            name: format!("a-rather-long-name-{port_no}"),
            up: port_no != 2,
            rx_packets: packets * u64::from(port_no),
            tx_packets: packets,
            rx_bytes: packets * 1_000,
            tx_bytes: packets * 100,
            rx_dropped: if port_no == 1 { packets } else { 0 },
            tx_dropped: 0,
        };
        let bridge = BridgeCounts {
            bridge: "br-with-a-long-name".to_owned(),
            entries: 12,
            connections: 1,
            ports: (1..=ports).map(port).collect(),
            drops: [("no_match".to_owned(), packets), ("meter".to_owned(), 3)].into(),
        };
        let worker = WorkerCounts {
            worker: 0,
            rx_packets: packets,
            tx_packets: packets,
            asleep_ns: packets * 100,
            idle_ns: packets * 150,
            lived_ns: packets * 1_000,
        };
        Counts { at, bridges: vec![bridge], workers: vec![worker] }
    }

    fn rates(ports: u32) -> Rates {
        let begin = Instant::now();
        let before = counts(begin, ports, 1_000);
        Rates::between(&before, &counts(begin + Duration::from_secs(2), ports, 5_000_000))
    }

    #[test]
    fn rates_are_the_growth_of_a_second() {
        let value = rates(3).value();
        let port = &value["ports"][2];
        assert_eq!(port["rx_packets_per_s"], 3.0 * 4_999_000.0 / 2.0);
        assert_eq!(port["tx_bytes_per_s"], 100.0 * 4_999_000.0 / 2.0);
        assert_eq!(value["ports"][0]["drops_per_s"], 4_999_000.0 / 2.0);
        assert_eq!(value["bridges"][0]["drops_per_s"]["no_match"], 4_999_000.0 / 2.0);
        assert!(value["bridges"][0]["drops_per_s"]["meter"].is_null(), "it has dropped none");
        assert_eq!(value["workers"][0]["busy_share"], 0.75);
        let begin = Instant::now();
        let (before, later) = (counts(begin, 1, 500), counts(begin, 2, 5));
        let value = Rates::between(&before, &later).value();
        assert_eq!(value["ports"][0]["rx_packets_per_s"], 0.0, "made anew");
        assert_eq!(value["ports"][1]["rx_packets_per_s"], 0.0, "it has just come");
    }

    #[test]
    fn ports_are_in_the_order_of_the_key() {
        let mut rates = rates(4);
        for (key, expected) in [
            (SortKey::Packets, [4, 3, 2, 1]),
            (SortKey::Bytes, [1, 2, 3, 4]),
            (SortKey::Drops, [1, 2, 3, 4]),
            (SortKey::Number, [1, 2, 3, 4]),
        ] {
            rates.sort(key);
            let order: Vec<u32> = rates.ports.iter().map(|port| port.port_no).collect();
            assert_eq!(order, expected, "{key:?}");
        }
    }

    #[test]
    fn a_page_fits_its_terminal() {
        for (ports, width, rows) in [(2, 80, 24), (500, 80, 24), (500, 120, 50), (9, 40, 6)] {
            let page = rates(ports).page(SortKey::Drops, width, rows);
            assert!(page.len() <= rows, "{page:#?}");
            let widest = page.iter().map(|line| line.chars().count()).max();
            assert!(widest.is_some_and(|widest| widest <= width), "{page:#?}");
            if width >= 80 {
                let heads = page.iter().filter(|line| line.contains("drop/s")).count();
                assert_eq!(heads, 1, "one table: {page:#?}");
                assert!(page.iter().any(|line| line.contains("drops: no_match 2.50M/s")));
                assert!(page.last().is_some_and(|keys| keys.contains("[d drops]")));
                let more = page.iter().any(|line| line.contains("more ports"));
                assert_eq!(more, ports == 500, "{page:#?}");
            }
        }
    }

    #[test]
    fn numbers_are_short() {
        for (number, expected) in [
            (0.0, "0"),
            (-0.0, "0"),
            (7.0, "7"),
            (0.25, "0.25"),
            (12.34, "12.3"),
            (999.4, "999"),
            (999.6, "1.00k"),
            (1_234.0, "1.23k"),
            (45_600_000.0, "45.6M"),
            (2.5e13, "25.0T"),
        ] {
            assert_eq!(human(number), expected);
        }
    }
}
