//! Ends on several boxes as the ports of one session.
//!
//! On each box runs a session with all ports, of which those of other boxes lead nowhere, so that
//! streams have the same numbers everywhere. Before, during and after a trial the clocks of the
//! boxes are compared with the lab's; a delay is corrected by what they differ, and the error of
//! that goes with the figure. Where one box has all ends there is one clock and no error. It must
//! never give a one-way delay whose clocks moved further apart than it can tell, nor start ends at
//! different times.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use generator::method::on_ports::{PortTrialError, TrialPorts, phases_end};
use generator::method::{TrialInput, TrialOutput};
use generator::profile::StreamSpec;
use generator::receiver::StreamReport;
use generator::statistics::SessionStatistics;

use super::external::{ExternalTestbed, with_each};
use super::next_streams;
use crate::agent::client::AgentLink;
use crate::agent::clock::{ClockComparison, Exchange};
use crate::agent::protocol::AgentRequest;

/// Time between two looks at what a box has sent or counted: each is an exchange on the network.
const LOOK: Duration = Duration::from_millis(10);

/// Time between two comparisons of clocks during a trial.
const COMPARE_EVERY: Duration = Duration::from_millis(100);

/// Questions before and after a trial, and each time during it: the best of them counts.
const QUESTIONS: usize = 16;
const QUESTIONS_MEANWHILE: usize = 4;

/// The clock of a receiver is set ahead, so that no delay is below zero while its offset is not
/// known better: by the error of the first comparison several times over, by so much, and by so
/// much of the trial's length, which is the drift of a bad quartz.
const AHEAD_ERRORS: f64 = 3.0;
const AHEAD_NS: f64 = 50_000.0;
const AHEAD_DRIFT: f64 = 200e-6;

/// The share of a delay that the generator's histogram does not resolve.
const BUCKET: f64 = 1.0 / 1024.0;

/// Several boxes get their order so long before they are to start: this, and so many of the longest
/// round trips, at each further try twice as much, up to the last.
const ORDER: Duration = Duration::from_millis(20);
const ORDER_ROUND_TRIPS: u32 = 8;
const ORDER_MAX: Duration = Duration::from_secs(2);

/// Number of tries to start several boxes, anew where one got its order too late.
const TRIES: u32 = 7;

/// The ports of a trial.
#[derive(Debug)]
pub struct BoxPorts<'a> {
    bed: &'a ExternalTestbed,
    links: MutexGuard<'a, Vec<AgentLink>>,
    /// The box of each port, and the interface there.
    ends: &'a [(usize, String)],
    is_precise: bool,
    stop: &'a AtomicBool,
    clocks: BTreeMap<usize, BoxClock>,
    /// The longest round trip of the last comparison.
    longest: Duration,
    compared: Instant,
    /// Zero of the clock in the frames, by the lab's.
    zero_ns: i64,
    /// Address and line rate of each port; none while no session is open that was not started.
    facts: Vec<([u8; 6], f64)>,
    loads: Vec<(usize, Vec<StreamSpec>)>,
    /// Length of the trial, where it is sent by the first port.
    length_ns: Option<u64>,
    /// That of the trial in which the clocks are known worst; none where one box has all ends.
    pub(super) worst: Option<ClockComparison>,
}

/// The clock of a box beside the lab's.
#[derive(Debug, Default)]
struct BoxClock {
    exchanges: Vec<Exchange>,
    /// The lead that the clock in the frames was set by, and by how much it was set ahead, ns.
    set_ns: i64,
    ahead_ns: i64,
}

impl<'a> BoxPorts<'a> {
    /// The first ends of the testbed, so many. With `is_precise` delays are exact.
    pub(super) fn new(
        bed: &'a ExternalTestbed,
        count: usize,
        is_precise: bool,
        stop: &'a AtomicBool,
    ) -> Self {
        let ends = &bed.ends[..count];
        Self {
            bed,
            links: bed.links(),
            ends,
            is_precise,
            stop,
            clocks: ends.iter().map(|end| (end.0, BoxClock::default())).collect(),
            longest: Duration::ZERO,
            compared: Instant::now(),
            zero_ns: 0,
            facts: Vec::new(),
            loads: Vec::new(),
            length_ns: None,
            worst: None,
        }
    }

    /// The box of a port.
    fn place(&self, port: usize) -> usize {
        self.ends[port].0
    }

    /// Now, by the lab's clock.
    fn lab_ns(&self) -> i64 {
        i64::try_from(self.bed.zero.elapsed().as_nanos()).unwrap_or(i64::MAX)
    }

    /// Compares the clocks, where there are several.
    fn compare(&mut self, questions: usize) -> Result<(), PortTrialError> {
        (self.compared, self.longest) = (Instant::now(), Duration::ZERO);
        if self.clocks.len() < 2 {
            return Ok(());
        }
        for (at, clock) in &mut self.clocks {
            if self.stop.load(Ordering::Relaxed) {
                return Err(PortTrialError::Stopped);
            }
            let all = self.links[*at].exchanges(self.bed.zero, questions)?;
            clock.exchanges.extend(Exchange::best(&all));
            let longest_ns = all.iter().map(Exchange::round_trip_ns).fold(0, i64::max);
            self.longest = self.longest.max(Duration::from_nanos(longest_ns.unsigned_abs()));
        }
        Ok(())
    }

    /// Opens a session on each box, if none is open that can be loaded.
    fn open(&mut self) -> Result<(), PortTrialError> {
        if !self.facts.is_empty() {
            return Ok(());
        }
        self.loads.clear();
        self.clocks.values_mut().for_each(|clock| *clock = BoxClock::default());
        self.compare(QUESTIONS)?;
        self.zero_ns = self.lab_ns();
        let first_stream = next_streams();
        let mut facts = vec![([0; 6], 0.0); self.ends.len()];
        for at in Vec::from_iter(self.clocks.keys().copied()) {
            let ahead_ns = self.ahead_ns(at);
            let clock = self.clocks.entry(at).or_default();
            clock.set_ns = clock.exchanges.last().map_or(0, |last| last.offset_ns() as i64);
            clock.ahead_ns = ahead_ns;
            let zero_ns = self.zero_ns + clock.set_ns - ahead_ns;
            let interface =
                |(place, interface): &(usize, String)| (*place == at).then(|| interface.clone());
            let request = AgentRequest::Open {
                interfaces: self.ends.iter().map(interface).collect(),
                first_stream,
                is_precise: self.is_precise,
                zero_ns: (self.clocks.len() > 1).then_some(zero_ns),
                line_rate_bps: 0.0,
            };
            let opened: Vec<([u8; 6], f64)> = self.links[at].ask(&request)?;
            for ((facts, end), opened) in facts.iter_mut().zip(self.ends).zip(opened) {
                if end.0 == at {
                    *facts = opened;
                }
            }
        }
        self.facts = facts;
        Ok(())
    }

    /// The counts of each box.
    fn look(&mut self) -> Result<BTreeMap<usize, SessionStatistics>, PortTrialError> {
        let look = |at| Ok((at, self.bed.look(&mut self.links[at])?.statistics));
        self.clocks.keys().copied().map(look).collect()
    }

    /// Closes the sessions.
    fn close(&mut self) -> Result<(), PortTrialError> {
        let boxes = self.clocks.keys().copied();
        with_each(&mut self.links, boxes, |link| link.ask(&AgentRequest::Close {}))
    }

    /// By how much a box's clock is to be set ahead of that of the first port.
    fn ahead_ns(&self, at: usize) -> i64 {
        let sender = self.place(0);
        let Some(length_ns) = self.length_ns.filter(|_| at != sender) else { return 0 };
        let round_trip_ns =
            |at| self.clocks[at].exchanges.last().map_or(0, Exchange::round_trip_ns) as f64;
        let error_ns = (round_trip_ns(&sender) + round_trip_ns(&at)) / 2.0;
        let drift_ns = AHEAD_DRIFT * (length_ns as f64 + 1e9);
        (AHEAD_ERRORS * error_ns + AHEAD_NS + drift_ns) as i64
    }
}

impl TrialPorts for BoxPorts<'_> {
    fn begin(&mut self, phases: &[TrialInput]) -> Result<(), PortTrialError> {
        self.facts.clear();
        self.length_ns = Some(phases_end(0, phases));
        Ok(())
    }

    fn end(&mut self, outputs: &mut [TrialOutput]) -> Result<(), PortTrialError> {
        if self.clocks.len() < 2 {
            return Ok(());
        }
        self.compare(QUESTIONS)?;
        let [sender, receiver] = [0, 1].map(|port| &self.clocks[&self.place(port)]);
        let ahead_ns = receiver.ahead_ns as f64;
        let exchanges = [&sender.exchanges[..], &receiver.exchanges[..]];
        let found = ClockComparison::of(exchanges, BUCKET * ahead_ns)
            .ok_or_else(|| PortTrialError::Port("no clock was compared".to_owned()))?;
        let set_ns = (receiver.set_ns - sender.set_ns) as f64;
        let shift_ns = ahead_ns + found.offset_us * 1e3 - set_ns;
        for report in outputs.iter_mut().map(|output| &mut output.report) {
            if report.delay.as_ref().is_some_and(|delay| delay.min_ns <= 0) {
                let what = format!(
                    "the clocks of the two boxes moved apart by more than {:.0} µs in the trial",
                    ahead_ns / 1e3
                );
                return Err(PortTrialError::Port(what));
            }
            shift(report, shift_ns);
        }
        if self.worst.as_ref().is_none_or(|worst| worst.error_us < found.error_us) {
            self.worst = Some(found);
        }
        Ok(())
    }

    fn mac(&mut self, port: usize) -> Result<[u8; 6], PortTrialError> {
        self.open()?;
        Ok(self.facts[port].0)
    }

    fn line_rate_bps(&self, port: usize) -> f64 {
        self.facts.get(port).map_or(0.0, |facts| facts.1)
    }

    fn load(&mut self, port: usize, streams: &[StreamSpec]) -> Result<(), PortTrialError> {
        self.open()?;
        let request = AgentRequest::Load { port, streams: streams.to_vec() };
        for at in self.clocks.keys() {
            self.links[*at].ask::<()>(&request)?;
        }
        self.loads.push((port, streams.to_vec()));
        Ok(())
    }

    /// Starts ports, those of several boxes at a time of the frames' clock.
    fn start(&mut self, ports: &[usize]) -> Result<u64, PortTrialError> {
        let places: BTreeSet<usize> = ports.iter().map(|port| self.place(*port)).collect();
        let mut too_late = String::new();
        'tries: for try_number in 0..TRIES {
            let ahead_ns = ahead(self.longest, try_number).as_nanos() as i64;
            let at_ns = u64::try_from(self.lab_ns() - self.zero_ns + ahead_ns).unwrap_or(0);
            let (at_ns, mut start_ns) = ((places.len() > 1).then_some(at_ns), 0);
            for at in &places {
                let own = ports.iter().copied().filter(|port| self.place(*port) == *at).collect();
                start_ns = self.links[*at].ask(&AgentRequest::Start { ports: own, at_ns })?;
                if let Some(at_ns) = at_ns.filter(|at_ns| *at_ns != start_ns) {
                    let late_ms = start_ns.saturating_sub(at_ns) as f64 / 1e6;
                    too_late = format!("{} by {late_ms:.1} ms", self.links[*at].name());
                    let loads = std::mem::take(&mut self.loads);
                    self.facts.clear();
                    loads.iter().try_for_each(|(port, streams)| self.load(*port, streams))?;
                    continue 'tries;
                }
            }
            // Whatever is loaded next is a new session's.
            self.facts.clear();
            return Ok(start_ns);
        }
        Err(PortTrialError::Port(format!("the ends did not start together: {too_late}")))
    }

    fn stop(&mut self, _ports: &[usize]) -> Result<(), PortTrialError> {
        self.facts.clear();
        self.close()
    }

    fn wait(&mut self, limit: Duration) -> Result<bool, PortTrialError> {
        let begun = Instant::now();
        loop {
            let seen = self.look()?;
            if !seen.values().flat_map(|of| &of.ports).any(|port| port.transmitting) {
                return Ok(true);
            }
            if self.compared.elapsed() >= COMPARE_EVERY {
                self.compare(QUESTIONS_MEANWHILE)?;
            }
            if begun.elapsed() >= limit {
                return Ok(false);
            }
            std::thread::sleep(LOOK);
        }
    }

    fn wait_until_quiet(&mut self, quiet: Duration, limit: Duration) -> Result<(), PortTrialError> {
        let begun = Instant::now();
        let mut last = (begun, None);
        while last.0.elapsed() < quiet && begun.elapsed() < limit {
            let seen = self.statistics()?;
            let arrivals = seen.streams.iter().flat_map(|stream| &stream.arrivals);
            let came = arrivals.map(|of| of.report.received + of.report.duplicated).sum::<u64>();
            if last.1 != Some(came) {
                last = (Instant::now(), Some(came));
            }
            if self.stop.load(Ordering::Relaxed) {
                return Err(PortTrialError::Stopped);
            }
        }
        Ok(())
    }

    /// Of each stream what its own box has sent, and what came at each port by that port's box.
    fn statistics(&mut self) -> Result<SessionStatistics, PortTrialError> {
        std::thread::sleep(LOOK);
        let seen = self.look()?;
        let place = |port: usize| self.ends.get(port).map(|end| end.0);
        let own = |port: usize| place(port).and_then(|at| seen.get(&at));
        let mut whole = own(0).cloned().unwrap_or_default();
        for port in &mut whole.ports {
            let of_box = own(port.port).and_then(|of| of.ports.get(port.port));
            *port = of_box.cloned().unwrap_or_default();
        }
        for (number, stream) in whole.streams.iter_mut().enumerate() {
            let of_box = own(stream.port).and_then(|of| of.streams.get(number));
            *stream = of_box.cloned().unwrap_or_default();
            let of_box = |(at, of): (&usize, &SessionStatistics)| {
                let arrivals = of.streams.get(number).map(|stream| stream.arrivals.clone());
                let at = *at;
                arrivals.into_iter().flatten().filter(move |came| place(came.port) == Some(at))
            };
            stream.arrivals = seen.iter().flat_map(of_box).collect();
            let came = stream.arrivals.iter().map(|of| of.report.received).sum();
            stream.lost = stream.lost.map(|_| stream.probes.saturating_sub(came));
        }
        Ok(whole)
    }
}

impl Drop for BoxPorts<'_> {
    fn drop(&mut self) {
        // A box that has gone closes all by itself.
        drop(self.close());
    }
}

/// Time between the order to start and the start, at a try that is counted from 0.
fn ahead(longest_round_trip: Duration, try_number: u32) -> Duration {
    let first = longest_round_trip.saturating_mul(ORDER_ROUND_TRIPS).saturating_add(ORDER);
    first.saturating_mul(2_u32.saturating_pow(try_number)).min(ORDER_MAX)
}

/// Sets the clock of a report's arrivals back. Differences of delays stay.
fn shift(report: &mut StreamReport, by_ns: f64) {
    let by = by_ns.round() as i64;
    let earlier = |at_ns: u64| at_ns.saturating_add_signed(by.saturating_neg());
    report.first_ns = report.first_ns.map(earlier);
    report.last_ns = report.last_ns.map(earlier);
    let Some(delay) = &mut report.delay else { return };
    delay.mean_ns -= by_ns;
    delay.mean_amount_ns = delay.mean_ns;
    delay.min_ns -= by;
    delay.max_ns -= by;
    for quantile in &mut delay.quantiles {
        quantile.value_ns -= by;
        quantile.low_ns -= by;
        quantile.high_ns -= by;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{ORDER_MAX, TRIES, ahead};

    #[test]
    fn boxes_get_their_order_earlier_at_each_try() {
        let ms = Duration::from_millis;
        assert_eq!([0, 1, 2].map(|at| ahead(ms(0), at)), [ms(20), ms(40), ms(80)]);
        assert_eq!([0, 1].map(|at| ahead(ms(5), at)), [ms(60), ms(120)]);
        assert!(ahead(ms(0), TRIES - 1) > ms(1000));
        assert_eq!(ahead(Duration::from_secs(10), TRIES - 1), ORDER_MAX);
    }
}
