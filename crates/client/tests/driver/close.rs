//! Closing a client: what was sent before arrives whole, also where the peer reads late and has
//! sent what nobody wants any more.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use channel::{Endpoint, Listener, Tls, TlsFiles, pki};
use client::{AsyncClient, Client, ClientSettings};
use openflow::{Message, Version};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Messages of a client: together more than sockets and TLS hold.
const MESSAGES: usize = 280;

/// Bytes of each message's body.
const BODY_BYTES: usize = 60_000;

/// An echo reply without a body, which nobody has asked for.
const UNWANTED: [u8; 8] = [4, 3, 0, 8, 0, 0, 0, 9];

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// Certificates that both sides use, in a folder that must stay.
fn certificates() -> (tempfile::TempDir, Tls) {
    let folder = tempfile::tempdir().unwrap();
    let request = pki::CertificateRequest { name: "both".into(), hosts: Vec::new(), days: 1 };
    pki::init(folder.path(), SystemTime::now()).unwrap();
    pki::issue(folder.path(), &request, SystemTime::now()).unwrap();
    let files = TlsFiles {
        private_key: folder.path().join("both-privkey.pem"),
        certificate: folder.path().join("both-cert.pem"),
        ca_cert: folder.path().join("cacert.pem"),
    };
    let tls = Tls::load(files, false).unwrap();
    (folder, tls)
}

/// A switch that says hello and sends what nobody wants, but reads nothing before `begin` says so:
/// where it listens, and the number of whole echo replies that it got up to the end of the stream.
fn late_reader(listen: &'static str, tls: Tls) -> (Endpoint, Sender<()>, JoinHandle<usize>) {
    let (begin, begins) = channel();
    let (place, places) = channel();
    let thread =
        std::thread::spawn(move || runtime().block_on(read_late(listen, tls, place, begins)));
    (places.recv().unwrap(), begin, thread)
}

async fn read_late(listen: &str, tls: Tls, place: Sender<Endpoint>, begins: Receiver<()>) -> usize {
    let listener = Listener::bind(&listen.parse().unwrap(), Some(&tls)).await.unwrap();
    place.send(listener.endpoint().clone().into_active()).unwrap();
    let mut stream = listener.accept().await.unwrap().open(|| {}).await.unwrap();
    stream.write_all(&[4, 0, 0, 8, 0, 0, 0, 1]).await.unwrap();
    stream.write_all(&UNWANTED.repeat(10_000)).await.unwrap();
    stream.flush().await.unwrap();
    // Nothing else runs on this thread.
    begins.recv().unwrap();
    std::thread::sleep(Duration::from_millis(50));
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.unwrap();
    let (mut rest, mut whole) = (bytes.as_slice(), 0);
    while let Some(length) = wire::frame_len(rest).unwrap() {
        whole += usize::from(length == 8 + BODY_BYTES);
        rest = &rest[length..];
    }
    assert!(rest.is_empty(), "the last message is cut off");
    whole
}

/// Settings under which all messages wait in the client's queue until it closes.
fn settings(tls: &Tls) -> ClientSettings {
    let mut settings = ClientSettings::of(&[Version::V1_3]).with_tls(tls.clone());
    settings.connection.output_limit_bytes = 32 << 20;
    settings.close_deadline = Duration::from_secs(60);
    settings
}

#[test]
fn a_long_last_message_arrives_whole_at_a_late_reader() {
    let (_folder, tls) = certificates();
    for listen in ["ptcp:0:127.0.0.1", "pssl:0:127.0.0.1"] {
        let (place, begin, switch) = late_reader(listen, tls.clone());
        let mut client = Client::connect(&place, settings(&tls)).unwrap();
        for _ in 0..MESSAGES {
            client.send(&Message::EchoReply(vec![7; BODY_BYTES])).unwrap();
        }
        begin.send(()).unwrap();
        client.close();
        assert_eq!(switch.join().unwrap(), MESSAGES, "{listen}");
    }
}

#[test]
fn so_it_does_from_the_async_client() {
    let (_folder, tls) = certificates();
    for listen in ["ptcp:0:127.0.0.1", "pssl:0:127.0.0.1"] {
        let (place, begin, switch) = late_reader(listen, tls.clone());
        runtime().block_on(async {
            let mut client = AsyncClient::connect(&place, settings(&tls)).await.unwrap();
            for _ in 0..MESSAGES {
                client.send(&Message::EchoReply(vec![7; BODY_BYTES])).await.unwrap();
            }
            begin.send(()).unwrap();
            client.close().await;
        });
        assert_eq!(switch.join().unwrap(), MESSAGES, "{listen}");
    }
}
