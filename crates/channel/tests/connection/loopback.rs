//! The driver over real sockets on this machine: every transport, floods in both directions.

use channel::{
    ConnectionSettings, DownReason, Endpoint, Event, Link, Listener, Side, Stream, Tls, TlsFiles,
    TransportError, pki,
};
use openflow::{Message, Version, Xid};
use std::future::Future;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

/// Runs a test with a deadline far above what a stalled machine needs.
fn run(test: impl Future<Output = ()>) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let test = async {
        tokio::time::timeout(Duration::from_secs(60), test).await.expect("the test takes too long");
    };
    runtime.block_on(test);
}

async fn joined(listen: &str, tls: Option<&Tls>) -> (Link, Link) {
    let listener = Listener::bind(&listen.parse().unwrap(), tls).await.unwrap();
    let to = listener.endpoint().clone().into_active();
    let accepted = async { listener.accept().await.unwrap().open(|| {}).await.unwrap() };
    let (accepted, connected) = tokio::join!(accepted, Stream::connect(&to, tls));
    let controller = Link::new(accepted, ConnectionSettings::new(Side::Controller));
    let switch = Link::new(connected.unwrap(), ConnectionSettings::new(Side::Switch));
    (controller, switch)
}

/// Certificates that both sides use, in a folder that must stay.
fn certificates() -> (tempfile::TempDir, Tls) {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let now = std::time::SystemTime::now();
    let request = pki::CertificateRequest { name: "both".into(), hosts: Vec::new(), days: 1 };
    pki::init(dir.path(), now).unwrap();
    pki::issue(dir.path(), &request, now).unwrap();
    let files = TlsFiles {
        private_key: at("both-privkey.pem"),
        certificate: at("both-cert.pem"),
        ca_cert: at("cacert.pem"),
    };
    let tls = Tls::load(files, false).unwrap();
    (dir, tls)
}

async fn next(link: &mut Link) -> Event {
    loop {
        if let Some(event) = link.connection().poll_event() {
            return event;
        }
        link.turn().await;
    }
}

async fn talk(listen: &str, tls: Option<&Tls>) {
    let (mut controller, mut switch) = joined(listen, tls).await;
    let switch = async {
        assert_eq!(next(&mut switch).await, Event::Up { version: Version::V1_3 });
        switch.connection().copy_messages(true);
        loop {
            match next(&mut switch).await {
                Event::Message { xid, message: Message::BarrierRequest } => {
                    switch.connection().send_as(xid, &Message::BarrierReply).unwrap();
                }
                event => return (event, switch.connection().take_copies()),
            }
        }
    };
    let controller = async {
        assert_eq!(next(&mut controller).await, Event::Up { version: Version::V1_3 });
        let xid = controller.connection().send(&Message::BarrierRequest).unwrap();
        let message = Message::BarrierReply;
        assert_eq!(next(&mut controller).await, Event::Message { xid, message });
        controller.finish().await;
    };
    let ((ended, copies), ()) = tokio::join!(switch, controller);
    assert_eq!(ended, Event::Down(DownReason::PeerClosed));
    let kinds: Vec<u8> = copies.chunks(8).map(|header| header[1]).collect();
    assert_eq!(kinds, [20, 21], "a barrier request and its reply");
}

fn socket_path(name: &str) -> String {
    let name = format!("weir-channel-{}-{name}.sock", std::process::id());
    std::env::temp_dir().join(name).display().to_string()
}

#[test]
fn messages_go_over_tcp_and_unix_sockets_and_tls() {
    run(async {
        talk("ptcp:0:127.0.0.1", None).await;
        let (_dir, tls) = certificates();
        talk("pssl:0:127.0.0.1", Some(&tls)).await;
        let path = socket_path("talk");
        talk(&format!("punix:{path}"), None).await;
        assert!(!std::path::Path::new(&path).exists(), "the socket file goes with its listener");
    });
}

#[test]
fn an_address_in_use_is_named_and_a_stale_socket_file_replaced() {
    run(async {
        let first = Listener::bind(&"ptcp:0:127.0.0.1".parse().unwrap(), None).await.unwrap();
        let error = Listener::bind(first.endpoint(), None).await.unwrap_err();
        assert!(matches!(error, TransportError::AddressInUse(_)));
        assert!(error.to_string().contains("the address is in use"), "{error}");

        let path = socket_path("stale");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let endpoint: Endpoint = format!("punix:{path}").parse().unwrap();
        let listener = Listener::bind(&endpoint, None).await.unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "only its owner may connect, whatever the umask");
        let error = Listener::bind(&endpoint, None).await.unwrap_err();
        assert!(matches!(error, TransportError::AddressInUse(_)), "somebody listens there now");
        drop(listener);
        let error =
            Stream::connect(&format!("unix:{path}").parse().unwrap(), None).await.unwrap_err();
        assert!(error.to_string().contains(&path), "{error}");
    });
}

#[test]
fn the_wrong_direction_is_refused() {
    run(async {
        let passive = "ptcp:0:127.0.0.1".parse().unwrap();
        let error = Stream::connect(&passive, None).await.unwrap_err();
        assert!(error.to_string().contains("use tcp:, ssl: or unix:"));
    });
}

#[test]
fn an_error_of_listening_names_the_endpoint_as_written() {
    run(async {
        let taken = Listener::bind(&"tcp:127.0.0.1:0".parse().unwrap(), None).await.unwrap();
        let (passive, active) = (taken.endpoint().clone(), taken.endpoint().clone().into_active());
        for place in [passive, active] {
            let error = Listener::bind(&place, None).await.unwrap_err().to_string();
            assert!(error.contains(&place.to_string()), "{place}: {error}");
        }
    });
}

/// Both sides send far more than the sockets hold before they read: the switch offers, the
/// controller asks for answers. Neither may wait for the other for ever.
fn flood(listen: &str, tls: Option<&Tls>) {
    const ASKED: u32 = 30_000;
    run(async {
        let (mut controller, mut switch) = joined(listen, tls).await;
        let body = vec![7; 200];
        let switch = async {
            let mut offered = 0;
            loop {
                while let Some(event) = switch.connection().poll_event() {
                    match event {
                        Event::Message { xid, message: Message::BarrierRequest } => {
                            switch.connection().send_as(xid, &Message::BarrierReply).unwrap();
                        }
                        Event::Down(_) => return offered,
                        Event::Up { .. } | Event::Message { .. } | Event::Refused { .. } => {}
                    }
                    let packet = Message::EchoReply(body.clone());
                    if switch.connection().version().is_some() {
                        for _ in 0..20 {
                            offered +=
                                u64::from(switch.connection().offer(Xid(0), &packet).unwrap());
                        }
                    }
                }
                switch.turn().await;
            }
        };
        let controller = async {
            assert_eq!(next(&mut controller).await, Event::Up { version: Version::V1_3 });
            for number in 0..ASKED {
                let request = Message::BarrierRequest;
                controller.connection().send_as(Xid(number), &request).unwrap();
            }
            let (mut answers, mut packets) = (0, 0);
            while answers < ASKED {
                match next(&mut controller).await {
                    Event::Message { xid, message: Message::BarrierReply } => {
                        assert_eq!(xid, Xid(answers), "in order and none lost");
                        answers += 1;
                    }
                    Event::Message { .. } => packets += 1,
                    other => panic!("{other:?}"),
                }
            }
            controller.finish().await;
            packets
        };
        let (offered, packets) = tokio::join!(switch, controller);
        assert!(packets > 0 && packets <= offered);
    });
}

#[test]
fn floods_in_both_directions_do_not_stop_each_other() {
    flood("ptcp:0:127.0.0.1", None);
}

#[test]
fn nor_do_they_through_tls() {
    let (_dir, tls) = certificates();
    flood("pssl:0:127.0.0.1", Some(&tls));
}
