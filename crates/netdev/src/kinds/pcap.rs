//! `pcap`: a capture file, received frame by frame once or in a loop, or written.
//!
//! A port that reads takes what is sent to it and counts it as dropped; a port that writes receives
//! nothing. Times in the file are not waited for: frames come as fast as they are polled, or in a
//! loop at a rate.

mod output;
mod paced;
mod reader;
mod replay;
mod writer;

use std::io;
use std::sync::Arc;

use crate::counters::{PortCounters, PortQueueCounters};
use crate::error::PortError;
use crate::pcap::Capture;
use crate::port::{DroppingTx, Port, PortDevice, RxQueue};
use crate::port_info::PortInfo;
use crate::spec::{FileUse, KindRow, PortSpec, option, shared};
use crate::sys::event::WakeEvent;
use paced::{NUMBER_LEN, PacedReplay, ReplayOptions, ReplayRate};
use reader::PcapReader;
use replay::Replay;

/// Frames that wait at a rate by default: the largest receive ring of common network cards.
const SLOTS: u32 = 4_096;

const FIX: &str = "choose a file that you may open";

/// The row in the table of kinds.
pub const ROW: KindRow = KindRow {
    word: "pcap",
    name_hint: "FILE",
    help: "a capture file: received once, or in a loop, or written",
    options: &[
        option("loop", "false|true", "start again at the file's end"),
        option("write", "false|true", "write what is sent instead of receiving"),
        option("rate", "none|COUNT", "in a loop: frames that come in a second, waited for or not"),
        option("slots", "4096", "frames of a rate that wait; what comes then is dropped"),
        option("number", "none|OFFSET", "in a loop: number each frame in the 4 bytes from here on"),
    ],
    exclusive: shared,
    file_use: |spec| match spec.option("write") {
        Some("true") => Some(FileUse::Write),
        Some(_) | None => Some(FileUse::Read),
    },
    rights: &[],
    open,
};

fn open(spec: &PortSpec) -> Result<Port, PortError> {
    let write = spec.flag("write", false)?;
    let repeat = spec.flag("loop", false)?;
    if write && repeat {
        return Err(spec.bad_value("loop", "loop=true or write=true, not both").into());
    }
    let options = replay_options(spec, repeat)?;
    if write {
        return writer::open(spec.name());
    }
    let name = spec.name();
    let failed = |source| PortError::from_io(format!("pcap:{name}"), FIX, source);
    // The user may mean a file that is to be made.
    let unread = |error: io::Error| {
        if error.kind() != io::ErrorKind::NotFound {
            return failed(error);
        }
        let text = format!("{error}: pcap:{name}?write=true writes it");
        failed(io::Error::new(error.kind(), text))
    };
    let end = WakeEvent::new().map_err(failed)?;
    let bytes =
        files::read(name.as_ref(), files::CAPTURE_MAX).map_err(|error| unread(error.into()))?;
    let capture = Capture::parse(bytes).map_err(|error| PortError::Format {
        name: name.to_owned(),
        offset: error.offset as u64,
        reason: error.reason,
    })?;
    let counters = Arc::new(PortQueueCounters::default());
    let port = |rx: Box<dyn RxQueue>| Port {
        device: Box::new(PcapDevice { name: name.to_owned(), counters: Arc::clone(&counters) }),
        rx,
        tx: Box::new(DroppingTx { counters: Arc::clone(&counters) }),
        more: Vec::new(),
        claim: None,
        place: None,
    };
    if !repeat {
        return Ok(port(Box::new(PcapReader::new(capture, end, Arc::clone(&counters)))));
    }
    let replay = Replay::new(&capture, end, Arc::clone(&counters));
    if let (Some(at), Some(shortest)) = (options.number_at, replay.shortest())
        && shortest < at + NUMBER_LEN
    {
        let allowed = format!("at most {}", shortest.saturating_sub(NUMBER_LEN));
        return Err(spec.bad_value("number", &allowed).into());
    }
    if options.rate.is_none() && options.number_at.is_none() {
        return Ok(port(Box::new(replay)));
    }
    Ok(port(Box::new(PacedReplay::new(replay, options))))
}

fn replay_options(spec: &PortSpec, repeat: bool) -> Result<ReplayOptions, PortError> {
    for option in ["rate", "slots", "number"] {
        let is_alone = option == "slots" && spec.option("rate").is_none();
        if spec.option(option).is_some() && (!repeat || is_alone) {
            let allowed = if repeat { "it with rate" } else { "it with loop=true" };
            return Err(spec.bad_value(option, allowed).into());
        }
    }
    let rate = spec.number("rate", 1..=1_000_000_000)?;
    let slots = spec.number("slots", 1..=1 << 30)?.unwrap_or(SLOTS);
    let number_at = spec.number("number", 0..=u16::MAX.into())?;
    Ok(ReplayOptions {
        rate: rate.map(|rate| ReplayRate::new(rate, slots)),
        number_at: number_at.map(|at| at as usize),
    })
}

/// The properties of a port over a file.
fn info_of(name: &str, link_up: bool, notes: Vec<String>) -> PortInfo {
    PortInfo { link_up, notes, ..PortInfo::without_device(ROW.word, name, name) }
}

/// The device handle of a file that is read.
#[derive(Debug)]
struct PcapDevice {
    name: String,
    counters: Arc<PortQueueCounters>,
}

impl PortDevice for PcapDevice {
    fn info(&mut self) -> PortInfo {
        let incomplete = self.counters.read().rx_errors;
        let note = format!("{incomplete} records were cut when captured, and skipped");
        info_of(&self.name, true, if incomplete > 0 { vec![note] } else { Vec::new() })
    }

    fn counters(&mut self) -> PortCounters {
        self.counters.read()
    }
}

#[cfg(test)]
mod tests {
    use crate::open_text;

    #[test]
    fn a_file_that_is_not_there_has_a_way_out() {
        let folder = tempfile::tempdir().unwrap();
        let text = format!("pcap:{}", folder.path().join("none.pcap").display());
        let error = open_text(&text).unwrap_err().to_string();
        assert!(error.contains("No such file"), "{error}");
        assert!(error.ends_with(&format!("{text}?write=true writes it")), "{error}");
        assert!(open_text(&format!("{text}?write=true")).is_ok());
    }
}
