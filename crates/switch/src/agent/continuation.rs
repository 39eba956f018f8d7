//! Continuations as controllers see them: a property whose number Open vSwitch leaves to switches,
//! with the bridge that the packet waits in, and a hash that nobody makes without its key.
//!
//! The key lives as long as the process and never leaves it. So a controller cannot write what no
//! packet of the bridge has left to do, such as the mirrors that have had it.

use std::hash::{BuildHasher as _, RandomState};

use openflow::Error;
use openflow::id::DatapathId;

/// The property's number, among those that are private to a switch.
const NUMBER: [u8; 2] = [0x80, 0xff];

/// Bytes of the property's head, and of the datapath id and the hash after it.
const HEAD_LEN: usize = 4;
const ID_LEN: usize = size_of::<u64>();
const HASH_LEN: usize = size_of::<u64>();

/// Properties are padded to this.
const UNIT: usize = 8;

/// The key of a bridge's continuations, another one in each process.
#[derive(Debug, Default)]
pub(super) struct ContinuationKey(RandomState);

impl ContinuationKey {
    /// The continuation of a packet that waits in a bridge.
    pub(super) fn of_bridge(&self, bridge: DatapathId, datapaths: &[u8]) -> Vec<u8> {
        let len = HEAD_LEN + ID_LEN + HASH_LEN + datapaths.len();
        // Those of a datapath are bounded far below.
        let len_field = u16::try_from(len).unwrap_or(u16::MAX);
        let (id, hash) = (bridge.0.to_be_bytes(), self.hash(bridge, datapaths));
        let mut bytes = [&NUMBER[..], &len_field.to_be_bytes(), &id, &hash, datapaths].concat();
        bytes.resize(len.next_multiple_of(UNIT), 0);
        bytes
    }

    /// The datapath's part of a continuation of this bridge.
    ///
    /// # Errors
    /// `NXR_STALE` where it is none of the bridge's.
    pub(super) fn of_datapath<'a>(
        &self,
        bridge: DatapathId,
        continuation: &'a [u8],
    ) -> Result<&'a [u8], Error> {
        let own = || {
            let (head, _) = continuation.split_first_chunk::<HEAD_LEN>()?;
            let [a, b, high, low] = *head;
            let len = usize::from(u16::from_be_bytes([high, low]));
            let is_whole = len.next_multiple_of(UNIT) == continuation.len();
            let (id, rest) = continuation.get(HEAD_LEN..len)?.split_first_chunk::<ID_LEN>()?;
            let (hash, datapaths) = rest.split_first_chunk::<HASH_LEN>()?;
            let is_own = [a, b] == NUMBER
                && u64::from_be_bytes(*id) == bridge.0
                && *hash == self.hash(bridge, datapaths);
            (is_whole && is_own).then_some(datapaths)
        };
        own().ok_or(Error::ResumeStale)
    }

    fn hash(&self, bridge: DatapathId, datapaths: &[u8]) -> [u8; HASH_LEN] {
        self.0.hash_one((bridge.0, datapaths)).to_be_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::ContinuationKey;
    use openflow::Error;
    use openflow::id::DatapathId;

    const STALE: Result<&[u8], Error> = Err(Error::ResumeStale);

    #[test]
    fn a_bridge_knows_its_own_and_no_part_or_other() {
        let key = ContinuationKey::default();
        for len in [0, 1, 4, 100] {
            let whole = key.of_bridge(DatapathId(7), &vec![3; len]);
            assert_eq!(key.of_datapath(DatapathId(7), &whole), Ok(&vec![3; len][..]));
            assert_eq!(key.of_datapath(DatapathId(8), &whole), STALE);
            assert_eq!(ContinuationKey::default().of_datapath(DatapathId(7), &whole), STALE);
            for end in 0..whole.len() {
                assert_eq!(key.of_datapath(DatapathId(7), &whole[..end]), STALE);
            }
            // Bytes of the padding alone mean nothing.
            for at in 0..super::HEAD_LEN + super::ID_LEN + super::HASH_LEN + len {
                let mut changed = whole.clone();
                changed[at] ^= 0x80;
                assert_eq!(key.of_datapath(DatapathId(7), &changed), STALE);
            }
        }
        assert_eq!(key.of_datapath(DatapathId(7), &[0x80, 0xff, 0xff, 0xff]), STALE);
    }
}
