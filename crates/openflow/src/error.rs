//! The protocol's errors, one row each: name, and type and code since a version.
//!
//! A decode error or a refused command *is* one of these values, so a bad message becomes its
//! `OFPT_ERROR` without translation. 1.0 knows fewer codes: for the others its number is that of
//! the nearest one, and the reverse look-up takes the first row that has the numbers.

use crate::version::{Numbers, Version, numbers};
use std::fmt;

macro_rules! errors {
    ($($variant:ident $name:literal [$($numbers:tt)+];)+) => {
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

            /// Types and codes on the wire, since the versions that have them.
            const NUMBERS: &'static [Numbers<(u16, u16)>] = &[$(numbers!($($numbers)+)),+];
        }
    };
}

errors! {
    HelloIncompatible "OFPHFC_INCOMPATIBLE" [V1_0: (0, 0)];
    HelloEperm "OFPHFC_EPERM" [V1_0: (0, 1)];
    BadRequestBadVersion "OFPBRC_BAD_VERSION" [V1_0: (1, 0)];
    BadRequestBadType "OFPBRC_BAD_TYPE" [V1_0: (1, 1)];
    BadRequestBadMultipart "OFPBRC_BAD_MULTIPART" [V1_0: (1, 2)];
    BadRequestBadExperimenter "OFPBRC_BAD_EXPERIMENTER" [V1_0: (1, 3)];
    BadRequestBadExpType "OFPBRC_BAD_EXP_TYPE" [V1_0: (1, 4)];
    BadRequestEperm "OFPBRC_EPERM" [V1_0: (1, 5)];
    BadRequestBadLen "OFPBRC_BAD_LEN" [V1_0: (1, 6)];
    BadRequestBufferEmpty "OFPBRC_BUFFER_EMPTY" [V1_0: (1, 7)];
    BadRequestBufferUnknown "OFPBRC_BUFFER_UNKNOWN" [V1_0: (1, 8)];
    BadRequestBadTableId "OFPBRC_BAD_TABLE_ID" [V1_0: (1, 5), V1_3: (1, 9)];
    BadRequestIsSlave "OFPBRC_IS_SLAVE" [V1_0: (1, 5), V1_3: (1, 10)];
    BadRequestBadPort "OFPBRC_BAD_PORT" [V1_0: (1, 5), V1_3: (1, 11)];
    BadRequestBadPacket "OFPBRC_BAD_PACKET" [V1_0: (1, 6), V1_3: (1, 12)];
    BadRequestMultipartBufferOverflow "OFPBRC_MULTIPART_BUFFER_OVERFLOW"
        [V1_0: (1, 6), V1_3: (1, 13)];
    BadActionBadType "OFPBAC_BAD_TYPE" [V1_0: (2, 0)];
    BadActionBadLen "OFPBAC_BAD_LEN" [V1_0: (2, 1)];
    BadActionBadExperimenter "OFPBAC_BAD_EXPERIMENTER" [V1_0: (2, 2)];
    BadActionBadExpType "OFPBAC_BAD_EXP_TYPE" [V1_0: (2, 3)];
    BadActionBadOutPort "OFPBAC_BAD_OUT_PORT" [V1_0: (2, 4)];
    BadActionBadArgument "OFPBAC_BAD_ARGUMENT" [V1_0: (2, 5)];
    BadActionEperm "OFPBAC_EPERM" [V1_0: (2, 6)];
    BadActionTooMany "OFPBAC_TOO_MANY" [V1_0: (2, 7)];
    BadActionBadQueue "OFPBAC_BAD_QUEUE" [V1_0: (2, 8)];
    BadActionBadOutGroup "OFPBAC_BAD_OUT_GROUP" [V1_0: (2, 5), V1_3: (2, 9)];
    BadActionMatchInconsistent "OFPBAC_MATCH_INCONSISTENT" [V1_0: (2, 5), V1_3: (2, 10)];
    BadActionUnsupportedOrder "OFPBAC_UNSUPPORTED_ORDER" [V1_0: (2, 5), V1_3: (2, 11)];
    BadActionBadTag "OFPBAC_BAD_TAG" [V1_0: (2, 5), V1_3: (2, 12)];
    BadActionBadSetType "OFPBAC_BAD_SET_TYPE" [V1_0: (2, 5), V1_3: (2, 13)];
    BadActionBadSetLen "OFPBAC_BAD_SET_LEN" [V1_0: (2, 1), V1_3: (2, 14)];
    BadActionBadSetArgument "OFPBAC_BAD_SET_ARGUMENT" [V1_0: (2, 5), V1_3: (2, 15)];
    BadInstructionUnknownInst "OFPBIC_UNKNOWN_INST" [V1_0: (3, 5), V1_3: (3, 0)];
    BadInstructionUnsupInst "OFPBIC_UNSUP_INST" [V1_0: (3, 5), V1_3: (3, 1)];
    BadInstructionBadTableId "OFPBIC_BAD_TABLE_ID" [V1_0: (3, 5), V1_3: (3, 2)];
    BadInstructionUnsupMetadata "OFPBIC_UNSUP_METADATA" [V1_0: (3, 5), V1_3: (3, 3)];
    BadInstructionUnsupMetadataMask "OFPBIC_UNSUP_METADATA_MASK" [V1_0: (3, 5), V1_3: (3, 4)];
    BadInstructionBadExperimenter "OFPBIC_BAD_EXPERIMENTER" [V1_0: (3, 5)];
    BadInstructionBadExpType "OFPBIC_BAD_EXP_TYPE" [V1_0: (3, 5), V1_3: (3, 6)];
    BadInstructionBadLen "OFPBIC_BAD_LEN" [V1_0: (3, 5), V1_3: (3, 7)];
    BadInstructionEperm "OFPBIC_EPERM" [V1_0: (3, 2), V1_3: (3, 8)];
    BadMatchBadType "OFPBMC_BAD_TYPE" [V1_0: (3, 5), V1_3: (4, 0)];
    BadMatchBadLen "OFPBMC_BAD_LEN" [V1_0: (1, 6), V1_3: (4, 1)];
    BadMatchBadTag "OFPBMC_BAD_TAG" [V1_0: (3, 5), V1_3: (4, 2)];
    BadMatchBadDlAddrMask "OFPBMC_BAD_DL_ADDR_MASK" [V1_0: (3, 5), V1_3: (4, 3)];
    BadMatchBadNwAddrMask "OFPBMC_BAD_NW_ADDR_MASK" [V1_0: (3, 5), V1_3: (4, 4)];
    BadMatchBadWildcards "OFPBMC_BAD_WILDCARDS" [V1_0: (3, 5), V1_3: (4, 5)];
    BadMatchBadField "OFPBMC_BAD_FIELD" [V1_0: (3, 5), V1_3: (4, 6)];
    BadMatchBadValue "OFPBMC_BAD_VALUE" [V1_0: (3, 5), V1_3: (4, 7)];
    BadMatchBadMask "OFPBMC_BAD_MASK" [V1_0: (3, 5), V1_3: (4, 8)];
    BadMatchBadPrereq "OFPBMC_BAD_PREREQ" [V1_0: (3, 5), V1_3: (4, 9)];
    BadMatchDupField "OFPBMC_DUP_FIELD" [V1_0: (3, 5), V1_3: (4, 10)];
    BadMatchEperm "OFPBMC_EPERM" [V1_0: (3, 2), V1_3: (4, 11)];
    FlowModUnknown "OFPFMFC_UNKNOWN" [V1_0: (3, 5), V1_3: (5, 0)];
    FlowModTableFull "OFPFMFC_TABLE_FULL" [V1_0: (3, 0), V1_3: (5, 1)];
    FlowModBadTableId "OFPFMFC_BAD_TABLE_ID" [V1_0: (3, 2), V1_3: (5, 2)];
    FlowModOverlap "OFPFMFC_OVERLAP" [V1_0: (3, 1), V1_3: (5, 3)];
    FlowModEperm "OFPFMFC_EPERM" [V1_0: (3, 2), V1_3: (5, 4)];
    FlowModBadTimeout "OFPFMFC_BAD_TIMEOUT" [V1_0: (3, 3), V1_3: (5, 5)];
    FlowModBadCommand "OFPFMFC_BAD_COMMAND" [V1_0: (3, 4), V1_3: (5, 6)];
    FlowModBadFlags "OFPFMFC_BAD_FLAGS" [V1_0: (3, 5), V1_3: (5, 7)];
    GroupModGroupExists "OFPGMFC_GROUP_EXISTS" [V1_0: (1, 1), V1_3: (6, 0)];
    GroupModInvalidGroup "OFPGMFC_INVALID_GROUP" [V1_0: (1, 1), V1_3: (6, 1)];
    GroupModWeightUnsupported "OFPGMFC_WEIGHT_UNSUPPORTED" [V1_0: (1, 1), V1_3: (6, 2)];
    GroupModOutOfGroups "OFPGMFC_OUT_OF_GROUPS" [V1_0: (1, 1), V1_3: (6, 3)];
    GroupModOutOfBuckets "OFPGMFC_OUT_OF_BUCKETS" [V1_0: (1, 1), V1_3: (6, 4)];
    GroupModChainingUnsupported "OFPGMFC_CHAINING_UNSUPPORTED" [V1_0: (1, 1), V1_3: (6, 5)];
    GroupModWatchUnsupported "OFPGMFC_WATCH_UNSUPPORTED" [V1_0: (1, 1), V1_3: (6, 6)];
    GroupModLoop "OFPGMFC_LOOP" [V1_0: (1, 1), V1_3: (6, 7)];
    GroupModUnknownGroup "OFPGMFC_UNKNOWN_GROUP" [V1_0: (1, 1), V1_3: (6, 8)];
    GroupModChainedGroup "OFPGMFC_CHAINED_GROUP" [V1_0: (1, 1), V1_3: (6, 9)];
    GroupModBadType "OFPGMFC_BAD_TYPE" [V1_0: (1, 1), V1_3: (6, 10)];
    GroupModBadCommand "OFPGMFC_BAD_COMMAND" [V1_0: (1, 1), V1_3: (6, 11)];
    GroupModBadBucket "OFPGMFC_BAD_BUCKET" [V1_0: (1, 1), V1_3: (6, 12)];
    GroupModBadWatch "OFPGMFC_BAD_WATCH" [V1_0: (1, 1), V1_3: (6, 13)];
    GroupModEperm "OFPGMFC_EPERM" [V1_0: (1, 5), V1_3: (6, 14)];
    PortModBadPort "OFPPMFC_BAD_PORT" [V1_0: (4, 0), V1_3: (7, 0)];
    PortModBadHwAddr "OFPPMFC_BAD_HW_ADDR" [V1_0: (4, 1), V1_3: (7, 1)];
    PortModBadConfig "OFPPMFC_BAD_CONFIG" [V1_0: (4, 0), V1_3: (7, 2)];
    PortModBadAdvertise "OFPPMFC_BAD_ADVERTISE" [V1_0: (4, 0), V1_3: (7, 3)];
    PortModEperm "OFPPMFC_EPERM" [V1_0: (1, 5), V1_3: (7, 4)];
    TableModBadTable "OFPTMFC_BAD_TABLE" [V1_0: (1, 1), V1_3: (8, 0)];
    TableModBadConfig "OFPTMFC_BAD_CONFIG" [V1_0: (1, 1), V1_3: (8, 1)];
    TableModEperm "OFPTMFC_EPERM" [V1_0: (1, 5), V1_3: (8, 2)];
    QueueOpBadPort "OFPQOFC_BAD_PORT" [V1_0: (5, 0), V1_3: (9, 0)];
    QueueOpBadQueue "OFPQOFC_BAD_QUEUE" [V1_0: (5, 1), V1_3: (9, 1)];
    QueueOpEperm "OFPQOFC_EPERM" [V1_0: (5, 2), V1_3: (9, 2)];
    SwitchConfigBadFlags "OFPSCFC_BAD_FLAGS" [V1_0: (1, 5), V1_3: (10, 0)];
    SwitchConfigBadLen "OFPSCFC_BAD_LEN" [V1_0: (1, 6), V1_3: (10, 1)];
    SwitchConfigEperm "OFPSCFC_EPERM" [V1_0: (1, 5), V1_3: (10, 2)];
    RoleRequestStale "OFPRRFC_STALE" [V1_0: (1, 1), V1_3: (11, 0)];
    RoleRequestUnsup "OFPRRFC_UNSUP" [V1_0: (1, 1), V1_3: (11, 1)];
    RoleRequestBadRole "OFPRRFC_BAD_ROLE" [V1_0: (1, 1), V1_3: (11, 2)];
    MeterModUnknown "OFPMMFC_UNKNOWN" [V1_0: (1, 1), V1_3: (12, 0)];
    MeterModMeterExists "OFPMMFC_METER_EXISTS" [V1_0: (1, 1), V1_3: (12, 1)];
    MeterModInvalidMeter "OFPMMFC_INVALID_METER" [V1_0: (1, 1), V1_3: (12, 2)];
    MeterModUnknownMeter "OFPMMFC_UNKNOWN_METER" [V1_0: (1, 1), V1_3: (12, 3)];
    MeterModBadCommand "OFPMMFC_BAD_COMMAND" [V1_0: (1, 1), V1_3: (12, 4)];
    MeterModBadFlags "OFPMMFC_BAD_FLAGS" [V1_0: (1, 1), V1_3: (12, 5)];
    MeterModBadRate "OFPMMFC_BAD_RATE" [V1_0: (1, 1), V1_3: (12, 6)];
    MeterModBadBurst "OFPMMFC_BAD_BURST" [V1_0: (1, 1), V1_3: (12, 7)];
    MeterModBadBand "OFPMMFC_BAD_BAND" [V1_0: (1, 1), V1_3: (12, 8)];
    MeterModBadBandValue "OFPMMFC_BAD_BAND_VALUE" [V1_0: (1, 1), V1_3: (12, 9)];
    MeterModOutOfMeters "OFPMMFC_OUT_OF_METERS" [V1_0: (1, 1), V1_3: (12, 10)];
    MeterModOutOfBands "OFPMMFC_OUT_OF_BANDS" [V1_0: (1, 1), V1_3: (12, 11)];
    TableFeaturesBadTable "OFPTFFC_BAD_TABLE" [V1_0: (1, 1), V1_3: (13, 0)];
    TableFeaturesBadMetadata "OFPTFFC_BAD_METADATA" [V1_0: (1, 1), V1_3: (13, 1)];
    TableFeaturesBadType "OFPTFFC_BAD_TYPE" [V1_0: (1, 1), V1_3: (13, 2)];
    TableFeaturesBadLen "OFPTFFC_BAD_LEN" [V1_0: (1, 1), V1_3: (13, 3)];
    TableFeaturesBadArgument "OFPTFFC_BAD_ARGUMENT" [V1_0: (1, 1), V1_3: (13, 4)];
    TableFeaturesEperm "OFPTFFC_EPERM" [V1_0: (1, 5), V1_3: (13, 5)];
}

impl Error {
    /// Type and code on the wire; every version has some for every error.
    #[must_use]
    pub fn numbers(self, version: Version) -> (u16, u16) {
        let numbers = Self::NUMBERS[self as usize].of(version);
        numbers.expect("every row begins with the oldest version")
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
