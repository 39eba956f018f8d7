//! Traffic that a switch replays by itself, where no host sends: a trace enters the first port of
//! each pair, and a counter takes the packets that leave by the second.
//!
//! The trace and the flow entries are those of a workload, two files of one name, or made: then a
//! question is about their number and not about what they say.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{SettingsError, check_within, refuse};
use crate::workload::made;

/// A replay; either `folder` and `name` or `flows` and `entries`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Replay {
    /// Kind of the ports.
    pub devices: ReplayDevices,
    /// The folder of the workload `name`.
    pub folder: Option<PathBuf>,
    /// `NAME.pcap` enters, `NAME.flows` has the flow entries.
    pub name: Option<String>,
    /// Flows of a trace that is made, a frame of 64 bytes each: 1 to 1,000,000.
    pub flows: Option<u32>,
    /// Flow entries that are made: one behind all others takes every flow, the others are those of
    /// a flow each. 1 to 2^24, which differ in their addresses.
    pub entries: Option<u32>,
    /// Offset in each frame of a number of four bytes, so that no two frames are alike.
    pub number_at: Option<u16>,
}

/// Kind of a replay's ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReplayDevices {
    /// The trace replayed from memory, and a counter: Weir's own.
    #[default]
    Memory,
    /// DPDK's `net_pcap` and `net_null`.
    Dpdk,
}

impl Replay {
    /// Whether it can be replayed: trace and flow entries come from one place, and are no more than
    /// can be made.
    pub fn check(&self) -> Result<(), SettingsError> {
        match (&self.folder, &self.name, self.flows, self.entries) {
            (Some(_), Some(_), None, None) => {}
            (None, None, Some(flows), Some(entries)) => {
                for (key, count, most) in [
                    ("replay.flows", flows, made::FLOWS_MAX),
                    ("replay.entries", entries, made::ENTRIES_MAX),
                ] {
                    check_within(key, Some(count.into()), 1..=most.into(), "")?;
                }
            }
            _ => {
                let keys = [
                    ("folder", self.folder.is_some()),
                    ("name", self.name.is_some()),
                    ("flows", self.flows.is_some()),
                    ("entries", self.entries.is_some()),
                ];
                let given = keys.iter().filter(|(_, is_given)| *is_given).map(|(key, _)| *key);
                let given = match given.collect::<Vec<_>>() {
                    none if none.is_empty() => "nothing".to_owned(),
                    some => some.join(", "),
                };
                let why = "use folder and name of a workload, or flows and entries";
                return Err(SettingsError::new("replay", &given, why));
            }
        }
        let is_wrong = |_: &u16| self.devices != ReplayDevices::Memory;
        let why = "other devices number no frames: use devices = \"memory\"";
        refuse("replay.number_at", self.number_at, is_wrong, why)
    }
}

#[cfg(test)]
mod tests {
    use super::{Replay, ReplayDevices};

    #[test]
    fn a_replay_has_one_source() {
        let read = |text: &str| toml::from_str::<Replay>(text).unwrap();
        let made = read("flows = 10\nentries = 20");
        assert_eq!((made.devices, made.check()), (ReplayDevices::Memory, Ok(())));
        let files = read("folder = \"/tmp/w\"\nname = \"acl\"\nnumber_at = 34");
        assert_eq!(files.check(), Ok(()));
        for wrong in ["", "flows = 1", "entries = 1", "name = \"a\"\nflows = 1"] {
            assert_eq!(read(wrong).check().unwrap_err().key, "replay", "{wrong}");
        }
        for (keys, given) in [("name = \"a\"\nflows = 1", "name, flows"), ("", "nothing")] {
            assert_eq!(read(keys).check().unwrap_err().text, given);
        }
        let dpdk = Replay { devices: ReplayDevices::Dpdk, ..files };
        assert_eq!(dpdk.check().unwrap_err().key, "replay.number_at");
    }

    #[test]
    fn more_than_can_be_made_is_refused_with_what_can() {
        let made = |flows, entries| {
            let (flows, entries) = (Some(flows), Some(entries));
            Replay { flows, entries, ..Replay::default() }.check()
        };
        assert_eq!(made(1_000_000, 1 << 24), Ok(()));
        for (flows, entries, key, most) in [
            (0, 1, "replay.flows", "1 to 1000000"),
            (4_000_000_000, 1, "replay.flows", "1 to 1000000"),
            (1, 0, "replay.entries", "1 to 16777216"),
            (1, (1 << 24) + 1, "replay.entries", "1 to 16777216"),
        ] {
            let error = made(flows, entries).unwrap_err();
            assert_eq!(error.key, key);
            assert!(error.why.contains(most), "{error}");
        }
    }
}
