//! Traffic monitor and exporter: what they say is what was sent.

use super::fabric::{Fabric, arp_reply, arp_request, seconds, udp};
use controller::apps::AppName;
use openflow::Version;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

#[test]
fn the_monitor_prints_rates_of_ports_and_the_busiest_entries() {
    for &version in Version::ALL {
        let apps = [AppName::LearningSwitch, AppName::TrafficMonitor];
        let mut fabric = Fabric::new(&apps, "[traffic-monitor]\ninterval-s = 10\nflows = 1\n");
        fabric.add_switch(1, 2, version);
        fabric.send((1, 1), &arp_request(1, 2));
        fabric.send((1, 2), &arp_reply(2, 1));
        fabric.advance(seconds(15));
        fabric.printed.lock().unwrap().clear();
        for _ in 0..100 {
            fabric.send((1, 1), &udp(1, 2, 53));
        }
        fabric.advance(seconds(10));
        let printed = fabric.printed.lock().unwrap().clone();
        let words: Vec<Vec<&str>> =
            printed.lines().map(|line| line.split_whitespace().collect()).collect();
        // 100 packets of 60 bytes in ten seconds: 4.8 kb/s.
        let port = words.iter().find(|words| words.first() == Some(&"p1")).unwrap();
        assert_eq!(port[1..], ["4.8", "10.0", "0.0", "0.0", "0.0"], "{version}\n{printed}");
        let port = words.iter().find(|words| words.first() == Some(&"p2")).unwrap();
        assert_eq!(port[1..], ["0.0", "0.0", "4.8", "10.0", "0.0"], "{version}\n{printed}");
        let busiest: Vec<_> = printed.lines().filter(|line| line.contains("priority=")).collect();
        assert_eq!(busiest.len(), 1, "{printed}");
        assert!(busiest[0].contains("dl_dst=0a:00:00:00:00:02"), "{printed}");
    }
}

/// A free port of this machine, as far as can be said.
fn free() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

fn ask(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn get(address: SocketAddr, path: &str) -> String {
    ask(address, &format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"))
}

#[test]
fn the_exporter_answers_over_http_with_what_the_switch_counts() {
    let address = free();
    let settings = format!("[flow-exporter]\nlisten = \"{address}\"\nmax-flows = 1\n");
    let apps = [AppName::LearningSwitch, AppName::FlowExporter];
    let mut fabric = Fabric::new(&apps, &settings);
    fabric.add_switch(1, 2, Version::V1_3);
    assert!(!get(address, "/metrics").contains("dpid="), "nothing has been asked yet");
    fabric.send((1, 1), &arp_request(1, 2));
    fabric.send((1, 2), &arp_reply(2, 1));
    for _ in 0..100 {
        fabric.send((1, 1), &udp(1, 2, 53));
    }
    fabric.advance(seconds(12));
    let text = get(address, "/metrics");
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
    for line in [
        "openflow_port_receive_packets_total{dpid=\"0000000000000001\",port=\"1\",name=\"p1\"} 101",
        "openflow_flow_entries{dpid=\"0000000000000001\"} 3",
        "openflow_flow_entries_not_exported{dpid=\"0000000000000001\"} 2",
        "openflow_switch_info{dpid=\"0000000000000001\",version=\"OpenFlow13\"} 1",
    ] {
        assert!(text.lines().any(|own| own == line), "{line} is not in\n{text}");
    }
    assert!(get(address, "/").starts_with("HTTP/1.1 404"));
    let post = "POST /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    assert!(ask(address, post).starts_with("HTTP/1.1 405"));
    assert!(ask(address, "nonsense\r\n\r\n").starts_with("HTTP/1.1 400"));
    // Some who say nothing do not keep others from an answer.
    let silent: Vec<_> = (0..20).map(|_| TcpStream::connect(address).unwrap()).collect();
    assert!(get(address, "/metrics").starts_with("HTTP/1.1 200"));
    drop(silent);
    fabric.disconnect(1);
    assert!(!get(address, "/metrics").contains("dpid="), "the switch is gone");
    drop(fabric);
    assert!(TcpStream::connect(address).is_err(), "the server ends with the controller");
}

#[test]
fn an_address_that_is_taken_is_an_error_at_the_start() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let config = format!("[flow-exporter]\nlisten = \"{address}\"\n");
    let config = controller::apps::AppConfig::parse(&config).unwrap();
    let print: controller::apps::Print = std::sync::Arc::new(|_| {});
    let apps = controller::apps::ReadyApps::new(&[AppName::FlowExporter], &config, &print);
    let error = apps.unwrap_err().to_string();
    assert!(error.contains(&address.to_string()), "{error}");
}
