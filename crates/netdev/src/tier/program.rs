//! The programs of the kernel tier: the decision at a device's ingress, and the guard of the TAP
//! device by which frames are handed over.
//!
//! The decision reads a frame's shape exactly as [`packet::Shape::of`] does, masks its first 64
//! bytes by the shape's mask and asks the entries. It never lets a frame pass to the stack: what it
//! does not know for certain it hands over, so that a frame is decided in one place only. A frame
//! is a hit only where everything of its entry holds: the generation, the lengths, the kind of
//! segments.

mod output;

use packet::Shape;
use packet::header::{arp, ethernet, icmpv4, icmpv6, ipv4, ipv6, mpls, sctp, tcp, udp, vlan};

use super::assembler::{
    Alu, Assembler, Cmp, FP, Helper, Label, R0, R1, R2, R3, R4, R6, R7, R8, R9, Reg, Size,
};
use super::layout::{
    BYTES, CELL_BYTES, CELL_LOST, CELL_PACKETS, CELL_SENT_BYTES, CELL_SENT_PACKETS, CELL_USED,
    ENTRY_GENERATION, ENTRY_LEN_MAX, ENTRY_OUTPUTS, ENTRY_SLOT, ENTRY_TOKEN, RUNS_HANDED_OVER,
    RUNS_IN_RING, SLOT_TAG, SLOT_TAG_BEYOND, SLOT_TOKEN, SLOT_TTL_ABOVE, SLOT_TTL_AT, SLOT_UNTIL,
    SLOT_WORDS, STATE_GENERATION, STATE_MASKS, STATE_RUNS, STATE_UNTIL, TAG_POP, TAKES_OVER,
};
use super::patches::KERNEL_HOPS_MAX;
use super::{rewrite, skb};

/// Shorter frames are handed over: none of these has a shape that says much.
const SHORTEST: usize = 42;

/// Shorter super-frames are: what is taken off their headers would leave too little.
const SHORTEST_GSO: usize = 64;

/// The return value of a TCX program for a frame that ends here.
const DROP: i32 = 2;

/// The return value for a frame that goes on as if the program were not there.
const NEXT: i32 = -1;

/// The type of a frame that is for the host.
const PACKET_HOST: i32 = 0;

/// Flag of a redirection: the frame comes to the device as if it had arrived there.
pub(super) const TO_INGRESS: i32 = 1;

/// The key: the device, the shape, and the masked bytes; it lies at the end of the stack.
const KEY: i16 = -72;
const KEY_SHAPE: i16 = KEY + 4;
const HEAD: i16 = KEY + 8;
/// Address of the processor's count of runs.
const RUNS: i16 = -80;
/// The processor's number.
const CPU: i16 = -88;
/// The frame's shape.
const SHAPE: i16 = -96;
/// Place of the transport header.
const L4: i16 = -104;
/// A byte of the frame.
const BYTE: i16 = -112;
/// The number of a slot, then of a cell.
const CELL: i16 = -120;
/// The time of the run; zero where nobody asks for it.
const NOW: i16 = -128;

/// Address of the slot.
const SLOT: i16 = -136;

// From here to -192 lies what the rewrite works with.

/// The first EtherType of the frame on a wire.
const OUTER: i16 = -200;
/// The bytes in the place of a second VLAN tag's EtherType.
const INNER: i16 = -232;
/// Address of the cell; the packets, and their bytes as they leave.
const CELL_AT: i16 = -208;
const PACKETS: i16 = -216;
const SENT_BYTES: i16 = -224;

/// The devices, maps and sizes for which a program is made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts {
    /// Descriptors of the maps.
    pub(super) entries: i32,
    pub(super) state: i32,
    pub(super) slot_map: i32,
    pub(super) counts: i32,
    /// Of the TAP devices by device.
    pub(super) taps: i32,
    /// Processors, and slots of entries.
    pub(super) cpus: u32,
    pub(super) slots: u32,
    /// Descriptors of what all tiers have in common: the programs beyond patch ports, and the
    /// counts of frames that found none.
    pub(super) next: i32,
    pub(super) lost: i32,
    /// Number of the device at which the program stands, and of its TAP device, where it is for
    /// that one alone.
    pub(super) device: u32,
    pub(super) tap: u32,
    /// The place where frames come from.
    pub(super) entrance: Entrance,
    /// Whether it outlives its process, and then decides no longer than that has said last.
    pub(super) is_kept: bool,
}

/// The place where the frames of a program come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entrance {
    /// Any device of the tier: the program is loaded once, which takes the kernel 30 ms.
    Device,
    /// Its device, of which [`super::choice`] has chosen a queue.
    Queues,
    /// The program of another bridge, through a patch port.
    Patch,
}

/// The guard of the TAP device: no frame passes it. What the decision hands over is in the ring of
/// the device's packet socket before its ingress hook.
pub(super) fn guard() -> Vec<u64> {
    let mut code = Assembler::default();
    code.alu(Alu::Mov, R0, DROP);
    code.exit();
    code.finish()
}

/// The filter of the ring by which a port receives until the program at its device takes over. The
/// ring gets a frame as long as the device has no TAP device; the program, which sees each frame
/// next on the same processor, asks what the filter has decided, so that one of them has it.
pub(super) fn ring_filter(facts: &Facts) -> Vec<u64> {
    let Facts { cpus, state, taps, device, .. } = *facts;
    let mut code = Assembler::default();
    let (is_known, done) = (code.label(), code.label());
    code.call(Helper::ProcessorId);
    code.jump_if(R0, Cmp::Lt, number(cpus as usize), is_known);
    // There is no such processor; the verifier does not know.
    code.alu(Alu::Mov, R0, 0);
    code.exit();
    code.place(is_known);
    code.map_value(R6, state, number(STATE_RUNS));
    code.alu(Alu::Lsh, R0, 6);
    code.alu_reg(Alu::Add, R6, R0);
    code.alu(Alu::Mov, R1, device.cast_signed());
    code.store(Size::Word, FP, CELL, R1);
    code.map(R1, taps);
    code.alu_reg(Alu::Mov, R2, FP);
    code.alu(Alu::Add, R2, i32::from(CELL));
    code.call(Helper::MapLookup);
    code.alu(Alu::Mov, R7, 0);
    code.jump_if(R0, Cmp::Ne, 0, done);
    code.alu(Alu::Mov, R7, 1);
    code.place(done);
    code.store(Size::Double, R6, offset(RUNS_IN_RING), R7);
    // Nothing of it, or all.
    code.alu(Alu::Mov, R0, 0);
    code.alu_reg(Alu::Sub, R0, R7);
    code.exit();
    code.finish()
}

/// The decision.
pub(super) fn decision(facts: &Facts) -> Vec<u64> {
    let mut code = Assembler::default();
    let labels = Labels {
        hand_over: code.label(),
        known: code.label(),
        lost: code.label(),
        patch: code.label(),
        leave: code.label(),
    };
    let mut builder = Builder { code, facts: *facts, labels };
    builder.enter();
    builder.read_head();
    builder.find_shape();
    builder.look_up();
    builder.ask_slot();
    builder.measure();
    builder.ask_headers();
    builder.count();
    builder.rewrite();
    builder.output();
    builder.go_on();
    builder.lose();
    builder.end();
    builder.code.finish()
}

/// Targets of the jumps between the parts of the decision.
#[derive(Clone, Copy)]
struct Labels {
    hand_over: Label,
    /// The shape is known, and in R2.
    known: Label,
    /// The kernel had no memory for the rewrite.
    lost: Label,
    /// The frame leaves by the patch port in R1, with [`PATCH_OUTPUT`](super::PATCH_OUTPUT).
    patch: Label,
    /// The verdict is in R8.
    leave: Label,
}

/// R6 is the frame; R7 the state, then the entry; R8 the generation, then the number of packets;
/// R9 the length with the tag, then the bytes of all packets.
struct Builder {
    code: Assembler,
    facts: Facts,
    labels: Labels,
}

/// A number of 16 bits as a load of its bytes on the wire gives it.
pub(super) fn wire(number: u16) -> i32 {
    i32::from(u16::from_ne_bytes(number.to_be_bytes()))
}

pub(super) fn number(number: usize) -> i32 {
    i32::try_from(number).expect("offsets of headers and maps are small")
}

pub(super) fn offset(number: usize) -> i16 {
    i16::try_from(number).expect("offsets of headers are small")
}

impl Builder {
    /// Says that a run has begun, then reads the generation: the writer of entries waits for the
    /// runs that may have read an earlier one.
    fn enter(&mut self) {
        let Facts { cpus, state, is_kept, .. } = self.facts;
        let code = &mut self.code;
        let is_known = code.label();
        code.alu_reg(Alu::Mov, R6, R1);
        code.call(Helper::ProcessorId);
        code.jump_if(R0, Cmp::Lt, number(cpus as usize), is_known);
        // There is no such processor; the verifier does not know.
        code.alu(Alu::Mov, R0, DROP);
        code.exit();
        code.place(is_known);
        code.store(Size::Double, FP, CPU, R0);
        code.map_value(R1, state, number(STATE_RUNS));
        code.alu(Alu::Lsh, R0, 6);
        code.alu_reg(Alu::Add, R1, R0);
        code.store(Size::Double, FP, RUNS, R1);
        code.alu(Alu::Mov, R2, 1);
        code.fetch_add(R1, R2);
        code.map_value(R7, state, 0);
        if is_kept {
            let holds = code.label();
            code.call(Helper::Time);
            code.load(Size::Double, R1, R7, offset(STATE_UNTIL));
            code.jump_if_reg(R0, Cmp::Lt, R1, holds);
            code.alu(Alu::Mov, R8, NEXT);
            code.jump(self.labels.leave);
            code.place(holds);
        }
        code.load(Size::Double, R8, R7, offset(STATE_GENERATION));
        code.jump_if(R8, Cmp::Eq, 0, self.labels.hand_over);
        if self.facts.entrance == Entrance::Patch {
            // Bridges in a loop would keep it until the kernel goes on no more.
            code.load(Size::Word, R1, R6, skb::CB_HOPS);
            code.jump_if(R1, Cmp::Ge, KERNEL_HOPS_MAX.into(), self.labels.hand_over);
        }
    }

    /// Reads the first bytes as a wire would carry them, and the length.
    fn read_head(&mut self) {
        let hand_over = self.labels.hand_over;
        let code = &mut self.code;
        let (tagged, done) = (code.label(), code.label());
        code.load(Size::Word, R9, R6, skb::LEN);
        code.alu(Alu::Mov, R1, 0);
        for at in 0..BYTES / 8 {
            code.store(Size::Double, FP, HEAD + offset(8 * at), R1);
        }
        code.load(Size::Word, R1, R6, skb::VLAN_PRESENT);
        code.jump_if(R1, Cmp::Ne, 0, tagged);
        code.jump_if(R9, Cmp::Lt, number(SHORTEST), hand_over);
        self.load_head(0, 0, BYTES);
        self.code.jump(done);
        self.code.place(tagged);
        let rest = ethernet::ETHER_TYPE + vlan::TAG_LEN;
        let least = SHORTEST - vlan::TAG_LEN;
        self.code.jump_if(R9, Cmp::Lt, number(least), hand_over);
        self.load_head(0, 0, ethernet::ETHER_TYPE);
        let code = &mut self.code;
        code.load(Size::Word, R1, R6, skb::VLAN_PROTO);
        code.store(Size::Half, FP, HEAD + offset(ethernet::ETHER_TYPE), R1);
        code.load(Size::Word, R1, R6, skb::VLAN_TCI);
        code.wire_to_number(R1);
        code.store(Size::Half, FP, HEAD + offset(vlan::OUTERMOST_TCI), R1);
        self.load_head(ethernet::ETHER_TYPE, rest, BYTES - rest);
        self.code.alu(Alu::Add, R9, number(vlan::TAG_LEN));
        self.code.place(done);
    }

    /// Loads up to `most` bytes of the frame; R9 is its length.
    fn load_head(&mut self, from: usize, to: usize, most: usize) {
        let code = &mut self.code;
        let fits = code.label();
        code.alu_reg(Alu::Mov, R4, R9);
        code.alu(Alu::Sub, R4, number(from));
        code.jump_if(R4, Cmp::Le, number(most), fits);
        code.alu(Alu::Mov, R4, number(most));
        code.place(fits);
        code.alu_reg(Alu::Mov, R1, R6);
        code.alu(Alu::Mov, R2, number(from));
        code.alu_reg(Alu::Mov, R3, FP);
        code.alu(Alu::Add, R3, i32::from(HEAD) + number(to));
        code.call(Helper::SkbLoadBytes);
        code.jump_if(R0, Cmp::Ne, 0, self.labels.hand_over);
    }

    fn head(&mut self, size: Size, to: Reg, at: usize) {
        self.code.load(size, to, FP, HEAD + offset(at));
    }

    /// Ends at [`Labels::known`] with the shape in R2, or hands over what is rare.
    fn find_shape(&mut self) {
        self.head(Size::Half, R1, ethernet::ETHER_TYPE);
        self.code.store(Size::Double, FP, OUTER, R1);
        self.head(Size::Half, R1, ethernet::ETHER_TYPE + vlan::TAG_LEN);
        self.code.store(Size::Double, FP, INNER, R1);
        for tags in 0..TAGS_MAX {
            let one_more = self.code.label();
            self.find_network(tags, one_more);
            self.code.place(one_more);
        }
        self.find_network(TAGS_MAX, self.labels.hand_over);
    }

    /// The same for frames with a number of VLAN tags; goes on at `one_more` where there is
    /// another.
    fn find_network(&mut self, tags: usize, one_more: Label) {
        let hand_over = self.labels.hand_over;
        let l3 = ethernet::HEADER_LEN + tags * vlan::TAG_LEN;
        let (v4, v6, arp) = (self.code.label(), self.code.label(), self.code.label());
        let mpls = self.code.label();
        self.head(Size::Half, R1, l3 - 2);
        let code = &mut self.code;
        code.jump_if(R1, Cmp::Eq, wire(ethernet::IPV4), v4);
        code.jump_if(R1, Cmp::Eq, wire(ethernet::IPV6), v6);
        code.jump_if(R1, Cmp::Eq, wire(ethernet::ARP), arp);
        code.jump_if(R1, Cmp::Eq, wire(ethernet::MPLS), mpls);
        code.jump_if(R1, Cmp::Eq, wire(ethernet::MPLS_UPSTREAM), mpls);
        code.jump_if(R1, Cmp::Eq, wire(ethernet::PBB), hand_over);
        for eth_type in vlan_types() {
            code.jump_if(R1, Cmp::Eq, wire(eth_type), one_more);
        }
        code.wire_to_number(R1);
        code.jump_if(R1, Cmp::Lt, i32::from(ethernet::ETHER_TYPE_MIN), hand_over);
        self.found(OTHER, tags);
        self.code.place(arp);
        self.code.jump_if(R9, Cmp::Lt, number(l3 + arp::PACKET_LEN), hand_over);
        for (at, pair) in arp::ETHERNET_IPV4.as_chunks::<2>().0.iter().enumerate() {
            self.head(Size::Half, R1, l3 + 2 * at);
            self.code.jump_if(R1, Cmp::Ne, wire(u16::from_be_bytes(*pair)), hand_over);
        }
        self.found(ARP, tags);
        self.code.place(mpls);
        self.code.jump_if(R9, Cmp::Lt, number(l3 + mpls::ENTRY_LEN), hand_over);
        self.found(MPLS, tags);
        self.code.place(v4);
        self.find_over_ipv4(l3, tags);
        self.code.place(v6);
        self.find_over_ipv6(l3, tags);
    }

    fn found(&mut self, kind: i32, tags: usize) {
        self.code.alu(Alu::Mov, R2, (kind << TAG_BITS) + number(tags));
        self.code.jump(self.labels.known);
    }

    fn find_over_ipv4(&mut self, l3: usize, tags: usize) {
        let hand_over = self.labels.hand_over;
        self.head(Size::Byte, R1, l3);
        // Version 4 and no options.
        self.code.jump_if(R1, Cmp::Ne, 0x45, hand_over);
        self.head(Size::Half, R1, l3 + ipv4::FRAGMENT.start);
        let code = &mut self.code;
        code.wire_to_number(R1);
        code.alu(Alu::And, R1, i32::from(ipv4::OFFSET_MASK | ipv4::MORE_FRAGMENTS));
        code.jump_if(R1, Cmp::Ne, 0, hand_over);
        self.find_end(l3 + ipv4::TOTAL_LEN.start, l3);
        self.head(Size::Byte, R1, l3 + ipv4::PROTO);
        let l4 = l3 + ipv4::HEADER_LEN;
        self.find_transport(IPV4, ipv4::PROTO_ICMP, icmpv4::HEADER_LEN, l4, tags);
    }

    fn find_over_ipv6(&mut self, l3: usize, tags: usize) {
        let hand_over = self.labels.hand_over;
        let l4 = l3 + ipv6::HEADER_LEN;
        self.code.jump_if(R9, Cmp::Lt, number(l4), hand_over);
        self.head(Size::Byte, R1, l3);
        self.code.alu(Alu::Rsh, R1, 4);
        self.code.jump_if(R1, Cmp::Ne, 6, hand_over);
        self.find_end(l3 + ipv6::PAYLOAD_LEN.start, l4);
        self.head(Size::Byte, R1, l3 + ipv6::NEXT_HEADER);
        for header in RARE_OVER_IPV6 {
            self.code.jump_if(R1, Cmp::Eq, i32::from(header), hand_over);
        }
        // Neighbour discovery has fields of its own.
        let other = self.code.label();
        self.code.jump_if(R1, Cmp::Ne, i32::from(ipv6::PROTO_ICMPV6), other);
        self.head(Size::Byte, R4, l4 + icmpv6::TYPE);
        for kind in [icmpv6::NEIGHBOUR_SOLICIT, icmpv6::NEIGHBOUR_ADVERT] {
            self.code.jump_if(R4, Cmp::Eq, i32::from(kind), hand_over);
        }
        self.code.place(other);
        self.find_transport(IPV6, ipv6::PROTO_ICMPV6, icmpv6::HEADER_LEN, l4, tags);
    }

    /// R3 = where the packet's bytes end: what IP says, or the frame's end before it.
    fn find_end(&mut self, len_at: usize, from: usize) {
        self.head(Size::Half, R3, len_at);
        let code = &mut self.code;
        let is_shorter = code.label();
        code.wire_to_number(R3);
        code.alu(Alu::Add, R3, number(from));
        code.jump_if_reg(R3, Cmp::Le, R9, is_shorter);
        code.alu_reg(Alu::Mov, R3, R9);
        code.place(is_shorter);
    }

    /// The protocol is in R1, the end in R3.
    fn find_transport(&mut self, kind: i32, icmp: u8, icmp_len: usize, l4: usize, tags: usize) {
        let known = [
            (ipv4::PROTO_TCP, tcp::HEADER_LEN),
            (ipv4::PROTO_UDP, udp::HEADER_LEN),
            (ipv4::PROTO_SCTP, sctp::HEADER_LEN),
            (icmp, icmp_len),
        ];
        for (nth, (protocol, least)) in (1..).zip(known) {
            let next = self.code.label();
            self.code.jump_if(R1, Cmp::Ne, i32::from(protocol), next);
            if protocol != icmp && l4 + PORTS_LEN > BYTES {
                // The key does not have them.
                self.code.jump(self.labels.hand_over);
            } else {
                self.code.jump_if(R3, Cmp::Lt, number(l4 + least), self.labels.hand_over);
                self.found(kind + nth, tags);
            }
            self.code.place(next);
        }
        self.code.jump_if(R3, Cmp::Lt, number(l4), self.labels.hand_over);
        self.found(kind, tags);
    }

    /// Masks the bytes and asks the entries.
    fn look_up(&mut self) {
        let Facts { device, entries, entrance, .. } = self.facts;
        let hand_over = self.labels.hand_over;
        let code = &mut self.code;
        code.place(self.labels.known);
        code.store(Size::Double, FP, SHAPE, R2);
        code.store(Size::Word, FP, KEY_SHAPE, R2);
        match entrance {
            Entrance::Device => code.load(Size::Word, R1, R6, skb::IFINDEX),
            Entrance::Queues | Entrance::Patch => code.alu(Alu::Mov, R1, device.cast_signed()),
        }
        code.store(Size::Word, FP, KEY, R1);
        code.alu(Alu::Lsh, R2, 6);
        code.alu_reg(Alu::Mov, R3, R7);
        code.alu_reg(Alu::Add, R3, R2);
        for at in 0..BYTES / 8 {
            let place = HEAD + offset(8 * at);
            code.load(Size::Double, R1, FP, place);
            code.load(Size::Double, R4, R3, offset(STATE_MASKS + 8 * at));
            code.alu_reg(Alu::And, R1, R4);
            code.store(Size::Double, FP, place, R1);
        }
        code.map(R1, entries);
        code.alu_reg(Alu::Mov, R2, FP);
        code.alu(Alu::Add, R2, i32::from(KEY));
        code.call(Helper::MapLookup);
        code.jump_if(R0, Cmp::Eq, 0, hand_over);
        code.alu_reg(Alu::Mov, R7, R0);
        code.load(Size::Double, R1, R7, offset(ENTRY_GENERATION));
        code.jump_if_reg(R1, Cmp::Ne, R8, hand_over);
    }

    /// Hands over where the slot does not hold the entry any more, or its time is over.
    fn ask_slot(&mut self) {
        let hand_over = self.labels.hand_over;
        let code = &mut self.code;
        let holds = code.label();
        code.load(Size::Word, R1, R7, offset(ENTRY_SLOT));
        code.store(Size::Word, FP, CELL, R1);
        code.alu(Alu::Mov, R1, 0);
        code.store(Size::Double, FP, NOW, R1);
        code.map(R1, self.facts.slot_map);
        code.alu_reg(Alu::Mov, R2, FP);
        code.alu(Alu::Add, R2, i32::from(CELL));
        code.call(Helper::MapLookup);
        code.jump_if(R0, Cmp::Eq, 0, hand_over);
        code.store(Size::Double, FP, SLOT, R0);
        code.load(Size::Double, R1, R0, offset(SLOT_TOKEN));
        code.load(Size::Double, R2, R7, offset(ENTRY_TOKEN));
        code.jump_if_reg(R1, Cmp::Ne, R2, hand_over);
        code.load(Size::Double, R8, R0, offset(SLOT_UNTIL));
        code.jump_if(R8, Cmp::Eq, -1, holds);
        code.call(Helper::Time);
        code.jump_if_reg(R0, Cmp::Ge, R8, hand_over);
        code.store(Size::Double, FP, NOW, R0);
        code.place(holds);
    }

    /// R8 = how many packets of a wire the frame is, R9 = their bytes. What some output cannot
    /// carry is handed over, and so are segments of anything but TCP.
    fn measure(&mut self) {
        let hand_over = self.labels.hand_over;
        let code = &mut self.code;
        let (whole, done, no_tag) = (code.label(), code.label(), code.label());
        code.load(Size::Word, R8, R6, skb::GSO_SIZE);
        code.jump_if(R8, Cmp::Eq, 0, whole);
        code.jump_if(R9, Cmp::Lt, number(SHORTEST_GSO), hand_over);
        code.load(Size::Double, R1, FP, SHAPE);
        let is_tcp = code.label();
        for index in 0..Shape::COUNT {
            let Some(shape) = Shape::from_index(index) else { continue };
            let Some(l4) = shape.l4().filter(|_| shape.transport() == packet::Transport::Tcp)
            else {
                continue;
            };
            let next = code.label();
            code.jump_if(R1, Cmp::Ne, number(index), next);
            code.alu(Alu::Mov, R2, number(l4));
            code.jump(is_tcp);
            code.place(next);
        }
        code.jump(hand_over);
        code.place(is_tcp);
        code.store(Size::Double, FP, L4, R2);
        code.load(Size::Word, R1, R6, skb::VLAN_PRESENT);
        code.jump_if(R1, Cmp::Eq, 0, no_tag);
        code.alu(Alu::Sub, R2, number(vlan::TAG_LEN));
        code.place(no_tag);
        code.alu(Alu::Add, R2, number(tcp::DATA_OFFSET));
        self.load_byte();
        // R1 = bytes of all headers, which every segment has.
        let code = &mut self.code;
        code.alu(Alu::Rsh, R1, 4);
        code.alu(Alu::Lsh, R1, 2);
        code.jump_if(R1, Cmp::Lt, number(tcp::HEADER_LEN), hand_over);
        code.load(Size::Double, R2, FP, L4);
        code.alu_reg(Alu::Add, R1, R2);
        code.jump_if_reg(R1, Cmp::Ge, R9, hand_over);
        code.alu_reg(Alu::Mov, R2, R9);
        code.alu_reg(Alu::Sub, R2, R1);
        code.alu_reg(Alu::Add, R2, R8);
        code.alu(Alu::Sub, R2, 1);
        code.alu_reg(Alu::Div, R2, R8);
        code.alu_reg(Alu::Mov, R3, R2);
        code.alu(Alu::Sub, R3, 1);
        code.alu_reg(Alu::Mul, R3, R1);
        code.alu_reg(Alu::Add, R9, R3);
        code.alu_reg(Alu::Add, R1, R8);
        code.alu_reg(Alu::Mov, R8, R2);
        code.jump(done);
        code.place(whole);
        code.alu_reg(Alu::Mov, R1, R9);
        code.alu(Alu::Mov, R8, 1);
        code.place(done);
        self.count_tag();
        let code = &mut self.code;
        code.load(Size::Word, R2, R7, offset(ENTRY_LEN_MAX));
        code.jump_if_reg(R1, Cmp::Gt, R2, hand_over);
    }

    /// R1 = that length as it counts for an MTU when the frame leaves: one tag of 802.1Q does not,
    /// as the kernel has it for what the worker sends.
    fn count_tag(&mut self) {
        let code = &mut self.code;
        let (untagged, stays, done) = (code.label(), code.label(), code.label());
        code.load(Size::Double, R4, FP, SLOT);
        code.load(Size::Double, R2, FP, SHAPE);
        code.alu(Alu::And, R2, TAG_MASK);
        code.jump_if(R2, Cmp::Eq, 0, untagged);
        code.alu(Alu::Sub, R1, number(vlan::TAG_LEN));
        code.load(Size::Word, R3, R4, offset(SLOT_TAG));
        code.load(Size::Double, R2, FP, OUTER);
        code.jump_if(R3, Cmp::Ne, TAG_POP, stays);
        // Another tag is the first one then.
        code.load(Size::Double, R2, FP, INNER);
        code.jump_if(R2, Cmp::Ne, wire(ethernet::VLAN), done);
        code.alu(Alu::Sub, R1, number(vlan::TAG_LEN));
        code.jump(done);
        code.place(stays);
        code.jump_if(R2, Cmp::Eq, wire(ethernet::VLAN), done);
        code.alu(Alu::Add, R1, number(vlan::TAG_LEN));
        code.jump(done);
        code.place(untagged);
        code.load(Size::Word, R3, R4, offset(SLOT_TAG_BEYOND));
        code.alu_reg(Alu::Add, R1, R3);
        code.place(done);
    }

    /// R1 = the byte of the frame at R2.
    fn load_byte(&mut self) {
        let code = &mut self.code;
        code.alu_reg(Alu::Mov, R1, R6);
        code.alu_reg(Alu::Mov, R3, FP);
        code.alu(Alu::Add, R3, i32::from(BYTE));
        code.alu(Alu::Mov, R4, 1);
        code.call(Helper::SkbLoadBytes);
        code.jump_if(R0, Cmp::Ne, 0, self.labels.hand_over);
        code.load(Size::Byte, R1, FP, BYTE);
    }

    /// Hands over what the rewrite does not fit: a frame whose outermost VLAN tag stands in it and
    /// not beside it, and one whose TTL is used up.
    fn ask_headers(&mut self) {
        let hand_over = self.labels.hand_over;
        let code = &mut self.code;
        let (changes, done, no_ttl) = (code.label(), code.label(), code.label());
        let fits = code.label();
        code.load(Size::Double, R2, FP, SLOT);
        code.load(Size::Word, R3, R2, offset(SLOT_TTL_AT));
        code.load(Size::Word, R1, R2, offset(SLOT_TAG));
        code.jump_if(R1, Cmp::Ne, 0, changes);
        code.load(Size::Word, R1, R2, offset(SLOT_WORDS));
        code.jump_if(R1, Cmp::Ne, 0, changes);
        code.jump_if(R3, Cmp::Eq, 0, done);
        code.place(changes);
        code.load(Size::Double, R1, FP, SHAPE);
        code.alu(Alu::And, R1, TAG_MASK);
        code.jump_if(R1, Cmp::Eq, 0, fits);
        code.load(Size::Word, R1, R6, skb::VLAN_PRESENT);
        code.jump_if(R1, Cmp::Eq, 0, hand_over);
        code.place(fits);
        code.jump_if(R3, Cmp::Eq, 0, no_ttl);
        code.alu_reg(Alu::Mov, R2, R3);
        self.load_byte();
        let code = &mut self.code;
        code.load(Size::Double, R2, FP, SLOT);
        code.load(Size::Word, R2, R2, offset(SLOT_TTL_ABOVE));
        code.jump_if_reg(R1, Cmp::Le, R2, hand_over);
        code.place(no_ttl);
        code.place(done);
    }

    /// Changes the headers and fills up what is too short for Ethernet, then counts it as sent.
    /// A frame without an output stays as it is.
    fn rewrite(&mut self) {
        let lost = self.labels.lost;
        let code = &mut self.code;
        let (goes, no_tag, enough) = (code.label(), code.label(), code.label());
        code.load(Size::Word, R1, R7, offset(ENTRY_OUTPUTS));
        code.jump_if(R1, Cmp::Ne, 0, goes);
        code.alu(Alu::Mov, R8, DROP);
        code.jump(self.labels.leave);
        code.place(goes);
        code.load(Size::Double, R9, FP, SLOT);
        rewrite::run(code, lost);
        rewrite::change_tag(code, (PACKETS, SENT_BYTES), lost);
        code.load(Size::Word, R2, R6, skb::LEN);
        code.alu_reg(Alu::Mov, R8, R2);
        code.load(Size::Word, R1, R6, skb::VLAN_PRESENT);
        code.jump_if(R1, Cmp::Eq, 0, no_tag);
        code.alu(Alu::Add, R8, number(vlan::TAG_LEN));
        code.place(no_tag);
        code.jump_if(R8, Cmp::Ge, number(ethernet::FRAME_MIN_LEN), enough);
        code.alu(Alu::Add, R2, number(ethernet::FRAME_MIN_LEN));
        code.alu_reg(Alu::Sub, R2, R8);
        code.alu_reg(Alu::Mov, R1, R6);
        code.alu(Alu::Mov, R3, 0);
        code.call(Helper::SkbChangeTail);
        code.jump_if(R0, Cmp::Ne, 0, lost);
        // It is one packet: super-frames are longer.
        code.alu(Alu::Mov, R1, number(ethernet::FRAME_MIN_LEN));
        code.store(Size::Double, FP, SENT_BYTES, R1);
        code.place(enough);
        code.load(Size::Double, R3, FP, CELL_AT);
        for (at, from) in [(CELL_SENT_BYTES, SENT_BYTES), (CELL_SENT_PACKETS, PACKETS)] {
            code.load(Size::Double, R2, FP, from);
            code.load(Size::Double, R1, R3, offset(at));
            code.alu_reg(Alu::Add, R1, R2);
            code.store(Size::Double, R3, offset(at), R1);
        }
    }

    /// A frame for which the kernel has no memory is lost.
    fn lose(&mut self) {
        let code = &mut self.code;
        code.place(self.labels.lost);
        code.load(Size::Double, R3, FP, CELL_AT);
        code.load(Size::Double, R2, FP, PACKETS);
        code.load(Size::Double, R1, R3, offset(CELL_LOST));
        code.alu_reg(Alu::Add, R1, R2);
        code.store(Size::Double, R3, offset(CELL_LOST), R1);
        code.alu(Alu::Mov, R8, DROP);
        code.jump(self.labels.leave);
    }

    /// Counts in the cell of this processor and the entry's slot.
    fn count(&mut self) {
        let Facts { counts, slots, .. } = self.facts;
        let code = &mut self.code;
        code.load(Size::Double, R1, FP, CPU);
        code.alu(Alu::Mul, R1, number(slots as usize));
        code.load(Size::Word, R2, R7, offset(ENTRY_SLOT));
        code.alu_reg(Alu::Add, R1, R2);
        code.store(Size::Word, FP, CELL, R1);
        code.map(R1, counts);
        code.alu_reg(Alu::Mov, R2, FP);
        code.alu(Alu::Add, R2, i32::from(CELL));
        code.call(Helper::MapLookup);
        code.jump_if(R0, Cmp::Eq, 0, self.labels.hand_over);
        // The time first: who sees a packet counted sees when.
        code.load(Size::Double, R1, FP, NOW);
        code.store(Size::Double, R0, offset(CELL_USED), R1);
        // A reader that sees a packet counted sees its bytes.
        for (at, amount) in [(CELL_BYTES, R9), (CELL_PACKETS, R8)] {
            code.load(Size::Double, R1, R0, offset(at));
            code.alu_reg(Alu::Add, R1, amount);
            code.store(Size::Double, R0, offset(at), R1);
        }
        code.store(Size::Double, FP, CELL_AT, R0);
        code.store(Size::Double, FP, PACKETS, R8);
        code.store(Size::Double, FP, SENT_BYTES, R9);
    }

    fn end(&mut self) {
        let Facts { tap, taps, entrance, .. } = self.facts;
        let code = &mut self.code;
        code.place(self.labels.hand_over);
        if entrance == Entrance::Queues {
            // Not before: an output would choose one of its own queues by it.
            code.load(Size::Word, R1, R6, skb::CB);
            code.store(Size::Word, R6, skb::QUEUE_MAPPING, R1);
        }
        code.load(Size::Double, R1, FP, RUNS);
        code.alu(Alu::Add, R1, number(RUNS_HANDED_OVER));
        code.alu(Alu::Mov, R2, 1);
        code.fetch_add(R1, R2);
        if entrance == Entrance::Device {
            code.load(Size::Word, R1, R6, skb::IFINDEX);
            code.store(Size::Word, FP, CELL, R1);
            code.map(R1, taps);
            code.alu_reg(Alu::Mov, R2, FP);
            code.alu(Alu::Add, R2, i32::from(CELL));
            code.call(Helper::MapLookup);
            // While a device has none, the frame is in its ring.
            code.alu(Alu::Mov, R8, DROP);
            code.jump_if(R0, Cmp::Eq, 0, self.labels.leave);
            code.load(Size::Word, R1, R0, 0);
            let is_ours = code.label();
            code.jump_if(R1, Cmp::Le, i32::MAX, is_ours);
            code.alu(Alu::And, R1, (!TAKES_OVER).cast_signed());
            code.load(Size::Double, R2, FP, RUNS);
            code.load(Size::Double, R2, R2, offset(RUNS_IN_RING));
            code.jump_if(R2, Cmp::Ne, 0, self.labels.leave);
            code.place(is_ours);
        } else {
            code.alu(Alu::Mov, R1, tap.cast_signed());
        }
        code.alu(Alu::Mov, R2, TO_INGRESS);
        code.call(Helper::Redirect);
        code.alu_reg(Alu::Mov, R8, R0);
        code.place(self.labels.leave);
        code.load(Size::Double, R1, FP, RUNS);
        code.alu(Alu::Mov, R2, 1);
        code.fetch_add(R1, R2);
        code.alu_reg(Alu::Mov, R0, R8);
        code.exit();
    }
}

/// A shape's index: its kind, and in the lowest bits how many VLAN tags it has.
const TAG_BITS: i32 = 2;
const TAG_MASK: i32 = (1 << TAG_BITS) - 1;
const TAGS_MAX: usize = 2;
/// Kinds of shapes.
const OTHER: i32 = 1;
const ARP: i32 = 2;
const MPLS: i32 = 3;
const IPV4: i32 = 4;
const IPV6: i32 = 9;

/// Source and destination port, where a transport's header starts with them.
const PORTS_LEN: usize = 4;

/// Headers after that of IPv6 that make a frame rare.
const RARE_OVER_IPV6: [u8; 7] =
    [ipv6::HOP, ipv6::ROUTING, ipv6::FRAGMENT, ipv6::ESP, ipv6::AUTH, ipv6::NO_NEXT, ipv6::DEST];

pub(super) fn vlan_types() -> impl Iterator<Item = u16> {
    (0..=u16::MAX).filter(|eth_type| ethernet::is_vlan(*eth_type))
}
