//! `null`: receives nothing and takes everything. It measures what a worker costs without I/O, and
//! is the sink of generators.

use std::sync::Arc;

use packet::PacketBuf;

use crate::counters::{Counted, PortCounters, PortQueueCounters, queue_counters};
use crate::error::PortError;
use crate::kind::{KindRow, QUEUES, option, shared};
use crate::port::{LinkNotification, Port, PortDevice, PortInfo, SilentRx, TxQueue, made_up_mac};
use crate::spec::PortSpec;

/// The row in the table of kinds.
pub const ROW: KindRow = KindRow {
    word: "null",
    name_hint: "",
    help: "receives nothing and takes everything",
    options: &[option(QUEUES, "1", "queues, each for a thread of its own; 1 to 64")],
    exclusive: shared,
    open,
};

/// The name only distinguishes the port from others.
fn open(spec: &PortSpec) -> Result<Port, PortError> {
    let failed = |source| PortError::Io { what: "creating an eventfd".into(), source };
    let counters = queue_counters(spec.queues()? as usize);
    let device = NullDevice { name: spec.name().to_owned(), counters: counters.clone() };
    let queue = |counters| Ok((SilentRx::new().map_err(failed)?, NullTx { counters }));
    Port::with_queues(device, counters.into_iter().map(queue))
}

#[derive(Debug)]
struct NullTx {
    counters: Arc<PortQueueCounters>,
}

impl TxQueue for NullTx {
    fn tx(&mut self, frames: &[PacketBuf]) -> Result<usize, PortError> {
        let mut counted = Counted::default();
        frames.iter().for_each(|frame| counted.frame(frame.len()));
        self.counters.tx.add(&counted);
        Ok(frames.len())
    }
}

#[derive(Debug)]
struct NullDevice {
    name: String,
    counters: Vec<Arc<PortQueueCounters>>,
}

impl PortDevice for NullDevice {
    fn info(&mut self) -> PortInfo {
        PortInfo {
            name: self.name.clone(),
            kind: ROW.word,
            mac: made_up_mac(&self.name),
            mtu: u16::MAX.into(),
            link_up: true,
            speed_bps: 0,
            full_duplex: Some(true),
            exists: true,
            notes: Vec::new(),
        }
    }

    fn link_notification(&self) -> LinkNotification {
        LinkNotification::Never
    }

    fn counters(&mut self) -> PortCounters {
        self.counters.iter().map(|queue| queue.read()).sum()
    }
}
