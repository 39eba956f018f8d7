//! Patch ports beyond the contract of all kinds, and internal ports: names, bounds, addresses.

use std::time::Duration;

use netdev::sys::event::wait;
use netdev::{PatchPlace, PortError, open_text};
use packet::Pool;

use crate::contract::{
    assert_nothing_waits, frame, patch_wire, quiet_namespace, receive, send_all,
};
use crate::testbed::until;

#[test]
fn patch_ports_are_joined_by_both_names_or_have_no_link() {
    let error = |text: &str| open_text(text).map(drop).unwrap_err().to_string();
    for bad in ["patch:own", "patch:own?peer=", "patch:own?peer=own"] {
        assert!(error(bad).contains("the patch port at the other end"), "{}", error(bad));
    }
    let mut left = open_text("patch:left?peer=right").unwrap();
    assert!(matches!(open_text("patch:left?peer=x").map(drop), Err(PortError::InUse(_))));
    let info = left.info();
    assert_eq!((info.link_up, &*info.notes[0]), (false, "there is no patch port right"));
    // What is sent by a port without a link is dropped, and counted.
    assert_eq!(left.tx(&[frame(60, 1)]).unwrap(), 1);
    assert_eq!((left.counters().tx_packets, left.counters().tx_drops), (0, 1));
    let mut right = open_text("patch:right?peer=left").unwrap();
    // A second port with the same peer is joined to nothing.
    let mut third = open_text("patch:third?peer=right").unwrap();
    assert!(left.info().link_up && right.info().link_up && !third.info().link_up);
    assert_eq!(third.info().notes, ["right has the peer left, not this port"]);
    send_all(&mut third, &[frame(60, 2)]);
    send_all(&mut left, &[frame(60, 3)]);
    assert_eq!(receive(&mut right, 1), [frame(60, 3)]);
    assert_nothing_waits(&mut right);
    drop(right);
    assert!(!left.info().link_up);
    let mut right = open_text("patch:right?peer=third").unwrap();
    assert!(!left.info().link_up && third.info().link_up);
    assert_nothing_waits(&mut right);
}

#[test]
#[ignore = "needs root"]
fn an_internal_device_keeps_its_address() {
    let (ns, rtnl) = quiet_namespace();
    ns.enter(|| {
        let error = |text: &str| open_text(text).map(drop).unwrap_err().to_string();
        for bad in ["mac=x", "mac=01:00:00:00:00:01", "mac="] {
            let error = error(&format!("internal:kept?{bad}"));
            assert!(error.contains("a unicast address"), "{error}");
        }
        // A child of another test may hold the descriptor for a moment.
        let mac_of = |text: &str| {
            let mut opened = None;
            until("the device is free", || {
                opened = open_text(text).ok();
                opened.is_some()
            });
            opened.unwrap().info().mac
        };
        let goes = || until("the device is gone", || rtnl.link("kept").is_err());
        let first = mac_of("internal:kept");
        // It goes with the port, and comes with the same address.
        goes();
        assert_eq!(mac_of("internal:kept?persist=true"), first);
        assert_eq!(rtnl.link("kept").unwrap().mac, first, "it stays");
        let given = [2, 0, 0, 0, 0, 9];
        assert_eq!(mac_of("internal:kept?mac=02:00:00:00:00:09"), given);
        goes();
        assert_eq!(mac_of("internal:kept"), given);
    })
    .unwrap();
}

#[test]
fn an_inbox_of_a_patch_port_is_bounded() {
    let [mut from, mut to] = patch_wire().open();
    let end = from.device.patch().unwrap();
    let mut pool = Pool::default();
    let mut frames = vec![frame(60, 1); 3_000];
    assert_eq!(end.send(&mut frames, 0, None, &mut pool), None);
    assert_eq!((frames.len(), from.counters().tx_packets), (952, 2_048));
    assert_eq!(receive(&mut to, 2_048).len(), 2_048);
    // Frames that have passed different numbers of ports come apart, and to a worker that serves
    // both ends without a wake-up.
    let far = to.device.patch().unwrap();
    far.set_place(PatchPlace { worker: 7, port: 5 });
    assert_nothing_waits(&mut to);
    for hops in [0, 3] {
        let sent = end.send(&mut vec![frame(60, 1)], hops, Some(7), &mut pool);
        assert_eq!(sent, Some(5));
    }
    assert!(!wait(&[to.fd().unwrap()], Some(Duration::ZERO)).unwrap());
    assert_eq!(receive(&mut to, 2).len(), 2);
    assert_eq!(far.hops(), 4);
}
