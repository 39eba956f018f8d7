//! Traffic that a switch replays by itself, where no host sends: a trace enters the first port of
//! each pair, and a counter takes the packets that leave by the second.
//!
//! Another one may stand beside it, whose packets enter the same forwarding thread by port 3.
//! The trace and the flow entries are those of a workload, two files of one name, or made: then a
//! question is about their number and not about what they say.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::SettingsError;
use crate::workload::made;

/// The fastest clock of a port in memory, packets a second, and the most room it has for them.
const CLOCK_MAX_PPS: u64 = 1_000_000_000;
const SLOTS_MAX: u64 = 1 << 30;

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
    /// Traffic that enters by port 3.
    pub beside: Option<ReplayBeside>,
    /// Packets a second that come by the clock, whether or not the switch has time for them.
    /// Default: as many as it takes.
    pub rate_pps: Option<u64>,
    /// Packets for which port 1 has room then, as a network card has. Default: 4,096.
    pub slots: Option<u32>,
    /// Whether port 1 is set down before the flow entries are loaded, so that no packet has met
    /// them.
    pub is_down: bool,
}

/// Another trace, which enters the same forwarding thread by port 3 and meets the same tables.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReplayBeside {
    /// Source of the packets.
    pub packets: BesidePackets,
    /// A workload of the same folder, whose flow entries are loaded before the others whichever
    /// packets come.
    pub name: Option<String>,
    /// Offset in each frame of a number of four bytes.
    pub number_at: Option<u16>,
}

/// Source of the packets that come by port 3.
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

/// Kind of a replay's ports.
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

/// Source of trace and flow entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplaySource<'a> {
    /// Two files of one name.
    Files {
        /// Their folder.
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
    /// Source of trace and flow entries.
    ///
    /// # Errors
    /// They come from nowhere, or from two places, or more are to be made than can be.
    pub fn source(&self) -> Result<ReplaySource<'_>, SettingsError> {
        match (&self.folder, &self.name, self.flows, self.entries) {
            (Some(folder), Some(name), None, None) => Ok(ReplaySource::Files { folder, name }),
            (None, None, Some(flows), Some(entries)) => {
                check_count("replay.flows", flows.into(), made::FLOWS_MAX.into())?;
                check_count("replay.entries", entries.into(), made::ENTRIES_MAX.into())?;
                Ok(ReplaySource::Made { flows, entries })
            }
            _ => {
                let why = "use folder and name of a workload, or flows and entries";
                Err(SettingsError::new("replay", &format!("{self:?}"), why))
            }
        }
    }

    /// Whether it can be replayed, and every key says something.
    ///
    /// # Errors
    /// Refuses settings that cannot be, or do nothing.
    pub(super) fn check(&self) -> Result<(), SettingsError> {
        let is_made = matches!(self.source()?, ReplaySource::Made { .. });
        self.rate_pps.map_or(Ok(()), |rate| check_count("replay.rate_pps", rate, CLOCK_MAX_PPS))?;
        let nothing = ReplayBeside::default();
        let beside = self.beside.as_ref().unwrap_or(&nothing);
        let is_wires = self.devices == ReplayDevices::Wires;
        let is_foreign = self.devices != ReplayDevices::Memory;
        let text = |number: Option<u64>| number.map(|number| number.to_string());
        let number_at = |at: Option<u16>| text(at.map(u64::from));
        let (rate, slots) = (text(self.rate_pps), text(self.slots.map(u64::from)));
        let is_down = self.is_down.then(|| "true".to_owned());
        let (is_other, is_none) =
            (beside.packets == BesidePackets::Other, beside.packets == BesidePackets::None);
        let unnamed = (is_other && beside.name.is_none()).then(|| "other".to_owned());
        let no_clock = "other devices have no clock: use devices = \"memory\"";
        let no_numbers = "other devices number no frames: use devices = \"memory\"";
        let by_clock = "only packets that come by the clock need room: say rate_pps too";
        let refused = [
            ("replay.number_at", is_foreign, number_at(self.number_at), no_numbers),
            ("replay.number_at", is_foreign, number_at(beside.number_at), no_numbers),
            ("replay.rate_pps", is_foreign, rate, no_clock),
            ("replay.slots", is_foreign, slots.clone(), no_clock),
            (
                "replay.name",
                is_wires,
                self.name.clone(),
                "wires replay no trace: use flows and entries",
            ),
            (
                "replay.beside",
                is_wires,
                self.beside.as_ref().map(|beside| format!("{beside:?}")),
                "there are two wires and no port 3",
            ),
            (
                "replay.is_down",
                is_wires,
                is_down.clone(),
                "wires replay nothing: no packet comes by itself",
            ),
            ("replay.slots", self.rate_pps.is_none(), slots, by_clock),
            ("replay.beside", true, unnamed, "name the workload"),
            (
                "replay.beside",
                is_made,
                beside.name.clone(),
                "a workload stands beside one of the same folder",
            ),
            (
                "replay.beside",
                is_none,
                number_at(beside.number_at),
                "number_at: no packet comes by port 3",
            ),
            ("replay.is_down", !is_none, is_down, "packets would come by port 3: leave beside out"),
        ];
        for (key, is_wrong, text, why) in refused {
            if let Some(text) = text.filter(|_| is_wrong) {
                return Err(SettingsError::new(key, &text, why));
            }
        }
        self.slots.map_or(Ok(()), |slots| check_count("replay.slots", slots.into(), SLOTS_MAX))
    }
}

/// Whether that number can be made.
fn check_count(key: &'static str, count: u64, most: u64) -> Result<(), SettingsError> {
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
    fn wires_take_nothing_that_belongs_to_a_trace() {
        let check = |text: &str| toml::from_str::<Replay>(text).unwrap().check();
        let key = |more: &str| check(&format!("devices = \"wires\"\n{more}")).unwrap_err().key;
        let made = "flows = 1\nentries = 2\n";
        assert_eq!(check(&format!("devices = \"wires\"\n{made}")), Ok(()));
        assert_eq!(key("folder = \"/w\"\nname = \"a\""), "replay.name");
        for (more, refused) in [
            ("beside = { packets = \"none\" }", "replay.beside"),
            ("is_down = true", "replay.is_down"),
            ("slots = 7", "replay.slots"),
        ] {
            assert_eq!(key(&format!("{made}{more}")), refused);
        }
    }

    #[test]
    fn room_is_for_packets_that_come_by_the_clock() {
        let check = |more: &str| {
            let made = "flows = 1\nentries = 1\n";
            toml::from_str::<Replay>(&format!("{made}{more}")).unwrap().check()
        };
        assert_eq!(check("rate_pps = 7\nslots = 9"), Ok(()));
        assert_eq!(check("rate_pps = 7"), Ok(()));
        for (wrong, key, why) in [
            ("slots = 9", "replay.slots", "rate_pps"),
            ("rate_pps = 7\nslots = 0", "replay.slots", "1 to 1073741824"),
            ("rate_pps = 0", "replay.rate_pps", "1 to 1000000000"),
        ] {
            let error = check(wrong).unwrap_err();
            assert_eq!(error.key, key, "{wrong}");
            assert!(error.why.contains(why), "{error}");
        }
    }

    #[test]
    fn a_port_that_is_down_has_none_beside_it_that_sends() {
        let check = |beside: &str| {
            let made = "flows = 1\nentries = 1\nis_down = true\n";
            toml::from_str::<Replay>(&format!("{made}{beside}")).unwrap().check()
        };
        assert_eq!(check(""), Ok(()));
        assert_eq!(check("beside = { packets = \"none\" }"), Ok(()));
        let sends = check("beside = { packets = \"same\" }").unwrap_err();
        assert_eq!(sends.key, "replay.is_down");
        let unnumbered = check("beside = { packets = \"none\", number_at = 26 }").unwrap_err();
        assert_eq!(unnumbered.key, "replay.beside");
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
