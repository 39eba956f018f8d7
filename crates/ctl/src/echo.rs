//! Echo requests: whether the switch answers, round-trip times, and the rate of requests.

use std::time::{Duration, Instant};

use clap::Args;
use openflow::Message;
use serde_json::json;

use super::context::{CommandContext, Execute};
use super::failure::Failure;
use super::session::{Session, odd};

/// The longest body of an echo request, in bytes.
const BODY_MAX: usize = 65_535 - 8;

/// Says whether the switch answers; the exit code is 0 when it does
#[derive(Args, Clone, Debug)]
#[command(after_help = "Example:\n  weir ctl --switch tcp:192.0.2.1:6634 --timeout 3 probe")]
pub(super) struct Probe {}

impl Execute for Probe {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        echo(context.session().await?, 0).await.map(|_| ())
    }
}

/// Sends a body and takes it back; how long that took, and the transaction number.
async fn echo(session: &mut Session, bytes: usize) -> Result<(u32, Duration), Failure> {
    let body: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
    let sent = Instant::now();
    let (xid, reply) = session.ask(&Message::EchoRequest(body.clone())).await?;
    let Message::EchoReply(came) = reply else { return Err(odd(&reply)) };
    if came != body {
        return Err(Failure::Refused(format!(
            "the echo has other bytes than were sent: {} in place of {bytes}",
            came.len()
        )));
    }
    Ok((xid.0, sent.elapsed()))
}

/// Measure the time of echo requests, in microseconds
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  weir ctl ping\n  weir ctl ping 1000 --count 3")]
pub(super) struct Ping {
    /// Bytes of each echo
    #[arg(default_value_t = 64)]
    bytes: usize,
    /// Number of echo requests
    #[arg(long, default_value_t = 10)]
    count: u32,
}

impl Execute for Ping {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        let bytes = body(self.bytes)?;
        let (session, out) = context.connected().await?;
        for _ in 0..self.count {
            let (xid, took) = echo(session, bytes).await?;
            let (name, us) = (&session.name, took.as_secs_f64() * 1e6);
            let text = format!("{bytes} bytes from {name}: xid={xid:08x} time={us:.0} us");
            out.record(
                text,
                || json!({ "bytes": bytes, "xid": xid, "time_us": us, "time_ms": us / 1e3 }),
            )?;
            out.flush()?;
        }
        Ok(())
    }
}

fn body(bytes: usize) -> Result<usize, Failure> {
    if bytes > BODY_MAX {
        return Err(Failure::Refused(format!("an echo has at most {BODY_MAX} bytes")));
    }
    Ok(bytes)
}

/// Measure the echo requests a second that are answered, one after the other
#[derive(Args, Clone, Debug)]
#[command(after_help = "Example:\n  weir ctl benchmark 256 1000")]
pub(super) struct Benchmark {
    /// Bytes of each echo
    bytes: usize,
    /// Number of echo requests
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    count: u32,
}

impl Execute for Benchmark {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        let bytes = body(self.bytes)?;
        let (session, out) = context.connected().await?;
        let (count, whole) = (self.count, bytes + 8);
        let total = u64::from(count) * whole as u64;
        if !out.is_json() {
            let text = format!(
                "Sending {count} packets * {whole} bytes (with header) = {total} bytes total"
            );
            out.record(text, || json!(null))?;
        }
        let begun = Instant::now();
        for _ in 0..count {
            echo(session, bytes).await?;
        }
        let s = begun.elapsed().as_secs_f64();
        let (packets_s, bytes_s) = (f64::from(count) / s, total as f64 / s);
        let text = format!(
            "Finished in {:.1} ms ({packets_s:.0} packets/s) ({bytes_s:.0} bytes/s)",
            s * 1e3
        );
        out.record(text, || {
            json!({
                "count": count, "bytes": bytes, "duration_s": s,
                "packets_s": packets_s, "bytes_s": bytes_s,
            })
        })
    }
}
