//! Methods of measurement: what one is, and the list of them.
//!
//! A new method is one file under `method/` and one line in [`ALL`]. A method measures once; the
//! run measures several starts. It must say which program produced its figures; where one is
//! missing there is no figure, since that of another program would be of something else.

mod channel;
mod controller;
mod delay;
mod failover;
mod group;
mod idle_cpu;
mod iperf;
mod meter;
mod packet_in;
mod ping;
mod rate;
mod replay;
mod rfc2544;
mod search;
#[cfg(test)]
mod simulated;
mod table_size;
mod traffic;

use std::path::Path;
use std::sync::MutexGuard;
use std::time::Duration;

use generator::receiver::Distribution;
use programs::cancel::Cancel;
use programs::tools::Tool;
use stats::{Observed, samples_needed};

use crate::load::{self, Load, Watched};
use crate::results::{MeasuredDistribution, Metric};
use crate::settings::Settings;
use crate::setup::Setup;
use crate::switch_client::SwitchClient;
use crate::testbed::Testbed;
use crate::trial_error::TrialError;

/// Means of a method.
pub struct MethodContext<'a> {
    /// The testbed, with switch and controller running in it.
    pub bed: &'a Testbed,
    /// Switch and controller.
    pub setup: &'a Setup,
    /// Settings of the cell.
    pub settings: &'a Settings,
    /// The programs whose CPU is watched.
    pub watched: &'a [Watched],
    /// The method's headline in the cell's start before, at which a search may start.
    pub before: Option<f64>,
    /// A scratch folder.
    pub dir: &'a Path,
    /// Ends every wait.
    pub cancel: &'a Cancel,
}

impl<'a> MethodContext<'a> {
    /// The lab's OpenFlow connection to the switch; without it the switch `lacks` what is measured.
    fn client(&self, lacks: &'static str) -> Result<MutexGuard<'a, SwitchClient>, TrialError> {
        self.setup.client().ok_or(TrialError::Unfit(lacks))
    }

    /// Runs the part of a measurement whose load counts.
    pub fn observe<T>(&self, work: impl FnOnce() -> T) -> (T, Option<Load>) {
        load::observe(&|| self.bed.links(), self.watched, work)
    }
}

/// Values by the keys of their metrics, each with the lowest and the highest that agree with what
/// one measurement saw: a search stops between a rate that passes and one that fails, and an
/// instant between two frames. Repeats do not narrow them.
pub type Values = Vec<(&'static str, Observed)>;

/// Values of which nothing is left open.
fn exactly(values: impl IntoIterator<Item = (&'static str, f64)>) -> Values {
    values.into_iter().map(|(metric, value)| (metric, value.into())).collect()
}

/// A value that may be wrong by so much, either way.
fn within(value: f64, reach: f64) -> Observed {
    Observed { value, low: value - reach, high: value + reach }
}

/// A share of lost frames in percent. Of three starts of which none lost a frame, two of a start's
/// frames are lost in the mean with a probability of no more than exp(-6).
fn loss_pct(loss_ratio: f64, sent: u64) -> Observed {
    let two = 2.0 / sent.max(1) as f64;
    let [low, high] = [loss_ratio - two, loss_ratio + two].map(|loss| loss.clamp(0.0, 1.0));
    Observed { value: 100.0 * loss_ratio, low: 100.0 * low, high: 100.0 * high }
}

/// Lets these metrics be as much more uncertain, either way.
fn widen(values: &mut [(&'static str, Observed)], metrics: &[&str], by: f64) {
    for (_, of) in values.iter_mut().filter(|(metric, _)| metrics.contains(metric)) {
        (of.low, of.high) = (of.low - by, of.high + by);
    }
}

/// Leaves out a quantile of less samples than it takes: the 99th of a hundred is their greatest.
fn leave_out_quantile(values: &mut Values, metric: &str, (share, samples): (f64, u64)) {
    values.retain(|(id, _)| *id != metric || samples >= samples_needed(share));
}

/// One measurement.
#[derive(Clone, Debug, Default)]
pub struct Trial {
    /// The metrics' values.
    pub values: Values,
    /// The program that measured, as the report names it.
    pub tool: String,
    /// The load of every part meanwhile.
    pub load: Option<Load>,
    /// Share of a fixed offered load that arrived.
    pub carried: Option<f64>,
    /// Whole distributions, of metrics that have some.
    pub distributions: Vec<MeasuredDistribution>,
    /// Further output of the program, for the raw data.
    pub raw: serde_json::Value,
}

/// The distribution of a metric in one measurement: share and value, both ascending, in its unit.
fn distribution(metric: &str, count: u64, quantiles: Vec<(f64, f64)>) -> MeasuredDistribution {
    // The run knows the start.
    MeasuredDistribution { metric: metric.to_owned(), start: 0, count, quantiles }
}

/// That of a metric in microseconds.
fn distribution_us(metric: &str, of: &Distribution) -> MeasuredDistribution {
    let us = |ns: i64| ns as f64 / 1e3;
    let quantiles = of.quantiles.iter().map(|q| (q.share, us(q.value_ns))).collect();
    distribution(metric, of.count, quantiles)
}

/// A way to measure. A row names what differs from [`Method::USUAL`].
pub struct Method {
    /// Its key on the command line and in the JSON report.
    pub id: &'static str,
    /// Its name in tables.
    pub label: &'static str,
    /// One sentence about it.
    pub about: &'static str,
    /// The figures that it yields; the first is the headline.
    pub metrics: &'static [Metric],
    /// Whether it loads the path, so that its rows have a limiting part.
    pub saturates: bool,
    /// The programs of others that it measures with.
    pub tools: &'static [Tool],
    /// The metrics that have a floor of the lab's own: what is measured where hosts are joined
    /// without a switch.
    pub floors: &'static [&'static str],
    /// Whether switch or controller are of no use behind it, so that both are started anew.
    pub spends_setup: bool,
    /// Whether it finds out by itself what a stall of the machine spoils.
    pub finds_stalls: bool,
    /// About how long one measurement takes, for progress and budget.
    pub cost: fn(&Settings) -> Duration,
    /// Whether it can measure on a testbed, or the reason why not, for the report.
    pub fits: fn(&Testbed) -> Result<(), &'static str>,
    /// Measures once; an error ends this measurement, or the run where it was stopped.
    pub run: fn(&MethodContext<'_>) -> Result<Trial, TrialError>,
}

impl Method {
    /// A method on every testbed that yields nothing.
    pub(crate) const USUAL: Self = Self {
        id: "",
        label: "",
        about: "",
        metrics: &[],
        saturates: false,
        tools: &[],
        floors: &[],
        spends_setup: false,
        finds_stalls: false,
        cost: |settings| Duration::from_secs_f64(settings.duration_s() + 0.2),
        fits: |_| Ok(()),
        run: |_| Err(TrialError::Unfit("it measures nothing")),
    };
}

/// Every method.
pub const ALL: &[&Method] = &[
    &ping::PING,
    &delay::PROBE,
    &iperf::TCP,
    &iperf::UDP2,
    &iperf::DATAGRAMS,
    &rate::PPS,
    &delay::DELAY,
    &rate::RATE,
    &replay::REPLAY,
    &meter::METER,
    &group::GROUP,
    &failover::FAILOVER,
    &idle_cpu::IDLE_CPU,
    &channel::CHANNEL,
    &table_size::TABLE_SIZE,
    &packet_in::PACKET_IN,
    &controller::THROUGHPUT,
    &controller::LATENCY,
    &controller::STORM,
    &controller::TOPOLOGY,
    &controller::DISCOVERY,
    &controller::PROACTIVE,
    &rfc2544::RFC2544,
];

/// Methods that the tests of the run bring along.
#[cfg(not(test))]
const FAKES: &[&Method] = &[];
#[cfg(test)]
use crate::campaign::fake::METHODS as FAKES;

/// The method of that key.
pub fn find(id: &str) -> Option<&'static Method> {
    ALL.iter().chain(FAKES).copied().find(|method| method.id == id)
}

/// The error of a program whose output is no result.
fn wrong(program: &'static str, what: impl Into<String>) -> TrialError {
    TrialError::Output { program, what: what.into() }
}

#[cfg(test)]
mod tests {
    use super::{ALL, find};
    use crate::testbed::Testbed;
    use crate::testbed::memory::MemoryTestbed;
    use std::collections::HashSet;

    #[test]
    fn only_a_replay_and_a_fleet_need_no_watch_for_stalls() {
        let alone = ALL.iter().filter(|method| method.finds_stalls).map(|method| method.id);
        let alone = alone.filter(|id| !id.starts_with("controller-"));
        assert_eq!(alone.collect::<Vec<_>>(), ["replay"]);
    }

    #[test]
    fn keys_are_unique_and_found() {
        let mut seen = HashSet::new();
        for method in ALL {
            assert_eq!(find(method.id).unwrap().label, method.label);
            for figure in method.metrics {
                assert!(seen.insert(&*figure.id), "{} twice", figure.id);
            }
        }
        assert!(find("nothing").is_none());
    }

    #[test]
    fn methods_that_need_kernel_hosts_say_so() {
        let dir = tempfile::tempdir().unwrap();
        let bed = Testbed::Memory(MemoryTestbed::new(dir.path()).unwrap());
        for id in ["ping", "tcp", "udp2", "datagrams"] {
            assert!((find(id).unwrap().fits)(&bed).is_err(), "{id}");
        }
    }
}
