//! Random messages between our codec and other people's.
//!
//! `WEIR_PEER_MESSAGES` is how many messages of each kind and version go to a peer (default 60),
//! `WEIR_PEER_SEED` which ones (default 1). A failure names the seed of its message, so that
//! `WEIR_PEER_SEED=<it> WEIR_PEER_MESSAGES=1` makes that one alone. The peers are installed by the
//! first step of `cargo xtask test`; without them these tests fail, they never pass unseen.

mod os_ken;
mod ovs;

use openflow::message::MESSAGES;
use openflow::{Message, MessageKind, Version};

use crate::random::{self, Entropy};

/// A random message and what makes it again.
struct Sample {
    version: Version,
    kind: MessageKind,
    seed: usize,
    message: Message,
}

impl Sample {
    fn name(&self) -> String {
        format!("OpenFlow {} {} of seed {}", self.version, self.kind.row().name, self.seed)
    }
}

fn number(variable: &str, default: usize) -> usize {
    let text = std::env::var(variable).ok();
    text.map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{variable}={text}")))
}

/// Random messages of every kind and version, of things that the specification names.
fn samples() -> Vec<Sample> {
    let first = number("WEIR_PEER_SEED", 1);
    let count = number("WEIR_PEER_MESSAGES", 60);
    println!("WEIR_PEER_SEED={first} WEIR_PEER_MESSAGES={count}");
    let mut all = Vec::new();
    for seed in first..first + count {
        let bytes = random::bytes(seed);
        // The peers' words of 1.4 are not described here.
        for &version in Version::USUAL {
            for row in MESSAGES.iter().filter(|row| row.kind.number(version).is_some()) {
                let kind = row.kind;
                let message = random::message(&mut Entropy::tame(&bytes), version, kind);
                all.push(Sample { version, kind, seed, message });
            }
        }
    }
    all
}
