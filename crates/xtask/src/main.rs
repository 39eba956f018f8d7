//! The project's own tasks, in Rust, so that nothing but cargo is needed to run them.
#![forbid(unsafe_code)]

fn main() {}
