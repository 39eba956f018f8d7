"""The page of the package's classes, made from its stub and its sources."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Tuple

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "reference" / "python.md"

HEAD = """\
# Classes of the Python package

[Apps in Python](../python.md) is the guide. This page is made from the documentation in the
package, which `help(weir.FlowStats)` and editors show too. A value prints itself with its
attributes. A counter that the switch does not keep is `None`.
"""

#: Sections: the title, and the classes and functions by their files.
SECTIONS: List[Tuple[str, Dict[str, str]]] = [
    (
        "Statistics and descriptions",
        {
            "_weir.pyi": "FlowStats AggregateStats TableStats PortStats QueueStats GroupStats"
            " GroupDesc GroupFeatures MeterStats MeterConfig MeterFeatures BucketStats SwitchDesc"
            " SwitchConfig Role"
        },
    ),
    ("Events", {"_weir.pyi": "Port PortStatus FlowRemoved SwitchError RoleChange Message"}),
    (
        "Packets",
        {"_weir.pyi": "PacketIn Ethernet Vlan Arp Ipv4 Ipv6 Tcp Udp Sctp Icmpv4 Icmpv6"},
    ),
    ("Switches", {"_weir.pyi": "Switch _Verbs Match Action Instruction"}),
    (
        "The controller",
        {
            "app.py": "Controller Timer",
            "topology.py": "SwitchPort Link Host",
            "routes.py": "route Request Response",
        },
    ),
    (
        "The test kit, weir.testing",
        {"testing.py": "Network SimulatedSwitch frame", "_weir.pyi": "Frame"},
    ),
]

#: Classes of the stub that are none of an app's: they are behind others.
INTERNAL = {"Handlers", "Core", "WebRequest", "TestSwitch"}

#: Classes that an app or a test calls.
CALLED = {"Match", "Action", "Instruction", "Frame", "Network", "Response"}

#: An attribute that a comment describes.
_ATTRIBUTE = re.compile(r"((?: *#: .*\n)+) *(?:self\.)?([a-z]\w*)(?:: ([^=]*?))?(?: =|\n)")


def plain(doc: Optional[str]) -> str:
    """A docstring in Markdown, as one line."""
    text = re.sub(r":\w+:`([^`]*)`", r"`\1`", inspect.cleandoc(doc or "")).replace("``", "`")
    return " ".join(text.split())


def signature(function: ast.FunctionDef, name: str, is_method: bool) -> str:
    """A function as it is called, and what it gives."""
    given = function.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    for argument in every:
        if argument is not None:
            argument.annotation = None
    if is_method:
        (given.posonlyargs or given.args).pop(0)
    text = f"`{name}({ast.unparse(given)})`"
    returns = ast.unparse(function.returns).strip("\"'") if function.returns else "None"
    is_plain = returns in ("None", "_Done") or function.name.startswith("__")
    return text if is_plain else f"{text} gives `{returns}`"


def attributes(node: ast.ClassDef, source: str) -> Iterator[Tuple[str, str, str]]:
    """Name, type and description of each attribute."""
    for part in node.body:
        if isinstance(part, ast.FunctionDef) and is_property(part):
            assert part.returns is not None
            yield part.name, ast.unparse(part.returns), plain(ast.get_docstring(part))
    for comment, name, hint in _ATTRIBUTE.findall(ast.get_source_segment(source, node) or ""):
        if not name.startswith("_"):
            yield name, hint, plain(comment.replace("#:", ""))


def is_property(function: ast.FunctionDef) -> bool:
    return any(isinstance(d, ast.Name) and d.id == "property" for d in function.decorator_list)


def of_class(node: ast.ClassDef, source: str) -> Iterator[str]:
    """The lines of a class."""
    yield "" if node.name == "_Verbs" else f"\n### {node.name}\n"
    yield plain(ast.get_docstring(node)) + "\n"
    rows = list(attributes(node, source))
    if rows:
        yield "| attribute | type | meaning |\n|---|---|---|"
        yield from (f"| `{name}` | `{hint}` | {doc} |" for name, hint, doc in rows)
        yield ""
    for part in node.body:
        if not isinstance(part, ast.FunctionDef) or is_property(part):
            continue
        is_made = part.name in ("__new__", "__init__") and node.name in CALLED
        if is_made or not part.name.startswith("_"):
            doc = plain(ast.get_docstring(part))
            called = signature(part, node.name if is_made else part.name, True)
            yield f"- {called}: {doc}" if doc else f"- {called}"


def page() -> str:
    """The page."""
    text, classes, shown = HEAD, set(), set()
    for title, files in SECTIONS:
        text += f"\n## {title}\n"
        for file, names in files.items():
            source = (ROOT / "python" / "weir" / file).read_text()
            kinds = (ast.ClassDef, ast.FunctionDef)
            parts = {n.name: n for n in ast.parse(source).body if isinstance(n, kinds)}
            if file == "_weir.pyi":
                classes = {name for name, n in parts.items() if isinstance(n, ast.ClassDef)}
            for name in names.split():
                shown.add(name)
                node = parts[name]
                if isinstance(node, ast.ClassDef):
                    text += "\n".join(of_class(node, source)).rstrip() + "\n"
                else:
                    called = signature(node, name, False)
                    text += f"\n### {name}\n\n{called}: {plain(ast.get_docstring(node))}\n"
    left = classes - shown - INTERNAL
    assert not left, f"in no section of {__file__}: {sorted(left)}"
    return text
