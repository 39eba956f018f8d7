//! Changes of a program to the headers of its frames, as the kernel tier carries them out: masked
//! words at places of the frame without its outermost VLAN tag, and the change of that tag.
//!
//! The kernel keeps that tag beside the frame, so a push or a pop moves nothing, and changes before
//! and behind it are one list. A second tag stands in the frame, and is a header like others.
//! It must come to the same bytes as the program's own changes, one after the other.

use openflow::Action;
use packet::header::{ethernet, ipv4, ipv6, vlan};
use packet::{LoweredTtl, MaskedRewrite, MaskedWord, Network, Shape, TagChange, Transport};

use super::header_rewrite::HeaderRewrite;
use super::program::{Guard, MicroOp};

const TAG_LEN: u8 = vlan::TAG_LEN as u8;

/// Changes of the frames of a shape, one after the other.
pub(super) struct KernelRewrite {
    /// Place of the TTL, and the value that it exceeds in every frame.
    guard: Option<(u8, u8)>,
    /// VLAN tags of the frames that arrive, and of what they are by now.
    arrives_with: usize,
    tags: usize,
    /// Whether the outermost of them is beside the frame.
    is_tag_beside: bool,
    made: MaskedRewrite,
}

impl KernelRewrite {
    /// No change of frames that arrive with this shape and fit the guard.
    pub(super) fn new(arrives: Shape, guard: Guard) -> Self {
        let tags = arrives.tags();
        let at = if tags > 0 { guard.at.saturating_sub(TAG_LEN) } else { guard.at };
        Self {
            guard: (guard != Guard::default()).then_some((at, guard.above)),
            arrives_with: tags,
            tags,
            is_tag_beside: tags > 0,
            made: MaskedRewrite::default(),
        }
    }

    /// Whether a tag comes or goes, so that frames leave with another length.
    pub(super) fn moves_tag(&self) -> bool {
        matches!(self.made.tag, TagChange::Push(..) | TagChange::Pop)
    }

    /// Adds a change that writes these values; none where the kernel cannot make it, or not
    /// together with the others.
    pub(super) fn add(&mut self, change: &MicroOp, values: &[u64]) -> Option<()> {
        if let MicroOp::Rewrite(rewrite) = change {
            return self.add_rewrite(rewrite, values);
        }
        if matches!(change, MicroOp::PopTag)
            && self.made.tag == TagChange::None
            && self.arrives_with > 0
        {
            self.made.tag = TagChange::Pop;
            self.tags -= 1;
            self.is_tag_beside = false;
            return Some(());
        }
        if let MicroOp::Apply(Action::PushVlan(eth_type)) = change
            && self.made.tag == TagChange::None
            && self.arrives_with == 0
            && matches!(*eth_type, ethernet::VLAN | ethernet::SERVICE_VLAN)
        {
            self.made.tag = TagChange::Push(*eth_type, 0);
            self.tags = 1;
            self.is_tag_beside = true;
            return Some(());
        }
        None
    }

    /// All changes; none where the guard asks for more than they do.
    pub(super) fn finish(self) -> Option<MaskedRewrite> {
        let lowered = self.made.ttl.map(|ttl| (ttl.at, ttl.above));
        (lowered == self.guard).then_some(self.made)
    }

    fn add_rewrite(&mut self, rewrite: &HeaderRewrite, values: &[u64]) -> Option<()> {
        if rewrite.shape().tags() != self.tags {
            return None;
        }
        let bare = |at: u8| if self.is_tag_beside { at.checked_sub(TAG_LEN) } else { Some(at) };
        let places = Places::of(rewrite, self.is_tag_beside);
        if let Some((at, by)) = rewrite.lowered_ttl() {
            let at = bare(at)?;
            let is_written = |word: &MaskedWord| {
                let offset = at.wrapping_sub(word.at);
                offset < 8 && word.keep.to_ne_bytes()[usize::from(offset)] != u8::MAX
            };
            let (guarded, above) = self.guard?;
            // It goes down before anything is written.
            if self.made.ttl.is_some() || guarded != at || self.made.words.iter().any(is_written) {
                return None;
            }
            self.made.ttl = Some(LoweredTtl { at, by, above, is_open: !places.is_v4 });
        }
        let (ip, l4) = (rewrite.ip_checksum(), rewrite.l4_checksum());
        let (ip, l4_at) = (ip.map(bare), l4.map(|(at, _)| bare(at)));
        if let Some(at) = ip {
            self.made.ip_checksum = Some(at?);
        }
        if let Some(at) = l4_at {
            self.made.l4_checksum = Some(at?);
        }
        self.made.is_udp |= l4.is_some_and(|(_, is_udp)| is_udp);
        for word in rewrite.masked_words(values) {
            self.add_word(word, &places)?;
        }
        Some(())
    }

    /// Adds the changed bytes of a word, in one word for each kind of bytes.
    fn add_word(&mut self, (start, keep, value): (u8, u64, u64), places: &Places) -> Option<()> {
        let mut words: Vec<WordBytes> = Vec::new();
        for (place, (keep, value)) in
            (start..).zip(keep.to_ne_bytes().into_iter().zip(value.to_ne_bytes()))
        {
            if keep == u8::MAX {
                continue;
            }
            let Some(at) = self.beside_tag(place) else {
                self.change_tag(place, keep, value)?;
                continue;
            };
            let covered = places.covered(at);
            let first = self.word_start(start, at);
            let is_it = |word: &WordBytes| word.at == first && word.is_open == covered.is_open;
            let index = words.iter().position(is_it).unwrap_or(words.len());
            if index == words.len() {
                words.push(WordBytes::new(first, covered.is_open));
            }
            words.get_mut(index)?.add(at.checked_sub(first)?, (keep, value), covered)?;
        }
        self.made.words.extend(words.into_iter().map(WordBytes::word));
        Some(())
    }

    /// Start of the word without the tag that holds a byte of a word: one in which the tag
    /// stood becomes two, on both sides of it.
    fn word_start(&self, start: u8, at: u8) -> u8 {
        const BEHIND_TAG: u8 = (ethernet::ETHER_TYPE + vlan::TAG_LEN) as u8;
        const ADDRESSES: u8 = ethernet::ETHER_TYPE as u8;
        if !self.is_tag_beside || start <= ADDRESSES - 8 {
            start
        } else if start >= BEHIND_TAG {
            start - TAG_LEN
        } else if at < ADDRESSES {
            ADDRESSES - 8
        } else {
            ADDRESSES
        }
    }

    /// Place of a byte without the tag; none for one of the tag.
    fn beside_tag(&self, at: u8) -> Option<u8> {
        let is_tag =
            (ethernet::ETHER_TYPE..ethernet::ETHER_TYPE + vlan::TAG_LEN).contains(&usize::from(at));
        match self.is_tag_beside {
            true if is_tag => None,
            true if usize::from(at) > ethernet::ETHER_TYPE => Some(at - TAG_LEN),
            true | false => Some(at),
        }
    }

    /// Changes bits of a byte of the tag; none for its EtherType.
    fn change_tag(&mut self, at: u8, keep: u8, value: u8) -> Option<()> {
        let (keep, value) = match usize::from(at).checked_sub(vlan::OUTERMOST_TCI)? {
            0 => (u16::from_be_bytes([keep, u8::MAX]), u16::from_be_bytes([value, 0])),
            1 => (u16::from_be_bytes([u8::MAX, keep]), u16::from(value)),
            _ => return None,
        };
        self.made.tag = match self.made.tag {
            TagChange::None => TagChange::Set(keep, value & !keep),
            TagChange::Set(before, set) => {
                TagChange::Set(before & keep, set & keep | value & !keep)
            }
            TagChange::Push(eth_type, set) => TagChange::Push(eth_type, set & keep | value & !keep),
            TagChange::Pop => return None,
        };
        Some(())
    }
}

/// Checksums that cover a changed byte.
#[derive(Clone, Copy, Default)]
struct Covered {
    ip: bool,
    pseudo: bool,
    l4: bool,
    is_open: bool,
}

/// Places of the headers of a shape without the tag beside it, and the checksums that cover them.
struct Places {
    is_v4: bool,
    is_v6: bool,
    l3: usize,
    l4: usize,
    /// The transport's checksum changes.
    has_l4: bool,
    has_pseudo: bool,
}

impl Places {
    fn of(rewrite: &HeaderRewrite, is_tag_beside: bool) -> Self {
        let shape = if is_tag_beside { rewrite.shape().popped() } else { rewrite.shape() };
        let is_v6 = shape.network() == Network::Ipv6;
        let has_pseudo = match shape.transport() {
            Transport::Tcp | Transport::Udp => true,
            Transport::Icmpv6 => is_v6,
            Transport::Icmpv4 | Transport::Sctp | Transport::Other => false,
        };
        Self {
            is_v4: shape.network() == Network::Ipv4,
            is_v6,
            l3: shape.l3(),
            l4: shape.l4().unwrap_or(usize::MAX),
            has_l4: rewrite.l4_checksum().is_some(),
            has_pseudo,
        }
    }

    fn covered(&self, at: u8) -> Covered {
        let (at, l3) = (usize::from(at), self.l3);
        // The kernel makes its sum of a packet without this header.
        if at < ethernet::HEADER_LEN {
            return Covered::default();
        }
        let addresses = if self.is_v4 {
            l3 + ipv4::SRC.start..l3 + ipv4::DST.end
        } else {
            l3 + ipv6::SRC.start..l3 + ipv6::DST.end
        };
        let is_ip = self.is_v4 || self.is_v6;
        let pseudo = is_ip && self.has_pseudo && addresses.contains(&at);
        let ip = self.is_v4 && (l3..self.l4).contains(&at);
        let l4 = at >= self.l4 && self.has_l4;
        Covered { ip, pseudo, l4, is_open: !ip && !l4 }
    }
}

/// A word whose bytes are added one by one.
struct WordBytes {
    at: u8,
    keep: [u8; 8],
    value: [u8; 8],
    ip: [u8; 8],
    pseudo: [u8; 8],
    l4: [u8; 8],
    is_open: bool,
}

impl WordBytes {
    fn new(at: u8, is_open: bool) -> Self {
        let none = [0; 8];
        Self { at, keep: [u8::MAX; 8], value: none, ip: none, pseudo: none, l4: none, is_open }
    }

    fn add(&mut self, offset: u8, (keep, value): (u8, u8), covered: Covered) -> Option<()> {
        let offset = usize::from(offset);
        *self.keep.get_mut(offset)? = keep;
        *self.value.get_mut(offset)? = value & !keep;
        let masks = [
            (&mut self.ip, covered.ip),
            (&mut self.pseudo, covered.pseudo),
            (&mut self.l4, covered.l4),
        ];
        for (mask, is_covered) in masks {
            *mask.get_mut(offset)? = if is_covered { !keep } else { 0 };
        }
        Some(())
    }

    fn word(self) -> MaskedWord {
        let [keep, value, ip, pseudo, l4] =
            [self.keep, self.value, self.ip, self.pseudo, self.l4].map(u64::from_ne_bytes);
        MaskedWord { at: self.at, keep, value, ip, pseudo, l4, is_open: self.is_open }
    }
}
