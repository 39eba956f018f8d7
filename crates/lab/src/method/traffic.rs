//! The frames that a cell's settings describe, for the methods that send frames of their own, and
//! the ways to send them: one way in trials, or several streams at once.

use std::time::Duration;

use generator::method::TrialInput;
use generator::method::on_ports::{PortTrialError, SessionMeasurer, TrialPorts};
use generator::profile::{FrameSize, Mode, Rate, StreamSpec};
use generator::receiver::StreamReport;
use generator::session::Waiting;
use generator::statistics::{SessionStatistics, StreamStatistics};

use super::{MethodContext, TrialError};
use crate::agent::clock::ClockComparison;
use crate::ceilings::frame_line_bits;
use crate::hosts::headers;
use crate::settings::{Forwarding, Settings};

/// The name of the program in results.
pub(super) const TOOL: &str = "Weir's open-loop generator";

/// Silence after which nothing is on its way any more: veth and a switch in software hold nothing
/// back for so long, and a trial with a lost frame waits for it.
pub(super) const QUIET: Duration = Duration::from_millis(60);

/// The longest wait for that.
const DRAIN: Duration = Duration::from_secs(5);

/// Up to this rate, frames a second, the lab's threads run in real time. Beyond it the sender,
/// which polls for the last 60 us before each due time, would hold a core for itself.
const REAL_TIME_PPS: f64 = 10_000.0;

/// Time between two looks at the flag that stops a run.
const LOOK: Duration = Duration::from_millis(20);

/// Waiting of a session whose times are figures: exact as long as the machine can bear it.
pub(super) fn waiting_for(rate_pps: f64) -> Waiting {
    if rate_pps <= REAL_TIME_PPS { Waiting::Precise } else { Waiting::Sleeping }
}

/// Frames a second of the cell's size that the hosts' links carry; none where they have no rate.
pub(super) fn line_pps(context: &MethodContext<'_>) -> Option<f64> {
    let bits = frame_line_bits(context.settings.frame_size());
    context.bed.port_rate().map(|bps| bps as f64 / bits)
}

/// The stream; size, rate and mode are those of each trial.
pub(super) fn stream(settings: &Settings) -> StreamSpec {
    StreamSpec {
        packet: settings.packet.clone().unwrap_or_else(|| headers(1000, 2000)),
        modifiers: settings.modifiers.clone().unwrap_or_default(),
        ..StreamSpec::default()
    }
}

/// The load of a trial in frames of the cell's size.
pub(super) fn input(
    settings: &Settings,
    rate_pps: f64,
    duration_s: f64,
    grace_s: f64,
) -> TrialInput {
    TrialInput { frame_size: settings.frame_size() as usize, rate_pps, duration_s, grace_s }
}

/// So many frames of the stream at that rate, in the cell's size and with a number in each.
pub(super) fn burst(settings: &Settings, rate_pps: f64, duration_s: f64) -> StreamSpec {
    StreamSpec {
        size: FrameSize::Fixed(settings.frame_size()),
        rate: Rate::PacketsPerSecond(rate_pps),
        mode: Mode::Burst(input(settings, rate_pps, duration_s, 0.0).frames()),
        probe: true,
        ..stream(settings)
    }
}

/// The stream of the other direction: sources are destinations.
pub(super) fn reversed(stream: &StreamSpec) -> StreamSpec {
    let packet = stream.packet.replace("src=", "\0").replace("dst=", "src=").replace('\0', "dst=");
    // A field that differs from frame to frame does so at the same place: the way is another.
    StreamSpec { packet, ..stream.clone() }
}

/// Does `work` with what performs trials of the cell's frames from host 1 to host 2.
pub(super) fn with_measurer<T>(
    context: &MethodContext<'_>,
    waiting: Waiting,
    quiet: Duration,
    work: impl FnOnce(&mut SessionMeasurer<'_>) -> Result<T, TrialError>,
) -> Result<(T, Option<ClockComparison>), TrialError> {
    let (stream, stop) = (stream(context.settings), context.cancel.flag());
    // The switch has to be shown where the destination is.
    let is_learning = context.settings.forwarding() == Forwarding::Learning;
    context.bed.with_two_ports(waiting, stop, |session| {
        work(&mut SessionMeasurer { session, from: 0, to: 1, stream, is_learning, quiet, stop })
    })
}

/// Sends the streams of each port, all at one time, and calls `meanwhile` with the time at which
/// the first frame was due, in nanoseconds of the session's clock, until the last has left. What
/// came when nothing comes any more, and that time. A port that is to receive only may be down.
pub(super) fn exchange<P: TrialPorts + ?Sized>(
    session: &mut P,
    loads: &[(usize, StreamSpec)],
    context: &MethodContext<'_>,
    mut meanwhile: impl FnMut(&mut P, u64) -> Result<(), TrialError>,
) -> Result<(SessionStatistics, u64), TrialError> {
    let ports: Vec<usize> = loads.iter().map(|load| load.0).collect();
    for (port, stream) in loads {
        session.load(*port, std::slice::from_ref(stream))?;
    }
    let start_ns = session.start(&ports)?;
    while !session.wait(LOOK)? {
        if let Err(stopped) = context.cancel.check() {
            session.stop(&ports)?;
            return Err(stopped.into());
        }
        meanwhile(session, start_ns)?;
    }
    session.wait_until_quiet(QUIET, DRAIN)?;
    let statistics = session.statistics()?;
    let stopped = |port: &usize| statistics.ports.get(*port).and_then(|port| port.stopped.clone());
    match ports.iter().find_map(stopped) {
        Some(stop) => Err(PortTrialError::Port(stop.reason).into()),
        None => Ok((statistics, start_ns)),
    }
}

/// Arrivals of a stream at a port, if there were some.
pub(super) fn report(stream: &StreamStatistics, port: usize) -> Option<&StreamReport> {
    let arrival = stream.arrivals.iter().find(|arrival| arrival.port == port);
    arrival.map(|arrival| &arrival.report)
}

/// Distinct frames of a stream that arrived at a port.
pub(super) fn received(stream: &StreamStatistics, port: usize) -> u64 {
    report(stream, port).map_or(0, |report| report.received)
}

#[cfg(test)]
mod tests {
    use super::{burst, reversed, waiting_for};
    use crate::settings::Settings;
    use generator::profile::Mode;
    use generator::session::Waiting;

    #[test]
    fn a_sender_in_real_time_leaves_its_core_to_others() {
        for (rate_pps, waiting) in [
            (5_000.0, Waiting::Precise),
            (10_000.0, Waiting::Precise),
            (10_001.0, Waiting::Sleeping),
            (20_000.0, Waiting::Sleeping),
        ] {
            assert_eq!(waiting_for(rate_pps), waiting, "{rate_pps}");
        }
    }

    #[test]
    fn the_way_back_has_source_and_destination_exchanged() {
        let there = burst(&Settings::default(), 1_000.0, 0.5);
        assert_eq!(there.mode, Mode::Burst(500));
        let back = reversed(&there);
        assert!(back.packet.starts_with("eth(dst=02:00:00:00:00:01,src=02:00:00:00:00:02)"));
        assert_eq!(reversed(&back), there);
    }
}
