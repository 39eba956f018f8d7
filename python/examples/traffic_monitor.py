"""A traffic monitor beside a hub: prints what each port carries, every ten seconds."""

import weir


class Hub(weir.App):
    def switch_ready(self, sw: weir.Switch) -> None:
        sw.miss_to_controller()

    def packet_in(self, sw: weir.Switch, pkt: weir.PacketIn) -> None:
        if not pkt.is_link_local:
            sw.flood(pkt)


class Monitor(weir.App):
    def started(self) -> None:
        self.controller.call_every(10, self.ask_all)

    async def ask_all(self) -> None:
        for sw in self.controller.switches():
            try:
                for port in await sw.port_stats():
                    print(f"{sw.dpid:016x}:{port.port_no} {port.rx_packets} in", flush=True)
            except weir.WeirError as error:
                print(f"{sw.dpid:016x}: {error}", flush=True)
