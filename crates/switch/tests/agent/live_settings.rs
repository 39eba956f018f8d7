//! Keys of the file that change while the bridge runs, each as a client sees it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::SystemTime;

use channel::{Tls, TlsFiles, pki};
use client::{Client, ClientSettings};
use openflow::message::{Hello, MultipartReplyBody, MultipartRequestBody};
use openflow::{DatapathId, Error, Match, Message, PortNo, Version, VersionBitmap, Xid};

use crate::harness::{Controller, DEADLINE, Switch, add_flow, until};

/// A file with these lines besides the sockets.
fn file(lines: &str) -> String {
    format!("control = \"FOLDER/ctl\"\nlisten = [\"punix:FOLDER/of\"]\n{lines}\n")
}

/// Writes the file anew and has it read: the lines about what has changed.
fn reload(switch: &Switch, text: &str) -> Vec<String> {
    switch.rewrite(text);
    switch.ctl(&["reload"]).lines().map(|line| line.replace("bridge br0: ", "")).collect()
}

fn dpid(controller: &mut Controller) -> DatapathId {
    match controller.request(&Message::FeaturesRequest) {
        Message::FeaturesReply(features) => features.datapath_id,
        other => panic!("no features: {other:?}"),
    }
}

#[test]
fn another_identity_is_seen_by_controllers_that_come_again() {
    let switch = Switch::of_file(&file("dpid = \"a1\""));
    let mut controller = switch.controller(Version::V1_3);
    assert_eq!(dpid(&mut controller), DatapathId(0xa1));
    let set = reload(&switch, &file("dpid = \"b2\"\ndp-desc = \"other\""));
    assert_eq!(set, ["set: dpid", "set: dp-desc"]);
    assert!(controller.closed().is_empty(), "no message reports another datapath id");
    let mut controller = switch.controller(Version::V1_3);
    assert_eq!(dpid(&mut controller), DatapathId(0xb2));
    let MultipartReplyBody::Desc(desc) = controller.multipart(MultipartRequestBody::Desc) else {
        panic!("no description")
    };
    assert_eq!(desc.dp_desc, "other");
    // A text alone disturbs nobody.
    assert_eq!(reload(&switch, &file("dpid = \"b2\"")), ["set: dp-desc"]);
    assert_eq!(dpid(&mut controller), DatapathId(0xb2));
    switch.stop();
}

#[test]
fn other_versions_are_spoken_from_then_on() {
    let switch = Switch::of_file(&file("dpid = \"a1\""));
    let mut controller = switch.controller(Version::V1_0);
    let set = reload(&switch, &file("dpid = \"a1\"\nprotocols = [\"OpenFlow13\"]"));
    assert_eq!(set, ["set: protocols"]);
    assert!(controller.closed().is_empty());
    let settings = ClientSettings::of(&[Version::V1_0]).with_answer_deadline(DEADLINE);
    assert!(Client::over_unix(switch.stream(), "the switch", settings).is_err());
    switch.controller(Version::V1_3).barrier();
    switch.stop();
}

#[test]
fn the_fail_mode_changes_without_touching_entries() {
    let lines = |mode: &str| file(&format!("inactivity-probe = 1\nfail-mode = \"{mode}\""));
    let switch = Switch::of_file(&lines("secure"));
    let mut controller = switch.controller(Version::V1_3);
    controller.send(&add_flow(5, Match::any(), Vec::new()));
    controller.barrier();
    assert_eq!(reload(&switch, &lines("standalone")), ["set: fail-mode"]);
    assert_eq!(controller.flow_stats()[0].priority, 5);
    let priorities = |controller: &mut Controller| {
        controller.flow_stats().iter().map(|flow| flow.priority).collect::<Vec<_>>()
    };
    until("a learning switch", || (priorities(&mut controller) == [0]).then_some(()));
    assert_eq!(reload(&switch, &lines("secure")), ["set: fail-mode"]);
    until("its entry goes", || priorities(&mut controller).is_empty().then_some(()));
    switch.stop();
}

#[test]
fn listeners_come_and_go_with_their_connections() {
    let at = |names: &[&str]| {
        let listen: Vec<String> = names.iter().map(|n| format!("\"punix:FOLDER/{n}\"")).collect();
        format!("control = \"FOLDER/ctl\"\nlisten = [{}]\n", listen.join(", "))
    };
    let switch = Switch::of_file(&at(&["of", "one"]));
    let mut stays = switch.controller(Version::V1_3);
    let mut goes = switch.controller_at("one", Version::V1_3);
    let set = reload(&switch, &at(&["of", "two"]));
    assert_eq!(set.len(), 2, "{set:?}");
    assert!(set[0].starts_with("listener removed: punix:"), "{set:?}");
    assert!(goes.closed().is_empty());
    assert!(!switch.socket("one").exists());
    switch.controller_at("two", Version::V1_3).barrier();
    stays.barrier();
    // A place where nobody can listen changes nothing.
    switch.rewrite(&at(&["of", "none/such"]));
    let (_, why) = switch.ctl_ends(1, &["reload"]);
    assert!(why.contains("listen: ") && why.contains("nothing was changed"), "{why}");
    switch.controller_at("two", Version::V1_3).barrier();
    switch.stop();
}

/// A port of one address is in the way of the same port of all addresses, and the other way round.
#[test]
fn a_listener_gets_another_address_of_its_port() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let at = |host: &str| format!("control = \"FOLDER/ctl\"\nlisten = [\"ptcp:{free}:{host}\"]\n");
    let switch = Switch::of_file(&at("127.0.0.1"));
    let connects = || TcpStream::connect(("127.0.0.1", free)).is_ok();
    for host in ["0.0.0.0", "127.0.0.1"] {
        let set = reload(&switch, &at(host));
        assert_eq!(set.len(), 2, "{set:?}");
        assert_eq!(set[1], format!("listener added: ptcp:{free}:{host}"));
        assert!(connects());
    }
    // An address that is not ours changes nothing.
    switch.rewrite(&at("192.0.2.1"));
    let (_, why) = switch.ctl_ends(1, &["reload"]);
    assert!(why.contains("listen: ") && why.contains("nothing was changed"), "{why}");
    assert!(connects());
    switch.stop();
}

fn keys(folder: &Path, name: &str) -> TlsFiles {
    TlsFiles {
        private_key: folder.join(format!("{name}-privkey.pem")),
        certificate: folder.join(format!("{name}-cert.pem")),
        ca_cert: folder.join("cacert.pem"),
    }
}

#[test]
fn other_keys_are_shown_from_then_on() {
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let now = SystemTime::now();
    for folder in &folders {
        pki::init(folder.path(), now).unwrap();
        for name in ["switch", "client"] {
            let request =
                pki::CertificateRequest { name: name.into(), hosts: Vec::new(), days: 30 };
            pki::issue(folder.path(), &request, now).unwrap();
        }
    }
    let lines = |folder: &Path| {
        let TlsFiles { private_key, certificate, ca_cert } = keys(folder, "switch");
        format!(
            "control = \"FOLDER/ctl\"\nlisten = [\"pssl:0:127.0.0.1\"]\n\
             private-key = {private_key:?}\ncertificate = {certificate:?}\nca-cert = {ca_cert:?}\n"
        )
    };
    let switch = Switch::of_file(&lines(folders[0].path()));
    let connect = |folder: &Path| {
        let listening = switch.records(&["list-bridges"])[0]["listening"][0].clone();
        let place: channel::Endpoint = listening.as_str().unwrap().parse().unwrap();
        let tls = Tls::load(keys(folder, "client"), false).unwrap();
        let settings = ClientSettings::of(&[Version::V1_3]).with_answer_deadline(DEADLINE);
        Client::connect(&place.into_active(), settings.with_tls(tls))
    };
    let [one, other] = folders.each_ref().map(|folder| folder.path());
    connect(one).unwrap();
    assert!(connect(other).is_err());
    assert_eq!(reload(&switch, &lines(other)), ["set: private-key"]);
    connect(other).unwrap();
    assert!(connect(one).is_err());
    switch.rewrite(&lines(Path::new("/no/such")));
    let (_, why) = switch.ctl_ends(1, &["reload"]);
    assert!(why.contains("private-key: ") && why.contains("nothing was changed"), "{why}");
    connect(other).unwrap();
    switch.stop();
}

#[test]
fn the_probe_of_a_connection_that_is_up_changes() {
    let switch = Switch::of_file(&file("inactivity-probe = 0"));
    let mut stream = switch.stream();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    let hello = Message::Hello(Hello { versions: Some(VersionBitmap::of(&[Version::V1_3])) });
    stream.write_all(&wire::encode(Version::V1_3, Xid(1), &hello).unwrap()).unwrap();
    let mut next = || {
        let mut frame = vec![0; wire::HEADER_LEN];
        stream.read_exact(&mut frame).unwrap();
        frame.resize(wire::frame_len(&frame).unwrap().unwrap(), 0);
        stream.read_exact(&mut frame[wire::HEADER_LEN..]).unwrap();
        wire::decode(&frame).unwrap().2
    };
    assert!(matches!(next(), Message::Hello(_)));
    until("it is up", || (switch.counter("channel_up") == 1).then_some(()));
    assert_eq!(reload(&switch, &file("inactivity-probe = 1")), ["set: inactivity-probe"]);
    assert!(matches!(next(), Message::EchoRequest(_)));
    switch.stop();
}

/// Attempts an hour apart begin anew with a shorter wait, and auxiliary connections come.
#[test]
fn controllers_are_reached_in_another_way() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("controller");
    let lines = |rest: &str| {
        format!("control = \"FOLDER/ctl\"\ncontroller = [\"unix:{}\"]\n{rest}\n", path.display())
    };
    let switch = Switch::of_file(&lines("max-backoff = 3600"));
    until("an attempt", || (switch.counter("channel_failed") > 0).then_some(()));
    let listener = UnixListener::bind(&path).unwrap();
    assert_eq!(reload(&switch, &lines("max-backoff = 1")), ["set: max-backoff"]);
    let mut main = Controller::greet(listener.accept().unwrap().0, Version::V1_3);
    main.barrier();
    let set = reload(&switch, &lines("max-backoff = 1\nauxiliary = 1"));
    assert_eq!(set, ["set: auxiliary"]);
    assert!(main.closed().is_empty());
    let mut main = Controller::greet(listener.accept().unwrap().0, Version::V1_3);
    let mut auxiliary = Controller::greet(listener.accept().unwrap().0, Version::V1_3);
    main.barrier();
    auxiliary.barrier();
    switch.stop();
}

#[test]
fn the_limit_of_entries_and_the_local_port_change() {
    let switch = Switch::of_file(&file(""));
    let mut controller = switch.controller(Version::V1_3);
    for priority in [1, 2] {
        controller.send(&add_flow(priority, Match::any(), Vec::new()));
    }
    controller.barrier();
    let set = reload(&switch, &file("max-entries = 1\nlocal = \"memory:local-comes\""));
    assert_eq!(set, ["port added: LOCAL=memory:local-comes", "set: max-entries"]);
    assert!(matches!(controller.next().1, Message::PortStatus(_)));
    assert_eq!(controller.port_descs()[0].port_no, PortNo::LOCAL);
    controller.refused(&add_flow(3, Match::any(), Vec::new()), Error::FlowModTableFull);
    assert_eq!(controller.flow_stats().len(), 2, "those beyond the limit stay");
    let set = reload(&switch, &file(""));
    assert_eq!(set, ["port removed: LOCAL", "set: max-entries"]);
    assert!(matches!(controller.next().1, Message::PortStatus(_)));
    controller.send(&add_flow(3, Match::any(), Vec::new()));
    controller.barrier();
    switch.stop();
}
