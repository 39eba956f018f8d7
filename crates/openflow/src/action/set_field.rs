//! Set-field and the actions of 1.0 and 1.1 that it took the place of, each as the other.
//!
//! Both ways are read off the rows: an action of theirs whose successor is set-field names the
//! fields that it writes and the type of its argument. No action is named here.

use super::{ACTIONS, Action, ActionKind, ActionRow, ReadArguments};
use crate::field::{Field, VID_PRESENT};
use crate::id::PortNo;
use crate::learn::Learn;
use crate::members::Members;
use crate::to_controller::ToController;
use crate::version::Version;

impl Action {
    /// The set-field that does the same as an action of 1.0 or 1.1. Of several fields, as the ports
    /// of the transport protocols are, it is the first that packets have. `None` for other actions,
    /// and where packets have none of the fields for certain.
    #[must_use]
    pub fn as_set_field(&self, packets_have: impl Fn(Field) -> bool) -> Option<Self> {
        if self.kind().row().successor != Some(ActionKind::SetField) {
            return None;
        }
        let field = match self.writes() {
            [only] => *only,
            several => *several.iter().find(|field| packets_have(**field))?,
        };
        // Setting an id implies a tag.
        let tag = if field == Field::VlanVid { VID_PRESENT } else { 0 };
        Some(Self::set_field(field, self.written()? & field.full_mask() | tag))
    }

    /// The action of a version without set-field that does the same. `None` where it has none for
    /// the field, or the value cannot be its argument: an id that says that there is no tag.
    #[must_use]
    pub fn before_set_field(version: Version, field: Field, value: u128) -> Option<Self> {
        let row = ActionKind::setting(version, field)?.row();
        if value & !field.full_mask() != 0 {
            return None;
        }
        let tag = if field == Field::VlanVid { VID_PRESENT } else { 0 };
        let value = value.checked_sub(tag)? << row.accepts.unwritten_bits();
        let action = Self::read(row.kind, &mut OneNumber(value)).ok()?;
        action.is_accepted().then_some(action)
    }
}

impl ActionKind {
    /// The action of a version without set-field that writes the field.
    #[must_use]
    pub fn setting(version: Version, field: Field) -> Option<Self> {
        let sets = |row: &&ActionRow| {
            row.successor == Some(Self::SetField)
                && row.writes.always(field)
                && row.kind.number(version).is_some()
        };
        ACTIONS.iter().find(sets).map(|row| row.kind)
    }
}

/// A number as the one argument of an action.
struct OneNumber(u128);

/// The number is too large for the argument, or the argument is no number.
struct NoArgument;

impl ReadArguments for OneNumber {
    type Error = NoArgument;

    fn number(&mut self, bits: u16) -> Result<u64, NoArgument> {
        let number = u64::try_from(self.0).map_err(|_| NoArgument)?;
        let above = number.checked_shr(bits.into()).unwrap_or(0);
        if above == 0 { Ok(number) } else { Err(NoArgument) }
    }

    fn port(&mut self) -> Result<PortNo, NoArgument> {
        Err(NoArgument)
    }

    fn field(&mut self) -> Result<Field, NoArgument> {
        Err(NoArgument)
    }

    fn value(&mut self) -> Result<u128, NoArgument> {
        Err(NoArgument)
    }

    fn to_controller(&mut self) -> Result<ToController, NoArgument> {
        Err(NoArgument)
    }

    fn controller_ids(&mut self) -> Result<Vec<u16>, NoArgument> {
        Err(NoArgument)
    }

    fn bytes(&mut self) -> Result<Vec<u8>, NoArgument> {
        Err(NoArgument)
    }

    fn actions(&mut self) -> Result<Vec<Action>, NoArgument> {
        Err(NoArgument)
    }

    fn learn(&mut self) -> Result<Learn, NoArgument> {
        Err(NoArgument)
    }

    fn members(&mut self) -> Result<Members, NoArgument> {
        Err(NoArgument)
    }
}

#[cfg(test)]
mod tests {
    use super::{ACTIONS, ActionKind};
    use crate::action::{Action, Fields};
    use crate::field::{Field, VID_PRESENT};
    use crate::version::Version;

    #[test]
    fn each_replaced_action_is_its_set_field_and_back() {
        let mut fields = [0; Version::ALL.len()];
        for row in ACTIONS.iter().filter(|row| row.successor == Some(ActionKind::SetField)) {
            let Fields::These(written) = row.writes else { panic!("{} names none", row.text) };
            let has_row = |version: &&Version| row.kind.number(**version).is_some();
            for &version in Version::ALL.iter().filter(has_row) {
                for &field in written {
                    let tag = if field == Field::VlanVid { VID_PRESENT } else { 0 };
                    for value in [0, 1, field.full_mask() & !tag] {
                        let action = Action::before_set_field(version, field, value | tag);
                        let action = action.unwrap();
                        assert_eq!(action.kind(), row.kind);
                        let back = action.as_set_field(|other| other == field);
                        let set = Action::set_field(field, value | tag);
                        assert_eq!(back, Some(set), "{}", row.text);
                    }
                    fields[version as usize] += 1;
                }
            }
        }
        assert_eq!(fields[..3], [13, 16, 0]);
    }

    #[test]
    fn fields_that_a_version_cannot_set_have_no_action() {
        let v1_0 = |field, value| Action::before_set_field(Version::V1_0, field, value);
        assert_eq!(v1_0(Field::MplsLabel, 1), None);
        for version in [Version::V1_0, Version::V1_1] {
            let before = |field, value| Action::before_set_field(version, field, value);
            assert_eq!(before(Field::Ipv6Dst, 1), None);
            assert_eq!(before(Field::VlanVid, 5), None);
            assert_eq!(before(Field::VlanPcp, 8), None);
            assert_eq!(before(Field::IpDscp, 64), None);
            assert_eq!(before(Field::IpDscp, 1 << 127), None);
        }
        assert_eq!(Action::before_set_field(Version::V1_2, Field::EthSrc, 1), None);
        assert_eq!(Action::SetTpDst(80).as_set_field(|_| false), None);
        assert_eq!(Action::PopVlan.as_set_field(|_| true), None);
    }
}
