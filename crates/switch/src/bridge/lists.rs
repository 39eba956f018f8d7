//! Lists of flow entries, in pieces: a million of them must hold up neither echoes nor changes.

use datapath::fast::{Control, Dump};
use openflow::Error;
use openflow::flow::{AggregateStats, FlowStats, FlowStatsRequest};
use openflow::message::MultipartReplyBody;

use super::Bridge;

/// Entries that are looked at before something else has its turn: some tens of microseconds.
const PIECE: usize = 256;

/// The reply to a multipart request.
#[derive(Debug)]
pub(crate) enum StatisticsReply {
    /// The whole body.
    Whole(MultipartReplyBody),
    /// A dump of flow entries, continued by [`Bridge::next_flows`].
    Flows(FlowDump),
}

/// A dump of flow entries under way.
#[derive(Debug)]
pub(crate) struct FlowDump {
    dump: Dump,
}

impl Bridge {
    /// Begins a list. See [`Dump`] for what is in it while entries come and go.
    ///
    /// # Errors
    /// `OFPBRC_BAD_TABLE_ID`.
    pub(crate) fn list_flows(&self, asked: &FlowStatsRequest) -> Result<FlowDump, Error> {
        let dump = self.with_control(|control| control.dump(asked));
        Ok(FlowDump { dump: dump.ok_or_else(Self::no_tables)?? })
    }

    /// The next entries of a list, maybe none, and whether they are the last.
    pub(crate) fn next_flows(&self, list: &mut FlowDump) -> (Vec<FlowStats>, bool) {
        let now = self.clock.now();
        let next = self.with_control(|control| control.dump_next(&mut list.dump, PIECE, now));
        self.save_counts_of(&list.dump);
        next.unwrap_or_else(|| (Vec::new(), true))
    }

    /// Sums over flow entries.
    ///
    /// # Errors
    /// `OFPBRC_BAD_TABLE_ID`.
    pub(super) async fn sum_flows(
        &self,
        asked: &FlowStatsRequest,
    ) -> Result<AggregateStats, Error> {
        let mut list = self.list_flows(asked)?;
        let mut sums = AggregateStats::default();
        loop {
            let next = |control: &mut Control| control.dump_sum(&mut list.dump, PIECE, &mut sums);
            let is_last = self.with_control(next).unwrap_or(true);
            self.save_counts_of(&list.dump);
            if is_last {
                return Ok(sums);
            }
            tokio::task::yield_now().await;
        }
    }
}
