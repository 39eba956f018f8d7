//! `--metrics` of the programs: what Prometheus is answered while they work.

use super::process::{Running, free_port, until, weir};
use std::io::{Read, Write};
use std::net::TcpStream;

/// The text at `address`, or nothing where nobody answers.
fn scrape(address: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    // By 1.0 the text comes whole.
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let text = answer.strip_prefix("HTTP/1.0 200 OK\r\n")?.split_once("\r\n\r\n")?.1;
    Some(text.to_owned())
}

/// The value of a sample, 0 where it is not there.
fn value(text: &str, sample: &str) -> u64 {
    let found = text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    found.and_then(|value| value.parse().ok()).unwrap_or_default()
}

#[test]
fn every_command_of_the_generator_that_sends_serves_metrics() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("gen.sock");
    let [profile, script] = ["profile.toml", "script.pkt"].map(|name| dir.path().join(name));
    std::fs::write(&profile, "[[streams]]\nrate = '1kpps'\n").unwrap();
    std::fs::write(&script, "set 0 rate 1kpps\nstart 0\ndelay 600000\n").unwrap();
    for words in [
        &["flood", "--rate", "1kpps", "--quiet"][..],
        &["run", profile.to_str().unwrap(), "--quiet"],
        &["console", "--plain", "--file", script.to_str().unwrap()],
        &["rfc2544", "--sizes", "64", "--trial", "0.1", "--no-learning"],
        &["serve", "--control", socket.to_str().unwrap()],
    ] {
        let mut command = weir(&["--log", "info", "gen"]);
        command.args(words).args(["--metrics", "127.0.0.1:0"]);
        command.args(["--port", "memory:cable?end=a", "--port", "memory:cable?end=b"]);
        let running = Running::start(&mut command);
        let found = running.word_after("metrics at http://");
        let address = found.strip_suffix("/metrics").unwrap();
        let sends = !words.contains(&"serve");
        until("frames that leave and come", || {
            let text = scrape(address)?;
            let of = |metric: &str, port: usize, end: &str| {
                let labels = format!("{{port=\"{port}\",name=\"memory:cable?end={end}\"}}");
                value(&text, &format!("weir_generator_{metric}{labels}"))
            };
            assert_eq!(of("up", 0, "a"), 1, "{text}");
            let [sent, came] =
                [of("transmit_packets_total", 0, "a"), of("receive_packets_total", 1, "b")];
            assert!(sends || (sent, came) == (0, 0), "{text}");
            assert!(sent == 0 || of("transmit_bytes_total", 0, "a") >= 64 * sent, "{text}");
            (!sends || sent > 9 && came > 9).then_some(())
        });
    }
}

#[test]
fn an_address_that_cannot_be_is_refused_by_every_program() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let programs: [&[&str]; 4] = [
        &["switch", "--port", "null:a", "--control", "none"],
        &["vswitchd", "unix:/no/such"],
        &["controller", "hub", "--listen", "tcp:127.0.0.1:0"],
        &["gen", "flood", "--port", "null:a"],
    ];
    for program in programs {
        for (address, code, why) in [
            ("unix:/run/weir/metrics", 2, "over TCP, as Prometheus reads them"),
            ("127.0.0.1", 2, "write ADDRESS:PORT, for example 127.0.0.1:9437"),
            (taken.as_str(), 1, "Address already in use"),
        ] {
            // The daemon listens when it has its database.
            if program[0] == "vswitchd" && address == taken {
                continue;
            }
            let mut running = Running::start(weir(program).args(["--metrics", address]));
            let status = until("the end", || running.child.try_wait().unwrap());
            assert_eq!(status.code(), Some(code), "{program:?} {address}");
            running.says(why);
        }
    }
}

/// Scrapes at once, and connections that say nothing, leave the switch and the next reader alone.
#[test]
fn a_crowd_of_readers_is_answered_and_ends_with_the_switch() {
    let address = format!("127.0.0.1:{}", free_port());
    let words = ["switch", "--port", "null:a", "--control", "none", "--metrics", &address];
    let running = Running::start(&mut weir(&words));
    running.says("ready");
    let silent: Vec<_> = (0..40).map(|_| TcpStream::connect(&address).unwrap()).collect();
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..16).map(|_| scope.spawn(|| scrape(&address))).collect();
        for reader in readers {
            let text = reader.join().unwrap().unwrap();
            assert_eq!(value(&text, "weir_bridge_ports{bridge=\"br0\"}"), 1, "{text}");
        }
    });
    drop((silent, running));
    assert_eq!(scrape(&address), None);
}
