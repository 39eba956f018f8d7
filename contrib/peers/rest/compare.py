#!/usr/bin/env python3
"""Compares the answers of two REST servers, field by field.

usage: compare.py RYU.jsonl WEIR.jsonl EXPLAINED.tsv [--markdown] [--all]

Both files are ask.py's.  Fields that no two runs have alike (durations) are left out, and lists
whose order says nothing (entries, ports, tables) are sorted.  Every other difference must be
explained by a line of EXPLAINED.tsv: a pattern of ids, a pattern of fields, and why.  Ends with 1
when a difference is not explained, or an explanation is no longer needed.
"""
import fnmatch
import json
import sys

# What differs between any two moments.
VOLATILE = {"duration_sec", "duration_nsec"}


def plain(value):
    """The value without what is volatile, its lists sorted."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items() if key not in VOLATILE}
    if isinstance(value, list):
        items = [plain(item) for item in value]
        if all(isinstance(item, dict) for item in items):
            items.sort(key=lambda item: json.dumps(item, sort_keys=True))
        return items
    return value


def differences(one, other, path=""):
    """Yields (field, one, other) for every difference."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(set(one) | set(other)):
            missing = "(nothing)"
            yield from differences(one.get(key, missing), other.get(key, missing),
                                   f"{path}.{key}" if path else key)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for mine, yours in zip(one, other):
            yield from differences(mine, yours, path + "[]")
    elif one != other:
        yield path or "(answer)", one, other


def read(path):
    with open(path) as lines:
        return {record["id"]: record for record in map(json.loads, lines)}


def explanations(path):
    """[(ids, fields, why)]"""
    found = []
    with open(path) as lines:
        for line in lines:
            if line.strip() and not line.startswith("#"):
                ids, fields, why = line.rstrip("\n").split("\t")
                found.append((ids, fields, why))
    return found


def compared(ryu, weir):
    """The differences of a request's answers: of the status, and of the answer's fields.  An error
    of either is one difference: Ryu says nothing more than its number."""
    if ryu["status"] != weir["status"]:
        return [("status", ryu["status"], weir["status"])]
    if ryu["status"] >= 400:
        return []
    return list(differences(plain(ryu["answer"]), plain(weir["answer"])))


def main():
    paths = [word for word in sys.argv[1:] if not word.startswith("--")]
    ryu, weir, why = read(paths[0]), read(paths[1]), explanations(paths[2])
    needed, counts, failed, rows = set(), {"same": 0, "explained": 0, "DIFFERENT": 0}, False, {}
    for name, theirs in ryu.items():
        ours = weir.get(name, {"status": 0, "answer": "not asked"})
        found = compared(theirs, ours)
        verdict = "explained" if found else "same"
        for field, mine, yours in found:
            matching = [row for row in why if fnmatch.fnmatchcase(name, row[0])
                        and fnmatch.fnmatchcase(field, row[1])]
            if not matching:
                verdict, failed = "DIFFERENT", True
                print(f"{name}: {theirs['method']} {theirs['path']} {theirs['body']}")
                print(f"    {field}: Ryu {json.dumps(mine)[:300]}")
                print(f"    {' ' * len(field)}  Weir {json.dumps(yours)[:300]}")
                if field == "status":
                    print(f"    {json.dumps(ours['answer'])[:300]}")
            for row in matching[:1]:
                needed.add(row)
                rows.setdefault(row, []).append(name)
        counts[verdict] += 1
    for row in why:
        if row not in needed:
            failed = True
            print(f"{row[0]} {row[1]} stands in the explanations but does not differ: delete it")
    for name in sorted(set(weir) - set(ryu)):
        failed = True
        print(f"{name} was not put to Ryu")
    if "--markdown" in sys.argv:
        print("| requests | differ in | answers | why |\n|---|---|---|---|")
        for row, names in rows.items():
            print(f"| `{row[0]}` | `{row[1]}` | {len(names)} | {row[2]} |")
    print(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    return 1 if failed else 0


sys.exit(main())
