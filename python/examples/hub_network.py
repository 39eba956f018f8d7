"""A hub, and a network to run it on: two switches, three hosts.

weir run python/examples/hub_network.py --network      (as root), and in another terminal:
weir net ping-all
"""

import weir

network = weir.Network()
network.switch("s1", dpid=0x1)
network.switch("s2", dpid=0x2)
network.host("h1", ip="10.0.0.1")
network.host("h2", ip="10.0.0.2")
network.host("h3", ip="10.0.0.3")
network.link("s1", "h1")
network.link("s1", "h2")
network.link("s1", "s2")
network.link("s2", "h3")


class Hub(weir.App):
    def switch_ready(self, sw: weir.Switch) -> None:
        sw.miss_to_controller()

    def packet_in(self, sw: weir.Switch, pkt: weir.PacketIn) -> None:
        if not pkt.is_link_local:
            sw.flood(pkt)


if __name__ == "__main__":
    weir.run(Hub)
