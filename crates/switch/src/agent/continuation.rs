//! Continuations as controllers see them: a property whose number Open vSwitch leaves to switches,
//! with the bridge that the packet waits in.

use openflow::Error;
use openflow::id::DatapathId;

/// The property's number, among those that are private to a switch.
const NUMBER: [u8; 2] = [0x80, 0xff];

/// Bytes of the property's head, and of the datapath id after it.
const HEAD_LEN: usize = 4;
const ID_LEN: usize = size_of::<u64>();

/// Properties are padded to this.
const UNIT: usize = 8;

/// The continuation of a packet that waits in a bridge.
pub(super) fn of_bridge(bridge: DatapathId, datapaths: &[u8]) -> Vec<u8> {
    let len = HEAD_LEN + ID_LEN + datapaths.len();
    // Those of a datapath are bounded far below.
    let len_field = u16::try_from(len).unwrap_or(u16::MAX);
    let mut bytes = [&NUMBER[..], &len_field.to_be_bytes(), &bridge.0.to_be_bytes()].concat();
    bytes.extend(datapaths);
    bytes.resize(len.next_multiple_of(UNIT), 0);
    bytes
}

/// The datapath's part of a continuation of this bridge.
///
/// # Errors
/// `NXR_STALE` where it is none of the bridge's.
pub(super) fn of_datapath(bridge: DatapathId, continuation: &[u8]) -> Result<&[u8], Error> {
    let own = || {
        let (head, _) = continuation.split_first_chunk::<HEAD_LEN>()?;
        let [a, b, high, low] = *head;
        let len = usize::from(u16::from_be_bytes([high, low]));
        let is_whole = len.next_multiple_of(UNIT) == continuation.len();
        let (id, datapaths) = continuation.get(HEAD_LEN..len)?.split_first_chunk::<ID_LEN>()?;
        let is_own = [a, b] == NUMBER && u64::from_be_bytes(*id) == bridge.0;
        (is_whole && is_own).then_some(datapaths)
    };
    own().ok_or(Error::ResumeStale)
}

#[cfg(test)]
mod tests {
    use super::{of_bridge, of_datapath};
    use openflow::Error;
    use openflow::id::DatapathId;

    #[test]
    fn a_bridge_knows_its_own_and_no_part_or_other() {
        for len in [0, 1, 4, 100] {
            let whole = of_bridge(DatapathId(7), &vec![3; len]);
            assert_eq!(of_datapath(DatapathId(7), &whole), Ok(&vec![3; len][..]));
            assert_eq!(of_datapath(DatapathId(8), &whole), Err(Error::ResumeStale));
            for end in 0..whole.len() {
                assert_eq!(of_datapath(DatapathId(7), &whole[..end]), Err(Error::ResumeStale));
            }
        }
        assert_eq!(of_datapath(DatapathId(7), &[0x80, 0xff, 0xff, 0xff]), Err(Error::ResumeStale));
    }
}
