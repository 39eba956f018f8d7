//! Offsets of the few numbers that the emulator reads and writes millions of times a second.
//!
//! A packet-in is encoded once for each port and patched for each packet; of an answer only the
//! number is read that says which packet-in it answers. The offsets are not written down here: the
//! codec is asked, by encoding messages that differ in one value, so that they hold for every
//! version. Whether messages are right otherwise is the codec's to say, see `switch`.

use anyhow::{Context, Result, ensure};
use openflow::flow::{FlowMod, FlowModCommand};
use openflow::message::{PacketIn, PacketInReason, PacketOut};
use openflow::{
    Action, BufferId, Cookie, Field, Match, Message, MessageKind, PortNo, TableId, Version, Xid,
};
use wire::MessageHeader;

use crate::hosts::{Hosts, Packets, is_lldp, marked};

/// The buffer number of a packet that is in none (`OFP_NO_BUFFER`).
const NO_BUFFER: u32 = u32::MAX;

/// Two numbers whose bytes differ everywhere, none of which stands in a message by itself.
const PROBES: [u32; 2] = [0xa1b2_c3d4, 0x5e6f_7a8b];

/// An answer to a packet-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A packet-out, with the number of the packet-in whose packet it sends.
    PacketOut(Option<u32>),
    /// A flow-mod that adds or changes an entry, with the number of the packet-in whose packet it
    /// sends by that entry.
    FlowMod(Option<u32>),
    /// A packet-out of LLDP, or a flow-mod that removes: the controller's own doing.
    Own,
}

/// Reads answers of one version.
#[derive(Clone, Debug)]
pub struct AnswerLayout {
    packet_out: u8,
    flow_mod: u8,
    packet_out_buffer: usize,
    /// The 16 bits that say how long a packet-out's actions are.
    actions_len: usize,
    /// Start of its packet if it had no action.
    packet: usize,
    flow_mod_buffer: usize,
    command: usize,
}

impl AnswerLayout {
    /// That of this version.
    ///
    /// # Errors
    /// When the codec does not say its messages as this file expects it.
    pub fn of(version: Version) -> Result<Self> {
        let packet_out = |buffer_id: Option<u32>, actions: usize| {
            let body = PacketOut {
                buffer_id: buffer_id.map(BufferId),
                in_port: PortNo(1),
                actions: vec![Action::output(PortNo(2)); actions],
                data: Vec::new(),
            };
            encode(version, &Message::PacketOut(body))
        };
        let flow_mod = |buffer_id: Option<u32>, command| {
            let body = FlowMod { buffer_id: buffer_id.map(BufferId), ..FlowMod::new(command) };
            encode(version, &Message::FlowMod(body))
        };
        let (none, one) = (packet_out(None, 0)?, packet_out(None, 1)?);
        let grown = u16::try_from(one.len() - none.len()).context("an action's length")?;
        let add = FlowModCommand::Add;
        let number = |kind: MessageKind| {
            kind.number(version).with_context(|| format!("{version} has no {kind:?}"))
        };
        Ok(Self {
            packet_out: number(MessageKind::PacketOut)?,
            flow_mod: number(MessageKind::FlowMod)?,
            packet_out_buffer: place(|probe| packet_out(Some(probe), 0))?,
            actions_len: (wire::HEADER_LEN..none.len() - 1)
                .find(|at| none[*at..at + 2] == [0; 2] && one[*at..at + 2] == grown.to_be_bytes())
                .context("a packet-out without the length of its actions")?,
            packet: none.len(),
            flow_mod_buffer: place(|probe| flow_mod(Some(probe), add))?,
            command: difference(&flow_mod(None, add)?, &flow_mod(None, FlowModCommand::Delete)?)?,
        })
    }

    /// The packet-in that this message answers; `None` for another kind, or a message that is too
    /// short.
    #[inline]
    pub fn read(&self, header: MessageHeader, bytes: &[u8]) -> Option<Answer> {
        if header.message_type == self.packet_out {
            let buffer = number_at(bytes, self.packet_out_buffer)?;
            if buffer != NO_BUFFER {
                return Some(Answer::PacketOut(Some(buffer)));
            }
            let length = *bytes.get(self.actions_len..)?.first_chunk()?;
            let packet = bytes.get(self.packet + usize::from(u16::from_be_bytes(length))..)?;
            let is_own = is_lldp(packet);
            return Some(if is_own { Answer::Own } else { Answer::PacketOut(marked(packet)) });
        }
        if header.message_type != self.flow_mod {
            return None;
        }
        let buffer = number_at(bytes, self.flow_mod_buffer)?;
        let command = FlowModCommand::from_number(*bytes.get(self.command)?);
        Some(match command {
            FlowModCommand::Add | FlowModCommand::Modify | FlowModCommand::ModifyStrict => {
                Answer::FlowMod((buffer != NO_BUFFER).then_some(buffer))
            }
            FlowModCommand::Delete | FlowModCommand::DeleteStrict | FlowModCommand::Unknown(_) => {
                Answer::Own
            }
        })
    }
}

/// Whether packet-ins name a buffer or carry the whole packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffering {
    /// The packet waits in the switch under a number, as `cbench` has it.
    Buffered,
    /// The packet-in carries the packet and the packet-out carries it back.
    Whole,
}

/// Encoded packet-ins to be patched.
#[derive(Clone, Debug)]
pub struct PacketIns {
    packets: Packets,
    /// Of each port: an announcement, a datagram.
    templates: Vec<[Vec<u8>; 2]>,
    /// Offset of the buffer's number; none when packets are sent whole.
    buffer: Option<usize>,
    packet: usize,
}

impl PacketIns {
    /// Those of this version, for a number of ports and a size of datagrams in bytes.
    ///
    /// # Errors
    /// When the version has no such port.
    pub fn new(
        version: Version,
        ports: u32,
        frame_bytes: u16,
        buffering: Buffering,
    ) -> Result<Self> {
        let packets = Packets::new(frame_bytes);
        let frame = |port: u32, buffer_id: Option<u32>, data: &[u8]| {
            let body = PacketIn {
                buffer_id: buffer_id.map(BufferId),
                total_len: u16::try_from(data.len()).context("a packet's length")?,
                reason: PacketInReason::NoMatch,
                table_id: TableId(0),
                cookie: Cookie(u64::MAX),
                matching: Match::any().with(Field::InPort, port.into()),
                data: data.to_vec(),
                userdata: Vec::new(),
                continuation: Vec::new(),
                controller_id: 0,
            };
            encode(version, &Message::PacketIn(body))
        };
        let buffer_id = match buffering {
            Buffering::Buffered => Some(PROBES[0]),
            Buffering::Whole => None,
        };
        let both = |port| {
            let template = |data: &[u8]| frame(port, buffer_id, data);
            Ok([template(&packets.announcement)?, template(&packets.datagram)?])
        };
        let templates = (1..=ports).map(both).collect::<Result<Vec<_>>>()?;
        let buffer = buffer_id.map(|_| place(|probe| frame(1, Some(probe), &[]))).transpose()?;
        let packet = templates[0][1].len() - packets.datagram.len();
        Ok(Self { packets, templates, buffer, packet })
    }

    /// Writes the packet-in of this number about an announcement of `host` into `out`.
    pub fn announce(&self, out: &mut Vec<u8>, hosts: &Hosts, host: u32, number: u32) {
        self.begin(out, hosts.port(host), 0, number);
        Packets::announce(&mut out[self.packet..], hosts, host, number);
    }

    /// The same about a datagram from `host` to its partner.
    pub fn address(&self, out: &mut Vec<u8>, hosts: &Hosts, host: u32, number: u32) {
        self.begin(out, hosts.port(host), 1, number);
        self.packets.address(&mut out[self.packet..], hosts, host, number);
    }

    fn begin(&self, out: &mut Vec<u8>, port: PortNo, which: usize, number: u32) {
        out.clear();
        out.extend_from_slice(&self.templates[port.0 as usize - 1][which]);
        if let Some(at) = self.buffer {
            out[at..at + 4].copy_from_slice(&number.to_be_bytes());
        }
    }
}

fn encode(version: Version, message: &Message) -> Result<Vec<u8>> {
    wire::encode(version, Xid(0), message).with_context(|| format!("{version}"))
}

fn number_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Offset at which `encode` puts the number that it is given.
fn place(encode: impl Fn(u32) -> Result<Vec<u8>>) -> Result<usize> {
    let find = |probe: u32| -> Result<usize> {
        let frame = encode(probe)?;
        let found = frame.windows(4).position(|bytes| bytes == probe.to_be_bytes());
        found.context("a message without the number that was put into it")
    };
    let [first, second] = [find(PROBES[0])?, find(PROBES[1])?];
    ensure!(first == second, "a message with the same number in two places");
    Ok(first)
}

/// The only byte in which two frames differ.
fn difference(one: &[u8], other: &[u8]) -> Result<usize> {
    ensure!(one.len() == other.len(), "messages of two lengths");
    let mut differing = (0..one.len()).filter(|at| one[*at] != other[*at]);
    let first = differing.next().context("messages that are the same")?;
    ensure!(differing.next().is_none(), "messages that differ in two places");
    Ok(first)
}

#[cfg(test)]
mod tests {
    use openflow::flow::{FlowMod, FlowModCommand};
    use openflow::message::PacketOut;
    use openflow::{Action, BufferId, Message, PortNo, Version};
    use wire::MessageHeader;

    use super::{Answer, AnswerLayout, Buffering, PacketIns, encode};
    use crate::hosts::{Hosts, marked};

    const HOSTS: Hosts = Hosts { switch: 1, count: 8, ports: 4 };

    fn read(version: Version, message: &Message) -> Option<Answer> {
        let frame = encode(version, message).unwrap();
        let header = MessageHeader::parse(&frame).unwrap();
        let layout = AnswerLayout::of(version).unwrap();
        for end in 0..frame.len() {
            // A message may be shorter than its kind: nothing is read behind its end.
            let _ = layout.read(header, &frame[..end]);
        }
        layout.read(header, &frame)
    }

    #[test]
    fn a_packet_in_is_what_the_codec_would_have_made() {
        for &version in Version::ALL {
            for buffering in [Buffering::Buffered, Buffering::Whole] {
                let packet_ins = PacketIns::new(version, 4, 100, buffering).unwrap();
                let mut frame = Vec::new();
                for host in 0..8 {
                    packet_ins.address(&mut frame, &HOSTS, host, 77);
                    let Ok((_, _, Message::PacketIn(whole))) = wire::decode(&frame) else {
                        panic!("{version}: {frame:02x?}");
                    };
                    assert_eq!(whole.in_port(), Some(HOSTS.port(host)));
                    let buffer = (buffering == Buffering::Buffered).then_some(BufferId(77));
                    assert_eq!((whole.buffer_id, whole.data.len()), (buffer, 100));
                    assert_eq!(marked(&whole.data), Some(77));
                    packet::verify(&whole.data).unwrap();
                    packet_ins.announce(&mut frame, &HOSTS, host, 78);
                    let Ok((_, _, Message::PacketIn(whole))) = wire::decode(&frame) else {
                        panic!("{version}: {frame:02x?}");
                    };
                    assert_eq!((marked(&whole.data), whole.data.len()), (Some(78), 60));
                }
            }
        }
    }

    #[test]
    fn answers_say_which_packet_in_they_answer() {
        for &version in Version::ALL {
            let mut data = Vec::new();
            let whole = PacketIns::new(version, 2, 60, Buffering::Whole).unwrap();
            whole.address(&mut data, &HOSTS, 0, 5);
            let Ok((_, _, Message::PacketIn(packet_in))) = wire::decode(&data) else { panic!() };
            for actions in 0..3 {
                let actions = vec![Action::output(PortNo(3)); actions];
                let out = |buffer_id, data| {
                    let actions = actions.clone();
                    Message::PacketOut(PacketOut { buffer_id, in_port: PortNo(1), actions, data })
                };
                let answer = read(version, &out(Some(BufferId(9)), vec![]));
                assert_eq!(answer, Some(Answer::PacketOut(Some(9))));
                let answer = read(version, &out(None, packet_in.data.clone()));
                assert_eq!(answer, Some(Answer::PacketOut(Some(5))));
                let answer = read(version, &out(None, vec![0; 60]));
                assert_eq!(answer, Some(Answer::PacketOut(None)));
                let mut lldp = packet_in.data.clone();
                lldp[12..14].copy_from_slice(&[0x88, 0xcc]);
                assert_eq!(read(version, &out(None, lldp)), Some(Answer::Own));
            }
            let flow_mod = |command, buffer_id| {
                read(version, &Message::FlowMod(FlowMod { buffer_id, ..FlowMod::new(command) }))
            };
            let add = FlowModCommand::Add;
            assert_eq!(flow_mod(add, Some(BufferId(3))), Some(Answer::FlowMod(Some(3))));
            assert_eq!(flow_mod(FlowModCommand::ModifyStrict, None), Some(Answer::FlowMod(None)));
            assert_eq!(flow_mod(FlowModCommand::DeleteStrict, None), Some(Answer::Own));
            assert_eq!(read(version, &Message::BarrierRequest), None);
        }
    }
}
