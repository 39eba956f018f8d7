//! The queues of a port on several workers.
//!
//! The home of a port has the device and its first queue: it opens the device, reports of it and
//! counts for all queues. Each further queue is a port of another shard with the same number, which
//! receives and sends by that queue and does nothing else. They send commands to their shards:
//! the home hands out the queues of a device that it has opened, and takes them back when that is
//! gone; a further queue that finds the device gone reports it. So no lock and no shared state
//! stands between two queues.

use std::time::Instant;

use netdev::{LinkNotification, Port, PortCounters, PortDevice, PortInfo, PortQueue};

use super::port_map::PortLocation;
use super::{PortSerial, ShardCommand, Worker, WorkerPort};

/// The part of a port that a worker has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum QueueRole {
    /// It has the device; the places of the further queues, in their order.
    Home(Vec<PortLocation>),
    /// A further queue: its number, from 1, the number of queues, and the place of the home.
    Further(usize, usize, PortLocation),
}

/// The device that a queue is of: one opening of a port's number, and the count of its devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Opening {
    pub(super) serial: PortSerial,
    pub(super) devices: u64,
}

/// A queue that the home of a port hands out.
pub(crate) struct HandedQueue {
    pub(super) queue: PortQueue,
    /// Whether the kernel tier decides about its frames by the tables of the shard that gets it.
    pub(super) is_in_tier: bool,
}

/// The device handle of a further queue: the home's counts for all queues.
struct QueueHandle(PortInfo);

impl PortDevice for QueueHandle {
    fn info(&mut self) -> PortInfo {
        self.0.clone()
    }

    fn link_notification(&self) -> LinkNotification {
        LinkNotification::Never
    }

    fn counters(&mut self) -> PortCounters {
        PortCounters::default()
    }
}

/// A further queue as a port by itself.
pub(super) fn port_of_queue(queue: PortQueue, info: PortInfo) -> Port {
    let PortQueue { rx, tx } = queue;
    Port { device: Box::new(QueueHandle(info)), rx, tx, more: Vec::new(), claim: None, place: None }
}

impl Worker {
    /// Hands out the further queues of a port's device, which was just opened.
    pub(super) fn hand_out(&mut self, (shard, index): (usize, usize)) {
        let Some(shard) = self.shards.get_mut(shard) else { return };
        let Some(port) = shard.ports.all_mut().get_mut(index) else { return };
        let is_in_tier = port.is_in_tier();
        let queues = port.device_mut().map(|device| std::mem::take(&mut device.more));
        let handed = |queue| Some(Box::new(HandedQueue { queue, is_in_tier }));
        let queues = queues.unwrap_or_default().into_iter().map(handed);
        let opening = port.opening();
        debug_assert_eq!(queues.len(), port.further().len(), "a device has what its spec says");
        for (place, queue) in port.further().iter().zip(queues) {
            let command = ShardCommand::SetQueue(place.index, opening, queue);
            shard.egress.command(place.worker, command);
        }
    }

    /// A port has lost its device: the home takes the further queues back, and a further queue
    /// reports to the home.
    pub(super) fn publish_loss(&self, (shard, index): (usize, usize)) {
        let Some(shard) = self.shards.get(shard) else { return };
        let Some(port) = shard.ports.all().get(index) else { return };
        let opening = port.opening();
        match port.role() {
            QueueRole::Home(further) => {
                for place in further {
                    let command = ShardCommand::SetQueue(place.index, opening, None);
                    shard.egress.command(place.worker, command);
                }
            }
            QueueRole::Further(.., home) => {
                let command = ShardCommand::QueueGone(home.index, opening);
                shard.egress.command(home.worker, command);
            }
        }
    }

    /// The home has handed out a further queue, or takes it back.
    pub(super) fn set_queue(
        &mut self,
        (shard, index): (usize, usize),
        opening: Opening,
        queue: Option<HandedQueue>,
    ) {
        let found = self.shards.get_mut(shard).map(|shard| &mut shard.ports);
        let found = found.and_then(|ports| ports.all_mut().get_mut(index));
        let found = found.filter(|found| found.is_further_of(opening.serial));
        match (found, queue) {
            (Some(found), Some(queue)) => {
                if let Some(earlier) = found.take_queue(queue, opening, &self.watch) {
                    self.devices.close(earlier);
                }
                if let Some(shard) = self.shards.get_mut(shard) {
                    shard.port_reopened(index);
                    self.has_tier |= shard.has_tier();
                }
                self.start_polling(shard, index);
            }
            (Some(found), None) => {
                found.lose(Instant::now());
                self.note_fault((shard, index));
            }
            // The port was removed meanwhile.
            (None, _) => {}
        }
    }

    /// A further queue of a port has found the device gone.
    pub(super) fn queue_gone(&mut self, (shard, index): (usize, usize), opening: Opening) {
        let found = self.shards.get_mut(shard).map(|shard| &mut shard.ports);
        let found = found.and_then(|ports| ports.all_mut().get_mut(index));
        let Some(found) = found.filter(|found| found.opening() == opening) else { return };
        if found.device().is_some() {
            found.lose(Instant::now());
            self.note_fault((shard, index));
        }
    }

    fn note_fault(&mut self, (shard, index): (usize, usize)) {
        if let Some(found) = self.shards.get_mut(shard) {
            found.ports.note_fault(index);
        }
        self.update_lists(shard);
    }
}

impl WorkerPort {
    /// The number of queues of the open device that were not handed out, with the port's own.
    pub(crate) fn queue_count(&self) -> usize {
        1 + self.device().map_or(0, |device| device.more.len())
    }
}
