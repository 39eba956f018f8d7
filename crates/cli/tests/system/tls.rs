//! TLS with other people's programs: Open vSwitch's `ovs-ofctl`, `ovs-testcontroller` and
//! `ovs-vswitchd`, os-ken, and OpenSSL, with certificates of `ovs-pki` and of `weir pki`.
//!
//! Root is not needed. Where a program is missing its test fails and says so; the first step of
//! `cargo xtask test` installs them.

use super::process::{Running, free_port, text, until, weir};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn ended(command: &mut Command) -> Output {
    let name = command.get_program().to_string_lossy().into_owned();
    command
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("{name}: {error}; `cargo xtask test` as root installs it"))
}

fn done(command: &mut Command) -> String {
    let output = ended(command);
    assert!(output.status.success(), "{command:?}: {}", text(&output));
    text(&output)
}

/// Key, certificate and trusted certificate of a side.
#[derive(Clone)]
struct Side {
    key: PathBuf,
    certificate: PathBuf,
    trusted: PathBuf,
}

impl Side {
    /// The options that Weir's and Open vSwitch's programs have in common.
    fn options(&self) -> [String; 3] {
        [
            format!("--private-key={}", self.key.display()),
            format!("--certificate={}", self.certificate.display()),
            format!("--ca-cert={}", self.trusted.display()),
        ]
    }
}

/// The program that made the certificates.
#[derive(Clone, Copy, Debug)]
enum Maker {
    OvsPki,
    WeirPki,
}

/// The switch's and the controller's side.
fn sides(maker: Maker, dir: &Path) -> (Side, Side) {
    let side = |name: &str, trusted: PathBuf| Side {
        key: dir.join(format!("{name}-privkey.pem")),
        certificate: dir.join(format!("{name}-cert.pem")),
        trusted,
    };
    match maker {
        Maker::OvsPki => {
            let pki = format!("--dir={}", dir.join("pki").display());
            let log = format!("--log={}", dir.join("log").display());
            for words in
                [&["init"][..], &["req+sign", "sw", "switch"], &["req+sign", "ctl", "controller"]]
            {
                let mut command = Command::new("ovs-pki");
                done(command.current_dir(dir).args([&pki, &log]).args(words));
            }
            let ca = |who: &str| dir.join("pki").join(who).join("cacert.pem");
            (side("sw", ca("controllerca")), side("ctl", ca("switchca")))
        }
        Maker::WeirPki => {
            for words in [&["init"][..], &["issue", "sw"], &["issue", "ctl"]] {
                done(weir(&["pki", "--dir"]).arg(dir).args(words));
            }
            let ca = dir.join("cacert.pem");
            (side("sw", ca.clone()), side("ctl", ca))
        }
    }
}

/// A switch that listens with TLS, and its port.
fn listening(dir: &Path, side: &Side) -> (Running, String) {
    let mut command = weir(&["switch", "--dpid", "a1", "--port", "null:a"]);
    command.args(["--listen", "pssl:0:127.0.0.1", "--control"]).arg(dir.join("ctl"));
    let switch = Running::start(command.args(side.options()));
    let place = switch.word_after("listening on pssl:");
    (switch, place.split(':').next().unwrap().to_owned())
}

/// A switch that connects to a controller of this machine, until it is connected.
fn connecting(dir: &Path, side: &Side, port: &str) -> Running {
    let mut command = weir(&["switch", "--dpid", "a1", "--port", "null:a", "--controller"]);
    command.arg(format!("ssl:127.0.0.1:{port}")).args(["--max-backoff", "1", "--control"]);
    let switch = Running::start(command.arg(dir.join("ctl")).args(side.options()));
    switch.word_after("connected controller=");
    switch
}

fn ofctl(side: &Side, port: &str, words: &[&str]) -> Command {
    let mut command = Command::new("ovs-ofctl");
    command.args(side.options()).args(words).arg(format!("ssl:127.0.0.1:{port}"));
    command
}

#[test]
fn our_own_switch_and_controller_meet_whoever_listens() {
    let dir = tempfile::tempdir().unwrap();
    let (sw, ctl) = sides(Maker::WeirPki, dir.path());
    let (_listening, port) = listening(dir.path(), &sw);
    let mut command = weir(&["controller", "hub", "--listen", "ssl:127.0.0.1:0", "--connect"]);
    command.arg(format!("ssl:127.0.0.1:{port}"));
    let controller = Running::start(command.args(ctl.options()));
    let place = controller.word_after("listening on ssl:127.0.0.1:");
    controller.word_after("switch 00000000000000a1 is ready");
    let beside = tempfile::tempdir().unwrap();
    let mut second = weir(&["switch", "--dpid", "a2", "--port", "null:a", "--controller"]);
    second.arg(format!("ssl:127.0.0.1:{place}")).arg("--control").arg(beside.path().join("ctl"));
    let _connecting = Running::start(second.args(sw.options()));
    controller.word_after("switch 00000000000000a2 is ready");
}

#[test]
fn a_missing_file_ends_the_start_with_its_option() {
    let dir = tempfile::tempdir().unwrap();
    let (sw, _) = sides(Maker::WeirPki, dir.path());
    let nothing = Side { key: dir.path().join("nothing.pem"), ..sw };
    let listen = ["--listen", "pssl:0:127.0.0.1"];
    for program in [&["switch", "--port", "null:a"][..], &["controller", "hub"]] {
        let output = ended(weir(program).args(listen).args(nothing.options()));
        let printed = text(&output);
        assert_eq!(output.status.code(), Some(1), "{printed}");
        assert!(printed.contains("--private-key") && printed.contains("nothing.pem"), "{printed}");
    }
    let output = ended(weir(&["switch", "--port", "null:a"]).args(listen));
    assert!(text(&output).contains("TLS needs private-key and certificate and ca-cert"));
}

#[test]
#[ignore = "needs Open vSwitch: cargo xtask test as root installs it"]
fn ovs_ofctl_asks_the_switch_with_certificates_of_either_maker() {
    for maker in [Maker::OvsPki, Maker::WeirPki] {
        let dir = tempfile::tempdir().unwrap();
        let (ours, theirs) = sides(maker, dir.path());
        let (_switch, port) = listening(dir.path(), &ours);
        for version in ["OpenFlow10", "OpenFlow13"] {
            let printed = done(&mut ofctl(&theirs, &port, &["-O", version, "show"]));
            assert!(printed.contains("dpid:00000000000000a1"), "{maker:?}: {printed}");
        }
        let mut add = Command::new("ovs-ofctl");
        add.args(theirs.options()).args(["-O", "OpenFlow13", "add-flow"]);
        done(add.arg(format!("ssl:127.0.0.1:{port}")).arg("priority=7,actions=drop"));
        let printed = done(&mut ofctl(&theirs, &port, &["-O", "OpenFlow13", "dump-flows"]));
        assert!(printed.contains("priority=7 actions=drop"), "{printed}");
    }
}

#[test]
#[ignore = "needs Open vSwitch: cargo xtask test as root installs it"]
fn wrong_certificates_are_refused_and_both_logs_say_why() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (ours, theirs) = sides(Maker::OvsPki, dir.path());
    let (_, stranger) = sides(Maker::WeirPki, other.path());
    let (switch, port) = listening(dir.path(), &ours);
    let mixed = Side { trusted: theirs.trusted.clone(), ..stranger };
    let output = ended(&mut ofctl(&mixed, &port, &["-O", "OpenFlow13", "show"]));
    assert!(!output.status.success() && text(&output).contains("unknown ca"), "{}", text(&output));
    switch.word_after("is not signed by the CA in --ca-cert");
    let printed = done(&mut ofctl(&theirs, &port, &["-O", "OpenFlow13", "show"]));
    assert!(printed.contains("OFPT_FEATURES_REPLY"), "others are served: {printed}");
}

#[test]
#[ignore = "needs Open vSwitch and OpenSSL: cargo xtask test as root installs it"]
fn openssl_agrees_on_tls_1_2_and_1_3_and_on_nothing_older() {
    let dir = tempfile::tempdir().unwrap();
    let (ours, theirs) = sides(Maker::OvsPki, dir.path());
    let (_switch, port) = listening(dir.path(), &ours);
    let connect = |version: &str| {
        let mut command = Command::new("openssl");
        command.args(["s_client", version, "-connect", &format!("127.0.0.1:{port}")]);
        command.arg("-CAfile").arg(&theirs.trusted).arg("-cert").arg(&theirs.certificate);
        text(&ended(command.arg("-key").arg(&theirs.key)))
    };
    for (version, name) in [("-tls1_2", "TLSv1.2"), ("-tls1_3", "TLSv1.3")] {
        let printed = connect(version);
        assert!(printed.contains("Verification: OK"), "{printed}");
        assert!(printed.contains(&format!("New, {name}, Cipher is")), "{printed}");
    }
    let printed = connect("-tls1_1");
    assert!(printed.contains("Cipher is (NONE)"), "{printed}");
}

#[test]
#[ignore = "needs Open vSwitch: cargo xtask test as root installs it"]
fn the_switch_serves_ovs_testcontroller() {
    let dir = tempfile::tempdir().unwrap();
    let (ours, theirs) = sides(Maker::OvsPki, dir.path());
    let port = free_port().to_string();
    let mut command = Command::new("ovs-testcontroller");
    command.env("OVS_RUNDIR", dir.path()).arg(format!("pssl:{port}:127.0.0.1"));
    let unixctl = format!("--unixctl={}", dir.path().join("testcontroller.ctl").display());
    let _controller = Running::start(command.args(theirs.options()).arg(unixctl));
    let _switch = connecting(dir.path(), &ours, &port);
    until("the table-miss entry of the controller", || {
        let printed = done(weir(&["ctl", "dump-flows", "--control"]).arg(dir.path().join("ctl")));
        printed.contains("CONTROLLER").then_some(())
    });
}

#[test]
#[ignore = "needs os-ken and Open vSwitch: cargo xtask test as root installs it"]
fn os_ken_serves_the_switch() {
    let dir = tempfile::tempdir().unwrap();
    let (ours, theirs) = sides(Maker::OvsPki, dir.path());
    let port = free_port().to_string();
    let script = dir.path().join("osken_tls.py");
    std::fs::write(&script, OS_KEN_SCRIPT).unwrap();
    let mut command = Command::new(os_ken_python());
    command.arg(&script).arg(&port).args([&theirs.key, &theirs.certificate, &theirs.trusted]);
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    let controller = Running::start(&mut command);
    let _switch = connecting(dir.path(), &ours, &port);
    assert_eq!(controller.word_after("features of "), "161");
}

/// Starts os-ken's own application manager with an application that reports the switch.
const OS_KEN_SCRIPT: &str = r#"
import sys
port, key, certificate, trusted = sys.argv[1:]
from os_ken import cfg
from os_ken.base import app_manager
from os_ken.controller import ofp_event
from os_ken.controller.handler import CONFIG_DISPATCHER, set_ev_cls
from os_ken.ofproto import ofproto_v1_3
import os_ken.controller.controller

class Teller(app_manager.OSKenApp):
    OFP_VERSIONS = [ofproto_v1_3.OFP_VERSION]

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def features(self, ev):
        print(f"features of {ev.msg.datapath_id} ", file=sys.stderr, flush=True)

if __name__ == "__main__":
    cfg.CONF(args=["--ofp-listen-host", "127.0.0.1", "--ofp-ssl-listen-port", port,
                   "--ctl-privkey", key, "--ctl-cert", certificate, "--ca-certs", trusted],
             project="os_ken")
    app_manager.AppManager.run_apps([__file__, "os_ken.controller.ofp_handler"])
"#;

/// The interpreter that has os-ken, in the cache folder.
fn os_ken_python() -> PathBuf {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let cache = std::env::var_os("XDG_CACHE_HOME").filter(|dir| !dir.is_empty());
    let cache = cache.map(PathBuf::from).or_else(home).unwrap();
    cache.join("weir").join("os-ken-4.2.2").join("bin/python")
}

#[test]
#[ignore = "needs Open vSwitch: cargo xtask test as root installs it"]
fn ovs_vswitchd_serves_the_controller() {
    const SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";
    let dir = tempfile::tempdir().unwrap();
    let (theirs, ours) = sides(Maker::OvsPki, dir.path());
    let mut command = weir(&["controller", "learning-switch", "--listen", "ssl:127.0.0.1:0"]);
    let controller = Running::start(command.args(ours.options()));
    let place = controller.word_after("listening on ssl:");
    let at = |name: &str| dir.path().join(name);
    let ovs = |program: &str| {
        let mut command = Command::new(program);
        command.env("OVS_RUNDIR", dir.path()).env("OVS_SYSCONFDIR", dir.path());
        command.env("PATH", format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap()));
        command
    };
    done(ovs("ovsdb-tool").arg("create").arg(at("conf.db")).arg(SCHEMA));
    let socket = at("db.sock");
    let mut server = ovs("ovsdb-server");
    server.arg(at("conf.db")).arg(format!("--remote=punix:{}", socket.display()));
    server.args(["--no-chdir", "-vsyslog:off"]);
    let _server = Running::start(server.arg(format!("--unixctl={}", at("ovsdb.ctl").display())));
    until("the database", || socket.exists().then_some(()));
    let remote = format!("unix:{}", socket.display());
    let vsctl = |words: &[&str]| {
        done(ovs("ovs-vsctl").arg(format!("--db={remote}")).arg("--timeout=20").args(words))
    };
    vsctl(&["--no-wait", "init"]);
    let mut daemon = ovs("ovs-vswitchd");
    daemon.arg(&remote).args(["--no-chdir", "--disable-system", "--enable-dummy", "-vsyslog:off"]);
    daemon.arg(format!("--unixctl={}", at("vswitchd.ctl").display())).args(theirs.options());
    let _daemon = Running::start(&mut daemon);
    let target = format!("ssl:{place}");
    vsctl(&[
        "add-br",
        "br0",
        "--",
        "set",
        "bridge",
        "br0",
        "datapath_type=dummy",
        "other_config:datapath-id=00000000000000b7",
        "--",
        "set-controller",
        "br0",
        &target,
    ]);
    let printed = until("the switch at the controller", || {
        let printed = controller.lines().join("\n");
        printed.contains("00000000000000b7").then_some(printed)
    });
    assert!(printed.contains("ready") || printed.contains("OpenFlow"), "{printed}");
}
