//! The workers: threads that each own some ports of each bridge, and forward.
//!
//! A worker has a branch for each bridge, with a forwarder and ports. It takes frames from the
//! ports in batches, has the branch's forwarder decide what becomes of them, and sends; between
//! batches it applies what the agent tells it. It is busy while there is traffic and sleeps on all
//! ports at once when there is none. It never waits for the agent or for another worker, shares no
//! table with them, and reads no socket.

mod awake;
mod bell;
mod branch;
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

pub(crate) use bell::Bell;
pub(crate) use branch::{Branch, BranchParts, Forwarding};
pub(crate) use clock::Clock;
pub(crate) use command::{
    Command, ConnectionId, Inbox, Mark, Outbox, Quote, Request, Turn, Upcall, Waiting,
};
pub(crate) use figures::{Figures, PortPlace, Reading, Seat, WorkerState};
pub(crate) use ports::{Ports, Spread};
pub(crate) use run::{Parts, Worker};
pub(crate) use shaper::{QueueCells, Shaper};
pub(crate) use slot::Slot;
