//! What an entry changes in the headers of its frames: masked words, a TTL that goes down, and the
//! checksums that follow.
//!
//! The words are those of the datapath's rewrites. Checksums are changed by difference, so that
//! one that the kernel has yet to finish stays so: only the pseudo-header's part counts in it. The
//! program changes nothing before it is certain that everything of the entry holds. Frames with a
//! VLAN tag are handed over before.

use packet::{MaskedRewrite, MaskedWord};

use super::assembler::{Alu, Assembler, Cmp, FP, Helper, Label, R1, R2, R3, R4, R5, R6, R8, R9};
use super::assembler::{R0, Reg, Size};
use super::layout::{
    SLOT_IP_AT, SLOT_L4_AT, SLOT_L4_FLAGS, SLOT_LEN, SLOT_TTL_ABOVE, SLOT_TTL_AT, SLOT_TTL_BY,
    SLOT_WORD, SLOT_WORDS, WORD_AT, WORD_IP, WORD_KEEP, WORD_L4, WORD_LEN, WORD_PSEUDO, WORD_VALUE,
    WORDS_MAX,
};

/// The bytes of a slot that are about the rewrite.
pub(super) type SlotBytes = [u8; SLOT_LEN - SLOT_WORDS];

/// The bytes of a slot from [`SLOT_WORDS`] on; none where it has no room for all words.
pub(super) fn encode(rewrite: &MaskedRewrite) -> Option<SlotBytes> {
    if rewrite.words.len() > WORDS_MAX {
        return None;
    }
    let mut slot = [0; SLOT_LEN - SLOT_WORDS];
    let mut put = |at: usize, value: &[u8]| {
        let at = at - SLOT_WORDS;
        slot[at..at + value.len()].copy_from_slice(value);
    };
    put(SLOT_WORDS, &(rewrite.words.len() as u32).to_ne_bytes());
    if let Some(ttl) = rewrite.ttl {
        // In the 16-bit word that it stands in.
        let by = u32::from(ttl.by) << if ttl.at.is_multiple_of(2) { 8 } else { 0 };
        put(SLOT_TTL_AT, &u32::from(ttl.at).to_ne_bytes());
        put(SLOT_TTL_BY, &by.to_ne_bytes());
        put(SLOT_TTL_ABOVE, &u32::from(ttl.above).to_ne_bytes());
    }
    put(SLOT_IP_AT, &u32::from(rewrite.ip_checksum.unwrap_or(0)).to_ne_bytes());
    put(SLOT_L4_AT, &u32::from(rewrite.l4_checksum.unwrap_or(0)).to_ne_bytes());
    let flags = if rewrite.is_udp { ZERO_IS_NONE } else { 0 };
    put(SLOT_L4_FLAGS, &flags.to_ne_bytes());
    for (nth, word) in rewrite.words.iter().enumerate() {
        let at = SLOT_WORD + WORD_LEN * nth;
        let MaskedWord { at: place, keep, value, ip, pseudo, l4 } = *word;
        put(at + WORD_AT, &u64::from(place).to_ne_bytes());
        let numbers = [(WORD_KEEP, keep), (WORD_VALUE, value), (WORD_IP, ip)];
        for (field, number) in numbers.into_iter().chain([(WORD_PSEUDO, pseudo), (WORD_L4, l4)]) {
            put(at + field, &number.to_ne_bytes());
        }
    }
    Some(slot)
}

/// A checksum of zero is none, and one that comes to zero is written as ones.
const ZERO_IS_NONE: u32 = 0x20;
/// What has changed is part of the pseudo-header.
const PSEUDO_HEADER: i32 = 0x10;
/// The frame's flow hash holds no longer.
const NEW_HASH: i32 = 2;

/// Places on the stack: bytes before and after, the same masked, and the sums.
const OLD: i16 = -144;
const NEW: i16 = -152;
const OLD_MASKED: i16 = -160;
const NEW_MASKED: i16 = -168;
const IP_SUM: i16 = -176;
const PSEUDO_SUM: i16 = -184;
const L4_SUM: i16 = -192;

fn offset(number: usize) -> i16 {
    i16::try_from(number).expect("offsets in slots are small")
}

/// Carries out the rewrite of the slot that R9 points at, on the frame in R6; goes to `lost` when
/// the kernel has no memory for that. R8 is overwritten.
pub(super) fn run(code: &mut Assembler, lost: Label) {
    let (begin, done, sums) = (code.label(), code.label(), code.label());
    code.load(Size::Word, R1, R9, offset(SLOT_WORDS));
    code.jump_if(R1, Cmp::Ne, 0, begin);
    code.load(Size::Word, R1, R9, offset(SLOT_TTL_AT));
    code.jump_if(R1, Cmp::Eq, 0, done);
    code.place(begin);
    code.alu(Alu::Mov, R1, 0);
    for place in [OLD, NEW, IP_SUM, PSEUDO_SUM, L4_SUM] {
        code.store(Size::Double, FP, place, R1);
    }
    lower_ttl(code, lost);
    for nth in 0..WORDS_MAX {
        code.load(Size::Word, R1, R9, offset(SLOT_WORDS));
        code.jump_if(R1, Cmp::Le, nth as i32, sums);
        write_word(code, SLOT_WORD + WORD_LEN * nth, lost);
    }
    code.place(sums);
    replace_checksums(code, lost);
    code.place(done);
}

fn lower_ttl(code: &mut Assembler, lost: Label) {
    let none = code.label();
    code.load(Size::Word, R8, R9, offset(SLOT_TTL_AT));
    code.jump_if(R8, Cmp::Eq, 0, none);
    code.alu(Alu::And, R8, !1);
    move_bytes(code, Helper::SkbLoadBytes, OLD, 2, lost);
    code.load(Size::Half, R1, FP, OLD);
    code.wire_to_number(R1);
    code.load(Size::Word, R2, R9, offset(SLOT_TTL_BY));
    code.alu_reg(Alu::Sub, R1, R2);
    code.wire_to_number(R1);
    code.store(Size::Half, FP, NEW, R1);
    move_bytes(code, Helper::SkbStoreBytes, NEW, 2, lost);
    add_difference(code, (OLD, NEW), 4, IP_SUM);
    code.place(none);
}

fn write_word(code: &mut Assembler, word: usize, lost: Label) {
    code.load(Size::Double, R8, R9, offset(word + WORD_AT));
    move_bytes(code, Helper::SkbLoadBytes, OLD, 8, lost);
    code.load(Size::Double, R1, FP, OLD);
    code.load(Size::Double, R2, R9, offset(word + WORD_KEEP));
    code.alu_reg(Alu::And, R1, R2);
    code.load(Size::Double, R2, R9, offset(word + WORD_VALUE));
    code.alu_reg(Alu::Or, R1, R2);
    code.store(Size::Double, FP, NEW, R1);
    move_bytes(code, Helper::SkbStoreBytes, NEW, 8, lost);
    for (mask, sum) in [(WORD_IP, IP_SUM), (WORD_PSEUDO, PSEUDO_SUM), (WORD_L4, L4_SUM)] {
        let none = code.label();
        code.load(Size::Double, R2, R9, offset(word + mask));
        code.jump_if(R2, Cmp::Eq, 0, none);
        for (from, to) in [(OLD, OLD_MASKED), (NEW, NEW_MASKED)] {
            code.load(Size::Double, R1, FP, from);
            code.alu_reg(Alu::And, R1, R2);
            code.store(Size::Double, FP, to, R1);
        }
        add_difference(code, (OLD_MASKED, NEW_MASKED), 8, sum);
        code.place(none);
    }
}

/// Bytes of the frame at R8 to the stack, or from there.
fn move_bytes(code: &mut Assembler, helper: Helper, place: i16, len: i32, lost: Label) {
    code.alu_reg(Alu::Mov, R1, R6);
    code.alu_reg(Alu::Mov, R2, R8);
    stack(code, R3, place);
    code.alu(Alu::Mov, R4, len);
    code.alu(Alu::Mov, R5, NEW_HASH);
    code.call(helper);
    code.jump_if(R0, Cmp::Ne, 0, lost);
}

fn add_difference(code: &mut Assembler, (from, to): (i16, i16), len: i32, sum: i16) {
    stack(code, R1, from);
    code.alu(Alu::Mov, R2, len);
    stack(code, R3, to);
    code.alu(Alu::Mov, R4, len);
    code.load(Size::Word, R5, FP, sum);
    code.call(Helper::ChecksumDifference);
    code.store(Size::Word, FP, sum, R0);
}

fn replace_checksums(code: &mut Assembler, lost: Label) {
    let checksums = [
        (SLOT_IP_AT, IP_SUM, None),
        (SLOT_L4_AT, PSEUDO_SUM, Some(PSEUDO_HEADER)),
        (SLOT_L4_AT, L4_SUM, Some(0)),
    ];
    for (at, sum, l4_flags) in checksums {
        let none = code.label();
        code.load(Size::Word, R2, R9, offset(at));
        code.jump_if(R2, Cmp::Eq, 0, none);
        code.load(Size::Word, R4, FP, sum);
        code.jump_if(R4, Cmp::Eq, 0, none);
        code.alu_reg(Alu::Mov, R1, R6);
        code.alu(Alu::Mov, R3, 0);
        match l4_flags {
            None => {
                code.alu(Alu::Mov, R5, 0);
                code.call(Helper::ReplaceL3Checksum);
            }
            Some(flags) => {
                code.load(Size::Word, R5, R9, offset(SLOT_L4_FLAGS));
                code.alu(Alu::Or, R5, flags);
                code.call(Helper::ReplaceL4Checksum);
            }
        }
        code.jump_if(R0, Cmp::Ne, 0, lost);
        code.place(none);
    }
}

fn stack(code: &mut Assembler, to: Reg, place: i16) {
    code.alu_reg(Alu::Mov, to, FP);
    code.alu(Alu::Add, to, i32::from(place));
}
