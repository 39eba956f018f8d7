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

use super::{Method, MethodContext, Metric, Resolution, Trial, TrialError, channel_error, traffic};
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

/// The address of the first learnt host.
const FIRST_MAC: &str = "02:aa:00:00:00:00";

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
            let mut table = FlowTable { client: &mut client, context, offered: 0 };
            let filled = fill(&mut table, bound);
            // As the cell was set up, for what is measured next, also where filling failed.
            let cleaned = table.empty();
            let filled = filled?;
            cleaned?;
            (filled, "the lab's OpenFlow client")
        }
        Forwarding::Learning => {
            if context.bed.kernel().is_none_or(|bed| bed.host_count() < 3) {
                return Err(TrialError::Unfit("flooding is seen at a third port: set ports = 3"));
            }
            let mut table = Learner(WiredStation { context });
            (fill(&mut table, bound.min(LEARNT_BOUND))?, traffic::TOOL)
        }
        Forwarding::Controller | Forwarding::Io => {
            return Err(TrialError::Unfit("a table is filled by flow entries or by learning"));
        }
    };
    let (held, (least, most)) = (found.held.count as f64, found.resolution());
    let mut values = vec![("table_entries", held)];
    values.extend(found.added_ps.map(|rate| ("table_add_ps", rate)));
    Ok(Trial {
        values,
        tool: tool.into(),
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
    /// Adds entries from number `from` up to, not including, `to`.
    fn add(&mut self, from: u64, to: u64) -> Result<Batch, TrialError>;

    /// The first `offered` entries that it holds.
    fn held(&mut self, offered: u64) -> Result<HeldCount, TrialError>;
}

/// Number of entries that are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HeldCount {
    pub(super) count: u64,
    /// By how much it may be wrong, either way.
    pub(super) error: u64,
}

impl HeldCount {
    /// A number that the switch itself counts.
    pub(super) fn exactly(count: u64) -> Self {
        Self { count, error: 0 }
    }
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
    pub(super) held: HeldCount,
    offered: u64,
    is_bound: bool,
    added_ps: Option<f64>,
    refused: Option<String>,
}

impl Filled {
    /// The least and the most that it may hold.
    pub(super) fn resolution(&self) -> (f64, f64) {
        let HeldCount { count, error } = self.held;
        (count.saturating_sub(error) as f64, (count + error) as f64)
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
        let is_full = batch.refused.is_some() || held.count < offered;
        if is_full || offered >= bound {
            let Batch { added_ps, refused } = batch;
            return Ok(Filled { held, offered, is_bound: !is_full, added_ps, refused });
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

    fn held(&mut self, _offered: u64) -> Result<HeldCount, TrialError> {
        let body = MultipartRequestBody::Aggregate(FlowStatsRequest::all());
        let answer = self.client.multipart(body);
        let answer = answer.map_err(|error| channel_error(&error.into(), self.context))?;
        let MultipartReplyBody::Aggregate(sums) = answer else {
            let what = format!("other statistics than asked: {answer:?}");
            return Err(TrialError::Output { program: "table-size", what });
        };
        // The entries of the setup are no part of what was added.
        let count = u64::from(sums.flow_count).saturating_sub(self.context.settings.flow_count());
        Ok(HeldCount::exactly(count))
    }
}

/// Ports at which frames for or from learnt hosts are sent and counted.
pub(super) trait Station {
    /// A frame from each of the first `count` hosts to all; the number that came through.
    fn teach(&mut self, count: u64) -> Result<u64, TrialError>;

    /// A frame to each of the first `count` hosts; the number that came to the hosts' port, and to
    /// another one.
    fn look(&mut self, count: u64) -> Result<(u64, u64), TrialError>;
}

/// Learnt addresses as a table.
pub(super) struct Learner<S>(pub(super) S);

impl<S: Station> Table for Learner<S> {
    fn add(&mut self, _from: u64, to: u64) -> Result<Batch, TrialError> {
        // All of them, since those that were taught before may have been forgotten meanwhile.
        pass(to, "that teach addresses", || Ok((self.0.teach(to)?, ())))?;
        Ok(Batch::default())
    }

    fn held(&mut self, offered: u64) -> Result<HeldCount, TrialError> {
        let (near, flooded) = pass(offered, "to learnt addresses", || self.0.look(offered))?;
        Ok(learnt(offered, near, flooded))
    }
}

/// Sends frames until nearly all of them have come, and gives their number with what else the last
/// pass found.
fn pass<T>(
    sent: u64,
    what: &str,
    mut send: impl FnMut() -> Result<(u64, T), TrialError>,
) -> Result<(u64, T), TrialError> {
    let mut most = 0;
    for _ in 0..PASSES {
        let (came, found) = send()?;
        if came as f64 >= (1.0 - MISSING) * sent as f64 {
            return Ok((came, found));
        }
        most = most.max(came);
    }
    let what = format!(
        "of {sent} frames {what} {most} came through the switch, in the best of {PASSES} passes: \
         the table cannot be told from the machine's losses"
    );
    Err(TrialError::Output { program: "table-size", what })
}

/// The hosts of a testbed on this machine: learnt ones at its second port, others at the first.
struct WiredStation<'a, 'b> {
    context: &'a MethodContext<'b>,
}

impl WiredStation<'_, '_> {
    /// Sends a frame for each of the first `count` hosts by `port`; the number that came to each
    /// port. Fields have a least and a greatest value.
    fn send(
        &self,
        port: usize,
        count: u64,
        fields: &[(&str, &str, &str)],
    ) -> Result<[u64; 3], TrialError> {
        let modifier = |(field, min, max): &(&str, &str, &str)| {
            Modifier::Field(FieldModifier {
                min: Some((*min).into()),
                max: Some((*max).into()),
                ..FieldModifier::new(field, ModifierOp::Increment)
            })
        };
        let modifiers = fields.iter().map(modifier).collect();
        let burst = traffic::burst(self.context.settings, LEARN_PPS, count as f64 / LEARN_PPS);
        let stream = StreamSpec { modifiers, ..burst };
        let seen = self.context.bed.with_session(Waiting::Sleeping, |session| {
            traffic::exchange(session, &[(port, vec![stream])], self.context, |_, _| Ok(()))
        })?;
        let streams = &seen.statistics.streams;
        let came = |port| streams.iter().map(|stream| traffic::received(stream, port)).sum();
        Ok([0, 1, 2].map(came))
    }
}

/// The address of a host, counted from 0, below 2 to the power of 24.
fn host(number: u64) -> String {
    let [.., a, b, c] = number.to_be_bytes();
    format!("02:aa:00:{a:02x}:{b:02x}:{c:02x}")
}

impl Station for WiredStation<'_, '_> {
    fn teach(&mut self, count: u64) -> Result<u64, TrialError> {
        let last = host(count - 1);
        let to_all = ("eth.dst", BROADCAST, BROADCAST);
        let [one, _, other] = self.send(1, count, &[("eth.src", FIRST_MAC, &last), to_all])?;
        // A frame that was lost on its way out came through the switch if another port has it.
        Ok(one.max(other))
    }

    fn look(&mut self, count: u64) -> Result<(u64, u64), TrialError> {
        let last = host(count - 1);
        let [_, near, flooded] = self.send(0, count, &[("eth.dst", FIRST_MAC, &last)])?;
        Ok((near, flooded))
    }
}

/// Number of addresses that a switch has learnt: frames to those come to the hosts' port and, not
/// being flooded, to no other.
fn learnt(offered: u64, near: u64, flooded: u64) -> HeldCount {
    let count = near.saturating_sub(flooded);
    let missing = |frames: u64| (MISSING * frames as f64).ceil() as u64;
    // As many may not have been taught, and as many may not have been found.
    let lost = 2 * missing(offered);
    if offered.saturating_sub(count) <= lost {
        return HeldCount { count: offered, error: lost };
    }
    // About as many flooded frames are lost as frames to the hosts.
    HeldCount { count, error: missing(count) + 2 * offered.saturating_sub(near) }
}

#[cfg(test)]
pub(super) mod tests {
    use openflow::flow::FlowModCommand;
    use openflow::{Cookie, Version};

    use super::{
        Batch, HeldCount, Learner, Station, Table, TrialError, deletions, entries, fill, host,
        learnt,
    };

    /// A table of known size, which may take more than it holds.
    pub(in super::super) struct KnownTable {
        size: u64,
        is_lying: bool,
        taken: u64,
    }

    impl KnownTable {
        pub(in super::super) fn new(size: u64, is_lying: bool) -> Self {
            Self { size, is_lying, taken: 0 }
        }
    }

    impl Table for KnownTable {
        fn add(&mut self, from: u64, to: u64) -> Result<Batch, TrialError> {
            assert_eq!(from, self.taken, "no entry is added twice");
            self.taken = to;
            let refused = (to > self.size && !self.is_lying).then(|| "table full".to_owned());
            Ok(Batch { added_ps: Some(1.0), refused })
        }

        fn held(&mut self, _offered: u64) -> Result<HeldCount, TrialError> {
            Ok(HeldCount::exactly(self.taken.min(self.size)))
        }
    }

    #[test]
    fn a_table_beyond_the_bound_ends_there() {
        let larger = fill(&mut KnownTable::new(1_000_000, false), 100_000).unwrap();
        let held = HeldCount::exactly(100_000);
        assert_eq!((larger.held, larger.offered, larger.is_bound), (held, 100_000, true));
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

    /// A machine that loses a fifth of each pass.
    struct Lossy;

    impl Station for Lossy {
        fn teach(&mut self, count: u64) -> Result<u64, TrialError> {
            Ok(count - count / 5)
        }

        fn look(&mut self, count: u64) -> Result<(u64, u64), TrialError> {
            Ok((count - count / 5, 0))
        }
    }

    #[test]
    fn a_machine_without_a_whole_pass_says_nothing_of_the_table() {
        let lost = fill(&mut Learner(Lossy), 1 << 15).unwrap_err().to_string();
        assert!(lost.contains("of 4000 frames that teach addresses 3200 came"), "{lost}");
        let lost = Learner(Lossy).held(4_000).unwrap_err().to_string();
        assert!(lost.contains("to learnt addresses 3200 came"), "{lost}");
    }

    #[test]
    fn flooded_frames_are_no_learnt_addresses() {
        let held = |count, error| HeldCount { count, error };
        assert_eq!(learnt(4_000, 4_000, 0), held(4_000, 80));
        assert_eq!(learnt(4_000, 3_990, 5), held(4_000, 80), "a few frames are lost");
        assert_eq!(learnt(4_000, 4_000, 1_000), held(3_000, 30));
        assert_eq!(learnt(4_000, 3_980, 1_000), held(2_980, 70));
        assert_eq!(learnt(4_000, 4_000, 4_000), held(0, 0));
        assert_eq!(learnt(4_000, 3_960, 3_961), held(0, 80));
    }

    #[test]
    fn hosts_have_addresses_of_their_own() {
        assert_eq!(host(0), super::FIRST_MAC);
        assert_eq!(host(0x01_02_03), "02:aa:00:01:02:03");
    }
}
