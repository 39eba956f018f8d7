//! From what a kernel port received to frames of a wire: the part that `af_packet` and `tap` share.
//!
//! A frame comes in with its virtio-net header; out come one frame or, for a GSO frame, its
//! segments, cut one at a time so that the caller's `max` holds. What cannot be made right is
//! counted in `rx_errors` and goes no further.

use packet::{Batch, PacketBuf};

use crate::offload::{Segmenter, VNET_LEN, VnetHeader, complete};
use crate::port::PortCounters;

/// The longest frame that is taken: a GSO frame of 64 KiB with its headers.
const FRAME_MAX: usize = 66 * 1_024;

/// A VLAN tag that the kernel took out of the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VlanTag {
    pub(crate) tpid: u16,
    pub(crate) tci: u16,
}

/// The place where received frames are made right.
#[derive(Debug)]
pub(crate) struct Intake {
    /// A virtio-net header and a frame.
    scratch: Vec<u8>,
    cutting: Option<Cutting>,
}

/// A GSO frame in `scratch` that is being cut.
#[derive(Debug, Clone, Copy)]
struct Cutting {
    segmenter: Segmenter,
    end: usize,
    vlan: Option<VlanTag>,
}

impl Intake {
    pub(crate) fn new() -> Self {
        Self { scratch: vec![0; VNET_LEN + FRAME_MAX], cutting: None }
    }

    /// Where to put a virtio-net header and the frame behind it, before [`Intake::accept`].
    pub(crate) fn buffer(&mut self) -> &mut [u8] {
        debug_assert!(self.cutting.is_none(), "the buffer is in use");
        &mut self.scratch
    }

    /// Takes header and frame, together `end` bytes, from the buffer: into the batch, or to be cut.
    pub(crate) fn accept(
        &mut self,
        end: usize,
        vlan: Option<VlanTag>,
        batch: &mut Batch,
        counters: &mut PortCounters,
    ) {
        let filled = self.scratch.get(..end).and_then(<[u8]>::split_first_chunk);
        let Some((header, frame)) = filled else {
            counters.rx_errors += 1;
            return;
        };
        let vnet = VnetHeader::read(header);
        if !vnet.is_gso() {
            let mut copy = batch.take_spare();
            copy.assign(frame);
            deliver(copy, &vnet, vlan, batch, counters);
            return;
        }
        match Segmenter::new(frame, &vnet) {
            Ok(segmenter) => self.cutting = Some(Cutting { segmenter, end, vlan }),
            Err(_) => counters.rx_errors += 1,
        }
    }

    /// Hands over the next segment of the frame that is being cut; false when there is none.
    pub(crate) fn cut(&mut self, batch: &mut Batch, counters: &mut PortCounters) -> bool {
        let Some(cutting) = &mut self.cutting else { return false };
        let whole = &self.scratch[VNET_LEN..cutting.end];
        let mut frame = batch.take_spare();
        cutting.segmenter.cut(whole, &mut frame);
        let vlan = cutting.vlan;
        if cutting.segmenter.is_done(whole) {
            self.cutting = None;
        }
        push(frame, vlan, batch, counters);
        true
    }
}

/// Completes a frame that is not GSO and hands it over.
pub(crate) fn deliver(
    mut frame: PacketBuf,
    vnet: &VnetHeader,
    vlan: Option<VlanTag>,
    batch: &mut Batch,
    counters: &mut PortCounters,
) {
    if complete(frame.bytes_mut(), vnet).is_err() {
        counters.rx_errors += 1;
        batch.give_spare(frame);
        return;
    }
    push(frame, vlan, batch, counters);
}

fn push(
    mut frame: PacketBuf,
    vlan: Option<VlanTag>,
    batch: &mut Batch,
    counters: &mut PortCounters,
) {
    if let Some(VlanTag { tpid, tci }) = vlan {
        frame.insert(12, 4);
        let tag = tpid.to_be_bytes().into_iter().chain(tci.to_be_bytes());
        for (to, from) in frame.bytes_mut().iter_mut().skip(12).zip(tag) {
            *to = from;
        }
    }
    counters.count_rx(frame.len());
    batch.push(frame);
}
