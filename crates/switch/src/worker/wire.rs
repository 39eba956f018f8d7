//! The wire: ports in pairs and no table, as DPDK's testpmd forwards. It shows what the ports alone
//! can do, which is the most that any datapath between them can reach.
//!
//! A batch goes from port to port as it is; nothing here looks at a frame that it need not change.

use openflow::PortNo;
use packet::PacketBuf;

use crate::config::Wire;

/// Bytes of the two Ethernet addresses in front of a frame.
const ADDRESSES: usize = 12;

/// The place of the other port of a pair, among `count` ports: neighbours are pairs, and a last one
/// that is left over sends back what it receives.
pub(super) fn partner(index: usize, count: usize) -> usize {
    let other = index ^ 1;
    if other < count { other } else { index }
}

/// Changes the addresses of frames that leave by a port with this number and address.
pub(super) fn readdress(wire: Wire, frames: &mut [PacketBuf], (number, mac): (PortNo, [u8; 6])) {
    match wire {
        Wire::Io => {}
        Wire::Mac => {
            // testpmd's addresses of peers, by the number of the port.
            let mut both = [0; ADDRESSES];
            both[0] = 0x02;
            both[5] = number.0.to_be_bytes()[3];
            both[6..].copy_from_slice(&mac);
            for frame in frames {
                if let Some(addresses) = frame.bytes_mut().first_chunk_mut() {
                    *addresses = both;
                }
            }
        }
        Wire::MacSwap => {
            for frame in frames {
                if let Some(addresses) = frame.bytes_mut().first_chunk_mut::<ADDRESSES>() {
                    let [a, b, c, d, e, f, g, h, i, j, k, l] = *addresses;
                    *addresses = [g, h, i, j, k, l, a, b, c, d, e, f];
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use openflow::PortNo;
    use packet::PacketBuf;

    use super::{partner, readdress};
    use crate::config::Wire;

    #[test]
    fn neighbours_are_pairs() {
        let pairs = |count| (0..count).map(|index| partner(index, count)).collect::<Vec<_>>();
        assert_eq!(pairs(4), [1, 0, 3, 2]);
        assert_eq!(pairs(3), [1, 0, 2]);
        assert_eq!(pairs(1), [0]);
    }

    #[test]
    fn each_mode_changes_what_it_says() {
        let frame: Vec<u8> = (0..60).collect();
        let through = |wire, bytes: &[u8]| {
            let mut frames = [PacketBuf::from_slice(bytes)];
            readdress(wire, &mut frames, (PortNo(0x305), [9; 6]));
            frames[0].bytes().to_vec()
        };
        assert_eq!(through(Wire::Io, &frame), frame);
        let swapped = [&frame[6..12], &frame[..6], &frame[12..]].concat();
        assert_eq!(through(Wire::MacSwap, &frame), swapped);
        let named = [&[2, 0, 0, 0, 0, 5], &[9; 6][..], &frame[12..]].concat();
        assert_eq!(through(Wire::Mac, &frame), named);
        for wire in [Wire::Io, Wire::Mac, Wire::MacSwap] {
            assert_eq!(through(wire, &[1; 11]), [1; 11], "too short to have addresses");
        }
    }
}
