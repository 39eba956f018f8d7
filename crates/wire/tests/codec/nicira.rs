//! Flow entries in Nicira's form of OpenFlow 1.0: every field comes back, and no truncation is
//! taken.

use openflow::field::{FIELDS, VID_PRESENT};
use openflow::flow::{
    FlowForm, FlowMod, FlowModCommand, FlowModFlags, FlowRemoved, FlowRemovedReason, FlowStats,
    FlowStatsRequest,
};
use openflow::message::{
    AsyncEvent, MultipartReply, MultipartReplyBody, MultipartRequest, MultipartRequestBody,
    PacketIn, PacketInForm, PacketInReason,
};
use openflow::{Cookie, Error, Field, Match, Message, PortNo, TableId, Version, Xid};
use wire::Forms;

use crate::random::{self, Entropy};

pub(crate) const NXM: Forms =
    Forms { has_table_ids: false, flows: FlowForm::Nicira, packet_ins: PacketInForm::Standard };

/// Matches on each field that the form can say; a port has 16 bits, and the number of a VLAN tag is
/// one with the bit of the tag.
pub(crate) fn matches(per_field: usize) -> Vec<Match> {
    let mut all = vec![Match::any()];
    for (index, row) in FIELDS.iter().enumerate() {
        for seed in 0..per_field {
            let bytes = random::bytes(index * per_field + seed);
            let mut entropy = Entropy::new(&bytes);
            let made = random::match_on(&mut entropy, Version::NEWEST, row.field);
            let mut matching = made.unwrap();
            if let Some(port) = matching.get(Field::InPort) {
                matching.set(Field::InPort, port.value % 0xfeff + 1, u128::MAX);
            }
            if let Some(vid) = matching.get(Field::VlanVid).copied()
                && vid.mask & VID_PRESENT != 0
                && vid.value & VID_PRESENT == 0
            {
                matching.set(Field::VlanVid, vid.value | VID_PRESENT, vid.mask);
            }
            if matching.check_prerequisites().is_ok() {
                all.push(matching);
            }
        }
    }
    all
}

fn written(message: &Message) -> Vec<u8> {
    let mut frame = Vec::new();
    wire::encode_in(&mut frame, NXM, Version::V1_0, Xid(1), message)
        .unwrap_or_else(|error| panic!("{error}: {message:?}"));
    frame
}

/// Writes and reads; the same must come out, and no truncation may be accepted.
fn round_trip(message: &Message) {
    let frame = written(message);
    assert_eq!(frame[..2], [1, frame[1]]);
    let read = wire::decode(&frame).unwrap_or_else(|error| panic!("{error}: {message:?}"));
    assert_eq!(read, (Version::V1_0, Xid(1), message.clone()));
    for len in 8..frame.len() {
        let mut short = frame[..len].to_vec();
        short[2..4].copy_from_slice(&(len as u16).to_be_bytes());
        let taken = wire::decode(&short);
        let is_shorter_list = matches!(&taken, Ok((_, _, Message::MultipartReply(_))));
        // Before its type, a message is anybody's.
        let is_unnamed = match &taken {
            Ok((_, _, Message::Experimenter(_))) => len < 16,
            Ok((_, _, Message::MultipartRequest(request))) => {
                matches!(request.body, MultipartRequestBody::Experimenter(_)) && len < 24
            }
            _ => false,
        };
        assert!(taken.is_err() || is_unnamed || is_shorter_list, "{len} bytes of {message:?}");
    }
}

pub(crate) fn entry(matching: Match) -> FlowStats {
    FlowStats {
        table_id: TableId(3),
        duration_s: 1,
        duration_ns: 2,
        priority: 5,
        idle_timeout_s: 6,
        hard_timeout_s: 7,
        flags: FlowModFlags::empty(),
        importance: 0,
        cookie: Cookie(8),
        packet_count: 9,
        byte_count: 10,
        matching,
        instructions: Vec::new(),
    }
}

#[test]
fn every_field_comes_back_in_every_message() {
    for matching in matches(8) {
        round_trip(&Message::FlowMod(FlowMod {
            matching: matching.clone(),
            flags: FlowModFlags::SEND_FLOW_REM,
            ..FlowMod::new(FlowModCommand::Add)
        }));
        let asked = FlowStatsRequest {
            matching: matching.clone(),
            form: FlowForm::Nicira,
            cookie: Cookie(5),
            cookie_mask: 0xff,
            out_port: PortNo(3),
            ..FlowStatsRequest::all()
        };
        for body in
            [MultipartRequestBody::Flow(asked.clone()), MultipartRequestBody::Aggregate(asked)]
        {
            round_trip(&Message::MultipartRequest(MultipartRequest { more: false, body }));
        }
        round_trip(&Message::FlowRemoved(FlowRemoved {
            cookie: Cookie(1),
            priority: 2,
            reason: FlowRemovedReason::Delete,
            table_id: TableId(4),
            duration_s: 5,
            duration_ns: 6,
            idle_timeout_s: 7,
            hard_timeout_s: 0,
            packet_count: 8,
            byte_count: 9,
            matching: matching.clone(),
        }));
        let body = MultipartReplyBody::Flow(vec![entry(matching.clone()), entry(matching)]);
        round_trip(&Message::MultipartReply(MultipartReply { more: false, body }));
    }
}

/// A message with a changed byte is refused, or is one that comes back.
#[test]
fn no_changed_byte_makes_a_message_that_does_not_come_back() {
    let mut taken = 0;
    for matching in matches(1) {
        let flow = FlowMod { matching: matching.clone(), ..FlowMod::new(FlowModCommand::Add) };
        let body = MultipartReplyBody::Flow(vec![entry(matching)]);
        let reply = Message::MultipartReply(MultipartReply { more: false, body });
        for message in [Message::FlowMod(flow), reply] {
            let frame = written(&message);
            for (at, by) in (16..frame.len()).flat_map(|at| [1, 2, 0x40, 0xff].map(|by| (at, by))) {
                let mut changed = frame.clone();
                changed[at] ^= by;
                let Ok((version, xid, read)) = wire::decode(&changed) else { continue };
                let mut again = Vec::new();
                if wire::encode_in(&mut again, NXM, version, xid, &read).is_ok() {
                    taken += 1;
                    let back = wire::decode(&again).map(|(_, _, message)| message);
                    assert_eq!(back, Ok(read), "byte {at} of {message:?}");
                }
            }
        }
    }
    assert!(taken > 1000, "{taken}");
}

#[test]
fn cookies_are_looked_for_and_given() {
    use FlowModCommand::{Add, Delete, Modify, ModifyStrict};
    for (command, cookie, cookie_mask, new_cookie) in [
        (Modify, 5, u64::MAX, None),
        (Modify, 5, 0xff, Some(Cookie(7))),
        (ModifyStrict, 4, 0xfc, Some(Cookie(0))),
        (Modify, 7, 0, None),
        (Modify, u64::MAX, 0, None),
        (Delete, 9, u64::MAX, None),
        (Add, 9, 0, None),
    ] {
        let table_id = if command == Add { TableId(0) } else { TableId::ALL };
        let cookie = Cookie(cookie);
        let flow = FlowMod { table_id, cookie, cookie_mask, new_cookie, ..FlowMod::new(command) };
        round_trip(&Message::FlowMod(flow));
    }
    // An add has none to look for.
    let asks = FlowMod { table_id: TableId::ALL, cookie_mask: 1, ..FlowMod::new(Delete) };
    let mut frame = written(&Message::FlowMod(asks));
    frame[16 + 9] = Add.number();
    assert_eq!(wire::decode(&frame).unwrap_err().error, Error::BadRequestNxmInvalid);
}

/// A flow-mod with these entries of a match.
fn with_entries(entries: &[u8]) -> Result<Match, Error> {
    let mut frame = written(&Message::FlowMod(FlowMod::new(FlowModCommand::Add)));
    let len = entries.len() as u16;
    frame[16 + 24..16 + 26].copy_from_slice(&len.to_be_bytes());
    frame.extend(entries);
    frame.resize(frame.len().next_multiple_of(8), 0);
    let all = (frame.len() as u16).to_be_bytes();
    frame[2..4].copy_from_slice(&all);
    let Message::FlowMod(flow) = wire::decode(&frame).map_err(|error| error.error)?.2 else {
        panic!("no flow-mod");
    };
    Ok(flow.matching)
}

#[test]
fn a_vlan_tag_is_one_number() {
    let tci = |value: u16, mask: u16| {
        let [a, b] = value.to_be_bytes();
        let [c, d] = mask.to_be_bytes();
        with_entries(&[0, 0, 9, 4, a, b, c, d])
    };
    let vid = |value, mask| Match::any().with_masked(Field::VlanVid, value, mask);
    assert_eq!(tci(0, 0xffff), Ok(vid(0, 0x1fff)));
    assert_eq!(tci(0x1000, 0x1000), Ok(vid(VID_PRESENT, VID_PRESENT)));
    assert_eq!(tci(0x1005, 0x1fff), Ok(vid(VID_PRESENT | 5, 0x1fff)));
    assert_eq!(tci(0x7005, 0xffff), Ok(vid(VID_PRESENT | 5, 0x1fff).with(Field::VlanPcp, 3)));
    assert_eq!(tci(0x7005, 0xf000), Ok(vid(VID_PRESENT, VID_PRESENT).with(Field::VlanPcp, 3)));
    assert_eq!(tci(0, 0), Ok(Match::any()));
    assert_eq!(tci(0, 0xf000), Ok(vid(0, VID_PRESENT)), "no tag, so no priority");
    assert_eq!(tci(5, 0xffff), Err(Error::BadMatchBadValue), "an id without a tag");
    assert_eq!(tci(0x1000, 0x3000), Err(Error::BadMatchBadMask), "a bit of the priority");
    assert_eq!(tci(0x2000, 0xe000), Err(Error::BadMatchBadPrereq));
}

#[test]
fn a_bad_match_is_refused_by_its_own_error() {
    for (entries, error) in [
        (&[0, 0, 0, 2, 0][..], Error::BadMatchBadLen),
        (&[0, 0, 0, 3, 0, 1, 2], Error::BadMatchBadField),
        (&[0, 7, 0, 2, 0, 1], Error::BadMatchBadField),
        (&[0, 1, 0xfe, 4, 0, 0, 0, 1], Error::BadMatchBadField),
        (&[0, 1, 0, 3, 0, 0, 1], Error::BadMatchBadLen),
        (&[0, 1, 0, 4, 0, 0, 0, 1, 0, 1, 0, 4, 0, 0, 0, 1], Error::BadMatchDupField),
        (&[0, 0, 0x0a, 1, 3], Error::BadMatchBadValue),
        (&[0, 0, 0x0a, 1, 4], Error::BadMatchBadPrereq),
        (&[0, 0, 0x0e, 4, 10, 0, 0, 1], Error::BadMatchBadPrereq),
        (&[0, 0, 0x01, 4, 0, 1, 0, 1], Error::BadMatchBadMask),
        (&[0, 0, 0x09, 5, 0x10, 0, 0x10, 0, 0], Error::BadMatchBadField),
        (&[0, 0, 0x08, 3, 0x10, 0, 0], Error::BadMatchBadField),
    ] {
        assert_eq!(with_entries(entries), Err(error), "{entries:02x?}");
    }
    // Bits outside of a mask mean nothing, as in Open vSwitch.
    let masked = with_entries(&[0, 1, 1, 8, 0, 0, 0x12, 0x34, 0, 0, 0, 0xff]);
    assert_eq!(masked, Ok(Match::any().with_masked(Field::Reg0, 0x34, 0xff)));
}

/// An entry: its header, then value and mask.
fn of(class: u16, number: u8, has_mask: bool, bytes: &[u8]) -> Vec<u8> {
    let mut entry = class.to_be_bytes().to_vec();
    entry.extend([number << 1 | u8::from(has_mask), bytes.len() as u8]);
    entry.extend(bytes);
    entry
}

#[test]
fn registers_are_matched_as_one_by_their_numbers() {
    let words = |of: &[u32]| of.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<u8>>();
    let first = || Match::any().with(Field::Reg0, 1).with(Field::Reg1, 2);
    let xreg0 = of(0x8001, 0, false, &words(&[1, 2]));
    assert_eq!(with_entries(&xreg0), Ok(first()));
    let xxreg0 = of(1, 111, false, &words(&[1, 2, 3, 4]));
    let four = first().with(Field::Reg2, 3).with(Field::Reg3, 4);
    assert_eq!(with_entries(&xxreg0), Ok(four));
    // Bits outside of the mask mean nothing, and words without a bit of it are not looked at.
    let last = of(1, 114, true, &words(&[7, 0xffff, 7, 9, 0, 0xff, 0, u32::MAX]));
    let two = Match::any().with_masked(Field::Reg13, 0xff, 0xff).with(Field::Reg15, 9);
    assert_eq!(with_entries(&last), Ok(two));
    assert_eq!(with_entries(&of(1, 111, true, &[0; 32])), Ok(Match::any()));
    for (entries, error) in [
        ([xreg0, of(1, 1, false, &words(&[5]))].concat(), Error::BadMatchDupField),
        ([xxreg0.clone(), xxreg0.clone()].concat(), Error::BadMatchDupField),
        ([xxreg0.clone(), of(0x8001, 1, false, &[0; 8])].concat(), Error::BadMatchDupField),
        (of(1, 111, false, &[0; 8]), Error::BadMatchBadLen),
        (of(1, 111, true, &[0; 16]), Error::BadMatchBadLen),
        (of(1, 111, false, &[0; 32]), Error::BadMatchBadLen),
        (of(0x8001, 7, true, &[0; 15]), Error::BadMatchBadLen),
        (of(0x8001, 8, false, &[0; 8]), Error::BadMatchBadField),
        (of(1, 115, false, &[0; 16]), Error::BadMatchBadField),
        (xxreg0[..19].to_vec(), Error::BadMatchBadLen),
        (xxreg0[..3].to_vec(), Error::BadMatchBadLen),
    ] {
        assert_eq!(with_entries(&entries), Err(error), "{entries:02x?}");
    }
}

#[test]
fn fields_of_later_versions_have_niciras_numbers() {
    let ip = of(0, 3, false, &[8, 0]);
    let tcp = [&ip[..], &of(0, 6, false, &[6])].concat();
    let after = |before: &[u8], entry: Vec<u8>| with_entries(&[before, &entry].concat());
    let of_ip = || Match::any().with(Field::EthType, 0x800);
    let of_tcp = || of_ip().with(Field::IpProto, 6);
    let syn = of_tcp().with_masked(Field::TcpFlags, 2, 0x12);
    assert_eq!(after(&tcp, of(1, 34, true, &[0, 2, 0, 0x12])), Ok(syn.clone()));
    assert_eq!(after(&tcp, of(0x8000, 42, true, &[0, 2, 0, 0x12])), Ok(syn.clone()));
    let of_onf = of(0xffff, 42, true, &[0x4f, 0x4e, 0x46, 0, 0, 2, 0, 0x12]);
    assert_eq!(after(&tcp, of_onf.clone()), Ok(syn.clone()));
    let twice = [of_onf, of(1, 34, true, &[0, 2, 0, 0x12])].concat();
    assert_eq!(after(&tcp, twice), Err(Error::BadMatchDupField));
    let of_other = of(0xffff, 42, true, &[0x4f, 0x4e, 0x46, 1, 0, 2, 0, 0x12]);
    assert_eq!(after(&tcp, of_other), Err(Error::BadMatchBadField));
    let cut = of(0xffff, 42, false, &[0x4f, 0x4e, 0x46]);
    assert_eq!(after(&tcp, cut), Err(Error::BadMatchBadField));
    assert_eq!(after(&ip, of(1, 34, false, &[0, 2])), Err(Error::BadMatchBadPrereq));
    assert_eq!(after(&tcp, of(1, 34, false, &[0x10, 2])), Err(Error::BadMatchBadValue));
    assert_eq!(after(&tcp, of(1, 34, true, &[0, 2, 0x10, 0])), Err(Error::BadMatchBadMask));
    assert_eq!(after(&ip, of(1, 29, false, &[64])), Ok(of_ip().with(Field::NwTtl, 64)));
    let fragment = of_ip().with_masked(Field::IpFrag, 1, 3);
    assert_eq!(after(&ip, of(1, 26, true, &[1, 3])), Ok(fragment));
    let marked = Match::any().with(Field::PktMark, 5);
    assert_eq!(after(&[], of(1, 33, false, &[0, 0, 0, 5])), Ok(marked));
    // They are written so that they are read, by numbers of Nicira's.
    let frame =
        written(&Message::FlowMod(FlowMod { matching: syn, ..FlowMod::new(FlowModCommand::Add) }));
    assert!(frame.windows(4).any(|header| header == [0, 1, 34 << 1 | 1, 4]), "{frame:02x?}");
}

#[test]
fn a_cookie_limits_requests_and_describes_no_entry() {
    let cookie = of(1, 30, false, &[0, 0, 0, 0, 0, 0, 0, 5]);
    let twice = [&cookie[..], &cookie].concat();
    let mut flow = FlowMod { table_id: TableId::ALL, ..FlowMod::new(FlowModCommand::Delete) };
    flow.cookie = Cookie(9);
    let with = |entries: &[u8]| {
        let mut frame = written(&Message::FlowMod(flow.clone()));
        frame[16 + 24..16 + 26].copy_from_slice(&(entries.len() as u16).to_be_bytes());
        frame.extend(entries);
        frame.resize(frame.len().next_multiple_of(8), 0);
        let all = (frame.len() as u16).to_be_bytes();
        frame[2..4].copy_from_slice(&all);
        wire::decode(&frame).map_err(|error| error.error)
    };
    assert_eq!(with(&twice).unwrap_err(), Error::BadMatchDupField);
    let bits = of(1, 30, true, &[0, 0, 0, 0, 0, 0, 0, 0xf5, 0, 0, 0, 0, 0, 0, 0, 0x0f]);
    let Message::FlowMod(limited) = with(&bits).unwrap().2 else { panic!("no flow-mod") };
    assert_eq!((limited.cookie_mask, limited.new_cookie), (0x0f, Some(Cookie(9))));
    assert_eq!(limited.cookie.0 & limited.cookie_mask, 5);
    assert_eq!(with(&of(1, 30, false, &[0; 4])).unwrap_err(), Error::BadMatchBadField);
    // An entry that a switch reports has its cookie elsewhere.
    let body = MultipartReplyBody::Flow(vec![entry(Match::any())]);
    let mut frame = written(&Message::MultipartReply(MultipartReply { more: false, body }));
    frame.extend([&cookie[..], &[0; 4]].concat());
    frame[3] += 16;
    frame[24 + 1] += 16;
    frame[24 + 19] = 12;
    assert_eq!(wire::decode(&frame).unwrap_err().error, Error::BadMatchBadField);
}

/// A packet-in as properties.
fn with_properties(properties: &[(u16, Vec<u8>)]) -> Result<PacketIn, Error> {
    let mut frame = vec![1, 4, 0, 0, 0, 0, 0, 1, 0, 0, 0x23, 0x20, 0, 0, 0, 30];
    for (number, body) in properties {
        frame.extend(number.to_be_bytes());
        frame.extend((4 + body.len() as u16).to_be_bytes());
        frame.extend(body);
        frame.resize(frame.len().next_multiple_of(8), 0);
    }
    let all = (frame.len() as u16).to_be_bytes();
    frame[2..4].copy_from_slice(&all);
    let Message::PacketIn(packet) = wire::decode(&frame).map_err(|error| error.error)?.2 else {
        panic!("no packet-in");
    };
    Ok(packet)
}

#[test]
fn properties_of_packet_ins_are_checked() {
    let metadata = |entries: &[Vec<u8>]| vec![(6, entries.concat())];
    let in_port = of(0, 0, false, &[0, 3]);
    // A switch may say more of a packet than is known, and says the port in either width.
    let unknown = of(1, 105, false, &[0, 0, 0, 0x21]);
    let experimenters = of(0xffff, 7, false, &[0, 0, 0, 1, 2, 3]);
    let found = with_properties(&metadata(&[unknown, in_port.clone(), experimenters])).unwrap();
    assert_eq!(found.matching, Match::any().with(Field::InPort, 3));
    let wide = of(0x8000, 0, false, &[0, 0, 0, 3]);
    assert_eq!(
        with_properties(&metadata(std::slice::from_ref(&wide))).unwrap().matching,
        found.matching
    );
    let both = with_properties(&metadata(&[in_port.clone(), wide]));
    assert_eq!(both, Err(Error::BadMatchDupField));
    let cut = with_properties(&metadata(&[in_port[..5].to_vec()]));
    assert_eq!(cut, Err(Error::BadMatchBadLen));
    let twice = with_properties(&[(3, vec![1]), (3, vec![1])]);
    assert_eq!(twice, Err(Error::BadPropertyDupType));
    for (number, body) in [(1, vec![0; 3]), (2, vec![0; 5]), (3, vec![]), (4, vec![0; 8])] {
        assert_eq!(with_properties(&[(number, body)]), Err(Error::BadPropertyBadLen), "{number}");
    }
    let nothing = with_properties(&[]).unwrap();
    assert_eq!((nothing.total_len, nothing.data), (0, vec![]));
}

/// Packet-ins of ovs-vswitchd 3.1 of one frame, in 1.0 and 1.3, in both of Nicira's forms.
const PACKET_INS: &[(PacketInForm, &str)] = &[
    (
        PacketInForm::Nicira,
        "0104005d000000000000232000000011ffffffff002301020000000000000006000e00000000000000000002\
         000100010204000000070000000050540000000a505400000009080045000000000000000000000000000000\
         0000000000",
    ),
    (
        PacketInForm::Properties,
        "0104007000000000000023200000001e0000002750540000000a505400000009080045000000000000000000\
         0000000000000000000000000003000502000000000400100000000000000000000000060005000501000000\
         000600148000000400000001000102040000000700000000",
    ),
    (
        PacketInForm::Nicira,
        "0404005d000000000000232000000011ffffffff002301020000000000000006000e00000000000000000002\
         000100010204000000070000000050540000000a505400000009080045000000000000000000000000000000\
         0000000000",
    ),
    (
        PacketInForm::Properties,
        "0404007000000000000023200000001e0000002750540000000a505400000009080045000000000000000000\
         0000000000000000000000000003000502000000000400100000000000000000000000060005000501000000\
         000600148000000400000001000102040000000700000000",
    ),
];

/// The same with what an action of a controller gave to it.
const WITH_USER_DATA: &str = "\
    0104007800000000000023200000001e0000002750540000000a5054000000090800450000000000000000000000\
    0000000000000000000000030005020000000004001000000000000000000000000600050005010000000006001480\
    0000040000000100010204000000070000000000070007010203 00";

fn bytes_of(hex: &str) -> Vec<u8> {
    testkit::hex::parse(&hex.replace(' ', "")).unwrap()
}

#[test]
fn packet_ins_are_those_of_open_vswitch() {
    for (form, captured) in PACKET_INS {
        let captured = bytes_of(captured);
        let (version, xid, message) = wire::decode(&captured).unwrap();
        let Message::PacketIn(packet) = &message else { panic!("{message:?}") };
        let PacketIn { table_id, cookie, reason, matching, data, .. } = packet;
        assert_eq!((*table_id, *cookie), (TableId(2), Cookie(6)));
        assert_eq!((*reason, data.len()), (PacketInReason::Action, 35));
        let expected = Match::any().with(Field::InPort, 1).with(Field::Reg1, 7);
        assert_eq!(*matching, expected);
        let mut ours = Vec::new();
        let forms = Forms { packet_ins: *form, ..Forms::default() };
        wire::encode_in(&mut ours, forms, version, xid, &message).unwrap();
        assert_eq!(ours, captured, "{form:?}");
    }
    let captured = bytes_of(WITH_USER_DATA);
    let (version, xid, message) = wire::decode(&captured).unwrap();
    let Message::PacketIn(packet) = &message else { panic!("{message:?}") };
    assert_eq!((&packet.userdata, packet.continuation.is_empty()), (&vec![1, 2, 3], true));
    let mut ours = Vec::new();
    let forms = Forms { packet_ins: PacketInForm::Properties, ..Forms::default() };
    wire::encode_in(&mut ours, forms, version, xid, &message).unwrap();
    assert_eq!(ours, captured);
    // A continuation stays as it is, whosever it is.
    let continuation = vec![0x80, 0, 0, 5, 9, 0, 0, 0];
    let paused = PacketIn { continuation, ..packet.clone() };
    for &version in Version::ALL {
        let body = wire::write_resume(version, &paused).unwrap();
        assert_eq!(wire::read_resume(version, &body), Ok(paused.clone()));
        for end in (0..body.len()).filter(|end| end % 8 != 0) {
            assert!(wire::read_resume(version, &body[..end]).is_err());
        }
    }
}

#[test]
fn a_cut_packet_in_has_its_whole_length() {
    let packet = PacketIn {
        buffer_id: None,
        total_len: 1000,
        reason: PacketInReason::NoMatch,
        table_id: TableId(0),
        cookie: Cookie::NONE,
        matching: Match::any().with(Field::InPort, 3).with(Field::Metadata, 9),
        data: vec![7; 20],
        userdata: Vec::new(),
        continuation: Vec::new(),
        controller_id: 0,
    };
    for form in [PacketInForm::Nicira, PacketInForm::Properties] {
        for &version in Version::ALL {
            let (mut frame, message) = (Vec::new(), Message::PacketIn(packet.clone()));
            let forms = Forms { packet_ins: form, ..Forms::default() };
            wire::encode_in(&mut frame, forms, version, Xid(1), &message).unwrap();
            // Without an entry the cookie is zero in the one form, and left out of the other.
            let cookie = if form == PacketInForm::Nicira { Cookie(0) } else { Cookie::NONE };
            let message = Message::PacketIn(PacketIn { cookie, ..packet.clone() });
            assert_eq!(wire::decode(&frame).unwrap(), (version, Xid(1), message));
        }
    }
}

#[test]
fn masks_of_asynchronous_messages_are_taken_in_both_forms() {
    let masks: Vec<u8> = [0, 0, 0].into_iter().flat_map(|_| [0, 0, 0, 7, 0, 0, 0, 1]).collect();
    let properties = [[0, 1, 0, 8, 0, 0, 0, 3], [0, 4, 0, 8, 0, 0, 0, 1]].concat();
    for (exp_type, body, packet_ins) in [(19, masks, [7, 1]), (27, properties, [3, 0])] {
        let mut frame = vec![1, 4, 0, 0, 0, 0, 0, 1, 0, 0, 0x23, 0x20, 0, 0, 0, exp_type];
        frame.extend(body);
        frame[3] = frame.len() as u8;
        let (_, _, message) = wire::decode(&frame).unwrap();
        let Message::SetAsync(config) = message else { panic!("{message:?}") };
        assert_eq!(config.of(AsyncEvent::PacketIn), packet_ins);
        frame[3] -= 4;
        frame.truncate(frame.len() - 4);
        assert!(wire::decode(&frame).is_err());
    }
}

/// A group's description of 1.5: type select, number 7, one bucket, and these properties.
fn description(properties: &[&str]) -> Message {
    let bucket = "0010 0000 00000000 0000 0008 0001 0000";
    let properties: String = properties.concat().split_whitespace().collect();
    let head = format!("01 00 00000007 0010 {} {bucket} {properties}", "00".repeat(6));
    let entry = testkit::hex::parse(&head).unwrap();
    let mut frame = testkit::hex::parse("06 13 0000 00000001 0007 0000 00000000").unwrap();
    frame.extend((entry.len() as u16 + 2).to_be_bytes());
    frame.extend(entry);
    let len = (frame.len() as u16).to_be_bytes();
    frame[2..4].copy_from_slice(&len);
    wire::decode(&frame).unwrap().2
}

#[test]
fn properties_beside_a_groups_choice_are_left_out() {
    let hash = "68617368 00000000 00000000 00000000 0000000000000000";
    let chosen = format!("ffff0028 0000154d 00000001 00000000 {hash}");
    let unknown = "ffff000c 00001234 00000001 00000000";
    let of_tunnel = format!("ffff0030 0000154d 00000001 00000000 {hash} 00013f04 ffffffff");
    let expected = description(&[&chosen]);
    let Message::MultipartReply(MultipartReply { body: MultipartReplyBody::GroupDesc(of), .. }) =
        &expected
    else {
        panic!("{expected:?}");
    };
    assert!(of[0].selection.is_some());
    for properties in [[&chosen, unknown], [unknown, &chosen], [&chosen, &of_tunnel]] {
        assert_eq!(description(&properties), expected, "{properties:?}");
    }
}
