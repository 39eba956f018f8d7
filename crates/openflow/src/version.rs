//! Protocol versions: one row each, and one row for each thing that not all versions have.
//!
//! A version is data. Nothing asks which version a connection has agreed on; it asks whether the
//! version has what matters at that place ([`Version::has_oxm`], [`Version::has_meters`]) or for a
//! number of it ([`Numbers`]). So another version is a row of [`VERSIONS`], the ends of the rows
//! that it drops and the numbers that it changes.

use std::fmt;

/// One version's row.
#[derive(Clone, Copy, Debug)]
pub struct VersionRow {
    /// The version.
    pub version: Version,
    /// The number in the first byte of every message.
    pub number: u8,
    /// The name that `ovs-ofctl -O` takes: `OpenFlow13`.
    pub name: &'static str,
    /// The release as the specification's title has it: `1.3`.
    pub release: &'static str,
    /// Mark that `ovs-ofctl` prints after the name of a message of this version.
    pub mark: &'static str,
}

macro_rules! versions {
    ($($(#[doc = $doc:literal])* $variant:ident $number:literal $name:literal $release:literal
        $mark:literal;)+)
    => {
        /// A version of the OpenFlow wire protocol that Weir speaks. Later ones are greater.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Version {
            $($(#[doc = $doc])* $variant,)+
        }

        /// Every row, in the order of [`Version`]: oldest first.
        pub const VERSIONS: &[VersionRow] = &[$(VersionRow {
            version: Version::$variant,
            number: $number,
            name: $name,
            release: $release,
            mark: $mark,
        },)+];

        impl Version {
            /// Every version, oldest first.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
        }
    };
}

versions! {
    /// OpenFlow 1.0 (wire number 1).
    V1_0 1 "OpenFlow10" "1.0" "";
    /// OpenFlow 1.1 (wire number 2).
    V1_1 2 "OpenFlow11" "1.1" " (OF1.1)";
    /// OpenFlow 1.2 (wire number 3).
    V1_2 3 "OpenFlow12" "1.2" " (OF1.2)";
    /// OpenFlow 1.3 (wire number 4).
    V1_3 4 "OpenFlow13" "1.3" " (OF1.3)";
    /// OpenFlow 1.4 (wire number 5).
    V1_4 5 "OpenFlow14" "1.4" " (OF1.4)";
    /// OpenFlow 1.5 (wire number 6).
    V1_5 6 "OpenFlow15" "1.5" " (OF1.5)";
}

/// The versions that have something: from one on, or until one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionSpan {
    /// The first version that has it.
    pub since: Version,
    /// The last version that has it.
    pub until: Version,
}

impl VersionSpan {
    /// Every version.
    pub const ALL: Self = Self { since: Version::OLDEST, until: Version::NEWEST };

    /// The versions from `since` on.
    #[must_use]
    pub const fn since(since: Version) -> Self {
        Self { since, ..Self::ALL }
    }

    /// The versions until `until`, it included.
    #[must_use]
    pub const fn until(until: Version) -> Self {
        Self { until, ..Self::ALL }
    }

    /// Whether the version is one of them.
    #[must_use]
    #[inline]
    pub const fn holds(self, version: Version) -> bool {
        self.since as u8 <= version as u8 && version as u8 <= self.until as u8
    }
}

macro_rules! capabilities {
    ($($(#[doc = $doc:literal])* $name:ident $bound:ident $version:ident;)+) => {
        impl Version {
            /// Capabilities that not all versions have: name of the question, its versions.
            pub const CAPABILITIES: &'static [(&'static str, VersionSpan)] =
                &[$((stringify!($name), VersionSpan::$bound(Self::$version)),)+];

            $($(#[doc = $doc])*
            #[must_use]
            #[inline]
            pub const fn $name(self) -> bool {
                const SPAN: VersionSpan = VersionSpan::$bound(Version::$version);
                SPAN.holds(self)
            })+
        }
    };
}

capabilities! {
    /// Whether a hello may carry a bitmap of versions.
    has_version_bitmap since V1_3;
    /// Whether port numbers have 32 bits; they have 16 before.
    has_wide_ports since V1_1;
    /// Whether matches are lists of OXM fields; they are the twelve-tuple before.
    has_oxm since V1_2;
    /// Whether there are more flow tables than one, and messages name them.
    has_pipeline since V1_1;
    /// Whether entries have instructions; they have a list of actions before.
    has_instructions since V1_1;
    /// Whether matches have a mask for each address, of any bits; 1.0's tuple has prefixes.
    has_masked_addresses since V1_1;
    /// Whether an action sets any match field; there is an action for each field before.
    has_set_field since V1_2;
    /// Whether actions push tags and entries of a label stack.
    has_push since V1_1;
    /// Whether a packet that no entry matches needs a table-miss entry to reach a controller.
    has_table_miss_entry since V1_3;
    /// Whether there are groups.
    has_groups since V1_1;
    /// Whether controllers have roles by messages of the version.
    has_roles since V1_2;
    /// Whether a table's features are asked for and set.
    has_table_features since V1_3;
    /// Whether there are meters.
    has_meters since V1_3;
    /// Whether messages of statistics have a padded header.
    has_padded_statistics since V1_1;
    /// Whether a request for statistics may have several parts.
    has_requests_of_parts since V1_3;
    /// Whether ports are described by a multipart message; the features reply has them before.
    has_port_desc since V1_3;
    /// Whether controllers choose their asynchronous messages.
    has_async_config since V1_3;
    /// Whether experimenters number their messages.
    has_experimenter_types since V1_1;
    /// Whether a flow-removed says the hard timeout.
    has_hard_timeout_in_removed since V1_2;
    /// Whether there are errors of experimenters.
    has_experimenter_errors since V1_2;
    /// Whether there are auxiliary connections.
    has_auxiliary_connections since V1_3;
    /// Whether statistics of ports, queues and groups say how long those have lived.
    has_durations since V1_3;
    /// Whether statistics of entries have their flags.
    has_flags_in_statistics since V1_3;
    /// Whether a flag of an entry leaves its packets or bytes uncounted.
    has_uncounted_entries since V1_3;
    /// Whether extensions of ONF's are there, which later versions have as messages of their own.
    has_onf_extensions since V1_3;
    /// Whether ports say their speed in numbers, beside the rates among their features.
    has_port_speeds since V1_1;
    /// Whether queues say their port, so that a request may ask for those of all ports.
    has_queues_of_any_port since V1_2;
    /// Whether queues have a maximum rate and properties of experimenters.
    has_max_rate since V1_2;
    /// Whether cookies have masks: requests and changes can be limited to some.
    has_cookie_mask since V1_1;
    /// Whether a flag asks for counters to be reset; an entry that replaces another begins at zero
    /// before.
    has_reset_counts since V1_2;
    /// Whether there are codes for a bad port and a bad ingress port of a packet-out.
    has_bad_port_code since V1_2;
    /// Whether queues are described by a multipart message; they have a message of their own
    /// before.
    has_queue_desc since V1_4;
    /// Whether flow monitors are ONF's, or the version's own; they are Nicira's before.
    has_onf_flow_monitor since V1_3;
    /// Whether flow monitors are the version's own.
    has_flow_monitor since V1_4;
    /// Whether entries have an importance.
    has_importance since V1_4;
    /// Whether tables evict entries and report their vacancy where their settings ask for it.
    has_table_eviction since V1_4;
    /// Whether a table may copy another's entries.
    has_table_synchronisation since V1_4;
    /// Whether masks of asynchronous messages are properties, of which a change may leave some out,
    /// and are checked.
    has_async_properties since V1_4;
    /// Whether a meter is an action; it is an instruction before.
    has_meter_action since V1_5;
    /// Whether a set-field may have a mask.
    has_masked_set_field since V1_5;
    /// Whether buckets have numbers, by which commands insert and remove them.
    has_bucket_ids since V1_5;
    /// Whether requests for the descriptions of ports and groups may name one.
    has_desc_of_one since V1_5;
    /// Whether tables may be for packets that leave, and requests change single tables.
    has_egress_tables since V1_5;
    /// Whether a bundle may be carried out at a time that it names.
    has_scheduled_bundles since V1_5;
    /// Whether entries may report their counts when these pass thresholds.
    has_stat_triggers since V1_5;
    /// Whether the flags of TCP are a field of OpenFlow's own; they are of ONF's before.
    has_tcp_flags since V1_5;
    /// Whether matches say of which type packets are; all are Ethernet frames before.
    has_packet_types since V1_5;
    /// Whether modify adds the entry where none is to be modified. That of 1.1 does where it looks
    /// for no cookie.
    has_modify_or_add until V1_1;
    /// Whether a number stands for all tables in a flow-mod. That of 1.0 names no table.
    has_table_of_all since V1_2;
    /// Whether statistics of tables say what these can match by the members of a tuple.
    has_tuple_matches until V1_1;
    /// Whether modify gives its cookie to the entries.
    modify_sets_cookie until V1_0;
    /// Whether an entry without wildcards ranks above all others, whatever its priority.
    ranks_exact_first until V1_0;
    /// Whether flow entries have Nicira's form beside the standard's, for what that cannot say.
    has_nicira_flows until V1_0;
    /// Whether a capability says that the addresses in ARP packets are matched.
    has_arp_match_capability until V1_1;
    /// Whether there are emergency entries, for the time without a controller.
    has_emergency_entries until V1_0;
    /// Whether ports and capabilities know the spanning tree protocol.
    has_spanning_tree until V1_0;
    /// Whether the features reply has the switch's actions as a bitmap.
    has_action_bitmap until V1_0;
    /// Whether statistics of tables describe them too: name, wildcards, size.
    has_table_desc_in_stats until V1_2;
    /// Whether a flag of the switch's settings asks for packets with an invalid TTL. 1.0 has it in
    /// Open vSwitch.
    has_invalid_ttl_flag until V1_2;
    /// Whether settings of a table are the way of packets that no entry matches.
    has_miss_settings until V1_2;
}

impl Version {
    /// The oldest version of the table.
    pub const OLDEST: Self = Self::ALL[0];

    /// The versions that switch, controller and client offer where they are given none. Others are
    /// offered where they are named.
    pub const USUAL: &'static [Self] = &[Self::V1_0, Self::V1_3];

    /// The newest version of the table.
    pub const NEWEST: Self = Self::ALL[Self::ALL.len() - 1];

    /// The version's row.
    #[must_use]
    pub const fn row(self) -> &'static VersionRow {
        &VERSIONS[self as usize]
    }

    /// The number in the header's first byte.
    #[must_use]
    pub const fn number(self) -> u8 {
        self.row().number
    }

    /// The version of a header's first byte, if Weir speaks it.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        VERSIONS.iter().find(|row| row.number == number).map(|row| row.version)
    }

    /// The newest version whose number is not above `number`; the oldest where all are above.
    #[must_use]
    pub fn at_most(number: u8) -> Self {
        let known = VERSIONS.iter().rev().find(|row| row.number <= number);
        known.map_or(Self::OLDEST, |row| row.version)
    }

    /// The name that `ovs-ofctl -O` takes, for example `OpenFlow13`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// Takes `OpenFlow13`, `OpenFlow1.3`, `1.3` or `13`, in any case of letters.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let lower = name.to_ascii_lowercase();
        let digits = lower.strip_prefix("openflow").unwrap_or(&lower).replace('.', "");
        let row = VERSIONS.iter().find(|row| row.release.replace('.', "") == digits);
        row.map(|row| row.version)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The numbers of a thing on the wire: each since a version, the last until another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers<T: 'static> {
    /// Each number with the first version that has it, oldest first.
    pub since: &'static [(Version, T)],
    /// The last version that has the thing at all.
    pub until: Version,
}

impl<T: Copy> Numbers<T> {
    /// The number in a version, if the version has the thing.
    #[must_use]
    pub const fn of(&self, version: Version) -> Option<T> {
        if version as u8 > self.until as u8 {
            return None;
        }
        let mut number = None;
        let mut index = 0;
        while index < self.since.len() && self.since[index].0 as u8 <= version as u8 {
            number = Some(self.since[index].1);
            index += 1;
        }
        number
    }
}

/// Numbers as rows have them: `[V1_0: 15, V1_3: 16]` since those versions; `[V1_0: 15; V1_0]` until
/// the version behind the semicolon.
macro_rules! numbers {
    () => {
        $crate::version::Numbers { since: &[], until: $crate::version::Version::NEWEST }
    };
    ($($since:ident: $number:expr),+) => {
        numbers!($($since: $number),+; NEWEST)
    };
    ($($since:ident: $number:expr),+; $until:ident) => {
        $crate::version::Numbers {
            since: &[$(($crate::version::Version::$since, $number)),+],
            until: $crate::version::Version::$until,
        }
    };
}

pub(crate) use numbers;

/// A set of wire version numbers, as a hello's version bitmap carries it (bit n = version n).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct VersionBitmap(pub u32);

impl VersionBitmap {
    /// The set of `versions`.
    #[must_use]
    pub fn of(versions: &[Version]) -> Self {
        Self(versions.iter().fold(0, |bits, version| bits | 1 << version.number()))
    }

    /// Whether the wire version number is in the set.
    #[must_use]
    pub fn contains(self, number: u8) -> bool {
        number < 32 && self.0 & (1 << number) != 0
    }

    /// The versions of the set that Weir speaks, oldest first.
    pub fn versions(self) -> impl DoubleEndedIterator<Item = Version> {
        Version::ALL.iter().copied().filter(move |version| self.contains(version.number()))
    }

    /// The highest version that both sets hold and Weir speaks (clause 6.3.1).
    #[must_use]
    pub fn highest_common(self, other: Self) -> Option<Version> {
        Self(self.0 & other.0).versions().next_back()
    }
}

#[cfg(test)]
mod tests {
    use super::{Numbers, VERSIONS, Version, VersionSpan};

    #[test]
    fn rows_stand_in_the_order_of_the_enum_and_of_the_numbers() {
        assert!(VERSIONS.is_sorted_by(|older, newer| older.number < newer.number));
        for (index, row) in VERSIONS.iter().enumerate() {
            assert_eq!(row.version as usize, index);
            assert_eq!(Version::from_number(row.number), Some(row.version));
            assert_eq!(Version::from_name(row.name), Some(row.version));
            assert_eq!(Version::from_name(row.release), Some(row.version));
            assert_eq!(Version::at_most(row.number), row.version);
        }
        assert_eq!(Version::at_most(0), Version::OLDEST);
        assert_eq!(Version::at_most(u8::MAX), Version::NEWEST);
        assert_eq!(Version::from_number(0), None);
    }

    #[test]
    fn a_span_and_numbers_end_where_they_say() {
        let (old, new) = (Version::V1_0, Version::V1_3);
        assert!(VersionSpan::since(new).holds(new) && !VersionSpan::since(new).holds(old));
        assert!(VersionSpan::until(old).holds(old) && !VersionSpan::until(old).holds(new));
        let numbers: Numbers<u8> = numbers!(V1_0: 15, V1_3: 16);
        assert_eq!((numbers.of(old), numbers.of(new)), (Some(15), Some(16)));
        let numbers: Numbers<u8> = numbers!(V1_0: 15; V1_0);
        assert_eq!((numbers.of(old), numbers.of(new)), (Some(15), None));
        let numbers: Numbers<u8> = numbers!(V1_3: 16);
        assert_eq!((numbers.of(old), numbers.of(new)), (None, Some(16)));
    }

    #[test]
    fn every_capability_is_a_difference_between_versions() {
        for (name, span) in Version::CAPABILITIES {
            let having = Version::ALL.iter().filter(|version| span.holds(**version)).count();
            assert!((1..Version::ALL.len()).contains(&having), "{name} is no question");
        }
    }
}
