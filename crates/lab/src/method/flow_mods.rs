//! Flow-mods: how many a second the switch takes, how soon frames obey one, and whether the barrier
//! reply came before they did.
//!
//! While frames come at a fixed rate, an entry that drops them becomes one that forwards them. The
//! first frame that arrives shows when the switch obeyed; the barrier reply says when it claims to.

use std::time::Duration;

use openflow::flow::{FlowMod, FlowModCommand};
use openflow::text::parse_flow_mod;

use super::{
    Method, MethodContext, Metric, Resolution, Trial, TrialError, Values, channel_error, traffic,
};
use crate::settings::FlowSeries;
use crate::switch_client::{Loaded, SwitchClient};
use stats::median;

/// Flow-mods that are timed together, where the cell says nothing else.
const COUNT: u64 = 10_000;

/// Changes of an entry while frames come.
const CHANGES: usize = 5;

/// Frames a second meanwhile, where the cell says nothing else: the resolution of the times.
pub(super) const RATE_PPS: f64 = 5_000.0;

/// Duration of the frames for one change, and the time of the change in it, seconds.
const FRAMES_S: f64 = 0.25;
const CHANGED_AT_S: f64 = 0.05;

const DROPS: &str = "priority=60000,in_port=1,actions=drop";
const FORWARDS: &str = "priority=60000,in_port=1,actions=output:2";
const MANY: &str = "priority=1,ip,nw_dst={20.0.0.0+n},actions=output:2";
const MANY_ALL: &str = "ip,nw_dst=20.0.0.0/8";

pub(super) const FLOW_MODS: Method = Method {
    id: "flow-mods",
    label: "Flow-mods",
    about: "`count` entries added up to the barrier reply; and an entry that drops becomes one \
            that forwards while frames come: when the first arrives, and when the barrier is \
            answered",
    metrics: &[
        Metric::higher("flow_mods_ps", "flow-mods taken, to the barrier reply", "flow-mods/s", 0),
        Metric::lower("flow_mod_obeyed_ms", "frames obey a flow-mod after", "ms", 3),
        Metric::lower("flow_mod_barrier_ms", "barrier reply after", "ms", 3),
        Metric::lower("flow_mod_lie_ms", "frames disobey after the barrier reply for", "ms", 3),
    ],
    cost: |settings| {
        let count = settings.count.unwrap_or(COUNT) as f64;
        Duration::from_secs_f64(count / 50_000.0 + CHANGES as f64 * (FRAMES_S + 0.15))
    },
    run,
    ..Method::USUAL
};

fn run(context: &MethodContext<'_>) -> Result<Trial, TrialError> {
    let mut client = context.client("has no flow entries")?;
    let measured = measure(&mut client, context);
    // As the cell was set up, for what is measured next, also where measuring failed.
    let cleaned = clean(&mut client, context);
    let (changes, loaded) = measured?;
    cleaned?;
    let (mut values, resolutions) = figures(&changes);
    values.push(("flow_mods_ps", loaded.entries as f64 / loaded.seconds.max(1e-9)));
    Ok(Trial {
        values,
        tool: "the lab's OpenFlow client and generator".into(),
        resolutions,
        raw: serde_json::json!({
            "obeyed_ms": changes.iter().map(Change::obeyed_ms).collect::<Vec<_>>(),
            "barrier_ms": changes.iter().map(Change::barrier_ms).collect::<Vec<_>>(),
        }),
        ..Trial::default()
    })
}

/// Changes the entry some times, then adds many.
fn measure(
    client: &mut SwitchClient,
    context: &MethodContext<'_>,
) -> Result<(Vec<Change>, Loaded), TrialError> {
    let mut changes = Vec::new();
    for _ in 0..CHANGES {
        send(client, context, [entry(DROPS, FlowModCommand::Add)])?;
        changes.push(change(client, context)?);
    }
    let count = context.settings.count.unwrap_or(COUNT);
    let series = FlowSeries { count, flow: MANY.to_owned() };
    // Read before the clock starts: the lab's own parser is none of the switch's time.
    let entries = series.flow_mods().collect::<Result<Vec<FlowMod>, _>>();
    let entries = entries.map_err(|error| wrong(error.to_string()))?;
    let loaded = client.load(entries.into_iter().map(Ok));
    Ok((changes, loaded.map_err(|error| channel_error(&error, context))?))
}

/// Deletes every entry of the method's own.
fn clean(client: &mut SwitchClient, context: &MethodContext<'_>) -> Result<(), TrialError> {
    let changed = DROPS.split(",actions").next().unwrap_or(DROPS);
    let entries =
        [entry(MANY_ALL, FlowModCommand::Delete), entry(changed, FlowModCommand::DeleteStrict)];
    send(client, context, entries)
}

fn entry(text: &str, command: FlowModCommand) -> Result<FlowMod, TrialError> {
    parse_flow_mod(text, command).map_err(|error| wrong(format!("{text}: {error}")))
}

fn send<const N: usize>(
    client: &mut SwitchClient,
    context: &MethodContext<'_>,
    entries: [Result<FlowMod, TrialError>; N],
) -> Result<(), TrialError> {
    let entries = entries.into_iter().collect::<Result<Vec<FlowMod>, TrialError>>()?;
    let sent = client.load(entries.into_iter().map(Ok));
    sent.map(drop).map_err(|error| channel_error(&error, context))
}

fn wrong(what: String) -> TrialError {
    TrialError::Output { program: "flow-mods", what }
}

/// Times of a change, nanoseconds of the generator's clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Change {
    /// When the flow-mod was sent.
    pub(super) sent_ns: u64,
    /// When the barrier behind it was answered.
    pub(super) answered_ns: u64,
    /// When the first frame arrived.
    pub(super) first_ns: u64,
    /// Between two frames: a frame that obeyed may have been due so much later.
    pub(super) interval_ns: u64,
    /// Delay of frames on their way: 99 of 100 take no longer.
    pub(super) delay_ns: u64,
}

/// The figures of some changes, and what is left open: the switch obeyed between the frame that was
/// the first to arrive and the one before it, at some point of their way.
pub(super) fn figures(changes: &[Change]) -> (Values, Vec<Resolution>) {
    let median = |of: &dyn Fn(&Change) -> f64| {
        let values: Vec<f64> = changes.iter().map(of).collect();
        median(&values).unwrap_or(f64::NAN)
    };
    let open_ms = |change: &Change| (change.interval_ns + change.delay_ns) as f64 / 1e6;
    let late_ms =
        |change: &Change| (change.first_ns.saturating_sub(change.answered_ns)) as f64 / 1e6;
    let values = vec![
        ("flow_mod_obeyed_ms", median(&Change::obeyed_ms)),
        ("flow_mod_barrier_ms", median(&Change::barrier_ms)),
        ("flow_mod_lie_ms", median(&Change::lie_ms)),
    ];
    let obeyed_ms = |change: &Change| (change.obeyed_ms() - open_ms(change)).max(0.0);
    let lie_ms = |change: &Change| (late_ms(change) - open_ms(change)).max(0.0);
    let resolutions = vec![
        Resolution::new("flow_mod_obeyed_ms", median(&obeyed_ms), median(&Change::obeyed_ms)),
        Resolution::new("flow_mod_lie_ms", median(&lie_ms), median(&late_ms)),
    ];
    (values, resolutions)
}

impl Change {
    fn obeyed_ms(&self) -> f64 {
        self.first_ns.saturating_sub(self.sent_ns) as f64 / 1e6
    }

    fn barrier_ms(&self) -> f64 {
        self.answered_ns.saturating_sub(self.sent_ns) as f64 / 1e6
    }

    /// Part of the delay that the interval between frames cannot explain.
    fn lie_ms(&self) -> f64 {
        let late_ns = self.first_ns.saturating_sub(self.answered_ns);
        late_ns.saturating_sub(self.interval_ns) as f64 / 1e6
    }
}

/// Sends frames and changes the entry meanwhile.
fn change(client: &mut SwitchClient, context: &MethodContext<'_>) -> Result<Change, TrialError> {
    let rate_pps = context.settings.rate_pps.unwrap_or(RATE_PPS);
    let burst = traffic::burst(context.settings, rate_pps, FRAMES_S);
    let (mut sent_ns, mut answered_ns) = (None, 0);
    let seen = context.bed.with_session(traffic::waiting_for(rate_pps), |session| {
        traffic::exchange(session, &[(0, vec![burst])], context, |session, start_ns| {
            let at_ns = start_ns + (CHANGED_AT_S * 1e9) as u64;
            if sent_ns.is_none() && session.now_ns() >= at_ns {
                sent_ns = Some(session.now_ns());
                send(client, context, [entry(FORWARDS, FlowModCommand::Add)])?;
                answered_ns = session.now_ns();
            }
            Ok(())
        })
    })?;
    let arrivals = seen.statistics.streams.iter().flat_map(|stream| &stream.arrivals);
    let reports = arrivals.filter(|arrival| arrival.port == 1).map(|arrival| &arrival.report);
    let first = reports.filter_map(|report| Some((report.first_ns?, report.delay.as_ref()))).next();
    let (Some(sent_ns), Some((first_ns, delay))) = (sent_ns, first) else {
        let what = format!("no frame came within {FRAMES_S} s, though the entry forwards them");
        return Err(wrong(what));
    };
    if first_ns < sent_ns {
        return Err(wrong("frames came before the flow-mod, through an entry that drops".into()));
    }
    let interval_ns = (1e9 / rate_pps) as u64;
    let delay_ns = delay.map_or(0, |delay| delay.at_ns(0.99).max(0.0) as u64);
    Ok(Change { sent_ns, answered_ns, first_ns, interval_ns, delay_ns })
}

#[cfg(test)]
mod tests {
    use super::{Change, DROPS, FORWARDS, MANY_ALL, entry};
    use openflow::flow::FlowModCommand;

    #[test]
    fn a_barrier_that_is_answered_too_early_shows() {
        let honest = Change {
            sent_ns: 1_000_000,
            answered_ns: 1_400_000,
            first_ns: 1_300_000,
            interval_ns: 50_000,
            delay_ns: 10_000,
        };
        assert_eq!((honest.obeyed_ms(), honest.barrier_ms(), honest.lie_ms()), (0.3, 0.4, 0.0));
        let lying = Change { first_ns: 9_450_000, ..honest };
        assert_eq!(lying.lie_ms(), 8.0);
    }

    #[test]
    fn the_entries_are_entries() {
        for text in [DROPS, FORWARDS] {
            assert!(entry(text, FlowModCommand::Add).is_ok());
        }
        assert!(entry(MANY_ALL, FlowModCommand::Delete).is_ok());
    }
}
