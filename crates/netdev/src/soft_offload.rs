//! Offloads in software: the receiving part that `af_packet` and `tap` share.
//!
//! Input is a frame with its virtio-net header; output is one frame as a wire carries it or, for a
//! GSO frame, its segments, one at a time so that the caller's `max` holds. A receiver that can
//! carry what is left to do beside the frame ([`packet::Offload`]) gets the frame as it came. A
//! frame that cannot be completed is counted in `rx_errors` and dropped.

use packet::offload::Segmenter;
use packet::{Batch, PacketBuf};

use crate::counters::Counted;
use crate::offload::{VNET_LEN, VnetHeader, complete};

/// The longest frame that is taken: a GSO frame of 64 KiB with its headers.
const FRAME_MAX: usize = 66 * 1_024;

/// A VLAN tag that the kernel took out of the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VlanTag {
    pub(crate) tpid: u16,
    pub(crate) tci: u16,
}

/// Completes and segments received frames.
#[derive(Debug)]
pub(crate) struct SoftOffload {
    /// A virtio-net header and a frame.
    scratch: PacketBuf,
    segmenting: Option<Segmenting>,
    /// Whether frames keep what is left to do to them, where it can be noted.
    keeps: bool,
}

/// A GSO frame in `scratch` that is being segmented.
#[derive(Debug, Clone, Copy)]
struct Segmenting {
    segmenter: Segmenter,
    end: usize,
    vlan: Option<VlanTag>,
}

impl SoftOffload {
    pub(crate) fn new() -> Self {
        Self { scratch: PacketBuf::default(), segmenting: None, keeps: false }
    }

    /// From now on frames keep what is left to do to them.
    pub(crate) fn keep(&mut self) {
        self.keeps = true;
    }

    /// The buffer for a virtio-net header and its frame, to be filled before
    /// [`SoftOffload::process`].
    pub(crate) fn buffer(&mut self) -> &mut [u8] {
        debug_assert!(self.segmenting.is_none(), "the buffer is in use");
        self.scratch.prepare(VNET_LEN + FRAME_MAX)
    }

    /// Processes the header and frame in the buffer, together `end` bytes: appends the frame to the
    /// batch, or begins to segment it.
    pub(crate) fn process(
        &mut self,
        end: usize,
        vlan: Option<VlanTag>,
        batch: &mut Batch,
        counted: &mut Counted,
    ) {
        let filled = self.scratch.bytes().get(..end).and_then(<[u8]>::split_first_chunk);
        let Some((header, frame)) = filled else {
            counted.errors += 1;
            return;
        };
        let vnet = VnetHeader::read(header);
        if !vnet.is_gso() {
            let mut copy = batch.take_spare();
            copy.assign(frame);
            self.complete_into(copy, &vnet, vlan, batch, counted);
            return;
        }
        if self.keeps
            && let Some(offload) = vnet.offload(frame)
        {
            let mut whole = std::mem::replace(&mut self.scratch, batch.take_large());
            whole.truncate(end);
            whole.remove(0, VNET_LEN);
            if whole.set_offload(Some(offload)) {
                push(whole, vlan, batch, counted);
            } else {
                counted.errors += 1;
            }
            return;
        }
        match vnet.segmenter(frame) {
            Ok(segmenter) => self.segmenting = Some(Segmenting { segmenter, end, vlan }),
            Err(_) => counted.errors += 1,
        }
    }

    /// Appends the next segment of the current GSO frame; false when there is none.
    pub(crate) fn next_segment(&mut self, batch: &mut Batch, counted: &mut Counted) -> bool {
        let Some(segmenting) = &mut self.segmenting else { return false };
        let whole = &self.scratch.bytes()[VNET_LEN..segmenting.end];
        let mut frame = batch.take_spare();
        segmenting.segmenter.cut(whole, &mut frame);
        let vlan = segmenting.vlan;
        if segmenting.segmenter.is_done(whole) {
            self.segmenting = None;
        }
        push(frame, vlan, batch, counted);
        true
    }

    /// Completes a frame that is not GSO, unless it keeps what is left to do, and appends it to the
    /// batch.
    pub(crate) fn complete_into(
        &self,
        mut frame: PacketBuf,
        vnet: &VnetHeader,
        vlan: Option<VlanTag>,
        batch: &mut Batch,
        counted: &mut Counted,
    ) {
        let offload = if self.keeps { vnet.offload(frame.bytes()) } else { None };
        let is_kept = offload.is_some() && frame.set_offload(offload);
        if !is_kept && complete(frame.bytes_mut(), vnet).is_err() {
            counted.errors += 1;
            batch.give_spare(frame);
            return;
        }
        push(frame, vlan, batch, counted);
    }
}

fn push(mut frame: PacketBuf, vlan: Option<VlanTag>, batch: &mut Batch, counted: &mut Counted) {
    if let Some(VlanTag { tpid, tci }) = vlan {
        frame.insert(12, 4);
        let tag = tpid.to_be_bytes().into_iter().chain(tci.to_be_bytes());
        for (to, from) in frame.bytes_mut().iter_mut().skip(12).zip(tag) {
            *to = from;
        }
    }
    counted.on_wire(&frame);
    batch.push(frame);
}
