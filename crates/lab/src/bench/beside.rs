//! The forwarding rate of a switch under other work, beside its rate without.
//!
//! Phases of both kinds follow each other, so that what the machine does falls on both. In each,
//! what left is read every tenth of a second, echo requests are asked, and at its ends the ports
//! say what was lost. A packet that found the ring of its port full was lost for want of time; the
//! report says beside it how long the forwarding thread did not have its core, and whether that was
//! the machine's doing cannot be found more closely.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use openflow::{PortNo, Version};
use serde::Serialize;

use super::common::Run;
use super::echo::{Echoed, Echoes};
use super::measure::waited_s;
use super::outcome::rounded;
use super::series::{Spread, dip_percent, spans, watch};
use super::weir::Weir;

/// The length of a window.
const STEP: Duration = Duration::from_millis(100);

/// A late echo is waited for so long.
const ECHO_LIMIT: Duration = Duration::from_secs(60);

/// Between two phases, so that what one has left over is no part of the next.
const PAUSE: Duration = Duration::from_millis(200);

/// All phases of one kind.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Phases {
    /// Millions of packets a second that left, window by window.
    pub(super) mpps: Spread,
    /// How many windows of a tenth of a second that is.
    pub(super) windows: usize,
    /// Packets that left.
    pub(super) packets: u64,
    /// Packets for which there was no room at the port where they came in.
    pub(super) missed: u64,
    /// Packets that came in and did not leave.
    pub(super) lost: i64,
    /// How long the forwarding thread waited for its core, in milliseconds.
    pub(super) kept_off_ms: f64,
    /// Answers to echo requests.
    pub(super) echo: Echoed,
    #[serde(skip)]
    rates: Vec<f64>,
    #[serde(skip)]
    echoes_s: Vec<f64>,
}

/// Phases in peace and phases with work, in turns.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Compared {
    pub(super) quiet: Phases,
    pub(super) busy: Phases,
    /// Percent that the median window with work lacks to the median one in peace.
    pub(super) dip_percent: f64,
    /// The same of the worst window with work.
    pub(super) worst_percent: f64,
    /// Seconds of each phase with work.
    pub(super) work_s: Spread,
}

/// What was counted at an end of a phase.
struct End {
    received: u64,
    sent: u64,
    missed: u64,
    waited_s: f64,
}

fn end(weir: &mut Weir) -> Result<End> {
    let waited_s = waited_s(weir.pid());
    let stats = weir.client(Version::V1_3)?.port_stats()?;
    let port = |number: u32| {
        let found = stats.iter().find(|port| port.port_no == PortNo(number));
        found.with_context(|| format!("the switch reports no counters of port {number}"))
    };
    let (from, to) = (port(1)?, port(2)?);
    let (received, missed) = (from.rx_packets, from.rx_dropped);
    Ok(End { received, sent: to.tx_packets, missed, waited_s })
}

impl Phases {
    fn add(&mut self, first: &End, last: &End, rates: Vec<f64>, echoes_s: Vec<f64>) {
        let sent = last.sent.saturating_sub(first.sent);
        self.packets += sent;
        self.missed += last.missed.saturating_sub(first.missed);
        self.lost += (last.received.saturating_sub(first.received)) as i64 - sent as i64;
        self.kept_off_ms += 1e3 * (last.waited_s - first.waited_s).max(0.0);
        self.rates.extend(rates);
        self.echoes_s.extend(echoes_s);
    }

    fn finish(&mut self) {
        self.mpps = Spread::of(&self.rates);
        self.windows = self.rates.len();
        self.echo = Echoed::of(&self.echoes_s);
        self.kept_off_ms = rounded(self.kept_off_ms);
    }

    /// The lines for people.
    pub(super) fn text(&self, what: &str) -> String {
        format!(
            "    {what:10} {:8.3} Mpps ({:.3} to {:.3} in {} windows), {} missed, {} lost of {}; \
             kept off its core {:.1} ms\n               echo {}\n",
            self.mpps.median,
            self.mpps.min,
            self.mpps.max,
            self.windows,
            self.missed,
            self.lost,
            self.packets,
            self.kept_off_ms,
            self.echo.text()
        )
    }
}

impl Compared {
    /// Whether nothing was lost that was not lost in peace too.
    pub(super) fn is_good(&self) -> bool {
        self.busy.lost == 0 && self.quiet.lost == 0
    }

    /// The lines for people.
    pub(super) fn text(&self, work: &str) -> String {
        let (quiet, busy) = (self.quiet.text("in peace"), self.busy.text(work));
        format!(
            "{quiet}{busy}    dip        {:.2} % of the median window, {:.2} % in the worst\n",
            self.dip_percent, self.worst_percent
        )
    }
}

/// Measures the running switch in peace and while `work` is done, in turns. `work` is given the
/// moment until which it should go on, and may end earlier or later.
///
/// # Errors
/// Of `work`; the switch does not answer; the run was interrupted.
pub(super) fn beside(
    run: &Run,
    weir: &mut Weir,
    mut work: impl FnMut(Instant) -> Result<()> + Send,
) -> Result<Compared> {
    let mut echoes = Echoes::start(weir.connect(Version::V1_3)?)?;
    let length = Duration::from_secs_f64(run.window.seconds);
    let mut compared = Compared::default();
    let mut work_s = Vec::new();
    for _ in 0..run.repeats {
        phase(run, weir, &mut echoes, &mut compared.quiet, |until| {
            while Instant::now() < until && run.cancel.check().is_ok() {
                std::thread::sleep(Duration::from_millis(5));
            }
            Ok(())
        })?;
        let begun = Instant::now();
        phase(run, weir, &mut echoes, &mut compared.busy, &mut work)?;
        work_s.push((begun.elapsed().as_secs_f64()).max(length.as_secs_f64()));
    }
    compared.quiet.finish();
    compared.busy.finish();
    compared.dip_percent = dip_percent(compared.quiet.mpps.median, compared.busy.mpps.median);
    compared.worst_percent = dip_percent(compared.quiet.mpps.median, compared.busy.mpps.min);
    compared.work_s = Spread::of(&work_s);
    Ok(compared)
}

fn phase(
    run: &Run,
    weir: &mut Weir,
    echoes: &mut Echoes,
    phases: &mut Phases,
    work: impl FnOnce(Instant) -> Result<()> + Send,
) -> Result<()> {
    run.cancel.sleep(PAUSE)?;
    let first = end(weir)?;
    let begun = Instant::now();
    let until = begun + Duration::from_secs_f64(run.window.seconds);
    let (points, worked) = std::thread::scope(|scope| {
        let working = scope.spawn(|| work(until));
        let points = watch(|| weir.point(), STEP, &run.cancel, || working.is_finished());
        let worked = working.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (points, worked)
    });
    worked?;
    let rates = spans(&points?).iter().map(|span| span.mpps).collect();
    let times = echoes.since(begun, ECHO_LIMIT)?;
    phases.add(&first, &end(weir)?, rates, times);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Compared, End, Phases};

    #[test]
    fn phases_add_up() {
        let mut phases = Phases::default();
        let end = |received, sent, missed, waited_s| End { received, sent, missed, waited_s };
        let echoes = vec![0.001; 3];
        phases.add(&end(10, 10, 0, 1.0), &end(110, 110, 2, 1.5), vec![2.0, 4.0], echoes.clone());
        phases.add(&end(110, 110, 2, 1.5), &end(210, 209, 2, 1.5), vec![3.0], echoes);
        phases.finish();
        assert_eq!((phases.packets, phases.missed, phases.lost), (199, 2, 1));
        assert_eq!((phases.kept_off_ms, phases.echo.count, phases.windows), (500.0, 6, 3));
        assert_eq!(phases.mpps.median, 3.0);
        let compared = Compared { busy: phases, ..Compared::default() };
        assert!(!compared.is_good() && compared.text("changes").contains("2 missed, 1 lost"));
    }
}
