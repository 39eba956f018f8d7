//! The controller under the apps: starts and ends it, and gives out events in batches.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use channel::{DEFAULT_PORT, Endpoint, TlsFiles};
use controller::discovery::{Discovery, DiscoveryConfig, ProbeKey};
use controller::topology::Topology;
use controller::{AppList, Controller, ControllerEvent, Options, Running};
use openflow::{DatapathId, Version};
use pyo3::prelude::{
    Bound, Py, PyAny, PyDictMethods, PyErr, PyListMethods, PyResult, Python, pyclass, pymethods,
};
use pyo3::types::{PyDict, PyList};
use rest::RestServer;
use tokio::sync::oneshot;

use crate::answer::Answered;
use crate::bridge::Bridge;
use crate::discovered::{self, HostTuple, LinkTuple};
use crate::errors::{Class, exception};
use crate::event::{self, Handler};
use crate::live::Live;
use crate::lock::lock;
use crate::packet_in::PacketIn;
use crate::queue::{Queue, Taken, Waiting};
use crate::switch::Switch;
use crate::transport::Connection;
use crate::web::Web;

/// Levels of lines, in the numbers of Python's `logging`.
const DEBUG: u8 = 10;
const INFO: u8 = 20;
const WARNING: u8 = 30;

/// The controller.
#[pyclass(frozen, module = "weir")]
pub(crate) struct Core {
    options: Options,
    /// The store of links and hosts, where they are discovered.
    topology: Option<Arc<Topology>>,
    /// The REST service, if there is one.
    web: Option<Web>,
    server: Mutex<Option<RestServer>>,
    live: Arc<Live>,
    /// The switches that the apps know.
    known: Mutex<BTreeMap<DatapathId, Arc<Connection>>>,
    running: Mutex<Option<Running>>,
    waiter: Mutex<Option<Waiter>>,
}

/// The thread on which answers are awaited.
struct Waiter {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

fn weir_error(what: &str) -> PyErr {
    Python::attach(|py| exception(py, Class::Weir, what))
}

fn endpoints(texts: Vec<String>) -> PyResult<Vec<Endpoint>> {
    let parse = |text: String| {
        text.parse::<Endpoint>().map_err(|error| weir_error(&format!("endpoint {text}: {error}")))
    };
    texts.into_iter().map(parse).collect()
}

fn versions(text: &str) -> PyResult<Vec<Version>> {
    let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
    let parse = |word: &str| {
        Version::from_name(word).ok_or_else(|| {
            let names: Vec<_> = Version::ALL.iter().map(|version| version.name()).collect();
            weir_error(&format!("protocol {word}: Weir speaks {}", names.join(", ")))
        })
    };
    let found: Vec<Version> = words.map(parse).collect::<PyResult<_>>()?;
    Ok(if found.is_empty() { Options::default().versions } else { found })
}

fn seconds(name: &str, value: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(value).map_err(|error| weir_error(&format!("{name}: {error}")))
}

fn address(text: &str) -> PyResult<SocketAddr> {
    let why = |error| weir_error(&format!("metrics: {text}: {error}"));
    controller::parse_metrics_address(text).map_err(why)
}

#[pymethods]
impl Core {
    #[new]
    #[pyo3(signature = (*, listen, connect, protocols="", shards=1, tls=None,
        check_peer_name=false, probe_interval_s=5.0, stats_interval_s=None, debug=false,
        discover=false, rest=None, rest_token_file=None, metrics=None, routes=vec![]))]
    #[expect(clippy::too_many_arguments, reason = "they are the options of a run")]
    fn new(
        listen: Vec<String>,
        connect: Vec<String>,
        protocols: &str,
        shards: usize,
        tls: Option<(String, String, String)>,
        check_peer_name: bool,
        probe_interval_s: f64,
        stats_interval_s: Option<f64>,
        debug: bool,
        discover: bool,
        rest: Option<String>,
        rest_token_file: Option<&str>,
        metrics: Option<&str>,
        routes: Vec<(String, String, String)>,
    ) -> PyResult<Self> {
        let (mut listen, connect) = (endpoints(listen)?, endpoints(connect)?);
        if listen.is_empty() && connect.is_empty() {
            listen.push(Endpoint::PassiveTcp { host: "0.0.0.0".into(), port: DEFAULT_PORT });
        }
        let probe = seconds("probe interval", probe_interval_s)?;
        let stats = stats_interval_s.map(|s| seconds("stats interval", s)).transpose()?;
        let options = Options {
            listen,
            connect,
            tls: tls.map(|(private_key, certificate, ca_cert)| TlsFiles {
                private_key: private_key.into(),
                certificate: certificate.into(),
                ca_cert: ca_cert.into(),
            }),
            check_peer_name,
            versions: versions(protocols)?,
            probe_after: Some(probe).filter(|probe| !probe.is_zero()),
            stats_interval: stats.filter(|interval| !interval.is_zero()),
            metrics: metrics.map(address).transpose()?,
            shards,
            ..Options::default()
        };
        let web = rest.map(|listen| Web::new(listen, rest_token_file, routes)).transpose();
        let web = web.map_err(|error| weir_error(&error))?;
        let queue = Queue::new()?;
        let (waiter, runtime) = Waiter::start()?;
        let live = Live::new(queue, runtime);
        log_into(&live, debug);
        Ok(Self {
            options,
            topology: discover.then(Arc::default),
            web,
            server: Mutex::default(),
            live,
            known: Mutex::default(),
            running: Mutex::new(None),
            waiter: Mutex::new(Some(waiter)),
        })
    }

    /// Serves switches from now on; comes back once they can connect.
    fn start(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let started = py.detach(|| {
            let (live, reporter) = (Arc::clone(&self.live), Arc::clone(&self.live));
            let is_first = AtomicBool::new(true);
            let bridge = AppList::one(move || {
                Bridge::new(Arc::clone(&live), is_first.swap(false, Ordering::Relaxed))
            });
            let apps = match &self.topology {
                Some(topology) => discovery(topology)?.then(bridge),
                None => bridge,
            };
            let apps = match &self.web {
                Some(web) => web.app().then(apps),
                None => apps,
            };
            if let Err(error) = controller::raise_open_files() {
                let line = format!("the limit of open files stays as it is: {error}");
                self.live.queue.line(WARNING, line);
            }
            let controller =
                Controller::new(apps, self.options.clone()).map_err(|error| error.to_string())?;
            if let Some(web) = &self.web {
                let server = web.start(controller.handle(), self.topology.as_ref(), &self.live)?;
                self.live.queue.line(INFO, format!("REST on http://{}", server.address()));
                *lock(&self.server) = Some(server);
            }
            let running = controller.start(move |line| reporter.queue.line(INFO, line.to_owned()));
            running.map_err(|error| error.to_string())
        });
        let running = started.map_err(|error: String| weir_error(&error))?;
        let endpoints = running.endpoints().iter().map(ToString::to_string).collect();
        *lock(&self.running) = Some(running);
        Ok(endpoints)
    }

    /// Serves no switch any more.
    fn stop(&self, py: Python<'_>) {
        let (running, waiter) = (lock(&self.running).take(), lock(&self.waiter).take());
        let server = lock(&self.server).take();
        py.detach(|| {
            drop(server);
            self.live.end();
            // What ended it before was reported as a line.
            drop(running.map(Running::stop));
            if let Some(waiter) = waiter {
                waiter.end();
            }
        });
        for connection in std::mem::take(&mut *lock(&self.known)).into_values() {
            connection.end();
            connection.object().take();
        }
    }

    /// The descriptor that is readable while events wait.
    fn fileno(&self) -> i32 {
        self.live.queue.fileno()
    }

    /// Sets the kinds of events that have a handler.
    fn set_wants(&self, wants: Vec<bool>) {
        let bits = wants.iter().enumerate().filter(|(_, is_wanted)| **is_wanted);
        self.live.queue.set_wants(bits.fold(0, |bits, (kind, _)| bits | 1 << kind));
    }

    /// Up to `limit` events: kind, switch, and value. Packet-ins of one switch in a
    /// row are one item. What is sent is gathered until [`Core::flush`].
    fn take<'py>(&self, py: Python<'py>, limit: usize) -> PyResult<Bound<'py, PyList>> {
        let taken = self.live.queue.take(limit);
        let mut batch = Batch { list: PyList::empty(py), run: None };
        if taken.is_empty() {
            return Ok(batch.list);
        }
        self.live.begin_batch();
        for event in taken {
            match event {
                Taken::Ready(connection) => {
                    batch.end_run()?;
                    lock(&self.known).insert(connection.dpid, Arc::clone(&connection));
                    batch.push(Handler::switch_ready, &connection, py.None().into_bound(py))?;
                }
                Taken::Down(connection) => {
                    batch.end_run()?;
                    connection.end();
                    connection.object().take();
                    lock(&self.known).remove(&connection.dpid);
                    let dpid = connection.dpid.0;
                    batch.list.append((Handler::switch_down as u8, py.None(), dpid))?;
                }
                Taken::Event(Waiting::PacketIn(from, packet_in)) => {
                    batch.packet_in(from, packet_in)?;
                }
                Taken::Event(other) => {
                    batch.end_run()?;
                    batch.event(other)?;
                }
            }
        }
        batch.end_run()?;
        Ok(batch.list)
    }

    /// The calling thread works on a batch from now until it calls [`Core::flush`].
    fn begin(&self) {
        self.live.begin_batch();
    }

    /// The first xid by which answers come to the apps here, and the number of them.
    fn xids(&self) -> (u32, u32) {
        let place = usize::from(self.topology.is_some()) + usize::from(self.web.is_some());
        let first = controller::xid_of_app(place, 1).0;
        (first, controller::xid_of_app(place, u32::MAX).0 - first + 1)
    }

    /// Sends what handlers have sent since [`Core::take`].
    fn flush(&self, py: Python<'_>) {
        py.detach(|| self.live.flush());
    }

    /// The switches that are ready.
    fn switches(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        let known: Vec<Arc<Connection>> = lock(&self.known).values().cloned().collect();
        known.iter().map(|connection| object(py, connection)).collect()
    }

    /// The switch of a datapath id, if it is ready.
    fn switch(&self, py: Python<'_>, dpid: u64) -> PyResult<Option<Py<PyAny>>> {
        let known = lock(&self.known).get(&DatapathId(dpid)).cloned();
        known.map(|connection| object(py, &connection)).transpose()
    }

    /// The links that are known.
    fn links(&self) -> Vec<LinkTuple> {
        let links = self.topology.as_ref().map(|topology| topology.links());
        links.unwrap_or_default().iter().map(discovered::link).collect()
    }

    /// The hosts that are known.
    fn hosts(&self) -> Vec<HostTuple> {
        let hosts = self.topology.as_ref().map(|topology| topology.hosts());
        hosts.unwrap_or_default().iter().map(discovered::host).collect()
    }

    /// Counts since the start.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        let counters = &self.live.queue.counters;
        let stats = self.live.handle().map(controller::Handle::stats).unwrap_or_default();
        for (name, value) in [
            ("switches", stats.switches),
            ("packet_ins", stats.packet_ins),
            ("packet_outs", stats.packet_outs),
            ("flow_mods", stats.flow_mods),
            ("packet_ins_dropped", counters.packet_ins_dropped.load(Ordering::Relaxed)),
            ("events_dropped", counters.events_dropped.load(Ordering::Relaxed)),
            ("unsent", self.live.unsent()),
        ] {
            dict.set_item(name, value)?;
        }
        Ok(dict)
    }
}

/// The app that finds links and hosts, for all shards.
fn discovery(topology: &Arc<Topology>) -> Result<AppList, String> {
    let key = ProbeKey::random().map_err(|error| error.to_string())?;
    let (topology, config) = (Arc::clone(topology), DiscoveryConfig::default());
    Ok(AppList::one(move || Discovery::new(Arc::clone(&topology), key.clone(), config)))
}

/// The apps' object of a connection.
fn object(py: Python<'_>, connection: &Arc<Connection>) -> PyResult<Py<PyAny>> {
    let mut object = connection.object();
    if let Some(object) = &*object {
        return Ok(object.clone_ref(py));
    }
    let made = Py::new(py, Switch::new(Arc::clone(connection)))?.into_any();
    *object = Some(made.clone_ref(py));
    Ok(made)
}

/// A batch in the making.
struct Batch<'py> {
    list: Bound<'py, PyList>,
    /// Packet-ins of one switch.
    run: Option<(Arc<Connection>, Bound<'py, PyList>)>,
}

impl<'py> Batch<'py> {
    fn push(
        &self,
        handler: Handler,
        from: &Arc<Connection>,
        what: Bound<'py, PyAny>,
    ) -> PyResult<()> {
        let py = self.list.py();
        self.list.append((handler as u8, object(py, from)?, what))
    }

    fn packet_in(
        &mut self,
        from: Arc<Connection>,
        packet_in: openflow::message::PacketIn,
    ) -> PyResult<()> {
        let py = self.list.py();
        let packet_in = Bound::new(py, PacketIn::new(packet_in))?;
        match &self.run {
            Some((current, list)) if Arc::ptr_eq(current, &from) => list.append(packet_in),
            Some(_) | None => {
                self.end_run()?;
                let list = PyList::empty(py);
                list.append(packet_in)?;
                self.run = Some((from, list));
                Ok(())
            }
        }
    }

    fn end_run(&mut self) -> PyResult<()> {
        match self.run.take() {
            Some((from, list)) => {
                let py = self.list.py();
                self.list.append((Handler::packet_in as u8, object(py, &from)?, list))
            }
            None => Ok(()),
        }
    }

    fn event(&self, event: Waiting) -> PyResult<()> {
        let py = self.list.py();
        match event {
            Waiting::Event(Some(from), event) => {
                if let ControllerEvent::PortStatus { status, .. } = &event {
                    from.take_port_status(status);
                }
                let handler = Handler::of(&event);
                self.push(handler, &from, event::of_switch(py, &from, event)?)
            }
            Waiting::Event(None, event) => {
                let handler = Handler::of(&event) as u8;
                self.list.append((handler, py.None(), event::of_network(py, &event)?))
            }
            Waiting::Answer(Answered { future, outcome }) => {
                let (is_good, value) = match outcome {
                    Ok(answer) => (true, answer.into_object(py)?),
                    Err(failure) => {
                        let error = failure.exception(py).into_value(py);
                        (false, error.into_bound(py).into_any())
                    }
                };
                self.list.append((Handler::Answer as u8, py.None(), (future, is_good, value)))
            }
            Waiting::Line(level, line) => {
                self.list.append((Handler::Line as u8, py.None(), (level, line)))
            }
            Waiting::Request(request) => {
                let request = Bound::new(py, request)?;
                self.list.append((Handler::Request as u8, py.None(), request))
            }
            Waiting::PacketIn(..) | Waiting::Life(_) => Ok(()),
        }
    }
}

impl Waiter {
    fn start() -> PyResult<(Self, tokio::runtime::Handle)> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::Builder::new().name("answers".into()).spawn(move || {
            // An error says that the other end is gone, which is to stop too.
            let _ = runtime.block_on(stopped);
        })?;
        Ok((Self { stop, thread }, handle))
    }

    fn end(self) {
        // Errors say that it has ended by itself.
        let _ = self.stop.send(());
        drop(self.thread.join());
    }
}

/// The run that gets the lines of `tracing`: the latest.
static LINES: Mutex<Weak<Live>> = Mutex::new(Weak::new());

/// Lines of the crates below go to Python's log.
fn log_into(live: &Arc<Live>, debug: bool) {
    *lock(&LINES) = Arc::downgrade(live);
    let level = if debug { tracing::Level::DEBUG } else { tracing::Level::WARN };
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .without_time()
        .with_level(false)
        .with_max_level(level)
        .with_writer(move || LineWriter { level: if debug { DEBUG } else { WARNING } })
        .finish();
    // Another run of this process has set it already.
    let _ = tracing::subscriber::set_global_default(subscriber);
}

/// Writes lines into the queue.
struct LineWriter {
    level: u8,
}

impl Write for LineWriter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if let Some(live) = lock(&LINES).upgrade() {
            let line = String::from_utf8_lossy(bytes).trim_end().to_owned();
            live.queue.line(self.level, line);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
