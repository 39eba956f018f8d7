//! The result of one workload, as a line of JSON and as lines for people.

use serde::Serialize;

use super::common::Row;
use super::figures::Figures;
use super::measure::{Pairs, Ratio, median};

/// Results of one workload. Rates are medians in millions of packets a second.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Outcome {
    pub(super) switch: &'static str,
    pub(super) workload: String,
    pub(super) mpps: f64,
    pub(super) mpps_min: f64,
    pub(super) mpps_max: f64,
    pub(super) samples: Vec<f64>,
    pub(super) ns_per_packet: f64,
    pub(super) ports: &'static str,
    pub(super) cache: &'static str,
    pub(super) workers: usize,
    /// Whether seconds are those in which the forwarder had its core.
    pub(super) core_time: bool,
    /// Packets that did not leave where they should.
    pub(super) lost: i64,
    pub(super) flow_entries: u64,
    /// Flow entries loaded a second, up to the barrier reply.
    pub(super) flow_mods_per_s: f64,
    pub(super) warm_up_s: f64,
    /// Measurements made again, since a forwarder did not have its core.
    pub(super) again: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) limit: Option<UpperBound>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) vs: Option<Versus>,
    /// The time of each stage, and how often the caches knew the answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) stages: Vec<Figures>,
}

/// The upper bound on the same ports.
#[derive(Clone, Debug, Serialize)]
pub(super) struct UpperBound {
    pub(super) mode: &'static str,
    pub(super) mpps: f64,
}

/// The comparison.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Versus {
    pub(super) switch: String,
    pub(super) mpps: f64,
    pub(super) samples: Vec<f64>,
    pub(super) warm_up_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ratio: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ratio_low: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ratio_high: Option<f64>,
}

impl Outcome {
    /// Weir's measurements, and how many were made again.
    pub(super) fn set_series(&mut self, mpps: &[f64], again: usize) {
        self.again = again;
        self.set_samples(mpps);
    }

    /// Weir's and the other one's measurements.
    pub(super) fn set_pairs(&mut self, switch: String, warm_up_s: f64, pairs: &Pairs) {
        self.again = pairs.again;
        self.set_samples(&pairs.ours);
        let ratio = pairs.ratio();
        let of = |part: fn(&Ratio) -> f64| ratio.as_ref().map(|ratio| rounded(part(ratio)));
        self.vs = Some(Versus {
            switch,
            mpps: rounded(median(&pairs.theirs)),
            samples: pairs.theirs.iter().copied().map(rounded).collect(),
            warm_up_s: rounded(warm_up_s),
            ratio: of(|ratio| ratio.value),
            ratio_low: of(|ratio| ratio.low),
            ratio_high: of(|ratio| ratio.high),
        });
    }

    fn set_samples(&mut self, samples: &[f64]) {
        let mpps = median(samples);
        self.mpps = rounded(mpps);
        self.mpps_min = rounded(samples.iter().copied().fold(f64::INFINITY, f64::min));
        self.mpps_max = rounded(samples.iter().copied().fold(0.0, f64::max));
        self.samples = samples.iter().copied().map(rounded).collect();
        if mpps > 0.0 {
            self.ns_per_packet = rounded(1e3 / mpps);
        }
    }
}

impl Row for Outcome {
    fn text(&self) -> String {
        let mut text = format!(
            "{:18} {:9.3} Mpps ({:.3} to {:.3}), {:.1} ns a packet, {} lost\n",
            self.workload, self.mpps, self.mpps_min, self.mpps_max, self.ns_per_packet, self.lost
        );
        if self.flow_entries > 0 {
            text += &format!(
                "  flow entries     {:9} loaded at {:.0} a second; steady after {:.1} s\n",
                self.flow_entries, self.flow_mods_per_s, self.warm_up_s
            );
        }
        if let Some(limit) = &self.limit {
            let part = 100.0 * self.mpps / limit.mpps.max(1e-9);
            text += &format!(
                "  limit ({:7})  {:9.3} Mpps on the same ports; this is {part:.0} % of it\n",
                limit.mode, limit.mpps
            );
        }
        if let Some(vs) = &self.vs {
            text += &format!("  {:16} {:9.3} Mpps", vs.switch, vs.mpps);
            if let (Some(ratio), Some(low), Some(high)) = (vs.ratio, vs.ratio_low, vs.ratio_high) {
                text += &format!("; ratio {ratio:.2} (95 % interval {low:.2} to {high:.2})");
            }
            text += &format!("; {} pairs, steady after {:.0} s\n", vs.samples.len(), vs.warm_up_s);
        }
        if self.again > 0 {
            text += &format!("  measured again   {:9} times for want of the core\n", self.again);
        }
        text + &self.stages.iter().map(Figures::text).collect::<String>()
    }
    fn is_good(&self) -> bool {
        self.lost == 0
    }
}

/// Four digits behind the point are more than a measurement has.
pub(super) fn rounded(value: f64) -> f64 {
    if value.is_finite() { (value * 1e4).round() / 1e4 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::{Figures, Outcome, Row, UpperBound};
    use crate::bench::measure::Pairs;

    #[test]
    fn the_json_line_has_what_readers_ask_for() {
        let mut outcome = Outcome { switch: "weir", workload: "port".into(), ..Outcome::default() };
        let pairs = Pairs { ours: vec![40.0, 44.0], theirs: vec![20.0, 21.0], again: 1 };
        outcome.set_pairs("ovs-dpdk".to_owned(), 3.0, &pairs);
        outcome.limit = Some(UpperBound { mode: "io", mpps: 84.0 });
        outcome.stages = vec![Figures { rx_ns: Some(1.5), ..Figures::default() }];
        let line = serde_json::to_value(&outcome).unwrap();
        assert_eq!((&line["switch"], &line["workload"]), (&"weir".into(), &"port".into()));
        assert_eq!((&line["mpps"], &line["vs"]["mpps"]), (&42.0.into(), &20.5.into()));
        assert!(line["vs"]["ratio_low"].as_f64() < line["vs"]["ratio"].as_f64());
        let text = outcome.text();
        for part in ["42.000 Mpps", "50 % of it", "ovs-dpdk", "worker 0", "rx 1.5 ns"] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}
