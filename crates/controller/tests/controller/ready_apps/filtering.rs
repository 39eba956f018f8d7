//! Firewall and QoS: the first rule that a packet meets decides, in both versions.

use super::fabric::{Fabric, arp_reply, arp_request, ip, mac, udp};
use controller::AppList;
use controller::apps::{AppConfig, AppName, LearningSwitch};
use openflow::Version;
use packet::build::{FrameBuilder, Ipv4, Tcp};

const RULES: &str = r#"
    [firewall]
    default = "deny"

    [[firewall.rule]]
    match = "arp"
    action = "allow"

    [[firewall.rule]]
    match = "udp,nw_src=10.0.0.3"
    action = "deny"

    [[firewall.rule]]
    match = "udp,tp_dst=53"
    action = "allow"
"#;

fn firewall(version: Version) -> Fabric {
    let mut fabric = Fabric::new(&[AppName::Firewall], RULES);
    fabric.add_switch(1, 4, version);
    for host in 1..=4 {
        fabric.send((1, host), &arp_request(host, host % 4 + 1));
    }
    for host in 1..=4 {
        fabric.send((1, host), &arp_reply(host, host % 4 + 1));
    }
    fabric.arrived();
    fabric
}

fn tcp(from: u32, to: u32, dst_port: u16) -> Vec<u8> {
    FrameBuilder::ethernet(mac(to.into()), mac(from.into()))
        .ipv4(Ipv4::new(ip(from), ip(to)))
        .tcp(Tcp::new(4_000, dst_port))
        .fill_to(60)
        .build()
}

#[test]
fn the_first_rule_decides_and_the_rest_is_denied() {
    for &version in Version::ALL {
        let mut fabric = firewall(version);
        for _ in 0..3 {
            fabric.send((1, 1), &udp(1, 2, 53));
            assert_eq!(fabric.arrived_at(), [(1, 2)], "{version}");
            for denied in [udp(3, 2, 53), udp(1, 2, 54), tcp(1, 2, 53)] {
                fabric.send((1, 1), &denied);
                assert_eq!(fabric.arrived_at(), [], "{version}");
            }
        }
        let before = fabric.packet_ins;
        for frame in [udp(1, 2, 53), udp(3, 2, 53), udp(1, 2, 54), tcp(1, 2, 53)] {
            fabric.send((1, 1), &frame);
        }
        assert_eq!(fabric.packet_ins, before, "entries decide");
        assert_eq!(fabric.errors, []);
    }
}

#[test]
fn a_rule_that_a_version_cannot_say_lets_nothing_through() {
    let settings = r#"
        [firewall]
        default = "allow"
        [[firewall.rule]]
        match = "ipv6,ipv6_src=2001:db8::1"
        action = "deny"
    "#;
    // The command line refuses such a list; an app of somebody's own may stand there all the same.
    let behind = AppList::one(LearningSwitch::default);
    let mut fabric = Fabric::with(&[AppName::Firewall], settings, behind);
    fabric.add_switch(1, 4, Version::V1_0);
    fabric.send((1, 1), &udp(1, 2, 53));
    assert_eq!(fabric.arrived(), []);
}

#[test]
fn rules_may_be_for_one_switch() {
    let settings = r#"
        [firewall]
        default = "allow"
        [[firewall.rule]]
        switch = "0000000000000001"
        match = "udp"
        action = "deny"
    "#;
    for &version in Version::ALL {
        let mut fabric = Fabric::new(&[AppName::Firewall], settings);
        fabric.add_switch(1, 2, version);
        fabric.add_switch(2, 2, version);
        fabric.send((1, 1), &udp(1, 2, 53));
        fabric.send((2, 1), &udp(1, 2, 53));
        assert_eq!(fabric.arrived_at(), [(2, 2)]);
    }
}

const QUALITY: &str = r#"
    [[qos.rule]]
    match = "udp,tp_dst=5001"
    queue = 1
    dscp = 46
"#;

fn learned(app: AppName, settings: &str, version: Version) -> Fabric {
    let mut fabric = Fabric::new(&[app], settings);
    fabric.add_switch(1, 2, version);
    fabric.send((1, 1), &arp_request(1, 2));
    fabric.send((1, 2), &arp_reply(2, 1));
    fabric.arrived();
    fabric
}

#[test]
fn packets_of_a_rule_get_its_queue_and_dscp_and_others_do_not() {
    for &version in Version::ALL {
        let mut fabric = learned(AppName::Qos, QUALITY, version);
        for _ in 0..2 {
            fabric.send((1, 1), &udp(1, 2, 5_001));
            fabric.send((1, 1), &udp(1, 2, 5_002));
            let tos: Vec<_> = fabric.arrived().iter().map(|(at, frame)| (*at, frame[15])).collect();
            assert_eq!(tos, [((1, 2), 0), ((1, 2), 46 << 2)], "{version}");
        }
        let queue = if version.has_pipeline() { "set_queue:1" } else { "enqueue:2:1" };
        assert_eq!(fabric.count_entries(1, queue), 1, "{version} {:?}", fabric.entries(1));
        assert_eq!(fabric.errors, []);
    }
}

#[test]
fn a_meter_drops_what_is_above_its_rate_and_1_0_is_refused() {
    let settings = r#"
        [[qos.meter]]
        id = 7
        rate-pps = 10
        burst = 10

        [[qos.rule]]
        match = "udp"
        meter = 7
    "#;
    let mut fabric = learned(AppName::Qos, settings, Version::V1_3);
    for _ in 0..100 {
        fabric.send((1, 1), &udp(1, 2, 5_001));
    }
    let through = fabric.arrived().len();
    assert!((1..=20).contains(&through), "{through} of a burst of 100");
    for _ in 0..100 {
        fabric.send((1, 1), &arp_reply(1, 2));
    }
    assert_eq!(fabric.arrived().len(), 100, "others are not metered");
    assert_eq!(fabric.errors, []);

    let mut fabric = Fabric::new(&[AppName::Qos], settings);
    fabric.add_switch(1, 2, Version::V1_0);
    fabric.send((1, 1), &udp(1, 2, 5_001));
    assert_eq!(fabric.arrived(), []);
}

#[test]
fn faults_in_the_settings_are_named_with_line_key_and_remedy() {
    for (text, parts) in [
        ("[fire]\n", &["1:", "fire", "firewall"][..]),
        ("[firewall]\ndefault = \"perhaps\"\n", &["2:", "default", "allow", "deny"]),
        ("[firewall]\n", &["1:", "default"]),
        (
            "[firewall]\ndefault = \"deny\"\n[[firewall.rule]]\nmatch = \"tp_dst=80\"\n\
             action = \"deny\"\n",
            &["4:", "match", "tp_dst"],
        ),
        (
            "[firewall]\ndefault = \"deny\"\n[[firewall.rule]]\nmatch = \"arp\"\n\
             actions = \"deny\"\n",
            &["5:", "actions", "action"],
        ),
        ("[[qos.rule]]\nmatch = \"udp\"\n", &["1:", "qos.rule", "queue", "meter", "dscp"]),
        ("[[qos.rule]]\nmatch = \"arp\"\ndscp = 4\n", &["1:", "dscp", "ip"]),
        ("[[qos.rule]]\nmatch = \"udp\"\nmeter = 4\n", &["1:", "no meter 4"]),
        ("[[qos.rule]]\nmatch = \"udp\"\nqueue = -4\n", &["3:", "queue"]),
        ("[traffic-monitor]\ninterval-s = \"x\"\n", &["2:", "interval-s", "u16"]),
        ("[[patch-panel.patch]]\nswitch = \"xyz\"\nports = [1, 2]\n", &["2:", "hexadecimal"]),
        ("[[patch-panel.patch]]\nswitch = 1\nports = [1, 1]\n", &["1:", "in a patch already"]),
        ("[[patch-panel.patch]]\nswitch = 1\nports = [1, 2, 3]\n", &["1:", "ports", "two"]),
        ("[load-balancer]\nservice = \"tcp:0443\"\n", &["2:", "service", "tcp:PORT", "or 443"]),
        ("[firewall\n", &["1:"]),
    ] {
        let error = AppConfig::parse(text).unwrap_err().to_string();
        for part in parts {
            assert!(error.contains(part), "{part:?} is not in {error:?} about {text:?}");
        }
    }
}
