//! Names: each once, and the refusal of one that there is not, with the nearest that there is and
//! all of them, or with what to use in place of one that is gone.

use std::collections::BTreeSet;

use openflow::text::nearest;

/// Scenarios, methods, settings and words of earlier versions, behind what to use in their place.
const GONE: &[(&str, &[&str])] = &[
    ("udp2", &["udp"]),
    ("weir gen for the whole time, with --metrics of it and of the switch", &["soak"]),
    (
        "weir net, and end its controller while traffic runs",
        &["controller-death", "controller-loss"],
    ),
    ("new-flows, or datapath-new-flows", &["ports-short-flows", "short-flows"]),
    (
        "table-size for their rate, weir lab check for when they are in force",
        &[
            "flow-mods",
            "ports-changes",
            "flow-changes",
            "datapath-updates",
            "replay-updates",
            "bench updates",
        ],
    ),
    (
        "mask-flood and new-flows, the rate that a flood leaves",
        &["ports-fair-share", "fair-share", "datapath-victim", "victim", "beside", "bench victim"],
    ),
    ("large-tables and sessions-by-entries, by the method rate", &["ports-flows", "unpaced"]),
    (
        "datapath-new-flows, where every packet misses",
        &["datapath-cold-start", "cold-start", "window_ms", "bench cold-start"],
    ),
    ("weir ctl dump-flows, beside datapath-rate", &["datapath-dump", "replay-dump", "bench dump"]),
    (
        "table-size, or datapath-growth, whose rows have the rate of loading",
        &["datapath-loading", "replay-loading", "is_down"],
    ),
    ("ports-ping and ports-idle", &["datapath-idle", "wake-up", "silence_ms", "bench idle"]),
    ("the replay as fast as the switch takes it", &["slots"]),
    ("the clock: a window without the core is measured again by itself", &["is_core_time"]),
    ("a peer of your own beside the load", &["invalid_pct", "hostile_ps"]),
    ("linux-bridge, or a router of yours: NAME=PROGRAM", &["linux-router"]),
    ("starts", &["repeats"]),
    ("--format lines, whose samples jq writes as columns", &["csv"]),
    ("bars", &["heat-map"]),
    ("weir lab run datapath-rate --format lines", &["bench datapath"]),
    ("weir lab run datapath-new-flows --format lines", &["bench new-flows"]),
    ("weir lab run datapath-growth --format lines", &["bench growth"]),
    ("weir lab run datapath-tiers --format lines", &["bench tiers"]),
    ("weir lab run ports --dut weir,ovs,linux-bridge --format lines", &["bench ports"]),
    (
        "weir lab run controller-throughput (controller-latency, ..) --dut NAMES",
        &["bench controller"],
    ),
    ("contrib/generator/speed.py WEIR, or weir gen flood --port null:", &["bench generator"]),
];

/// The refusal of a name that is gone, with what to use in its place.
pub(crate) fn gone(name: &str) -> Option<String> {
    let (instead, _) = GONE.iter().find(|(_, names)| names.contains(&name))?;
    Some(format!("{name} is gone: use {instead}"))
}

/// The error of a text of settings; of a key or word that is gone with its replacement.
pub(crate) fn explained(error: &impl std::fmt::Display) -> String {
    let text = error.to_string();
    let of = |what: &str| text.split_once(what).and_then(|(_, rest)| rest.split('`').next());
    let name = of("unknown field `").or_else(|| of("unknown variant `"));
    name.and_then(gone).map_or_else(|| text.clone(), |gone| format!("{gone}\n{text}"))
}

/// `no scenario "grops": did you mean groups? there is ...`
pub(crate) fn unknown<'a>(
    what: &str,
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> String {
    if let Some(gone) = gone(name) {
        return gone;
    }
    let known: Vec<&str> = known.into_iter().collect();
    let near = nearest(name, known.iter().copied());
    let hint = near.map_or_else(String::new, |near| format!("did you mean {near}? "));
    format!("no {what} {name:?}: {hint}there is {}", known.join(", "))
}

/// Each of some things once, in the order in which they come first.
pub fn distinct<T: PartialEq>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for one in all {
        if !found.contains(&one) {
            found.push(one);
        }
    }
    found
}

/// The first of some names that was there before.
pub(crate) fn twice<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let mut seen = BTreeSet::new();
    names.into_iter().find(|name| !seen.insert(*name))
}

#[cfg(test)]
mod tests {
    use super::{GONE, unknown};

    #[test]
    fn the_nearest_name_is_offered_where_one_is_near() {
        let text = |name| unknown("scenario", name, ["groups", "channel", "sweep"]);
        for (name, hint) in [
            ("grops", "did you mean groups? "),
            ("chanel", "did you mean channel? "),
            ("sweap", "did you mean sweep? "),
            ("x", ""),
            ("elsewhere", ""),
        ] {
            let expected = format!("no scenario {name:?}: {hint}there is groups, channel, sweep");
            assert_eq!(text(name), expected);
        }
    }

    #[test]
    fn a_name_that_is_gone_is_answered_with_what_to_use() {
        for (instead, names) in GONE {
            for name in *names {
                let expected = format!("{name} is gone: use {instead}");
                assert_eq!(unknown("word", name, ["groups"]), expected);
            }
        }
    }
}
