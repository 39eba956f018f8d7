//! A switch of a user's, `--dut NAME=PROGRAM`: programs that answer the contract of the
//! environment, and programs that do what they like.
//!
//! It must never look at how fast something is.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use testkit::{marked_processes, network_devices};

use crate::lab_duts::{FLOWS, cannot, cell, forwards};

const MARKER: &str = "WEIR_TEST_PROGRAM";

/// A program of `contrib/peers`.
fn peer(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/peers").join(name)
}

fn word(program: &Path) -> String {
    format!("mine={}", program.display())
}

/// A script in `folder`; `$PEERS` in its text are the programs of `contrib/peers`.
fn script(folder: &Path, text: &str) -> PathBuf {
    let path = folder.join("switch.sh");
    let text = text.replace("$PEERS", &peer("").display().to_string());
    let weir = env!("CARGO_BIN_EXE_weir");
    std::fs::write(&path, format!("#!/bin/bash\nexport WEIR={weir}\n{text}\n")).expect("a script");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("a mode");
    path
}

#[test]
#[ignore = "needs root"]
fn a_program_is_a_switch_with_all_that_it_is_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let weir = word(&script(folder.path(), "exec $PEERS/weir-dut.sh"));
    let ovs = word(&peer("ovs-private.sh"));
    for dut in [&weir, &ovs] {
        for settings in [
            FLOWS.to_owned(),
            format!("version = \"1.0\"\n{FLOWS}"),
            "forwarding = \"learning\"".to_owned(),
            "forwarding = \"controller\"".to_owned(),
        ] {
            let cell = forwards(dut, &settings, &[]);
            assert_eq!(cell["dut"], "mine", "its name in the tables");
        }
    }
    forwards(&weir, &format!("workers = 2\n{FLOWS}"), &[]);
    // The program that forwards is a child of the script's, and watched as the switch.
    let cell = forwards(&ovs, FLOWS, &[]);
    let programs = cell["trials"][0]["load"]["processes"].as_array().expect("programs");
    let switch: Vec<&Value> = programs.iter().filter(|one| one["role"] == "switch").collect();
    assert!(switch.len() >= 3, "the script, a database and a daemon: {switch:?}");
}

#[test]
#[ignore = "needs root"]
fn a_program_says_that_it_cannot_and_why() {
    let ovs = word(&peer("ovs-private.sh"));
    cannot(&ovs, &format!("workers = 2\n{FLOWS}"), "main thread");
    cannot(&ovs, "forwarding = \"io\"", "flow tables or to learn");
    cannot(&ovs, &format!("bridges = 2\n{FLOWS}"), "one bridge");
    for (name, reason) in [("bofuss.sh", "BOFUSS=FOLDER"), ("lagopus.sh", "LAGOPUS=PATH")] {
        cannot(&word(&peer(name)), FLOWS, reason);
    }
}

#[test]
#[ignore = "needs root"]
fn a_program_that_misbehaves_is_named_and_leaves_nothing() {
    let before = network_devices();
    let deaf = "trap '' TERM\nsetsid sleep 1000 &\n$PEERS/weir-dut.sh &\nwait\nsleep 1000";
    for (text, state, reason) in [
        ("echo no licence; exit 3", "failed", "no licence"),
        ("exit 77", "not_supported", "no reason"),
        ("sleep 1000 & exit 0", "failed", "ended early"),
        ("exec sleep 1000", "failed", "did not connect to tcp:10.255.0.2:6653"),
        (deaf, "measured", ""),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let marker = format!("{}-{state}", std::process::id());
        let text = format!("export {MARKER}={marker}\n{text}");
        let cell = cell(&word(&script(folder.path(), &text)), FLOWS, &[]);
        assert_eq!(cell["state"], state, "{text}: {cell}");
        assert!(cell["reason"].as_str().unwrap_or_default().contains(reason), "{text}: {cell}");
        assert_eq!(marked_processes(MARKER, &marker), Vec::<String>::new(), "{text}");
    }
    assert_eq!(network_devices(), before);
}

/// The programs' own arguments, with programs in their place that only say what they got.
#[test]
fn switches_that_have_to_be_built_get_their_ports() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in [
        ("lagopus", "#!/bin/sh\ncat \"$3\"\n"),
        ("ofdatapath", "#!/bin/sh\necho \"$@\"\n"),
        // It runs until the script ends it.
        ("ofprotocol", "#!/bin/sh\nexec sleep 1000\n"),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("a program");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("a mode");
    }
    // The datapath's socket is there at once.
    let socket = folder.path().join("datapath.sock");
    let _socket = std::os::unix::net::UnixListener::bind(socket).expect("a socket");
    let run = |name: &str| {
        let output = Command::new(peer(name))
            .env("LAGOPUS", folder.path().join("lagopus"))
            .env("BOFUSS", folder.path())
            .env("DUT_DIR", folder.path())
            .env("DUT_PORTS", "sw-h1 sw-h2")
            .env("DUT_CONTROLLER", "tcp:10.255.0.2:6653")
            .output();
        String::from_utf8(output.expect("it starts").stdout).expect("text")
    };
    let lagopus = run("lagopus.sh");
    for part in [
        "channel c create -dst-addr 10.255.0.2 -dst-port 6653 -protocol tcp\n",
        "interface i2 create -type ethernet-rawsock -device sw-h2\n",
        "bridge b create -controller o -port p1 1 -port p2 2 -dpid 0x0000000000000001 ",
    ] {
        assert!(lagopus.contains(part), "{part}: {lagopus}");
    }
    let bofuss = run("bofuss.sh");
    assert!(bofuss.contains("-d 000000000001 --interfaces=sw-h1,sw-h2 punix:"), "{bofuss}");
}
