//! The cases of several controllers, `cases/channel`: each controller sends and receives the
//! messages of the case, in that order.
//!
//! All other cases are played on the datapaths alone, and through the wire by `weir lab check`
//! (`lab_duts` of the crate `cli`).

mod words;

use std::collections::BTreeMap;

use openflow::{Version, Xid};
use testkit::cases::{Case, Step, load_dir};

use crate::harness::{Controller, Host, Switch};

const PORTS: usize = 3;

#[test]
fn the_cases_of_controllers_run() {
    let cases = load_dir(&testkit::cases_dir("channel")).unwrap_or_else(|error| panic!("{error}"));
    assert!(cases.len() >= 47, "only {} cases", cases.len());
    let failures: Vec<String> =
        cases.iter().filter_map(|case| Talk::start().play(case).err()).collect();
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), cases.len(), failures.join("\n"));
}

/// A controller and its messages, by transaction number.
struct Peer {
    controller: Controller,
    sent: BTreeMap<Xid, Vec<u8>>,
    next_xid: u32,
}

struct Talk {
    hosts: Vec<Host>,
    peers: BTreeMap<String, Peer>,
    switch: Switch,
}

impl Talk {
    /// A switch of three ports without a controller.
    fn start() -> Self {
        let switch = Switch::start(PORTS, "");
        let hosts = (1..=PORTS).map(|port| switch.host(port)).collect();
        Self { hosts, peers: BTreeMap::new(), switch }
    }

    /// Plays the case.
    ///
    /// # Errors
    /// File, line, name, and what was otherwise than the step says.
    fn play(mut self, case: &Case) -> Result<(), String> {
        for (line, step) in &case.steps {
            let place = format!("{}:{line} ({})", case.file.display(), case.name);
            // A connection that says nothing ends the test where it waits; this says where.
            println!("{place}");
            self.step(step).map_err(|failure| format!("{place}: {failure}"))?;
        }
        let names: Vec<String> = self.peers.keys().cloned().collect();
        for name in names {
            self.silent(&name).map_err(|failure| {
                format!(
                    "{}:{} ({}): at the end: {failure}",
                    case.file.display(),
                    case.line,
                    case.name
                )
            })?;
        }
        Ok(())
    }

    fn step(&mut self, step: &Step) -> Result<(), String> {
        match step {
            Step::Talk { what, who, text } => match what.as_str() {
                "connect" => self.connect(who, text),
                "disconnect" => self.peers.remove(who).map(|_| ()).ok_or("it was not there".into()),
                "send" => self.peer(who)?.send(text),
                "receive" => self.peer(who)?.receive(text),
                "silent" => self.silent(who),
                "closed" => self.closed(who),
                other => Err(format!("`{other}` is not played here")),
            },
            Step::In { port, frame } => {
                self.host(*port)?.send(frame);
                Ok(())
            }
            Step::Out { port, queue: None, frame } => {
                let left = self.host(*port)?.receive();
                if left == *frame { Ok(()) } else { Err(format!("left {left:02x?}")) }
            }
            other => Err(format!("{other:?} is not played with controllers")),
        }
    }

    fn host(&mut self, port: u32) -> Result<&mut Host, String> {
        let host = (port as usize).checked_sub(1).and_then(|index| self.hosts.get_mut(index));
        host.ok_or_else(|| format!("there is no port {port}"))
    }

    fn peer(&mut self, who: &str) -> Result<&mut Peer, String> {
        self.peers.get_mut(who).ok_or_else(|| format!("nobody is called {who}"))
    }

    fn connect(&mut self, who: &str, version: &str) -> Result<(), String> {
        let version = Version::from_name(version).ok_or("no such version")?;
        let controller = self.switch.controller(version);
        let peer = Peer { controller, sent: BTreeMap::new(), next_xid: 0x100 };
        self.peers.insert(who.to_owned(), peer);
        Ok(())
    }

    /// Nothing has come but the answer to a barrier.
    fn silent(&mut self, who: &str) -> Result<(), String> {
        let peer = self.peer(who)?;
        peer.send("barrier")?;
        peer.receive("barrier")
    }

    fn closed(&mut self, who: &str) -> Result<(), String> {
        let mut peer = self.peers.remove(who).ok_or("it was not there")?;
        let before = peer.controller.closed();
        if before.is_empty() { Ok(()) } else { Err(format!("before the end came {before:02x?}")) }
    }
}

impl Peer {
    fn send(&mut self, text: &str) -> Result<(), String> {
        let xid = Xid(self.next_xid);
        self.next_xid += 1;
        let bytes = match text.strip_prefix("hex ") {
            Some(digits) => {
                let mut bytes = testkit::hex::parse(digits)?;
                bytes.get_mut(4..8).ok_or("no header")?.copy_from_slice(&xid.0.to_be_bytes());
                bytes
            }
            None => {
                let message = words::message(text)?;
                wire::encode(self.controller.version, xid, &message).map_err(|e| e.to_string())?
            }
        };
        self.controller.raw(&bytes);
        self.sent.insert(xid, bytes);
        Ok(())
    }

    /// The next message is this, and if it answers one of ours it quotes its number, and an error
    /// its bytes.
    fn receive(&mut self, wanted: &str) -> Result<(), String> {
        let (xid, message) = self.controller.next();
        let came = words::describe(self.controller.version, &message);
        let matches = match wanted.strip_suffix('*') {
            Some(beginning) => came.starts_with(beginning),
            None => came == wanted,
        };
        if !matches {
            return Err(format!("`{came}` came"));
        }
        if let openflow::Message::Error(error) = &message {
            let sent = self.sent.get(&xid).ok_or("the error answers nothing that was sent")?;
            if error.data != wire::quote(sent) {
                return Err(format!("it quotes {:02x?} of {sent:02x?}", error.data));
            }
        } else if words::is_reply(&message) && !self.sent.contains_key(&xid) {
            return Err(format!("{came} answers nothing that was sent"));
        }
        Ok(())
    }
}
