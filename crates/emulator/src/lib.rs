//! Emulated OpenFlow switches by the thousand: what benchmarks load a controller with.
//!
//! An emulated switch greets, describes itself, announces hosts and sends packet-ins at a given
//! pace; it counts and times the answers. Threads share nothing but a phase and a few counters.
//! This is a crate of its own because its code bounds what a benchmark can see: it is compiled with
//! all optimisations, the rest of the lab is not. It must never know a method or a report.

#![forbid(unsafe_code)]

mod hosts;
mod layout;
mod outstanding;
mod replies;
mod switch;
mod tally;
mod task;

pub use hosts::{FRAME_MIN, HOSTS_MAX, SWITCHES_MAX, is_lldp};
pub use layout::{AnswerLayout, Buffering, PacketIns};
pub use replies::{Identity, Reply};
pub use switch::{EmulationPlan, Pace, Phase};
pub use tally::{Oddities, Progress, Tally, Times};
pub use task::{THREAD_NAME, ThreadPlan, prefer, run};
