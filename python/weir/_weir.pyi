"""The compiled part of the package.

Classes with arguments are written by hand; the part after the line of dashes is made from the rows
of the compiled part. ``test_stub.py`` compares both with what runs, and writes the made part anew
where the environment has ``WEIR_RENEW``.
"""

from asyncio import Future
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Protocol, Sequence, Tuple
from typing import Awaitable, TypeVar, Union, final

from weir.topology import Host, Link, SwitchPort

_T = TypeVar("_T")

#: A value of a match field; the pair is (value, mask).
_Single = Union[int, str, bytes, IPv4Address, IPv6Address]
_Value = Union[_Single, Tuple[_Single, _Single], bool]
_Match = Union[str, "Match", Mapping[str, _Value]]
_Actions = Union[str, "Action", "Instruction", Sequence[Union[str, "Action", "Instruction"]]]
_PortNo = Union[int, str]
_Flags = Union[int, str, Iterable[str]]

#: Kind, switch, and value.
Batch = List[Tuple[int, Any, Any]]

#: A handler's result: nothing, or that of an ``async def``.
Done = Union[None, Awaitable[None]]

#: The names of the handlers, by the numbers of their events.
EVENTS: Tuple[str, ...]

def error_names() -> List[str]: ...
def made_stub() -> str: ...
@final
class Match:
    """What packets must show: ``Match("in_port=1,ip")`` or ``Match(in_port=1, eth_type=0x800)``."""

    def __new__(cls, text: Optional[_Match] = None, /, **fields: _Value) -> Match: ...
    def __len__(self) -> int: ...
    def __contains__(self, name: str) -> bool: ...
    def __getitem__(self, name: str) -> Union[int, str]: ...
    def __iter__(self) -> Iterator[str]: ...
    def __hash__(self) -> int: ...
    def get(self, name: str, default: Optional[_T] = None) -> Union[int, str, _T, None]:
        """The value of a field, or `default` where packets may have any."""
    def keys(self) -> List[str]:
        """The names of the fields."""
    def covers(self, other: Match) -> bool:
        """Whether every packet that meets `other` meets this match too."""

@final
class Action:
    """Actions: ``Action("dec_ttl,output:2")``."""

    def __new__(cls, text: str) -> Action: ...
    def __hash__(self) -> int: ...

@final
class Instruction:
    """Instructions: ``Instruction("goto_table:1")``."""

    def __new__(cls, text: str) -> Instruction: ...
    def __hash__(self) -> int: ...

@final
class Frame:
    """A packet in the making; each method gives a new one."""

    def __new__(cls, dst: str, src: str) -> Frame: ...
    def vlan(self, vid: int, pcp: int = 0) -> Frame:
        """Adds a VLAN tag, with the priority `pcp`."""
    def ether_type(self, ether_type: int) -> Frame:
        """Sets the EtherType of the payload, where no header says it."""
    def arp(self, op: int, sha: str, spa: str, tha: str, tpa: str) -> Frame:
        """Adds ARP: `op` 1 asks, 2 answers; `sha` and `spa` are the sender's addresses, `tha` and
        `tpa` the target's."""
    def ipv4(
        self, src: str, dst: str, *, ttl: int = 64, dscp: int = 0, proto: Optional[int] = None
    ) -> Frame:
        """Adds an IPv4 header; `proto` is that of the header behind it, unless it is given."""
    def ipv6(
        self, src: str, dst: str, *, hop_limit: int = 64, proto: Optional[int] = None
    ) -> Frame:
        """Adds an IPv6 header; `proto` is that of the header behind it, unless it is given."""
    def udp(self, src: int, dst: int) -> Frame:
        """Adds a UDP header."""
    def tcp(self, src: int, dst: int, *, flags: int = 2, seq: int = 0, ack: int = 0) -> Frame:
        """Adds a TCP header; `flags` are its bits, FIN lowest: 2 is a SYN."""
    def echo_request(self, id: int, seq: int) -> Frame:
        """Adds an echo request, of the ICMP of the IP header before it."""
    def echo_reply(self, id: int, seq: int) -> Frame:
        """Adds an echo reply, of the ICMP of the IP header before it."""
    def payload(self, data: bytes) -> Frame:
        """Adds the bytes behind all headers."""
    def build(self) -> bytes:
        """The bytes of the packet, without FCS."""

_Done = TypeVar("_Done", covariant=True)

class _Verbs(Protocol[_Done]):
    """The verbs that change a switch."""

    def flood(self, packet: PacketIn) -> _Done:
        """Sends the packet of a packet-in to all ports but the one it came in by."""
    def forward(self, packet: PacketIn, port: _PortNo) -> _Done:
        """Sends the packet of a packet-in to a port."""
    def packet_out(
        self,
        packet: Union[PacketIn, bytes],
        *,
        actions: _Actions,
        in_port: Optional[_PortNo] = None,
    ) -> _Done:
        """Sends a packet: that of a packet-in, or any bytes."""
    def add_flow(
        self,
        flow: Optional[str] = None,
        /,
        *,
        match: Optional[_Match] = None,
        actions: Optional[_Actions] = None,
        priority: Optional[int] = None,
        table_id: Optional[int] = None,
        cookie: Optional[int] = None,
        idle_timeout: Optional[int] = None,
        hard_timeout: Optional[int] = None,
        flags: Optional[_Flags] = None,
        buffer_id: Union[int, PacketIn, None] = None,
        **fields: _Value,
    ) -> _Done:
        """Adds a flow entry, replacing one of equal match and priority."""
    def add_flows(self, flows: Iterable[str]) -> _Done:
        """Adds flow entries, each a text."""
    def modify_flows(
        self,
        flow: Optional[str] = None,
        /,
        *,
        match: Optional[_Match] = None,
        actions: Optional[_Actions] = None,
        priority: Optional[int] = None,
        table_id: Optional[int] = None,
        cookie: Optional[int] = None,
        cookie_mask: Optional[int] = None,
        strict: bool = False,
        **fields: _Value,
    ) -> _Done:
        """Changes the instructions of the entries that the match covers; `strict`: of the one entry
        of equal match and priority."""
    def delete_flows(
        self,
        flow: Optional[str] = None,
        /,
        *,
        match: Optional[_Match] = None,
        priority: Optional[int] = None,
        table_id: Optional[int] = None,
        cookie: Optional[int] = None,
        cookie_mask: Optional[int] = None,
        out_port: Optional[_PortNo] = None,
        out_group: Optional[int] = None,
        strict: bool = False,
        **fields: _Value,
    ) -> _Done:
        """Deletes the entries that the match covers, in all tables if none is given; `strict`: the
        one entry of equal match and priority."""
    def clear_flows(self) -> _Done:
        """Deletes every flow entry, of any controller."""
    def miss_to_controller(self) -> _Done:
        """Makes packets that no flow entry matches come to the controller whole: by the table-miss
        entry of table 0 where the version has one."""
    def add_group(self, group: str) -> _Done:
        """Adds a group: `"group_id=1,type=select,bucket=output:1,bucket=output:2"`."""
    def modify_group(self, group: str) -> _Done:
        """Changes a group."""
    def delete_group(self, group_id: Optional[int] = None) -> _Done:
        """Deletes a group, and the flow entries that use it; without a number all groups."""
    def add_meter(self, meter: str) -> _Done:
        """Adds a meter: `"meter=1,kbps,band=type=drop,rate=1000"`."""
    def modify_meter(self, meter: str) -> _Done:
        """Changes a meter."""
    def delete_meter(self, meter_id: Optional[int] = None) -> _Done:
        """Deletes a meter, and the flow entries that use it; without a number all meters."""
    def set_port(
        self,
        port: _PortNo,
        *,
        up: Optional[bool] = None,
        flood: Optional[bool] = None,
        receive: Optional[bool] = None,
        forward: Optional[bool] = None,
        packet_in: Optional[bool] = None,
    ) -> _Done:
        """Takes a port up or down, or lets it flood or not."""
    def set_config(self, *, fragments: str = "normal", miss_send_len: int = 0xFFFF) -> _Done:
        """Sets how fragments are treated (`"normal"`, `"drop"` or `"reassemble"`) and how many bytes
        of a packet come in a packet-in that no action asked for."""

class Switch(_Verbs[None]):
    """A switch: what is known of it, and the verbs that send."""

    def _send(self, bytes: bytes) -> None:
        """Sends a message as it is on the wire."""
    def _encode(self, event: object) -> bytes:
        """An event's message as it is on the wire."""
    def _greetings(self) -> List[bytes]:
        """The answers by which the switch has become ready, as they are on the wire: its features,
        and of OpenFlow 1.3 its ports, in parts."""
    @property
    def dpid(self) -> int:
        """Its datapath id."""
    @property
    def version(self) -> str:
        """The version spoken with it, such as `"OpenFlow13"`."""
    @property
    def is_connected(self) -> bool:
        """Whether the connection is still there."""
    @property
    def ports(self) -> Dict[int, Port]:
        """Its ports by number, as they are now."""
    @property
    def n_tables(self) -> int:
        """Its flow tables."""
    @property
    def n_buffers(self) -> int:
        """Packets that it can keep."""
    @property
    def capabilities(self) -> int:
        """The bits of `OFPC_*`."""
    @property
    def checked(self) -> _Verbs[Future[None]]:
        """The same verbs, but each gives a future that ends when the switch has done it, or with the
        exception of its error."""
    def stop(self) -> None:
        """Keeps the event that is being handled from the apps behind this one."""
    def _take_stop(self) -> bool: ...
    def barrier(self) -> Future[None]:
        """Waits until the switch has done what was sent to it before."""
    def echo(self, data: bytes = b"") -> Future[bytes]:
        """Asks whether the switch is there; the bytes come back."""
    def flow_stats(
        self,
        flow: Optional[str] = None,
        /,
        *,
        match: Optional[_Match] = None,
        table_id: Optional[int] = None,
        cookie: Optional[int] = None,
        cookie_mask: Optional[int] = None,
        out_port: Optional[_PortNo] = None,
        out_group: Optional[int] = None,
        **fields: _Value,
    ) -> Future[List[FlowStats]]:
        """The flow entries that the match covers, of all tables if none is given."""
    def aggregate_stats(
        self,
        flow: Optional[str] = None,
        /,
        *,
        match: Optional[_Match] = None,
        table_id: Optional[int] = None,
        cookie: Optional[int] = None,
        cookie_mask: Optional[int] = None,
        out_port: Optional[_PortNo] = None,
        out_group: Optional[int] = None,
        **fields: _Value,
    ) -> Future[AggregateStats]:
        """The sums over the flow entries that the match covers."""
    def table_stats(self) -> Future[List[TableStats]]:
        """Counters of all tables."""
    def table_features(self) -> Future[Message]:
        """The features of the tables, as a message."""
    def port_stats(self, port: Optional[_PortNo] = None) -> Future[List[PortStats]]:
        """Counters of a port, or of all."""
    def port_desc(self) -> Future[List[Port]]:
        """The ports as the switch describes them."""
    def queue_stats(
        self, port: Optional[_PortNo] = None, queue_id: Optional[int] = None
    ) -> Future[List[QueueStats]]:
        """Counters of queues."""
    def group_stats(self, group_id: Optional[int] = None) -> Future[List[GroupStats]]:
        """Counters of a group, or of all."""
    def group_desc(self) -> Future[List[GroupDesc]]:
        """All groups."""
    def group_features(self) -> Future[GroupFeatures]:
        """Capabilities of groups."""
    def meter_stats(self, meter_id: Optional[int] = None) -> Future[List[MeterStats]]:
        """Counters of a meter, or of all."""
    def meter_config(self, meter_id: Optional[int] = None) -> Future[List[MeterConfig]]:
        """A meter, or all."""
    def meter_features(self) -> Future[MeterFeatures]:
        """Capabilities of meters."""
    def desc(self) -> Future[SwitchDesc]:
        """The switch's description."""
    def get_config(self) -> Future[SwitchConfig]:
        """Settings of the switch."""
    def role(self, role: str = "nochange", generation_id: int = 0) -> Future[Role]:
        """Asks for a role: `"nochange"`, `"equal"`, `"master"` or `"slave"`; gives the role that the
        controller has then."""

@final
class Core:
    def __new__(
        cls,
        *,
        listen: List[str],
        connect: List[str],
        protocols: str = "",
        shards: int = 1,
        tls: Optional[Tuple[str, str, str]] = None,
        check_peer_name: bool = False,
        probe_interval_s: float = 5.0,
        stats_interval_s: Optional[float] = None,
        debug: bool = False,
        discover: bool = False,
        rest: Optional[str] = None,
        rest_token_file: Optional[str] = None,
        metrics: Optional[str] = None,
        routes: List[Tuple[str, str, str]] = ...,
    ) -> Core: ...
    def start(self) -> List[str]:
        """Serves switches from now on; comes back once they can connect."""
    def stop(self) -> None:
        """Serves no switch any more."""
    def fileno(self) -> int:
        """The descriptor that is readable while events wait."""
    def set_wants(self, wants: List[bool]) -> None:
        """Sets the kinds of events that have a handler."""
    def take(self, limit: int) -> Batch:
        """Up to `limit` events: kind, switch, and value. Packet-ins of one switch in a
        row are one item. What is sent is gathered until [`Core::flush`]."""
    def begin(self) -> None:
        """The calling thread works on a batch from now until it calls [`Core::flush`]."""
    def xids(self) -> Tuple[int, int]:
        """The first xid by which answers come to the apps here, and the number of them."""
    def flush(self) -> None:
        """Sends what handlers have sent since [`Core::take`]."""
    def switches(self) -> List[Switch]:
        """The switches that are ready."""
    def switch(self, dpid: int) -> Optional[Switch]:
        """The switch of a datapath id, if it is ready."""
    def links(self) -> List[Tuple[int, int, int, int]]:
        """The links that are known."""
    def hosts(self) -> List[Tuple[str, Optional[int], List[str], List[str], int, int]]:
        """The hosts that are known."""
    def stats(self) -> Dict[str, int]:
        """Counts since the start."""

@final
class WebRequest:
    @property
    def parts(self) -> Tuple[str, str, str, bytes]:
        """Method, path, the part behind the question mark, and body."""
    def answer(self, status: int, content_type: str, body: bytes) -> None:
        """Answers it, once; its client may have left."""

@final
class TestSwitch:
    def __new__(
        cls, dpid: int = 1, *, ports: int = 4, version: str = "OpenFlow13"
    ) -> TestSwitch: ...
    @property
    def sw(self) -> Switch:
        """The object of the apps."""
    def take_sent(self) -> List[Message]:
        """Takes the messages that were sent since the last call."""
    def take_answers(self) -> List[Tuple[Future[Any], bool, Any]]:
        """Takes the answers to the questions since the last call: future, whether there is an answer,
        and the answer or the exception."""
    def refuse_next(self, name: str) -> None:
        """The next question is refused with this error."""
    def end(self) -> None:
        """The connection is over."""
    def packet_in(
        self,
        data: bytes,
        in_port: int = 1,
        *,
        reason: str = "no_match",
        table_id: int = 0,
        cookie: int = ...,
        buffer_id: Optional[int] = None,
        total_len: Optional[int] = None,
    ) -> PacketIn:
        """A packet-in."""
    def port_status(
        self, number: int, reason: str = "modify", *, up: bool = True
    ) -> PortStatus:
        """A port has come, gone or changed: `"add"`, `"delete"` or `"modify"`."""
    def flow_removed(
        self,
        match: Optional[_Match] = None,
        *,
        reason: str = "idle",
        priority: int = 0x8000,
        cookie: int = 0,
        table_id: int = 0,
        packet_count: int = 0,
        byte_count: int = 0,
        **fields: _Value,
    ) -> FlowRemoved:
        """A flow entry is gone."""
    def change_role(
        self, role: str, generation_id: Optional[int] = None, *, reason: str = "master_request"
    ) -> None:
        """The role is another: `"equal"`, `"master"` or `"slave"`."""
    def take_role_changes(self) -> List[RoleChange]:
        """The changes of the role since the last call."""
    def message(self, data: bytes) -> Tuple[int, Message]:
        """A message as it is on the wire, as the number of its event and the event's value; not one
        that a method above makes."""
    def error(self, name: str) -> SwitchError:
        """An error about a message for which nobody waits."""

# ------------------------------------------------------------------------------
class Handlers:
    """The handlers of events, all empty here."""

    def switch_ready(self, sw: "Switch") -> "Done":
        """A switch has sent its features and ports."""

    def switch_down(self, dpid: "int") -> "Done":
        """The connection of a switch that was ready is over."""

    def packet_in(self, sw: "Switch", pkt: "PacketIn") -> "Done":
        """A packet for the controller."""

    def port_status(self, sw: "Switch", status: "PortStatus") -> "Done":
        """A port has come, gone or changed; ``sw.ports`` says so already."""

    def flow_removed(self, sw: "Switch", removed: "FlowRemoved") -> "Done":
        """A flow entry is gone."""

    def error(self, sw: "Switch", error: "SwitchError") -> "Done":
        """The switch refuses a message for whose answer nobody waits."""

    def role_changed(self, sw: "Switch", change: "RoleChange") -> "Done":
        """This controller has another role at the switch; it begins with equal."""

    def message(self, sw: "Switch", message: "Message") -> "Done":
        """Any other message that nobody asked for."""

    def link_add(self, link: "Link") -> "Done":
        """A link between two switches was discovered; each direction comes alone."""

    def link_delete(self, link: "Link") -> "Done":
        """A link is gone."""

    def host_add(self, host: "Host") -> "Done":
        """A host was seen for the first time."""

    def host_move(self, host: "Host", before: "SwitchPort") -> "Done":
        """A host is at another port than before."""

    def host_change(self, host: "Host") -> "Done":
        """A host uses other addresses than before."""

    def host_delete(self, host: "Host") -> "Done":
        """A host has been silent for an hour, or its port is gone."""

@final
class Port:
    """A port of a switch."""

    @property
    def number(self) -> int:
        """The port's number."""
    @property
    def name(self) -> str:
        """Its name."""
    @property
    def hw_addr(self) -> str:
        """Its Ethernet address."""
    @property
    def is_up(self) -> bool:
        """Whether packets can pass: it is not taken down and its link is up."""
    @property
    def is_physical(self) -> bool:
        """Whether it is a port of its own, not one of the reserved ones such as `LOCAL`."""
    @property
    def config(self) -> int:
        """Its settings: the bits of `OFPPC_*`."""
    @property
    def state(self) -> int:
        """Its state: the bits of `OFPPS_*`."""
    @property
    def speed_kbps(self) -> int:
        """The current rate in kbit/s, where the version has it."""

@final
class PortStatus:
    """A port has come (``"add"``), gone (``"delete"``) or changed (``"modify"``)."""

    @property
    def reason(self) -> str:
        """`"add"`, `"delete"` or `"modify"`."""
    @property
    def port(self) -> Port:
        """The port as it is now, or was before it went."""

@final
class FlowRemoved:
    """A flow entry is gone: ``"idle"``, ``"hard"``, ``"delete"`` or ``"group_delete"``."""

    @property
    def reason(self) -> str:
        """`"idle"`, `"hard"`, `"delete"` or `"group_delete"`."""
    @property
    def match(self) -> Match:
        """The entry's match."""
    @property
    def priority(self) -> int:
        """The entry's priority."""
    @property
    def cookie(self) -> int:
        """The entry's cookie."""
    @property
    def table_id(self) -> int:
        """The entry's table."""
    @property
    def duration_s(self) -> float:
        """Seconds that it lived."""
    @property
    def idle_timeout(self) -> int:
        """Its idle timeout in seconds; 0 for none."""
    @property
    def hard_timeout(self) -> int:
        """Its hard timeout in seconds; 0 for none."""
    @property
    def packet_count(self) -> Optional[int]:
        """Packets; `None` where they were not counted."""
    @property
    def byte_count(self) -> Optional[int]:
        """Bytes; `None` where they were not counted."""

@final
class SwitchError:
    """The switch refuses a message for whose answer nobody waits."""

    @property
    def name(self) -> str:
        """The specification's name, such as `OFPFMFC_TABLE_FULL`; `"unknown"` for other numbers."""
    @property
    def advice(self) -> str:
        """Why it is refused, and what to change; `""` for other numbers."""
    @property
    def type(self) -> int:
        """The type's number."""
    @property
    def code(self) -> int:
        """The code's number."""
    @property
    def xid(self) -> int:
        """The xid of the message that is refused."""
    @property
    def data(self) -> bytes:
        """The beginning of that message."""
    def exception(self) -> Exception:
        """The exception that this would be, had an app waited."""

@final
class RoleChange:
    """This controller's role at a switch is another than before."""

    @property
    def role(self) -> str:
        """`"equal"`, `"master"` or `"slave"`."""
    @property
    def generation_id(self) -> Optional[int]:
        """The generation id that the switch has; `None` where none was used."""
    @property
    def reason(self) -> str:
        """`"requested"` where an app has asked for it, `"master_request"` where another
        controller has asked to be master; `"config"`, `"experimenter"` or `"unknown"` where a
        switch of OpenFlow 1.4 has sent such a reason."""

@final
class Message:
    """A message in general: what a test was sent, and what a switch sends unasked."""

    @property
    def name(self) -> str:
        """The specification's name, such as `OFPT_FLOW_MOD`."""
    @property
    def xid(self) -> Optional[int]:
        """The transaction number; `None` before it is sent."""
    @property
    def match(self) -> Optional[Match]:
        """The match of a flow-mod."""
    @property
    def actions(self) -> Optional[str]:
        """The actions or instructions of a flow-mod or packet-out, as text."""
    @property
    def data(self) -> Optional[bytes]:
        """The bytes of a packet-out's packet; empty where the switch keeps it."""
    def encode(self) -> bytes:
        """The message on the wire, with the xid zero where it has none."""

@final
class Ethernet:
    """Destination, source and EtherType of the frame; the type is that after VLAN tags."""

    @property
    def dst(self) -> str:
        """Destination address."""
    @property
    def src(self) -> str:
        """Source address."""
    @property
    def type(self) -> int:
        """EtherType."""

@final
class Vlan:
    """The outermost VLAN tag."""

    @property
    def vid(self) -> int:
        """VLAN id."""
    @property
    def pcp(self) -> int:
        """Priority."""
    @property
    def tags(self) -> int:
        """Tags there are."""

@final
class Arp:
    """ARP for IPv4 over Ethernet."""

    @property
    def op(self) -> int:
        """1 asks, 2 answers."""
    @property
    def sha(self) -> str:
        """Sender's Ethernet address."""
    @property
    def spa(self) -> str:
        """Sender's IPv4 address."""
    @property
    def tha(self) -> str:
        """Target's Ethernet address."""
    @property
    def tpa(self) -> str:
        """Target's IPv4 address."""

@final
class Ipv4:
    """IPv4."""

    @property
    def src(self) -> str:
        """Source address."""
    @property
    def dst(self) -> str:
        """Destination address."""
    @property
    def proto(self) -> int:
        """Protocol number."""
    @property
    def ttl(self) -> int:
        """Time to live."""
    @property
    def dscp(self) -> int:
        """Differentiated services code point."""
    @property
    def ecn(self) -> int:
        """Congestion notification."""
    @property
    def total_len(self) -> int:
        """Bytes of header and payload."""
    @property
    def is_fragment(self) -> bool:
        """Whether it is a fragment, the first one included."""

@final
class Ipv6:
    """IPv6."""

    @property
    def src(self) -> str:
        """Source address."""
    @property
    def dst(self) -> str:
        """Destination address."""
    @property
    def proto(self) -> Optional[int]:
        """Number of the header behind all extension headers, where they are whole."""
    @property
    def hop_limit(self) -> int:
        """Hop limit."""
    @property
    def flow_label(self) -> int:
        """Flow label."""
    @property
    def is_fragment(self) -> bool:
        """Whether it is a fragment, the first one included."""

@final
class Tcp:
    """TCP."""

    @property
    def src(self) -> int:
        """Source port."""
    @property
    def dst(self) -> int:
        """Destination port."""
    @property
    def seq(self) -> int:
        """Sequence number."""
    @property
    def ack(self) -> int:
        """Acknowledgement number."""
    @property
    def flags(self) -> int:
        """The flags' bits, FIN lowest."""
    @property
    def window(self) -> int:
        """Window."""

@final
class Udp:
    """UDP."""

    @property
    def src(self) -> int:
        """Source port."""
    @property
    def dst(self) -> int:
        """Destination port."""
    @property
    def length(self) -> int:
        """Bytes of header and payload."""

@final
class Sctp:
    """SCTP."""

    @property
    def src(self) -> int:
        """Source port."""
    @property
    def dst(self) -> int:
        """Destination port."""
    @property
    def verification_tag(self) -> int:
        """Verification tag."""

@final
class Icmpv4:
    """ICMP."""

    @property
    def type(self) -> int:
        """Type."""
    @property
    def code(self) -> int:
        """Code."""
    @property
    def id(self) -> int:
        """Identifier of an echo request or reply."""
    @property
    def seq(self) -> int:
        """Sequence number of an echo request or reply."""

@final
class Icmpv6:
    """ICMPv6."""

    @property
    def type(self) -> int:
        """Type."""
    @property
    def code(self) -> int:
        """Code."""
    @property
    def nd_target(self) -> Optional[str]:
        """Target of a neighbour solicitation or advertisement."""

@final
class PacketIn:
    """A packet for the controller. Headers that it does not have are ``None``."""

    @property
    def in_port(self) -> Optional[int]:
        """The port that the packet came in by; `None` where the switch gives none."""
    @property
    def data(self) -> bytes:
        """The packet, or its beginning."""
    @property
    def total_len(self) -> int:
        """Bytes of the whole packet."""
    @property
    def is_whole(self) -> bool:
        """Whether all of the packet is there."""
    @property
    def buffer_id(self) -> Optional[int]:
        """The number under which the switch keeps the packet, if it does."""
    @property
    def reason(self) -> str:
        """The reason: `"no_match"`, `"action"` or `"invalid_ttl"`."""
    @property
    def table_id(self) -> int:
        """The table of the flow entry that sent it."""
    @property
    def cookie(self) -> int:
        """The cookie of that entry; all ones where there is none."""
    @property
    def metadata(self) -> Match:
        """Fields that the switch gives beside the packet: its port, and those that the packet
        does not show."""
    @property
    def exact_match(self) -> Match:
        """The match that only packets with all these fields meet."""
    @property
    def eth_src(self) -> Optional[str]:
        """Ethernet source address."""
    @property
    def eth_dst(self) -> Optional[str]:
        """Ethernet destination address."""
    @property
    def eth_type(self) -> Optional[int]:
        """EtherType after VLAN tags."""
    @property
    def is_group(self) -> bool:
        """Whether the destination is a group: broadcast or multicast."""
    @property
    def is_link_local(self) -> bool:
        """Whether no switch forwards it: LLDP, and the addresses that IEEE 802.1D keeps to a link."""
    @property
    def is_lldp(self) -> bool:
        """Whether it is LLDP."""
    @property
    def is_vlan(self) -> bool:
        """Whether it has a VLAN tag."""
    @property
    def is_arp(self) -> bool:
        """Whether it is ARP for IPv4 over Ethernet."""
    @property
    def is_ipv4(self) -> bool:
        """Whether it is IPv4."""
    @property
    def is_ipv6(self) -> bool:
        """Whether it is IPv6."""
    @property
    def is_tcp(self) -> bool:
        """Whether it is TCP."""
    @property
    def is_udp(self) -> bool:
        """Whether it is UDP."""
    @property
    def is_sctp(self) -> bool:
        """Whether it is SCTP."""
    @property
    def is_icmpv4(self) -> bool:
        """Whether it is ICMP."""
    @property
    def is_icmpv6(self) -> bool:
        """Whether it is ICMPv6."""
    @property
    def eth(self) -> Optional[Ethernet]:
        """The Ethernet header."""
    @property
    def vlan(self) -> Optional[Vlan]:
        """The outermost VLAN tag."""
    @property
    def arp(self) -> Optional[Arp]:
        """The ARP packet."""
    @property
    def ipv4(self) -> Optional[Ipv4]:
        """The IPv4 header."""
    @property
    def ipv6(self) -> Optional[Ipv6]:
        """The IPv6 header."""
    @property
    def tcp(self) -> Optional[Tcp]:
        """The TCP header."""
    @property
    def udp(self) -> Optional[Udp]:
        """The UDP header."""
    @property
    def sctp(self) -> Optional[Sctp]:
        """The SCTP common header."""
    @property
    def icmpv4(self) -> Optional[Icmpv4]:
        """The ICMP header."""
    @property
    def icmpv6(self) -> Optional[Icmpv6]:
        """The ICMPv6 header."""
    def _match(self) -> bytes: ...

@final
class FlowStats:
    """A flow entry with its counters."""

    @property
    def table_id(self) -> int:
        """The table that it is in."""
    @property
    def priority(self) -> int:
        """Its priority: of the entries that match a packet the highest is used."""
    @property
    def match(self) -> Match:
        """Its match."""
    @property
    def actions(self) -> str:
        """Its actions, or its instructions, as `weir ctl` writes them."""
    @property
    def cookie(self) -> int:
        """The number that the controller has given it."""
    @property
    def idle_timeout(self) -> int:
        """Seconds without a packet after which it goes; 0 for never."""
    @property
    def hard_timeout(self) -> int:
        """Seconds after which it goes; 0 for never."""
    @property
    def flags(self) -> int:
        """The bits of `OFPFF_*` with which it was added."""
    @property
    def importance(self) -> int:
        """Its importance, which OpenFlow 1.4 has; the text of a flow entry sets it."""
    @property
    def packet_count(self) -> Optional[int]:
        """Packets that it has matched."""
    @property
    def byte_count(self) -> Optional[int]:
        """Their bytes."""
    @property
    def duration_s(self) -> float:
        """Seconds since it was added."""

@final
class AggregateStats:
    """Sums over flow entries."""

    @property
    def packet_count(self) -> Optional[int]:
        """Packets that they have matched."""
    @property
    def byte_count(self) -> Optional[int]:
        """Their bytes."""
    @property
    def flow_count(self) -> int:
        """The number of the entries."""

@final
class TableStats:
    """Counters of a table."""

    @property
    def table_id(self) -> int:
        """Its number."""
    @property
    def name(self) -> str:
        """Its name; empty since OpenFlow 1.3, which has it in the table features."""
    @property
    def max_entries(self) -> int:
        """Entries that it can have; 0 since OpenFlow 1.3, which has it in the table features."""
    @property
    def active_count(self) -> int:
        """Entries that it has."""
    @property
    def lookup_count(self) -> Optional[int]:
        """Packets that were looked up in it."""
    @property
    def matched_count(self) -> Optional[int]:
        """Packets of these that an entry has matched."""

@final
class PortStats:
    """Counters of a port."""

    @property
    def port_no(self) -> int:
        """Its number."""
    @property
    def rx_packets(self) -> Optional[int]:
        """Packets that it has received."""
    @property
    def tx_packets(self) -> Optional[int]:
        """Packets that it has sent."""
    @property
    def rx_bytes(self) -> Optional[int]:
        """Bytes that it has received."""
    @property
    def tx_bytes(self) -> Optional[int]:
        """Bytes that it has sent."""
    @property
    def rx_dropped(self) -> Optional[int]:
        """Packets that it has received and dropped."""
    @property
    def tx_dropped(self) -> Optional[int]:
        """Packets that were dropped in place of being sent."""
    @property
    def rx_errors(self) -> Optional[int]:
        """Receive errors, those below included."""
    @property
    def tx_errors(self) -> Optional[int]:
        """Send errors."""
    @property
    def rx_frame_err(self) -> Optional[int]:
        """Frames whose end was at no whole byte."""
    @property
    def rx_over_err(self) -> Optional[int]:
        """Packets that came faster than they were taken."""
    @property
    def rx_crc_err(self) -> Optional[int]:
        """Packets whose checksum was wrong."""
    @property
    def collisions(self) -> Optional[int]:
        """Collisions on a shared medium."""
    @property
    def duration_s(self) -> float:
        """Seconds since the port was there; 0 in OpenFlow 1.0."""

@final
class QueueStats:
    """Counters of a queue."""

    @property
    def port_no(self) -> int:
        """Its port."""
    @property
    def queue_id(self) -> int:
        """Its number."""
    @property
    def tx_packets(self) -> Optional[int]:
        """Packets that it has sent."""
    @property
    def tx_bytes(self) -> Optional[int]:
        """Bytes that it has sent."""
    @property
    def tx_errors(self) -> Optional[int]:
        """Packets that were dropped since the queue was full."""

@final
class BucketStats:
    """Counters of a group's bucket, or of a meter's band."""

    @property
    def packet_count(self) -> Optional[int]:
        """Packets that it has processed."""
    @property
    def byte_count(self) -> Optional[int]:
        """Their bytes."""

@final
class GroupStats:
    """Counters of a group."""

    @property
    def group_id(self) -> int:
        """Its number."""
    @property
    def ref_count(self) -> int:
        """Flow entries and groups that use it."""
    @property
    def packet_count(self) -> Optional[int]:
        """Packets that it has processed."""
    @property
    def byte_count(self) -> Optional[int]:
        """Their bytes."""
    @property
    def duration_s(self) -> float:
        """Seconds since it was added."""
    @property
    def buckets(self) -> List[BucketStats]:
        """The counters of its buckets, in their order."""

@final
class GroupDesc:
    """A group."""

    @property
    def group_id(self) -> int:
        """Its number."""
    @property
    def type(self) -> str:
        """`"all"`, `"select"`, `"indirect"` or `"fast_failover"`."""
    @property
    def buckets(self) -> List[str]:
        """The actions of each bucket, as text."""
    @property
    def text(self) -> str:
        """The group as `weir ctl` writes it."""

@final
class GroupFeatures:
    """Capabilities of groups."""

    @property
    def types(self) -> int:
        """Bit n: groups of type n."""
    @property
    def capabilities(self) -> int:
        """Abilities: the bits of `OFPGFC_*`."""
    @property
    def max_groups(self) -> List[int]:
        """The most groups of each type, by the type's number."""

@final
class MeterStats:
    """Counters of a meter."""

    @property
    def meter_id(self) -> int:
        """Its number."""
    @property
    def flow_count(self) -> int:
        """Flow entries that use it."""
    @property
    def packet_in_count(self) -> Optional[int]:
        """Packets that have come to it."""
    @property
    def byte_in_count(self) -> Optional[int]:
        """Their bytes."""
    @property
    def duration_s(self) -> float:
        """Seconds since it was added."""
    @property
    def bands(self) -> List[BucketStats]:
        """The counters of its bands, in their order."""

@final
class MeterConfig:
    """A meter."""

    @property
    def meter_id(self) -> int:
        """Its number."""
    @property
    def flags(self) -> int:
        """Its settings: the bits of `OFPMF_*`."""
    @property
    def text(self) -> str:
        """The meter as `weir ctl` writes it."""

@final
class MeterFeatures:
    """Capabilities of meters."""

    @property
    def max_meter(self) -> int:
        """The most meters."""
    @property
    def band_types(self) -> int:
        """Bit n: bands of type n."""
    @property
    def capabilities(self) -> int:
        """Abilities: the bits of `OFPMF_*` that it takes."""
    @property
    def max_bands(self) -> int:
        """The most bands of a meter."""

@final
class SwitchDesc:
    """A switch's description."""

    @property
    def mfr_desc(self) -> str:
        """Manufacturer."""
    @property
    def hw_desc(self) -> str:
        """Hardware."""
    @property
    def sw_desc(self) -> str:
        """Software."""
    @property
    def serial_num(self) -> str:
        """Serial number."""
    @property
    def dp_desc(self) -> str:
        """The datapath, for people."""

@final
class SwitchConfig:
    """Settings of a switch."""

    @property
    def flags(self) -> int:
        """Fragments: 0 normal, 1 drop, 2 reassemble."""
    @property
    def miss_send_len(self) -> int:
        """Bytes of a buffered packet in a packet-in that no action asked for."""

@final
class Role:
    """The role that a controller has at a switch."""

    @property
    def role(self) -> str:
        """`"equal"`, `"master"`, `"slave"` or `"nochange"`."""
    @property
    def generation_id(self) -> int:
        """The election's number; all ones before there was any."""
