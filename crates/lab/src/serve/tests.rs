//! The server as a client sees it, over loopback. No test measures time; waits have deadlines.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use programs::cancel::Cancel;
use programs::scratch::FolderLock;
use serde_json::Value;

use super::{FOLLOWERS_MAX, LabServer, ServeOptions, start};
use crate::campaign::fake::{self, Act, TWO_POINTS, play};
use crate::campaign::ledger::NAME;
use crate::campaign::run::execute;
use crate::results::Results;

const LIMIT: Duration = Duration::from_secs(60);

/// The lines of a ledger, and the results that its run told.
fn campaign() -> (Vec<String>, Results) {
    let folder = tempfile::tempdir().unwrap();
    let scenario = TWO_POINTS.replace("starts = 2", "starts = 3");
    let campaign = fake::campaign(&scenario, folder.path());
    play(&[Act::Yields(1.0), Act::Fails("no <b>answer</b>"), Act::Yields(3.0)]);
    let results = execute(&campaign, &Cancel::default()).unwrap();
    let text = std::fs::read_to_string(folder.path().join(NAME)).unwrap();
    (text.lines().map(|line| format!("{line}\n")).collect(), results)
}

fn serve(folder: &Path) -> LabServer {
    start(&ServeOptions { folder: folder.to_owned(), listen: "127.0.0.1:0".to_owned() }).unwrap()
}

fn append(folder: &Path, text: &str) {
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.create(true).append(true).open(folder.join(NAME)).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

/// Waits until something is so.
fn until(what: &str, is_so: impl Fn() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < LIMIT, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn ask(address: SocketAddr, head: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    stream
}

/// Status and body of an answer.
fn get(address: SocketAddr, path: &str) -> (u16, String) {
    let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let mut text = String::new();
    ask(address, &head).read_to_string(&mut text).unwrap();
    let status = text.split(' ').nth(1).unwrap().parse().unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.to_ascii_lowercase().contains("content-security-policy"), "{head}");
    (status, body.to_owned())
}

/// The events of a stream, as they come.
struct Events(BufReader<TcpStream>);

impl Events {
    fn of(address: SocketAddr) -> Self {
        Self(BufReader::new(ask(address, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")))
    }

    /// The next one that is as wanted.
    fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        let (since, mut last) = (Instant::now(), Value::Null);
        let mut line = String::new();
        while since.elapsed() < LIMIT {
            line.clear();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "the stream ends: {last}");
            let Some(data) = line.strip_prefix("data: ") else { continue };
            let event: Value = serde_json::from_str(data).unwrap();
            if wanted(&event) {
                return event;
            }
            last = event;
        }
        panic!("no such event; the last: {last}");
    }

    fn standing(&mut self, standing: &str) -> Value {
        self.until(|event| event["standing"] == standing)
    }
}

#[test]
fn a_campaign_is_followed_from_before_its_start_to_its_end() {
    let (lines, results) = campaign();
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("later");
    let server = serve(&folder);
    let address = server.address();
    let mut events = Events::of(address);
    let waiting = events.standing("waiting");
    assert!(waiting["words"].as_str().unwrap().contains("weir lab run .. --out"), "{waiting}");
    let (status, page) = get(address, "/");
    assert!(status == 200 && page.contains("no campaign in") && page.contains("</html>"));
    assert_eq!(get(address, "/results.json").0, 404);

    std::fs::create_dir(&folder).unwrap();
    let lock = FolderLock::take(&folder).unwrap();
    let second = lines.iter().position(|line| line.contains("\"line\":\"trial\"")).unwrap() + 1;
    append(&folder, &lines[..second].concat());
    let running = events.until(|event| event["trials"] == 1);
    assert_eq!(running["standing"], "running");
    assert!(running["step"]["title"].as_str().unwrap().contains("fake-switch"), "{running}");
    let (_, page) = get(address, "/");
    assert!(page.contains("not measured") && page.contains("id=\"live\""), "not come to yet");
    // Each drawing says how long ago the last line was written, so a second one would differ.
    until("drawn once for all", || get(address, "/").1 == get(address, "/").1);

    // Half a line is none, until its other half comes.
    let (half, rest) = lines[second].split_at(20);
    append(&folder, half);
    append(&folder, rest);
    append(&folder, &lines[second + 1..lines.len() - 1].concat());
    let grown = events.until(|event| event["trials"] == 6);
    assert!(grown["version"].as_u64() > running["version"].as_u64());
    assert_eq!(grown["failed"], 1);
    until("drawn anew", || get(address, "/").1.contains("no &lt;b&gt;answer"));
    assert!(!get(address, "/").1.contains("no <b>answer"), "escaped");

    append(&folder, &lines[lines.len() - 1]);
    events.standing("ended");
    drop(lock);
    let (status, text) = get(address, "/results.json");
    let served: Results = serde_json::from_str(&text).unwrap();
    assert!(status == 200 && served == results, "as of the run itself");
    assert_eq!(get(address, "/").1, get(address, "/").1, "it stands");
}

#[test]
fn a_killed_run_and_one_that_is_no_campaign_are_named() {
    let (lines, _) = campaign();
    let folder = tempfile::tempdir().unwrap();
    append(folder.path(), &lines[..lines.len() - 1].concat());
    append(folder.path(), "{\"at_s\":1.0,\"li");
    let server = serve(folder.path());
    let mut events = Events::of(server.address());
    let cut_off = events.standing("cut-off");
    assert!(cut_off["words"].as_str().unwrap().contains("15 bytes"), "{cut_off}");
    assert!(get(server.address(), "/").1.contains("cut off"));
    let file = folder.path().join("other");
    std::fs::write(&file, "no ledger\n").unwrap();
    std::fs::rename(&file, folder.path().join(NAME)).unwrap();
    let words = events.standing("unreadable")["words"].as_str().unwrap().to_owned();
    assert!(words.contains("trials.jsonl, line 1"), "{words}");
    assert!(get(server.address(), "/").1.contains("trials.jsonl, line 1"));
}

#[test]
fn clients_that_are_many_slow_or_lost_cost_little() {
    let (lines, _) = campaign();
    let folder = tempfile::tempdir().unwrap();
    append(folder.path(), &lines.concat());
    let server = serve(folder.path());
    let address = server.address();
    // One never asks, one never reads.
    let _silent = TcpStream::connect(address).unwrap();
    let _deaf = ask(address, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let mut all: Vec<Events> = (0..FOLLOWERS_MAX).map(|_| Events::of(address)).collect();
    for events in &mut all {
        events.standing("ended");
    }
    let (status, words) = get(address, "/events");
    assert!(status == 503 && words.contains("follow already"), "{status} {words}");
    assert_eq!(get(address, "/status").0, 200, "others are still answered");
    drop(all);
    let since = Instant::now();
    while ask_status(address) == 503 {
        assert!(since.elapsed() < LIMIT, "places of readers that went are not given back");
        std::thread::sleep(Duration::from_millis(50));
    }
    // Whoever follows hears that the server goes.
    let mut events = Events::of(address);
    events.standing("ended");
    drop(server);
    let mut rest = String::new();
    let ended = events.0.read_to_string(&mut rest);
    assert!(ended.is_err() || !rest.contains("data: "), "{rest}");
}

#[test]
fn readers_of_events_keep_nobody_out() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path());
    let address = server.address();
    let head = "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let readers: Vec<TcpStream> = (0..200).map(|_| ask(address, head)).collect();
    assert_eq!(get(address, "/status").0, 200);
    // Of another address they get the places of streams, and the page is followed.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let other = runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
        socket.connect(address).await.unwrap().into_std().unwrap()
    });
    other.set_nonblocking(false).unwrap();
    other.set_read_timeout(Some(LIMIT)).unwrap();
    (&other).write_all(head.as_bytes()).unwrap();
    Events(BufReader::new(other)).standing("waiting");
    drop(readers);
}

/// The status of a request to follow.
fn ask_status(address: SocketAddr) -> u16 {
    let stream = ask(address, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line.split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn what_is_asked_wrongly_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path());
    let address = server.address();
    let (status, words) = get(address, "/trials.jsonl");
    assert!(status == 404 && words.contains("/results.json"), "{words}");
    let answer = |head: &str| {
        let mut text = String::new();
        ask(address, head).read_to_string(&mut text).unwrap();
        text.split(' ').nth(1).unwrap().parse::<u16>().unwrap()
    };
    let foreign = "GET / HTTP/1.1\r\nHost: pages.example:80\r\nConnection: close\r\n\r\n";
    assert_eq!(answer(foreign), 403, "a foreign name that leads here");
    for own in ["127.0.0.1:1", "127.0.0.1", "LOCALHOST:80", "[::1]", "[::1]:8484"] {
        let head = format!("GET / HTTP/1.1\r\nHost: {own}\r\nConnection: close\r\n\r\n");
        assert_eq!(answer(&head), 200, "{own}");
    }
    assert_eq!(answer("POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"), 405);

    let again = ServeOptions { folder: folder.path().to_owned(), listen: address.to_string() };
    let error = start(&again).unwrap_err().to_string();
    assert!(error.contains(&address.to_string()) && error.contains("127.0.0.1:0"), "{error}");
    let nowhere = ServeOptions { listen: "here".to_owned(), ..again };
    assert!(start(&nowhere).unwrap_err().to_string().contains("give HOST:PORT"));
}
