//! `weir gen ping`: ICMP echo through a raw port, with the lines of `ping`.
//!
//! Open loop: the time of each request is fixed before the run and never waits for an answer. A
//! round-trip time counts from the departure of the request.

mod echo;
mod neighbour;

use std::io::Write;
use std::net::IpAddr;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use netdev::PortSpec;
use openflow::MacAddr;
use serde_json::json;

use crate::file_conflicts::files_of;
use crate::interrupt::Interrupt;
use crate::port_args::open_port;
use crate::station::Station;
use crate::stderr::print_line;
use crate::usage::{EXIT_INTERRUPTED, UsageError, time};
use echo::{EchoCount, EchoPath, EchoReply};

const PING_EXAMPLES: &str = "\
Examples:
  weir gen ping --port af_packet:veth1 --src 10.0.0.1 10.0.0.2
  weir gen ping --port tap:left --src fd00::1 --count 5 --interval 0.01 fd00::2
  weir gen ping --port af_packet:veth1 --src 10.0.0.1 --gateway 10.0.0.254 --vlan 5 192.0.2.7

Exit codes:
  0    an answer came
  1    none came, or the port failed
  2    wrong usage
  130  interrupted before the first answer";

/// Time that the port is polled after a request left before it sleeps: most answers come within,
/// and waking takes as long as some of them.
const POLL_FOR: Duration = Duration::from_micros(200);

/// ICMP echo through a port.
#[derive(Args, Debug)]
#[command(after_help = PING_EXAMPLES)]
pub(crate) struct PingArgs {
    /// The port that the requests leave by, as kind:name, for example af_packet:veth1
    #[arg(long, value_name = "SPEC")]
    port: PortSpec,
    /// The address that the requests come from; ARP and echo requests for it are answered
    #[arg(long, value_name = "ADDRESS")]
    src: IpAddr,
    /// The Ethernet address that the requests come from [default: that of the port]
    #[arg(long, value_name = "MAC")]
    src_mac: Option<MacAddr>,
    /// The Ethernet address of the next hop [default: asked for by ARP or neighbour discovery]
    #[arg(long, value_name = "MAC", conflicts_with = "gateway")]
    dst_mac: Option<MacAddr>,
    /// The router whose Ethernet address is asked for instead of that of the destination
    #[arg(long, value_name = "ADDRESS")]
    gateway: Option<IpAddr>,
    /// The VLAN of the requests
    #[arg(long, value_name = "VID", value_parser = clap::value_parser!(u16).range(0..=4095))]
    vlan: Option<u16>,
    /// Number of requests that are sent [default: until Ctrl-C]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Seconds from one request to the next
    #[arg(long, short, value_name = "SECONDS", default_value = "1", value_parser = time)]
    interval: Duration,
    /// Bytes of data in a request
    #[arg(long, short, value_name = "BYTES", default_value_t = 56,
        value_parser = clap::value_parser!(u16).range(0..=8_900))]
    size: u16,
    /// TTL or hop limit of the requests
    #[arg(long, default_value_t = 64)]
    ttl: u8,
    /// Seconds that answers are waited for after the last request
    #[arg(long, short = 'W', value_name = "SECONDS", default_value = "1", value_parser = time)]
    timeout: Duration,
    /// Print only the summary
    #[arg(long, short)]
    quiet: bool,
    /// Print the summary as one line of JSON, and nothing else
    #[arg(long)]
    json: bool,
    /// The address that is asked
    #[arg(value_name = "ADDRESS")]
    dst: IpAddr,
}

impl PingArgs {
    /// Asks until the count is reached or a signal comes, and prints what came back.
    ///
    /// # Errors
    /// Addresses of two versions, and those of the port.
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        self.check_versions()?;
        files_of(std::slice::from_ref(&self.port))?;
        let interrupt = Interrupt::on_signals().context("cannot catch signals")?;
        let port = open_port(&self.port)?;
        let mut station = Station::new(port, self.src_mac, vec![self.src]);
        let out = &mut files::stdout();
        let start = Instant::now();
        let next_hop = self.gateway.unwrap_or(self.dst);
        let dst_mac = match self.dst_mac {
            Some(mac) => Some(mac),
            None => neighbour::resolve(&mut station, (self.src, next_hop), self.vlan, &interrupt)?,
        };
        let mut count = EchoCount::new();
        if let Some(dst_mac) = dst_mac {
            let path = self.path(station.mac(), dst_mac);
            let mut exchange = Exchange { station, path, count, zero: Instant::now() };
            self.head(out, &exchange.path)?;
            exchange.run(self, (self.interval, self.timeout), &interrupt, out)?;
            count = exchange.count;
        } else {
            let why = "does not answer: no Ethernet address to send to";
            print_line(format_args!("weir gen ping: {next_hop} {why}"));
        }
        self.summary(out, &count, start.elapsed())?;
        let interrupted = count.received == 0 && interrupt.is_set();
        Ok(match (count.received, interrupted) {
            (_, true) => ExitCode::from(EXIT_INTERRUPTED),
            (0, false) => ExitCode::FAILURE,
            (_, false) => ExitCode::SUCCESS,
        })
    }

    /// Whether all addresses are of one version of IP.
    fn check_versions(&self) -> Result<(), UsageError> {
        let is_other = |address: IpAddr| address.is_ipv4() != self.dst.is_ipv4();
        let (src, dst) = (self.src, self.dst);
        if is_other(src) {
            return Err(UsageError(format!(
                "--src {src} and {dst} are addresses of two versions of IP"
            )));
        }
        if self.gateway.is_some_and(is_other) {
            return Err(UsageError(format!(
                "--gateway and {dst} are addresses of two versions of IP"
            )));
        }
        Ok(())
    }

    fn path(&self, src_mac: MacAddr, dst_mac: MacAddr) -> EchoPath {
        EchoPath {
            src_mac,
            dst_mac,
            src: self.src,
            dst: self.dst,
            vlan: self.vlan,
            // Apart from other runs on the same network.
            id: std::process::id() as u16,
            data_len: usize::from(self.size),
            ttl: self.ttl,
        }
    }

    fn head(&self, out: &mut dyn Write, path: &EchoPath) -> anyhow::Result<()> {
        if !self.json {
            let (dst, src, len) = (path.dst, path.src, path.data_len);
            writeln!(out, "PING {dst} from {src} {}: {len} data bytes", self.port)?;
        }
        Ok(())
    }

    fn line(&self, out: &mut dyn Write, reply: &EchoReply) -> std::io::Result<()> {
        if self.quiet || self.json {
            return Ok(());
        }
        let EchoReply { number, len, ttl, rtt_ns, is_duplicate } = *reply;
        let mark = if is_duplicate { " (DUP!)" } else { "" };
        let (dst, time) = (self.dst, milliseconds(rtt_ns));
        writeln!(out, "{len} bytes from {dst}: icmp_seq={number} ttl={ttl} time={time} ms{mark}")
    }

    fn summary(
        &self,
        out: &mut dyn Write,
        count: &EchoCount,
        took: Duration,
    ) -> anyhow::Result<()> {
        let EchoCount { transmitted, unsent, received, duplicates, .. } = count;
        let (loss, rtt) = (count.loss_percent(), count.rtt_ms());
        if self.json {
            let value = json!({
                "dst": self.dst,
                "transmitted": transmitted,
                "unsent": unsent,
                "received": received,
                "duplicates": duplicates,
                "loss_percent": loss,
                "time_ms": took.as_secs_f64() * 1e3,
                "rtt_ms_min": rtt.map(|rtt| rtt[0]),
                "rtt_ms_avg": rtt.map(|rtt| rtt[1]),
                "rtt_ms_max": rtt.map(|rtt| rtt[2]),
                "rtt_ms_mdev": rtt.map(|rtt| rtt[3]),
            });
            writeln!(out, "{value}")?;
            return Ok(());
        }
        writeln!(out, "\n--- {} ping statistics ---", self.dst)?;
        let unless_0 = |count: u64, text: String| if count > 0 { text } else { String::new() };
        let stuck = unless_0(*unsent, format!(", {unsent} unsent"));
        let more = unless_0(*duplicates, format!(", +{duplicates} duplicates"));
        let took = took.as_millis();
        writeln!(
            out,
            "{transmitted} packets transmitted{stuck}, {received} received{more}, {} packet loss, \
             time {took}ms",
            percent(loss)
        )?;
        if let Some([min, mean, max, mdev]) = rtt {
            writeln!(out, "rtt min/avg/max/mdev = {min:.3}/{mean:.3}/{max:.3}/{mdev:.3} ms")?;
        }
        Ok(())
    }
}

/// A run with a known next hop.
struct Exchange {
    station: Station,
    path: EchoPath,
    count: EchoCount,
    zero: Instant,
}

impl Exchange {
    fn run(
        &mut self,
        args: &PingArgs,
        (interval, timeout): (Duration, Duration),
        interrupt: &Interrupt,
        out: &mut dyn Write,
    ) -> anyhow::Result<()> {
        let mut number = 0_u64;
        while args.count.is_none_or(|count| number < count) && !interrupt.is_set() {
            // From the number, so that nothing adds up.
            let due = Duration::try_from_secs_f64(interval.as_secs_f64() * number as f64);
            let due = due.unwrap_or(Duration::MAX);
            self.receive_until(due, false, args, interrupt, out)?;
            if interrupt.is_set() {
                break;
            }
            number += 1;
            let request = self.path.request(number);
            let at = self.zero.elapsed();
            if self.station.send(&request)? {
                self.count.left(number, nanoseconds(at));
            } else {
                self.count.not_left();
            }
        }
        let end = self.zero.elapsed().saturating_add(timeout);
        self.receive_until(end, true, args, interrupt, out)
    }

    /// Receives until `end` after the start; with `whole`, no longer than until each request is
    /// answered.
    fn receive_until(
        &mut self,
        end: Duration,
        whole: bool,
        args: &PingArgs,
        interrupt: &Interrupt,
        out: &mut dyn Write,
    ) -> anyhow::Result<()> {
        let begin = self.zero.elapsed();
        loop {
            let now = self.zero.elapsed();
            let polls = now.saturating_sub(begin) < POLL_FOR;
            let left = end.saturating_sub(now);
            let limit = if polls { Duration::ZERO } else { left };
            let Self { station, path, count, zero } = self;
            let mut written = Ok(());
            station.receive(limit, |frame| {
                let reply = count.take(path, frame, nanoseconds(zero.elapsed()));
                if let Some(reply) = reply
                    && written.is_ok()
                {
                    written = args.line(out, &reply);
                }
            })?;
            written?;
            if left.is_zero() || interrupt.is_set() || (whole && count.is_complete()) {
                return Ok(());
            }
        }
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Milliseconds with three digits that count, as `ping` prints them.
fn milliseconds(ns: u64) -> String {
    let ms = ns as f64 / 1e6;
    let digits = match ns {
        0..1_000_000 => 3,
        1_000_000..10_000_000 => 2,
        10_000_000..100_000_000 => 1,
        _ => 0,
    };
    format!("{ms:.digits$}")
}

/// A share as `ping` prints it: as few digits as tell it.
fn percent(share: f64) -> String {
    let rounded = (share * 1e4).round() / 1e4;
    format!("{rounded}%")
}

#[cfg(test)]
mod tests {
    use super::{milliseconds, percent};

    #[test]
    fn numbers_read_as_those_of_ping() {
        let all = [(45_000, "0.045"), (1_234_000, "1.23"), (12_340_000, "12.3")];
        for (ns, text) in all.into_iter().chain([(123_400_000, "123")]) {
            assert_eq!(milliseconds(ns), text);
        }
        assert_eq!((percent(0.0), percent(100.0 / 3.0)), ("0%".into(), "33.3333%".into()));
    }
}
