//! Controllers of known behaviour, for tests of the emulator: on loopback, in threads of the test.
//!
//! Their faults are those of controllers: silence, garbage, messages that do not parse, sockets
//! that are never read, connections that end. Dropping one ends its threads.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use channel::{Connection, ConnectionSettings, Endpoint, Event, Side};
use openflow::flow::{FlowMod, FlowModCommand};
use openflow::message::{
    MultipartRequest, MultipartRequestBody, PacketIn, PacketOut, SwitchConfig,
};
use openflow::{Action, Message, MessageKind, PortNo, Version, Xid};

/// Behaviour of a mock controller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Behaviour {
    /// Answers each packet-in with a packet-out, after this time for each.
    Hub(Duration),
    /// Answers with a flow-mod and a packet-out.
    FlowAndPacket,
    /// As a hub, but once, after this number of packet-ins, it stops for this time.
    Stalls(u32, Duration),
    /// Says hello and asks who the switch is, and nothing else.
    Mute,
    /// Says nothing at all.
    Silent,
    /// Sends bytes that are no OpenFlow.
    Garbage,
    /// As a hub, with a flow-mod that does not parse before each packet-out.
    Malformed,
    /// As a hub, until this number of packet-ins has come; it reads nothing from then on.
    Deaf(u32),
    /// As a hub, until this number of packet-ins has come; it ends the connection then.
    Leaves(u32),
}

/// A mock controller.
#[derive(Debug)]
pub(crate) struct Mock {
    port: u16,
    is_over: Arc<AtomicBool>,
    streams: Arc<Mutex<Vec<TcpStream>>>,
    listener: Option<JoinHandle<()>>,
}

impl Mock {
    pub(crate) fn start(behaviour: Behaviour) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let is_over = Arc::new(AtomicBool::new(false));
        let streams: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let (over, kept) = (Arc::clone(&is_over), Arc::clone(&streams));
        let accepting = std::thread::spawn(move || {
            let mut threads = Vec::new();
            for stream in listener.incoming() {
                if over.load(Ordering::SeqCst) {
                    break;
                }
                let Ok(stream) = stream else { continue };
                let copy = stream.try_clone().unwrap();
                kept.lock().unwrap_or_else(PoisonError::into_inner).push(copy);
                let over = Arc::clone(&over);
                threads.push(std::thread::spawn(move || {
                    // A stream that has failed ends its connection.
                    let _ = serve(stream, behaviour, &over);
                }));
            }
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
        Self { port, is_over, streams, listener: Some(accepting) }
    }

    /// Number of connections that it has taken.
    pub(crate) fn connections(&self) -> usize {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        Endpoint::Tcp { host: Ipv4Addr::LOCALHOST.to_string(), port: self.port }
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        for stream in self.streams.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            // One that is closed already is what is wanted.
            let _ = stream.shutdown(Shutdown::Both);
        }
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
        if let Some(listener) = self.listener.take() {
            listener.join().unwrap();
        }
    }
}

/// One connection, until it is over.
fn serve(mut stream: TcpStream, behaviour: Behaviour, is_over: &AtomicBool) -> io::Result<()> {
    if behaviour == Behaviour::Garbage {
        stream.write_all(b"HTTP/1.0 400 Bad Request\r\n\r\n")?;
    }
    if matches!(behaviour, Behaviour::Silent | Behaviour::Garbage) {
        return wait(is_over);
    }
    stream.set_nodelay(true)?;
    let settings = ConnectionSettings::new(Side::Controller).with_versions(Version::ALL);
    let mut connection = Connection::new(settings, Instant::now());
    let (mut packet_ins, mut bytes) = (0, vec![0; 1 << 16]);
    loop {
        flush(&mut connection, &mut stream)?;
        let count = stream.read(&mut bytes)?;
        if count == 0 {
            return Ok(());
        }
        connection.receive(&bytes[..count], Instant::now());
        while let Some(event) = connection.poll_event() {
            let packet_in = match event {
                Event::Up { version } => {
                    ask(&mut connection, version.has_port_desc());
                    continue;
                }
                Event::Message { message: Message::PacketIn(packet_in), .. } => packet_in,
                Event::Down(_) => return Ok(()),
                Event::Message { .. } | Event::Refused { .. } => continue,
            };
            packet_ins += 1;
            match behaviour {
                Behaviour::Mute => continue,
                Behaviour::Deaf(last) if packet_ins > last => return wait(is_over),
                // A copy of the stream is kept by the mock.
                Behaviour::Leaves(last) if packet_ins > last => {
                    return stream.shutdown(Shutdown::Both);
                }
                Behaviour::Hub(time) => std::thread::sleep(time),
                Behaviour::Stalls(after, time) if packet_ins == after => std::thread::sleep(time),
                Behaviour::FlowAndPacket => {
                    let entry = FlowMod::new(FlowModCommand::Add);
                    connection.send(&Message::FlowMod(entry)).unwrap();
                }
                Behaviour::Malformed => {
                    let version = connection.version().unwrap();
                    let kind = MessageKind::FlowMod.number(version).unwrap();
                    let mut frame = vec![version.number(), kind, 0, 16];
                    frame.resize(16, 0xff);
                    connection.send_frame(&frame).unwrap();
                }
                Behaviour::Stalls(..)
                | Behaviour::Silent
                | Behaviour::Garbage
                | Behaviour::Deaf(_)
                | Behaviour::Leaves(_) => {}
            }
            answer(&mut connection, &packet_in);
            // An answer does not wait for those to the packet-ins that came with its own.
            flush(&mut connection, &mut stream)?;
        }
    }
}

/// Writes what waits to be sent.
fn flush(connection: &mut Connection, stream: &mut TcpStream) -> io::Result<()> {
    let waiting = connection.transmit();
    stream.write_all(waiting)?;
    let count = waiting.len();
    connection.transmitted(count, Instant::now());
    Ok(())
}

/// First requests of every controller.
fn ask(connection: &mut Connection, has_port_desc: bool) {
    connection.send(&Message::FeaturesRequest).unwrap();
    let config = SwitchConfig { flags: 0, miss_send_len: 128 };
    connection.send(&Message::SetConfig(config)).unwrap();
    if has_port_desc {
        let body = MultipartRequestBody::PortDesc;
        let request = MultipartRequest { more: false, body };
        connection.send(&Message::MultipartRequest(request)).unwrap();
    }
    connection.send(&Message::BarrierRequest).unwrap();
}

/// Floods the packet.
fn answer(connection: &mut Connection, packet_in: &PacketIn) {
    let is_held = packet_in.buffer_id.is_some();
    let body = PacketOut {
        buffer_id: packet_in.buffer_id,
        in_port: packet_in.in_port().unwrap(),
        actions: vec![Action::output(PortNo::FLOOD)],
        data: if is_held { Vec::new() } else { packet_in.data.clone() },
    };
    connection.send_as(Xid(0), &Message::PacketOut(body)).unwrap();
}

fn wait(is_over: &AtomicBool) -> io::Result<()> {
    while !is_over.load(Ordering::SeqCst) {
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}
