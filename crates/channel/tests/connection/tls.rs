//! TLS between two programs that trust each other, and every way in which they may not: each
//! failure says whose certificate it is about, which file, and what helps.

use channel::{
    AdmissionLimits, ConnectionGate, ConnectionSettings, Event, Link, Listener, Side, Stream, Tls,
    TlsFiles, pki,
};
use std::future::Future;
use std::path::Path;
use std::time::{Duration, SystemTime};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

const DAY: Duration = Duration::from_secs(24 * 3600);

fn run(test: impl Future<Output = ()>) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let test = async {
        tokio::time::timeout(Duration::from_secs(60), test).await.expect("the test takes too long");
    };
    runtime.block_on(test);
}

/// A certificate authority that has signed `sw` and `ctl` at `now`, for a day.
fn authority(now: SystemTime) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    pki::init(dir.path(), SystemTime::now()).unwrap();
    for name in ["sw", "ctl"] {
        let hosts = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        pki::issue(dir.path(), &pki::CertificateRequest { name: name.into(), hosts, days: 1 }, now)
            .unwrap();
    }
    dir
}

/// The files of `name` in `own`, and trust in the authority of `trusted`.
fn files(own: &Path, name: &str, trusted: &Path) -> TlsFiles {
    TlsFiles {
        private_key: own.join(format!("{name}-privkey.pem")),
        certificate: own.join(format!("{name}-cert.pem")),
        ca_cert: trusted.join("cacert.pem"),
    }
}

fn tls(own: &Path, name: &str, trusted: &Path) -> Tls {
    Tls::load(files(own, name, trusted), false).unwrap()
}

/// The first event of either side, or what went wrong before; the switch connects.
async fn meet(switch: &Tls, controller: &Tls) -> (Result<Event, String>, Result<Event, String>) {
    let listener =
        Listener::bind(&"pssl:0:127.0.0.1".parse().unwrap(), Some(controller)).await.unwrap();
    let to = listener.endpoint().clone().into_active();
    let accepted = async {
        let incoming = listener.accept().await.unwrap();
        first(incoming.open(|| {}).await.map_err(|error| error.to_string()), Side::Controller).await
    };
    let connected = async {
        let stream = Stream::connect(&to, Some(switch)).await.map_err(|error| error.to_string());
        first(stream, Side::Switch).await
    };
    tokio::join!(connected, accepted)
}

async fn first(stream: Result<Stream, String>, side: Side) -> Result<Event, String> {
    let mut link = Link::new(stream?, ConnectionSettings::new(side));
    loop {
        if let Some(event) = link.connection().poll_event() {
            link.finish().await;
            return Ok(event);
        }
        link.turn().await;
    }
}

fn is_up(met: &Result<Event, String>) -> bool {
    matches!(met, Ok(Event::Up { .. }))
}

/// The reason that the refused side learns: by an error of the handshake or, in TLS 1.3, by its
/// first read.
fn reason(met: Result<Event, String>) -> String {
    match met {
        Ok(Event::Down(reason)) => reason.to_string(),
        Ok(other) => panic!("{other:?}"),
        Err(text) => text,
    }
}

#[test]
fn two_with_one_authority_trust_each_other() {
    run(async {
        let pki = authority(SystemTime::now());
        let (sw, ctl) = (tls(pki.path(), "sw", pki.path()), tls(pki.path(), "ctl", pki.path()));
        let (a, b) = meet(&sw, &ctl).await;
        assert!(is_up(&a) && is_up(&b), "{a:?} {b:?}");
    });
}

#[test]
fn both_sides_know_why_a_foreign_certificate_is_refused() {
    run(async {
        let (pki, other) = (authority(SystemTime::now()), authority(SystemTime::now()));
        let good = tls(pki.path(), "ctl", pki.path());
        // The switch trusts the wrong authority.
        let (a, b) = meet(&tls(pki.path(), "sw", other.path()), &good).await;
        let (a, b) = (reason(a), reason(b));
        let ca_cert = other.path().join("cacert.pem").display().to_string();
        assert!(a.contains("is not signed by the CA in --ca-cert") && a.contains(&ca_cert), "{a}");
        assert!(b.contains("does not trust the CA of our certificate"), "{b}");
        // The switch is signed by the wrong one.
        let (a, b) = meet(&tls(other.path(), "sw", pki.path()), &good).await;
        let (a, b) = (reason(a), reason(b));
        assert!(b.contains("is not signed by the CA in --ca-cert"), "{b}");
        let own = other.path().join("sw-cert.pem").display().to_string();
        assert!(a.contains("does not trust the CA") && a.contains(&own), "{a}");
    });
}

#[test]
fn an_expired_certificate_is_named_on_both_sides() {
    run(async {
        let pki = authority(SystemTime::now());
        let past = pki::CertificateRequest { name: "old".into(), hosts: Vec::new(), days: 1 };
        pki::issue(pki.path(), &past, SystemTime::now() - 9 * DAY).unwrap();
        let (a, b) =
            meet(&tls(pki.path(), "old", pki.path()), &tls(pki.path(), "ctl", pki.path())).await;
        let (a, b) = (reason(a), reason(b));
        assert!(b.contains("the peer's certificate has expired"), "{b}");
        assert!(a.contains("our certificate") && a.contains("has expired"), "{a}");
        let future = pki::CertificateRequest { name: "early".into(), hosts: Vec::new(), days: 1 };
        pki::issue(pki.path(), &future, SystemTime::now() + 9 * DAY).unwrap();
        let (_, b) =
            meet(&tls(pki.path(), "early", pki.path()), &tls(pki.path(), "ctl", pki.path())).await;
        let b = reason(b);
        assert!(b.contains("does not hold yet"), "{b}");
    });
}

#[test]
fn names_count_where_that_is_asked() {
    run(async {
        let pki = authority(SystemTime::now());
        let sw = Tls::load(files(pki.path(), "sw", pki.path()), true).unwrap();
        let (a, _) = meet(&sw, &tls(pki.path(), "ctl", pki.path())).await;
        assert!(is_up(&a), "the certificate is for 127.0.0.1: {a:?}");
        let nameless =
            pki::CertificateRequest { name: "nameless".into(), hosts: Vec::new(), days: 1 };
        pki::issue(pki.path(), &nameless, SystemTime::now()).unwrap();
        let ctl = tls(pki.path(), "nameless", pki.path());
        let (a, _) = meet(&sw, &ctl).await;
        let a = reason(a);
        assert!(a.contains("another name") && a.contains("--check-peer-name"), "{a}");
        let (a, b) = meet(&tls(pki.path(), "sw", pki.path()), &ctl).await;
        assert!(is_up(&a) && is_up(&b), "Open vSwitch's rule: {a:?} {b:?}");
    });
}

#[test]
fn a_renewed_certificate_holds_from_the_next_connection_on() {
    run(async {
        let pki = authority(SystemTime::now() - 9 * DAY);
        let (sw, ctl) = (tls(pki.path(), "sw", pki.path()), tls(pki.path(), "ctl", pki.path()));
        assert!(!is_up(&meet(&sw, &ctl).await.0), "they have expired");
        for name in ["sw", "ctl"] {
            let request = pki::CertificateRequest { name: name.into(), hosts: Vec::new(), days: 1 };
            pki::issue(pki.path(), &request, SystemTime::now()).unwrap();
        }
        let (a, b) = meet(&sw, &ctl).await;
        assert!(is_up(&a) && is_up(&b), "{a:?} {b:?}");
        // Files that are wrong do not end what holds.
        std::fs::write(pki.path().join("sw-cert.pem"), "half").unwrap();
        assert!(is_up(&meet(&sw, &ctl).await.0));
    });
}

#[test]
fn a_peer_without_tls_is_recognised() {
    run(async {
        let pki = authority(SystemTime::now());
        let sw = tls(pki.path(), "sw", pki.path());
        let plain = Listener::bind(&"ptcp:0:127.0.0.1".parse().unwrap(), None).await.unwrap();
        let to = plain.endpoint().to_string().replace("ptcp", "pssl");
        let to = to.parse::<channel::Endpoint>().unwrap().into_active();
        let (error, _) = tokio::join!(Stream::connect(&to, Some(&sw)), async {
            let stream = plain.accept().await.unwrap().open(|| {}).await.unwrap();
            first(Ok(stream), Side::Controller).await
        });
        let error = error.unwrap_err().to_string();
        assert!(error.contains("does not speak TLS"), "{error}");

        let secure = Listener::bind(&"pssl:0:127.0.0.1".parse().unwrap(), Some(&sw)).await.unwrap();
        let address = secure.endpoint().to_string().replace("pssl:", "127.0.0.1:");
        let address = address.trim_end_matches(":127.0.0.1");
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(&[4, 0, 0, 8, 0, 0, 0, 1]).await.unwrap();
        let error = secure.accept().await.unwrap().open(|| {}).await.unwrap_err().to_string();
        assert!(error.contains("does not speak TLS") && error.contains("ptcp:"), "{error}");
    });
}

#[test]
fn who_is_silent_keeps_nobody_waiting() {
    run(async {
        let pki = authority(SystemTime::now());
        let (sw, ctl) = (tls(pki.path(), "sw", pki.path()), tls(pki.path(), "ctl", pki.path()));
        let listen = "pssl:0:127.0.0.1".parse().unwrap();
        let listener = Listener::bind(&listen, Some(&ctl)).await.unwrap();
        let to = listener.endpoint().clone().into_active();
        let address = to.to_string();
        let address = address.trim_start_matches("ssl:");
        let mut silent = Vec::new();
        for _ in 0..50 {
            silent.push(TcpStream::connect(address).await.unwrap());
            silent.push(TcpStream::connect(address).await.unwrap());
            // Half of a first record, so that the handshake has begun.
            silent.last_mut().unwrap().write_all(&[22, 3, 1, 2, 0, 1]).await.unwrap();
        }
        let tasks = tokio::task::LocalSet::new();
        tasks.spawn_local(async move {
            loop {
                let incoming = listener.accept().await.unwrap();
                tokio::task::spawn_local(async move {
                    if let Ok(stream) = incoming.open(|| {}).await {
                        first(Ok(stream), Side::Controller).await.unwrap();
                    }
                });
            }
        });
        let met = tasks
            .run_until(async {
                first(Ok(Stream::connect(&to, Some(&sw)).await.unwrap()), Side::Switch).await
            })
            .await;
        assert!(is_up(&met), "{met:?}");
    });
}

#[test]
fn many_peers_at_once_are_served_with_few_half_open_places() {
    const PEERS: usize = 150;
    run(async {
        let pki = authority(SystemTime::now());
        let (sw, ctl) = (tls(pki.path(), "sw", pki.path()), tls(pki.path(), "ctl", pki.path()));
        let listen = "pssl:0:127.0.0.1".parse().unwrap();
        let listener = Listener::bind(&listen, Some(&ctl)).await.unwrap();
        let to = listener.endpoint().clone().into_active();
        let gate = ConnectionGate::new(AdmissionLimits { half_open: 8, up: PEERS }, usize::MAX);
        let tasks = tokio::task::LocalSet::new();
        tasks.spawn_local(async move {
            loop {
                let incoming = listener.accept().await.unwrap();
                let accepted = gate.admit(&incoming).await;
                tokio::task::spawn_local(async move {
                    let stream = incoming.open(|| accepted.handshake_begun()).await.unwrap();
                    first(Ok(stream), Side::Controller).await.unwrap();
                    accepted.mark_up().unwrap();
                });
            }
        });
        tasks
            .run_until(async {
                let connect = || {
                    let (to, sw) = (to.clone(), sw.clone());
                    tokio::task::spawn_local(async move {
                        let stream = Stream::connect(&to, Some(&sw)).await;
                        first(stream.map_err(|error| error.to_string()), Side::Switch).await
                    })
                };
                let peers: Vec<_> = (0..PEERS).map(|_| connect()).collect();
                for peer in peers {
                    let met = peer.await.unwrap();
                    assert!(is_up(&met), "{met:?}");
                }
            })
            .await;
    });
}

#[test]
fn wrong_files_are_named_with_their_option_and_the_remedy() {
    let pki = authority(SystemTime::now());
    let dir = pki.path();
    let good = files(dir, "sw", dir);
    let refused = |files: TlsFiles| Tls::load(files, false).unwrap_err().to_string();
    let missing = TlsFiles { private_key: dir.join("none.pem"), ..good.clone() };
    let text = refused(missing);
    assert!(text.contains("--private-key") && text.contains("none.pem"), "{text}");
    let swapped = TlsFiles {
        private_key: good.certificate.clone(),
        certificate: good.private_key.clone(),
        ca_cert: good.ca_cert.clone(),
    };
    let text = refused(swapped);
    assert!(text.contains("is it the file of another option?"), "{text}");
    let foreign = TlsFiles { private_key: dir.join("ctl-privkey.pem"), ..good.clone() };
    let text = refused(foreign);
    assert!(text.contains("does not belong to --certificate"), "{text}");
    std::fs::write(dir.join("empty.pem"), "").unwrap();
    let text = refused(TlsFiles { ca_cert: dir.join("empty.pem"), ..good.clone() });
    assert!(text.contains("--ca-cert") && text.contains("no certificate"), "{text}");
    let locked =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIB\n-----END ENCRYPTED PRIVATE KEY-----\n";
    std::fs::write(dir.join("locked.pem"), locked).unwrap();
    let text = refused(TlsFiles { private_key: dir.join("locked.pem"), ..good });
    assert!(text.contains("passphrase") && text.contains("openssl pkey"), "{text}");
}

#[test]
fn tls_without_certificates_says_what_is_needed() {
    run(async {
        let error = Stream::connect(&"ssl:127.0.0.1:1".parse().unwrap(), None).await.unwrap_err();
        assert!(error.to_string().contains("--private-key, --certificate and --ca-cert"));
        let error = Listener::bind(&"pssl:0:127.0.0.1".parse().unwrap(), None).await.unwrap_err();
        assert!(error.to_string().contains("weir pki"), "{error}");
    });
}
