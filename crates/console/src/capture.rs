//! `weir gen capture`: the frames that arrive at a port, those that a filter matches, into a file.
//!
//! A filter is a match in the text syntax of the switch, so that the words of a flow entry find its
//! packets; what it cannot express is given in bytes. Frames that the port lost for want of room
//! are reported. A file that cannot be written ends the capture with what was written until then.

mod filter;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use clap::Args;
use generator::file_conflicts::FileUse;
use netdev::PortSpec;
use netdev::pcap::CaptureFormat;
use serde_json::json;

use crate::file_conflicts::files_of;
use crate::interrupt::{ASK_EVERY, Interrupt};
use crate::port_args::open_port;
use crate::station::Station;
use crate::stderr::print_line;
use crate::usage::{UsageError, time};
use filter::{BytesAt, CaptureFilter};

const CAPTURE_EXAMPLES: &str = "\
Examples:
  weir gen capture --port af_packet:veth1 --count 100 all.pcapng
  weir gen capture --port af_packet:veth1 --filter tcp,tp_dst=80 --duration 10 web.pcap
  weir gen capture --port tap:left --bytes 0=0180c2000000/ffffffffffff --bytes 12=88cc lldp.pcap
  weir gen capture --port af_packet:veth1 --filter arp - | tcpdump -r -

The words of --filter are those of flow entries: ip,nw_dst=10.0.0.0/8, or dl_vlan=5,udp6. Ctrl-C
ends the capture; what was captured until then is in the file.

Exit codes:
  0  done
  1  the port or the file failed
  2  wrong usage";

/// Records are handed to the file in pieces of this many bytes.
const WRITE_LEN: usize = 1 << 20;

/// A file that grows slowly is brought up to date this often.
const FLUSH_EVERY: Duration = Duration::from_secs(1);

/// Frames of a port into a capture file.
#[derive(Args, Debug)]
#[command(after_help = CAPTURE_EXAMPLES)]
pub(crate) struct CaptureArgs {
    /// The port, as kind:name, for example af_packet:veth1
    #[arg(long, value_name = "SPEC")]
    port: PortSpec,
    /// Keep the frames that this match describes, for example tcp,tp_dst=80
    #[arg(long, value_name = "MATCH", default_value = "")]
    filter: CaptureFilter,
    /// Keep the frames with these bytes at an offset: OFFSET=HEX or OFFSET=HEX/MASK; repeatable
    #[arg(long, value_name = "BYTES")]
    bytes: Vec<BytesAt>,
    /// End after N frames
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// End after SECONDS
    #[arg(long, short, value_name = "SECONDS", value_parser = time)]
    duration: Option<Duration>,
    /// Print the summary as one line of JSON
    #[arg(long)]
    json: bool,
    /// The file: pcapng where its name ends so, else pcap with nanoseconds; - for standard output
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Counts of a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CaptureCount {
    seen: u64,
    captured: u64,
    too_long: u64,
}

impl CaptureArgs {
    /// Captures until the count, the time or a signal ends it.
    ///
    /// # Errors
    /// Those of the port and of the file.
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let limit = self.duration;
        let to_stdout = self.file.as_os_str() == "-";
        let mut files = files_of(std::slice::from_ref(&self.port))?;
        if !to_stdout {
            let name = format!("file {}", self.file.display());
            files.add(&name, &self.file, FileUse::Write).map_err(UsageError::from)?;
        }
        let interrupt = Interrupt::on_signals().context("cannot catch signals")?;
        let mut station = Station::new(open_port(&self.port)?, None, Vec::new());
        let out: Box<dyn Write> = if to_stdout {
            Box::new(files::stdout())
        } else {
            let made = File::create(&self.file);
            Box::new(made.with_context(|| format!("cannot write {}", self.file.display()))?)
        };
        let mut writer = CaptureWriter::new(out, CaptureFormat::of_path(&self.file));
        // Scripts wait for this line: frames that come from now on are seen.
        print_line(format_args!("capturing on {}", self.port));
        let mut count = CaptureCount::default();
        let outcome = writer
            .begin(&self.port.to_string())
            .and_then(|()| self.receive(&mut station, &mut writer, &mut count, limit, &interrupt))
            .and_then(|()| writer.flush());
        self.say(&count, station.drops(), to_stdout)?;
        outcome.with_context(|| format!("{} is not whole", self.file.display()))?;
        Ok(ExitCode::SUCCESS)
    }

    fn receive(
        &self,
        station: &mut Station,
        writer: &mut CaptureWriter,
        count: &mut CaptureCount,
        limit: Option<Duration>,
        interrupt: &Interrupt,
    ) -> anyhow::Result<()> {
        let start = Instant::now();
        let is_over = |count: &CaptureCount| {
            self.count.is_some_and(|most| count.captured >= most)
                || limit.is_some_and(|limit| start.elapsed() >= limit)
                || interrupt.is_set()
        };
        while !is_over(count) {
            let left = limit.map_or(ASK_EVERY, |limit| limit.saturating_sub(start.elapsed()));
            // One time for a burst: its frames were there already.
            let mut time = None;
            station.receive(left, |frame| {
                count.seen += 1;
                let is_full = self.count.is_some_and(|most| count.captured >= most);
                if is_full || !self.keeps(frame) {
                    return;
                }
                let time = *time.get_or_insert_with(since_epoch);
                if writer.append(time, frame) {
                    count.captured += 1;
                } else {
                    count.too_long += 1;
                }
            })?;
            writer.flush_when_due()?;
        }
        Ok(())
    }

    fn keeps(&self, frame: &[u8]) -> bool {
        self.filter.keeps(frame) && self.bytes.iter().all(|bytes| bytes.keeps(frame))
    }

    /// The summary: on standard error where the capture itself goes to standard output.
    fn say(&self, count: &CaptureCount, drops: u64, to_stderr: bool) -> std::io::Result<()> {
        let CaptureCount { seen, captured, too_long } = count;
        let text = if self.json {
            let value = json!({
                "captured": captured, "received": seen, "dropped": drops, "too_long": too_long,
            });
            value.to_string()
        } else {
            let long = if *too_long > 0 { format!(", {too_long} too long") } else { String::new() };
            format!(
                "{captured} frames captured, {seen} received, {drops} dropped by the port{long}"
            )
        };
        if to_stderr {
            writeln!(std::io::stderr(), "{text}")
        } else {
            writeln!(files::stdout(), "{text}")
        }
    }
}

fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Records on their way to the file.
struct CaptureWriter {
    out: BufWriter<Box<dyn Write>>,
    format: CaptureFormat,
    record: Vec<u8>,
    flushed: Instant,
    /// The first failure to write, reported at the next flush.
    failure: Option<std::io::Error>,
}

impl CaptureWriter {
    fn new(out: Box<dyn Write>, format: CaptureFormat) -> Self {
        Self {
            out: BufWriter::with_capacity(WRITE_LEN, out),
            format,
            record: Vec::new(),
            flushed: Instant::now(),
            failure: None,
        }
    }

    fn begin(&mut self, port: &str) -> anyhow::Result<()> {
        self.out.write_all(&self.format.header(port)).context("writing")
    }

    /// False for a frame that no record holds.
    fn append(&mut self, time: Duration, frame: &[u8]) -> bool {
        self.record.clear();
        if !self.format.append(&mut self.record, time, frame) {
            return false;
        }
        if self.failure.is_none() {
            self.failure = self.out.write_all(&self.record).err();
        }
        true
    }

    fn flush_when_due(&mut self) -> anyhow::Result<()> {
        if self.failure.is_some() || self.flushed.elapsed() >= FLUSH_EVERY {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        if let Some(error) = self.failure.take() {
            return Err(error).context("writing");
        }
        self.flushed = Instant::now();
        self.out.flush().context("writing")
    }
}
