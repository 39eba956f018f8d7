//! The rest of the way of a packet that a controller has: what a pause keeps and a resumption takes
//! up, as bytes which nobody else need understand.
//!
//! The bytes come back from outside. A checksum finds those that were changed, and all that they
//! ask for is checked as that of a flow entry or packet-out is. The checksum has no key: a switch
//! that sends the bytes to controllers adds a hash that has one.

use std::convert::Infallible;

use openflow::action::{ACTIONS, CLONES_DEEP_MAX, ReadArguments, WriteArguments};
use openflow::field::ALL_FIELDS;
use openflow::instruction::INSTRUCTIONS;
use openflow::learn::{LearnFlags, LearnSource, LearnSpec, LearnTarget};
use openflow::members::{BundleAlgorithm, HashFields};
use openflow::message::PacketInReason;
use openflow::{
    Action, BitRange, Cookie, Error, Field, Instruction, Learn, Members, MeterId, PortNo, QueueId,
    TableId, ToController,
};

use crate::action_set::{EntryRef, Origin};
use crate::known_fields::KnownFields;
use crate::validate::{ActionContext, Existing, check_action, check_instruction};

/// Most bytes of a continuation: a packet-in has room for it beside a packet.
pub(crate) const MAX_LEN: usize = 16_384;

/// Bytes of the checksum.
const CHECKSUM_LEN: usize = size_of::<u64>();

/// The rest of what an entry, or the list of a packet-out, asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Level {
    pub(crate) origin: Origin,
    /// The rest of the list that is carried out.
    pub(crate) actions: Vec<Action>,
    /// The instructions after it, in the order of their execution.
    pub(crate) instructions: Vec<Instruction>,
}

impl Level {
    /// One with nothing left belongs to no entry.
    pub(crate) fn of(actions: Vec<Action>, instructions: Vec<Instruction>, origin: Origin) -> Self {
        let has_ended = actions.is_empty() && instructions.is_empty();
        let origin = if has_ended { Origin::NONE } else { origin };
        Self { origin, actions, instructions }
    }

    /// Its bytes in a continuation.
    pub(crate) fn len(&self) -> usize {
        let mut out = Bytes(Vec::new());
        out.level(self);
        out.0.len()
    }

    /// The present table while it is carried out.
    pub(crate) fn table(&self) -> TableId {
        if self.origin == Origin::NONE { TableId(0) } else { self.origin.table_id }
    }
}

/// The rest of a packet's way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Continuation {
    pub(crate) queue: Option<QueueId>,
    /// The packet's stack of values, the last one on top.
    pub(crate) stack: Vec<u128>,
    /// The mirrors that the packet has been sent to.
    pub(crate) mirrored: u32,
    /// The present table of the actions that come in the end.
    pub(crate) home: TableId,
    /// Whether these are the rest of a bucket.
    pub(crate) in_bucket: bool,
    /// Whether the action set is being carried out.
    pub(crate) in_action_set: bool,
    /// Whether it began with a packet-out.
    pub(crate) is_packet_out: bool,
    /// Each resubmitted to the one before it, of which the first goes on first.
    pub(crate) levels: Vec<Level>,
    /// The actions that come in the end: the rest of a bucket or of the action set, or all of the
    /// action set as it is now.
    pub(crate) then: Vec<(Action, Origin)>,
}

impl Continuation {
    /// Whether what comes in the end is the rest of a list, which nothing more is written to.
    pub(crate) fn is_list(&self) -> bool {
        self.in_bucket || self.in_action_set
    }

    /// As bytes; `None` when they are too many.
    pub(crate) fn encode(&self) -> Option<Vec<u8>> {
        let mut out = Bytes(Vec::new());
        out.optional(self.queue.map(|queue| queue.0));
        out.put(self.stack.len() as u64, 16);
        self.stack.iter().for_each(|value| out.0.extend(value.to_be_bytes()));
        out.put(self.mirrored.into(), 32);
        out.put(self.home.0.into(), 8);
        for flag in [self.in_bucket, self.in_action_set, self.is_packet_out] {
            out.put(flag.into(), 8);
        }
        out.put(self.levels.len() as u64, 16);
        self.levels.iter().for_each(|level| out.level(level));
        out.put(self.then.len() as u64, 16);
        for (action, by) in &self.then {
            out.origin(*by);
            out.action(action);
        }
        let Bytes(mut bytes) = out;
        let sum = checksum(&bytes);
        bytes.extend(sum.to_be_bytes());
        (bytes.len() <= MAX_LEN).then_some(bytes)
    }

    /// Of bytes that this program has made; `None` for others.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (bytes, sum) = bytes.split_last_chunk::<CHECKSUM_LEN>()?;
        if u64::from_be_bytes(*sum) != checksum(bytes) {
            return None;
        }
        let mut rest = Rest(bytes, 0);
        let read = rest.continuation().ok()?;
        rest.0.is_empty().then_some(read)
    }

    /// Checks what it asks for, as that of flow entries and packet-outs.
    ///
    /// # Errors
    /// `NXR_STALE` for tables that there are not, and those of the actions and instructions.
    pub(crate) fn check(&self, existing: &Existing<'_>) -> Result<(), Error> {
        let exists = |table: TableId| table.0 < existing.n_tables;
        let tables = self.levels.iter().map(Level::table).chain([self.home]);
        if !tables.into_iter().all(exists) {
            return Err(Error::ResumeStale);
        }
        for level in &self.levels {
            let is_list = level.origin == Origin::NONE;
            let context = match self.is_packet_out && is_list {
                true => ActionContext::PacketOut,
                false => ActionContext::Flow,
            };
            level.actions.iter().try_for_each(|action| check_action(action, context, existing))?;
            let mut known = KnownFields::any();
            for instruction in &level.instructions {
                check_instruction(level.table(), instruction, &mut known, existing)?;
            }
        }
        let context = if self.in_bucket { ActionContext::Bucket } else { ActionContext::Set };
        self.then.iter().try_for_each(|(action, _)| check_action(action, context, existing))
    }
}

/// FNV-1a, begun with what the meaning of the bytes hangs on: the program's version and rows.
fn checksum(bytes: &[u8]) -> u64 {
    let rows = [ACTIONS.len(), INSTRUCTIONS.len(), ALL_FIELDS.len()].map(|len| len as u8);
    let all = env!("CARGO_PKG_VERSION").as_bytes().iter().chain(&rows).chain(bytes);
    all.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// Bytes that are written.
struct Bytes(Vec<u8>);

impl Bytes {
    fn put(&mut self, number: u64, bits: u16) {
        let bytes = number.to_be_bytes();
        self.0.extend(bytes.get(8 - usize::from(bits / 8)..).unwrap_or(&bytes));
    }

    fn optional(&mut self, number: Option<u32>) {
        self.put(number.is_some().into(), 8);
        self.put(number.unwrap_or_default().into(), 32);
    }

    fn sized(&mut self, bytes: &[u8]) {
        self.put(bytes.len() as u64, 16);
        self.0.extend(bytes);
    }

    fn origin(&mut self, origin: Origin) {
        self.put(origin.table_id.0.into(), 8);
        self.put(origin.cookie.0, 64);
        self.put(origin.is_miss.into(), 8);
    }

    fn level(&mut self, level: &Level) {
        self.origin(level.origin);
        self.list(&level.actions);
        self.put(level.instructions.len() as u64, 16);
        for instruction in &level.instructions {
            self.put(instruction.kind() as u64, 8);
            let Ok(()) = instruction.write(self);
        }
    }

    fn action(&mut self, action: &Action) {
        self.put(action.kind() as u64, 8);
        let Ok(()) = action.write(self);
    }

    fn spec(&mut self, spec: &LearnSpec) -> Result<(), Infallible> {
        self.u16(spec.n_bits)?;
        match spec.source {
            LearnSource::Field(field, offset) => {
                self.u8(0)?;
                self.field(field)?;
                self.u16(offset)?;
            }
            LearnSource::Immediate(value) => {
                self.u8(1)?;
                self.value(value)?;
            }
        }
        let (number, place) = match spec.target {
            LearnTarget::Match(field, offset) => (0, Some((field, offset))),
            LearnTarget::Load(field, offset) => (1, Some((field, offset))),
            LearnTarget::Output => (2, None),
        };
        self.u8(number)?;
        let Some((field, offset)) = place else { return Ok(()) };
        self.field(field)?;
        self.u16(offset)
    }

    fn list(&mut self, actions: &[Action]) {
        self.put(actions.len() as u64, 16);
        actions.iter().for_each(|action| self.action(action));
    }
}

impl WriteArguments for Bytes {
    type Error = Infallible;

    fn number(&mut self, number: u64, bits: u16) -> Result<(), Infallible> {
        self.put(number, bits);
        Ok(())
    }

    fn port(&mut self, port: PortNo) -> Result<(), Infallible> {
        self.u32(port.0)
    }

    fn field(&mut self, field: Field) -> Result<(), Infallible> {
        self.u8(field as u8)
    }

    fn value(&mut self, value: u128) -> Result<(), Infallible> {
        self.0.extend(value.to_be_bytes());
        Ok(())
    }

    fn learn(&mut self, learn: &Learn) -> Result<(), Infallible> {
        self.u16(learn.idle_timeout_s)?;
        self.u16(learn.hard_timeout_s)?;
        self.u16(learn.priority)?;
        self.u64(learn.cookie.0)?;
        self.u16(learn.flags.bits())?;
        self.u8(learn.table.0)?;
        learn.fin_timeouts_s.into_iter().try_for_each(|seconds| self.u16(seconds))?;
        self.put(learn.specs.len() as u64, 16);
        learn.specs.iter().try_for_each(|spec| self.spec(spec))
    }

    fn members(&mut self, bundle: &Members) -> Result<(), Infallible> {
        self.u16(bundle.fields.number())?;
        self.u16(bundle.basis)?;
        self.u16(bundle.algorithm.number())?;
        self.put(bundle.members.len() as u64, 16);
        bundle.members.iter().try_for_each(|member| self.short_port(*member))?;
        self.u8(bundle.dst.is_some().into())?;
        let Some((bits, field)) = bundle.dst else { return Ok(()) };
        self.u16(bits.to_ofs_nbits())?;
        self.field(field)
    }

    fn to_controller(&mut self, asked: &ToController) -> Result<(), Infallible> {
        self.u16(asked.max_len)?;
        self.u16(asked.controller_id)?;
        self.u8(asked.reason.number())?;
        self.u8(asked.pauses.into())?;
        self.optional(asked.meter.map(|meter| meter.0));
        self.bytes(&asked.userdata)
    }

    fn controller_ids(&mut self, ids: &[u16]) -> Result<(), Infallible> {
        self.put(ids.len() as u64, 16);
        ids.iter().try_for_each(|id| self.u16(*id))
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result<(), Infallible> {
        self.sized(bytes);
        Ok(())
    }

    fn actions(&mut self, actions: &[Action]) -> Result<(), Infallible> {
        self.list(actions);
        Ok(())
    }
}

/// There are not the bytes that should be, or they have no meaning.
struct NoMeaning;

/// Bytes that are still to be read, and the number of clones that they lie in.
struct Rest<'a>(&'a [u8], usize);

type Reads<T> = Result<T, NoMeaning>;

impl<'a> Rest<'a> {
    fn take(&mut self, len: usize) -> Reads<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(NoMeaning)?;
        self.0 = rest;
        Ok(taken)
    }

    fn get(&mut self, bits: u16) -> Reads<u64> {
        let bytes = self.take((bits / 8).into())?;
        Ok(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn flag(&mut self) -> Reads<bool> {
        Ok(self.get(8)? != 0)
    }

    fn optional(&mut self) -> Reads<Option<u32>> {
        let (is_there, number) = (self.flag()?, self.u32()?);
        Ok(is_there.then_some(number))
    }

    fn origin(&mut self) -> Reads<Origin> {
        let (table_id, cookie) = (TableId(self.u8()?), Cookie(self.u64()?));
        Ok(Origin { table_id, cookie, is_miss: self.flag()?, entry: EntryRef::NONE })
    }

    fn action(&mut self) -> Reads<Action> {
        let row = ACTIONS.get(self.get(8)? as usize).ok_or(NoMeaning)?;
        Action::read(row.kind, self)
    }

    fn instruction(&mut self) -> Reads<Instruction> {
        let row = INSTRUCTIONS.get(self.get(8)? as usize).ok_or(NoMeaning)?;
        Instruction::read(row.kind, self)
    }

    fn spec(&mut self) -> Reads<LearnSpec> {
        let n_bits = self.u16()?;
        let source = match self.u8()? {
            0 => LearnSource::Field(self.field()?, self.u16()?),
            1 => LearnSource::Immediate(self.value()?),
            _ => return Err(NoMeaning),
        };
        let target = match self.u8()? {
            0 => LearnTarget::Match(self.field()?, self.u16()?),
            1 => LearnTarget::Load(self.field()?, self.u16()?),
            2 => LearnTarget::Output,
            _ => return Err(NoMeaning),
        };
        Ok(LearnSpec { n_bits, source, target })
    }

    /// A number of things; one that takes no byte would be no end.
    fn list<T>(&mut self, read: impl Fn(&mut Self) -> Reads<T>) -> Reads<Vec<T>> {
        let count = self.get(16)?;
        (0..count).map(|_| read(self)).collect()
    }

    fn continuation(&mut self) -> Reads<Continuation> {
        Ok(Continuation {
            queue: self.optional()?.map(QueueId),
            stack: self.list(Self::value)?,
            mirrored: self.u32()?,
            home: TableId(self.u8()?),
            in_bucket: self.flag()?,
            in_action_set: self.flag()?,
            is_packet_out: self.flag()?,
            levels: self.list(|rest| {
                let origin = rest.origin()?;
                let (actions, instructions) =
                    (rest.list(Self::action)?, rest.list(Self::instruction)?);
                Ok(Level { origin, actions, instructions })
            })?,
            then: self.list(|rest| {
                let by = rest.origin()?;
                Ok((rest.action()?, by))
            })?,
        })
    }
}

impl ReadArguments for Rest<'_> {
    type Error = NoMeaning;

    fn number(&mut self, bits: u16) -> Reads<u64> {
        self.get(bits)
    }

    fn port(&mut self) -> Reads<PortNo> {
        self.u32().map(PortNo)
    }

    fn field(&mut self) -> Reads<Field> {
        let row = ALL_FIELDS.get(self.get(8)? as usize).ok_or(NoMeaning)?;
        Ok(row.field)
    }

    fn value(&mut self) -> Reads<u128> {
        Ok(u128::from(self.get(64)?) << 64 | u128::from(self.get(64)?))
    }

    fn learn(&mut self) -> Reads<Learn> {
        Ok(Learn {
            idle_timeout_s: self.u16()?,
            hard_timeout_s: self.u16()?,
            priority: self.u16()?,
            cookie: Cookie(self.u64()?),
            flags: LearnFlags::from_bits_retain(self.u16()?),
            table: TableId(self.u8()?),
            fin_timeouts_s: [self.u16()?, self.u16()?],
            specs: self.list(Self::spec)?,
        })
    }

    fn members(&mut self) -> Reads<Members> {
        Ok(Members {
            fields: HashFields::from_number(self.u16()?),
            basis: self.u16()?,
            algorithm: BundleAlgorithm::from_number(self.u16()?),
            members: self.list(Self::short_port)?,
            dst: match self.flag()? {
                true => Some((BitRange::from_ofs_nbits(self.u16()?), self.field()?)),
                false => None,
            },
        })
    }

    fn to_controller(&mut self) -> Reads<ToController> {
        Ok(ToController {
            max_len: self.u16()?,
            controller_id: self.u16()?,
            reason: PacketInReason::from_number(self.u8()?),
            pauses: self.flag()?,
            meter: self.optional()?.map(MeterId),
            userdata: self.bytes()?,
        })
    }

    fn controller_ids(&mut self) -> Reads<Vec<u16>> {
        self.list(Self::u16)
    }

    fn bytes(&mut self) -> Reads<Vec<u8>> {
        let len = self.get(16)? as usize;
        self.take(len).map(<[u8]>::to_vec)
    }

    fn actions(&mut self) -> Reads<Vec<Action>> {
        // Those of write-actions lie in no clone, but are nowhere as deep.
        if self.1 > CLONES_DEEP_MAX {
            return Err(NoMeaning);
        }
        self.1 += 1;
        let list = self.list(Self::action);
        self.1 -= 1;
        list
    }
}

#[cfg(test)]
mod tests {
    use super::{Continuation, Level};
    use crate::action_set::Origin;
    use openflow::text::{parse_actions, parse_instructions};
    use openflow::{Cookie, QueueId, TableId};

    fn paused() -> Continuation {
        let origin = Origin { table_id: TableId(3), cookie: Cookie(7), ..Origin::NONE };
        let actions = parse_actions(
            "dec_ttl(1,2),note:01.02,controller(userdata=aa,pause,meter_id=3),controller(id=9),\
             load:5->NXM_NX_REG0[4..7],move:NXM_NX_REG0[]->NXM_NX_REG1[],resubmit(1,2),\
             learn(table=3,priority=7,NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[],\
             load:5->NXM_NX_REG1[],output:NXM_OF_IN_PORT[]),set_field:1::2->ipv6_dst,\
             conjunction(1,1/2),enqueue:1:2,push_vlan:0x8100,push:NXM_NX_REG0[1..5],\
             pop:NXM_NX_REG1[],clone(pop_queue,clone(exit,output:3)),\
             bundle(eth_src,5,hrw,ofport,members:1,ANY),\
             bundle_load(nw_src,5,hrw,ofport,NXM_NX_REG0[1..16],members:1,LOCAL),\
             multipath(symmetric_l4,5,iter_hash,7,0,NXM_NX_REG0[3..9]),output:2",
        );
        let actions = actions.unwrap();
        let instructions =
            parse_instructions("clear_actions,write_actions(output:3),goto_table:9").unwrap();
        Continuation {
            queue: Some(QueueId(4)),
            stack: vec![7, u128::MAX],
            mirrored: 5,
            home: TableId(2),
            in_bucket: true,
            in_action_set: false,
            is_packet_out: true,
            levels: vec![
                Level::of(actions.clone(), instructions, origin),
                Level::of(Vec::new(), Vec::new(), origin),
            ],
            then: actions.into_iter().map(|action| (action, origin)).collect(),
        }
    }

    #[test]
    fn bytes_lead_back_and_changed_ones_nowhere() {
        let paused = paused();
        let bytes = paused.encode().unwrap();
        assert_eq!(Continuation::decode(&bytes), Some(paused));
        for end in 0..bytes.len() {
            assert_eq!(Continuation::decode(&bytes[..end]), None);
            let mut changed = bytes.clone();
            changed[end] ^= 1 << (end % 8);
            assert_eq!(Continuation::decode(&changed), None);
        }
    }

    #[test]
    fn bytes_with_a_checksum_of_their_own_cause_no_panic() {
        let bytes = paused().encode().unwrap();
        let body = &bytes[..bytes.len() - super::CHECKSUM_LEN];
        for at in 0..body.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut forged = body.to_vec();
                forged[at] = value;
                forged.extend(super::checksum(&forged).to_be_bytes());
                if let Some(read) = Continuation::decode(&forged) {
                    assert_eq!(Continuation::decode(&read.encode().unwrap()), Some(read));
                }
            }
        }
    }

    #[test]
    fn more_than_a_packet_in_has_room_for_is_none() {
        let mut paused = paused();
        let level = paused.levels[0].clone();
        paused.levels = vec![level; 200];
        assert_eq!(paused.encode(), None);
    }
}
