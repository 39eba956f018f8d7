//! `--metrics` and the word for `weir ctl top`: they give the counts of `dump-ports`.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};

use control::{ControlCommand, ControlLine, ControlRequest, CountsRecord};

use crate::harness::{DEADLINE, Switch, frame};

/// A free port of this machine, as far as can be said.
fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

fn get(address: SocketAddr, accept: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    // By 1.0 the text comes whole.
    write!(stream, "GET /metrics HTTP/1.0\r\naccept: {accept}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.0 200 OK\r\n"), "{answer}");
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

/// The value of a sample, which is there.
fn value(text: &str, sample: &str) -> u64 {
    let found = text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    found.unwrap_or_else(|| panic!("{sample} is not in\n{text}")).parse().unwrap()
}

#[test]
fn metrics_and_counts_are_those_of_dump_ports() {
    let address = free();
    let switch = Switch::start(2, &format!("metrics = \"{address}\"\n"));
    let mut hosts = [1, 2].map(|port| switch.host(port));
    switch.ctl(&["add-flow", "in_port=1,actions=output:2"]);
    for number in 0..5 {
        hosts[0].send(&frame(number));
        hosts[1].receive();
    }
    // No entry takes these.
    hosts[1].send(&frame(9));
    let ports = crate::harness::until("the frame without an entry", || {
        let ports = switch.records(&["dump-ports"]);
        (ports[1]["rx_packets"] == 1).then_some(ports)
    });
    let text = get(address, "text/plain");
    let open = get(address, "application/openmetrics-text; version=1.0.0,text/plain;q=0.5");
    assert!(open.ends_with("# EOF\n") && !text.contains("# EOF"), "{open}");
    let descs = switch.records(&["dump-ports-desc"]);
    for (port, desc) in ports.iter().zip(&descs) {
        let (number, name) = (&port["port_no"], desc["name"].as_str().unwrap());
        for (metric, key) in [
            ("receive_packets", "rx_packets"),
            ("transmit_packets", "tx_packets"),
            ("receive_bytes", "rx_bytes"),
            ("transmit_bytes", "tx_bytes"),
            ("receive_dropped", "rx_dropped"),
            ("transmit_errors", "tx_errors"),
        ] {
            let labels = format!("{{bridge=\"br0\",port=\"{number}\",name=\"{name}\"}}");
            let sample = format!("weir_port_{metric}_total{labels}");
            for text in [&text, &open] {
                assert_eq!(value(text, &sample), port[key].as_u64().unwrap(), "{sample}");
            }
        }
    }
    for (sample, expected) in [
        ("weir_build_info{program=\"switch\",version=\"0.1.0\"}", 1),
        ("weir_bridge_info{bridge=\"br0\",dpid=\"00000000000000a1\"}", 1),
        ("weir_bridge_flow_entries{bridge=\"br0\"}", 1),
        ("weir_table_matches_total{bridge=\"br0\",table=\"0\"}", 5),
        ("weir_dropped_packets_total{bridge=\"br0\",reason=\"no_match\"}", 1),
        ("weir_datapath_received_total{bridge=\"br0\"}", 6),
        ("weir_flow_mod_total{bridge=\"br0\"}", 1),
        ("weir_worker_receive_packets_total{worker=\"0\"}", 6),
    ] {
        assert_eq!(value(&text, sample), expected, "{sample}");
    }
    let decided = ["kernel", "port", "frame cache", "key cache", "tables"].map(|tier| {
        value(&text, &format!("weir_decided_packets_total{{bridge=\"br0\",tier=\"{tier}\"}}"))
    });
    assert_eq!(decided.iter().sum::<u64>(), 6, "{decided:?}");
    assert_counts(&switch, &ports);
    drop(switch);
    assert!(TcpStream::connect(address).is_err(), "the server ends with the switch");
}

/// The answer for `weir ctl top` has the same counts.
fn assert_counts(switch: &Switch, ports: &[serde_json::Value]) {
    let request = ControlRequest { json: true, bridge: None, command: ControlCommand::Counts };
    let records = control::ask(&switch.socket("ctl"), &request).unwrap();
    let records: Vec<CountsRecord> = records
        .into_iter()
        .filter_map(|line| match line {
            ControlLine::Value(value) => Some(serde_json::from_value(value).unwrap()),
            ControlLine::Text(_) | ControlLine::Done | ControlLine::Refused(_) => None,
        })
        .collect();
    let [CountsRecord::Bridge(bridge), CountsRecord::Worker(worker)] = &records[..] else {
        panic!("{records:?}")
    };
    assert_eq!((bridge.entries, bridge.drops["no_match"], worker.rx_packets), (1, 1, 6));
    for (counted, port) in bridge.ports.iter().zip(ports) {
        assert_eq!(counted.rx_packets, port["rx_packets"].as_u64().unwrap());
        assert_eq!(counted.tx_bytes, port["tx_bytes"].as_u64().unwrap());
    }
}

/// A worker is asked for some ports at a time.
#[test]
fn every_port_of_many_is_counted_once() {
    let address = free();
    let switch = Switch::start(40, &format!("metrics = \"{address}\"\n"));
    let mut hosts = [40, 17].map(|port| switch.host(port));
    switch.ctl(&["add-flow", "in_port=40,actions=output:17"]);
    hosts[0].send(&frame(1));
    hosts[1].receive();
    let counts = |text: &str, metric: &str| -> Vec<u64> {
        let samples = text.lines().filter(|line| line.starts_with(&format!("{metric}{{")));
        samples.map(|line| line.rsplit_once(' ').unwrap().1.parse().unwrap()).collect()
    };
    crate::harness::until("the counts of the frame", || {
        let text = get(address, "text/plain");
        assert_eq!(counts(&text, "weir_port_up"), [1; 40]);
        let received = counts(&text, "weir_port_receive_packets_total");
        let sent = counts(&text, "weir_port_transmit_packets_total");
        let of = |counts: &[u64], port: usize| (counts[port - 1], counts.iter().sum::<u64>());
        (of(&received, 40) == (1, 1) && of(&sent, 17) == (1, 1)).then_some(())
    });
    let ports = switch.records(&["dump-ports"]);
    let of = |port: usize, key: &str| ports[port - 1][key].as_u64();
    assert_eq!((of(40, "rx_packets"), of(17, "tx_packets")), (Some(1), Some(1)));
}

#[test]
fn a_wire_and_an_address_that_is_taken() {
    let address = free();
    let switch = Switch::wired(2, &format!("forward = \"io\"\nmetrics = \"{address}\"\n"));
    let text = get(address, "*/*");
    assert_eq!(value(&text, "weir_bridge_ports{bridge=\"br0\"}"), 2);
    assert!(!text.contains("weir_decided_packets_total{"), "a wire decides nothing");
    let args = switch::parse_config(&format!("metrics = \"{address}\"\ncontrol = \"none\"\n"));
    let stop = || Ok(std::future::ready(()));
    let error = switch::run_until(args.unwrap().resolve().unwrap(), stop).unwrap_err();
    assert!(error.to_string().contains(&address.to_string()), "{error}");
    drop(switch);
}
