//! The protocol's errors, one row each: name, numbers in 1.0 and in 1.3.
//!
//! A decode error or a refused command *is* one of these values, so a bad message becomes its
//! `OFPT_ERROR` without translation. 1.0 knows fewer codes: for the others its column holds the
//! nearest one, and the reverse look-up takes the first row that has the numbers.

use crate::version::Version;
use std::fmt;

macro_rules! errors {
    ($($variant:ident $name:literal ($t10:literal, $c10:literal)
        ($t13:literal, $c13:literal);)+) => {
        /// An error of the protocol: a type and a code in each version.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Error {
            $(#[doc = concat!("`", $name, "`")] $variant,)+
        }

        impl Error {
            /// Every error, in the order of the specification.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The specification's name of the code.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// Type and code on the wire.
            #[must_use]
            pub fn numbers(self, version: Version) -> (u16, u16) {
                match (self, version) {
                    $((Self::$variant, Version::V1_0) => ($t10, $c10),
                    (Self::$variant, Version::V1_3) => ($t13, $c13),)+
                }
            }
        }
    };
}

errors! {
    HelloIncompatible "OFPHFC_INCOMPATIBLE" (0, 0) (0, 0);
    HelloEperm "OFPHFC_EPERM" (0, 1) (0, 1);
    BadRequestBadVersion "OFPBRC_BAD_VERSION" (1, 0) (1, 0);
    BadRequestBadType "OFPBRC_BAD_TYPE" (1, 1) (1, 1);
    BadRequestBadMultipart "OFPBRC_BAD_MULTIPART" (1, 2) (1, 2);
    BadRequestBadExperimenter "OFPBRC_BAD_EXPERIMENTER" (1, 3) (1, 3);
    BadRequestBadExpType "OFPBRC_BAD_EXP_TYPE" (1, 4) (1, 4);
    BadRequestEperm "OFPBRC_EPERM" (1, 5) (1, 5);
    BadRequestBadLen "OFPBRC_BAD_LEN" (1, 6) (1, 6);
    BadRequestBufferEmpty "OFPBRC_BUFFER_EMPTY" (1, 7) (1, 7);
    BadRequestBufferUnknown "OFPBRC_BUFFER_UNKNOWN" (1, 8) (1, 8);
    BadRequestBadTableId "OFPBRC_BAD_TABLE_ID" (1, 5) (1, 9);
    BadRequestIsSlave "OFPBRC_IS_SLAVE" (1, 5) (1, 10);
    BadRequestBadPort "OFPBRC_BAD_PORT" (1, 5) (1, 11);
    BadRequestBadPacket "OFPBRC_BAD_PACKET" (1, 6) (1, 12);
    BadRequestMultipartBufferOverflow "OFPBRC_MULTIPART_BUFFER_OVERFLOW" (1, 6) (1, 13);
    BadActionBadType "OFPBAC_BAD_TYPE" (2, 0) (2, 0);
    BadActionBadLen "OFPBAC_BAD_LEN" (2, 1) (2, 1);
    BadActionBadExperimenter "OFPBAC_BAD_EXPERIMENTER" (2, 2) (2, 2);
    BadActionBadExpType "OFPBAC_BAD_EXP_TYPE" (2, 3) (2, 3);
    BadActionBadOutPort "OFPBAC_BAD_OUT_PORT" (2, 4) (2, 4);
    BadActionBadArgument "OFPBAC_BAD_ARGUMENT" (2, 5) (2, 5);
    BadActionEperm "OFPBAC_EPERM" (2, 6) (2, 6);
    BadActionTooMany "OFPBAC_TOO_MANY" (2, 7) (2, 7);
    BadActionBadQueue "OFPBAC_BAD_QUEUE" (2, 8) (2, 8);
    BadActionBadOutGroup "OFPBAC_BAD_OUT_GROUP" (2, 5) (2, 9);
    BadActionMatchInconsistent "OFPBAC_MATCH_INCONSISTENT" (2, 5) (2, 10);
    BadActionUnsupportedOrder "OFPBAC_UNSUPPORTED_ORDER" (2, 5) (2, 11);
    BadActionBadTag "OFPBAC_BAD_TAG" (2, 5) (2, 12);
    BadActionBadSetType "OFPBAC_BAD_SET_TYPE" (2, 5) (2, 13);
    BadActionBadSetLen "OFPBAC_BAD_SET_LEN" (2, 1) (2, 14);
    BadActionBadSetArgument "OFPBAC_BAD_SET_ARGUMENT" (2, 5) (2, 15);
    BadInstructionUnknownInst "OFPBIC_UNKNOWN_INST" (3, 5) (3, 0);
    BadInstructionUnsupInst "OFPBIC_UNSUP_INST" (3, 5) (3, 1);
    BadInstructionBadTableId "OFPBIC_BAD_TABLE_ID" (3, 5) (3, 2);
    BadInstructionUnsupMetadata "OFPBIC_UNSUP_METADATA" (3, 5) (3, 3);
    BadInstructionUnsupMetadataMask "OFPBIC_UNSUP_METADATA_MASK" (3, 5) (3, 4);
    BadInstructionBadExperimenter "OFPBIC_BAD_EXPERIMENTER" (3, 5) (3, 5);
    BadInstructionBadExpType "OFPBIC_BAD_EXP_TYPE" (3, 5) (3, 6);
    BadInstructionBadLen "OFPBIC_BAD_LEN" (3, 5) (3, 7);
    BadInstructionEperm "OFPBIC_EPERM" (3, 2) (3, 8);
    BadMatchBadType "OFPBMC_BAD_TYPE" (3, 5) (4, 0);
    BadMatchBadLen "OFPBMC_BAD_LEN" (1, 6) (4, 1);
    BadMatchBadTag "OFPBMC_BAD_TAG" (3, 5) (4, 2);
    BadMatchBadDlAddrMask "OFPBMC_BAD_DL_ADDR_MASK" (3, 5) (4, 3);
    BadMatchBadNwAddrMask "OFPBMC_BAD_NW_ADDR_MASK" (3, 5) (4, 4);
    BadMatchBadWildcards "OFPBMC_BAD_WILDCARDS" (3, 5) (4, 5);
    BadMatchBadField "OFPBMC_BAD_FIELD" (3, 5) (4, 6);
    BadMatchBadValue "OFPBMC_BAD_VALUE" (3, 5) (4, 7);
    BadMatchBadMask "OFPBMC_BAD_MASK" (3, 5) (4, 8);
    BadMatchBadPrereq "OFPBMC_BAD_PREREQ" (3, 5) (4, 9);
    BadMatchDupField "OFPBMC_DUP_FIELD" (3, 5) (4, 10);
    BadMatchEperm "OFPBMC_EPERM" (3, 2) (4, 11);
    FlowModUnknown "OFPFMFC_UNKNOWN" (3, 5) (5, 0);
    FlowModTableFull "OFPFMFC_TABLE_FULL" (3, 0) (5, 1);
    FlowModBadTableId "OFPFMFC_BAD_TABLE_ID" (3, 2) (5, 2);
    FlowModOverlap "OFPFMFC_OVERLAP" (3, 1) (5, 3);
    FlowModEperm "OFPFMFC_EPERM" (3, 2) (5, 4);
    FlowModBadTimeout "OFPFMFC_BAD_TIMEOUT" (3, 3) (5, 5);
    FlowModBadCommand "OFPFMFC_BAD_COMMAND" (3, 4) (5, 6);
    FlowModBadFlags "OFPFMFC_BAD_FLAGS" (3, 5) (5, 7);
    GroupModGroupExists "OFPGMFC_GROUP_EXISTS" (1, 1) (6, 0);
    GroupModInvalidGroup "OFPGMFC_INVALID_GROUP" (1, 1) (6, 1);
    GroupModWeightUnsupported "OFPGMFC_WEIGHT_UNSUPPORTED" (1, 1) (6, 2);
    GroupModOutOfGroups "OFPGMFC_OUT_OF_GROUPS" (1, 1) (6, 3);
    GroupModOutOfBuckets "OFPGMFC_OUT_OF_BUCKETS" (1, 1) (6, 4);
    GroupModChainingUnsupported "OFPGMFC_CHAINING_UNSUPPORTED" (1, 1) (6, 5);
    GroupModWatchUnsupported "OFPGMFC_WATCH_UNSUPPORTED" (1, 1) (6, 6);
    GroupModLoop "OFPGMFC_LOOP" (1, 1) (6, 7);
    GroupModUnknownGroup "OFPGMFC_UNKNOWN_GROUP" (1, 1) (6, 8);
    GroupModChainedGroup "OFPGMFC_CHAINED_GROUP" (1, 1) (6, 9);
    GroupModBadType "OFPGMFC_BAD_TYPE" (1, 1) (6, 10);
    GroupModBadCommand "OFPGMFC_BAD_COMMAND" (1, 1) (6, 11);
    GroupModBadBucket "OFPGMFC_BAD_BUCKET" (1, 1) (6, 12);
    GroupModBadWatch "OFPGMFC_BAD_WATCH" (1, 1) (6, 13);
    GroupModEperm "OFPGMFC_EPERM" (1, 5) (6, 14);
    PortModBadPort "OFPPMFC_BAD_PORT" (4, 0) (7, 0);
    PortModBadHwAddr "OFPPMFC_BAD_HW_ADDR" (4, 1) (7, 1);
    PortModBadConfig "OFPPMFC_BAD_CONFIG" (4, 0) (7, 2);
    PortModBadAdvertise "OFPPMFC_BAD_ADVERTISE" (4, 0) (7, 3);
    PortModEperm "OFPPMFC_EPERM" (1, 5) (7, 4);
    TableModBadTable "OFPTMFC_BAD_TABLE" (1, 1) (8, 0);
    TableModBadConfig "OFPTMFC_BAD_CONFIG" (1, 1) (8, 1);
    TableModEperm "OFPTMFC_EPERM" (1, 5) (8, 2);
    QueueOpBadPort "OFPQOFC_BAD_PORT" (5, 0) (9, 0);
    QueueOpBadQueue "OFPQOFC_BAD_QUEUE" (5, 1) (9, 1);
    QueueOpEperm "OFPQOFC_EPERM" (5, 2) (9, 2);
    SwitchConfigBadFlags "OFPSCFC_BAD_FLAGS" (1, 5) (10, 0);
    SwitchConfigBadLen "OFPSCFC_BAD_LEN" (1, 6) (10, 1);
    SwitchConfigEperm "OFPSCFC_EPERM" (1, 5) (10, 2);
    RoleRequestStale "OFPRRFC_STALE" (1, 1) (11, 0);
    RoleRequestUnsup "OFPRRFC_UNSUP" (1, 1) (11, 1);
    RoleRequestBadRole "OFPRRFC_BAD_ROLE" (1, 1) (11, 2);
    MeterModUnknown "OFPMMFC_UNKNOWN" (1, 1) (12, 0);
    MeterModMeterExists "OFPMMFC_METER_EXISTS" (1, 1) (12, 1);
    MeterModInvalidMeter "OFPMMFC_INVALID_METER" (1, 1) (12, 2);
    MeterModUnknownMeter "OFPMMFC_UNKNOWN_METER" (1, 1) (12, 3);
    MeterModBadCommand "OFPMMFC_BAD_COMMAND" (1, 1) (12, 4);
    MeterModBadFlags "OFPMMFC_BAD_FLAGS" (1, 1) (12, 5);
    MeterModBadRate "OFPMMFC_BAD_RATE" (1, 1) (12, 6);
    MeterModBadBurst "OFPMMFC_BAD_BURST" (1, 1) (12, 7);
    MeterModBadBand "OFPMMFC_BAD_BAND" (1, 1) (12, 8);
    MeterModBadBandValue "OFPMMFC_BAD_BAND_VALUE" (1, 1) (12, 9);
    MeterModOutOfMeters "OFPMMFC_OUT_OF_METERS" (1, 1) (12, 10);
    MeterModOutOfBands "OFPMMFC_OUT_OF_BANDS" (1, 1) (12, 11);
    TableFeaturesBadTable "OFPTFFC_BAD_TABLE" (1, 1) (13, 0);
    TableFeaturesBadMetadata "OFPTFFC_BAD_METADATA" (1, 1) (13, 1);
    TableFeaturesBadType "OFPTFFC_BAD_TYPE" (1, 1) (13, 2);
    TableFeaturesBadLen "OFPTFFC_BAD_LEN" (1, 1) (13, 3);
    TableFeaturesBadArgument "OFPTFFC_BAD_ARGUMENT" (1, 1) (13, 4);
    TableFeaturesEperm "OFPTFFC_EPERM" (1, 5) (13, 5);
}

impl Error {
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
    fn names_and_numbers_of_1_3_are_unique_and_lead_back() {
        let mut names = HashSet::new();
        for &error in Error::ALL {
            assert!(names.insert(error.name()), "{error} stands twice");
            let (error_type, code) = error.numbers(Version::V1_3);
            assert_eq!(Error::from_numbers(Version::V1_3, error_type, code), Some(error));
            assert_eq!(Error::from_name(error.name()), Some(error));
        }
    }

    #[test]
    fn codes_that_1_0_defines_lead_back_to_themselves() {
        for name in ["OFPBRC_EPERM", "OFPBRC_BAD_LEN", "OFPBAC_BAD_ARGUMENT", "OFPFMFC_OVERLAP"] {
            let error = Error::from_name(name).unwrap();
            let (error_type, code) = error.numbers(Version::V1_0);
            assert_eq!(Error::from_numbers(Version::V1_0, error_type, code), Some(error));
        }
    }
}
