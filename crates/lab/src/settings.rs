//! The settings of a cell: how the switch runs, what it is told, what is sent through it.
//!
//! A scenario has base settings, and each value of each axis overlays some of them; what is left
//! open has the default that its accessor states. A text that is no value is an error of the
//! scenario file, with line and column, before anything is started.

mod fleet;
mod replay;
mod series;

use std::ops::RangeInclusive;

use generator::profile::Modifier;
use openflow::Version;
use openflow::flow::{FlowMod, FlowModCommand};
use openflow::group::{GroupMod, GroupModCommand};
use openflow::meter::{MeterMod, MeterModCommand};
use openflow::text::{parse_flow_mod, parse_group_mod, parse_meter_mod};
use programs::cpu_share::CpuShare;
use serde::{Deserialize, Serialize};

use crate::rate::LinkRate;
pub use fleet::FleetSettings;
pub use replay::{Replay, ReplayDevices};
pub use series::FlowSeries;

/// The longest trial, seconds: a day.
const DURATION_MAX_S: f64 = 86_400.0;

/// Deciding party: the way packets are forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Forwarding {
    /// Flow entries that the lab loads.
    Flows,
    /// The switch itself, which learns addresses: what the evaluations call the legacy mode.
    Learning,
    /// A controller with an application.
    Controller,
    /// Nothing: what enters port 1 leaves port 2, and back. testpmd calls it `io`.
    Io,
}

/// Caches of a switch that are at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheSet {
    /// As the switch comes.
    Usual,
    /// All but a tier inside the kernel.
    User,
    /// All, the tier inside the kernel too.
    Kernel,
    /// Not the one that knows whole frames, or Open vSwitch's exact-match cache.
    Key,
    /// None: each packet is looked up in the flow tables.
    None,
}

/// Work of a controller with packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AppKind {
    /// Answers every packet-in with a packet-out FLOOD and installs nothing.
    Hub,
    /// Learns addresses and installs flow entries.
    LearningSwitch,
}

impl AppKind {
    /// Its name, as `weir controller` takes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hub => "hub",
            Self::LearningSwitch => "learning-switch",
        }
    }
}

/// Carrier of the OpenFlow channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChannelTransport {
    /// TCP.
    Plain,
    /// TLS over TCP, both ends authenticated.
    Tls,
}

/// Defines [`Settings`], what runs over all its keys, and the getters of those with a default.
macro_rules! settings {
    ($(
        $(#[doc = $part_doc:literal])*
        $part:ident { $($(#[doc = $doc:literal])* $key:ident: $type:ty $(= $default:expr)?,)* }
    )*) => {
        /// Every key, first those of the set-up, with what it says.
        pub const KEYS: &[(&str, &str)] = &[
            $($((stringify!($key), concat!($($doc),*)),)*)*
        ];

        /// The settings of a cell; a key that is not there has its default.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct Settings {
            $($($(#[doc = $doc])*
            pub $key: Option<$type>,)*)*
        }

        impl Settings {
            /// Takes over every key that `other` has.
            pub fn overlay(&mut self, other: &Self) {
                $($(if other.$key.is_some() { self.$key.clone_from(&other.$key); })*)*
            }

            $($(#[doc = $part_doc])*
            pub fn $part(&self) -> Self {
                Self { $($key: self.$key.clone(),)* ..Self::default() }
            }

            $($(
                /// The setting, or its default.
                pub fn $key(&self) -> $type {
                    self.$key.unwrap_or($default)
                }
            )?)*)*
        }
    };
}

settings! {
    /// Settings of the set-up alone: a switch that was started for the same serves.
    setup {
        /// Party that decides where packets go: `flows` (entries that the lab loads), `learning`
        /// (the switch itself), `controller`, `io` (nothing: in at port 1, out at port 2). Default:
        /// flows.
        forwarding: Forwarding,
        /// The version of OpenFlow, `1.0` or `1.3`. Default: 1.3.
        version: String,
        /// Ports of the switch, each with a host. Default: 2.
        ports: usize = 2,
        /// Switches in a line between the two hosts, each a process of its own with the same flow
        /// entries. Default: 1.
        line: usize = 1,
        /// The switch's own replay, in place of hosts that send.
        replay: Replay,
        /// Emulated switches that load a controller, in place of a switch and hosts.
        fleet: FleetSettings,
        /// The core of the first forwarding thread, those of the others follow, where the switch
        /// replays; that of a controller which a fleet loads. Default: the last ones.
        core: usize,
        /// Rate of the hosts' links, both directions. Default: none.
        port_rate: LinkRate = LinkRate(None),
        /// Rate of the link between switch and controller. Default: none.
        control_rate: LinkRate = LinkRate(None),
        /// The share of a core that the switch's programs get together, `10 %`. Default: all.
        switch_cpu_share: CpuShare,
        /// The share of a core that the controller gets. Default: all.
        controller_cpu_share: CpuShare,
        /// Threads that forward. Default: 1.
        workers: u16,
        /// Queues of each port. Default: 1.
        queues: u16,
        /// Caches that are at work: `usual`, `user` (all but the kernel tier), `kernel`, `key`,
        /// `none`. Default: usual.
        caches: CacheSet = CacheSet::Usual,
        /// Bridges of the one process. Default: 1.
        bridges: usize = 1,
        /// Carrier of the OpenFlow channel: `plain` or `tls`. Default: plain.
        transport: ChannelTransport = ChannelTransport::Plain,
        /// The controller's name. Default: `weir`.
        controller: String,
        /// The controller's application: `hub` or `learning-switch`. Default: hub.
        app: AppKind,
        /// Flow entries, in the syntax of `ovs-ofctl add-flow`.
        flows: Vec<String>,
        /// Flow entries that are counted up: `{ count = 100, flow = "nw_dst={10.0.0.1+n},.." }`.
        series: Vec<FlowSeries>,
        /// Groups, in the syntax of `ovs-ofctl add-group`.
        groups: Vec<String>,
        /// Meters, in the syntax of `ovs-ofctl add-meter`.
        meters: Vec<String>,
        /// Whether every port has a queue 1 beside queue 0, for `set_queue`.
        has_queues: bool,
    }
    /// Settings of the traffic alone, without those of the switch's set-up.
    traffic {
        /// The headers of what is sent, in the words of `weir gen`.
        packet: String,
        /// The fields that differ from frame to frame.
        modifiers: Vec<Modifier>,
        /// Length of the frames in bytes, FCS included. Default: 64.
        frame_size: u32 = 64,
        /// Whether both ends send at once.
        is_bidirectional: bool,
        /// Whether TCP goes from host 2 to host 1, and not from host 1 to host 2.
        is_reverse: bool,
        /// Streams at once, where hosts send. Default: 1.
        streams: u32,
        /// Offered frames a second, where the method has a fixed rate.
        rate_pps: f64,
        /// Offered bits a second of payload, where hosts send. Default: 100M with M = 2^20 (E1).
        load_bps: f64,
        /// Duration of one trial, seconds. Default: 1.
        duration_s: f64 = 1.0,
        /// The share of frames that may be lost in a search. Default: 0.001.
        loss: f64,
        /// A number of things, where the method counts; each says of what.
        count: u64,
        /// Echo requests before those that count, where what the first packets meet is not asked
        /// about. Default: none.
        warm_up_requests: u64,
    }
}

/// A text of the settings that is no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {text:?}: {why}")]
pub struct SettingsError {
    /// The key.
    pub key: &'static str,
    /// The text.
    pub text: String,
    /// The mistake in it.
    pub why: String,
}

impl SettingsError {
    fn new(key: &'static str, text: &str, why: impl ToString) -> Self {
        Self { key, text: text.to_owned(), why: why.to_string() }
    }
}

impl Settings {
    /// Party that decides where packets go.
    pub fn forwarding(&self) -> Forwarding {
        let has_switch = self.fleet.is_none();
        let usual = if has_switch { Forwarding::Flows } else { Forwarding::Learning };
        self.forwarding.unwrap_or(usual)
    }

    /// The version of OpenFlow; an error that names the known ones when the text is none of them.
    pub fn version(&self) -> Result<Version, SettingsError> {
        let text = self.version.as_deref().unwrap_or("1.3");
        crate::rate::release(text).map_err(|why| SettingsError::new("version", text, why))
    }

    /// Whether the channel itself is asked about: bridges are then reached over TCP, as by a
    /// controller on another machine, and else over a Unix socket.
    pub fn is_channel_measured(&self) -> bool {
        self.transport.is_some() || self.bridges.is_some() || self.fleet.is_some()
    }

    /// Duration of one trial in whole seconds, one at least, for programs that take no fractions.
    pub fn whole_seconds(&self) -> u32 {
        self.duration_s().clamp(1.0, DURATION_MAX_S).round() as u32
    }

    /// Offered bits a second of payload, where hosts send.
    pub fn load_bps(&self) -> u64 {
        self.load_bps.unwrap_or(f64::from(100 << 20)) as u64
    }

    /// Number of flow entries that are loaded.
    pub fn flow_count(&self) -> u64 {
        let series = self.series.iter().flatten().map(|series| series.count).sum::<u64>();
        let made = self.replay.as_ref().and_then(|replay| replay.entries).unwrap_or(0);
        self.flows.as_ref().map_or(0, Vec::len) as u64 + series + u64::from(made)
    }

    /// All flow entries that stand here, one after the other.
    pub fn flow_mods(&self) -> impl Iterator<Item = Result<FlowMod, SettingsError>> + '_ {
        let single = self.flows.iter().flatten().map(|text| flow_mod("flows", text));
        single.chain(self.series.iter().flatten().flat_map(FlowSeries::flow_mods))
    }

    /// All groups, or the first text that is none.
    pub fn group_mods(&self) -> Result<Vec<GroupMod>, SettingsError> {
        let parse = |text: &str| parse_group_mod(text, GroupModCommand::Add);
        parsed("groups", self.groups.as_deref(), parse)
    }

    /// All meters, or the first text that is none.
    pub fn meter_mods(&self) -> Result<Vec<MeterMod>, SettingsError> {
        let parse = |text: &str| parse_meter_mod(text, MeterModCommand::Add);
        parsed("meters", self.meters.as_deref(), parse)
    }

    /// Reads every text once: what a run would trip over is found before it.
    pub fn check(&self) -> Result<(), SettingsError> {
        self.version()?;
        self.group_mods()?;
        self.meter_mods()?;
        let single = self.flows.iter().flatten().map(|text| flow_mod("flows", text));
        let ends = self.series.iter().flatten().flat_map(FlowSeries::ends);
        single.chain(ends).try_for_each(|entry| entry.map(drop))?;
        self.replay.as_ref().map_or(Ok(()), Replay::check)?;
        self.fleet.as_ref().map_or(Ok(()), FleetSettings::check)?;
        self.check_numbers()
    }

    /// Whether every number is one that can be measured with.
    fn check_numbers(&self) -> Result<(), SettingsError> {
        let number = |count: Option<usize>| count.map(|count| count as u64);
        // Each switch in a line takes a namespace and a process, each port a host with an address
        // of its own in 10.0.0.0/24, and iperf3 has no more streams.
        for (key, value, range, unit) in [
            ("line", number(self.line), 1..=64, " switches"),
            ("ports", number(self.ports), 2..=254, ""),
            ("workers", self.workers.map(u64::from), 1..=256, ""),
            ("queues", self.queues.map(u64::from), 1..=256, ""),
            ("bridges", number(self.bridges), 1..=100_000, ""),
            ("streams", self.streams.map(u64::from), 1..=128, ""),
            ("frame_size", self.frame_size.map(u64::from), 64..=9_216, " bytes, FCS included"),
        ] {
            check_within(key, value, range, unit)?;
        }
        let has_more = self.ports() > 2 || self.replay.is_some() || self.is_channel_measured();
        let why = "several switches have two ports, no replay, no bridges and no transport";
        refuse("line", self.line, |line| *line > 1 && has_more, why)?;
        for (key, value, most) in [
            ("duration_s", self.duration_s, DURATION_MAX_S),
            // More than any port of a switch carries.
            ("rate_pps", self.rate_pps, 1e9),
            ("load_bps", self.load_bps, 1e12),
        ] {
            let why = format!("must be more than 0 and at most {most}");
            refuse(key, value, |value| !(*value > 0.0 && *value <= most), &why)?;
        }
        let why = "must be 0 or more and below 1: it is a share";
        refuse("loss", self.loss, |loss| !(0.0..1.0).contains(loss), why)?;
        refuse("count", self.count, |count| *count == 0, "must be 1 or more")
    }
}

/// Refuses a number, where there is one, that is wrong.
fn refuse<T: ToString>(
    key: &'static str,
    value: Option<T>,
    is_wrong: impl FnOnce(&T) -> bool,
    why: &str,
) -> Result<(), SettingsError> {
    match value.filter(is_wrong) {
        Some(value) => Err(SettingsError::new(key, &value.to_string(), why)),
        None => Ok(()),
    }
}

/// Whether a number, where there is one, is within its bounds.
fn check_within(
    key: &'static str,
    value: Option<u64>,
    range: RangeInclusive<u64>,
    unit: &str,
) -> Result<(), SettingsError> {
    let why = format!("must be {} to {}{unit}", range.start(), range.end());
    refuse(key, value, |value| !range.contains(value), &why)
}

/// All texts of a key, or the first that is wrong.
fn parsed<T, E: ToString>(
    key: &'static str,
    texts: Option<&[String]>,
    parse: impl Fn(&str) -> Result<T, E>,
) -> Result<Vec<T>, SettingsError> {
    let parse = |text: &String| parse(text).map_err(|why| SettingsError::new(key, text, why));
    texts.into_iter().flatten().map(parse).collect()
}

fn flow_mod(key: &'static str, text: &str) -> Result<FlowMod, SettingsError> {
    parse_flow_mod(text, FlowModCommand::Add).map_err(|why| SettingsError::new(key, text, why))
}

#[cfg(test)]
mod tests {
    use super::{FlowSeries, Forwarding, Settings};

    #[test]
    fn an_overlay_takes_over_what_is_there_and_leaves_the_rest() {
        let mut base = Settings {
            frame_size: Some(64),
            flows: Some(vec!["actions=drop".to_owned()]),
            ..Settings::default()
        };
        let other = Settings { frame_size: Some(1518), ..Settings::default() };
        assert_ne!(base.setup(), other.setup(), "the flow entries differ");
        base.overlay(&other);
        assert_eq!((base.frame_size(), base.flow_count()), (1518, 1));
        let same = Settings { frame_size: Some(128), ..base.clone() };
        assert_eq!(base.setup(), same.setup(), "only the traffic differs");
        let learning = Settings { forwarding: Some(Forwarding::Learning), ..base.clone() };
        assert_ne!(base.setup(), learning.setup());
    }

    #[test]
    fn texts_are_read_before_a_run() {
        let with = |flow: &str| Settings { flows: Some(vec![flow.to_owned()]), ..<_>::default() };
        assert!(with("in_port=1,actions=output:2").check().is_ok());
        let error = with("in_prot=1,actions=output:2").check().unwrap_err().to_string();
        assert!(error.starts_with("flows: ") && error.contains("in_prot"), "{error}");
        let version = Settings { version: Some("1.7".to_owned()), ..<_>::default() };
        assert!(version.check().unwrap_err().to_string().contains("1.3"));
    }

    #[test]
    fn a_number_out_of_range_names_its_own_key() {
        let check = |text: &str| toml::from_str::<Settings>(text).unwrap().check();
        for key in ["duration_s", "rate_pps", "load_bps"] {
            for value in ["0.0", "-1.0", "nan", "inf", "1e13"] {
                let error = check(&format!("{key} = {value}")).unwrap_err();
                assert_eq!(error.key, key, "{value}");
                assert!(error.why.contains("at most"), "{error}");
            }
        }
        for (key, wrong) in [("loss", "1.0"), ("loss", "-0.1"), ("loss", "nan"), ("count", "0")] {
            assert_eq!(check(&format!("{key} = {wrong}")).unwrap_err().key, key, "{wrong}");
        }
        for (key, wrong) in [
            ("frame_size", [0, 9_217]),
            ("line", [0, 65]),
            ("ports", [1, 255]),
            ("workers", [0, 257]),
            ("queues", [0, 257]),
            ("bridges", [0, 100_001]),
            ("streams", [0, 129]),
        ] {
            for value in wrong {
                let error = check(&format!("{key} = {value}")).unwrap_err();
                assert_eq!((error.key, error.text), (key, value.to_string()));
            }
        }
        for right in [
            "duration_s = 86400.0\nrate_pps = 0.5\nload_bps = 1e11",
            "loss = 0.0\ncount = 1\nframe_size = 64",
            "loss = 0.999\nframe_size = 9216",
        ] {
            assert_eq!(check(right), Ok(()), "{right}");
        }
    }

    #[test]
    fn single_entries_and_series_are_loaded_one_after_the_other() {
        let series =
            FlowSeries { count: 3, flow: "ip,nw_dst={10.0.0.1+n},actions=output:2".to_owned() };
        let flows = Some(vec!["priority=0,actions=drop".to_owned()]);
        let settings = Settings { flows, series: Some(vec![series]), ..<_>::default() };
        assert_eq!(settings.flow_count(), 4);
        assert!(settings.flow_mods().all(|entry| entry.is_ok()));
        assert_eq!(settings.flow_mods().count(), 4);
    }
}
