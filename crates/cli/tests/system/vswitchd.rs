//! `weir vswitchd` under Open vSwitch's own clients: a private `ovsdb-server`, `ovs-vsctl`,
//! `ovs-ofctl` and `ovs-appctl`, as scripts use them.
//!
//! Each test runs in namespaces of its own, with the database and all sockets below `/run` there.

use crate::controller_apps::run;

/// Words for the scripts: a database server, and the daemon by the name that scripts know.
const WORDS: &str = r#"
export PATH="$PATH:/usr/sbin:/sbin"
export OVS_RUNDIR=/run OVS_LOGDIR=/run OVS_DBDIR=/run OVS_SYSCONFDIR=/run
command -v ovsdb-server >/dev/null || {
    echo "needs openvswitch-switch: cargo xtask test as root installs it"
    exit 1
}
ln -s "$(command -v weir)" /run/ovs-vswitchd
server() {
    ovsdb-server /run/conf.db --remote=punix:/run/db.sock --pidfile --detach --no-chdir \
        -vconsole:off
}
begin() {
    ovsdb-tool create /run/conf.db /usr/share/openvswitch/vswitch.ovsschema
    server
    ovs-vsctl --no-wait init
    /run/ovs-vswitchd unix:/run/db.sock --pidfile --detach --log-file -vconsole:off "$@"
}
in_tier() {
    weir ctl --control /run/weir.sock --bridge br0 workers |
        grep -q "=af_packet:$1, after the kernel tier"
}
not() { if "$@"; then echo "$* succeeds"; return 1; fi; }
vsctl() { ovs-vsctl --timeout=30 "$@"; }
get() { vsctl get "$@"; }
is() { # what is to be printed, command
    local wanted="$1"; shift
    local found; found=$("$@" 2>&1) || true
    [ "$found" = "$wanted" ] || { echo "$* prints $found, not $wanted"; return 1; }
}
"#;

fn daemon(script: &str) -> String {
    run(&format!("{WORDS}{script}"))
}

#[test]
#[ignore = "needs root"]
fn ovs_vsctl_configures_the_daemon() {
    daemon(
        r#"
        host a 10.0.0.1/24
        host b 10.0.0.2/24
        begin
        ovs-vsctl --timeout=30 add-br br0 -- set-fail-mode br0 secure \
            -- set bridge br0 other_config:datapath-id=00000000000000a1
        ovs-vsctl --timeout=30 add-port br0 va -- set Interface va ofport_request=5
        ovs-vsctl --timeout=30 add-port br0 vb tag=7
        is '"00000000000000a1"' get bridge br0 datapath_id
        is 5 get Interface va ofport
        is 1 get Interface vb ofport
        is 65534 get Interface br0 ofport
        is up get Interface va link_state
        is "$(ip -o link show va | cut -d: -f1)" get Interface va ifindex
        is br0 ovs-appctl ofproto/list
        # Secure: nothing is forwarded without an entry.
        not ip netns exec a ping -c 1 -W 1 10.0.0.2
        ovs-ofctl add-flow br0 in_port=5,actions=output:1
        ovs-ofctl -O OpenFlow13 add-flow br0 in_port=1,actions=output:5
        ovs-ofctl dump-flows br0 | grep -q 'in_port=5 actions=output:1'
        ovs-appctl bridge/dump-flows br0 | grep -q 'in_port=1'
        within 30 ip netns exec a ping -c 1 -W 1 10.0.0.2
        within 30 sh -c 'ovs-vsctl get Interface va statistics:rx_packets | grep -qv "^0$"'
        ovs-appctl dpif/show | grep -q 'va 5/'
        # A device that is missing is an error that names it, and a port as soon as it comes.
        ovs-vsctl --timeout=30 add-port br0 later 2>&1 | tee /run/missing || true
        grep -q "Error detected while setting up 'later'" /run/missing
        grep -q "could not open network device later (No such device)" /run/missing
        is -1 get Interface later ofport
        cable later other
        within 30 is 2 get Interface later ofport
        is '[]' get Interface later error
        # One that goes has no number until it is back, and the same one then.
        ip link del later
        within 30 is -1 get Interface later ofport
        ovs-vsctl get Interface later error | grep -q 'device later (No such device)'
        cable later other
        within 30 is 2 get Interface later ofport
        # The host's own port is down until somebody sets it up.
        is down get Interface br0 admin_state
        ip link set br0 up
        within 30 is up get Interface br0 link_state
        # A port in VLANs, another number, another fail mode, all while it runs.
        ovs-vsctl --timeout=30 set Interface va ofport_request=9
        is 9 get Interface va ofport
        ovs-vsctl --timeout=30 set-fail-mode br0 standalone -- clear port vb tag
        within 30 ip netns exec b ping -c 1 -W 1 10.0.0.1
        ovs-appctl fdb/show br0 | grep -q '  9     0  '
        ovs-vsctl --timeout=30 del-port br0 later
        ovs-vsctl --timeout=30 del-br br0
        is '' ovs-appctl ofproto/list
        not ip link show br0 2>/dev/null
        "#,
    );
}

#[test]
#[ignore = "needs root"]
fn bridges_are_joined_and_mirrored_by_ovs_vsctl() {
    daemon(
        r#"
        host a 10.0.0.1/24
        host b 10.0.0.2/24
        host c 10.0.0.3/24
        begin
        vsctl add-br br0 -- add-port br0 va -- add-port br0 vc
        vsctl add-br br1 -- add-port br1 vb
        not ip netns exec a ping -c 1 -W 1 10.0.0.2
        vsctl add-port br0 p0 -- set Interface p0 type=patch options:peer=p1 \
            -- add-port br1 p1 -- set Interface p1 type=patch options:peer=p0
        within 30 ip netns exec a ping -c 1 -W 1 10.0.0.2
        within 30 is up get Interface p0 link_state
        # What enters by va is copied to vc, which takes nothing else.
        vsctl -- --id=@a get Port va -- --id=@c get Port vc \
            -- --id=@m create Mirror name=m select_src_port=@a output_port=@c \
            -- set Bridge br0 mirrors=@m
        counted() { ip netns exec c awk '/eth0:/ { print $3 }' /proc/net/dev; }
        copies() { ip netns exec a ping -c 1 -W 1 10.0.0.2 >/dev/null; [ "$(counted)" -gt 20 ]; }
        within 30 copies
        vsctl set Port va protected=true -- set Port p0 protected=true
        not ip netns exec a ping -c 1 -W 1 10.0.0.2
        vsctl set Port p0 protected=false
        within 30 ip netns exec a ping -c 1 -W 1 10.0.0.2
        vsctl set Interface va ingress_policing_rate=1 ingress_policing_burst=1
        lossless() {
            ip netns exec a ping -c 30 -i 0.02 -W 1 -s 1000 10.0.0.2 | grep -q ' 0% packet loss'
        }
        not lossless
        vsctl set Interface va ingress_policing_rate=0 -- clear Bridge br0 mirrors
        within 30 ip netns exec a ping -c 1 -W 1 10.0.0.2
        vsctl del-br br1
        within 30 is down get Interface p0 link_state
        "#,
    );
}

#[test]
#[ignore = "needs root"]
fn dummies_take_packets_and_time_is_put_forward() {
    daemon(
        r#"
        begin --enable-dummy
        ovs-vsctl --timeout=30 add-br br0 -- set-fail-mode br0 secure \
            -- set bridge br0 datapath-type=dummy other_config:hwaddr=aa:55:aa:55:00:00 \
            -- add-port br0 p1 -- set Interface p1 type=dummy ofport_request=1 \
            -- add-port br0 p2 -- set Interface p2 type=dummy options:tx_pcap=/run/p2.pcap
        is '"aa:55:aa:55:00:00"' get Interface br0 mac_in_use
        not ip link show br0 2>/dev/null
        ovs-ofctl add-flow br0 idle_timeout=60,in_port=1,actions=output:2
        icmp='in_port(1),eth(src=50:54:00:00:00:09,dst=50:54:00:00:00:0a),eth_type(0x0800)'
        icmp="$icmp,ipv4(src=10.0.0.1,dst=10.0.0.2,proto=1,tos=0,ttl=128,frag=no)"
        ovs-appctl netdev-dummy/receive p1 "$icmp,icmp(type=8,code=0)"
        ovs-appctl netdev-dummy/receive p1 ffffffffffff50540000000908004500
        ovs-ofctl dump-flows br0 | grep -q 'n_packets=2, n_bytes=122'
        ovs-pcap /run/p2.pcap | tail -1 | grep -qx ffffffffffff50540000000908004500
        # The checksum is the one that Open vSwitch gives this packet.
        ovs-pcap /run/p2.pcap | head -1 | grep -q '8001269f0a0000010a000002080013fc'
        ovs-appctl netdev-dummy/receive p9 00 2>&1 | grep -q 'no such dummy netdev'
        ovs-appctl netdev-dummy/receive p1 odd 2>&1 | grep -q 'syntax error at odd'
        is OK ovs-appctl netdev-dummy/set-admin-state p1 down
        within 30 is down get Interface p1 admin_state
        ovs-ofctl show br0 | grep -A2 '1(p1)' | grep -q 'PORT_DOWN'
        ovs-appctl time/stop
        is warped ovs-appctl time/warp 50000 1000
        ovs-ofctl dump-flows br0 | grep -q 'in_port=1'
        is warped ovs-appctl time/warp 10000
        not sh -c 'ovs-ofctl dump-flows br0 | grep in_port'
        ovs-appctl time/warp x 2>&1 | grep -q 'invalid MSECS'
        "#,
    );
}

#[test]
#[ignore = "needs root"]
fn addresses_age_as_the_bridge_says() {
    daemon(
        r#"
        begin --enable-dummy
        vsctl add-br br0 -- set bridge br0 datapath-type=dummy other_config:mac-aging-time=20 \
            -- add-port br0 p1 -- set Interface p1 type=dummy
        receive() { ovs-appctl netdev-dummy/receive p1 ffffffffffff50540000000908004500; }
        is_known() { ovs-appctl fdb/show br0 | grep -q 50:54:00:00:00:09; }
        learn() { receive; is_known; }
        within 30 learn
        ovs-appctl time/stop
        learn
        ovs-appctl time/warp 19000
        is_known
        ovs-appctl time/warp 2000
        not is_known
        learn
        # Another time holds for what is known too.
        vsctl set bridge br0 other_config:mac-aging-time=100
        ovs-appctl time/warp 90000
        is_known
        vsctl set bridge br0 other_config:mac-aging-time=60
        not is_known
        "#,
    );
}

#[test]
#[ignore = "needs root"]
fn numbers_and_statistics_are_those_of_the_ports() {
    daemon(
        r#"
        host a 10.0.0.1/24
        host b 10.0.0.2/24
        cable c0 c1
        begin
        vsctl add-br br0 -- add-port br0 va -- set Interface va ofport_request=1 \
            -- add-port br0 vb -- set Interface vb ofport_request=2 \
            -- add-port br0 c0 -- set Interface c0 ofport_request=3
        # Before the first five seconds are over.
        within 4 ovs-vsctl get Interface va statistics:rx_bytes
        within 30 ip netns exec a ping -c 1 -W 1 10.0.0.2
        # The command does not wait for the kernel tier.
        within 30 in_tier va
        within 30 in_tier vb
        ip netns exec a ping -c 1 -W 1 10.0.0.2
        # In the form that tools read.
        counted() {
            ovs-appctl dpctl/show -s | grep -A4 ': va (system)$' > /run/va
            grep -qE '^    RX bytes:[1-9][0-9.KiB ()]*  TX bytes:[1-9]' /run/va
        }
        within 30 counted
        grep -qE '^    RX packets:[1-9][0-9]* errors:0 dropped:0 overruns:[0?] frame:[0?]$' /run/va
        not sh -c 'ovs-appctl dpctl/show | grep packets'
        ovs-appctl upcall/show > /run/upcalls
        flows='\(current [0-9]+\) \(avg [0-9]+\) \(max [0-9]+\) \(limit [0-9]+\)'
        grep -qE "^  flows         : $flows\$" /run/upcalls
        grep -qE '^  0: \(keys [0-9]+\)$' /run/upcalls
        # A port without a device keeps its number, and so does the one that wanted it.
        ip link del c0
        within 30 is -1 get Interface c0 ofport
        vsctl set Interface c0 ofport_request=4 -- set Interface va ofport_request=3
        is 1 get Interface va ofport
        is '[]' get Interface va error
        within 30 ip netns exec a ping -c 1 -W 1 10.0.0.2
        # A full table gives up what expires first, while it is to.
        vsctl -- set bridge br0 flow_tables:0=@f \
            -- --id=@f create flow_table flow_limit=1 overflow_policy=evict
        ovs-ofctl del-flows br0
        ovs-ofctl add-flow br0 hard_timeout=1000,in_port=1,actions=drop
        ovs-ofctl add-flow br0 in_port=2,actions=drop
        ovs-ofctl dump-flows br0 > /run/flows
        grep -q in_port=2 /run/flows
        not grep in_port=1 /run/flows
        ovs-ofctl del-flows br0
        ovs-ofctl add-flow br0 hard_timeout=1000,in_port=1,actions=drop
        vsctl set flow_table "$(ovs-vsctl --bare --columns=_uuid list flow_table)" \
            overflow_policy=refuse
        ovs-ofctl add-flow br0 in_port=2,actions=drop 2>&1 | grep -q OFPFMFC_TABLE_FULL
        "#,
    );
}

/// The kernel tier is on its way to the ports when they change.
#[test]
#[ignore = "needs root"]
fn ports_may_change_before_they_are_in_the_kernel_tier() {
    daemon(
        r#"
        host a 10.0.0.1/24
        host b 10.0.0.2/24
        begin
        # What goes straight to the far end does not pass the device.
        sent() { awk '/ vb:/ { print $11 }' /proc/net/dev; }
        straight() {
            local before; before=$(sent)
            ip netns exec a ping -q -c 5 -i 0.01 -W 1 10.0.0.2 >/dev/null
            [ "$(sent)" = "$before" ]
        }
        # A port enters a tenth of a second after its command, which takes some hundredths.
        for pause in 0 0.07 0.09 0.11 0.15; do
            vsctl add-br br0
            vsctl add-port br0 va
            sleep $pause
            vsctl del-port br0 va
            # Nothing comes to the device afterwards.
            not sh -c 'ip -o link | grep weir-tier'
            sleep 0.2
            not sh -c 'ip -o link | grep weir-tier'
            vsctl add-port br0 vb -- add-port br0 va
            sleep $pause
            vsctl set Interface va ofport_request=7
            is 7 get Interface va ofport
            within 30 ip netns exec a ping -c 1 -W 1 10.0.0.2
            within 30 in_tier va
            within 30 in_tier vb
            ip netns exec a ping -c 1 -W 1 10.0.0.2
            within 30 straight
            vsctl del-br br0
            not sh -c 'ip -o link | grep weir-tier'
        done
        # The host's device stays outside, and a patch port alone is not worth a tier.
        ip addr add 10.1.0.1/24 dev va
        vsctl add-br br1 -- add-br br0 -- add-port br0 va \
            -- add-port br0 p0 -- set Interface p0 type=patch options:peer=p1 \
            -- add-port br1 p1 -- set Interface p1 type=patch options:peer=p0
        is_left() {
            weir ctl --control /run/weir.sock --bridge br0 ports |
                grep -q 'no kernel tier: the host has'
        }
        within 30 is_left
        vsctl add-br br2
        not sh -c 'ip -o link | grep weir-tier'
        "#,
    );
}

#[test]
#[ignore = "needs root"]
fn rates_queues_tables_and_addresses_are_those_of_ovs() {
    daemon(
        r#"
        host a 10.0.0.1/24
        host b 10.0.0.2/24
        begin
        vsctl add-br br0 -- add-port br0 va -- add-port br0 vb
        is 'QoS not configured on vb' ovs-appctl qos/show vb
        vsctl -- set port vb qos=@q -- --id=@q create qos type=linux-htb \
            other-config:max-rate=10000000 queues=0=@a,5=@b \
            -- --id=@a create queue other-config:min-rate=1000000 \
            -- --id=@b create queue other-config:max-rate=500000 other-config:burst=9
        ovs-appctl qos/show vb | grep -qx 'QoS: vb linux-htb'
        ovs-appctl qos/show vb | grep -A2 '^Queue 5:' | grep -qx '  max-rate: 500000'
        counted() { ovs-ofctl queue-stats br0 vb 0 | grep -q 'queue 0: bytes=[1-9]'; }
        within 30 ip netns exec a ping -c 1 -W 1 10.0.0.2
        within 30 counted
        weir ctl --control /run/weir.sock show | grep -q 'other_config:burst has no effect'
        # A QoS that cannot be is none, and said; so is one that has gone.
        vsctl set port vb qos=@q -- --id=@q create qos type=linux-codel
        within 30 grep -q 'port vb: QoS: linux-codel is no type here' /run/ovs-vswitchd.log
        vsctl clear port vb qos -- --all destroy qos -- --all destroy queue
        is 'OFPST_QUEUE reply (xid=0x2): 0 queues' ovs-ofctl queue-stats br0
        # Addresses that are set by hand stay.
        ovs-appctl fdb/add br0 vb 7 50:54:00:00:00:22
        ovs-appctl fdb/show br0 | grep -qx '    2     7  50:54:00:00:00:22  static'
        is 'table successfully flushed' ovs-appctl fdb/flush br0
        ovs-appctl fdb/show br0 | grep -q static
        ovs-appctl fdb/stats-show br0 | grep -q 'Current static MAC entries in the table : 1'
        ovs-appctl fdb/del br0 7 50:54:00:00:00:22
        not sh -c 'ovs-appctl fdb/show br0 | grep static'
        ovs-appctl fdb/del br0 7 50:54:00:00:00:22 2>&1 | grep -q 'could not find static mac'
        ovs-appctl fdb/add br0 vb 0 xx 2>&1 | grep -q 'bad MAC address'
        ovs-appctl dpif/show-dp-features br0 | grep -qx 'CT state: No'
        vsctl -- set bridge br0 flow_tables:0=@f -- --id=@f create flow_table name=main flow_limit=1
        ovs-ofctl del-flows br0
        ovs-ofctl add-flow br0 in_port=1,actions=drop
        ovs-ofctl add-flow br0 in_port=2,actions=drop 2>&1 | grep -q OFPFMFC_TABLE_FULL
        ovs-ofctl dump-tables br0 | grep -q 'table 0 ("main")'
        "#,
    );
}

#[test]
#[ignore = "needs root"]
fn the_database_may_be_anywhere() {
    daemon(
        r#"
        cd /run
        ovs-pki --dir=/run/pki --log=/run/pki.log init >/dev/null
        for name in server switch; do
            ovs-pki --dir=/run/pki --log=/run/pki.log req+sign $name switch >/dev/null
        done
        ca=/run/pki/switchca/cacert.pem
        ovsdb-tool create /run/conf.db /usr/share/openvswitch/vswitch.ovsschema
        ovsdb-server /run/conf.db --remote=punix:/run/db.sock --remote=ptcp:6640:127.0.0.1 \
            --remote=pssl:6641:127.0.0.1 --private-key=server-privkey.pem \
            --certificate=server-cert.pem --ca-cert=$ca --pidfile --detach --no-chdir -vconsole:off
        ovs-vsctl --no-wait init
        not /run/ovs-vswitchd ssl:127.0.0.1:6641 2>/run/refused
        grep -q 'TLS needs --private-key' /run/refused
        key="-p switch-privkey.pem -c switch-cert.pem -C $ca"
        for remote in tcp:127.0.0.1 "ssl:127.0.0.1:6641 $key"; do
            /run/ovs-vswitchd $remote --pidfile --detach --no-chdir --log-file -vconsole:off
            ovs-vsctl --timeout=30 --may-exist add-br br0
            is br0 ovs-appctl ofproto/list
            ovs-appctl exit
            within 30 test ! -e /run/ovs-vswitchd.pid
        done
        "#,
    );
}

#[test]
#[ignore = "needs root"]
fn traces_end_in_the_words_of_open_vswitch() {
    daemon(
        r#"
        begin --enable-dummy
        ovs-vsctl --timeout=30 \
            -- add-br br0 -- set-fail-mode br0 secure -- set bridge br0 datapath-type=dummy \
            -- add-br br1 -- set-fail-mode br1 secure -- set bridge br1 datapath-type=dummy \
            -- add-port br0 p1 -- set Interface p1 type=dummy ofport_request=1 \
            -- add-port br0 a -- set Interface a type=patch options:peer=b ofport_request=10 \
            -- add-port br1 b -- set Interface b type=patch options:peer=a ofport_request=20 \
            -- add-port br1 p2 -- set Interface p2 type=dummy ofport_request=2
        ovs-ofctl add-flow br0 in_port=1,actions=output:10
        ovs-ofctl add-flow br1 in_port=20,ip,actions=strip_vlan,mod_nw_dst:10.0.0.9,output:2
        flow=icmp,dl_vlan=100,nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_ttl=64
        trace() { ovs-appctl ofproto/trace "$@" | tail -2; }
        actions='Datapath actions: set(ipv4(dst=10.0.0.9)),pop_vlan,2'
        # The links of ports are known soon after the ports.
        within 30 is "$(printf 'Final flow: unchanged\n%s' "$actions")" trace br0 "in_port=1,$flow"
        trace br1 "in_port=20,$flow" | grep -q '^Final flow: icmp,in_port=20,vlan_tci=0x0000,'
        trace --names br0 "in_port=1,$flow" | grep -q ',p2$'
        odp='in_port(1),eth(src=50:54:00:00:00:05,dst=50:54:00:00:00:07)'
        trace "$odp" | grep -qx 'Datapath actions: drop'
        trace ovs-dummy "$odp" | grep -qx 'Datapath actions: drop'
        ovs-appctl ofproto/trace other "$odp" 2>&1 | grep -q 'Cannot find the datapath'
        ovs-appctl ofproto/trace br9 "in_port=1,$flow" 2>&1 | grep -q 'Unknown bridge name'
        ovs-appctl dpif/show | grep -q '    a 10/none: (patch: peer=b)'
        ovs-appctl dpctl/del-if dummy@ovs-dummy p1
        not sh -c 'ovs-appctl dpif/show | grep "p1 1/1: (dummy)"'
        ovs-vsctl --timeout=30 del-port p2
        ovs-appctl dpif/show | grep -q 'p1 1/1: (dummy)'
        "#,
    );
}

#[test]
#[ignore = "needs root"]
fn a_controller_is_followed_from_the_database() {
    daemon(
        r#"
        begin
        weir controller learning-switch --listen tcp:127.0.0.1:6653 2>/run/controller &
        ovs-vsctl --timeout=30 add-br br0 -- set-controller br0 tcp:127.0.0.1:6653 ptcp:6634
        connected() {
            ovs-vsctl --bare --columns=is_connected list Controller | grep -q true
        }
        within 30 connected
        ovs-vsctl list Controller | grep -q 'state=ACTIVE'
        ovs-ofctl show tcp:127.0.0.1:6634 >/dev/null
        ovs-ofctl --detach --no-chdir --pidfile=/run/snoop.pid snoop br0 2>/run/snoop
        ovs-vsctl --timeout=30 set bridge br0 protocols=OpenFlow10
        within 30 grep -q OFPT_FEATURES_REPLY /run/snoop
        grep -q OFPT_FEATURES_REQUEST /run/snoop
        not ovs-ofctl -O OpenFlow13 show br0 2>/dev/null
        ovs-ofctl show br0 >/dev/null
        kill %1
        within 30 sh -c "! ovs-vsctl list Controller | grep -q 'is_connected.*true'"
        ovs-vsctl --timeout=30 del-controller br0
        not ovs-ofctl show tcp:127.0.0.1:6634 2>/dev/null
        # A socket outside of the run folder would be a file of somebody else's choice.
        ovs-vsctl --timeout=30 set-controller br0 unix:/etc/passwd punix:../x
        [ "$(grep -c 'a socket must be in the run folder' /run/ovs-vswitchd.log)" = 2 ]
        "#,
    );
}

#[test]
#[ignore = "needs root"]
fn the_database_goes_and_comes_back() {
    daemon(
        r#"
        host a 10.0.0.1/24
        host b 10.0.0.2/24
        begin
        ovs-vsctl --timeout=30 add-br br0 -- add-port br0 vb -- add-port br0 va
        within 30 ip netns exec a ping -c 1 -W 1 10.0.0.2
        kill "$(cat /run/ovsdb-server.pid)"
        within 30 grep -q 'connection closed' /run/ovs-vswitchd.log
        # Nothing that was carried out goes with the server.
        ip netns exec a ping -c 5 -i 0.2 -W 30 10.0.0.2 | grep -q ' 0% packet loss'
        server
        # Columns that a server does not keep are written again.
        within 30 is up get Interface va link_state
        ovs-vsctl --timeout=30 add-br br1
        number=$(ovs-vsctl get Interface va ofport)
        # A second daemon waits until the first has ended, and takes the numbers over.
        /run/ovs-vswitchd unix:/run/db.sock --pidfile=second.pid --log-file=second.log \
            --unixctl=second.ctl --control=second.sock -vconsole:off &
        within 30 grep -q 'another ovs-vswitchd process is running' /run/second.log
        is '' ovs-appctl --target=/run/second.ctl ofproto/list
        first=$(cat /run/ovs-vswitchd.pid)
        ovs-appctl exit
        within 30 test ! -e /run/ovs-vswitchd.pid
        within 30 is "$(printf 'br0\nbr1')" ovs-appctl --target=/run/second.ctl ofproto/list
        ovs-vsctl --timeout=30 add-br br2
        is "$number" get Interface va ofport
        within 30 ip netns exec a ping -c 1 -W 1 10.0.0.2
        "#,
    );
}

#[test]
#[ignore = "needs root"]
fn frames_pass_whatever_becomes_of_the_database() {
    daemon(
        r#"
        # No device sends of its own accord.
        quiet='sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1'
        $quiet
        host a 10.0.0.1/24
        host b 10.0.0.2/24
        for host in a b; do ip netns exec $host $quiet; done
        begin
        ovs-vsctl --timeout=30 add-br br0 -- add-port br0 vb -- add-port br0 va
        within 30 ip netns exec a ping -c 1 -W 1 10.0.0.2
        # The devices count what one host sends and what comes to the other.
        count() { ip netns exec $1 awk -v at=$2 '/eth0:/ { print $at }' /proc/net/dev; }
        sent() { count a 11; }
        came() { count b 3; }
        sent_before=$(sent) came_before=$(came)
        to=$(ip netns exec b cat /sys/class/net/eth0/address)
        cat > /run/paced.toml <<END
        [[streams]]
        packet = "eth(dst=$to)/ipv4(dst=10.0.0.2)/udp"
        rate = "5kpps"
END
        ip netns exec a weir gen run /run/paced.toml --port af_packet:eth0 --quiet >/run/gen 2>&1 &
        generator=$!
        beyond() { [ "$(came)" -gt "$1" ]; }
        more() { within 60 beyond $(($(came) + 1000)); }
        # It does not answer for a while, and then carries out what was asked for.
        server=$(cat /run/ovsdb-server.pid)
        kill -STOP "$server"
        more
        kill -CONT "$server"
        ovs-vsctl --timeout=60 add-br br1
        # It dies, and another one comes to a new socket.
        kill -KILL "$server"
        more
        rm -f /run/db.sock /run/ovsdb-server.pid
        server
        ovs-vsctl --timeout=60 add-br br2
        # Another one takes its place with another file.
        kill "$(cat /run/ovsdb-server.pid)"
        within 30 test ! -e /run/ovsdb-server.pid
        more
        mv /run/conf.db /run/moved.db
        ln -s moved.db /run/conf.db
        server
        ovs-vsctl --timeout=60 del-br br1
        is "$(printf 'br0\nbr2')" ovs-appctl ofproto/list
        more
        kill -INT $generator
        wait $generator || cat /run/gen
        none_is_lost() { [ $(($(sent) - sent_before)) = $(($(came) - came_before)) ]; }
        # The last ones may be on their way.
        within 30 none_is_lost || { echo "of $(($(sent) - sent_before)) frames" \
            "$(($(came) - came_before)) came"; exit 1; }
        "#,
    );
}

#[test]
#[ignore = "needs root"]
fn the_daemon_keeps_the_contract_of_scripts() {
    daemon(
        r#"
        /run/ovs-vswitchd --version | head -1 | grep -qx 'ovs-vswitchd (Open vSwitch) 3.1.0'
        begin
        pid=$(cat /run/ovs-vswitchd.pid)
        is ovs-vswitchd cat /proc/$pid/comm
        is 'ovs-vswitchd (Open vSwitch) 3.1.0' sh -c 'ovs-appctl version | head -1'
        # A second one with the same file is refused, and its parent fails.
        not /run/ovs-vswitchd unix:/run/db.sock --pidfile --detach 2>/run/second
        grep -q "already running as pid $pid" /run/second
        # Lines of the log are vlog's, and levels change.
        line='^[-0-9]+T[0-9:.]+Z\|[0-9]{5}\|reconnect\|INFO\|unix:/run/db.sock: connected$'
        grep -Eq "$line" /run/ovs-vswitchd.log
        ovs-appctl vlog/set unixctl:file:dbg
        ovs-appctl vlog/list | grep -Eq '^unixctl +OFF +INFO +DBG$'
        mv /run/ovs-vswitchd.log /run/old.log
        ovs-appctl vlog/reopen
        test -e /run/ovs-vswitchd.log
        ovs-appctl no/such 2>&1 | grep -q 'is not a valid command (use "list-commands"'
        ovs-appctl vlog/set 2>&1 | grep -q 'requires at least 1 arguments'
        ovs-appctl exit
        within 30 test ! -e /run/ovs-vswitchd.pid
        test ! -e /run/ovs-vswitchd.$pid.ctl
        "#,
    );
}

#[test]
#[ignore = "needs root"]
fn rows_of_others_harm_nothing_else() {
    daemon(
        r#"
        host a 10.0.0.1/24
        begin
        ovs-vsctl --timeout=30 add-br br0 -- add-port br0 va || true
        # Names, types and numbers that cannot be, one device in two bridges, words without effect.
        long=$(printf 'x%.0s' $(seq 300))
        ovs-vsctl --timeout=30 add-br "a/b" 2>&1 || true
        ovs-vsctl --timeout=30 add-br "$long" 2>&1 || true
        ovs-vsctl --timeout=30 add-port br0 odd -- set Interface odd type=hovercraft 2>&1 || true
        ovs-vsctl --timeout=30 add-port br0 "$long.2" 2>&1 || true
        ovs-vsctl --timeout=30 add-br br1 -- --id=@i create Interface name=va \
            -- --id=@p create Port name=va2 interfaces=@i -- add Bridge br1 ports @p 2>&1 || true
        ovs-vsctl --timeout=30 set bridge br0 protocols=OpenFlow11 stp_enable=true \
            other_config:datapath-id=nonsense other_config:junk=1
        ovs-vsctl --timeout=30 set-controller br0 tcp:999.1.1.1.1:99999 ssl:127.0.0.1
        is -1 get Interface odd ofport
        is 1 get Interface va ofport
        grep -q 'Bridge br0: stp_enable has no effect' /run/ovs-vswitchd.log
        grep -q 'datapath-id is no number' /run/ovs-vswitchd.log
        # A hundred bridges in one transaction, gone in the next.
        words=; for n in $(seq 100); do words="$words -- add-br m$n"; done
        ovs-vsctl --timeout=60 $words
        [ "$(ovs-appctl ofproto/list | grep -c '^m')" = 100 ]
        words=; for n in $(seq 100); do words="$words -- del-br m$n"; done
        ovs-vsctl --timeout=60 $words
        [ "$(ovs-appctl ofproto/list | grep -c '^m')" = 0 ]
        ovs-vsctl --timeout=30 emer-reset
        kill -0 "$(cat /run/ovs-vswitchd.pid)"
        "#,
    );
}

#[test]
#[ignore = "needs root"]
fn what_cannot_be_a_port_is_reported_once() {
    daemon(
        r#"
        host a 10.0.0.1/24
        # The last of several options holds, as those of a script before those of its user.
        begin --log-file=/run/other.log --log-file
        not test -e /run/other.log
        said() { [ "$(grep -c "$1" /run/ovs-vswitchd.log)" = "$2" ]; }
        shown() { weir ctl --control /run/weir.sock --bridge br0 show | grep -q "$1"; }
        ovs-vsctl --timeout=30 add-br br0 -- add-port br0 gone 2>/run/first || true
        grep -q 'gone (No such device)' /run/first
        ovs-vsctl --timeout=30 add-port br0 odd -- set Interface odd type=hovercraft 2>/run/odd ||
            true
        vsctl add-port br0 i0 -- set Interface i0 type=internal
        vsctl add-port br0 va -- set Interface va mtu_request=99999999
        # Their retries are silent.
        sleep 3
        said 'hovercraft is no type of interface here' 1
        said 'setting the MTU of va' 1
        said 'interface gone' 0
        shown 'database: Bridge br0: odd: hovercraft is no type of interface here'
        shown 'database: bridge br0: port .*: no network device "gone"'
        shown 'database: Bridge br0: setting the MTU of va'
        # A device that comes late is added, and one that is down has no link.
        ip link add gone type veth peer name farther
        within 30 said 'added interface gone' 1
        vsctl del-port gone
        within 30 said 'deleted interface gone' 1
        is down get Interface i0 link_state
        ip link set i0 up
        within 30 is up get Interface i0 link_state
        # Rates beyond all measure take no port away.
        vsctl set Interface va ingress_policing_rate=1000000 \
            ingress_policing_burst=9223372036854775807
        is "[]" get Interface va error
        "#,
    );
}

#[test]
#[ignore = "needs root"]
fn ovs_ofctl_names_tables_over_openflow_1_0() {
    daemon(
        r#"
        begin
        vsctl add-br br0 -- set-fail-mode br0 secure
        entries() {
            ovs-ofctl dump-flows br0 "$@" |
                sed -n 's/.*table=\([0-9]*\),.*n_bytes=0, /\1 /p' | sort | paste -sd '|'
        }
        ovs-ofctl add-flow br0 'table=1,priority=5,ip,actions=output:2'
        ovs-ofctl add-flow br0 'priority=5,ip,actions=resubmit(,1)'
        is '0 priority=5,ip actions=resubmit(,1)|1 priority=5,ip actions=output:2' entries
        is '1 priority=5,ip actions=output:2' entries table=1
        ovs-ofctl dump-aggregate br0 table=1 | grep -q 'flow_count=1$'
        ovs-ofctl mod-flows br0 'table=1,ip,actions=output:1'
        ovs-ofctl --strict mod-flows br0 'table=1,priority=6,ip,actions=output:3'
        is '1 priority=5,ip actions=output:1|1 priority=6,ip actions=output:3' entries table=1
        is '0 priority=5,ip actions=resubmit(,1)' entries table=0
        ovs-ofctl --strict del-flows br0 'table=1,priority=6,ip'
        # Without a table all are meant, or the first where nothing is found.
        ovs-ofctl mod-flows br0 'ip,actions=drop'
        ovs-ofctl mod-flows br0 'arp,actions=drop'
        is '0 arp actions=drop|0 priority=5,ip actions=drop|1 priority=5,ip actions=drop' entries
        ovs-ofctl -F OpenFlow10+table_id del-flows br0 table=1
        is '' entries table=1
        ovs-ofctl -F OpenFlow10 del-flows br0 ip
        is '0 arp actions=drop' entries
        printf 'table=2,ip,actions=drop\nactions=output:1\n' >/run/flows
        ovs-ofctl add-flows br0 /run/flows
        ovs-ofctl del-flows br0
        is '' entries
        # A table where the command of 1.0 has none, from a tool that has not asked for it.
        ovs-ofctl -P standard monitor br0 --detach --pidfile=/run/monitor.pid \
            --unixctl=/run/monitor.ctl 2>/run/monitored
        frame=010e004800000001003fffff$(printf '%072d' 0)
        ovs-appctl --target=/run/monitor.ctl ofctl/send \
            "${frame}00000000000000000100000000000000ffffffffffff0000"
        within 30 grep -q 'OFPFMFC_BAD_COMMAND' /run/monitored
        is '' entries
        kill "$(cat /run/monitor.pid)"
        "#,
    );
}

#[test]
#[ignore = "needs root"]
fn a_lock_that_is_stolen_takes_the_bridges_with_it() {
    daemon(
        r#"
        host a 10.0.0.1/24
        host b 10.0.0.2/24
        begin
        ovs-vsctl --timeout=30 add-br br0 -- add-port br0 va -- add-port br0 vb
        within 30 ip netns exec a ping -c 1 -W 1 10.0.0.2
        ovsdb-client steal unix:/run/db.sock ovs_vswitchd >/run/stolen 2>&1 &
        thief=$!
        within 30 grep -q 'another ovs-vswitchd process is running' /run/ovs-vswitchd.log
        within 30 is '' ovs-appctl ofproto/list
        # Nothing is written while another one has the lock.
        ovs-vsctl --no-wait add-br br1
        kill $thief
        within 30 is "$(printf 'br0\nbr1')" ovs-appctl ofproto/list
        within 30 ip netns exec a ping -c 1 -W 1 10.0.0.2
        ovs-vsctl --timeout=30 add-br br2
        "#,
    );
}

#[test]
#[ignore = "needs root"]
fn a_database_that_refuses_what_is_written_is_asked_again() {
    daemon(
        r#"
        host a 10.0.0.1/24
        host b 10.0.0.2/24
        # It takes no device that is down, as that of a new bridge is.
        sed '/"admin_state"/,/ephemeral/s/\["up", "down"\]/["up"]/' \
            /usr/share/openvswitch/vswitch.ovsschema >/run/schema
        not cmp -s /run/schema /usr/share/openvswitch/vswitch.ovsschema
        ovsdb-tool create /run/conf.db /run/schema
        server
        ovs-vsctl --no-wait init
        /run/ovs-vswitchd unix:/run/db.sock --pidfile --detach --log-file -vconsole:off
        ovs-vsctl --no-wait add-br br0 -- add-port br0 va -- add-port br0 vb
        within 30 grep -q 'the database refuses what was written' /run/ovs-vswitchd.log
        within 30 ip netns exec a ping -c 1 -W 1 10.0.0.2
        ip link set br0 up
        within 30 is up get Interface br0 admin_state
        ovs-vsctl --timeout=30 set bridge br0 other_config:hwaddr=02:00:00:00:00:09
        "#,
    );
}

#[test]
#[ignore = "needs root"]
fn the_daemon_serves_metrics_of_bridges_as_they_come() {
    daemon(
        r#"
        host a 10.0.0.1/24
        scraped() { # words of the answer
            exec 3<>/dev/tcp/127.0.0.1/9437
            printf 'GET /metrics HTTP/1.0\r\n\r\n' >&3
            cat <&3 >/run/answer
            grep -qF "$1" /run/answer
        }
        begin --metrics=127.0.0.1:9437
        scraped 'weir_build_info{program="switch"'
        not grep -q 'bridge=' /run/answer
        ovs-vsctl --timeout=30 add-br br0 -- add-port br0 va
        within 30 scraped 'weir_port_up{bridge="br0",port="1",name="va"} 1'
        ip -n a link set eth0 down
        within 30 scraped 'weir_port_up{bridge="br0",port="1",name="va"} 0'
        ovs-vsctl --timeout=30 del-br br0
        within 30 scraped 'weir_build_info'
        not grep -q 'bridge=' /run/answer
        "#,
    );
}
