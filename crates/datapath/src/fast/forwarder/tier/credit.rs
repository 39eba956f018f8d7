//! Counts of a decision in the kernel beside its path, from the program that it carries out.
//!
//! A program that does anything else than to change the headers of a frame, count, send it by ports
//! and drop it is not for the kernel, and must never get credits here.

use openflow::{GroupId, PortNo};
use packet::{MaskedRewrite, Shape};

use super::{KeptCounts, TierOwner};
use crate::counter::DropReason;
use crate::fast::forwarder::Core;
use crate::fast::forwarder::kernel_rewrite::KernelRewrite;
use crate::fast::forwarder::program::{MicroOp, Program, Terminal};

/// A count of a decision beside its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Credit {
    Output(PortNo),
    Drop(DropReason),
    Group(GroupId),
    Bucket(GroupId, usize),
}

/// A program's counts and changes, if it changes the headers of a frame at once, or not at all,
/// and then only sends it by ports or drops it.
pub(super) fn credits_of(
    program: Program<'_>,
    shape: Shape,
) -> Option<(Vec<Credit>, MaskedRewrite)> {
    let mut changes = KernelRewrite::new(shape, program.code.guard);
    let mut credits = Vec::new();
    // No port has got the frame, or a copy of it, before it is changed.
    let mut may_change = true;
    for (micro_op, values) in program.micro_ops() {
        match micro_op {
            MicroOp::Group(id) => credits.push(Credit::Group(*id)),
            MicroOp::Bucket(id, index) => credits.push(Credit::Bucket(*id, *index)),
            MicroOp::Output(port, None) => credits.push(Credit::Output(*port)),
            MicroOp::Drop(reason) => credits.push(Credit::Drop(*reason)),
            MicroOp::Apply(_) | MicroOp::Rewrite(_) | MicroOp::PopTag if may_change => {
                changes.add(micro_op, values)?;
            }
            // Copies of a frame that nothing changes are as the frame.
            MicroOp::BeginCopy | MicroOp::EndCopy => {}
            MicroOp::Apply(_)
            | MicroOp::Rewrite(_)
            | MicroOp::PopTag
            | MicroOp::PushMpls(..)
            | MicroOp::TagToMpls(..)
            | MicroOp::Truncate(_)
            | MicroOp::Meter(..)
            | MicroOp::Learn(_)
            | MicroOp::Shorten(..)
            | MicroOp::Output(_, Some(_))
            | MicroOp::ToController(_)
            | MicroOp::RefusedTx(..)
            | MicroOp::Normal(..) => return None,
        }
        may_change &= !matches!(
            micro_op,
            MicroOp::Output(..) | MicroOp::Drop(_) | MicroOp::BeginCopy | MicroOp::EndCopy
        );
    }
    match program.terminal {
        Some(Terminal::Output(port, None)) => credits.push(Credit::Output(port)),
        Some(Terminal::Output(_, Some(_))) => return None,
        Some(Terminal::Drop(reason)) => credits.push(Credit::Drop(reason)),
        None => {}
    }
    // Groups count the bytes that a frame has when it comes to them.
    let in_group = |credit: &Credit| matches!(credit, Credit::Group(_) | Credit::Bucket(..));
    if changes.moves_tag() && credits.iter().any(in_group) {
        return None;
    }
    Some((credits, changes.finish()?))
}

/// The groups and buckets that are credited.
pub(super) fn owners_of(credits: &[Credit]) -> Vec<TierOwner> {
    let owner = |credit: &Credit| match credit {
        Credit::Group(id) => Some(TierOwner::Group(*id)),
        // As many as a message holds.
        Credit::Bucket(id, index) => Some(TierOwner::Bucket(*id, *index as u32)),
        Credit::Output(_) | Credit::Drop(_) => None,
    };
    credits.iter().filter_map(owner).collect()
}

impl Core {
    /// Credits what a table has counted for an earlier process.
    pub(in crate::fast::forwarder) fn credit_kept(&self, kept: &KeptCounts) {
        let KeptCounts { owners, packets, bytes, last_used } = kept;
        for owner in owners {
            match owner {
                TierOwner::Entry(id) => {
                    if let Some(entry) = self.replica.entry(*id) {
                        self.replica.count_hit(entry.table, *id, *packets, *bytes);
                        self.replica.touch(*id, entry.life, *last_used);
                    }
                }
                TierOwner::Group(id) => self.replica.count_group(*id, *packets, *bytes),
                TierOwner::Bucket(id, index) => {
                    self.replica.count_bucket(*id, *index as usize, *packets, *bytes);
                }
            }
        }
    }
}
