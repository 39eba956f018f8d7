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
    testkit::Random::new(seed as u64).bytes(4000)
}
