//! Names: each once, and the refusal of one that there is not, with the nearest that there is and
//! all of them, or with what to use in place of one that is gone.

use openflow::text::nearest;

const LONG_RUN: &str = "weir gen for the whole time, with --metrics of it and of the switch";
const DEATH: &str = "weir net, and end its controller while traffic runs";
const NEW_FLOWS: &str = "new-flows, or datapath-new-flows";
const COLD: &str = "datapath-new-flows, where every packet misses";
const CHANGES: &str = "table-size for their rate, weir lab check for when they are in force";
const LISTS: &str = "weir ctl dump-flows, beside datapath-rate";
const LOADS: &str = "table-size, or datapath-growth, whose rows have the rate of loading";
const SHARE: &str = "mask-flood and new-flows, the rate that a flood leaves";
const RATES: &str = "large-tables and sessions-by-entries, by the method rate";
const ASLEEP: &str = "ports-ping and ports-idle";
const FUZZ: &str = "a peer of your own beside the load";
const ONE_CLOCK: &str = "the clock: a window without the core is measured again by itself";

/// Scenarios, methods, settings and words that earlier versions had, and what to use in their
/// place.
pub(crate) const GONE: &[(&str, &str)] = &[
    ("udp", "udp2"),
    ("soak", LONG_RUN),
    ("controller-death", DEATH),
    ("controller-loss", DEATH),
    ("ports-short-flows", NEW_FLOWS),
    ("short-flows", NEW_FLOWS),
    ("flow-mods", CHANGES),
    ("ports-changes", CHANGES),
    ("flow-changes", CHANGES),
    ("ports-fair-share", SHARE),
    ("fair-share", SHARE),
    ("ports-flows", RATES),
    ("unpaced", RATES),
    ("datapath-cold-start", COLD),
    ("cold-start", COLD),
    ("datapath-updates", CHANGES),
    ("replay-updates", CHANGES),
    ("datapath-dump", LISTS),
    ("replay-dump", LISTS),
    ("datapath-loading", LOADS),
    ("replay-loading", LOADS),
    ("datapath-victim", SHARE),
    ("victim", SHARE),
    ("datapath-idle", ASLEEP),
    ("wake-up", ASLEEP),
    ("beside", SHARE),
    ("is_down", LOADS),
    ("slots", "the replay as fast as the switch takes it"),
    ("silence_ms", ASLEEP),
    ("window_ms", COLD),
    ("is_core_time", ONE_CLOCK),
    ("invalid_pct", FUZZ),
    ("hostile_ps", FUZZ),
    ("linux-router", "linux-bridge, or a router of yours: NAME=PROGRAM"),
    ("csv", "--format lines, whose samples jq writes as columns"),
    ("bench datapath", "weir lab run datapath-rate --format lines"),
    ("bench new-flows", "weir lab run datapath-new-flows --format lines"),
    ("bench growth", "weir lab run datapath-growth --format lines"),
    ("bench tiers", "weir lab run datapath-tiers --format lines"),
    ("bench updates", CHANGES),
    ("bench cold-start", COLD),
    ("bench dump", LISTS),
    ("bench victim", SHARE),
    ("bench idle", ASLEEP),
    ("bench ports", "weir lab run ports --dut weir,ovs,linux-bridge --format lines"),
    ("bench controller", "weir lab run controller-throughput (controller-latency, ..) --dut NAMES"),
    ("bench generator", "contrib/generator/speed.py WEIR, or weir gen flood --port null:"),
];

/// The refusal of a name that is gone, with what to use in its place.
pub(crate) fn gone(name: &str) -> Option<String> {
    let (_, instead) = GONE.iter().find(|(gone, _)| *gone == name)?;
    Some(format!("{name} is gone: use {instead}"))
}

/// The error of a text of settings; of a key that is gone with its replacement.
pub(crate) fn explained(error: &impl std::fmt::Display) -> String {
    let text = error.to_string();
    let key = text.split_once("unknown field `").and_then(|(_, rest)| rest.split('`').next());
    key.and_then(gone).map_or_else(|| text.clone(), |gone| format!("{gone}\n{text}"))
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
#[must_use]
pub fn distinct<T: PartialEq>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for one in all {
        if !found.contains(&one) {
            found.push(one);
        }
    }
    found
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
        for (name, instead) in GONE {
            let expected = format!("{name} is gone: use {instead}");
            assert_eq!(unknown("word", name, ["groups"]), expected);
        }
    }
}
