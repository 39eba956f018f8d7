//! The entry that a packet teaches: what a `learn` action makes of the packet's fields.

use crate::action::{Action, MAX_LEN_NO_BUFFER};
use crate::field::{Field, VID_PRESENT};
use crate::flow::{FlowMod, FlowModCommand, FlowModFlags};
use crate::id::{PortNo, TableId};
use crate::instruction::Instruction;
use crate::learn::{Learn, LearnFlags, LearnSource, LearnTarget};
use crate::subfield::BitRange;

const IP_PROTO_TCP: u128 = 6;

impl Learn {
    /// An entry of table 1 without timeouts, as text has it where nothing else is given.
    #[must_use]
    pub fn new() -> Self {
        let add = FlowMod::new(FlowModCommand::Add);
        Self {
            idle_timeout_s: 0,
            hard_timeout_s: 0,
            priority: add.priority,
            cookie: add.cookie,
            flags: LearnFlags::empty(),
            table: TableId(1),
            fin_timeouts_s: [0; 2],
            specs: Vec::new(),
        }
    }

    /// The add of the entry that a packet with these values of fields teaches.
    #[must_use]
    pub fn flow_mod(&self, value_of: impl Fn(Field) -> u128) -> FlowMod {
        let mut flow_mod = FlowMod::new(FlowModCommand::Add);
        let mut actions = Vec::new();
        for spec in &self.specs {
            let value = match spec.source {
                LearnSource::Field(field, offset) => spec.bits(offset).of(value_of(field)),
                LearnSource::Immediate(value) => value,
            };
            match spec.target {
                // Nicira's number of a port has 16 bits and stands for the whole.
                LearnTarget::Match(Field::InPort, 0) if spec.n_bits == 16 => {
                    let port = PortNo::of_short(value).unwrap_or(PortNo::ANY);
                    flow_mod.matching.set(Field::InPort, port.0.into(), u128::MAX);
                }
                LearnTarget::Match(field, offset) => {
                    let bits = spec.bits(offset);
                    flow_mod.matching.set_bits(field, bits.place(value), bits.mask());
                }
                LearnTarget::Load(dst, offset) => {
                    actions.extend(loads(dst, spec.bits(offset), value));
                }
                LearnTarget::Output => actions.extend(output(value, spec.n_bits)),
            }
        }
        let [idle_timeout, hard_timeout] = self.fin_timeouts_s;
        // Of another protocol no packet ends a connection, and its entry cannot have the action.
        let protocol = flow_mod.matching.exact(Field::IpProto);
        let may_end = protocol.is_none_or(|protocol| protocol == IP_PROTO_TCP);
        if may_end && [idle_timeout, hard_timeout] != [0, 0] {
            actions.push(Action::FinTimeout { idle_timeout, hard_timeout });
        }
        flow_mod.table_id = self.table;
        flow_mod.cookie = self.cookie;
        flow_mod.idle_timeout_s = self.idle_timeout_s;
        flow_mod.hard_timeout_s = self.hard_timeout_s;
        flow_mod.priority = self.priority;
        if self.flags.contains(LearnFlags::SEND_FLOW_REM) {
            flow_mod.flags = FlowModFlags::SEND_FLOW_REM;
        }
        if !actions.is_empty() {
            flow_mod.instructions = vec![Instruction::ApplyActions(actions)];
        }
        flow_mod
    }
}

impl Default for Learn {
    fn default() -> Self {
        Self::new()
    }
}

/// Actions that write a value to bits of a field.
fn loads(dst: Field, bits: BitRange, value: u128) -> Vec<Action> {
    let is_tag = dst != Field::VlanVid || value & VID_PRESENT != 0;
    if bits.n_bits > 64 && bits == BitRange::all(dst) && is_tag {
        return vec![Action::set_field(dst, value)];
    }
    let parts = (0..bits.n_bits).step_by(64).map(|from| {
        let part = BitRange { offset: from, n_bits: (bits.n_bits - from).min(64) };
        let bits = BitRange { offset: bits.offset + from, n_bits: part.n_bits };
        Action::Load { bits, dst, value: part.of(value) as u64 }
    });
    parts.collect()
}

/// The output to a port whose number of so many bits is this; none for one that is no port's.
fn output(number: u128, n_bits: u16) -> Option<Action> {
    let whole = u32::try_from(number).ok().filter(|_| n_bits == 32).map(PortNo);
    let port = whole.or_else(|| PortNo::of_short(number))?;
    let is_sent = port.is_port()
        || matches!(port, PortNo::IN_PORT | PortNo::FLOOD | PortNo::LOCAL | PortNo::ALL);
    is_sent.then_some(Action::Output { port, max_len: MAX_LEN_NO_BUFFER })
}

#[cfg(test)]
mod tests {
    use crate::action::Action;
    use crate::field::Field;
    use crate::id::PortNo;
    use crate::instruction::Instruction;
    use crate::learn::{Learn, LearnSource, LearnSpec, LearnTarget};
    use crate::matching::Match;
    use crate::subfield::BitRange;

    #[test]
    fn an_entry_is_made_of_the_fields_of_a_packet() {
        let spec = |n_bits, source, target| LearnSpec { n_bits, source, target };
        let learn = Learn {
            specs: vec![
                spec(
                    12,
                    LearnSource::Field(Field::VlanVid, 0),
                    LearnTarget::Match(Field::VlanVid, 0),
                ),
                spec(
                    48,
                    LearnSource::Field(Field::EthSrc, 0),
                    LearnTarget::Match(Field::EthDst, 0),
                ),
                spec(4, LearnSource::Immediate(5), LearnTarget::Load(Field::Reg0, 8)),
                spec(32, LearnSource::Field(Field::InPort, 0), LearnTarget::Output),
                spec(16, LearnSource::Immediate(0xfffc), LearnTarget::Output),
                spec(128, LearnSource::Immediate(7), LearnTarget::Load(Field::Ipv6Src, 0)),
            ],
            ..Learn::new()
        };
        let packet = Match::any()
            .with(Field::VlanVid, 0x1005)
            .with(Field::EthSrc, 0x0200_0000_0007)
            .with(Field::InPort, 3);
        let made = learn.flow_mod(|field| packet.exact(field).unwrap_or(0));
        let vid = made.matching.get(Field::VlanVid).unwrap();
        assert_eq!((vid.value, vid.mask), (5, 0xfff));
        assert_eq!(made.matching.exact(Field::EthDst), Some(0x0200_0000_0007));
        let bits = BitRange { offset: 8, n_bits: 4 };
        let actions = vec![
            Action::Load { bits, dst: Field::Reg0, value: 5 },
            Action::output(PortNo(3)),
            Action::output(PortNo::ALL),
            Action::set_field(Field::Ipv6Src, 7),
        ];
        assert_eq!(made.instructions, [Instruction::ApplyActions(actions)]);
    }

    /// Parts of several registers as one are parts of the registers that they are.
    #[test]
    fn parts_of_a_field_are_matched_together() {
        let part = |n_bits, value, field, offset| LearnSpec {
            n_bits,
            source: LearnSource::Immediate(value),
            target: LearnTarget::Match(field, offset),
        };
        let learn = Learn {
            specs: vec![
                part(8, 0x12, Field::Xxreg0, 120),
                part(8, 0x34, Field::Xxreg0, 0),
                part(32, 0x5566_7788, Field::Xreg0, 16),
                part(4, 0xf, Field::Reg0, 24),
                part(8, 7, Field::EthDst, 0),
                part(8, 9, Field::EthDst, 40),
            ],
            ..Learn::new()
        };
        let expected = Match::any()
            .with_masked(Field::EthDst, 0x0900_0000_0007, 0xff00_0000_00ff)
            .with_masked(Field::Reg0, 0x1f00_5566, 0xff00_ffff)
            .with_masked(Field::Reg1, 0x7788_0000, 0xffff_0000)
            .with_masked(Field::Reg3, 0x34, 0xff);
        assert_eq!(learn.flow_mod(|_| 0).matching, expected);
    }
}
