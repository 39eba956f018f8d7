//! The scenarios that come with the lab: a file under `scenarios/` and a line in `FILES` each.
//!
//! `weir lab show NAME` prints the file of one, to be copied and changed.

use super::scenario::{Scenario, ScenarioError};
use crate::names;

/// The files, in the order of the evaluations.
const FILES: &[&str] = &[
    include_str!("scenarios/packet-in-hub.toml"),
    include_str!("scenarios/delay-by-workers.toml"),
    include_str!("scenarios/throughput-by-workers.toml"),
    include_str!("scenarios/rate-by-workers.toml"),
    include_str!("scenarios/actions-by-entries.toml"),
    include_str!("scenarios/sessions-by-entries.toml"),
    include_str!("scenarios/meter-bursts.toml"),
    include_str!("scenarios/meter-rates.toml"),
    include_str!("scenarios/groups.toml"),
    include_str!("scenarios/failover.toml"),
    include_str!("scenarios/idle-cpu.toml"),
    include_str!("scenarios/loss-free-rate.toml"),
    include_str!("scenarios/channel.toml"),
    include_str!("scenarios/controller-rate.toml"),
    include_str!("scenarios/cached-forwarding.toml"),
    include_str!("scenarios/lookup-tiers.toml"),
    include_str!("scenarios/large-tables.toml"),
    include_str!("scenarios/delay-by-match.toml"),
    include_str!("scenarios/delay-by-rewriting.toml"),
    include_str!("scenarios/table-size.toml"),
    include_str!("scenarios/packet-in.toml"),
    include_str!("scenarios/new-flows.toml"),
    include_str!("scenarios/mask-flood.toml"),
    include_str!("scenarios/line-of-switches.toml"),
    include_str!("scenarios/ports-tcp.toml"),
    include_str!("scenarios/ports-ping.toml"),
    include_str!("scenarios/ports-datagrams.toml"),
    include_str!("scenarios/ports-idle.toml"),
    include_str!("scenarios/datapath-rate.toml"),
    include_str!("scenarios/datapath-tiers.toml"),
    include_str!("scenarios/datapath-growth.toml"),
    include_str!("scenarios/datapath-new-flows.toml"),
    include_str!("scenarios/controller-throughput.toml"),
    include_str!("scenarios/controller-latency.toml"),
    include_str!("scenarios/controller-storm.toml"),
    include_str!("scenarios/controller-topology.toml"),
    include_str!("scenarios/controller-discovery.toml"),
    include_str!("scenarios/controller-proactive.toml"),
    include_str!("scenarios/rfc2544.toml"),
];

/// Every scenario that comes with the lab.
pub fn all() -> Vec<Scenario> {
    FILES.iter().map(|text| Scenario::from_toml(text).expect("a test reads them all")).collect()
}

/// Words for several scenarios that are of no evaluation.
pub const FAMILIES: [&str; 3] = ["ports", "datapath", "controller"];

/// The scenarios of that name, of that evaluation, `E4` or `e4`, or of that family: `ports` for all
/// that are `ports-..` and of no evaluation. The error names those that there are.
pub fn find(name: &str) -> Result<Vec<Scenario>, ScenarioError> {
    let mut all = all();
    let known: Vec<String> = all.iter().map(|scenario| scenario.id.clone()).collect();
    let is_named = |scenario: &Scenario| {
        let is_its = |of: &String| of.eq_ignore_ascii_case(name);
        scenario.id == name || scenario.evaluation.as_ref().is_some_and(is_its)
    };
    let is_of_family = |scenario: &Scenario| {
        let family = scenario.id.split_once('-').map(|(family, _)| family);
        scenario.evaluation.is_none() && FAMILIES.contains(&name) && family == Some(name)
    };
    all.retain(|scenario| is_named(scenario) || is_of_family(scenario));
    if all.is_empty() {
        if let Some(gone) = names::gone(name) {
            return Err(ScenarioError(gone));
        }
        let unknown = names::unknown("scenario", name, known.iter().map(String::as_str));
        return Err(ScenarioError(format!(
            "{unknown}, E1 to E5 for all of an evaluation, and {} for all of such a name; or give \
             the path of a scenario file",
            FAMILIES.join(", ")
        )));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::{all, find};

    #[test]
    fn every_file_is_a_scenario_of_its_own_name() {
        let all = all();
        for (index, scenario) in all.iter().enumerate() {
            assert!(all[..index].iter().all(|other| other.id != scenario.id), "{}", scenario.id);
            assert_eq!(find(&scenario.id).unwrap()[0].title, scenario.title);
            assert!(!scenario.clone().quick().cells().is_empty(), "{}", scenario.id);
        }
        assert!(find("e4").unwrap().iter().all(|s| s.evaluation.as_deref() == Some("E4")));
        assert!(find("").is_err());
        assert!(find("E9").unwrap_err().to_string().contains("cached-forwarding"));
        let slip = find("cachd-forwarding").unwrap_err().to_string();
        assert!(slip.contains("did you mean cached-forwarding?"), "{slip}");
        for (family, count) in [("ports", 4), ("datapath", 4), ("controller", 6)] {
            assert_eq!(find(family).unwrap().len(), count, "{family}");
        }
        let gone = find("ports-short-flows").unwrap_err().to_string();
        assert_eq!(gone, "ports-short-flows is gone: use new-flows, or datapath-new-flows");
    }
}
