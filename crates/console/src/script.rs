//! Scripts: files of commands (`.pkt`), read and tried as a whole before any takes effect.
//!
//! Each line is parsed, and carried out on a copy of the settings, so that an error in line 40 is
//! known before line 1 changes anything. Where a port would send, its streams are made as the
//! generator makes them. Errors name line, column and what is allowed.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use generator::file_conflicts::{FileUse, FilesInUse};
use generator::profile::{Payload, StreamSpec};

use crate::arp;
use crate::effect::Effect;
use crate::state::packet::mac_text;
use crate::state::{Bound, ConsoleState, PacketSettings, PortSettings, RANGE_FIELDS, RangeField};
use crate::streams;
use crate::words::{self, LineError, ParsedLine};

/// Longest script in bytes.
const SCRIPT_MAX: u64 = 1 << 20;

/// Scripts that may call each other.
const DEPTH_MAX: usize = 8;

/// Why a script is not carried out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ScriptError {
    /// The file cannot be read.
    #[error("{0}")]
    File(String),
    /// A line is wrong.
    #[error("{}:{line}: {error}", .path.display())]
    Line {
        /// The script.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The mistake.
        error: LineError,
    },
    /// A line cannot be carried out.
    #[error("{}:{line}: {reason}", .path.display())]
    Action {
        /// The script.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// Why not.
        reason: String,
    },
    /// Scripts call each other too deeply.
    #[error("{}: scripts call each other more than {DEPTH_MAX} deep", .0.display())]
    Depth(PathBuf),
}

/// A command of a script.
#[derive(Debug, Clone)]
pub(crate) struct ScriptLine {
    /// The script and the line, for messages.
    pub(crate) place: String,
    /// The command.
    pub(crate) command: ParsedLine,
}

/// The commands of the script at `path` and of those it calls, all known to be right for ports with
/// these settings.
///
/// # Errors
/// The first line that is wrong, in any of the scripts.
pub(crate) fn read(
    path: &Path,
    state: &ConsoleState,
    ports: Vec<ScriptPort>,
    files: &FilesInUse,
) -> Result<Vec<ScriptLine>, ScriptError> {
    let mut reader = ScriptReader { state: state.clone(), ports, files, lines: Vec::new() };
    reader.file(path, 0)?;
    Ok(reader.lines)
}

/// Properties of a port that a script needs besides its settings.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScriptPort {
    /// The rate of the line at layer 1, in bit/s.
    pub(crate) line_rate_bps: f64,
    /// Whether the port sends when the line is reached: each change takes effect at once.
    pub(crate) is_transmitting: bool,
}

struct ScriptReader<'a> {
    state: ConsoleState,
    ports: Vec<ScriptPort>,
    /// Those of the ports.
    files: &'a FilesInUse,
    lines: Vec<ScriptLine>,
}

impl ScriptReader<'_> {
    fn file(&mut self, path: &Path, depth: usize) -> Result<(), ScriptError> {
        if depth == DEPTH_MAX {
            return Err(ScriptError::Depth(path.to_owned()));
        }
        let name = format!("script {}", path.display());
        self.files
            .check(&name, path, FileUse::Read)
            .map_err(|error| ScriptError::File(error.to_string()))?;
        let text = files::read_text(path, SCRIPT_MAX)
            .map_err(|error| ScriptError::File(format!("{}: {error}", path.display())))?;
        for (at, text) in text.lines().enumerate() {
            let line = at + 1;
            let path = path.to_owned();
            let command = match words::parse(text, self.state.ports.len()) {
                Ok(Some(command)) => command,
                Ok(None) => continue,
                Err(error) => return Err(ScriptError::Line { path, line, error }),
            };
            let place = format!("{}:{line}", path.display());
            let tried = command.apply(&mut self.state).and_then(|effect| self.try_effect(effect));
            match tried {
                Ok(Some(called)) => self.file(&called, depth + 1)?,
                Ok(None) => self.lines.push(ScriptLine { place, command }),
                Err(reason) => return Err(ScriptError::Action { path, line, reason }),
            }
        }
        Ok(())
    }

    /// Tries what can be tried without a port; a script that is called comes back.
    fn try_effect(&mut self, effect: Effect) -> Result<Option<PathBuf>, String> {
        match effect {
            Effect::Script(path) => return Ok(Some(path)),
            Effect::Start(ports) => {
                for port in ports {
                    self.try_streams(port)?;
                    // One with a number of packets may be at its end by the next line.
                    self.ports[port].is_transmitting = self.state.ports[port].count == 0;
                }
            }
            Effect::Prime(ports) => {
                ports.into_iter().try_for_each(|port| self.try_streams(port))?;
            }
            Effect::Arp { ports, .. } => {
                ports.into_iter().try_for_each(|port| arp::check(&self.state.ports[port]))?;
            }
            Effect::Changed(ports) | Effect::Rate(ports) => {
                for port in ports.into_iter().filter(|port| self.ports[*port].is_transmitting) {
                    self.try_streams(port)?;
                }
            }
            Effect::Stop(ports) => {
                ports.into_iter().for_each(|port| self.ports[port].is_transmitting = false);
            }
            Effect::Clear
            | Effect::Show
            | Effect::Redraw
            | Effect::Wait(_)
            | Effect::Print(_)
            | Effect::Quit => {}
            Effect::Save(path) => check_save(&path, &self.state, self.files)?,
        }
        Ok(None)
    }

    /// Makes the streams of a port with the settings so far.
    fn try_streams(&self, port: usize) -> Result<(), String> {
        let line_rate_bps = self.ports[port].line_rate_bps;
        let made = streams::of_port(port, &self.state.ports[port], line_rate_bps);
        let is_apart = |specs: &[StreamSpec]| {
            let captures = specs.iter().filter_map(|spec| spec.capture.as_ref());
            captures.map(|capture| &capture.file).try_for_each(|file| {
                let name = format!("capture file {}", file.display());
                self.files.check(&name, file, FileUse::Read).map_err(|error| error.to_string())
            })
        };
        made.and_then(|specs| is_apart(&specs).map(|()| specs))
            .and_then(|specs| streams::check_all(&specs, line_rate_bps))
            .map_err(|reason| format!("port {port}: {reason}"))
    }
}

/// Whether settings can be saved at `path`: not where a port has its file, nor over a capture that
/// one is to send.
///
/// # Errors
/// The use that has this file.
pub(crate) fn check_save(
    path: &Path,
    state: &ConsoleState,
    files: &FilesInUse,
) -> Result<(), String> {
    let mut files = files.clone();
    for file in state.ports.iter().filter_map(|port| port.pcap_file.as_ref()) {
        // One that a port writes cannot be sent, which is refused where it is to be.
        let _ = files.add(&format!("capture file {}", file.display()), file, FileUse::Read);
    }
    let name = format!("settings {}", path.display());
    files.check(&name, path, FileUse::Write).map_err(|error| error.to_string())
}

/// The settings as commands that set them again.
pub(crate) fn save(state: &ConsoleState) -> String {
    let mut text = String::from("# Settings of weir gen; load this file with: load FILE\n");
    for (port, settings) in state.ports.iter().enumerate() {
        save_port(&mut text, port, settings);
    }
    text
}

/// Writing to a String cannot fail.
fn save_port(text: &mut String, port: usize, settings: &PortSettings) {
    let packet = &settings.single;
    let tags = &packet.tags;
    let on = |is_on| if is_on { "on" } else { "off" };
    let _ = writeln!(text, "\n# Port {port}");
    for line in [
        format!("set {port} rate {}", settings.rate),
        format!("set {port} count {}", settings.count),
        format!("type {} {port}", packet.kind.word()),
        format!("proto {} {port}", packet.protocol.word()),
        format!("set {port} size {}", packet.size),
        format!("set {port} sport {}", packet.src_port),
        format!("set {port} dport {}", packet.dst_port),
        format!("set {port} vlan {}", packet.vlan_id),
        format!("set {port} cos {}", tags.cos),
        format!("set {port} tos {}", packet.tos),
        format!("set {port} ttl {}", packet.ttl),
        format!("set {port} dst mac {}", mac_text(packet.dst_mac)),
        format!("set {port} src mac {}", mac_text(packet.src_mac)),
        format!("set {port} dst ip {}", packet.dst_ip),
        format!("set {port} src ip {}/{}", packet.src_ip, packet.src_prefix),
        format!("vlan {port} {}", on(tags.has_vlan)),
        format!("mpls {port} {}", on(tags.has_mpls)),
        format!("qinq {port} {}", on(tags.has_qinq)),
        format!("gre {port} {}", on(tags.has_gre)),
        format!("gre_eth {port} {}", on(tags.has_gre_eth)),
        format!("vxlan {port} {}", on(tags.has_vxlan)),
        format!("mpls_entry {port} {:#x}", tags.mpls_entry),
        format!("qinqids {port} {} {}", tags.qinq_ids.0, tags.qinq_ids.1),
        format!("gre_key {port} {}", tags.gre_key),
        format!("vni {port} {}", tags.vni),
        format!("teid {port} {}", packet.teid),
        format!("set {port} tcp seq {}", packet.tcp.seq),
        format!("set {port} tcp ack {}", packet.tcp.ack),
        format!("set {port} tcp flags {}", packet.tcp.flags),
        match &packet.payload {
            Payload::Abc => format!("pattern abc {port}"),
            Payload::Zero => format!("pattern zero {port}"),
            Payload::User(user) => format!("user.pattern {port} \"{user}\""),
        },
        format!("latency {port} {}", on(settings.is_latency_on)),
        format!("set {port} prime {}", settings.prime),
        format!("set {port} late_after {}", settings.late_after_us.unwrap_or_default()),
        format!("verify {port} {}", on(settings.verifies)),
        format!("set {port} random {}", on(settings.is_random_on)),
    ] {
        let _ = writeln!(text, "{line}");
    }
    for (number, bits) in &settings.random {
        let _ = writeln!(text, "rnd {port} {number} {} {}", bits.offset, bits.mask);
    }
    if let Some(burst) = settings.burst {
        let _ = writeln!(text, "set {port} burst {burst}");
    }
    save_range(text, port, settings);
    for (slot, packet) in settings.sequence.iter().enumerate() {
        let _ = writeln!(text, "{}", sequence_line(slot, port, packet));
    }
    let _ = writeln!(text, "set {port} seqCnt {}", settings.sequence_count);
    if let Some(file) = &settings.pcap_file {
        let _ = writeln!(text, "pcap.file {port} \"{}\"", file.display());
        let _ = writeln!(text, "pcap {port} {}", on(settings.is_pcap_on));
    }
}

fn save_range(text: &mut String, port: usize, settings: &PortSettings) {
    let range = &settings.range;
    let _ = writeln!(text, "ip.proto {} {port}", range.protocol.word());
    for row in &RANGE_FIELDS {
        for bound in Bound::ALL {
            let value = row.field.text(range.span(row.field).get(bound), range.is_ipv6());
            let bound = bound.word();
            let _ = match row.field {
                RangeField::Cos | RangeField::Tos | RangeField::Ttl => {
                    writeln!(text, "range {port} {} {bound} {value}", row.word)
                }
                RangeField::TcpSeq
                | RangeField::TcpAck
                | RangeField::TcpFlags
                | RangeField::MplsEntry
                | RangeField::QinqOuter
                | RangeField::QinqInner
                | RangeField::GreKey
                | RangeField::Vni => {
                    let words = row.word.replace('.', " ");
                    writeln!(text, "range {port} {words} {bound} {value}")
                }
                RangeField::DstMac
                | RangeField::SrcMac
                | RangeField::DstIp
                | RangeField::SrcIp
                | RangeField::DstPort
                | RangeField::SrcPort
                | RangeField::VlanId
                | RangeField::PktSize
                | RangeField::Teid => writeln!(text, "{} {bound} {port} {value}", row.word),
            };
        }
    }
    let _ = writeln!(text, "range {port} {}", if settings.is_range_on { "on" } else { "off" });
}

fn sequence_line(slot: usize, port: usize, packet: &PacketSettings) -> String {
    let PacketSettings { dst_ip, src_ip, src_prefix, src_port, dst_port, .. } = packet;
    let (dst_mac, src_mac) = (mac_text(packet.dst_mac), mac_text(packet.src_mac));
    let (kind, protocol) = (if dst_ip.is_ipv6() { "ipv6" } else { "ipv4" }, packet.protocol.word());
    let (vlan_id, size, teid) = (packet.vlan_id, packet.size, packet.teid);
    format!(
        "seq {slot} {port} {dst_mac} {src_mac} {dst_ip} {src_ip}/{src_prefix} {src_port} \
         {dst_port} {kind} {protocol} {vlan_id} {size} {teid}"
    )
}
