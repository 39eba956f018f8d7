//! The console itself: settings and a session, and what a command does to both.
//!
//! A command first changes a copy of the settings. They become the console's when the session has
//! taken what follows from them; otherwise nothing has changed and the error says why. What is
//! typed, drawn or read from a pipe is the business of [`crate::terminal`] and [`crate::plain`].

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use generator::profile::Rate;
use generator::session::{Session, StartOptions};

use crate::arp;
use crate::cpu_use::CpuMeter;
use crate::effect::Effect;
use crate::page::{self, PageInput};
use crate::script::{self, ScriptLine, ScriptPort};
use crate::state::{ConsoleState, PageName, PortSettings, SendMode};
use crate::streams;
use crate::words::{self, LineError, ParsedLine};

/// The work that is left after a command, for the reader of commands.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// Nothing.
    Done,
    /// This text is shown.
    Show(String),
    /// The page is shown.
    Page,
    /// The screen is drawn anew, and may have been switched on or off.
    Redraw,
    /// Nothing else is done for so long.
    Wait(Duration),
    /// These commands are carried out, in order.
    Script(VecDeque<ScriptLine>),
    /// The console ends.
    Quit,
}

/// Nothing has to come for so long before the last report; it does not wait longer than the second.
const QUIET: Duration = Duration::from_millis(50);
const QUIET_WAIT_MAX: Duration = Duration::from_secs(1);

/// Lines that the log keeps.
const LOG_MAX: usize = 100;

/// A console.
pub(crate) struct Console {
    session: Session,
    state: ConsoleState,
    line_rates_bps: Vec<f64>,
    /// By port, the rate of the streams that are loaded.
    loaded_rates: Vec<Option<Rate>>,
    /// By port, whether its end before its time has been reported.
    is_stop_reported: Vec<bool>,
    cpu: CpuMeter,
    /// Lines that were shown, the last one last.
    log: VecDeque<String>,
}

impl Console {
    /// A console over the ports of `session`, with Pktgen's settings.
    pub(crate) fn new(mut session: Session) -> Self {
        let count = session.port_count();
        let line_rates_bps = (0..count).map(|port| session.line_rate_bps(port)).collect();
        let mac = |port| {
            let bytes = session.port_info(port).mac;
            bytes.iter().fold(0, |mac, byte| mac << 8 | u64::from(*byte))
        };
        let macs: Vec<u64> = (0..count).map(mac).collect();
        Self {
            session,
            state: ConsoleState::new(&macs),
            line_rates_bps,
            loaded_rates: vec![None; count],
            is_stop_reported: vec![false; count],
            cpu: CpuMeter::default(),
            log: VecDeque::new(),
        }
    }

    /// Reads a line; `None` is an empty one.
    ///
    /// # Errors
    /// The first word that is wrong.
    pub(crate) fn parse(&self, line: &str) -> Result<Option<ParsedLine>, LineError> {
        words::parse(line, self.state.ports.len())
    }

    /// The number of ports.
    pub(crate) fn count(&self) -> usize {
        self.state.ports.len()
    }

    /// Whether the live page is on.
    pub(crate) fn is_screen_on(&self) -> bool {
        self.state.is_screen_on
    }

    /// The commands of a script, all known to be right.
    ///
    /// # Errors
    /// The first line that is wrong; nothing has been carried out.
    pub(crate) fn read_script(&self, path: &Path) -> Result<VecDeque<ScriptLine>, String> {
        let ports: Vec<ScriptPort> = (0..self.count())
            .map(|port| ScriptPort {
                line_rate_bps: self.line_rates_bps[port],
                is_transmitting: self.session.is_transmitting(port),
            })
            .collect();
        script::read(path, &self.state, ports, self.session.files())
            .map(VecDeque::from)
            .map_err(|error| error.to_string())
    }

    /// Carries a command out.
    ///
    /// # Errors
    /// Why it was not; then the settings are those before it.
    pub(crate) fn carry_out(&mut self, command: &ParsedLine) -> Result<Outcome, String> {
        let mut state = self.state.clone();
        let effect = command.apply(&mut state)?;
        let before = std::mem::replace(&mut self.state, state);
        let outcome = self.follow(effect);
        if outcome.is_err() {
            self.state = before;
        }
        outcome
    }

    fn follow(&mut self, effect: Effect) -> Result<Outcome, String> {
        match effect {
            Effect::Changed(ports) => {
                for port in self.transmitting(&ports) {
                    self.load(port)?;
                }
            }
            Effect::Rate(ports) => {
                for port in self.transmitting(&ports) {
                    self.change_rate(port)?;
                }
            }
            Effect::Start(ports) => self.start(&ports)?,
            Effect::Prime(ports) => self.prime(&ports)?,
            Effect::Arp { ports, is_gratuitous } => self.send_arp(&ports, is_gratuitous)?,
            Effect::Stop(ports) => self.session.stop(&ports).map_err(|error| error.to_string())?,
            Effect::Clear => self.session.clear(),
            Effect::Show => return Ok(Outcome::Page),
            Effect::Redraw => return Ok(Outcome::Redraw),
            Effect::Wait(time) => return Ok(Outcome::Wait(time)),
            Effect::Print(text) => return Ok(Outcome::Show(text)),
            Effect::Save(path) => {
                script::check_save(&path, &self.state, self.session.files())?;
                files::replace(&path, script::save(&self.state).as_bytes())
                    .map_err(|error| format!("{}: {error}", path.display()))?;
            }
            Effect::Script(path) => return Ok(Outcome::Script(self.read_script(&path)?)),
            Effect::Quit => return Ok(Outcome::Quit),
        }
        Ok(Outcome::Done)
    }

    /// Those of `ports` that have frames to send.
    fn transmitting(&mut self, ports: &[usize]) -> Vec<usize> {
        let is_transmitting = |port: &usize| self.session.is_transmitting(*port);
        ports.iter().copied().filter(is_transmitting).collect()
    }

    /// Loads what the settings of `port` say; one that transmits goes on with it. Where it cannot
    /// be sent, the port has what it had.
    fn load(&mut self, port: usize) -> Result<(), String> {
        let settings = self.state.ports[port].clone();
        self.load_settings(port, &settings)
    }

    fn load_settings(&mut self, port: usize, settings: &PortSettings) -> Result<(), String> {
        let named = |error: String| format!("port {port}: {error}");
        let streams = streams::of_port(port, settings, self.line_rates_bps[port]).map_err(named)?;
        let burst = settings.burst.map(|frames| usize::try_from(frames).unwrap_or(usize::MAX));
        self.session.set_burst(&[port], burst).map_err(|error| named(error.to_string()))?;
        // The streams have the rate that is set: a factor of a change before would come on top.
        let loaded = self.session.load_at(port, &streams, Some(1.0));
        loaded.map_err(|error| named(error.to_string()))?;
        self.loaded_rates[port] = Some(settings.rate);
        Ok(())
    }

    /// Starts those of `ports` that do not transmit, all together, or none of them.
    fn start(&mut self, ports: &[usize]) -> Result<(), String> {
        let transmitting = self.transmitting(ports);
        let ports: Vec<usize> =
            ports.iter().copied().filter(|port| !transmitting.contains(port)).collect();
        for port in &ports {
            self.load(*port)?;
            self.is_stop_reported[*port] = false;
        }
        self.start_loaded(&ports)
    }

    /// Sends the packets of `prime` from those of `ports` that do not transmit.
    fn prime(&mut self, ports: &[usize]) -> Result<(), String> {
        let transmitting = self.transmitting(ports);
        let ports: Vec<usize> =
            ports.iter().copied().filter(|port| !transmitting.contains(port)).collect();
        for port in &ports {
            let settings = self.state.ports[*port].clone();
            let settings = PortSettings { count: settings.prime, ..settings };
            self.load_settings(*port, &settings)?;
            self.is_stop_reported[*port] = false;
        }
        self.start_loaded(&ports)
    }

    fn send_arp(&mut self, ports: &[usize], is_gratuitous: bool) -> Result<(), String> {
        for port in ports {
            let frame = arp::request(&self.state.ports[*port], is_gratuitous)
                .map_err(|error| format!("port {port}: {error}"))?;
            let is_sent = self.session.send_frame(*port, frame).map_err(|e| e.to_string())?;
            if !is_sent {
                return Err(format!("port {port}: too many single frames wait already"));
            }
        }
        Ok(())
    }

    fn start_loaded(&mut self, ports: &[usize]) -> Result<(), String> {
        if ports.is_empty() {
            return Ok(());
        }
        self.session.measure_floor(&|| true);
        let started = self.session.start(ports, &StartOptions::default());
        started.map(|_| ()).map_err(|error| error.to_string())
    }

    /// Changes the rate without a stop where the new one is the old one times a number.
    fn change_rate(&mut self, port: usize) -> Result<(), String> {
        let settings = &self.state.ports[port];
        let factor = self.loaded_rates[port].and_then(|before| factor(before, settings.rate));
        let is_one = |mode| !matches!(mode, SendMode::Sequence | SendMode::Capture);
        match factor.filter(|_| is_one(settings.mode())) {
            Some(factor) => self.session.update(&[port], factor).map_err(|error| error.to_string()),
            None => self.load(port),
        }
    }

    /// The page that is shown, on `width` columns.
    pub(crate) fn page(&mut self, width: usize) -> Vec<String> {
        let statistics = self.session.statistics();
        let threads = self.cpu.read();
        let (mut infos, mut counters) = (Vec::new(), Vec::new());
        match self.state.page {
            PageName::Config => {
                infos.extend((0..self.count()).map(|port| self.session.port_info(port)));
            }
            PageName::Xstats => {
                counters.extend((0..self.count()).map(|port| self.session.port_counters(port)));
            }
            PageName::Main
            | PageName::Range
            | PageName::Sequence
            | PageName::Latency
            | PageName::Stats
            | PageName::Cpu
            | PageName::Streams
            | PageName::Pcap
            | PageName::Random
            | PageName::Log => {}
        }
        page::render(&PageInput {
            state: &self.state,
            statistics: &statistics,
            threads: &threads,
            infos: &infos,
            counters: &counters,
            log: &self.log,
            width,
        })
    }

    /// Keeps a line for the page that shows the log.
    pub(crate) fn note(&mut self, line: &str) {
        if self.log.len() == LOG_MAX {
            self.log.pop_front();
        }
        self.log.push_back(line.to_owned());
    }

    /// Events of ports that nobody asked for and that have not been reported yet.
    pub(crate) fn notices(&mut self) -> Vec<String> {
        let statistics = self.session.statistics();
        let mut notices = Vec::new();
        for (port, is_reported) in statistics.ports.iter().zip(&mut self.is_stop_reported) {
            if let Some(stop) = &port.stopped
                && !std::mem::replace(is_reported, true)
            {
                let (at_s, reason) = (stop.at_ns as f64 / 1e9, &stop.reason);
                notices.push(format!("port {} stopped at {at_s:.3} s: {reason}", port.port));
            }
        }
        notices.iter().for_each(|notice| self.note(notice));
        notices
    }

    /// Whether a port transmits a number of packets.
    pub(crate) fn has_end(&mut self) -> bool {
        let counted: Vec<usize> =
            (0..self.count()).filter(|port| self.state.ports[*port].count != 0).collect();
        !self.transmitting(&counted).is_empty()
    }

    /// Whether any port transmits.
    pub(crate) fn is_transmitting(&mut self) -> bool {
        !self.transmitting(&(0..self.count()).collect::<Vec<_>>()).is_empty()
    }

    /// Stops all ports; the stats page is the report.
    pub(crate) fn finish(&mut self) -> Vec<String> {
        let all: Vec<usize> = (0..self.count()).collect();
        let stopped = self.session.stop(&all).err();
        // Frames on their way would count as lost.
        self.session.wait_until_quiet(QUIET, QUIET_WAIT_MAX);
        self.state.page = PageName::Stats;
        let mut lines = self.page(page::WIDTH);
        lines.extend(stopped.map(|error| error.to_string()));
        lines
    }
}

/// The number that makes `before` to `now`, where both count the same.
fn factor(before: Rate, now: Rate) -> Option<f64> {
    match (before, now) {
        (Rate::PercentOfLine(before), Rate::PercentOfLine(now))
        | (Rate::PacketsPerSecond(before), Rate::PacketsPerSecond(now))
        | (Rate::BitsPerSecondL1(before), Rate::BitsPerSecondL1(now))
        | (Rate::BitsPerSecondL2(before), Rate::BitsPerSecondL2(now)) => Some(now / before),
        (
            Rate::PercentOfLine(_)
            | Rate::PacketsPerSecond(_)
            | Rate::BitsPerSecondL1(_)
            | Rate::BitsPerSecondL2(_)
            | Rate::Max,
            _,
        ) => None,
    }
}
