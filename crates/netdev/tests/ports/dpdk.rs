//! DPDK's ports over its virtual devices, in a process of their own without huge pages; in a build
//! without them, that the error says how to get one.

#[cfg(not(feature = "dpdk"))]
#[test]
fn a_build_without_dpdk_says_how_to_get_it() {
    let error = netdev::open_text("dpdk:net_null0,no-rx=1").map(drop).unwrap_err().to_string();
    assert!(error.contains("cargo build --release --features dpdk"), "{error}");
}

#[cfg(feature = "dpdk")]
mod with_dpdk {
    use std::path::Path;
    use std::process::Command;
    use std::time::Duration;

    use netdev::pcap::{append_record, file_header};
    use netdev::{Port, PortQueue, RxQueue, open_queues, open_text};
    use packet::{Batch, PacketBuf};

    use crate::queues::flows_are_shared_out;
    use crate::testbed::{namespace, until};

    const EAL: &str = "--no-huge -m 256 --no-pci --no-shconf --no-telemetry --log-level=4";
    const CHILD: &str = "WEIR_TEST_DPDK_CHILD";

    /// Runs the test in a process of its own: DPDK starts once in a process, and its options come
    /// from the environment. True in that process.
    fn is_child(test: &str) -> bool {
        if std::env::var_os(CHILD).is_some() {
            return true;
        }
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", test, "--nocapture", "--include-ignored"]).env(CHILD, "1");
        command.env("WEIR_DPDK_EAL", EAL).env("WEIR_DPDK_BUFFERS", "8191");
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{text}\n{errors}");
        assert!(text.contains("1 passed"), "no such test: {test}");
        false
    }

    fn frame(len: usize, number: usize) -> PacketBuf {
        let bytes: Vec<u8> = (0..len).map(|n| (n ^ number) as u8).collect();
        PacketBuf::from_slice(&bytes)
    }

    fn receive(port: &mut Port, batch: &mut Batch, count: usize) {
        // A virtual device has at once what it was given.
        for _ in 0..1_000 {
            let missing = count - batch.len();
            port.rx(batch, missing).unwrap();
            if batch.len() == count {
                return;
            }
        }
        panic!("{} of {count} frames", batch.len());
    }

    #[test]
    fn the_contract_holds_over_virtual_devices() {
        if !is_child("dpdk::with_dpdk::the_contract_holds_over_virtual_devices") {
            return;
        }
        let before = listing("/var/run/dpdk");
        a_ring_gives_back_in_order_and_without_a_copy();
        frames_go_from_device_to_device();
        a_capture_is_received_also_in_pieces();
        a_device_can_be_made_again();
        each_queue_of_a_device_is_used_for_itself();
        each_queue_of_a_device_is_for_a_thread_of_its_own();
        devices_that_are_joined_have_joined_queues();
        slips_are_refused_with_their_place();
        assert_eq!(listing("/var/run/dpdk"), before, "DPDK left files behind");
    }

    fn listing(path: &str) -> Vec<std::path::PathBuf> {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    }

    /// `net_ring` gives back what it is given.
    fn a_ring_gives_back_in_order_and_without_a_copy() {
        let mut ring = open_text("dpdk:net_ring0").unwrap();
        let lengths = (14..200).chain([1_514, 1_518, 2_048]);
        let frames: Vec<PacketBuf> = lengths.enumerate().map(|(n, len)| frame(len, n)).collect();
        assert_eq!(ring.tx(&frames).unwrap(), frames.len());
        let mut batch = Batch::default();
        receive(&mut ring, &mut batch, frames.len());
        assert_eq!(batch.frames(), frames);
        assert!(batch.frames().iter().all(|frame| !frame.is_own()), "mbufs are handed out");
        // Rewritten where it lies, in front too, and sent as it is.
        let address = |batch: &Batch| batch.frames()[7].bytes().as_ptr();
        let first = address(&batch);
        for frame in batch.frames_mut() {
            frame.insert(12, 4);
            frame.bytes_mut()[13] = 0x81;
        }
        let rewritten: Vec<PacketBuf> = batch.frames().to_vec();
        let (held, pool) = batch.parts_mut();
        assert_eq!(ring.tx_batch(held, pool).unwrap(), rewritten.len());
        assert!(held.is_empty() && pool.is_empty(), "a driver's buffers are in no pool");
        receive(&mut ring, &mut batch, rewritten.len());
        assert_eq!(batch.frames(), rewritten);
        assert_eq!(address(&batch), first.wrapping_sub(4), "the same memory");
        // A frame that outgrows its mbuf goes on in memory of its own.
        let mut grown = batch.drain().next().unwrap();
        grown.pad_to(5_000);
        assert!(grown.is_own());
        // Frames may be dropped by any thread.
        std::thread::spawn(move || drop(batch)).join().unwrap();
        let counters = ring.counters();
        assert_eq!(counters.tx_packets, 2 * frames.len() as u64);
        assert_eq!(counters.rx_packets, counters.tx_packets);
        assert_eq!(counters.rx_bytes, counters.tx_bytes);
        assert_eq!(ring.tx(&[frame(9_000, 1), frame(60, 1)]).unwrap(), 2);
        let counters = ring.counters();
        assert_eq!(counters.tx_errors, 1, "no mbuf is that long");
        assert_eq!(counters.tx_packets, 2 * frames.len() as u64 + 1);
    }

    fn frames_go_from_device_to_device() {
        let mut ring = open_text("dpdk:net_ring1").unwrap();
        let mut sink = open_text("dpdk:net_null1,no-rx=1").unwrap();
        let mut batch = Batch::default();
        // More than there are buffers: every one comes back.
        for round in 0..500 {
            let frames: Vec<PacketBuf> = (0..64).map(|n| frame(60, n + round)).collect();
            assert_eq!(ring.tx(&frames).unwrap(), 64);
            receive(&mut ring, &mut batch, 64);
            let (held, pool) = batch.parts_mut();
            assert_eq!(sink.tx_batch(held, pool).unwrap(), 64);
        }
        assert_eq!(sink.counters().tx_packets, 32_000);
        assert_eq!(sink.rx(&mut batch, 64).unwrap(), 0);
        assert!(ring.fd().is_none() && ring.info().exists && ring.info().link_up);
    }

    fn write_capture(path: &Path, frames: &[PacketBuf]) {
        let mut bytes = file_header();
        for frame in frames {
            assert!(append_record(&mut bytes, Duration::ZERO, frame.bytes()));
        }
        std::fs::write(path, bytes).unwrap();
    }

    /// Long records come as several mbufs in a chain.
    fn a_capture_is_received_also_in_pieces() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("some.pcap");
        let lengths = [60, 5_000, 1_514, 2_100, 9_000, 64];
        let frames: Vec<PacketBuf> =
            lengths.iter().enumerate().map(|(n, &len)| frame(len, n)).collect();
        write_capture(&path, &frames);
        let text = format!("dpdk:net_pcap0,rx_pcap={}", path.display());
        let mut once = open_text(&text).unwrap();
        let mut batch = Batch::default();
        receive(&mut once, &mut batch, frames.len());
        assert_eq!(batch.frames(), frames);
        assert_eq!(batch.frames().iter().filter(|frame| frame.is_own()).count(), 3);
        assert_eq!(once.rx(&mut batch, 64).unwrap(), 0);
        let short: Vec<PacketBuf> = (0..10).map(|n| frame(60, n)).collect();
        write_capture(&path, &short);
        let text = format!("dpdk:net_pcap1,rx_pcap={},infinite_rx=1", path.display());
        let mut endless = open_text(&text).unwrap();
        let mut batch = Batch::default();
        receive(&mut endless, &mut batch, 100);
        assert!(batch.frames().chunks(10).all(|part| part == short));
    }

    fn a_device_can_be_made_again() {
        for _ in 0..3 {
            let mut ring = open_text("dpdk:net_ring2").unwrap();
            assert_eq!(ring.tx(&[frame(60, 1)]).unwrap(), 1);
        }
    }

    fn slips_are_refused_with_their_place() {
        let error = |text: &str| open_text(text).map(drop).unwrap_err().to_string();
        let text = error("dpdk:net_nosuch0");
        assert!(text.contains("dpdk:net_nosuch0: DPDK cannot make the device"), "{text}");
        let text = error("dpdk:net_ring6?queues=2");
        assert!(text.contains("use 1 here"), "{text}");
        // `net_ring` has 16 queues.
        let spec = "dpdk:net_ring6?queues=17".parse().unwrap();
        let text = open_queues(&spec).map(drop).unwrap_err().to_string();
        for part in ["port dpdk:net_ring6?queues=17: ", "use at most 16"] {
            assert!(text.contains(part), "{text}");
        }
        assert!(open_text("dpdk:net_ring6").is_ok(), "nothing of it is left");
    }

    /// A port of several queues, and all of them.
    fn open_all(text: &str) -> (Box<dyn netdev::PortDevice>, Vec<PortQueue>) {
        let Port { device, rx, tx, more, .. } = open_queues(&text.parse().unwrap()).unwrap();
        (device, std::iter::once(PortQueue { rx, tx }).chain(more).collect())
    }

    /// Polls a queue until `count` frames have come.
    fn receive_by(rx: &mut dyn RxQueue, count: usize) -> Vec<PacketBuf> {
        let mut batch = Batch::default();
        until("the frames of a queue", || {
            let missing = count - batch.len();
            rx.rx(&mut batch, missing).unwrap();
            batch.len() == count
        });
        batch.drain().collect()
    }

    fn each_queue_of_a_device_is_used_for_itself() {
        let (mut device, mut ring) = open_all("dpdk:net_ring3?queues=3");
        assert_eq!(ring.len(), 3);
        let of = |queue: usize| (0..20).map(move |n| frame(60 + n, queue)).collect::<Vec<_>>();
        // In another order than they are received in.
        for queue in [2, 0, 1] {
            assert_eq!(ring[queue].tx.tx(&of(queue)).unwrap(), 20);
        }
        for (number, queue) in ring.iter_mut().enumerate() {
            assert_eq!(receive_by(queue.rx.as_mut(), 20), of(number));
            assert_eq!(queue.rx.rx(&mut Batch::default(), 9).unwrap(), 0);
        }
        let bytes: u64 = of(0).iter().map(|frame| frame.len() as u64).sum();
        let counters = device.counters();
        assert_eq!((counters.tx_packets, counters.tx_bytes), (60, 3 * bytes));
        assert_eq!((counters.rx_packets, counters.rx_bytes), (60, 3 * bytes));
        // A device with RSS: `net_null` makes up what each queue receives.
        let (mut device, mut null) = open_all("dpdk:net_null4?queues=4");
        for queue in &mut null {
            assert_eq!(receive_by(queue.rx.as_mut(), 64).len(), 64);
        }
        assert_eq!(device.counters().rx_packets, 256);
    }

    /// A capture for each queue, received by threads at the same time.
    fn each_queue_of_a_device_is_for_a_thread_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let path = |queue: usize| folder.path().join(format!("{queue}.pcap"));
        let of = |queue: usize| (0..500).map(move |n| frame(60 + n, queue)).collect::<Vec<_>>();
        for queue in 0..2 {
            write_capture(&path(queue), &of(queue));
        }
        let (a, b) = (path(0), path(1));
        let name = format!("dpdk:net_pcap2,rx_pcap={},rx_pcap={}", a.display(), b.display());
        let spec = format!("{name}?queues=3").parse().unwrap();
        let error = open_queues(&spec).map(drop).unwrap_err().to_string();
        assert!(error.contains("2 for receiving and 2 for sending, so use at most 2"), "{error}");
        let (mut device, queues) = open_all(&format!("{name}?queues=2"));
        std::thread::scope(|threads| {
            for (number, mut queue) in queues.into_iter().enumerate() {
                threads.spawn(move || {
                    let mut got = receive_by(queue.rx.as_mut(), 500);
                    assert_eq!(got, of(number));
                    let mut pool = packet::Pool::default();
                    assert_eq!(queue.tx.tx_batch(&mut got, &mut pool).unwrap(), 500);
                });
            }
        });
        let counters = device.counters();
        assert_eq!((counters.rx_packets, counters.tx_packets), (1_000, 1_000));
        assert_eq!(counters.rx_bytes, counters.tx_bytes);
    }

    /// `net_memif` joins queues of the same number, as other switches have them.
    fn devices_that_are_joined_have_joined_queues() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("memif");
        let end = |number: usize, role: &str| {
            let socket = socket.display();
            open_all(&format!(
                "dpdk:net_memif{number},role={role},socket={socket},socket-abstract=no?queues=3"
            ))
        };
        let (mut server, mut near) = end(0, "server");
        let (mut client, mut far) = end(1, "client");
        until("both ends", || server.info().link_up && client.info().link_up);
        // The client's receiving gives the server room to send.
        for queue in near.iter_mut().chain(&mut far) {
            assert_eq!(queue.rx.rx(&mut Batch::default(), 9).unwrap(), 0);
        }
        for (from, to) in [(0, 1), (1, 0)] {
            let ends = [&mut near, &mut far];
            let of = |queue: usize| (0..30).map(move |n| frame(60 + n, queue + 7 * from));
            for queue in [1, 2, 0] {
                let frames: Vec<PacketBuf> = of(queue).collect();
                assert_eq!(ends[from][queue].tx.tx(&frames).unwrap(), 30);
            }
            for (number, queue) in ends[to].iter_mut().enumerate() {
                let got = receive_by(queue.rx.as_mut(), 30);
                assert!(got.into_iter().eq(of(number)), "queue {number} to {to}");
            }
        }
        assert_eq!(server.counters().rx_packets, 90);
        assert_eq!(client.counters().tx_packets, 90);
    }

    /// A device that shares flows out: `net_tap`, whose kernel side does it.
    #[test]
    #[ignore = "needs root"]
    fn a_device_shares_flows_out_among_its_queues() {
        if !is_child("dpdk::with_dpdk::a_device_shares_flows_out_among_its_queues") {
            return;
        }
        let run = || flows_are_shared_out("dpdk:net_tap0,iface=dtap0?queues=4", "af_packet:dtap0");
        namespace().enter(run).unwrap();
    }
}
