//! Ports that come to a worker and go from it while it forwards.
//!
//! Only what is new or gone is touched: other ports keep their places, devices and counts. A port
//! comes open and goes open, since opening and closing take milliseconds.

use std::time::Instant;

use netdev::{LinkMonitor, LinkNotification, Port, TierQueuesBeside};
use tokio::sync::oneshot;

use super::queue::{HandedQueue, Opening};
use super::run::MONITOR;
use super::{OpeningOfPort, Shard, TierStep, Worker, WorkerPort};

/// The caller that waits for a step into the kernel tier.
pub(crate) type TierStepTaken = oneshot::Sender<Option<(OpeningOfPort, TierQueuesBeside)>>;

/// A change of a shard's ports: their indices there, and the caller that waits.
pub(super) enum PortChange {
    /// A port comes.
    Add(usize, Box<WorkerPort>, oneshot::Sender<()>),
    /// A port takes a step into the kernel tier; the caller is to take the next one.
    EnterTier(Box<TierStep>, TierStepTaken),
    /// The shard has another map. A port that receives from now on has to be polled before its
    /// descriptor can wake the worker.
    Poll,
    /// A port goes; the caller closes its device.
    Remove(usize, oneshot::Sender<Option<Port>>),
    /// A further queue gets a queue of this device, or gives it back.
    SetQueue(usize, Opening, Option<Box<HandedQueue>>),
    /// A further queue of a port has found this device gone.
    QueueGone(usize, Opening),
}

impl Worker {
    /// Carries out the changes of a shard's ports.
    pub(super) fn change_ports(&mut self, shard: usize) {
        let take = |shard: &mut Shard| std::mem::take(&mut shard.port_changes);
        for change in self.shards.get_mut(shard).map(take).unwrap_or_default() {
            match change {
                PortChange::Add(index, port, done) => {
                    self.add_port(shard, index, *port);
                    // The caller has gone: then the switch ends.
                    let _ = done.send(());
                }
                PortChange::EnterTier(step, done) => {
                    // The caller has gone: then the switch ends.
                    let _ = done.send(self.enter_tier(shard, *step));
                }
                PortChange::Poll => self.poll_shard(shard),
                PortChange::Remove(index, done) => {
                    if let Err(Some(device)) = done.send(self.remove_port(shard, index)) {
                        self.devices.close(device);
                    }
                }
                PortChange::SetQueue(index, opening, queue) => {
                    self.set_queue((shard, index), opening, queue.map(|queue| *queue));
                }
                PortChange::QueueGone(index, opening) => self.queue_gone((shard, index), opening),
            }
        }
        let ports = self.shards.iter().map(|(_, shard)| shard.ports.all().len()).sum();
        if self.poll_set.set_count(ports) {
            self.poll_all();
        }
    }

    fn add_port(&mut self, shard: usize, index: usize, mut port: WorkerPort) {
        let notification = port.link_notification();
        self.watch_devices(notification);
        let Some(found) = self.shards.get_mut(shard) else { return };
        port.has_queues = port.shaper.is_some();
        found.egress.add(index, port.shaper.take());
        found.ports.put(index, port);
        found.port_reopened(index);
        found.ports.note_fault(index);
        self.has_tier |= found.has_tier();
        if let Some(port) = found.ports.all().get(index) {
            self.maintenance.register((shard, index), port, Instant::now());
        }
        self.start_polling(shard, index);
        self.hand_out((shard, index));
    }

    /// A port takes a step into the kernel tier, unless it has another device by now. What the
    /// next step of this device needs.
    fn enter_tier(
        &mut self,
        shard: usize,
        (opening, step): TierStep,
    ) -> Option<(OpeningOfPort, TierQueuesBeside)> {
        let index = opening.index;
        let found = self.shards.get_mut(shard)?;
        let port = found.ports.all_mut().get_mut(index)?;
        if port.opening_at(index) != opening {
            return None;
        }
        let beside = port.step_into_tier(step, &self.watch);
        if beside.is_none() {
            found.port_reopened(index);
            if let Some(port) = found.ports.all().get(index) {
                // It has a far end to be looked at, perhaps, or an address of the host by now.
                self.maintenance.register((shard, index), port, Instant::now());
            }
        }
        found.ports.note_fault(index);
        self.has_tier |= found.has_tier();
        self.start_polling(shard, index);
        self.update_lists(shard);
        Some((opening, beside?))
    }

    fn remove_port(&mut self, shard: usize, index: usize) -> Option<Port> {
        self.poll_set.remove(shard, index);
        self.maintenance.unregister((shard, index));
        let found = self.shards.get_mut(shard)?;
        found.egress.remove(index, self.buffers.parts_mut().1);
        let mut port = found.ports.take(index)?;
        found.leave_tier(&port);
        port.take_watched(&self.watch)
    }

    /// Has the kernel notify of changes of devices, from the first such port on.
    fn watch_devices(&mut self, notification: LinkNotification) {
        let LinkNotification::Netlink(_) = notification else { return };
        if self.maintenance.has_monitor() {
            return;
        }
        let text = "the kernel reports no devices; ports are asked instead";
        let monitor = match LinkMonitor::open() {
            Ok(monitor) => monitor,
            Err(error) => return tracing::warn!(%error, "{text}"),
        };
        match self.watch.add(monitor.fd(), MONITOR) {
            Ok(()) => self.maintenance.set_monitor(monitor),
            Err(error) => tracing::warn!(%error, "{text}"),
        }
    }

    /// Polls all ports, those too that were suspended.
    fn poll_all(&mut self) {
        for shard in 0..self.shards.end() {
            self.poll_shard(shard);
        }
    }

    fn poll_shard(&mut self, shard: usize) {
        for port in 0..self.shards.get(shard).map_or(0, |shard| shard.ports.all().end()) {
            self.start_polling(shard, port);
        }
    }
}
