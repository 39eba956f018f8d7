//! os-ken's codec in a process of its own, asked about random messages in both directions.
//!
//! Our bytes: os-ken decodes them to the values that we meant, and encodes those to our bytes
//! again. Its bytes, made of the same values in its own words: we decode them to the message and
//! encode them to its bytes. Where os-ken has no decoder or no encoder the other direction counts.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use openflow::message::{MESSAGES, MultipartReply, MultipartReplyBody, MultipartRequestBody};
use openflow::{Message, MessageKind, Version, Xid};
use serde_json::{Value, json};
use testkit::hex;

use super::{Sample, samples};
use crate::{compare, describe};

/// As the command that installs it says.
const OS_KEN: &str = "os-ken-4.2.2";
const PYTHON: &str = "WEIR_OS_KEN_PYTHON";

struct Peer {
    child: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Peer {
    fn start() -> Self {
        let script = testkit::workspace_root().join("crates/wire/tests/codec/peer/osken_peer.py");
        let python = python();
        let mut child = Command::new(&python)
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", python.display()));
        let requests = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().unwrap());
        Self { child, requests, answers }
    }

    fn ask(&mut self, request: &Value) -> Value {
        writeln!(self.requests.as_mut().unwrap(), "{request}").unwrap();
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: `{line}`"))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Without requests it ends by itself.
        drop(self.requests.take());
        let ended = self.child.wait();
        if !std::thread::panicking() {
            assert!(ended.unwrap().success());
        }
    }
}

/// The interpreter that has os-ken: the one named, or that of the cache folder.
fn python() -> PathBuf {
    if let Some(named) = std::env::var_os(PYTHON) {
        return named.into();
    }
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let cache = std::env::var_os("XDG_CACHE_HOME").filter(|dir| !dir.is_empty());
    let cache = cache.map(PathBuf::from).or_else(home).unwrap();
    let found = cache.join("weir").join(OS_KEN).join("bin/python");
    let remedy = "`cargo xtask test --only peers` as root installs it there, or name a Python";
    assert!(found.exists(), "{} is missing; {remedy} in {PYTHON}", found.display());
    found
}

/// Kinds of messages whose values were compared, and whose bytes were.
#[derive(Debug, Default)]
struct Compared {
    values: BTreeSet<(Version, MessageKind)>,
    bytes: BTreeSet<(Version, MessageKind)>,
}

fn check(peer: &mut Peer, sample: &Sample, compared: &mut Compared) -> Result<(), String> {
    let Sample { version, kind, message, .. } = sample;
    let xid = Xid(sample.seed as u32);
    let bytes = wire::encode(*version, xid, message).map_err(|error| error.to_string())?;
    let ours = describe::message(*version, message);
    let reply = peer.ask(&json!({
        "version": version.number(), "xid": xid.0, "hex": hex::digits(&bytes), "json": ours,
    }));
    if !reply["parsed"].is_null() {
        let theirs = compare::of_version(*version, reply["parsed"].clone());
        compare::same("", &ours, &theirs)
            .map_err(|difference| format!("{difference}\nours   {ours}\ntheirs {reply}"))?;
        compared.values.insert((*version, *kind));
    }
    for key in ["again", "built"] {
        let Some(theirs) = reply[key].as_str() else { continue };
        if theirs != hex::digits(&bytes) && !writes_otherwise(message, theirs) {
            return Err(format!("{key}:\nours   {}\ntheirs {theirs}\n{ours}", hex::digits(&bytes)));
        }
        compared.bytes.insert((*version, *kind));
    }
    if reply["parsed"].is_null() && reply["built"].is_null() && !is_lost_on(message) {
        return Err(format!("os-ken can do nothing with it: {}\n{ours}", reply["why"]));
    }
    Ok(())
}

/// Whether the bytes differ by what os-ken 4.2.2 is known to do.
///
/// - A packet-out without actions loses bytes of its packet, because the buffer that the packet is
///   added to is shorter than the message before it.
/// - Table features name fields without the length of the field.
fn writes_otherwise(message: &Message, theirs: &str) -> bool {
    match message {
        Message::PacketOut(packet) => packet.actions.is_empty(),
        Message::MultipartRequest(request)
            if matches!(request.body, MultipartRequestBody::TableFeatures(_)) =>
        {
            let theirs = hex::parse(theirs).unwrap();
            let (version, _, theirs) = wire::decode(&theirs).unwrap();
            describe::message(version, &theirs) == describe::message(version, message)
        }
        _ => false,
    }
}

/// Whether os-ken 4.2.2 is known not to read it: it takes an experimenter's reply for a list of
/// them, each of 16 bytes.
fn is_lost_on(message: &Message) -> bool {
    matches!(
        message,
        Message::MultipartReply(MultipartReply { body: MultipartReplyBody::Experimenter(_), .. })
    )
}

/// Whether it is about flow monitors, which are an experimenter's in these versions, and bytes for
/// os-ken. The vectors of 1.4 have its own.
fn is_of_monitors(message: &Message) -> bool {
    match message {
        Message::MultipartRequest(it) => matches!(it.body, MultipartRequestBody::FlowMonitor(_)),
        Message::MultipartReply(it) => matches!(it.body, MultipartReplyBody::FlowMonitor(_)),
        _ => false,
    }
}

#[test]
#[ignore = "needs os-ken: cargo xtask test as root installs it"]
fn os_ken_reads_what_we_write_and_we_read_what_it_writes() {
    let mut peer = Peer::start();
    let mut compared = Compared::default();
    let samples = samples();
    let mut failures = Vec::new();
    for sample in samples.iter().filter(|sample| !is_of_monitors(&sample.message)) {
        if let Err(failure) = check(&mut peer, sample, &mut compared) {
            failures.push(format!("{}: {failure}", sample.name()));
        }
    }
    let shown = failures.iter().take(10).cloned().collect::<Vec<_>>().join("\n");
    assert!(failures.is_empty(), "{} of {}:\n{shown}", failures.len(), samples.len());
    // A switch's messages are decoded there, a controller's encoded; some are both.
    let (values, bytes) = (&compared.values, &compared.bytes);
    assert!(values.len() >= 30 && bytes.len() >= 36, "{compared:?}");
    for row in MESSAGES {
        for &version in Version::USUAL.iter().filter(|version| row.kind.number(**version).is_some())
        {
            let key = (version, row.kind);
            assert!(values.contains(&key) || bytes.contains(&key), "{key:?} was not compared");
        }
    }
}
