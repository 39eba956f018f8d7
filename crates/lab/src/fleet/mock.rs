//! Controllers of known behaviour, for tests of the emulator: on loopback, in threads of the test.
//!
//! Their faults are those of controllers: silence, garbage, messages that do not parse, sockets
//! that are never read, connections that end. Dropping one ends its threads.

use std::io::Write as _;
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Result;
use channel::Endpoint;
use client::{Client, ClientSettings};
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
        let accept = move || {
            let over = &*over;
            std::thread::scope(|scope| {
                for stream in listener.incoming().flatten() {
                    if over.load(Ordering::SeqCst) {
                        break;
                    }
                    kept.lock().unwrap().push(stream.try_clone().unwrap());
                    // A stream that has failed ends its connection.
                    scope.spawn(move || serve(stream, behaviour, over));
                }
            });
        };
        let accepting = std::thread::spawn(accept);
        Self { port, is_over, streams, listener: Some(accepting) }
    }

    /// Number of connections that it has taken.
    pub(crate) fn connections(&self) -> usize {
        self.streams.lock().unwrap().len()
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        Endpoint::Tcp { host: Ipv4Addr::LOCALHOST.to_string(), port: self.port }
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        for stream in self.streams.lock().unwrap().drain(..) {
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
fn serve(mut stream: TcpStream, behaviour: Behaviour, is_over: &AtomicBool) -> Result<()> {
    if behaviour == Behaviour::Garbage {
        stream.write_all(b"HTTP/1.0 400 Bad Request\r\n\r\n")?;
    }
    if matches!(behaviour, Behaviour::Silent | Behaviour::Garbage) {
        return wait(is_over);
    }
    let own = stream.try_clone()?;
    let mut switch = Client::over_tcp(stream, "a switch", ClientSettings::of(Version::ALL))?;
    let version = switch.version();
    ask(&mut switch)?;
    let mut packet_ins = 0;
    loop {
        let (_, Message::PacketIn(packet_in)) = switch.next_message()? else { continue };
        packet_ins += 1;
        match behaviour {
            Behaviour::Mute => continue,
            Behaviour::Deaf(last) if packet_ins > last => return wait(is_over),
            // A copy of the stream is kept by the mock.
            Behaviour::Leaves(last) if packet_ins > last => {
                return Ok(own.shutdown(Shutdown::Both)?);
            }
            Behaviour::Hub(time) => std::thread::sleep(time),
            Behaviour::Stalls(after, time) if packet_ins == after => std::thread::sleep(time),
            Behaviour::FlowAndPacket => {
                switch.send(&Message::FlowMod(FlowMod::new(FlowModCommand::Add)))?;
            }
            Behaviour::Malformed => {
                let kind = MessageKind::FlowMod.number(version).unwrap();
                let mut frame = vec![version.number(), kind, 0, 16];
                frame.resize(16, 0xff);
                switch.send_bytes(&frame)?;
            }
            Behaviour::Stalls(..)
            | Behaviour::Silent
            | Behaviour::Garbage
            | Behaviour::Deaf(_)
            | Behaviour::Leaves(_) => {}
        }
        switch.send_as(Xid(0), &flood(packet_in))?;
    }
}

/// First requests of every controller.
fn ask(switch: &mut Client) -> Result<()> {
    switch.send(&Message::FeaturesRequest)?;
    switch.send(&Message::SetConfig(SwitchConfig { flags: 0, miss_send_len: 128 }))?;
    if switch.version().has_port_desc() {
        let body = MultipartRequestBody::PortDesc;
        switch.send(&Message::MultipartRequest(MultipartRequest { more: false, body }))?;
    }
    switch.send(&Message::BarrierRequest)?;
    Ok(())
}

/// The packet-out that floods the packet.
fn flood(packet_in: PacketIn) -> Message {
    Message::PacketOut(PacketOut {
        buffer_id: packet_in.buffer_id,
        in_port: packet_in.in_port().unwrap(),
        actions: vec![Action::output(PortNo::FLOOD)],
        data: if packet_in.buffer_id.is_some() { Vec::new() } else { packet_in.data },
    })
}

fn wait(is_over: &AtomicBool) -> Result<()> {
    while !is_over.load(Ordering::SeqCst) {
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}
