//! Instructions of BPF, put together in Rust: the build needs no other compiler.
//!
//! Only what the tier's programs use. Jumps go to labels, which are resolved at the end. Nothing
//! here knows what a program is for.

/// A register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reg(u8);

/// Holds the result of a call.
pub(super) const R0: Reg = Reg(0);
/// The first argument; lost in a call, as the next four are.
pub(super) const R1: Reg = Reg(1);
/// The second argument.
pub(super) const R2: Reg = Reg(2);
/// The third argument.
pub(super) const R3: Reg = Reg(3);
/// The fourth argument.
pub(super) const R4: Reg = Reg(4);
/// The fifth argument.
pub(super) const R5: Reg = Reg(5);
/// Kept over calls.
pub(super) const R6: Reg = Reg(6);
/// Kept over calls.
pub(super) const R7: Reg = Reg(7);
/// Kept over calls.
pub(super) const R8: Reg = Reg(8);
/// Kept over calls.
pub(super) const R9: Reg = Reg(9);
/// The end of the stack, which is read only.
pub(super) const FP: Reg = Reg(10);

/// Width of a load or store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Size {
    Word = 0x00,
    Half = 0x08,
    Byte = 0x10,
    Double = 0x18,
}

/// An operation of 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Alu {
    Add = 0x00,
    Sub = 0x10,
    Mul = 0x20,
    Div = 0x30,
    Or = 0x40,
    And = 0x50,
    Lsh = 0x60,
    Rsh = 0x70,
    Xor = 0xa0,
    Mov = 0xb0,
}

/// A comparison of 64 bits, unsigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cmp {
    Eq = 0x10,
    Gt = 0x20,
    Ge = 0x30,
    Ne = 0x50,
    Lt = 0xa0,
    Le = 0xb0,
}

/// A function of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Helper {
    MapLookup = 1,
    Time = 5,
    ProcessorId = 8,
    SkbStoreBytes = 9,
    ReplaceL3Checksum = 10,
    ReplaceL4Checksum = 11,
    TailCall = 12,
    CloneRedirect = 13,
    VlanPush = 18,
    VlanPop = 19,
    Redirect = 23,
    SkbLoadBytes = 26,
    ChecksumDifference = 28,
    SkbChangeType = 32,
    SkbChangeTail = 38,
    RedirectPeer = 155,
}

/// A place that jumps go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Label(usize);

const CLASS_LDX: u8 = 0x61;
const CLASS_STX: u8 = 0x63;
const CLASS_ALU64: u8 = 0x07;
const CLASS_JMP: u8 = 0x05;
const OF_REGISTER: u8 = 0x08;
const LD_IMM64: u8 = 0x18;
const ATOMIC_64: u8 = 0xdb;
const ATOMIC_FETCH_ADD: i32 = 0x01;
const TO_BIG_ENDIAN: u8 = 0xdc;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
const ALWAYS: u8 = 0x05;
const PSEUDO_MAP_FD: u8 = 1;
const PSEUDO_MAP_VALUE: u8 = 2;

/// A program that is being put together.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    code: Vec<u64>,
    labels: Vec<Option<usize>>,
    jumps: Vec<(usize, Label)>,
}

impl Assembler {
    /// A label that is placed later.
    pub(super) fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// Places a label here.
    pub(super) fn place(&mut self, label: Label) {
        self.labels[label.0] = Some(self.code.len());
    }

    fn push(&mut self, code: u8, (to, from): (Reg, Reg), offset: i16, number: i32) {
        let registers = u64::from(to.0 | from.0 << 4);
        let offset = u64::from(offset.cast_unsigned());
        let number = u64::from(number.cast_unsigned());
        self.code.push(u64::from(code) | registers << 8 | offset << 16 | number << 32);
    }

    /// `to = to op number`; with [`Alu::Mov`] `to = number`.
    pub(super) fn alu(&mut self, op: Alu, to: Reg, number: i32) {
        self.push(CLASS_ALU64 | op as u8, (to, R0), 0, number);
    }

    /// `to = to op from`; with [`Alu::Mov`] `to = from`.
    pub(super) fn alu_reg(&mut self, op: Alu, to: Reg, from: Reg) {
        self.push(CLASS_ALU64 | OF_REGISTER | op as u8, (to, from), 0, 0);
    }

    /// Turns the lower 16 bits from the order of a wire to that of numbers, or back; the others
    /// become zero.
    pub(super) fn wire_to_number(&mut self, to: Reg) {
        self.push(TO_BIG_ENDIAN, (to, R0), 0, 16);
    }

    /// `to = *(from + offset)`.
    pub(super) fn load(&mut self, size: Size, to: Reg, from: Reg, offset: i16) {
        self.push(CLASS_LDX | size as u8, (to, from), offset, 0);
    }

    /// `*(to + offset) = from`.
    pub(super) fn store(&mut self, size: Size, to: Reg, offset: i16, from: Reg) {
        self.push(CLASS_STX | size as u8, (to, from), offset, 0);
    }

    /// `*to += from`, at once, in order with everything before and after it; `from` becomes what
    /// was there.
    pub(super) fn fetch_add(&mut self, to: Reg, from: Reg) {
        self.push(ATOMIC_64, (to, from), 0, ATOMIC_FETCH_ADD);
    }

    /// Goes on at the label if the comparison with a number holds.
    pub(super) fn jump_if(&mut self, left: Reg, cmp: Cmp, right: i32, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.push(CLASS_JMP | cmp as u8, (left, R0), 0, right);
    }

    /// Goes on at the label if the comparison with a register holds.
    pub(super) fn jump_if_reg(&mut self, left: Reg, cmp: Cmp, right: Reg, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.push(CLASS_JMP | OF_REGISTER | cmp as u8, (left, right), 0, 0);
    }

    /// Goes on at the label.
    pub(super) fn jump(&mut self, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.push(ALWAYS, (R0, R0), 0, 0);
    }

    /// Calls a function of the kernel.
    pub(super) fn call(&mut self, helper: Helper) {
        self.push(CALL, (R0, R0), 0, helper as i32);
    }

    /// Ends the program.
    pub(super) fn exit(&mut self) {
        self.push(EXIT, (R0, R0), 0, 0);
    }

    /// `to` = the map of this descriptor.
    pub(super) fn map(&mut self, to: Reg, fd: i32) {
        self.push(LD_IMM64, (to, Reg(PSEUDO_MAP_FD)), 0, fd);
        self.push(0, (R0, R0), 0, 0);
    }

    /// `to` = the address of a byte of an array's first value.
    pub(super) fn map_value(&mut self, to: Reg, fd: i32, offset: i32) {
        self.push(LD_IMM64, (to, Reg(PSEUDO_MAP_VALUE)), 0, fd);
        self.push(0, (R0, R0), 0, offset);
    }

    /// The program.
    ///
    /// # Panics
    /// When a jump goes to a label that was not placed or lies too far: a mistake in the program.
    pub(super) fn finish(mut self) -> Vec<u64> {
        for (at, label) in self.jumps {
            let target = self.labels[label.0].expect("a label that was not placed");
            let distance = target as i64 - at as i64 - 1;
            let distance =
                i16::try_from(distance).expect("a jump of less than 32,768 instructions");
            self.code[at] |= u64::from(distance.cast_unsigned()) << 16;
        }
        self.code
    }
}

#[cfg(test)]
mod tests {
    use super::{Alu, Assembler, Cmp, R0, R1, R2, Size};

    /// As `llvm-mc` has them.
    #[test]
    fn instructions_are_encoded_as_the_kernel_reads_them() {
        let mut code = Assembler::default();
        let end = code.label();
        code.alu(Alu::Mov, R0, 2);
        code.load(Size::Word, R1, R1, 40);
        code.jump_if(R1, Cmp::Ne, 7, end);
        code.alu_reg(Alu::Add, R0, R2);
        code.place(end);
        code.exit();
        let expected = [
            0x0000_0002_0000_00b7,
            0x0000_0000_0028_1161,
            0x0000_0007_0001_0155,
            0x0000_0000_0000_200f,
            0x0000_0000_0000_0095,
        ];
        assert_eq!(code.finish(), expected);
    }
}
