//! The changes between two configurations, for a switch that goes on running.
//!
//! Only what can be changed while packets pass is a difference; any other change is a problem, with
//! the key that has it, and the difference has the earlier value. Nothing is opened or read here.

use std::collections::HashMap;

use channel::Endpoint;
use openflow::PortNo;

use super::problem::Problem;
use super::{BridgeConfig, Config, Forward, PortConfig};

/// The changes between two configurations.
#[derive(Clone, Debug, Default)]
pub(crate) struct Difference {
    /// The names of bridges that go.
    pub(crate) gone: Vec<String>,
    /// Bridges that come.
    pub(crate) new: Vec<BridgeConfig>,
    /// Bridges that stay and change.
    pub(crate) changed: Vec<BridgeDifference>,
}

/// The changes of one bridge.
#[derive(Clone, Debug)]
pub(crate) struct BridgeDifference {
    /// The bridge as it is to be.
    pub(crate) to: BridgeConfig,
    /// Ports that go, and those of which another device is to be opened.
    pub(crate) gone: Vec<PortConfig>,
    /// Ports that get another number, which is the first; their devices stay open.
    pub(crate) moved: Vec<(PortNo, PortConfig)>,
    /// Ports that come, and those of which another device is to be opened.
    pub(crate) new: Vec<PortConfig>,
    /// Ports that stay with other queues, another rate or other VLANs.
    pub(crate) set: Vec<PortNo>,
    /// Controllers that are no longer connected to.
    pub(crate) controllers_gone: Vec<Endpoint>,
    /// Controllers that are connected to from now on.
    pub(crate) controllers_new: Vec<Endpoint>,
    /// Endpoints that controllers may no longer connect to.
    pub(crate) listeners_gone: Vec<Endpoint>,
    /// Endpoints that controllers may connect to from now on.
    pub(crate) listeners_new: Vec<Endpoint>,
    /// The keys with other values, and what such a key is about.
    pub(crate) settings: Vec<(&'static str, Setting)>,
}

/// The subject of a key of a bridge that has one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Setting {
    /// The datapath id: connections begin anew, since no message reports another one.
    Dpid,
    /// Versions to speak: connections begin anew.
    Versions,
    /// Key and certificates: connections by TLS begin anew.
    Tls,
    /// Auxiliary connections: those to controllers begin anew.
    Auxiliary,
    /// The mode without a controller.
    FailMode,
    /// Most entries of a table, and the names and limits of single ones.
    MaxEntries,
    /// The ageing time of learnt addresses.
    AddressAge,
    /// The probe of silent connections.
    Probe,
    /// The longest wait before a connection.
    Backoff,
    /// The caches in use.
    Caches,
    /// The mirrors.
    Mirrors,
    /// Read whenever it is needed: texts of the description, queues of ports to come.
    Read,
}

impl BridgeDifference {
    /// Whether nothing has changed.
    fn is_nothing(&self) -> bool {
        !self.has_port_changes()
            && self.controllers_gone.is_empty()
            && self.controllers_new.is_empty()
            && self.listeners_gone.is_empty()
            && self.listeners_new.is_empty()
            && self.settings.is_empty()
    }

    /// Whether any port changes.
    pub(crate) fn has_port_changes(&self) -> bool {
        !(self.gone.is_empty()
            && self.moved.is_empty()
            && self.new.is_empty()
            && self.set.is_empty())
    }

    /// Whether this is one of the changes.
    pub(crate) fn has(&self, setting: Setting) -> bool {
        self.settings.iter().any(|(_, changed)| *changed == setting)
    }
}

const FIXED: &str = "cannot change while the switch runs; start it anew for that";

/// The bridges that come, go or change, and how; and the changes that cannot be applied to a switch
/// that runs.
pub(crate) fn difference(from: &Config, to: &Config) -> (Difference, Vec<Problem>) {
    let Config { bridges, control, metrics, state, workers, worker_cores, max_memory, poll } = from;
    let fixed = [
        ("control", *control == to.control),
        ("metrics", *metrics == to.metrics),
        ("state", *state == to.state),
        ("workers", *workers == to.workers),
        ("worker-cores", *worker_cores == to.worker_cores),
        ("max-memory", *max_memory == to.max_memory),
        ("poll", poll.name() == to.poll.name()),
    ];
    let changed = fixed.iter().filter(|(_, is_same)| !is_same);
    let mut problems: Vec<Problem> = changed.map(|(key, _)| Problem::new(key, FIXED)).collect();
    let mut all = Difference::default();
    let mut earlier: HashMap<&str, &BridgeConfig> =
        bridges.iter().map(|from| (from.name.as_str(), from)).collect();
    for (index, to) in to.bridges.iter().enumerate() {
        let in_bridge = |problem| Problem { bridge: Some(index), ..problem };
        let Some(from) = earlier.remove(to.name.as_str()) else {
            match to.forward {
                Forward::Openflow => all.new.push(to.clone()),
                Forward::Wire(_) => {
                    let message = "a bridge without tables comes with a new start only";
                    problems.push(in_bridge(Problem::new("forward", message)));
                }
            }
            continue;
        };
        let mut found = Vec::new();
        let changes = of_bridge(from, to.clone(), &mut found);
        problems.extend(found.into_iter().map(in_bridge));
        all.changed.extend((!changes.is_nothing()).then_some(changes));
    }
    let is_left = |from: &&BridgeConfig| earlier.contains_key(from.name.as_str());
    all.gone = bridges.iter().filter(is_left).map(|from| from.name.clone()).collect();
    (all, problems)
}

fn of_bridge(
    from: &BridgeConfig,
    mut to: BridgeConfig,
    problems: &mut Vec<Problem>,
) -> BridgeDifference {
    keep_fixed(from, &mut to, problems);
    let mut gone = minus(&from.ports, &to.ports);
    let (mut new, mut moved) = (Vec::new(), Vec::new());
    for port in minus(&to.ports, &from.ports) {
        match gone.iter().position(|goes| goes.spec == port.spec) {
            Some(at) => moved.push((gone.remove(at).number, port)),
            None => new.push(port),
        }
    }
    let comes = |port: &PortConfig| {
        let mut coming = new.iter().chain(moved.iter().map(|(_, port)| port));
        coming.any(|other| other.number == port.number)
    };
    let is_set_anew = |port: &&PortConfig| {
        let number = port.number;
        from.shape_of(number) != to.shape_of(number) || from.vlans_of(number) != to.vlans_of(number)
    };
    let may_be_set = !to.vlans.is_empty() || !to.queues.is_empty();
    let may_be_set = may_be_set || !from.vlans.is_empty() || !from.queues.is_empty();
    let stays = to.ports.iter().filter(|port| may_be_set && !comes(port));
    let set = stays.filter(is_set_anew).map(|port| port.number).collect();
    let without = |all: &[Endpoint], others: &[Endpoint]| -> Vec<Endpoint> {
        all.iter().filter(|endpoint| !others.contains(endpoint)).cloned().collect()
    };
    BridgeDifference {
        set,
        gone,
        moved,
        new,
        controllers_gone: without(&from.controllers, &to.controllers),
        controllers_new: without(&to.controllers, &from.controllers),
        listeners_gone: without(&from.listeners, &to.listeners),
        listeners_new: without(&to.listeners, &from.listeners),
        settings: settings(from, &to),
        to,
    }
}

/// The ports that are not among others, by number and device.
fn minus(all: &[PortConfig], others: &[PortConfig]) -> Vec<PortConfig> {
    let others: HashMap<PortNo, &PortConfig> =
        others.iter().map(|port| (port.number, port)).collect();
    let lacks =
        |port: &&PortConfig| others.get(&port.number).is_none_or(|other| other.spec != port.spec);
    all.iter().filter(lacks).cloned().collect()
}

/// The keys that have other values. Every field is named, so that a new one is not forgotten here.
fn settings(from: &BridgeConfig, to: &BridgeConfig) -> Vec<(&'static str, Setting)> {
    #[rustfmt::skip]
    let BridgeConfig {
        dpid, tls, check_peer_name, auxiliary, versions, fail_mode, max_entries, flow_tables,
        mac_age_s, inactivity_probe_s, max_backoff, device_queues, desc, caches, mirrors,
        name: _, ports: _, vlans: _, queues: _, controllers: _, listeners: _,
        tables: _, packet_in_queue: _, packet_in_rate: _, packet_in_burst: _, forward: _,
        is_tier_asked: _,
    } = from;
    let rows = [
        ("dpid", *dpid == to.dpid, Setting::Dpid),
        ("protocols", *versions == to.versions, Setting::Versions),
        ("private-key", *tls == to.tls, Setting::Tls),
        ("check-peer-name", *check_peer_name == to.check_peer_name, Setting::Tls),
        ("auxiliary", *auxiliary == to.auxiliary, Setting::Auxiliary),
        ("fail-mode", *fail_mode == to.fail_mode, Setting::FailMode),
        ("max-entries", *max_entries == to.max_entries, Setting::MaxEntries),
        ("flow-tables", *flow_tables == to.flow_tables, Setting::MaxEntries),
        ("mac-aging-time", *mac_age_s == to.mac_age_s, Setting::AddressAge),
        ("inactivity-probe", *inactivity_probe_s == to.inactivity_probe_s, Setting::Probe),
        ("max-backoff", *max_backoff == to.max_backoff, Setting::Backoff),
        ("caches", *caches == to.caches, Setting::Caches),
        ("mirror", *mirrors == to.mirrors, Setting::Mirrors),
        ("queues", *device_queues == to.device_queues, Setting::Read),
        ("mfr-desc", desc.mfr_desc == to.desc.mfr_desc, Setting::Read),
        ("hw-desc", desc.hw_desc == to.desc.hw_desc, Setting::Read),
        ("sw-desc", desc.sw_desc == to.desc.sw_desc, Setting::Read),
        ("serial-num", desc.serial_num == to.desc.serial_num, Setting::Read),
        ("dp-desc", desc.dp_desc == to.desc.dp_desc, Setting::Read),
    ];
    let changed = rows.into_iter().filter(|(_, is_same, _)| !is_same);
    changed.map(|(key, _, setting)| (key, setting)).collect()
}

/// Finds the keys that would have to change and cannot, and gives them their earlier values.
fn keep_fixed(from: &BridgeConfig, to: &mut BridgeConfig, problems: &mut Vec<Problem>) {
    fn keep<T: PartialEq + Copy>(
        key: &'static str,
        from: T,
        to: &mut T,
        problems: &mut Vec<Problem>,
    ) {
        if from != *to {
            *to = from;
            problems.push(Problem::new(key, FIXED));
        }
    }
    keep("tables", from.tables, &mut to.tables, problems);
    keep("packet-in-queue", from.packet_in_queue, &mut to.packet_in_queue, problems);
    keep("packet-in-rate", from.packet_in_rate, &mut to.packet_in_rate, problems);
    keep("packet-in-burst", from.packet_in_burst, &mut to.packet_in_burst, problems);
    keep("forward", from.forward, &mut to.forward, problems);
    // The devices that the kernel tier takes are chosen at the start; its end may come at any time,
    // and what was asked for at the start holds again where the tier is used again.
    if from.is_tier_asked != to.is_tier_asked && to.caches.0.kernel {
        to.caches = from.caches;
        problems.push(Problem::new("caches", FIXED));
    }
    to.is_tier_asked = from.is_tier_asked;
}

#[cfg(test)]
mod tests {
    use super::{BridgeDifference, Difference, Setting, difference};
    use crate::config::{Config, parse_config};

    fn config(text: &str) -> Config {
        parse_config(text).unwrap().resolve().unwrap()
    }

    fn found(from: &str, to: &str) -> Difference {
        let (found, problems) = difference(&config(from), &config(to));
        assert!(problems.is_empty());
        found
    }

    fn changes(from: &str, to: &str) -> Vec<BridgeDifference> {
        let Difference { gone, new, changed } = found(from, to);
        assert!(gone.is_empty() && new.is_empty());
        changed
    }

    #[test]
    fn bridges_come_and_go() {
        let table = |name: &str, rest: &str| format!("[[bridge]]\nname = \"{name}\"\n{rest}\n");
        let from = table("a", "") + &table("b", "port = [\"null:x\"]");
        let to = table("c", "port = [\"null:x\"]\ntables = 5") + &table("a", "");
        let Difference { gone, new, changed } = found(&from, &to);
        assert_eq!((gone, changed.len()), (vec!["b".to_owned()], 0));
        let [new] = &new[..] else { panic!("one comes") };
        assert_eq!((new.name.as_str(), new.ports.len(), new.tables), ("c", 1, 5));
        // The one bridge without a table, and the same in a table.
        let more = table("br0", "") + &table("d", "");
        let found = found("", &more);
        assert_eq!((found.new.len(), found.gone.len(), found.changed.len()), (1, 0, 0));
    }

    #[test]
    fn what_is_the_same_is_no_difference() {
        let text = "port = [\"null:a\", \"3=null:b\"]\ncontroller = [\"tcp:192.0.2.1\"]\n";
        assert!(changes(text, text).is_empty());
        // The same in other words.
        assert!(changes("port = [\"null:a\"]", "port = [\"1=null:a\"]\ntables = 254\n").is_empty());
    }

    #[test]
    fn ports_controllers_queues_and_vlans_are_differences() {
        let from = "port = [\"1=null:a\", \"2=null:b\", \"3=null:c\", \"4=null:d\"]\n\
                    controller = [\"tcp:192.0.2.1\"]\nrate = [\"3=1M\"]\n";
        let to = "port = [\"1=null:a\", \"2=null:x\", \"3=null:c\", \"4=null:d\", \"9=null:e\"]\n\
                  controller = [\"tcp:192.0.2.2\"]\nrate = [\"3=2M\"]\nvlan = [\"4=access:5\"]\n\
                  caches = \"off\"\n";
        let [one] = &changes(from, to)[..] else { panic!("one bridge") };
        let numbers = |ports: &[super::PortConfig]| -> Vec<u32> {
            ports.iter().map(|port| port.number.0).collect()
        };
        assert_eq!((numbers(&one.gone), numbers(&one.new)), (vec![2], vec![2, 9]));
        assert_eq!(one.set.iter().map(|port| port.0).collect::<Vec<_>>(), [3, 4]);
        assert_eq!(one.controllers_gone[0].to_string(), "tcp:192.0.2.1:6653");
        assert_eq!(one.controllers_new[0].to_string(), "tcp:192.0.2.2:6653");
        assert!(one.has(Setting::Caches) && one.has_port_changes());
        let [off] = &changes("caches = \"frame,kernel\"", "caches = \"frame\"")[..] else {
            panic!("the kernel tier goes")
        };
        assert!(off.has(Setting::Caches) && !off.has_port_changes());
        // Where the numbers are chosen, a port in front moves those behind it.
        let moved = changes("port = [\"null:a\"]", "port = [\"null:b\", \"null:a\"]");
        assert_eq!((moved[0].gone.len(), numbers(&moved[0].new)), (0, vec![1]));
        let moved = moved[0].moved.iter().map(|(from, to)| (from.0, to.number.0));
        assert_eq!(moved.collect::<Vec<_>>(), [(1, 2)]);
    }

    #[test]
    fn settings_and_listeners_are_differences() {
        let cases = [
            ("dpid = \"5\"", "dpid"),
            ("max-entries = 9", "max-entries"),
            ("protocols = [\"OpenFlow13\"]", "protocols"),
            ("fail-mode = \"standalone\"", "fail-mode"),
            ("inactivity-probe = 9", "inactivity-probe"),
            ("max-backoff = 9", "max-backoff"),
            ("auxiliary = 2", "auxiliary"),
            ("dp-desc = \"x\"", "dp-desc"),
            ("check-peer-name = true", "check-peer-name"),
        ];
        for (to, key) in cases {
            let [one] = &changes("", to)[..] else { panic!("{to}") };
            let keys: Vec<&str> = one.settings.iter().map(|(key, _)| *key).collect();
            assert_eq!((keys, one.has_port_changes()), (vec![key], false), "{to}");
        }
        let [one] = &changes("listen = [\"ptcp:1\"]", "listen = [\"ptcp:2\"]")[..] else {
            panic!("another listener")
        };
        assert_eq!((one.listeners_gone.len(), one.listeners_new.len()), (1, 1));
    }

    #[test]
    fn what_cannot_change_is_named() {
        let two = "[[bridge]]\nname = \"a\"\n[[bridge]]\nname = \"b\"\n";
        let cases = [
            ("", "workers = 2", None, "workers"),
            ("", "poll = \"busy\"", None, "poll"),
            ("", "max-memory = \"1G\"", None, "max-memory"),
            ("", "control = \"none\"", None, "control"),
            ("", "metrics = \"127.0.0.1:9437\"", None, "metrics"),
            ("", "state = \"x\"", None, "state"),
            ("", "tables = 9", Some(0), "tables"),
            ("", "packet-in-queue = 9", Some(0), "packet-in-queue"),
            ("", "caches = \"frame,key,kernel\"", Some(0), "caches"),
            ("caches = \"frame,key,kernel\"", "", Some(0), "caches"),
            ("caches = \"frame\"", "caches = \"frame,kernel\"", Some(0), "caches"),
            (
                two,
                "[[bridge]]\nname = \"a\"\n[[bridge]]\nname = \"c\"\nforward = \"io\"\n",
                Some(1),
                "forward",
            ),
            (
                two,
                "[[bridge]]\nname = \"b\"\n[[bridge]]\nname = \"a\"\ntables = 3\n",
                Some(1),
                "tables",
            ),
        ];
        for (from, to, bridge, key) in cases {
            let (found, problems) = difference(&config(from), &config(to));
            let [problem] = &problems[..] else { panic!("{to}: one problem") };
            assert_eq!((problem.bridge, problem.key), (bridge, key), "{to}");
            assert!(found.changed.is_empty() && found.new.is_empty(), "{to}");
        }
    }
}
