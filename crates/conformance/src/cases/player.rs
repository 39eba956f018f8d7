//! Plays one case.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use ::cases::{Case, Step, hex};
use openflow::flow::{FlowMod, FlowRemoved};
use openflow::message::{
    AsyncConfig, MultipartReplyBody, MultipartRequestBody, PacketIn, PacketOut, SwitchConfig,
};
use openflow::port::{PortConfig, PortDesc, PortFeatures, PortMod, PortState};
use openflow::text::{parse_actions, parse_port};
use openflow::{Message, PortNo, Version};

use super::counters::{counter, is_seen, is_since_start};
use super::{CheckError, PlayPace, PlayedSwitch};
use crate::change;

/// Between two looks at ports and channels.
const LOOK: Duration = Duration::from_micros(200);

/// Longest delay of an entry's end after its timeout, beside [`PlayPace::patience`].
const EXPIRY: Duration = Duration::from_secs(3);

/// Port settings that a controller of 1.0 alone can set.
const OF_V1_0: PortConfig = PortConfig::NO_FLOOD.union(PortConfig::NO_RECV_STP);

/// A switch in the middle of a case.
pub(super) struct Player<'a> {
    switch: &'a mut dyn PlayedSwitch,
    pace: PlayPace,
    /// The version under check.
    main: Version,
    /// The version of the commands.
    version: Version,
    /// The version on whose channel packet-ins count.
    listener: Version,
    /// Versions of which there is a channel.
    channels: Vec<Version>,
    flows: Vec<FlowMod>,
    /// Frames that have left by each port, and no step has named.
    left: Vec<VecDeque<Vec<u8>>>,
    packet_ins: VecDeque<PacketIn>,
    removed: VecDeque<FlowRemoved>,
    refused: Option<String>,
    /// Something may be on its way since the last time that all was quiet.
    is_moving: bool,
    /// Something was changed since the last frame.
    is_fresh: bool,
    /// Ports that are not as they were.
    changed_ports: Vec<u32>,
    has_other_config: bool,
    has_other_async: bool,
    /// When the first frame was sent, and when the last was sent or came.
    frames: Option<(Instant, Instant)>,
    /// The middle of the addresses of its stations, where the case has NORMAL: a learning switch
    /// knows those of earlier plays.
    stations: Option<u16>,
    /// Values before the case of counters that never begin anew.
    before: BTreeMap<String, u64>,
}

fn unplayable(error: impl std::fmt::Display) -> CheckError {
    CheckError::Unsaid(error.to_string())
}

fn otherwise(what: impl Into<String>) -> CheckError {
    CheckError::Otherwise(what.into())
}

fn expect(what: &str, found: &str, wanted: &str) -> Result<(), CheckError> {
    if found == wanted {
        return Ok(());
    }
    Err(otherwise(format!("{what} is {found}, expected {wanted}")))
}

/// A frame as it looks on Ethernet: the sender fills it up to 60 bytes (IEEE 802.3, 4.2.3.3).
fn padded(frame: &[u8]) -> String {
    let mut frame = frame.to_vec();
    frame.resize(frame.len().max(60), 0);
    hex::digits(&frame)
}

/// Whether an error says that the switch does not have what is asked, and not that it is wrong.
fn is_unsupported(error: &str) -> bool {
    let families = ["OFPBRC_", "OFPBAC_", "OFPBIC_", "OFPBMC_"];
    let ends = [
        "UNSUPPORTED",
        // The name of 1.0's UNSUPPORTED since 1.1.
        "OFPFMFC_UNKNOWN",
        "_FULL",
        "_BAD_TABLE_ID",
        "_BAD_FLAGS",
        "_BAD_CONFIG",
        "_BAD_TYPE",
        "_BAD_BAND",
        "_BAD_BAND_VALUE",
        "_BAD_RATE",
        "_BAD_BURST",
    ];
    families.iter().any(|family| error.starts_with(family))
        || ends.iter().any(|end| error.ends_with(end))
        || error.contains("_OUT_OF_")
}

impl<'a> Player<'a> {
    pub(super) fn new(switch: &'a mut dyn PlayedSwitch, version: Version, pace: PlayPace) -> Self {
        let ports = switch.ports() as usize;
        Self {
            switch,
            pace,
            main: version,
            version,
            listener: version,
            channels: vec![version],
            flows: Vec::new(),
            left: vec![VecDeque::new(); ports],
            packet_ins: VecDeque::new(),
            removed: VecDeque::new(),
            refused: None,
            is_moving: false,
            is_fresh: true,
            changed_ports: Vec::new(),
            has_other_config: false,
            has_other_async: false,
            frames: None,
            stations: None,
            before: BTreeMap::new(),
        }
    }

    /// Plays the case, and leaves the switch as it was; else the line at which it ended, and why.
    pub(super) fn play(&mut self, case: &Case) -> Result<(), (usize, CheckError)> {
        let played = self.begin(case).map_err(|end| (case.line, end)).and_then(|()| {
            // What no step has named is due to the last one that did something.
            let mut acted = case.line;
            for (line, step) in &case.steps {
                if step.acts() {
                    self.check_none().map_err(|end| (acted, end))?;
                    acted = *line;
                }
                self.step(step).map_err(|end| (*line, end))?;
            }
            self.check_none().map_err(|end| (acted, end))
        });
        let is_over = |of: &Result<(), (usize, CheckError)>| {
            matches!(of, Err((_, CheckError::Broken(_) | CheckError::Stopped(_))))
        };
        if is_over(&played) {
            return played;
        }
        let restored = self.restore().map_err(|end| (case.line, end));
        // The channel is to be opened anew, whatever came of the case.
        if is_over(&restored) { restored } else { played.and(restored) }
    }

    /// Opens the channels anew after one has failed, and leaves the switch as it was.
    pub(super) fn reconnect(&mut self) -> Result<(), CheckError> {
        self.switch.reconnect()?;
        self.channels = vec![self.main];
        self.restore()
    }

    /// The time from the first frame to the last, in which a meter lets more through.
    pub(super) fn traffic(&self) -> Duration {
        self.frames.map_or(Duration::ZERO, |(first, last)| last - first)
    }

    fn begin(&mut self, case: &Case) -> Result<(), CheckError> {
        static PLAYS: AtomicU16 = AtomicU16::new(1);
        self.switch.reset()?;
        let is_normal = |text: &str| text.to_ascii_lowercase().contains("normal");
        let learns = |step: &Step| matches!(step, Step::Flow(text) if is_normal(text));
        if case.steps.iter().any(|(_, step)| learns(step)) {
            self.stations = Some(PLAYS.fetch_add(1, Ordering::Relaxed));
        }
        for (_, step) in &case.steps {
            let Step::Counter { what, .. } = step else { continue };
            if is_seen(what) && is_since_start(what) && !self.before.contains_key(what) {
                let value = counter(self.switch, &self.flows, what)?;
                self.before.insert(what.clone(), value);
            }
        }
        Ok(())
    }

    /// Puts back what a reset of the switch does not; what cannot be is known still.
    fn restore(&mut self) -> Result<(), CheckError> {
        while let Some(&port) = self.changed_ports.last() {
            self.port(port, &[])?;
            self.changed_ports.pop();
        }
        if self.has_other_config {
            self.set_config(0)?;
        }
        if self.has_other_async {
            self.invalid_ttl(false)?;
        }
        Ok(())
    }

    /// Fails if something has come that no step has named, as it must before one that does more.
    fn check_none(&mut self) -> Result<(), CheckError> {
        if let Some(error) = self.refused.take() {
            let is_unsupported = is_unsupported(&error);
            let end = if is_unsupported { CheckError::Refused } else { CheckError::Otherwise };
            return Err(end(format!("refused with {error}")));
        }
        if self.is_moving {
            let end = Instant::now() + self.pace.quiet;
            while Instant::now() < end {
                self.look()?;
                std::thread::sleep(LOOK);
            }
            self.is_moving = false;
        }
        self.look()?;
        for (port, left) in (1..).zip(&self.left) {
            if let Some(frame) = left.front() {
                let what = format!("by port {port} left {}, expected nothing", hex::digits(frame));
                return Err(otherwise(what));
            }
        }
        if let Some(message) = self.packet_ins.front() {
            let (reason, data) = (message.reason.text(), hex::digits(&message.data));
            return Err(otherwise(format!("a packet-in came ({reason} {data}), expected none")));
        }
        if let Some(gone) = self.removed.front() {
            let reason = gone.reason.text();
            return Err(otherwise(format!("an entry was removed ({reason}), expected none")));
        }
        Ok(())
    }

    /// Notes that a frame is sent.
    fn note_sent(&mut self) {
        let now = Instant::now();
        self.is_moving = true;
        self.frames = Some((self.frames.map_or(now, |(first, _)| first), now));
    }

    /// Notes that a frame has come.
    fn note_come(&mut self) {
        if let Some((_, last)) = &mut self.frames {
            *last = Instant::now();
        }
    }

    /// Takes what has come at ports and channels.
    fn look(&mut self) -> Result<(), CheckError> {
        let known = self.left.iter().map(VecDeque::len).sum::<usize>();
        for (port, left) in (1..).zip(&mut self.left) {
            left.extend(self.switch.take(port)?);
        }
        if self.left.iter().map(VecDeque::len).sum::<usize>() > known {
            self.note_come();
        }
        for version in self.channels.clone() {
            for message in self.switch.came(version)? {
                self.keep(version, message);
            }
        }
        Ok(())
    }

    fn keep(&mut self, version: Version, message: Message) {
        if let Message::PacketIn(packet) = message {
            if version == self.listener {
                self.note_come();
                self.packet_ins.push_back(packet);
            }
        } else if let Message::FlowRemoved(gone) = message
            && version == self.main
        {
            self.removed.push_back(gone);
        }
    }

    /// Looks until there is something; fails with `none` when patience ends.
    fn within<T>(
        &mut self,
        limit: Duration,
        none: &str,
        mut found: impl FnMut(&mut Self) -> Option<T>,
    ) -> Result<T, CheckError> {
        let end = Instant::now() + limit;
        loop {
            let is_last = Instant::now() >= end;
            self.look()?;
            match found(self) {
                Some(what) => return Ok(what),
                None if is_last => return Err(otherwise(none)),
                None => std::thread::sleep(LOOK),
            }
        }
    }

    fn step(&mut self, step: &Step) -> Result<(), CheckError> {
        match step {
            Step::Flow(text) => self.change("flow", text),
            Step::Group(text) => self.change("group", text),
            Step::Meter(text) => self.change("meter", text),
            Step::Change { what, text } => self.change(what, text),
            Step::Error(name) => match self.refused.take() {
                Some(error) => expect("the error", &error, name),
                None => Err(otherwise(format!("taken, expected {name}"))),
            },
            Step::Version(name) => {
                let version =
                    Version::from_name(name).ok_or_else(|| unplayable("no such version"))?;
                self.version = version;
                self.open(version)
            }
            Step::Setting(text) => self.setting(text),
            Step::Port { port, words } => self.port(*port, words),
            Step::Wait { ns } => {
                std::thread::sleep(Duration::from_nanos(*ns));
                Ok(())
            }
            Step::Removed(reason) => {
                let limit = self.pace.patience + EXPIRY;
                let none = "no flow-removed message came";
                let gone = self.within(limit, none, |player| player.removed.pop_front())?;
                expect("the reason", gone.reason.text(), reason)
            }
            Step::PacketOut { in_port, frame, actions } => {
                let packet_out = PacketOut {
                    buffer_id: None,
                    in_port: parse_port(in_port).map_err(unplayable)?,
                    actions: parse_actions(actions).map_err(unplayable)?,
                    data: frame.clone(),
                };
                self.note_sent();
                self.command(self.version, &Message::PacketOut(packet_out))
            }
            Step::In { port, frame } => {
                if std::mem::take(&mut self.is_fresh) {
                    std::thread::sleep(self.pace.obey);
                }
                self.note_sent();
                self.switch.put(*port, &self.between_own_stations(frame))
            }
            // Which queue a frame waited in is not seen from outside.
            Step::Out { port, frame, .. } => self.out(*port, &self.between_own_stations(frame)),
            Step::PacketIn { reason, frame } => {
                let (limit, wanted) = (self.pace.patience, padded(frame));
                let none = format!("no packet-in came, expected {reason} {wanted}");
                let sent = self.within(limit, &none, |player| player.packet_ins.pop_front())?;
                expect("the reason", sent.reason.text(), reason)?;
                expect("the packet-in", &padded(&sent.data), &wanted)
            }
            // Why a frame does not leave is not seen from outside.
            Step::Drop(_) => Ok(()),
            Step::Counter { what, .. } if !is_seen(what) => Ok(()),
            Step::Counter { what, value } => self.counted(what, *value),
            Step::Late { .. } | Step::Talk { .. } => Err(unplayable("it cannot be played")),
        }
    }

    /// A frame of the case, from and to stations that no earlier play had.
    fn between_own_stations<'f>(&self, frame: &'f [u8]) -> Cow<'f, [u8]> {
        const STATION: [u8; 5] = [2, 0, 0, 0, 0];
        let Some(stations) = self.stations else { return frame.into() };
        let mut frame = frame.to_vec();
        for address in frame.chunks_exact_mut(6).take(2).filter(|it| it.starts_with(&STATION)) {
            address[3..5].copy_from_slice(&stations.to_be_bytes());
        }
        frame.into()
    }

    fn out(&mut self, port: u32, frame: &[u8]) -> Result<(), CheckError> {
        let (index, limit, wanted) = (port as usize - 1, self.pace.patience, padded(frame));
        let none = format!("nothing left by port {port}, expected {wanted}");
        let left = self.within(limit, &none, |player| player.left.get_mut(index)?.pop_front())?;
        expect(&format!("the frame by port {port}"), &padded(&left), &wanted)
    }

    /// Makes sure of a channel of that version.
    fn open(&mut self, version: Version) -> Result<(), CheckError> {
        if self.channels.contains(&version) {
            return Ok(());
        }
        let came = match self.switch.carry_out(version, &Message::EchoRequest(Vec::new())) {
            Ok((_, came)) => came,
            Err(CheckError::Broken(why)) => {
                let name = version.name();
                return Err(unplayable(format!("no channel of {name} beside: {why}")));
            }
            Err(error) => return Err(error),
        };
        self.channels.push(version);
        came.into_iter().for_each(|message| self.keep(version, message));
        Ok(())
    }

    /// Sends a command in that version and waits until it is done.
    fn command(&mut self, version: Version, message: &Message) -> Result<(), CheckError> {
        let (refused, came) = self.switch.carry_out(version, message)?;
        self.is_fresh = true;
        self.refused = refused.map(|error| error.name(version));
        came.into_iter().for_each(|message| self.keep(version, message));
        Ok(())
    }

    /// Adds or changes flows, groups or meters.
    fn change(&mut self, key: &str, text: &str) -> Result<(), CheckError> {
        let message = change(key, text)?;
        if let ("flow", Message::FlowMod(added)) = (key, &message) {
            self.flows.push(added.clone());
        }
        self.command(self.version, &message)
    }

    fn setting(&mut self, text: &str) -> Result<(), CheckError> {
        match text {
            // In 1.0 a miss goes to the controller.
            "miss=controller" => {
                self.listener = Version::OLDEST;
                self.open(Version::OLDEST)
            }
            "fragments=normal" => self.set_config(0),
            "fragments=drop" => self.set_config(1),
            "fragments=reassemble" => self.set_config(2),
            "invalid_ttl=drop" => self.invalid_ttl(false),
            "invalid_ttl=controller" => self.invalid_ttl(true),
            other => Err(unplayable(format!("`{other}` is no setting of OpenFlow"))),
        }
    }

    /// Sets how fragments are treated. A switch may pass over what it does not have; it says how it
    /// is set.
    fn set_config(&mut self, flags: u16) -> Result<(), CheckError> {
        self.has_other_config = true;
        let config = SwitchConfig { flags, miss_send_len: u16::MAX };
        self.command(self.main, &Message::SetConfig(config))?;
        let answer = self.switch.ask(&Message::GetConfigRequest)?;
        let Message::GetConfigReply(found) = answer else {
            return Err(otherwise(format!("another answer than asked: {answer:?}")));
        };
        let found = found.flags & 3;
        if found == flags {
            self.has_other_config = flags != 0;
            return Ok(());
        }
        let what = format!("the way with fragments was set to {flags}, and stays {found}");
        Err(CheckError::Refused(what))
    }

    fn invalid_ttl(&mut self, is_sent: bool) -> Result<(), CheckError> {
        self.has_other_async = true;
        let message = Message::SetAsync(AsyncConfig::new(
            [if is_sent { 0b111 } else { 0b011 }, 0],
            [0b111, 0b111],
            [0b1111, 0],
        ));
        self.command(self.main, &message)?;
        self.has_other_async = is_sent;
        Ok(())
    }

    fn port_desc(&mut self, number: u32) -> Result<PortDesc, CheckError> {
        let reply = self.switch.statistics(MultipartRequestBody::PortDesc)?;
        let MultipartReplyBody::PortDesc(ports) = reply else {
            return Err(otherwise(format!("another answer than asked: {reply:?}")));
        };
        let mut ports = ports.into_iter();
        let port = ports.find(|port| port.port_no == PortNo(number));
        port.ok_or_else(|| otherwise(format!("the switch does not describe port {number}")))
    }

    /// Gives the port these settings and states, and no others.
    fn port(&mut self, number: u32, words: &[String]) -> Result<(), CheckError> {
        let (mut config, mut has_link) = (PortConfig::empty(), true);
        for word in words {
            match PortConfig::from_name(&word.to_ascii_uppercase()) {
                Some(set) => config |= set,
                None if word == "link_down" => has_link = false,
                None => return Err(unplayable(format!("`{word}` is no word for a port"))),
            }
        }
        if !self.changed_ports.contains(&number) {
            self.changed_ports.push(number);
        }
        let PortDesc { hw_addr, config: held, .. } = self.port_desc(number)?;
        let all = PortConfig::PORT_DOWN
            | PortConfig::NO_RECV
            | PortConfig::NO_FWD
            | PortConfig::NO_PACKET_IN;
        let port_mod = |config, mask| {
            let advertise = PortFeatures::empty();
            Message::PortMod(PortMod { port_no: PortNo(number), hw_addr, config, mask, advertise })
        };
        if held & all != config & all {
            self.command(self.main, &port_mod(config & all, all))?;
        }
        if (config | held).intersects(OF_V1_0) {
            self.open(Version::OLDEST)?;
            self.command(Version::OLDEST, &port_mod(config & OF_V1_0, OF_V1_0))?;
        }
        self.switch.set_link(number, has_link)?;
        // The device of a port that is down has no link either, whatever stands at its far end.
        if config.contains(PortConfig::PORT_DOWN) {
            return Ok(());
        }
        let end = Instant::now() + self.pace.patience;
        while self.port_desc(number)?.state.contains(PortState::LINK_DOWN) == has_link {
            if Instant::now() >= end {
                let is = if has_link { "down" } else { "up" };
                return Err(otherwise(format!("the link of port {number} is still {is}")));
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Waits for the counter's value: a packet that has left may not have been counted yet.
    fn counted(&mut self, what: &str, value: u64) -> Result<(), CheckError> {
        let before = self.before.get(what).copied().unwrap_or(0);
        // Some switches gather their counters once a second.
        let end = Instant::now() + self.pace.patience + Duration::from_secs(1);
        loop {
            // When a frame comes that nobody expects is known then.
            self.look()?;
            let found = counter(self.switch, &self.flows, what)?;
            if found == u64::MAX && value != found {
                return Err(CheckError::Refused(format!("the switch does not count {what}")));
            }
            let found = found.wrapping_sub(before);
            if found == value {
                return Ok(());
            }
            if Instant::now() >= end {
                return Err(otherwise(format!("{what} is {found}, expected {value}")));
            }
            std::thread::sleep(LOOK * 10);
        }
    }
}
