//! A match: the fields that a packet must show, each with a value and a mask.
//!
//! Values are integers, right-aligned in 128 bits (`ipv4_src` 10.0.0.1 is `0x0a00_0001`), so that
//! no crate above needs to know a field's width to compare or to mask.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use crate::error::Error;
use crate::field::{Field, Prereq, VID_PRESENT};
use crate::twelve_tuple::TupleForm;

/// One field of a match. Bits outside of `mask` are zero in `value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MatchField {
    /// The field.
    pub field: Field,
    /// The bits that a packet must have.
    pub value: u128,
    /// The bits that are looked at; never zero.
    pub mask: u128,
}

impl MatchField {
    /// Whether every bit is looked at.
    #[must_use]
    #[inline]
    pub fn is_exact(&self) -> bool {
        self.mask == self.field.full_mask()
    }
}

/// A set of match fields, at most one of each, kept in the order of [`Field`].
///
/// Two matches are equal when their fields are: the form in which 1.0 wrote them is not compared.
#[derive(Clone, Debug, Default)]
pub struct Match {
    fields: Vec<MatchField>,
    form: Option<Box<TupleForm>>,
}

impl PartialEq for Match {
    fn eq(&self, other: &Self) -> bool {
        self.fields == other.fields
    }
}

impl Eq for Match {}

impl PartialOrd for Match {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Match {
    fn cmp(&self, other: &Self) -> Ordering {
        self.fields.cmp(&other.fields)
    }
}

impl Hash for Match {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.fields.hash(state);
    }
}

impl Match {
    /// The match that every packet meets.
    #[must_use]
    #[inline]
    pub fn any() -> Self {
        Self::default()
    }

    /// The match that every packet meets, with room for fields that are to be added.
    #[must_use]
    pub fn with_room(fields: usize) -> Self {
        Self { fields: Vec::with_capacity(fields), form: None }
    }

    /// This match with an exact field added or replaced; for building in code.
    #[must_use]
    pub fn with(mut self, field: Field, value: u128) -> Self {
        self.set(field, value, field.full_mask());
        self
    }

    /// This match with a masked field added or replaced; for building in code.
    #[must_use]
    pub fn with_masked(mut self, field: Field, value: u128, mask: u128) -> Self {
        self.set(field, value, mask);
        self
    }

    /// This match in the form in which 1.0 wrote it; it stays until a field changes.
    #[must_use]
    pub fn in_form(mut self, form: TupleForm) -> Self {
        self.form = (form != TupleForm::default()).then(|| Box::new(form));
        self
    }

    /// The form in which 1.0 wrote the match, where its fields do not give it.
    #[must_use]
    pub fn form(&self) -> Option<&TupleForm> {
        self.form.as_deref()
    }

    /// Adds or replaces a field; value and mask are cut to the field's width and the value to the
    /// mask. A mask of zero removes the field, since it asks for nothing.
    ///
    /// Several registers as one are set one by one.
    pub fn set(&mut self, field: Field, value: u128, mask: u128) {
        if let Some(registers) = field.registers() {
            for (place, register) in registers.rev().enumerate() {
                self.set(register, value >> (32 * place), mask >> (32 * place));
            }
            return;
        }
        let mask = mask & field.full_mask();
        let held = MatchField { field, value: value & mask, mask };
        match (self.place(field), mask) {
            (Ok(index), 0) => drop(self.fields.remove(index)),
            (Ok(index), _) => self.fields[index] = held,
            (Err(_), 0) => {}
            (Err(index), _) => self.fields.insert(index, held),
        }
        self.form = None;
    }

    /// Adds bits of a field to those that are matched, or replaces them; others stay as they are.
    pub fn set_bits(&mut self, field: Field, value: u128, mask: u128) {
        if let Some(registers) = field.registers() {
            for (place, register) in registers.rev().enumerate() {
                self.set_bits(register, value >> (32 * place), mask >> (32 * place));
            }
            return;
        }
        let (held, matched) = self.get(field).map_or((0, 0), |held| (held.value, held.mask));
        self.set(field, held & !mask | value & mask, matched | mask);
    }

    /// Index of the field, or the one for inserting it. Mostly fields come in order, so that the
    /// last is looked at before the others are searched.
    fn place(&self, field: Field) -> Result<usize, usize> {
        match self.fields.last() {
            Some(last) if last.field >= field => {
                self.fields.binary_search_by_key(&field, |held| held.field)
            }
            Some(_) | None => Err(self.fields.len()),
        }
    }

    /// Adds a field as it came from a peer, with the checks of clause 7.2.3.3.
    ///
    /// # Errors
    /// `OFPBMC_DUP_FIELD` when the field is there, `OFPBMC_BAD_MASK` when it takes no mask,
    /// `OFPBMC_BAD_WILDCARDS` when a value bit is set outside of the mask, `OFPBMC_BAD_VALUE` when
    /// a bit is set outside of the field's width.
    pub fn add(&mut self, field: Field, value: u128, mask: u128) -> Result<(), Error> {
        if let Some(registers) = field.registers() {
            return self.add_registers(registers, value, mask);
        }
        let Err(index) = self.place(field) else { return Err(Error::BadMatchDupField) };
        let full_mask = field.full_mask();
        if mask != full_mask && !field.row().maskable {
            return Err(Error::BadMatchBadMask);
        }
        if value & !full_mask != 0 {
            return Err(Error::BadMatchBadValue);
        }
        if value & !mask != 0 {
            return Err(Error::BadMatchBadWildcards);
        }
        let mask = mask & full_mask;
        if mask != 0 {
            self.fields.insert(index, MatchField { field, value, mask });
        }
        self.form = None;
        Ok(())
    }

    /// Adds several registers that came as one, each where some bit of it is matched.
    #[cold]
    fn add_registers(
        &mut self,
        registers: impl DoubleEndedIterator<Item = Field> + ExactSizeIterator,
        value: u128,
        mask: u128,
    ) -> Result<(), Error> {
        if value & !mask != 0 {
            return Err(Error::BadMatchBadWildcards);
        }
        for (place, register) in registers.rev().enumerate() {
            let part = |bits: u128| bits >> (32 * place) & register.full_mask();
            if part(mask) != 0 {
                self.add(register, part(value), part(mask))?;
            }
        }
        Ok(())
    }

    /// The fields, in the order of [`Field`].
    #[must_use]
    #[inline]
    pub fn fields(&self) -> &[MatchField] {
        &self.fields
    }

    /// The field's entry, if the match has it.
    #[must_use]
    #[inline]
    pub fn get(&self, field: Field) -> Option<&MatchField> {
        let index = self.fields.binary_search_by_key(&field, |held| held.field).ok()?;
        self.fields.get(index)
    }

    /// The value of a field that is matched exactly.
    #[must_use]
    #[inline]
    pub fn exact(&self, field: Field) -> Option<u128> {
        self.get(field).filter(|held| held.is_exact()).map(|held| held.value)
    }

    /// Whether every packet meets the match.
    #[must_use]
    pub fn is_any(&self) -> bool {
        self.fields.is_empty()
    }

    /// Checks that every field's prerequisite stands in the match too (clause 7.2.3.6).
    ///
    /// # Errors
    /// `OFPBMC_BAD_PREREQ` where one is missing.
    pub fn check_prerequisites(&self) -> Result<(), Error> {
        if self.fields.iter().all(|held| self.matches(held.field.row().prereq)) {
            Ok(())
        } else {
            Err(Error::BadMatchBadPrereq)
        }
    }

    /// Whether the match guarantees the prerequisite for every packet that meets it.
    #[must_use]
    pub fn matches(&self, prereq: Prereq) -> bool {
        match prereq {
            Prereq::None => true,
            Prereq::Present(field) => self.get(field).is_some(),
            Prereq::VlanTag => {
                self.get(Field::VlanVid).is_some_and(|vid| vid.value & vid.mask & VID_PRESENT != 0)
            }
            Prereq::OneOf(field, values) => {
                self.exact(field).is_some_and(|value| values.contains(&value))
                    && self.matches(field.row().prereq)
            }
        }
    }

    /// Whether every packet that meets `other` meets this match ("more specific or equal", the
    /// rule of non-strict modify and delete, clause 6.4).
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        self.fields.iter().all(|own| {
            other.get(own.field).is_some_and(|theirs| {
                theirs.mask & own.mask == own.mask && theirs.value & own.mask == own.value
            })
        })
    }

    /// Whether a packet can meet both (the rule of `OFPFF_CHECK_OVERLAP`, clause 6.4).
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.fields.iter().all(|own| {
            other.get(own.field).is_none_or(|theirs| {
                let both = own.mask & theirs.mask;
                own.value & both == theirs.value & both
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Match;
    use crate::error::Error;
    use crate::field::Field;

    #[test]
    fn what_a_peer_sends_is_checked_with_the_right_error() {
        let mut m = Match::any();
        assert_eq!(m.add(Field::EthType, 0x0800, 0xff00), Err(Error::BadMatchBadMask));
        assert_eq!(m.add(Field::EthDst, 0x01, 0x02), Err(Error::BadMatchBadWildcards));
        assert_eq!(m.add(Field::VlanPcp, 8, 7), Err(Error::BadMatchBadValue));
        assert_eq!(m.add(Field::EthType, 0x0800, 0xffff), Ok(()));
        assert_eq!(m.add(Field::EthType, 0x0800, 0xffff), Err(Error::BadMatchDupField));
    }

    #[test]
    fn prerequisites_reach_through_the_chain() {
        let nd = Match::any().with(Field::Ipv6NdSll, 1).with(Field::Icmpv6Type, 135);
        assert_eq!(nd.check_prerequisites(), Err(Error::BadMatchBadPrereq));
        let nd = nd.with(Field::IpProto, 58).with(Field::EthType, 0x86dd);
        assert_eq!(nd.check_prerequisites(), Ok(()));
        let nd = nd.with(Field::Icmpv6Type, 136);
        assert_eq!(nd.check_prerequisites(), Err(Error::BadMatchBadPrereq));
    }

    #[test]
    fn covers_and_overlaps_follow_the_bits() {
        let net = Match::any().with_masked(Field::Ipv4Dst, 0x0a00_0000, 0xff00_0000);
        let host = Match::any().with(Field::Ipv4Dst, 0x0a00_0001);
        let port = Match::any().with(Field::InPort, 1);
        assert!(net.covers(&host) && !host.covers(&net));
        assert!(Match::any().covers(&net) && !net.covers(&Match::any()));
        assert!(net.overlaps(&port) && !net.covers(&port));
        let other = Match::any().with(Field::Ipv4Dst, 0x0b00_0001);
        assert!(!net.overlaps(&other));
    }
}
