//! `patch`: a port that is one end of a wire to another bridge of this process ([`PatchEnd`]).

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use packet::{Batch, PacketBuf, Pool};

use crate::counters::{HandoverLosses, PortCounters};
use crate::error::PortError;
use crate::patch_end::PatchEnd;
use crate::port::{Port, PortDevice, RxQueue, TxQueue};
use crate::port_info::PortInfo;
use crate::spec::{KindRow, PortSpec, by_name, no_file, option};
use crate::tier_port::{TierPort, TierWay};

/// The row in the table of kinds.
pub const ROW: KindRow = KindRow {
    word: "patch",
    name_hint: "NAME",
    help: "a wire to the patch port of another bridge of this process",
    options: &[option("peer", "NAME", "the patch port at the other end, whose peer is this one")],
    exclusive: by_name,
    file_use: no_file,
    rights: &[],
    open,
};

fn open(spec: &PortSpec) -> Result<Port, PortError> {
    let peer = spec.option("peer").filter(|peer| !peer.is_empty() && *peer != spec.name());
    let Some(peer) = peer else {
        let allowed = "the name of the patch port at the other end, which is another one";
        return Err(spec.bad_value("peer", allowed).into());
    };
    let what = || format!("patch:{}", spec.name());
    let end = PatchEnd::open(spec.name(), peer);
    let end = end.map_err(|source| PortError::Io { what: what(), source })?;
    let end = end.ok_or_else(|| PortError::InUse(what()))?;
    let (rx, tx) = (PatchRx(Arc::clone(&end)), PatchTx(Arc::clone(&end)));
    Ok(Port::new(PatchDevice { end, losses: None }, rx, tx))
}

/// The receive queue.
#[derive(Debug)]
struct PatchRx(Arc<PatchEnd>);

impl RxQueue for PatchRx {
    fn rx(&mut self, batch: &mut Batch, max: usize) -> Result<usize, PortError> {
        // No more at once than have passed the same number of patch ports.
        Ok(self.0.take(batch, max))
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.0.fd())
    }

    fn keep_offloads(&mut self) -> bool {
        self.0.keep_offloads();
        true
    }
}

/// The transmit queue.
#[derive(Debug)]
struct PatchTx(Arc<PatchEnd>);

impl TxQueue for PatchTx {
    fn tx(&mut self, frames: &[PacketBuf]) -> Result<usize, PortError> {
        let mut copies = frames.to_vec();
        self.0.send(&mut copies, 0, None, &mut Pool::default());
        Ok(frames.len() - copies.len())
    }

    fn tx_batch(
        &mut self,
        frames: &mut Vec<PacketBuf>,
        pool: &mut Pool,
    ) -> Result<usize, PortError> {
        let all = frames.len();
        self.0.send(frames, 0, None, pool);
        Ok(all - frames.len())
    }

    fn carries_offloads(&self) -> bool {
        self.0.carries_offloads()
    }
}

/// The device handle.
#[derive(Debug)]
struct PatchDevice {
    end: Arc<PatchEnd>,
    /// Those on the way from the kernel tier's program.
    losses: Option<Box<dyn HandoverLosses>>,
}

impl Drop for PatchDevice {
    fn drop(&mut self) {
        self.end.close();
    }
}

impl PortDevice for PatchDevice {
    fn info(&mut self) -> PortInfo {
        let name = self.end.name();
        let info = PortInfo::without_device(ROW.word, name, &format!("patch {name}"));
        match self.end.joined() {
            Ok(_) => info,
            Err(note) => PortInfo { link_up: false, notes: vec![note], ..info },
        }
    }

    fn counters(&mut self) -> PortCounters {
        let mut counters = self.end.counters();
        if let Some(losses) = &mut self.losses {
            counters.rx_drops += losses.not_received();
        }
        counters
    }

    fn patch(&self) -> Option<Arc<PatchEnd>> {
        Some(Arc::clone(&self.end))
    }

    fn tier_port(&self) -> Option<TierPort> {
        let counters = self.end.tier_counters();
        Some(TierPort { way: TierWay::Patch(Arc::clone(&self.end)), counters })
    }

    fn enter_tier(&mut self, losses: Box<dyn HandoverLosses>) {
        self.losses = Some(losses);
    }
}
