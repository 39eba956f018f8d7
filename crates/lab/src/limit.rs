//! The limiting part of a measurement, by one rule from measured utilisations.
//!
//! The rule is [`RULE`], printed in every report. It must never be bent to a result: where no part
//! was saturated it says so.

use serde::{Deserialize, Serialize};

use crate::load::{LinkId, LinkLoad, Load, ProcessRole};

/// A shaped link is saturated from this share of its rate on.
pub const LINK_FULL: f64 = 0.95;

/// A program is saturated from this share of a core on.
pub const CORE_FULL: f64 = 0.90;

/// The machine is saturated from this share of all its cores on.
pub const MACHINE_FULL: f64 = 0.95;

/// Offered load counts as carried from this share on.
pub const OFFER_MET: f64 = 0.995;

/// The rule in words.
pub const RULE: &str = "All utilisations are those of the busiest whole second of the \
measurement. (1) If a fixed offered load arrived at 99.5 % of its rate or more, it is the \
limit. (2) Else a shaped control link, or a shaped port towards a host, that carried at least \
95 % of its rate (FCS, preamble and gap counted) limits; a full port from a host only says that \
enough was offered. (3) Else the controller or the switch limits if its busiest thread took at \
least 90 % of a core (a program that can use only one core, such as Python under its lock, is \
judged by all its threads together, and one with a CPU share by that share); so does the \
sending host where the lab's own traffic does that. (4) Else, if all cores together were at least \
95 % busy, the machine limits: hosts, switch and controller share it. (5) Else no part was \
saturated: delay on the path or the sending host limits. Where (2) or (3) holds and all cores \
were busy too, that is said. Round-trip times are \
taken at low load and have no limiting part.";

/// The part that limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// A port of the switch, or the host's side of it.
    Port,
    /// The link between switch and controller.
    ControlLink,
    /// The controller's CPU.
    Controller,
    /// The switch's CPU.
    Switch,
    /// The host: the lab's own traffic took all of a core.
    Host,
    /// All cores of the shared machine.
    Machine,
    /// Nothing: what was offered arrived.
    OfferedLoad,
    /// No saturated part.
    None,
}

impl Part {
    /// A word or two for tables.
    pub fn label(self) -> &'static str {
        match self {
            Self::Port => "port",
            Self::ControlLink => "control link",
            Self::Controller => "controller",
            Self::Switch => "switch",
            Self::Host => "host",
            Self::Machine => "machine CPU",
            Self::OfferedLoad => "offered load",
            Self::None => "none",
        }
    }
}

/// The limiting part with the figures that make it so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    /// The part that limits.
    pub part: Part,
    /// The figures in words.
    pub why: String,
    /// Whether all cores of the machine were busy besides.
    pub machine_full: bool,
}

/// Applies [`RULE`]. `carried` is the share of a fixed offered load that arrived; `None` for
/// methods that offer as much as goes.
pub fn limiting(load: &Load, carried: Option<f64>) -> Limit {
    let machine_full = load.machine >= MACHINE_FULL;
    let (part, why) = offered(carried)
        .or_else(|| link(load))
        .or_else(|| program(load))
        .or_else(|| machine_full.then(|| (Part::Machine, shares(load))))
        .unwrap_or_else(|| (Part::None, format!("nothing saturated: {}", shares(load))));
    Limit { part, why, machine_full }
}

fn offered(carried: Option<f64>) -> Option<(Part, String)> {
    let share = carried.filter(|share| *share >= OFFER_MET)?;
    Some((Part::OfferedLoad, format!("{:.1} % of the offered load arrived", share * 100.0)))
}

fn link(load: &Load) -> Option<(Part, String)> {
    let part = |link: &LinkLoad| match link.id {
        LinkId::Port1Out | LinkId::Port2Out => Some(Part::Port),
        LinkId::ControlUp | LinkId::ControlDown => Some(Part::ControlLink),
        LinkId::Port1In | LinkId::Port2In => None,
    };
    let share = |link: &LinkLoad| link.utilisation.filter(|share| *share >= LINK_FULL);
    let full = load.links.iter().filter_map(|link| Some((link.id, share(link)?, part(link)?)));
    let (id, share, part) = full.max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some((part, format!("{} at {:.1} % of its rate", id.label(), share * 100.0)))
}

fn program(load: &Load) -> Option<(Part, String)> {
    let process = load
        .processes
        .iter()
        .filter(|process| process.saturation >= CORE_FULL)
        .max_by(|a, b| a.saturation.total_cmp(&b.saturation))?;
    let part = match process.role {
        ProcessRole::Switch => Part::Switch,
        ProcessRole::Controller => Part::Controller,
        ProcessRole::Host => Part::Host,
    };
    let why = format!(
        "{} used {:.0} % of a core (busiest thread {} {:.0} %)",
        process.name,
        process.cpu_cores * 100.0,
        process.thread,
        process.thread_cores * 100.0
    );
    Some((part, why))
}

/// Programs that used the machine, in percent of one core.
fn shares(load: &Load) -> String {
    let mut words: Vec<String> = load
        .processes
        .iter()
        .map(|process| format!("{} {:.0} %", process.name, process.cpu_cores * 100.0))
        .collect();
    words.push(format!("tools at the hosts {:.0} %", load.tools_cores * 100.0));
    words.push(format!("other programs {:.0} %", load.others_cores() * 100.0));
    format!("{} of a core each; all cores {:.0} % busy", words.join(", "), load.machine * 100.0)
}

#[cfg(test)]
mod tests {
    use super::{Part, limiting};
    use crate::load::{LinkId, LinkLoad, Load, ProcessLoad, ProcessRole};

    fn link(id: LinkId, utilisation: Option<f64>) -> LinkLoad {
        let rate_bps = utilisation.map(|_| 100_000_000);
        let used_bps = utilisation.unwrap_or(9.0) * 1e8;
        LinkLoad { id, rate_bps, used_bps, utilisation, packets_ps: 0.0, drops: 0 }
    }

    fn process(role: ProcessRole, cpu_cores: f64) -> ProcessLoad {
        let (name, thread) = (format!("{role:?}"), "t".to_owned());
        let (thread_cores, saturation) = (cpu_cores, cpu_cores);
        ProcessLoad { role, name, cpu_cores, thread_cores, thread, saturation }
    }

    fn load(port: Option<f64>, control: Option<f64>, cpu: (f64, f64), machine: f64) -> Load {
        Load {
            window_s: 1.0,
            links: vec![
                link(LinkId::Port1In, port.map(|_| 1.0)),
                link(LinkId::Port2Out, port),
                link(LinkId::ControlUp, control),
            ],
            processes: vec![
                process(ProcessRole::Switch, cpu.0),
                process(ProcessRole::Controller, cpu.1),
            ],
            tools_cores: 0.3,
            machine,
            cores: 2,
        }
    }

    #[test]
    fn each_part_is_named_by_the_rule() {
        let cases = [
            (load(Some(0.99), Some(0.90), (0.3, 0.3), 0.5), None, Part::Port),
            (load(Some(0.93), Some(0.97), (0.3, 0.3), 0.5), None, Part::ControlLink),
            (load(Some(0.96), Some(0.99), (0.3, 0.3), 0.5), None, Part::ControlLink),
            (load(Some(0.20), None, (0.5, 0.98), 0.8), None, Part::Controller),
            (load(None, None, (0.99, 0.95), 0.9), None, Part::Switch),
            (load(None, None, (0.7, 0.6), 0.99), None, Part::Machine),
            (load(None, None, (0.2, 0.2), 0.3), Some(1.0), Part::OfferedLoad),
            (load(None, None, (0.2, 0.2), 1.0), Some(0.999), Part::OfferedLoad),
            (load(None, None, (0.2, 0.2), 0.3), Some(0.9), Part::None),
            (load(Some(0.5), Some(0.5), (0.2, 0.2), 0.3), None, Part::None),
        ];
        for (load, carried, part) in cases {
            let limit = limiting(&load, carried);
            assert_eq!(limit.part, part, "{}", limit.why);
            assert!(!limit.why.is_empty());
        }
    }

    #[test]
    fn a_full_machine_is_named_beside_a_full_part() {
        let limit = limiting(&load(None, None, (0.5, 0.95), 0.99), None);
        assert!(limit.machine_full && limit.part == Part::Controller);
        let shared = limiting(&load(None, None, (0.7, 0.6), 1.0), None);
        assert!(
            shared.why.contains("tools at the hosts 30 %, other programs 40 %"),
            "{}",
            shared.why
        );
    }
}
