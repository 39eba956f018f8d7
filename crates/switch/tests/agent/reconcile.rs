//! The wanted configuration as a part of the process gives it: what is refused alone or stops the
//! whole, what moves, and many bridges at once.

use std::sync::mpsc;

use openflow::{PortNo, Version};
use switch::config::{BridgeConfig, Config, PortConfig, PortSet, number_ports};
use switch::reconcile::{Item, Manner, Reconciled, Refused, RunningSwitch, TablesRule};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::harness::{DEADLINE, Host, Switch, add_flow, frame, from_to, until};
use crate::veth::{add_veth, in_namespace};

type Edit = Box<dyn FnOnce(&mut Config) + Send>;
type Answer = (Result<Reconciled, Vec<Refused>>, Config);
type Request = (Manner, Edit, mpsc::Sender<Answer>);

/// A switch that the test changes.
struct Driven {
    switch: Switch,
    requests: UnboundedSender<Request>,
}

impl Driven {
    /// Begins without any bridge.
    fn start(toml: &str) -> Self {
        let (requests, mut received) = unbounded_channel::<Request>();
        let drive = |running: RunningSwitch| async move {
            while let Some((manner, edit, answer)) = received.recv().await {
                let made = running.reconcile(manner, |config| {
                    let mut wanted = config.clone();
                    edit(&mut wanted);
                    Ok(wanted)
                });
                let made = made.await;
                answer.send((made, running.config())).unwrap();
            }
        };
        let switch = Switch::driven(|config| config.bridges.clear(), toml, drive);
        Self { switch, requests }
    }

    fn edit(&self, manner: Manner, edit: impl FnOnce(&mut Config) + Send + 'static) -> Answer {
        let (answer, answered) = mpsc::channel();
        assert!(self.requests.send((manner, Box::new(edit), answer)).is_ok());
        answered.recv_timeout(DEADLINE).unwrap()
    }

    /// An edit of which nothing is refused.
    fn apply(&self, edit: impl FnOnce(&mut Config) + Send + 'static) -> Reconciled {
        let outcome = self.edit(Manner::DATABASE, edit).0.unwrap();
        assert_eq!(outcome.refused, []);
        outcome
    }

    /// A bridge of these lines, which listens at the socket of its name.
    fn bridge(&self, name: &str, toml: &str) -> BridgeConfig {
        let socket = self.switch.socket(name);
        let text = format!("name = \"{name}\"\nlisten = [\"punix:{}\"]\n{toml}", socket.display());
        switch::parse_config(&text).unwrap().resolve().unwrap().bridges.remove(0)
    }
}

fn names(config: &Config) -> Vec<&str> {
    config.bridges.iter().map(|bridge| bridge.name.as_str()).collect()
}

fn ports(config: &Config, bridge: &str) -> Vec<String> {
    let found = config.bridges.iter().find(|found| found.name == bridge).unwrap();
    found.ports.iter().map(|port| format!("{}={}", port.number, port.spec)).collect()
}

#[test]
fn a_bad_part_keeps_the_rest_from_nothing_or_from_all() {
    let driven = Driven::start("");
    let why = driven.switch.ctl_ends(1, &["ports"]).1;
    assert!(why.contains("the switch has no bridge; add one by"), "{why}");
    let good = driven.bridge("good", "dpid = \"1\"\nport = [\"memory:part-a\", \"null:b\"]");
    let bad = driven.bridge("bad", "dpid = \"2\"\nport = [\"pcap:/no/such/file\", \"null:c\"]");
    let same = driven.bridge("same", "dpid = \"1\"");
    let held = driven.bridge("held", "dpid = \"3\"\nport = [\"5=memory:part-a\", \"null:d\"]");
    let all = [good, bad, same, held];
    let wanted = all.clone();
    let (whole, config) = driven.edit(Manner::OWN, move |config| config.bridges.extend(wanted));
    let refused = whole.unwrap_err();
    assert!(
        refused[0].to_string().starts_with("bridge bad: port 1: pcap:/no/such/file"),
        "{refused:?}"
    );
    assert_eq!(names(&config), Vec::<&str>::new());
    let wanted = all.clone();
    let wants = move |config: &mut Config| config.bridges = wanted.to_vec();
    for round in 0..2 {
        let (outcome, config) = driven.edit(Manner::DATABASE, wants.clone());
        let Reconciled { changes, refused } = outcome.unwrap();
        let mut items: Vec<_> =
            refused.iter().map(|one| (one.bridge.as_deref().unwrap(), &one.item)).collect();
        let expected = [
            ("bad", &Item::Port(PortNo(1))),
            ("held", &Item::Port(PortNo(5))),
            ("same", &Item::Bridge),
        ];
        items.sort_by_key(|(name, _)| *name);
        assert_eq!(items, expected, "what is refused is tried again: round {round}");
        for why in ["is the datapath id of bridge good", "port 1 of bridge good already"] {
            assert!(refused.iter().any(|one| one.why.contains(why)), "{refused:?}");
        }
        assert_eq!(changes.len(), if round == 0 { 3 } else { 0 }, "{changes:?}");
        assert_eq!(names(&config), ["good", "bad", "held"]);
        assert_eq!(ports(&config, "bad"), ["2=null:c"]);
        assert_eq!(ports(&config, "held"), ["1=null:d"]);
    }
    driven.switch.controller_at("bad", Version::V1_3).barrier();
    // The device that one gives up is the other's in the same change.
    let outcome = driven.apply(move |config| {
        config.bridges = all.into_iter().filter(|bridge| bridge.name == "held").collect();
    });
    let texts = outcome.changes.iter().map(|one| (one.bridge.as_str(), one.change));
    assert_eq!(
        texts.collect::<Vec<_>>(),
        [("good", "removed"), ("bad", "removed"), ("held", "port added")]
    );
    driven.switch.stop();
}

/// A port gets another number with its device open, and no frame that waits there is lost.
#[test]
fn wanted_numbers_move_ports() {
    let driven = Driven::start("");
    let mut hosts = ["a", "b"].map(|end| Host::open(&format!("memory:moved-{end}?end=b")));
    let bridge =
        driven.bridge("br", "port = [\"memory:moved-a\", \"memory:moved-b\", \"3=null:c\"]");
    driven.apply(move |config| config.bridges.push(bridge));
    let renumber = |wanted: [Option<u32>; 3]| {
        move |config: &mut Config| {
            let bridge = &mut config.bridges[0];
            let ports: Vec<_> = ["memory:moved-a", "memory:moved-b", "null:c"]
                .into_iter()
                .zip(wanted)
                .map(|(spec, wanted)| (wanted.map(PortNo), spec.parse().unwrap()))
                .collect();
            let numbers = number_ports(&bridge.ports, &ports, PortNo::MAX);
            bridge.ports.clear();
            for (number, (_, spec)) in numbers.into_iter().zip(ports) {
                let number = number.unwrap();
                bridge.add_port(PortConfig { number, spec }, PortSet::default());
            }
        }
    };
    assert_eq!(driven.apply(renumber([None; 3])).changes, []);
    let moved = driven.apply(renumber([Some(2), Some(1), None]));
    assert_eq!(moved.changes.len(), 4, "{moved:?}");
    let mut controller = driven.switch.controller_at("br", Version::V1_3);
    controller.send(&from_to(1, 2));
    controller.barrier();
    hosts[1].send(&frame(7));
    assert_eq!(hosts[0].receive(), frame(7));
    driven.switch.stop();
}

/// A port without a device keeps its number, and so does the one that wanted it.
#[test]
#[ignore = "needs root"]
fn no_number_is_given_twice_where_a_port_cannot_move() {
    in_namespace(|rtnl| {
        add_veth(rtnl, "gone1", "far1");
        let driven = Driven::start("");
        let bridge = driven.bridge("br", "port = [\"af_packet:gone1\", \"null:b\", \"null:c\"]");
        driven.apply(move |config| config.bridges.push(bridge));
        rtnl.delete("gone1").unwrap();
        until("no device", || {
            (driven.switch.records(&["ports"])[0]["exists"] == false).then_some(())
        });
        let (outcome, config) = driven.edit(Manner::DATABASE, |config| {
            let bridge = &mut config.bridges[0];
            for (port, number) in bridge.ports.iter_mut().zip([2, 3, 1]) {
                port.number = PortNo(number);
            }
            bridge.ports.sort_by_key(|port| port.number);
        });
        let Reconciled { changes, refused } = outcome.unwrap();
        let items: Vec<_> = refused.iter().map(|one| one.item.clone()).collect();
        assert_eq!(items, [2, 1, 3].map(|number| Item::Port(PortNo(number))), "{refused:?}");
        assert!(refused[0].why.contains("port 1 has no device now"), "{refused:?}");
        assert!(refused[1].why.contains("port 3 keeps its number: 1 is"), "{refused:?}");
        assert_eq!(changes, []);
        assert_eq!(ports(&config, "br"), ["1=af_packet:gone1", "2=null:b", "3=null:c"]);
        driven.switch.stop();
    });
}

/// Ids go round, and one that is refused keeps its own, so that no other bridge gets that.
#[test]
fn no_datapath_id_is_given_twice_where_one_is_refused() {
    let driven = Driven::start("");
    let bridges: Vec<_> =
        (1..=4).map(|id| driven.bridge(&format!("b{id}"), &format!("dpid = \"{id}\""))).collect();
    driven.apply(move |config| config.bridges = bridges);
    let to = |wanted: [u64; 4]| {
        move |config: &mut Config| {
            for (bridge, id) in config.bridges.iter_mut().zip(wanted) {
                bridge.dpid = Some(openflow::DatapathId(id));
            }
        }
    };
    let ids = |config: &Config| -> Vec<u64> {
        config.bridges.iter().map(|bridge| bridge.dpid.unwrap().0).collect()
    };
    for (wanted, refused, expected) in [
        ([2, 3, 1, 4], vec![], [2, 3, 1, 4]),
        // The last one stays, so the third keeps 1, and the second 3.
        ([3, 1, 4, 4], vec!["b3", "b2", "b1"], [2, 3, 1, 4]),
        ([9, 9, 2, 4], vec!["b2"], [9, 3, 2, 4]),
    ] {
        let (outcome, config) = driven.edit(Manner::DATABASE, to(wanted));
        let outcome = outcome.unwrap();
        let names: Vec<_> =
            outcome.refused.iter().map(|one| one.bridge.as_deref().unwrap()).collect();
        assert_eq!((names, ids(&config)), (refused, expected.to_vec()), "{wanted:?}");
        for (bridge, id) in (1..).zip(expected) {
            let shown = driven.switch.records(&["--bridge", &format!("b{bridge}"), "show"]);
            let features = shown[0].to_string();
            assert!(features.contains(&format!("{id:016x}")), "{wanted:?}: {features}");
        }
    }
    driven.switch.stop();
}

/// A device goes to another bridge, where it cannot be opened in the way that is wanted there.
#[test]
fn a_device_that_another_bridge_cannot_open_comes_back() {
    let driven = Driven::start("");
    let mut hosts = ["a", "b"].map(|end| Host::open(&format!("memory:back-{end}?end=b")));
    let one = driven.bridge("one", "dpid = \"1\"\nport = [\"3=memory:back-a\", \"memory:back-b\"]");
    let two = driven.bridge("two", "dpid = \"2\"\nport = [\"null:x\"]");
    driven.apply(move |config| config.bridges = vec![one, two]);
    let mut controller = driven.switch.controller_at("one", Version::V1_3);
    controller.send(&from_to(1, 3));
    controller.barrier();
    let new = driven.bridge("new", "dpid = \"9\"");
    for is_new in [false, true] {
        let new = new.clone();
        let (outcome, config) = driven.edit(Manner::DATABASE, move |config| {
            config.bridges[0].remove_port(PortNo(3));
            if is_new {
                config.bridges.push(new);
            }
            let spec = "memory:back-a?slots=8&frame_max=99999".parse().unwrap();
            let port = PortConfig { number: PortNo(7), spec };
            config.bridges.last_mut().unwrap().add_port(port, PortSet::default());
        });
        let outcome = outcome.unwrap();
        let [refused] = &outcome.refused[..] else { panic!("{outcome:?}") };
        assert_eq!(refused.item, Item::Port(PortNo(7)));
        assert_eq!(refused.bridge.as_deref(), Some(if is_new { "new" } else { "two" }));
        let back = "; its device is open as before, 3=memory:back-a of bridge one";
        assert!(refused.why.ends_with(back), "{refused}");
        assert_eq!(ports(&config, "one"), ["1=memory:back-b", "3=memory:back-a"]);
        assert_eq!(ports(&config, "two"), ["1=null:x"]);
        hosts[1].send(&frame(7));
        assert_eq!(hosts[0].receive(), frame(7));
    }
    driven.switch.stop();
}

/// The tables go where Open vSwitch's would, and stay in the manner of a file.
#[test]
fn controllers_and_the_fail_mode_flush_the_tables_or_not() {
    let driven = Driven::start("");
    let bridge = driven.bridge("br", "port = [\"null:a\", \"null:b\"]");
    driven.apply(move |config| config.bridges.push(bridge));
    let flows = || driven.switch.ctl(&["dump-flows"]);
    let fill = || {
        let mut controller = driven.switch.controller_at("br", Version::V1_3);
        controller.send(&add_flow(5, openflow::Match::any(), Vec::new()));
        controller.barrier();
        assert!(flows().contains("priority=5"));
    };
    let kept = Manner { tables: TablesRule::Kept, ..Manner::DATABASE };
    let to = |endpoints: &[&str], mode: &str| {
        let controllers: Vec<channel::Endpoint> =
            endpoints.iter().map(|endpoint| endpoint.parse().unwrap()).collect();
        let mode = mode.parse().unwrap();
        move |config: &mut Config| {
            let bridge = &mut config.bridges[0];
            (bridge.controllers, bridge.fail_mode) = (controllers, mode);
        }
    };
    let (a, b) = ("unix:/nobody/a", "unix:/nobody/b");
    let steps = [
        (kept, to(&[a], "secure"), true),
        (kept, to(&[], "secure"), true),
        (Manner::DATABASE, to(&[a], "secure"), false),
        (Manner::DATABASE, to(&[a, b], "secure"), true),
        (Manner::DATABASE, to(&[b], "standalone"), true),
        (Manner::DATABASE, to(&[b], "secure"), true),
        (Manner::DATABASE, to(&[], "secure"), false),
    ];
    for (nth, (manner, edit, stays)) in steps.into_iter().enumerate() {
        fill();
        driven.edit(manner, edit).0.unwrap();
        assert_eq!(flows().contains("priority=5"), stays, "step {nth}");
    }
    // Without a controller to wait for, it is a learning switch at once.
    fill();
    driven.apply(to(&[], "standalone"));
    until("a learning switch", || flows().contains("NORMAL").then_some(()));
    assert!(!flows().contains("priority=5"));
    driven.apply(to(&[], "secure"));
    until("no longer", || (!flows().contains("NORMAL")).then_some(()));
    driven.switch.stop();
}

/// `WEIR_BRIDGES` is another number of bridges, to measure with.
#[test]
fn a_hundred_bridges_come_and_go_in_one_change() {
    let driven = Driven::start("workers = 2");
    let count: u32 = std::env::var("WEIR_BRIDGES").map_or(100, |count| count.parse().unwrap());
    let bridges: Vec<BridgeConfig> = (0..count)
        .map(|n| {
            let ports = format!("port = [\"memory:many-{n}a\", \"memory:many-{n}b\"]");
            driven.bridge(&format!("b{n}"), &format!("dpid = \"{:x}\"\n{ports}", n + 1))
        })
        .collect();
    let last = count - 1;
    let spec = |end: &str| format!("memory:many-{last}{end}?end=b");
    let mut hosts = [Host::open(&spec("a")), Host::open(&spec("b"))];
    for round in 0..2 {
        // The same names, devices and sockets again, with other ids.
        let mut wanted = bridges.clone();
        wanted.iter_mut().for_each(|bridge| bridge.name += &format!("-{round}"));
        let begun = std::time::Instant::now();
        let outcome = driven.apply(move |config| config.bridges = wanted);
        println!("{count} bridges in {:?}", begun.elapsed());
        assert_eq!(outcome.changes.len(), count as usize * (1 + round));
    }
    let mut controller = driven.switch.controller_at(&format!("b{last}"), Version::V1_3);
    controller.send(&from_to(1, 2));
    controller.barrier();
    hosts[0].send(&frame(1));
    assert_eq!(hosts[1].receive(), frame(1));
    let begun = std::time::Instant::now();
    assert_eq!(driven.apply(|_| {}).changes, []);
    println!("nothing in {:?}", begun.elapsed());
    driven.apply(|config| config.bridges.clear());
    assert!(!driven.switch.socket(&format!("b{last}")).exists());
    driven.switch.stop();
}
