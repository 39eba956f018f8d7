//! Frames against frames that are built from nothing with the same values.

use packet::PacketBuf;
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use proptest::sample::select;

use super::modifier::overlap;
use super::{FrameMaker, PlannedFrame, RunColumns};
use crate::probe::{ProbeHeader, StreamId};
use crate::profile::{
    FieldModifier, FieldValue, FrameSize, Modifier, ModifierOp, Payload, StreamSpec, TupleModifier,
};
use crate::stack::HeaderStack;

const MAC: [u8; 6] = [2, 0, 0, 0, 0, 0x77];

fn maker(spec: &StreamSpec) -> FrameMaker {
    FrameMaker::new(spec, StreamId(5), 1, MAC).unwrap_or_else(|error| panic!("{error}"))
}

fn error(spec: &StreamSpec) -> String {
    let named = StreamSpec { name: "s".into(), ..spec.clone() };
    FrameMaker::new(&named, StreamId(5), 1, MAC).unwrap_err().to_string()
}

fn make(maker: &mut FrameMaker, buf: &mut PacketBuf, tag: &mut u32, due_ns: u64) {
    let planned = [maker.plan(due_ns)];
    let (bufs, tags) = (std::slice::from_mut(buf), std::slice::from_mut(tag));
    maker.make(bufs, tags, planned.into_iter(), &mut RunColumns::default());
}

/// The next `count` frames, in runs of three, into buffers that held others of the stream before.
fn frames(maker: &mut FrameMaker, count: usize) -> Vec<Vec<u8>> {
    let (mut bufs, mut tags) = (<[PacketBuf; 3]>::default(), [0; 3]);
    let (mut frames, mut columns) = (Vec::new(), RunColumns::default());
    while frames.len() < count {
        let first = frames.len();
        let run = (count - first).min(3);
        let planned: Vec<PlannedFrame> =
            (first..first + run).map(|number| maker.plan(number as u64)).collect();
        let (bufs, tags) = (&mut bufs[..run], &mut tags[..run]);
        maker.make(bufs, tags, planned.iter().copied(), &mut columns);
        for (buf, planned) in bufs.iter().zip(&planned) {
            assert_eq!(planned.size as usize, buf.len() + 4);
            frames.push(buf.bytes().to_vec());
        }
    }
    frames
}

fn counting(field: &str, op: ModifierOp) -> FieldModifier {
    FieldModifier::new(field, op)
}

fn spec(packet: &str, modifiers: Vec<Modifier>) -> StreamSpec {
    let size = FrameSize::Fixed(100);
    StreamSpec { packet: packet.to_owned(), modifiers, size, ..StreamSpec::default() }
}

fn values(spec: &StreamSpec, field: &str, count: usize) -> Vec<u128> {
    let place = HeaderStack::parse(&spec.packet).unwrap().place(field).unwrap();
    frames(&mut maker(spec), count).iter().map(|frame| place.read(frame)).collect()
}

#[test]
fn fields_count_up_and_down_and_begin_anew() {
    let bounded =
        |op| FieldModifier { min: Some(3.into()), max: Some(7.into()), ..counting("udp.dst", op) };
    let of = |modifier: FieldModifier| {
        values(&spec("eth/ipv4/udp", vec![Modifier::Field(modifier)]), "udp.dst", 6)
    };
    assert_eq!(of(bounded(ModifierOp::Increment)), [3, 4, 5, 6, 7, 3]);
    assert_eq!(of(bounded(ModifierOp::Decrement)), [7, 6, 5, 4, 3, 7]);
    let by_three = FieldModifier { step: Some(3), ..bounded(ModifierOp::Increment) };
    assert_eq!(of(by_three), [3, 6, 3, 6, 3, 6]);
    let started = FieldModifier { start: Some(6.into()), ..bounded(ModifierOp::Increment) };
    assert_eq!(of(started), [6, 7, 3, 4, 5, 6]);
    let still = FieldModifier { step: Some(0), ..bounded(ModifierOp::Increment) };
    assert_eq!(of(still), [3; 6]);
    let whole = counting("udp.dst", ModifierOp::Decrement);
    assert_eq!(of(whole)[..3], [65_535, 65_534, 65_533]);
    let list = FieldModifier {
        values: [9, 1].map(FieldValue::from).to_vec(),
        ..counting("udp.dst", ModifierOp::List)
    };
    assert_eq!(of(list), [9, 1, 9, 1, 9, 1]);
    let random = FieldModifier { step: Some(2), ..bounded(ModifierOp::Random) };
    assert!(of(random).iter().all(|value| [3, 5, 7].contains(value)));
}

#[test]
fn random_values_reach_the_whole_range_of_64_bits() {
    let random = counting("ipv6.src", ModifierOp::Random);
    let drawn = values(&spec("eth/ipv6/udp", vec![Modifier::Field(random)]), "ipv6.src", 200);
    assert!(drawn.iter().all(|value| value >> 64 == 0x2001_0002 << 32), "{drawn:x?}");
    assert!(drawn.iter().any(|value| value & 1 << 63 != 0));
}

#[test]
fn tuples_and_lists_of_ipv6_addresses_stay_together() {
    let tuples = [["2001:db8::1", "7"], ["::5", "8"]];
    let modifier = Modifier::Tuples(TupleModifier {
        fields: vec!["ipv6.dst".into(), "udp.src".into()],
        tuples: tuples.map(|tuple| tuple.map(FieldValue::from).to_vec()).to_vec(),
    });
    let spec = spec("eth/ipv6/udp", vec![modifier]);
    assert_eq!(values(&spec, "udp.src", 4), [7, 8, 7, 8]);
    assert_eq!(values(&spec, "ipv6.dst", 2), [0x2001_0db8 << 96 | 1, 5]);
    frames(&mut maker(&spec), 4).iter().for_each(|frame| packet::verify(frame).unwrap());
}

#[test]
fn probes_are_numbered_and_the_sender_has_the_ports_address() {
    let spec = spec("eth/vlan/ipv4/udp", Vec::new());
    for (number, frame) in frames(&mut maker(&spec), 3).iter().enumerate() {
        let probe = ProbeHeader::read(frame).unwrap();
        assert_eq!((probe.stream, probe.sequence), (StreamId(5), number as u32));
        assert_eq!((probe.due_ns, &frame[6..12]), (number as u64, &MAC[..]));
        packet::verify(frame).unwrap();
    }
    // 64 bytes of TCP over IPv4 have no room.
    let tcp = StreamSpec { packet: "eth/ipv4/tcp".into(), ..StreamSpec::default() };
    assert!(!maker(&tcp).has_probes());
}

#[test]
fn a_frame_that_closes_up_gets_the_number_of_the_one_before() {
    for packet in ["eth/ipv4/udp", "eth/ipv4/sctp"] {
        let mut maker = maker(&StreamSpec {
            packet: packet.into(),
            size: FrameSize::Fixed(100),
            ..StreamSpec::default()
        });
        let (mut buf, mut tag) = (PacketBuf::default(), 0);
        make(&mut maker, &mut buf, &mut tag, 0);
        make(&mut maker, &mut buf, &mut tag, 9);
        maker.renumber(&mut buf, 1);
        maker.give_back(1);
        let probe = ProbeHeader::read(buf.bytes()).unwrap();
        assert_eq!((probe.sequence, probe.due_ns, maker.sequence()), (0, 9, 1));
        packet::verify(buf.bytes()).unwrap();
    }
}

#[test]
fn impossible_streams_are_refused_with_field_and_allowed_values() {
    let size = StreamSpec { size: FrameSize::Fixed(64), ..spec("eth/ipv6/tcp", Vec::new()) };
    assert!(error(&size).contains("stream \"s\", size: 64 bytes: the headers"), "{}", error(&size));
    let modified =
        |modifier: FieldModifier| error(&spec("eth/ipv4/udp", vec![Modifier::Field(modifier)]));
    let up = || counting("udp.src", ModifierOp::Increment);
    let unknown = modified(counting("udp.port", ModifierOp::Increment));
    assert!(unknown.contains("modifiers[0].field") && unknown.contains("udp.src"), "{unknown}");
    let beyond = modified(FieldModifier { max: Some(65_536.into()), ..up() });
    assert!(beyond.contains("modifiers[0].max") && beyond.contains("65535"), "{beyond}");
    let crossed = modified(FieldModifier { min: Some(5.into()), max: Some(4.into()), ..up() });
    assert!(crossed.contains("5 is above max 4"), "{crossed}");
    let start = modified(FieldModifier { start: Some(1.into()), min: Some(5.into()), ..up() });
    assert!(start.contains("1 is not from 5 to 65535"), "{start}");
    let seed = modified(FieldModifier { seed: Some(1), ..up() });
    assert!(seed.contains("only random values have a seed"), "{seed}");
    assert!(modified(counting("udp.src", ModifierOp::List)).contains("needs values"));
    let twice = error(&spec("eth/ipv4/udp", vec![Modifier::Field(up()), Modifier::Field(up())]));
    assert!(twice.contains("modifiers[1].field: the field is modified twice"), "{twice}");
    let apart = FieldModifier {
        min: Some("::1".into()),
        max: Some("1::".into()),
        ..counting("ipv6.src", ModifierOp::Increment)
    };
    let apart = error(&spec("eth/ipv6/udp", vec![Modifier::Field(apart)]));
    assert!(apart.contains("last 64 bits"), "{apart}");
    let ragged = Modifier::Tuples(TupleModifier {
        fields: vec!["udp.src".into()],
        tuples: vec![vec![1.into(), 2.into()]],
    });
    assert!(error(&spec("eth/ipv4/udp", vec![ragged])).contains("2 values for 1 fields"));
}

fn any_stack() -> impl Strategy<Value = String> {
    let link = select(vec!["eth", "eth/vlan(vid=7)", "eth/svlan/vlan", "eth/mpls/mpls"]);
    let network = select(vec![
        "ipv4",
        "ipv6",
        "ipv4/ipv4",
        "ipv6/dest",
        "ipv4/gre/ipv4",
        "ipv4/gre(key=1)/eth/ipv6",
        "ipv4/udp/vxlan/eth/ipv4",
        "ipv6/udp/gtpu/ipv4",
    ]);
    let transport = prop_oneof![Just("udp"), Just("tcp"), Just("sctp")];
    (link, network, transport)
        .prop_map(|(link, network, transport)| format!("{link}/{network}/{transport}"))
}

fn any_op() -> impl Strategy<Value = ModifierOp> {
    prop_oneof![
        Just(ModifierOp::Increment),
        Just(ModifierOp::Decrement),
        Just(ModifierOp::Random),
        Just(ModifierOp::List),
    ]
}

/// Fields whose change leaves the stack what it is.
fn is_harmless(field: &str) -> bool {
    !["type", "tpid", "proto"].iter().any(|name| field.ends_with(name))
}

proptest! {
    /// A frame with modified fields is, byte for byte, the frame that is built from nothing with
    /// these values, its probe included: all checksums are right.
    #[test]
    fn modified_frames_are_as_if_built_anew(
        packet in any_stack(),
        picks in proptest::collection::vec((any::<u32>(), any_op(), any::<u64>()), 1..5),
        seed in any::<u64>(),
    ) {
        let stack = HeaderStack::parse(&packet).unwrap();
        let fields: Vec<String> =
            stack.fields().into_iter().filter(|field| is_harmless(field)).collect();
        let mut used = Vec::new();
        let mut modifiers = Vec::new();
        for (pick, op, number) in picks {
            let field = &fields[pick as usize % fields.len()];
            // The type of service is the DSCP and the ECN.
            let is_used = |used: &String| {
                overlap(&stack.place(used).unwrap(), &stack.place(field).unwrap())
            };
            if used.iter().any(is_used) {
                continue;
            }
            used.push(field.clone());
            let max = stack.place(field).unwrap().max();
            let value = |n: u64| FieldValue::Text((u128::from(number ^ n) & max).to_string());
            let mut modifier = counting(field, op);
            match op {
                ModifierOp::List => modifier.values = vec![value(0), value(1), value(u64::MAX)],
                ModifierOp::Random => modifier.seed = Some(number),
                ModifierOp::Increment | ModifierOp::Decrement => {
                    modifier.step = Some(number % (max.min(1000) as u64 + 1));
                }
            }
            modifiers.push(Modifier::Field(modifier));
        }
        let size = FrameSize::Range { min: 160, max: 700, step: 1, random: Some(seed) };
        let spec = StreamSpec { packet, size, modifiers, ..StreamSpec::default() };
        let mut maker = maker(&spec);
        for made in frames(&mut maker, 20) {
            let mut stack = stack.clone();
            stack.set_default("eth.src", 0x0200_0000_0077);
            for field in &used {
                let place = stack.place(field).unwrap();
                stack.set(place, place.read(&made));
            }
            let mut built = stack.frame(made.len(), &Payload::Zero);
            ProbeHeader::read(&made).unwrap().write(&mut built);
            stack.checksums().iter().for_each(|plan| plan.fill(&mut built));
            assert_eq!(made, built, "{spec:?}");
            packet::verify(&made).unwrap();
        }
    }
}

/// Bits that no header names: beside fields, across the payload, and right checksums over them.
#[test]
fn bits_of_a_frame_differ_and_checksums_follow() {
    let random = |field: &str| Modifier::Field(counting(field, ModifierOp::Random));
    let fixed = FieldModifier {
        values: vec![FieldValue::Number(2)],
        ..counting("bits.340+2", ModifierOp::List)
    };
    let spec = StreamSpec {
        size: FrameSize::Fixed(128),
        modifiers: vec![random("bits.336+4"), Modifier::Field(fixed), random("bits.211+5")],
        ..StreamSpec::default()
    };
    let mut maker = maker(&spec);
    let made = frames(&mut maker, 64);
    let seen = |at: usize, mask: u8| -> std::collections::BTreeSet<u8> {
        made.iter().map(|frame| frame[at] & mask).collect()
    };
    assert_eq!(seen(42, 0x0f), [0x08].into(), "what is fixed, and what nothing is said of");
    assert!(seen(42, 0xf0).len() > 8 && seen(26, 0x1f).len() > 8, "{:?}", seen(26, 0xff));
    assert_eq!(seen(26, 0xe0).len(), 1);
    made.iter().for_each(|frame| packet::verify(frame).unwrap());
    for (field, says) in [
        ("bits.400+1", "the shortest frame"),
        ("bits.192+8", "of a checksum"),
        ("bits.7+2", "one byte"),
        ("bits.0+0", "one byte"),
        ("bits.99999999999999999999+1", "one byte"),
        ("bits.99999+1", "one byte"),
    ] {
        let spec = StreamSpec { modifiers: vec![random(field)], ..StreamSpec::default() };
        let error = FrameMaker::new(&spec, StreamId(1), 1, [0; 6]).unwrap_err().to_string();
        assert!(error.contains(says), "{field}: {error}");
    }
}
