"""``ryu.flags``: the options of Ryu's own modules that its apps read."""

from __future__ import annotations

from weir.ryu.cfg import CONF, BoolOpt, FloatOpt, IntOpt, ListOpt, StrOpt

CONF.register_cli_opts(
    [
        BoolOpt("observe-links", default=False, help="observe link discovery events"),
        BoolOpt("install-lldp-flow", default=True, help="install the flow entry for LLDP"),
        BoolOpt("explicit-drop", default=True, help="drop LLDP that comes from a host"),
        StrOpt("ofp-listen-host", default="", help="address to listen at"),
        IntOpt("ofp-tcp-listen-port", default=None, help="port of plain connections"),
        IntOpt("ofp-ssl-listen-port", default=None, help="port of connections by TLS"),
        ListOpt("ofp-switch-address-list", default=[], help="switches to connect to"),
        IntOpt("ofp-switch-connect-interval", default=1, help="seconds between attempts"),
        StrOpt("ctl-privkey", default=None, help="the controller's private key"),
        StrOpt("ctl-cert", default=None, help="the controller's certificate"),
        StrOpt("ca-certs", default=None, help="the certificate of the switches' CA"),
        StrOpt("wsapi-host", default="", help="address of the web server"),
        IntOpt("wsapi-port", default=8080, help="port of the web server"),
    ]
)
CONF.register_opts(
    [
        FloatOpt("socket-timeout", default=5.0),
        FloatOpt("echo-request-interval", default=15.0),
        IntOpt("maximum-unreplied-echo-requests", default=0),
    ]
)
