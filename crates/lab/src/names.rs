//! Names: each once, and the refusal of one that there is not, with the nearest that there is and
//! all of them, or with what to use in place of one that is gone.

use openflow::text::nearest;

const CONTROLLER_SCENARIOS: &str =
    "weir lab run controller-throughput controller-latency controller-storm";
const LONG_RUN: &str = "weir gen for the whole time, with --metrics of it and of the switch";
const DEATH: &str = "weir net, and end its controller while traffic runs";
const NEW_FLOWS: &str = "new-flows, or datapath-new-flows";

/// Scenarios, methods and words of `weir bench` that earlier versions had, and what to use in
/// their place.
pub(crate) const GONE: [(&str, &str); 12] = [
    ("udp", "udp2"),
    ("soak", LONG_RUN),
    ("controller-death", DEATH),
    ("controller-loss", DEATH),
    ("ports-short-flows", NEW_FLOWS),
    ("short-flows", NEW_FLOWS),
    ("generator", "python3 contrib/generator/speed.py WEIR, or weir gen flood --port null:"),
    ("--rows", CONTROLLER_SCENARIOS),
    ("--bars", CONTROLLER_SCENARIOS),
    ("--entries", "weir lab run flow-mods, or weir ctl add-flows with a file"),
    ("--frame-bytes", "--set frame_size=BYTES, with FCS"),
    ("reprovisioning", "weir net with weir controller shortest-path, and a link set down"),
];

/// The refusal of a name that is gone, with what to use in its place.
pub(crate) fn gone(name: &str) -> Option<String> {
    let (_, instead) = GONE.iter().find(|(gone, _)| *gone == name)?;
    Some(format!("{name} is gone: use {instead}"))
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
