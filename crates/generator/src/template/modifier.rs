//! The modifiers of a stream, compiled: where each field stands, its next value, and which
//! checksums it is a part of.
//!
//! A field of 128 bits is two of 64: those that are counted or drawn at random differ in the last
//! 64 only. It must never write outside of the headers, which every frame of the stream has.

use super::columns::{CountStep, Progression, RunColumns, WordPlan, WordTarget};
use crate::profile::{
    FieldModifier, FieldValue, Modifier, ModifierOp, ProfileError, StreamSpec, TupleModifier,
};
use crate::random::SplitMix64;
use crate::stack::{ChecksumPlan, FieldPlace, HeaderStack, PlanKind, StackError};

/// All modifiers of a stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Modifiers {
    list: Vec<BoundModifier>,
    /// For each, whether it has given its values to the run that is being made.
    are_counted: Vec<bool>,
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

/// Places in the words and sums of a run to which the values of a field go.
#[derive(Clone, Debug)]
struct FieldWriter {
    place: FieldPlace,
    /// The words that it has a part of.
    targets: Vec<WordTarget>,
    /// The sums that it is a part of.
    sums: Vec<usize>,
}

impl FieldWriter {
    fn new(place: FieldPlace) -> Self {
        Self { place, targets: Vec::new(), sums: Vec::new() }
    }

    /// Bits by which the field moves to the left in the 16-bit word of a checksum.
    fn sum_shift(&self) -> u32 {
        let is_even = (self.place.at + self.place.len).is_multiple_of(2);
        self.place.shift + if is_even { 0 } else { 8 }
    }

    /// Adds a field that counts to its words and sums.
    #[inline]
    fn count(&self, columns: &mut RunColumns, (first, step): (u64, CountStep)) {
        let by = match step {
            CountStep::Up(step) => step,
            CountStep::Down(step) => step.wrapping_neg(),
        };
        columns.count_in_words(&self.targets, Progression { first, step: by }, self.place.shift);
        let shift = self.sum_shift();
        self.sums.iter().for_each(|sum| columns.count_in_sum(*sum, (first, step), shift));
    }

    /// Writes the run's values.
    #[inline]
    fn write(&self, columns: &mut RunColumns) {
        let shift = self.sum_shift();
        self.sums.iter().for_each(|sum| columns.add_values(*sum, shift));
        columns.merge_values(&self.targets, self.place.shift);
    }
}

/// The next values of a field that counts up.
fn count_up(values: &mut [u64], next: &mut u64, (min, max, step): (u64, u64, u64)) {
    for value in values {
        *value = *next;
        *next = if max - *next < step { min } else { *next + step };
    }
}

/// As [`count_up`], the other way.
fn count_down(values: &mut [u64], next: &mut u64, (min, max, step): (u64, u64, u64)) {
    for value in values {
        *value = *next;
        *next = if *next - min < step { max } else { *next - step };
    }
}

impl BoundModifier {
    /// Counts through a run, where the field does not begin anew before its end; whether it did.
    /// For `may_fall` see [`Modifiers::count`].
    #[inline]
    fn count(&mut self, columns: &mut RunColumns, may_fall: bool) -> bool {
        let count = columns.count() as u64;
        match self {
            Self::Up { writer, next, max, step, .. } => {
                let Some(span) = step.checked_mul(count) else { return false };
                if span > *max - *next {
                    return false;
                }
                writer.count(columns, (*next, CountStep::Up(*step)));
                *next += span;
                true
            }
            Self::Down { writer, next, min, step, .. } if may_fall || writer.sums.is_empty() => {
                let Some(span) = step.checked_mul(count) else { return false };
                if span > *next - *min {
                    return false;
                }
                writer.count(columns, (*next, CountStep::Down(*step)));
                *next -= span;
                true
            }
            Self::Down { .. } | Self::Random { .. } | Self::Table { .. } => false,
        }
    }

    /// Writes the values of a run.
    fn apply(&mut self, columns: &mut RunColumns) {
        match self {
            Self::Up { writer, next, min, max, step } => {
                count_up(columns.values_mut(), next, (*min, *max, *step));
                writer.write(columns);
            }
            Self::Down { writer, next, min, max, step } => {
                count_down(columns.values_mut(), next, (*min, *max, *step));
                writer.write(columns);
            }
            Self::Random { writer, random, min, count, step } => {
                for value in columns.values_mut() {
                    *value = *min + random.below(*count) * *step;
                }
                writer.write(columns);
            }
            Self::Table { writers, values, at } => {
                let mut last = *at;
                for (number, writer) in writers.iter().enumerate() {
                    last = *at;
                    for value in columns.values_mut() {
                        *value = values[last + number];
                        last += writers.len();
                        if last == values.len() {
                            last = 0;
                        }
                    }
                    writer.write(columns);
                }
                *at = last;
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

/// Stream and index of a modifier, for its errors.
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
        let are_counted = vec![false; list.len()];
        Ok(Self { list, are_counted })
    }

    /// Whether all fields lie before byte `end` of the frames and beside their checksums: what is
    /// behind is the number and the time stamp, or not there in the shortest frame.
    pub(super) fn check_places(
        &self,
        stream: &str,
        end: usize,
        plans: &[ChecksumPlan],
    ) -> Result<(), ProfileError> {
        for (index, modifier) in self.list.iter().enumerate() {
            let error = ErrorPlace { stream, index };
            for place in modifier.writers().iter().map(|writer| &writer.place) {
                if place.at + place.len > end {
                    let reason = format!(
                        "byte {}: the shortest frame has {end} before number, time stamp and FCS",
                        place.at
                    );
                    return Err(error.wrong("field", reason));
                }
                if plans.iter().any(|plan| plan.is_hit_by(place)) {
                    let reason = format!("byte {} is one of a checksum, which is right", place.at);
                    return Err(error.wrong("field", reason));
                }
            }
        }
        Ok(())
    }

    /// Tells each field which of the checksums it is a part of; those are returned.
    pub(super) fn bind(&mut self, plans: &[ChecksumPlan]) -> Vec<ChecksumPlan> {
        let mut bound: Vec<ChecksumPlan> = Vec::new();
        for writer in self.list.iter_mut().flat_map(BoundModifier::writers_mut) {
            let covering = plans
                .iter()
                .filter(|plan| plan.kind != PlanKind::Crc32c && plan.covers(&writer.place));
            for plan in covering {
                let known = bound.iter().position(|known| known == plan);
                writer.sums.push(known.unwrap_or(bound.len()));
                if known.is_none() {
                    bound.push(plan.clone());
                }
            }
        }
        bound
    }

    /// The words in which the fields and their checksums stand; each field gets those that are its
    /// own.
    pub(super) fn place(&mut self, checksums: &[ChecksumPlan]) -> WordPlan {
        let writers = self.list.iter().flat_map(BoundModifier::writers);
        let fields = writers.map(|writer| writer.place.at..writer.place.at + writer.place.len);
        let sums = checksums.iter().map(|plan| plan.at..plan.at + 2);
        let plan = WordPlan::new(fields.chain(sums).collect());
        for writer in self.list.iter_mut().flat_map(BoundModifier::writers_mut) {
            writer.targets = plan.targets(writer.place.at + writer.place.len);
        }
        plan
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

    /// Counts the fields through a run that only count in it. `may_fall` says that no sum is zero
    /// without the fields: a sum that goes down is known modulo 0xffff only.
    #[inline]
    pub(super) fn count(&mut self, columns: &mut RunColumns, may_fall: bool) {
        for (modifier, is_counted) in self.list.iter_mut().zip(&mut self.are_counted) {
            *is_counted = modifier.count(columns, may_fall);
        }
    }

    /// Writes the next values of all other fields into the words of the run, which have what was
    /// counted, and adds them to their sums.
    #[inline]
    pub(super) fn apply(&mut self, columns: &mut RunColumns) {
        for (modifier, is_counted) in self.list.iter_mut().zip(&self.are_counted) {
            if !is_counted {
                modifier.apply(columns);
            }
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
    if let Some(step) = modifier.step.filter(|step| max > min && *step > max - min) {
        let reason = format!("{step} is more than from min {min} to max {max}: there is no next");
        return Err(error.wrong("step", reason));
    }
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
            // A step of 0 goes nowhere: one value. All 2^64 values are written as 0.
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
