//! Traffic: streams, pacing, probes and their receiver.
#![forbid(unsafe_code)]
