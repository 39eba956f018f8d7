//! `null`: receives nothing and takes everything. It measures what a worker costs without I/O, and
//! is the sink of generators.

use std::sync::Arc;

use packet::PacketBuf;

use crate::counters::{Counted, PortCounters, PortQueueCounters, queue_counters};
use crate::error::PortError;
use crate::port::{Port, PortDevice, SilentRx, TxQueue};
use crate::port_info::{LinkNotification, PortInfo};
use crate::spec::{KindRow, PortSpec, QUEUES, no_file, option, shared};

/// The row in the table of kinds.
pub const ROW: KindRow = KindRow {
    word: "null",
    name_hint: "",
    help: "receives nothing and takes everything",
    options: &[option(QUEUES, "1", "queues, each for a thread of its own; 1 to 64")],
    exclusive: shared,
    file_use: no_file,
    rights: &[],
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
        let info = PortInfo::without_device(ROW.word, &self.name, &self.name);
        PortInfo { receives: false, ..info }
    }

    fn link_notification(&self) -> LinkNotification {
        LinkNotification::Never
    }

    fn counters(&mut self) -> PortCounters {
        self.counters.iter().map(|queue| queue.read()).sum()
    }
}
