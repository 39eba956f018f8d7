//! Namespaces, veth pairs, addresses, routes and shaping, for real and as root. Everything is made
//! in namespaces without a name, so that nothing is left however a test ends.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::time::{Duration, Instant};

use netdev::sys::ethtool::Ethtool;
use netdev::sys::link::{Rtnl, VethEnd, VethPair, disable_ipv6, quiet_ipv6};
use netdev::sys::netns::Namespace;
use netdev::sys::qdisc::Tbf;

const MAC_A: [u8; 6] = [2, 0, 0, 0, 0, 0xa];
const MAC_B: [u8; 6] = [2, 0, 0, 0, 0, 0xb];

fn v4(last: u8) -> IpAddr {
    Ipv4Addr::new(10, 9, 0, last).into()
}

fn v6(last: u16) -> IpAddr {
    Ipv6Addr::new(0xfd00, 9, 0, 0, 0, 0, 0, last).into()
}

/// Two hosts joined by `va` - `vb`, both up, with addresses of both families.
struct Pair {
    a: Namespace,
    b: Namespace,
    rtnl_a: Rtnl,
    rtnl_b: Rtnl,
}

fn pair() -> Pair {
    let a = Namespace::new().expect("making a network namespace needs root");
    let b = Namespace::new().expect("making a network namespace needs root");
    let rtnl_a = Rtnl::open_in(&a).unwrap();
    let rtnl_b = Rtnl::open_in(&b).unwrap();
    let here = VethEnd { mac: Some(MAC_A), mtu: Some(1_600), ..VethEnd::new("va") };
    let there = VethEnd { mac: Some(MAC_B), mtu: Some(1_600), ..VethEnd::new("vb") };
    rtnl_a.add_veth(&VethPair { here, there, there_in: Some(&b) }).unwrap();
    for (ns, rtnl, name, last) in [(&a, &rtnl_a, "va", 1), (&b, &rtnl_b, "vb", 2)] {
        ns.enter(|| quiet_ipv6(name)).unwrap().unwrap();
        rtnl.set_up(name, true).unwrap();
        rtnl.set_up("lo", true).unwrap();
        rtnl.add_address(name, v4(last), 24).unwrap();
        rtnl.add_address(name, v6(u16::from(last)), 64).unwrap();
    }
    Pair { a, b, rtnl_a, rtnl_b }
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !done() {
        assert!(Instant::now() < deadline, "waited in vain for: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
#[ignore = "needs root"]
fn a_pair_is_as_ordered_and_carries_both_families() {
    let pair = pair();
    let link = pair.rtnl_a.link("va").unwrap();
    assert_eq!((link.mac, link.mtu, link.up), (MAC_A, 1_600, true));
    assert_eq!(link.kind, "veth");
    until("carrier", || pair.rtnl_b.link("vb").unwrap().carrier);
    for (from, to) in [(v4(1), v4(2)), (v6(1), v6(2))] {
        let receiver = pair.b.enter(|| UdpSocket::bind((to, 5_000)).unwrap()).unwrap();
        let sender = pair.a.enter(|| UdpSocket::bind((from, 0)).unwrap()).unwrap();
        receiver.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        sender.send_to(b"through", (to, 5_000)).unwrap();
        let mut bytes = [0; 16];
        let (len, peer) = receiver.recv_from(&mut bytes).unwrap();
        assert_eq!(&bytes[..len], b"through");
        assert_eq!(peer.ip(), from);
    }
    assert!(pair.rtnl_b.link("vb").unwrap().stats.rx_packets > 0);
}

#[test]
#[ignore = "needs root"]
fn orders_that_cannot_be_carried_out_say_what_was_asked() {
    let ns = Namespace::new().expect("needs root");
    let rtnl = Rtnl::open_in(&ns).unwrap();
    let error = rtnl.link("nothere").unwrap_err();
    assert_eq!(error.source.raw_os_error(), Some(19), "{error}");
    assert!(error.to_string().contains("nothere"));
    let veth = |a, b| VethPair { here: VethEnd::new(a), there: VethEnd::new(b), there_in: None };
    rtnl.add_veth(&veth("x0", "x1")).unwrap();
    let error = rtnl.add_veth(&veth("x0", "x2")).unwrap_err();
    assert_eq!(error.source.kind(), std::io::ErrorKind::AlreadyExists, "{error}");
    assert!(rtnl.set_up("x9", true).is_err());
    rtnl.delete("x0").unwrap();
    assert!(rtnl.link("x1").is_err(), "the other end goes too");
}

#[test]
#[ignore = "needs root"]
fn routes_neighbours_and_changes_are_taken() {
    let pair = pair();
    pair.rtnl_a.add_route("va", (Ipv4Addr::UNSPECIFIED.into(), 0), Some(v4(2))).unwrap();
    pair.rtnl_a.add_route("va", (Ipv4Addr::new(10, 77, 0, 0).into(), 16), None).unwrap();
    pair.rtnl_a.add_route("va", (Ipv6Addr::UNSPECIFIED.into(), 0), Some(v6(2))).unwrap();
    pair.rtnl_a.add_neighbour("va", v4(9), [2, 0, 0, 0, 0, 9]).unwrap();
    pair.rtnl_a.add_neighbour("va", v6(9), [2, 0, 0, 0, 0, 9]).unwrap();
    let routes = pair.a.enter(|| std::fs::read_to_string("/proc/thread-self/net/route"));
    let routes = routes.unwrap().unwrap();
    assert_eq!(routes.lines().filter(|l| l.starts_with("va")).count(), 3, "{routes}");
    pair.rtnl_a.set_mtu("va", 1_400).unwrap();
    pair.rtnl_a.set_tx_queue_len("va", 77).unwrap();
    pair.rtnl_a.set_mac("va", [2, 1, 1, 1, 1, 1]).unwrap();
    let link = pair.rtnl_a.link("va").unwrap();
    assert_eq!((link.mtu, link.mac), (1_400, [2, 1, 1, 1, 1, 1]));
    pair.rtnl_a.move_to("va", &pair.b).unwrap();
    assert!(pair.rtnl_b.link("va").is_ok());
}

#[test]
#[ignore = "needs root"]
fn a_token_bucket_holds_back_and_counts_its_drops() {
    let pair = pair();
    let tbf = Tbf { limit_bytes: 20_000, ..Tbf::ethernet(1_000_000, 10) };
    pair.rtnl_a.set_tbf("va", &tbf).unwrap();
    let sender = pair.a.enter(|| UdpSocket::bind((v4(1), 0)).unwrap()).unwrap();
    pair.rtnl_a.add_neighbour("va", v4(2), MAC_B).unwrap();
    // 200 kB into a queue of 20 kB that empties at 125 kB/s.
    for _ in 0..200 {
        let _ = sender.send_to(&[0; 1_000], (v4(2), 5_000));
    }
    let qdisc = pair.rtnl_a.root_qdisc("va").unwrap();
    assert_eq!(qdisc.kind, "tbf");
    assert!(qdisc.overlimits > 0, "{qdisc:?}");
    assert!(qdisc.drops > 0, "{qdisc:?}");
    pair.rtnl_a.set_tbf("va", &Tbf::ethernet(40_000_000_000, 1)).unwrap();
    pair.rtnl_a.reset_qdisc("va").unwrap();
    assert_ne!(pair.rtnl_a.root_qdisc("va").map(|q| q.kind).unwrap_or_default(), "tbf");
}

#[test]
#[ignore = "needs root"]
fn a_device_without_ipv6_says_nothing_by_itself() {
    let a = Namespace::new().expect("needs root");
    let rtnl = Rtnl::open_in(&a).unwrap();
    a.enter(|| disable_ipv6("default")).unwrap().unwrap();
    let veth =
        VethPair { here: VethEnd::new("x0"), there: VethEnd::new("x1"), there_in: None };
    rtnl.add_veth(&veth).unwrap();
    rtnl.set_up("x0", true).unwrap();
    rtnl.set_up("x1", true).unwrap();
    until("carrier", || rtnl.link("x1").unwrap().carrier);
    let addresses = a.enter(|| std::fs::read_to_string("/proc/thread-self/net/if_inet6"));
    assert_eq!(addresses.unwrap().unwrap_or_default(), "");
}

#[test]
#[ignore = "needs root"]
fn offloads_are_read_and_switched() {
    let pair = pair();
    let ethtool = Ethtool::open_in(&pair.a).unwrap();
    let on = |name: &str| {
        ethtool.features("va").unwrap().into_iter().find(|f| f.name == name).unwrap().active
    };
    assert!(on("tx-tcp-segmentation") && on("tx-checksum-ip-generic"));
    let changed = ethtool.switch_off_offloads("va").unwrap();
    assert!(changed.iter().any(|name| name == "tx-checksum-ip-generic"), "{changed:?}");
    assert!(!on("tx-tcp-segmentation") && !on("tx-checksum-ip-generic"));
    ethtool.set_features("va", &[("tx-checksum-ip-generic", true)]).unwrap();
    assert!(on("tx-checksum-ip-generic"));
    assert!(ethtool.set_features("va", &[("tx-no-such-thing", true)]).is_err());
    assert!(ethtool.features("nothere").unwrap_err().to_string().contains("nothere"));
    let settings = ethtool.link_settings("va").unwrap();
    assert_eq!((settings.speed_bps, settings.full_duplex), (10_000_000_000, Some(true)));
}
