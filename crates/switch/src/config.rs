//! The switch's configuration: one struct that is flags, keys of the file and their help at once.
//!
//! A doc comment here is what `--help` prints, a field is a flag and a key of the TOML file. Errors
//! in a file name file, line, column, key and what is allowed. Reading a
//! configuration opens nothing: [`parse_config`] takes text and gives a value or an error.

mod bridges;
mod difference;
mod edit;
mod file;
mod port_number;
mod problem;
mod queues;
mod resolve;
mod values;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use netdev::PortSpec;
use openflow::Version;
use serde::Deserialize;

pub(crate) use difference::{BridgeDifference, Difference, Setting, difference};
pub use edit::{PortSet, number_ports};
pub use file::{ConfigError, parse_config};
pub use queues::{QueueArg, RateArg};
pub use resolve::{BridgeConfig, Config, PortConfig, PortQueues};
pub(crate) use resolve::{highest_port, with_queues};
pub use values::{
    CachesArg, Dpid, EndpointArg, FailMode, Forward, MemorySize, MirrorArg, Poll, PortArg, Seconds,
    VlanArg, Wire,
};

/// The options of `weir switch`. Every flag but `--config` and `--check-config` is a key of the
/// file, with the same name; flags win over the file. A table `[[bridge]]` of the file has the same
/// keys again, for a bridge of its own.
#[derive(Args, Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct SwitchArgs {
    /// Datapath id, up to 16 hex digits [default: the first port's Ethernet address]
    #[arg(long, value_name = "HEX16")]
    pub dpid: Option<Dpid>,

    /// The bridge's name, for `weir ctl --bridge` and the log [default: br0]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    /// A port, for example 1=af_packet:eth1; without N= it gets the lowest free number. Repeatable
    #[arg(long, value_name = "[N=]KIND:NAME[?OPTION=VALUE&..]")]
    pub port: Vec<PortArg>,

    /// The LOCAL port, for example tap:br0 [default: none]
    #[arg(long, value_name = "KIND:NAME", value_parser = values::spec)]
    #[serde(deserialize_with = "values::optional_spec")]
    pub local: Option<PortSpec>,

    /// A port's part in VLANs when NORMAL forwards: access:VID, trunk, trunk:VIDS,
    /// native-tagged:VID, native-untagged:VID (both also with :VIDS), for example 1=access:10 or
    /// 2=trunk:10,20-29. Repeatable [default: a trunk of all]
    #[arg(long, value_name = "N=VLANS")]
    pub vlan: Vec<VlanArg>,

    /// A mirror: NAME, then some of all, src=PORT, dst=PORT, vlan=VID, each as often as needed,
    /// then output=PORT or output-vlan=VID, perhaps snaplen=BYTES; for example
    /// m0,src=1,dst=1,output=9. Repeatable
    #[arg(long, value_name = "NAME,WORD,..")]
    pub mirror: Vec<MirrorArg>,

    /// A queue of a port, with a guaranteed and a highest rate in percent of the port's, for
    /// example 1:5,min=30%,max=50%. Repeatable
    #[arg(long, value_name = "N:ID[,min=P%][,max=P%][,frames=COUNT]")]
    pub queue: Vec<QueueArg>,

    /// The rate of a port's link in bits per second, for example 1=100M; frames leave no faster
    /// [default: that of the device where the port has queues, else none]. Repeatable
    #[arg(long, value_name = "N=BITS")]
    pub rate: Vec<RateArg>,

    /// A controller to connect to, `tcp:HOST[:PORT]`, `ssl:HOST[:PORT]` or `unix:PATH`. Repeatable
    #[arg(long, value_name = "ENDPOINT")]
    pub controller: Option<Vec<EndpointArg>>,

    /// Endpoint that controllers may connect to, `ptcp:[PORT][:HOST]`, `pssl:[PORT][:HOST]` or
    /// `punix:PATH`. Repeatable
    #[arg(long, value_name = "ENDPOINT")]
    pub listen: Vec<EndpointArg>,

    /// TLS: the switch's private key, in PEM without a passphrase
    #[arg(long, value_name = "FILE")]
    pub private_key: Option<PathBuf>,

    /// TLS: the switch's certificate, in PEM
    #[arg(long, value_name = "FILE")]
    pub certificate: Option<PathBuf>,

    /// TLS: the certificate of the CA that signs the controllers' certificates, in PEM
    #[arg(long, value_name = "FILE")]
    pub ca_cert: Option<PathBuf>,

    /// TLS: a controller that is connected to must also have a certificate for its HOST
    #[arg(long, num_args = 0, default_missing_value = "true")]
    pub check_peer_name: Option<bool>,

    /// Auxiliary connections to each controller that is connected to and speaks OpenFlow13, 0 to 8;
    /// packet-ins are spread over them by flow [default: 0]
    #[arg(long, value_name = "N")]
    pub auxiliary: Option<u8>,

    /// OpenFlow versions to speak: OpenFlow10, OpenFlow11, OpenFlow12, OpenFlow13, OpenFlow14,
    /// OpenFlow15 [default: OpenFlow10 and OpenFlow13]
    #[arg(long, value_name = "VERSION,..", value_delimiter = ',', value_parser = values::version)]
    #[serde(deserialize_with = "values::versions")]
    pub protocols: Option<Vec<Version>>,

    /// Mode without a controller: secure (flow entries stay and expire) or standalone (a
    /// learning switch, as soon as three times the inactivity probe have passed) [default: secure]
    #[arg(long, value_name = "MODE")]
    pub fail_mode: Option<FailMode>,

    /// The control socket for `weir ctl`, or none [default: /run/weir/switch.sock for root, else
    /// $XDG_RUNTIME_DIR/weir/switch.sock]
    #[arg(long, value_name = "PATH")]
    pub control: Option<PathBuf>,

    /// Serve metrics for Prometheus here, at /metrics, for example 127.0.0.1:9437 [default: none]
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = metrics::parse_address)]
    #[serde(deserialize_with = "values::metrics_address")]
    pub metrics: Option<SocketAddr>,

    /// Keep flow entries, groups, meters, their counts and learnt addresses in this folder, so that
    /// a switch that starts anew goes on with them; known flows go on in the kernel tier meanwhile,
    /// for at most 30 s [default: none]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,

    /// Flow tables, 1 to 254 [default: 254]
    #[arg(long, value_name = "N")]
    pub tables: Option<u8>,

    /// Most flow entries in one table, at least 1 [default: 1000000]
    #[arg(long, value_name = "N")]
    pub max_entries: Option<u32>,

    /// Seconds of silence until a controller is probed by an echo request, and again until the
    /// connection is given up; 0 for never [default: 5]
    #[arg(long, value_name = "SECONDS")]
    pub inactivity_probe: Option<u32>,

    /// Most seconds between two attempts to reach a controller, also with a fraction, at least 0.1
    /// [default: 8]
    #[arg(long, value_name = "SECONDS")]
    pub max_backoff: Option<Seconds>,

    /// Most packets that wait for the controllers; more are dropped and counted [default: 8192]
    #[arg(long, value_name = "PACKETS")]
    pub packet_in_queue: Option<u32>,

    /// Most packets a second to the controllers for each reason (no match, action, invalid TTL);
    /// more are dropped and counted; 0 for any number [default: 0]
    #[arg(long, value_name = "PACKETS")]
    pub packet_in_rate: Option<u32>,

    /// So many packets may come at once before the rate holds [default: a quarter of a second's]
    #[arg(long, value_name = "PACKETS")]
    pub packet_in_burst: Option<u32>,

    /// Forwarding mode: openflow, or without any table, ports in pairs, one of io (frames as they
    /// are), mac (addresses of the sending port), macswap (addresses exchanged) [default: openflow]
    #[arg(long, value_name = "MODE")]
    pub forward: Option<Forward>,

    /// Forwarding threads, 1 to 64; neighbouring ports share one [default: 1]
    #[arg(long, value_name = "N")]
    pub workers: Option<u16>,

    /// Queues of each port whose kind has several and whose spec does not say `queues=`, 1 to 64;
    /// each further one goes to the next forwarding thread [default: 1]
    #[arg(long, value_name = "N")]
    pub queues: Option<u32>,

    /// The CPU of each forwarding thread [default: any]
    #[arg(long, value_name = "CPU,..", value_delimiter = ',')]
    pub worker_cores: Vec<u16>,

    /// Most memory that the switch may take, as 512M or 2G. A quarter of it is kept for connections
    /// and packets; entries, groups and meters that would need more are refused as by a full table
    /// [default: the limit of the control group]
    #[arg(long, value_name = "SIZE")]
    pub max_memory: Option<MemorySize>,

    /// Wait policy of forwarding threads: adaptive (asleep while nothing comes) or busy (never
    /// asleep, a whole CPU each) [default: adaptive]
    #[arg(long, value_name = "POLICY")]
    pub poll: Option<Poll>,

    /// Caches of decisions in use: off, or some of frame (the bytes of usual frames that
    /// the tables look at), key (the fields of any frame) and kernel (the frame cache's decisions,
    /// carried out by a program in the kernel between af_packet ports; needs root and Linux 6.6).
    /// Asked for by name, kernel takes devices too that the host uses itself, as by an address
    /// [default: frame,key,kernel where possible]
    #[arg(long, value_name = "CACHE,..")]
    pub caches: Option<CachesArg>,

    /// Description: manufacturer
    #[arg(long, value_name = "TEXT")]
    pub mfr_desc: Option<String>,

    /// Description: hardware
    #[arg(long, value_name = "TEXT")]
    pub hw_desc: Option<String>,

    /// Description: software
    #[arg(long, value_name = "TEXT")]
    pub sw_desc: Option<String>,

    /// Description: serial number
    #[arg(long, value_name = "TEXT")]
    pub serial_num: Option<String>,

    /// Description: the datapath, for people
    #[arg(long, value_name = "TEXT")]
    pub dp_desc: Option<String>,

    /// The tables `[[bridge]]` of the file, in their order. Without any there is one bridge, of the
    /// other fields; with some, the other fields are what holds for a bridge whose table says
    /// nothing else.
    #[arg(skip)]
    #[serde(skip)]
    pub bridge: Vec<SwitchArgs>,

    /// A TOML file with the same keys; flags win
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,

    /// Check the configuration and end
    #[arg(long)]
    #[serde(skip)]
    pub check_config: bool,

    /// Print the capabilities, devices and files that the configuration needs, and end
    #[arg(long)]
    #[serde(skip)]
    pub show_rights: bool,

    /// Print them as JSON
    #[arg(long, requires = "show_rights")]
    #[serde(skip)]
    pub json: bool,
}

/// The configuration file as it was read.
pub(crate) struct FileText {
    path: PathBuf,
    text: String,
}

/// The kinds of port with their options, and what a file looks like, for `--help`.
#[must_use]
pub fn help() -> String {
    let mut text = format!("{QUICK_START}\nKinds of port:\n");
    for row in netdev::KINDS {
        let spec = format!("{}:{}", row.word, row.name_hint);
        text += &format!("  {spec:18} {}\n", row.help);
        for option in row.options {
            let spec = format!("?{}={}", option.name, option.values);
            text += &format!("    {spec:24} {}\n", option.help);
        }
    }
    text += "  of every kind:\n";
    for option in netdev::COMMON {
        let spec = format!("?{}={}", option.name, option.values);
        text += &format!("    {spec:24} {}\n", option.help);
    }
    text + FILE_HELP
}

const QUICK_START: &str = "\
Two hosts in network namespaces, joined to the switch by veth pairs (as root):
  for n in 0 1; do
    ip netns add host$n
    ip link add veth$n type veth peer name eth0 netns host$n
    ip -n host$n addr add 10.0.0.$((n + 1))/24 dev eth0
    ip -n host$n link set eth0 up
    ip link set veth$n up
  done
  weir switch --port 1=af_packet:veth0 --port 2=af_packet:veth1 --fail-mode standalone &
  until weir ctl show >/dev/null 2>&1 || ! kill -0 $!; do sleep 0.1; done  # it is ready
  ip netns exec host0 ping -c 3 -w 30 10.0.0.2
";

const FILE_HELP: &str = "
A file for --config:
  dpid = \"00000000000000a1\"
  port = [\"1=af_packet:eth1\", \"2=af_packet:eth2\"]
  controller = [\"tcp:192.0.2.7:6653\"]
  protocols = [\"OpenFlow13\"]

Several bridges in one process, each with what its table says and else what stands above:
  controller = [\"tcp:192.0.2.7:6653\"]
  [[bridge]]
  name = \"left\"
  dpid = \"a1\"
  port = [\"af_packet:eth1\", \"af_packet:eth2\"]
  [[bridge]]
  name = \"right\"
  dpid = \"a2\"
  port = [\"af_packet:eth3\", \"af_packet:eth4\"]";

impl FileText {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn read(path: PathBuf) -> Result<Self, ConfigError> {
        match files::read_text(&path, files::CONFIG_MAX) {
            Ok(text) => Ok(Self { path, text }),
            Err(error) => Err(ConfigError::plain(None, error.to_string()).in_file(&path)),
        }
    }
}

impl SwitchArgs {
    /// Reads the file of `--config`, if there is one, and lays the flags over it.
    ///
    /// # Errors
    /// The file cannot be read, or is wrong: then with file, line, column and key.
    pub fn with_file(self) -> Result<Self, ConfigError> {
        let Some(path) = self.config.clone() else { return Ok(self) };
        self.over_text(&FileText::read(path)?)
    }

    /// The configuration that this text of the file gives, and what differs in it from an earlier
    /// one.
    ///
    /// # Errors
    /// As [`SwitchArgs::with_file`]; or something has changed that a running switch cannot change.
    pub(crate) fn changed_since(
        &self,
        earlier: &Config,
        file: &FileText,
    ) -> Result<(Config, Difference), ConfigError> {
        let mut config = self.clone().over_text(file)?.resolve()?;
        let (found, problems) = difference::difference(earlier, &config);
        if let Some(problem) = problems.first() {
            return Err(file::locate(&file.text, problem).in_file(&file.path));
        }
        // What was asked for at the start holds again where the kernel tier is used again.
        for bridge in &mut config.bridges {
            if let Some(before) = earlier.bridges.iter().find(|before| before.name == bridge.name) {
                bridge.is_tier_asked = before.is_tier_asked;
            }
        }
        Ok((config, found))
    }

    /// These flags over what the text of a file says.
    fn over_text(self, FileText { path, text }: &FileText) -> Result<Self, ConfigError> {
        let file = parse_config(text).map_err(|error| error.in_file(path))?;
        if let Some(key) = self.key_of_one_bridge().filter(|_| !file.bridge.is_empty()) {
            let message = format!("is for one bridge; {} has several", path.display());
            return Err(ConfigError::plain(Some(key), message));
        }
        Ok(self.over(file))
    }

    /// These flags, and where one is not given what `file` says.
    fn over(self, file: Self) -> Self {
        Self {
            bridge: file.bridge.into_iter().map(|table| self.clone().over(table)).collect(),
            dpid: self.dpid.or(file.dpid),
            name: self.name.or(file.name),
            port: either(self.port, file.port),
            local: self.local.or(file.local),
            vlan: either(self.vlan, file.vlan),
            mirror: either(self.mirror, file.mirror),
            queue: either(self.queue, file.queue),
            rate: either(self.rate, file.rate),
            controller: self.controller.or(file.controller),
            listen: either(self.listen, file.listen),
            private_key: self.private_key.or(file.private_key),
            certificate: self.certificate.or(file.certificate),
            ca_cert: self.ca_cert.or(file.ca_cert),
            check_peer_name: self.check_peer_name.or(file.check_peer_name),
            auxiliary: self.auxiliary.or(file.auxiliary),
            protocols: self.protocols.or(file.protocols),
            fail_mode: self.fail_mode.or(file.fail_mode),
            control: self.control.or(file.control),
            metrics: self.metrics.or(file.metrics),
            state: self.state.or(file.state),
            tables: self.tables.or(file.tables),
            max_entries: self.max_entries.or(file.max_entries),
            inactivity_probe: self.inactivity_probe.or(file.inactivity_probe),
            max_backoff: self.max_backoff.or(file.max_backoff),
            packet_in_queue: self.packet_in_queue.or(file.packet_in_queue),
            packet_in_rate: self.packet_in_rate.or(file.packet_in_rate),
            packet_in_burst: self.packet_in_burst.or(file.packet_in_burst),
            forward: self.forward.or(file.forward),
            workers: self.workers.or(file.workers),
            queues: self.queues.or(file.queues),
            worker_cores: either(self.worker_cores, file.worker_cores),
            max_memory: self.max_memory.or(file.max_memory),
            poll: self.poll.or(file.poll),
            caches: self.caches.or(file.caches),
            mfr_desc: self.mfr_desc.or(file.mfr_desc),
            hw_desc: self.hw_desc.or(file.hw_desc),
            sw_desc: self.sw_desc.or(file.sw_desc),
            serial_num: self.serial_num.or(file.serial_num),
            dp_desc: self.dp_desc.or(file.dp_desc),
            config: self.config,
            check_config: self.check_config,
            show_rights: self.show_rights,
            json: self.json,
        }
    }
}

/// For lists that one table alone may have: what is empty is not given.
fn either<T>(flags: Vec<T>, file: Vec<T>) -> Vec<T> {
    if flags.is_empty() { file } else { flags }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{SwitchArgs, help, parse_config};

    #[test]
    fn errors_in_a_file_name_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("switch.toml");
        fs::write(&path, "port = [\"1=null:a\"]\ntabels = 3\n").unwrap();
        let args = SwitchArgs { config: Some(path.clone()), ..SwitchArgs::default() };
        let message = args.with_file().unwrap_err().to_string();
        let begin = format!("{}:2:1: tabels: unknown key; did you mean tables?", path.display());
        assert!(message.starts_with(&begin), "{message}");
        let path = folder.path().join("none.toml");
        let args = SwitchArgs { config: Some(path.clone()), ..SwitchArgs::default() };
        let message = args.with_file().unwrap_err().to_string();
        assert!(message.starts_with(&format!("{}: cannot be read: ", path.display())), "{message}");
        let args = SwitchArgs { config: Some("/dev/urandom".into()), ..SwitchArgs::default() };
        let message = args.with_file().unwrap_err().to_string();
        assert_eq!(message, "/dev/urandom: is a device; give a regular file or a pipe");
    }

    #[test]
    fn flags_win_over_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("switch.toml");
        fs::write(&path, "tables = 3\nmax-entries = 9\nport = [\"null:a\"]\n").unwrap();
        let args = SwitchArgs {
            config: Some(path),
            tables: Some(7),
            port: vec!["5=null:b".parse().unwrap()],
            ..SwitchArgs::default()
        };
        let config = args.with_file().unwrap().resolve().unwrap();
        let [bridge] = &config.bridges[..] else { panic!("one bridge") };
        assert_eq!((bridge.tables, bridge.max_entries), (7, 9));
        assert_eq!(bridge.ports.len(), 1);
        assert_eq!(bridge.ports[0].number.0, 5);
    }

    #[test]
    fn the_file_of_the_help_is_right_and_every_kind_is_named() {
        let help = help();
        assert!(netdev::KINDS.iter().all(|row| help.contains(row.word)));
        let files = help.split("--config:\n").nth(1).unwrap();
        let (one, several) = files.split_once("\n\n").unwrap();
        assert!(parse_config(one).unwrap().bridge.is_empty());
        let several = several.split_once('\n').unwrap().1;
        assert_eq!(parse_config(several).unwrap().bridge.len(), 2);
    }
}
