//! The worker: one thread that owns the ports and the datapath and forwards.
//!
//! It takes frames from every port in batches, lets the datapath say what becomes of them, and
//! sends; between batches it carries out the agent's commands. It is busy while there is traffic
//! and sleeps in `poll(2)` when there is none. It never waits for the agent and reads no socket.

mod apply;
mod command;
mod figures;
mod inbox;
mod outbox;
mod ports;
mod rest;
mod run;
mod slot;
mod upkeep;
mod wire;

pub(crate) use command::{
    Command, ConnectionId, Inbox, Outbox, Quote, Request, Treatment, Upcall, Waiting,
};
pub(crate) use figures::{PortPlace, Reading, WorkerState};
pub(crate) use ports::Ports;
pub(crate) use run::{Identity, Worker};
pub(crate) use slot::Slot;
