//! The changes between two configurations, for a switch that goes on running.
//!
//! Only what can be changed while packets pass is a difference; any other change is a problem, with
//! the key that has it, and then nothing is applied. Nothing is opened or read here.

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
    /// Ports that come, and those of which another device is to be opened.
    pub(crate) new: Vec<PortConfig>,
    /// Ports that stay with other queues, another rate or other VLANs.
    pub(crate) set: Vec<PortNo>,
    /// Controllers that are no longer connected to.
    pub(crate) controllers_gone: Vec<Endpoint>,
    /// Controllers that are connected to from now on.
    pub(crate) controllers_new: Vec<Endpoint>,
    /// Whether other caches are used.
    pub(crate) has_other_caches: bool,
}

impl BridgeDifference {
    /// Whether nothing has changed.
    fn is_nothing(&self) -> bool {
        !self.has_port_changes()
            && self.controllers_gone.is_empty()
            && self.controllers_new.is_empty()
            && !self.has_other_caches
    }

    /// Whether any port changes.
    pub(crate) fn has_port_changes(&self) -> bool {
        !(self.gone.is_empty() && self.new.is_empty() && self.set.is_empty())
    }
}

const FIXED: &str = "cannot change while the switch runs; start it anew for that";

/// The bridges that come, go or change, and how.
///
/// # Errors
/// The first change that cannot be applied to a switch that runs.
pub(super) fn difference(from: &Config, to: &Config) -> Result<Difference, Problem> {
    let Config { bridges, control, workers, worker_cores, max_memory, poll } = from;
    let fixed = [
        ("control", *control == to.control),
        ("workers", *workers == to.workers),
        ("worker-cores", *worker_cores == to.worker_cores),
        ("max-memory", *max_memory == to.max_memory),
        ("poll", poll.name() == to.poll.name()),
    ];
    if let Some((key, _)) = fixed.iter().find(|(_, is_same)| !is_same) {
        return Err(Problem::new(key, FIXED));
    }
    let mut all = Difference::default();
    for (index, to) in to.bridges.iter().enumerate() {
        let in_bridge = |problem| Problem { bridge: Some(index), ..problem };
        let Some(from) = bridges.iter().find(|from| from.name == to.name) else {
            if let Forward::Wire(_) = to.forward {
                let message = "a bridge without tables comes with a new start only";
                return Err(in_bridge(Problem::new("forward", message)));
            }
            all.new.push(to.clone());
            continue;
        };
        all.changed.push(of_bridge(from, to).map_err(in_bridge)?);
    }
    all.changed.retain(|one| !one.is_nothing());
    let is_left = |from: &&BridgeConfig| to.bridges.iter().any(|to| to.name == from.name);
    all.gone = bridges.iter().filter(|from| !is_left(from)).map(|from| from.name.clone()).collect();
    if all.gone.len() == bridges.len() {
        let message = "no bridge of those before stays; start the switch anew for that";
        return Err(Problem::new("bridge", message));
    }
    Ok(all)
}

fn of_bridge(from: &BridgeConfig, to: &BridgeConfig) -> Result<BridgeDifference, Problem> {
    check_fixed(from, to)?;
    let lacks = |all: &[PortConfig], port: &PortConfig| {
        !all.iter().any(|other| (other.number, &other.spec) == (port.number, &port.spec))
    };
    let minus = |all: &[PortConfig], others: &[PortConfig]| -> Vec<PortConfig> {
        all.iter().filter(|port| lacks(others, port)).cloned().collect()
    };
    let new = minus(&to.ports, &from.ports);
    let stays = |port: &&PortConfig| !new.iter().any(|other| other.number == port.number);
    let is_set_anew = |port: &&PortConfig| {
        let number = port.number;
        from.shape_of(number) != to.shape_of(number) || from.vlans_of(number) != to.vlans_of(number)
    };
    let set = to.ports.iter().filter(stays).filter(is_set_anew).map(|port| port.number).collect();
    let without = |all: &[Endpoint], others: &[Endpoint]| -> Vec<Endpoint> {
        all.iter().filter(|endpoint| !others.contains(endpoint)).cloned().collect()
    };
    Ok(BridgeDifference {
        gone: minus(&from.ports, &to.ports),
        set,
        new,
        controllers_gone: without(&from.controllers, &to.controllers),
        controllers_new: without(&to.controllers, &from.controllers),
        has_other_caches: from.caches.0 != to.caches.0,
        to: to.clone(),
    })
}

/// Every field is named, so that a new one is not forgotten here.
fn check_fixed(from: &BridgeConfig, to: &BridgeConfig) -> Result<(), Problem> {
    #[rustfmt::skip]
    let BridgeConfig {
        dpid, listeners, tls, check_peer_name, auxiliary, versions, fail_mode, tables, max_entries,
        inactivity_probe_s, max_backoff, packet_in_queue, packet_in_rate, packet_in_burst, forward,
        device_queues, desc,
        is_tier_asked,
        name: _, ports: _, vlans: _, queues: _, controllers: _, caches: _,
    } = from;
    // The devices that the kernel tier takes are chosen at the start; its end may come at any time.
    let takes_same = *is_tier_asked == to.is_tier_asked || !to.caches.0.kernel;
    let fixed = [
        ("dpid", *dpid == to.dpid),
        ("listen", *listeners == to.listeners),
        ("private-key", *tls == to.tls),
        ("check-peer-name", *check_peer_name == to.check_peer_name),
        ("auxiliary", *auxiliary == to.auxiliary),
        ("protocols", *versions == to.versions),
        ("fail-mode", fail_mode.name() == to.fail_mode.name()),
        ("tables", *tables == to.tables),
        ("max-entries", *max_entries == to.max_entries),
        ("inactivity-probe", *inactivity_probe_s == to.inactivity_probe_s),
        ("max-backoff", *max_backoff == to.max_backoff),
        ("packet-in-queue", *packet_in_queue == to.packet_in_queue),
        ("packet-in-rate", *packet_in_rate == to.packet_in_rate),
        ("packet-in-burst", *packet_in_burst == to.packet_in_burst),
        ("forward", forward.name() == to.forward.name()),
        ("queues", *device_queues == to.device_queues),
        ("caches", takes_same),
        ("mfr-desc", desc.mfr_desc == to.desc.mfr_desc),
        ("hw-desc", desc.hw_desc == to.desc.hw_desc),
        ("sw-desc", desc.sw_desc == to.desc.sw_desc),
        ("serial-num", desc.serial_num == to.desc.serial_num),
        ("dp-desc", desc.dp_desc == to.desc.dp_desc),
    ];
    match fixed.iter().find(|(_, is_same)| !is_same) {
        Some((key, _)) => Err(Problem::new(key, FIXED)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::{BridgeDifference, Difference, difference};
    use crate::config::{Config, parse_config};

    fn config(text: &str) -> Config {
        parse_config(text).unwrap().resolve().unwrap()
    }

    fn changes(from: &str, to: &str) -> Vec<BridgeDifference> {
        let Difference { gone, new, changed } =
            difference(&config(from), &config(to)).ok().unwrap();
        assert!(gone.is_empty() && new.is_empty());
        changed
    }

    #[test]
    fn bridges_come_and_go() {
        let table = |name: &str, rest: &str| format!("[[bridge]]\nname = \"{name}\"\n{rest}\n");
        let from = table("a", "") + &table("b", "port = [\"null:x\"]");
        let to = table("c", "port = [\"null:x\"]\ntables = 5") + &table("a", "");
        let Difference { gone, new, changed } =
            difference(&config(&from), &config(&to)).ok().unwrap();
        assert_eq!((gone, changed.len()), (vec!["b".to_owned()], 0));
        let [new] = &new[..] else { panic!("one comes") };
        assert_eq!((new.name.as_str(), new.ports.len(), new.tables), ("c", 1, 5));
        // The one bridge without a table, and the same in a table.
        let more = table("br0", "") + &table("d", "");
        let found = difference(&config(""), &config(&more)).ok().unwrap();
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
        assert!(one.has_other_caches && one.has_port_changes());
        let [off] = &changes("caches = \"frame,kernel\"", "caches = \"frame\"")[..] else {
            panic!("the kernel tier goes")
        };
        assert!(off.has_other_caches && !off.has_port_changes());
        // Where the numbers are chosen, a port in front moves those behind it.
        let moved = changes("port = [\"null:a\"]", "port = [\"null:b\", \"null:a\"]");
        assert_eq!((numbers(&moved[0].gone), numbers(&moved[0].new)), (vec![1], vec![1, 2]));
    }

    #[test]
    fn what_cannot_change_is_named() {
        let two = "[[bridge]]\nname = \"a\"\n[[bridge]]\nname = \"b\"\n";
        let cases = [
            ("", "workers = 2", None, "workers"),
            ("", "poll = \"busy\"", None, "poll"),
            ("", "max-memory = \"1G\"", None, "max-memory"),
            ("", "control = \"none\"", None, "control"),
            ("", "dpid = \"5\"", Some(0), "dpid"),
            ("", "tables = 9", Some(0), "tables"),
            ("", "listen = [\"ptcp:\"]", Some(0), "listen"),
            ("", "protocols = [\"OpenFlow13\"]", Some(0), "protocols"),
            ("", "fail-mode = \"standalone\"", Some(0), "fail-mode"),
            ("", "dp-desc = \"x\"", Some(0), "dp-desc"),
            ("", "caches = \"frame,key,kernel\"", Some(0), "caches"),
            ("caches = \"frame,key,kernel\"", "", Some(0), "caches"),
            ("caches = \"frame\"", "caches = \"frame,kernel\"", Some(0), "caches"),
            (two, "[[bridge]]\nname = \"c\"\n", None, "bridge"),
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
            let problem = difference(&config(from), &config(to)).err().unwrap();
            assert_eq!((problem.bridge, problem.key), (bridge, key), "{to}");
        }
    }
}
