#!/usr/bin/env python3
"""Totals of a results.jsonl of the Ryu tester, by group and class.

required: a match field, the output action or a group type that the specification requires, and
          nothing optional
req+opt:  a required field behind an optional action (pop_mpls, pop_pbb, ...)
optional: the rest
"""
import argparse
import collections
import json
import re

REQUIRED_FIELDS = (
    "IN_PORT ETH_DST ETH_SRC ETH_TYPE IP_PROTO IPV4_SRC IPV4_DST IPV6_SRC IPV6_DST "
    "TCP_SRC TCP_DST UDP_SRC UDP_DST").split()
ROW = "%-10s %-9s %6s %6s %8s"


def is_required(record, version):
    parts = record["file"].split("/")
    name = re.sub(r"^\d+_", "", re.sub(r"\.json$", "", parts[-1]))
    base = re.sub(r"_(Mask|IPv4|IPv6|multiple)$", "", re.sub(r"_Mask$", "", name))
    kind = parts[0] if len(parts) > 1 else record["file_desc"].split(":")[0]
    if version == "10":
        return kind == "match" or base == "OUTPUT"
    if kind == "match":
        return base in REQUIRED_FIELDS
    if kind == "action":
        return base == "OUTPUT" and "25_SET_FIELD" not in record["file"]
    return kind == "group" and base == "ALL"


def class_of(record, version):
    if not is_required(record, version):
        return "optional"
    return "req+opt" if re.search(r"(pop|push)_", record["desc"]) else "required"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("results", nargs="+")
    parser.add_argument("--version", default="13")
    parser.add_argument("--seconds", default="")
    parser.add_argument("--failures", action="store_true", help="list what did not pass")
    options = parser.parse_args()
    totals = collections.defaultdict(collections.Counter)
    failures = []
    for path in options.results:
        with open(path) as lines:
            for record in map(json.loads, lines):
                kind, result = class_of(record, options.version), record["result"]
                group = record["file"].split("/")[0]
                for key in ((group, kind), ("total", kind), ("total", "all")):
                    totals[key][result] += 1
                if result != "OK":
                    failures.append((result, kind, record))
    print(ROW % ("group", "class", "OK", "ERROR", "NOT_RUN"))
    for key in sorted(totals, key=lambda k: (k[0] == "total", k)):
        count = totals[key]
        print(ROW % (*key, count["OK"], count["ERROR"], count["NOT_RUN"]))
    if options.seconds:
        print("wall seconds:", options.seconds)
    if options.failures:
        for result, kind, record in failures:
            print(result, kind, record["id"], "|", record["desc"], "|", record["detail"][:160])


main()
