//! A switch that is killed while its kernel tier forwards: nothing of it stays in the kernel.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::harness::{Switch, frame, until};
use crate::tier_rig::{forward_first, handovers, hosts, kernel_hits, until_hits};
use crate::veth::{add_veth, in_namespace};

/// Set for the process that is to be killed: this program, once more.
const VICTIM: &str = "WEIR_TEST_KILLED_SWITCH";

/// The longest time that it runs, if nobody kills it.
const VICTIM_LIFE: Duration = Duration::from_secs(60);

/// A switch that sends from port 1 to port 2.
fn switch() -> Switch {
    let ports = "\"1=af_packet:sw1\", \"2=af_packet:sw2\"";
    let switch = Switch::with_ports(ports, Vec::new(), "");
    forward_first(&switch, &[2]);
    switch
}

/// Prints again and again the number of packets that the kernel has decided about, in a line each.
fn print_hits() {
    let (switch, end) = (switch(), Instant::now() + VICTIM_LIFE);
    while Instant::now() < end {
        println!("\nhits={}", kernel_hits(&switch));
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
#[ignore = "needs root"]
fn a_killed_switch_leaves_nothing_in_the_kernel() {
    if std::env::var_os(VICTIM).is_some() {
        return print_hits();
    }
    in_namespace(|rtnl| {
        add_veth(rtnl, "sw1", "host1");
        add_veth(rtnl, "sw2", "host2");
        let [mut one, mut two] = hosts();
        let name = "kernel_tier_killed::a_killed_switch_leaves_nothing_in_the_kernel";
        let mut victim = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--ignored", "--nocapture"])
            .env(VICTIM, "1")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(victim.stdout.take().unwrap()).lines();
        let mut hits = lines.filter_map(|line| line.unwrap().strip_prefix("hits=")?.parse().ok());
        let has_decided = hits.any(|hits: u64| {
            one.send(&frame(7));
            hits > 0
        });
        victim.kill().unwrap();
        victim.wait().unwrap();
        assert!(has_decided, "the kernel has decided before the switch was killed");
        // The kernel takes links and devices away behind the process's end.
        until("the TAP devices to go", || (handovers(rtnl) == 0).then_some(()));
        until("the programs to go", || {
            two.received();
            one.send(&frame(8));
            std::thread::sleep(Duration::from_millis(50));
            (two.received() == 0).then_some(())
        });
        let switch = switch();
        until_hits(&switch, 0, || one.send(&frame(9)));
        assert_eq!(two.receive(), frame(9));
        switch.stop();
    });
}
