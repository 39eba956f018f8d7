//! Tests of the pipeline alone: every refusal, and what a table with limits holds.

use std::collections::BTreeMap;

use openflow::flow::{FlowMod, FlowModCommand};
use openflow::table::{
    OnPacket, OxmId, TableFeatures, TableMod, TableProperty, TableReason, TypeId, Vacancy,
};
use openflow::text::parse_flow_mod;
use openflow::{ActionKind, Error, Field, InstructionKind, TableId, Version};

use super::{FlowTable, Pipeline};
use crate::config::DatapathConfig;

fn pipeline() -> Pipeline {
    Pipeline::new(&DatapathConfig { n_tables: 3, max_entries: 100, ..DatapathConfig::default() })
}

/// Features with everything that runs, changed in the first table.
fn asked(change: impl FnOnce(&mut TableFeatures)) -> Vec<TableFeatures> {
    let mut features = pipeline().features(Version::V1_3);
    change(&mut features[0]);
    features
}

fn refused(change: impl FnOnce(&mut TableFeatures)) -> Error {
    let mut pipeline = pipeline();
    let before = pipeline.features(Version::V1_3);
    let error = pipeline.set(&asked(change), Version::V1_3).unwrap_err();
    assert_eq!(pipeline.features(Version::V1_3), before);
    error
}

fn field(field: Field, maskable: bool) -> OxmId {
    OxmId::Basic { field, maskable }
}

/// Puts a property in the place of the one of its kind.
fn put(features: &mut TableFeatures, property: TableProperty) {
    let kind = std::mem::discriminant(&property);
    features.properties.retain(|old| std::mem::discriminant(old) != kind);
    features.properties.push(property);
}

#[test]
fn what_was_announced_is_taken_back_and_changes_nothing() {
    for version in [Version::V1_3, Version::NEWEST] {
        let mut pipeline = pipeline();
        let (features, newest) = (pipeline.features(version), pipeline.features(Version::NEWEST));
        assert_eq!(pipeline.set(&features, version), Ok(vec![]));
        assert_eq!(pipeline.features(version), features);
        let mut reversed = features.clone();
        reversed.reverse();
        reversed[0].properties.reverse();
        assert_eq!(pipeline.set(&reversed, version), Ok(vec![]));
        assert_eq!(pipeline.features(version), features);
        // What a version has no number for is not limited by it.
        assert_eq!(pipeline.features(Version::NEWEST), newest);
    }
}

#[test]
fn each_table_goes_to_the_later_ones_only() {
    let next: Vec<_> =
        pipeline().features(Version::V1_3).iter().map(|f| f.properties[1].clone()).collect();
    let to = |ids: &[u8]| {
        TableProperty::NextTables(OnPacket::Hit, ids.iter().copied().map(TableId).collect())
    };
    assert_eq!(next, [to(&[1, 2]), to(&[2]), to(&[])]);
    let instructions = |table: usize| {
        let features = pipeline().features(Version::V1_3).remove(table);
        let TableProperty::Instructions(OnPacket::Hit, list) = &features.properties[0] else {
            panic!()
        };
        list.clone()
    };
    let mut others = instructions(0);
    others.retain(|it| *it != TypeId::Known(InstructionKind::GotoTable));
    assert_eq!((instructions(2), instructions(0).len()), (others.clone(), others.len() + 1));
}

#[test]
fn a_name_and_deprecated_settings_leave_the_entries() {
    let mut pipeline = pipeline();
    let renamed = asked(|f| {
        f.name = "acl".into();
        f.config = 3;
    });
    assert_eq!(pipeline.set(&renamed, Version::V1_3), Ok(vec![]));
    assert_eq!(
        (
            pipeline.features(Version::V1_3)[0].name.as_str(),
            pipeline.features(Version::V1_3)[0].config
        ),
        ("acl", 3)
    );
    let table_mod = |table: u8, config| TableMod::new(TableId(table), config);
    let run = |pipeline: &mut Pipeline, table, config| {
        pipeline.table_mod(&table_mod(table, config), Version::V1_3, |_| 0)
    };
    run(&mut pipeline, 255, 1).unwrap();
    assert!(pipeline.features(Version::V1_3).iter().all(|f| f.config == 1));
    assert_eq!(run(&mut pipeline, 3, 0), Err(Error::TableModBadTable));
    assert_eq!(run(&mut pipeline, 0, 4), Err(Error::TableModBadConfig));
}

#[test]
fn vacancy_events_come_in_turns() {
    let mut pipeline = pipeline();
    pipeline.set_max_entries(10);
    let version = Version::V1_4;
    let config = TableMod::VACANCY_EVENTS;
    let asked = |down, up| TableMod {
        vacancy: Some(Vacancy { down, up, now: 0 }),
        ..TableMod::new(TableId(1), config)
    };
    for (down, up) in [(60, 40), (50, 101), (200, 200)] {
        let refused = pipeline.table_mod(&asked(down, up), version, |_| 0);
        assert_eq!(refused, Err(Error::BadPropertyBadValue), "{down} {up}");
    }
    pipeline.table_mod(&asked(30, 60), version, |_| 0).unwrap();
    let mut seen = Vec::new();
    for active in [0, 3, 7, 8, 9, 10, 9, 4, 3, 2, 7, 8, 7, 1] {
        let due = pipeline.take_events(|table| if table == TableId(1) { active } else { 9 });
        seen.extend(due.into_iter().map(|status| {
            let now = status.table.vacancy.unwrap().now;
            (active, status.table.table_id, status.reason, u32::from(now))
        }));
    }
    let (down, up, table) = (TableReason::VacancyDown, TableReason::VacancyUp, TableId(1));
    let expected = [(8, down, 20), (3, up, 70), (8, down, 20), (1, up, 90)];
    assert_eq!(seen, expected.map(|(active, reason, now)| (active, table, reason, now)));
    // Another version's table-mod does not end them; one without them does.
    pipeline.table_mod(&TableMod::new(TableId(1), 3), Version::V1_3, |_| 0).unwrap();
    assert_eq!(pipeline.take_events(|_| 9).len(), 1);
    pipeline.table_mod(&TableMod::new(TableId::ALL, 0), version, |_| 0).unwrap();
    assert!(pipeline.take_events(|_| 1).is_empty());
    let all = pipeline.descriptions(|_| 5);
    assert!(all.iter().all(|table| (table.config, table.vacancy) == (0, None)));
}

#[test]
fn tables_that_are_not_named_are_gone_until_named_again() {
    let mut pipeline = pipeline();
    let all = pipeline.features(Version::V1_3);
    let mut one = all.clone();
    one.truncate(1);
    let to_gone = pipeline.set(&one, Version::V1_3);
    assert_eq!(to_gone, Err(Error::TableFeaturesBadArgument), "table 0 leads to others");
    put(&mut one[0], TableProperty::NextTables(OnPacket::Hit, vec![]));
    assert_eq!(pipeline.set(&one, Version::V1_3), Ok(vec![TableId(0), TableId(1), TableId(2)]));
    assert!(pipeline.has(TableId(0)) && !pipeline.has(TableId(1)));
    assert_eq!(pipeline.selected(TableId(1)), None);
    assert_eq!(pipeline.names().count(), 1);
    let mut entry = FlowMod::new(FlowModCommand::Add);
    entry.table_id = TableId(1);
    assert_eq!(pipeline.check(&entry, Version::V1_3), Err(Error::FlowModBadTableId));
    assert_eq!(pipeline.set(&all, Version::V1_3), Ok(vec![TableId(0), TableId(1), TableId(2)]));
    assert_eq!(pipeline.check(&entry, Version::V1_3), Ok(()));
}

#[test]
fn nonsense_about_tables_is_refused() {
    let mut pipeline = pipeline();
    let all = pipeline.features(Version::V1_3);
    assert_eq!(
        pipeline.set(&all[1..], Version::V1_3),
        Err(Error::TableFeaturesBadTable),
        "no first table"
    );
    let twice = [all.clone(), all.clone()].concat();
    assert_eq!(pipeline.set(&twice, Version::V1_3), Err(Error::TableFeaturesBadTable));
    for number in [3, 254, 255] {
        assert_eq!(refused(|f| f.table_id = TableId(number)), Error::TableFeaturesBadTable);
    }
    assert_eq!(refused(|f| f.config = 4), Error::TableFeaturesBadArgument);
    assert_eq!(refused(|f| f.max_entries = 101), Error::TableFeaturesBadArgument);
    assert_eq!(refused(|f| f.metadata_match = 0), Error::TableFeaturesBadMetadata);
    assert_eq!(refused(|f| f.metadata_write = 0), Error::TableFeaturesBadMetadata);
}

#[test]
fn nonsense_about_properties_is_refused() {
    use TableProperty as P;
    let hit = OnPacket::Hit;
    for missing in 0..8 {
        let error = refused(|f| drop(f.properties.remove(missing)));
        assert_eq!(error, Error::TableFeaturesBadArgument, "without property {missing}");
    }
    for twice in 0..8 {
        let error = refused(|f| f.properties.push(f.properties[twice].clone()));
        assert_eq!(error, Error::TableFeaturesBadArgument, "property {twice} twice");
    }
    let own = P::Experimenter { on: hit, experimenter: 1, exp_type: 2, data: vec![] };
    assert_eq!(refused(|f| f.properties.push(own)), Error::TableFeaturesBadType);
    for property in [
        P::Instructions(hit, vec![TypeId::Known(InstructionKind::Experimenter)]),
        P::Instructions(hit, vec![TypeId::Unknown(7)]),
        P::NextTables(hit, vec![TableId(0)]),
        P::NextTables(hit, vec![TableId(3)]),
        P::WriteActions(hit, vec![TypeId::Experimenter(1)]),
        P::ApplyActions(hit, vec![TypeId::Unknown(28)]),
        P::Match(vec![field(Field::EthType, true)]),
        P::Match(vec![OxmId::Unknown(0x8000_5601)]),
        P::Match(vec![]),
        P::Wildcards(vec![OxmId::Experimenter { header: 0xffff_0004, experimenter: 1 }]),
        P::WriteSetField(hit, vec![field(Field::InPort, false)]),
        P::ApplySetField(hit, vec![field(Field::EthDst, true)]),
    ] {
        let text = format!("{property:?}");
        assert_eq!(refused(|f| put(f, property)), Error::TableFeaturesBadArgument, "{text}");
    }
}

#[test]
fn a_header_without_a_length_names_its_field() {
    let mut pipeline = pipeline();
    let of = |field: Field, maskable: bool| {
        let class = u32::from(field.row().class) << 16;
        OxmId::Unknown(class | u32::from(field.row().oxm) << 9 | u32::from(maskable) << 8)
    };
    let mut headers = asked(exact);
    for property in &mut headers[0].properties {
        let (TableProperty::Match(ids)
        | TableProperty::Wildcards(ids)
        | TableProperty::ApplySetField(_, ids)) = property
        else {
            continue;
        };
        for id in ids {
            let OxmId::Basic { field, maskable } = *id else { panic!("{id:?}") };
            *id = of(field, maskable);
        }
    }
    assert_eq!(pipeline.set(&headers, Version::V1_3), Ok(vec![TableId(0)]));
    assert_eq!(pipeline.features(Version::V1_3), asked(exact));
}

/// A table that matches the destination exactly and outputs; its table-miss entry may go on.
fn exact(features: &mut TableFeatures) {
    use TableProperty as P;
    let (hit, miss) = (OnPacket::Hit, OnPacket::Miss);
    let apply = TypeId::Known(InstructionKind::ApplyActions);
    let goto = TypeId::Known(InstructionKind::GotoTable);
    let write = TypeId::Known(InstructionKind::WriteMetadata);
    features.max_entries = 7;
    features.metadata_write = 0xff;
    features.properties = vec![
        P::Instructions(hit, vec![apply, write]),
        P::Instructions(miss, vec![goto]),
        P::NextTables(hit, vec![]),
        P::NextTables(miss, vec![TableId(2)]),
        P::WriteActions(hit, vec![]),
        P::ApplyActions(
            hit,
            vec![TypeId::Known(ActionKind::Output), TypeId::Known(ActionKind::SetField)],
        ),
        P::Match(vec![
            field(Field::InPort, false),
            field(Field::EthDst, false),
            field(Field::EthType, false),
            field(Field::Ipv4Dst, true),
        ]),
        P::Wildcards(vec![field(Field::InPort, false), field(Field::EthType, false)]),
        P::WriteSetField(hit, vec![]),
        P::ApplySetField(hit, vec![field(Field::EthSrc, false)]),
    ];
}

#[test]
fn single_tables_have_names_and_limits_of_their_own() {
    let mut pipeline = pipeline();
    let table = |name: &str, max_entries| FlowTable {
        name: name.to_owned(),
        max_entries,
        ..<_>::default()
    };
    let two = [(TableId(0), table("first", Some(7))), (TableId(1), table("", Some(1_000)))];
    pipeline.configure(BTreeMap::from(two));
    let most = |pipeline: &Pipeline| [0, 1, 2].map(|id| pipeline.max_entries(TableId(id)));
    let names = |pipeline: &Pipeline| -> Vec<String> {
        pipeline.names().map(|(_, name)| name.to_owned()).collect()
    };
    assert_eq!((most(&pipeline), names(&pipeline)[0].as_str()), ([7, 100, 100], "first"));
    assert_eq!(pipeline.features(Version::V1_3)[0].max_entries, 7);
    pipeline.configure(BTreeMap::new());
    assert_eq!(most(&pipeline), [100; 3]);
    assert_eq!(names(&pipeline), [""; 3]);
}

#[test]
fn a_table_with_limits_announces_them_and_holds_nothing_else() {
    let mut pipeline = pipeline();
    let limited = asked(exact);
    assert_eq!(pipeline.set(&limited, Version::V1_3), Ok(vec![TableId(0)]));
    assert_eq!(pipeline.features(Version::V1_3), limited);
    assert_eq!(pipeline.set(&limited, Version::V1_3), Ok(vec![]));
    assert_eq!((pipeline.max_entries(TableId(0)), pipeline.max_entries(TableId(1))), (7, 100));
    let check = |text: &str| {
        pipeline.check(&parse_flow_mod(text, FlowModCommand::Add).unwrap(), Version::V1_3)
    };
    let dst = "dl_dst=00:00:00:00:00:01";
    for (text, expected) in [
        ("actions=output:1", Err(Error::BadMatchBadWildcards)),
        ("dl_dst=00:00:00:00:00:01,actions=output:1", Ok(())),
        ("dl_dst=00:00:00:00:00:01/00:00:00:00:00:01,actions=drop", Err(Error::BadMatchBadMask)),
        ("dl_dst=00:00:00:00:00:01,dl_vlan=5,actions=drop", Err(Error::BadMatchBadField)),
        ("dl_dst=00:00:00:00:00:01,ip,actions=drop", Err(Error::BadMatchBadWildcards)),
        ("dl_dst=00:00:00:00:00:01,ip,nw_dst=10.0.0.0/8,actions=drop", Ok(())),
        ("dl_dst=00:00:00:00:00:01,arp,actions=drop", Ok(())),
        ("priority=0,actions=goto_table:2", Ok(())),
        ("priority=0,actions=goto_table:1", Err(Error::BadInstructionBadTableId)),
        ("priority=0,actions=output:1", Err(Error::BadInstructionUnsupInst)),
    ] {
        assert_eq!(check(text), expected, "{text}");
    }
    for (actions, expected) in [
        ("goto_table:2", Err(Error::BadInstructionUnsupInst)),
        ("write_metadata:0xff", Err(Error::BadInstructionUnsupMetadataMask)),
        ("write_metadata:0x5/0xff", Ok(())),
        ("set_field:00:00:00:00:00:02->eth_src,output:2", Ok(())),
        ("set_field:00:00:00:00:00:02->eth_dst,output:2", Err(Error::BadActionBadSetType)),
        ("pop_vlan,output:2", Err(Error::BadActionBadType)),
    ] {
        assert_eq!(check(&format!("{dst},actions={actions}")), expected, "{actions}");
    }
    assert_eq!(check("table=1,dl_vlan=5,actions=pop_vlan,output:2"), Ok(()));
}

#[test]
fn several_registers_as_one_are_written_where_each_of_them_is() {
    use TableProperty as P;
    let (hit, version) = (OnPacket::Hit, Version::V1_3);
    let mut pipeline = pipeline();
    let mut limited = pipeline.features(version);
    let registers = [Field::Reg0, Field::Reg1, Field::Reg2].map(|register| field(register, false));
    put(&mut limited[0], P::ApplySetField(hit, registers.to_vec()));
    assert_eq!(pipeline.set(&limited, version), Ok(vec![TableId(0)]));
    let refused = Err(Error::BadActionBadSetType);
    for (register, expected) in
        [("reg1", Ok(())), ("xreg0", Ok(())), ("xreg1", refused), ("xxreg0", refused)]
    {
        let text = format!("in_port=1,actions=set_field:7->{register},output:2");
        let flow_mod = parse_flow_mod(&text, FlowModCommand::Add).unwrap();
        assert_eq!(pipeline.check(&flow_mod, version), expected, "{register}");
    }
}

#[test]
fn a_meter_of_1_5_is_an_action_and_copies_are_sets() {
    use TableProperty as P;
    let (hit, version) = (OnPacket::Hit, Version::V1_5);
    let mut pipeline = pipeline();
    let all = pipeline.features(version);
    let output = vec![TypeId::Known(ActionKind::Output)];
    let mut limited = all.clone();
    put(&mut limited[0], P::ApplyActions(hit, output.clone()));
    assert_eq!(pipeline.set(&limited, version), Ok(vec![TableId(0)]));
    let announces = |pipeline: &Pipeline, version| {
        let properties = pipeline.features(version).remove(0).properties;
        let P::Instructions(OnPacket::Hit, instructions) = &properties[0] else { panic!() };
        let meter = TypeId::Known(InstructionKind::Meter);
        let is_alone = properties.contains(&P::ApplyActions(hit, output.clone()));
        (is_alone, instructions.contains(&meter))
    };
    assert_eq!(announces(&pipeline, version), (true, false));
    // Actions that 1.3 alone has stay; its instruction for a meter goes with the action.
    assert!(!announces(&pipeline, Version::V1_3).1);
    let metered =
        parse_flow_mod("in_port=1,actions=meter:1,output:2", FlowModCommand::Add).unwrap();
    for (version, error) in
        [(version, Error::BadActionBadType), (Version::V1_3, Error::BadInstructionUnsupInst)]
    {
        assert_eq!(pipeline.check(&metered, version), Err(error));
    }
    assert_eq!(pipeline.set(&all, version), Ok(vec![TableId(0)]));
    assert_eq!(pipeline.check(&metered, version), Ok(()));
    let mut copies = all;
    put(&mut copies[0], P::ApplyCopyField(hit, vec![field(Field::EthSrc, false)]));
    assert_eq!(pipeline.set(&copies, version), Err(Error::TableFeaturesBadArgument));
    put(&mut copies[0], P::ApplySetField(hit, vec![field(Field::EthSrc, false)]));
    assert_eq!(pipeline.set(&copies, version), Ok(vec![TableId(0)]));
    assert_eq!(pipeline.features(version)[0].properties.len(), copies[0].properties.len());
}
