//! Ports that come to a running bridge and go from it.
//!
//! A port that comes is at its worker before the tables know of it, and one that goes is unknown to
//! all workers before its place is given up. So no frame meets the place of another port, and what
//! was to leave by a port that is gone is dropped and counted. One change at a time: the caller
//! sees to it. Only ports that forward already enter the kernel tier beside it, and none of these
//! is taken away meanwhile: the tier's program would come to a device that is the host's by then.

use std::sync::Arc;

use futures_util::future::try_join_all;
use netdev::{Port, PortQueue, TierQueuesBeside};
use openflow::PortNo;
use openflow::port::{PortReason, PortStatus};
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;

use super::barriers::BarrierWaiter;
use super::{Bridge, BridgePort, BridgeQueues, ShardLink};
use crate::worker::{
    OpeningOfPort, OutsidePort, PortLocation, PortMap, Shard, ShardCommand, TierPlan, TierStep,
    WorkerPort, take_over,
};

/// Ports of a shard that enter the kernel tier at one time: most of it is waiting for the kernel.
const ENTERING_AT_ONCE: usize = 4;

/// A worker has ended, and so will the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WorkerGone;

/// A port as people are shown it.
#[derive(Clone, Debug)]
pub(crate) struct PortView {
    pub(crate) port: BridgePort,
    /// The places of its queues.
    pub(crate) places: Vec<PortLocation>,
}

impl ShardLink {
    /// Has a port of the shard enter the kernel tier.
    async fn bring_in(&self, port: OutsidePort) -> Result<(), WorkerGone> {
        let step = spawn_blocking(move || port.enter()).await.map_err(|_| WorkerGone)?;
        if let Some(beside) = self.take_tier_step(step).await? {
            let step = spawn_blocking(move || take_over(beside)).await;
            self.take_tier_step(step.map_err(|_| WorkerGone)?).await?;
        }
        Ok(())
    }

    /// Has the shard take a port's step into the kernel tier; what the next one needs.
    async fn take_tier_step(
        &self,
        step: TierStep,
    ) -> Result<Option<(OpeningOfPort, TierQueuesBeside)>, WorkerGone> {
        let (done, is_done) = oneshot::channel();
        self.queue.send(&mut vec![ShardCommand::EnterTier(Box::new(step), done)]);
        is_done.await.map_err(|_| WorkerGone)
    }
}

impl Bridge {
    /// Whether ports are to enter the kernel tier by [`Bridge::bring_in`].
    pub(crate) fn has_ports_outside_tier(&self) -> bool {
        self.has_outside.get()
    }

    /// The speed of a port's device, where there is such a port.
    pub(crate) fn speed_of(&self, number: PortNo) -> Option<u64> {
        let ports = self.ports.borrow();
        ports.iter().find(|port| port.number == number).map(|port| port.info.speed_bps)
    }

    /// All ports with their places.
    pub(crate) fn port_views(&self) -> Vec<PortView> {
        let map = self.map.borrow();
        let view =
            |port: &BridgePort| PortView { port: port.clone(), places: map.places(port.number) };
        self.ports.borrow().iter().map(view).collect()
    }

    /// Adds an open port with its queues, if it has any: the port status for controllers.
    ///
    /// # Errors
    /// [`WorkerGone`].
    pub(crate) async fn add_port(
        &self,
        mut port: WorkerPort,
        queues: Option<BridgeQueues>,
    ) -> Result<Option<PortStatus>, WorkerGone> {
        let number = port.number;
        let places = self.map.borrow().place(self.links.len(), port.queue_count());
        let (place, further) = places.split_first().ok_or(WorkerGone)?;
        let is_shaped = port.shaper.is_some();
        let is_patch = port.spec.kind().word == "patch";
        let enters_later = port.enters_later();
        if let Some(plan) = self.tier_plan(enters_later).await? {
            let entry = plan.entry(places.iter().map(|place| place.worker).collect());
            let entered = spawn_blocking(move || {
                port.enter_tier(&entry);
                port
            });
            port = entered.await.map_err(|_| WorkerGone)?;
        }
        {
            // What the worker reports from now on is not lost.
            let mut ports = self.ports.borrow_mut();
            let at = ports.partition_point(|other| other.number < number);
            ports.insert(at, BridgePort::of(&port));
        }
        let is_device_in_tier = port.is_in_tier() && !is_patch;
        for (nth, at) in (1..).zip(further) {
            self.put(*at, port.further_queue((nth, places.len()), *place)).await?;
        }
        port.set_further(further.to_vec());
        self.put(*place, port).await?;
        if enters_later {
            self.has_outside.set(true);
        }
        if is_device_in_tier {
            self.bring_in().await?;
        }
        if !enters_later {
            self.ask(Shard::refresh_tier_outputs).await.ok_or(WorkerGone)?;
        }
        self.queues.borrow_mut().extend(queues);
        let status = self.announce(number);
        self.stage_ops();
        let map = self.map.borrow().with(number, &places);
        let from_home = if is_shaped { map.sent_from_home(number) } else { None };
        self.set_map(from_home.unwrap_or(map));
        self.barrier().await;
        Ok(status)
    }

    /// The plan by which a port enters the kernel tier now. One that enters later does not wait for
    /// the workers, which have it.
    async fn tier_plan(&self, enters_later: bool) -> Result<Option<TierPlan>, WorkerGone> {
        if enters_later {
            return Ok(None);
        }
        let plans = self.ask(|shard| shard.tier_plan().cloned()).await.ok_or(WorkerGone)?;
        Ok(plans.into_iter().flatten().next())
    }

    /// Has ports enter the kernel tier that forward already. Patch ports come after the devices
    /// without which they do not.
    ///
    /// # Errors
    /// [`WorkerGone`].
    pub(crate) async fn bring_in(&self) -> Result<(), WorkerGone> {
        self.has_outside.set(false);
        for are_patches in [false, true] {
            while self.bring_some_in(are_patches).await? {}
        }
        self.ask(Shard::refresh_tier_outputs).await.map(drop).ok_or(WorkerGone)
    }

    /// The same for some of them; whether there were any.
    async fn bring_some_in(&self, are_patches: bool) -> Result<bool, WorkerGone> {
        let _none_goes = self.entering.lock().await;
        let list = move |shard: &mut Shard| shard.ports_outside_tier(are_patches, ENTERING_AT_ONCE);
        let outside = self.ask(list).await.ok_or(WorkerGone)?;
        let mut entering = Vec::new();
        for (link, ports) in self.links.iter().zip(outside) {
            entering.extend(ports.into_iter().map(|port| link.bring_in(port)));
        }
        Ok(!try_join_all(entering).await?.is_empty())
    }

    /// Puts a port, or a further queue of one, at its place.
    async fn put(&self, place: PortLocation, port: WorkerPort) -> Result<(), WorkerGone> {
        let link = self.links.get(place.worker).ok_or(WorkerGone)?;
        let (done, is_done) = oneshot::channel();
        link.queue.send(&mut vec![ShardCommand::AddPort(place.index, Box::new(port), done)]);
        is_done.await.map_err(|_| WorkerGone)
    }

    /// Gives up the places of a port, its home first, which hands out no queue then. Returns what
    /// is open of it, with as many queues as were found.
    async fn take(&self, places: &[PortLocation]) -> Result<Option<Port>, WorkerGone> {
        let mut device: Option<Port> = None;
        for place in places {
            let link = self.links.get(place.worker).ok_or(WorkerGone)?;
            let (done, is_done) = oneshot::channel();
            link.queue.send(&mut vec![ShardCommand::RemovePort(place.index, done)]);
            let Some(found) = is_done.await.map_err(|_| WorkerGone)? else { continue };
            match &mut device {
                Some(device) => {
                    let Port { rx, tx, more, .. } = found;
                    device.more.push(PortQueue { rx, tx });
                    device.more.extend(more);
                }
                None => device = Some(found),
            }
        }
        Ok(device)
    }

    fn announce(&self, number: PortNo) -> Option<PortStatus> {
        let mut ports = self.ports.borrow_mut();
        let port = ports.iter_mut().find(|port| port.number == number)?;
        port.is_announced = true;
        let desc = port.desc();
        let now = self.clock.now();
        let reason = self.with_control(|control| control.port_set(desc.clone(), now))??;
        Some(PortStatus { reason, desc })
    }

    /// Takes a port out of the tables at once, and gives up its place when no worker knows it any
    /// more; `None` where there is no such port. The device is to be closed by the caller.
    ///
    /// # Errors
    /// [`WorkerGone`].
    pub(crate) async fn remove_port(
        &self,
        number: PortNo,
        publish: impl FnOnce(PortStatus),
    ) -> Result<Option<Port>, WorkerGone> {
        let places = self.map.borrow().places(number);
        if places.is_empty() {
            return Ok(None);
        }
        self.ports.borrow_mut().retain(|port| port.number != number);
        let map = self.map.borrow().without(number);
        self.set_map(map);
        let removed = self.with_control(|control| control.port_remove(number)).flatten();
        if let Some(desc) = removed {
            publish(PortStatus { reason: PortReason::Delete, desc });
        }
        self.everywhere().await;
        self.queues.borrow_mut().retain(|held| held.port != number);
        let _none_enters = self.entering.lock().await;
        self.take(&places).await
    }

    /// Takes all ports away at once, of a bridge that goes: the devices are to be closed by the
    /// caller. Controllers get no message.
    ///
    /// # Errors
    /// [`WorkerGone`].
    pub(crate) async fn remove_all_ports(&self) -> Result<Vec<Port>, WorkerGone> {
        let before = Arc::clone(&self.map.borrow());
        let numbers: Vec<PortNo> = self.ports.take().iter().map(|port| port.number).collect();
        self.set_map(PortMap::default());
        self.everywhere().await;
        let _none_enters = self.entering.lock().await;
        let mut devices = Vec::new();
        for number in numbers {
            devices.extend(self.take(&before.places(number)).await?);
        }
        Ok(devices)
    }

    pub(super) fn set_map(&self, map: PortMap) {
        let map = Arc::new(map);
        for (worker, link) in self.links.iter().enumerate() {
            link.staged.borrow_mut().push(ShardCommand::SetMap(map.of_worker(worker)));
        }
        self.map.replace(map);
    }

    /// Waits until every worker has carried out all earlier commands, and has sent the frames that
    /// others had handed over to it before they did.
    async fn everywhere(&self) {
        let (done, is_done) = oneshot::channel();
        self.stage_ops();
        let barrier = self.add_barrier(self.links.len() > 1, BarrierWaiter::Task(done));
        self.stage_for_all(|| ShardCommand::Barrier(barrier));
        self.links.iter().for_each(ShardLink::send);
        // Where a worker has ended the switch ends.
        let _ = is_done.await;
    }
}
