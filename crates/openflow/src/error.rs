//! The protocol's errors, one row each: name, type and code since a version, and a clause for
//! people that says why and what to do.
//!
//! A decode error or a refused command *is* one of these values, so a bad message becomes its
//! `OFPT_ERROR` without translation. 1.0 and 1.1 know fewer codes: for the others their number is
//! that of the nearest one. The reverse look-up takes the first row that has the numbers, so a row
//! stands before those that borrow its number: the refusals of flow-mods before those of matches
//! and instructions, which are flow-mods to 1.0. A row of type 0xffff is an experimenter's: ONF's,
//! for what 1.3 has by ONF's extensions, or Nicira's.

use crate::version::{Numbers, Version, numbers};
use std::fmt;

macro_rules! errors {
    ($($variant:ident $name:literal [$($numbers:tt)+] $advice:literal;)+) => {
        /// An error of the protocol: a type and a code in each version.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Error {
            $(#[doc = concat!("`", $name, "`")] $variant,)+
        }

        impl Error {
            /// Every error, in the order of the rows.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The specification's name of the code.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// Clause for people: why a message is refused so, and what to add or change.
            #[must_use]
            pub fn advice(self) -> &'static str {
                match self { $(Self::$variant => $advice,)+ }
            }

            /// Types and codes on the wire, since the versions that have them.
            const NUMBERS: &'static [Numbers<(u16, u16)>] = &[$(numbers!($($numbers)+)),+];
        }
    };
}

errors! {
    HelloIncompatible "OFPHFC_INCOMPATIBLE" [V1_0: (0, 0)]
        "both sides have no version in common: name another one by --protocols";
    HelloEperm "OFPHFC_EPERM" [V1_0: (0, 1)]
        "this peer may not connect: look at the switch's list of controllers";
    BadRequestBadVersion "OFPBRC_BAD_VERSION" [V1_0: (1, 0)]
        "the message is of another version than the connection: send the one that the hello agreed \
         on";
    BadRequestBadType "OFPBRC_BAD_TYPE" [V1_0: (1, 1)]
        "the switch does not know the request: a `weir switch` with --forward has no flow tables";
    BadRequestBadMultipart "OFPBRC_BAD_MULTIPART" [V1_0: (1, 2)]
        "the switch does not have these statistics: ask for others, or by another version";
    BadRequestBadExperimenter "OFPBRC_BAD_EXPERIMENTER" [V1_0: (1, 3)]
        "the switch does not know this vendor: send what the version itself has";
    BadRequestBadExpType "OFPBRC_BAD_EXP_TYPE" [V1_0: (1, 4)]
        "the switch does not know this message of the vendor: look at the vendor's list";
    BadRequestEperm "OFPBRC_EPERM" [V1_0: (1, 5)]
        "the switch does not allow the request: look at its rights and roles";
    BadRequestBadLen "OFPBRC_BAD_LEN" [V1_0: (1, 6)]
        "the message is too short or too long for its type: encode it again for this version";
    BadRequestBufferEmpty "OFPBRC_BUFFER_EMPTY" [V1_0: (1, 7)]
        "the buffered packet is used already: send the packet itself";
    BadRequestBufferUnknown "OFPBRC_BUFFER_UNKNOWN" [V1_0: (1, 8)]
        "the switch does not keep that packet: send the packet itself, without a buffer id";
    BadRequestBadTableId "OFPBRC_BAD_TABLE_ID" [V1_0: (1, 5), V1_1: (1, 9)]
        "there is no such table: name one that `dump-tables` lists";
    BadRequestIsSlave "OFPBRC_IS_SLAVE" [V1_0: (1, 5), V1_2: (1, 10)]
        "a slave may only ask: become master or equal first";
    BadRequestBadPort "OFPBRC_BAD_PORT" [V1_0: (1, 5), V1_2: (1, 11)]
        "there is no such port: name one that `show` lists";
    BadRequestBadPacket "OFPBRC_BAD_PACKET" [V1_0: (1, 6), V1_2: (1, 12)]
        "the packet is no whole Ethernet frame: send 14 bytes or more";
    BadRequestMultipartBufferOverflow "OFPBRC_MULTIPART_BUFFER_OVERFLOW"
        [V1_0: (1, 6), V1_3: (1, 13)]
        "the parts of the request are too many or do not end: send fewer, the last without the \
         flag for more";
    BadRequestMultipartRequestTimeout "OFPBRC_MULTIPART_REQUEST_TIMEOUT"
        [V1_0: (1, 6), V1_4: (1, 14)]
        "the rest of a request of several parts did not come: send its parts one after the other";
    BadRequestMultipartReplyTimeout "OFPBRC_MULTIPART_REPLY_TIMEOUT" [V1_0: (1, 6), V1_4: (1, 15)]
        "the rest of a reply of several parts did not come: ask again";
    BadRequestPipelineFieldsOnly "OFPBRC_PIPELINE_FIELDS_ONLY" [V1_0: (1, 1), V1_5: (1, 17)]
        "the match of a packet-out has a field of the packet: give its port and pipeline fields \
         alone";
    BadActionBadType "OFPBAC_BAD_TYPE" [V1_0: (2, 0)]
        "the switch or this table does not have the action: use one that its table features list";
    BadActionBadLen "OFPBAC_BAD_LEN" [V1_0: (2, 1)]
        "the length of an action is wrong: encode it again for this version";
    BadActionBadExperimenter "OFPBAC_BAD_EXPERIMENTER" [V1_0: (2, 2)]
        "the switch does not know this vendor's actions: use those of the version";
    BadActionBadExpType "OFPBAC_BAD_EXP_TYPE" [V1_0: (2, 3)]
        "the switch does not know this action of the vendor: look at the vendor's list";
    BadActionBadOutPort "OFPBAC_BAD_OUT_PORT" [V1_0: (2, 4)]
        "an output names a port that cannot be one: use a port that `show` lists, or IN_PORT for \
         the port of entry";
    BadActionBadArgument "OFPBAC_BAD_ARGUMENT" [V1_0: (2, 5)]
        "the value of an action is impossible, such as an EtherType that is no tag's: push 0x8100 \
         or 0x88a8 for a VLAN, 0x8847 or 0x8848 for MPLS";
    BadActionEperm "OFPBAC_EPERM" [V1_0: (2, 6)]
        "the switch does not allow the action: use another";
    BadActionTooMany "OFPBAC_TOO_MANY" [V1_0: (2, 7)]
        "the switch does not take so many actions: divide them over tables or groups";
    BadActionBadQueue "OFPBAC_BAD_QUEUE" [V1_0: (2, 8)]
        "no packet can go to this queue: name one that `queue-get-config` lists";
    BadActionBadOutGroup "OFPBAC_BAD_OUT_GROUP" [V1_0: (2, 5), V1_1: (2, 9)]
        "there is no such group: add it before what sends to it";
    BadActionMatchInconsistent "OFPBAC_MATCH_INCONSISTENT" [V1_0: (2, 5), V1_1: (2, 10)]
        "an action needs a header that the match does not ask for: add its type to the match, such \
         as `ip`, `tcp` or `vlan_vid`, or push the header before";
    BadActionUnsupportedOrder "OFPBAC_UNSUPPORTED_ORDER" [V1_0: (2, 5), V1_1: (2, 11)]
        "the switch cannot run the actions in this order: change it, or divide them over tables";
    BadActionBadTag "OFPBAC_BAD_TAG" [V1_0: (2, 5), V1_1: (2, 12)]
        "the switch does not support this tag: use another EtherType";
    BadActionBadSetType "OFPBAC_BAD_SET_TYPE" [V1_0: (2, 5), V1_2: (2, 13)]
        "this field cannot be set in this table: set one that its table features list";
    BadActionBadSetLen "OFPBAC_BAD_SET_LEN" [V1_0: (2, 1), V1_2: (2, 14)]
        "the value has another length than its field: encode it again";
    BadActionBadSetArgument "OFPBAC_BAD_SET_ARGUMENT" [V1_0: (2, 5), V1_2: (2, 15)]
        "the field cannot have this value: keep to its width; a `vlan_vid` needs the bit 0x1000, \
         for VLAN 100 write 4196";
    BadRequestNxmInvalid "NXBRC_NXM_INVALID" [V1_0: (1, 6), V1_2: (0xffff, 2)]
        "cookies of a flow-mod contradict each other: give the one to look for, or the new one";
    ResumeStale "NXR_STALE" [V1_0: (1, 5), V1_2: (0xffff, 35)]
        "the continuation is none that this bridge has sent, or was changed: resume a packet with \
         what its packet-in has";
    BadConjunction "NXBAC_BAD_CONJUNCTION" [V1_0: (2, 5), V1_2: (0xffff, 15)]
        "a conjunction stands beside other actions or instructions, or its dimension is none of 2 \
         to 64: let it be all that an entry does";
    BadActionBadSetMask "OFPBAC_BAD_SET_MASK" [V1_0: (2, 5), V1_5: (2, 16)]
        "the mask of a set-field does not fit: set no bits outside of it, and some inside";
    FlowModUnknown "OFPFMFC_UNKNOWN" [V1_0: (3, 5), V1_1: (5, 0)]
        "the switch does not support the entry and gives no reason: try it with fewer fields and \
         actions";
    FlowModTableFull "OFPFMFC_TABLE_FULL" [V1_0: (3, 0), V1_1: (5, 1)]
        "the table is full: delete entries, or raise `--max-entries` of a `weir switch`";
    FlowModEperm "OFPFMFC_EPERM" [V1_0: (3, 2), V1_1: (5, 4)]
        "the switch does not allow the change: look at the table, and at the controller's role";
    FlowModBadTableId "OFPFMFC_BAD_TABLE_ID" [V1_0: (3, 2), V1_1: (5, 2)]
        "there is no such table, or only a delete may name all: name one that `dump-tables` lists";
    FlowModOverlap "OFPFMFC_OVERLAP" [V1_0: (3, 1), V1_1: (5, 3)]
        "another entry of this priority matches some of the same packets: change the priority, or \
         leave out `check_overlap`";
    FlowModBadTimeout "OFPFMFC_BAD_TIMEOUT" [V1_0: (3, 3), V1_1: (5, 5)]
        "the switch cannot keep these timeouts: use others";
    FlowModBadCommand "OFPFMFC_BAD_COMMAND" [V1_0: (3, 4), V1_1: (5, 6)]
        "the switch does not know the command: add, modify or delete";
    FlowModBadFlags "OFPFMFC_BAD_FLAGS" [V1_0: (3, 5), V1_1: (5, 0), V1_2: (5, 7)]
        "the switch does not know or support the flags: leave them out";
    FlowModCantSync "OFPFMFC_CANT_SYNC" [V1_0: (3, 5), V1_1: (5, 0), V1_4: (5, 8)]
        "the table copies another one: change the entry there";
    FlowModBadPriority "OFPFMFC_BAD_PRIORITY" [V1_0: (3, 5), V1_1: (5, 0), V1_4: (5, 9)]
        "the switch does not support this priority: use another";
    BadInstructionUnknownInst "OFPBIC_UNKNOWN_INST" [V1_0: (3, 5), V1_1: (3, 0)]
        "the switch does not know the instruction: use one of the version";
    BadInstructionUnsupInst "OFPBIC_UNSUP_INST" [V1_0: (3, 5), V1_1: (3, 1)]
        "the switch or this table does not support the instruction, or it stands twice: use each \
         once, of those that the table features list";
    BadInstructionDupInst "OFPBIC_DUP_INST" [V1_0: (3, 5), V1_1: (3, 1), V1_4: (3, 9)]
        "an instruction stands twice: use each once";
    BadInstructionBadTableId "OFPBIC_BAD_TABLE_ID" [V1_0: (3, 5), V1_1: (3, 2)]
        "`goto_table` leads to no later table: name a higher one that `dump-tables` lists";
    BadInstructionUnsupMetadata "OFPBIC_UNSUP_METADATA" [V1_0: (3, 5), V1_1: (3, 3)]
        "the table cannot write these bits of the metadata: keep to those of its table features";
    BadInstructionUnsupMetadataMask "OFPBIC_UNSUP_METADATA_MASK" [V1_0: (3, 5), V1_1: (3, 4)]
        "the table cannot write metadata under this mask: keep to the bits of its table features";
    BadInstructionBadExperimenter "OFPBIC_BAD_EXPERIMENTER" [V1_0: (3, 5)]
        "the switch does not know this vendor's instructions: use those of the version";
    BadInstructionBadExpType "OFPBIC_BAD_EXP_TYPE" [V1_0: (3, 5), V1_2: (3, 6)]
        "the switch does not know this instruction of the vendor: look at the vendor's list";
    BadInstructionBadLen "OFPBIC_BAD_LEN" [V1_0: (3, 5), V1_1: (1, 6), V1_2: (3, 7)]
        "the length of an instruction is wrong: encode it again for this version";
    BadInstructionEperm "OFPBIC_EPERM" [V1_0: (3, 2), V1_1: (5, 4), V1_2: (3, 8)]
        "the switch does not allow the instruction: use another";
    BadMatchBadType "OFPBMC_BAD_TYPE" [V1_0: (3, 5), V1_1: (4, 0)]
        "the match has another form than this version's: send OXM fields";
    BadMatchBadLen "OFPBMC_BAD_LEN" [V1_0: (1, 6), V1_1: (4, 1)]
        "the length of the match or of a field is wrong: encode it again for this version";
    BadMatchBadTag "OFPBMC_BAD_TAG" [V1_0: (3, 5), V1_1: (4, 2)]
        "the switch does not support this tag: match another EtherType";
    BadMatchBadDlAddrMask "OFPBMC_BAD_DL_ADDR_MASK" [V1_0: (3, 5), V1_1: (4, 3)]
        "the switch does not take this mask of an Ethernet address: match it exactly or leave it \
         out";
    BadMatchBadNwAddrMask "OFPBMC_BAD_NW_ADDR_MASK" [V1_0: (3, 5), V1_1: (4, 4)]
        "the switch does not take this mask of an IP address: use a prefix such as /24";
    BadMatchBadWildcards "OFPBMC_BAD_WILDCARDS" [V1_0: (3, 5), V1_1: (4, 5)]
        "a field that must be matched is left out, or a value has bits outside its mask: name the \
         field, clear the bits";
    BadMatchBadField "OFPBMC_BAD_FIELD" [V1_0: (3, 5), V1_1: (4, 6)]
        "the switch or this table cannot match the field: use one that its table features list";
    BadMatchBadValue "OFPBMC_BAD_VALUE" [V1_0: (3, 5), V1_1: (4, 7)]
        "a field cannot have this value: keep to its width; a `vlan_vid` needs the bit 0x1000, for \
         VLAN 100 write 4196";
    BadMatchBadMask "OFPBMC_BAD_MASK" [V1_0: (3, 5), V1_1: (4, 5), V1_2: (4, 8)]
        "the field takes no such mask: match it exactly, or leave it out";
    BadMatchBadPrereq "OFPBMC_BAD_PREREQ" [V1_0: (3, 5), V1_1: (4, 6), V1_2: (4, 9)]
        "a field lacks the one that it depends on: add that before it, such as `ip` for an address \
         and `tcp` for a port";
    BadMatchDupField "OFPBMC_DUP_FIELD" [V1_0: (3, 5), V1_1: (4, 6), V1_2: (4, 10)]
        "a field stands twice: name it once";
    BadMatchEperm "OFPBMC_EPERM" [V1_0: (3, 2), V1_1: (5, 4), V1_2: (4, 11)]
        "the switch does not allow the match: use another";
    GroupModGroupExists "OFPGMFC_GROUP_EXISTS" [V1_0: (1, 1), V1_1: (6, 0)]
        "there is a group of this number: modify it, or delete it first";
    GroupModInvalidGroup "OFPGMFC_INVALID_GROUP" [V1_0: (1, 1), V1_1: (6, 1)]
        "a part of the group does not fit its type or number: weights are for select groups, \
         watches for fast failover, and `indirect` has one bucket";
    GroupModWeightUnsupported "OFPGMFC_WEIGHT_UNSUPPORTED" [V1_0: (1, 1), V1_1: (6, 2)]
        "the switch does not share unevenly: give each bucket weight 1";
    GroupModOutOfGroups "OFPGMFC_OUT_OF_GROUPS" [V1_0: (1, 1), V1_1: (6, 3)]
        "the switch has no room for more groups: delete some";
    GroupModOutOfBuckets "OFPGMFC_OUT_OF_BUCKETS" [V1_0: (1, 1), V1_1: (6, 4)]
        "the switch has no room for so many buckets: use fewer";
    GroupModChainingUnsupported "OFPGMFC_CHAINING_UNSUPPORTED" [V1_0: (1, 1), V1_1: (6, 5)]
        "groups lead to groups further than the switch allows: shorten the chain";
    GroupModWatchUnsupported "OFPGMFC_WATCH_UNSUPPORTED" [V1_0: (1, 1), V1_1: (6, 6)]
        "the switch cannot watch this port or group: watch another";
    GroupModLoop "OFPGMFC_LOOP" [V1_0: (1, 1), V1_1: (6, 7)]
        "the group would lead back to itself: leave out the bucket that closes the circle";
    GroupModUnknownGroup "OFPGMFC_UNKNOWN_GROUP" [V1_0: (1, 1), V1_1: (6, 8)]
        "there is no such group: add it first";
    GroupModChainedGroup "OFPGMFC_CHAINED_GROUP" [V1_0: (1, 1), V1_1: (6, 1), V1_2: (6, 9)]
        "another group sends to this one: change that one first";
    GroupModBadType "OFPGMFC_BAD_TYPE" [V1_0: (1, 1), V1_1: (6, 1), V1_2: (6, 10)]
        "the switch does not know the type: all, select, indirect or ff";
    GroupModBadCommand "OFPGMFC_BAD_COMMAND" [V1_0: (1, 1), V1_1: (6, 1), V1_2: (6, 11)]
        "the switch does not know the command: add, modify or delete";
    GroupModBadBucket "OFPGMFC_BAD_BUCKET" [V1_0: (1, 1), V1_1: (6, 1), V1_2: (6, 12)]
        "a bucket is wrong: look at its length and actions";
    GroupModBadWatch "OFPGMFC_BAD_WATCH" [V1_0: (1, 1), V1_1: (6, 6), V1_2: (6, 13)]
        "a bucket watches a port or group that is not there: name one that is";
    GroupModEperm "OFPGMFC_EPERM" [V1_0: (1, 5), V1_2: (6, 14)]
        "the switch does not allow the change: look at the controller's role";
    GroupModUnknownBucket "OFPGMFC_UNKNOWN_BUCKET" [V1_0: (1, 1), V1_5: (6, 15)]
        "the group has no bucket of this number: name one that `dump-groups` lists";
    GroupModBucketExists "OFPGMFC_BUCKET_EXISTS" [V1_0: (1, 1), V1_5: (6, 16)]
        "the group has a bucket of this number: give each its own";
    PortModBadPort "OFPPMFC_BAD_PORT" [V1_0: (4, 0), V1_1: (7, 0)]
        "there is no such port: name one that `show` lists";
    PortModBadHwAddr "OFPPMFC_BAD_HW_ADDR" [V1_0: (4, 1), V1_1: (7, 1)]
        "the port has another Ethernet address: take the one that `show` lists";
    PortModBadConfig "OFPPMFC_BAD_CONFIG" [V1_0: (4, 0), V1_1: (7, 2)]
        "the port cannot be configured so: use those bits that the version has";
    PortModBadAdvertise "OFPPMFC_BAD_ADVERTISE" [V1_0: (4, 0), V1_1: (7, 3)]
        "the port cannot advertise these features: use those that `show` lists as supported";
    PortModEperm "OFPPMFC_EPERM" [V1_0: (1, 5), V1_2: (7, 4)]
        "the switch does not allow the change: look at the controller's role";
    TableModBadTable "OFPTMFC_BAD_TABLE" [V1_0: (1, 1), V1_1: (8, 0)]
        "there is no such table: name one that `dump-tables` lists";
    TableModBadConfig "OFPTMFC_BAD_CONFIG" [V1_0: (1, 1), V1_1: (8, 1)]
        "the table has no such configuration: give 0";
    TableModEperm "OFPTMFC_EPERM" [V1_0: (1, 5), V1_2: (8, 2)]
        "the switch does not allow the change: look at the controller's role";
    QueueOpBadPort "OFPQOFC_BAD_PORT" [V1_0: (5, 0), V1_1: (9, 0)]
        "there is no such port: name one that `show` lists";
    QueueOpBadQueue "OFPQOFC_BAD_QUEUE" [V1_0: (5, 1), V1_1: (9, 1)]
        "the port has no such queue: name one that `queue-get-config` lists";
    QueueOpEperm "OFPQOFC_EPERM" [V1_0: (5, 2), V1_1: (9, 2)]
        "the switch does not allow the request: look at its rights";
    SwitchConfigBadFlags "OFPSCFC_BAD_FLAGS" [V1_0: (1, 5), V1_1: (10, 0)]
        "the switch does not handle fragments in this way: use 0, 1 or 2";
    SwitchConfigBadLen "OFPSCFC_BAD_LEN" [V1_0: (1, 6), V1_1: (10, 1)]
        "the length of the message is wrong: encode it again for this version";
    SwitchConfigEperm "OFPSCFC_EPERM" [V1_0: (1, 5), V1_2: (10, 2)]
        "the switch does not allow the change: look at the controller's role";
    RoleRequestStale "OFPRRFC_STALE" [V1_0: (1, 1), V1_2: (11, 0)]
        "another controller has a later generation id: use a higher one";
    RoleRequestUnsup "OFPRRFC_UNSUP" [V1_0: (1, 1), V1_2: (11, 1)]
        "the switch does not have this role: use another";
    RoleRequestBadRole "OFPRRFC_BAD_ROLE" [V1_0: (1, 1), V1_2: (11, 2)]
        "the switch does not know the role: equal, master or slave";
    MeterModUnknown "OFPMMFC_UNKNOWN" [V1_0: (1, 1), V1_3: (12, 0)]
        "the switch does not support the meter and gives no reason: try it with fewer bands";
    MeterModMeterExists "OFPMMFC_METER_EXISTS" [V1_0: (1, 1), V1_3: (12, 1)]
        "there is a meter of this number: modify it, or delete it first";
    MeterModInvalidMeter "OFPMMFC_INVALID_METER" [V1_0: (1, 1), V1_3: (12, 2)]
        "the meter cannot have this number: use 1 to 0xffff0000";
    MeterModUnknownMeter "OFPMMFC_UNKNOWN_METER" [V1_0: (1, 1), V1_3: (12, 3)]
        "there is no such meter: add it before what uses it";
    BadActionBadMeter "OFPBAC_BAD_METER" [V1_0: (1, 1), V1_3: (12, 3), V1_5: (2, 17)]
        "there is no such meter: add it before what names it";
    MeterModBadCommand "OFPMMFC_BAD_COMMAND" [V1_0: (1, 1), V1_3: (12, 4)]
        "the switch does not know the command: add, modify or delete";
    MeterModBadFlags "OFPMMFC_BAD_FLAGS" [V1_0: (1, 1), V1_3: (12, 5)]
        "the flags do not fit together: give kbps or pktps, not both";
    MeterModBadRate "OFPMMFC_BAD_RATE" [V1_0: (1, 1), V1_3: (12, 6)]
        "the rate of a band is impossible: give one above 0";
    MeterModBadBurst "OFPMMFC_BAD_BURST" [V1_0: (1, 1), V1_3: (12, 7)]
        "the switch does not support this burst: give another, or leave it out";
    MeterModBadBand "OFPMMFC_BAD_BAND" [V1_0: (1, 1), V1_3: (12, 8)]
        "the switch does not have this type of band: drop or dscp_remark";
    MeterModBadBandValue "OFPMMFC_BAD_BAND_VALUE" [V1_0: (1, 1), V1_3: (12, 9)]
        "a value of a band is impossible: give another";
    MeterModOutOfMeters "OFPMMFC_OUT_OF_METERS" [V1_0: (1, 1), V1_3: (12, 10)]
        "the switch has no room for more meters: delete some";
    MeterModOutOfBands "OFPMMFC_OUT_OF_BANDS" [V1_0: (1, 1), V1_3: (12, 11)]
        "the switch has no room for so many bands: use fewer";
    BadPropertyBadType "OFPBPC_BAD_TYPE" [V1_0: (1, 1), V1_4: (14, 0)]
        "the switch does not know a property: leave it out";
    BadPropertyBadLen "OFPBPC_BAD_LEN" [V1_0: (1, 6), V1_4: (14, 1)]
        "the length of a property is wrong: encode it again for this version";
    BadPropertyBadValue "OFPBPC_BAD_VALUE" [V1_0: (1, 1), V1_4: (14, 2)]
        "a property has a value that the switch cannot provide: give another";
    BadPropertyTooMany "OFPBPC_TOO_MANY" [V1_0: (1, 1), V1_4: (14, 3)]
        "there are more properties of a type than the switch takes: give fewer";
    BadPropertyDupType "OFPBPC_DUP_TYPE" [V1_0: (1, 1), V1_4: (14, 4)]
        "a property stands twice: give it once";
    BadPropertyBadExperimenter "OFPBPC_BAD_EXPERIMENTER" [V1_0: (1, 3), V1_4: (14, 5)]
        "the switch does not know this vendor's properties: use those of the version";
    BadPropertyBadExpType "OFPBPC_BAD_EXP_TYPE" [V1_0: (1, 4), V1_4: (14, 6)]
        "the switch does not know this property of the vendor: look at the vendor's list";
    BadPropertyBadExpValue "OFPBPC_BAD_EXP_VALUE" [V1_0: (1, 4), V1_4: (14, 7)]
        "a vendor's property has an impossible value: look at the vendor's list";
    BadPropertyEperm "OFPBPC_EPERM" [V1_0: (1, 5), V1_4: (14, 8)]
        "the switch does not allow the property: leave it out";
    TableFeaturesBadTable "OFPTFFC_BAD_TABLE" [V1_0: (1, 1), V1_3: (13, 0)]
        "there is no such table, or it stands twice: describe each that the switch has once";
    TableFeaturesBadMetadata "OFPTFFC_BAD_METADATA" [V1_0: (1, 1), V1_3: (13, 1)]
        "the table cannot have these bits of the metadata: keep to those that it has";
    TableFeaturesBadType "OFPTFFC_BAD_TYPE" [V1_0: (1, 1), V1_3: (13, 2), V1_4: (14, 0)]
        "the switch does not know a property: use those that it lists";
    TableFeaturesBadLen "OFPTFFC_BAD_LEN" [V1_0: (1, 1), V1_3: (13, 3), V1_4: (14, 1)]
        "the length of a property is wrong: encode it again for this version";
    TableFeaturesBadArgument "OFPTFFC_BAD_ARGUMENT"
        [V1_0: (1, 1), V1_3: (13, 4), V1_4: (14, 2)]
        "a property has a value that the switch cannot provide: keep to those that it lists";
    TableFeaturesEperm "OFPTFFC_EPERM" [V1_0: (1, 5), V1_3: (13, 5)]
        "the switch does not allow the change: look at the controller's role";
    TableFeaturesBadFeatures "OFPTFFC_BAD_FEATURES" [V1_0: (1, 1), V1_5: (13, 8)]
        "the switch has no tables for packets that leave: leave the flags of egress out";
    TableFeaturesBadCommand "OFPTFFC_BAD_COMMAND" [V1_0: (1, 1), V1_5: (13, 9)]
        "the switch replaces the features of all tables only: use the command for that";
    AsyncConfigInvalid "OFPACFC_INVALID" [V1_0: (1, 1), V1_4: (15, 0)]
        "a mask has bits that are no reason: clear them";
    AsyncConfigUnsupported "OFPACFC_UNSUPPORTED" [V1_0: (1, 1), V1_4: (15, 1)]
        "the switch does not send these messages: leave their mask out";
    AsyncConfigEperm "OFPACFC_EPERM" [V1_0: (1, 5), V1_4: (15, 2)]
        "the switch does not allow the change: look at its rights";
    FlowMonitorUnknown "OFPMOFC_UNKNOWN" [V1_0: (1, 1), V1_4: (16, 0)]
        "the switch refuses the monitor and gives no reason: end others, or monitor fewer entries";
    FlowMonitorExists "OFPMOFC_MONITOR_EXISTS" [V1_0: (1, 517), V1_3: (0xffff, 6), V1_4: (16, 1)]
        "there is a monitor of this number: use another, or end that one";
    FlowMonitorUnknownMonitor "OFPMOFC_UNKNOWN_MONITOR"
        [V1_0: (1, 519), V1_3: (0xffff, 8), V1_4: (16, 3)]
        "there is no monitor of this number: add it first";
    FlowMonitorBadCommand "OFPMOFC_BAD_COMMAND" [V1_0: (1, 1), V1_4: (16, 4)]
        "the switch does not know the command: add, modify or delete";
    FlowMonitorBadFlags "OFPMOFC_BAD_FLAGS" [V1_0: (1, 518), V1_3: (0xffff, 7), V1_4: (16, 5)]
        "the monitor asks for no change, or has a flag that is none: ask for what is added, \
         removed or modified";
    FlowMonitorBadTable "OFPMOFC_BAD_TABLE_ID" [V1_0: (1, 5), V1_3: (1, 9), V1_4: (16, 6)]
        "there is no such table: name one that `dump-tables` lists";
    BundleUnknown "OFPBFC_UNKNOWN" [V1_0: (1, 1), V1_3: (0xffff, 2300), V1_4: (17, 0)]
        "the switch refuses the bundle and gives no reason: send its messages one by one";
    BundleEperm "OFPBFC_EPERM" [V1_0: (1, 5), V1_3: (0xffff, 2301), V1_4: (17, 1)]
        "the switch does not allow the bundle: look at the controller's role";
    BundleBadId "OFPBFC_BAD_ID" [V1_0: (1, 1), V1_3: (0xffff, 2302), V1_4: (17, 2)]
        "there is no bundle of this number: open it first";
    BundleExist "OFPBFC_BUNDLE_EXIST" [V1_0: (1, 1), V1_3: (0xffff, 2303), V1_4: (17, 3)]
        "there is a bundle of this number: use another, or discard it";
    BundleClosed "OFPBFC_BUNDLE_CLOSED" [V1_0: (1, 1), V1_3: (0xffff, 2304), V1_4: (17, 4)]
        "the bundle is closed: commit it, or discard it";
    BundleOutOfBundles "OFPBFC_OUT_OF_BUNDLES" [V1_0: (1, 1), V1_3: (0xffff, 2305), V1_4: (17, 5)]
        "too many bundles are open: commit or discard some";
    BundleBadType "OFPBFC_BAD_TYPE" [V1_0: (1, 1), V1_3: (0xffff, 2306), V1_4: (17, 6)]
        "the switch does not know the command: open, close, commit or discard";
    BundleBadFlags "OFPBFC_BAD_FLAGS" [V1_0: (1, 1), V1_3: (0xffff, 2307), V1_4: (17, 7)]
        "the flags are not those with which the bundle was opened: repeat them";
    BundleMsgBadLen "OFPBFC_MSG_BAD_LEN" [V1_0: (1, 6), V1_3: (0xffff, 2308), V1_4: (17, 8)]
        "the message in the bundle has a wrong length: encode it again for this version";
    BundleMsgBadXid "OFPBFC_MSG_BAD_XID" [V1_0: (1, 1), V1_3: (0xffff, 2309), V1_4: (17, 9)]
        "the message in the bundle has another transaction number: give it that of its bundle-add";
    BundleMsgUnsup "OFPBFC_MSG_UNSUP" [V1_0: (1, 1), V1_3: (0xffff, 2310), V1_4: (17, 10)]
        "a bundle does not take this type of message: send it outside of bundles";
    BundleMsgConflict "OFPBFC_MSG_CONFLICT" [V1_0: (1, 1), V1_3: (0xffff, 2311), V1_4: (17, 11)]
        "messages of the bundle contradict each other: divide them over bundles";
    BundleMsgTooMany "OFPBFC_MSG_TOO_MANY" [V1_0: (1, 1), V1_3: (0xffff, 2312), V1_4: (17, 12)]
        "the bundle is full: divide it";
    BundleMsgFailed "OFPBFC_MSG_FAILED" [V1_0: (1, 1), V1_3: (0xffff, 2313), V1_4: (17, 13)]
        "a message of the bundle was refused, so that none is carried out: the error before says \
         which";
    BundleTimeout "OFPBFC_TIMEOUT" [V1_0: (1, 1), V1_3: (0xffff, 2314), V1_4: (17, 14)]
        "the bundle was open for too long: open it again";
    BundleInProgress "OFPBFC_BUNDLE_IN_PROGRESS"
        [V1_0: (1, 1), V1_3: (0xffff, 2315), V1_4: (17, 15)]
        "another bundle holds what this one changes: wait for its end";
    BundleSchedNotSupported "OFPBFC_SCHED_NOT_SUPPORTED" [V1_0: (1, 1), V1_5: (17, 16)]
        "the switch carries bundles out at once: commit without a time";
}

/// The type of errors of experimenters (`OFPET_EXPERIMENTER`).
pub const EXPERIMENTER_ERROR: u16 = 0xffff;

/// The Open Networking Foundation, as an experimenter.
pub const ONF: u32 = 0x4f4e_4600;

/// Nicira, whose extensions Open vSwitch has, as an experimenter.
pub const NICIRA: u32 = 0x0000_2320;

/// The first code of ONF's errors; those of Nicira's are lower.
const ONF_FROM: u16 = 2_300;

impl Error {
    /// Type and code on the wire; every version has some for every error.
    #[must_use]
    pub fn numbers(self, version: Version) -> (u16, u16) {
        let numbers = Self::NUMBERS[self as usize].of(version);
        numbers.expect("every row begins with the oldest version")
    }

    /// The experimenter whose error it is in a version, if it is one's.
    #[must_use]
    pub fn experimenter(self, version: Version) -> Option<u32> {
        let (error_type, code) = self.numbers(version);
        let whose = if code < ONF_FROM { NICIRA } else { ONF };
        (error_type == EXPERIMENTER_ERROR).then_some(whose)
    }

    /// The first row with these numbers; `None` for numbers that no row has.
    #[must_use]
    pub fn from_numbers(version: Version, error_type: u16, code: u16) -> Option<Self> {
        Self::ALL.iter().copied().find(|error| error.numbers(version) == (error_type, code))
    }

    /// The row of a specification's name such as `OFPBMC_BAD_PREREQ`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|error| error.name() == name)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::Error;
    use crate::version::Version;
    use std::collections::HashSet;

    #[test]
    fn names_and_numbers_are_unique_and_lead_back() {
        // 1.3 has no codes of later versions; in 1.4 properties of tables have those of properties.
        let later = ["OFPBPC_", "OFPACFC_", "_MULTIPART_RE", "_SYNC", "_PRIORITY", "_DUP_INST"];
        let ended = ["OFPTFFC_BAD_TYPE", "OFPTFFC_BAD_LEN", "OFPTFFC_BAD_ARGUMENT"];
        let of_monitors = ["OFPMOFC_UNKNOWN", "OFPMOFC_BAD_COMMAND", "OFPMOFC_BAD_TABLE_ID"];
        let newest = [
            "OFPBRC_PIPELINE_FIELDS_ONLY",
            "OFPBAC_BAD_SET_MASK",
            "OFPBAC_BAD_METER",
            "OFPGMFC_UNKNOWN_BUCKET",
            "OFPGMFC_BUCKET_EXISTS",
            "OFPTFFC_BAD_FEATURES",
            "OFPTFFC_BAD_COMMAND",
            "OFPBFC_SCHED_NOT_SUPPORTED",
        ];
        let mut names = HashSet::new();
        for &error in Error::ALL {
            assert!(names.insert(error.name()), "{error} stands twice");
            assert_eq!(Error::from_name(error.name()), Some(error));
            let is_later = later.iter().any(|part| error.name().contains(part))
                || of_monitors.contains(&error.name());
            let (is_newest, has_ended) =
                (newest.contains(&error.name()), ended.contains(&error.name()));
            for (version, is_borrowed) in [
                (Version::V1_3, is_later || is_newest),
                (Version::V1_4, has_ended || is_newest),
                (Version::V1_5, has_ended),
            ] {
                let (error_type, code) = error.numbers(version);
                let found = Error::from_numbers(version, error_type, code);
                assert_eq!(found == Some(error), !is_borrowed, "{version}: {error}");
            }
        }
    }

    #[test]
    fn codes_that_1_0_defines_lead_back_to_themselves() {
        // 1.0's own codes, by its types; three of flow-mods have other names since.
        let own = [
            "HFC: INCOMPATIBLE EPERM",
            "BRC: BAD_VERSION BAD_TYPE BAD_MULTIPART BAD_EXPERIMENTER BAD_EXP_TYPE EPERM BAD_LEN \
             BUFFER_EMPTY BUFFER_UNKNOWN",
            "BAC: BAD_TYPE BAD_LEN BAD_EXPERIMENTER BAD_EXP_TYPE BAD_OUT_PORT BAD_ARGUMENT EPERM \
             TOO_MANY BAD_QUEUE",
            "FMFC: TABLE_FULL OVERLAP EPERM BAD_TIMEOUT BAD_COMMAND UNKNOWN",
            "PMFC: BAD_PORT BAD_HW_ADDR",
            "QOFC: BAD_PORT BAD_QUEUE EPERM",
        ];
        for (error_type, names) in (0..).zip(own) {
            let (kind, names) = names.split_once(": ").unwrap();
            for (code, name) in (0..).zip(names.split(' ')) {
                let error = Error::from_name(&format!("OFP{kind}_{name}")).unwrap();
                assert_eq!(error.numbers(Version::V1_0), (error_type, code), "{error}");
                assert_eq!(Error::from_numbers(Version::V1_0, error_type, code), Some(error));
            }
        }
    }

    #[test]
    fn every_row_has_a_clause_of_why_and_what_to_do() {
        for &error in Error::ALL {
            let advice = error.advice();
            let (why, remedy) =
                advice.split_once(": ").unwrap_or_else(|| panic!("{error}: {advice}"));
            for part in [why, remedy] {
                assert!((6..=120).contains(&part.len()), "{error}: {part}");
                // It stands in brackets after the name.
                assert!(part.starts_with(|c: char| c.is_ascii_lowercase() || c == '`'), "{error}");
                assert!(!part.contains(['(', ')', '\n']) && !part.ends_with('.'), "{error}");
            }
        }
    }
}
