"""The hub: every packet leaves by all ports but the one it came in by."""

import weir


class Hub(weir.App):
    def switch_ready(self, sw):
        sw.miss_to_controller()

    def packet_in(self, sw, pkt):
        sw.flood(pkt)


if __name__ == "__main__":
    weir.run(Hub)
