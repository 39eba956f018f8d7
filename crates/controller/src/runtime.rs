//! Runs a controller on real streams: threads, connections, reports.
//!
//! One thread accepts and greets; each shard is a thread of its own, but a single one, which is
//! that same thread. A connection moves to its switch's shard as soon as the switch has sent its
//! datapath id, and never again. So a switch's messages and its apps' state are touched by one
//! thread only. Garbage from one peer ends that peer's connection and nothing else.

mod busy_poll;
mod front;
mod serve;
mod threads;
mod watchdog;

use crate::app::App;
use crate::app_list::AppList;
use crate::blocking::OnShard;
use crate::handle::Handle;
use crate::mastership::Mastership;
use crate::metrics::serve_metrics;
use crate::options::Options;
use crate::shared::{Inbox, Shared};
use crate::stats::Stats;
use channel::{Endpoint, Listener, Tls, TlsError, TransportError, driver};
use metrics::MetricsError;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use threads::ShardThreads;
use tokio::sync::oneshot;
use tokio::task::LocalSet;
use watchdog::Watchdog;

/// Why a controller could not run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An endpoint could not be opened.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// Key or certificates cannot be used.
    #[error("TLS: {0}")]
    Tls(#[from] TlsError),
    /// The system gave no runtime, thread or signals.
    #[error("cannot start: {0}")]
    Start(#[from] std::io::Error),
    /// The controller cannot join its cluster.
    #[error(transparent)]
    Cluster(#[from] cluster::ClusterError),
    /// Metrics cannot be served.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
    /// An app cannot be made.
    #[error(transparent)]
    Apps(#[from] crate::apps::AppsError),
    /// Nothing to do.
    #[error("no endpoint: give --listen or --connect")]
    NoEndpoint,
    /// No version to speak.
    #[error("no protocol version: give --protocols, for example OpenFlow10,OpenFlow13")]
    NoVersion,
    /// More apps than their messages' xids can tell apart.
    #[error("{0} apps are too many: at most {max} run in one controller", max = AppList::APPS_MAX)]
    TooManyApps(usize),
    /// An unusual number of threads.
    #[error("{0} shards: give a number from 1 to {SHARDS_MAX}")]
    Shards(usize),
    /// A handler does not return.
    #[error("a handler of an app does not return; its thread is left behind (the log says which)")]
    Blocked,
    /// The controller's thread has panicked.
    #[error("the controller's thread has panicked; the log says where")]
    Panicked,
}

/// Threads that serve switches, at most.
pub(crate) const SHARDS_MAX: usize = 256;

/// The thread that greets switches and is home to none.
const FRONT: usize = usize::MAX;

/// Wait of the end for threads whose handlers do not return.
const END_DEADLINE: Duration = Duration::from_secs(2);

/// Interval between looks whether a thread has ended.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// Takes lines for people: who connected, rates, failures. Any thread may call it.
pub type StatusWriter = Arc<dyn Fn(&str) + Send + Sync>;

/// A controller that does not run yet: its handle can be given to others before.
pub struct Controller {
    options: Options,
    tls: Option<Tls>,
    shared: Arc<Shared>,
    inboxes: Vec<Inbox>,
    /// The instances of each shard.
    apps: Vec<Vec<Box<dyn App>>>,
}

impl Controller {
    /// A controller of these apps. Certificates are read, instances of the apps made.
    ///
    /// # Errors
    /// When the options cannot be used.
    pub fn new(apps: AppList, options: Options) -> Result<Self, Error> {
        if options.listen.is_empty() && options.connect.is_empty() {
            return Err(Error::NoEndpoint);
        }
        if options.versions.is_empty() {
            return Err(Error::NoVersion);
        }
        if !(1..=SHARDS_MAX).contains(&options.shards) {
            return Err(Error::Shards(options.shards));
        }
        let apps: Vec<_> = (0..options.shards).map(|_| apps.make()).collect();
        if let Some(count) = apps.iter().map(Vec::len).max().filter(|at| *at > AppList::APPS_MAX) {
            return Err(Error::TooManyApps(count));
        }
        let tls = options.tls.clone();
        let tls = tls.map(|files| Tls::load(files, options.check_peer_name)).transpose()?;
        let (shared, inboxes) = Shared::new(&options);
        Ok(Self { options, tls, shared, inboxes, apps })
    }

    /// A handle. Switches are there once the controller runs.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle::new(Arc::clone(&self.shared))
    }

    /// Runs on the calling thread, which is that of the first shard, until `stop` is done. It needs
    /// a tokio runtime with I/O and time. Reports `listening on ...` for every endpoint once
    /// switches can connect, and then what becomes of connections.
    ///
    /// # Errors
    /// When an endpoint cannot be listened on, or at the end a handler does not return. Connections
    /// never end the run.
    pub async fn run(
        self,
        report: StatusWriter,
        stop: impl Future<Output = ()>,
    ) -> Result<Stats, Error> {
        self.run_reporting(report, stop, |_| {}).await
    }

    async fn run_reporting(
        self,
        report: StatusWriter,
        stop: impl Future<Output = ()>,
        on_listening: impl FnOnce(Vec<Endpoint>),
    ) -> Result<Stats, Error> {
        let Self { options, tls, shared, inboxes, apps } = self;
        let ended = End(Arc::clone(&shared));
        let mut listeners = Vec::new();
        for endpoint in &options.listen {
            listeners.push(Listener::bind(endpoint, tls.as_ref()).await?);
        }
        let counted = || Handle::new(Arc::clone(&shared));
        let _metrics = options.metrics.map(|at| serve_metrics(at, counted())).transpose()?;
        let cluster = options.cluster.clone().map(Mastership::start).transpose()?;
        let cluster = cluster.map(|(cluster, mastership)| {
            shared.set_mastership(mastership);
            cluster
        });
        let started = driver::now();
        let _watchdog = Watchdog::start(&shared, &report)?;
        let (migration_inboxes, migrants) = threads::migration_inboxes(apps.len());
        let shards = apps.into_iter().zip(inboxes).zip(migrants);
        let mut shards: Vec<_> = shards.enumerate().collect();
        // A single shard has no thread of its own. Where there are several, an app that blocks one
        // of them must not keep switches from being greeted for the others.
        let own = (shards.len() == 1).then(|| shards.remove(0));
        let shards = shards.into_iter();
        let threads = ShardThreads::start(shards, &shared, &report, started, &migration_inboxes)?;
        let tasks = LocalSet::new();
        let on_shard = OnShard::mark();
        let new_context = |shard, apps| {
            serve::Context::new(&shared, shard, apps, &report, started, &migration_inboxes)
        };
        let context = match own {
            Some((shard, ((apps, inbox), migrants))) => {
                let context = new_context(shard, apps);
                tasks.spawn_local(threads::take_inbox(context.clone(), inbox));
                tasks.spawn_local(threads::adopt_migrants(context.clone(), migrants));
                let polling = context.clone();
                tasks.spawn_local(async move { polling.poll_busily().await });
                context
            }
            None => new_context(FRONT, Vec::new()),
        };
        let active = |listener: &Listener| listener.endpoint().clone().into_active();
        let endpoints: Vec<Endpoint> = listeners.iter().map(active).collect();
        for endpoint in &endpoints {
            report(&format!("listening on {endpoint}"));
        }
        front::spawn(&tasks, &context, listeners, &options, tls);
        on_listening(endpoints);
        drop(on_shard);
        let stop = async {
            stop.await;
            if let Some(cluster) = &cluster {
                // The other nodes take the switches over while they are still served here.
                cluster.leave();
                cluster.left().await;
            }
        };
        serve::run_marked(tasks.run_until(stop)).await;
        drop(tasks);
        drop(context);
        let all_ended = threads.end(END_DEADLINE).await;
        drop(ended);
        if all_ended { Ok(shared.stats()) } else { Err(Error::Blocked) }
    }

    /// Runs on a thread of its own and comes back once switches can connect.
    ///
    /// # Errors
    /// When there is no thread, or an endpoint cannot be listened on.
    pub fn start(self, report: impl Fn(&str) + Send + Sync + 'static) -> Result<Running, Error> {
        let handle = self.handle();
        let (stop, stopped) = oneshot::channel();
        let (is_running, ended) = oneshot::channel();
        let (listening, is_listening) = std::sync::mpsc::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = std::thread::Builder::new().name("controller".into()).spawn(move || {
            let _is_running: oneshot::Sender<()> = is_running;
            let on_listening = move |endpoints| drop(listening.send(endpoints));
            // The other end goes when `Running` is dropped, which is to stop too.
            let stop = async move { drop(stopped.await) };
            runtime.block_on(self.run_reporting(Arc::new(report), stop, on_listening))
        })?;
        match is_listening.recv() {
            Ok(endpoints) => {
                let thread = Mutex::new(Some(thread));
                Ok(Running { handle, endpoints, stop: Some(stop), ended, thread })
            }
            Err(_) => {
                Err(thread.join().map_err(|_| Error::Panicked)?.err().unwrap_or(Error::Panicked))
            }
        }
    }
}

/// Informs handles and watchers that the controller has ended, however it has.
struct End(Arc<Shared>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// A controller that runs on a thread of its own. It ends when this is dropped.
#[derive(Debug)]
pub struct Running {
    handle: Handle,
    endpoints: Vec<Endpoint>,
    stop: Option<oneshot::Sender<()>>,
    /// It fails when the thread has ended.
    ended: oneshot::Receiver<()>,
    thread: Mutex<Option<JoinHandle<Result<Stats, Error>>>>,
}

impl Running {
    /// A handle.
    #[must_use]
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Endpoints to which switches can connect, with the ports that the system chose.
    #[must_use]
    pub fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    /// Whether it still runs.
    #[must_use]
    pub fn is_running(&self) -> bool {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Done when the controller has ended by itself, which only a panic makes it do.
    pub async fn ended(&mut self) {
        let ended = (&mut self.ended).await;
        debug_assert!(ended.is_err(), "nothing is ever sent");
    }

    /// Ends the controller and returns its counts.
    ///
    /// # Errors
    /// The error that ended the run before.
    pub fn stop(mut self) -> Result<Stats, Error> {
        self.end().unwrap_or(Err(Error::Panicked))
    }

    fn end(&mut self) -> Option<Result<Stats, Error>> {
        if let Some(stop) = self.stop.take() {
            // An error says that it has ended by itself.
            stop.send(()).ok();
        }
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let asked = Instant::now();
        while !thread.is_finished() {
            if asked.elapsed() >= 2 * END_DEADLINE && self.handle.has_slow_handler() {
                return Some(Err(Error::Blocked));
            }
            std::thread::sleep(LOOK_AGAIN);
        }
        Some(thread.join().unwrap_or(Err(Error::Panicked)))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// Runs `apps` until `stop` is done: [`Controller::new`] and [`Controller::run`].
///
/// # Errors
/// As those.
pub async fn serve(
    apps: AppList,
    options: &Options,
    report: StatusWriter,
    stop: impl Future<Output = ()>,
) -> Result<Stats, Error> {
    Controller::new(apps, options.clone())?.run(report, stop).await
}
