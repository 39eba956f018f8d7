//! `weir gen rfc2544` over a wire in memory: every method answers for each size, and what makes no
//! sense is refused. What the methods find is tested with simulated devices in `generator`.

use std::process::{Command, Output};

fn rfc2544(name: &str, arguments: &[&str]) -> Output {
    let port = |end: &str| format!("memory:rfc2544-{name}?end={end}");
    Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["gen", "rfc2544", "--port", &port("a"), "--port", &port("b")])
        .args(["--line-rate", "1M"])
        .args(arguments)
        .output()
        .unwrap()
}

#[test]
fn every_method_answers_for_each_size() {
    let methods =
        ["throughput", "loss", "back-to-back", "latency", "recovery", "ndr", "pdr", "reset"];
    for method in methods {
        // A machine that stands still makes frames late: the load is light and nothing is asserted
        // about the figures.
        let load: &[&str] = match method {
            "latency" => &["--load", "50"],
            "reset" => &["--load", "50", "--reset-command", "true"],
            _ => &[],
        };
        let common = ["--method", method, "--sizes", "128,512", "--repeats", "2", "--json"];
        let common =
            [common.as_slice(), &["--trial", "0.05", "--precision", "20", "--grace", "5"]].concat();
        let output = rfc2544(method, &[common.as_slice(), load].concat());
        let errors = String::from_utf8(output.stderr).unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        if method == "recovery" && !output.status.success() {
            assert!(errors.contains("no load passes"), "{errors}");
            continue;
        }
        assert!(output.status.success(), "{method}: {errors}");
        let answers: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let sizes: Vec<_> = answers.iter().map(|answer| answer["frame_size"].as_u64()).collect();
        assert_eq!(sizes, [Some(128), Some(512)], "{method}: {text}");
        assert!(answers.iter().all(
            |answer| answer["method"] == method && answer["result"] != serde_json::Value::Null
        ));
        assert!(errors.contains("packets/s for"), "each trial is told: {errors}");
    }
}

#[test]
fn people_get_a_line_for_each_size() {
    let output = rfc2544(
        "text",
        &["--sizes", "64,1518", "--trial", "0.05", "--precision", "20", "--grace", "5"],
    );
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().filter(|line| line.contains("throughput")).count(), 2, "{text}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    for (name, arguments, says) in [
        // Nothing is tried of the first size where a later one cannot be sent.
        ("size", ["--sizes", "64,20"], "--sizes 20"),
        ("room", ["--packet", "eth/ipv6/tcp"], "--sizes 64"),
        ("packet", ["--packet", "eth/nonsense"], "--packet eth/nonsense"),
        ("port", ["--to", "7"], "port 7"),
        ("trial", ["--trial", "0"], "--trial"),
        ("nan", ["--trial", "nan"], "--trial"),
        ("grace", ["--grace", "inf"], "--grace"),
        ("precision", ["--precision", "0"], "--precision"),
        ("load", ["--load", "101"], "--load"),
        ("repeats", ["--repeats", "0"], "--repeats"),
    ] {
        let output = rfc2544(name, &arguments);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{name}: {errors}");
        assert!(errors.contains(says) && !errors.contains("packets/s for"), "{name}: {errors}");
    }
}

#[test]
fn a_result_has_no_number_that_none_is() {
    let one = ["--sizes", "64", "--trial", "0.05", "--grace", "5", "--repeats", "1", "--json"];
    for method in ["throughput", "back-to-back"] {
        let precision = ["--method", method, "--precision", "20"];
        let output = rfc2544("bounds", &[&one[..], &precision].concat());
        let text = String::from_utf8(output.stdout).unwrap();
        let answer: serde_json::Value = serde_json::from_str(text.trim()).unwrap();
        assert!(!text.contains("e+308") && !text.contains("e308"), "{answer}");
    }
}

#[test]
fn a_reset_that_fails_is_reported() {
    let arguments = ["--method", "reset", "--sizes", "64", "--trial", "0.2", "--load", "10"];
    let failing = ["--reset-command", "exit 7"];
    let output = rfc2544("failing", &[&arguments[..], &failing].concat());
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("--reset-command \"exit 7\""), "{errors}");
}

/// Report of `--method reset` for a veth pair whose end `down` is taken down for half a second.
fn veth_reset(down: &str) -> serde_json::Value {
    let script = format!(
        "set -e
        ip link add a0 type veth peer name b0
        for end in a0 b0; do
            echo 1 > /proc/sys/net/ipv6/conf/$end/disable_ipv6; ip link set $end up
        done
        \"$0\" gen rfc2544 --port af_packet:a0 --port af_packet:b0 --line-rate 10M --json \
            --method reset --sizes 128 --trial 6 --load 5 --grace 5 \
            --reset-command 'ip link set {down} down; sleep 0.5; ip link set {down} up'"
    );
    let output = Command::new("unshare")
        .args(["--net", "bash", "-c", &script, env!("CARGO_BIN_EXE_weir")])
        .output()
        .unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "needs root: {errors}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The defect of a reset that took the link down and ended the trial that was to measure it, at
/// either end of the link.
#[test]
#[ignore = "needs root"]
fn a_reset_that_takes_the_link_down_is_measured() {
    for down in ["a0", "b0"] {
        // What waited while the link was down is lost too: it was 100 ms less once. A tester that
        // the machine stalls sends what was due then after it, so only a fault is in each of three.
        let high = |answer: &serde_json::Value| {
            answer["result"]["by_frame_loss_s"]["high"].as_f64().unwrap()
        };
        let mut answer = veth_reset(down);
        for _ in 0..2 {
            if high(&answer) <= 0.45 {
                answer = veth_reset(down);
            }
        }
        assert!(high(&answer) > 0.45, "{down}: {answer}");
        let result = &answer["result"];
        // A busy machine makes it longer.
        let found = |by: &str| result[by]["value"].as_f64().unwrap();
        assert!(found("by_time_stamps_s") > 0.4, "{down}: {answer}");
        // A port that is down takes nothing; what one whose peer is down takes is lost on the way.
        if down == "a0" {
            assert!(result["trial"]["unsent_down"].as_u64().unwrap() > 0, "{answer}");
        }
    }
}
