//! Packet-ins that the hub answers in a second over loopback TCP, with one scripted switch.
//!
//! `cargo run --release -p weir-controller --example hub_rate [FRAME_BYTES [SECONDS [WINDOW]]]`
//! The switch keeps WINDOW packet-ins on their way: 1 shows the time of one round, many the rate.
//! It and the controller have a thread each, so the figure is that of the busier one.

use channel::{ConnectionSettings, Endpoint, Event, Link, Side, Stream};
use controller::apps::Hub;
use controller::{AppList, Options, PacketIn, StatusWriter, serve};
use openflow::message::{Features, PacketInReason};
use openflow::{Cookie, DatapathId, Field, Match, Message, TableId, Version, Xid};
use std::error::Error;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u32>());
    let frame_bytes = arguments.next().transpose()?.unwrap_or(60);
    let seconds = arguments.next().transpose()?.unwrap_or(3);
    let window = arguments.next().transpose()?.unwrap_or(4096);
    for &version in Version::USUAL {
        let (endpoint_to, endpoint_from) = mpsc::channel();
        let hub = std::thread::spawn(move || run_hub(&endpoint_to));
        let endpoint: Endpoint = endpoint_from.recv()?.parse()?;
        let took = Duration::from_secs(seconds.into());
        let answered = run_switch(&endpoint, version, frame_bytes, window, took)?;
        let rate = answered as f64 / took.as_secs_f64();
        println!("{version}, {frame_bytes} bytes, window {window}: {rate:.0} packet-ins/s");
        hub.join().map_err(|_| "the controller panicked")??;
    }
    Ok(())
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// Serves the hub until its switch has gone.
fn run_hub(endpoint: &mpsc::Sender<String>) -> Result<(), controller::Error> {
    let listen = vec![Endpoint::PassiveTcp { host: "127.0.0.1".into(), port: 0 }];
    let options = Options { listen, probe_after: None, ..Options::default() };
    let gone = Arc::new(tokio::sync::Notify::new());
    let report: StatusWriter = {
        let (endpoint, gone) = (endpoint.clone(), gone.clone());
        Arc::new(move |line| {
            if let Some(at) = line.strip_prefix("listening on ") {
                endpoint.send(at.to_owned()).expect("the main thread waits for it");
            } else if line.contains("is down") {
                gone.notify_one();
            }
        })
    };
    let stop = async move { gone.notified().await };
    runtime()?.block_on(serve(AppList::one(|| Hub), &options, report, stop)).map(drop)
}

/// Sends packet-ins for a time; how many packet-outs came back.
fn run_switch(
    endpoint: &Endpoint,
    version: Version,
    frame_bytes: u32,
    window: u32,
    time: Duration,
) -> Result<u64, Box<dyn Error>> {
    let packet_in = Message::PacketIn(PacketIn {
        buffer_id: None,
        total_len: u16::try_from(frame_bytes)?,
        reason: PacketInReason::NoMatch,
        table_id: TableId(0),
        cookie: Cookie(u64::MAX),
        matching: Match::any().with(Field::InPort, 1),
        data: vec![0; usize::try_from(frame_bytes)?],
        userdata: Vec::new(),
        continuation: Vec::new(),
        controller_id: 0,
    });
    runtime()?.block_on(async {
        let settings = ConnectionSettings::new(Side::Switch).with_versions(&[version]);
        let mut link = Link::new(Stream::connect(endpoint, None).await?, settings);
        let (mut answered, mut on_way, mut end) = (0, 0, None);
        loop {
            link.turn().await;
            let connection = link.connection();
            while let Some(event) = connection.poll_event() {
                match event {
                    Event::Message { xid, message: Message::FeaturesRequest } => {
                        let datapath_id = DatapathId(1);
                        let features = Features { datapath_id, ..Features::default() };
                        connection.send_as(xid, &Message::FeaturesReply(features))?;
                    }
                    Event::Message { xid, message: Message::MultipartRequest(_) } => {
                        let error = openflow::Error::BadRequestBadMultipart;
                        connection.refuse(xid, error)?;
                    }
                    Event::Message { message: Message::FlowMod(_), .. } => {
                        end = Some(Instant::now() + time);
                    }
                    Event::Message { message: Message::PacketOut(_), .. } => {
                        answered += 1;
                        on_way -= 1;
                    }
                    Event::Up { .. } | Event::Message { .. } | Event::Refused { .. } => {}
                    Event::Down(reason) => return Err(reason.into()),
                }
            }
            let Some(end) = end else { continue };
            if Instant::now() >= end {
                return Ok(answered);
            }
            while on_way < window && connection.offer(Xid(0), &packet_in)? {
                on_way += 1;
            }
        }
    })
}
