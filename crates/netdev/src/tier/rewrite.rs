//! The change that an entry makes in the headers of its frames: masked words, a TTL that goes down,
//! the checksums that follow, and the outermost VLAN tag, which the kernel keeps beside the frame.
//!
//! The words are those of the datapath's rewrites. Checksums are changed by difference, so that one
//! that the kernel has yet to finish stays so: only the pseudo-header's part counts in it. The
//! program changes nothing before it is certain that everything of the entry holds. Where a device
//! has summed up the whole packet, the kernel gets the difference that no checksum in it makes up
//! for.

use packet::header::{ethernet, vlan};
use packet::{MaskedRewrite, MaskedWord, TagChange};

use super::assembler::{Alu, Assembler, Cmp, FP, Helper, Label, R1, R2, R3, R4, R5, R6, R8, R9};
use super::assembler::{R0, Reg, Size};
use super::layout::{
    SLOT_IP_AT, SLOT_L4_AT, SLOT_L4_FLAGS, SLOT_TAG, SLOT_TAG_BEYOND, SLOT_TAG_KEEP, SLOT_TAG_TYPE,
    SLOT_TAG_VALUE, SLOT_TTL_ABOVE, SLOT_TTL_AT, SLOT_TTL_BY, SLOT_TTL_FLAGS, SLOT_UNSENT,
    SLOT_WORD, SLOT_WORDS, TAG_POP, TAG_PUSH, TAG_SET, WORD_AT, WORD_FLAGS, WORD_IP, WORD_KEEP,
    WORD_L4, WORD_LEN, WORD_PSEUDO, WORD_VALUE, WORDS_MAX,
};
use super::skb;

/// The bytes of a slot that are about the rewrite.
pub(super) type SlotBytes = [u8; SLOT_UNSENT - SLOT_WORDS];

/// The bytes of a slot from [`SLOT_WORDS`] on; none where it has no room for all words.
pub(super) fn encode(rewrite: &MaskedRewrite) -> Option<SlotBytes> {
    let (tag, eth_type, keep, value) = match rewrite.tag {
        TagChange::None => (0, 0, 0, 0),
        TagChange::Set(keep, value) => (TAG_SET, 0, keep, value),
        TagChange::Push(eth_type, value) => (TAG_PUSH, eth_type, 0, value),
        TagChange::Pop => (TAG_POP, 0, 0, 0),
    };
    // The kernel knows these tags only.
    let is_known = [0, ethernet::VLAN, ethernet::SERVICE_VLAN].contains(&eth_type);
    if rewrite.words.len() > WORDS_MAX || !is_known {
        return None;
    }
    let beyond = if eth_type == ethernet::SERVICE_VLAN { vlan::TAG_LEN as u32 } else { 0 };
    let mut slot = [0; SLOT_UNSENT - SLOT_WORDS];
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
        put(SLOT_TTL_FLAGS, &store_flags(ttl.is_open).to_ne_bytes());
    }
    put(SLOT_TAG, &tag.to_ne_bytes());
    put(SLOT_TAG_TYPE, &u32::from(eth_type.to_be()).to_ne_bytes());
    put(SLOT_TAG_KEEP, &u32::from(keep).to_ne_bytes());
    put(SLOT_TAG_VALUE, &u32::from(value).to_ne_bytes());
    put(SLOT_TAG_BEYOND, &beyond.to_ne_bytes());
    put(SLOT_IP_AT, &u32::from(rewrite.ip_checksum.unwrap_or(0)).to_ne_bytes());
    put(SLOT_L4_AT, &u32::from(rewrite.l4_checksum.unwrap_or(0)).to_ne_bytes());
    let flags = if rewrite.is_udp { ZERO_IS_NONE } else { 0 };
    put(SLOT_L4_FLAGS, &flags.to_ne_bytes());
    for (nth, word) in rewrite.words.iter().enumerate() {
        let at = SLOT_WORD + WORD_LEN * nth;
        let MaskedWord { at: place, keep, value, ip, pseudo, l4, is_open } = *word;
        put(at + WORD_AT, &u64::from(place).to_ne_bytes());
        let masks = [(WORD_IP, ip), (WORD_PSEUDO, pseudo), (WORD_L4, l4)];
        let others =
            [(WORD_KEEP, keep), (WORD_VALUE, value), (WORD_FLAGS, store_flags(is_open).into())];
        for (field, number) in masks.into_iter().chain(others) {
            put(at + field, &number.to_ne_bytes());
        }
    }
    Some(slot)
}

/// A checksum of zero is none, and one that comes to zero is written as ones.
const ZERO_IS_NONE: u32 = 0x20;
/// The changed bytes are part of the pseudo-header.
const PSEUDO_HEADER: i32 = 0x10;
/// The sum of the whole packet, where a device has made it, changes with what is stored.
const NEW_SUM: u32 = 1;
/// The frame's flow hash holds no longer.
const NEW_HASH: u32 = 2;

fn store_flags(is_open: bool) -> u32 {
    if is_open { NEW_HASH | NEW_SUM } else { NEW_HASH }
}

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
    move_bytes(code, Helper::SkbLoadBytes, OLD, (2, None), lost);
    code.load(Size::Half, R1, FP, OLD);
    code.wire_to_number(R1);
    code.load(Size::Word, R2, R9, offset(SLOT_TTL_BY));
    code.alu_reg(Alu::Sub, R1, R2);
    code.wire_to_number(R1);
    code.store(Size::Half, FP, NEW, R1);
    move_bytes(code, Helper::SkbStoreBytes, NEW, (2, Some((Size::Word, SLOT_TTL_FLAGS))), lost);
    add_difference(code, (OLD, NEW), 4, IP_SUM);
    code.place(none);
}

fn write_word(code: &mut Assembler, word: usize, lost: Label) {
    code.load(Size::Double, R8, R9, offset(word + WORD_AT));
    move_bytes(code, Helper::SkbLoadBytes, OLD, (8, None), lost);
    code.load(Size::Double, R1, FP, OLD);
    code.load(Size::Double, R2, R9, offset(word + WORD_KEEP));
    code.alu_reg(Alu::And, R1, R2);
    code.load(Size::Double, R2, R9, offset(word + WORD_VALUE));
    code.alu_reg(Alu::Or, R1, R2);
    code.store(Size::Double, FP, NEW, R1);
    let flags = Some((Size::Double, word + WORD_FLAGS));
    move_bytes(code, Helper::SkbStoreBytes, NEW, (8, flags), lost);
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

/// Bytes of the frame at R8 to the stack, or from there with the flags at a place of the slot.
fn move_bytes(
    code: &mut Assembler,
    helper: Helper,
    place: i16,
    (len, flags): (i32, Option<(Size, usize)>),
    lost: Label,
) {
    code.alu_reg(Alu::Mov, R1, R6);
    code.alu_reg(Alu::Mov, R2, R8);
    stack(code, R3, place);
    code.alu(Alu::Mov, R4, len);
    if let Some((size, at)) = flags {
        code.load(size, R5, R9, offset(at));
    }
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

/// Changes the outermost VLAN tag as the slot that R9 points at says, and adds to the bytes of all
/// packets at `bytes` on the stack what that adds to each of `packets`; goes to `lost` when the
/// kernel has no memory for it. R8 is overwritten.
pub(super) fn change_tag(code: &mut Assembler, (packets, bytes): (i16, i16), lost: Label) {
    let (done, push, pop) = (code.label(), code.label(), code.label());
    let (proto, tci) = (OLD, NEW);
    code.load(Size::Word, R8, R9, offset(SLOT_TAG));
    code.jump_if(R8, Cmp::Eq, 0, done);
    code.jump_if(R8, Cmp::Eq, TAG_PUSH, push);
    code.load(Size::Word, R1, R6, skb::VLAN_PROTO);
    code.store(Size::Double, FP, proto, R1);
    code.load(Size::Word, R1, R6, skb::VLAN_TCI);
    code.store(Size::Double, FP, tci, R1);
    code.alu_reg(Alu::Mov, R1, R6);
    code.call(Helper::VlanPop);
    code.jump_if(R0, Cmp::Ne, 0, lost);
    code.jump_if(R8, Cmp::Eq, TAG_POP, pop);
    code.load(Size::Double, R3, FP, tci);
    code.load(Size::Word, R2, R9, offset(SLOT_TAG_KEEP));
    code.alu_reg(Alu::And, R3, R2);
    code.load(Size::Word, R2, R9, offset(SLOT_TAG_VALUE));
    code.alu_reg(Alu::Or, R3, R2);
    code.load(Size::Double, R2, FP, proto);
    code.alu_reg(Alu::Mov, R1, R6);
    code.call(Helper::VlanPush);
    code.jump_if(R0, Cmp::Ne, 0, lost);
    code.jump(done);
    code.place(push);
    code.alu_reg(Alu::Mov, R1, R6);
    code.load(Size::Word, R2, R9, offset(SLOT_TAG_TYPE));
    code.load(Size::Word, R3, R9, offset(SLOT_TAG_VALUE));
    code.call(Helper::VlanPush);
    code.jump_if(R0, Cmp::Ne, 0, lost);
    add_to_each(code, Alu::Add, packets, bytes);
    code.jump(done);
    code.place(pop);
    add_to_each(code, Alu::Sub, packets, bytes);
    code.place(done);
}

/// A tag more, or less, for each packet.
fn add_to_each(code: &mut Assembler, op: Alu, packets: i16, bytes: i16) {
    code.load(Size::Double, R1, FP, packets);
    code.alu(Alu::Mul, R1, vlan::TAG_LEN as i32);
    code.load(Size::Double, R2, FP, bytes);
    code.alu_reg(op, R2, R1);
    code.store(Size::Double, FP, bytes, R2);
}

fn stack(code: &mut Assembler, to: Reg, place: i16) {
    code.alu_reg(Alu::Mov, to, FP);
    code.alu(Alu::Add, to, i32::from(place));
}
