//! The only place of this crate where `unsafe` stands: what the processor can do and the language
//! has no safe word for. Every function here is safe to call with any arguments.
#![allow(unsafe_code)]

mod digest;
mod pages;
mod prefetch;
mod tags;

pub(crate) use self::digest::{ShapeMasks, SimdLevel, digest_frames, digest_words};
pub(crate) use self::pages::{HUGE, advise_huge};
pub(crate) use self::prefetch::prefetch;
pub(crate) use self::tags::equal_tags;
