//! Cost of flows that end soon: what host 1 sends to host 2 begins new ones at a fixed rate, with a
//! few frames each, and host 3 begins flows of one frame towards host 4 beside them.
//!
//! A cache, or a tier in the kernel, that makes an entry for each of them pays for entries that
//! nothing uses. What is asked is how many frames are lost, what processor time the switch takes
//! for each, and how long those of host 3 wait. Other flows fill what the switch keeps before it
//! counts; only an attempt that a stall has spoiled begins its flows once more.

use std::time::Duration;

use generator::profile::{FieldModifier, FrameSize, Mode, Modifier, ModifierOp, Rate, StreamSpec};
use generator::session::{Session, Waiting};

use super::delay::quantile_us;
use super::traffic::Exchanged;
use super::{
    Method, MethodContext, Metric, Resolution, Trial, TrialError, flood, four_hosts, idle_cpu,
    traffic,
};
use crate::load::ProcessRole;
use crate::settings::Settings;

/// Frames of a flow, and frames a second, where the cell says nothing else.
const FRAMES: u64 = 3;
const RATE_PPS: f64 = 30_000.0;

/// New flows a second of the other host, and frames a second of its one flow that lasts.
const BESIDE_PPS: f64 = 500.0;

/// Time that fills tables: at 10,000 flows a second those of 20,000.
const FILLING_S: f64 = 2.0;

const SRC_PORT: u16 = 20_000;

pub(super) const SHORT_FLOWS: Method = Method {
    id: "short-flows",
    label: "Short flows",
    about: "`rate_pps` frames a second from host 1 to host 2 in flows of `count` frames (3), while \
            host 3 begins 500 flows a second towards host 4: frames lost, CPU time of the switch \
            for each frame, and the median delay of host 3's",
    metrics: &[
        Metric::lower("short_flows_lost_pct", "frames of short flows that were lost", "%", 2),
        Metric::lower("short_flows_cpu_us", "CPU time of the switch for each frame", "µs", 2),
        Metric::lower("short_flows_delay_us", "median delay of another host's new flows", "µs", 0),
    ],
    cost: |settings| Duration::from_secs_f64(settings.duration_s() + FILLING_S),
    fits: four_hosts,
    run,
    ..Method::USUAL
};

fn run(context: &MethodContext<'_>) -> Result<Trial, TrialError> {
    let switch = context.watched.iter().filter(|one| one.role == ProcessRole::Switch);
    let pids: Vec<u32> = switch.map(|program| program.pid).collect();
    let (measured, load) = context.observe(|| {
        context.bed.with_session(Waiting::Sleeping, |session| measure(session, &pids, context))
    });
    let (exchanged, cpu_ns) = measured?;
    let (mut sent, mut came, mut delay) = (0, 0, None);
    for stream in &exchanged.statistics.streams {
        match stream.port {
            0 => {
                sent += stream.sent;
                came += traffic::received(stream, 1);
            }
            _ if stream.name == NEW => {
                delay = traffic::report(stream, 3).and_then(|report| report.delay.clone());
            }
            _ => {}
        }
    }
    let lost = sent.saturating_sub(came) as f64 / sent.max(1) as f64;
    let nothing = |what: &str| TrialError::Output { program: "short-flows", what: what.into() };
    let delay = delay.ok_or_else(|| nothing("no frame of host 3 has come"))?;
    if came == 0 {
        return Err(nothing("no frame of a short flow has come"));
    }
    let (delay_us, open) = quantile_us("short_flows_delay_us", &delay, 0.5);
    let mut values = vec![("short_flows_lost_pct", 100.0 * lost)];
    if !pids.is_empty() {
        values.push(("short_flows_cpu_us", cpu_ns as f64 / 1e3 / sent as f64));
    }
    values.push(("short_flows_delay_us", delay_us));
    Ok(Trial {
        values,
        tool: traffic::TOOL.into(),
        load,
        resolutions: vec![open, Resolution::loss_pct("short_flows_lost_pct", lost, sent)],
        raw: serde_json::json!({ "sent": sent, "received": came, "cpu_ns": cpu_ns }),
        ..Trial::default()
    })
}

/// Names of the streams of host 3.
const NEW: &str = "new";
const LASTING: &str = "lasting";

/// Fills tables with other flows, then sends those that count; the nanoseconds that the switch's
/// threads have run meanwhile.
fn measure(
    session: &mut Session,
    pids: &[u32],
    context: &MethodContext<'_>,
) -> Result<(Exchanged, u64), TrialError> {
    traffic::exchange(session, &loads(context.settings, FILLING_S, 0), context, |_, _| Ok(()))?;
    let before = idle_cpu::ran(pids)?;
    let loads = loads(context.settings, context.settings.duration_s(), 1);
    let exchanged = traffic::exchange(session, &loads, context, |_, _| Ok(()))?;
    Ok((exchanged, idle_cpu::used_ns(&before, &idle_cpu::ran(pids)?)))
}

/// The streams of hosts 1 and 3, with other flows for each part of each cell. Each stream of host 1
/// sends one frame of every flow, so that a flow's come one after the other.
fn loads(settings: &Settings, duration_s: f64, part: u64) -> Vec<(usize, Vec<StreamSpec>)> {
    let frames = settings.count.unwrap_or(FRAMES).max(1);
    let seed = settings.rate_pps.unwrap_or(RATE_PPS) as u64 * 1_000 + 2 * frames + part;
    let flows_ps = settings.rate_pps.unwrap_or(RATE_PPS) / frames as f64;
    let new =
        FieldModifier { seed: Some(seed), ..FieldModifier::new("ipv4.src", ModifierOp::Random) };
    let stream = |name: String, from: usize, rate_pps: f64, modifiers: Vec<Modifier>| StreamSpec {
        name,
        packet: flood::packet(from, from + 1, SRC_PORT),
        size: FrameSize::Fixed(settings.frame_size()),
        modifiers,
        rate: Rate::PacketsPerSecond(rate_pps),
        mode: Mode::Burst((rate_pps * duration_s).ceil() as u64),
        probe: true,
        ..StreamSpec::default()
    };
    let new = || vec![Modifier::Field(new.clone())];
    let short = (0..frames).map(|nth| stream(format!("frame {nth}"), 0, flows_ps, new()));
    let beside = [
        stream(NEW.to_owned(), 2, BESIDE_PPS, new()),
        stream(LASTING.to_owned(), 2, BESIDE_PPS, Vec::new()),
    ];
    vec![(0, short.collect()), (2, beside.into())]
}
