//! A switch in a thread, hosts at its ports, and a controller that speaks by the test's script.
//!
//! Every wait has a deadline of many seconds and ends as soon as what it waits for is there.

use std::cell::RefCell;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use client::{Client, ClientSettings};
use netdev::Port;
use openflow::flow::{FlowMod, FlowModCommand, FlowStats, FlowStatsRequest};
use openflow::message::{
    MultipartReply, MultipartReplyBody, MultipartRequest, MultipartRequestBody, PacketOut,
};
use openflow::port::{PortDesc, PortStats};
use openflow::table::TableStats;
use openflow::{Action, Error, Field, Instruction, Match, Message, PortNo, Version, Xid};
use packet::{Batch, PacketBuf};
use switch::config::Config;
use switch::reconcile::RunningSwitch;
use switch::{SwitchArgs, SwitchError, run_until};
use tokio::sync::oneshot;

/// The time that anything may take.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// A frame that is long enough, with a number in it.
pub(crate) fn frame(number: u8) -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5]);
    frame[14] = number;
    frame
}

/// Calls `attempt` until it gives something.
pub(crate) fn until<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + DEADLINE;
    loop {
        if let Some(found) = attempt() {
            return found;
        }
        assert!(Instant::now() < end, "in vain waited for: {what}");
        sleep(Duration::from_millis(5));
    }
}

/// A running switch.
pub(crate) struct Switch {
    thread: Option<JoinHandle<Result<(), SwitchError>>>,
    stop: Option<oneshot::Sender<()>>,
    dir: tempfile::TempDir,
    /// Those that are not taken yet. A port without its host has no link.
    hosts: RefCell<Vec<Option<Host>>>,
}

/// The line by which a switch speaks 1.4 too.
pub(crate) const WITH_1_4: &str = "protocols = [\"OpenFlow13\", \"OpenFlow14\"]\n";

/// The line by which a switch speaks 1.4 and 1.5 too.
pub(crate) const WITH_1_5: &str = "protocols = [\"OpenFlow13\", \"OpenFlow14\", \"OpenFlow15\"]\n";

impl Switch {
    /// A switch with that many memory ports, that listens, of these further lines of TOML.
    pub(crate) fn start(ports: usize, toml: &str) -> Self {
        let (specs, hosts) = memory_ports(ports);
        Self::with_ports(&specs, hosts, toml)
    }

    /// A switch without tables, of these lines of TOML.
    pub(crate) fn wired(ports: usize, toml: &str) -> Self {
        let (specs, hosts) = memory_ports(ports);
        Self::begin(&specs, hosts, false, toml)
    }

    /// A switch with ports of any kind.
    pub(crate) fn with_ports(specs: &str, hosts: Vec<Option<Host>>, toml: &str) -> Self {
        Self::begin(specs, hosts, true, toml)
    }

    /// A switch without tables, with ports of any kind.
    pub(crate) fn wired_ports(specs: &str, toml: &str) -> Self {
        Self::begin(specs, Vec::new(), false, toml)
    }

    fn begin(specs: &str, hosts: Vec<Option<Host>>, listens: bool, toml: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().display();
        let listen = if listens { format!("\"punix:{path}/of\"") } else { String::new() };
        let text = format!(
            "dpid = \"a1\"\nport = [{specs}]\nlisten = [{listen}]\n\
             control = \"{path}/ctl\"\n{toml}"
        );
        Self::run(dir, &text, hosts)
    }

    /// A switch of several bridges with that many memory ports, whose hosts are returned: options
    /// for all, and the tables that are made of a folder and the ports' specs.
    pub(crate) fn of_tables(
        ports: usize,
        options: &str,
        tables: impl FnOnce(&str, &[String]) -> String,
    ) -> (Self, Vec<Host>) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().display().to_string();
        let (specs, hosts) = memory_ports(ports);
        let specs: Vec<String> =
            specs.split(',').map(|spec| spec.trim_matches('"').to_owned()).collect();
        let text = format!("control = \"{path}/ctl\"\n{options}\n{}", tables(&path, &specs));
        (Self::run(dir, &text, Vec::new()), hosts.into_iter().flatten().collect())
    }

    /// A switch of these lines, with `FOLDER` for its folder, and a part of the process that
    /// changes it.
    pub(crate) fn driven<D: Future<Output = ()> + 'static>(
        edit: impl FnOnce(&mut Config),
        toml: &str,
        drive: impl FnOnce(RunningSwitch) -> D + Send + 'static,
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let text = in_folder(&format!("control = \"FOLDER/ctl\"\n{toml}"), dir.path());
        let mut config = switch::parse_config(&text).unwrap().resolve().unwrap();
        edit(&mut config);
        Self::spawn(dir, Vec::new(), |stop| switch::run_driven_until(config, stop, drive))
    }

    fn run(dir: tempfile::TempDir, text: &str, hosts: Vec<Option<Host>>) -> Self {
        let config: Config = switch::parse_config(text).unwrap().resolve().unwrap();
        Self::spawn(dir, hosts, |stop| run_until(config, stop))
    }

    /// A switch of a file in its folder, which may be reloaded: these lines, with `FOLDER` for the
    /// folder.
    pub(crate) fn of_file(toml: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let args = SwitchArgs { config: Some(dir.path().join("toml")), ..SwitchArgs::default() };
        std::fs::write(dir.path().join("toml"), in_folder(toml, dir.path())).unwrap();
        Self::spawn(dir, Vec::new(), |stop| switch::run_args_until(args, stop))
    }

    /// Writes the file of [`Switch::of_file`] anew.
    pub(crate) fn rewrite(&self, toml: &str) {
        std::fs::write(self.socket("toml"), in_folder(toml, self.dir.path())).unwrap();
    }

    fn spawn(
        dir: tempfile::TempDir,
        hosts: Vec<Option<Host>>,
        run: impl FnOnce(Stop) -> Result<(), SwitchError> + Send + 'static,
    ) -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        let stopped: Stop = Box::new(move || {
            Ok(Box::pin(async {
                // A message or the end of the test: both mean stop.
                let _ = stopped.await;
            }))
        });
        let thread = std::thread::spawn(move || run(stopped));
        let switch =
            Self { thread: Some(thread), stop: Some(stop), dir, hosts: RefCell::new(hosts) };
        until("the switch is ready", || {
            let ended = switch.thread.as_ref().is_some_and(JoinHandle::is_finished);
            assert!(!ended, "the switch has ended");
            // Answered once everything listens.
            switch.can_ctl(&["list-bridges"]).then_some(())
        });
        switch
    }

    pub(crate) fn socket(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The host at a port, numbered from 1.
    pub(crate) fn host(&self, port: usize) -> Host {
        self.hosts.borrow_mut()[port - 1].take().expect("a host is taken once")
    }

    /// The hosts at the first ports, taken earlier: their links stay up as long as the switch runs.
    pub(crate) fn keep(&self, hosts: impl IntoIterator<Item = Host>) {
        for (place, host) in self.hosts.borrow_mut().iter_mut().zip(hosts) {
            *place = Some(host);
        }
    }

    /// A controller whose hello has `version`.
    pub(crate) fn controller(&self, version: Version) -> Controller {
        self.controller_at("of", version)
    }

    /// A controller of the bridge that listens at the socket of this name.
    pub(crate) fn controller_at(&self, socket: &str, version: Version) -> Controller {
        let path = self.socket(socket);
        let stream = until("the switch accepts", || UnixStream::connect(&path).ok());
        Controller::greet(stream, version)
    }

    /// A bare connection.
    pub(crate) fn stream(&self) -> UnixStream {
        let stream = UnixStream::connect(self.socket("of")).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream
    }

    /// Whether the switch still serves: a fresh controller gets its features.
    pub(crate) fn assert_serves(&self) {
        let mut controller = self.controller(Version::V1_3);
        let reply = controller.request(&Message::FeaturesRequest);
        assert!(matches!(reply, Message::FeaturesReply(_)), "{reply:?}");
    }

    /// `weir ctl`, which must succeed: its output.
    pub(crate) fn ctl(&self, arguments: &[&str]) -> String {
        self.ctl_ends(0, arguments).0
    }

    /// `weir ctl --json`, which must succeed: the records of its output.
    pub(crate) fn records(&self, arguments: &[&str]) -> Vec<serde_json::Value> {
        let out = self.ctl(&[&["--json"], arguments].concat());
        out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Whether `weir ctl` succeeds.
    pub(crate) fn can_ctl(&self, arguments: &[&str]) -> bool {
        self.try_ctl(arguments).0 == ended_with(0)
    }

    /// `weir ctl`, which must fail: its output and errors.
    pub(crate) fn ctl_fails(&self, arguments: &[&str]) -> (String, String) {
        let (code, out, err) = self.try_ctl(arguments);
        assert_ne!(code, ended_with(0), "{arguments:?}: {out}");
        (out, err)
    }

    fn try_ctl(&self, arguments: &[&str]) -> (String, String, String) {
        let path = self.socket("ctl").display().to_string();
        ctl(&[&["--control", &path], arguments].concat())
    }

    /// `weir ctl` that must end with this exit code: its output and errors.
    pub(crate) fn ctl_ends(&self, exit_code: u8, arguments: &[&str]) -> (String, String) {
        let (code, out, err) = self.try_ctl(arguments);
        assert_eq!(code, ended_with(exit_code), "{arguments:?}: {out} {err}");
        (out, err)
    }

    /// A counter by name.
    pub(crate) fn counter(&self, name: &str) -> u64 {
        self.counter_by(&[], name)
    }

    /// A counter of a bridge by name.
    pub(crate) fn counter_of(&self, bridge: &str, name: &str) -> u64 {
        self.counter_by(&["--bridge", bridge], name)
    }

    fn counter_by(&self, bridge: &[&str], name: &str) -> u64 {
        let records = self.records(&[bridge, &["counters"]].concat());
        records.iter().find(|record| record["name"] == name).unwrap()["value"].as_u64().unwrap()
    }

    /// Ends the switch; it must end well.
    pub(crate) fn stop(mut self) {
        drop(self.stop.take());
        self.thread.take().unwrap().join().unwrap().unwrap();
        assert!(!self.socket("ctl").exists() && !self.socket("of").exists(), "sockets are left");
    }
}

/// `weir ctl`: the exit code as [`ended_with`] writes it, and what it printed on output and errors.
pub(crate) fn ctl(arguments: &[&str]) -> (String, String, String) {
    #[derive(clap::Parser)]
    struct Parsed {
        #[command(flatten)]
        ctl: ctl::CtlArgs,
    }
    let words = std::iter::once("ctl").chain(arguments.iter().copied());
    let parsed = <Parsed as clap::Parser>::try_parse_from(words).unwrap();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = ctl::run(&parsed.ctl, None, &mut out, false, &mut err);
    (format!("{code:?}"), String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
}

/// An exit code as a text; there is no other way to look into one.
pub(crate) fn ended_with(exit_code: u8) -> String {
    format!("{:?}", std::process::ExitCode::from(exit_code))
}

fn in_folder(toml: &str, folder: &Path) -> String {
    toml.replace("FOLDER", &folder.display().to_string())
}

/// The end of a switch's run.
type Stop = Box<dyn FnOnce() -> io::Result<Pin<Box<dyn Future<Output = ()>>>> + Send>;

impl Drop for Switch {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            if !std::thread::panicking() {
                ended.unwrap().unwrap();
            }
        }
    }
}

/// The specs of fresh memory ports, and the hosts at them.
fn memory_ports(ports: usize) -> (String, Vec<Option<Host>>) {
    static SWITCHES: AtomicU32 = AtomicU32::new(0);
    let number = SWITCHES.fetch_add(1, Ordering::Relaxed);
    let names: Vec<String> = (1..=ports).map(|port| format!("s{number}p{port}")).collect();
    let hosts = names.iter().map(|name| Host::open(&format!("memory:{name}?end=b")));
    let hosts = hosts.map(Some).collect();
    let specs: Vec<String> = names.iter().map(|name| format!("\"memory:{name}\"")).collect();
    (specs.join(","), hosts)
}

/// The other end of a port.
pub(crate) struct Host {
    port: Port,
    batch: Batch,
}

impl Host {
    pub(crate) fn open(spec: &str) -> Self {
        Self { port: netdev::open_text(spec).unwrap(), batch: Batch::default() }
    }

    pub(crate) fn send(&mut self, frame: &[u8]) {
        let frames = [PacketBuf::from_slice(frame)];
        until("room at the port", || (self.port.tx(&frames).unwrap() == 1).then_some(()));
    }

    pub(crate) fn receive(&mut self) -> Vec<u8> {
        until("a frame", || self.poll())
    }

    /// A frame that has come, if any.
    pub(crate) fn poll(&mut self) -> Option<Vec<u8>> {
        if self.batch.is_empty() {
            self.port.rx(&mut self.batch, 32).unwrap();
        }
        let first = self.batch.frames().first().map(|frame| frame.bytes().to_vec());
        self.batch.recycle_front(1);
        first
    }

    /// The number of frames that have come so far.
    pub(crate) fn received(&mut self) -> usize {
        self.batch.clear();
        self.port.rx(&mut self.batch, 32).unwrap()
    }
}

/// A controller by script.
pub(crate) struct Controller {
    client: Client,
    pub(crate) version: Version,
}

impl Controller {
    /// Says hello in `version` and takes the switch's.
    pub(crate) fn greet(stream: UnixStream, version: Version) -> Self {
        let mut settings = ClientSettings::of(&[version]).with_answer_deadline(DEADLINE);
        settings.connection.hello_deadline = DEADLINE;
        // Nothing goes to the switch but what the test sends.
        settings.connection.probe_after = None;
        Self { client: Client::over_unix(stream, "the switch", settings).unwrap(), version }
    }

    /// Sends bytes; a test that sends the last ones of a connection sees what came of it later.
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.client.send_bytes(bytes).unwrap();
    }

    /// Sends bytes, unless the switch has closed the connection already.
    pub(crate) fn try_raw(&mut self, bytes: &[u8]) -> Result<(), client::ClientError> {
        self.client.send_bytes(bytes)
    }

    /// Sends under a fresh xid.
    pub(crate) fn send(&mut self, message: &Message) -> Xid {
        self.client.send(message).unwrap()
    }

    /// The next frame; `None` when the switch has closed the connection.
    pub(crate) fn frame(&mut self) -> Option<Vec<u8>> {
        self.client.next_frame().unwrap()
    }

    /// The next message; echo requests of the switch are answered and left out.
    pub(crate) fn next(&mut self) -> (Xid, Message) {
        let frame = self.frame().expect("the switch closed the connection");
        let (version, xid, message) = wire::decode(&frame).unwrap();
        assert_eq!(version, self.version);
        (xid, message)
    }

    /// Sends and waits for what has the same xid; what comes before must be nothing else.
    pub(crate) fn request(&mut self, message: &Message) -> Message {
        let xid = self.send(message);
        let (got, reply) = self.next();
        assert_eq!(got, xid, "{reply:?}");
        reply
    }

    /// The whole answer to a multipart request.
    pub(crate) fn multipart(&mut self, body: MultipartRequestBody) -> MultipartReplyBody {
        let request = MultipartRequest { more: false, body };
        match self.request(&Message::MultipartRequest(request)) {
            Message::MultipartReply(reply) => {
                assert!(!reply.more, "more parts than the test wants");
                reply.body
            }
            other => panic!("{other:?}"),
        }
    }

    /// The statistics of all flow entries.
    pub(crate) fn flow_stats(&mut self) -> Vec<FlowStats> {
        match self.multipart(MultipartRequestBody::Flow(FlowStatsRequest::all())) {
            MultipartReplyBody::Flow(entries) => entries,
            other => panic!("{other:?}"),
        }
    }

    /// The statistics of the tables.
    pub(crate) fn table_stats(&mut self) -> Vec<TableStats> {
        match self.multipart(MultipartRequestBody::Table) {
            MultipartReplyBody::Table(tables) => tables,
            other => panic!("{other:?}"),
        }
    }

    /// The statistics of a port, or of all.
    pub(crate) fn port_stats(&mut self, port: PortNo) -> Vec<PortStats> {
        match self.multipart(MultipartRequestBody::PortStats(port)) {
            MultipartReplyBody::PortStats(ports) => ports,
            other => panic!("{other:?}"),
        }
    }

    /// The statistics of all ports, while ports change.
    pub(crate) fn port_stats_amid_changes(&mut self) -> Vec<PortStats> {
        let body = MultipartRequestBody::PortStats(PortNo::ANY);
        let asked = self.send(&Message::MultipartRequest(MultipartRequest { more: false, body }));
        loop {
            match self.next() {
                (_, Message::PortStatus(_)) => {}
                (
                    xid,
                    Message::MultipartReply(MultipartReply {
                        body: MultipartReplyBody::PortStats(ports),
                        ..
                    }),
                ) if xid == asked => return ports,
                other => panic!("{other:?}"),
            }
        }
    }

    /// The descriptions of the ports.
    pub(crate) fn port_descs(&mut self) -> Vec<PortDesc> {
        match self.multipart(MultipartRequestBody::PortDesc) {
            MultipartReplyBody::PortDesc(ports) => ports,
            other => panic!("{other:?}"),
        }
    }

    /// Waits until everything sent before is done; nothing but the barrier's reply may come.
    pub(crate) fn barrier(&mut self) {
        assert_eq!(self.request(&Message::BarrierRequest), Message::BarrierReply);
    }

    /// Sends what must be refused with `error`, quoting the message.
    pub(crate) fn refused(&mut self, message: &Message, error: Error) {
        let xid = self.client.fresh_xid();
        let bytes = wire::encode(self.version, xid, message).unwrap();
        self.raw(&bytes);
        let (got, answer) = self.next();
        assert_eq!(got, xid, "{answer:?}");
        match answer {
            Message::Error(found) => {
                let numbers = (found.error_type, found.code);
                let name = found.error(self.version).map(Error::name);
                assert_eq!(numbers, error.numbers(self.version), "{name:?} for {error:?}");
                assert_eq!(found.data, wire::quote(&bytes));
            }
            other => panic!("{other:?} in place of {error:?}"),
        }
    }

    /// Waits until the switch has closed the connection; the messages that came before.
    pub(crate) fn closed(&mut self) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| self.frame()).collect()
    }
}

/// A flow-mod that adds: priority, match, output port.
pub(crate) fn add_flow(priority: u16, matching: Match, actions: Vec<Action>) -> Message {
    Message::FlowMod(FlowMod {
        priority,
        matching,
        instructions: vec![Instruction::ApplyActions(actions)],
        ..FlowMod::new(FlowModCommand::Add)
    })
}

/// A flow-mod by which one port forwards to another.
pub(crate) fn from_to(from: u32, to: u32) -> Message {
    let matching = Match::any().with(Field::InPort, from.into());
    add_flow(5, matching, vec![Action::output(PortNo(to))])
}

/// A packet-out from the controller.
pub(crate) fn packet_out(port: PortNo, data: Vec<u8>) -> Message {
    let actions = vec![Action::output(port)];
    Message::PacketOut(PacketOut { buffer_id: None, in_port: PortNo::ANY, actions, data })
}
