//! What tests, benchmarks and examples use of the fast datapath and a switch does not.
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

/// Says whether plain code is to do what the processor's widest instructions can do.
pub fn set_plain(forwarder: &mut Forwarder, is_plain: bool) {
    forwarder.set_plain(is_plain);
}

/// Says how the flow tables are to be searched, wherever that way can hold the entries that come
/// from now on; none for what suits them best.
pub fn set_template(forwarder: &mut Forwarder, template: Option<Template>) {
    forwarder.set_template(template);
}

/// The last flush that every forwarder has done.
#[must_use]
pub fn flushed(control: &Control) -> Ticket {
    control.shared().flushed()
}
