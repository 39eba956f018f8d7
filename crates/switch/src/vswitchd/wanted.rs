//! From the rows of the database to the wanted configuration.
//!
//! Nothing here fails: what cannot be carried out is an error of its interface or a remark, and the
//! rest holds. Rows are input from outside, also where they contradict each other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use channel::{Endpoint, TlsFiles};
use datapath::{FlowTable, MIRRORS_MAX, MirrorOutput, PortVlans};
use netdev::PortSpec;
use openflow::text::parse_subfield;
use openflow::{DatapathId, MacAddr, PortNo, TableId, Version};
use ovsdb::{Atom, COLUMNS, Datum, Replica, Row, Use, Uuid};

use super::args::DummyLevel;
use super::mirror::mirror;
use super::qos::{Qos, qos};
use crate::config::{
    BridgeConfig, Config, FailMode, PortConfig, PortQueues, highest_port, number_ports,
};

/// Open vSwitch's least `max_backoff`, and its default.
const BACKOFF_LEAST_MS: i64 = 1000;
const BACKOFF_DEFAULT_MS: i64 = 8000;

/// Open vSwitch's default `inactivity_probe`.
const PROBE_DEFAULT_MS: i64 = 5000;

/// Tables whose rows have no name: a remark about one is a remark about every bridge.
const OF_ALL: [&str; 5] = ["Open_vSwitch", "Controller", "Flow_Table", "Queue", "SSL"];

/// Names that belong to tunnels and datapaths of Open vSwitch.
const RESERVED: [&str; 7] =
    ["ovs-netdev", "ovs-dummy", "genev_sys", "gre_sys", "vxlan_sys", "erspan_sys", "lisp_sys"];

/// Longest name of a device, and of a dummy, which is none.
const NAME_MAX: usize = 15;
const DUMMY_NAME_MAX: usize = 63;

/// The row of an interface, and the port that it is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WantedPort {
    pub(super) interface: Uuid,
    pub(super) bridge: String,
    pub(super) number: PortNo,
    pub(super) name: String,
    /// Address and MTU that the device is to have.
    pub(super) mac: Option<MacAddr>,
    pub(super) mtu: Option<u32>,
    /// The type of its QoS, where it is carried out.
    pub(super) qos: Option<String>,
}

/// The row of a controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WantedController {
    pub(super) row: Uuid,
    pub(super) bridge: String,
    pub(super) endpoint: Endpoint,
}

/// All that the database asks for.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    /// The row of the table `Open_vSwitch`, and the number of the configuration.
    pub(super) root: Option<Uuid>,
    pub(super) next_cfg: i64,
    pub(super) stats_every: Duration,
    pub(super) configs: Vec<BridgeConfig>,
    /// The rows of bridges, by name.
    pub(super) bridges: BTreeMap<String, Uuid>,
    pub(super) ports: Vec<WantedPort>,
    pub(super) controllers: Vec<WantedController>,
    /// The rows of mirrors with a port of their own: bridge, and that port.
    pub(super) mirrors: Vec<(Uuid, String, PortNo)>,
    /// Interfaces that cannot be ports, and why.
    pub(super) refused: Vec<(Uuid, String)>,
    /// Settings without an effect, and interfaces that cannot be ports.
    pub(super) remarks: BTreeSet<String>,
    /// Devices that do not take their address or MTU, once the configuration is carried out.
    pub(super) unset: BTreeSet<String>,
}

/// The facts beside the database.
pub(super) struct Surroundings<'a> {
    /// The configuration that runs.
    pub(super) running: &'a Config,
    /// A bridge with every default.
    pub(super) base: &'a BridgeConfig,
    /// The folder of sockets.
    pub(super) run_folder: &'a Path,
    /// The interfaces that are dummies, in tests.
    pub(super) dummies: Option<DummyLevel>,
    /// The speed of a device in bits per second, where it has one.
    pub(super) speed_bps: &'a dyn Fn(&str) -> Option<u64>,
}

impl Wanted {
    /// Reads the rows.
    pub(super) fn of(replica: &Replica, around: &Surroundings<'_>) -> Self {
        let mut wanted = Self { stats_every: Duration::from_secs(5), ..Self::default() };
        let Some((uuid, root)) = replica.rows("Open_vSwitch").next() else { return wanted };
        wanted.root = Some(uuid);
        wanted.next_cfg = root.integer("next_cfg").unwrap_or_default();
        let every = root.entry("other_config", "stats-update-interval");
        let every = every.and_then(|every| every.parse::<u64>().ok()).unwrap_or_default();
        wanted.stats_every = Duration::from_millis(every.clamp(5000, 86_400_000));
        let tls = replica.referenced(root, "ssl", "SSL").next().and_then(|(_, row)| tls_of(row));
        wanted.note_ineffective(replica);
        let mut devices = BTreeSet::new();
        for (uuid, row) in replica.referenced(root, "bridges", "Bridge") {
            let Some(name) = row.text("name").filter(|name| is_name(name)) else {
                let name = row.text("name").unwrap_or_default();
                wanted.remarks.insert(format!("bridge {name:?}: no name for a device; ignored"));
                continue;
            };
            if wanted.bridges.contains_key(name) {
                wanted.remarks.insert(format!("bridge {name}: there are two rows of it"));
                continue;
            }
            wanted.bridges.insert(name.to_owned(), uuid);
            let mut bridge = BridgeRows { replica, around, row, name, wanted: &mut wanted };
            let config = bridge.config(uuid, tls.as_ref(), &mut devices);
            wanted.configs.push(config);
        }
        wanted
    }

    /// The remarks about a bridge, its ports, and everything.
    pub(super) fn remarks_of(&self, bridge: &str) -> Vec<String> {
        // Of thousands of bridges it would take long to find out.
        if self.remarks.is_empty() {
            return Vec::new();
        }
        let ports = self.ports.iter().filter(|port| port.bridge == bridge);
        let names: BTreeSet<&str> =
            ports.map(|port| port.name.as_str()).chain([bridge]).chain(OF_ALL).collect();
        let is_about = |remark: &&String| {
            let mut words = remark.split_whitespace();
            words.any(|word| names.contains(word.trim_end_matches(':')))
        };
        self.remarks.iter().filter(is_about).cloned().collect()
    }

    /// Remarks about columns and keys that are set and have no effect.
    fn note_ineffective(&mut self, replica: &Replica) {
        for column in COLUMNS.iter().filter(|column| column.usage == Use::Accepted) {
            for (_, row) in replica.rows(column.table) {
                let is_set = match column.key() {
                    Some(key) => row.entry(column.column(), key).is_some(),
                    None => row.datum(column.column()).is_some_and(is_set),
                };
                if is_set {
                    let name = row.text("name").unwrap_or_default();
                    let (table, name_of) = (column.table, column.name);
                    self.remarks.insert(format!("{table} {name}: {name_of} has no effect"));
                }
            }
        }
    }
}

fn is_set(datum: &Datum) -> bool {
    match datum {
        Datum::Map(pairs) => !pairs.is_empty(),
        Datum::Set(_) => {
            ![Datum::EMPTY, Datum::one(false), Datum::one(0), Datum::one("")].contains(datum)
        }
    }
}

/// Whether a bridge or a device can have this name.
fn is_name(name: &str) -> bool {
    is_name_up_to(NAME_MAX, name)
}

fn is_name_up_to(longest: usize, name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"/?&%:".contains(&byte);
    (1..=longest).contains(&name.len())
        && name.bytes().all(is_plain)
        && !name.starts_with('.')
        && !RESERVED.iter().any(|reserved| name.starts_with(reserved))
}

fn tls_of(row: &Row) -> Option<TlsFiles> {
    let file = |column: &str| row.text(column).filter(|file| !file.is_empty()).map(PathBuf::from);
    Some(TlsFiles {
        private_key: file("private_key")?,
        certificate: file("certificate")?,
        ca_cert: file("ca_cert")?,
    })
}

/// The rows of a bridge.
struct BridgeRows<'a> {
    replica: &'a Replica,
    around: &'a Surroundings<'a>,
    row: &'a Row,
    name: &'a str,
    wanted: &'a mut Wanted,
}

impl<'a> BridgeRows<'a> {
    fn remark(&mut self, text: &str) {
        self.wanted.remarks.insert(format!("Bridge {}: {text}", self.name));
    }

    fn config(
        &mut self,
        uuid: Uuid,
        tls: Option<&TlsFiles>,
        devices: &mut BTreeSet<String>,
    ) -> BridgeConfig {
        let mut config = self.around.base.clone();
        self.name.clone_into(&mut config.name);
        config.dpid = Some(self.dpid(uuid));
        config.versions = self.versions();
        config.fail_mode = match self.row.text("fail_mode") {
            Some("secure") => FailMode::Secure,
            Some(_) | None => FailMode::Standalone,
        };
        let text = |key: &str| self.row.entry("other_config", key).map(str::to_owned);
        if let Some(desc) = text("dp-desc") {
            config.desc.dp_desc = desc;
        }
        if let Some(serial) = text("dp-sn") {
            config.desc.serial_num = serial;
        }
        if let Some(seconds) = text("mac-aging-time").and_then(|text| text.parse::<u64>().ok()) {
            config.mac_age_s = u16::try_from(seconds).unwrap_or(u16::MAX).clamp(15, 3600);
        }
        self.controllers(&mut config, tls);
        let numbers = self.ports(&mut config, devices);
        self.mirrors(&mut config, &numbers);
        self.flow_tables(&mut config);
        config
    }

    /// The datapath id: what is set, or one made of the bridge's address, or of its row.
    fn dpid(&mut self, uuid: Uuid) -> DatapathId {
        let set = self.row.entry("other_config", "datapath-id");
        if let Some(text) = set {
            let digits = text.strip_prefix("0x").unwrap_or(text);
            let is_hex = digits.len() <= 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            match u64::from_str_radix(digits, 16) {
                Ok(id) if is_hex && id != 0 => return DatapathId(id),
                Ok(_) | Err(_) => self.remark("datapath-id is no number of 1 to 16 hex digits"),
            }
        }
        DatapathId(self.mac(uuid).to_u64())
    }

    /// The address of the bridge: what is set, or a local one made of its row.
    fn mac(&self, uuid: Uuid) -> MacAddr {
        let set = self.row.entry("other_config", "hwaddr").and_then(|text| text.parse().ok());
        let [.., a, b, c, d, e] = uuid.0.to_be_bytes();
        set.unwrap_or(MacAddr([0x02, a, b, c, d, e]))
    }

    /// The versions of `protocols`; all where it names none, as in Open vSwitch.
    fn versions(&mut self) -> Vec<Version> {
        let names: Vec<&str> = self.row.texts("protocols").collect();
        let known: Vec<Version> = names.iter().copied().filter_map(Version::from_name).collect();
        let unknown = names.iter().find(|name| Version::from_name(name).is_none());
        if let Some(unknown) = unknown {
            self.remark(&format!("protocol {unknown} is not spoken"));
        }
        if known.is_empty() { Version::ALL.to_vec() } else { known }
    }

    fn controllers(&mut self, config: &mut BridgeConfig, tls: Option<&TlsFiles>) {
        let mgmt = self.around.run_folder.join(format!("{}.mgmt", self.name));
        config.listeners = vec![Endpoint::PassiveUnix(mgmt)];
        let (mut probe_ms, mut backoff_ms, mut rate, mut burst) = (0, BACKOFF_LEAST_MS, 0, 0);
        let mut probes_never = false;
        let rows: Vec<(Uuid, Row)> = self
            .replica
            .referenced(self.row, "controller", "Controller")
            .map(|(uuid, row)| (uuid, row.clone()))
            .collect();
        for (uuid, row) in &rows {
            let target = row.text("target").unwrap_or_default();
            let endpoint = match self.endpoint(target) {
                Ok(endpoint) if endpoint.is_tls() && tls.is_none() => {
                    self.remark(&format!("controller {target}: the table SSL has no key"));
                    continue;
                }
                Ok(endpoint) => endpoint,
                Err(why) => {
                    self.remark(&format!("controller {target:?}: {why}"));
                    continue;
                }
            };
            let list = match endpoint.is_passive() {
                true => &mut config.listeners,
                false => &mut config.controllers,
            };
            if list.contains(&endpoint) {
                continue;
            }
            list.push(endpoint.clone());
            if endpoint.is_tls() {
                config.tls = tls.cloned();
            }
            let bridge = self.name.to_owned();
            self.wanted.controllers.push(WantedController { row: *uuid, bridge, endpoint });
            match row.integer("inactivity_probe") {
                Some(0) => probes_never = true,
                probe => probe_ms = probe_ms.max(probe.unwrap_or(PROBE_DEFAULT_MS)),
            }
            backoff_ms = backoff_ms.max(row.integer("max_backoff").unwrap_or(BACKOFF_DEFAULT_MS));
            rate = rate.max(row.integer("controller_rate_limit").unwrap_or_default());
            burst = burst.max(row.integer("controller_burst_limit").unwrap_or_default());
        }
        if probes_never {
            config.inactivity_probe_s = 0;
        } else if probe_ms > 0 {
            let seconds = (probe_ms as u64).div_ceil(1000);
            config.inactivity_probe_s = u32::try_from(seconds).unwrap_or(u32::MAX).min(86_400);
        }
        if !config.controllers.is_empty() {
            config.max_backoff = Duration::from_millis(backoff_ms.clamp(1, 86_400_000) as u64);
        }
        if rate > 0 {
            config.packet_in_rate = u32::try_from(rate).unwrap_or(u32::MAX);
            let least = (config.packet_in_rate / 4).max(1);
            config.packet_in_burst = u32::try_from(burst).unwrap_or(u32::MAX).max(least);
        }
    }

    /// The endpoint of a target. A socket of the system is one of the run folder: whoever may write
    /// the database must not choose other files.
    fn endpoint(&self, target: &str) -> Result<Endpoint, String> {
        let endpoint: Endpoint = match target.split_once(':') {
            Some((kind @ ("unix" | "punix"), file)) => {
                let path = self.around.run_folder.join(file);
                if path.parent() != Some(self.around.run_folder) || file.ends_with("..") {
                    return Err("a socket must be in the run folder".to_owned());
                }
                if kind == "unix" { Endpoint::Unix(path) } else { Endpoint::PassiveUnix(path) }
            }
            _ => target.parse().map_err(|error: channel::BadEndpoint| error.to_string())?,
        };
        Ok(endpoint)
    }

    /// Sets the mirrors; `numbers` has those of the rows of ports.
    fn mirrors(&mut self, config: &mut BridgeConfig, numbers: &BTreeMap<Uuid, PortNo>) {
        config.mirrors.clear();
        for (uuid, row) in self.replica.referenced(self.row, "mirrors", "Mirror") {
            let name = row.text("name").unwrap_or_default();
            match mirror(row, numbers) {
                Ok(_) if config.mirrors.len() >= MIRRORS_MAX => {
                    self.remark(&format!("mirror {name}: a bridge has {MIRRORS_MAX} at most"));
                }
                Ok(mirror) => {
                    if let MirrorOutput::Port(output) = mirror.output {
                        self.wanted.mirrors.push((uuid, self.name.to_owned(), output));
                    }
                    config.mirrors.push(mirror);
                }
                Err(why) => self.remark(&format!("mirror {name}: {why}")),
            }
        }
    }

    /// Sets names and limits of single tables.
    fn flow_tables(&mut self, config: &mut BridgeConfig) {
        config.flow_tables.clear();
        for (key, value) in self.row.pairs("flow_tables") {
            let (Atom::Integer(number), Atom::Uuid(uuid)) = (key, value) else { continue };
            let Some(row) = self.replica.row("Flow_Table", *uuid) else { continue };
            let Some(number) = u8::try_from(*number).ok().filter(|it| *it < config.tables) else {
                self.remark(&format!("flow_tables: there is no table {number}"));
                continue;
            };
            let limit = row.integer("flow_limit").and_then(|limit| u32::try_from(limit).ok());
            let name = row.text("name").filter(|name| name.len() <= 31).unwrap_or_default();
            let evicts = row.text("overflow_policy") == Some("evict");
            let mut groups = Vec::new();
            for text in row.texts("groups") {
                match parse_subfield(text) {
                    Ok(part) => groups.push(part),
                    Err(why) => self.remark(&format!("flow_tables: {number}: groups: {why}")),
                }
            }
            let table = FlowTable {
                name: name.to_owned(),
                max_entries: limit,
                evicts,
                eviction_groups: groups,
            };
            config.flow_tables.insert(TableId(number), table);
        }
    }

    /// The rows of the ports in the order in which those that come together are numbered.
    fn ports_by_name(&self) -> Vec<(Uuid, &'a Row)> {
        let mut ports = self.replica.referenced(self.row, "ports", "Port").collect::<Vec<_>>();
        ports.sort_by_key(|(_, port)| name_order(port.text("name").unwrap_or_default()));
        ports
    }

    /// The numbers that interfaces of these ports ask for.
    fn requested_numbers(&self, ports: &[(Uuid, &Row)]) -> BTreeSet<i64> {
        ports
            .iter()
            .flat_map(|(_, port)| self.replica.referenced(port, "interfaces", "Interface"))
            .filter_map(|(_, interface)| interface.integer("ofport_request"))
            .collect()
    }

    /// The address that a port is to have, where the daemon makes its device.
    fn wanted_mac(&self, interface: &'a Row, number: PortNo) -> Option<&'a str> {
        let hwaddr = self.row.entry("other_config", "hwaddr");
        let hwaddr = hwaddr.filter(|_| number == PortNo::LOCAL);
        let is_ours = matches!(interface.text("type"), Some("internal" | "tap"));
        interface.text("mac").filter(|_| is_ours).or(hwaddr)
    }

    /// Sets the ports, and gives the numbers of their rows.
    fn ports(
        &mut self,
        config: &mut BridgeConfig,
        devices: &mut BTreeSet<String>,
    ) -> BTreeMap<Uuid, PortNo> {
        let running = self.around.running.bridges.iter().find(|held| held.name == self.name);
        let running = running.map(|held| held.ports.clone()).unwrap_or_default();
        let (mut specs, mut rows) = (Vec::new(), Vec::new());
        let ports = self.ports_by_name();
        let requests = self.requested_numbers(&ports);
        for (port_uuid, port) in ports {
            let interfaces: Vec<_> =
                self.replica.referenced(port, "interfaces", "Interface").collect();
            let [(uuid, interface)] = interfaces[..] else {
                let why = "bonds are not there: a port has one interface";
                self.remark(&format!("port {}: {why}", port.text("name").unwrap_or_default()));
                self.wanted.refused.extend(interfaces.iter().map(|(uuid, _)| (*uuid, why.into())));
                continue;
            };
            match self.spec(interface, devices) {
                Ok((spec, is_local)) => {
                    let is_running = running.iter().any(|held| held.spec == spec);
                    let number = wanted_number(interface, is_local, is_running, &requests);
                    specs.push((number, spec));
                    rows.push((port_uuid, uuid, interface, port));
                }
                Err(why) => {
                    self.remark(&why);
                    self.wanted.refused.push((uuid, why));
                }
            }
        }
        let numbers = number_ports(&running, &specs, highest_port(&config.versions));
        let mut of_rows = BTreeMap::new();
        for (((_, spec), number), (port_uuid, uuid, interface, port)) in
            specs.into_iter().zip(numbers).zip(rows)
        {
            let name = interface.text("name").unwrap_or_default().to_owned();
            let Some(number) = number else {
                let why = "all port numbers are taken";
                self.remark(&format!("port {name}: {why}"));
                self.wanted.refused.push((uuid, why.to_owned()));
                continue;
            };
            match vlans_of(port) {
                Ok(vlans) if vlans == PortVlans::default() => {}
                Ok(vlans) => config.vlans.push((number, vlans)),
                Err(why) => self.remark(&format!("port {name}: {why}")),
            }
            let qos = self.qos(port, &name, number, config);
            // What a dummy has, its port was opened with.
            let has_device = spec.kind().word != "dummy";
            config.ports.push(PortConfig { number, spec });
            of_rows.insert(port_uuid, number);
            let mac = self.wanted_mac(interface, number);
            let mtu = interface.integer("mtu_request").and_then(|mtu| u32::try_from(mtu).ok());
            self.wanted.ports.push(WantedPort {
                interface: uuid,
                bridge: self.name.to_owned(),
                number,
                name,
                mac: mac.and_then(|text| text.parse().ok()).filter(|_| has_device),
                mtu: mtu.filter(|_| has_device),
                qos,
            });
        }
        config.ports.sort_by_key(|port| port.number);
        of_rows
    }

    /// Sets the rate and the queues of a port; the type of its QoS, where that is carried out.
    fn qos(
        &mut self,
        port: &Row,
        name: &str,
        number: PortNo,
        config: &mut BridgeConfig,
    ) -> Option<String> {
        let (_, row) = self.replica.referenced(port, "qos", "QoS").next()?;
        match qos(row, self.replica, (self.around.speed_bps)(name)) {
            Ok(Some(Qos { rate_bps, queues })) => {
                config.queues.push(PortQueues { number, rate_bps: Some(rate_bps), queues });
                row.text("type").map(str::to_owned)
            }
            Ok(None) => None,
            Err(why) => {
                self.remark(&format!("port {name}: QoS: {why}"));
                None
            }
        }
    }

    /// Whether interfaces of a type are dummies here.
    fn is_dummy(&self, kind: &str) -> bool {
        let Some(level) = self.around.dummies else { return false };
        let is_of_dummies = self.row.text("datapath_type") == Some("dummy");
        match kind {
            "dummy" | "dummy-internal" => true,
            "internal" => level == DummyLevel::Override || is_of_dummies,
            "" | "system" => level != DummyLevel::Dummy,
            "tap" => level == DummyLevel::Override,
            _ => false,
        }
    }

    /// The text of a dummy port.
    fn dummy(&self, interface: &Row, name: &str) -> Result<String, String> {
        let hwaddr = self.row.entry("other_config", "hwaddr").filter(|_| name == self.name);
        let mtu = interface.integer("mtu_request").map(|mtu| mtu.to_string());
        let file = |key| interface.entry("options", key);
        let options = [
            ("mac", interface.text("mac").or(hwaddr)),
            ("mtu", mtu.as_deref()),
            ("rx_pcap", file("rxq_pcap").or(file("rx_pcap"))),
            ("tx_pcap", file("tx_pcap")),
        ];
        let given = options.into_iter().filter_map(|(key, value)| Some((key, value?)));
        let mut text = format!("dummy:{name}");
        for (index, (key, value)) in given.enumerate() {
            if value.contains('&') {
                return Err(format!("could not open network device {name} ({key}: no & in it)"));
            }
            text += &format!("{}{key}={value}", if index == 0 { '?' } else { '&' });
        }
        Ok(text)
    }

    /// The port of an interface, and whether it is the LOCAL one.
    fn spec(
        &self,
        interface: &Row,
        devices: &mut BTreeSet<String>,
    ) -> Result<(PortSpec, bool), String> {
        let name = interface.text("name").unwrap_or_default();
        let kind = interface.text("type").unwrap_or_default();
        let longest = if self.is_dummy(kind) { DUMMY_NAME_MAX } else { NAME_MAX };
        if !is_name_up_to(longest, name) {
            return Err(format!("could not open network device {name} (Invalid argument)"));
        }
        let (mut text, is_local) = match kind {
            kind if self.is_dummy(kind) => (self.dummy(interface, name)?, name == self.name),
            "" | "system" if name != self.name => (format!("af_packet:{name}"), false),
            // As with Open vSwitch, whoever uses the device sets it up.
            "internal" | "" | "system" => (format!("internal:{name}?up=false"), name == self.name),
            "tap" => (format!("tap:{name}?up=false"), name == self.name),
            "patch" => match interface.entry("options", "peer").filter(|peer| is_name(peer)) {
                Some(peer) => (format!("patch:{name}?peer={peer}"), false),
                None => return Err(format!("{name}: a patch port needs options:peer")),
            },
            other => return Err(format!("{name}: {other} is no type of interface here")),
        };
        text.push_str(&policing(interface, text.contains('?')));
        let spec = text.parse::<PortSpec>().and_then(|spec| spec.policing().map(|_| spec));
        let spec =
            spec.map_err(|error| format!("could not open network device {name} ({error})"))?;
        if let Some(device) = spec.exclusive()
            && !devices.insert(device)
        {
            return Err(format!("could not add network device {name} to ofproto (File exists)"));
        }
        Ok((spec, is_local))
    }
}

/// The options of a port for the rates of its row, which are in kilobits and in thousands of
/// packets; Open vSwitch's bursts where none is set. Larger numbers than Open vSwitch's 32 bits
/// are no limit that is ever reached.
fn policing(interface: &Row, has_options: bool) -> String {
    let amount = |column: String| {
        let amount = interface.integer(&column).filter(|amount| *amount > 0);
        amount.map(|amount| amount.min(i64::from(u32::MAX)))
    };
    let mut options = Vec::new();
    for (kind, option) in [("", "police"), ("kpkts_", "police_packets")] {
        let Some(rate) = amount(format!("ingress_policing_{kind}rate")) else { continue };
        options.push(format!("{option}={rate}k"));
        if let Some(burst) = amount(format!("ingress_policing_{kind}burst")) {
            options.push(format!("{option}_burst={burst}k"));
        }
    }
    if options.is_empty() {
        return String::new();
    }
    format!("{}{}", if has_options { '&' } else { '?' }, options.join("&"))
}

/// The key by which ports that come together are numbered: p2 is before p10. The database gives
/// them in the order of their random identifiers.
fn name_order(name: &str) -> (&str, usize, &str) {
    let stem = name.trim_end_matches(|symbol: char| symbol.is_ascii_digit());
    let digits = &name[stem.len()..];
    (stem, digits.len(), digits)
}

/// The number that a port wants: what is requested, or after a restart the one that it had.
fn wanted_number(
    interface: &Row,
    is_local: bool,
    is_running: bool,
    requests: &BTreeSet<i64>,
) -> Option<PortNo> {
    if is_local {
        return Some(PortNo::LOCAL);
    }
    let had = interface.integer("ofport").filter(|had| !is_running && !requests.contains(had));
    let wanted = interface.integer("ofport_request").or(had);
    wanted.and_then(|number| u32::try_from(number).ok()).filter(|number| *number > 0).map(PortNo)
}

/// The part of a port in VLANs.
fn vlans_of(port: &Row) -> Result<PortVlans, String> {
    let tag = port.integer("tag");
    let trunks: Vec<String> = port.integers("trunks").map(|vid| vid.to_string()).collect();
    let mode = port.text("vlan_mode").unwrap_or(if tag.is_some() { "access" } else { "trunk" });
    let list = if trunks.is_empty() { String::new() } else { format!(":{}", trunks.join(",")) };
    let tag = tag.unwrap_or_default();
    let text = match mode {
        "access" => format!("access:{tag}"),
        "trunk" => format!("trunk{list}"),
        "native-tagged" | "native-untagged" => format!("{mode}:{tag}{list}"),
        other => return Err(format!("vlan_mode {other} is not there: it is a trunk of all")),
    };
    let protected = if port.is_true("protected") { ":protected" } else { "" };
    format!("{text}{protected}").parse().map_err(|error: datapath::BadVlans| error.to_string())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use openflow::{PortNo, Version};
    use ovsdb::{Atom, Datum, Replica, Row, Uuid};

    use super::{DummyLevel, Surroundings, Wanted};
    use crate::config::{Config, FailMode, SwitchArgs};

    fn refs(uuids: &[u128]) -> Datum {
        Datum::Set(uuids.iter().map(|uuid| Atom::Uuid(Uuid(*uuid))).collect())
    }

    fn config() -> Config {
        SwitchArgs::default().resolve().unwrap()
    }

    fn read(replica: &Replica) -> Wanted {
        let (running, base) =
            (Config { bridges: Vec::new(), ..config() }, config().bridges.remove(0));
        let run_folder = Path::new("/run/ovs");
        let dummies = Some(DummyLevel::Dummy);
        let (running, base, speed_bps) = (&running, &base, &|_: &str| None);
        Wanted::of(replica, &Surroundings { running, base, run_folder, dummies, speed_bps })
    }

    type Columns<'a> = &'a [(&'static str, Datum)];

    /// A database of one bridge with these ports, interfaces and controllers.
    fn database(
        bridge: Columns<'_>,
        ports: &[(&'static str, Columns<'_>, Columns<'_>)],
        controllers: &[&str],
    ) -> Replica {
        let mut replica = Replica::default();
        let root = [("bridges", refs(&[1])), ("next_cfg", Datum::one(7))];
        replica.insert("Open_vSwitch", Uuid(0), Row::of(root));
        let numbers = |from: u128, count: usize| -> Vec<u128> { (from..).take(count).collect() };
        let columns = [
            ("name", Datum::one("br0")),
            ("ports", refs(&numbers(100, ports.len()))),
            ("controller", refs(&numbers(300, controllers.len()))),
        ];
        replica.insert("Bridge", Uuid(1), Row::of(columns.into_iter().chain(bridge.to_vec())));
        for (at, (name, port, interface)) in ports.iter().enumerate() {
            let (port_row, interface_row) = (Uuid(100 + at as u128), Uuid(200 + at as u128));
            let own = [("name", Datum::one(*name)), ("interfaces", refs(&[interface_row.0]))];
            replica.insert("Port", port_row, Row::of(own.into_iter().chain(port.to_vec())));
            let own = [("name", Datum::one(*name))];
            let row = Row::of(own.into_iter().chain(interface.to_vec()));
            replica.insert("Interface", interface_row, row);
        }
        for (at, target) in controllers.iter().enumerate() {
            let row = Row::of([("target", Datum::one(*target))]);
            replica.insert("Controller", Uuid(300 + at as u128), row);
        }
        replica
    }

    #[test]
    fn a_bridge_of_the_usual_commands() {
        let replica = database(
            &[
                ("fail_mode", Datum::one("secure")),
                ("protocols", Datum::texts(["OpenFlow13", "OpenFlow14"])),
                (
                    "other_config",
                    Datum::map([("datapath-id", "00000000000000a1"), ("mac-aging-time", "5")]),
                ),
            ],
            &[
                ("br0", &[], &[("type", Datum::one("internal"))]),
                ("veth1", &[("tag", Datum::one(10))], &[("ofport_request", Datum::one(5))]),
                ("veth2", &[], &[("ofport", Datum::one(9))]),
                ("veth3", &[], &[("ofport", Datum::one(5))]),
            ],
            &["tcp:127.0.0.1:6653", "ptcp:6634", "unix:/etc/passwd", "punix:br0.x", "what:ever"],
        );
        let wanted = read(&replica);
        assert_eq!((wanted.next_cfg, wanted.refused.len()), (7, 0));
        let bridge = &wanted.configs[0];
        assert_eq!(bridge.dpid.unwrap().to_string(), "00000000000000a1");
        assert_eq!(bridge.fail_mode, FailMode::Secure);
        assert_eq!(bridge.versions, [Version::V1_3, Version::V1_4]);
        assert_eq!(bridge.mac_age_s, 15, "the least");
        let ports: Vec<String> =
            bridge.ports.iter().map(|port| format!("{}={}", port.number, port.spec)).collect();
        let expected = [
            "1=af_packet:veth3",
            "5=af_packet:veth1",
            "9=af_packet:veth2",
            "LOCAL=internal:br0?up=false",
        ];
        assert_eq!(ports, expected, "a request takes precedence over what was");
        assert_eq!(bridge.vlans_of(PortNo(5)), "access:10".parse().unwrap());
        let listeners: Vec<String> = bridge.listeners.iter().map(ToString::to_string).collect();
        assert_eq!(
            listeners,
            ["punix:/run/ovs/br0.mgmt", "ptcp:6634:0.0.0.0", "punix:/run/ovs/br0.x"]
        );
        assert_eq!((bridge.controllers.len(), wanted.controllers.len()), (1, 3));
        assert_eq!(wanted.remarks.len(), 2, "{:?}", wanted.remarks);
    }

    #[test]
    fn ports_of_one_command_are_numbered_by_their_names() {
        let none: Columns<'_> = &[];
        let ports = ["p10", "vb", "p2", "va", "p1"].map(|name| (name, none, none));
        let wanted = read(&database(&[], &ports, &[]));
        let specs = wanted.configs[0].ports.iter().map(|port| port.spec.to_string());
        let expected = ["p1", "p2", "p10", "va", "vb"].map(|name| format!("af_packet:{name}"));
        assert_eq!(specs.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_cannot_be_is_an_error_of_its_interface() {
        let replica = database(
            &[("protocols", Datum::texts(["OpenFlow99"])), ("stp_enable", Datum::one(true))],
            &[
                ("../x", &[], &[]),
                ("a-name-of-more-than-15", &[], &[]),
                ("twice", &[], &[]),
                ("twice", &[], &[]),
                ("vxlan_sys_4789", &[], &[]),
                ("odd", &[], &[("type", Datum::one("hovercraft"))]),
                ("q", &[("vlan_mode", Datum::one("dot1q-tunnel"))], &[]),
                ("r", &[("tag", Datum::one(99_999))], &[("ofport_request", Datum::one(-7))]),
                ("p", &[], &[("type", Datum::one("patch"))]),
                ("s", &[], &[("ingress_policing_rate", Datum::one(i64::MAX))]),
            ],
            &[],
        );
        let wanted = read(&replica);
        assert_eq!(wanted.refused.len(), 6, "{:?}", wanted.refused);
        for (_, why) in &wanted.refused {
            let is_remarked = wanted.remarks.contains(&format!("Bridge br0: {why}"));
            assert!(is_remarked, "{why}: {:?}", wanted.remarks);
        }
        let twice = "could not add network device twice to ofproto (File exists)";
        assert!(wanted.refused.iter().any(|(_, why)| why == twice));
        let specs = wanted.configs[0].ports.iter().map(|port| port.spec.to_string());
        let most = "af_packet:s?police=4294967295k";
        assert_eq!(specs.filter(|spec| spec == most).count(), 1, "the most that can be");
        assert_eq!(wanted.configs[0].ports.len(), 4);
        assert_eq!(wanted.configs[0].fail_mode, FailMode::Standalone);
        assert_eq!(wanted.configs[0].versions, Version::ALL);
        assert_eq!(wanted.remarks.len(), 4 + 6, "{:?}", wanted.remarks);
    }

    #[test]
    fn patch_ports_rates_and_mirrors_are_those_of_the_rows() {
        let peer = ("options", Datum::map([("peer", "p1")]));
        let patch = ("type", Datum::one("patch"));
        let rate = |column, amount: i64| (column, Datum::one(amount));
        let rates = [
            rate("ingress_policing_rate", 10_000),
            rate("ingress_policing_burst", 800),
            rate("ingress_policing_kpkts_rate", 3),
        ];
        let mut replica = database(
            &[("mirrors", refs(&[400, 401]))],
            &[
                ("p0", &[("protected", Datum::one(true))], &[patch, peer]),
                ("v", &[("tag", Datum::one(3)), ("protected", Datum::one(true))], &rates),
            ],
            &[],
        );
        let columns = [("name", Datum::one("m")), ("select_all", Datum::one(true))];
        let output = ("output_port", refs(&[101]));
        replica.insert("Mirror", Uuid(400), Row::of(columns.clone().into_iter().chain([output])));
        replica.insert("Mirror", Uuid(401), Row::of(columns));
        let wanted = read(&replica);
        assert!(wanted.refused.is_empty(), "{:?}", wanted.refused);
        let bridge = &wanted.configs[0];
        let specs: Vec<String> = bridge.ports.iter().map(|port| port.spec.to_string()).collect();
        let of_v = "af_packet:v?police=10000k&police_burst=800k&police_packets=3k";
        assert_eq!(specs, ["patch:p0?peer=p1", of_v]);
        assert_eq!(bridge.vlans_of(PortNo(1)), "trunk:protected".parse().unwrap());
        assert_eq!(bridge.vlans_of(PortNo(2)), "access:3:protected".parse().unwrap());
        assert_eq!(bridge.mirrors, ["m,all,output=2".parse().unwrap()]);
        assert_eq!(wanted.remarks.len(), 1, "{:?}", wanted.remarks);
    }

    #[test]
    fn rows_that_contradict_each_other_count_once() {
        let none: Columns<'_> = &[];
        let mut replica = database(&[], &[("v", none, none)], &[]);
        let root = [("bridges", refs(&[1, 2, 3, 4, 99])), ("next_cfg", Datum::one(7))];
        replica.insert("Open_vSwitch", Uuid(0), Row::of(root));
        let bridge = |name: &str| {
            // The port of the first one, and one that is not there.
            Row::of([("name", Datum::one(name)), ("ports", refs(&[100, 777]))])
        };
        let long = "x".repeat(300);
        for (uuid, name) in [(2, "br0"), (3, "br1"), (4, &*long)] {
            replica.insert("Bridge", Uuid(uuid), bridge(name));
        }
        let wanted = read(&replica);
        let names: Vec<&str> = wanted.configs.iter().map(|bridge| &*bridge.name).collect();
        assert_eq!(names, ["br0", "br1"]);
        assert_eq!((wanted.configs[0].ports.len(), wanted.configs[1].ports.len()), (1, 0));
        let why = "could not add network device v to ofproto (File exists)";
        assert_eq!(wanted.refused, [(Uuid(200), why.to_owned())]);
        assert_eq!(wanted.remarks.len(), 3, "{:?}", wanted.remarks);
    }

    #[test]
    fn sockets_are_those_of_the_run_folder() {
        let outside = ["unix:/etc/x", "unix:../x", "punix:sub/x", "unix:", "unix:.", "punix:.."];
        let wanted = read(&database(&[], &[], &[&outside[..], &["unix:x"]].concat()));
        let controllers = wanted.configs[0].controllers.iter().map(ToString::to_string);
        assert_eq!(controllers.collect::<Vec<_>>(), ["unix:/run/ovs/x"]);
        assert_eq!(wanted.configs[0].listeners.len(), 1, "that of ovs-ofctl");
        assert_eq!(wanted.remarks.len(), outside.len(), "{:?}", wanted.remarks);
    }

    #[test]
    fn an_empty_database_asks_for_nothing() {
        let wanted = read(&Replica::default());
        assert!(wanted.root.is_none() && wanted.configs.is_empty());
    }
}
