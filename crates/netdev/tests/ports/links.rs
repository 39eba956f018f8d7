//! Namespaces, veth pairs, addresses, routes, shaping and offload features.

use std::net::{Ipv4Addr, Ipv6Addr, UdpSocket};
use std::time::Duration;

use netdev::open_text;
use netdev::sys::ethtool::Ethtool;
use netdev::sys::link::{Rtnl, VethEnd, VethPair, disable_ipv6};
use netdev::sys::qdisc::Tbf;
use packet::{Batch, PacketBuf};

use crate::testbed::{MAC_A, MAC_B, namespace, pair, until, v4, v6};

#[test]
#[ignore = "needs root"]
fn a_pair_is_as_ordered_and_carries_both_families() {
    let (a, b) = pair();
    let link = a.rtnl.link("va").unwrap();
    assert_eq!((link.mac, link.mtu, link.up), (MAC_A, 1_600, true));
    assert_eq!(link.kind, "veth");
    until("carrier", || b.rtnl.link("vb").unwrap().carrier);
    for (from, to) in [(v4(1), v4(2)), (v6(1), v6(2))] {
        let receiver = b.ns.enter(|| UdpSocket::bind((to, 5_000)).unwrap()).unwrap();
        let sender = a.ns.enter(|| UdpSocket::bind((from, 0)).unwrap()).unwrap();
        receiver.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        sender.send_to(b"through", (to, 5_000)).unwrap();
        let mut bytes = [0; 16];
        let (len, peer) = receiver.recv_from(&mut bytes).unwrap();
        assert_eq!(&bytes[..len], b"through");
        assert_eq!(peer.ip(), from);
    }
    assert!(b.rtnl.link("vb").unwrap().stats.rx_packets > 0);
}

#[test]
#[ignore = "needs root"]
fn orders_that_cannot_be_carried_out_say_what_was_asked() {
    let ns = namespace();
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
    let (a, b) = pair();
    a.rtnl.add_route("va", (Ipv4Addr::UNSPECIFIED.into(), 0), Some(v4(2))).unwrap();
    a.rtnl.add_route("va", (Ipv4Addr::new(10, 77, 0, 0).into(), 16), None).unwrap();
    a.rtnl.add_route("va", (Ipv6Addr::UNSPECIFIED.into(), 0), Some(v6(2))).unwrap();
    a.rtnl.add_neighbour("va", v4(9), [2, 0, 0, 0, 0, 9]).unwrap();
    a.rtnl.add_neighbour("va", v6(9), [2, 0, 0, 0, 0, 9]).unwrap();
    let routes = a.ns.enter(|| std::fs::read_to_string("/proc/thread-self/net/route"));
    let routes = routes.unwrap().unwrap();
    assert_eq!(routes.lines().filter(|l| l.starts_with("va")).count(), 3, "{routes}");
    a.rtnl.set_mtu("va", 1_400).unwrap();
    a.rtnl.set_mac("va", [2, 1, 1, 1, 1, 1]).unwrap();
    let link = a.rtnl.link("va").unwrap();
    assert_eq!((link.mtu, link.mac), (1_400, [2, 1, 1, 1, 1, 1]));
    a.rtnl.move_to("va", &b.ns).unwrap();
    assert!(b.rtnl.link("va").is_ok());
}

#[test]
#[ignore = "needs root"]
fn a_token_bucket_holds_back_and_counts_its_drops() {
    let (a, _b) = pair();
    let tbf = Tbf { limit_bytes: 20_000, ..Tbf::ethernet(1_000_000, 10) };
    a.rtnl.set_tbf("va", &tbf).unwrap();
    let sender = a.ns.enter(|| UdpSocket::bind((v4(1), 0)).unwrap()).unwrap();
    a.rtnl.add_neighbour("va", v4(2), MAC_B).unwrap();
    // 200 kB into a queue of 20 kB that empties at 125 kB/s.
    for _ in 0..200 {
        let _ = sender.send_to(&[0; 1_000], (v4(2), 5_000));
    }
    let qdisc = a.rtnl.root_qdisc("va").unwrap();
    assert_eq!(qdisc.kind, "tbf");
    assert!(qdisc.overlimits > 0, "{qdisc:?}");
    assert!(qdisc.drops > 0, "{qdisc:?}");
    a.rtnl.set_tbf("va", &Tbf::ethernet(40_000_000_000, 1)).unwrap();
    a.rtnl.reset_qdisc("va").unwrap();
    assert_ne!(a.rtnl.root_qdisc("va").map(|q| q.kind).unwrap_or_default(), "tbf");
}

#[test]
#[ignore = "needs root"]
fn a_device_without_ipv6_says_nothing_by_itself() {
    let a = namespace();
    let rtnl = Rtnl::open_in(&a).unwrap();
    a.enter(|| disable_ipv6("default")).unwrap().unwrap();
    let veth = VethPair { here: VethEnd::new("x0"), there: VethEnd::new("x1"), there_in: None };
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
    let (a, _b) = pair();
    let ethtool = Ethtool::open_in(&a.ns).unwrap();
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

#[test]
#[ignore = "needs root"]
fn a_bridge_carries_frames_between_its_ports() {
    let ns = namespace();
    let rtnl = Rtnl::open_in(&ns).unwrap();
    rtnl.add_bridge("br0").unwrap();
    assert_eq!(rtnl.link("br0").unwrap().kind, "bridge");
    let taken = rtnl.add_bridge("br0").unwrap_err();
    assert_eq!(taken.source.kind(), std::io::ErrorKind::AlreadyExists, "{taken}");
    let veth = |a, b| VethPair { here: VethEnd::new(a), there: VethEnd::new(b), there_in: None };
    for (port, end) in [("p1", "e1"), ("p2", "e2")] {
        rtnl.add_veth(&veth(port, end)).unwrap();
        rtnl.add_to_bridge(port, "br0").unwrap();
        [port, end].iter().for_each(|device| rtnl.set_up(device, true).unwrap());
    }
    rtnl.set_up("br0", true).unwrap();
    let open = |end: &str| ns.enter(|| netdev::open_text(&format!("af_packet:{end}")).unwrap());
    let (mut near, mut far) = (open("e1").unwrap(), open("e2").unwrap());
    let mut frame = [0; 60];
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5]);
    let sent = [packet::PacketBuf::from_slice(&frame)];
    let mut came = packet::Batch::default();
    until("the frame", || {
        near.tx(&sent).unwrap();
        far.rx(&mut came, 32).unwrap();
        came.frames().iter().any(|got| got.bytes() == frame)
    });
    assert!(rtnl.add_to_bridge("nothere", "br0").is_err());
    assert!(rtnl.add_to_bridge("p1", "nothere").is_err());
}

/// Ends of a veth that a port has made: it carries frames into the other end's namespace, and goes
/// with the port. One that was there before stays.
#[test]
#[ignore = "needs root"]
fn a_veth_that_a_port_makes_goes_with_it() {
    let (here, there) = (namespace(), namespace());
    let [rtnl, far_rtnl] = [&here, &there].map(|ns| Rtnl::open_in(ns).unwrap());
    let open = |spec: &str| here.enter(|| open_text(spec)).unwrap();
    for is_made in [true, false] {
        if !is_made {
            let (near, far) = (VethEnd::new("near"), VethEnd::new("far"));
            rtnl.add_veth(&VethPair { here: near, there: far, there_in: None }).unwrap();
            ["near", "far"].iter().for_each(|end| rtnl.set_up(end, true).unwrap());
        }
        let mut port = open("af_packet:near?far=far").unwrap();
        assert_eq!(port.device.owns_link(), is_made);
        let note = "near was there already, and stays; no veth to far was made";
        assert_eq!(port.info().notes.iter().any(|it| it == note), !is_made);
        rtnl.move_to("far", &there).unwrap();
        far_rtnl.set_up("far", true).unwrap();
        let mut host = there.enter(|| open_text("af_packet:far").unwrap()).unwrap();
        until("carrier", || port.info().link_up);
        let mut frame = vec![0; 60];
        frame[12..14].copy_from_slice(&[0x88, 0xb5]);
        frame[14] = 7;
        let mut batch = Batch::default();
        until("the frame", || {
            port.tx(&[PacketBuf::from_slice(&frame)]).unwrap();
            host.rx(&mut batch, 64).unwrap();
            batch.frames().iter().any(|it| it.bytes() == frame)
        });
        if is_made {
            port.device.set_link(false).unwrap();
            until("no carrier", || !far_rtnl.link("far").unwrap().carrier);
        }
        drop((port, host));
        assert_eq!((rtnl.link("near").is_err(), far_rtnl.link("far").is_err()), (is_made, is_made));
        // Their other end goes with its namespace, and then there is no device to take away.
        let _ = rtnl.delete("near");
    }
    rtnl.add_bridge("near").unwrap();
    let error = |spec: &str| open(spec).map(drop).unwrap_err().to_string();
    assert!(error("af_packet:near?far=far").contains("near exists and is no veth"));
    let text = "near exists already; remove it, or name another far end";
    assert!(error("af_packet:fresh?far=near").contains(text) && rtnl.link("fresh").is_err());
    let error = error("af_packet:near?far=a/b");
    assert!(error.contains("far") && error.contains("the name of a device"), "{error}");
    assert!(rtnl.link("far").is_err());
}
