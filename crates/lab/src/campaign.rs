//! Campaigns: scenarios on switches, every cell of them, in turns, all of it repeated.
//!
//! [`scenario`] is what a scenario file says, [`catalogue`] the files that come with the lab,
//! [`job`] the list of what is to be measured, [`run`] carries it out into a [`ledger`], and
//! [`record`] makes `results::Results` of that.

pub mod catalogue;
#[cfg(test)]
pub(crate) mod fake;
pub mod gather;
pub mod job;
pub mod ledger;
pub mod record;
pub mod run;
pub mod scenario;
