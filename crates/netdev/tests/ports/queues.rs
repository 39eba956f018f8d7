//! Ports of several queues: each is used for itself, and nobody gets some of them unasked.

use netdev::{Port, PortError, PortQueue, open_queues, open_text};
use packet::{Batch, PacketBuf};

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
