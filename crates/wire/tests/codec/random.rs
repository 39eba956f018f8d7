//! Random messages that a version can say, made from bytes so that they shrink.

mod element;
mod entropy;
mod flow;
mod message;

pub(crate) use entropy::Entropy;
pub(crate) use flow::{action, instruction, match_on, stats};
pub(crate) use message::{message, reply_body};

/// Choices that differ from seed to seed but not from run to run.
pub(crate) fn bytes(seed: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed as u64 + 1);
    let step = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_be_bytes()[0]
    };
    (0..4000).map(step).collect()
}
