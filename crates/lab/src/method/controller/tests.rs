//! The emulator against controllers of known behaviour, right and wrong.
//!
//! A busy machine makes everything slower, so that nothing here asks for a figure to be small: a
//! controller of known delay is never measured as faster, and one that stops is seen to stop.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

use channel::Endpoint;
use openflow::Version;
use programs::cancel::Cancel;

use super::{Trial, load, storm};
use crate::fleet::mock::{Behaviour, Mock};
use crate::fleet::{Fleet, FleetPlan, topology};
use emulator::{Buffering, FRAME_MIN, Pace};

const LONG: Duration = Duration::from_secs(30);

/// The window that is measured.
const WINDOW: Duration = Duration::from_millis(200);

/// With 16 packet-ins that wait at each switch.
fn fleet(mock: &Mock, version: Version, switches: u32) -> FleetPlan {
    FleetPlan {
        target: mock.endpoint(),
        tls: None,
        version,
        switches,
        hosts: 8,
        ports: 4,
        frame_bytes: FRAME_MIN,
        buffering: Buffering::Buffered,
        pace: Pace::Window(16),
        keeps_times: false,
        threads: 2,
        cores: Vec::new(),
        at_once: 64,
        ready_limit: LONG,
        warm_up: Duration::from_millis(20),
        window: WINDOW,
        rest: None,
    }
}

fn run(behaviour: Behaviour, switches: u32) -> anyhow::Result<Trial> {
    let mock = Mock::start(behaviour);
    load(fleet(&mock, Version::V1_3, switches), &Cancel::default())
}

/// A trial in which something was answered: on a busy machine a window may pass without.
fn answered(behaviour: Behaviour, plan: impl Fn(&Mock) -> FleetPlan) -> Trial {
    for _ in 0..5 {
        // One that has stopped once does not stop again.
        let mock = Mock::start(behaviour);
        match load(plan(&mock), &Cancel::default()) {
            Ok(measured) => return measured,
            Err(error) => {
                assert!(error.to_string().contains("answered no packet-in"), "{error:#}");
            }
        }
    }
    panic!("{behaviour:?}: five windows without an answer");
}

/// Times to the answer, at this pace, within a window.
fn times(behaviour: Behaviour, pace: Pace, window: Duration) -> Trial {
    answered(behaviour, |mock| {
        let fleet = fleet(mock, Version::V1_3, 1);
        FleetPlan { pace, keeps_times: true, window, ..fleet }
    })
}

/// The error of a controller that must be given up after `limit`.
fn error(behaviour: Behaviour, limit: Duration) -> String {
    let mock = Mock::start(behaviour);
    let fleet = FleetPlan { ready_limit: limit, ..fleet(&mock, Version::V1_3, 3) };
    load(fleet, &Cancel::default()).unwrap_err().to_string()
}

fn value(measured: &Trial, metric: &str) -> f64 {
    let found = measured.values.iter().find(|(id, _)| *id == metric);
    found.unwrap_or_else(|| panic!("no {metric}: {measured:?}")).1.value
}

#[test]
fn every_packet_in_is_answered_in_every_version_and_either_way() {
    for &version in Version::ALL {
        for buffering in [Buffering::Buffered, Buffering::Whole] {
            let mock = Mock::start(Behaviour::FlowAndPacket);
            let fleet = FleetPlan { buffering, ..fleet(&mock, version, 3) };
            let measured = load(fleet, &Cancel::default()).unwrap();
            let [all, answered, flow_mods] = ["responses_ps", "answered_ps", "answer_flow_mods_ps"]
                .map(|id| value(&measured, id));
            assert!(answered > 0.0 && flow_mods > 0.0, "{version} {buffering:?}: {measured:?}");
            // A pair may be parted by the end of the window, at each switch.
            let apart = (all - 2.0 * flow_mods).abs() * WINDOW.as_secs_f64();
            assert!(apart <= 16.0 * 3.0, "{version} {buffering:?}: {measured:?}");
            let faults = value(&measured, "answer_faults");
            assert!(faults < 1.0, "{version} {buffering:?}: {measured:?}");
        }
    }
}

#[test]
fn a_controller_of_known_delay_is_never_measured_as_faster() {
    let delay = Duration::from_millis(3);
    let measured = times(Behaviour::Hub(delay), Pace::Window(1), Duration::from_secs(1));
    assert!(value(&measured, "answer_p50_us") >= 2_990.0, "{measured:?}");
    let shares = &measured.distributions[0].quantiles;
    assert!(shares[0].1 >= 2_990.0 && shares.is_sorted_by(|a, b| a.1 <= b.1), "{shares:?}");
    // One thread for each connection: three delays at a time, and what came before the window.
    let window = Duration::from_secs(1);
    let measured = answered(Behaviour::Hub(delay), |mock| FleetPlan {
        window,
        ..fleet(mock, Version::V1_3, 3)
    });
    let answered = value(&measured, "answered_ps");
    assert!(answered > 0.0 && answered <= 3.0 / 0.003 + 3.0 * 17.0, "{measured:?}");
}

#[test]
fn waiting_for_a_stopped_controller_counts_from_the_due_time() {
    // Eight hosts are announced and one packet-in greets; then come 500 a second, and for 600 of
    // the 1,000 ms that are measured the controller does nothing. With one outstanding, one time
    // of some thousands would be long.
    let stalls = Behaviour::Stalls(60, Duration::from_millis(600));
    let measured = times(stalls, Pace::Rate(500.0), Duration::from_secs(1));
    assert!(value(&measured, "answer_p50_us") >= 50_000.0, "{measured:?}");
    assert!(value(&measured, "answer_max_us") >= 500_000.0, "{measured:?}");
}

#[test]
fn a_storm_ends_when_every_switch_is_served() {
    let mock = Mock::start(Behaviour::Hub(Duration::ZERO));
    let fleet = FleetPlan { pace: Pace::Window(1), ..fleet(&mock, Version::V1_3, 50) };
    let measured = storm(fleet, Some(std::process::id()), &Cancel::default()).unwrap();
    let [all, features] = ["storm_s", "storm_features_s"].map(|id| value(&measured, id));
    assert!(all >= features && features > 0.0, "{measured:?}");
    assert!(value(&measured, "storm_p50_ms") / 1e3 <= all * 1.01, "{measured:?}");
    assert!(value(&measured, "storm_idle_cores") >= 0.0 && value(&measured, "storm_kib") >= 0.0);
    let ids: Vec<&str> = measured.values.iter().map(|(id, _)| *id).collect();
    assert!(!ids.contains(&"storm_p99_ms"), "the 99th of 50 is their greatest: {ids:?}");
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
    let fleet = fleet(&nobody, Version::V1_0, 2);
    drop(nobody);
    let text = load(fleet, &Cancel::default()).unwrap_err().to_string();
    assert!(text.contains("0 of 2 switches connected"), "{text}");
    assert!(text.contains("cannot connect"), "{text}");
}

#[test]
fn messages_that_do_not_parse_are_counted_and_answered() {
    let measured = run(Behaviour::Malformed, 2).unwrap();
    assert!(value(&measured, "answered_ps") > 0.0, "{measured:?}");
    assert!(value(&measured, "answer_faults") > 0.0, "{measured:?}");
    assert!(measured.raw["malformed"].as_u64() > Some(0), "{measured:?}");
}

#[test]
fn a_controller_that_leaves_or_does_not_read_ends_it() {
    let text = error(Behaviour::Leaves(40), LONG);
    assert!(text.contains("connections ended"), "{text}");
    assert!(text.contains("the peer closed") || text.contains("stream failed"), "{text}");
    match run(Behaviour::Deaf(40), 2) {
        Err(error) => assert!(error.to_string().contains("answered no packet-in"), "{error}"),
        // On a busy machine the last answers come within the window.
        Ok(measured) => assert!(value(&measured, "answer_faults") > 0.0, "{measured:?}"),
    }
}

#[test]
fn a_fleet_that_is_dropped_leaves_nobody() {
    let mock = Mock::start(Behaviour::Mute);
    drop(Fleet::start(fleet(&mock, Version::V1_0, 20)).unwrap());
    let cancel = Cancel::default();
    cancel.stop();
    assert!(load(fleet(&mock, Version::V1_0, 5), &cancel).is_err());
}

/// Polls until the mock has taken that number of connections.
fn await_connections(mock: &Mock, count: usize) {
    for _ in 0..30_000 {
        if mock.connections() >= count {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("{} connections, not {count}", mock.connections());
}

#[test]
fn a_ring_that_is_stopped_connects_no_further_switch() {
    let (mock, cancel) = (Mock::start(Behaviour::Silent), Cancel::default());
    let rest = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    // The first waits for a hello, and the others until it has one.
    let address = Some(rest.local_addr().unwrap().to_string());
    let fleet = fleet(&mock, Version::V1_3, 4);
    let plan = FleetPlan { rest: address, at_once: 1, ready_limit: 20 * LONG, ..fleet };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut stream, _) = rest.accept().unwrap();
            let no_links = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]";
            while stream.read(&mut [0; 1024]).is_ok_and(|count| count > 0)
                && stream.write_all(no_links).is_ok()
            {}
        });
        scope.spawn(|| {
            await_connections(&mock, 1);
            cancel.stop();
        });
        topology::measure(&plan, &cancel).unwrap_err();
    });
    let Endpoint::Tcp { host, port } = mock.endpoint() else { panic!("TCP") };
    let _last = TcpStream::connect((host.as_str(), port)).unwrap();
    await_connections(&mock, 2);
    assert_eq!(mock.connections(), 2, "the first of the ring, and the last one here");
}
