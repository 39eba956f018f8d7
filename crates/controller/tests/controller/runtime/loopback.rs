//! The runtime over loopback TCP: a scripted switch, garbage beside it, and the end.
use channel::{ConnectionSettings, Endpoint, Event, Link, Side, Stream};
use controller::apps::Hub;
use controller::{AppList, Error, Options, PacketIn, Stats, StatusWriter, serve};
use openflow::message::{Features, MultipartReply, MultipartReplyBody, PacketInReason};
use openflow::{Cookie, DatapathId, Field, Match, Message, TableId, Version, Xid};
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;

fn options(listen: &str) -> Options {
    let listen = vec![listen.parse().unwrap()];
    Options { listen, probe_after: None, ..Options::default() }
}

/// Serves the hub while `test` runs with the endpoint to connect to and what has been reported.
fn with_hub<F: Future<Output = ()>>(
    test: impl FnOnce(Endpoint, Arc<Mutex<Vec<String>>>) -> F,
) -> Stats {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let ready = Arc::new(Notify::new());
        let report: StatusWriter = {
            let (lines, ready) = (lines.clone(), ready.clone());
            Arc::new(move |line: &str| {
                lines.lock().unwrap().push(line.to_owned());
                ready.notify_one();
            })
        };
        let test = async {
            ready.notified().await;
            let line = lines.lock().unwrap()[0].clone();
            let endpoint = line.strip_prefix("listening on ").expect(&line).parse().unwrap();
            let within = tokio::time::timeout(Duration::from_secs(60), test(endpoint, lines));
            within.await.expect("the test takes too long");
        };
        serve(AppList::one(|| Hub), &options("tcp:127.0.0.1:0"), report, test).await.unwrap()
    })
}

fn packet_in(data: &[u8]) -> Message {
    Message::PacketIn(PacketIn {
        buffer_id: None,
        total_len: u16::try_from(data.len()).unwrap(),
        reason: PacketInReason::NoMatch,
        table_id: TableId(0),
        cookie: Cookie(u64::MAX),
        matching: Match::any().with(Field::InPort, 1),
        data: data.to_vec(),
        userdata: Vec::new(),
        continuation: Vec::new(),
        controller_id: 0,
    })
}

/// A 1.0 switch that sends `count` packet-ins, once the table has been cleared, and waits for their
/// packet-outs.
async fn run_switch(endpoint: &Endpoint, dpid: u64, packets: u32) {
    let stream = Stream::connect(endpoint, None).await.unwrap();
    let settings = ConnectionSettings::new(Side::Switch).with_versions(&[Version::V1_0]);
    let mut link = Link::new(stream, settings);
    let mut back = 0;
    while back < packets {
        link.turn().await;
        while let Some(event) = link.connection().poll_event() {
            match event {
                Event::Message { xid, message: Message::FeaturesRequest } => {
                    let datapath_id = DatapathId(dpid);
                    let features = Features { datapath_id, ..Features::default() };
                    let reply = Message::FeaturesReply(features);
                    link.connection().send_as(xid, &reply).unwrap();
                }
                Event::Message { message: Message::FlowMod(_), .. } => {
                    for number in 0..packets {
                        let message = packet_in(&number.to_be_bytes());
                        link.connection().send_as(Xid(0), &message).unwrap();
                    }
                }
                Event::Message { message: Message::PacketOut(packet), .. } => {
                    assert_eq!(packet.data, back.to_be_bytes(), "in order");
                    back += 1;
                }
                Event::Up { .. } | Event::Message { .. } | Event::Refused { .. } => {}
                Event::Down(reason) => panic!("{reason}"),
            }
        }
    }
    link.finish().await;
}

#[test]
fn several_switches_are_served_while_others_send_garbage() {
    let stats = with_hub(|endpoint, lines| async move {
        let Endpoint::Tcp { host, port } = &endpoint else { panic!("{endpoint}") };
        let mut silent = tokio::net::TcpStream::connect((host.as_str(), *port)).await.unwrap();
        let mut garbage = tokio::net::TcpStream::connect((host.as_str(), *port)).await.unwrap();
        garbage.write_all(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n").await.unwrap();
        let mut answer = Vec::new();
        garbage.read_to_end(&mut answer).await.unwrap();
        assert_eq!(answer.get(..2), Some(&[4, 0][..]), "a hello, then the refusal, then the end");
        let mut half = tokio::net::TcpStream::connect((host.as_str(), *port)).await.unwrap();
        half.write_all(&[4, 0, 0, 8, 0, 0]).await.unwrap();
        let (one, two) = (run_switch(&endpoint, 1, 20_000), run_switch(&endpoint, 2, 20_000));
        tokio::join!(one, two);
        silent.shutdown().await.unwrap();
        drop(half);
        let lines = lines.lock().unwrap();
        let has = |text: &str| lines.iter().any(|line| line.contains(text));
        assert!(has("switch 0000000000000001 is ready: OpenFlow10, 0 ports"), "{lines:?}");
        assert!(has("dropped: the peer's first message is no hello"), "{lines:?}");
    });
    assert_eq!((stats.packet_ins, stats.packet_outs), (40_000, 40_000));
}

#[test]
fn an_address_in_use_ends_the_start_with_the_remedy() {
    with_hub(|endpoint, _| async move {
        let options = options(&endpoint.to_string());
        let report: StatusWriter = Arc::new(|_| {});
        let stop = std::future::pending();
        let error = serve(AppList::one(|| Hub), &options, report, stop).await.unwrap_err();
        assert!(matches!(error, Error::Transport(_)));
        let text = error.to_string();
        assert!(text.contains("address is in use") && text.contains("choose another"), "{text}");
    });
}

#[test]
fn listening_switch_is_connected_to_again_after_it_has_gone() {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let passive: Endpoint = "ptcp:0:127.0.0.1".parse().unwrap();
        let listener = channel::Listener::bind(&passive, None).await.unwrap();
        let mut options = options("tcp:127.0.0.1:0");
        options.listen.clear();
        options.connect.push(listener.endpoint().clone().into_active());
        let test = async {
            for _ in 0..2 {
                let stream = listener.accept().await.unwrap().open(|| {}).await.unwrap();
                let mut link = Link::new(stream, ConnectionSettings::new(Side::Switch));
                loop {
                    link.turn().await;
                    let event = link.connection().poll_event();
                    if matches!(event, Some(Event::Message { .. })) {
                        break;
                    }
                }
            }
        };
        let stop = async {
            let within = tokio::time::timeout(Duration::from_secs(60), test);
            within.await.expect("the controller does not connect");
        };
        let report: StatusWriter = Arc::new(|_| {});
        serve(AppList::one(|| Hub), &options, report, stop).await.unwrap();
    });
}

/// A connection of a 1.3 switch, after it has said who it is and which ports it has: a main one or
/// an auxiliary one.
async fn connected(endpoint: &Endpoint, dpid: u64, auxiliary_id: u8) -> Link {
    let stream = Stream::connect(endpoint, None).await.unwrap();
    let mut link = Link::new(stream, ConnectionSettings::new(Side::Switch));
    loop {
        link.turn().await;
        while let Some(event) = link.connection().poll_event() {
            match event {
                Event::Message { xid, message: Message::FeaturesRequest } => {
                    let datapath_id = DatapathId(dpid);
                    let features = Features { datapath_id, auxiliary_id, ..Features::default() };
                    let reply = Message::FeaturesReply(features);
                    link.connection().send_as(xid, &reply).unwrap();
                }
                Event::Message { xid, message: Message::MultipartRequest(_) } => {
                    let body = MultipartReplyBody::PortDesc(Vec::new());
                    let reply = Message::MultipartReply(MultipartReply { more: false, body });
                    link.connection().send_as(xid, &reply).unwrap();
                    return link;
                }
                Event::Down(reason) => panic!("{reason}"),
                Event::Up { .. } | Event::Message { .. } | Event::Refused { .. } => {}
            }
        }
    }
}

/// The next packet-out or the end of the connection.
async fn packet_out(link: &mut Link) -> Option<Vec<u8>> {
    loop {
        while let Some(event) = link.connection().poll_event() {
            match event {
                Event::Message { message: Message::PacketOut(packet), .. } => {
                    return Some(packet.data);
                }
                Event::Down(_) => return None,
                Event::Up { .. } | Event::Message { .. } | Event::Refused { .. } => {}
            }
        }
        link.turn().await;
    }
}

#[test]
fn what_comes_by_an_auxiliary_connection_is_answered_there() {
    let stats = with_hub(|endpoint, lines| async move {
        let mut main = connected(&endpoint, 7, 0).await;
        // The main connection is known once it has been cleared.
        while main.connection().counters().messages_received < 5 {
            main.turn().await;
            while main.connection().poll_event().is_some() {}
        }
        let mut beside = connected(&endpoint, 7, 1).await;
        for data in [b"one".as_slice(), b"two"] {
            beside.connection().send_as(Xid(0), &packet_in(data)).unwrap();
            assert_eq!(packet_out(&mut beside).await.as_deref(), Some(data));
        }
        main.connection().send_as(Xid(0), &packet_in(b"three")).unwrap();
        assert_eq!(packet_out(&mut main).await.as_deref(), Some(b"three".as_slice()));
        let log = lines.lock().unwrap().join("\n");
        assert!(log.contains("auxiliary connection 1"), "{log}");
        assert_eq!(log.matches("is ready").count(), 1, "{log}");
        main.finish().await;
    });
    assert_eq!(stats.packet_ins, 3);
}

#[test]
fn a_flood_of_silent_peers_keeps_no_switch_out() {
    with_hub(|endpoint, _| async move {
        let Endpoint::Tcp { host, port } = &endpoint else { panic!("{endpoint}") };
        let mut silent = Vec::new();
        for _ in 0..400 {
            silent.push(tokio::net::TcpStream::connect((host.as_str(), *port)).await.unwrap());
        }
        run_switch(&endpoint, 3, 5).await;
    });
}
