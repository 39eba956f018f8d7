"""A network to run apps on, described beside them: switches, hosts and links.

::

    import weir

    network = weir.Network()
    network.switch("s1", dpid=0x1)
    network.host("h1", ip="10.0.0.1")
    network.host("h2", ip="10.0.0.2")
    network.link("s1", "h1")
    network.link("s1", "h2")

``weir run app.py --network`` makes it: each host is a network namespace, each switch a real one.
The program ``weir`` does that, and ``weir net`` works in it; here is only the description, and what
starts and ends that program.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import shutil
import subprocess
import sys
from types import ModuleType
from typing import Any, Callable, Dict, List, Optional, Sequence, Union

from weir.errors import WeirError

log = logging.getLogger("weir")

#: How long the program has to make the network's namespaces, and to take them down.
_LIMIT_S = 60.0


class Network:
    """Switches, hosts and links. What is left out is chosen: datapath ids and addresses by their
    place, ports by the lowest free number.

    Each method gives the name back, so that it may be kept: ``s1 = network.switch("s1")``.
    """

    def __init__(self) -> None:
        self._switches: List[Dict[str, Any]] = []
        self._hosts: List[Dict[str, Any]] = []
        self._links: List[List[str]] = []

    def switch(
        self,
        name: str,
        dpid: Union[int, str, None] = None,
        *,
        protocols: Union[str, Sequence[str], None] = None,
    ) -> str:
        """A switch. ``dpid`` is a number or hex digits, ``protocols`` the OpenFlow versions that it
        speaks, ``"OpenFlow10"`` or ``"OpenFlow13"``; both by default."""
        given = protocols.split(",") if isinstance(protocols, str) else list(protocols or [])
        self._switches.append({"name": name, "dpid": dpid, "protocols": given})
        return name

    def host(
        self,
        name: str,
        ip: Optional[str] = None,
        *,
        mac: Optional[str] = None,
        gateway: Optional[str] = None,
    ) -> str:
        """A host. ``ip`` is an IPv4 address, ``"10.0.0.1/16"`` or ``"10.0.0.1"`` for 24 bits of
        network; ``gateway`` is where it sends what is for other networks."""
        self._hosts.append({"name": name, "ip": ip, "mac": mac, "gateway": gateway})
        return name

    def link(self, one: str, other: str) -> None:
        """A link between two switches, or a switch and a host. ``"s1:3"`` is port 3 of s1."""
        self._links.append([one, other])

    def description(self) -> Dict[str, Any]:
        """The network as ``weir net up`` reads it."""
        return {"switch": self._switches, "host": self._hosts, "link": self._links}


def of_module(module: Optional[ModuleType]) -> Network:
    """The network that a module describes.

    Raises :class:`weir.WeirError` when there is none, or more than one.
    """
    values = vars(module).values() if module is not None else ()
    found = list({id(value): value for value in values if isinstance(value, Network)}.values())
    if len(found) == 1:
        return found[0]
    if found:
        raise WeirError(f"--network: the file has {len(found)} networks; give weir.run one of them")
    raise WeirError("--network: the file describes none; write `network = weir.Network()` in it")


class Keeper:
    """The program that makes a network and keeps it, as long as this one lives."""

    def __init__(self, network: Network, name: str) -> None:
        """Makes namespaces, hosts and links; the switches come when a controller listens.

        Raises :class:`weir.WeirError`, after the program has said on standard error what is wrong.
        """
        try:
            text = json.dumps(network.description())
        except (TypeError, ValueError) as error:
            raise WeirError(f"--network: {error}") from error
        command = [_program(), "net", "up", "-", "--name", _safe(name), "--json"]
        try:
            self._process = subprocess.Popen(
                [*command, "--end-with-input"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                # Ctrl-C is for this program, which ends that one.
                start_new_session=True,
            )
        except OSError as error:
            raise WeirError(f"--network: {command[0]}: {error.strerror}") from error
        assert self._process.stdin is not None and self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(text.encode() + b"\n")
            self._process.stdin.flush()
        try:
            made = self._process.stdout.readline()
        except BaseException:
            self.end()
            raise
        if not made:
            self.end()
            raise WeirError("--network: the network is not made")
        event = json.loads(made)
        #: The network's name, for ``weir net --name``.
        self.name: str = event["name"]
        #: Where the switches look for the controller.
        self.listen: str = f"punix:{event['controller']}"
        for left in event["cleaned"]:
            log.info("removed what a killed run has left: network %s", left)

    def watch(self, loop: asyncio.AbstractEventLoop, ended: Callable[[], None]) -> None:
        """Logs when the switches are there, and calls ``ended`` when the program ends by itself."""
        stdout = self._process.stdout
        assert stdout is not None

        def readable() -> None:
            line = os.read(stdout.fileno(), 65536)
            if not line:
                loop.remove_reader(stdout.fileno())
                log.error("network %s has ended", self.name)
                ended()
            else:
                log.info("network %s is there: weir net list", self.name)

        loop.add_reader(stdout.fileno(), readable)

    def unwatch(self, loop: asyncio.AbstractEventLoop) -> None:
        """The loop ends."""
        assert self._process.stdout is not None
        loop.remove_reader(self._process.stdout.fileno())

    def end(self) -> None:
        """Takes the network down; comes back when it is gone."""
        assert self._process.stdin is not None and self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(_LIMIT_S)
        except BaseException:
            # Its namespaces and programs go with it; its folder, the next run removes.
            self._process.kill()
            self._process.wait()
            raise
        finally:
            self._process.stdout.close()


def _program() -> str:
    found = os.environ.get("WEIR") or shutil.which("weir")
    if not found:
        raise WeirError("--network needs the program weir in PATH, or named by WEIR")
    return found


def _safe(name: str) -> str:
    """A file's name as one of a network."""
    kept = "".join(c if c.isascii() and c.isalnum() else "-" for c in name)[:32].strip("-")
    return kept or "net"


def module_of(value: object) -> Optional[ModuleType]:
    """The module in which the class of a value, or a class, stands."""
    owner = value if isinstance(value, type) else type(value)
    return sys.modules.get(owner.__module__)
