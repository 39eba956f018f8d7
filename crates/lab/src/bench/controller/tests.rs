//! The emulator against controllers of known behaviour, right and wrong.
//!
//! A busy machine makes everything slower, so that nothing here asks for a figure to be small: a
//! controller of known delay is never measured as faster, and one that stops is seen to stop.

use std::path::PathBuf;
use std::time::Duration;

use openflow::Version;
use programs::cancel::Cancel;

use super::fleet::{Fleet, FleetPlan};
use super::measure;
use super::mock::{Behaviour, Mock};
use super::trial::{Measured, Mode, TrialPlan};
use emulator::Buffering;
use emulator::FRAME_MIN;

const LONG: Duration = Duration::from_secs(30);

fn trial(mode: Mode) -> TrialPlan {
    TrialPlan {
        mode,
        window: Some(16),
        rate: 500.0,
        warm_up: Duration::from_millis(20),
        seconds: Duration::from_millis(200),
        hostile: None,
    }
}

fn fleet(mock: &Mock, trial: &TrialPlan, version: Version, switches: u32) -> FleetPlan {
    FleetPlan {
        target: mock.endpoint(),
        tls: None,
        pid: None,
        version,
        switches,
        hosts: 8,
        ports: 4,
        frame_bytes: FRAME_MIN,
        buffering: Buffering::Buffered,
        pace: trial.pace(switches),
        keeps_times: trial.mode.keeps_times(),
        threads: 2,
        cores: Vec::new(),
        at_once: 64,
        ready_limit: LONG,
        invalid_percent: 0,
        rest: None,
        weir: PathBuf::new(),
    }
}

fn run(behaviour: Behaviour, plan: &TrialPlan, switches: u32) -> anyhow::Result<Measured> {
    let mock = Mock::start(behaviour);
    measure(plan, fleet(&mock, plan, Version::V1_3, switches), &Cancel::default())
}

/// The error of a controller that must be given up after `limit`.
fn error(behaviour: Behaviour, limit: Duration) -> String {
    let mock = Mock::start(behaviour);
    let plan = trial(Mode::Throughput);
    let fleet = FleetPlan { ready_limit: limit, ..fleet(&mock, &plan, Version::V1_3, 3) };
    measure(&plan, fleet, &Cancel::default()).unwrap_err().to_string()
}

fn value(measured: &Measured, suffix: &str) -> f64 {
    let found = measured.figures.iter().find(|figure| figure.suffix == suffix);
    found.unwrap_or_else(|| panic!("no {suffix}: {measured:?}")).value
}

#[test]
fn every_packet_in_is_answered_in_every_version_and_either_way() {
    for &version in Version::ALL {
        for buffering in [Buffering::Buffered, Buffering::Whole] {
            let mock = Mock::start(Behaviour::FlowAndPacket);
            let plan = trial(Mode::Throughput);
            let fleet = FleetPlan { buffering, ..fleet(&mock, &plan, version, 3) };
            let measured = measure(&plan, fleet, &Cancel::default()).unwrap();
            let [all, answered, flow_mods] =
                ["", "answered", "flow-mods"].map(|suffix| value(&measured, suffix));
            assert!(answered > 0.0 && flow_mods > 0.0, "{version} {buffering:?}: {measured:?}");
            // A pair may be parted by the end of the window, at each switch.
            let apart = (all - 2.0 * flow_mods).abs() * plan.seconds.as_secs_f64();
            assert!(apart <= 16.0 * 3.0, "{version} {buffering:?}: {measured:?}");
            assert_eq!(measured.faults().len(), 0, "{version} {buffering:?}: {measured:?}");
        }
    }
}

#[test]
fn a_controller_of_known_delay_is_never_measured_as_faster() {
    let delay = Duration::from_millis(3);
    let measured = run(Behaviour::Hub(delay), &trial(Mode::Latency), 1).unwrap();
    assert!(value(&measured, "p50") >= 2_990.0, "{measured:?}");
    // One thread for each connection: three delays at a time, and what came before the window.
    let measured = run(Behaviour::Hub(delay), &trial(Mode::Throughput), 3).unwrap();
    let answered = value(&measured, "answered");
    assert!(answered > 0.0 && answered <= 3.0 / 0.003 + 3.0 * 17.0 / 0.2, "{measured:?}");
}

#[test]
fn waiting_for_a_stopped_controller_counts_from_the_due_time() {
    // Eight hosts are announced and one packet-in greets; then come 500 a second, and for 600 of
    // the 1,000 ms that are measured the controller does nothing. With one outstanding, one time
    // of some thousands would be long.
    let plan = TrialPlan { seconds: Duration::from_secs(1), ..trial(Mode::OpenLoop) };
    let stalls = Behaviour::Stalls(60, Duration::from_millis(600));
    let measured = run(stalls, &plan, 1).unwrap();
    assert!(value(&measured, "p50") >= 50_000.0, "{measured:?}");
    assert!(value(&measured, "max") >= 500_000.0, "{measured:?}");
}

#[test]
fn a_storm_ends_when_every_switch_is_served() {
    let plan = trial(Mode::Storm);
    let measured = run(Behaviour::Hub(Duration::ZERO), &plan, 50).unwrap();
    let [all, features] = ["", "features"].map(|suffix| value(&measured, suffix));
    assert!(all >= features && features > 0.0, "{measured:?}");
    assert!(value(&measured, "switch-p99") / 1e3 <= all * 1.01, "{measured:?}");
}

#[test]
fn a_controller_that_does_not_answer_is_named_with_what_it_did() {
    let short = Duration::from_millis(700);
    let text = error(Behaviour::Mute, short);
    assert!(text.contains("3 of 3 switches connected, 3 told") && text.contains("0 had"), "{text}");
    let text = error(Behaviour::Silent, short);
    assert!(text.contains("3 connected") || text.contains("0 told"), "{text}");
    let text = error(Behaviour::Garbage, short);
    assert!(text.contains("no hello") || text.contains("first message"), "{text}");
    let nobody = Mock::start(Behaviour::Silent);
    let plan = trial(Mode::Throughput);
    let fleet = fleet(&nobody, &plan, Version::V1_0, 2);
    drop(nobody);
    let text = measure(&plan, fleet, &Cancel::default()).unwrap_err().to_string();
    assert!(text.contains("0 of 2 switches connected"), "{text}");
    assert!(text.contains("cannot connect"), "{text}");
}

#[test]
fn messages_that_do_not_parse_are_counted_and_answered() {
    let measured = run(Behaviour::Malformed, &trial(Mode::Throughput), 2).unwrap();
    assert!(value(&measured, "answered") > 0.0, "{measured:?}");
    assert!(measured.faults()["malformed"] > 0, "{measured:?}");
}

#[test]
fn a_controller_that_leaves_or_does_not_read_ends_it() {
    let text = error(Behaviour::Leaves(40), LONG);
    assert!(text.contains("connections ended"), "{text}");
    assert!(text.contains("the peer closed") || text.contains("stream failed"), "{text}");
    match run(Behaviour::Deaf(40), &trial(Mode::Throughput), 2) {
        Err(error) => assert!(error.to_string().contains("answered no packet-in"), "{error}"),
        // On a busy machine the last answers come within the window.
        Ok(measured) => assert!(measured.faults()["unanswered"] > 0, "{measured:?}"),
    }
}

#[test]
fn a_fleet_that_is_dropped_leaves_nobody() {
    let mock = Mock::start(Behaviour::Mute);
    let plan = trial(Mode::Throughput);
    let fleet = Fleet::start(fleet(&mock, &plan, Version::V1_0, 20)).unwrap();
    drop(fleet);
    let cancel = Cancel::default();
    cancel.stop();
    let plan = trial(Mode::Throughput);
    let stopped = measure(&plan, self::fleet(&mock, &plan, Version::V1_0, 5), &cancel);
    assert!(stopped.is_err());
}

#[test]
fn messages_that_nobody_can_read_are_refused_and_are_no_fault() {
    for &version in Version::ALL {
        let mock = Mock::start(Behaviour::FlowAndPacket);
        let plan = trial(Mode::Throughput);
        let fleet = FleetPlan { invalid_percent: 50, ..fleet(&mock, &plan, version, 2) };
        let measured = measure(&plan, fleet, &Cancel::default()).unwrap();
        let [sent, refused, answered] =
            ["invalid", "invalid-refused", "answered"].map(|suffix| value(&measured, suffix));
        assert!(sent >= 1.0 && answered > 0.0, "{version}: {measured:?}");
        // The last ones may be on their way when the bench ends.
        assert!(refused >= 1.0 && refused <= sent, "{version}: {measured:?}");
        assert_eq!(measured.faults().len(), 0, "{version}: {measured:?}");
    }
}

#[test]
fn hostile_peers_connect_meanwhile_and_end_with_the_load() {
    let mock = Mock::start(Behaviour::Hub(Duration::ZERO));
    let plan = TrialPlan { hostile: Some(200.0), ..trial(Mode::Throughput) };
    let fleet = fleet(&mock, &plan, Version::V1_3, 2);
    let measured = measure(&plan, fleet, &Cancel::default()).unwrap();
    let (made, refused) = (value(&measured, "hostile"), value(&measured, "hostile-refused"));
    assert!(made > 0.0 && made <= 250.0, "{measured:?}");
    assert!(refused.abs() < f64::EPSILON && value(&measured, "answered") > 0.0, "{measured:?}");
}
