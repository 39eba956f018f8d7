//! The frames of a stream: templates, one for each size, and the fields that differ from frame to
//! frame.
//!
//! A template is made once, with right checksums. A frame is a copy of its template, or the buffer
//! that held one already, into which the modified fields, the checksums over them and the probe are
//! written. A checksum is the template's sum without the modified fields, plus these: nothing of
//! the frame is read. A probe has the same sum whatever it says ([`crate::probe`]), so it costs no
//! checksum. Nothing is allocated, and no call is virtual.

mod modifier;

use packet::{Block, PacketBuf};

use crate::probe::{PROBE_LEN, ProbeHeader, StreamId};
use crate::profile::{FCS_LEN, ProfileError, SizeSequence, StreamSpec};
use crate::stack::{ChecksumPlan, HeaderStack, PlanKind};
use crate::transmit::BURST_MAX;
use modifier::{Modifiers, SUMS_MAX};

/// Bytes of the pieces in which a template is copied.
const BLOCK: usize = size_of::<Block>();

/// One frame that others are made of.
#[derive(Debug)]
struct Template {
    /// Its number among all templates of the port, by which a buffer knows what it holds.
    tag: u32,
    blocks: Box<[Block]>,
    len: usize,
    /// Whether it has room for a probe behind its headers.
    has_probe: bool,
    /// Sums without the modified fields.
    sums: [u64; SUMS_MAX],
}

/// What was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MadeFrame {
    /// Length in bytes, FCS included.
    pub(crate) size: u32,
    /// Whether it has a probe.
    pub(crate) has_probe: bool,
}

/// The frames of one stream, one after the other.
#[derive(Debug)]
pub(crate) struct FrameMaker {
    templates: Vec<Template>,
    order: TemplateOrder,
    modifiers: Modifiers,
    /// Both as they are before each start.
    initial: (TemplateOrder, Modifiers),
    /// Checksums that cover modified fields, in the order of [`Template::sums`].
    checksums: Vec<ChecksumPlan>,
    /// CRC32c over the whole frame, which is computed anew.
    crc: Option<ChecksumPlan>,
    stream: StreamId,
    sequence: u64,
    has_probes: bool,
    /// The sums of the frames of a run that is begun.
    sums: Vec<[u64; SUMS_MAX]>,
}

/// Which template is next.
#[derive(Clone, Debug)]
enum TemplateOrder {
    Sizes(SizeSequence),
    /// All in turn, as in a file.
    InTurn {
        next: usize,
        count: usize,
    },
}

impl TemplateOrder {
    #[inline]
    fn next_index(&mut self, templates: usize) -> usize {
        match self {
            Self::Sizes(_) if templates == 1 => 0,
            Self::Sizes(sizes) => sizes.next_index(),
            Self::InTurn { next, count } => {
                let index = *next;
                *next = if index + 1 == *count { 0 } else { index + 1 };
                index
            }
        }
    }
}

impl Template {
    fn new(tag: u32, frame: &[u8]) -> Self {
        let mut blocks = vec![[0; BLOCK]; frame.len().div_ceil(BLOCK)].into_boxed_slice();
        blocks.as_flattened_mut()[..frame.len()].copy_from_slice(frame);
        Self { tag, blocks, len: frame.len(), has_probe: false, sums: [0; SUMS_MAX] }
    }

    /// Bytes that the MTU does not count: the Ethernet header, and a VLAN tag where there is one
    /// (Linux lets the frame be longer for the first 802.1Q tag only).
    fn header(&self) -> u32 {
        let is_tagged = self.blocks.as_flattened().get(12..14) == Some(&[0x81, 0x00][..]);
        if is_tagged { 18 } else { 14 }
    }

    /// Length with FCS.
    fn size(&self) -> u32 {
        self.len as u32 + FCS_LEN
    }
}

impl FrameMaker {
    /// The frames of a stream that says what they are. `first_tag` is the number of the first
    /// template; `mac` is the source address where the stream has none.
    ///
    /// # Errors
    /// Whatever is wrong with the stream.
    pub(crate) fn new(
        spec: &StreamSpec,
        stream: StreamId,
        first_tag: u32,
        mac: [u8; 6],
    ) -> Result<Self, ProfileError> {
        let wrong = |field: &str, reason: String| ProfileError::new(&spec.name, field, reason);
        let mut stack =
            HeaderStack::parse(&spec.packet).map_err(|error| wrong("packet", error.to_string()))?;
        let mac = mac.iter().fold(0, |sum, byte| sum << 8 | u128::from(*byte));
        stack.set_default("eth.src", mac);
        let sizes = spec.size.sequence().map_err(|error| wrong("size", error.to_string()))?;
        let least = stack.headers_len() as u32 + FCS_LEN;
        if let Some(size) = sizes.sizes().iter().find(|size| **size < least) {
            let reason = format!("{size} bytes: the headers of {} take {least}", spec.packet);
            return Err(wrong("size", reason));
        }
        let mut modifiers = Modifiers::new(spec, &mut stack)?;
        let plans = stack.checksums();
        let checksums = modifiers.bind(spec, &plans)?;
        let crc = plans.iter().find(|plan| plan.kind == PlanKind::Crc32c).cloned();
        let room = |size: u32| (size - least) as usize;
        let templates: Vec<Template> = sizes
            .sizes()
            .iter()
            .enumerate()
            .map(|(index, size)| {
                let mut frame = stack.frame((size - FCS_LEN) as usize, &spec.pattern);
                let has_probe = spec.probe && room(*size) >= PROBE_LEN;
                if has_probe {
                    ProbeHeader { stream, sequence: 0, due_ns: 0 }.write(&mut frame);
                }
                plans.iter().for_each(|plan| plan.fill(&mut frame));
                let mut template = Template::new(first_tag + index as u32, &frame);
                template.has_probe = has_probe;
                modifiers.erase(&mut frame);
                for (sum, plan) in template.sums.iter_mut().zip(&checksums) {
                    *sum = plan.sum(&frame);
                }
                template
            })
            .collect();
        let has_probes = templates.iter().any(|template| template.has_probe);
        let crc = crc.filter(|crc| has_probes || modifiers.touch(crc));
        let order = TemplateOrder::Sizes(sizes);
        let initial = (order.clone(), modifiers.clone());
        Ok(Self {
            templates,
            order,
            modifiers,
            initial,
            checksums,
            crc,
            stream,
            sequence: 0,
            has_probes,
            sums: Vec::with_capacity(BURST_MAX),
        })
    }

    /// Frames as they stand in a file, without FCS, in turn.
    pub(crate) fn of_frames(frames: &[Vec<u8>], stream: StreamId, first_tag: u32) -> Self {
        let templates: Vec<Template> =
            (first_tag..).zip(frames).map(|(tag, frame)| Template::new(tag, frame)).collect();
        let order = TemplateOrder::InTurn { next: 0, count: templates.len() };
        Self {
            templates,
            order: order.clone(),
            modifiers: Modifiers::default(),
            initial: (order, Modifiers::default()),
            checksums: Vec::new(),
            crc: None,
            stream,
            sequence: 0,
            has_probes: false,
            sums: Vec::new(),
        }
    }

    /// How many templates there are: so many tags are taken.
    pub(crate) fn template_count(&self) -> u32 {
        self.templates.len() as u32
    }

    /// The size of the longest frame that is longer than a device with this MTU takes, FCS
    /// included, and the bytes of its headers that the MTU does not count.
    pub(crate) fn beyond_mtu(&self, mtu: u32) -> Option<(u32, u32)> {
        let sizes = self.templates.iter().map(|template| (template.size(), template.header()));
        sizes
            .filter(|(size, header)| *size > mtu.saturating_add(header + FCS_LEN))
            .max_by_key(|(size, header)| size - header)
    }

    /// The mean size of the frames in bytes, FCS included.
    pub(crate) fn mean_size(&self) -> f64 {
        match &self.order {
            TemplateOrder::Sizes(sizes) => sizes.mean(),
            TemplateOrder::InTurn { count, .. } => {
                let sum: f64 =
                    self.templates.iter().map(|template| f64::from(template.size())).sum();
                sum / (*count).max(1) as f64
            }
        }
    }

    /// Whether any frame has a probe.
    pub(crate) fn has_probes(&self) -> bool {
        self.has_probes
    }

    /// Puts the template of the next frame into `buf`, which holds the template `tag` (0 for none).
    /// The frames of a run are begun one by one and then finished together.
    #[inline]
    pub(crate) fn begin(&mut self, buf: &mut PacketBuf, tag: &mut u32) -> MadeFrame {
        let template = &self.templates[self.order.next_index(self.templates.len())];
        if *tag != template.tag {
            buf.assign_blocks(&template.blocks, template.len);
            *tag = template.tag;
        }
        if !self.modifiers.is_empty() {
            self.sums.push(template.sums);
        }
        MadeFrame { size: template.size(), has_probe: template.has_probe }
    }

    /// Leaves out a frame: the next has the size and the values behind it, and its number. Returns
    /// its length in bytes, FCS included.
    #[inline]
    pub(crate) fn skip(&mut self) -> u32 {
        self.modifiers.skip();
        self.templates[self.order.next_index(self.templates.len())].size()
    }

    /// Writes what differs into the frames of a run, which are due at these times: field by field,
    /// so that the state of a modifier stays in registers. One frame after the other took 490
    /// instructions a frame with four fields.
    #[inline]
    pub(crate) fn finish(
        &mut self,
        bufs: &mut [PacketBuf],
        made: impl Iterator<Item = (u64, bool)>,
    ) {
        if !self.modifiers.is_empty() {
            self.modifiers.apply(bufs, &mut self.sums);
            for (index, plan) in self.checksums.iter().enumerate() {
                for (buf, sums) in bufs.iter_mut().zip(&self.sums) {
                    plan.write(buf.bytes_mut(), sums[index % SUMS_MAX]);
                }
            }
            self.sums.clear();
        }
        if self.has_probes {
            for (buf, (due_ns, has_probe)) in bufs.iter_mut().zip(made) {
                if has_probe {
                    let sequence = self.sequence as u32;
                    let probe = ProbeHeader { stream: self.stream, sequence, due_ns };
                    probe.write(buf.bytes_mut());
                    self.sequence += 1;
                }
            }
        }
        if let Some(crc) = &self.crc {
            bufs.iter_mut().for_each(|buf| crc.fill(buf.bytes_mut()));
        }
    }

    /// Begins anew with the first values and sizes. Numbers go on: the receiver knows those that
    /// were.
    pub(crate) fn restart(&mut self) {
        (self.order, self.modifiers) = self.initial.clone();
    }

    /// Numbers frames with a probe from here on.
    pub(crate) fn number_from(&mut self, sequence: u64) {
        self.sequence = sequence;
    }

    /// The number of the next frame with a probe.
    pub(crate) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Takes `count` numbers back: the last frames with a probe did not leave.
    pub(crate) fn give_back(&mut self, count: u64) {
        self.sequence -= count;
    }

    /// Gives a frame that has not left yet the number that is `count` lower than the one that it
    /// has.
    pub(crate) fn renumber(&self, buf: &mut PacketBuf, count: u64) {
        let frame = buf.bytes_mut();
        let Some(probe) = ProbeHeader::read(frame) else { return };
        let sequence = probe.sequence.wrapping_sub(count as u32);
        ProbeHeader { sequence, ..probe }.write(frame);
        if let Some(crc) = &self.crc {
            crc.fill(frame);
        }
    }
}

#[cfg(test)]
mod tests;
