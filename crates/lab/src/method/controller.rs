//! Questions about a controller, asked by emulated switches: the rate and the time of its answers,
//! a storm of connections, and what it knows of a network (RFC 8456, clause 5).
//!
//! Every measurement has connections and hosts of its own, so that two do not depend on each other.
//! Its faults are a figure: messages that do not parse, packet-ins without an answer.

use std::time::Duration;

use anyhow::{Result, ensure};
use files::proc::ProcFolder;
use generator::profile::FCS_LEN;
use programs::cancel::Cancel;
use serde_json::json;

use super::{
    Method, MethodContext, Metric, Trial, TrialError, distribution, exactly, idle_cpu,
    leave_out_quantile,
};
use crate::fleet::{Fleet, FleetPlan, proactive, topology};
use crate::load::{ProcessRole, Watched};
use crate::results::MeasuredDistribution;
use crate::settings::{FleetSettings, Settings};
use crate::testbed::Testbed;
use emulator::{Buffering, Oddities, Pace, Times};

/// Packet-ins that may wait, of all switches together: with half as many a single connection does
/// not keep the fastest controller busy.
const OUTSTANDING: u32 = 32_768;

/// A method of a fleet. Its emulator never sleeps where it keeps times, which is no stall.
const OF_FLEET: Method = Method {
    finds_stalls: true,
    cost: |settings| Duration::from_secs_f64(settings.duration_s() + 2.0),
    fits: |bed| {
        let is_fleet = matches!(bed, Testbed::Fleet(_));
        is_fleet.then_some(()).ok_or("needs emulated switches: settings.fleet has them")
    },
    ..Method::USUAL
};

pub(super) const THROUGHPUT: Method = Method {
    id: "controller-throughput",
    label: "Controller, rate",
    about: "Answers a second of a controller while a bounded number of packet-ins waits at each \
            emulated switch (RFC 8456, 5.1.3 and 5.1.6)",
    metrics: &[
        Metric::higher("answered_ps", "packet-ins answered", "packet-ins/s", 0),
        Metric::higher("responses_ps", "flow-mods and packet-outs", "responses/s", 0),
        Metric::higher("answer_flow_mods_ps", "flow-mods", "flow-mods/s", 0),
        Metric::lower("answer_faults", "unanswered, malformed or refused", "messages", 0),
    ],
    saturates: true,
    run: |context| run(context, false, |plan, _, cancel| load(plan, cancel)),
    ..OF_FLEET
};

pub(super) const LATENCY: Method = Method {
    id: "controller-latency",
    label: "Controller, time to the answer",
    about: "Time to a controller's first answer with one packet-in waiting at each emulated \
            switch, or, with `rate_pps`, from when each was due (RFC 8456, 5.1.2 and 5.1.4)",
    metrics: &[
        Metric::lower("answer_p50_us", "answer, median", "us", 1),
        Metric::lower("answer_p99_us", "answer, 99 of 100", "us", 1),
        Metric::lower("answer_max_us", "answer, the longest", "us", 1),
        Metric::lower("answer_late_us", "packet-ins left late, 99 of 100", "us", 1),
        Metric::lower("latency_faults", "unanswered, malformed or refused", "messages", 0),
    ],
    run: |context| run(context, true, |plan, _, cancel| load(plan, cancel)),
    ..OF_FLEET
};

pub(super) const STORM: Method = Method {
    id: "controller-storm",
    label: "Controller, all switches at once",
    about: "All emulated switches connect at once, and are silent for `duration_s` then (RFC \
            8456, 5.2.1)",
    metrics: &[
        Metric::lower("storm_s", "until all are served", "s", 3),
        Metric::lower("storm_features_s", "until all were asked for features", "s", 3),
        Metric::lower("storm_p50_ms", "a switch waits, median", "ms", 1),
        Metric::lower("storm_p99_ms", "a switch waits, 99 of 100", "ms", 1),
        Metric::lower("storm_idle_cores", "CPU in the silence", "cores", 4),
        Metric::lower("storm_kib", "memory of a switch", "KiB", 1),
    ],
    // A controller's memory is no longer what it was.
    spends_setup: true,
    run: |context| run(context, false, storm),
    ..OF_FLEET
};

pub(super) const TOPOLOGY: Method = Method {
    id: "controller-topology",
    label: "Controller, topology",
    about: "Time until a controller's REST shows all links of a ring, and a link that goes down \
            and comes up (RFC 8456, 5.1.1 and 5.1.8)",
    metrics: &[
        Metric::lower("topology_s", "all links, from the first LLDP", "s", 3),
        Metric::lower("topology_connect_s", "all links, from the first connection", "s", 3),
        Metric::lower("topology_down_ms", "a link that went down", "ms", 1),
        Metric::lower("topology_up_ms", "a link that came up", "ms", 1),
    ],
    spends_setup: true,
    run: |context| {
        run(context, false, |plan, _, cancel| of_values(topology::measure(&plan, cancel)))
    },
    ..OF_FLEET
};

pub(super) const DISCOVERY: Method = Method {
    id: "controller-discovery",
    label: "Controller, size of a network",
    about: "The largest ring, up to that of the fleet, whose links a controller's REST shows in \
            time (RFC 8456, 5.2.2)",
    metrics: &[
        Metric::higher("discovery_switches", "largest ring", "switches", 0),
        Metric::lower("discovery_s", "its links, from the first connection", "s", 3),
    ],
    spends_setup: true,
    run: |context| {
        run(context, false, |plan, _, cancel| of_values(topology::measure_size(&plan, cancel)))
    },
    ..OF_FLEET
};

pub(super) const PROACTIVE: Method = Method {
    id: "controller-proactive",
    label: "Controller, paths on request",
    about: "Time until the entries of a path that REST is asked for are at all switches, and \
            paths a second of eight clients (RFC 8456, 5.1.5 and 5.1.7)",
    metrics: &[
        Metric::lower("proactive_p50_us", "a path, median", "us", 1),
        Metric::lower("proactive_p99_us", "a path, 99 of 100", "us", 1),
        Metric::higher("proactive_paths_ps", "paths", "paths/s", 0),
        Metric::higher("proactive_entries_ps", "flow-mods", "flow-mods/s", 0),
    ],
    run: |context| {
        run(context, false, |plan, _, cancel| {
            let (values, times) = proactive::measure(&plan, cancel)?;
            let mut values = exactly(values);
            leave_out_quantile(&mut values, "proactive_p99_us", (0.99, times.count()));
            let distributions = vec![of_times("proactive_p50_us", &times)];
            Ok(Trial { values, distributions, ..Trial::default() })
        })
    },
    ..OF_FLEET
};

fn of_values(values: Result<Vec<(&'static str, f64)>>) -> Result<Trial> {
    Ok(Trial { values: exactly(values?), ..Trial::default() })
}

/// Measures with the process of the controller, where it is known.
fn run(
    context: &MethodContext<'_>,
    keeps_times: bool,
    measure: fn(FleetPlan, Option<u32>, &Cancel) -> Result<Trial>,
) -> Result<Trial, TrialError> {
    let (Testbed::Fleet(cores), Some((target, tls, rest))) =
        (context.bed, context.setup.controller())
    else {
        return Err(TrialError::Unfit("there is no controller"));
    };
    let settings = context.settings;
    let fleet = settings.fleet.clone().unwrap_or_default();
    let mut watched = context.watched.to_vec();
    let started = watched.iter().find(|one| one.role == ProcessRole::Controller);
    let started = started.map(|one| one.pid);
    let pid = started.or(fleet.pid);
    // Another controller of the run may be started here, and that process is not its own.
    watched.extend(fleet.pid.filter(|_| started.is_none()).map(|pid| Watched {
        role: ProcessRole::Controller,
        name: target.to_string(),
        pid,
        cores_max: None,
    }));
    let plan = FleetPlan {
        target: target.clone(),
        tls: tls.cloned(),
        version: settings.version().map_err(anyhow::Error::from)?,
        switches: fleet.switches(),
        hosts: fleet.hosts(),
        ports: fleet.ports(),
        frame_bytes: u16::try_from(settings.frame_size() - FCS_LEN).unwrap_or(u16::MAX),
        buffering: if fleet.is_whole { Buffering::Whole } else { Buffering::Buffered },
        pace: pace(settings, &fleet, keeps_times),
        keeps_times,
        threads: fleet.threads.map_or(cores.others.len(), usize::from),
        cores: cores.others.clone(),
        at_once: fleet.at_once.unwrap_or(512),
        ready_limit: Duration::from_secs(fleet.ready_limit_s.unwrap_or(60).into()),
        warm_up: Duration::from_secs_f64(fleet.warm_up_s.unwrap_or(0.5)),
        window: Duration::from_secs_f64(settings.duration_s()),
        rest: rest.map(str::to_owned),
    };
    let context = MethodContext { watched: &watched, ..*context };
    let (trial, load) = context.observe(|| measure(plan, pid, context.cancel));
    Ok(Trial { tool: "the lab's emulated switches".into(), load, ..trial? })
}

/// When packet-ins are sent.
fn pace(settings: &Settings, fleet: &FleetSettings, keeps_times: bool) -> Pace {
    match (keeps_times, settings.rate_pps) {
        (true, Some(rate_pps)) => Pace::Rate(rate_pps),
        (true, None) => Pace::Window(1),
        (false, _) => {
            let share = (OUTSTANDING / fleet.switches().max(1)).max(1);
            Pace::Window(fleet.window.unwrap_or(share))
        }
    }
}

/// Messages that do not parse, packet-ins without an answer, errors of the controller.
fn faults(oddities: &Oddities) -> f64 {
    (oddities.unanswered + oddities.unsent + oddities.malformed + oddities.errors) as f64
}

/// Packet-ins for a while, and the answers.
fn load(plan: FleetPlan, cancel: &Cancel) -> Result<Trial> {
    let (keeps_times, seconds) = (plan.keeps_times, plan.window.as_secs_f64());
    let mut fleet = Fleet::start(plan)?;
    fleet.await_served(cancel)?;
    fleet.learn(cancel)?;
    fleet.load(cancel)?;
    let tally = fleet.stop()?;
    ensure!(
        tally.answered > 0,
        "the controller has answered no packet-in within {seconds} s, of which {} wait: is its app \
         one that answers each, such as a hub or a learning switch?",
        tally.oddities.unanswered
    );
    let odd = &tally.oddities;
    let mut distributions = Vec::new();
    let values = if keeps_times {
        distributions.push(of_times("answer_p50_us", &tally.times));
        let mut values = exactly([
            ("answer_p50_us", tally.times.at_us(0.5)),
            ("answer_p99_us", tally.times.at_us(0.99)),
            ("answer_max_us", tally.times.at_us(1.0)),
            ("answer_late_us", tally.lateness.at_us(0.99)),
            ("latency_faults", faults(odd)),
        ]);
        leave_out_quantile(&mut values, "answer_p99_us", (0.99, tally.times.count()));
        values
    } else {
        exactly([
            ("answered_ps", tally.answered as f64 / seconds),
            ("responses_ps", tally.responses() as f64 / seconds),
            ("answer_flow_mods_ps", tally.flow_mods as f64 / seconds),
            ("answer_faults", faults(odd)),
        ])
    };
    let raw: serde_json::Map<_, _> =
        odd.rows().map(|(name, count)| (name.to_owned(), json!(count))).into_iter().collect();
    Ok(Trial { values, distributions, raw: raw.into(), ..Trial::default() })
}

/// The distribution of times.
fn of_times(metric: &str, times: &Times) -> MeasuredDistribution {
    const SHARES: [f64; 9] = [0.0, 0.05, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1.0];
    let quantiles = SHARES.iter().map(|share| (*share, times.at_us(*share))).collect();
    distribution(metric, times.count(), quantiles)
}

/// All switches connect at once, and then are silent.
fn storm(plan: FleetPlan, pid: Option<u32>, cancel: &Cancel) -> Result<Trial> {
    let (switches, silence) = (f64::from(plan.switches), plan.window);
    let resident = || pid.and_then(|pid| ProcFolder::of(pid).memory("VmRSS"));
    let before = resident();
    let mut fleet = Fleet::start(plan)?;
    fleet.await_served(cancel)?;
    let idle = match pid {
        Some(pid) => Some(idle_cpu::cores(&[pid], silence, cancel)?.0),
        None => {
            cancel.sleep(silence)?;
            None
        }
    };
    let after = resident();
    fleet.check("while all were silent")?;
    let tally = fleet.stop()?;
    let mut values = exactly([
        ("storm_s", tally.served.at_us(1.0) / 1e6),
        ("storm_features_s", tally.described.at_us(1.0) / 1e6),
        ("storm_p50_ms", tally.served.at_us(0.5) / 1e3),
        ("storm_p99_ms", tally.served.at_us(0.99) / 1e3),
    ]);
    leave_out_quantile(&mut values, "storm_p99_ms", (0.99, tally.served.count()));
    values.extend(idle.map(|cores| ("storm_idle_cores", cores.into())));
    if let (Some(before), Some(after)) = (before, after) {
        let kib = after.saturating_sub(before) as f64 / 1_024.0 / switches;
        values.push(("storm_kib", kib.into()));
    }
    Ok(Trial { values, ..Trial::default() })
}

#[cfg(test)]
mod tests;
