#!/usr/bin/env python3
"""Runs os_ken.tests.switch.tester, the Ryu switch tester, from the package os-ken and writes one
JSON line a test case.  os-ken 4 has no osken-manager command any more; this is the part of it that
the tester needs.

usage: osken_run.py --out RESULTS.jsonl [--only REGEX] [--skip REGEX] -- [oslo.config options]

The tester is repaired in four places, each described where it happens: SCTP checksums, test files
of the same title, IPv6 addresses compared as text, and the pace of its packet sender.  --no-fixes
and --no-pace leave it as packaged.
"""
import argparse
import importlib
import json
import logging
import os
import re
import signal
import sys
import time
import traceback

os.environ["OSKEN_HUB_TYPE"] = "eventlet"  # the tester's timeouts only work on this hub

from os_ken.lib import hub  # noqa: E402

hub.patch(thread=False)

from os_ken import cfg, flags, log  # noqa: E402,F401  (flags registers the test-switch options)
from os_ken.base.app_manager import AppManager  # noqa: E402
from os_ken.controller import controller  # noqa: E402,F401  (registers the ofp options)

# The tester takes its packet classes out of sys.modules, so they must be loaded before it.
for name in ("packet ethernet arp vlan mpls pbb ipv4 ipv6 icmp icmpv6 tcp udp sctp llc bpdu slow "
             "lldp").split():
    importlib.import_module("os_ken.lib.packet." + name)

from os_ken.lib.packet import sctp  # noqa: E402
from os_ken.tests.switch import tester  # noqa: E402

CONF = cfg.CONF
CRC32C_POLYNOMIAL = 0x82F63B78
OFPMF_BURST = 4
BATCH_PACKETS = 64


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    parser.add_argument("--only", default="", help="test files whose path matches")
    parser.add_argument("--skip", default="", help="not the test files whose path matches")
    parser.add_argument("--stall", type=float, default=150, help="seconds without progress")
    parser.add_argument("--wait", type=float, default=30, help="seconds to wait for both switches")
    parser.add_argument("--no-pace", action="store_true", help="the tester's own sender")
    parser.add_argument("--no-fixes", action="store_true", help="the tester as packaged")
    parser.add_argument("--ignore-burst", action="store_true",
                        help="do not compare burst_size without OFPMF_BURST")
    parser.add_argument("rest", nargs="*")
    return parser.parse_args()


class Results:
    """One JSON line a case, in the order in which the tester runs them."""

    def __init__(self, path):
        self.file = open(path, "w", buffering=1)
        self.order = []
        self.done = 0
        self.last = time.time()
        self.offered = None
        self.packets = None

    def record(self, verdict, detail, seconds):
        path, file_description, index, description = self.order[self.done]
        root = CONF["test-switch"]["dir"]
        rel = os.path.basename(root) if os.path.isfile(root) else os.path.relpath(path, root)
        line = {
            "id": f"{rel}#{index}", "file": rel, "index": index, "file_desc": file_description,
            "desc": description, "result": verdict, "detail": detail,
            "seconds": round(seconds, 3)}
        if self.offered:
            packets, took = self.offered
            line["offered_pps"] = round(packets / max(took, 0.001))
        if self.packets and verdict == "ERROR" and "incorrect packet" in detail:
            line["want"], line["got"] = self.packets
        self.offered = self.packets = None
        self.file.write(json.dumps(line) + "\n")
        self.done += 1
        self.last = time.time()

    def close(self):
        self.file.close()


class Verdicts(logging.Handler):
    """Catches the tester's verdict on a case from its log lines."""

    verdict = detail = None

    def emit(self, record):
        if record.msg == "    %-100s %s" and record.args:
            self.verdict, self.detail = record.args[1], ""
        elif record.msg == "        %s" and self.verdict == "ERROR":
            self.detail = record.args[0]


def repair_sctp():
    """The library computes the CRC over the text of the bytes under Python 3, so every SCTP test
    packet carries a wrong checksum and a switch that updates it cannot pass.  Same algorithm, over
    the bytes."""
    def checksum(self, data):
        crc = 0xffffffff
        for byte in bytes(data):
            crc ^= byte
            for _ in range(8):
                crc = (crc >> 1) ^ (CRC32C_POLYNOMIAL if crc & 1 else 0)
        return int.from_bytes((crc ^ 0xffffffff).to_bytes(4, "little"), "big")
    sctp.sctp._checksum = checksum


def repair_titles():
    """Two files of the 1.0 set carry the title of another and replace it: 8 cases never run."""
    def setitem(self, key, value):
        if key in self:
            key = f"{key} [{os.path.basename(value.path)}]"
        dict.__setitem__(self, key, value)
    tester.TestPatterns.__setitem__ = setitem


def repair_flow_comparison():
    """Sent and returned flow entries are compared as text; the 1.4 set writes `10::0` where the
    decoder prints `10::`.  Take the sent match through the codec first."""
    compare = tester.OfTester._compare_flow

    def compare_flow(self, stats, sent):
        if self.target_sw.dp.ofproto.OFP_VERSION >= 3 and not getattr(sent, "canonical", False):
            data = bytearray()
            sent.match.serialize(data, 0)
            sent.match = type(sent.match).parser(bytes(data), 0)
            sent.canonical = True
        return compare(self, stats, sent)
    tester.OfTester._compare_flow = compare_flow


def ignore_burst():
    compare = tester.OfTester._compare_meter.__func__

    def compare_meter(cls, stats, sent):
        if not sent.flags & OFPMF_BURST:
            for one, other in zip(stats.bands, sent.bands):
                one.burst_size = other.burst_size
        return compare(cls, stats, sent)
    tester.OfTester._compare_meter = classmethod(compare_meter)


def pace_sender(results):
    """The tester's sender sleeps 10 ms a batch and does not make up for the time the batch took, so
    it offers 10 to 30 % less than the test file says: group and meter cases fail for lack of load.
    The same messages, sent by the clock, constant packets serialised once."""
    def message(switch, data):
        ofproto, parser = switch.dp.ofproto, switch.dp.ofproto_parser
        out = parser.OFPPacketOut(
            datapath=switch.dp, buffer_id=ofproto.OFP_NO_BUFFER, data=data,
            in_port=ofproto.OFPP_CONTROLLER,
            actions=[parser.OFPActionOutput(switch.tester_send_port)])
        switch.dp.set_xid(out)
        out.serialize()
        return bytes(out.buf)

    def random_message(switch, text):
        packet = eval("/".join(text), tester.__dict__)
        packet.serialize()
        return message(switch, bytes(packet.data))

    def send_packet_thread(self, arg):
        switch = self.tester_sw
        rate_pps = arg["packet_counter_inc"] / tester.CONTINUOUS_THREAD_INTVL
        fixed = None if arg["randomize"] else message(switch, arg["packet_binary"])
        event, began, sent = self.ingress_event, time.time(), 0
        while event is not None and self.ingress_event is event and not event._cond:
            due = int((time.time() - began) * rate_pps) - sent
            while due > 0:
                count = min(due, BATCH_PACKETS)
                batch = [fixed or random_message(switch, arg["packet_text"])
                         for _ in range(count)]
                switch.dp.send(b"".join(batch))
                sent += count
                due -= count
            results.offered = (sent, time.time() - began)
            hub.sleep(0.005)
    tester.OfTester._send_packet_thread = send_packet_thread


def watch_patterns(options, results):
    """Remembers the path of each test file and drops those that are not asked for."""
    read = tester.TestFile._get_tests
    make = tester.TestPatterns.__init__

    def get_tests(self, path):
        self.path = path
        read(self, path)

    def init(self, test_dir, logger):
        make(self, test_dir, logger)
        for key in list(self):
            path = self[key].path
            unwanted = options.skip and re.search(options.skip, path)
            if unwanted or (options.only and not re.search(options.only, path)):
                del self[key]
        for key in sorted(self):
            for index, test in enumerate(self[key].tests):
                results.order.append((self[key].path, key, index, test.description))
    tester.TestFile._get_tests = get_tests
    tester.TestPatterns.__init__ = init


def watch_cases(results):
    """Records each case; a case on which the tester itself fails is an ERROR, and it goes on."""
    verdicts = Verdicts()
    execute = tester.OfTester._test_execute
    diff = tester.OfTester._diff_packets.__func__

    def diff_packets(cls, model, received):
        results.packets = bytes(model.data).hex(), bytes(received.data).hex()
        return diff(cls, model, received)

    def test_execute(self, test, description):
        if verdicts not in self.logger.handlers:
            self.logger.addHandler(verdicts)
        verdicts.verdict = None
        began = time.time()
        try:
            outcome = execute(self, test, description)
            results.record(verdicts.verdict or "?", verdicts.detail or "", time.time() - began)
            return outcome
        except Exception as error:
            self.waiter = None
            place = traceback.extract_tb(error.__traceback__)[-1]
            detail = (f"tester exception {type(error).__name__}: {error} at "
                      f"{os.path.basename(place.filename)}:{place.lineno} {place.line}")
            results.record("ERROR", detail, time.time() - began)
            return "Tester exception"
    tester.OfTester._diff_packets = classmethod(diff_packets)
    tester.OfTester._test_execute = test_execute


def watchdog(options, results, applications):
    while True:
        hub.sleep(2)
        apps = [a for a in applications.values() if isinstance(a, tester.OfTester)]
        switches = [s for a in apps for s in (a.target_sw, a.tester_sw)]
        waiting = not apps or any(isinstance(s.dp, tester.DummyDatapath) for s in switches)
        limit_s = options.wait if waiting else options.stall
        if time.time() - results.last > limit_s:
            print(f"osken_run: no progress for {limit_s} s, giving up after {results.done} of "
                  f"{len(results.order)} cases", file=sys.stderr)
            while results.done < len(results.order):
                results.record("NOT_RUN", "no progress (a switch left or never came)", 0)
            results.close()
            os._exit(3)


def main():
    options = arguments()
    log.early_init_log(logging.INFO)
    CONF(args=options.rest, prog="osken_run", project="os_ken", version="tester",
         default_config_files=[])
    log.init_log()
    hub.patch(thread=True)
    results = Results(options.out)
    if not options.no_fixes:
        repair_sctp()
        repair_titles()
        repair_flow_comparison()
    if not options.no_pace:
        pace_sender(results)
    if options.ignore_burst:
        ignore_burst()
    watch_patterns(options, results)
    watch_cases(results)
    manager = AppManager.get_instance()
    manager.load_apps(["os_ken.controller.ofp_handler", "os_ken.tests.switch.tester"])
    services = manager.instantiate_apps(**manager.create_contexts())
    hub.spawn(watchdog, options, results, manager.applications)

    def leave(*_):
        results.close()
        os._exit(0)
    signal.signal(signal.SIGTERM, leave)  # the tester ends itself with SIGTERM
    try:
        hub.joinall(services)
    finally:
        results.close()


main()
