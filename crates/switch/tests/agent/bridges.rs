//! Many bridges in one switch: each forwards by its own tables, whatever the others do.

use std::rc::Rc;
use std::time::SystemTime;

use channel::{ConnectionSettings, Event, Link, Listener, Side, Tls, TlsFiles, pki};
use openflow::{Message, Version};

use crate::harness::{Host, Switch, frame, from_to, until};

/// Bridges, each with two ports.
const COUNT: usize = 20;

/// Bridges whose controller is a listener of the switch's.
const LISTENING: std::ops::Range<usize> = 0..COUNT - 4;
/// Bridges that connect by TLS.
const TLS: std::ops::Range<usize> = COUNT - 4..COUNT - 2;
/// The one whose controller is dead, and the one that has none.
const DEAD: usize = COUNT - 2;

fn join_ports() -> [Message; 2] {
    [from_to(1, 2), from_to(2, 1)]
}

/// The tables `[[bridge]]`, for a folder and a controller with TLS.
fn tables(folder: &str, specs: &[String], tls: &str) -> String {
    let table = |(number, specs): (usize, &[String])| {
        let ports = format!("[\"{}\", \"{}\"]", specs[0], specs[1]);
        let controller = match number {
            number if LISTENING.contains(&number) => {
                format!("listen = [\"punix:{folder}/of{number}\"]")
            }
            number if TLS.contains(&number) => format!("controller = [\"{tls}\"]"),
            DEAD => "controller = [\"tcp:127.0.0.1:1\"]".to_owned(),
            _ => String::new(),
        };
        format!(
            "[[bridge]]\nname = \"b{number}\"\ndpid = \"{:x}\"\nport = {ports}\n{controller}\n",
            0x100 + number
        )
    };
    specs.chunks(2).enumerate().map(table).collect()
}

/// A controller with TLS in a thread of its own: joins the ports of every bridge that comes.
fn tls_controller(folder: &std::path::Path) -> String {
    let now = SystemTime::now();
    pki::init(folder, now).unwrap();
    for name in ["controller", "switch"] {
        let request = pki::CertificateRequest { name: name.into(), hosts: Vec::new(), days: 30 };
        pki::issue(folder, &request, now).unwrap();
    }
    let files = TlsFiles {
        private_key: folder.join("controller-privkey.pem"),
        certificate: folder.join("controller-cert.pem"),
        ca_cert: folder.join("cacert.pem"),
    };
    let (chosen, endpoint) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let local = Rc::new(tokio::task::LocalSet::new());
        local.block_on(&runtime, async move {
            let tls = Tls::load(files, false).unwrap();
            let place = "pssl:0:127.0.0.1".parse().unwrap();
            let listener = Listener::bind(&place, Some(&tls)).await.unwrap();
            chosen.send(listener.endpoint().clone().into_active().to_string()).unwrap();
            loop {
                let incoming = listener.accept().await.unwrap();
                tokio::task::spawn_local(async move {
                    let Ok(stream) = incoming.open(|| ()).await else { return };
                    let mut link = Link::new(stream, ConnectionSettings::new(Side::Controller));
                    loop {
                        link.turn().await;
                        match link.connection().poll_event() {
                            Some(Event::Up { .. }) => {
                                for message in join_ports() {
                                    link.connection().send(&message).unwrap();
                                }
                            }
                            Some(Event::Down(_)) => return,
                            Some(Event::Message { .. } | Event::Refused { .. }) | None => {}
                        }
                    }
                });
            }
        });
    });
    endpoint.recv().unwrap()
}

fn start(workers: u32) -> (Switch, Vec<[Host; 2]>) {
    let folder = tempfile::tempdir().unwrap();
    let endpoint = tls_controller(folder.path());
    let path = folder.path().display().to_string();
    let options = format!(
        "workers = {workers}\nprivate-key = \"{path}/switch-privkey.pem\"\n\
         certificate = \"{path}/switch-cert.pem\"\nca-cert = \"{path}/cacert.pem\"\n"
    );
    let (switch, hosts) =
        Switch::of_tables(2 * COUNT, &options, |folder, specs| tables(folder, specs, &endpoint));
    let mut pairs = Vec::new();
    let mut hosts = hosts.into_iter();
    while let (Some(a), Some(b)) = (hosts.next(), hosts.next()) {
        pairs.push([a, b]);
    }
    (switch, pairs)
}

/// Sends a frame each way and takes it at the other side.
fn assert_forwards(pair: &mut [Host; 2], number: u8) {
    let [a, b] = pair;
    a.send(&frame(number));
    assert_eq!(b.receive(), frame(number));
    b.send(&frame(number + 100));
    assert_eq!(a.receive(), frame(number + 100));
}

#[test]
fn each_bridge_forwards_by_its_own_tables() {
    for workers in [1, 2] {
        let (switch, mut pairs) = start(workers);
        let mut controllers: Vec<_> = LISTENING
            .map(|number| switch.controller_at(&format!("of{number}"), Version::V1_3))
            .collect();
        for (number, controller) in controllers.iter_mut().enumerate() {
            let Message::FeaturesReply(features) = controller.request(&Message::FeaturesRequest)
            else {
                panic!("no features")
            };
            assert_eq!(features.datapath_id.0, 0x100 + number as u64);
            // The odd ones stay without entries: what the others do must not concern them.
            if number % 2 == 0 {
                for message in join_ports() {
                    controller.send(&message);
                }
            }
            controller.barrier();
        }
        until("the bridges with TLS have their entries", || {
            TLS.clone().all(|number| flows(&switch, number) == 2).then_some(())
        });
        let is_joined = |number: usize| {
            TLS.contains(&number) || (LISTENING.contains(&number) && number.is_multiple_of(2))
        };
        for (number, pair) in pairs.iter_mut().enumerate() {
            if is_joined(number) {
                assert_forwards(pair, number as u8);
            } else {
                pair[0].send(&frame(number as u8));
            }
        }
        // Every frame has been decided on before it is looked where none has come.
        for number in 0..COUNT {
            let (bridge, joined) = (format!("b{number}"), is_joined(number));
            let expected = if joined { (2, 2, 0) } else { (1, 0, 1) };
            let count = |name| switch.counter_of(&bridge, name);
            until("the bridge has counted what came", || {
                (count("datapath_received") >= expected.0).then_some(())
            });
            let found = ["datapath_received", "datapath_outputs", "drop_no_match"].map(count);
            assert_eq!(<(u64, u64, u64)>::from(found), expected, "bridge {number}");
        }
        for (number, pair) in pairs.iter_mut().enumerate() {
            let [a, b] = pair;
            assert_eq!((a.received(), b.received()), (0, 0), "bridge {number}");
        }
        switch.stop();
    }
}

fn flows(switch: &Switch, number: usize) -> usize {
    let arguments = ["--bridge", &format!("b{number}"), "dump-flows"];
    if switch.can_ctl(&arguments) { switch.ctl(&arguments).matches("actions=").count() } else { 0 }
}

#[test]
fn a_bridge_is_named_and_all_are_listed() {
    let (switch, _pairs) = start(1);
    let (_, err) = switch.ctl_fails(&["show"]);
    assert!(err.contains("has 20 bridges; name one by --bridge: b0, b1,"), "{err}");
    let (_, err) = switch.ctl_fails(&["--bridge", "x", "dump-flows"]);
    assert!(err.contains("there is no bridge \"x\": b0"), "{err}");
    switch.ctl(&["--bridge", "b3", "add-flow", "actions=drop"]);
    assert_eq!((flows(&switch, 3), flows(&switch, 2)), (1, 0));
    until("the bridges with TLS are connected", || {
        let out = switch.ctl(&["list-bridges"]);
        assert!(out.lines().count() == COUNT, "{out}");
        let line = |name: &str| out.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
        assert!(line("b3: ").contains("dpid 0000000000000103, ports 1="), "{out}");
        assert!(line("b19: ").ends_with("controllers none"), "{out}");
        let is_tried = line("b18: ").contains("controllers tcp:127.0.0.1:1 (not connected)");
        let mut tls = TLS.clone();
        (is_tried
            && tls.all(|number| line(&format!("b{number}: ")).contains("(OpenFlow13, equal)")))
        .then_some(())
    });
    let values = switch.records(&["list-bridges"]);
    assert_eq!(values.len(), COUNT);
    assert_eq!(values[18]["configured_controllers"][0]["connected"], false);
    assert_eq!(values[16]["configured_controllers"][0]["connected"], true);
    assert_eq!(values[3]["listening"].as_array().unwrap().len(), 1);
    switch.stop();
}

#[test]
fn a_port_that_cannot_be_opened_is_named_with_its_bridge() {
    let text = r#"
        control = "none"
        [[bridge]]
        name = "good"
        dpid = "1"
        port = ["null:a"]
        [[bridge]]
        name = "bad"
        dpid = "2"
        port = ["null:a", "pcap:/none.pcap"]
    "#;
    let config = switch::parse_config(text).unwrap().resolve().unwrap();
    let error = switch::run_until(config, || Ok(std::future::pending())).unwrap_err().to_string();
    assert!(error.starts_with("bridge bad: port 2: "), "{error}");
    let text = r#"
        control = "none"
        [[bridge]]
        port = ["null:a"]
        [[bridge]]
        port = ["null:a"]
    "#;
    let config = switch::parse_config(text).unwrap().resolve().unwrap();
    let error = switch::run_until(config, || Ok(std::future::pending())).unwrap_err().to_string();
    assert!(error.starts_with("bridge br1: the datapath id 0000"), "{error}");
    assert!(error.ends_with("is bridge br0's too: give a dpid"), "{error}");
}

#[test]
fn a_switch_with_more_workers_than_ports_ends() {
    let tables = |_: &str, specs: &[String]| {
        let table = |spec: &String| format!("[[bridge]]\nport = [\"{spec}\"]\n");
        specs.iter().map(table).collect::<String>()
    };
    let (switch, _hosts) = Switch::of_tables(2, "workers = 5\n", tables);
    let (end, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        drop(switch);
        end.send(()).unwrap();
    });
    let within = std::time::Duration::from_secs(30);
    ended.recv_timeout(within).expect("workers without a bridge are waited for");
}
