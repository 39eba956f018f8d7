//! Every error of 1.3, by the message that makes it through the wire; and for those that this
//! switch never sends, why.
//!
//! A row that is missing or stands twice fails, so that the table says all that there is to say.

mod frames;
mod rows;

use std::collections::BTreeSet;

use openflow::flow::{FlowMod, FlowModCommand};
use openflow::group::{GroupMod, GroupModCommand, GroupType};
use openflow::message::{Hello, MultipartReplyBody, MultipartRequestBody};
use openflow::meter::{MeterFlags, MeterMod, MeterModCommand};
use openflow::table::TableFeatures;
use openflow::{Error, GroupId, MacAddr, Message, MeterId, TableId, Version, VersionBitmap, Xid};

use crate::harness::{Controller, Switch};

/// The messages that make an error.
pub(crate) struct Row {
    pub(crate) error: Error,
    /// Messages before it, without an error.
    pub(crate) before: Vec<Message>,
    /// The message that is refused, under any xid.
    pub(crate) frame: Vec<u8>,
}

/// Facts of the switch that the rows need.
pub(crate) struct Facts {
    /// The address of port 1.
    pub(crate) port: MacAddr,
    /// Its tables.
    pub(crate) tables: Vec<TableFeatures>,
}

/// Errors that are made by other means than a message on a connection that is up.
const ELSEWHERE: &[(Error, &str)] = &[
    (
        Error::HelloIncompatible,
        "a hello of other versions: `handshake::versions_in_common`, and below",
    ),
    (
        Error::BadRequestNxmInvalid,
        "of OpenFlow 1.0 alone: `nicira_flows::entries_are_selected_by_what_only_nicira_says`",
    ),
    (
        Error::BundleMsgTooMany,
        "a bundle of 128 MiB: `agent::bundles::tests::bundles_and_their_bytes_are_bounded`",
    ),
    (
        Error::BundleMsgFailed,
        "comes behind another error: `bundles::a_refused_message_undoes_the_bundle`",
    ),
    (
        Error::BundleTimeout,
        "after ten seconds: `agent::bundles::tests::a_bundle_for_which_nothing_comes_is_forgotten`",
    ),
];

/// Errors that this switch never sends.
const NEVER: &[(Error, &str)] = &[
    (Error::HelloEperm, "who may not connect is refused by TLS, before any hello"),
    (Error::BadRequestBufferEmpty, "no packet is buffered, so that every buffer is unknown"),
    (Error::BadActionBadExpType, "every experimenter is unknown, which comes first"),
    (Error::BadActionEperm, "no action is forbidden to anybody"),
    (Error::BadActionTooMany, "a list may be as long as its message"),
    (Error::BadActionUnsupportedOrder, "apply-actions run in every order, a set in its own"),
    (Error::BadActionBadTag, "every tag of 1.3 is supported; a wrong type is BAD_ARGUMENT"),
    (Error::BadInstructionBadExpType, "every experimenter is unknown, which comes first"),
    (Error::BadInstructionEperm, "no instruction is forbidden to anybody"),
    (Error::BadMatchBadTag, "every tag of 1.3 is supported"),
    (Error::BadMatchBadDlAddrMask, "Ethernet addresses take every mask"),
    (Error::BadMatchBadNwAddrMask, "IP addresses take every mask"),
    (Error::BadMatchEperm, "no match is forbidden to anybody"),
    (Error::FlowModUnknown, "every reason has a code of its own"),
    (Error::FlowModEperm, "no flow-mod is forbidden to anybody, unless a slave"),
    (Error::FlowModBadTimeout, "1.3 has no timeout that is wrong (1.0 has, of its emergency flag)"),
    (Error::GroupModWeightUnsupported, "weights are supported where they have a meaning"),
    (Error::GroupModWatchUnsupported, "every type of group may watch"),
    (Error::GroupModEperm, "no group-mod is forbidden to anybody, unless a slave"),
    (Error::PortModEperm, "no port-mod is forbidden to anybody, unless a slave"),
    (Error::TableModEperm, "no table-mod is forbidden to anybody, unless a slave"),
    (Error::QueueOpEperm, "no queue is forbidden to anybody"),
    (Error::SwitchConfigBadLen, "a set-config of a wrong length is a request of a wrong length"),
    (Error::SwitchConfigEperm, "no set-config is forbidden to anybody, unless a slave"),
    (Error::RoleRequestUnsup, "every role is supported"),
    (Error::MeterModUnknown, "every reason has a code of its own"),
    (Error::MeterModBadBurst, "every burst is supported"),
    (Error::MeterModBadBandValue, "every drop precedence is supported"),
    (Error::BundleUnknown, "every reason has a code of its own"),
    (Error::BundleEperm, "no bundle is forbidden to anybody, unless a slave"),
    (Error::BundleMsgConflict, "messages of all kinds go together"),
    (Error::BundleInProgress, "a bundle is carried out in one step"),
    (Error::TableFeaturesEperm, "no request is forbidden to anybody, unless a slave"),
];

/// Brings the switch back to where the next row begins.
fn clean(switch: &Switch, facts: &Facts) {
    let mut controller = switch.controller(Version::V1_3);
    let tables = controller.multipart(MultipartRequestBody::TableFeatures(facts.tables.clone()));
    assert_eq!(tables, MultipartReplyBody::TableFeatures(facts.tables.clone()));
    let flows = FlowMod { table_id: TableId::ALL, ..FlowMod::new(FlowModCommand::Delete) };
    controller.send(&Message::FlowMod(flows));
    controller.send(&Message::GroupMod(GroupMod {
        command: GroupModCommand::Delete,
        group_type: GroupType::All,
        group_id: GroupId::ALL,
        buckets: Vec::new(),
        ..GroupMod::default()
    }));
    controller.send(&Message::MeterMod(MeterMod {
        command: MeterModCommand::Delete,
        flags: MeterFlags::empty(),
        meter_id: MeterId::ALL,
        bands: Vec::new(),
    }));
    controller.barrier();
}

/// The error that answers a row's frame, after what comes before it.
fn answer(switch: &Switch, row: &Row) -> (Xid, String, Vec<u8>) {
    let mut controller = switch.controller(Version::V1_3);
    let mut bytes = Vec::new();
    for message in &row.before {
        wire::encode_into(&mut bytes, Version::V1_3, Xid(5), message).unwrap();
    }
    controller.raw(&bytes);
    controller.raw(&row.frame);
    loop {
        match controller.next() {
            (xid, Message::Error(error)) => {
                let name = error.error(Version::V1_3).map_or("unknown", Error::name);
                controller.barrier();
                return (xid, name.to_owned(), error.data);
            }
            (_, Message::RoleReply(_) | Message::MultipartReply(_) | Message::BundleControl(_)) => {
            }
            other => panic!("{}: {other:?}", row.error),
        }
    }
}

#[test]
fn every_error_has_a_message_or_a_reason_why_not() {
    let switch = Switch::start(1, "tables = 4\nmax-entries = 3");
    let mut controller = switch.controller(Version::V1_3);
    let facts = Facts { port: first_port(&mut controller), tables: tables(&mut controller) };
    let rows = rows::rows(&facts);
    let mut listed = BTreeSet::new();
    let elsewhere = ELSEWHERE.iter().chain(NEVER).map(|(error, _)| *error);
    for error in rows.iter().map(|row| row.error).chain(elsewhere) {
        assert!(listed.insert(error), "{error} stands twice");
    }
    // Errors of later versions have an earlier one's number in 1.3.
    let is_own = |error: &&Error| {
        let (error_type, code) = error.numbers(Version::V1_3);
        Error::from_numbers(Version::V1_3, error_type, code) == Some(**error)
    };
    let own = Error::ALL.iter().filter(is_own);
    let missing: Vec<_> = own.filter(|error| !listed.contains(error)).collect();
    assert!(missing.is_empty(), "no row for {missing:?}");
    let mut wrong = Vec::new();
    for row in rows {
        clean(&switch, &facts);
        let (xid, name, data) = answer(&switch, &row);
        let asked = Xid(u32::from_be_bytes(row.frame[4..8].try_into().unwrap()));
        if name != row.error.name() {
            wrong.push(format!("{} is answered with {name}", row.error));
        }
        assert_eq!(xid, asked, "{}", row.error);
        assert_eq!(data, wire::quote(&row.frame), "{}", row.error);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    switch.stop();
}

fn tables(controller: &mut Controller) -> Vec<TableFeatures> {
    match controller.multipart(MultipartRequestBody::TableFeatures(Vec::new())) {
        MultipartReplyBody::TableFeatures(tables) => tables,
        other => panic!("{other:?}"),
    }
}

fn first_port(controller: &mut Controller) -> MacAddr {
    match controller.multipart(MultipartRequestBody::PortDesc) {
        MultipartReplyBody::PortDesc(ports) => ports[0].hw_addr,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_hello_of_other_versions_is_incompatible() {
    let switch = Switch::start(1, "");
    let mut stream = switch.stream();
    let hello = Message::Hello(Hello { versions: Some(VersionBitmap(1 << 2)) });
    let bytes = wire::encode(Version::V1_3, Xid(9), &hello).unwrap();
    std::io::Write::write_all(&mut stream, &bytes).unwrap();
    let mut bytes = Vec::new();
    // The switch closes; bytes of ours that it did not read make it a reset for some.
    let _ = std::io::Read::read_to_end(&mut stream, &mut bytes);
    let own = wire::frame_len(&bytes).unwrap().unwrap();
    let (_, xid, message) = wire::decode(&bytes[own..]).unwrap();
    let Message::Error(error) = message else { panic!("{message:?}") };
    assert_eq!((xid, error.error(Version::V1_3)), (Xid(9), Some(Error::HelloIncompatible)));
}
