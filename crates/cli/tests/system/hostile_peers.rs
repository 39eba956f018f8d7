//! `weir switch` and `weir controller` as programs beside peers that are slow, many, large, or all
//! of it: who is served, how much is logged, and the memory that it takes.

use super::process::{DEADLINE, Running, signal, until, weir};
use files::proc::ProcFolder;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

const HELLO: [u8; 8] = [4, 0, 0, 8, 0, 0, 0, 1];
const BARRIER: [u8; 8] = [4, 20, 0, 8, 0, 0, 0, 2];
const BARRIER_REPLY: [u8; 8] = [4, 21, 0, 8, 0, 0, 0, 2];

const ECHO_REQUEST: u8 = 2;
const ECHO_REPLY: u8 = 3;
const FEATURES_REQUEST: u8 = 5;
const FEATURES_REPLY: u8 = 6;
const MULTIPART_REQUEST: u8 = 18;
const MULTIPART_REPLY: u8 = 19;
/// `OFPMP_PORT_DESC`.
const PORT_DESC: [u8; 2] = [0, 13];

/// Switches of 65,000 ports. A controller has room for eight, of some 8 MiB each.
const LARGE: u8 = 20;
/// Bound in MiB on what they take, which is less than all of them would.
const LARGE_MIB: u64 = 128;
/// The rest in MiB that may stay when they have gone.
const LEFT_MIB: u64 = 24;

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

    fn connect(&self, from: [u8; 4]) -> TcpStream {
        connect(self.port, from)
    }

    /// A controller that has said hello.
    fn controller(&self, from: [u8; 4]) -> TcpStream {
        let mut stream = self.connect(from);
        stream.write_all(&HELLO).unwrap();
        let mut hello = [0; 16];
        stream.read_exact(&mut hello).unwrap();
        assert_eq!(hello[..4], [4, 0, 0, 16], "a hello with its versions");
        stream
    }

    /// A controller that has said hello and begun a message of 64 KB.
    fn slow(&self, from: [u8; 4]) -> TcpStream {
        let mut stream = self.controller(from);
        stream.write_all(&[4, 2, 0xff, 0xff, 0, 0, 0, 3, 0]).unwrap();
        stream
    }
}

/// A stream from an address of this machine to a port of it.
fn connect(port: u16, from: [u8; 4]) -> TcpStream {
    let to = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
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

/// Whether the switch answers a barrier.
fn is_served(stream: &mut TcpStream) -> bool {
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

/// A switch by hand, for a controller.
struct HandMade(TcpStream);

impl HandMade {
    fn send(&mut self, kind: u8, xid: &[u8], body: &[u8]) -> io::Result<()> {
        let length = u16::try_from(8 + body.len()).unwrap().to_be_bytes();
        self.0.write_all(&[&[4, kind], &length[..], xid, body].concat())
    }

    /// The type, xid and body of the next message; an echo request is answered.
    fn next(&mut self) -> io::Result<(u8, [u8; 4], Vec<u8>)> {
        loop {
            let mut head = [0; 8];
            self.0.read_exact(&mut head)?;
            let [_, kind, high, low, xid @ ..] = head;
            let mut body = vec![0; usize::from(u16::from_be_bytes([high, low])) - 8];
            self.0.read_exact(&mut body)?;
            if kind != ECHO_REQUEST {
                return Ok((kind, xid, body));
            }
            self.send(ECHO_REPLY, &xid, &body)?;
        }
    }

    /// Says who it is, and that it has so many ports, when it is asked for them.
    fn claim(&mut self, dpid: u64, ports: u32) -> io::Result<()> {
        self.0.write_all(&HELLO)?;
        loop {
            match self.next()? {
                (FEATURES_REQUEST, xid, _) => {
                    let features = [&dpid.to_be_bytes()[..], &[0, 0, 0, 0, 1], &[0; 11]].concat();
                    self.send(FEATURES_REPLY, &xid, &features)?;
                }
                (MULTIPART_REQUEST, xid, body) if body[..2] == PORT_DESC => {
                    let numbers: Vec<u32> = (1..=ports).collect();
                    let parts: Vec<&[u32]> = numbers.chunks(1_000).collect();
                    for (left, part) in (0..parts.len()).rev().zip(parts) {
                        let mut body =
                            [&PORT_DESC[..], &[0, u8::from(left > 0), 0, 0, 0, 0]].concat();
                        part.iter().for_each(|number| body.extend(port(*number)));
                        self.send(MULTIPART_REPLY, &xid, &body)?;
                    }
                    return Ok(());
                }
                (_, _, _) => {}
            }
        }
    }

    /// Whether what it has sent has been read, and it is still served.
    fn is_served(&mut self) -> bool {
        let mut served = || -> io::Result<()> {
            self.send(ECHO_REQUEST, &[9; 4], &[])?;
            while self.next()?.0 != ECHO_REPLY {}
            Ok(())
        };
        served().is_ok()
    }
}

/// The description of a port.
fn port(number: u32) -> [u8; 64] {
    let mut port = [0; 64];
    port[..4].copy_from_slice(&number.to_be_bytes());
    port[8..14].copy_from_slice(&[&[2, 0], &number.to_be_bytes()[..]].concat());
    let name = format!("port{number}");
    port[16..16 + name.len()].copy_from_slice(name.as_bytes());
    port
}

#[test]
fn switches_of_65000_ports_take_the_memory_of_a_few_of_them() {
    let running = Running::start(&mut weir(&["controller", "idle", "--listen", "tcp:127.0.0.1:0"]));
    let listens: u16 = running.word_after("listening on tcp:127.0.0.1:").parse().unwrap();
    let mut small = HandMade(connect(listens, [127, 0, 2, 1]));
    small.claim(1, 4).unwrap();
    assert!(small.is_served());
    let memory = |name| ProcFolder::of(running.child.id()).memory(name).unwrap() >> 20;
    let before = memory("VmRSS");
    let mut large = Vec::new();
    for number in 1..=LARGE {
        let mut peer = HandMade(connect(listens, [127, 0, 1, number]));
        if peer.claim(1_000 + u64::from(number), 65_000).is_ok() {
            large.push(peer);
        }
        large.retain_mut(HandMade::is_served);
        assert!(small.is_served(), "who takes little stays");
    }
    let (peak, with, served) = (memory("VmHWM"), memory("VmRSS"), large.len());
    println!("{before} MiB before, {peak} at the peak, {with} with {served} of them served");
    assert!(served > 0 && peak < before + LARGE_MIB, "{peak} MiB");
    drop(large);
    let after = until("its memory given back", || {
        Some(memory("VmRSS")).filter(|now| *now < before + LEFT_MIB)
    });
    println!("{after} MiB after they left");
    assert!(small.is_served());
}

/// Those that a controller connects to, all of 65,000 ports: there is room for some of them.
#[test]
fn large_switches_that_are_connected_to_are_bounded_too() {
    let listeners: Vec<_> = (0..LARGE).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let mut command = weir(&["controller", "idle"]);
    for listener in &listeners {
        command.args(["--connect", &format!("tcp:{}", listener.local_addr().unwrap())]);
    }
    let _running = Running::start(&mut command);
    let mut large = Vec::new();
    for (number, listener) in (1..).zip(listeners) {
        // Who is closed cannot come again.
        let mut peer = HandMade(listener.accept().unwrap().0);
        drop(listener);
        peer.0.set_read_timeout(Some(DEADLINE)).unwrap();
        if peer.claim(number, 65_000).is_ok() && peer.is_served() {
            large.push(peer);
        }
        large.retain_mut(HandMade::is_served);
    }
    assert!((1..usize::from(LARGE)).contains(&large.len()), "{} are served", large.len());
}

/// A program that ends with the test.
struct Ending(std::process::Child);

impl Drop for Ending {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The controller's standard error is a pipe whose other end reads one line and no more.
#[test]
fn a_log_that_nobody_reads_stops_no_controller() {
    let mut command = weir(&["controller", "idle", "--listen", "tcp:127.0.0.1:0"]);
    let child = command.args(["--log", "debug"]).stderr(std::process::Stdio::piped()).spawn();
    let Ending(child) = &mut Ending(child.unwrap());
    let mut stderr = child.stderr.take().unwrap();
    let mut log = Vec::new();
    let listens = until("the port", || {
        let mut byte = [0];
        stderr.read_exact(&mut byte).unwrap();
        log.push(byte[0]);
        let line = String::from_utf8_lossy(&log);
        let (_, rest) = line.split_once("listening on tcp:127.0.0.1:")?;
        rest.strip_suffix('\n')?.parse::<u16>().ok()
    });
    let mut switch = HandMade(connect(listens, [127, 0, 0, 1]));
    switch.claim(9, 4).unwrap();
    // Each of these errors has a line at this level.
    switch.0.write_all(&[4, 1, 0, 12, 0, 0, 0, 9, 0, 1, 0, 1].repeat(20_000)).unwrap();
    assert!(switch.is_served());
    signal(child, "TERM");
    let ended = until("its end", || child.try_wait().unwrap());
    assert!(ended.success(), "{ended}");
}
