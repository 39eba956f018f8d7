//! The workers: threads that each own some ports and a forwarder, and forward.
//!
//! A worker takes frames from its ports in batches, has its forwarder decide what becomes of them,
//! and sends; between batches it applies what the agent tells it. It is busy while there is traffic
//! and sleeps in `poll(2)` when there is none. It never waits for the agent or for another worker,
//! shares no table with them, and reads no socket.

mod clock;
mod command;
mod figures;
mod handoff;
mod inbox;
mod outbox;
mod ports;
mod rest;
mod run;
mod shaper;
mod slot;
mod upkeep;
mod wire;

pub(crate) use clock::Clock;
pub(crate) use command::{
    Command, ConnectionId, Inbox, Mark, Outbox, Quote, Request, Turn, Upcall, Waiting,
};
pub(crate) use figures::{PortPlace, Reading, WorkerState};
pub(crate) use ports::{Ports, Spread};
pub(crate) use run::{Forwarding, Parts, Worker};
pub(crate) use shaper::{QueueCells, Shaper};
pub(crate) use slot::Slot;
