"""Parameters, dpctl and loops of weir.py, in Mininet itself; check.sh runs it in a namespace.

Prints a line of JSON for each check, as check.sh does; exit code 1 when one fails.
"""
import json
import re
import sys
import time
import traceback

from mininet.link import Link
from mininet.net import Mininet
from mininet.topo import SingleSwitchTopo
from mininet.util import customClass

from weir import WeirBridge, WeirController, WeirSwitch, controllers, switches


def option(words, flag):
    """The value behind a flag, if it is there."""
    return words[words.index(flag) + 1] if flag in words else None


def made(cls, **parameters):
    """The words that a switch with these parameters is started with."""
    node = cls("s1", **parameters)
    node.folder = "/nowhere"
    try:
        return node.arguments([])
    finally:
        node.terminate()


def parameters_mean_what_mininet_means():
    for cls, given, flag, value in [
        (WeirSwitch, {}, "--fail-mode", "secure"),
        (WeirSwitch, {"failMode": "secure"}, "--fail-mode", "secure"),
        (WeirSwitch, {"failMode": "standalone"}, "--fail-mode", "standalone"),
        (WeirSwitch, {"fail_mode": "standalone"}, "--fail-mode", "standalone"),
        (WeirBridge, {}, "--fail-mode", "standalone"),
        (WeirBridge, {"failMode": "standalone"}, "--fail-mode", "standalone"),
        (WeirSwitch, {"reconnectms": 2500}, "--max-backoff", "2.5"),
        (WeirSwitch, {"reconnectms": 0}, "--max-backoff", None),
        (WeirSwitch, {}, "--max-backoff", "1"),
        (WeirSwitch, {"dpid": "ab"}, "--dpid", "00000000000000ab"),
        (WeirSwitch, {}, "--name", "s1"),
        (WeirSwitch, {"opts": "--name br0"}, "--name", "br0"),
        (WeirSwitch, {"opts": "--name=br0"}, "--name", None),
        (WeirSwitch, {"protocols": "OpenFlow10+OpenFlow13"}, "--protocols",
         "OpenFlow10,OpenFlow13"),
        # Of Mininet's own class, as they are there where nobody asks for more.
        (WeirSwitch, {"stp": False, "inband": False, "batch": True, "datapath": "user"},
         "--fail-mode", "secure"),
        (WeirSwitch, {"stp": "False", "inband": 0, "datapath": "kernel"}, "--fail-mode", "secure"),
        # Of its base classes.
        (WeirSwitch, {"isSwitch": True, "inNamespace": False, "ip": "10.0.0.9", "listenPort": None},
         "--fail-mode", "secure"),
    ]:
        found = option(made(cls, **given), flag)
        assert found == value, (cls.__name__, given, found)


def others_are_refused_by_name():
    def cases():
        for cls, given, reason in [
            (WeirSwitch, {"typo": 1}, "unknown parameter `typo` (WeirSwitch takes "),
            (WeirSwitch, {"fail_mod": "secure"}, "did you mean `fail_mode`?"),
            (WeirSwitch, {"stp": True}, "no spanning tree"),
            (WeirBridge, {"stp": 1}, "no spanning tree"),
            (WeirSwitch, {"stp": "perhaps"}, "True or False"),
            (WeirSwitch, {"inband": True}, "inband"),
            (WeirSwitch, {"datapath": "fast"}, "user or kernel"),
            (WeirSwitch, {"failMode": "open"}, "secure or standalone"),
            (WeirSwitch, {"failMode": "secure", "fail_mode": "standalone"}, "give one"),
            (WeirSwitch, {"backoff": 1, "reconnectms": 1000}, "give one"),
            (WeirBridge, {"failMode": "secure"}, "the secure one is weir"),
            (WeirController, {"apps": "hub"}, "did you mean `app`?"),
            (WeirController, {"rest": "127.0.0.1:8080"}, "unknown parameter `rest`"),
            (WeirController, {"command": "x"}, "unknown parameter `command`"),
            (WeirController, {"protocol": "ssl"}, "only tcp"),
        ]:
            yield (given, reason, lambda cls=cls, given=given: cls("s1", **given))
        # As `mn --switch TEXT` makes them.
        for text, reason in [
            ("weir,typo=1", "unknown parameter `typo`"),
            ("weir,stp=1", "no spanning tree"),
            ("weir,stp=True", "no spanning tree"),
            ("weir,secure", "write NAME=VALUE"),
            ("weirbr,failMode=secure", "the secure one is weir"),
        ]:
            yield (text, reason, lambda text=text: customClass(switches, text)("s1"))
        yield ("weir,apps=hub", "did you mean `app`?",
               lambda: customClass(controllers, "weir,apps=hub")("c1"))

    for given, reason, make in cases():
        try:
            node = make()
        except (TypeError, ValueError) as refusal:
            assert reason in str(refusal), (given, str(refusal))
        else:
            node.terminate()
            raise AssertionError(f"{given} is taken")


def dpctl_splits_words_as_a_shell():
    net = Mininet(SingleSwitchTopo(2), switch=WeirSwitch, controller=None)
    net.start()
    try:
        switch = net["s1"]
        for words in [
            ("add-flow", "'in_port=1,actions=output:2'"),
            ("add-flow", '"in_port=2, actions=output:1"'),
            ("add-flow", "-O OpenFlow13",
             "in_port=3,actions=set_field:02:00:00:00:00:01->eth_dst,output:1"),
            ("add-flow -O OpenFlow13 in_port=4,actions=drop",),
            ("add-flow", "s1", "in_port=5,actions=drop"),
        ]:
            assert switch.dpctl(*words) == "", (words, switch.dpctl(*words))
        listed = switch.dpctl("dump-flows", "-O OpenFlow13")
        assert len(re.findall("in_port=[1-5]", listed)) == 5, listed
        assert "quotation" in switch.dpctl("add-flow", "'in_port=1"), "an open quote"
        assert net.pingAll() == 0
    finally:
        net.stop()


def ring(count, **parameters):
    """Switches in a ring, each with a host, without a controller."""
    net = Mininet(switch=WeirSwitch, controller=None, link=Link)
    ring = [net.addSwitch(f"s{n}", **parameters) for n in range(1, count + 1)]
    for n, switch in enumerate(ring, 1):
        net.addLink(net.addHost(f"h{n}", mac=f"02:00:00:00:00:{n:02x}"), switch, port2=1)
    for n, switch in enumerate(ring):
        net.addLink(switch, ring[(n + 1) % count], port1=2, port2=3)
    return net, ring


def a_ring_without_a_controller_is_still():
    """A program puts in all entries itself; nothing goes round, and no ping is lost."""
    for parameters in [{}, {"failMode": "secure"}]:
        net, switches_of = ring(3, **parameters)
        net.start()
        try:
            for n, switch in enumerate(switches_of):
                for to in range(3):
                    entry = (f"dl_dst=02:00:00:00:00:0{to + 1},"
                             f"actions=output:{(to - n) % 3 + 1}")
                    assert switch.dpctl("add-flow", entry) == ""
            net.staticArp()
            assert net.pingAll() == 0
            # A broadcast that would go round for ever.
            net["h2"].cmd("ping -b -c 3 -i 0.2 -W 1 10.255.255.255")
            counter = "cat /sys/class/net/h1-eth0/statistics/rx_packets"
            before = int(net["h1"].cmd(counter))
            time.sleep(1)
            come = int(net["h1"].cmd(counter)) - before
            assert come < 100, (parameters, come)
        finally:
            net.stop()


def a_weirbr_forwards_without_a_controller():
    net = Mininet(SingleSwitchTopo(3), switch=WeirBridge, controller=None)
    net.start()
    try:
        assert net["s1"].connected()
        assert net.pingAll() == 0
    finally:
        net.stop()


def the_controller_takes_other_options():
    class Named(WeirController):
        def checkListening(self):
            pass

    node = Named("c1", app="hub", port=6700, protocols="OpenFlow13", opts="--debug")
    try:
        words = (node.cargs % node.port).split()
        assert words == ["controller", "hub", "--debug", "--protocols", "OpenFlow13", "--listen",
                         "tcp:127.0.0.1:6700"], words
    finally:
        node.terminate()


def main():
    is_whole = True
    for check in [parameters_mean_what_mininet_means, others_are_refused_by_name,
                  the_controller_takes_other_options, dpctl_splits_words_as_a_shell,
                  a_ring_without_a_controller_is_still, a_weirbr_forwards_without_a_controller]:
        result = {"id": "mininet/" + check.__name__, "result": "OK"}
        try:
            check()
        except Exception as fault:
            traceback.print_exc()
            result.update(result="FAIL", detail=str(fault))
            is_whole = False
        print(json.dumps(result), flush=True)
    return 0 if is_whole else 1


if __name__ == "__main__":
    sys.exit(main())
