//! The most entries that a switch holds: flow entries in batches that double until the switch
//! refuses one or a bound is reached; addresses in the same way where the switch learns.
//!
//! The switch's own statistics count the entries held, or, where it learns, the frames that it does
//! not flood. A switch that takes entries and does not hold them shows as one with fewer.

use std::time::Duration;

use generator::profile::{FieldModifier, Modifier, ModifierOp, StreamSpec};
use generator::session::Waiting;
use openflow::Version;
use openflow::flow::{FlowMod, FlowModCommand, FlowStatsRequest};
use openflow::message::{MultipartReplyBody, MultipartRequestBody};
use openflow::text::parse_flow_mod;

use super::{
    Better, Method, MethodContext, Metric, Resolution, Trial, TrialError, channel_error, traffic,
};
use crate::settings::{FlowSeries, Forwarding, Settings};
use crate::switch_client::{RefusedMessage, SwitchClient};

/// The method.
pub(super) struct TableSize;

const METRICS: &[Metric] = &[
    Metric {
        id: "table_entries",
        label: "entries held, up to the bound",
        unit: "entries",
        better: Better::Higher,
        decimals: 0,
    },
    Metric {
        id: "table_add_ps",
        label: "flow entries added, last batch",
        unit: "entries/s",
        better: Better::Higher,
        decimals: 0,
    },
];

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
pub(super) const MISSING: f64 = 0.01;

/// The share of the frames that must come to the hosts' port for it to be told which are held.
const ARRIVED: f64 = 0.9;

/// The address of the first learnt host.
const FIRST_MAC: &str = "02:aa:00:00:00:00";

impl Method for TableSize {
    fn id(&self) -> &'static str {
        "table-size"
    }

    fn label(&self) -> &'static str {
        "Largest table"
    }

    fn about(&self) -> &'static str {
        "Entries are added in doubling batches until the switch refuses one or `count` is reached \
         (1,000,000; of learnt addresses 32,768); those that it holds are counted"
    }

    fn metrics(&self) -> &'static [Metric] {
        METRICS
    }

    fn cost(&self, settings: &Settings) -> Duration {
        let bound = settings.count.unwrap_or(BOUND) as f64;
        Duration::from_secs_f64(match settings.forwarding() {
            Forwarding::Learning => 4.0 * bound.min(LEARNT_BOUND as f64) / LEARN_PPS + 1.0,
            Forwarding::Flows | Forwarding::Controller | Forwarding::Io => bound / 50_000.0 + 0.5,
        })
    }

    fn run(&self, context: &MethodContext<'_>) -> Result<Trial, TrialError> {
        let bound = context.settings.count.unwrap_or(BOUND);
        if bound == 0 {
            return Err(TrialError::Unfit("no entry is asked for: set count = 1 or more"));
        }
        let found = match context.settings.forwarding() {
            Forwarding::Flows => {
                let Some(mut client) = context.setup.and_then(|setup| setup.client()) else {
                    return Err(TrialError::Unfit("has no flow entries"));
                };
                let mut table = FlowTable { client: &mut client, context, offered: 0 };
                let filled = fill(&mut table, bound);
                // As the cell was set up, for what is measured next, also where filling failed.
                let cleaned = table.empty();
                let filled = filled?;
                cleaned?;
                filled
            }
            Forwarding::Learning => {
                if context.bed.kernel().is_none_or(|bed| bed.host_count() < 3) {
                    return Err(TrialError::Unfit(
                        "flooding is seen at a third port: set ports = 3",
                    ));
                }
                fill(&mut LearntTable { context }, bound.min(LEARNT_BOUND))?
            }
            Forwarding::Controller | Forwarding::Io => {
                return Err(TrialError::Unfit("a table is filled by flow entries or by learning"));
            }
        };
        let (held, (least, most)) = (found.held as f64, found.resolution());
        let mut values = vec![("table_entries", held)];
        values.extend(found.added_ps.map(|rate| ("table_add_ps", rate)));
        Ok(Trial {
            values,
            tool: "the lab's OpenFlow client".into(),
            commands: vec![format!("add-flow {} times {ENTRY}", found.offered)],
            resolutions: vec![Resolution::new("table_entries", least, most)],
            raw: serde_json::json!({
                "bound": bound,
                "offered": found.offered,
                "is_bound": found.is_bound,
                "refused": found.refused,
            }),
            ..Trial::default()
        })
    }
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

/// A table that takes more entries.
pub(super) trait Table {
    /// The share of entries that may be missing though the table has them.
    const MISSING: f64;

    /// Adds entries from number `from` up to, not including, `to`.
    fn add(&mut self, from: u64, to: u64) -> Result<Batch, TrialError>;

    /// Number of the first `offered` entries that it holds.
    fn held(&mut self, offered: u64) -> Result<u64, TrialError>;
}

/// Outcome of a batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Batch {
    /// Entries a second.
    pub(super) added_ps: Option<f64>,
    /// The switch's refusal, if it refused one.
    pub(super) refused: Option<String>,
}

/// The largest table.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Filled {
    pub(super) held: u64,
    /// See [`Table::MISSING`].
    pub(super) missing: f64,
    offered: u64,
    is_bound: bool,
    added_ps: Option<f64>,
    refused: Option<String>,
}

impl Filled {
    /// The least and the most that it may hold, by the share that may be missing.
    pub(super) fn resolution(&self) -> (f64, f64) {
        let held = self.held as f64;
        (held * (1.0 - self.missing), held * (1.0 + self.missing))
    }
}

/// Doubles the entries until they are not all held.
pub(super) fn fill<T: Table>(table: &mut T, bound: u64) -> Result<Filled, TrialError> {
    let mut offered = 0;
    loop {
        let next = offered.max(FIRST / 2).saturating_mul(2).min(bound);
        let batch = table.add(offered, next)?;
        offered = next;
        let held = table.held(offered)?;
        let is_full = batch.refused.is_some() || held < offered;
        if is_full || offered >= bound {
            let Batch { added_ps, refused } = batch;
            let (is_bound, missing) = (!is_full, T::MISSING);
            return Ok(Filled { held, missing, offered, is_bound, added_ps, refused });
        }
    }
}

struct FlowTable<'a, 'b> {
    client: &'a mut SwitchClient,
    context: &'a MethodContext<'b>,
    /// Number sent, held or not.
    offered: u64,
}

impl FlowTable<'_, '_> {
    /// Deletes what was added, and nothing else.
    fn empty(&mut self) -> Result<(), TrialError> {
        let (entries, version) = (entries(self.offered), self.client.version());
        let deleted = self.client.load(deletions(&entries, version));
        deleted.map(drop).map_err(|error| channel_error(&error, self.context))
    }
}

impl Table for FlowTable<'_, '_> {
    const MISSING: f64 = 0.0;

    fn add(&mut self, from: u64, to: u64) -> Result<Batch, TrialError> {
        self.context.cancel.check()?;
        self.offered = to;
        let entries = entries(to);
        let entries = entries.flow_mods().skip(from as usize).map(|entry| Ok(entry?));
        match self.client.load(entries) {
            Ok(loaded) => {
                let added_ps = loaded.entries as f64 / loaded.seconds.max(1e-9);
                Ok(Batch { added_ps: Some(added_ps), refused: None })
            }
            Err(error) => match error.downcast_ref::<RefusedMessage>() {
                Some(refused) => Ok(Batch { added_ps: None, refused: Some(refused.to_string()) }),
                None => Err(channel_error(&error, self.context)),
            },
        }
    }

    fn held(&mut self, _offered: u64) -> Result<u64, TrialError> {
        let body = MultipartRequestBody::Aggregate(FlowStatsRequest::all());
        let answer = self.client.multipart(body);
        let answer = answer.map_err(|error| channel_error(&error, self.context))?;
        let MultipartReplyBody::Aggregate(sums) = answer else {
            let what = format!("other statistics than asked: {answer:?}");
            return Err(TrialError::Output { program: "table-size", what });
        };
        // The entries of the setup are no part of what was added.
        Ok(u64::from(sums.flow_count).saturating_sub(self.context.settings.flow_count()))
    }
}

struct LearntTable<'a, 'b> {
    context: &'a MethodContext<'b>,
}

impl LearntTable<'_, '_> {
    /// A frame for each of the first `count` hosts, which `field` says: from them or to them.
    fn frames(&self, field: &str, count: u64) -> StreamSpec {
        let duration_s = count as f64 / LEARN_PPS;
        let modifier = FieldModifier {
            min: Some(FIRST_MAC.into()),
            max: Some(host(count - 1).as_str().into()),
            ..FieldModifier::new(field, ModifierOp::Increment)
        };
        let modifiers = vec![Modifier::Field(modifier)];
        StreamSpec { modifiers, ..traffic::burst(self.context.settings, LEARN_PPS, duration_s) }
    }
}

/// The address of a host, counted from 0, below 2 to the power of 24.
fn host(number: u64) -> String {
    let [.., a, b, c] = number.to_be_bytes();
    format!("02:aa:00:{a:02x}:{b:02x}:{c:02x}")
}

impl Table for LearntTable<'_, '_> {
    const MISSING: f64 = MISSING;

    fn add(&mut self, _from: u64, to: u64) -> Result<Batch, TrialError> {
        let learn = self.frames("eth.src", to);
        self.context.bed.with_session(Waiting::Sleeping, |session| {
            traffic::exchange(session, &[(1, vec![learn])], self.context, |_, _| Ok(()))
        })?;
        Ok(Batch::default())
    }

    fn held(&mut self, offered: u64) -> Result<u64, TrialError> {
        let look = self.frames("eth.dst", offered);
        let seen = self.context.bed.with_session(Waiting::Sleeping, |session| {
            traffic::exchange(session, &[(0, vec![look])], self.context, |_, _| Ok(()))
        })?;
        let count = |port| {
            seen.statistics.streams.iter().map(|stream| traffic::received(stream, port)).sum()
        };
        let (near, flooded): (u64, u64) = (count(1), count(2));
        learnt(offered, near, flooded).ok_or_else(|| {
            let what = format!(
                "{near} of {offered} frames came to port 2, where the hosts are, and {flooded} to \
                 port 3: what the switch has learnt cannot be told"
            );
            TrialError::Output { program: "table-size", what }
        })
    }
}

/// Number of addresses that a switch has learnt: frames to those come to the hosts' port and, not
/// being flooded, to no other. None where too few came for a count.
pub(super) fn learnt(offered: u64, near: u64, flooded: u64) -> Option<u64> {
    if (near as f64) < ARRIVED * offered as f64 {
        return None;
    }
    let held = near.checked_sub(flooded)?;
    Some(if held as f64 >= (1.0 - MISSING) * offered as f64 { offered } else { held })
}

#[cfg(test)]
mod tests {
    use openflow::flow::FlowModCommand;
    use openflow::{Cookie, Version};

    use super::{Batch, Filled, Table, TrialError, deletions, entries, fill, host, learnt};

    /// A table of known size, which may take more than it holds.
    struct Known {
        size: u64,
        is_lying: bool,
        taken: u64,
    }

    impl Table for Known {
        const MISSING: f64 = 0.0;

        fn add(&mut self, from: u64, to: u64) -> Result<Batch, TrialError> {
            assert_eq!(from, self.taken, "no entry is added twice");
            self.taken = to;
            let refused = (to > self.size && !self.is_lying).then(|| "table full".to_owned());
            Ok(Batch { added_ps: Some(1.0), refused })
        }

        fn held(&mut self, _offered: u64) -> Result<u64, TrialError> {
            Ok(self.taken.min(self.size))
        }
    }

    fn found(size: u64, is_lying: bool) -> Filled {
        fill(&mut Known { size, is_lying, taken: 0 }, 100_000).unwrap()
    }

    #[test]
    fn the_size_is_found_whether_the_switch_refuses_or_lies() {
        for size in [1, 999, 1_000, 16_000, 99_999] {
            for is_lying in [false, true] {
                let filled = found(size, is_lying);
                assert_eq!((filled.held, filled.is_bound), (size, false), "{size} {is_lying}");
                assert_eq!(filled.refused.is_some(), !is_lying);
            }
        }
        let larger = found(1_000_000, false);
        assert_eq!((larger.held, larger.offered, larger.is_bound), (100_000, 100_000, true));
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
    fn silence_is_no_learnt_address() {
        assert_eq!(learnt(4_000, 4_000, 0), Some(4_000));
        assert_eq!(learnt(4_000, 3_990, 5), Some(4_000), "a few frames are lost");
        assert_eq!(learnt(4_000, 4_000, 1_000), Some(3_000));
        assert_eq!(learnt(4_000, 4_000, 4_000), Some(0));
        assert_eq!(learnt(4_000, 0, 0), None);
        assert_eq!(learnt(4_000, 3_600, 3_601), None, "more flooded than came");
    }

    #[test]
    fn hosts_have_addresses_of_their_own() {
        assert_eq!(host(0), super::FIRST_MAC);
        assert_eq!(host(0x01_02_03), "02:aa:00:01:02:03");
    }
}
