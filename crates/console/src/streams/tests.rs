//! The streams that words make, in virtual settings: no port is opened.

use generator::profile::{FrameSize, Mode, Modifier, Rate, StreamSpec};
use generator::stack::HeaderStack;

use super::{check, of_port};
use crate::state::{ConsoleState, RANGE_FIELDS, RangeField};
use crate::words;

const LINE_RATE_BPS: f64 = 10e9;

/// The streams of port 0 after these lines.
fn streams(lines: &[&str]) -> Result<Vec<StreamSpec>, String> {
    let mut state = ConsoleState::new(&[0x0200_0000_0001, 0x0200_0000_0002]);
    for line in lines {
        words::parse(line, 2).unwrap().unwrap().apply(&mut state).unwrap();
    }
    of_port(0, &state.ports[0], LINE_RATE_BPS)
}

fn one(lines: &[&str]) -> StreamSpec {
    let mut found = streams(lines).unwrap();
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

/// Fields of a stream's modifiers.
fn fields(spec: &StreamSpec) -> Vec<&str> {
    spec.modifiers
        .iter()
        .map(|modifier| match modifier {
            Modifier::Field(field) => field.field.as_str(),
            Modifier::Tuples(tuples) => panic!("{tuples:?}"),
        })
        .collect()
}

#[test]
fn a_port_sends_pktgens_packet_at_first() {
    let spec = one(&[]);
    assert_eq!(
        spec.packet,
        "eth(src=02:00:00:00:00:01,dst=02:00:00:00:00:02)/\
         ipv4(src=192.168.0.1,dst=192.168.1.1,dscp=0,ecn=0,ttl=64)/tcp(src=1234,dst=5678)"
    );
    assert_eq!((spec.size, spec.mode), (FrameSize::Fixed(64), Mode::Continuous));
    assert_eq!(spec.rate, Rate::PercentOfLine(100.0));
}

#[test]
fn tags_and_tunnels_stand_in_their_order() {
    let packet = |lines: &[&str]| {
        let packet = one(lines).packet;
        let from = packet.find('/').unwrap();
        packet[from + 1..].to_owned()
    };
    assert!(packet(&["vlan 0 on", "vlanid 0 7"]).starts_with("vlan(vid=7,pcp=0)/ipv4("));
    let qinq = packet(&["qinq 0 on", "qinqids 0 5 6"]);
    assert!(qinq.starts_with("svlan(vid=5)/vlan(vid=6)/ipv4("), "{qinq}");
    let mpls = packet(&["mpls 0 on", "mpls_entry 0 0x12345a40"]);
    assert!(mpls.starts_with("mpls(label=74565,tc=5,ttl=64)/ipv4("), "{mpls}");
    assert!(packet(&["gre 0 on"]).contains("/gre(key=0)/ipv4("));
    assert!(packet(&["gre_eth 0 on"]).contains("/gre(key=0)/eth("));
    assert!(packet(&["proto udp 0", "set 0 dport 2152", "teid 0 9"]).ends_with("/gtpu(teid=9)"));
    assert!(packet(&["type arp 0"]).starts_with("arp("));
    assert!(packet(&["type ipv6 0", "proto icmp 0"]).ends_with("/icmpv6(type=128)"));
}

#[test]
fn range_mode_varies_what_pktgen_varies() {
    let spec = one(&["set all rate 80", "range all on", "pkt.size start all 128"]);
    assert_eq!(fields(&spec), ["ipv4.dst", "tcp.dst", "tcp.src"]);
    assert_eq!((spec.size, spec.rate), (FrameSize::Fixed(128), Rate::PercentOfLine(80.0)));
    let Modifier::Field(dst) = &spec.modifiers[0] else { panic!("{:?}", spec.modifiers) };
    let text = |value: &Option<generator::profile::FieldValue>| value.as_ref().unwrap().to_string();
    assert_eq!(text(&dst.start), "192.168.1.1");
    assert_eq!((text(&dst.min), text(&dst.max)), ("192.168.1.1".into(), "192.168.1.254".into()));
    assert_eq!(dst.step, Some(1));
}

/// In Pktgen latency and range mode exclude each other.
#[test]
fn range_mode_has_latency_too() {
    let spec = one(&["range all on", "pkt.size start all 128", "latency 0 on"]);
    assert!(spec.probe && fields(&spec).len() == 3, "{spec:?}");
    assert!(!one(&["range all on", "latency 0 off"]).probe);
}

#[test]
fn a_field_that_the_packet_does_not_have_does_not_vary() {
    let base = ["range 0 on", "vlan.id inc 0 1"];
    assert!(!fields(&one(&base)).contains(&"vlan.vid"));
    assert!(fields(&one(&[&base[..], &["vlan 0 on"]].concat())).contains(&"vlan.vid"));
    assert_eq!(fields(&one(&["range 0 on", "proto icmp 0"])), ["ipv4.dst"]);
    assert_eq!(fields(&one(&["range 0 on", "type arp 0"])), ["arp.tpa"]);
    assert_eq!(fields(&one(&["range 0 on", "gre 0 on"])), ["ipv4#2.dst", "tcp.dst", "tcp.src"]);
    let ipv6 = "range 0 dst ip 2001:db8::5 2001:db8::1 2001:db8::9 ::1";
    assert!(fields(&one(&["range 0 on", ipv6])).contains(&"ipv6.dst"));
}

#[test]
fn the_generator_takes_every_packet_and_every_field() {
    let everything: Vec<String> = RANGE_FIELDS
        .iter()
        .map(|row| match row.field {
            RangeField::Cos | RangeField::Tos | RangeField::Ttl => {
                format!("range 0 {} inc 1", row.word)
            }
            RangeField::DstMac | RangeField::SrcMac => {
                format!("{} inc 0 00:00:00:00:00:01", row.word)
            }
            RangeField::DstIp | RangeField::SrcIp => format!("{} inc 0 0.0.0.1", row.word),
            RangeField::DstPort
            | RangeField::SrcPort
            | RangeField::VlanId
            | RangeField::PktSize
            | RangeField::Teid => format!("{} inc 0 1", row.word),
            RangeField::MplsEntry => "range 0 mpls entry inc 0x1000".to_owned(),
            RangeField::TcpSeq
            | RangeField::TcpAck
            | RangeField::TcpFlags
            | RangeField::QinqOuter
            | RangeField::QinqInner
            | RangeField::GreKey
            | RangeField::Vni => format!("range 0 {} inc 1", row.word.replace('.', " ")),
        })
        .collect();
    for tags in [
        "vlan 0 on",
        "qinq 0 on",
        "mpls 0 on",
        "gre 0 on",
        "gre_eth 0 on",
        "vxlan 0 on",
        "range 0 on",
    ] {
        for packet in ["proto udp 0", "proto tcp 0", "proto icmp 0", "type arp 0", "type ipv6 0"] {
            // ARP has no place behind MPLS; the generator says so when the port starts.
            if (tags, packet) == ("mpls 0 on", "type arp 0") {
                continue;
            }
            for ports in ["set 0 dport 5678", "set 0 dport 2152", "dst.port start 0 2152"] {
                let max = "dst.port max 0 2200";
                let lines = [&[packet, tags, ports, max, "range 0 on"][..]].concat();
                let lines = lines.into_iter().chain(everything.iter().map(String::as_str));
                let spec = one(&lines.collect::<Vec<_>>());
                let stack = HeaderStack::parse(&spec.packet);
                let stack = stack.unwrap_or_else(|error| panic!("{}: {error}", spec.packet));
                for field in fields(&spec) {
                    stack.place(field).unwrap_or_else(|error| panic!("{}: {error}", spec.packet));
                }
                let single = one(&[packet, tags, ports, "range 0 off"]).packet;
                HeaderStack::parse(&single).unwrap_or_else(|error| panic!("{single}: {error}"));
            }
        }
    }
}

#[test]
fn headers_and_tunnels_run_where_the_packet_has_them() {
    let field = |lines: &[&str]| {
        let spec = one(&[&["range 0 on"][..], lines].concat());
        (spec.packet.clone(), fields(&spec).into_iter().map(str::to_owned).collect::<Vec<_>>())
    };
    let has = |lines: &[&str], name: &str| field(lines).1.iter().any(|field| field == name);
    for (words, tag, name) in [
        ("range 0 tcp seq inc 1", "vlan 0 off", "tcp.seq"),
        ("range 0 tcp flags inc 1", "vlan 0 off", "tcp.flags"),
        ("range 0 qinq inner inc 1", "qinq 0 on", "vlan.vid"),
        ("range 0 qinq outer inc 1", "qinq 0 on", "svlan.vid"),
        ("range 0 gre key inc 1", "gre 0 on", "gre.key"),
        ("range 0 vxlan vni inc 1", "vxlan 0 on", "vxlan.vni"),
        ("range 0 mpls entry inc 0x1000", "mpls 0 on", "mpls.label"),
    ] {
        assert!(has(&[words, tag], name), "{words}");
        let others = ["proto udp 0", &tag.replace(" on", " off")].map(str::to_owned);
        assert!(!has(&[words, &others[0], &others[1]], name), "{words} without its header");
    }
    // What single mode says stands until a range word says more.
    assert!(field(&["gre 0 on", "gre_key 0 9"]).0.contains("gre(key=9)"));
    assert!(field(&["gre 0 on", "gre_key 0 9", "range 0 gre key start 4"]).0.contains("(key=4)"));
    assert!(has(&["vxlan 0 on", "proto udp 0"], "udp#2.dst"));
    let wrong = streams(&["range 0 on", "mpls 0 on", "range 0 mpls entry inc 1"]).unwrap_err();
    assert!(wrong.contains("0x1000"), "{wrong}");
}

#[test]
fn what_arrives_is_judged_as_the_words_say() {
    let spec = one(&["set 0 late_after 250", "verify 0 on"]);
    assert_eq!((spec.late_after_us, spec.verify_checksums), (Some(250.0), true));
    let spec = one(&["set 0 late_after 250", "set 0 late_after 0", "disable 0 verify"]);
    assert_eq!((spec.late_after_us, spec.verify_checksums), (None, false));
}

#[test]
fn a_capture_file_is_sent_at_the_rate() {
    let spec = one(&["pcap.file 0 some.pcap", "pcap 0 on", "set 0 count 9", "set 0 rate 3kpps"]);
    let capture = spec.capture.unwrap();
    assert_eq!((capture.file.to_str(), capture.loops), (Some("some.pcap"), 0));
    assert_eq!((spec.mode, spec.rate), (Mode::Burst(9), Rate::PacketsPerSecond(3e3)));
    assert!(streams(&["pcap 0 on"]).unwrap_err().contains("pcap.file"));
}

#[test]
fn sizes_run_from_start_through_max_to_min() {
    let spec = one(&["range 0 on", "range 0 size 66 64 70 2"]);
    assert_eq!(spec.size, FrameSize::Cycle(vec![66, 68, 70, 64]));
    let error = streams(&["range 0 on", "range 0 size 128 64 70 2"]).unwrap_err();
    assert_eq!(error, "pkt.size: start 128 is not from min 64 to max 70");
    let error = streams(&["range 0 on", "dst.port start 0 900"]).unwrap_err();
    assert_eq!(error, "dst.port: start 900 is not from min 0 to max 254");
}

#[test]
fn sizes_begin_with_start_or_not_at_all() {
    let base = ["range 0 on", "pkt.size inc 0 64"];
    let sizes = |start: &str| streams(&[&base[..], &[start]].concat());
    let specs = sizes("pkt.size start 0 128").unwrap();
    let FrameSize::Cycle(cycle) = &specs[0].size else { panic!("{specs:?}") };
    assert_eq!((cycle[0], cycle.last()), (128, Some(&64)));
    let error = sizes("pkt.size start 0 100").unwrap_err();
    assert_eq!(error, "pkt.size: start 100 is not min 64 and steps of 64, as 64 and 128 are");
}

#[test]
fn streams_that_the_generator_would_refuse_are_found_without_it() {
    let error = |lines: &[&str]| check(&one(lines)).unwrap_err();
    assert!(error(&["mpls 0 on", "type arp 0"]).contains("arp cannot stand behind mpls"));
    let long = error(&["type ipv6 0", "gre_eth 0 on"]);
    assert!(long.starts_with("64 bytes: the headers of eth("), "{long}");
    let right = one(&["range 0 on", "vlan 0 on", "vlan.id inc 0 1", "pkt.size inc 0 1"]);
    check(&right).unwrap();
    let without_tag = StreamSpec { packet: one(&[]).packet, ..right };
    assert!(check(&without_tag).unwrap_err().contains("vlan"));
}

#[test]
fn a_sequence_is_sent_in_turn_at_the_rate_of_the_port() {
    let seq = |slot, size| {
        format!(
            "seq {slot} 0 02:00:00:00:00:09 02:00:00:00:00:01 10.0.0.{slot} 10.0.1.1/24 1 2 ipv4 \
             udp 1 {size}"
        )
    };
    let lines =
        [seq(0, 64), seq(1, 64), seq(2, 124), "set 0 seqCnt 3".into(), "set 0 count 7".into()];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let specs = streams(&lines).unwrap();
    let bursts: Vec<Mode> = specs.iter().map(|spec| spec.mode).collect();
    assert_eq!(bursts, [Mode::Burst(3), Mode::Burst(2), Mode::Burst(2)]);
    let most = format!("set 0 count {}", u64::MAX);
    let specs_of_most = streams(&[&lines[..], &[&most]].concat()).unwrap();
    let sum = specs_of_most.iter().filter_map(|spec| spec.mode.frames()).sum::<u64>();
    assert_eq!(sum, u64::MAX);
    // 10 Gbit/s over 84, 84 and 144 bytes on the wire.
    let pps = 10e9 / (8.0 * 104.0);
    for (place, spec) in specs.iter().enumerate() {
        let Rate::PacketsPerSecond(rate) = spec.rate else { panic!("{spec:?}") };
        assert!((rate - pps / 3.0).abs() < 1.0, "{rate}");
        assert!((spec.start_after_s - place as f64 / pps).abs() < 1e-12);
    }
}
