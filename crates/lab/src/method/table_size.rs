//! The most entries that a switch holds: flow entries in batches that double until the switch
//! refuses one or a bound is reached; addresses in the same way where the switch learns.
//!
//! The switch's own statistics count the entries held, or, where it learns, the frames that it does
//! not flood. A switch that takes entries and does not hold them shows as one with fewer. A frame
//! that the machine lost is no such sign: frames that teach addresses are broadcast, so that they
//! are counted at the other ports, and sent again until nearly all came through the switch; so are
//! those that look for them. A shortfall beyond the frames that did not come is the table's end.

use std::time::Duration;

use generator::profile::{FieldModifier, Modifier, ModifierOp, StreamSpec};
use generator::session::Waiting;
use openflow::Version;
use openflow::flow::{FlowMod, FlowModCommand, FlowStatsRequest};
use openflow::message::{MultipartReplyBody, MultipartRequestBody};
use openflow::text::parse_flow_mod;
use stats::Observed;

use super::{Method, MethodContext, Metric, Trial, TrialError, traffic, within, wrong};
use crate::settings::{FlowSeries, Forwarding};
use crate::switch_client::{RefusedMessage, SwitchClient};

/// The bound, where the cell says nothing else.
const BOUND: u64 = 1_000_000;

/// The bound of learnt addresses: each of them costs two frames.
const LEARNT_BOUND: u64 = 1 << 15;

/// The first batch.
const FIRST: u64 = 4_000;

/// The entry, counted up: the bound is below the addresses that there are. By the cookie the
/// entries are told from those of the cell, and of a switch that runs already.
const ENTRY: &str = "cookie=0x776569722d737a65,priority=1,ip,nw_dst={20.0.0.0+n},actions=output:2";

/// All of them, and no others.
const ENTRIES: &str = "cookie=0x776569722d737a65/-1,ip,nw_dst=20.0.0.0/8";

/// Frames a second while addresses are learnt and looked for: below what any switch loses at.
const LEARN_PPS: f64 = 20_000.0;

/// The share of addresses that may be missing until a table counts as full: frames that were lost.
const MISSING: f64 = 0.01;

/// Times that frames are sent until nearly all of them have come through the switch.
const PASSES: usize = 5;

/// Destination of frames that teach an address: every port but their own gets them.
const BROADCAST: &str = "ff:ff:ff:ff:ff:ff";

pub(super) const TABLE_SIZE: Method = Method {
    id: "table-size",
    label: "Largest table",
    about: "Entries are added in doubling batches until the switch refuses one or `count` is \
            reached (1,000,000; of learnt addresses 32,768); those that it holds are counted",
    metrics: &[
        Metric::higher("table_entries", "entries held, up to the bound", "entries", 0),
        Metric::higher("table_add_ps", "flow entries added, last batch", "entries/s", 0),
    ],
    cost: |settings| {
        let bound = settings.count.unwrap_or(BOUND) as f64;
        Duration::from_secs_f64(match settings.forwarding() {
            Forwarding::Learning => 4.0 * bound.min(LEARNT_BOUND as f64) / LEARN_PPS + 1.0,
            Forwarding::Flows | Forwarding::Controller | Forwarding::Io => bound / 50_000.0 + 0.5,
        })
    },
    run,
    ..Method::USUAL
};

fn run(context: &MethodContext<'_>) -> Result<Trial, TrialError> {
    let bound = context.settings.count.unwrap_or(BOUND);
    if bound == 0 {
        return Err(TrialError::Unfit("no entry is asked for: set count = 1 or more"));
    }
    let (found, tool) = match context.settings.forwarding() {
        Forwarding::Flows => {
            let mut client = context.client("has no flow entries")?;
            let mut sent = 0;
            let filled = fill(bound, |from, to| {
                context.cancel.check()?;
                sent = to;
                add(&mut client, context, from, to)
            });
            // As the cell was set up, for what is measured next, also where filling failed.
            let (added, version) = (entries(sent), client.version());
            let deleted = client.load(deletions(&added, version));
            let filled = filled?;
            deleted?;
            (filled, "the lab's OpenFlow client")
        }
        Forwarding::Learning => {
            if context.bed.kernel().is_none_or(|bed| bed.hosts.len() < 3) {
                return Err(TrialError::Unfit("flooding is seen at a third port: set ports = 3"));
            }
            let held = |count| learn(count, || teach(context, count), || look(context, count));
            (fill(bound.min(LEARNT_BOUND), |_, to| held(to))?, traffic::TOOL)
        }
        Forwarding::Controller | Forwarding::Io => {
            return Err(TrialError::Unfit("a table is filled by flow entries or by learning"));
        }
    };
    let mut values = vec![("table_entries", found.held())];
    values.extend(found.added_ps.map(|rate| ("table_add_ps", rate.into())));
    let raw = serde_json::json!({
        "bound": bound,
        "offered": found.offered,
        "is_bound": !found.is_full(),
        "refused": found.refused,
    });
    Ok(Trial { values, tool: tool.into(), raw, ..Trial::default() })
}

/// The first `count` entries.
fn entries(count: u64) -> FlowSeries {
    FlowSeries { count, flow: ENTRY.to_owned() }
}

/// Messages that delete these entries and no others: one where the cookie selects them, else one
/// for each.
fn deletions(
    entries: &FlowSeries,
    version: Version,
) -> Box<dyn Iterator<Item = anyhow::Result<FlowMod>> + '_> {
    if version.has_cookie_mask() {
        let all = parse_flow_mod(ENTRIES, FlowModCommand::Delete);
        return Box::new(std::iter::once(all.map_err(anyhow::Error::from)));
    }
    let command = FlowModCommand::DeleteStrict;
    let strict = move |entry| FlowMod { command, instructions: Vec::new(), ..entry };
    Box::new(entries.flow_mods().map(move |entry| Ok(strict(entry?))))
}

/// A table after a batch of entries.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Filled {
    /// Entries so far, held or not.
    pub(super) offered: u64,
    /// Those that it holds.
    pub(super) count: u64,
    /// By how much that may be wrong, either way.
    pub(super) error: u64,
    /// Entries of the batch a second.
    pub(super) added_ps: Option<f64>,
    /// The switch's refusal, if it refused one.
    pub(super) refused: Option<String>,
}

impl Filled {
    /// Whether it does not hold all of them.
    fn is_full(&self) -> bool {
        self.refused.is_some() || self.count < self.offered
    }

    /// The entries held.
    pub(super) fn held(&self) -> Observed {
        let of = within(self.count as f64, self.error as f64);
        Observed { low: of.low.max(0.0), ..of }
    }
}

/// Doubles the entries until they are not all held, or there are as many as the bound. `add` adds
/// those from a number up to, not including, another.
pub(super) fn fill(
    bound: u64,
    mut add: impl FnMut(u64, u64) -> Result<Filled, TrialError>,
) -> Result<Filled, TrialError> {
    let mut offered = 0;
    loop {
        let next = offered.max(FIRST / 2).saturating_mul(2).min(bound);
        let filled = add(offered, next)?;
        offered = next;
        if filled.is_full() || offered >= bound {
            return Ok(filled);
        }
    }
}

/// Adds flow entries, and counts those that the switch holds.
fn add(
    client: &mut SwitchClient,
    context: &MethodContext<'_>,
    from: u64,
    to: u64,
) -> Result<Filled, TrialError> {
    let all = entries(to);
    let batch = all.flow_mods_from(from).map(|entry| Ok(entry?));
    let (added_ps, refused) = match client.load(batch) {
        Ok(loaded) => (Some(loaded.entries as f64 / loaded.seconds.max(1e-9)), None),
        Err(error) => (None, Some(error.downcast::<RefusedMessage>()?.to_string())),
    };
    let answer = client.multipart(MultipartRequestBody::Aggregate(FlowStatsRequest::all()))?;
    let MultipartReplyBody::Aggregate(sums) = answer else {
        return Err(wrong("table-size", format!("other statistics than asked: {answer:?}")));
    };
    // The entries of the setup are no part of what was added.
    let count = u64::from(sums.flow_count).saturating_sub(context.settings.flow_count());
    Ok(Filled { offered: to, count, error: 0, added_ps, refused })
}

/// A table of learnt hosts. `teach` sends a frame from each to all; the number that came through.
/// `look` sends a frame to each; the number that came to the hosts' port, and to another one. All
/// of them are taught, since those before may have been forgotten meanwhile.
pub(super) fn learn(
    offered: u64,
    mut teach: impl FnMut() -> Result<u64, TrialError>,
    look: impl FnMut() -> Result<(u64, u64), TrialError>,
) -> Result<Filled, TrialError> {
    pass(offered, "that teach addresses", || Ok((teach()?, 0)))?;
    // Frames to learnt addresses come to the hosts' port and, not being flooded, to no other.
    let (near, flooded) = pass(offered, "to learnt addresses", look)?;
    let count = near.saturating_sub(flooded);
    let missing = |frames: u64| (MISSING * frames as f64).ceil() as u64;
    // As many may not have been taught, and as many may not have been found.
    let lost = 2 * missing(offered);
    let (count, error) = if offered.saturating_sub(count) <= lost {
        (offered, lost)
    } else {
        // About as many flooded frames are lost as frames to the hosts.
        (count, missing(count) + 2 * offered.saturating_sub(near))
    };
    Ok(Filled { offered, count, error, ..Filled::default() })
}

/// Sends frames until nearly all of them have come; their number, and that at another port.
fn pass(
    sent: u64,
    what: &str,
    mut send: impl FnMut() -> Result<(u64, u64), TrialError>,
) -> Result<(u64, u64), TrialError> {
    let mut most = 0;
    for _ in 0..PASSES {
        let (came, other) = send()?;
        if came as f64 >= (1.0 - MISSING) * sent as f64 {
            return Ok((came, other));
        }
        most = most.max(came);
    }
    let what = format!(
        "of {sent} frames {what} {most} came through the switch, in the best of {PASSES} passes: \
         the table cannot be told from the machine's losses"
    );
    Err(wrong("table-size", what))
}

/// Sends a frame for each of `count` hosts by `port`; the number that came to each port. Learnt
/// hosts are at the second port, and none is at the first.
fn send(
    context: &MethodContext<'_>,
    port: usize,
    count: u64,
    modifiers: Vec<Modifier>,
) -> Result<[u64; 3], TrialError> {
    let burst = traffic::burst(context.settings, LEARN_PPS, count as f64 / LEARN_PPS);
    let stream = StreamSpec { modifiers, ..burst };
    let (seen, _) = context.bed.with_session(Waiting::Sleeping, |session| {
        traffic::exchange(session, &[(port, stream)], context, |_, _| Ok(()))
    })?;
    let came = |port| seen.streams.iter().map(|stream| traffic::received(stream, port)).sum();
    Ok([0, 1, 2].map(came))
}

/// A field that is counted up from a least to a greatest value.
fn counted(field: &str, min: &str, max: &str) -> Modifier {
    let field = FieldModifier::new(field, ModifierOp::Increment);
    Modifier::Field(FieldModifier { min: Some(min.into()), max: Some(max.into()), ..field })
}

/// The address of a host, counted from 0, below 2 to the power of 24.
fn host(number: u64) -> String {
    let [.., a, b, c] = number.to_be_bytes();
    format!("02:aa:00:{a:02x}:{b:02x}:{c:02x}")
}

/// A frame from each of the first `count` hosts to all.
fn teach(context: &MethodContext<'_>, count: u64) -> Result<u64, TrialError> {
    let from = counted("eth.src", &host(0), &host(count - 1));
    let to = counted("eth.dst", BROADCAST, BROADCAST);
    let [one, _, other] = send(context, 1, count, vec![from, to])?;
    // A frame that was lost on its way out came through the switch if another port has it.
    Ok(one.max(other))
}

/// A frame to each of the first `count` hosts.
fn look(context: &MethodContext<'_>, count: u64) -> Result<(u64, u64), TrialError> {
    let to = counted("eth.dst", &host(0), &host(count - 1));
    let [_, near, flooded] = send(context, 0, count, vec![to])?;
    Ok((near, flooded))
}

#[cfg(test)]
mod tests {
    use openflow::flow::FlowModCommand;
    use openflow::{Cookie, Version};

    use super::{deletions, entries, fill, host, learn};
    use crate::method::simulated::table_of;

    #[test]
    fn a_table_beyond_the_bound_ends_there() {
        let larger = fill(100_000, table_of(1_000_000, false)).unwrap();
        assert_eq!((larger.count, larger.offered, larger.is_full()), (100_000, 100_000, false));
    }

    #[test]
    fn only_what_was_added_is_deleted() {
        let added = entries(3);
        let cookie = added.flow_mods().next().unwrap().unwrap().cookie;
        assert_ne!(cookie, Cookie(0));
        let all: Vec<_> = deletions(&added, Version::V1_3).map(Result::unwrap).collect();
        assert_eq!(all.len(), 1, "by the cookie");
        assert_eq!((all[0].command, all[0].cookie), (FlowModCommand::Delete, cookie));
        assert_eq!(all[0].cookie_mask, u64::MAX);
        // OpenFlow 1.0 has no mask of cookies: each entry by its match and its priority.
        let each: Vec<_> = deletions(&added, Version::V1_0).map(Result::unwrap).collect();
        assert_eq!(each.len(), 3);
        for (gone, entry) in each.iter().zip(added.flow_mods().map(Result::unwrap)) {
            assert_eq!(gone.command, FlowModCommand::DeleteStrict);
            assert_eq!((&gone.matching, gone.priority), (&entry.matching, entry.priority));
        }
    }

    #[test]
    fn a_machine_without_a_whole_pass_says_nothing_of_the_table() {
        // Of each pass a fifth is lost.
        for (taught, what) in [(3_200, "that teach addresses"), (4_000, "to learnt addresses")] {
            let lost = learn(4_000, || Ok(taught), || Ok((3_200, 0))).unwrap_err().to_string();
            assert!(lost.contains(&format!("of 4000 frames {what} 3200 came")), "{lost}");
        }
    }

    #[test]
    fn flooded_frames_are_no_learnt_addresses() {
        for (near, flooded, count, error) in [
            (4_000, 0, 4_000, 80),
            // A few frames are lost.
            (3_990, 5, 4_000, 80),
            (4_000, 1_000, 3_000, 30),
            (3_980, 1_000, 2_980, 70),
            (4_000, 4_000, 0, 0),
            (3_960, 3_961, 0, 80),
        ] {
            let found = learn(4_000, || Ok(4_000), || Ok((near, flooded))).unwrap();
            assert_eq!((found.count, found.error), (count, error), "{near} {flooded}");
        }
    }

    #[test]
    fn hosts_have_addresses_of_their_own() {
        assert_eq!(host(0), "02:aa:00:00:00:00");
        assert_eq!(host(0x01_02_03), "02:aa:00:01:02:03");
    }
}
