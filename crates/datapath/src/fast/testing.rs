//! Parts of the fast datapath that tests and benchmarks use and a switch does not.
//!
//! The classifier by itself, and choices that suit no switch: each must change nothing but speed,
//! which is what the tests make them for.

pub use super::classifier::{BURST, Classifier, ClassifierFigures, Template, UnwildcardedBits};
pub use super::compiled_match::{CompiledMatch, Mask, MaskWord, Masks};
pub use super::ids::EntryId;
pub use crate::precedence::Precedence;

use super::control::Control;
use super::forwarder::Forwarder;
use super::ids::Ticket;

/// Chooses plain code, or the processor's widest instructions, for what both can do.
pub fn set_plain(forwarder: &mut Forwarder, is_plain: bool) {
    forwarder.set_plain(is_plain);
}

/// Forces the search of flow tables by this template, wherever it can hold the entries that come
/// from now on; none for the one that suits them best.
pub fn set_template(forwarder: &mut Forwarder, template: Option<Template>) {
    forwarder.set_template(template);
}

/// The last flush that every forwarder has done.
#[must_use]
pub fn flushed(control: &Control) -> Ticket {
    control.shared().flushed()
}
