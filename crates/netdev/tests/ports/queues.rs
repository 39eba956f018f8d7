//! Ports of several queues: each is used for itself, and nobody gets some of them unasked.

use netdev::sys::link::{Rtnl, VethEnd, VethPair, quiet_ipv6};
use netdev::{Port, PortError, PortQueue, open_queues, open_text};
use packet::{Batch, PacketBuf};

use crate::testbed::{namespace, until};

fn open(text: &str) -> Result<Port, PortError> {
    open_queues(&text.parse()?)
}

/// All queues of a port.
fn queues(port: Port) -> Vec<PortQueue> {
    let Port { rx, tx, more, .. } = port;
    std::iter::once(PortQueue { rx, tx }).chain(more).collect()
}

fn frame(number: usize) -> PacketBuf {
    PacketBuf::from_slice(&[number as u8; 60])
}

#[test]
fn a_wire_joins_queues_of_the_same_number() {
    let mut a = open("memory:queues?end=a&queues=3").unwrap();
    let b = open("memory:queues?end=b&queues=3").unwrap();
    assert_eq!((a.more.len(), b.more.len()), (2, 2));
    assert!(a.info().link_up);
    let (mut near, mut far) = (queues(a), queues(b));
    // Both ways, in another order than they are received in.
    for number in [2, 0, 1] {
        assert_eq!(near[number].tx.tx(&[frame(number)]).unwrap(), 1);
        assert_eq!(far[number].tx.tx(&[frame(10 + number)]).unwrap(), 1);
    }
    let mut batch = Batch::default();
    for number in 0..3 {
        assert_eq!(far[number].rx.rx(&mut batch, 9).unwrap(), 1);
        assert_eq!(near[number].rx.rx(&mut batch, 9).unwrap(), 1);
        assert_eq!(batch.frames(), [frame(number), frame(10 + number)]);
        batch.clear();
    }
}

#[test]
fn the_counters_of_a_port_are_those_of_all_its_queues() {
    for (sender, receiver) in [
        ("memory:queues-counted?end=a&queues=2", Some("memory:queues-counted?end=b&queues=2")),
        ("null:?queues=2", None),
    ] {
        let mut near = open(sender).unwrap();
        let far = receiver.map(|text| open(text).unwrap());
        assert_eq!(near.tx(&[frame(1), frame(2)]).unwrap(), 2);
        assert_eq!(near.more[0].tx.tx(&[frame(3)]).unwrap(), 1);
        let counters = near.counters();
        assert_eq!((counters.tx_packets, counters.tx_bytes), (3, 180), "{sender}");
        let Some(mut far) = far else { continue };
        let mut batch = Batch::default();
        assert_eq!(far.rx(&mut batch, 9).unwrap(), 2);
        assert_eq!(far.more[0].rx.rx(&mut batch, 9).unwrap(), 1);
        assert_eq!(far.counters().rx_packets, 3);
    }
}

#[test]
fn several_queues_are_for_those_who_use_them() {
    let refused = |text: &str| open_text(text).map(drop).unwrap_err().to_string();
    for text in ["null:?queues=2", "memory:queues-refused?queues=2"] {
        assert!(refused(text).contains("use 1 here"), "{}", refused(text));
    }
    assert!(open_text("null:?queues=1").is_ok());
    for text in ["null:?queues=0", "null:?queues=65", "memory:x?queues=many"] {
        let error = open(text).map(drop).unwrap_err().to_string();
        assert!(error.contains("a number from 1 to 64"), "{error}");
    }
    let between = open("memory:/tmp/x?queues=2").map(drop).unwrap_err().to_string();
    assert!(between.contains("1 for a wire between processes"), "{between}");
    let _first = open("memory:queues-agree?queues=2").unwrap();
    let second = refused("memory:queues-agree?end=b");
    assert!(second.contains("queues=2"), "{second}");
}

/// A UDP datagram of a flow from one port to its answerer, with a number in it.
fn datagram(flow: u8, number: u16) -> PacketBuf {
    let mut bytes = vec![0; 60];
    bytes[..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0]);
    bytes[14..24].copy_from_slice(&[0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17]);
    bytes[26..34].copy_from_slice(&[10, 9, 0, 1, 10, 9, 0, 2]);
    bytes[34..40].copy_from_slice(&[0x20, flow, 0x30, 1, 0, 26]);
    bytes[42..44].copy_from_slice(&number.to_be_bytes());
    PacketBuf::from_slice(&bytes)
}

/// The flow and the number of one of our datagrams.
fn flow_of(frame: &PacketBuf) -> Option<(u8, u16)> {
    let bytes = frame.bytes();
    let is_ours = bytes.len() == 60 && bytes[12..14] == [8, 0] && bytes[34] == 0x20;
    is_ours.then(|| (bytes[35], u16::from_be_bytes([bytes[42], bytes[43]])))
}

/// Notes by queue which of our frames came: flow and number.
fn take(queues: &mut [PortQueue], got: &mut [Vec<(u8, u16)>]) {
    let mut batch = Batch::default();
    for (queue, got) in queues.iter_mut().zip(got) {
        while queue.rx.rx(&mut batch, 64).unwrap() > 0 {
            for frame in batch.frames() {
                // The host sends something of its own by a TAP device.
                if let Some((flow, number)) = flow_of(frame) {
                    got.push((flow, number));
                }
            }
            batch.clear();
        }
    }
}

/// The kernel gives each flow to one queue, every frame once, and nothing that the port has sent.
pub(crate) fn flows_are_shared_out(near: &str, far: &str) {
    const FLOWS: u8 = 64;
    const EACH: u16 = 40;
    let Port { mut device, rx, tx, more, .. } = open(near).unwrap();
    let mut queues: Vec<_> = std::iter::once(PortQueue { rx, tx }).chain(more).collect();
    let mut other = open_text(far).unwrap();
    assert_eq!(queues.len(), 4, "{near}");
    let mut got = vec![Vec::new(); 4];
    for number in 0..EACH {
        for flow in 0..FLOWS {
            let frame = [datagram(flow, number)];
            until("room", || other.tx(&frame).unwrap() == 1);
        }
        // By each of them leaves something, which none of them receives.
        for (queue, mark) in queues.iter_mut().zip([100, 101, 102, 103]) {
            let frame = [datagram(mark, number)];
            until("room", || queue.tx.tx(&frame).unwrap() == 1);
        }
        take(&mut queues, &mut got);
    }
    until("all", || {
        take(&mut queues, &mut got);
        got.iter().map(Vec::len).sum::<usize>() >= usize::from(EACH) * usize::from(FLOWS)
    });
    let mut next = [(None, 0); FLOWS as usize];
    for (queue, got) in got.iter().enumerate() {
        for (flow, number) in got {
            let (of, next) = &mut next[usize::from(*flow)];
            assert_eq!(*of.get_or_insert(queue), queue, "{near}: flow {flow} has one queue");
            assert_eq!(number, next, "{near}: flow {flow} is in order");
            *next += 1;
        }
    }
    assert!(next.iter().all(|(_, next)| *next == EACH), "{near}: none is missing");
    let used = got.iter().filter(|got| !got.is_empty()).count();
    assert!(used >= 3, "{near}: {used} queues have flows");
    let counters = device.counters();
    assert!(counters.rx_packets >= u64::from(EACH) * u64::from(FLOWS), "{counters:?}");
    assert_eq!(counters.tx_packets, 4 * u64::from(EACH));
    let mut batch = Batch::default();
    until("what all queues have sent", || {
        other.rx(&mut batch, 64).unwrap();
        let ours = batch.frames().iter().filter_map(flow_of).filter(|(flow, _)| *flow >= 100);
        ours.count() == 4 * usize::from(EACH)
    });
}

#[test]
#[ignore = "needs root"]
fn the_kernel_shares_flows_out_among_the_queues_of_its_devices() {
    let namespace = namespace();
    let run = || {
        let rtnl = Rtnl::open().unwrap();
        let pair =
            VethPair { here: VethEnd::new("near"), there: VethEnd::new("far"), there_in: None };
        rtnl.add_veth(&pair).unwrap();
        for name in ["near", "far"] {
            quiet_ipv6(name).unwrap();
            rtnl.set_up(name, true).unwrap();
        }
        flows_are_shared_out("af_packet:near?queues=4", "af_packet:far");
        flows_are_shared_out("tap:queued?queues=4", "af_packet:queued");
        assert!(open_text("af_packet:queued").is_err(), "the device goes with its queues");
    };
    namespace.enter(run).unwrap();
}
