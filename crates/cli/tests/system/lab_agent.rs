//! Hosts on other boxes: `weir lab agent` in two network namespaces, and a switch between them.
//!
//! Three namespaces stand for three boxes: that of the lab and of the switch under test, and one
//! for each agent, joined by a link to a port of the switch; `nsenter` stands in for ssh. All are
//! the test's own and are gone with it. It must never look at how fast something is.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::lab_samples::results;

/// Makes the boxes and what runs on them, then does `$STEPS`.
const BOXES: &str = r#"
set -eu
ip link set lo up
pids=()
trap 'for pid in "${pids[@]}"; do kill -9 $pid 2>/dev/null || true; done; wait' EXIT
await() {
  for try in $(seq 300); do grep -qs "$1" "$2" && return; sleep 0.1; done
  cat "$2"
  exit 9
}
for n in 1 2; do
  # The process of the agent has the number of this shell; hosts have agents of their own.
  cat > "$DIR/agent$n" << END
echo \$\$ > "$DIR/agent$n.pid"
echo \$\$ >> "$DIR/agent$n.pids"
exec nsenter --net=/proc/\$(cat "$DIR/box$n.pid")/ns/net "$WEIR" lab agent
END
done
# Waits until the agents of a box have ended.
gone() {
  for try in $(seq 300); do
    local left=
    for pid in $(cat "$DIR/agent$1.pids"); do [ ! -e /proc/$pid ] || left=$pid; done
    [ "$left" ] || return 0
    sleep 0.1
  done
  echo "agent $1 goes on"
  exit 9
}
for n in 1 2; do
  unshare --net sleep 3600 &
  box[$n]=$!
  echo $! > "$DIR/box$n.pid"
  pids+=($!)
  for try in $(seq 100); do
    [ "$(readlink /proc/$!/ns/net)" != "$(readlink /proc/self/ns/net)" ] && break
    sleep 0.05
  done
  inside="nsenter --net=/proc/${box[$n]}/ns/net"
  ip link add port$n type veth peer name nic$n netns ${box[$n]}
  ip link set port$n up
  $inside ip link set nic$n up
done
"$WEIR" switch --port 1=af_packet:port1 --port 2=af_packet:port2 --inactivity-probe 0 \
    --listen ptcp:16653:127.0.0.1 --control "$DIR/ctl.sock" > "$DIR/switch.log" 2>&1 &
pids+=($!)
await ready "$DIR/switch.log"
# In the place of the shell that does it: `start .. &` is the lab's own process.
start() {
  exec "$WEIR" lab run --dut external --inventory "$DIR/lab.toml" --quick --quiet \
      --testbed kernel --out "$DIR/$1" "${@:3}" "$DIR/$2" > "$DIR/$1.out" 2> "$DIR/$1.err"
}
run() { (start "$@"); }
sent() { nsenter --net=/proc/${box[1]}/ns/net awk '$1 == "nic1:" { print $11 }' /proc/net/dev; }
# Waits until a run has begun its trial and so much of it is sent that both ends are open.
amid_trial() {
  await 'One-way delay' "$DIR/$1/trials.jsonl"
  local first=$(sent)
  for try in $(seq 300); do [ "$(sent)" -gt $((first + 200)) ] && return; sleep 0.1; done
  echo "no trial of $1"
  exit 9
}
eval "$STEPS"
"#;

const FLOWS: &str = "flows = [\"in_port=1,actions=output:2\", \"in_port=2,actions=output:1\"]";

/// The first line of an inventory whose ends are none of hosts with addresses.
const HOSTS: &str = "hosts = false\n";

/// A scenario of one cell.
fn scenario(methods: &str, settings: &str) -> String {
    format!(
        "id = \"one\"\ntitle = \"One\"\nquestion = \"?\"\nmethods = [{methods}]\nstarts = 3\n\
         [settings]\n{settings}\n{FLOWS}\n"
    )
}

fn steps(folder: &Path, steps: &str) -> Output {
    let write = |name: &str, text: &str| {
        std::fs::write(folder.join(name), text).expect("a file is written");
    };
    let place = folder.display();
    let inventory = format!(
        "openflow = \"tcp:127.0.0.1:16653\"\n\
         [[ports]]\nagent = \"sh {place}/agent1\"\ninterface = \"nic1\"\n\
         [[ports]]\nagent = \"sh {place}/agent2\"\ninterface = \"nic2\"\n"
    );
    write("lab.toml", &format!("{HOSTS}{inventory}"));
    write("hosts.inventory", &inventory);
    let usual = "rate_pps = 500.0\nduration_s = 0.3";
    write("one.toml", &scenario("\"delay\", \"rate\", \"probe\"", usual));
    write("other.toml", &scenario("\"tcp\", \"ping\"", usual));
    let methods = "\"ping\", \"tcp\", \"udp2\"";
    let short = "count = 10\nduration_s = 1.0\nload_bps = 1e6";
    write("hosts.toml", &scenario(methods, short));
    let both = "rate_pps = 500.0\nduration_s = 0.3\nis_bidirectional = true";
    write("both.toml", &scenario("\"rate\"", both));
    let group = scenario("\"group\"", usual).replace(
        FLOWS,
        "groups = [\"group_id=1,type=all,bucket=output:2,bucket=output:2\"]\n\
         flows = [\"in_port=1,actions=group:1\"]",
    );
    write("group.toml", &group);
    write("long.toml", &scenario("\"delay\"", "rate_pps = 500.0\nduration_s = 8.0"));
    Command::new("unshare")
        .args(["--net", "bash", "-c", BOXES])
        .env("WEIR", env!("CARGO_BIN_EXE_weir"))
        .env("DIR", folder)
        .env("STEPS", steps)
        .output()
        .expect("unshare starts")
}

fn read(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).unwrap_or_default()
}

/// The only cell of a run.
fn cell(folder: &Path, run: &str, output: &Output) -> Value {
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let is_over = folder.join(run).join("report.html").exists();
    assert!(is_over, "{stderr}: {}", read(folder, &format!("{run}.err")));
    results(&folder.join(run))["scenarios"][0]["cells"][0].clone()
}

/// The first figure of a metric in the only cell of a run.
fn value(folder: &Path, output: &Output, run: &str, metric: &str) -> f64 {
    let found = cell(folder, run, output);
    let rows = found["rows"].as_array().expect("rows");
    let row = rows.iter().find(|row| row["metric"] == metric);
    let row = row.unwrap_or_else(|| panic!("{metric}: {found}"));
    row["samples"][0].as_f64().expect("a number")
}

#[test]
#[ignore = "needs root"]
fn a_switch_between_two_boxes_is_measured_by_their_agents() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let output = steps(
        folder,
        "run first one.toml; run second other.toml || true; run both both.toml; \
         run group group.toml; gone 1; gone 2; echo agents have ended",
    );
    let found = cell(folder, "first", &output);
    assert_eq!(found["state"], "measured", "{found}: {}", read(folder, "first.err"));
    // A trial in which this machine stalled is made again; nothing else goes wrong.
    let trials = found["trials"].as_array().expect("trials");
    let mut good = BTreeSet::new();
    for trial in trials {
        let place = (trial["method"].to_string(), trial["start"].as_u64());
        match trial["error"].as_str() {
            None => assert!(good.insert(place), "twice: {trial}"),
            Some(error) => assert!(error.starts_with("the machine stalled"), "{trial}"),
        }
    }
    assert_eq!(good.len(), 3 * 3, "three methods, three starts: {found}");
    let row = |metric: &str| {
        let rows = found["rows"].as_array().expect("rows");
        rows.iter()
            .find(|row| row["metric"] == metric)
            .unwrap_or_else(|| panic!("{metric}"))
            .clone()
    };
    let delay = row("delay_p50_us");
    let error = delay["clock_error"].as_f64().expect("a clock error");
    assert!(error > 0.0, "{delay}");
    for (sample, both) in delay["samples"]
        .as_array()
        .expect("samples")
        .iter()
        .zip(delay["resolutions"].as_array().expect("resolutions"))
    {
        // There is one clock in truth, so that a delay is below zero by no more than the error.
        let sample = sample.as_f64().expect("a number");
        assert!(sample > -error, "{delay}");
        assert!(both[0].as_f64() < Some(sample) && both[1].as_f64() > Some(sample), "{delay}");
    }
    for metric in ["rate_pps", "probe_p50_us"] {
        let row = row(metric);
        assert!(row["clock_error"].is_null(), "{row}");
        assert!(row["samples"][0].as_f64().is_some_and(|value| value > 0.0), "{row}");
    }
    // Ends that send at one time: the sum of both ways, and both copies of each frame that a group
    // makes.
    assert!(value(folder, &output, "both", "rate_pps") > 0.0);
    let copies = value(folder, &output, "group", "group_copies");
    assert!((1.9..=2.0).contains(&copies), "{copies}");
    let second = cell(folder, "second", &output);
    assert_eq!(second["state"], "not_supported", "{second}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("agents have ended"));
}

#[test]
#[ignore = "needs root"]
fn agents_make_hosts_that_ping_and_send_tcp_where_they_may() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let output = steps(
        folder,
        "run refused hosts.toml || true; \
         cp \"$DIR/hosts.inventory\" \"$DIR/lab.toml\"; run made hosts.toml; gone 1; gone 2",
    );
    assert!(output.status.success(), "{output:?}");
    let refused = cell(folder, "refused", &output);
    let why = "needs hosts with addresses: its inventory needs hosts = true";
    assert!(refused.to_string().contains(why), "{refused}");
    let found = cell(folder, "made", &output);
    assert_eq!(found["state"], "measured", "{found}: {}", read(folder, "made.err"));
    let rows = found["rows"].as_array().expect("rows");
    for metric in ["ping_avg_ms", "tcp_mbps", "udp2_mbps"] {
        let row = rows.iter().find(|row| row["metric"] == metric);
        let row = row.unwrap_or_else(|| panic!("{metric}: {found}"));
        assert!(row["samples"][0].as_f64().is_some_and(|value| value > 0.0), "{row}");
    }
    let tools: BTreeSet<&str> = (found["trials"].as_array().expect("trials").iter())
        .filter_map(|trial| trial["tool"].as_str().filter(|tool| !tool.is_empty()))
        .collect();
    assert_eq!(tools, BTreeSet::from(["iperf 2", "iperf3", "ping"]));
}

#[test]
#[ignore = "needs root"]
fn a_dead_agent_fails_its_cell_and_a_dead_lab_frees_its_agents() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let output = steps(
        folder,
        "start died long.toml & lab=$!; amid_trial died; \
         kill -9 $(cat \"$DIR/agent2.pid\"); wait $lab || echo lab ended with $?; \
         cp \"$DIR/died/trials.jsonl\" \"$DIR/died.jsonl\"; \
         run died long.toml --resume; \
         start killed long.toml & lab=$!; amid_trial killed; \
         kill -9 $lab; gone 1; gone 2; run after one.toml",
    );
    assert!(output.status.success(), "{output:?}");
    let died = results(&folder.join("died.jsonl"));
    let text = died.to_string();
    assert!(text.contains("/agent2): "), "{text}");
    // The next start of the switch has agents of its own.
    let trials = died["scenarios"][0]["cells"][0]["trials"].as_array().expect("trials");
    assert_eq!(trials.iter().filter(|trial| trial["error"].is_null()).count(), 2, "{text}");
    for run in ["died", "after"] {
        let found = cell(folder, run, &output);
        assert_eq!(found["state"], "measured", "{run}: {found}");
    }
}
