//! Matches that are made of packets, so that packets match: some of a packet's fields, with what
//! they require, under masks of every kind.

use openflow::field::{FIELDS, Prereq, VID_PRESENT};
use openflow::{Field, Match};
use packet::FlowKey;
use testkit::Random;

use crate::actions::is_drawn;

/// A match that takes the packet, but for one of twelve.
pub(crate) fn of_key(key: &FlowKey, rng: &mut Random) -> Match {
    let present: Vec<Field> = FIELDS
        .iter()
        .filter(|row| key.has(row.field) && is_drawn(row))
        .map(|row| row.field)
        .collect();
    let wanted = match rng.weighted(&[4, 20, 40, 25, 11]) {
        0 => 0,
        1 => 1,
        2 => 2 + rng.index(2),
        3 => 4 + rng.index(4),
        _ => present.len(),
    };
    let mut matching = Match::any();
    for _ in 0..wanted {
        let field = *rng.pick(&present);
        set(&mut matching, key, field, rng);
    }
    if rng.percent(10) && !key.has(Field::VlanVid) {
        matching.set(Field::VlanVid, 0, Field::VlanVid.full_mask());
    }
    close(&mut matching, key, rng);
    if rng.percent(8) {
        perturb(&mut matching, rng);
    }
    if matching.check_prerequisites().is_ok() { matching } else { Match::any() }
}

fn set(matching: &mut Match, key: &FlowKey, field: Field, rng: &mut Random) {
    // These stand for what ports and entries give, not for what the frame says.
    match field {
        Field::InPort => matching.set(field, 1 + u128::from(rng.below(4)), u128::MAX),
        Field::InPhyPort if rng.percent(80) => {}
        Field::Metadata | Field::PktMark | Field::Reg0 | Field::Reg1 | Field::Reg2 => {
            let mask = *rng.pick(&[u128::MAX, 1, 2, 3, 0xff]);
            matching.set(field, u128::from(rng.below(4)), mask);
        }
        _ => matching.set(field, key.get(field), mask(field, rng)),
    }
}

fn mask(field: Field, rng: &mut Random) -> u128 {
    let row = field.row();
    if !row.maskable {
        return field.full_mask();
    }
    match rng.weighted(&[45, 40, 15]) {
        0 => field.full_mask(),
        1 => field.full_mask() << rng.below(u64::from(row.bits)),
        _ => rng.u128() & rng.u128(),
    }
}

/// Adds what the fields require, from the packet; takes away what it does not fulfil.
fn close(matching: &mut Match, key: &FlowKey, rng: &mut Random) {
    // Prerequisites have lower numbers, so they come later here.
    for row in FIELDS.iter().rev() {
        if matching.get(row.field).is_none() || matching.matches(row.prereq) {
            continue;
        }
        match row.prereq {
            Prereq::None => {}
            Prereq::Present(field) => {
                if matching.get(field).is_none() {
                    matching.set(field, key.get(field), u128::MAX);
                }
            }
            Prereq::VlanTag if key.has(Field::VlanVid) => {
                let mask = if rng.percent(50) { VID_PRESENT } else { u128::MAX };
                matching.set(Field::VlanVid, key.get(Field::VlanVid), mask);
            }
            Prereq::VlanTag => matching.set(row.field, 0, 0),
            Prereq::OneOf(field, values) if values.contains(&key.get(field)) => {
                matching.set(field, key.get(field), u128::MAX);
            }
            Prereq::OneOf(..) => matching.set(row.field, 0, 0),
        }
    }
}

/// Changes a bit of one field.
fn perturb(matching: &mut Match, rng: &mut Random) {
    let fields = matching.fields().to_vec();
    if fields.is_empty() {
        return;
    }
    let held = rng.pick(&fields);
    let bit = 1 << rng.below(u64::from(held.field.row().bits));
    matching.set(held.field, held.value ^ bit, held.mask);
}

/// The same fields and masks with the values of another packet, if it has the fields.
pub(crate) fn reshaped(shape: &Match, key: &FlowKey) -> Option<Match> {
    let mut matching = Match::any();
    for held in shape.fields() {
        match held.field {
            field if field.row().place.is_beside_packet() => {
                matching.set(held.field, held.value, held.mask);
            }
            field if key.has(field) || field == Field::VlanVid => {
                matching.set(field, key.get(field), held.mask);
            }
            _ => return None,
        }
    }
    matching.check_prerequisites().ok().map(|()| matching)
}

/// A prefix of one of the packet's fields with what it requires, or of no bits where the packet
/// does not have the field.
pub(crate) fn prefix(field: Field, key: &FlowKey, rng: &mut Random) -> Match {
    let mut matching = Match::any();
    if key.has(field) {
        let rest = rng.below(1 + u64::from(field.row().bits)) as u32;
        // None of 128 bits is left by a shift of 128.
        let mask = field.full_mask().checked_shl(rest).unwrap_or(0);
        matching.set(field, key.get(field), mask);
        close(&mut matching, key, rng);
    }
    matching
}
