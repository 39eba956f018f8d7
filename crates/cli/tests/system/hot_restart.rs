//! A switch with `--state` that is killed, stopped, or left without room: what it has confirmed is
//! there when it starts again.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use client::{Client, ClientError, ClientSettings};
use openflow::flow::{FlowMod, FlowModCommand, FlowStatsRequest};
use openflow::group::{Bucket, GroupMod, GroupModCommand, GroupType};
use openflow::message::{MultipartReplyBody, MultipartRequestBody, PacketOut};
use openflow::{Action, Cookie, Field, GroupId, Instruction, Match, Message, PortNo, Version};
use testkit::Random;

use super::process::{Running, signal, text, until, weir};

/// Flow-mods before each barrier.
const BATCH: u64 = 16;

/// Entries are about so many addresses.
const ADDRESSES: u64 = 64;

/// Frames that have come in at a moment and are not counted yet.
const UNDER_WAY: u64 = 8;

/// Two ports.
type Ports = [&'static str; 2];

const NULL: Ports = ["1=null:a", "2=null:b"];

fn begin(dir: &Path, ports: Ports) -> Running {
    let place = dir.display();
    let mut command = weir(&["switch", "--port", ports[0], "--port", ports[1], "--dpid", "a1"]);
    command.args(["--fail-mode", "secure", "--state", &format!("{place}/state")]);
    command.args(["--control", &format!("{place}/ctl"), "--listen", &format!("punix:{place}/of")]);
    Running::start(&mut command)
}

fn start(dir: &Path) -> Running {
    let switch = begin(dir, NULL);
    switch.says("ready");
    switch
}

fn connect(dir: &Path) -> Result<Client, ClientError> {
    let stream = until("the switch accepts", || UnixStream::connect(dir.join("of")).ok());
    Client::over_unix(stream, "the switch", ClientSettings::of(&[Version::V1_3]))
}

/// The cookies of the entries by address, as a controller sees them, and the packets that the
/// entry of all addresses has counted, and its group.
fn entries(client: &mut Client) -> Result<(Vec<Option<u64>>, [u64; 2]), ClientError> {
    let request = MultipartRequestBody::Flow(FlowStatsRequest::all());
    let MultipartReplyBody::Flow(flows) = client.multipart(request)? else { panic!("no flows") };
    let mut found = vec![None; ADDRESSES as usize];
    for flow in flows.iter().filter(|flow| flow.priority == 9) {
        let address = flow.matching.exact(Field::EthDst).unwrap() as usize;
        assert_eq!(found[address].replace(flow.cookie.0), None);
    }
    let counted = flows.iter().find(|flow| flow.priority == 1);
    let request = MultipartRequestBody::Group(GroupId::ALL);
    let MultipartReplyBody::Group(groups) = client.multipart(request)? else { panic!("no groups") };
    let of_group = groups.first().map_or(0, |group| group.packet_count);
    Ok((found, [counted.map_or(0, |flow| flow.packet_count), of_group]))
}

/// All that comes in at port 1 leaves by port 2, by way of a group.
fn forward(client: &mut Client) -> Result<(), ClientError> {
    let bucket = |port| Bucket {
        bucket_id: None,
        weight: 0,
        watch_port: PortNo::ANY,
        watch_group: GroupId::ANY,
        actions: vec![Action::output(port)],
    };
    let entry = FlowMod {
        priority: 1,
        matching: Match::any().with(Field::InPort, 1),
        instructions: vec![Instruction::ApplyActions(vec![Action::Group(GroupId(1))])],
        ..FlowMod::new(FlowModCommand::Add)
    };
    client.send(&Message::GroupMod(GroupMod {
        command: GroupModCommand::Add,
        group_type: GroupType::Indirect,
        group_id: GroupId(1),
        buckets: vec![bucket(PortNo(2))],
        ..GroupMod::default()
    }))?;
    client.send(&Message::FlowMod(entry))?;
    client.barrier()
}

/// A change of one address, and its entry's cookie afterwards.
fn change(random: &mut Random) -> (Message, usize, Option<u64>) {
    let (address, cookie) = (random.below(ADDRESSES), random.u64() >> 1);
    let is_add = random.percent(60);
    let command = if is_add { FlowModCommand::Add } else { FlowModCommand::DeleteStrict };
    let flow_mod = FlowMod {
        priority: 9,
        cookie: Cookie(if is_add { cookie } else { 0 }),
        matching: Match::any().with(Field::EthDst, address.into()),
        flags: openflow::flow::FlowModFlags::RESET_COUNTS,
        ..FlowMod::new(command)
    };
    (Message::FlowMod(flow_mod), address as usize, is_add.then_some(cookie))
}

/// Entries that the switch has confirmed, and the batch that it has not.
#[derive(Default)]
struct Known {
    confirmed: Vec<Option<u64>>,
    pending: Vec<(usize, Option<u64>)>,
    shown: [u64; 2],
    /// Changes that were confirmed, and packet-outs that were sent.
    changes: u64,
    packet_outs: u64,
}

impl Known {
    /// The entries are those that were confirmed, after some of the batch.
    fn check(&mut self, found: &[Option<u64>]) {
        let mut state = self.confirmed.clone();
        let mut is_same = state == found;
        for (address, cookie) in self.pending.drain(..) {
            state[address] = cookie;
            is_same |= state == found;
        }
        assert!(is_same, "confirmed {:?}, found {found:?}", self.confirmed);
        self.confirmed = found.to_vec();
    }

    /// Asks for entries and counts: they are those that are known, and no count goes back.
    fn look(&mut self, client: &mut Client) -> Result<(), ClientError> {
        let (found, shown) = entries(client)?;
        self.check(&found);
        let before = std::mem::replace(&mut self.shown, shown);
        assert!(
            shown.iter().zip(before).all(|(now, before)| *now >= before),
            "{before:?} {shown:?}"
        );
        Ok(())
    }

    /// Changes entries and looks at counts until the switch is gone.
    fn run(&mut self, client: &mut Client, random: &mut Random) -> Result<(), ClientError> {
        loop {
            let batch: Vec<_> = (0..BATCH).map(|_| change(random)).collect();
            self.pending = batch.iter().map(|(_, address, cookie)| (*address, *cookie)).collect();
            for (message, ..) in &batch {
                client.send(message)?;
            }
            self.packet_outs += 1;
            client.send(&Message::PacketOut(PacketOut {
                buffer_id: None,
                in_port: PortNo(1),
                actions: vec![Action::output(PortNo::TABLE)],
                data: [&[0x02, 0, 0, 0, 0, 1, 0x02, 0, 0, 0, 0, 2, 0x88, 0xb5][..], &[0; 46]]
                    .concat(),
            }))?;
            client.barrier()?;
            for (address, cookie) in self.pending.drain(..) {
                self.confirmed[address] = cookie;
                self.changes += 1;
            }
            if random.percent(20) {
                self.look(client)?;
            }
        }
    }
}

/// Kills switches at random moments: of their start, and of changes by the thousand. No frame that
/// came to the first port is counted twice. Returns the packets that kept tiers have counted.
fn kill_often(dir: &Path, ports: Ports, came: impl Fn() -> u64) -> u64 {
    let rounds = std::env::var("WEIR_RESTART_ROUNDS").ok().map_or(20, |it| it.parse().unwrap());
    let mut random = Random::new(7);
    let confirmed = vec![None; ADDRESSES as usize];
    let mut known = Known { confirmed, ..Known::default() };
    let (mut starting, mut lived, mut taken_over) = (Duration::ZERO, Duration::ZERO, 0);
    for round in 0..rounds {
        if random.percent(25) {
            let mut switch = begin(dir, ports);
            std::thread::sleep(starting * random.below(100) as u32 / 100);
            switch.child.kill().unwrap();
        }
        let from = Instant::now();
        let mut switch = begin(dir, ports);
        // The first that a controller can see is whole: what comes later has come in meanwhile.
        let mut client = connect(dir).unwrap();
        let before = came();
        known.look(&mut client).unwrap();
        let first = known.shown[0];
        switch.says("ready");
        starting = from.elapsed();
        known.look(&mut client).unwrap();
        let later = known.shown[0] - first;
        assert!(later <= came() - before + UNDER_WAY, "{later} packets were counted late");
        if round == 0 {
            forward(&mut client).unwrap();
        }
        let life = Duration::from_micros(random.below(60_000));
        lived += life;
        let is_killed = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(life);
                is_killed.store(true, Ordering::Relaxed);
                switch.child.kill().unwrap();
                switch.child.wait().unwrap();
            });
            let ended = known.run(&mut client, &mut random);
            assert!(is_killed.load(Ordering::Relaxed), "{:?}", ended.unwrap_err());
        });
        assert!(known.shown[0] <= known.packet_outs + came(), "counted twice: {:?}", known.shown);
        let lines = switch.lines();
        let credited = lines.iter().find_map(|line| line.split_once("goes on devices=2 packets="));
        taken_over += credited.map_or(0, |(_, packets)| packets.trim().parse().unwrap());
    }
    assert!(known.shown[0] > 0 || rounds < 10, "no packet was counted");
    let journal = std::fs::metadata(dir.join("state/br0.journal")).unwrap();
    assert!(journal.len() < 4 << 20, "{}", journal.len());
    println!(
        "{rounds} rounds, {:.0} changes/s, {} packet-outs, {} frames came, counted {:?}, of them \
         {taken_over} by kept tiers",
        known.changes as f64 / lived.as_secs_f64(),
        known.packet_outs,
        came(),
        known.shown,
    );
    taken_over
}

#[test]
fn what_a_barrier_has_confirmed_survives_sigkill() {
    let dir = tempfile::tempdir().unwrap();
    kill_often(dir.path(), NULL, || 0);
}

/// The same with frames that the kernel forwards all the while. The test runs itself anew in
/// namespaces with two hosts.
#[test]
#[ignore = "needs root"]
fn what_a_barrier_has_confirmed_survives_with_the_kernel_tier() {
    const NAME: &str = "hot_restart::what_a_barrier_has_confirmed_survives_with_the_kernel_tier";
    const INSIDE: &str = "WEIR_RESTART_INSIDE";
    if std::env::var_os(INSIDE).is_none() {
        let program = std::env::current_exe().unwrap();
        let output_text = super::controller_apps::run_within(
            Duration::from_secs(7_200),
            &format!(
                r#"
                mount -t bpf bpf /sys/fs/bpf
                host a 10.0.1.2/24
                host b 10.0.1.3/24
                ip -n a neigh replace 10.0.1.3 dev eth0 \
                    lladdr "$(ip netns exec b cat /sys/class/net/eth0/address)"
                ip netns exec a ping -q -i 0.002 10.0.1.3 >/dev/null &
                {INSIDE}=1 {} --exact {NAME} --include-ignored --nocapture
                "#,
                program.display()
            ),
        );
        println!("{output_text}");
        return;
    }
    // Frames that came to a port are those that its host has sent.
    let came = || {
        let text = std::fs::read_to_string("/proc/net/dev").unwrap();
        let line = text.lines().find_map(|line| line.trim().strip_prefix("va:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    let dir = Path::new("/run/rounds");
    std::fs::create_dir(dir).unwrap();
    let taken_over = kill_often(dir, ["1=af_packet:va", "2=af_packet:vb"], came);
    assert!(taken_over > 0, "no kept tier has counted anything");
}

#[test]
fn a_stop_keeps_counts_that_nobody_has_seen() {
    let dir = tempfile::tempdir().unwrap();
    let ctl = |words: &[&str]| {
        let output = weir(&["ctl", "--control"]).arg(dir.path().join("ctl")).args(words).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
        text(&output)
    };
    let mut switch = start(dir.path());
    ctl(&["add-meter", "meter=1,pktps,band=type=drop,rate=1000000"]);
    ctl(&["add-group", "group_id=1,type=all,bucket=actions=output:2"]);
    ctl(&["add-flow", "cookie=0x77,idle_timeout=600,actions=meter:1,group:1"]);
    for _ in 0..3 {
        ctl(&["packet-out", "in_port=1,packet=02000000000102000000000288b50000,actions=TABLE"]);
    }
    signal(&switch.child, "TERM");
    assert_eq!(switch.child.wait().unwrap().code(), Some(0));
    let switch = start(dir.path());
    switch.says("restored bridge=\"br0\" entries=1 groups=1 meters=1");
    let flows = ctl(&["dump-flows"]);
    assert!(flows.contains("cookie=0x77") && flows.contains("n_packets=3"), "{flows}");
    let (groups, meters) = (ctl(&["dump-group-stats"]), ctl(&["meter-stats"]));
    assert!(groups.contains("packet_count=3,"), "{groups}");
    assert!(meters.contains("packet_in_count:3 "), "{meters}");
}

#[test]
fn a_folder_that_cannot_hold_the_state_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    for path in [file.as_path(), Path::new("/proc/weir")] {
        let output = weir(&["switch", "--control", "none", "--state"]).arg(path).output().unwrap();
        let text = text(&output);
        assert_eq!(output.status.code(), Some(1), "{text}");
        let begin = format!("{}: the state cannot be kept here: ", path.display());
        assert!(text.contains(&begin) && text.contains("give --state a folder"), "{text}");
    }
    let first = start(dir.path());
    let state = dir.path().join("state");
    let output = weir(&["switch", "--control", "none", "--state"]).arg(state).output().unwrap();
    assert!(text(&output).contains("another switch keeps its state here"), "{output:?}");
    drop(first);
}

#[test]
#[ignore = "needs root"]
fn without_room_for_the_state_a_switch_goes_on() {
    super::controller_apps::run(
        r#"
        mkdir /run/state
        mount -t tmpfs -o size=256k tmpfs /run/state
        ctl() { weir ctl --control /run/a "$@"; }
        begin() {
            weir switch --port 1=null:a --dpid a1 --state /run/state --control /run/a \
                2>/run/log & switch=$!
            within 30 grep -q ready /run/log
        }
        begin
        ctl add-flow priority=5,actions=drop
        for n in $(seq 4000); do echo "priority=4,in_port=$n,actions=drop"; done >/run/flows
        ctl add-flows /run/flows
        within 30 grep "the state is not kept: a restart now would begin without flow" /run/log
        [ "$(ctl dump-aggregate | grep -o 'flow_count=[0-9]*')" = flow_count=4001 ]
        ctl counters | grep -E 'state_error +[1-9]'
        # It is kept again as soon as there is room.
        ctl del-flows in_port=1
        mount -o remount,size=64m /run/state
        within 60 grep "the state is kept again" /run/log
        kill -KILL $switch
        wait $switch || true
        begin
        [ "$(ctl dump-aggregate | grep -o 'flow_count=[0-9]*')" = flow_count=4000 ]
        # Without room at the start it goes on, too, and the file of before stays for the while.
        kill $switch
        wait $switch || true
        room=$(($(stat -c %s /run/state/br0.journal) + 65536))
        mount -o remount,size=$room /run/state
        begin
        [ "$(ctl dump-aggregate | grep -o 'flow_count=[0-9]*')" = flow_count=4000 ]
        grep 'no room for the state: that of the start is kept here' /run/log
        [ "$(ls /run/state)" = br0.journal.kept ]
        mount -o remount,size=64m /run/state
        within 60 grep "the state is kept again" /run/log
        [ "$(ls /run/state)" = br0.journal ]
        # Read-only it is an error at the start.
        kill $switch
        wait $switch || true
        mount -o remount,ro /run/state
        if weir switch --port 1=null:a --state /run/state --control /run/a 2>/run/refused; then
            exit 1
        fi
        grep "/run/state/br0.journal: the state cannot be kept here: Read-only" /run/refused
        "#,
    );
}

#[test]
#[ignore = "needs root"]
fn a_learning_switch_with_state_goes_on_as_one() {
    super::controller_apps::run(
        r#"
        host a 10.0.1.2/24
        host b 10.0.1.3/24
        begin() {
            weir switch --dpid a1 --port 1=af_packet:va --port 2=af_packet:vb --state /run/state \
                --fail-mode standalone --control /run/a 2>/run/log & switch=$!
            within 30 grep -q ready /run/log
        }
        begin
        within 60 ip netns exec a ping -c 1 -W 1 10.0.1.3
        counted() { weir ctl --control /run/a dump-flows | grep -o 'n_packets=[0-9]*'; }
        before=$(counted)
        kill -KILL $switch
        wait $switch || true
        begin
        ip netns exec a ping -c 3 -W 10 10.0.1.3
        after=$(counted)
        [ "${after#*=}" -ge "${before#*=}" ]
        [ "$(weir ctl --control /run/a dump-flows | grep -c actions=)" = 1 ]
        "#,
    );
}

/// Two hosts whose frames take the kernel tier, and words for them. No frame but a ping is counted.
const KEPT: &str = r#"
mount -t bpf bpf /sys/fs/bpf
pins=/sys/fs/bpf/weir/%2frun%2fstate
host a 10.0.1.2/24
host b 10.0.1.3/24
# IPv6 sends by itself, and decisions about its frames would be taken for those about pings.
for of in a b; do ip netns exec $of sysctl -qw net.ipv6.conf.all.disable_ipv6=1; done
address() { ip netns exec "$1" cat /sys/class/net/eth0/address; }
know() {
    ip -n a neigh replace 10.0.1.3 lladdr "$(address b)" dev eth0
    ip -n b neigh replace 10.0.1.2 lladdr "$(address a)" dev eth0
}
know
ctl() { weir ctl --control /run/a "$@"; }
begin() { # ports
    : >/run/log
    $command "$@" 2>/run/log & switch=$!
    within 30 grep -q ready /run/log
    cat /run/log
}
command="weir switch --dpid a1 --state /run/state --fail-mode secure --control /run/a"
both="--port 1=af_packet:va --port 2=af_packet:vb"
is_in_kernel() { ctl caches | grep -q "kernel: 2 decisions"; }
in_kernel() { is_in_kernel || { reach; is_in_kernel; }; }
reach() { ip netns exec a ping -q -c 3 -i 0.05 -W 5 10.0.1.3 >/dev/null; }
count() { ctl dump-flows in_port=1 | grep -o 'n_packets=[0-9]*' | cut -d= -f2; }
back() { ctl dump-flows in_port=2 | grep -o 'n_packets=[0-9]*' | cut -d= -f2; }
group() { ctl dump-group-stats | grep -o 'packet_count=[0-9]*' | head -n 1 | cut -d= -f2; }
sent() { ip -n a -s link show eth0 | awk '/TX:/ { getline; print $2 }'; }
counts_more_than() { [ "$(sent)" -gt "$1" ]; }
fails() { if "$@"; then return 1; fi; }
ends() { kill "-$1" $switch; wait $switch || true; }
begin $both
ctl add-group group_id=1,type=all,bucket=actions=output:2
ctl add-flow ip,in_port=1,actions=group:1
ctl add-flow ip,in_port=2,actions=output:1
within 30 in_kernel
"#;

#[test]
#[ignore = "needs root"]
fn the_kernel_tier_forwards_while_no_process_is_there() {
    super::controller_apps::run(&format!(
        r#"{KEPT}
        for signal in KILL USR2; do
            echo "$signal: $(count) packets, $(group) of the group"
            before=$(count) before_group=$(group)
            ip netns exec a ping -q -i 0.002 -c 1500 -W 60 10.0.1.3 >/run/ping & ping=$!
            within 60 counts_more_than $(($(sent) + 200))
            shown=$(count)
            ends $signal
            within 60 counts_more_than $(($(sent) + 200))
            begin $both
            grep "the kernel tier goes on devices=2" /run/log
            now=$(count)
            [ $now -ge $((shown + 200)) ]
            wait $ping
            cat /run/ping
            grep "1500 received" /run/ping
            echo "$(count) packets, $(group) of the group"
            [ "$(count)" -ge "$now" ]
            [ "$(ls $pins | wc -l)" = 1 ]
            within 30 in_kernel
        done
        # A stop that was asked for loses no count.
        [ "$(count)" -ge $((before + 1500)) ]
        [ "$(group)" -ge $((before_group + 1500)) ]
        "#
    ));
}

#[test]
#[ignore = "needs root"]
fn a_switch_that_is_stopped_leaves_nothing_pinned() {
    super::controller_apps::run(&format!(
        r#"{KEPT}
        ls $pins
        ends TERM
        [ ! -e /sys/fs/bpf/weir ]
        fails ip netns exec a ping -q -c 2 -i 0.1 -W 1 10.0.1.3
        # Nor does one that does not start, which leaves what there was.
        begin $both
        within 30 in_kernel
        ends KILL
        ls $pins >/run/before
        fails $command $both --port 3=af_packet:none
        fails $command $both --listen ptcp:1:192.0.2.1
        ls $pins | diff /run/before -
        reach
        # Without a BPF file system it ends with the process.
        begin $both
        ends TERM
        umount /sys/fs/bpf
        begin $both
        grep "the kernel tier is not kept.*mount -t bpf bpf /sys/fs/bpf" /run/log
        within 30 in_kernel
        ends KILL
        fails ip netns exec a ping -q -c 2 -i 0.1 -W 1 10.0.1.3
        "#
    ));
}

/// A failed start has written the journal with other numbers of the entries.
#[test]
#[ignore = "needs root"]
fn kept_counts_find_their_entries_after_a_failed_start() {
    super::controller_apps::run(&format!(
        r#"{KEPT}
        # The numbers have a hole, and another order than the adds.
        ctl del-flows in_port=1
        ctl add-flow priority=9,in_port=9,actions=drop
        ctl add-flow ip,in_port=1,actions=group:1
        ctl del-flows in_port=9
        within 30 in_kernel
        there=$(count) back=$(back)
        ends KILL
        ip netns exec a ping -q -i 0.002 -c 300 -W 60 10.0.1.3 >/dev/null
        fails $command $both --listen ptcp:1:192.0.2.1
        begin $both
        [ "$(count)" -ge $((there + 300)) ]
        [ "$(back)" -ge $((back + 300)) ]
        "#
    ));
}

/// For half of an idle timeout the kernel uses an entry by itself. At the start another bridge has
/// much to do, before which nothing may expire.
#[test]
#[ignore = "needs root"]
fn an_entry_that_only_the_kept_tier_has_used_is_not_idle() {
    super::controller_apps::run(&format!(
        r#"{KEPT}
        ends TERM
        cat >/run/two.toml <<'END'
[[bridge]]
name = "br0"
dpid = "a1"
port = ["1=af_packet:va", "2=af_packet:vb"]
[[bridge]]
name = "br1"
dpid = "a2"
port = ["null:a"]
END
        command="weir switch --config /run/two.toml --state /run/state --control /run/a"
        ctl() {{ weir ctl --control /run/a --bridge "${{bridge:-br0}}" "$@"; }}
        begin
        printf 'dl_dst=02:00:00:00:%02x:%02x,actions=drop\n' \
            $(for of in $(seq 10000); do echo $((of / 256)) $((of % 256)); done) >/run/flows
        bridge=br1 ctl add-flows /run/flows
        used() {{ ctl dump-flows in_port=1 | sed -n 's/.*=0x77,.*n_packets=\([0-9]*\).*/\1/p'; }}
        ip netns exec a ping -q -i 0.01 -w 60 10.0.1.3 >/dev/null & ping=$!
        ctl add-flow cookie=0x88,idle_timeout=20,dl_type=0x88b5,in_port=1,actions=drop
        ctl add-flow cookie=0x77,idle_timeout=20,priority=40000,ip,in_port=1,actions=output:2
        within 30 in_kernel
        before=$(used)
        ends KILL
        # The kernel uses it for ten seconds, and twenty after that it is idle.
        sleep 21
        begin
        grep "the kernel tier goes on devices=2" /run/log
        [ "$(used)" -ge $((before + 100)) ]
        # One that nobody has used is over.
        ctl dump-flows >/run/flows
        fails grep cookie=0x88 /run/flows
        kill $ping
        "#
    ));
}

#[test]
#[ignore = "needs root"]
fn kept_tiers_of_others_are_left_alone() {
    super::controller_apps::run(&format!(
        r#"{KEPT}
        # Another switch whose folder has the same path, in another mount namespace.
        cat >/run/other.sh <<'END'
mount -t tmpfs none /run/state
exec weir switch --dpid a2 --port 1=null:a --state /run/state --control /run/b
END
        ls -R $pins >/run/before
        unshare --mount sh /run/other.sh 2>/run/log.other & other=$!
        within 30 grep ready /run/log.other
        grep "another switch keeps its kernel tier there" /run/log.other
        kill $other
        wait $other || true
        ls -R $pins | diff /run/before -
        ends TERM
        # A folder that somebody else has made, to have files removed.
        mkdir /run/others /sys/fs/bpf/weir
        : >/run/others/file
        mkdir $pins
        ln -s /run/others $pins/v0-1
        chown -R nobody /sys/fs/bpf/weir
        begin $both
        grep "another user may write to it" /run/log
        within 30 in_kernel
        [ -e /run/others/file ]
        "#
    ));
}

/// A stop that comes in the course of the start, when the earlier process was killed.
#[test]
#[ignore = "needs root"]
fn a_stop_during_the_start_ends_the_kept_tier() {
    super::controller_apps::run(&format!(
        r#"{KEPT}
        printf 'dl_dst=02:00:00:00:%02x:%02x,actions=drop\n' \
            $(for of in $(seq 20000); do echo $((of / 256)) $((of % 256)); done) >/run/flows
        ctl add-flows /run/flows
        ends KILL
        : >/run/log
        $command $both 2>/run/log & switch=$!
        until grep -qs restored /run/log; do :; done
        kill $switch
        wait $switch
        [ ! -e /sys/fs/bpf/weir ]
        [ ! -e /run/a ]
        "#
    ));
}

#[test]
#[ignore = "needs root"]
fn a_kept_tier_that_no_longer_fits_ends() {
    super::controller_apps::run(&format!(
        r#"{KEPT}
        links() {{ ls $pins/v* | grep -c link- || true; }}
        # A port that is gone: nothing comes out of its device, nor goes in.
        ends KILL
        begin --port 1=af_packet:va
        grep "the kernel tier goes on devices=1" /run/log
        [ "$(links)" = 1 ]
        fails ip netns exec b ping -q -c 2 -i 0.1 -W 1 10.0.1.2
        ends KILL
        begin $both
        grep "the kernel tier goes on devices=1" /run/log
        within 30 in_kernel
        # A device that is gone, and another one of its name.
        ends KILL
        ip link del va
        ip link add va type veth peer name eth0 netns a
        ip -n a addr add 10.0.1.2/24 dev eth0
        ip -n a link set eth0 up
        ip link set va up
        know
        begin $both
        [ "$(links)" = 2 ]
        within 30 in_kernel
        # Another version of Weir.
        ends KILL
        mv $pins/v* $pins/v0-1
        begin $both
        grep "a kernel tier of another version ends" /run/log
        [ ! -e $pins/v0-1 ]
        [ "$(links)" = 2 ]
        within 30 in_kernel
        "#
    ));
}
