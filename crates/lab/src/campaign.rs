//! Campaigns: scenarios on switches, every cell of them, in turns, all of it repeated.
//!
//! [`scenario`] is what a scenario file says, [`catalogue`] the files that come with the lab,
//! [`run`] carries them out and yields `results::Results`.

pub mod catalogue;
#[cfg(test)]
pub(crate) mod fake;
pub mod ledger;
mod order;
pub mod run;
pub mod scenario;
