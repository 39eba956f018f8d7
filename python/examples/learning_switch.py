"""The learning switch: flow entries for pairs of addresses; only first packets come here."""

from typing import Dict

import weir

#: Addresses kept of a switch; a flood of made-up addresses must not fill the memory.
ADDRESSES_MAX = 1 << 17


class LearningSwitch(weir.App):
    def __init__(self) -> None:
        self.places: Dict[int, Dict[str, int]] = {}

    def switch_ready(self, sw: weir.Switch) -> None:
        self.places[sw.dpid] = {}
        sw.clear_flows()
        sw.miss_to_controller()

    def switch_down(self, dpid: int) -> None:
        self.places.pop(dpid, None)

    def packet_in(self, sw: weir.Switch, pkt: weir.PacketIn) -> None:
        src, dst, in_port = pkt.eth_src, pkt.eth_dst, pkt.in_port
        if src is None or dst is None or in_port is None or pkt.is_link_local:
            return
        places = self.places[sw.dpid]
        if len(places) < ADDRESSES_MAX or src in places:
            before = places.get(src, in_port)
            places[src] = in_port
            if before != in_port:
                sw.delete_flows(eth_dst=src)
        port = places.get(dst)
        if port is None:
            sw.flood(pkt)
        elif port != in_port:
            sw.add_flow(
                in_port=in_port,
                eth_src=src,
                eth_dst=dst,
                actions=f"output:{port}",
                priority=1,
                idle_timeout=60,
            )
            sw.forward(pkt, port)

    def port_status(self, sw: weir.Switch, status: weir.PortStatus) -> None:
        if status.reason == "delete" or not status.port.is_up:
            gone = status.port.number
            places = self.places[sw.dpid]
            self.places[sw.dpid] = {mac: port for mac, port in places.items() if port != gone}
            sw.delete_flows(out_port=gone)


if __name__ == "__main__":
    weir.run(LearningSwitch)
