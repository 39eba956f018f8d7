//! The fuzzer of a running switch, for the program `live_fuzz` and for a test: messages that are
//! right or spoilt, and the oracle that knows what may answer them.

mod entropy;
mod make;
mod oracle;
mod run;
mod spoil;
mod talk;
mod tame;
mod traffic;

pub(crate) use run::FuzzRun;
