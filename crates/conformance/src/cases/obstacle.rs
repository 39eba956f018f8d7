//! Obstacles to a case, known before it is played.

use ::cases::{Case, Step};
use openflow::Version;

/// The ports that the cases have.
const PORTS: u32 = 4;

/// Longest sum of a case's waits, nanoseconds.
const WAITS_MAX_NS: u64 = 6_000_000_000;

/// Time between two looks of a switch at its timeouts, about; nanoseconds.
const SECOND_NS: u64 = 1_000_000_000;

/// Why a case cannot be played in a check of that version, on a switch with `ports` ports.
pub fn obstacle(case: &Case, version: Version, ports: u32, has_links: bool) -> Option<String> {
    if let Some(other) = other_version(case, version) {
        return Some(format!("a case of OpenFlow {other}"));
    }
    let steps = || case.steps.iter().map(|(_, step)| of_step(step, has_links));
    let needed = steps().map(|(port, _)| port).max().unwrap_or(0);
    if needed > ports {
        return Some(format!("needs {needed} ports, of which there are {ports}"));
    }
    let waits =
        case.steps.iter().map(|(_, step)| if let Step::Wait { ns } = step { *ns } else { 0 });
    let is_exact = |ns: u64| !ns.is_multiple_of(SECOND_NS);
    if waits.clone().any(is_exact) || (has_meter(case) && waits.clone().any(|ns| ns > 0)) {
        return Some("says what happens at a moment, not about then".to_owned());
    }
    if waits.fold(0, u64::saturating_add) > WAITS_MAX_NS {
        return Some(format!("waits for more than {} s", WAITS_MAX_NS / SECOND_NS));
    }
    steps().find_map(|(_, why)| why).map(str::to_owned)
}

/// Whether what leaves depends on how fast frames come.
pub(super) fn has_meter(case: &Case) -> bool {
    case.steps.iter().any(|(_, step)| matches!(step, Step::Meter(_)))
}

/// The highest port of the switch that a step names, and why the step cannot be played.
fn of_step(step: &Step, has_links: bool) -> (u32, Option<&'static str>) {
    let of_word = |word: &String| match word.as_str() {
        "link_down" if !has_links => Some("the links are not the lab's to take away"),
        "blocked" | "not_live" | "gone" => Some("a state of a port that the lab cannot make"),
        word if word.starts_with("vlans=") => Some("an option of Weir's switch"),
        _ => None,
    };
    match step {
        Step::Talk { .. } => (0, Some("has several controllers")),
        Step::Late { .. } => (0, Some("a switch that has not looked at its timeouts yet")),
        Step::Setting(text) if text == "miss=drop" => (0, Some("an option of Weir's switch")),
        Step::Port { port, .. } | Step::In { port, .. } | Step::Out { port, .. }
            if !(1..=PORTS).contains(port) =>
        {
            (0, Some("a port that the switch does not have"))
        }
        Step::Port { port, words } => (*port, words.iter().find_map(of_word)),
        Step::In { port, .. } | Step::Out { port, .. } => (*port, None),
        Step::PacketOut { in_port, actions, .. } => (number(in_port).max(highest(actions)), None),
        Step::Flow(text) | Step::Group(text) | Step::Change { text, .. } => (highest(text), None),
        Step::Meter(_)
        | Step::Error(_)
        | Step::Version(_)
        | Step::Setting(_)
        | Step::Wait { .. }
        | Step::Removed(_)
        | Step::PacketIn { .. }
        | Step::Drop(_)
        | Step::Counter { .. } => (0, None),
    }
}

/// The number of a port; 0 where no switch has it, which is another matter.
fn number(text: &str) -> u32 {
    text.parse().ok().filter(|port| *port <= PORTS).unwrap_or(0)
}

/// The highest port that a text names; that of all of them where it floods.
fn highest(text: &str) -> u32 {
    let text = text.to_ascii_lowercase();
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words: Vec<&str> = text.split(|c| !is_word(c)).collect();
    if words.iter().any(|word| ["flood", "all"].contains(word)) {
        return PORTS;
    }
    let names_port = |word: &str| ["output", "in_port", "watch_port", "enqueue"].contains(&word);
    let ports = words.windows(2).filter(|pair| names_port(pair[0])).map(|pair| number(pair[1]));
    ports.max().unwrap_or(0)
}

/// The version of a case, if it is another: a case of 1.0 begins with a step that says so, and one
/// of 1.3 may have a second controller, of 1.0. One that names a later version cannot be sent.
fn other_version(case: &Case, version: Version) -> Option<&'static str> {
    let named = |step: &Step| {
        if let Step::Version(name) = step { Version::from_name(name) } else { None }
    };
    let has_pipeline = |step: &Step| {
        let is_old = *step == Step::Setting("miss=controller".to_owned());
        named(step).map(Version::has_pipeline).or(is_old.then_some(false))
    };
    let mut steps = case.steps.iter().map(|(_, step)| step);
    if let Some(newer) = steps.clone().filter_map(named).max().filter(|newest| *newest > version) {
        return Some(newer.row().release);
    }
    let first = steps.clone().find(|step| step.acts()).and_then(has_pipeline);
    let is_old = first == Some(false) && !steps.any(|step| has_pipeline(step) == Some(true));
    match (is_old, version.has_pipeline()) {
        (true, true) => Some("1.0"),
        (false, false) => Some("1.3"),
        (true, false) | (false, true) => None,
    }
}
