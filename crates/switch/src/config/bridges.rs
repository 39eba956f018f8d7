//! Several bridges in one file: which keys belong to one bridge, which to the process, and what no
//! two bridges may have in common.
//!
//! A key in a bridge's table overrides the same key outside of the tables. The keys are those of
//! the flags; only the owner of each key is listed here.

use std::collections::HashMap;

use channel::Endpoint;
use clap::{Args, Command, FromArgMatches};

use super::SwitchArgs;
use super::problem::Problem;

/// The owner of a key that may not stand both outside of the tables and in them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    OneBridge,
    Process,
}

impl SwitchArgs {
    /// The options of each bridge: these themselves where there are no tables.
    pub(super) fn bridges(&self) -> Vec<Self> {
        if self.bridge.is_empty() {
            return vec![self.clone()];
        }
        let shared = Self { bridge: Vec::new(), ..self.clone() };
        let tables = self.bridge.iter().zip(0..);
        let whole = tables.map(|(table, index)| {
            let mut bridge = table.clone().over(shared.clone());
            bridge.name.get_or_insert_with(|| format!("br{index}"));
            bridge
        });
        whole.collect()
    }

    /// The options of a bridge of this name that comes to a running switch, of words `KEY=VALUE`
    /// with the keys of the file. What is not given has its default, not what other bridges have.
    ///
    /// # Errors
    /// Keys that there are not, values that are wrong, and what is not a bridge's.
    pub(crate) fn of_bridge(name: &str, words: &[String]) -> Result<Self, String> {
        if let Some(word) = words.iter().find(|word| word.starts_with('-')) {
            return Err(format!("{word}: options are written as in the file, port=tap:vm1"));
        }
        let flags = words.iter().map(|word| format!("--{word}"));
        let command = Self::augment_args(Command::new("add-bridge")).no_binary_name(true);
        let read = command.disable_help_flag(true).try_get_matches_from(flags);
        let matches = read.map_err(|error| without_usage(&error.to_string()))?;
        let args = Self::from_arg_matches(&matches).map_err(|error| error.to_string())?;
        let whole = args.key_of_the_process();
        let whole = whole.or(args.config.is_some().then_some("config"));
        let whole = whole.or(args.show_rights.then_some("show-rights"));
        if let Some(key) = whole.or(args.check_config.then_some("check-config")) {
            return Err(format!("{key} is of the whole switch, not of a bridge"));
        }
        match &args.name {
            Some(other) if other != name => {
                Err(format!("name={other} and the bridge {name} are two; leave name away"))
            }
            _ if name.is_empty() => Err("a bridge needs a name".to_owned()),
            _ => Ok(Self { name: Some(name.to_owned()), ..args }),
        }
    }

    /// A key that is given here and makes sense for one bridge only.
    pub(super) fn key_of_one_bridge(&self) -> Option<&'static str> {
        self.given(Owner::OneBridge)
    }

    /// A key that is given here and is the whole process's.
    pub(super) fn key_of_the_process(&self) -> Option<&'static str> {
        self.given(Owner::Process)
    }

    /// A key of this owner that is given here.
    fn given(&self, of: Owner) -> Option<&'static str> {
        let mut given = self.owned().into_iter();
        given.find_map(|(key, owner, is_given)| (owner == of && is_given).then_some(key))
    }

    /// The keys that are not any bridge's, and whether they are given here. Every field is named,
    /// so that a new one is not forgotten here.
    fn owned(&self) -> [(&'static str, Owner, bool); 16] {
        use Owner::{OneBridge, Process};
        // One bridge's; the whole process's; what may stand outside of the tables and in them;
        // what is no key.
        #[rustfmt::skip]
        let Self {
            dpid, name, port, local, vlan, mirror, queue, rate, listen,
            control, metrics, state, workers, worker_cores, poll, max_memory,
            controller: _, private_key: _, certificate: _, ca_cert: _, check_peer_name: _,
            auxiliary: _, protocols: _, fail_mode: _, tables: _, max_entries: _,
            inactivity_probe: _, max_backoff: _, packet_in_queue: _, packet_in_rate: _, queues: _,
            packet_in_burst: _, forward: _, caches: _, mfr_desc: _, hw_desc: _, sw_desc: _,
            serial_num: _, dp_desc: _,
            bridge: _, config: _, check_config: _, show_rights: _, json: _,
        } = self;
        [
            ("dpid", OneBridge, dpid.is_some()),
            ("name", OneBridge, name.is_some()),
            ("port", OneBridge, !port.is_empty()),
            ("local", OneBridge, local.is_some()),
            ("vlan", OneBridge, !vlan.is_empty()),
            ("mirror", OneBridge, !mirror.is_empty()),
            ("queue", OneBridge, !queue.is_empty()),
            ("rate", OneBridge, !rate.is_empty()),
            ("listen", OneBridge, !listen.is_empty()),
            ("control", Process, control.is_some()),
            ("metrics", Process, metrics.is_some()),
            ("state", Process, state.is_some()),
            ("workers", Process, workers.is_some()),
            ("worker-cores", Process, !worker_cores.is_empty()),
            ("poll", Process, poll.is_some()),
            ("max-memory", Process, max_memory.is_some()),
        ]
    }

    /// Checks every bridge, and the bridges against each other.
    pub(super) fn check(&self, bridges: &[Self]) -> Result<(), Problem> {
        if self.bridge.is_empty() {
            return self.check_one();
        }
        if let Some(key) = self.key_of_one_bridge() {
            let message = "is one bridge's: where there are tables [[bridge]] it stands in them";
            return Err(Problem::new(key, message));
        }
        for (index, bridge) in bridges.iter().enumerate() {
            let of_bridge = |problem| Problem { bridge: Some(index), ..problem };
            bridge.check_one().map_err(of_bridge)?;
        }
        check_apart(bridges)
    }
}

/// The error about flags, in a line.
fn without_usage(error: &str) -> String {
    let first = error.split("\n\n").next().unwrap_or(error);
    let line: Vec<&str> = first.trim_start_matches("error: ").split_whitespace().collect();
    line.join(" ")
}

/// No two bridges may have a name, a datapath id, a port or a listener in common.
fn check_apart(bridges: &[SwitchArgs]) -> Result<(), Problem> {
    let mut taken: HashMap<String, usize> = HashMap::new();
    let name_of = |index: usize| bridges.get(index).and_then(|bridge| bridge.name.as_deref());
    for (bridge, index) in bridges.iter().zip(0..) {
        for (thing, key, place) in claims(bridge) {
            let earlier = *taken.entry(format!("{key}={thing}")).or_insert(index);
            // What one bridge has twice is not about bridges.
            if earlier == index {
                continue;
            }
            let whose = name_of(earlier).unwrap_or_default();
            let message = match key {
                "name" => format!("{thing} is another bridge's name too; choose another"),
                _ => format!("{thing} is bridge {whose}'s too; every bridge needs its own"),
            };
            let key = if key == "port" && place.is_none() { "local" } else { key };
            return Err(Problem { bridge: Some(index), key, index: place, message });
        }
    }
    Ok(())
}

/// The things that a bridge has alone, each with its key and its place in the key's list.
fn claims(bridge: &SwitchArgs) -> Vec<(String, &'static str, Option<usize>)> {
    let mut claims = Vec::new();
    if let Some(name) = &bridge.name {
        claims.push((name.clone(), "name", None));
    }
    if let Some(dpid) = bridge.dpid {
        claims.push((dpid.0.to_string(), "dpid", None));
    }
    let ports = bridge.port.iter().zip(0..).map(|(port, place)| (&port.spec, Some(place)));
    for (spec, place) in ports.chain(bridge.local.iter().map(|spec| (spec, None))) {
        claims.extend(spec.exclusive().map(|device| (device, "port", place)));
    }
    for (listen, place) in bridge.listen.iter().zip(0..) {
        let endpoint = listen.0.clone().into_passive();
        // Where the kernel chooses, it chooses a free one for each.
        let is_chosen = matches!(
            endpoint,
            Endpoint::PassiveTcp { port: 0, .. } | Endpoint::PassiveSsl { port: 0, .. }
        );
        if !is_chosen {
            claims.push((endpoint.to_string(), "listen", Some(place)));
        }
    }
    claims
}

#[cfg(test)]
mod tests {
    use openflow::Version;

    use crate::config::parse_config;

    #[test]
    fn a_table_wins_over_what_stands_outside_and_names_are_made() {
        let text = r#"
            tables = 9
            controller = ["tcp:192.0.2.1"]
            workers = 2
            [[bridge]]
            dpid = "a1"
            port = ["null:a"]
            [[bridge]]
            name = "right"
            tables = 3
            controller = ["tcp:192.0.2.2", "tcp:192.0.2.3"]
            fail-mode = "standalone"
        "#;
        let config = parse_config(text).unwrap().resolve().unwrap();
        let found: Vec<_> = config
            .bridges
            .iter()
            .map(|b| (b.name.as_str(), b.tables, b.controllers.len(), b.ports.len()))
            .collect();
        assert_eq!(found, [("br0", 9, 1, 1), ("right", 3, 2, 0)]);
        assert_eq!((config.workers, config.bridges[1].fail_mode.name()), (2, "standalone"));
    }

    #[test]
    fn what_a_table_says_is_empty_or_false_wins_too() {
        let text = r#"
            controller = ["tcp:192.0.2.1"]
            protocols = ["OpenFlow13"]
            check-peer-name = true
            [[bridge]]
            [[bridge]]
            controller = []
            protocols = []
            check-peer-name = false
        "#;
        let config = parse_config(text).unwrap().resolve().unwrap();
        let found = config.bridges.iter();
        let found = found.map(|b| (b.controllers.len(), b.versions.len(), b.check_peer_name));
        assert_eq!(found.collect::<Vec<_>>(), [(1, 1, true), (0, Version::USUAL.len(), false)]);
    }

    #[test]
    fn faults_name_line_bridge_and_key() {
        let two = |first: &str, second: &str| {
            format!("[[bridge]]\n{first}\n[[bridge]]\nname = \"x\"\n{second}\n")
        };
        let cases = [
            (two("", "tabels = 3"), "5:1: bridge x: tabels: unknown key; did you mean tables?"),
            (two("name = \"tcp\"", ""), "2:8: bridge tcp: name: `tcp` is a word of flow entries"),
            (two("name = \"a b\"", ""), "2:8: bridge a b: name: must be letters"),
            (two("", "tables = 0"), "5:10: bridge x: tables: must be 1 to 254"),
            (two("", "tables = \"a\""), "5:10: bridge x: tables: invalid type"),
            (two("", "port = [\n\"null:a\",\n\"nul:b\"\n]"), "7:1: bridge x: port: unknown port"),
            (two("name = \"x\"", ""), "4:8: bridge x: name: x is another bridge's name too"),
            (two("dpid = \"5\"", "dpid = \"0x05\""), "5:8: bridge x: dpid: 0000000000000005 is "),
            (
                two("port = [\"tap:t\"]", "port = [\"null:a\", \"tap:t\"]"),
                "5:19: bridge x: port: t is bridge br0's too; every bridge needs its own",
            ),
            (two("port = [\"tap:t\"]", "local = \"tap:t\""), "5:9: bridge x: local: t is bridge"),
            (
                two("listen = [\"ptcp:6633\"]", "listen = [\"ptcp:6633\"]"),
                "5:11: bridge x: listen: ptcp:6633",
            ),
            (two("", "workers = 2"), "5:11: bridge x: workers: is the whole process's"),
            (two("", "controller = [\"ssl:h\"]"), "5:15: bridge x: controller: TLS needs "),
            (
                format!("controller = [\"ssl:h\"]\n{}", two("", "")),
                "1:15: bridge br0: controller: TLS needs private-key",
            ),
            (format!("dpid = \"1\"\n{}", two("", "")), "1:8: dpid: is one bridge's"),
            (two("", "[[bridge.bridge]]"), "5:10: bridge x: bridge: unknown key"),
            ("bridge = 3".to_owned(), "1:10: bridge: "),
            ("bridge = [3]".to_owned(), "1:11: bridge: "),
            ("[bridge]\nname = \"a\"".to_owned(), "1:1: bridge: is a list of tables"),
        ];
        for (text, expected) in cases {
            let error = parse_config(&text).map(|_| ()).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{text} gives {error:?}, not {expected:?}");
        }
    }

    #[test]
    fn what_may_be_common_is_taken() {
        let text = r#"
            [[bridge]]
            port = ["null:a", "memory:w?end=a"]
            listen = ["ptcp:0:127.0.0.1"]
            [[bridge]]
            port = ["null:a", "memory:w?end=b"]
            listen = ["ptcp:0:127.0.0.1"]
        "#;
        assert_eq!(parse_config(text).unwrap().resolve().unwrap().bridges.len(), 2);
    }
}
