//! Loading streams into a port: all of them or none.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use netdev::pcap::Capture;
use packet::FRAME_CAPACITY;
use rustix::fs::OFlags;

use super::line_use::LineUse;
use super::rx_thread::{ExpectedStream, ReceiveCommand};
use super::sender::SendCommand;
use super::{LoadedStream, Session, SessionPort, StartedPort, line_use};
use crate::file_conflicts::FileUse;
use crate::probe::StreamId;
use crate::profile::{
    CaptureReplay, CaptureTiming, FCS_LEN, FieldModifier, Mode, Modifier, Profile, ProfileError,
    Rate, StreamSpec,
};
use crate::receiver::ReceiverOptions;
use crate::schedule::StreamSchedule;
use crate::template::{FrameMaker, probe_size};
use crate::transmit::PortStream;

impl Session {
    /// Replaces the streams of a port. One that is sending goes on with the new ones at once; its
    /// own `port` does not matter. What was counted of the streams before is forgotten; the counts
    /// of the ports go on, those of what was sent as those of what was received.
    ///
    /// # Errors
    /// The mistake in the first stream that cannot be sent; the port then has the streams that it
    /// had.
    pub fn load(&mut self, port: usize, streams: &[StreamSpec]) -> Result<(), ProfileError> {
        self.load_at(port, streams, None)
    }

    /// As [`Session::load`]; a port that is sending goes on at `factor` times the streams' own
    /// rates, whatever [`Session::update`] or the start set before, or at these where it is
    /// `None`.
    ///
    /// # Errors
    /// As [`Session::load`], and a factor that is no positive number.
    pub fn load_at(
        &mut self,
        port: usize,
        streams: &[StreamSpec],
        factor: Option<f64>,
    ) -> Result<(), ProfileError> {
        let count = self.ports.len();
        if port >= count {
            let reason = format!("there are {count} ports, from 0 on, and none {port}");
            let name = streams.first().map_or("", |stream| stream.name.as_str());
            return Err(ProfileError::new(name, "port", reason));
        }
        if let Some(factor) = factor.filter(|factor| !factor.is_finite() || *factor <= 0.0) {
            let name = streams.first().map_or("", |stream| stream.name.as_str());
            let reason = format!("times {factor:?}: use a number above 0");
            return Err(ProfileError::new(name, "rate", reason));
        }
        let streams = streams.iter().map(|stream| StreamSpec { port, ..stream.clone() });
        let specs = Profile { streams: streams.collect() }.named()?.streams;
        self.check_captures(&specs)?;
        let ids = self.take_ids(port, &specs)?;
        let built = build(&self.ports[port].facts(), &specs, &ids);
        let was_transmitting = self.is_transmitting(port);
        let before = self.ports[port].started.filter(|_| was_transmitting);
        let factor = before.map(|started| factor.unwrap_or(started.factor));
        let line_rate_bps = self.ports[port].line_rate_bps;
        let checked = built.and_then(|built| {
            line_use::check(&built.1, factor.unwrap_or(1.0), line_rate_bps).map(|()| built)
        });
        let (mut streams, loaded) = match checked {
            Ok(built) => built,
            Err(error) => {
                self.give_back_ids(port, ids);
                return Err(error);
            }
        };
        let senders = &self.ports[port].senders;
        senders.send(|| SendCommand::Stop(None));
        // Numbers go on where an earlier stream with the same number has ended, so that none of its
        // frames that is still on its way is taken for a new one.
        let ended = senders.numbers(SendCommand::Numbers);
        for stream in &mut streams {
            let known = ended.iter().find(|(id, _)| *id == stream.id);
            let first = known
                .map(|(_, next)| *next)
                .or_else(|| ids.iter().find(|(id, _)| *id == stream.id).map(|(_, first)| *first));
            stream.maker.number_from(first.unwrap_or_default());
        }
        let kept: Vec<StreamId> = ids.iter().map(|(id, _)| *id).collect();
        self.free_ids.extend(ended.into_iter().filter(|(id, _)| !kept.contains(id)));
        let both = loaded.iter().zip(&streams);
        let expected: Vec<ExpectedStream> =
            both.map(|(loaded, stream)| loaded.expected(stream.maker.sequence())).collect();
        for receiver in self.ports.iter().map(|port| &port.receiver) {
            let _ = receiver.ask(|answer| ReceiveCommand::Streams(expected.clone(), answer));
        }
        let port = &mut self.ports[port];
        port.streams = loaded;
        port.senders.load(streams);
        if let Some((StartedPort { end_ns, .. }, factor)) = before.zip(factor) {
            let at_ns = self.clock.now_ns();
            port.started = Some(StartedPort { end_ns, factor });
            port.senders.start_streams(at_ns, end_ns, factor);
        }
        Ok(())
    }

    /// A capture file that a port writes is empty by now, and grows while it is sent.
    fn check_captures(&self, specs: &[StreamSpec]) -> Result<(), ProfileError> {
        for spec in specs {
            let Some(CaptureReplay { file, .. }) = &spec.capture else { continue };
            let name = format!("capture file {}", file.display());
            self.files
                .check(&name, file, FileUse::Read)
                .map_err(|error| ProfileError::new(&spec.name, "capture", error.to_string()))?;
        }
        Ok(())
    }

    /// A number for each stream: those of the port's streams so far, then those that are free.
    fn take_ids(
        &mut self,
        port: usize,
        specs: &[StreamSpec],
    ) -> Result<Vec<(StreamId, u64)>, ProfileError> {
        let mut ids: Vec<(StreamId, u64)> =
            self.ports[port].streams.iter().map(|stream| (stream.id, 0)).collect();
        ids.truncate(specs.len());
        while ids.len() < specs.len() {
            let id = match self.free_ids.pop() {
                Some(id) => id,
                None => {
                    let Some(next) = self.next_id.checked_add(1) else {
                        let name = &specs[ids.len()].name;
                        self.give_back_ids(port, ids);
                        let reason = format!("a session has at most {} streams", u16::MAX);
                        return Err(ProfileError::new(name, "name", reason));
                    };
                    (StreamId(std::mem::replace(&mut self.next_id, next)), 0)
                }
            };
            ids.push(id);
        }
        Ok(ids)
    }

    fn give_back_ids(&mut self, port: usize, ids: Vec<(StreamId, u64)>) {
        let own = &self.ports[port].streams;
        let is_own = |id: &StreamId| own.iter().any(|stream| stream.id == *id);
        self.free_ids.extend(ids.into_iter().filter(|(id, _)| !is_own(id)));
    }
}

impl LoadedStream {
    /// The stream as its receivers expect it: its next frame has the number `first`.
    pub(super) fn expected(&self, first: u64) -> ExpectedStream {
        ExpectedStream { id: self.id, first, options: self.arrival }
    }
}

/// The port for which streams are built.
#[derive(Clone, Copy, Debug)]
pub(super) struct PortFacts<'a> {
    pub(super) name: &'a str,
    pub(super) mac: [u8; 6],
    pub(super) mtu: u32,
    pub(super) line_rate_bps: f64,
}

impl SessionPort {
    fn facts(&self) -> PortFacts<'_> {
        let Self { name, mac, mtu, line_rate_bps, .. } = self;
        PortFacts { name, mac: *mac, mtu: *mtu, line_rate_bps: *line_rate_bps }
    }
}

/// The streams, ready to be sent, and what the session remembers of them.
pub(super) type Built = (Vec<PortStream>, Vec<LoadedStream>);

pub(super) fn build(
    port: &PortFacts<'_>,
    specs: &[StreamSpec],
    ids: &[(StreamId, u64)],
) -> Result<Built, ProfileError> {
    let (mut streams, mut loaded) = (Vec::new(), Vec::new());
    let mut next_tag = 1;
    let starting = starting(specs);
    for (spec, (id, _)) in specs.iter().zip(ids) {
        check_numbers(spec)?;
        let (maker, plan) = match &spec.capture {
            None => {
                let maker = FrameMaker::new(spec, *id, next_tag, port.mac)?;
                let rate =
                    StreamSchedule::rated(spec.rate, port.line_rate_bps, spec.mode, spec.arrival);
                (maker, rate)
            }
            Some(replay) => replayed(spec, replay, port, *id, next_tag)?,
        };
        next_tag += maker.template_count();
        if let Some((size, header)) = maker.beyond_mtu(port.mtu) {
            let longest = port.mtu.saturating_add(header + FCS_LEN);
            let reason =
                format!("{size} bytes: {} takes at most {longest} with these headers", port.name);
            return Err(ProfileError::new(&spec.name, "size", reason));
        }
        loaded.push(LoadedStream {
            id: *id,
            name: spec.name.clone(),
            has_probes: maker.has_probes(),
            wants_probes: is_recognised(spec),
            probe_size: probe_size(spec).unwrap_or_default(),
            never_starts: !starting.contains(&loaded.len()),
            arrival: ReceiverOptions {
                late_after_ns: spec.late_after_us.map_or(u64::MAX, |us| (us * 1e3) as u64),
                verify_checksums: spec.verify_checksums,
                ..ReceiverOptions::default()
            },
            line_use: if is_timed_by_rate(spec) {
                LineUse::new(spec, maker.mean_size(), port.line_rate_bps)
            } else {
                None
            },
        });
        streams.push(PortStream {
            id: *id,
            maker,
            plan,
            start_after_ns: (spec.start_after_s * 1e9) as u64,
            starts_itself: spec.self_start,
            next: next_place(specs, spec),
        });
    }
    Ok((streams, loaded))
}

/// Whether frames are to carry number and time stamp.
fn is_recognised(spec: &StreamSpec) -> bool {
    spec.probe && spec.capture.is_none()
}

/// The streams that start some time: with their port, or behind one that does and that ends.
fn starting(specs: &[StreamSpec]) -> BTreeSet<usize> {
    let mut waiting: Vec<usize> =
        (0..specs.len()).filter(|place| specs[*place].self_start).collect();
    let mut found = BTreeSet::new();
    while let Some(place) = waiting.pop() {
        if found.insert(place) && has_end(&specs[place]) {
            waiting.extend(next_place(specs, &specs[place]));
        }
    }
    found
}

/// The place of the stream that starts when `spec` has ended.
fn next_place(specs: &[StreamSpec], spec: &StreamSpec) -> Option<usize> {
    let next = spec.next.as_ref()?;
    specs.iter().position(|other| other.name == *next)
}

/// Whether the stream has a last frame.
fn has_end(spec: &StreamSpec) -> bool {
    let by_mode = spec.mode.frames().is_some();
    spec.capture.as_ref().map_or(by_mode, |capture| {
        capture.loops > 0 || (capture.timing == CaptureTiming::Rate && by_mode)
    })
}

/// Whether the stream's rate says when its frames are due; else a capture file does.
fn is_timed_by_rate(spec: &StreamSpec) -> bool {
    spec.capture.as_ref().is_none_or(|capture| capture.timing == CaptureTiming::Rate)
}

/// The longest time of a profile that means something, in seconds: a hundred years.
const TIME_MAX_S: f64 = 100.0 * 365.25 * 86_400.0;

/// The longest capture file, in bytes; all of its frames are kept in memory.
const CAPTURE_MAX: u64 = 1 << 30;

/// Whether the frames of a stream can be made, as far as no port and no file is needed to know it.
///
/// # Errors
/// The mistake in the stream.
pub fn check_stream(spec: &StreamSpec) -> Result<(), ProfileError> {
    check_numbers(spec)?;
    match spec.capture {
        Some(_) => Ok(()),
        None => FrameMaker::new(spec, StreamId(1), 1, [0; 6]).map(drop),
    }
}

/// Numbers that no text form lets through, but that a program can make.
fn check_numbers(spec: &StreamSpec) -> Result<(), ProfileError> {
    let wrong = |field: &str, reason: String| Err(ProfileError::new(&spec.name, field, reason));
    let rate = match spec.rate {
        Rate::PercentOfLine(rate)
        | Rate::PacketsPerSecond(rate)
        | Rate::BitsPerSecondL1(rate)
        | Rate::BitsPerSecondL2(rate) => rate,
        Rate::Max => 1.0,
    };
    if !rate.is_finite() || rate <= 0.0 {
        return wrong("rate", format!("{rate:?}: use a number above 0"));
    }
    if !(0.0..=TIME_MAX_S).contains(&spec.start_after_s) {
        let reason = format!("{:?}: use 0 to {TIME_MAX_S}", spec.start_after_s);
        return wrong("start_after_s", reason);
    }
    // What is not recognised cannot be accounted for.
    let is_recognised = is_recognised(spec);
    if spec.verify_checksums && !is_recognised {
        return wrong("verify_checksums", "the frames carry no sequence number".to_owned());
    }
    if let Some(late_us) = spec.late_after_us {
        if !(0.0..=TIME_MAX_S * 1e6).contains(&late_us) {
            return wrong("late_after_us", format!("{late_us:?}: use 0 to {}", TIME_MAX_S * 1e6));
        }
        if !is_recognised {
            return wrong("late_after_us", "the frames carry no time stamp".to_owned());
        }
    }
    for (place, modifier) in spec.modifiers.iter().enumerate() {
        if let Modifier::Field(FieldModifier { step: Some(0), .. }) = modifier {
            let reason = "0: the field would not differ; use 1 or more".to_owned();
            return wrong(&format!("modifiers[{place}].step"), reason);
        }
    }
    if spec.mode.frames() == Some(0) {
        return wrong("mode", "no frame at all: use 1 or more".to_owned());
    }
    if let Mode::Bursts { gap_us, .. } = spec.mode
        && !(0.0..=TIME_MAX_S * 1e6).contains(&gap_us)
    {
        return wrong("mode", format!("a gap of {gap_us:?} us: use 0 to {}", TIME_MAX_S * 1e6));
    }
    Ok(())
}

/// Reads a regular file of at most [`CAPTURE_MAX`] bytes; anything else might wait for ever.
fn read_capture(path: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, rustix::fs::Mode::empty())?);
    let facts = file.metadata()?;
    if !facts.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut bytes = Vec::new();
    if facts.len() <= CAPTURE_MAX {
        file.take(CAPTURE_MAX + 1).read_to_end(&mut bytes)?;
    }
    if facts.len().max(bytes.len() as u64) > CAPTURE_MAX {
        return Err(io::Error::other(format!("more than {} MiB", CAPTURE_MAX >> 20)));
    }
    Ok(bytes)
}

/// The frames and the schedule of a capture file.
fn replayed(
    spec: &StreamSpec,
    replay: &CaptureReplay,
    port: &PortFacts<'_>,
    id: StreamId,
    first_tag: u32,
) -> Result<(FrameMaker, StreamSchedule), ProfileError> {
    let path = replay.file.display();
    let wrong = |reason: String| ProfileError::new(&spec.name, "capture", reason);
    let bytes = read_capture(&replay.file).map_err(|error| wrong(format!("{path}: {error}")))?;
    let capture = Capture::parse(bytes).map_err(|error| wrong(format!("{path}: {error}")))?;
    let records: Vec<_> = (0..capture.len()).filter_map(|n| capture.record(n)).collect();
    let Some(first) = records.first() else {
        return Err(wrong(format!("{path} holds no frame")));
    };
    let start = first.time;
    let mut frames = Vec::new();
    let mut offsets_ns = Vec::new();
    for (number, record) in records.iter().enumerate() {
        if record.frame.is_empty() || record.frame.len() > FRAME_CAPACITY {
            let len = record.frame.len();
            return Err(wrong(format!("{path}, frame {}: {len} bytes", number + 1)));
        }
        if record.wire_len as usize > record.frame.len() {
            let (kept, all) = (record.frame.len(), record.wire_len);
            return Err(wrong(format!(
                "{path}, frame {}: only {kept} of its {all} bytes were captured; capture with a \
                 greater snap length",
                number + 1
            )));
        }
        frames.push(record.frame.to_vec());
        // A clock that was set back must not send the file backwards.
        let offset = u64::try_from(record.time.saturating_sub(start).as_nanos());
        let offset = offset.unwrap_or(u64::MAX / 2);
        offsets_ns.push(offset.max(offsets_ns.last().copied().unwrap_or_default()));
    }
    let maker = FrameMaker::of_frames(&frames, id, first_tag);
    let scale = match replay.timing {
        CaptureTiming::Original => 1.0,
        CaptureTiming::Scale(scale) if scale.is_finite() && scale > 0.0 => scale,
        CaptureTiming::Scale(scale) => {
            return Err(wrong(format!("a scale of {scale:?}: use a number above 0")));
        }
        CaptureTiming::Rate => {
            let count = replay.loops.saturating_mul(frames.len() as u64);
            let mode = if count == 0 { spec.mode } else { Mode::Burst(count) };
            let plan = StreamSchedule::rated(spec.rate, port.line_rate_bps, mode, spec.arrival);
            return Ok((maker, plan));
        }
    };
    Ok((maker, StreamSchedule::recorded(offsets_ns, scale, replay.loops)))
}
