//! What a switch replays by itself, where no host sends: a trace enters the first port of each
//! pair, and a counter takes what leaves by the second.
//!
//! Another one may stand beside it, whose packets enter the same forwarding thread by port 3.
//! The trace and the flow entries are those of a workload, two files of one name, or made: then a
//! question is about their number and not about what they say.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::SettingsError;
use crate::workload::made;

/// A replay; either `folder` and `name` or `flows` and `entries`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// What the ports are.
    #[serde(default)]
    pub devices: ReplayDevices,
    /// The folder of the workload `name`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
    /// `NAME.pcap` enters, `NAME.flows` has the flow entries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Flows of a trace that is made, a frame of 64 bytes each: 1 to 1,000,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flows: Option<u32>,
    /// Flow entries that are made: one behind all others takes every flow, the others are those of
    /// a flow each. 1 to 2^24, which differ in their addresses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entries: Option<u32>,
    /// Where in each frame a number of four bytes stands, so that no two frames are alike.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number_at: Option<u16>,
    /// What enters by port 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beside: Option<ReplayBeside>,
    /// Packets a second that come by the clock, whether or not the switch has time for them.
    /// Default: as many as it takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_pps: Option<u64>,
    /// Packets for which port 1 has room then, as a network card has. Default: 4,096.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slots: Option<u32>,
    /// Whether port 1 is set down before the flow entries are loaded, so that no packet has met
    /// them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_down: bool,
}

/// Another trace, which enters the same forwarding thread by port 3 and meets the same tables.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplayBeside {
    /// Whose packets come.
    #[serde(default)]
    pub packets: BesidePackets,
    /// A workload of the same folder, whose flow entries are loaded before the others whichever
    /// packets come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Where in each frame a number of four bytes stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number_at: Option<u16>,
}

/// Whose packets come by port 3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BesidePackets {
    /// None.
    #[default]
    None,
    /// A second copy of those of port 1.
    Same,
    /// Those of the workload beside.
    Other,
}

/// What the ports of a replay are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReplayDevices {
    /// The trace replayed from memory, and a counter: Weir's own.
    #[default]
    Memory,
    /// DPDK's `net_pcap` and `net_null`.
    Dpdk,
    /// Two wires in memory whose other ends the lab has: nothing is replayed, the lab sends single
    /// frames of a trace that is made.
    Wires,
}

/// Where trace and flow entries come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplaySource<'a> {
    /// Two files of one name.
    Files {
        /// Where they are.
        folder: &'a Path,
        /// Their name without its ending.
        name: &'a str,
    },
    /// Made.
    Made {
        /// So many flows.
        flows: u32,
        /// So many flow entries.
        entries: u32,
    },
}

impl Replay {
    /// Where trace and flow entries come from.
    ///
    /// # Errors
    /// They come from nowhere, or from two places, or more are to be made than can be.
    pub fn source(&self) -> Result<ReplaySource<'_>, SettingsError> {
        match (&self.folder, &self.name, self.flows, self.entries) {
            (Some(folder), Some(name), None, None) => Ok(ReplaySource::Files { folder, name }),
            (None, None, Some(flows), Some(entries)) => {
                check_count("replay.flows", flows, made::FLOWS_MAX)?;
                check_count("replay.entries", entries, made::ENTRIES_MAX)?;
                Ok(ReplaySource::Made { flows, entries })
            }
            _ => {
                let why = "use folder and name of a workload, or flows and entries";
                Err(SettingsError::new("replay", &format!("{self:?}"), why))
            }
        }
    }

    /// Whether it can be replayed.
    ///
    /// # Errors
    /// What cannot be.
    pub(super) fn check(&self) -> Result<(), SettingsError> {
        let source = self.source()?;
        let needs =
            |key, text: &dyn ToString, why| Err(SettingsError::new(key, &text.to_string(), why));
        if self.devices != ReplayDevices::Memory {
            let beside = self.beside.as_ref().and_then(|beside| beside.number_at);
            if let Some(at) = self.number_at.or(beside) {
                let why = "other devices number no frames: use devices = \"memory\"";
                return needs("replay.number_at", &at, why);
            }
            if let Some(rate) = self.rate_pps {
                let why = "other devices have no clock: use devices = \"memory\"";
                return needs("replay.rate_pps", &rate, why);
            }
        }
        let is_made = matches!(source, ReplaySource::Made { .. });
        match &self.beside {
            Some(ReplayBeside { packets: BesidePackets::Other, name: None, .. }) => {
                needs("replay.beside", &"other", "name the workload")
            }
            Some(ReplayBeside { name: Some(name), .. }) if is_made => {
                needs("replay.beside", name, "a workload stands beside one of the same folder")
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// Whether so many can be made.
fn check_count(key: &'static str, count: u32, most: u32) -> Result<(), SettingsError> {
    if (1..=most).contains(&count) {
        return Ok(());
    }
    Err(SettingsError::new(key, &count.to_string(), format!("must be 1 to {most}")))
}

#[cfg(test)]
mod tests {
    use super::{Replay, ReplayDevices, ReplaySource};

    #[test]
    fn a_replay_has_one_source() {
        let read = |text: &str| toml::from_str::<Replay>(text).unwrap();
        let made = read("flows = 10\nentries = 20");
        assert_eq!(made.source(), Ok(ReplaySource::Made { flows: 10, entries: 20 }));
        assert_eq!((made.devices, made.check()), (ReplayDevices::Memory, Ok(())));
        let files = read("folder = \"/tmp/w\"\nname = \"acl\"\nnumber_at = 34");
        assert!(matches!(files.source(), Ok(ReplaySource::Files { name: "acl", .. })));
        for wrong in ["", "flows = 1", "entries = 1", "name = \"a\"\nflows = 1"] {
            assert_eq!(read(wrong).check().unwrap_err().key, "replay", "{wrong}");
        }
        let dpdk = Replay { devices: ReplayDevices::Dpdk, ..files };
        assert_eq!(dpdk.check().unwrap_err().key, "replay.number_at");
        let by_clock = Replay { number_at: None, rate_pps: Some(7), ..dpdk };
        assert_eq!(by_clock.check().unwrap_err().key, "replay.rate_pps");
    }

    #[test]
    fn what_stands_beside_a_workload_is_of_the_same_folder() {
        let check = |text: &str| toml::from_str::<Replay>(text).unwrap().check();
        let (made, files) = ("flows = 1\nentries = 1\n", "folder = \"/w\"\nname = \"a\"\n");
        let beside = |of: &str, beside: &str| check(&format!("{of}beside = {{ {beside} }}"));
        assert_eq!(beside(made, "packets = \"same\", number_at = 26"), Ok(()));
        assert_eq!(beside(files, "packets = \"other\", name = \"b\""), Ok(()));
        assert_eq!(beside(files, "packets = \"other\"").unwrap_err().why, "name the workload");
        assert_eq!(beside(made, "name = \"b\"").unwrap_err().key, "replay.beside");
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
