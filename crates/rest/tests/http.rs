//! REST over real connections on the loopback address, in front of a switch that is a script.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "a test looks at what it asks for, whatever else there is"
)]

use openflow::flow::{FlowModFlags, FlowStats};
use openflow::message::{
    ErrorMessage, Features, MultipartReply, MultipartReplyBody, MultipartRequestBody, SwitchDesc,
};
use openflow::meter::MeterStats;
use openflow::port::{PortDesc, QueueStats};
use openflow::{Cookie, DatapathId, Error, Match, Message, PortNo, TableId, Version, Xid};
use rest::{
    AppRequest, AppResponse, AppRoute, AppRoutes, Failure, RestFuture, RestLimits, RestNetwork,
    RestOptions, RestServer, ServedSwitch, ServedSwitches, Token,
};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Barrier;

/// Time that a test waits for what must come.
const DEADLINE: Duration = Duration::from_secs(30);

/// The switch's answer to changes.
#[derive(Clone, Copy, PartialEq)]
enum Mood {
    Obeys,
    Refuses,
    Waits,
    /// Answers when both are asked.
    Together,
    /// The second answers nothing.
    Half,
    /// Has long lists of queues, meters and flow entries.
    Talks,
}

/// Two switches, of 1.0 and of 1.3, that keep what they are told.
struct Scripted {
    mood: Mood,
    applied: Mutex<Vec<Message>>,
    asked: Arc<Barrier>,
    /// Ends what [`Mood::Waits`] waits for.
    released: Arc<AtomicBool>,
}

impl ServedSwitches for Scripted {
    fn all(&self) -> Vec<ServedSwitch> {
        [1, 2].into_iter().filter_map(|dpid| self.get(DatapathId(dpid))).collect()
    }

    fn get(&self, dpid: DatapathId) -> Option<ServedSwitch> {
        let version = match dpid.0 {
            1 => Version::V1_3,
            2 => Version::V1_0,
            _ => return None,
        };
        let port = |port_no| PortDesc { port_no, name: "p".into(), ..PortDesc::default() };
        let features = Arc::new(Features { datapath_id: dpid, ..Features::default() });
        let ports = vec![port(PortNo(1)), port(PortNo::LOCAL)];
        Some(ServedSwitch { dpid, version, features, ports })
    }

    fn request(&self, dpid: DatapathId, message: Message) -> RestFuture<Result<Message, Failure>> {
        if self.mood == Mood::Together {
            let asked = Arc::clone(&self.asked);
            return Box::pin(async move {
                asked.wait().await;
                let body = MultipartReplyBody::Flow(Vec::new());
                Ok(Message::MultipartReply(MultipartReply { more: false, body }))
            });
        }
        if self.mood == Mood::Half {
            let body = MultipartReplyBody::Flow(Vec::new());
            let answer = Message::MultipartReply(MultipartReply { more: false, body });
            let is_silent = dpid.0 == 1;
            let silence = Failure::Silent(Duration::from_secs(5));
            return Box::pin(async move { if is_silent { Err(silence) } else { Ok(answer) } });
        }
        if self.mood == Mood::Talks {
            let Message::MultipartRequest(request) = message else { panic!("{message:?}") };
            let answer = MultipartReply { more: false, body: long_list(&request.body) };
            return Box::pin(async move { Ok(Message::MultipartReply(answer)) });
        }
        let answer = if !matches!(message, Message::MultipartRequest(_)) {
            Ok(Message::BarrierReply)
        } else if dpid.0 == 1 {
            let desc = SwitchDesc { mfr_desc: "script".into(), ..SwitchDesc::default() };
            let body = MultipartReplyBody::Desc(desc);
            Ok(Message::MultipartReply(MultipartReply { more: false, body }))
        } else {
            Err(Failure::Silent(Duration::from_secs(5)))
        };
        Box::pin(async { answer })
    }

    fn apply(&self, _: DatapathId, messages: Vec<Message>) -> RestFuture<Result<(), Failure>> {
        self.applied.lock().unwrap().extend(messages);
        let (mood, released) = (self.mood, Arc::clone(&self.released));
        Box::pin(async move {
            match mood {
                Mood::Obeys | Mood::Together | Mood::Half | Mood::Talks => Ok(()),
                Mood::Refuses => {
                    let version = Version::V1_3;
                    let error = ErrorMessage::new(version, Error::FlowModTableFull, Vec::new());
                    Err(Failure::Refused { index: 0, xid: Some(Xid(7)), error })
                }
                Mood::Waits => {
                    while !released.load(Ordering::Acquire) {
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                    Ok(())
                }
            }
        })
    }
}

fn long_list(asked: &MultipartRequestBody) -> MultipartReplyBody {
    match asked {
        MultipartRequestBody::Queue { .. } => {
            MultipartReplyBody::Queue(vec![QueueStats::default(); 20])
        }
        MultipartRequestBody::Meter(_) => {
            MultipartReplyBody::Meter(vec![MeterStats::default(); 20])
        }
        MultipartRequestBody::Flow(_) => MultipartReplyBody::Flow(vec![rule(); 20]),
        other => panic!("{other:?}"),
    }
}

/// A flow entry that is a rule of QoS.
fn rule() -> FlowStats {
    FlowStats {
        table_id: TableId(0),
        duration_s: 0,
        duration_ns: 0,
        priority: 1,
        idle_timeout_s: 0,
        hard_timeout_s: 0,
        flags: FlowModFlags::default(),
        importance: 0,
        cookie: Cookie(1),
        packet_count: 0,
        byte_count: 0,
        matching: Match::any(),
        instructions: Vec::new(),
    }
}

struct Served {
    running: RestServer,
    switches: Arc<Scripted>,
}

fn scripted(mood: Mood) -> Scripted {
    let (applied, asked) = (Mutex::new(Vec::new()), Arc::new(Barrier::new(2)));
    Scripted { mood, applied, asked, released: Arc::default() }
}

/// An app that answers every request with this status.
struct Status(u16);

impl AppRoutes for Status {
    fn routes(&self) -> &[AppRoute] {
        &[]
    }

    fn answer(&self, _: AppRequest) -> RestFuture<Option<AppResponse>> {
        let (status, content_type) = (self.0, "application/json".to_owned());
        Box::pin(async move { Some(AppResponse { status, content_type, body: b"{}".to_vec() }) })
    }
}

#[test]
fn an_app_that_has_no_room_names_when_to_come_again() {
    for (status, is_named) in [(503, true), (500, false)] {
        let options = RestOptions {
            listen: "127.0.0.1:0".into(),
            token: None,
            limits: RestLimits::default(),
        };
        let datapaths: Arc<dyn ServedSwitches> = Arc::new(scripted(Mood::Obeys));
        let apps: Option<Arc<dyn AppRoutes>> = Some(Arc::new(Status(status)));
        let network = RestNetwork { datapaths, map: None, events: None, routers: None, apps };
        let running = rest::start(&options, network).unwrap();
        let address = running.address();
        let request = format!("GET /own HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        let answer = exchange(address, request.as_bytes());
        assert_eq!(parsed(&answer).0, status);
        assert_eq!(answer.contains("\r\nretry-after: 1\r\n"), is_named, "{answer}");
    }
}

fn serve(mood: Mood, token: Option<&str>, limits: RestLimits) -> Served {
    let switches = Arc::new(scripted(mood));
    let token = token.map(|text| Token::new(text).unwrap());
    let options = RestOptions { listen: "127.0.0.1:0".into(), token, limits };
    let datapaths: Arc<dyn ServedSwitches> = switches.clone();
    let routers = Some(Arc::default());
    let network = RestNetwork { datapaths, map: None, events: None, routers, apps: None };
    let running = rest::start(&options, network).unwrap();
    Served { running, switches }
}

/// Sends bytes, and gives all that comes until the other side ends the connection.
fn exchange(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    // A server that has heard enough closes before it has read all.
    drop(stream.write_all(request));
    let mut answer = Vec::new();
    drop(stream.read_to_end(&mut answer));
    String::from_utf8_lossy(&answer).into_owned()
}

/// The status and the value of an answer.
fn ask(served: &Served, method: &str, path: &str, body: &str, headers: &str) -> (u16, Value) {
    let address = served.running.address();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    parsed(&exchange(address, request.as_bytes()))
}

fn parsed(answer: &str) -> (u16, Value) {
    let status = answer.split(' ').nth(1).and_then(|it| it.parse().ok()).unwrap_or(0);
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (status, serde_json::from_str(body).unwrap_or(Value::Null))
}

#[test]
fn a_change_is_sent_and_an_error_of_the_switch_is_the_answer() {
    let body = r#"{"dpid": 1, "match": {"in_port": 1}, "actions": []}"#;
    let obeys = serve(Mood::Obeys, None, RestLimits::default());
    assert_eq!(ask(&obeys, "POST", "/stats/flowentry/add", body, ""), (200, Value::Null));
    let python = "{'dpid': 0x1, 'match': {'in_port': 1,}, 'actions': [],}";
    assert_eq!(ask(&obeys, "POST", "/stats/flowentry/add", python, ""), (200, Value::Null));
    let applied = obeys.switches.applied.lock().unwrap();
    assert!(matches!(applied[..], [Message::FlowMod(_), Message::FlowMod(_)]));
    assert_eq!(applied[0], applied[1]);

    let refuses = serve(Mood::Refuses, None, RestLimits::default());
    let (status, reply) = ask(&refuses, "POST", "/stats/flowentry/add", body, "");
    assert_eq!(status, 422);
    assert_eq!(reply["openflow"]["type"], 5);
    assert_eq!(reply["openflow"]["code"], 1);
    assert_eq!(reply["openflow"]["xid"], 7);
}

#[test]
fn what_is_wrong_is_refused_before_the_switch_hears_of_it() {
    let served = serve(Mood::Obeys, None, RestLimits::default());
    for (method, path, body, status) in [
        ("POST", "/stats/flowentry/add", r#"{"dpid": 1, "prio": 5}"#, 400),
        ("POST", "/stats/flowentry/add", r#"{"dpid": 9}"#, 404),
        ("POST", "/stats/flowentry/add", r#"{"match": {}}"#, 400),
        ("POST", "/stats/flowentry/add", "", 400),
        ("POST", "/stats/flowentry/add", "[1]", 400),
        ("POST", "/stats/flowentry/put", r#"{"dpid": 1}"#, 404),
        ("POST", "/stats/meterentry/add", r#"{"dpid": 2, "meter_id": 1}"#, 501),
        ("DELETE", "/stats/flowentry/clear/1", r#"{"table_id": 5}"#, 400),
        ("GET", "/stats/desc/1?table=5", "", 400),
        ("GET", "/stats/desc/one", "", 400),
        ("GET", "/stats/desc/3", "", 404),
        ("GET", "/stats/desc/2", "", 504),
        ("GET", "/stats/port/1/two", "", 400),
        ("GET", "/stats/port/1/02", "", 400),
        ("GET", "/firewall/rules/all/02", "", 400),
        ("GET", "/stats/meter/2", "", 501),
        ("GET", "/stats/port/1", "", 502),
        ("GET", "/no/such/path", "", 404),
        ("PUT", "/stats/desc/1", "", 405),
    ] {
        let (answered, reply) = ask(&served, method, path, body, "");
        assert_eq!(answered, status, "{method} {path} {body}: {reply}");
        assert!(reply["error"].is_string(), "{method} {path} {body}: {reply}");
    }
    assert!(served.switches.applied.lock().unwrap().is_empty());
}

#[test]
fn answers_have_ryu_s_keys() {
    let served = serve(Mood::Obeys, None, RestLimits::default());
    assert_eq!(ask(&served, "GET", "/stats/switches", "", ""), (200, json!([1, 2])));
    let (status, reply) = ask(&served, "GET", "/stats/desc/0x1", "", "");
    assert_eq!((status, &reply["1"]["mfr_desc"]), (200, &json!("script")));
    let (status, reply) = ask(&served, "GET", "/v1.0/topology/switches/0000000000000001", "", "");
    let port = json!({"dpid": "0000000000000001", "port_no": "00000001",
        "hw_addr": "00:00:00:00:00:00", "name": "p"});
    assert_eq!((status, reply), (200, json!([{"dpid": "0000000000000001", "ports": [port]}])));
    assert_eq!(ask(&served, "GET", "/v1.0/topology/links", "", ""), (200, json!([])));
    let (status, document) = ask(&served, "GET", "/openapi.json", "", "");
    assert_eq!(status, 200);
    assert!(document["paths"]["/stats/flowentry/{cmd}"]["post"].is_object());
}

#[test]
fn a_list_that_is_too_long_says_what_can_be_asked_for_there() {
    let served =
        serve(Mood::Talks, None, RestLimits { answer_bytes: 300, ..RestLimits::default() });
    for (path, hint) in [
        ("/qos/queue/status/0000000000000001", "one switch"),
        ("/qos/meter/0000000000000001", "one switch"),
        ("/qos/rules/0000000000000001", "one switch, or a VLAN"),
    ] {
        let (status, reply) = ask(&served, "GET", path, "", "");
        let words = format!("the answer has more than 300 bytes: ask for {hint}");
        assert_eq!(status, 502, "{path}");
        assert!(reply["error"].as_str().unwrap().ends_with(&words), "{path}: {reply}");
    }
}

#[test]
fn a_token_is_demanded_of_everyone_where_there_is_one() {
    let served = serve(Mood::Obeys, Some("0123456789abcdef"), RestLimits::default());
    assert_eq!(ask(&served, "GET", "/stats/switches", "", "").0, 401);
    assert_eq!(ask(&served, "GET", "/openapi.json", "", "").0, 401);
    let wrong = "Authorization: Bearer 0123456789abcdeX\r\n";
    assert_eq!(ask(&served, "GET", "/stats/switches", "", wrong).0, 401);
    let right = "Authorization: Bearer 0123456789abcdef\r\n";
    assert_eq!(ask(&served, "GET", "/stats/switches", "", right).0, 200);
}

#[test]
fn an_address_that_others_reach_needs_a_token() {
    let datapaths: Arc<dyn ServedSwitches> = Arc::new(scripted(Mood::Obeys));
    for (listen, advice) in [("0.0.0.0:0", "--rest-token-file"), ("8080", "HOST:PORT")] {
        let datapaths = Arc::clone(&datapaths);
        let network = RestNetwork { datapaths, map: None, events: None, routers: None, apps: None };
        let (listen, limits) = (listen.into(), RestLimits::default());
        let options = RestOptions { listen, token: None, limits };
        let refused = rest::start(&options, network).unwrap_err().to_string();
        assert!(refused.contains(advice), "{refused}");
    }
}

#[test]
fn all_switches_are_asked_at_the_same_time() {
    let served = serve(Mood::Together, None, RestLimits::default());
    let (status, reply) = ask(&served, "GET", "/firewall/module/status", "", "");
    let of = |dpid: &str| json!({"switch_id": dpid, "status": "disable"});
    let expected = json!([of("0000000000000001"), of("0000000000000002")]);
    assert_eq!((status, reply), (200, expected));
}

#[test]
fn an_address_is_kept_when_the_switch_has_taken_its_entries() {
    let body = r#"{"address": "172.16.20.1/24"}"#;
    let one = "/router/0000000000000001";
    let refuses = serve(Mood::Refuses, None, RestLimits::default());
    assert_eq!(ask(&refuses, "POST", one, body, "").0, 422);
    let empty = json!([{"switch_id": "0000000000000001", "internal_network": [{}]}]);
    assert_eq!(ask(&refuses, "GET", one, "", ""), (200, empty.clone()));

    let obeys = serve(Mood::Obeys, None, RestLimits::default());
    let (status, reply) = ask(&obeys, "POST", one, body, "");
    assert_eq!((status, &reply[0]["command_result"][0]["result"]), (200, &json!("success")));
    let entries = obeys.switches.applied.lock().unwrap();
    assert!(entries.iter().filter(|it| matches!(it, Message::FlowMod(_))).count() >= 5);
    drop(entries);
    let (_, reply) = ask(&obeys, "GET", "/router/all", "", "");
    let address = json!({"address_id": 1, "address": "172.16.20.1/24"});
    assert_eq!(reply[0]["internal_network"], json!([{"address": [address]}]));
    assert_eq!(reply[1]["internal_network"], json!([{}]), "the other switch");
    for (body, status) in [
        (r#"{"address": "172.16.20.0/24"}"#, 400),
        (r#"{"address": "10.0.0.1/24", "gateway": "10.0.0.2"}"#, 400),
        (r#"{"destination": "10.0.0.0/8"}"#, 400),
        ("{}", 400),
    ] {
        assert_eq!(ask(&obeys, "POST", one, body, "").0, status, "{body}");
    }
    let (status, reply) = ask(&obeys, "DELETE", one, r#"{"address_id": "all"}"#, "");
    assert_eq!(status, 200);
    let details = &reply[0]["command_result"][0]["details"];
    assert_eq!(details, "Delete address [address_id=1]");
    assert_eq!(ask(&obeys, "GET", one, "", ""), (200, empty));
}

#[test]
fn a_page_of_another_origin_is_refused() {
    let served = serve(Mood::Obeys, None, RestLimits::default());
    let foreign = "Origin: http://evil.example\r\n";
    let body = r#"{"dpid": 1}"#;
    assert_eq!(ask(&served, "POST", "/stats/flowentry/add", body, foreign).0, 403);
    assert!(served.switches.applied.lock().unwrap().is_empty());
}

#[test]
fn large_bodies_are_refused_and_others_are_served() {
    let limits = RestLimits { body_bytes: 1000, ..RestLimits::default() };
    let served = serve(Mood::Obeys, None, limits);
    let body = format!("{{\"dpid\": 1, \"match\": {{}}, \"x\": \"{}\"}}", "x".repeat(2000));
    assert_eq!(ask(&served, "POST", "/stats/flowentry/add", &body, "").0, 413);
    assert_eq!(ask(&served, "GET", "/stats/switches", "", "").0, 200);
}

#[test]
fn all_switches_are_changed_at_the_same_time() {
    let served = serve(Mood::Together, None, RestLimits::default());
    // Neither answers before the other is asked.
    let (status, value) = ask(&served, "PUT", "/firewall/module/enable/all", "", "");
    assert_eq!((status, value.as_array().map(Vec::len)), (200, Some(2)), "{value}");
    assert_eq!(value[1]["switch_id"], "0000000000000002");
}

#[test]
fn a_switch_that_is_silent_keeps_no_other_from_its_change() {
    let served = serve(Mood::Half, None, RestLimits::default());
    let (status, value) = ask(&served, "PUT", "/firewall/module/enable/all", "", "");
    assert_eq!(status, 504);
    let words = "1 of 2 switches have done it; 0000000000000001: the switch has not answered \
                 within 5 s";
    assert_eq!(value["error"], words);
    let silent = json!({"0000000000000001": {"error": "the switch has not answered within 5 s"}});
    assert_eq!(value["switches"], silent);
    assert_eq!(served.switches.applied.lock().unwrap().len(), 3);
}

#[test]
fn who_is_slow_with_head_or_body_is_let_go() {
    let limits = RestLimits { patience: Duration::from_millis(300), ..RestLimits::default() };
    let served = serve(Mood::Obeys, None, limits);
    let address = served.running.address();
    // The read ends when the server ends the connection; the deadline of the socket is far.
    let answer = exchange(address, b"GET /stats/switches HTTP/1.1\r\nHost: ");
    assert!(!answer.contains(" 200 "), "{answer}");
    let request = format!(
        "POST /stats/flowentry/add HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
         Content-Length: 100\r\n\r\n{{"
    );
    assert_eq!(parsed(&exchange(address, request.as_bytes())).0, 408);
    assert_eq!(ask(&served, "GET", "/stats/switches", "", "").0, 200);
}

#[test]
fn idle_connections_keep_nobody_out() {
    let patience = Duration::from_secs(3_600);
    let limits = RestLimits { connections: 8, patience, ..RestLimits::default() };
    let served = serve(Mood::Obeys, Some("0123456789abcdef"), limits);
    let address = served.running.address();
    let idle: Vec<_> = (0..30).map(|_| TcpStream::connect(address).unwrap()).collect();
    let token = "Authorization: Bearer 0123456789abcdef\r\n";
    for _ in 0..10 {
        assert_eq!(ask(&served, "GET", "/stats/switches", "", token).0, 200);
    }
    drop(idle);
}

#[test]
fn garbage_ends_its_own_connection_only() {
    let served = serve(Mood::Obeys, None, RestLimits::default());
    let address = served.running.address();
    for garbage in [&b"\x16\x03\x01\x02\x00"[..], b"GET\r\n\r\n", &[0; 4096], b"\xff\xff \r\n\r\n"]
    {
        let answer = exchange(address, &[garbage, b"\r\n\r\n"].concat());
        assert!(!answer.contains(" 200 "), "{answer}");
    }
    let head = format!("GET /stats/switches HTTP/1.1\r\nHost: {address}\r\n");
    let many = format!("{head}X: {}\r\n\r\n", "x".repeat(200_000));
    assert!(!exchange(address, many.as_bytes()).contains(" 200 "));
    assert_eq!(ask(&served, "GET", "/stats/switches", "", "").0, 200);
}

#[test]
fn more_requests_than_may_wait_are_answered_at_once() {
    let limits = RestLimits { requests: 1, ..RestLimits::default() };
    let served = serve(Mood::Waits, None, limits);
    let address = served.running.address();
    let body = r#"{"dpid": 1}"#;
    let request = format!(
        "POST /stats/flowentry/add HTTP/1.1\r\nHost: {address}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut waiting = TcpStream::connect(address).unwrap();
    waiting.write_all(request.as_bytes()).unwrap();
    let began = std::time::Instant::now();
    while served.switches.applied.lock().unwrap().is_empty() {
        assert!(began.elapsed() < DEADLINE, "the first request never reached the switch");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(ask(&served, "GET", "/stats/switches", "", "").0, 503);
    drop(waiting);
    // A change goes on without its client, and keeps its place until it has ended.
    assert_eq!(ask(&served, "GET", "/stats/switches", "", "").0, 503);
    served.switches.released.store(true, Ordering::Release);
    while ask(&served, "GET", "/stats/switches", "", "").0 != 200 {
        assert!(began.elapsed() < DEADLINE, "the place never became free");
        std::thread::sleep(Duration::from_millis(5));
    }
}
