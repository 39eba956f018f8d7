//! Wrong messages: right ones with bytes changed, cut, added, exchanged, whose header still says
//! how long they are; and, rarely, ones of which it does not, which end a connection.

use openflow::{Version, Xid};

use super::entropy::Entropy;
use super::make::Maker;

/// Frames may be so long here.
const LENGTH_MAX: usize = 4_000;

/// A frame that is probably wrong, of this xid.
pub(crate) fn frame(maker: &Maker, e: &mut Entropy, version: Version, xid: Xid) -> Vec<u8> {
    let mut frame = if e.once_in(3) { maker.vector(e) } else { maker.frame(e, version, xid) };
    if frame.len() < 8 {
        frame.resize(8, 0);
    }
    if !e.once_in(20)
        && let Some(first) = frame.first_mut()
    {
        *first = version.number();
    }
    for _ in 0..=e.below(3) {
        change(maker, e, version, &mut frame);
    }
    frame.truncate(LENGTH_MAX);
    let length = u16::try_from(frame.len()).unwrap_or(u16::MAX).to_be_bytes();
    let head = length.into_iter().chain(xid.0.to_be_bytes());
    for (to, byte) in frame.iter_mut().skip(2).zip(head) {
        *to = byte;
    }
    frame
}

fn change(maker: &Maker, e: &mut Entropy, version: Version, frame: &mut Vec<u8>) {
    let body = frame.len() - 8;
    match e.below(8) {
        0..=2 if body > 0 => {
            for _ in 0..=e.below(6) {
                let (at, byte) = (8 + e.below(body), e.byte());
                if let Some(to) = frame.get_mut(at) {
                    *to = if e.once_in(2) { byte } else { *to ^ (1 << (byte % 8)) };
                }
            }
        }
        // Lengths and types stand at even places.
        3 if body > 3 => {
            let at = (8 + e.below(body - 2)) & !1;
            let number = [0, 1, 3, 7, 8, 9, 16, 0x7fff, 0xfffe, 0xffff][e.below(10)];
            for (to, byte) in frame.iter_mut().skip(at).zip(u16::to_be_bytes(number)) {
                *to = byte;
            }
        }
        4 => frame.truncate(8 + e.below(body + 1)),
        5 => {
            let more = e.below(64);
            frame.extend(e.bytes(more));
        }
        6 => {
            let other = maker.frame(e, version, Xid(0));
            let keep = 8 + e.below(body + 1);
            let from = 8 + e.below(other.len() - 7);
            frame.truncate(keep);
            frame.extend(other.get(from..).unwrap_or_default());
        }
        _ => {
            let kind = e.byte() % 32;
            if let Some(to) = frame.get_mut(1) {
                *to = kind;
            }
        }
    }
}

/// A frame that says less than its header can be: it ends the connection.
pub(crate) fn fatal(e: &mut Entropy, version: Version, xid: Xid) -> Vec<u8> {
    let mut frame = vec![version.number(), e.byte() % 32, 0, e.byte() % 8];
    frame.extend(xid.0.to_be_bytes());
    frame
}
