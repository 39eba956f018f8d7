//! Formats of test vectors and cases; imports nothing.
#![forbid(unsafe_code)]
