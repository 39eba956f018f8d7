//! Every method over real kernel sockets, with a wire of our own in the switch's context.
//!
//! The wire copies frames between the two ports and nothing else, so that what the methods find is
//! known: no loss at low load, no controller, and a port rate that limits TCP.

use std::sync::atomic::{AtomicBool, Ordering};

use generator::method::TrialInput;
use netdev::Port;
use netdev::sys::event::wait;
use packet::Batch;
use programs::cancel::Cancel;

use super::{Method, MethodContext};
use crate::settings::Settings;
use crate::testbed::netns::{NetnsShape, NetnsTestbed, port_name};
use crate::testbed::{LinkShape, Testbed};

/// The methods of two hosts and a controller.
const METHODS: &[&Method] = &[
    &super::ping::PING,
    &super::probe::PROBE,
    &super::iperf3::TCP,
    &super::iperf2::UDP2,
    &super::rate::PPS,
];

/// Short trials.
fn settings() -> Settings {
    Settings { count: Some(10), duration_s: Some(0.3), load_bps: Some(1e7), ..<_>::default() }
}

fn forward(ports: &mut [Port; 2], stop: &AtomicBool) {
    let mut batch = Batch::default();
    while !stop.load(Ordering::Relaxed) {
        let mut moved = 0;
        for (from, to) in [(0, 1), (1, 0)] {
            moved += ports[from].rx(&mut batch, 64).unwrap();
            let _ = ports[to].tx(batch.frames()).unwrap();
            batch.clear();
        }
        if moved == 0 {
            let [first, second] = &*ports;
            let fds: Vec<_> = [first.fd(), second.fd()].into_iter().flatten().collect();
            wait(&fds, Some(std::time::Duration::from_millis(20))).unwrap();
        }
    }
}

/// Runs `work` on a testbed whose ports are joined by a wire.
fn on_a_wire(shape: LinkShape, work: impl FnOnce(&MethodContext<'_>)) {
    let bed = NetnsTestbed::new(NetnsShape::two_hosts(shape)).expect("needs root");
    let open = |host: usize| netdev::open_text(&format!("af_packet:{}", port_name(host))).unwrap();
    let mut ports = bed.switch().enter(|| [open(0), open(1)]).unwrap();
    let bed = Testbed::Kernel(bed);
    let (stop, cancel) = (AtomicBool::new(false), Cancel::default());
    let dir = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| forward(&mut ports, &stop));
        let context = MethodContext {
            bed: &bed,
            setup: None,
            settings: &settings(),
            watched: &[],
            before: None,
            dir: dir.path(),
            cancel: &cancel,
        };
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(&context)));
        stop.store(true, Ordering::Relaxed);
        if let Err(panic) = outcome {
            std::panic::resume_unwind(panic);
        }
    });
}

fn shape(port: &str) -> LinkShape {
    LinkShape { port_rate: port.parse().unwrap(), control_rate: "none".parse().unwrap() }
}

#[test]
#[ignore = "needs root"]
fn datagrams_of_the_lab_cross_kernel_sockets() {
    on_a_wire(shape("100M"), |context| {
        let input =
            TrialInput { frame_size: 1516, rate_pps: 100.0, duration_s: 0.3, grace_s: 10.0 };
        let there = context.bed.one_way(&input, context.cancel).unwrap();
        assert_eq!((there.report.sent, there.report.received + there.unsent), (30, 30));
        let back = context.bed.round_trip(&input, context.cancel).unwrap();
        assert_eq!((back.report.received + back.unsent, back.report.duplicated), (30, 0));
    });
}

#[test]
#[ignore = "needs root"]
fn every_method_measures_with_its_program() {
    on_a_wire(shape("100M"), |context| {
        for method in METHODS {
            let trial = (method.run)(context).unwrap_or_else(|e| panic!("{}: {e}", method.id));
            for metric in method.metrics {
                let value = trial.values.iter().find(|(id, _)| *id == metric.id);
                // So short a trial has too few samples for this quantile.
                let is_rare = metric.id.contains("_p99");
                assert!(value.is_some() || is_rare, "{} of {}", metric.id, trial.tool);
            }
            let (headline, value) = trial.values[0];
            assert!(value > 0.0, "{headline} is {value}");
            // Above would be a broken token bucket; far below is a machine that stalls.
            let is_shaped = headline != "tcp_mbps" || (0.1..97.0).contains(&value);
            assert!(is_shaped, "{headline} is {value}");
            assert!(trial.load.is_some(), "{}", method.id);
        }
    });
}

#[test]
fn methods_that_need_kernel_hosts_say_so() {
    let dir = tempfile::tempdir().unwrap();
    let bed = Testbed::Memory(crate::testbed::memory::MemoryTestbed::new(dir.path()).unwrap());
    let unfit = |method: &&&Method| (method.fits)(&bed).is_err();
    let ids: Vec<&str> = METHODS.iter().filter(unfit).map(|method| method.id).collect();
    assert_eq!(ids, ["ping", "tcp", "udp2"]);
}
