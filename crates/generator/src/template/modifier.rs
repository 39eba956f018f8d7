//! The modifiers of a stream, compiled: where each field stands, its next value, and which
//! checksums it is a part of.
//!
//! A field of 128 bits is two of 64: those that are counted or drawn at random differ in the last
//! 64 only. It must never write outside of the headers, which every frame of the stream has.

use packet::PacketBuf;

use crate::profile::{
    FieldModifier, FieldValue, Modifier, ModifierOp, ProfileError, StreamSpec, TupleModifier,
};
use crate::random::SplitMix64;
use crate::stack::{ChecksumPlan, FieldPlace, HeaderStack, PlanKind, StackError};

/// Checksums that the fields of a stream can be a part of; the last is for fields without any.
pub(super) const SUMS_MAX: usize = 8;
const NO_SUM: u8 = SUMS_MAX as u8 - 1;

/// All modifiers of a stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Modifiers {
    list: Vec<BoundModifier>,
}

/// One modifier and its state.
#[derive(Clone, Debug)]
enum BoundModifier {
    Up {
        writer: FieldWriter,
        next: u64,
        min: u64,
        max: u64,
        step: u64,
    },
    Down {
        writer: FieldWriter,
        next: u64,
        min: u64,
        max: u64,
        step: u64,
    },
    /// `count` of 0 stands for 2^64.
    Random {
        writer: FieldWriter,
        random: SplitMix64,
        min: u64,
        count: u64,
        step: u64,
    },
    /// Row by row, with a value for each writer.
    Table {
        writers: Vec<FieldWriter>,
        values: Vec<u64>,
        at: usize,
    },
}

/// How a value gets into the frame and into the sums.
#[derive(Clone, Copy, Debug)]
struct FieldWriter {
    place: FieldPlace,
    /// Bits of the bytes around the field that are not the field's.
    keep: u64,
    /// How far a value stands from the end of its last 16-bit word.
    pad: u32,
    /// The sums that it is a part of.
    sums: [u8; 2],
}

impl FieldWriter {
    fn new(place: FieldPlace) -> Self {
        let field = (u64::MAX >> (64 - place.bits)) << place.shift;
        let bytes = u64::MAX >> (64 - 8 * place.len);
        let pad = if (place.at + place.len).is_multiple_of(2) { 0 } else { 8 };
        Self { place, keep: bytes & !field, pad, sums: [NO_SUM; 2] }
    }

    /// Writes a value into one frame.
    fn write(&self, frame: &mut [u8], value: u64, sums: &mut [u64; SUMS_MAX]) {
        match self.place.len {
            1 => self.write_bytes::<1>(frame, value, sums),
            2 => self.write_bytes::<2>(frame, value, sums),
            3 => self.write_bytes::<3>(frame, value, sums),
            4 => self.write_bytes::<4>(frame, value, sums),
            6 => self.write_bytes::<6>(frame, value, sums),
            _ => self.write_bytes::<8>(frame, value, sums),
        }
    }

    /// Writes a value into each frame. The width is looked at once.
    #[inline]
    fn write_all(
        &self,
        bufs: &mut [PacketBuf],
        sums: &mut [[u64; SUMS_MAX]],
        next: impl FnMut() -> u64,
    ) {
        match self.place.len {
            1 => self.write_column::<1>(bufs, sums, next),
            2 => self.write_column::<2>(bufs, sums, next),
            3 => self.write_column::<3>(bufs, sums, next),
            4 => self.write_column::<4>(bufs, sums, next),
            6 => self.write_column::<6>(bufs, sums, next),
            _ => self.write_column::<8>(bufs, sums, next),
        }
    }

    #[inline]
    fn write_column<const N: usize>(
        &self,
        bufs: &mut [PacketBuf],
        sums: &mut [[u64; SUMS_MAX]],
        mut next: impl FnMut() -> u64,
    ) {
        let writer = *self;
        for (buf, sums) in bufs.iter_mut().zip(sums) {
            writer.write_bytes::<N>(buf.bytes_mut(), next(), sums);
        }
    }

    #[inline]
    fn write_bytes<const N: usize>(
        &self,
        frame: &mut [u8],
        value: u64,
        sums: &mut [u64; SUMS_MAX],
    ) {
        let placed = value << self.place.shift;
        // 2^16 is 1 in the arithmetic of the checksum, so words of 32 bits may be added as they
        // are.
        let summed = placed << self.pad;
        let part = (summed & 0xffff_ffff) + (summed >> 32);
        for sum in self.sums {
            sums[usize::from(sum) % SUMS_MAX] += part;
        }
        put::<N>(frame, self.place.at, placed, self.keep);
    }
}

/// Writes the last `N` bytes of `value`, but for the bits of `keep`.
#[inline]
fn put<const N: usize>(frame: &mut [u8], at: usize, value: u64, keep: u64) {
    let Some(place) = frame.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<N>()) else {
        return;
    };
    let mut value = value;
    if keep != 0 {
        let mut held = [0; 8];
        held[8 - N..].copy_from_slice(place);
        value |= u64::from_be_bytes(held) & keep;
    }
    place.copy_from_slice(&value.to_be_bytes()[8 - N..]);
}

impl BoundModifier {
    fn apply(&mut self, bufs: &mut [PacketBuf], sums: &mut [[u64; SUMS_MAX]]) {
        match self {
            Self::Up { writer, next, min, max, step } => {
                let (min, max, step) = (*min, *max, *step);
                let mut value = *next;
                writer.write_all(bufs, sums, || {
                    let next = if max - value < step { min } else { value + step };
                    std::mem::replace(&mut value, next)
                });
                *next = value;
            }
            Self::Down { writer, next, min, max, step } => {
                let (min, max, step) = (*min, *max, *step);
                let mut value = *next;
                writer.write_all(bufs, sums, || {
                    let next = if value - min < step { max } else { value - step };
                    std::mem::replace(&mut value, next)
                });
                *next = value;
            }
            Self::Random { writer, random, min, count, step } => {
                writer.write_all(bufs, sums, || *min + random.below(*count) * *step);
            }
            Self::Table { writers, values, at } => {
                for (buf, sums) in bufs.iter_mut().zip(sums) {
                    for (writer, value) in writers.iter().zip(&values[*at..]) {
                        writer.write(buf.bytes_mut(), *value, sums);
                    }
                    *at += writers.len();
                    if *at == values.len() {
                        *at = 0;
                    }
                }
            }
        }
    }

    /// Leaves out the values of one frame.
    fn skip(&mut self) {
        match self {
            Self::Up { next, min, max, step, .. } => {
                *next = if *max - *next < *step { *min } else { *next + *step };
            }
            Self::Down { next, min, max, step, .. } => {
                *next = if *next - *min < *step { *max } else { *next - *step };
            }
            Self::Random { random, count, .. } => {
                random.below(*count);
            }
            Self::Table { writers, values, at } => {
                *at += writers.len();
                if *at == values.len() {
                    *at = 0;
                }
            }
        }
    }

    fn writers(&self) -> &[FieldWriter] {
        match self {
            Self::Up { writer, .. } | Self::Down { writer, .. } | Self::Random { writer, .. } => {
                std::slice::from_ref(writer)
            }
            Self::Table { writers, .. } => writers,
        }
    }

    fn writers_mut(&mut self) -> &mut [FieldWriter] {
        match self {
            Self::Up { writer, .. } | Self::Down { writer, .. } | Self::Random { writer, .. } => {
                std::slice::from_mut(writer)
            }
            Self::Table { writers, .. } => writers,
        }
    }
}

/// Where an error stands, and which stream has it.
struct ErrorPlace<'a> {
    stream: &'a str,
    index: usize,
}

impl ErrorPlace<'_> {
    fn wrong(&self, key: &str, reason: impl Into<String>) -> ProfileError {
        ProfileError::new(self.stream, format!("modifiers[{}].{key}", self.index), reason)
    }

    fn of<T>(&self, key: &str, result: Result<T, StackError>) -> Result<T, ProfileError> {
        result.map_err(|error| self.wrong(key, error.to_string()))
    }
}

impl Modifiers {
    /// Compiles the modifiers of a stream. What is the same in all frames is set in `stack`.
    pub(super) fn new(spec: &StreamSpec, stack: &mut HeaderStack) -> Result<Self, ProfileError> {
        let mut list = Vec::new();
        for (index, modifier) in spec.modifiers.iter().enumerate() {
            let error = ErrorPlace { stream: &spec.name, index };
            let (key, bound) = match modifier {
                Modifier::Field(field) => ("field", compile_field(field, stack, &error)?),
                Modifier::Tuples(tuples) => ("fields", compile_tuples(tuples, stack, &error)?),
            };
            let mut earlier: Vec<FieldPlace> = list
                .iter()
                .flat_map(BoundModifier::writers)
                .map(|writer: &FieldWriter| writer.place)
                .collect();
            for writer in bound.writers() {
                if earlier.iter().any(|place| overlap(place, &writer.place)) {
                    return Err(error.wrong(key, "the field is modified twice"));
                }
                earlier.push(writer.place);
            }
            list.push(bound);
        }
        Ok(Self { list })
    }

    /// Tells each field which of the checksums it is a part of; those are returned.
    pub(super) fn bind(
        &mut self,
        spec: &StreamSpec,
        plans: &[ChecksumPlan],
    ) -> Result<Vec<ChecksumPlan>, ProfileError> {
        let mut bound: Vec<ChecksumPlan> = Vec::new();
        for writer in self.list.iter_mut().flat_map(BoundModifier::writers_mut) {
            let covering = plans
                .iter()
                .filter(|plan| plan.kind != PlanKind::Crc32c && plan.covers(&writer.place));
            for (sum, plan) in writer.sums.iter_mut().zip(covering) {
                let known = bound.iter().position(|known| known == plan);
                *sum = known.unwrap_or(bound.len()) as u8;
                if known.is_none() {
                    bound.push(plan.clone());
                }
            }
        }
        if bound.len() >= SUMS_MAX {
            let reason = format!("at most {NO_SUM} checksums can change, not {}", bound.len());
            return Err(ProfileError::new(&spec.name, "modifiers", reason));
        }
        Ok(bound)
    }

    /// Whether a modified field is a part of the checksum.
    pub(super) fn touch(&self, plan: &ChecksumPlan) -> bool {
        self.list.iter().flat_map(BoundModifier::writers).any(|writer| plan.covers(&writer.place))
    }

    /// Writes zeros in place of all modified fields.
    pub(super) fn erase(&self, frame: &mut [u8]) {
        for writer in self.list.iter().flat_map(BoundModifier::writers) {
            writer.place.write(frame, 0);
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Writes the next values of every field into these frames, and adds them to their sums.
    pub(super) fn apply(&mut self, bufs: &mut [PacketBuf], sums: &mut [[u64; SUMS_MAX]]) {
        for modifier in &mut self.list {
            modifier.apply(bufs, sums);
        }
    }

    /// Leaves out the values of one frame.
    pub(super) fn skip(&mut self) {
        self.list.iter_mut().for_each(BoundModifier::skip);
    }
}

/// Whether two fields have a bit in common.
pub(super) fn overlap(a: &FieldPlace, b: &FieldPlace) -> bool {
    let bits = |place: &FieldPlace| {
        let end = 8 * (place.at + place.len) - place.shift as usize;
        (end - place.bits as usize, end)
    };
    let ((a_start, a_end), (b_start, b_end)) = (bits(a), bits(b));
    a_start < b_end && b_start < a_end
}

/// The parts of a field of at most 64 bits each, and of one of its values.
fn parts(place: FieldPlace) -> Vec<FieldPlace> {
    place.high_half().into_iter().chain([place.low_half()]).collect()
}

fn value_parts(place: &FieldPlace, value: u128) -> impl Iterator<Item = u64> {
    let high = place.high_half().map(|_| (value >> 64) as u64);
    high.into_iter().chain([value as u64])
}

fn compile_field(
    modifier: &FieldModifier,
    stack: &mut HeaderStack,
    error: &ErrorPlace<'_>,
) -> Result<BoundModifier, ProfileError> {
    let place = error.of("field", stack.place(&modifier.field))?;
    check_keys(modifier, error)?;
    if modifier.op == ModifierOp::List {
        if modifier.values.is_empty() {
            return Err(error.wrong("values", "a list needs values"));
        }
        let mut values = Vec::new();
        for value in &modifier.values {
            let value = error.of("values", place.value(value))?;
            values.extend(value_parts(&place, value));
        }
        let writers = parts(place).into_iter().map(FieldWriter::new).collect();
        return Ok(BoundModifier::Table { writers, values, at: 0 });
    }
    let ValueRange { high, min, max, start } = ValueRange::new(modifier, place, stack, error)?;
    if place.bits > 64 {
        // The first 64 bits are the same in all frames.
        stack.set(place, high << 64);
    }
    let writer = FieldWriter::new(place.low_half());
    let step = modifier.step.unwrap_or(1);
    Ok(match modifier.op {
        ModifierOp::Increment => BoundModifier::Up { writer, next: start, min, max, step },
        ModifierOp::Decrement => BoundModifier::Down { writer, next: start, min, max, step },
        ModifierOp::Random | ModifierOp::List => {
            let random = SplitMix64::new(modifier.seed.unwrap_or(1));
            // A step of 0 goes nowhere: one value. All 2^64 values are told as 0.
            let count = (max - min).checked_div(step).map_or(1, |steps| steps.wrapping_add(1));
            BoundModifier::Random { writer, random, min, count, step }
        }
    })
}

/// The range of a modifier that counts or draws, of the last 64 bits of its field.
struct ValueRange {
    high: u128,
    min: u64,
    max: u64,
    start: u64,
}

impl ValueRange {
    fn new(
        modifier: &FieldModifier,
        place: FieldPlace,
        stack: &HeaderStack,
        error: &ErrorPlace<'_>,
    ) -> Result<Self, ProfileError> {
        let read = |key, value: &Option<FieldValue>| {
            value.as_ref().map(|value| error.of(key, place.value(value))).transpose()
        };
        let min = read("min", &modifier.min)?;
        let max = read("max", &modifier.max)?;
        let start = read("start", &modifier.start)?;
        // A field of 128 bits keeps the first 64 that it has, or those that it is given.
        let given = min.or(max).or(start);
        let kept = given.unwrap_or_else(|| stack.value(place)) >> 64 << 64;
        let least = min.unwrap_or(kept);
        let most = max.unwrap_or(kept | place.low_half().max());
        let is_down = modifier.op == ModifierOp::Decrement;
        let start = start.unwrap_or(if is_down { most } else { least });
        if least > most {
            return Err(error.wrong("min", format!("{least} is above max {most}")));
        }
        if start < least || start > most {
            return Err(error.wrong("start", format!("{start} is not from {least} to {most}")));
        }
        if least >> 64 != most >> 64 {
            let reason = "min and max differ before their last 64 bits; use a list";
            return Err(error.wrong("max", reason));
        }
        let low = |value: u128| value as u64;
        Ok(Self { high: least >> 64, min: low(least), max: low(most), start: low(start) })
    }
}

/// Keys that the operation does not have.
fn check_keys(modifier: &FieldModifier, error: &ErrorPlace<'_>) -> Result<(), ProfileError> {
    let is_list = modifier.op == ModifierOp::List;
    let is_random = modifier.op == ModifierOp::Random;
    let keys = [
        ("values", !modifier.values.is_empty() && !is_list, "only a list has values"),
        ("min", modifier.min.is_some() && is_list, "a list has only values"),
        ("max", modifier.max.is_some() && is_list, "a list has only values"),
        ("step", modifier.step.is_some() && is_list, "a list has only values"),
        ("start", modifier.start.is_some() && (is_list || is_random), "only counting has a start"),
        ("seed", modifier.seed.is_some() && !is_random, "only random values have a seed"),
    ];
    match keys.iter().find(|(_, is_wrong, _)| *is_wrong) {
        Some((key, _, reason)) => Err(error.wrong(key, *reason)),
        None => Ok(()),
    }
}

fn compile_tuples(
    modifier: &TupleModifier,
    stack: &HeaderStack,
    error: &ErrorPlace<'_>,
) -> Result<BoundModifier, ProfileError> {
    let places: Result<Vec<FieldPlace>, StackError> =
        modifier.fields.iter().map(|field| stack.place(field)).collect();
    let places = error.of("fields", places)?;
    if modifier.tuples.is_empty() {
        return Err(error.wrong("tuples", "there is none"));
    }
    let mut values = Vec::new();
    for (row, tuple) in modifier.tuples.iter().enumerate() {
        let key = format!("tuples[{row}]");
        if tuple.len() != places.len() {
            let reason = format!("{} values for {} fields", tuple.len(), places.len());
            return Err(error.wrong(&key, reason));
        }
        for (place, value) in places.iter().zip(tuple) {
            let value = error.of(&key, place.value(value))?;
            values.extend(value_parts(place, value));
        }
    }
    let writers = places.into_iter().flat_map(parts).map(FieldWriter::new).collect();
    Ok(BoundModifier::Table { writers, values, at: 0 })
}
