//! The frames of a stream: templates, one for each size, and the fields that differ from frame to
//! frame.
//!
//! A template is made once, with right checksums. A frame is a copy of its template, or the buffer
//! that held one already, into which the modified fields, the checksums over them and the probe are
//! written. A checksum is the template's sum without the modified fields, plus these: nothing of
//! the frame is read. A probe has the same sum whatever it says ([`crate::probe`]), so it costs no
//! checksum; a CRC32c is the template's, changed by what the probe changes. Nothing is allocated,
//! and no call is virtual.

mod columns;
mod modifier;

use packet::checksum::crc32c;
use packet::{Block, PacketBuf};

use crate::probe::{PROBE_LEN, ProbeHeader, StreamId};
use crate::profile::{FCS_LEN, ProfileError, SizeSequence, StreamSpec};
use crate::stack::{
    ChecksumPlan, HeaderStack, PlanKind, StackError, internet_checksum, udp_checksum,
};
use columns::{WordPlan, WordTarget};
use modifier::Modifiers;

/// Frames of a burst, at most.
pub(crate) const BURST_MAX: usize = 64;

pub(crate) use columns::RunColumns;

/// Bytes of the pieces in which a template is copied.
const BLOCK: usize = size_of::<Block>();

/// One frame that others are made of.
#[derive(Debug)]
struct Template {
    /// Its number among all templates of the port, by which a buffer knows what it holds.
    tag: u32,
    blocks: Box<[Block]>,
    len: usize,
    /// Whether it has room for a probe after its headers.
    has_probe: bool,
    /// The words that are written into each frame, without the modified fields and their checksums.
    words: Vec<u64>,
    /// Sums without the modified fields.
    sums: Vec<u64>,
    /// The CRC32c but for the share of the probe, where nothing else of the frame counts for it.
    crc: Option<u32>,
}

/// A frame that is to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlannedFrame {
    pub(crate) due_ns: u64,
    /// Index of the stream's template.
    template: u32,
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
    /// Places of the words of which [`Template::words`] has the templates' part.
    words: WordPlan,
    /// Checksums that cover modified fields, in the order of [`Template::sums`], and their words.
    checksums: Vec<(ChecksumPlan, Vec<WordTarget>)>,
    /// None of [`Template::sums`] is zero.
    has_sums: bool,
    /// A CRC32c that is not the template's.
    crc: Option<ChecksumPlan>,
    stream: StreamId,
    sequence: u64,
    has_probes: bool,
}

/// The order of templates.
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
        Self {
            tag,
            blocks,
            len: frame.len(),
            has_probe: false,
            words: Vec::new(),
            sums: Vec::new(),
            crc: None,
        }
    }

    /// Puts it into a buffer, unless that holds it already.
    #[inline]
    fn put(&self, buf: &mut PacketBuf, tag: &mut u32) {
        if *tag != self.tag {
            buf.assign_blocks(&self.blocks, self.len);
            *tag = self.tag;
        }
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
    /// The frames that a stream describes. `first_tag` is the number of the first
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
        let mut stack = headers(spec, mac).map_err(|error| wrong("packet", error.to_string()))?;
        let sizes = spec.size.sequence().map_err(|error| wrong("size", error.to_string()))?;
        let least = least_size(&stack);
        if let Some(size) = sizes.sizes().iter().find(|size| **size < least) {
            let reason = format!("{size} bytes: the headers of {} take {least}", spec.packet);
            return Err(wrong("size", reason));
        }
        let mut modifiers = Modifiers::new(spec, &mut stack)?;
        let plans = stack.checksums();
        let end = sizes.sizes().iter().map(|size| probe_start(spec, least, *size)).min();
        modifiers.check_places(&spec.name, end.unwrap_or_default(), &plans)?;
        let checksums = modifiers.bind(&plans);
        let words = modifiers.place(&checksums);
        let crc = plans.iter().find(|plan| plan.kind == PlanKind::Crc32c).cloned();
        let templates: Vec<Template> = sizes
            .sizes()
            .iter()
            .enumerate()
            .map(|(index, size)| {
                let mut frame = stack.frame((size - FCS_LEN) as usize, &spec.pattern);
                let has_probe = has_room(spec, least, *size);
                if has_probe {
                    ProbeHeader { stream, sequence: 0, due_ns: 0 }.write(&mut frame);
                }
                plans.iter().for_each(|plan| plan.fill(&mut frame));
                let mut template = Template::new(first_tag + index as u32, &frame);
                template.has_probe = has_probe;
                template.crc = crc
                    .as_ref()
                    .filter(|crc| has_probe && !modifiers.touch(crc))
                    .map(|crc| crc.read_crc(&frame) ^ probe_crc(&frame));
                modifiers.erase(&mut frame);
                template.sums = checksums.iter().map(|plan| plan.sum(&frame)).collect();
                checksums.iter().for_each(|plan| frame[plan.at..plan.at + 2].fill(0));
                template.words = words.read(&frame);
                template
            })
            .collect();
        let targets = |plan: &ChecksumPlan| words.targets(plan.at + 2);
        let checksums = checksums.into_iter().map(|plan| (targets(&plan), plan));
        let checksums = checksums.map(|(targets, plan)| (plan, targets)).collect();
        let has_probes = templates.iter().any(|template| template.has_probe);
        let has_sums = templates.iter().flat_map(|template| &template.sums).all(|sum| *sum > 0);
        let crc = crc.filter(|crc| has_probes || modifiers.touch(crc));
        let order = TemplateOrder::Sizes(sizes);
        let initial = (order.clone(), modifiers.clone());
        Ok(Self {
            templates,
            order,
            modifiers,
            initial,
            words,
            checksums,
            has_sums,
            crc,
            stream,
            sequence: 0,
            has_probes,
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
            words: WordPlan::default(),
            checksums: Vec::new(),
            has_sums: false,
            crc: None,
            stream,
            sequence: 0,
            has_probes: false,
        }
    }

    /// The number of templates, which is the number of tags that they take.
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

    /// The next frame, which is due at this time.
    #[inline]
    pub(crate) fn plan(&mut self, due_ns: u64) -> PlannedFrame {
        let index = self.order.next_index(self.templates.len());
        let template = &self.templates[index];
        let (size, has_probe) = (template.size(), template.has_probe);
        PlannedFrame { due_ns, template: index as u32, size, has_probe }
    }

    /// Leaves out a frame: the next has the size and the values after it, and its number. Returns
    /// its length in bytes, FCS included.
    #[inline]
    pub(crate) fn skip(&mut self) -> u32 {
        self.modifiers.skip();
        self.templates[self.order.next_index(self.templates.len())].size()
    }

    /// Whether frames differ by their size, their number and their time stamp only.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.modifiers.is_empty() && self.crc.is_none()
    }

    /// Makes one frame of a stream that [is plain](FrameMaker::is_plain) in its buffer, which holds
    /// the template `tag`.
    #[inline]
    pub(crate) fn make_one(&mut self, buf: &mut PacketBuf, tag: &mut u32, frame: PlannedFrame) {
        self.templates[frame.template as usize].put(buf, tag);
        if frame.has_probe {
            self.write_probe(buf, frame.due_ns);
        }
    }

    /// Writes the next number and a time stamp.
    #[inline]
    fn write_probe(&mut self, buf: &mut PacketBuf, due_ns: u64) {
        let sequence = self.sequence as u32;
        ProbeHeader { stream: self.stream, sequence, due_ns }.write(buf.bytes_mut());
        self.sequence += 1;
    }

    /// Makes the frames of a run in their buffers, which hold the templates `tags` (0 for none).
    #[inline]
    pub(crate) fn make(
        &mut self,
        bufs: &mut [PacketBuf],
        tags: &mut [u32],
        planned: impl Iterator<Item = PlannedFrame> + Clone,
        columns: &mut RunColumns,
    ) {
        for ((buf, tag), frame) in bufs.iter_mut().zip(tags).zip(planned.clone()) {
            self.templates[frame.template as usize].put(buf, tag);
        }
        if !self.modifiers.is_empty() {
            self.write_fields(bufs, planned.clone(), columns);
        }
        if self.has_probes {
            let frames = bufs.iter_mut().zip(planned.clone());
            for (buf, frame) in frames.filter(|(_, frame)| frame.has_probe) {
                self.write_probe(buf, frame.due_ns);
            }
        }
        if let Some(crc) = &self.crc {
            for (buf, frame) in bufs.iter_mut().zip(planned) {
                let bytes = buf.bytes_mut();
                match self.templates[frame.template as usize].crc {
                    Some(rest) => crc.write_crc(bytes, rest ^ probe_crc(bytes)),
                    None => crc.fill(bytes),
                }
            }
        }
    }

    /// Writes the modified fields and their checksums.
    fn write_fields(
        &mut self,
        bufs: &mut [PacketBuf],
        planned: impl Iterator<Item = PlannedFrame> + Clone,
        columns: &mut RunColumns,
    ) {
        columns.begin(bufs.len(), self.words.len(), self.checksums.len());
        self.modifiers.count(columns, self.has_sums);
        match &self.templates[..] {
            [template] => columns.fill(&template.words, &template.sums),
            templates => {
                for (number, frame) in planned.enumerate() {
                    let template = &templates[frame.template as usize];
                    columns.set(number, &template.words, &template.sums);
                }
                columns.add_counted();
            }
        }
        self.modifiers.apply(columns);
        for (sum, (plan, targets)) in self.checksums.iter().enumerate() {
            match plan.kind {
                PlanKind::Udp => columns.merge_checksums(sum, targets, udp_checksum),
                PlanKind::Internet | PlanKind::None | PlanKind::Crc32c => {
                    columns.merge_checksums(sum, targets, internet_checksum);
                }
            }
        }
        columns.write(&self.words, bufs);
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

/// The shortest frame with these headers, FCS included.
fn least_size(stack: &HeaderStack) -> u32 {
    stack.headers_len() as u32 + FCS_LEN
}

/// The shortest frame of a stream that has room for number and time stamp, FCS included.
///
/// # Errors
/// The stream's headers are wrong.
pub(crate) fn probe_size(spec: &StreamSpec) -> Result<u32, StackError> {
    Ok(least_size(&headers(spec, [0; 6])?) + PROBE_LEN as u32)
}

/// Whether frames of a size have number and time stamp.
fn has_room(spec: &StreamSpec, least: u32, size: u32) -> bool {
    spec.probe && (size - least) as usize >= PROBE_LEN
}

/// Start of number and time stamp in such frames; their end where they have none.
fn probe_start(spec: &StreamSpec, least: u32, size: u32) -> usize {
    let end = (size - FCS_LEN) as usize;
    if has_room(spec, least, size) { end - PROBE_LEN } else { end }
}

/// The headers of a stream; `mac` is the source address where it has none.
fn headers(spec: &StreamSpec, mac: [u8; 6]) -> Result<HeaderStack, StackError> {
    let mut stack = HeaderStack::parse(&spec.packet)?;
    let mac = mac.iter().fold(0, |sum, byte| sum << 8 | u128::from(*byte));
    stack.set_default("eth.src", mac);
    Ok(stack)
}

/// The share of a frame's probe in the CRC32c of the frame. CRCs are linear: behind other bytes, it
/// is the CRC of the probe's own bytes.
fn probe_crc(frame: &[u8]) -> u32 {
    frame.last_chunk::<PROBE_LEN>().map_or(0, |probe| crc32c(&[probe]))
}

#[cfg(test)]
mod tests;
