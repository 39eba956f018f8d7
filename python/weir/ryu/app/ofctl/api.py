"""``ryu.app.ofctl.api``: messages whose answers are waited for.

The thread of an app that waits here handles no other event of that app; the answers come past its
queue.
"""

from __future__ import annotations

from typing import Any

from weir.errors import NotConnected
from weir.ryu.app.ofctl import exception
from weir.ryu.base.app_manager import lookup_service_brick


def get_datapath(app: Any, dpid: Any = None) -> Any:
    """The switch of a datapath id, or ``None``; without one all switches."""
    handler: Any = lookup_service_brick("ofp_event")
    if dpid is None:
        return list(handler.datapaths.values())
    return handler.datapaths.get(dpid)


def send_msg(app: Any, msg: Any, reply_cls: Any = None, reply_multi: bool = False) -> Any:
    """Sends a message with a barrier behind it, and waits; its answer, or all of them as a list.

    Raises what :mod:`ryu.app.ofctl.exception` has.
    """
    try:
        answers = msg.datapath.ask(msg)
    except NotConnected:
        raise exception.InvalidDatapath(result=msg.datapath.id) from None
    errors = [answer for answer in answers if type(answer).__name__ == "OFPErrorMsg"]
    if errors:
        raise exception.OFError(result=errors)
    if reply_cls is not None:
        answers = [answer for answer in answers if isinstance(answer, reply_cls)]
    if reply_multi:
        return answers
    if reply_cls is None or not answers:
        return None
    if len(answers) > 1:
        raise exception.UnexpectedMultiReply(result=answers)
    return answers[0]
