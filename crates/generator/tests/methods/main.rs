//! The methods of measurement against devices of which the truth is known.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod mlrsearch;
mod truth;
