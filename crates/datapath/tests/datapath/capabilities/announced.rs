//! Everything that a switch announces, asked of the fast datapath.

use datapath::fast::Fast;
use datapath::{Datapath, DatapathConfig, action_bits, capabilities};
use openflow::action::ACTIONS;
use openflow::group::GroupType;
use openflow::message::Capabilities;
use openflow::meter::MeterFlags;
use openflow::table::{OxmId, TableProperty, TypeId};
use openflow::{ActionKind, Field, InstructionKind, Version};

/// Something that is announced.
pub(crate) struct Announced {
    /// The part of the announcement.
    pub(crate) part: &'static str,
    /// The capability.
    pub(crate) name: String,
    /// The test behind it, where that is not any case that uses it.
    pub(crate) test: Option<&'static str>,
    /// Name of its evidence, where the parts of several announcements share it.
    kind: &'static str,
}

impl Announced {
    /// The key of the evidence.
    pub(crate) fn key(&self) -> String {
        format!("{} {}", self.kind, self.name)
    }
}

/// Capability bits with their tests.
const BITS: [(Capabilities, &str, &str); 7] = [
    (Capabilities::FLOW_STATS, "FLOW_STATS", "statistics.rs:every_request_has_its_reply"),
    (Capabilities::TABLE_STATS, "TABLE_STATS", "statistics.rs:every_request_has_its_reply"),
    (Capabilities::PORT_STATS, "PORT_STATS", "statistics.rs:port_counters_are_those_of_the_port"),
    (Capabilities::GROUP_STATS, "GROUP_STATS", "statistics.rs:every_request_has_its_reply"),
    (Capabilities::IP_REASM, "IP_REASM", "reassembly/the_tables_see_the_whole_packet"),
    (
        Capabilities::QUEUE_STATS,
        "QUEUE_STATS",
        "queues.rs:a_full_queue_drops_and_everything_is_counted",
    ),
    (Capabilities::ARP_MATCH_IP, "ARP_MATCH_IP", "v1_0/arp_addresses_are_matched"),
];

/// Messages of 1.1 that are other than those of 1.2, with their tests.
const OF_1_1: [(&str, &str); 5] = [
    (
        "abilities in statistics of tables",
        "version_1_1.rs:ports_and_abilities_of_tables_stand_where_1_1_has_them",
    ),
    ("ARP_MATCH_IP", "v1_0/arp_addresses_are_matched"),
    ("its match and actions", "version_1_1.rs:its_actions_change_packets"),
    (
        "packet-ins without an entry",
        "version_1_1.rs:packets_without_an_entry_reach_it_and_say_their_table",
    ),
    (
        "modify that adds",
        "version_1_1.rs:a_modify_adds_where_it_looks_for_no_cookie_and_none_is_there",
    ),
];

/// Messages of 1.2 that are other than those of 1.3, with their tests.
const OF_1_2: [(&str, &str); 5] = [
    (
        "ports in the features reply",
        "version_1_2.rs:ports_and_abilities_of_tables_stand_where_1_2_has_them",
    ),
    (
        "abilities in statistics of tables",
        "version_1_2.rs:ports_and_abilities_of_tables_stand_where_1_2_has_them",
    ),
    (
        "packet-ins without an entry",
        "version_1_2.rs:packets_without_an_entry_reach_it_and_carry_no_cookie",
    ),
    (
        "flag for packets with an invalid TTL",
        "version_1_2.rs:a_ttl_that_is_used_up_goes_to_the_controller_that_asked",
    ),
    ("roles", "version_1_2.rs:roles_are_there_and_statistics_of_entries_have_no_flags"),
];

/// Messages and properties of 1.4 with their tests.
const OF_1_4: [(&str, &str); 11] = [
    ("bundles, carried out or undone", "bundles.rs:a_refused_message_undoes_the_bundle"),
    ("packet-outs in bundles", "bundles.rs:a_packet_out_sees_the_messages_before_it"),
    ("bundles that no packet sees half of", "bundles.rs:no_packet_sees_half_of_a_bundle"),
    ("role status", "version_1_4.rs:a_replaced_master_gets_a_role_status"),
    ("masks of asynchronous messages, one by one", "version_1_4.rs:masks_that_are_not_given_stay"),
    ("importance", "version_1_4.rs:importance_is_kept_and_a_meter_takes_its_entries_along"),
    ("eviction", "version_1_4.rs:a_full_table_evicts_the_least_important_entry"),
    ("vacancy events", "version_1_4.rs:vacancy_events_reach_the_controllers_that_ask"),
    ("table desc", "statistics.rs:every_request_has_its_reply"),
    ("queue desc", "statistics.rs:every_request_has_its_reply"),
    ("flow monitors", "flow_monitors.rs:every_change_is_reported_in_every_version"),
];

/// Nicira's messages of 1.0 with their tests.
const NICIRA: [(&str, &str); 9] = [
    ("tables of flow-mods", "named_tables.rs:commands_of_1_0_are_of_the_table_that_they_name"),
    ("flow-mods by nx_match", "nicira_flows.rs:entries_are_selected_by_what_only_nicira_says"),
    (
        "flow statistics and sums by nx_match",
        "nicira_flows.rs:entries_are_selected_by_what_only_nicira_says",
    ),
    (
        "flow-removed by nx_match",
        "nicira_flows.rs:a_removed_entry_is_reported_in_the_form_that_was_chosen",
    ),
    ("flow monitors", "flow_monitors.rs:every_change_is_reported_in_every_version"),
    ("packet-ins", "nicira_requests.rs:packet_ins_have_the_form_that_was_chosen"),
    ("packet-ins as properties", "nicira_requests.rs:packet_ins_have_the_form_that_was_chosen"),
    ("roles", "nicira_requests.rs:controllers_of_1_0_have_roles"),
    ("asynchronous messages", "nicira_requests.rs:controllers_of_1_0_choose_their_messages"),
];

/// Messages and actions of 1.5 with their tests.
const OF_1_5: [(&str, &str); 7] = [
    (
        "numbers of buckets, insert and remove",
        "version_1_5.rs:buckets_are_inserted_and_removed_by_their_numbers",
    ),
    (
        "selection methods hash and dp_hash of select groups, with fields",
        "version_1_5.rs:a_select_group_keeps_what_it_chooses_by",
    ),
    (
        "meter as the first action",
        "version_1_5.rs:a_meter_is_the_first_action_and_one_instruction_for_others",
    ),
    (
        "packet-out with a match",
        "version_1_5.rs:a_packet_out_has_its_port_and_parts_of_fields_are_set",
    ),
    (
        "copy-field, set-field with a mask",
        "version_1_5.rs:a_packet_out_has_its_port_and_parts_of_fields_are_set",
    ),
    (
        "description of one port or group",
        "version_1_5.rs:one_port_is_described_and_table_features_are_set_again",
    ),
    (
        "copy-field and packet types in table features",
        "version_1_5.rs:one_port_is_described_and_table_features_are_set_again",
    ),
];

/// Adds to a list.
struct List {
    part: &'static str,
    kind: &'static str,
    all: Vec<Announced>,
}

impl List {
    fn part(&mut self, part: &'static str, kind: &'static str) {
        (self.part, self.kind) = (part, kind);
    }

    fn add(&mut self, name: impl Into<String>, test: Option<&'static str>) {
        let (part, kind) = (self.part, self.kind);
        self.all.push(Announced { part, name: name.into(), test, kind });
    }

    fn capabilities(&mut self, version: Version) {
        let announced = capabilities(version);
        let known = BITS.iter().fold(Capabilities::empty(), |known, (bit, ..)| known | *bit);
        assert!(known.contains(announced), "a capability without a row: {announced:?}");
        for (bit, name, test) in BITS {
            if announced.contains(bit) {
                self.add(name, Some(test));
            }
        }
    }

    fn types<K>(&mut self, ids: &[TypeId<K>], name: impl Fn(&K) -> &'static str) {
        for id in ids {
            match id {
                TypeId::Known(kind) => self.add(name(kind), None),
                TypeId::Unknown(_) | TypeId::Experimenter(_) => panic!("an unknown type"),
            }
        }
    }

    fn fields(&mut self, ids: &[OxmId]) {
        for id in ids {
            let OxmId::Basic { field, maskable } = id else { panic!("an unknown field") };
            self.add(field.row().name, None);
            if *maskable {
                self.add(format!("{} with a mask", field.row().name), None);
            }
        }
    }

    fn property(&mut self, property: &TableProperty) {
        match property {
            TableProperty::Instructions(_, ids) => {
                self.part("Instructions of every table", "instruction");
                self.types(ids, |kind: &InstructionKind| kind.row().text);
            }
            TableProperty::ApplyActions(_, ids) => {
                self.part("Actions since 1.3, applied and written", "action");
                self.types(ids, |kind: &ActionKind| kind.row().text);
            }
            TableProperty::Match(ids) => {
                self.part("Match fields of every table", "match");
                self.fields(ids);
            }
            TableProperty::ApplySetField(_, ids) => {
                self.part("Fields that set-field sets", "set");
                self.fields(ids);
            }
            // The same as those above, which is asserted, or given by numbers.
            TableProperty::NextTables(..)
            | TableProperty::SynchronisedFrom(_)
            | TableProperty::WriteCopyField(..)
            | TableProperty::ApplyCopyField(..)
            | TableProperty::PacketTypes(_)
            | TableProperty::WriteActions(..)
            | TableProperty::Wildcards(_)
            | TableProperty::WriteSetField(..)
            | TableProperty::Experimenter { .. } => {}
        }
    }
}

/// Everything that is announced.
pub(crate) fn announced() -> Vec<Announced> {
    let dp = Fast::new(DatapathConfig::default(), 1);
    let mut list = List { part: "", kind: "", all: Vec::new() };
    list.part("Features reply of 1.3", "capability");
    list.capabilities(Version::V1_3);
    list.part("Features reply of 1.0", "capability");
    list.capabilities(Version::V1_0);
    list.part("Actions of 1.0", "action");
    let bits = action_bits(Version::V1_0);
    for row in ACTIONS {
        let number = row.kind.number(Version::V1_0);
        let is_announced =
            number.is_some_and(|n| 1_u32.checked_shl(n.into()).unwrap_or(0) & bits != 0);
        if is_announced {
            list.add(row.text, None);
        }
    }
    list.part("Actions of Nicira's, in every version", "action");
    for row in ACTIONS.iter().filter(|row| row.nicira.is_some()) {
        if row.kind.number(Version::V1_4).is_none() {
            // No text has it; the wire does.
            let test = "resubmits.rs:without_a_table_the_present_one_is_searched";
            list.add(row.text, (row.kind == ActionKind::Resubmit).then_some(test));
        }
    }
    let tables = dp.table_features(Version::V1_4);
    check_tables(&dp);
    for property in &tables[0].properties {
        list.property(property);
    }
    list.part("Table features, set", "table features");
    list.add(
        "names and settings",
        Some("pipeline/tests.rs:a_name_and_deprecated_settings_leave_the_entries"),
    );
    list.add("fewer tables", Some("seam.rs:a_table_that_is_gone_is_no_table"));
    list.add(
        "limits of a table",
        Some("pipeline/tests.rs:a_table_with_limits_announces_them_and_holds_nothing_else"),
    );
    groups(&dp, &mut list);
    meters(&dp, &mut list);
    list.part("OpenFlow 1.1, other than in 1.2", "message");
    let with_arp = capabilities(Version::V1_2) | Capabilities::ARP_MATCH_IP;
    assert_eq!(capabilities(Version::V1_1), with_arp);
    for (name, test) in OF_1_1 {
        list.add(name, Some(test));
    }
    list.part("OpenFlow 1.2, other than in 1.3", "message");
    assert_eq!(capabilities(Version::V1_2), capabilities(Version::V1_3));
    for (name, test) in OF_1_2 {
        list.add(name, Some(test));
    }
    list.part("OpenFlow 1.4, beside 1.3", "message");
    let with_bundles = capabilities(Version::V1_3) | Capabilities::BUNDLES;
    assert_eq!(capabilities(Version::V1_4), with_bundles);
    for (name, test) in OF_1_4 {
        list.add(name, Some(test));
    }
    list.part("OpenFlow 1.5, beside 1.4", "message");
    assert_eq!(capabilities(Version::V1_5), capabilities(Version::V1_4));
    for (name, test) in OF_1_5 {
        list.add(name, Some(test));
    }
    list.part("Nicira's messages, beside those of 1.0", "message");
    for (name, test) in NICIRA {
        list.add(name, Some(test));
    }
    list.all
}

/// Written and applied actions are the same, and so are the fields that may be left out.
fn check_tables(dp: &dyn Datapath) {
    for table in dp.table_features(Version::V1_4) {
        let (mut written, mut applied) = (None, None);
        let (mut set_written, mut set_applied) = (None, None);
        for property in &table.properties {
            match property {
                TableProperty::WriteActions(_, ids) => written = Some(ids),
                TableProperty::ApplyActions(_, ids) => applied = Some(ids),
                TableProperty::WriteSetField(_, ids) => set_written = Some(ids),
                TableProperty::ApplySetField(_, ids) => set_applied = Some(ids),
                TableProperty::Wildcards(ids) => {
                    assert_eq!(ids.len(), openflow::field::FIELDS.len())
                }
                _ => {}
            }
        }
        assert!(written == applied && set_written == set_applied);
        assert!(applied.is_some() && set_applied.is_some_and(|ids| !ids.is_empty()));
        assert!(Field::from_oxm(0).is_some());
    }
}

fn groups(dp: &dyn Datapath, list: &mut List) {
    let features = dp.group_features(Version::V1_3);
    list.part("Group features", "group type");
    for group_type in GroupType::ALL {
        if features.types & 1 << group_type.number() != 0 {
            list.add(group_type.text(), None);
        }
    }
    list.kind = "group capability";
    let tests = [
        (
            "SELECT_WEIGHT",
            "select_groups.rs:a_changed_bucket_list_moves_no_more_flows_than_it_must",
        ),
        ("SELECT_LIVENESS", "select_groups.rs:a_dead_bucket_leaves_its_flows_and_gets_them_back"),
        ("CHAINING", "groups/chained"),
        ("CHAINING_CHECKS", "groups/a_loop_is_refused"),
    ];
    assert_eq!(features.capabilities.bits(), 0b1111);
    for (name, test) in tests {
        list.add(name, Some(test));
    }
}

fn meters(dp: &dyn Datapath, list: &mut List) {
    let features = dp.meter_features();
    list.part("Meter features", "meter");
    let flags = [
        (MeterFlags::KBPS, "KBPS"),
        (MeterFlags::PKTPS, "PKTPS"),
        (MeterFlags::BURST, "BURST"),
        (MeterFlags::STATS, "STATS"),
    ];
    let all = flags.iter().fold(0, |all, (flag, _)| all | u32::from(flag.bits()));
    assert_eq!((features.capabilities, features.band_types), (all, 0b110));
    for (_, name) in flags {
        list.add(name, None);
    }
    list.add("drop band", None);
    list.add("dscp_remark band", None);
}
