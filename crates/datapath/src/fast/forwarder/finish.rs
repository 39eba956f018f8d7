//! Super-frames and open checksums ([`packet::Offload`]) before their programs run.
//!
//! A program that only changes headers and sends a frame on takes it as it is. Micro-ops that need
//! the frames that a wire would carry (meters, packet-ins, MPLS and PBB, packets without a program)
//! get these: they go on one by one, each with the decision of the whole. The counts are the same
//! either way. Where an entry looks at a flag of TCP that only one of the frames has, there is no
//! decision of the whole: it is cut before.

use openflow::Field;
use openflow::action::HeaderEffect;
use openflow::field::Header;
use packet::PacketBuf;
use packet::offload::{FLAGS_OF_ONE, differ_in_flags, finish};

use super::program::{Code, Decided, MicroOp, ProgramId};
use super::{Core, Sink, Sizes};
use crate::counter::DropReason;
use crate::fast::interpreter::{header_effect, writes_a_type};

impl Core {
    /// Does what is left to do to those frames whose programs do not take them as they are; what
    /// the frames come to.
    #[cold]
    pub(super) fn finish(
        &mut self,
        frames: &mut Vec<PacketBuf>,
        decided: &mut Vec<Decided>,
        sink: &mut impl Sink,
    ) -> Sizes {
        let takes_whole = |(frame, way): (&PacketBuf, &Decided)| {
            !frame.has_offload() || self.takes_offloads(way.program)
        };
        if frames.iter().zip(decided.iter()).all(takes_whole) {
            return Sizes::of(frames);
        }
        let came = std::mem::take(frames);
        let ways = std::mem::take(decided);
        let digests = std::mem::take(&mut self.digests);
        for (at, (frame, way)) in came.into_iter().zip(ways).enumerate() {
            let mut parts = Vec::new();
            if !frame.has_offload() || self.takes_offloads(way.program) {
                parts.push(frame);
            } else {
                self.finish_one(frame, &mut parts, sink);
            }
            for part in parts {
                frames.push(part);
                decided.push(way);
                // One for each frame, or one for all.
                self.digests.extend(digests.get(at));
            }
        }
        Sizes::of(frames)
    }

    /// Cuts the super-frames of which entries look at flags that only one of their frames has, so
    /// that each goes its own way; whether there were any.
    #[cold]
    pub(super) fn cut_by_flags(&self, frames: &mut Vec<PacketBuf>, sink: &mut impl Sink) -> bool {
        let is_looked_at = self.pipeline_mask.has_some(Field::TcpFlags, FLAGS_OF_ONE.into());
        if !is_looked_at || !frames.iter().any(differ_in_flags) {
            return false;
        }
        for frame in std::mem::take(frames) {
            if differ_in_flags(&frame) {
                self.finish_one(frame, frames, sink);
            } else {
                frames.push(frame);
            }
        }
        true
    }

    fn finish_one(&self, frame: PacketBuf, parts: &mut Vec<PacketBuf>, sink: &mut impl Sink) {
        match finish(frame, || sink.spare(), |part| parts.push(part)) {
            Ok(None) => {}
            Ok(Some(whole)) => sink.done(whole),
            // Nothing has changed its headers since its port took it.
            Err(frame) => {
                self.replica.count_drops(DropReason::Malformed, 1);
                sink.dropped(DropReason::Malformed);
                sink.done(frame);
            }
        }
    }

    fn takes_offloads(&self, program: ProgramId) -> bool {
        program != ProgramId::WALK
            && self.programs.get(program).is_some_and(|program| program.code.takes_offloads())
    }
}

impl Code {
    /// Whether it does the same to a super-frame as to the frames that this stands for.
    fn takes_offloads(&self) -> bool {
        self.micro_ops.iter().all(|micro_op| match micro_op {
            MicroOp::Apply(action) => match header_effect(action) {
                HeaderEffect::Write => !writes_a_type(action),
                HeaderEffect::Push(Header::Vlan) | HeaderEffect::Pop(Header::Vlan) => true,
                HeaderEffect::None
                | HeaderEffect::WriteTag
                | HeaderEffect::SetTtl(_)
                | HeaderEffect::DecTtl(_) => true,
                HeaderEffect::Push(_) | HeaderEffect::Pop(_) | HeaderEffect::CopyTtl => false,
            },
            MicroOp::Rewrite(_)
            | MicroOp::PopTag
            | MicroOp::Group(_)
            | MicroOp::Bucket(..)
            | MicroOp::Output(..)
            | MicroOp::Drop(_)
            | MicroOp::RefusedTx(..)
            | MicroOp::Learn(_)
            | MicroOp::Shorten(..)
            | MicroOp::Normal(..)
            | MicroOp::BeginCopy
            | MicroOp::EndCopy => true,
            MicroOp::PushMpls(..)
            | MicroOp::TagToMpls(..)
            | MicroOp::Truncate(_)
            | MicroOp::Meter(..)
            | MicroOp::ToController(_) => false,
        })
    }
}
