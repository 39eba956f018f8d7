//! `weir switch`: opens everything, runs agent and workers, and closes everything.
//!
//! Ports, listeners and the control socket are open before the switch says `ready`; what cannot be
//! opened ends it with a message that says which and why. SIGTERM and Ctrl-C close the ports (so
//! that TAP devices go and promiscuity ends) and unlink the sockets.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;

use channel::{Listener, Tls, TlsError, TransportError};
use datapath::fast::{Control, Tell};
use netdev::PortError;
use netdev::sys::affinity::{allowed_cpus, pin_thread};
use openflow::{DatapathId, MacAddr};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::LocalSet;

use crate::agent::{Agent, Police, accept_all, deliver, keep_connected, keep_up, stand_alone};
use crate::bridge::{Bridge, Identity, PortFacts, QueueFacts};
use crate::config::{
    Config, ConfigError, FailMode, Forward, PortConfig, PortQueues, SwitchArgs, Wire,
};
use crate::control::{ControlSocket, SocketError, serve_control};
use crate::counters::Counters;
use crate::worker::{Clock, Forwarding, Inbox, Outbox, Parts, Shaper, Slot, Spread, Worker};

/// Why the switch did not start, or did not run to its end.
#[derive(Debug, thiserror::Error)]
pub enum SwitchError {
    /// The configuration is wrong.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// A port cannot be opened.
    #[error("port {number}: {source}")]
    Port {
        /// Its number.
        number: openflow::PortNo,
        /// Why.
        source: PortError,
    },
    /// A port has queues but no rate.
    #[error("port {0} has queues, and its device tells no speed: give it one, as --rate {0}=100M")]
    NoRate(openflow::PortNo),
    /// A listener cannot be opened.
    #[error("listen: {0}")]
    Listen(#[from] TransportError),
    /// Key or certificates cannot be used.
    #[error("TLS: {0}")]
    Tls(#[from] TlsError),
    /// The control socket cannot be opened.
    #[error("{0}")]
    Control(#[from] SocketError),
    /// A system call failed.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// A CPU that a worker should have is not there.
    #[error("worker-cores: there is no CPU {cpu} for this process; it has {allowed:?}")]
    NoCpu {
        /// The CPU.
        cpu: usize,
        /// What the process may use.
        allowed: Vec<usize>,
    },
    /// A worker ended by a fault of ours.
    #[error("a forwarding thread has ended unexpectedly")]
    WorkerEnded,
}

fn failed(what: &'static str) -> impl Fn(io::Error) -> SwitchError {
    move |source| SwitchError::Io { what, source }
}

/// Runs the switch until SIGTERM or Ctrl-C; checks the configuration only, where that is asked.
///
/// # Errors
/// What could not be opened, or that forwarding ended by itself.
pub fn run(args: SwitchArgs) -> Result<(), SwitchError> {
    let check_only = args.check_config;
    let config = args.with_file()?.resolve()?;
    if check_only {
        eprintln!("configuration is fine: {} ports", config.ports.len());
        return Ok(());
    }
    run_until(config, stop_signal)
}

/// Runs the switch until what `stop` makes, before the switch says that it is ready, is done.
///
/// # Errors
/// As [`run`].
pub fn run_until<S: Future<Output = ()>>(
    config: Config,
    stop: impl FnOnce() -> io::Result<S>,
) -> Result<(), SwitchError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(failed("starting the agent"))?;
    check_cores(&config.worker_cores)?;
    let tls =
        config.tls.clone().map(|files| Tls::load(files, config.check_peer_name)).transpose()?;
    let control = config.control.as_deref().map(ControlSocket::bind).transpose()?;
    let slots = open_ports(&config.ports)?;
    let counters = Arc::new(Counters::default());
    let (rate, burst) = (config.packet_in_rate, config.packet_in_burst);
    let police = Police::new(rate, burst, Arc::clone(&counters));
    let outbox = Arc::new(Outbox::new(config.packet_in_queue, police));
    let mut slots = slots;
    let queues = shape(&config.queues, &mut slots)?;
    let (bridge, workers) = make_bridge(&config, slots, queues, &outbox, &counters)?;
    let agent = Agent::new(config, tls, counters, outbox, bridge);
    let local = LocalSet::new();
    let run = local.run_until(serve(Rc::new(agent), workers, control, stop));
    let outcome = runtime.block_on(run);
    // Connections are told by the streams' end; tasks that still run are dropped with the set.
    drop(local);
    outcome
}

async fn serve<S: Future<Output = ()>>(
    agent: Rc<Agent>,
    workers: Vec<Worker>,
    control: Option<ControlSocket>,
    stop: impl FnOnce() -> io::Result<S>,
) -> Result<(), SwitchError> {
    let mut listeners = Vec::new();
    for endpoint in &agent.config.listeners {
        listeners.push(Listener::bind(endpoint, agent.tls.as_ref()).await?);
    }
    // Signals are caught before anything can be seen of the switch.
    let stop = stop().map_err(failed("catching signals"))?;
    let threads = start_workers(&agent.config, workers)?;
    let mut delivered = tokio::task::spawn_local(deliver(Rc::clone(&agent)));
    if let Some(socket) = &control {
        let listener = socket.listener().and_then(tokio::net::UnixListener::from_std);
        let listener = listener.map_err(failed("listening on the control socket"))?;
        tokio::task::spawn_local(serve_control(Rc::clone(&agent), listener));
    }
    tokio::task::spawn_local(keep_up(Rc::clone(&agent)));
    agent.bridge.barrier().await;
    tell_ready(&agent, &listeners);
    for listener in listeners {
        tokio::task::spawn_local(accept_all(Rc::clone(&agent), listener));
    }
    for endpoint in agent.config.controllers.clone() {
        tokio::task::spawn_local(keep_connected(Rc::clone(&agent), endpoint));
    }
    match agent.config.fail_mode {
        FailMode::Secure => {}
        FailMode::Standalone => {
            tokio::task::spawn_local(stand_alone(Rc::clone(&agent)));
        }
    }
    let outcome = tokio::select! {
        () = stop => Ok(()),
        _ = &mut delivered => Err(SwitchError::WorkerEnded),
    };
    agent.bridge.stop();
    let joined = tokio::task::spawn_blocking(|| {
        threads.into_iter().map(JoinHandle::join).all(|joined| joined.is_ok())
    });
    match joined.await {
        Ok(true) => outcome,
        Ok(false) | Err(_) => Err(SwitchError::WorkerEnded),
    }
}

/// The line that scripts wait for.
fn tell_ready(agent: &Agent, listeners: &[Listener]) {
    let dpid = agent.bridge.identity.dpid;
    let mut line = format!("weir switch: ready, dpid {dpid}, {} ports", agent.config.ports.len());
    for listener in listeners {
        line += &format!(", listening on {}", listener.endpoint());
    }
    if let Some(path) = &agent.config.control {
        line += &format!(", control socket {}", path.display());
    }
    eprintln!("{line}");
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

fn open_ports(ports: &[PortConfig]) -> Result<Vec<Slot>, SwitchError> {
    let mut slots = Vec::new();
    for PortConfig { number, spec } in ports {
        let slot = Slot::open(*number, spec.clone())
            .map_err(|source| SwitchError::Port { number: *number, source })?;
        for note in &slot.info.notes {
            tracing::info!(port = %number, name = slot.info.name, note, "port opened");
        }
        slots.push(slot);
    }
    Ok(slots)
}

/// Gives ports their queues; what the agent knows of these.
fn shape(wanted: &[PortQueues], slots: &mut [Slot]) -> Result<Vec<QueueFacts>, SwitchError> {
    let mut facts = Vec::new();
    for PortQueues { number, rate_bps, queues } in wanted {
        let Some(slot) = slots.iter_mut().find(|slot| slot.number == *number) else { continue };
        let rate_bps = rate_bps.unwrap_or(slot.info.speed_bps);
        // Everything else was found when the configuration was checked.
        let shaper = Shaper::new(rate_bps, queues).map_err(|_| SwitchError::NoRate(*number))?;
        facts.push(QueueFacts::new(*number, queues.clone(), Arc::clone(shaper.cells())));
        slot.shaper = Some(shaper);
    }
    Ok(facts)
}

/// The bridge and its workers, which are not running yet.
fn make_bridge(
    config: &Config,
    slots: Vec<Slot>,
    queues: Vec<QueueFacts>,
    outbox: &Arc<Outbox>,
    counters: &Arc<Counters>,
) -> Result<(Bridge, Vec<Worker>), SwitchError> {
    let identity = Identity {
        dpid: config.dpid.unwrap_or_else(|| made_dpid(&slots)),
        desc: config.desc.clone(),
    };
    let clock = Clock::begin();
    let ports = slots.iter().map(|slot| PortFacts {
        number: slot.number,
        info: slot.info.clone(),
        settings: openflow::port::PortConfig::empty(),
    });
    let ports: Vec<PortFacts> = ports.collect();
    let mut control = match config.forward {
        Forward::Openflow => Some(Control::new(
            datapath::Config {
                n_tables: config.tables,
                max_entries: config.max_entries,
                ..datapath::Config::default()
            },
            config.workers,
            Tell::Asked,
        )),
        Forward::Wire(_) => None,
    };
    if let Some(control) = &mut control {
        for (port, vlans) in &config.vlans {
            control.port_vlans(*port, vlans.clone());
        }
    }
    let inboxes = (0..config.workers).map(|_| Inbox::new().map(Arc::new));
    let inboxes = inboxes.collect::<io::Result<Vec<_>>>().map_err(failed("making an eventfd"))?;
    let spread = Spread::new(slots, &inboxes, counters);
    let workers = spread.into_workers().enumerate().map(|(index, ports)| {
        Worker::new(Parts {
            index,
            cpu: config.worker_cores.get(index).copied(),
            poll: config.poll,
            clock,
            forwarding: forwarding(config, control.as_ref(), index),
            ports,
            inbox: Arc::clone(&inboxes[index]),
            outbox: Arc::clone(outbox),
            counters: Arc::clone(counters),
        })
    });
    let workers = workers.collect();
    let bridge = Bridge::new(identity, clock, control, inboxes, ports, Arc::clone(counters));
    Ok((bridge.with_queues(queues), workers))
}

fn forwarding(config: &Config, control: Option<&Control>, index: usize) -> Forwarding {
    match (config.forward, control) {
        (Forward::Wire(wire), _) => Forwarding::Wire(wire),
        (Forward::Openflow, Some(control)) => {
            // Nobody outside knows the seed, which keeps packets from being chosen to collide.
            let seed = RandomState::new().hash_one(index);
            let mut forwarder = control.forwarder(index, seed);
            forwarder.set_caches(config.caches.0);
            Forwarding::Tables(Box::new(forwarder))
        }
        (Forward::Openflow, None) => Forwarding::Wire(Wire::Io),
    }
}

fn start_workers(
    config: &Config,
    workers: Vec<Worker>,
) -> Result<Vec<JoinHandle<()>>, SwitchError> {
    let mut threads = Vec::new();
    for (index, worker) in workers.into_iter().enumerate() {
        let core = config.worker_cores.get(index).copied();
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

/// A datapath id from the first port's address; 1 for a switch without ports.
fn made_dpid(slots: &[Slot]) -> DatapathId {
    let mac = slots.first().map(|slot| MacAddr(slot.info.mac).to_u64());
    DatapathId(mac.filter(|mac| *mac != 0).unwrap_or(1))
}

/// Catches SIGTERM and Ctrl-C from now on; what is returned is done when one has come.
fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
