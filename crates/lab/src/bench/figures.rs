//! Workers' figures between two moments, from `weir ctl workers`: the time of each stage, and the
//! hits of each cache.
//!
//! The switch counts from its start; a bench asks before and after it measures, so that starting
//! and warming up are no part of the figures. A figure that the switch does not report is left out.

use serde::Serialize;
use serde_json::Value;

use crate::load::six_digits;

/// One worker's figures. Times are in nanoseconds a packet, rates are parts of one.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Figures {
    pub(super) worker: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cpu: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) batch_size: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rx_ns: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) forward_ns: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tx_ns: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) frame_hit_rate: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) key_hit_rate: Option<f64>,
    /// The part of the packets for which the port alone decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) port_hit_rate: Option<f64>,
    /// The part of the packets that went through the flow tables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) by_tables_rate: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) evictions: Option<u64>,
}

/// The figures between two answers of `weir ctl workers`.
pub(super) fn between(before: &Value, after: &Value) -> Vec<Figures> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
    let before = list(before);
    let of_worker = |worker: &Value| {
        let earlier = before.iter().find(|old| old["worker"] == worker["worker"]);
        figures(earlier.unwrap_or(&Value::Null), worker)
    };
    list(after).iter().map(of_worker).collect()
}

fn figures(before: &Value, after: &Value) -> Figures {
    let change = |path: &str| -> Option<f64> {
        let now = after.pointer(path)?.as_f64()?;
        let earlier = before.pointer(path).and_then(Value::as_f64).unwrap_or(0.0);
        Some((now - earlier).max(0.0))
    };
    let per = |part: Option<f64>, whole: Option<f64>| -> Option<f64> {
        let (part, whole) = (part?, whole?);
        (whole > 0.0).then(|| six_digits(part / whole))
    };
    let timed = |stage: &str| per(change(&format!("/timed_ns/{stage}")), change("/timed_packets"));
    let hit_rate = |cache: &str| {
        let hits = change(&format!("/caches/{cache}_hits"));
        let misses = change(&format!("/caches/{cache}_misses"));
        per(hits, hits.zip(misses).map(|(hits, misses)| hits + misses))
    };
    let packets = change("/packets");
    Figures {
        worker: after["worker"].as_u64().unwrap_or(0),
        cpu: after["cpu"].as_u64(),
        batch_size: per(packets, change("/batches")),
        rx_ns: timed("rx"),
        forward_ns: timed("forward"),
        tx_ns: timed("tx"),
        frame_hit_rate: hit_rate("frame"),
        key_hit_rate: hit_rate("key"),
        port_hit_rate: per(change("/caches/port_hits"), packets),
        by_tables_rate: per(change("/caches/by_tables"), packets),
        evictions: change("/caches/evictions").map(|count| count as u64),
    }
}

/// Counts of one level of the lookup (port decision, frame cache, key cache, classifier) between
/// two moments, summed over all workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Level {
    pub(super) level: &'static str,
    /// Packets that the level decided.
    pub(super) hits: u64,
    /// Packets that the level did not know; `None` for a level that never misses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) misses: Option<u64>,
    /// Decisions that were evicted for new ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) evictions: Option<u64>,
}

impl Level {
    /// The line for people.
    pub(super) fn text(&self) -> String {
        let mut text = format!("  {:12} {} hits", self.level, self.hits);
        if let Some(misses) = self.misses {
            text += &format!(", {misses} misses");
        }
        if let Some(evictions) = self.evictions {
            text += &format!(", {evictions} evictions");
        }
        text + "\n"
    }
}

/// The levels between two answers of `weir ctl workers`, in the order of a lookup. Both caches
/// share one memory, so their evictions are counted together, at the frame cache.
pub(super) fn levels(before: &Value, after: &Value) -> Vec<Level> {
    let sum = |value: &Value, key: &str| -> u64 {
        let of = |worker: &Value| worker["caches"][key].as_u64().unwrap_or(0);
        value.as_array().map_or_else(|| of(value), |workers| workers.iter().map(of).sum())
    };
    let change = |key: &str| sum(after, key).saturating_sub(sum(before, key));
    let level = |level, hits, misses: Option<&str>, evictions: Option<&str>| Level {
        level,
        hits: change(hits),
        misses: misses.map(change),
        evictions: evictions.map(change),
    };
    vec![
        level("port", "port_hits", None, None),
        level("frame", "frame_hits", Some("frame_misses"), Some("evictions")),
        level("key", "key_hits", Some("key_misses"), None),
        level("classifier", "by_tables", None, None),
    ]
}

impl Figures {
    /// The line for people.
    pub(super) fn text(&self) -> String {
        let mut words = Vec::new();
        let stages = [("rx", self.rx_ns), ("forward", self.forward_ns), ("tx", self.tx_ns)];
        for (stage, time_ns) in stages {
            words.extend(time_ns.map(|time_ns| format!("{stage} {time_ns:.1} ns")));
        }
        words.extend(self.batch_size.map(|size| format!("batches of {size:.1}")));
        let rates = [
            ("port", self.port_hit_rate.filter(|rate| *rate > 0.0)),
            ("frame", self.frame_hit_rate),
            ("key", self.key_hit_rate),
            ("tables", self.by_tables_rate),
        ];
        for (cache, rate) in rates {
            words.extend(rate.map(|rate| format!("{cache} {:.2} %", 100.0 * rate)));
        }
        let evictions = self.evictions.filter(|count| *count > 0);
        words.extend(evictions.map(|count| format!("{count} evictions")));
        format!("  worker {:<9} {}\n", self.worker, words.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::{Level, between, levels};

    #[test]
    fn levels_of_all_workers_are_summed() {
        let worker = |hits: u64| {
            serde_json::json!({"caches": {"frame_hits": hits,
            "frame_misses": 3, "key_hits": 2, "key_misses": 1, "by_tables": 1, "evictions": 1}})
        };
        let found = levels(
            &serde_json::json!([worker(1), worker(2)]),
            &serde_json::json!([worker(11), worker(2)]),
        );
        let wanted = Level { level: "frame", hits: 10, misses: Some(0), evictions: Some(0) };
        assert_eq!((found.len(), found[1]), (4, wanted));
        assert_eq!(levels(&serde_json::Value::Null, &worker(5))[3].hits, 1);
    }

    #[test]
    fn only_what_happened_in_between_counts() {
        let before = serde_json::json!({
            "worker": 0, "packets": 100, "batches": 10, "timed_packets": 10,
            "timed_ns": {"rx": 1000, "forward": 1000, "tx": 1000},
            "caches": {"frame_hits": 0, "frame_misses": 100, "by_tables": 100, "evictions": 1},
        });
        let after = serde_json::json!({
            "worker": 0, "cpu": 1, "packets": 6500, "batches": 110, "timed_packets": 110,
            "timed_ns": {"rx": 1500, "forward": 2000, "tx": 1100},
            "caches": {"frame_hits": 6400, "frame_misses": 100, "by_tables": 100, "evictions": 1},
        });
        let figures = between(&before, &after);
        assert_eq!(figures.len(), 1);
        let figures = &figures[0];
        assert_eq!(
            (figures.rx_ns, figures.forward_ns, figures.tx_ns),
            (Some(5.0), Some(10.0), Some(1.0))
        );
        assert_eq!((figures.batch_size, figures.frame_hit_rate), (Some(64.0), Some(1.0)));
        assert_eq!((figures.by_tables_rate, figures.key_hit_rate), (Some(0.0), None));
        let text = figures.text();
        assert!(text.contains("forward 10.0 ns") && text.contains("frame 100.00 %"), "{text}");
        let none = &between(&serde_json::Value::Null, &serde_json::json!({"worker": 3}))[0];
        assert_eq!((none.worker, none.rx_ns), (3, None));
    }
}
