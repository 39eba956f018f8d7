//! Ready apps as programs: `weir controller` and `weir switch` between hosts whose kernels ask and
//! answer.
//!
//! Each test runs in network, mount and process namespaces of its own, so that names, ports and
//! sockets meet nobody else's; all of it goes with the test.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// Hosts host0, host1, ... behind veth0, veth1, ..., with the addresses of `$1`, `$2`, ...; words
/// for the scripts.
const WORDS: &str = r#"
set -eu
mount -t tmpfs none /run
mount -t proc none /proc
ip link set lo up
host() { # name, address
    ip netns add "$1"
    ip link add "v$1" type veth peer name eth0 netns "$1"
    ip -n "$1" addr add "$2" dev eth0
    ip -n "$1" link set lo up
    ip -n "$1" link set eth0 up
    ip link set "v$1" up
}
cable() { # one end, other end
    ip link add "$1" type veth peer name "$2"
    ip link set "$1" up
    ip link set "$2" up
}
within() { # seconds, command: until it succeeds
    end=$((SECONDS + $1)); shift
    until "$@"; do [ $SECONDS -lt $end ] || { echo "in vain: $*"; return 1; }; sleep 0.2; done
}
"#;

pub(crate) fn run(script: &str) -> String {
    run_within(Duration::from_secs(180), script)
}

/// [`run`], for what takes longer.
pub(crate) fn run_within(limit: Duration, script: &str) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_weir")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let Output { status, stdout, stderr } = Command::new("timeout")
        .args([
            &limit.as_secs().to_string(),
            "unshare",
            "--net",
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
        ])
        .args(["bash", "-c", &format!("{WORDS}{script}")])
        .env("PATH", path)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let output_text = String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned();
    assert!(status.success(), "{status}: {output_text}");
    output_text
}

#[test]
#[ignore = "needs root"]
fn kernels_talk_through_the_router() {
    for version in ["OpenFlow10", "OpenFlow13"] {
        let output_text = run(&format!(
            r#"
            host a 10.0.1.2/24
            host b 10.0.2.2/24
            ip -n a route add default via 10.0.1.1
            ip -n b route add default via 10.0.2.1
            cat > /run/router.toml <<'END'
[[router.interface]]
switch = "a1"
port = 1
address = "10.0.1.1/24"
[[router.interface]]
switch = "a1"
port = 2
address = "10.0.2.1/24"
END
            weir controller router --app-config /run/router.toml --listen tcp:127.0.0.1:6653 \
                --protocols {version} &
            weir switch --dpid a1 --port 1=af_packet:va --port 2=af_packet:vb --fail-mode secure \
                --controller tcp:127.0.0.1:6653 --max-backoff 1 &
            within 60 ip netns exec a ping -c 1 -W 1 10.0.1.1
            within 60 ip netns exec a ping -c 1 -W 1 10.0.2.2
            ip netns exec b ping -c 3 -i 0.2 -W 30 10.0.1.2
            ! ip netns exec a ping -c 1 -t 1 -W 5 10.0.2.2 > /run/ttl; cat /run/ttl
            ! ip netns exec a ping -c 1 -W 5 172.16.0.1 > /run/lost; cat /run/lost
            ! ip netns exec a ping -c 1 -W 20 10.0.2.77 > /run/nobody; cat /run/nobody
            weir ctl dump-flows
            "#
        ));
        assert!(output_text.contains("Time to live exceeded"), "{output_text}");
        assert!(output_text.contains("Destination Net Unreachable"), "{output_text}");
        assert!(output_text.contains("Destination Host Unreachable"), "{output_text}");
        let has_hops = output_text.contains("dec_ttl");
        assert_eq!(has_hops, version == "OpenFlow13", "{output_text}");
    }
}

#[test]
#[ignore = "needs root"]
fn switches_in_a_ring_carry_hosts_and_survive_a_cut() {
    let output_text = run(r#"
        host a 10.0.0.1/24
        host b 10.0.0.2/24
        cable r12 r21; cable r23 r32; cable r31 r13
        weir controller shortest-path,flow-exporter --listen tcp:127.0.0.1:6653 --shards 2 \
            --rest 127.0.0.1:8080 &
        controller=$!
        switch() { # number, ports
            n=$1; shift
            weir switch --dpid $n "$@" --fail-mode secure --control /run/s$n \
                --controller tcp:127.0.0.1:6653 --max-backoff 1 &
        }
        switch 1 --port 1=af_packet:r12 --port 2=af_packet:r13 --port 3=af_packet:va
        switch 2 --port 1=af_packet:r21 --port 2=af_packet:r23 --port 3=af_packet:vb
        switch 3 --port 1=af_packet:r32 --port 2=af_packet:r31
        within 60 ip netns exec a ping -c 1 -W 1 10.0.0.2
        ip netns exec a ping -c 5 -i 0.2 -W 30 10.0.0.2
        ip link set r12 down
        within 60 ip netns exec a ping -c 1 -W 1 10.0.0.2
        within 60 ip netns exec b ping -c 5 -i 0.2 -W 5 10.0.0.1
        within 60 sh -c 'weir ctl --control /run/s3 dump-flows | grep -q dl_dst='
        says() { # port, path, words of the answer
            exec 3<>/dev/tcp/127.0.0.1/$1
            printf "GET $2 HTTP/1.1\r\nhost: 127.0.0.1:$1\r\nconnection: close\r\n\r\n" >&3
            cat <&3 > /run/answer
            grep -q "$3" /run/answer
        }
        within 60 says 9302 /metrics 'openflow_flow_packets_total{dpid="0000000000000003"'
        within 60 says 8080 /v1.0/topology/hosts 10.0.0.2
        within 60 says 8080 /v1.0/topology/links/0000000000000003 '"port_no":"00000002"'
        kill -INT $controller
        wait $controller
        echo "the controller ended well"
    "#);
    assert!(output_text.contains("the controller ended well"), "{output_text}");
}
