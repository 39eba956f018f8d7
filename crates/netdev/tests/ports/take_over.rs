//! A port enters the kernel tier while frames come: each comes once, by its ring or by the program.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use netdev::sys::link::{VethEnd, VethPair, disable_ipv6};
use netdev::sys::qdisc::Tbf;
use netdev::{Entering, KernelTier, Port, TierPrograms, open_text};
use packet::{Batch, PacketBuf};

use crate::testbed::{Host, PATIENCE, until};

/// Frames under way at most: fewer than a ring holds.
const UNDER_WAY: u64 = 500;

/// Frames that are to come after each step.
const AFTER_STEP: u64 = 2_000;

const ETH_TYPE: [u8; 2] = [0x88, 0xb5];

fn numbered(number: u64) -> PacketBuf {
    let mut bytes = [0; 60];
    bytes[..12].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2]);
    bytes[12..14].copy_from_slice(&ETH_TYPE);
    bytes[14..22].copy_from_slice(&number.to_be_bytes());
    PacketBuf::from_slice(&bytes)
}

/// Ends the sender also where an assertion fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Counts the frames that come, and sees to it that each is the next one.
struct Receiver<'a> {
    port: Port,
    came: &'a AtomicU64,
    others: u64,
    batch: Batch,
}

impl Receiver<'_> {
    fn receive_until(&mut self, is_enough: impl Fn(u64) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.batch.clear();
            self.port.rx(&mut self.batch, 64).unwrap();
            for frame in self.batch.frames() {
                // The kernel sends of its own accord.
                if frame.bytes()[12..14] != ETH_TYPE {
                    self.others += 1;
                    continue;
                }
                let next = self.came.load(Ordering::Relaxed);
                let number = u64::from_be_bytes(frame.bytes()[14..22].try_into().unwrap());
                assert_eq!(number, next, "each frame once, in order");
                self.came.store(next + 1, Ordering::Relaxed);
            }
            if is_enough(self.came.load(Ordering::Relaxed)) {
                return;
            }
            assert!(Instant::now() < deadline, "frames have stopped coming");
        }
    }

    fn receive_more(&mut self) {
        let goal = self.came.load(Ordering::Relaxed) + AFTER_STEP;
        self.receive_until(|came| came >= goal);
    }
}

/// A host with the two ends of a veth.
fn host_of_veth() -> Host {
    let host = Host::new();
    let (here, there) = (VethEnd::new("one"), VethEnd::new("two"));
    host.rtnl.add_veth(&VethPair { here, there, there_in: None }).unwrap();
    for name in ["one", "two"] {
        host.rtnl.set_up(name, true).unwrap();
    }
    until("carrier", || host.rtnl.link("one").unwrap().carrier);
    host
}

/// The port's first frames were dropped by its queueing discipline, which the tier asks too.
#[test]
#[ignore = "needs root"]
fn drops_from_before_the_tier_are_counted_once() {
    let host = host_of_veth();
    let enter = || {
        disable_ipv6("one").unwrap();
        let mut port = open_text("af_packet:one").unwrap();
        let device = port.device.tier_port().unwrap();
        let tier = KernelTier::new(1).unwrap();
        let tiers = [tier.programs().clone()];
        let queues = TierPrograms::open(&tiers, 1, &device, Entering::Later).unwrap();
        let mut beside = queues.install_beside(&mut port).unwrap().unwrap();
        // 1,000 frames a second, and room for some 30.
        let (burst_bytes, limit_bytes) = (1_600, 2_000);
        let tbf = Tbf { burst_bytes, limit_bytes, ..Tbf::ethernet(480_000, 1) };
        host.rtnl.set_tbf("one", &tbf).unwrap();
        let sent: usize = (0..1_000).map(|number| port.tx(&[numbered(number)]).unwrap()).sum();
        assert!(sent < 1_000);
        beside.take_over().unwrap();
        beside.finish(&mut port);
        let counters = port.counters();
        assert_eq!((counters.tx_packets, counters.tx_drops), (sent as u64, 0));
    };
    host.ns.enter(enter).unwrap();
}

#[test]
#[ignore = "needs root"]
fn no_frame_is_lost_or_doubled_while_a_port_enters_the_tier() {
    let host = host_of_veth();
    let [mut from, to] =
        ["two", "one"].map(|name| host.ns.enter(|| open_text(&format!("af_packet:{name}"))));
    let from = from.as_mut().unwrap().as_mut().unwrap();
    let (came, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let port = to.unwrap().unwrap();
    let mut receiver = Receiver { port, came: &came, others: 0, batch: Batch::default() };
    let (came, is_over, ns) = (&came, &is_over, &host.ns);
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut sent = 0;
            while !is_over.load(Ordering::Relaxed) {
                if sent - came.load(Ordering::Relaxed) < UNDER_WAY {
                    sent += from.tx(&[numbered(sent)]).unwrap() as u64;
                } else {
                    thread::yield_now();
                }
            }
        });
        let _over = Over(is_over);
        receiver.receive_more();
        let device = receiver.port.device.tier_port().unwrap();
        let queues = scope.spawn(move || {
            let open = || {
                let tier = KernelTier::new(1).unwrap();
                let queues =
                    TierPrograms::open(&[tier.programs().clone()], 1, &device, Entering::Later);
                (tier, queues.unwrap())
            };
            ns.enter(open).unwrap()
        });
        receiver.receive_until(|_| queues.is_finished());
        let (_tier, queues) = queues.join().unwrap();
        receiver.receive_more();
        let mut beside = queues.install_beside(&mut receiver.port).unwrap().unwrap();
        receiver.receive_more();
        let done = scope.spawn(move || {
            beside.take_over().unwrap();
            beside
        });
        receiver.receive_until(|_| done.is_finished());
        done.join().unwrap().finish(&mut receiver.port);
        receiver.receive_more();
    });
    let counters = receiver.port.counters();
    let all = came.load(Ordering::Relaxed) + receiver.others;
    assert_eq!((counters.rx_packets, counters.rx_drops), (all, 0));
}
