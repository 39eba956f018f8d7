//! The program that chooses a frame's queue among several, by its flow: addresses and ports, the
//! same both ways. It goes on at the decision of that queue.
//!
//! A flow must always have the same queue, so nothing counts here that may differ between its
//! frames: not the hash that the sender has noted, since the kernel gives a connection another one
//! when it seems to be stuck, and of a fragment no ports. The kernel's own hash of a frame would do
//! too, at 110 ns beside 50.

use packet::header::{ethernet, ipv4, ipv6, vlan};

use super::assembler::{
    Alu, Assembler, Cmp, FP, Helper, Label, R0, R1, R2, R3, R4, R6, R7, R8, Size,
};
use super::program::{TO_INGRESS, number, offset, vlan_types, wire};
use super::skb;

/// The first bytes, with the addresses behind two tags. What follows the Ethernet header is aligned
/// to words, as the verifier wants it.
const HEAD: i16 = -66;
const HEAD_LEN: usize = 64;
/// The part of the stack where they are.
const STACK: i16 = -72;
/// The ports.
const PORTS: i16 = -80;
const PORTS_LEN: i32 = 4;

/// Odd, and no pattern: what is multiplied by it spreads over the upper bits.
const MIX: i32 = 0x9e37_79b1_u32.cast_signed();

/// The program for `queues` queues, whose decisions are in that map; R7 becomes the hash.
pub(super) fn choice(decisions: i32, queues: u32, tap: u32) -> Vec<u64> {
    let mut code = Assembler::default();
    let (ports, hashed) = (code.label(), code.label());
    code.alu_reg(Alu::Mov, R6, R1);
    code.alu(Alu::Mov, R7, 0);
    load_head(&mut code, hashed);
    // The outermost tag stands beside the frame.
    let one_more = code.label();
    hash_addresses(&mut code, ethernet::HEADER_LEN, one_more, (ports, hashed));
    code.place(one_more);
    hash_addresses(&mut code, ethernet::HEADER_LEN + vlan::TAG_LEN, hashed, (ports, hashed));
    code.place(ports);
    hash_ports(&mut code, hashed);
    code.place(hashed);
    code.alu(Alu::Mul, R7, MIX);
    code.alu_reg(Alu::Mov, R3, R7);
    code.alu(Alu::Rsh, R3, 32);
    code.alu_reg(Alu::Xor, R3, R7);
    code.alu(Alu::Mul, R3, MIX);
    code.alu(Alu::Rsh, R3, 32);
    code.alu(Alu::Mul, R3, queues.cast_signed());
    code.alu(Alu::Rsh, R3, 32);
    code.store(Size::Word, R6, skb::CB, R3);
    code.alu_reg(Alu::Mov, R1, R6);
    code.map(R2, decisions);
    code.call(Helper::TailCall);
    // There is a decision for each; the kernel takes them away with their map.
    code.alu(Alu::Mov, R1, tap.cast_signed());
    code.alu(Alu::Mov, R2, TO_INGRESS);
    code.call(Helper::Redirect);
    code.exit();
    code.finish()
}

/// Loads the first bytes; a frame that is too short for addresses has the hash of nothing.
fn load_head(code: &mut Assembler, hashed: Label) {
    let fits = code.label();
    code.load(Size::Word, R4, R6, skb::LEN);
    code.jump_if(R4, Cmp::Lt, number(ethernet::HEADER_LEN + ipv4::HEADER_LEN), hashed);
    code.jump_if(R4, Cmp::Le, number(HEAD_LEN), fits);
    code.alu(Alu::Mov, R4, number(HEAD_LEN));
    code.place(fits);
    code.alu(Alu::Mov, R1, 0);
    for at in (STACK..0).step_by(8) {
        code.store(Size::Double, FP, at, R1);
    }
    code.alu_reg(Alu::Mov, R1, R6);
    code.alu(Alu::Mov, R2, 0);
    code.alu_reg(Alu::Mov, R3, FP);
    code.alu(Alu::Add, R3, HEAD.into());
    code.call(Helper::SkbLoadBytes);
    code.jump_if(R0, Cmp::Ne, 0, hashed);
}

/// R7 = the hash of the addresses; goes on at `ports` with the protocol in R1 and the place of its
/// header in R8, and where there is a tag in the place of IP, at `one_more`.
fn hash_addresses(
    code: &mut Assembler,
    l3: usize,
    one_more: Label,
    (ports, hashed): (Label, Label),
) {
    let at = |place: usize| HEAD + offset(l3 + place);
    let (v4, v6) = (code.label(), code.label());
    code.load(Size::Half, R1, FP, HEAD + offset(l3 - 2));
    code.jump_if(R1, Cmp::Eq, wire(ethernet::IPV4), v4);
    code.jump_if(R1, Cmp::Eq, wire(ethernet::IPV6), v6);
    for eth_type in vlan_types() {
        code.jump_if(R1, Cmp::Eq, wire(eth_type), one_more);
    }
    code.jump(hashed);
    code.place(v4);
    code.load(Size::Word, R1, FP, at(ipv4::SRC.start));
    code.load(Size::Word, R2, FP, at(ipv4::DST.start));
    add_pair(code);
    code.load(Size::Half, R1, FP, at(ipv4::FRAGMENT.start));
    code.wire_to_number(R1);
    code.alu(Alu::And, R1, i32::from(ipv4::OFFSET_MASK | ipv4::MORE_FRAGMENTS));
    code.jump_if(R1, Cmp::Ne, 0, hashed);
    code.load(Size::Byte, R8, FP, at(0));
    code.alu(Alu::And, R8, 0xf);
    code.alu(Alu::Lsh, R8, 2);
    code.alu(Alu::Add, R8, number(l3));
    code.load(Size::Byte, R1, FP, at(ipv4::PROTO));
    code.jump(ports);
    code.place(v6);
    for word in [0, 4, 8, 12] {
        code.load(Size::Word, R1, FP, at(ipv6::SRC.start + word));
        code.load(Size::Word, R2, FP, at(ipv6::DST.start + word));
        add_pair(code);
    }
    code.alu(Alu::Mov, R8, number(l3 + ipv6::HEADER_LEN));
    code.load(Size::Byte, R1, FP, at(ipv6::NEXT_HEADER));
    code.jump(ports);
}

/// Adds the ports at R8 to the hash, where the protocol in R1 has such.
fn hash_ports(code: &mut Assembler, hashed: Label) {
    let has_ports = code.label();
    for protocol in [ipv4::PROTO_TCP, ipv4::PROTO_UDP, ipv4::PROTO_SCTP] {
        code.jump_if(R1, Cmp::Eq, protocol.into(), has_ports);
    }
    code.jump(hashed);
    code.place(has_ports);
    code.alu_reg(Alu::Mov, R1, R6);
    code.alu_reg(Alu::Mov, R2, R8);
    code.alu_reg(Alu::Mov, R3, FP);
    code.alu(Alu::Add, R3, PORTS.into());
    code.alu(Alu::Mov, R4, PORTS_LEN);
    code.call(Helper::SkbLoadBytes);
    code.jump_if(R0, Cmp::Ne, 0, hashed);
    code.load(Size::Half, R1, FP, PORTS);
    code.load(Size::Half, R2, FP, PORTS + 2);
    add_pair(code);
}

/// Adds R1 and R2 to the hash in R7, the same whichever is which.
fn add_pair(code: &mut Assembler) {
    code.alu_reg(Alu::Mov, R3, R1);
    code.alu_reg(Alu::Xor, R3, R2);
    code.alu_reg(Alu::Add, R1, R2);
    for part in [R3, R1] {
        code.alu(Alu::Mul, R7, MIX);
        code.alu_reg(Alu::Add, R7, part);
    }
}
