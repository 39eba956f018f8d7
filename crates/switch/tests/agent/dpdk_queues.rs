//! DPDK ports of several queues, each on a worker of its own, in a process of their own without
//! huge pages: `net_memif` joins the queues of a port and those of the test by their numbers.

use std::process::Command;

use openflow::Version;

use crate::harness::{Switch, from_to, until};
use crate::port_queues::{Lanes, forward};
use crate::veth::shown;

const EAL: &str = "--no-huge -m 256 --no-pci --no-shconf --no-telemetry --log-level=4";
const CHILD: &str = "WEIR_TEST_DPDK_CHILD";

#[test]
fn dpdk_ports_give_their_queues_to_workers() {
    if std::env::var_os(CHILD).is_some() {
        return flows_stay_in_order_between_two_workers();
    }
    // DPDK starts once in a process, and its options come from the environment.
    let mut command = Command::new(std::env::current_exe().unwrap());
    let name = "dpdk_queues::dpdk_ports_give_their_queues_to_workers";
    command.args(["--exact", name, "--nocapture"]).env(CHILD, "1");
    command.env("WEIR_DPDK_EAL", EAL).env("WEIR_DPDK_BUFFERS", "16383");
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}");
    assert!(text.contains("1 passed"), "{text}");
}

fn flows_stay_in_order_between_two_workers() {
    let folder = tempfile::tempdir().unwrap();
    // The test's end of each port is the server, and there first.
    let spec = |device: usize, port: usize, role: &str| {
        let socket = folder.path().join(port.to_string());
        let socket = socket.display();
        format!("dpdk:net_memif{device},role={role},socket={socket},socket-abstract=no")
    };
    let [mut one, mut two] =
        [1, 2].map(|port| Lanes::of(&format!("{}?queues=2", spec(port, port, "server"))));
    let ports = [1, 2].map(|port| spec(10 + port, port, "client"));
    let specs = format!("\"1={}\",\"2={}\"", ports[0], ports[1]);
    let switch = Switch::with_ports(&specs, Vec::new(), "workers = 2\nqueues = 2");
    until("both links", || {
        [1, 2].iter().all(|port| shown(&switch, *port)["link_up"] == true).then_some(())
    });
    let mut controller = switch.controller(Version::V1_3);
    controller.send(&from_to(1, 2));
    controller.send(&from_to(2, 1));
    controller.barrier();
    assert_eq!(forward(&mut one, &mut two, 4), [0, 1]);
    assert_eq!(forward(&mut two, &mut one, 4), [0, 1]);
    let workers = switch.ctl(&["workers"]);
    for (number, port) in (1..).zip(&ports) {
        for queue in [0, 1] {
            let line = format!("receives queue {queue} of 2, {number}={port}?queues=2");
            assert!(workers.contains(&line), "{line}: {workers}");
        }
    }
    // What the device refuses is named with what it has.
    let (_, error) = switch.ctl_fails(&["add-port", "br0", "dpdk:net_ring0?queues=17"]);
    assert!(error.contains("use at most 16"), "{error}");
    switch.stop();
}
