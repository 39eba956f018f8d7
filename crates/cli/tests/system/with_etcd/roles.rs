//! Roles that apps of a cluster learn of: the decision for them, a hand-over, and a
//! controller beyond the cluster that takes the switch away.

use crate::process::{self, until};
use channel::Endpoint;
use client::{Client, ClientSettings};
use controller::{
    App, AppList, ClusterSettings, Controller, Handle, HandleError, Options, RoleChange, Running,
    Switch,
};
use openflow::flow::{FlowMod, FlowModCommand};
use openflow::message::{ControllerRole, Role};
use openflow::{DatapathId, Message};
use std::process::Command;
use std::sync::{Arc, Mutex};
use testkit::EtcdProcess;

type Notes = Arc<Mutex<Vec<String>>>;

/// Notes what it is told of its switch.
struct Noting(Notes);

impl Noting {
    fn note(&self, what: String) {
        self.0.lock().unwrap().push(what);
    }
}

impl App for Noting {
    fn switch_ready(&mut self, _: &mut Switch) {
        self.note("ready".into());
    }

    fn role_changed(&mut self, _: &mut Switch, change: &RoleChange) {
        self.note(format!("{} ({})", change.role_name(), change.reason.text()));
    }

    fn switch_down(&mut self, _: DatapathId) {
        self.note("down".into());
    }
}

struct Node {
    running: Running,
    handle: Handle,
    notes: Notes,
}

fn node(etcd: &EtcdProcess, name: &str) -> Node {
    let address = format!("etcd:http://{}", etcd.server()).parse().unwrap();
    let settings = ClusterSettings::new(address, "roles".parse().unwrap(), name.parse().unwrap());
    let listen = vec!["ptcp:0:127.0.0.1".parse().unwrap()];
    let options = Options { listen, cluster: Some(settings), ..Options::default() };
    let notes = Notes::default();
    let app = Arc::clone(&notes);
    let apps = AppList::one(move || Noting(Arc::clone(&app)));
    let running = Controller::new(apps, options).unwrap().start(|_| {}).unwrap();
    Node { handle: running.handle().clone(), running, notes }
}

fn has(notes: &Notes, expected: &[&str]) -> Option<()> {
    (*notes.lock().unwrap() == *expected).then_some(())
}

#[test]
#[ignore = "needs etcd: cargo xtask test as root installs it"]
fn with_etcd_apps_learn_which_role_their_controller_has() {
    let etcd = EtcdProcess::start();
    let dir = tempfile::tempdir().unwrap();
    let openflow = dir.path().join("of");
    let nodes = [node(&etcd, "a"), node(&etcd, "b")];
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.args(["switch", "--dpid", "7", "--port", "1=memory:alone", "--control", "none"]);
    for node in &nodes {
        command.arg("--controller").arg(node.running.endpoints()[0].to_string());
    }
    command.args(["--max-backoff", "0.2", "--listen"]);
    let _switch = process::Running::start(command.arg(format!("punix:{}", openflow.display())));
    let dpid = DatapathId(7);
    let is_master = until("a master", || {
        nodes.iter().position(|node| has(&node.notes, &["ready", "master (cluster)"]).is_some())
    });
    let [a, b] = nodes;
    let (first, second) = if is_master == 0 { (a, b) } else { (b, a) };
    assert!(second.notes.lock().unwrap().is_empty(), "a switch of another master is no news");
    // The first hands its switch over and ends.
    first.running.stop().unwrap();
    // The switch may tell it that there is another master before it stands back itself.
    let end = |reason| ["ready", "master (cluster)", reason, "down"];
    let ends = [end("slave (cluster)"), end("slave (master_request)")];
    until("the end of the first", || ends.iter().find_map(|end| has(&first.notes, end)));
    until("another master", || has(&second.notes, &["ready", "master (cluster)"]));
    // One that the cluster does not know of is master now; the switch says so by its refusal.
    let settings = ClientSettings::default();
    let mut stranger = Client::connect(&Endpoint::Unix(openflow), settings).unwrap();
    let ask = |role, generation_id| Message::RoleRequest(Role { role, generation_id });
    let Message::RoleReply(known) = stranger.request(&ask(ControllerRole::NoChange, 0)).unwrap()
    else {
        panic!("no role reply");
    };
    stranger.request(&ask(ControllerRole::Master, known.generation_id + 1)).unwrap();
    let entry = Message::FlowMod(FlowMod::new(FlowModCommand::Add));
    let refused = second.handle.apply_blocking(dpid, vec![entry]).unwrap_err();
    assert!(matches!(refused, HandleError::Refused { .. }), "{refused}");
    let deposed = ["ready", "master (cluster)", "slave (master_request)"];
    until("that the app knows", || has(&second.notes, &deposed));
    second.running.stop().unwrap();
}
