//! `weir controller --rest` as a program, with `weir switch` connected to it: both versions, the
//! switch's errors, a token, addresses that are refused.

use super::process::{DEADLINE, Running, until, weir};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

/// A controller with REST on free ports: the program, its OpenFlow endpoint, REST's address.
fn controller(more: &[&str]) -> (Running, String, String) {
    let mut arguments = vec!["controller", "idle", "--listen", "tcp:127.0.0.1:0"];
    arguments.extend(["--rest", "127.0.0.1:0"]);
    arguments.extend(more);
    let program = Running::start(&mut weir(&arguments));
    let rest = program.says("REST on http://");
    let endpoint = program.says("listening on ");
    (program, endpoint, rest)
}

fn switch(dpid: &str, version: &str, endpoint: &str) -> Running {
    let ports = ["--port", "null:a", "--port", "null:b", "--control", "none"];
    let arguments = ["switch", "--dpid", dpid, "--protocols", version, "--controller", endpoint];
    Running::start(weir(&arguments).args(ports))
}

/// The status and the value of an answer; status 0 where there is none.
fn ask(address: &str, method: &str, path: &str, body: &str, header: &str) -> (u16, Value) {
    let mut answer = String::new();
    let mut exchange = || -> std::io::Result<()> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(DEADLINE))?;
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{header}\
             Content-Length: {length}\r\n\r\n{body}"
        )?;
        stream.read_to_string(&mut answer).map(drop)
    };
    drop(exchange());
    let status = answer.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
    let value = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (status, serde_json::from_str(value).unwrap_or(Value::Null))
}

#[test]
fn switches_of_both_versions_do_what_is_asked_or_say_why_not() {
    let (_controller, endpoint, rest) = controller(&[]);
    let first = switch("1", "OpenFlow13", &endpoint);
    let _second = switch("2", "OpenFlow10", &endpoint);
    until("both switches are known", || {
        let (_, dpids) = ask(&rest, "GET", "/stats/switches", "", "");
        (dpids == json!([1, 2])).then_some(())
    });
    for dpid in [1, 2] {
        let body = json!({"dpid": dpid, "priority": 7, "match": {"in_port": 1},
            "actions": [{"type": "OUTPUT", "port": 2}]});
        let add = |flags: u16| {
            let mut body = body.clone();
            body["flags"] = flags.into();
            ask(&rest, "POST", "/stats/flowentry/add", &body.to_string(), "")
        };
        assert_eq!(add(0), (200, Value::Null));
        let (status, flows) = ask(&rest, "GET", &format!("/stats/flow/{dpid}"), "", "");
        let flow = &flows[dpid.to_string()][0];
        assert_eq!(
            (status, &flow["actions"], &flow["priority"]),
            (200, &json!(["OUTPUT:2"]), &json!(7))
        );
        assert_eq!(flow["match"], json!({"in_port": 1}));
        let overlapping = json!({"dpid": dpid, "priority": 7, "flags": 2, "actions": [],
            "match": {"dl_src": "02:00:00:00:00:01"}});
        let (status, printed) =
            ask(&rest, "POST", "/stats/flowentry/add", &overlapping.to_string(), "");
        assert_eq!((status, &printed["openflow"]["name"]), (422, &json!("OFPFMFC_OVERLAP")));
        assert!(printed["openflow"]["xid"].is_number(), "{printed}");
        let clear = format!("/stats/flowentry/clear/{dpid}");
        assert_eq!(ask(&rest, "DELETE", &clear, "", "").0, 200);
    }
    drop(first);
    until("the switch that ended is gone", || {
        (ask(&rest, "GET", "/stats/desc/1", "", "").0 == 404).then_some(())
    });
    assert_eq!(ask(&rest, "GET", "/stats/desc/2", "", "").0, 200);
}

/// A switch of 1.0 that says who it is, reads all that is sent to it, and answers nothing else.
fn silent_switch(endpoint: &str, dpid: u8) {
    let mut stream = TcpStream::connect(endpoint.trim_start_matches("tcp:")).unwrap();
    stream.write_all(&[1, 0, 0, 8, 0, 0, 0, 1]).unwrap();
    std::thread::spawn(move || {
        let (mut header, mut has_answered) = ([0; 8], false);
        // It ends with the connection, which the controller ends.
        while stream.read_exact(&mut header).is_ok() {
            let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
            let mut body = vec![0; length - header.len()];
            if stream.read_exact(&mut body).is_err() {
                return;
            }
            if header[1] == FEATURES_REQUEST && !std::mem::replace(&mut has_answered, true) {
                let mut reply = vec![1, FEATURES_REPLY, 0, 32];
                reply.extend_from_slice(&header[4..]);
                reply.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, dpid]);
                reply.resize(32, 0);
                drop(stream.write_all(&reply));
            }
        }
    });
}

const FEATURES_REQUEST: u8 = 5;
const FEATURES_REPLY: u8 = 6;

#[test]
fn every_request_about_a_silent_switch_ends_with_an_error() {
    let (_controller, endpoint, rest) = controller(&["--probe-interval", "0"]);
    silent_switch(&endpoint, 1);
    until("the switch is known", || {
        let (_, dpids) = ask(&rest, "GET", "/stats/switches", "", "");
        (dpids == json!([1])).then_some(())
    });
    let rule = r#"{"nw_src": "10.0.0.1/32"}"#;
    let address = r#"{"address": "172.16.20.1/24"}"#;
    let requests = [
        ("GET", "/stats/desc/1", ""),
        ("GET", "/stats/flow/1", ""),
        ("GET", "/stats/aggregateflow/1", ""),
        ("GET", "/stats/table/1", ""),
        ("GET", "/stats/port/1", ""),
        ("GET", "/stats/queue/1", ""),
        ("GET", "/stats/queueconfig/1/1", ""),
        ("GET", "/stats/portdesc/1", ""),
        ("POST", "/stats/flowentry/add", r#"{"dpid": 1, "actions": []}"#),
        ("DELETE", "/stats/flowentry/clear/1", ""),
        ("PUT", "/firewall/module/enable/all", ""),
        ("GET", "/firewall/module/status", ""),
        ("GET", "/firewall/rules/all", ""),
        ("POST", "/firewall/rules/all", rule),
        ("DELETE", "/firewall/rules/0000000000000001", r#"{"rule_id": "all"}"#),
        ("GET", "/qos/queue/status/all", ""),
        ("POST", "/router/0000000000000001", address),
    ];
    std::thread::scope(|scope| {
        for (method, path, body) in requests {
            let rest = &rest;
            scope.spawn(move || {
                let (status, printed) = ask(rest, method, path, body, "");
                let words = printed["error"].as_str().unwrap_or_default();
                assert_eq!(status, 504, "{method} {path}: {printed}");
                assert!(words.contains("not answered within 10 s"), "{method} {path}: {printed}");
            });
        }
    });
    assert_eq!(ask(&rest, "GET", "/stats/switches", "", ""), (200, json!([1])));
}

#[test]
fn a_token_is_demanded_and_for_other_addresses_required() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("token");
    std::fs::write(&file, "0123456789abcdef\n").unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
    let (program, _, rest) = controller(&["--rest-token-file", file.to_str().unwrap()]);
    program.says("every user may read this secret; chmod o-r");
    assert_eq!(ask(&rest, "GET", "/stats/switches", "", "").0, 401);
    let right = "Authorization: Bearer 0123456789abcdef\r\n";
    assert_eq!(ask(&rest, "GET", "/stats/switches", "", right), (200, json!([])));
    for (more, word) in [
        (vec!["--rest", "0.0.0.0:0"], "--rest-token-file"),
        (vec!["--rest", "here"], "HOST:PORT"),
        (vec!["--rest", "127.0.0.1:0", "--rest-token-file", "/nonexistent"], "/nonexistent"),
    ] {
        let mut arguments = vec!["controller", "idle", "--listen", "tcp:127.0.0.1:0"];
        arguments.extend(more);
        let mut program = Command::new(env!("CARGO_BIN_EXE_weir"));
        let output = program.args(&arguments).stdin(Stdio::null()).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && printed.contains(word), "{arguments:?}: {printed}");
    }
}
