//! The one binary: arguments in, exit code out. No logic lives here.
#![forbid(unsafe_code)]

fn main() {}
