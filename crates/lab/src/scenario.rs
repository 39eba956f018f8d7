//! Scenarios: the questions that the lab can ask of any switch.
//!
//! A new scenario is one file under `scenario/` and one line in [`ALL`]: what is asked, which
//! applications the controllers run for it, and by which methods it is answered.

mod packet_in_hub;

use crate::controller::AppKind;
use crate::method::Method;

/// A question.
pub trait HostScenario: Sync {
    /// Its name on the command line and in reports.
    fn id(&self) -> &'static str;

    /// The question.
    fn question(&self) -> &'static str;

    /// The applications that the controllers run, one cell of the table each.
    fn apps(&self) -> &'static [AppKind];

    /// The methods, in order.
    fn methods(&self) -> &'static [&'static dyn Method];
}

/// Every scenario.
pub const ALL: &[&dyn HostScenario] = &[&packet_in_hub::PacketInHub];

/// The scenario of that name.
#[must_use]
pub fn find(id: &str) -> Option<&'static dyn HostScenario> {
    ALL.iter().copied().find(|scenario| scenario.id() == id)
}
