//! The only place of this crate where `unsafe` stands: what the processor can do and the language
//! has no safe word for. Every function here is safe to call with any arguments.
#![allow(unsafe_code)]

mod prefetch;
mod tags;

pub(crate) use self::prefetch::prefetch;
pub(crate) use self::tags::equal_tags;
