//! `weir switch`: opens everything, runs agent and workers, and closes everything.
//!
//! Ports, listeners and the control socket are open before the switch says `ready`; what cannot be
//! opened ends it with a message that says which and why. SIGTERM and Ctrl-C close the ports (so
//! that TAP devices go and promiscuity ends) and unlink the sockets; so does SIGUSR2, after which a
//! kernel tier that is kept goes on; SIGHUP reloads the file.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use channel::{Endpoint, Listener};
use control::ControlSocket;
use files::raise_open_files;
use netdev::sys::affinity::{allowed_cpus, pin_thread};
use tokio::net::UnixListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;
use tokio::task::LocalSet;

use crate::agent::Bridges;
use crate::assemble::{Assembled, assemble};
use crate::capabilities::give_up_capabilities;
use crate::config::{BridgeConfig, Config, SwitchArgs};
use crate::control::{reload_on_hangup, serve_control};
use crate::error::{SwitchError, failed};
use crate::metrics::serve_metrics;
use crate::reconcile::RunningSwitch;
use crate::rights::Rights;
use crate::serve::{listen, serve_controllers, serve_shards, serve_time};
use crate::worker::Worker;

/// Files of a kernel port: the sockets that send, send super-frames, and ask for its state, its
/// claim, and in the kernel tier a TAP device, three links, promiscuity, a ring and a netlink
/// socket.
const FILES_PER_PORT: usize = 11;
/// Maps of a kernel tier; there is one for each worker of a bridge.
const FILES_PER_TIER: usize = 4;
/// Files of a worker: doorbell, watch, and the link monitor's three sockets and watch.
const FILES_PER_WORKER: usize = 6;
/// Files of the rest: standard streams, the runtime, the control socket and its connections.
const FILES_OF_PROCESS: usize = 64;

/// The longest time that the last counts are waited for.
const SAVE_WITHIN: Duration = Duration::from_secs(5);

/// Listeners that the line names which says that the switch is ready; more are counted.
const LISTENERS_LOGGED: usize = 4;

/// Runs the switch until SIGTERM or Ctrl-C; checks the configuration only, where that is asked. The
/// calling thread and those that it starts have only the capabilities that a switch needs then.
///
/// # Errors
/// A part that could not be opened, or the end of forwarding by itself.
pub fn run(args: SwitchArgs) -> Result<(), SwitchError> {
    if args.check_config {
        let config = args.with_file()?.resolve()?;
        eprintln!("configuration is fine: {}", size_of(&config.bridges));
        return Ok(());
    }
    if args.show_rights {
        let (file, is_json) = (args.config.clone(), args.json);
        let rights = Rights::of(&args.with_file()?.resolve()?, file.as_deref());
        let text = if is_json { format!("{}\n", rights.value()) } else { rights.text() };
        return files::print(&text).map_err(failed("printing the rights"));
    }
    give_up_capabilities().map_err(failed("giving up capabilities"))?;
    run_args_until(args, stop_signal)
}

/// Runs the switch of these arguments, as [`run_until`]; it may be reloaded.
///
/// # Errors
/// As [`run`].
pub fn run_args_until<S: Future<Output = ()>>(
    args: SwitchArgs,
    stop: impl FnOnce() -> io::Result<S>,
) -> Result<(), SwitchError> {
    let config = args.clone().with_file()?.resolve()?;
    run_config(config, Some(args), stop, |_| std::future::ready(()))
}

/// Runs the switch until what `stop` makes, before the switch says that it is ready, is done.
///
/// # Errors
/// As [`run`].
pub fn run_until<S: Future<Output = ()>>(
    config: Config,
    stop: impl FnOnce() -> io::Result<S>,
) -> Result<(), SwitchError> {
    run_driven_until(config, stop, |_| std::future::ready(()))
}

/// Runs the switch as [`run_until`], with a part of the process that changes it: `drive` runs on
/// the agent's thread, from when the switch is ready. The switch may begin without any bridge.
///
/// # Errors
/// As [`run`].
pub fn run_driven_until<S: Future<Output = ()>, D: Future<Output = ()> + 'static>(
    config: Config,
    stop: impl FnOnce() -> io::Result<S>,
    drive: impl FnOnce(RunningSwitch) -> D,
) -> Result<(), SwitchError> {
    run_config(config, None, stop, drive)
}

fn run_config<S: Future<Output = ()>, D: Future<Output = ()> + 'static>(
    config: Config,
    args: Option<SwitchArgs>,
    stop: impl FnOnce() -> io::Result<S>,
    drive: impl FnOnce(RunningSwitch) -> D,
) -> Result<(), SwitchError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(failed("starting the agent"))?;
    check_cores(&config.worker_cores)?;
    // A thousand bridges have more descriptors than a shell lets its programs have at first.
    let limit = raise_open_files().map_err(failed("raising the limit of open files"))?;
    let out_of_files = |error: SwitchError| error.name_open_files(limit, open_files_of(&config));
    // Before anything can be seen of the switch, and before it begins with what it has kept: a stop
    // in the course of the start ends that too.
    let stop = {
        let _runtime = runtime.enter();
        stop().map_err(failed("catching signals"))?
    };
    let control = config.control.as_deref().map(ControlSocket::bind).transpose()?;
    let assembled = assemble(&config).map_err(out_of_files)?;
    let kept = assembled.kept.clone();
    let is_reloaded = args.is_some();
    if let Some(args) = args {
        assembled.bridges.begin_loaded(args, config.clone());
    }
    let local = LocalSet::new();
    let serve = serve(&config, assembled, control, is_reloaded, stop, drive);
    let outcome = runtime.block_on(local.run_until(serve));
    let outcome = outcome.map_err(out_of_files);
    // Peers see the end of their streams; tasks that still run are dropped with the set.
    drop(local);
    kept.iter().for_each(|kept| kept.end());
    outcome
}

async fn serve<D: Future<Output = ()> + 'static>(
    config: &Config,
    assembled: Assembled,
    control: Option<ControlSocket>,
    is_reloaded: bool,
    stop: impl Future<Output = ()>,
    drive: impl FnOnce(RunningSwitch) -> D,
) -> Result<(), SwitchError> {
    let Assembled { bridges, workers, ended, kept } = assembled;
    let mut listeners = Vec::new();
    for agent in bridges.all() {
        let bound = listen(&agent.config(), agent.tls().as_ref()).await;
        listeners.push(bound.map_err(|error| agent.in_bridge(error.into()))?);
    }
    let restart = signal(SignalKind::user_defined2()).map_err(failed("catching signals"))?;
    let hangup = is_reloaded.then(|| signal(SignalKind::hangup())).transpose();
    let hangup = hangup.map_err(failed("catching signals"))?;
    let listener = |socket: &ControlSocket| UnixListener::from_std(socket.listener()?);
    let control_listener = control.as_ref().map(listener).transpose();
    let control_listener = control_listener.map_err(failed("listening on the control socket"))?;
    let threads = start_workers(&config.worker_cores, workers)?;
    let _metrics = config.metrics.map(|at| serve_metrics(at, &bridges)).transpose()?;
    bridges.all().iter().for_each(serve_shards);
    for agent in bridges.all() {
        agent.bridge.barrier().await;
    }
    // Before anybody could see counts that are not whole, or change the entries that they are of.
    if let Some(kept) = &kept {
        kept.take_over(&bridges).await;
        tokio::task::spawn_local(kept.put_off());
    }
    for agent in bridges.all() {
        serve_time(&agent).await;
    }
    // Before the control socket answers.
    let bound = add_listeners(&bridges, listeners);
    if let Some(listener) = control_listener {
        tokio::task::spawn_local(serve_control(Rc::clone(&bridges), listener));
    }
    if let Some(hangup) = hangup {
        tokio::task::spawn_local(reload_on_hangup(Rc::clone(&bridges), hangup));
    }
    // A switch that begins without a bridge is driven, and whoever drives it says when it is ready.
    if !config.bridges.is_empty() {
        log_ready(&bridges, config, &bound);
    }
    bridges.all().iter().for_each(|agent| serve_controllers(agent, Vec::new()));
    tokio::task::spawn_local(drive(RunningSwitch::new(&bridges)));
    let outcome = run_on(stop, restart, &ended).await;
    if outcome.is_ok() {
        save_all(&bridges).await;
    }
    if let (Ok(Ending::Restart), Some(kept)) = (&outcome, &kept) {
        kept.leave();
    }
    let outcome = outcome.map(drop);
    bridges.assembly().stop();
    let joined = tokio::task::spawn_blocking(|| {
        threads.into_iter().map(JoinHandle::join).all(|joined| joined.is_ok())
    });
    match joined.await {
        Ok(true) => outcome,
        Ok(false) | Err(_) => Err(SwitchError::WorkerEnded),
    }
}

/// Has each bridge accept connections at its listeners; the endpoints of all.
fn add_listeners(bridges: &Bridges, listeners: Vec<Vec<(Endpoint, Listener)>>) -> Vec<Endpoint> {
    let mut bound = Vec::new();
    for (agent, listeners) in bridges.all().iter().zip(listeners) {
        for (wanted, listener) in listeners {
            bound.push(listener.endpoint().clone());
            agent.add_listener(wanted, listener);
        }
    }
    bound
}

/// Saves the last counts, so that a start goes on with them.
async fn save_all(bridges: &Bridges) {
    let save = async {
        for agent in bridges.all() {
            agent.bridge.save_counts().await;
        }
    };
    if tokio::time::timeout(SAVE_WITHIN, save).await.is_err() {
        tracing::warn!("the last counts are not saved: a forwarding thread does not answer");
    }
}

/// An end that was asked for.
enum Ending {
    /// For good.
    Stop,
    /// Another process comes at once, for which the kernel tier stays.
    Restart,
}

async fn run_on(
    stop: impl Future<Output = ()>,
    mut restart: Signal,
    ended: &Arc<Notify>,
) -> Result<Ending, SwitchError> {
    tokio::select! {
        () = stop => Ok(Ending::Stop),
        _ = restart.recv() => Ok(Ending::Restart),
        () = ended.notified() => Err(SwitchError::WorkerEnded),
    }
}

/// The line that scripts wait for.
fn log_ready(bridges: &Bridges, config: &Config, listening: &[Endpoint]) {
    let size = size_of(&config.bridges);
    let mut line = match &bridges.all()[..] {
        [only] => format!("weir switch: ready, dpid {}, {size}", only.bridge.dpid()),
        _ => format!("weir switch: ready, {size}"),
    };
    match listening.len() {
        count if count > LISTENERS_LOGGED => line += &format!(", listening on {count} endpoints"),
        _ => {
            for endpoint in listening {
                line += &format!(", listening on {endpoint}");
            }
        }
    }
    if let Some(path) = &config.control {
        line += &format!(", control socket {}", path.display());
    }
    files::log_line(&line);
    for bridge in without_ports(&config.bridges) {
        tracing::warn!(bridge = bridge.name, "no ports: nothing is forwarded; add --port DEVICE");
    }
}

/// The bridges that can forward nothing.
fn without_ports(bridges: &[BridgeConfig]) -> impl Iterator<Item = &BridgeConfig> {
    bridges.iter().filter(|bridge| bridge.ports.is_empty())
}

/// About how many files the switch has open, once all controllers are connected.
fn open_files_of(config: &Config) -> u64 {
    let of_bridge = |bridge: &BridgeConfig| {
        let connections = bridge.controllers.len() * (1 + usize::from(bridge.auxiliary));
        let may_have_tiers = usize::from(bridge.caches.0.kernel);
        let tiers = bridge.ports.len().min(config.workers) * may_have_tiers;
        let devices = bridge.ports.len() * FILES_PER_PORT + tiers * FILES_PER_TIER;
        devices + bridge.listeners.len() + connections
    };
    let bridges: usize = config.bridges.iter().map(of_bridge).sum();
    (bridges + config.workers * FILES_PER_WORKER + FILES_OF_PROCESS) as u64
}

/// The number of ports, and of bridges where there are several.
fn size_of(bridges: &[BridgeConfig]) -> String {
    let ports: usize = bridges.iter().map(|bridge| bridge.ports.len()).sum();
    match bridges.len() {
        1 => format!("{ports} ports"),
        count => format!("{count} bridges, {ports} ports"),
    }
}

fn check_cores(cores: &[usize]) -> Result<(), SwitchError> {
    if cores.is_empty() {
        return Ok(());
    }
    let allowed = allowed_cpus().map_err(failed("asking for the CPUs of this process"))?;
    match cores.iter().find(|cpu| !allowed.contains(cpu)) {
        Some(&cpu) => Err(SwitchError::NoCpu { cpu, allowed }),
        None => Ok(()),
    }
}

fn start_workers(
    cores: &[usize],
    workers: Vec<Worker>,
) -> Result<Vec<JoinHandle<()>>, SwitchError> {
    let mut threads = Vec::new();
    for (index, worker) in workers.into_iter().enumerate() {
        let core = cores.get(index).copied();
        let thread = std::thread::Builder::new().name(format!("worker {index}"));
        let thread = thread.spawn(move || {
            if let Some(cpu) = core
                && let Err(error) = pin_thread(cpu)
            {
                tracing::warn!(cpu, %error, "the forwarding thread is not pinned");
            }
            worker.run();
        });
        threads.push(thread.map_err(failed("starting a forwarding thread"))?);
    }
    Ok(threads)
}

/// Catches SIGTERM and Ctrl-C from now on; what is returned is done when one has come.
pub(crate) fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

#[cfg(test)]
mod tests {
    use super::{open_files_of, without_ports};
    use crate::config::parse_config;

    #[test]
    fn a_bridge_without_ports_is_named() {
        let text = "[[bridge]]\nname = \"a\"\n[[bridge]]\nname = \"b\"\nport = [\"null:x\"]\n";
        let config = parse_config(text).unwrap().resolve().unwrap();
        let named: Vec<&str> = without_ports(&config.bridges).map(|b| b.name.as_str()).collect();
        assert_eq!(named, ["a"]);
    }

    #[test]
    fn open_files_grow_with_ports_and_controllers() {
        let files = |text: &str| open_files_of(&parse_config(text).unwrap().resolve().unwrap());
        let none = files("");
        let two = "port = [\"null:x\", \"null:y\"]\n";
        assert_eq!(files(two), none + 26);
        assert_eq!(files(&format!("{two}workers = 5")), none + 22 + 2 * 4 + 4 * 6);
        assert_eq!(files(&format!("{two}caches = \"frame\"")), none + 22);
        assert_eq!(files("controller = [\"tcp:127.0.0.1\"]\nlisten = [\"ptcp:\"]"), none + 2);
    }
}
