//! A bridge that goes while the kernel carries out what its entries say: the last frame is decided
//! before `del-bridge` ends, another bridge's tier goes on, and nothing is left at the devices.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use netdev::sys::link::Rtnl;
use openflow::Version;

use crate::harness::{Host, Switch, from_to, until};
use crate::tier_rig::{handovers, hosts, kernel_hits, kernel_hits_of};
use crate::veth::{add_veth, in_namespace};

/// Frames before and after the bridge goes, at least.
const FRAMES: u32 = 500;

/// The number of the last frame of the first bridge; of the next ones those after it.
const LAST: u32 = u32::MAX - 100;

fn numbered(number: u32) -> Vec<u8> {
    let mut bytes = vec![0; 60];
    bytes[..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5]);
    bytes[20..24].copy_from_slice(&number.to_be_bytes());
    bytes
}

fn number_of(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes[20..24].try_into().unwrap())
}

/// Has the entries of a bridge forward from its first port to its second.
fn forward(switch: &Switch, socket: &str) {
    let mut controller = switch.controller_at(socket, Version::V1_3);
    controller.send(&from_to(1, 2));
    controller.barrier();
}

/// One bridge between these hosts, until it is deleted; each frame that came, came once, and none
/// that was sent later.
fn one_bridge(round: u32, switch: &Switch, rtnl: &Rtnl, [one, two]: [&mut Host; 2]) {
    let listen = format!("listen=punix:{}", switch.socket("other").display());
    let ports = ["port=1=af_packet:sw1", "port=2=af_packet:sw2"];
    let words = ["add-bridge", "other", "dpid=b2", &*listen, ports[0], ports[1]];
    switch.ctl(&words);
    forward(switch, "other");
    assert_eq!(handovers(rtnl), 4);
    let (next, is_over) = (AtomicU32::new(0), AtomicBool::new(false));
    let sent =
        |count: u32| until("frames", || (next.load(Ordering::SeqCst) >= count).then_some(()));
    let (limit, come) = std::thread::scope(|scope| {
        let _over = Over(&is_over);
        let come = scope.spawn(|| come_before(LAST + round, two));
        let sender = scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                let number = next.fetch_add(1, Ordering::SeqCst);
                one.send(&numbered(number));
            }
        });
        let before = kernel_hits_of(switch, "other");
        sent(FRAMES);
        until("hits", || (kernel_hits_of(switch, "other") > before + 20).then_some(()));
        switch.ctl(&["del-bridge", "other"]);
        let limit = next.load(Ordering::SeqCst);
        sent(limit + FRAMES);
        is_over.store(true, Ordering::SeqCst);
        sender.join().unwrap();
        // After all that may be on their way, by the device that is free again.
        let mut near = Host::open("af_packet:sw2");
        until("the last frame", || {
            near.send(&numbered(LAST + round));
            come.is_finished().then_some(())
        });
        (limit, come.join().unwrap())
    });
    assert_eq!(handovers(rtnl), 2, "the other bridge's");
    let once: BTreeSet<u32> = come.iter().copied().collect();
    assert_eq!(once.len(), come.len(), "a frame came twice");
    let latest = *once.last().expect("a frame");
    assert!(latest < limit, "{latest} came, and the bridge had gone before {limit}");
}

/// The numbers of all frames that come before this one.
fn come_before(last: u32, host: &mut Host) -> Vec<u32> {
    let next = || Some(number_of(&host.receive())).filter(|number| *number != last);
    std::iter::from_fn(next).filter(|number| *number < LAST).collect()
}

/// Ends the traffic, however the test ends.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
#[ignore = "needs root"]
fn a_bridge_removed_under_traffic_leaves_nothing_in_the_kernel() {
    for workers in [1, 2] {
        in_namespace(|rtnl| {
            for number in 1..=4 {
                add_veth(rtnl, &format!("sw{number}"), &format!("host{number}"));
            }
            let ports = "\"1=af_packet:sw3\", \"2=af_packet:sw4\"";
            let toml = format!("workers = {workers}\n");
            let switch = Switch::with_ports(ports, Vec::new(), &toml);
            forward(&switch, "of");
            let [mut one, mut two, mut three, mut four] = hosts();
            for round in 0..2 {
                one_bridge(round, &switch, rtnl, [&mut one, &mut two]);
                let before = kernel_hits(&switch);
                until("a decision about the bridge that stays", || {
                    three.send(&numbered(7));
                    assert_eq!(four.receive(), numbered(7));
                    (kernel_hits(&switch) > before).then_some(())
                });
            }
            switch.stop();
            assert_eq!(handovers(rtnl), 0);
        });
    }
}
