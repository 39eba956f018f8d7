//! The end of a decision: the frame leaves by devices, goes straight to a far end, or goes on at
//! the program of another bridge. All that an entry counts is counted before, so that nothing here
//! may hand a frame over.

use packet::header::ethernet;

use super::super::assembler::{Alu, Cmp, FP, Helper, Label, R0, R1, R2, R3, R4, R6, R7, R8, Size};
use super::super::layout::{
    ENTRY_OUTPUT, ENTRY_OUTPUTS, ENTRY_PEER, OUTPUTS_MAX, SLOT_UNSENT, STRAIGHT, UNSENT_BYTES,
    UNSENT_LEN, UNSENT_PACKETS,
};
use super::super::patches::{ENDS_MAX, LOST_BYTES, LOST_PACKETS, LOST_SHIFT};
use super::super::skb;
use super::{
    Builder, DROP, Entrance, Facts, PACKET_HOST, PACKETS, RUNS, SENT_BYTES, SLOT, number, offset,
};

impl Builder {
    /// Copies go out first, the frame itself last.
    pub(super) fn output(&mut self) {
        let lasts: [Label; OUTPUTS_MAX] = std::array::from_fn(|_| self.code.label());
        self.code.load(Size::Word, R8, R7, offset(ENTRY_OUTPUTS));
        for (nth, last) in lasts.into_iter().enumerate() {
            // An entry has no more outputs than that; the verifier does not know.
            if nth + 1 < OUTPUTS_MAX {
                self.code.jump_if(R8, Cmp::Eq, number(nth + 1), last);
                self.copy_to(nth);
            }
        }
        for (nth, last) in lasts.into_iter().enumerate().rev() {
            self.code.place(last);
            if nth == 0 {
                self.hand_to_peer();
            }
            self.redirect(Helper::Redirect, nth);
        }
    }

    fn redirect(&mut self, by: Helper, nth: usize) {
        let code = &mut self.code;
        code.load(Size::Word, R1, R7, offset(ENTRY_OUTPUT + 4 * nth));
        code.jump_if(R1, Cmp::Gt, i32::MAX, self.labels.patch);
        code.alu(Alu::Mov, R2, 0);
        code.call(by);
        code.alu_reg(Alu::Mov, R8, R0);
        code.jump(self.labels.leave);
    }

    /// Goes on at the program beyond a patch port, after the end of this run: all that is read and
    /// counted of the entry has been. A frame that finds no program is lost as at an end without a
    /// peer.
    pub(super) fn go_on(&mut self) {
        let Facts { next, lost, entrance, .. } = self.facts;
        let code = &mut self.code;
        code.place(self.labels.patch);
        code.alu(Alu::And, R1, number(ENDS_MAX - 1));
        code.alu_reg(Alu::Mov, R8, R1);
        code.alu(Alu::Mov, R1, 0);
        if entrance == Entrance::Patch {
            code.load(Size::Word, R1, R6, skb::CB_HOPS);
        }
        code.alu(Alu::Add, R1, 1);
        code.store(Size::Word, R6, skb::CB_HOPS, R1);
        code.load(Size::Double, R1, FP, RUNS);
        code.alu(Alu::Mov, R2, 1);
        code.fetch_add(R1, R2);
        code.alu_reg(Alu::Mov, R1, R6);
        code.map(R2, next);
        code.alu_reg(Alu::Mov, R3, R8);
        code.call(Helper::TailCall);
        code.alu(Alu::Lsh, R8, LOST_SHIFT);
        for (at, from) in [(LOST_PACKETS, PACKETS), (LOST_BYTES, SENT_BYTES)] {
            code.map_value(R1, lost, at);
            code.alu_reg(Alu::Add, R1, R8);
            code.load(Size::Double, R2, FP, from);
            code.fetch_add(R1, R2);
        }
        code.alu(Alu::Mov, R0, DROP);
        code.exit();
    }

    /// Hands a frame for the far end of its only output straight to it, where the entry has it so:
    /// not by way of the output and of its processor's queue. What comes there is a frame for the
    /// host, whatever its destination is; so others go on here. Before Linux 6.16 the frame keeps
    /// the type that it has here.
    fn hand_to_peer(&mut self) {
        let code = &mut self.code;
        let plain = code.label();
        code.load(Size::Double, R2, R7, offset(ENTRY_PEER));
        code.jump_if(R2, Cmp::Eq, 0, plain);
        code.load(Size::Word, R3, R6, skb::DATA);
        code.load(Size::Word, R4, R6, skb::DATA_END);
        code.alu_reg(Alu::Mov, R1, R3);
        code.alu(Alu::Add, R1, number(ethernet::HEADER_LEN));
        code.jump_if_reg(R1, Cmp::Gt, R4, plain);
        code.load(Size::Word, R1, R3, 0);
        code.load(Size::Half, R4, R3, 4);
        code.alu(Alu::Lsh, R4, 32);
        code.alu_reg(Alu::Or, R1, R4);
        code.alu(Alu::Mov, R4, 1);
        code.alu(Alu::Lsh, R4, STRAIGHT.cast_signed());
        code.alu_reg(Alu::Or, R1, R4);
        code.jump_if_reg(R1, Cmp::Ne, R2, plain);
        code.alu_reg(Alu::Mov, R1, R6);
        code.alu(Alu::Mov, R2, PACKET_HOST);
        code.call(Helper::SkbChangeType);
        code.jump_if(R0, Cmp::Ne, 0, plain);
        self.redirect(Helper::RedirectPeer, 0);
        self.code.place(plain);
    }

    /// Sends a copy by an output, or counts that it did not come there. What queueing discipline or
    /// device have dropped they count: a positive number, or that the device is down.
    fn copy_to(&mut self, nth: usize) {
        let code = &mut self.code;
        let done = code.label();
        code.alu_reg(Alu::Mov, R1, R6);
        code.load(Size::Word, R2, R7, offset(ENTRY_OUTPUT + 4 * nth));
        code.alu(Alu::Mov, R3, 0);
        code.call(Helper::CloneRedirect);
        code.jump_if(R0, Cmp::Le, i32::MAX, done);
        code.jump_if(R0, Cmp::Eq, -libc::ENETDOWN, done);
        for (at, from) in [(UNSENT_BYTES, SENT_BYTES), (UNSENT_PACKETS, PACKETS)] {
            code.load(Size::Double, R1, FP, SLOT);
            code.alu(Alu::Add, R1, number(SLOT_UNSENT + UNSENT_LEN * nth + at));
            code.load(Size::Double, R2, FP, from);
            code.fetch_add(R1, R2);
        }
        code.place(done);
    }
}
