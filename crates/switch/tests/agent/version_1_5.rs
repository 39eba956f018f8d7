//! OpenFlow 1.5 through the wire: what it has beside 1.4.

use openflow::bundle::{BundleControl, BundleControlType, BundleFlags};
use openflow::flow::{FlowMod, FlowModCommand, FlowModFlags};
use openflow::group::{Bucket, GroupMod, GroupModCommand, GroupType};
use openflow::message::{
    AsyncConfig, AsyncEvent, MultipartReplyBody, MultipartRequest, MultipartRequestBody, PacketOut,
};
use openflow::meter::{Band, BandKind, MeterFlags, MeterMod, MeterModCommand};
use openflow::{
    Action, BitRange, BucketId, Error, Field, GroupId, Instruction, Match, Message, MeterId,
    PortNo, Version,
};

use crate::harness::{Controller, Switch, WITH_1_5, frame};

fn to(port: u32) -> Action {
    Action::output(PortNo(port))
}

fn bucket(id: Option<u32>, port: u32) -> Bucket {
    Bucket {
        bucket_id: id.map(BucketId),
        weight: 0,
        watch_port: PortNo::ANY,
        watch_group: GroupId::ANY,
        actions: vec![to(port)],
    }
}

fn group(command: GroupModCommand, at: Option<BucketId>, buckets: Vec<Bucket>) -> Message {
    Message::GroupMod(GroupMod {
        command,
        group_type: GroupType::All,
        group_id: GroupId(1),
        command_bucket_id: at,
        buckets,
        ..GroupMod::default()
    })
}

/// Numbers of the buckets of the group, in their order.
fn buckets(controller: &mut Controller) -> Vec<u32> {
    let body = controller.multipart(MultipartRequestBody::OneGroupDesc(GroupId(1)));
    let MultipartReplyBody::GroupDesc(groups) = body else { panic!("{body:?}") };
    let ids = groups[0].buckets.iter().map(|bucket| bucket.bucket_id.unwrap().0);
    ids.collect()
}

#[test]
fn buckets_are_inserted_and_removed_by_their_numbers() {
    use GroupModCommand::{Add, InsertBucket, RemoveBucket};
    let switch = Switch::start(3, WITH_1_5);
    let mut newest = switch.controller(Version::V1_5);
    let mut older = switch.controller(Version::V1_3);
    // Over 1.3 a bucket is its place.
    older.send(&group(Add, None, vec![bucket(None, 1), bucket(None, 2)]));
    older.barrier();
    assert_eq!(buckets(&mut newest), [0, 1]);
    newest.refused(
        &group(InsertBucket, Some(BucketId::LAST), vec![bucket(Some(1), 3)]),
        Error::GroupModBucketExists,
    );
    newest.send(&group(InsertBucket, Some(BucketId::FIRST), vec![bucket(Some(7), 3)]));
    newest.send(&group(InsertBucket, Some(BucketId(0)), vec![bucket(Some(9), 3)]));
    newest.send(&group(InsertBucket, Some(BucketId::LAST), vec![bucket(Some(8), 3)]));
    newest.barrier();
    assert_eq!(buckets(&mut newest), [7, 0, 9, 1, 8]);
    newest.refused(&group(RemoveBucket, Some(BucketId(5)), vec![]), Error::GroupModUnknownBucket);
    newest.send(&group(RemoveBucket, Some(BucketId(9)), vec![]));
    newest.send(&group(RemoveBucket, Some(BucketId::LAST), vec![]));
    newest.barrier();
    assert_eq!(buckets(&mut newest), [7, 0, 1]);
    newest.send(&group(RemoveBucket, None, vec![]));
    newest.send(&group(RemoveBucket, Some(BucketId::FIRST), vec![]));
    newest.barrier();
    assert_eq!(buckets(&mut newest), [0; 0]);
    let other = Message::GroupMod(GroupMod {
        command: InsertBucket,
        group_type: GroupType::All,
        group_id: GroupId(2),
        command_bucket_id: Some(BucketId::LAST),
        buckets: vec![bucket(Some(1), 1)],
        ..GroupMod::default()
    });
    newest.refused(&other, Error::GroupModUnknownGroup);
}

#[test]
fn a_bucket_of_a_select_group_without_a_weight_has_one() {
    let switch = Switch::start(1, WITH_1_5);
    let mut newest = switch.controller(Version::V1_5);
    let five = "00 18 00 10 00 00 00 05 00 00 00 10 00 00 00 01 ff ff 00 00 00 00 00 00";
    let head = "06 0f 00 30 00 00 00 07 00 00 01 00 00 00 00 01 00 18 00 00 ff ff ff ff";
    newest.raw(&testkit::hex::parse(&format!("{head} {five}")).unwrap());
    newest.barrier();
    let body = newest.multipart(MultipartRequestBody::GroupDesc);
    let MultipartReplyBody::GroupDesc(groups) = body else { panic!("{body:?}") };
    assert_eq!(groups[0].buckets, [Bucket { weight: 1, ..bucket(Some(5), 1) }]);
    let shown = switch.ctl(&["-O", "OpenFlow15", "dump-groups"]);
    let line = "group_id=1,type=select,bucket=bucket_id:5,actions=output:1";
    assert!(shown.contains(line), "{shown}");
    let insert = "group_id=1,command_bucket_id=first,bucket=bucket_id:9,weight:3,actions=output:1";
    switch.ctl(&["-O", "OpenFlow15", "insert-buckets", insert]);
    assert_eq!(buckets(&mut newest), [9, 5]);
    switch.ctl(&["-O", "OpenFlow15", "remove-buckets", "group_id=1,command_bucket_id=5"]);
    assert_eq!(buckets(&mut newest), [9]);
    let (_, why) = switch.ctl_fails(&["insert-buckets", insert]);
    assert!(why.contains("OpenFlow13"), "{why}");
}

#[test]
fn a_select_group_keeps_what_it_chooses_by() {
    let switch = Switch::start(1, WITH_1_5);
    let newest = |command: &str, words: &str| switch.ctl(&["-O", "OpenFlow15", command, words]);
    let choice = "selection_method=hash,selection_method_param=5,fields(ip_src,tcp_dst=255)";
    newest("add-group", &format!("group_id=1,type=select,{choice},bucket=output:1"));
    newest("insert-buckets", "group_id=1,command_bucket_id=last,bucket=bucket_id:4,output:1");
    let shown = newest("dump-groups", "1");
    assert!(shown.contains(&format!("group_id=1,type=select,{choice},bucket=")), "{shown}");
    assert!(shown.contains("bucket_id:4"), "{shown}");
    // Earlier versions have no words for it.
    let shown = switch.ctl(&["dump-groups"]);
    assert!(shown.contains("group_id=1,type=select,bucket="), "{shown}");
    let group = format!("group_id=2,type=select,{choice},bucket=output:1");
    let (_, why) = switch.ctl_fails(&["add-group", &group]);
    assert!(why.contains("selection method"), "{why}");
    newest("mod-group", "group_id=1,type=select,bucket=output:1");
    assert!(!newest("dump-groups", "1").contains("selection"));
}

#[test]
fn a_meter_is_the_first_action_and_one_instruction_for_others() {
    let switch = Switch::start(2, WITH_1_5);
    let mut newest = switch.controller(Version::V1_5);
    let mut older = switch.controller(Version::V1_4);
    newest.send(&Message::MeterMod(MeterMod {
        command: MeterModCommand::Add,
        flags: MeterFlags::KBPS,
        meter_id: MeterId(1),
        bands: vec![Band { kind: BandKind::Drop, rate: 1_000, burst_size: 0 }],
    }));
    let metered =
        |id| vec![Instruction::Meter(MeterId(id)), Instruction::ApplyActions(vec![to(2)])];
    let unknown = FlowMod { instructions: metered(2), ..FlowMod::new(FlowModCommand::Add) };
    newest.refused(&Message::FlowMod(unknown.clone()), Error::BadActionBadMeter);
    older.refused(&Message::FlowMod(unknown), Error::MeterModUnknownMeter);
    let instructions = metered(1);
    newest.send(&Message::FlowMod(FlowMod {
        instructions: instructions.clone(),
        flags: FlowModFlags::SEND_FLOW_REM,
        ..FlowMod::new(FlowModCommand::Add)
    }));
    newest.barrier();
    assert_eq!(newest.flow_stats()[0].instructions, instructions);
    assert_eq!(older.flow_stats()[0].instructions, instructions);
    newest.send(&Message::FlowMod(FlowMod::new(FlowModCommand::Delete)));
    let (_, Message::FlowRemoved(gone)) = newest.next() else { panic!("no flow-removed") };
    assert_eq!((gone.packet_count, gone.byte_count), (0, 0));
}

#[test]
fn a_packet_out_has_its_port_and_parts_of_fields_are_set() {
    let switch = Switch::start(3, WITH_1_5);
    let mut newest = switch.controller(Version::V1_5);
    let bits = BitRange { offset: 4, n_bits: 8 };
    let load = Action::Load { bits, dst: Field::Reg1, value: 0x5a };
    let copy = Action::Move {
        n_bits: 8,
        src_offset: 4,
        dst_offset: 0,
        src: Field::Reg1,
        dst: Field::Reg2,
    };
    newest.send(&Message::FlowMod(FlowMod {
        matching: Match::any().with(Field::InPort, 1),
        instructions: vec![Instruction::ApplyActions(vec![load.clone(), copy.clone(), to(2)])],
        ..FlowMod::new(FlowModCommand::Add)
    }));
    newest.barrier();
    let shown = &newest.flow_stats()[0];
    assert_eq!(shown.instructions, [Instruction::ApplyActions(vec![load, copy, to(2)])]);
    let actions = vec![Action::output(PortNo::TABLE)];
    let packet = PacketOut { buffer_id: None, in_port: PortNo(1), actions, data: frame(1) };
    newest.send(&Message::PacketOut(packet));
    newest.barrier();
    assert_eq!(switch.host(2).receive(), frame(1));
}

#[test]
fn one_port_is_described_and_table_features_are_set_again() {
    let switch = Switch::start(2, &format!("tables = 4\n{WITH_1_5}"));
    let mut newest = switch.controller(Version::V1_5);
    let body = newest.multipart(MultipartRequestBody::OnePortDesc(PortNo(2)));
    let MultipartReplyBody::PortDesc(ports) = body else { panic!("{body:?}") };
    assert_eq!(ports.iter().map(|port| port.port_no).collect::<Vec<_>>(), [PortNo(2)]);
    let ask = |body| Message::MultipartRequest(MultipartRequest { more: false, body });
    let unknown = ask(MultipartRequestBody::OnePortDesc(PortNo(9)));
    newest.refused(&unknown, Error::BadRequestBadPort);
    let body = newest.multipart(MultipartRequestBody::TableFeatures(Vec::new()));
    let MultipartReplyBody::TableFeatures(features) = body else { panic!("{body:?}") };
    let again = newest.multipart(MultipartRequestBody::TableFeatures(features.clone()));
    assert_eq!(again, MultipartReplyBody::TableFeatures(features));
}

#[test]
fn what_the_switch_does_not_have_is_refused() {
    let switch = Switch::start(1, WITH_1_5);
    let mut controller = switch.controller(Version::V1_5);
    let mask = AsyncConfig::default().with(AsyncEvent::RequestForward, [1, 0]);
    let timed = BundleControl {
        bundle_id: 1,
        control: BundleControlType::OpenRequest,
        flags: BundleFlags::TIME,
    };
    for (message, error) in [
        (Message::SetAsync(mask), Error::AsyncConfigUnsupported),
        (Message::BundleControl(timed), Error::BundleSchedNotSupported),
    ] {
        controller.refused(&message, error);
    }
    // Of all vectors with a fault the switch says the codec's error.
    for vector in testkit::vectors::load_dir(&testkit::vectors_dir("malformed")).unwrap() {
        if vector.bytes[0] == Version::V1_5.number() {
            controller.raw(&vector.bytes);
            let (_, Message::Error(error)) = controller.next() else {
                panic!("{}", vector.place())
            };
            let name = error.error(Version::V1_5).map(|error| error.name().to_owned());
            assert_eq!(name, vector.error, "{}", vector.place());
        }
    }
}
