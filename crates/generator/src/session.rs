//! A session: opened ports, the streams loaded into them, and the threads that send and receive.
//!
//! Each port has a thread that sends for each of its queues, and one that receives; each owns its
//! queues, so that no frame meets a lock. Commands go to the threads and snapshots come back
//! between two bursts. Dropping a session stops and joins all of them. It must never send before
//! everything is known to be right.

pub mod counts;
pub mod floor;
mod line_use;
mod load;
mod queues;
mod rx_thread;
mod sender;
mod snapshot;
pub mod virtual_sender;
mod watcher;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use netdev::sys::affinity::{allow, allowed_cpus};
use netdev::sys::realtime::run_in_real_time;
use netdev::{Port, PortCounters, PortError, PortInfo, PortQueue, PortSpec};
use openflow::MacAddr;

use crate::clock::RunClock;
use crate::file_conflicts::{FileOverlap, FilesInUse};
use crate::probe::StreamId;
use crate::profile::ProfileError;
use crate::receiver::ReceiverOptions;
use crate::responder::Responder;
use crate::statistics::DelayFloor;
use crate::template::BURST_MAX;
use crate::transmit::{LATE_AFTER_NS, TransmitLimits, UNSENT_AFTER_NS};
use counts::Asked;
use line_use::LineUse;
pub use load::check_stream;
use queues::PortSenders;
use rx_thread::{PortReceiver, ReceiveCommand, ReceiverPlace};
use sender::{SendCommand, SenderFlags, SenderPlace};
use snapshot::Baseline;
use watcher::Watcher;

/// Rate of a line where neither the user nor the port gives it: 10 Gbit/s.
const LINE_RATE_BPS: f64 = 10e9;

/// Time between two looks while waiting for the end.
const LOOK: Duration = Duration::from_millis(2);

/// The way in which the threads of a session wait for due times and for frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Waiting {
    /// They poll while the session sends: a delay has no wake-up in it.
    #[default]
    Polling,
    /// They sleep where they would poll: for a session that shares its cores with what it measures.
    /// Frames then leave some 60 us late, and a delay has the time of a wake-up in it.
    Sleeping,
    /// They sleep, and delays are exact all the same: threads run in real time where the process
    /// may, the last microseconds before a due time are polled, and a frame has arrived when the
    /// kernel says so, where the port knows that.
    Precise,
}

impl Waiting {
    /// Whether threads sleep where they would poll.
    fn is_asleep(self) -> bool {
        match self {
            Self::Polling => false,
            Self::Sleeping | Self::Precise => true,
        }
    }
}

/// Options of a session; the default is for a machine whose cores are not all its own.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionOptions {
    /// The rate of each port's line at layer 1, in bit/s, by index; otherwise, and for 0.0, the
    /// rate that the port reports, and 10 Gbit/s where it does not know.
    pub line_rate_bps: Vec<f64>,
    /// The cores of the threads: those that send by port and queue, then those that receive by
    /// port. Of threads beyond the list, those that receive keep off the cores of those that send,
    /// where the machine has others; they poll, and would have a sender wait for its core.
    pub cores: Vec<usize>,
    /// Frames handed to a port at once, 1 to 64.
    pub burst: usize,
    /// A frame that leaves more than this after its due time counts as late, in nanoseconds.
    pub late_after_ns: u64,
    /// A frame that the port has not taken this long after its due time is given up, in
    /// nanoseconds.
    pub unsent_after_ns: u64,
    /// The time between the call of `start` and the first frame, in nanoseconds: all ports start
    /// together.
    pub lead_ns: u64,
    /// The way in which threads wait for due times and for frames.
    pub waiting: Waiting,
    /// The number of the first stream in its frames, 1 or more. Sessions after each other on the
    /// same wire that have other numbers do not take late frames of each other for their own.
    pub first_stream: u16,
    /// Ports and the addresses that they claim: ARP requests, neighbour solicitations and echo
    /// requests for them are answered. Answers are no part of what a port has sent.
    pub claims: Vec<(usize, IpAddr)>,
    /// The zero of the session's clock; the moment at which it is opened where none is given. Of
    /// two sessions, one that sends and one that receives what the other has sent, the delays are
    /// as right as their zeros are at one time; a delay below zero counts as zero.
    pub zero: Option<Instant>,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            line_rate_bps: Vec::new(),
            cores: Vec::new(),
            burst: 64,
            late_after_ns: LATE_AFTER_NS,
            unsent_after_ns: UNSENT_AFTER_NS,
            lead_ns: 2_000_000,
            waiting: Waiting::Polling,
            first_stream: 1,
            claims: Vec::new(),
            zero: None,
        }
    }
}

impl SessionOptions {
    /// The responder for the addresses that a port claims; none where it claims none.
    fn responder(&self, port: usize, mac: [u8; 6]) -> Option<Responder> {
        let claims = self.claims.iter().filter(|(claimant, _)| *claimant == port);
        let addresses: Vec<IpAddr> = claims.map(|(_, address)| *address).collect();
        (!addresses.is_empty()).then(|| Responder::new(MacAddr(mac), addresses))
    }
}

/// Options of a start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StartOptions {
    /// All rates of the profile times this; `max` stays.
    pub multiplier: f64,
    /// Frames that are due later than this many seconds after the start are not sent.
    pub duration_s: Option<f64>,
    /// When the first frame is due, in nanoseconds of the session's clock, so that sessions of
    /// several machines start together; never sooner than the session's lead from now.
    pub at_ns: Option<u64>,
}

impl Default for StartOptions {
    fn default() -> Self {
        Self { multiplier: 1.0, duration_s: None, at_ns: None }
    }
}

/// Reasons why a session refuses something.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// A port cannot be opened.
    #[error(transparent)]
    Port(#[from] PortError),
    /// A stream cannot be sent as it is written.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// The session has no such port.
    #[error("port {port}: there are {count} ports, from 0 on")]
    NoPort {
        /// The index asked for.
        port: usize,
        /// The number of ports.
        count: usize,
    },
    /// Nothing is loaded into the port.
    #[error("port {0} has no streams")]
    NoStreams(usize),
    /// The port carries nothing: its device is down, or its line has no other end.
    #[error("port {port}, {name}, is down")]
    Down {
        /// The port.
        port: usize,
        /// Its spec text, or its name.
        name: String,
    },
    /// An option, a multiplier or a duration outside its range.
    #[error("{0}")]
    Option(String),
    /// Two ports that cannot have one file.
    #[error(transparent)]
    Overlap(#[from] FileOverlap),
    /// A thread cannot be started or pinned.
    #[error("{what}: {source}")]
    Thread {
        /// The attempt.
        what: String,
        /// The kernel's error.
        source: std::io::Error,
    },
}

/// Opened ports with their streams and threads.
#[derive(Debug)]
pub struct Session {
    // Dropped in this order: readers and the watcher hold a way to each sender.
    readers: Option<Asked>,
    watcher: Watcher,
    ports: Vec<SessionPort>,
    clock: RunClock,
    lead_ns: u64,
    /// Frames that are handed to a port at once, where nothing else is set.
    burst: usize,
    /// Numbers of streams that were and are no more, and the numbers of their next frames.
    free_ids: Vec<(StreamId, u64)>,
    next_id: u16,
    /// Those of the ports, where their specs are known.
    files: FilesInUse,
    floor: Option<DelayFloor>,
    /// Whether it could not be measured: logged once, and not tried again.
    has_no_floor: bool,
    floor_options: SessionOptions,
}

/// One port of a session.
#[derive(Debug)]
struct SessionPort {
    name: String,
    mac: [u8; 6],
    mtu: u32,
    line_rate_bps: f64,
    /// Whether anything can come.
    receives: bool,
    // Dropped in this order: the receiver holds a way to a sender.
    receiver: PortReceiver,
    senders: PortSenders,
    /// The streams, in the order in which they were loaded.
    streams: Vec<LoadedStream>,
    /// The arguments of `start`, as long as nothing else was started.
    started: Option<StartedPort>,
    baselines: [Baseline; 2],
    /// The device's counters at the last clear.
    counters: PortCounters,
}

/// A stream that is loaded.
#[derive(Clone, Debug)]
struct LoadedStream {
    id: StreamId,
    name: String,
    has_probes: bool,
    /// Whether each frame that has room carries one.
    wants_probes: bool,
    /// The shortest frame with room for one, FCS included.
    probe_size: u32,
    /// Whether nothing ever starts it: neither its port nor a stream before it.
    never_starts: bool,
    /// Options of the account of its frames where they arrive.
    arrival: ReceiverOptions,
    /// Its demand on the line; `None` where it takes what is left.
    line_use: Option<LineUse>,
}

/// The start of a port.
#[derive(Clone, Copy, Debug)]
struct StartedPort {
    end_ns: u64,
    factor: f64,
}

impl SessionPort {
    /// A port without streams, whose line carries `given_bps` where that is not 0.
    fn new(info: &PortInfo, given_bps: f64, receiver: PortReceiver, senders: PortSenders) -> Self {
        let rates = [given_bps, speed_bps(info), LINE_RATE_BPS];
        Self {
            name: format!("{}:{}", info.kind, info.name),
            mac: info.mac,
            mtu: info.mtu,
            receives: info.receives,
            line_rate_bps: rates.into_iter().find(|rate| *rate > 0.0).unwrap_or_default(),
            receiver,
            senders,
            streams: Vec::new(),
            started: None,
            baselines: [Baseline::default(); 2],
            counters: PortCounters::default(),
        }
    }
}

impl Session {
    /// Opens the ports, all or none, and starts their threads.
    ///
    /// # Errors
    /// A port that cannot be opened, two that cannot have one file, an option outside its range.
    pub fn open(ports: &[PortSpec], options: SessionOptions) -> Result<Self, SessionError> {
        FilesInUse::of_ports(ports)?;
        let opened: Result<Vec<Port>, PortError> = ports.iter().map(netdev::open_queues).collect();
        let opened = opened?;
        opened.iter().for_each(Port::wait_for_link);
        let mut session = Self::from_ports(opened, options)?;
        for (port, spec) in session.ports.iter_mut().zip(ports) {
            port.name = spec.to_string();
        }
        // Files that were not there are by now.
        session.files = FilesInUse::of_ports(ports)?;
        Ok(session)
    }

    /// Starts the threads of ports that are open already.
    ///
    /// # Errors
    /// An option outside its range, or no thread left.
    pub fn from_ports(ports: Vec<Port>, options: SessionOptions) -> Result<Self, SessionError> {
        check_options(&options)?;
        let clock = options.zero.map_or_else(RunClock::start, RunClock::since);
        let limits = TransmitLimits {
            burst: options.burst,
            late_after_ns: options.late_after_ns,
            unsent_after_ns: options.unsent_after_ns,
        };
        let mut cores = options.cores.iter().copied();
        let count = ports.len();
        if let Some((port, _)) = options.claims.iter().find(|(port, _)| *port >= count) {
            return Err(SessionError::NoPort { port: *port, count });
        }
        let (mut devices, mut senders, mut queues) = (Vec::new(), Vec::new(), Vec::new());
        for (index, Port { device, rx, tx, more, .. }) in ports.into_iter().enumerate() {
            let (more_rx, more_tx): (Vec<_>, Vec<_>) =
                more.into_iter().map(|queue| (queue.rx, queue.tx)).unzip();
            let tx = std::iter::once(tx).chain(more_tx);
            let place =
                || SenderPlace { port: index, core: cores.next(), waiting: options.waiting };
            senders.push(PortSenders::start(tx.collect(), place, limits, clock)?);
            devices.push(device);
            queues.push(std::iter::once(rx).chain(more_rx).collect::<Vec<_>>());
        }
        // As many as the senders have taken.
        let of_senders = &options.cores[..options.cores.len() - cores.len()];
        let floor_options = floor::options(&options, of_senders.len());
        let flags: Vec<Arc<SenderFlags>> = senders.iter().flat_map(PortSenders::flags).collect();
        let infos: Vec<PortInfo> = devices.iter_mut().map(|device| device.info()).collect();
        let mut ports: Vec<SessionPort> = Vec::new();
        for (index, ((senders, queues), info)) in
            senders.into_iter().zip(queues).zip(infos).enumerate()
        {
            let answers = options.responder(index, info.mac).zip(senders.answerer());
            let place = ReceiverPlace {
                port: index,
                cpus: cores.next().map_or_else(|| cpus_beside(of_senders), |core| vec![core]),
                // Asleep it does not look whether anybody sends. A port that never
                // receives is not polled either.
                senders: match options.waiting.is_asleep() || !info.receives {
                    true => Vec::new(),
                    false => flags.clone(),
                },
                waiting: options.waiting,
            };
            let receiver = PortReceiver::start(place, queues, clock, answers)?;
            let given = options.line_rate_bps.get(index).copied().unwrap_or_default();
            ports.push(SessionPort::new(&info, given, receiver, senders));
        }
        // The last, after all that can fail: it holds a way to each sender, which would wait for
        // its end.
        let handles = ports.iter().map(|port| port.senders.handles()).collect();
        let watcher = Watcher::start(devices, handles, clock)?;
        let SessionOptions { lead_ns, first_stream: next_id, burst, .. } = options;
        Ok(Self {
            readers: None,
            watcher,
            ports,
            clock,
            lead_ns,
            burst,
            free_ids: Vec::new(),
            next_id,
            files: FilesInUse::default(),
            floor: None,
            has_no_floor: false,
            floor_options,
        })
    }

    /// Ends the session and gives its ports back, open, in their order.
    ///
    /// # Panics
    /// When a thread of the session has panicked: the same panic.
    #[must_use]
    pub fn into_ports(self) -> Vec<Port> {
        let Self { readers, watcher, ports, .. } = self;
        // Readers and the watcher first and each receiver before its sender: they hold a way to it.
        drop(readers);
        let devices = watcher.end();
        let queues = ports.into_iter().map(|port| {
            let rx = port.receiver.end();
            rx.into_iter().zip(port.senders.end()).map(|(rx, tx)| PortQueue { rx, tx })
        });
        let whole = devices.into_iter().zip(queues);
        whole.filter_map(|(device, queues)| Port::from_queues(device, queues)).collect()
    }

    /// The number of ports.
    #[must_use]
    pub fn port_count(&self) -> usize {
        self.ports.len()
    }

    /// The properties of a port.
    ///
    /// # Panics
    /// When there is no such port: the caller's mistake.
    #[must_use]
    pub fn port_info(&mut self, port: usize) -> PortInfo {
        match self.watcher.devices.info(port) {
            Some(info) => info,
            None => panic!("port {port} of {}", self.ports.len()),
        }
    }

    /// The rate of the port's line at layer 1, in bit/s.
    #[must_use]
    pub fn line_rate_bps(&self, port: usize) -> f64 {
        self.ports.get(port).map_or(LINE_RATE_BPS, |port| port.line_rate_bps)
    }

    /// The time of the session's clock, in nanoseconds.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    /// The time from [`Session::start`] to the first due time, in nanoseconds.
    #[must_use]
    pub fn lead_ns(&self) -> u64 {
        self.lead_ns
    }

    /// The files of the ports that [`Session::open`] has opened.
    #[must_use]
    pub fn files(&self) -> &FilesInUse {
        &self.files
    }

    /// Measures what the generator itself adds to a delay, once, in some 25 ms, where frames with a
    /// time stamp are loaded and a port receives. To be called before a start: while a port
    /// transmits nothing is measured, since it would take time from the streams and they from it.
    ///
    /// Without a floor the session works as well: where it cannot be measured within two seconds
    /// (no thread is left, or nothing comes over a wire in memory) the log has one warning, and it
    /// is not tried again. `goes_on` ends the wait as soon as it is false.
    pub fn measure_floor(&mut self, goes_on: &dyn Fn() -> bool) {
        self.measure_floor_within(floor::LIMIT, goes_on);
    }

    fn measure_floor_within(&mut self, limit: Duration, goes_on: &dyn Fn() -> bool) {
        let has_probes = |port: &SessionPort| port.streams.iter().any(|stream| stream.has_probes);
        let receives = self.ports.iter().any(|port| port.receives);
        let is_known = self.floor.is_some() || self.has_no_floor;
        let is_wanted = !is_known && receives && self.ports.iter().any(has_probes);
        if !is_wanted || (0..self.ports.len()).any(|port| self.is_transmitting(port)) {
            return;
        }
        match floor::measure(&self.floor_options, limit, goes_on) {
            Ok(floor) => self.floor = floor,
            Err(error) => {
                self.has_no_floor = true;
                tracing::warn!(%error, "what the generator itself adds to a delay is not known");
            }
        }
    }

    /// The result of [`Session::measure_floor`].
    #[must_use]
    pub fn floor(&self) -> Option<DelayFloor> {
        self.floor
    }

    /// Starts the streams of these ports from their beginning, all at one time: that at which the
    /// first frame is due, in nanoseconds of [`Session::now_ns`]'s clock, is returned.
    ///
    /// # Errors
    /// A port that is not there, has no streams or is down, a stream that nothing starts, a
    /// multiplier or a duration that is no positive number, rates above the line's; then nothing is
    /// started.
    pub fn start(&mut self, ports: &[usize], how: &StartOptions) -> Result<u64, SessionError> {
        self.check_ports(ports)?;
        check_positive("multiplier", how.multiplier)?;
        how.duration_s.map_or(Ok(()), |duration| check_positive("duration", duration))?;
        if let Some(port) = ports.iter().find(|port| self.ports[**port].streams.is_empty()) {
            return Err(SessionError::NoStreams(*port));
        }
        self.check_starts(ports)?;
        self.check_lines(ports, how.multiplier)?;
        if let Some(port) = ports.iter().copied().find(|port| !self.watcher.devices.is_up(*port)) {
            return Err(SessionError::Down { port, name: self.ports[port].name.clone() });
        }
        ports.iter().for_each(|port| self.set_baseline(*port));
        let soonest_ns = self.clock.now_ns() + self.lead_ns;
        let at_ns = how.at_ns.map_or(soonest_ns, |wanted_ns| wanted_ns.max(soonest_ns));
        let end_ns = how
            .duration_s
            .map_or(u64::MAX, |duration| at_ns.saturating_add((duration * 1e9) as u64));
        for port in ports {
            let port = &mut self.ports[*port];
            port.started = Some(StartedPort { end_ns, factor: how.multiplier });
            port.senders.start_streams(at_ns, end_ns, how.multiplier);
        }
        Ok(at_ns)
    }

    /// Changes the rates of these ports to `multiplier` times the streams' own.
    ///
    /// # Errors
    /// A port that is not there, a multiplier that is no positive number, rates above the line's;
    /// then nothing is changed.
    pub fn update(&mut self, ports: &[usize], multiplier: f64) -> Result<(), SessionError> {
        self.check_ports(ports)?;
        check_positive("multiplier", multiplier)?;
        self.check_lines(ports, multiplier)?;
        for port in ports {
            let port = &mut self.ports[*port];
            if let Some(started) = &mut port.started {
                started.factor = multiplier;
            }
            port.senders.send(|| SendCommand::Update(multiplier));
        }
        Ok(())
    }

    /// Hands these ports at most `frames` frames at once from now on; as many as the session's
    /// options say where it is `None`.
    ///
    /// # Errors
    /// A port that is not there, a number that is not from 1 to 64.
    pub fn set_burst(
        &mut self,
        ports: &[usize],
        frames: Option<usize>,
    ) -> Result<(), SessionError> {
        self.check_ports(ports)?;
        let burst = frames.unwrap_or(self.burst);
        check_burst(burst)?;
        ports.iter().for_each(|port| self.ports[*port].senders.send(|| SendCommand::Burst(burst)));
        Ok(())
    }

    /// Holds the streams of these ports back.
    ///
    /// # Errors
    /// A port that is not there.
    pub fn pause(&mut self, ports: &[usize]) -> Result<(), SessionError> {
        self.check_ports(ports)?;
        ports.iter().for_each(|port| self.ports[*port].senders.send(|| SendCommand::Pause));
        Ok(())
    }

    /// Goes on where [`Session::pause`] stopped.
    ///
    /// # Errors
    /// A port that is not there.
    pub fn resume(&mut self, ports: &[usize]) -> Result<(), SessionError> {
        self.check_ports(ports)?;
        ports.iter().for_each(|port| self.ports[*port].senders.send(|| SendCommand::Resume));
        Ok(())
    }

    /// Stops the streams of these ports; afterwards nothing of them is sent any more.
    ///
    /// # Errors
    /// A port that is not there.
    pub fn stop(&mut self, ports: &[usize]) -> Result<(), SessionError> {
        self.check_ports(ports)?;
        for port in ports {
            let port = &mut self.ports[*port];
            port.started = None;
            port.senders.send(|| SendCommand::Stop(None));
        }
        // The answer comes after the command.
        for port in ports {
            self.ports[*port].senders.report();
        }
        Ok(())
    }

    /// Whether the streams of these ports go on, from their next start, while their link is down:
    /// what a port that takes nothing refuses is unsent as soon as it is late, and does not leave
    /// when the link is up again. A port that is down is still not started, and one that has gone
    /// stops.
    ///
    /// # Errors
    /// A port that is not there.
    pub fn outlast_down(&mut self, ports: &[usize], outlasts: bool) -> Result<(), SessionError> {
        self.check_ports(ports)?;
        for flags in ports.iter().flat_map(|port| self.ports[*port].senders.flags()) {
            flags.outlasts_down.store(outlasts, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Sends one frame beside the streams, at once, and counts it nowhere but at the device; false
    /// where too many of them wait.
    ///
    /// # Errors
    /// A port that is not there.
    pub fn send_frame(&self, port: usize, frame: Vec<u8>) -> Result<bool, SessionError> {
        self.check_ports(&[port])?;
        let handle = self.ports[port].senders.answerer();
        Ok(handle.is_some_and(|handle| handle.answer(frame)))
    }

    /// The counters of a port's device since it was opened.
    #[must_use]
    pub fn port_counters(&self, port: usize) -> PortCounters {
        self.watcher.devices.counters(port)
    }

    /// Whether a port has something to send, or will have when it is resumed.
    #[must_use]
    pub fn is_transmitting(&self, port: usize) -> bool {
        self.ports.get(port).is_some_and(|port| port.senders.is_transmitting())
    }

    /// Waits until no port sends any more, or until `limit` has passed; true when none sends.
    pub fn wait(&self, limit: Option<Duration>) -> bool {
        let begun = Instant::now();
        while (0..self.ports.len()).any(|port| self.is_transmitting(port)) {
            if limit.is_some_and(|limit| begun.elapsed() >= limit) {
                return false;
            }
            std::thread::sleep(LOOK);
        }
        true
    }

    /// Waits until nothing has come for `quiet`, or until `limit` has passed: frames are on their
    /// way when the last one has left, and would count as lost.
    pub fn wait_until_quiet(&self, quiet: Duration, limit: Duration) {
        let begun = Instant::now();
        let mut last = (begun, self.received());
        while last.0.elapsed() < quiet && begun.elapsed() < limit {
            std::thread::sleep(LOOK.min(quiet));
            let received = self.received();
            if received != last.1 {
                last = (Instant::now(), received);
            }
        }
    }

    /// Frames received by all ports.
    fn received(&self) -> u64 {
        let count = |port: &SessionPort| {
            port.receiver.ask(|answer| ReceiveCommand::Report(Vec::new(), answer))
        };
        self.ports.iter().filter_map(count).map(|report| report.counts.packets).sum()
    }

    fn check_lines(&self, ports: &[usize], factor: f64) -> Result<(), ProfileError> {
        ports
            .iter()
            .map(|port| &self.ports[*port])
            .try_for_each(|port| line_use::check(&port.streams, factor, port.line_rate_bps))
    }

    /// A stream that waits for ever would be sent as little as one that was forgotten.
    fn check_starts(&self, ports: &[usize]) -> Result<(), ProfileError> {
        let streams = ports.iter().flat_map(|port| &self.ports[*port].streams);
        match streams.into_iter().find(|stream| stream.never_starts) {
            Some(stream) => {
                let reason = "false, and it is the next of no stream that starts and ends: it \
                              would never send";
                Err(ProfileError::new(&stream.name, "self_start", reason))
            }
            None => Ok(()),
        }
    }

    fn check_ports(&self, ports: &[usize]) -> Result<(), SessionError> {
        let count = self.ports.len();
        match ports.iter().find(|port| **port >= count) {
            Some(port) => Err(SessionError::NoPort { port: *port, count }),
            None => Ok(()),
        }
    }
}

fn check_positive(what: &str, number: f64) -> Result<(), SessionError> {
    if number.is_finite() && number > 0.0 {
        Ok(())
    } else {
        Err(SessionError::Option(format!("a {what} of {number:?}: use a number above 0")))
    }
}

fn check_burst(frames: usize) -> Result<(), SessionError> {
    if (1..=BURST_MAX).contains(&frames) {
        return Ok(());
    }
    Err(SessionError::Option(format!("a burst of {frames} frames: use 1 to {BURST_MAX}")))
}

fn check_options(options: &SessionOptions) -> Result<(), SessionError> {
    check_burst(options.burst)?;
    if let Some(rate) = options.line_rate_bps.iter().find(|rate| !rate.is_finite() || **rate < 0.0)
    {
        return Err(SessionError::Option(format!("a line rate of {rate:?} bit/s")));
    }
    if options.first_stream == 0 {
        return Err(SessionError::Option("streams are numbered from 1 on, not from 0".to_owned()));
    }
    let allowed = allowed_cpus().unwrap_or_default();
    match options.cores.iter().find(|core| !allowed.contains(core)) {
        Some(core) => {
            Err(SessionError::Option(format!("there is no core {core}; there are {allowed:?}")))
        }
        None => Ok(()),
    }
}

/// Starts a thread, on a core of its own where one is given.
fn spawn_on<T: Send + 'static>(
    cpus: Vec<usize>,
    name: String,
    waiting: Waiting,
    run: impl FnOnce() -> T + Send + 'static,
) -> std::io::Result<JoinHandle<T>> {
    std::thread::Builder::new().name(name).spawn(move || {
        // Pinning is a wish: the session has checked that the core exists. None stands for any.
        let _ = allow(None, &cpus);
        if waiting == Waiting::Precise {
            // Without the right, delays have wake-ups in them, as the floor shows.
            if let Err(error) = run_in_real_time() {
                tracing::warn!(%error, "not in real time: delays have wake-ups in them");
            }
        }
        run()
    })
}

/// The CPUs that this thread may use but for those; none, which stands for any, where none is left.
fn cpus_beside(those: &[usize]) -> Vec<usize> {
    let allowed = allowed_cpus().unwrap_or_default();
    allowed.into_iter().filter(|cpu| !those.contains(cpu)).collect()
}

/// The result of a thread; its panic goes on in the caller.
fn joined<T>(thread: Option<JoinHandle<T>>) -> T {
    let Some(thread) = thread else { unreachable!("a thread is joined once") };
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The speed of a port, in bit/s; 0 where it is not known, or no limit.
fn speed_bps(info: &PortInfo) -> f64 {
    if info.has_line_rate { info.speed_bps as f64 } else { 0.0 }
}

#[cfg(test)]
mod tests;
