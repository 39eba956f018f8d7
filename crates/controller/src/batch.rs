//! Messages for one switch, encoded as they are gathered, that leave in one piece.
//!
//! The sender need not wait for the switch's thread, and that thread copies the bytes once. A
//! message that the version cannot encode must never get into a batch: adding it is an error.

use crate::commands::{Asks, BatchAsked, Command, OutcomeSender, SwitchEntry};
use crate::error::HandleError;
use crate::stats::Stats;
use openflow::{Message, Version, Xid};
use wire::EncodeError;

/// The types of the messages that are counted, the same in every version.
const PACKET_OUT: u8 = 13;
const FLOW_MOD: u8 = 14;

/// Bytes of messages of one batch of `Handle::apply`, each with a barrier request behind it.
const BATCH_BYTES: usize = 1 << 16;

/// Encoded messages of one version, in their order; see [`crate::Handle::send_batch`].
///
/// ```
/// use controller::MessageBatch;
/// use openflow::{Message, Version};
///
/// let mut batch = MessageBatch::new(Version::V1_3);
/// batch.push(&Message::BarrierRequest)?;
/// assert_eq!((batch.len(), batch.bytes()), (1, 8));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct MessageBatch {
    version: Version,
    /// The xids of those that have none are still to be filled in.
    bytes: Vec<u8>,
    sent: Stats,
    count: u32,
    /// The place of the first one in the caller's list.
    first_index: usize,
}

impl MessageBatch {
    /// A batch without messages.
    #[must_use]
    pub fn new(version: Version) -> Self {
        Self { version, bytes: Vec::new(), sent: Stats::default(), count: 0, first_index: 0 }
    }

    /// The version of its messages.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// Adds a message behind the others.
    ///
    /// # Errors
    /// The version cannot encode it; the batch is as it was.
    pub fn push(&mut self, message: &Message) -> Result<(), EncodeError> {
        wire::encode_into(&mut self.bytes, self.version, Xid(0), message)?;
        self.sent.count_sent(message);
        self.count += 1;
        Ok(())
    }

    /// Adds a message that is encoded already, with its own xid ([`crate::xid_of_app`]) if that is
    /// not zero; `bytes` must be one whole message of the batch's version.
    pub fn push_encoded(&mut self, bytes: &[u8]) {
        match bytes.get(1) {
            Some(&PACKET_OUT) => self.sent.packet_outs += 1,
            Some(&FLOW_MOD) => self.sent.flow_mods += 1,
            Some(_) | None => {}
        }
        self.bytes.extend_from_slice(bytes);
        self.count += 1;
    }

    /// The number of its messages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes of all its messages.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// With all xids, for no caller that waits.
    pub(crate) fn command(mut self, entry: &SwitchEntry) -> Command {
        number(&mut self.bytes, entry.allocate_xids(self.count));
        Command { bytes: self.bytes, sent: self.sent, asks: Asks::Nothing }
    }

    /// With the barrier request behind it and all xids.
    pub(crate) fn asking(
        mut self,
        entry: &SwitchEntry,
        outcome: OutcomeSender,
    ) -> Result<Command, HandleError> {
        let first = entry.allocate_xids(self.count + 1);
        number(&mut self.bytes, first);
        let batch = BatchAsked { first, count: self.count, first_index: self.first_index, outcome };
        let barrier = Message::BarrierRequest;
        wire::encode_into(&mut self.bytes, self.version, batch.barrier(), &barrier)
            .map_err(|error| HandleError::NotEncodable { index: self.first_index, error })?;
        Ok(Command { bytes: self.bytes, sent: self.sent, asks: Asks::Batch(batch) })
    }
}

/// One message.
pub(crate) fn encode_one(
    entry: &SwitchEntry,
    xid: Xid,
    message: &Message,
    asks: Asks,
) -> Result<Command, HandleError> {
    let bytes = wire::encode(entry.version, xid, message)
        .map_err(|error| HandleError::NotEncodable { index: 0, error })?;
    let mut sent = Stats::default();
    sent.count_sent(message);
    Ok(Command { bytes, sent, asks })
}

/// Gives the messages in `bytes` that have no xid those from `first` on.
fn number(mut bytes: &mut [u8], first: u32) {
    let mut xid = first;
    while let [_, _, high, low, at @ ..] = bytes
        && let Some((field, rest)) = at.split_first_chunk_mut::<4>()
    {
        if *field == [0; 4] {
            *field = xid.to_be_bytes();
            xid += 1;
        }
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        bytes = rest.get_mut(length.saturating_sub(wire::HEADER_LEN)..).unwrap_or_default();
    }
}

/// The messages in batches; at least one, which may be empty.
pub(crate) fn batches_of(
    version: Version,
    messages: &[Message],
) -> Result<Vec<MessageBatch>, HandleError> {
    let (mut batches, mut batch) = (Vec::new(), MessageBatch::new(version));
    for (index, message) in messages.iter().enumerate() {
        batch.push(message).map_err(|error| HandleError::NotEncodable { index, error })?;
        if batch.bytes() >= BATCH_BYTES {
            let next = MessageBatch { first_index: index + 1, ..MessageBatch::new(version) };
            batches.push(std::mem::replace(&mut batch, next));
        }
    }
    if batch.count > 0 || batches.is_empty() {
        batches.push(batch);
    }
    Ok(batches)
}
