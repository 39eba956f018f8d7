//! Streams that several ends send at one time, counted at every end.
//!
//! All ends have all streams under the same numbers; each sends its own. Their clocks are compared
//! before, so that one time is the same moment on every box up to half a round trip. It must never
//! give figures of ends that did not start together.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use generator::method::on_ports::PortTrialError;
use generator::profile::StreamSpec;
use generator::statistics::{PortStatistics, SessionStatistics, StreamArrival, StreamStatistics};

use super::super::next_streams;
use super::{AgentsTestbed, Asking, LOOK, QUESTIONS, no_stream};
use crate::agent::clock::Exchange;
use crate::agent::protocol::{EndSeen, EndTask, SeenStream, Traffic};

/// The ends are told to start so long before they are to: this, and so many of the longest round
/// trips, at each further try twice as much, up to the last.
const AHEAD: Duration = Duration::from_millis(20);
const AHEAD_ROUND_TRIPS: u32 = 8;
const AHEAD_MAX: Duration = Duration::from_secs(2);

/// Number of tries to open the ends, anew where one got its start too late.
const TRIES: u32 = 7;

/// The longest wait until nothing comes any more.
const DRAIN: Duration = Duration::from_secs(5);

/// Settings for streams that are sent together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExchangePlan<'a> {
    /// Silence after which nothing is on its way any more.
    pub(crate) quiet: Duration,
    /// Ends it early.
    pub(crate) stop: &'a AtomicBool,
}

impl AgentsTestbed {
    /// Sends the streams of each end that has some, all from one moment on, and says what came at
    /// every end when nothing comes any more, as a session does of which the ends are ports; before
    /// it that moment, nanoseconds of the clock in the frames.
    pub(crate) fn exchange(
        &self,
        loads: &[(usize, Vec<StreamSpec>)],
        plan: ExchangePlan<'_>,
    ) -> Result<(u64, SessionStatistics), PortTrialError> {
        let mut asking = self.asking(plan.stop);
        let mut too_late = String::new();
        for try_number in 0..TRIES {
            let ahead = |longest| ahead(longest, try_number);
            let outcome = asking.together(loads, plan.quiet, ahead);
            asking.close(0..self.ports.len());
            match outcome? {
                Ok(exchanged) => return Ok(exchanged),
                Err(why) => too_late = why,
            }
        }
        Err(PortTrialError::Port(format!("the ends did not start together: {too_late}")))
    }
}

impl Asking<'_> {
    /// One try, whose start is `ahead` of its time by the longest round trip; in words which end
    /// was told too late, where one was.
    fn together(
        &mut self,
        loads: &[(usize, Vec<StreamSpec>)],
        quiet: Duration,
        ahead: impl FnOnce(Duration) -> Duration,
    ) -> Result<Result<(u64, SessionStatistics), String>, PortTrialError> {
        let mut streams: Vec<StreamSpec> = loads
            .iter()
            .flat_map(|(port, streams)| {
                streams.iter().map(|stream| StreamSpec { port: *port, ..stream.clone() })
            })
            .collect();
        streams.sort_by_key(|stream| stream.port);
        let first_stream = next_streams(u16::try_from(streams.len()).unwrap_or(u16::MAX));
        let (mut offsets_ns, mut longest_ns) = (Vec::new(), 0);
        for at in 0..self.boxes.len() {
            let all = self.exchanges(at, QUESTIONS)?;
            let best = Exchange::best(&all).ok_or_else(no_stream)?;
            offsets_ns.push(best.offset_ns() as i64);
            longest_ns = all.iter().map(Exchange::round_trip_ns).fold(longest_ns, i64::max);
        }
        let ahead = ahead(Duration::from_nanos(u64::try_from(longest_ns).unwrap_or(0)));
        let zero_ns = self.lab_ns();
        let bed = self.bed;
        for (port, end) in bed.ports.iter().enumerate() {
            let traffic = Traffic {
                first_stream,
                is_precise: false,
                zero_ns: zero_ns.saturating_add(offsets_ns[end.at]),
                line_rate_bps: bed.line_rate_bps(),
                streams: streams.clone(),
                port,
            };
            self.open(port, EndTask::Traffic(traffic))?;
        }
        let ahead_ns = ahead.as_nanos() as i64;
        let at_ns = u64::try_from(self.lab_ns().saturating_add(ahead_ns) - zero_ns).unwrap_or(0);
        for (port, _) in loads {
            let start_ns = self.start(*port, Some(at_ns))?;
            if start_ns != at_ns {
                let late_ms = start_ns.saturating_sub(at_ns) as f64 / 1e6;
                let place = &bed.ports[*port];
                let at = self.boxes[place.at].name();
                return Ok(Err(format!("{} at {at} by {late_ms:.1} ms", place.interface)));
            }
        }
        let mut sent = Vec::new();
        for (port, _) in loads {
            sent.push((*port, self.all_sent(*port)?));
        }
        let came = self.silence(quiet)?;
        exchanged(&streams, &sent, &came).map(|seen| Ok((at_ns, seen)))
    }

    /// Waits until an end has sent all.
    pub(super) fn all_sent(&mut self, port: usize) -> Result<EndSeen, PortTrialError> {
        loop {
            let sent = self.sent(port)?;
            if !sent.is_transmitting {
                return Ok(sent);
            }
            self.check_stop()?;
            std::thread::sleep(LOOK);
        }
    }

    /// Waits until nothing comes at any end any more; what each has seen.
    fn silence(&mut self, quiet: Duration) -> Result<Vec<EndSeen>, PortTrialError> {
        let begun = Instant::now();
        let mut last = (begun, None);
        loop {
            let mut seen = Vec::new();
            for port in 0..self.bed.ports.len() {
                let end = self.look(port)?;
                if let Some(error) = end.receive_error {
                    return Err(PortTrialError::Port(error));
                }
                seen.push(end);
            }
            let arrived = |stream: &SeenStream| {
                stream.arrived.as_ref().map_or(0, |one| one.received + one.duplicated)
            };
            let all: u64 = seen.iter().flat_map(|end| &end.streams).map(arrived).sum();
            if last.1 != Some(all) {
                last = (Instant::now(), Some(all));
            }
            if last.0.elapsed() >= quiet || begun.elapsed() >= DRAIN {
                return Ok(seen);
            }
            self.check_stop()?;
            std::thread::sleep(LOOK);
        }
    }
}

/// Time between the order to start and the start, at a try that is counted from 0.
fn ahead(longest_round_trip: Duration, try_number: u32) -> Duration {
    let first = longest_round_trip.saturating_mul(AHEAD_ROUND_TRIPS).saturating_add(AHEAD);
    first.saturating_mul(2_u32.saturating_pow(try_number)).min(AHEAD_MAX)
}

/// Streams sent, and frames that arrived at every end.
fn exchanged(
    streams: &[StreamSpec],
    sent: &[(usize, EndSeen)],
    came: &[EndSeen],
) -> Result<SessionStatistics, PortTrialError> {
    let mut found = Vec::new();
    for (number, spec) in streams.iter().enumerate() {
        let sender = sent.iter().find(|(port, _)| *port == spec.port).ok_or_else(no_stream)?;
        let left = sender.1.streams.get(number).ok_or_else(no_stream)?;
        if !left.is_numbered {
            let what = format!("stream {number}: its frames have no room for a number");
            return Err(PortTrialError::Port(what));
        }
        let arrivals = came.iter().enumerate().filter_map(|(port, end)| {
            let report = end.streams.get(number)?.arrived.clone()?;
            Some(StreamArrival { port, report })
        });
        found.push(StreamStatistics {
            port: spec.port,
            name: spec.name.clone(),
            sent: left.probes,
            probes: left.probes,
            unsent: left.unsent,
            unsent_down: left.unsent_down,
            late: left.late,
            arrivals: arrivals.collect(),
            ..StreamStatistics::default()
        });
    }
    let port = |port| PortStatistics { port, ..PortStatistics::default() };
    let ports = (0..came.len()).map(port).collect();
    Ok(SessionStatistics { ports, streams: found, ..SessionStatistics::default() })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{AHEAD_MAX, TRIES, ahead};

    #[test]
    fn ends_get_their_order_earlier_at_each_try() {
        let ms = Duration::from_millis;
        assert_eq!([0, 1, 2].map(|at| ahead(ms(0), at)), [ms(20), ms(40), ms(80)]);
        assert_eq!([0, 1].map(|at| ahead(ms(5), at)), [ms(60), ms(120)]);
        assert!(ahead(ms(0), TRIES - 1) > ms(1000));
        assert_eq!(ahead(Duration::from_secs(10), TRIES - 1), AHEAD_MAX);
    }
}
