//! `weir switch` as a program beside peers that are slow, many, or both: who is served, and how
//! much is logged.

use super::process::{DEADLINE, Running, until, weir};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

const HELLO: [u8; 8] = [4, 0, 0, 8, 0, 0, 0, 1];
const BARRIER: [u8; 8] = [4, 20, 0, 8, 0, 0, 0, 2];
const BARRIER_REPLY: [u8; 8] = [4, 21, 0, 8, 0, 0, 0, 2];

/// The most connections that are up at a listener.
const UP_MAX: usize = 1_024;

/// A switch that listens on a port of this machine, with what it has logged.
struct Switch {
    running: Running,
    port: u16,
}

impl Switch {
    fn start() -> Self {
        let mut command = weir(&["switch", "--dpid", "a1", "--port", "null:a"]);
        command.args(["--control", "none", "--listen", "ptcp:0:127.0.0.1"]);
        let running = Running::start(command.args(["--inactivity-probe", "60"]));
        running.says("ready");
        let ready = running.lines().into_iter().find(|line| line.contains("ready")).unwrap();
        let (_, port) = ready.split_once("ptcp:").unwrap();
        let port = port.split(':').next().unwrap().parse().unwrap();
        Self { running, port }
    }

    fn lines(&self) -> Vec<String> {
        self.running.lines()
    }

    /// A stream from an address of this machine to the switch.
    fn connect(&self, from: [u8; 4]) -> std::net::TcpStream {
        let to = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), self.port);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let stream = runtime.block_on(async {
            let socket = tokio::net::TcpSocket::new_v4().unwrap();
            socket.bind(SocketAddr::new(from.into(), 0)).unwrap();
            socket.connect(to).await.unwrap().into_std().unwrap()
        });
        stream.set_nonblocking(false).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream
    }

    /// A controller that has said hello.
    fn controller(&self, from: [u8; 4]) -> std::net::TcpStream {
        let mut stream = self.connect(from);
        stream.write_all(&HELLO).unwrap();
        let mut hello = [0; 16];
        stream.read_exact(&mut hello).unwrap();
        assert_eq!(hello[..4], [4, 0, 0, 16], "a hello with its versions");
        stream
    }

    /// A controller that has said hello and begun a message of 64 KB.
    fn slow(&self, from: [u8; 4]) -> std::net::TcpStream {
        let mut stream = self.controller(from);
        stream.write_all(&[4, 2, 0xff, 0xff, 0, 0, 0, 3, 0]).unwrap();
        stream
    }
}

/// Whether the switch answers a barrier.
fn is_served(stream: &mut std::net::TcpStream) -> bool {
    let mut reply = [0; 8];
    stream.write_all(&BARRIER).and_then(|()| stream.read_exact(&mut reply)).is_ok()
        && reply == BARRIER_REPLY
}

#[test]
fn slow_peers_lock_out_neither_other_addresses_nor_their_own() {
    let switch = Switch::start();
    let mut slow: Vec<_> = (0..UP_MAX).map(|_| switch.slow([127, 0, 0, 1])).collect();
    let mut served: Vec<_> = (0..40).map(|_| switch.controller([127, 0, 0, 2])).collect();
    for (number, controller) in served.iter_mut().enumerate() {
        assert!(is_served(controller), "number {number} of another address");
    }
    // A byte a second: the messages are overdue, and the connections look alive.
    for _ in 0..3 {
        std::thread::sleep(Duration::from_secs(1));
        for peer in &mut slow {
            // Those that were evicted are gone.
            let _ = peer.write_all(&[0]);
        }
    }
    for number in 0..40 {
        let mut controller = switch.controller([127, 0, 0, 1]);
        assert!(is_served(&mut controller), "number {number} of the same address");
        served.push(controller);
    }
    for (number, controller) in served.iter_mut().enumerate() {
        assert!(is_served(controller), "number {number} stays");
    }
}

#[test]
fn a_storm_of_connections_is_a_few_lines_of_log() {
    let switch = Switch::start();
    let mut bad = switch.controller([127, 0, 0, 3]);
    for _ in 0..1_000 {
        let mut peer = switch.connect([127, 0, 0, 1]);
        peer.write_all(&[HELLO, BARRIER].concat()).unwrap();
        // No hello at all.
        switch.connect([127, 0, 0, 1]).write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        // An error message, and a bad type.
        bad.write_all(&[4, 1, 0, 12, 0, 0, 0, 9, 0, 1, 0, 1, 4, 99, 0, 8, 0, 0, 0, 9]).unwrap();
    }
    assert!(is_served(&mut switch.controller([127, 0, 0, 2])));
    until("the storm is logged", || {
        let all = switch.lines().join("\n");
        let wanted = ["connection failed", "the controller complains"];
        wanted.iter().all(|text| all.contains(text)).then_some(())
    });
    // Clients that come and go are there at debug level only.
    assert!(!switch.lines().iter().any(|line| line.contains("connected")), "{:?}", switch.lines());
    let (lines, begun) = (switch.lines(), Instant::now());
    assert!(lines.len() < 60, "{} lines: {lines:#?}", lines.len());
    // The numbers of those left out come with the next line of the kind.
    let counted = until("a count", || {
        let mut peer = switch.connect([127, 0, 0, 1]);
        peer.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        switch.lines().into_iter().find(|line| line.contains("suppressed="))
    });
    assert!(counted.contains("suppressed="), "{counted} after {:?}", begun.elapsed());
}
