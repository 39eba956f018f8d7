"""A hub and a learning switch on os-ken, as its users write them, for OpenFlow 1.0 and 1.3.

usage: python3 weir_lab_osken.py hub|learning-switch ADDRESS PORT 1.0|1.3

os-ken has no command of its own since version 4, so this starts the application manager itself.
"""
import sys

from os_ken.base.app_manager import AppManager, OSKenApp
from os_ken.controller import ofp_event
from os_ken.controller.handler import CONFIG_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.ofproto import ofproto_v1_0, ofproto_v1_3

KIND, ADDRESS, PORT, VERSION = (sys.argv[1:] + [None] * 4)[:4]


class Lab(OSKenApp):
    """Floods every packet-in; as a learning switch, installs an entry once it knows the port."""

    OFP_VERSIONS = [ofproto_v1_0.OFP_VERSION if VERSION == "1.0" else ofproto_v1_3.OFP_VERSION]

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.ports = {}

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def features(self, event):
        datapath = event.msg.datapath
        ofproto, parser = datapath.ofproto, datapath.ofproto_parser
        datapath.send_msg(parser.OFPSetConfig(datapath, ofproto.OFPC_FRAG_NORMAL, 0xFFFF))
        if ofproto.OFP_VERSION == ofproto_v1_0.OFP_VERSION:
            return
        # OpenFlow 1.3 drops what matches nothing: a table-miss flow entry sends it up whole.
        actions = [parser.OFPActionOutput(ofproto.OFPP_CONTROLLER, ofproto.OFPCML_NO_BUFFER)]
        apply = parser.OFPInstructionActions(ofproto.OFPIT_APPLY_ACTIONS, actions)
        datapath.send_msg(parser.OFPFlowMod(
            datapath=datapath, priority=0, match=parser.OFPMatch(), instructions=[apply]))

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def packet_in(self, event):
        message = event.msg
        datapath = message.datapath
        ofproto, parser = datapath.ofproto, datapath.ofproto_parser
        old = ofproto.OFP_VERSION == ofproto_v1_0.OFP_VERSION
        in_port = message.in_port if old else message.match["in_port"]
        out_port = ofproto.OFPP_FLOOD
        if KIND == "learning-switch":
            out_port = self.learn(message, in_port, old)
        buffered = message.buffer_id != ofproto.OFP_NO_BUFFER
        datapath.send_msg(parser.OFPPacketOut(
            datapath=datapath, buffer_id=message.buffer_id, in_port=in_port,
            actions=[parser.OFPActionOutput(out_port)],
            data=None if buffered else message.data))

    def learn(self, message, in_port, old):
        datapath = message.datapath
        ofproto, parser = datapath.ofproto, datapath.ofproto_parser
        destination, source = message.data[0:6], message.data[6:12]
        known = self.ports.setdefault(datapath.id, {})
        known[source] = in_port
        out_port = known.get(destination)
        if out_port is None:
            return ofproto.OFPP_FLOOD
        actions = [parser.OFPActionOutput(out_port)]
        if old:
            match = parser.OFPMatch(in_port=in_port, dl_src=source, dl_dst=destination)
            entry = parser.OFPFlowMod(
                datapath=datapath, match=match, command=ofproto.OFPFC_ADD,
                priority=ofproto.OFP_DEFAULT_PRIORITY, idle_timeout=60, actions=actions)
        else:
            match = parser.OFPMatch(in_port=in_port, eth_src=mac(source), eth_dst=mac(destination))
            apply = parser.OFPInstructionActions(ofproto.OFPIT_APPLY_ACTIONS, actions)
            entry = parser.OFPFlowMod(
                datapath=datapath, match=match, priority=1, idle_timeout=60, instructions=[apply])
        datapath.send_msg(entry)
        return out_port


def mac(octets):
    return ":".join("%02x" % octet for octet in octets)


def main():
    from os_ken import cfg
    from os_ken.controller import controller  # noqa: F401  registers the ofp-* options

    if KIND not in ("hub", "learning-switch") or VERSION not in ("1.0", "1.3"):
        sys.exit(__doc__)
    options = ["--ofp-listen-host", ADDRESS, "--ofp-tcp-listen-port", PORT]
    cfg.CONF(args=options, project="os_ken", prog="weir_lab_osken", default_config_files=[])
    AppManager.run_apps(["os_ken.controller.ofp_handler", "weir_lab_osken"])


if __name__ == "__main__":
    main()
