//! Answers to requests.

use std::collections::BTreeSet;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use generator::profile::{Profile, StreamSpec};
use generator::session::{Session, StartOptions};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};

use super::words::{GeneratorCommand, GivenStream};
use crate::interrupt::{ASK_EVERY, Interrupt};

/// The session that all connections share, and the streams of its ports as they were added.
pub(super) struct Served {
    session: Session,
    port_count: usize,
    profile: Profile,
}

impl Served {
    pub(super) fn new(session: Session) -> Self {
        let port_count = session.port_count();
        Self { session, port_count, profile: Profile::default() }
    }

    /// Stops every port.
    pub(super) fn stop_all(&mut self) {
        let all: Vec<usize> = (0..self.port_count).collect();
        // A port that has gone has stopped.
        let _ = self.session.stop(&all);
    }

    /// The ports that are meant.
    fn ports(&self, wanted: &Option<Vec<usize>>) -> Result<Vec<usize>, String> {
        let count = self.port_count;
        let Some(ports) = wanted else { return Ok((0..count).collect()) };
        if ports.is_empty() {
            return Err("ports: none is named; leave \"ports\" out for all of them".to_owned());
        }
        ports.iter().try_for_each(|port| self.check_port(*port))?;
        let mut known = BTreeSet::new();
        match ports.iter().find(|port| !known.insert(**port)) {
            Some(port) => Err(format!("ports: {port} is named twice")),
            None => Ok(ports.clone()),
        }
    }

    fn check_port(&self, port: usize) -> Result<(), String> {
        let count = self.port_count;
        if port < count {
            return Ok(());
        }
        Err(format!("port {port}: there are {count} ports, numbered from 0"))
    }

    /// Those of the ports that have streams.
    fn loaded(&self, wanted: &Option<Vec<usize>>) -> Result<Vec<usize>, String> {
        let has = |port: &usize| self.profile.streams.iter().any(|stream| stream.port == *port);
        let ports: Vec<usize> = self.ports(wanted)?.into_iter().filter(has).collect();
        if ports.is_empty() { Err("these ports have no streams".to_owned()) } else { Ok(ports) }
    }

    /// Puts `streams` in place of those that are there; the session has them or stays as it is.
    fn load(&mut self, streams: Vec<StreamSpec>) -> Result<(), String> {
        let profile = Profile { streams }.named().map_err(|error| error.to_string())?;
        let changed = |port: &usize| profile.of_port(*port) != self.profile.of_port(*port);
        let ports: Vec<usize> = (0..self.port_count).filter(changed).collect();
        for (place, port) in ports.iter().enumerate() {
            if let Err(error) = self.session.load(*port, &profile.of_port(*port)) {
                for done in &ports[..place] {
                    // What was loaded before is right.
                    let _ = self.session.load(*done, &self.profile.of_port(*done));
                }
                return Err(error.to_string());
            }
        }
        self.profile = profile;
        Ok(())
    }

    fn add(
        &mut self,
        ports: &Option<Vec<usize>>,
        streams: &[GivenStream],
    ) -> Result<Value, String> {
        if streams.is_empty() {
            return Err("streams: none is given".to_owned());
        }
        let mut all = self.profile.streams.clone();
        let known = all.len();
        let specs = || streams.iter().map(|stream| &stream.spec);
        match ports {
            None => {
                specs().try_for_each(|spec| self.check_port(spec.port))?;
                all.extend(specs().cloned());
            }
            Some(named) => {
                let others = |s: &&GivenStream| s.names_port && *named != [s.spec.port];
                if let Some(GivenStream { spec, .. }) = streams.iter().find(others) {
                    let (port, name) = (spec.port, &spec.name);
                    return Err(format!(
                        "stream {name:?} names port {port}, and \"ports\" {named:?}; say it once"
                    ));
                }
                for port in self.ports(ports)? {
                    all.extend(specs().map(|spec| StreamSpec { port, ..spec.clone() }));
                }
            }
        }
        self.load(all)?;
        let added = &self.profile.streams[known..];
        Ok(added.iter().map(|s| json!({ "port": s.port, "name": s.name })).collect())
    }

    fn remove(
        &mut self,
        ports: &Option<Vec<usize>>,
        names: Option<&[String]>,
    ) -> Result<Value, String> {
        let ports = self.ports(ports)?;
        let is_meant = |stream: &StreamSpec| {
            ports.contains(&stream.port) && names.is_none_or(|names| names.contains(&stream.name))
        };
        if let Some(name) = names.and_then(|names| {
            names
                .iter()
                .find(|name| !self.profile.streams.iter().any(|s| is_meant(s) && s.name == **name))
        }) {
            return Err(format!("these ports have no stream {name:?}"));
        }
        let kept: Vec<StreamSpec> =
            self.profile.streams.iter().filter(|stream| !is_meant(stream)).cloned().collect();
        let removed = self.profile.streams.len() - kept.len();
        self.load(kept)?;
        Ok(json!(removed))
    }

    fn reset(&mut self, ports: &Option<Vec<usize>>) -> Result<Value, String> {
        let ports = self.ports(ports)?;
        self.session.stop(&ports).map_err(|error| error.to_string())?;
        self.remove(&Some(ports), None)?;
        self.session.clear();
        Ok(Value::Null)
    }

    fn port_info(&mut self, ports: &Option<Vec<usize>>) -> Result<Value, String> {
        let ports = self.ports(ports)?;
        let session = &mut self.session;
        ports.into_iter().map(|port| to_value(&session.port_info(port))).collect()
    }
}

/// The longest wait for traffic: a week.
const WAIT_MAX: Duration = Duration::from_secs(7 * 86_400);

/// The peer that waits for an answer.
pub(super) struct Peer<'a> {
    pub(super) stream: &'a UnixStream,
    pub(super) interrupt: &'a Interrupt,
}

impl Peer<'_> {
    /// Whether the peer has closed its end; one that only sends no more still reads.
    fn is_gone(&self) -> bool {
        let mut polled = [PollFd::new(self.stream, PollFlags::empty())];
        let none = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut polled, Some(&none))
            .is_ok_and(|_| polled[0].revents().intersects(PollFlags::HUP | PollFlags::ERR))
    }
}

/// The value that answers a request.
///
/// # Errors
/// Why it is refused.
pub(super) fn answer(
    served: &Mutex<Served>,
    command: &GeneratorCommand,
    peer: &Peer<'_>,
) -> Result<Value, String> {
    if let GeneratorCommand::WaitOnTraffic { ports, timeout, rx_delay } = command {
        return wait_on_traffic(served, ports, (*timeout, *rx_delay), peer);
    }
    let mut served = lock(served);
    let served = &mut *served;
    match command {
        GeneratorCommand::Connect => {
            let ports = served.port_info(&None)?;
            Ok(json!({ "version": env!("CARGO_PKG_VERSION"), "ports": ports }))
        }
        GeneratorCommand::GetPortInfo { ports } => served.port_info(ports),
        GeneratorCommand::AddStreams { ports, streams } => served.add(ports, streams),
        GeneratorCommand::RemoveStreams { ports, names } => served.remove(ports, names.as_deref()),
        GeneratorCommand::GetStreams { ports } => {
            let ports = served.ports(ports)?;
            let streams = served.profile.streams.iter();
            to_value(&streams.filter(|s| ports.contains(&s.port)).collect::<Vec<_>>())
        }
        GeneratorCommand::Reset { ports } => served.reset(ports),
        GeneratorCommand::Start { ports, mult, duration } => {
            let ports = served.loaded(ports)?;
            let how = StartOptions { multiplier: *mult, duration_s: *duration, at_ns: None };
            served.session.measure_floor(&|| true);
            done(served.session.start(&ports, &how).map(|_| ()))
        }
        GeneratorCommand::Update { ports, mult } => {
            let ports = served.loaded(ports)?;
            done(served.session.update(&ports, *mult))
        }
        GeneratorCommand::Pause { ports } => {
            let ports = served.ports(ports)?;
            done(served.session.pause(&ports))
        }
        GeneratorCommand::Resume { ports } => {
            let ports = served.ports(ports)?;
            done(served.session.resume(&ports))
        }
        GeneratorCommand::Stop { ports } => {
            let ports = served.ports(ports)?;
            done(served.session.stop(&ports))
        }
        GeneratorCommand::GetStats | GeneratorCommand::WaitOnTraffic { .. } => {
            to_value(&served.session.statistics())
        }
        GeneratorCommand::ClearStats => {
            served.session.clear();
            Ok(Value::Null)
        }
    }
}

/// Waits in steps, so that other connections are answered in between.
fn wait_on_traffic(
    served: &Mutex<Served>,
    ports: &Option<Vec<usize>>,
    (timeout, rx_delay): (f64, f64),
    peer: &Peer<'_>,
) -> Result<Value, String> {
    let seconds = |name: &str, value: f64| {
        let read = Duration::try_from_secs_f64(value).ok().filter(|time| *time <= WAIT_MAX);
        let most = WAIT_MAX.as_secs();
        read.ok_or_else(|| format!("{name} {value:?}: a number of seconds from 0 to {most}"))
    };
    let (timeout, rx_delay) = (seconds("timeout", timeout)?, seconds("rx_delay", rx_delay)?);
    let ports = lock(served).ports(ports)?;
    let start = Instant::now();
    let mut ended: Option<Instant> = None;
    loop {
        let locked = lock(served);
        if ports.iter().any(|port| locked.session.is_transmitting(*port)) {
            ended = None;
        } else if ended.get_or_insert_with(Instant::now).elapsed() >= rx_delay {
            return Ok(Value::Null);
        }
        drop(locked);
        if peer.interrupt.is_set() {
            return Err("the server ends".to_owned());
        }
        if peer.is_gone() {
            return Err("nobody waits for the answer".to_owned());
        }
        if ended.is_none() && start.elapsed() >= timeout {
            return Err(format!("still sending after {} s", timeout.as_secs_f64()));
        }
        std::thread::sleep(ASK_EVERY);
    }
}

fn lock(served: &Mutex<Served>) -> MutexGuard<'_, Served> {
    served.lock().unwrap_or_else(PoisonError::into_inner)
}

fn done<E: std::fmt::Display>(outcome: Result<(), E>) -> Result<Value, String> {
    outcome.map(|()| Value::Null).map_err(|error| error.to_string())
}

fn to_value(value: &impl serde::Serialize) -> Result<Value, String> {
    serde_json::to_value(value).map_err(|error| error.to_string())
}
