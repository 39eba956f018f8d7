//! Connections that the switch makes, many at once, and life without a controller.

use std::os::unix::net::UnixListener;

use openflow::{Action, Match, Message, PortNo, Version};

use crate::harness::{Controller, Switch, add_flow, frame, until};

#[test]
fn a_lost_controller_is_connected_to_again_and_flows_stay() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("controller");
    let listener = UnixListener::bind(&path).unwrap();
    let toml = format!("controller = [\"unix:{}\"]\nmax-backoff = 1", path.display());
    let switch = Switch::start(2, &toml);
    let (mut a, mut b) = (switch.host(1), switch.host(2));
    let mut controller = Controller::greet(listener.accept().unwrap().0, Version::V1_3);
    controller.send(&add_flow(1, Match::any(), vec![Action::output(PortNo(2))]));
    controller.barrier();
    drop(controller);
    until("the switch has noticed", || (switch.counter("channel_down") == 1).then_some(()));
    a.send(&frame(1));
    assert_eq!(b.receive(), frame(1));
    let mut again = Controller::greet(listener.accept().unwrap().0, Version::V1_3);
    again.barrier();
    let out = switch.ctl(&["dump-flows", "--json"]);
    assert_eq!(out.lines().count(), 1, "{out}");
    let out = switch.ctl(&["show"]);
    assert!(out.contains("OpenFlow13, role equal"), "{out}");
    switch.stop();
}

/// Growing waits would be a minute long before the last of these connections.
#[test]
fn a_controller_that_used_the_switch_is_soon_connected_again() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("controller");
    let listener = UnixListener::bind(&path).unwrap();
    let toml = format!("controller = [\"unix:{}\"]\nmax-backoff = 3600", path.display());
    let switch = Switch::start(1, &toml);
    listener.set_nonblocking(true).unwrap();
    for _ in 0..9 {
        let (stream, _) = until("the switch connects", || listener.accept().ok());
        stream.set_nonblocking(false).unwrap();
        Controller::greet(stream, Version::V1_3).barrier();
    }
    switch.stop();
}

#[test]
fn a_controller_that_is_not_there_is_waited_for() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("controller");
    let toml = format!("controller = [\"unix:{}\"]\nmax-backoff = 1", path.display());
    let switch = Switch::start(1, &toml);
    until("some attempts", || (switch.counter("channel_failed") >= 2).then_some(()));
    let listener = UnixListener::bind(&path).unwrap();
    let mut controller = Controller::greet(listener.accept().unwrap().0, Version::V1_0);
    controller.barrier();
}

#[test]
fn many_controllers_are_served_at_once() {
    let switch = Switch::start(1, "");
    let mut controllers: Vec<Controller> = (0..40)
        .map(|n| switch.controller(if n % 2 == 0 { Version::V1_0 } else { Version::V1_3 }))
        .collect();
    for controller in &mut controllers {
        controller.send(&Message::FeaturesRequest);
    }
    for controller in &mut controllers {
        assert!(matches!(controller.next(), (_, Message::FeaturesReply(_))));
    }
    switch.stop();
}
