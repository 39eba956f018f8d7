//! Network namespaces: hosts, the switch, the controller, joined by veth.
//!
//! The namespaces have no name: descriptors of this process hold them, so that they are gone with
//! it whatever ends it, with every device in them. Rates are token buckets at each sending end
//! that count FCS, preamble and gap as an Ethernet does. Where a link is shaped, or the switch
//! takes no super-frames, the hosts' offloads are off: a frame leaves a host as it would cross a
//! cable. It must never touch a device of the namespace that it was started in.

use std::io;
use std::net::{IpAddr, Ipv4Addr};

use netdev::Port;
use netdev::sys::ethtool::Ethtool;
use netdev::sys::link::{VethEnd, VethPair};
use netdev::sys::qdisc::Tbf;

use crate::hosts::{HOST_DEVICE, NamespaceContext, host_address, other_hosts};
use crate::load::{LinkId, LinkSample};
use crate::rate::LinkRate;
use crate::settings::Settings;

/// The name of the switch's interface towards a host, which is counted from 0.
fn port_name(host: usize) -> String {
    format!("sw-h{}", host + 1)
}

const CONTROL_DEVICE: &str = "ctl0";
/// The switch's address on the link to its controller.
pub const SWITCH_CONTROL_IP: Ipv4Addr = Ipv4Addr::new(10, 255, 0, 1);

/// The controller's address.
pub const CONTROLLER_IP: Ipv4Addr = Ipv4Addr::new(10, 255, 0, 2);

/// Queue of a shaped link, in milliseconds of its rate.
const QUEUE_MS: u32 = 20;

/// The testbed; dropping it takes everything down.
#[derive(Debug)]
pub struct NetnsTestbed {
    /// At least one: host 1 is at the first, and all others are at the last.
    pub(crate) switches: Vec<NamespaceContext>,
    pub(crate) controller: NamespaceContext,
    /// At least two.
    pub(crate) hosts: Vec<NamespaceContext>,
    /// Rate of each host's link, both directions.
    pub port_rate: LinkRate,
    /// Rate of the link between switch and controller, both directions.
    control_rate: LinkRate,
    /// Whether the hosts' devices leave checksums and segmentation to others.
    has_offloads: bool,
    /// Whether host 1 and host 2 have one link, without any switch.
    is_wire: bool,
}

impl NetnsTestbed {
    /// Makes the testbed. Needs root, and a kernel that has veth and the token bucket. Where the
    /// switch takes super-frames and no link of the hosts is shaped, their offloads stay on. A wire
    /// joins two hosts without any switch.
    pub fn new(settings: &Settings, takes_super_frames: bool, is_wire: bool) -> io::Result<Self> {
        let make = |count| (0..count).map(|_| NamespaceContext::new()).collect::<Result<_, _>>();
        let port_rate = settings.port_rate();
        let bed = Self {
            hosts: make(if is_wire { 2 } else { settings.ports().max(2) })?,
            switches: make(settings.line().max(1))?,
            controller: NamespaceContext::new()?,
            port_rate,
            control_rate: settings.control_rate(),
            has_offloads: port_rate.0.is_none() && takes_super_frames,
            is_wire,
        };
        if is_wire {
            bed.link((&bed.hosts[0], host_end(0)), (&bed.hosts[1], host_end(1)))?;
        } else {
            let (first, last) = bed.ends();
            for (index, host) in bed.hosts.iter().enumerate() {
                let (switch, port) = (if index == 0 { first } else { last }, port_name(index));
                bed.link((switch, VethEnd::new(&port)), (host, host_end(index)))?;
            }
            let (near, far) = (port_name(1), port_name(0));
            for pair in bed.switches.windows(2) {
                bed.link((&pair[0], VethEnd::new(&near)), (&pair[1], VethEnd::new(&far)))?;
            }
        }
        for (index, host) in bed.hosts.iter().enumerate() {
            host.bring_host_up(host_address(index), other_hosts(index, bed.hosts.len()))?;
        }
        (0..bed.switches.len()).try_for_each(|place| bed.add_control_link(place))?;
        bed.wait_for_links()?;
        Ok(bed)
    }

    /// Waits until every device sends what it is given: some time after it is up.
    fn wait_for_links(&self) -> io::Result<()> {
        let contexts = self.hosts.iter().chain(&self.switches).chain([&self.controller]);
        for rtnl in contexts.map(|context| &context.rtnl) {
            for link in rtnl.links()? {
                rtnl.wait_until_running(link.index)?;
            }
        }
        Ok(())
    }

    /// The first switch of the line, and the last.
    fn ends(&self) -> (&NamespaceContext, &NamespaceContext) {
        (&self.switches[0], &self.switches[self.switches.len() - 1])
    }

    /// Joins two devices by a link as the hosts have it, and sets both up.
    fn link(
        &self,
        near: (&NamespaceContext, VethEnd<'_>),
        far: (&NamespaceContext, VethEnd<'_>),
    ) -> io::Result<()> {
        join(near, far, self.port_rate, self.has_offloads)?;
        near.0.rtnl.set_up(near.1.name, true)?;
        Ok(far.0.rtnl.set_up(far.1.name, true)?)
    }

    /// Joins a switch to the controller, which has one address for all, by a network of its own.
    fn add_control_link(&self, place: usize) -> io::Result<()> {
        let (switch, device) = (&self.switches[place], format!("ctl{place}"));
        let there = (&self.controller, VethEnd::new(&device));
        // Segments as on the line, where it is shaped: its counters then hold every header.
        let (rate, has_offloads) = (self.control_rate, self.control_rate.0.is_none());
        join((switch, VethEnd::new(CONTROL_DEVICE)), there, rate, has_offloads)?;
        let in_network = |ip: Ipv4Addr| Ipv4Addr::from_bits(ip.to_bits() | (place as u32) << 8);
        switch.bring_up(CONTROL_DEVICE, in_network(SWITCH_CONTROL_IP))?;
        self.controller.bring_up(&device, in_network(CONTROLLER_IP))?;
        if place > 0 {
            switch.rtnl.add_route(CONTROL_DEVICE, (IpAddr::V4(CONTROLLER_IP), 32), None)?;
        }
        Ok(())
    }

    /// The switch's devices: that of host 0 is port 1. None where the hosts are joined directly.
    pub fn ports(&self) -> impl Iterator<Item = String> {
        let hosts = if self.is_wire { 0 } else { self.hosts.len() };
        (0..hosts).map(port_name)
    }

    /// The device of a host, for frames as they are: the host's own kernel sees them too, and
    /// leaves alone what is not for its address.
    pub fn open_port(&self, host: usize) -> io::Result<Port> {
        let open = || netdev::open_text(&format!("af_packet:{HOST_DEVICE}"));
        self.hosts[host].ns.enter(open)?.map_err(io::Error::other)
    }

    /// Has the hosts' kernels answer nothing, whatever arrives: the lab itself is at every port.
    /// Frames for the hosts' addresses are another's then, and nobody resolves or pings an address.
    pub fn silence_hosts(&self) -> io::Result<()> {
        for (host, number) in self.hosts.iter().zip(1..) {
            host.rtnl.set_mac(HOST_DEVICE, [2, 0xff, 0xff, 0xff, 0xff, number])?;
            host.ns.enter(|| -> io::Result<()> {
                let ipv4 = "/proc/sys/net/ipv4";
                std::fs::write(format!("{ipv4}/conf/{HOST_DEVICE}/arp_ignore"), "8")?;
                std::fs::write(format!("{ipv4}/icmp_echo_ignore_all"), "1")
            })??;
        }
        Ok(())
    }

    /// Takes the link of a host down, or brings it up.
    pub fn set_link(&self, host: usize, is_up: bool) -> io::Result<()> {
        Ok(self.hosts[host].rtnl.set_up(HOST_DEVICE, is_up)?)
    }

    /// The counters of the links of host 1 and host 2 and of the control link.
    pub fn links(&self) -> Vec<LinkSample> {
        let ((first, second), (near, far)) = ((&self.hosts[0], &self.hosts[1]), self.ends());
        let (ports, control) = (self.port_rate.0, self.control_rate.0);
        // Of the sending end of each link.
        let sample = |id, context: &NamespaceContext, device: &str, rate_bps| {
            let stats = context.rtnl.link(device).map(|link| link.stats).unwrap_or_default();
            let drops = context.rtnl.root_qdisc(device).map_or(0, |qdisc| u64::from(qdisc.drops));
            LinkSample { id, rate_bps, bytes: stats.tx_bytes, packets: stats.tx_packets, drops }
        };
        let mut links = vec![
            sample(LinkId::Port1In, first, HOST_DEVICE, ports),
            sample(LinkId::Port2In, second, HOST_DEVICE, ports),
            sample(LinkId::ControlUp, near, CONTROL_DEVICE, control),
            sample(LinkId::ControlDown, &self.controller, CONTROL_DEVICE, control),
        ];
        if !self.is_wire {
            links.insert(1, sample(LinkId::Port1Out, near, &port_name(0), ports));
            links.insert(3, sample(LinkId::Port2Out, far, &port_name(1), ports));
        }
        links
    }

    /// Notes on the links for the reader of a report.
    pub fn notes(&self) -> Vec<String> {
        let read = || std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control");
        let tcp = self.hosts[0].ns.enter(read).flatten().unwrap_or_else(|error| error.to_string());
        vec![
            format!(
                "Hosts, switch and controller each have a network namespace; veth joins them. \
                 Shaped links are token buckets at both ends (bucket 1 ms, queue {QUEUE_MS} ms) \
                 that count FCS, preamble and gap as Ethernet does."
            ),
            format!(
                "Segmentation and checksum offloads are {} on the hosts' links, and off on the \
                 control link where it is shaped. Neighbours are entered by hand, IPv6 is off. \
                 TCP congestion control: {}.",
                match self.has_offloads {
                    false => "off",
                    true => "left as the kernel has them",
                },
                tcp.trim_end()
            ),
        ]
    }
}

/// Joins two devices by a link of that rate. Without offloads a frame leaves either as it would
/// cross a cable.
fn join(
    near: (&NamespaceContext, VethEnd<'_>),
    far: (&NamespaceContext, VethEnd<'_>),
    rate: LinkRate,
    has_offloads: bool,
) -> io::Result<()> {
    let pair = VethPair { here: near.1, there: far.1, there_in: Some(&far.0.ns) };
    near.0.rtnl.add_veth(&pair)?;
    for (context, VethEnd { name, .. }) in [near, far] {
        if !has_offloads {
            Ethtool::open_in(&context.ns)?.switch_off_offloads(name)?;
        }
        if let Some(rate_bps) = rate.0 {
            context.rtnl.set_tbf(name, &Tbf::ethernet(rate_bps, QUEUE_MS))?;
        }
    }
    Ok(())
}

/// The end of a link that is a host's.
fn host_end(host: usize) -> VethEnd<'static> {
    VethEnd { mac: Some(host_address(host).mac), ..VethEnd::new(HOST_DEVICE) }
}

#[cfg(test)]
mod tests {
    use super::NetnsTestbed;
    use crate::hosts::{HOST_DEVICE, HOSTS};
    use crate::load::LinkId::{ControlDown, ControlUp, Port1In, Port1Out, Port2In, Port2Out};
    use crate::settings::Settings;
    use netdev::sys::link::Rtnl;
    use std::net::UdpSocket;

    fn bed(port: &str, control: &str, is_wire: bool) -> NetnsTestbed {
        let [port_rate, control_rate] = [port, control].map(|text| Some(text.parse().unwrap()));
        let settings = Settings { port_rate, control_rate, ..Settings::default() };
        NetnsTestbed::new(&settings, false, is_wire).expect("needs root")
    }

    #[test]
    #[ignore = "needs root"]
    fn the_links_are_there_shaped_and_counted() {
        let bed = bed("100M", "none", false);
        let rtnl = Rtnl::open_in(&bed.switches[0].ns).unwrap();
        for port in bed.ports() {
            assert_eq!(rtnl.root_qdisc(&port).unwrap().kind, "tbf");
        }
        let links = bed.links();
        let (ports, control) = ([Port1In, Port1Out, Port2In, Port2Out], [ControlUp, ControlDown]);
        assert!(links.iter().map(|link| link.id).eq(ports.into_iter().chain(control)));
        assert_eq!(links[0].rate_bps, Some(100_000_000));
        assert_eq!(links[4].rate_bps, None);
        let sent = bed.hosts[0].ns.enter(|| {
            let socket = UdpSocket::bind((HOSTS[0].ip, 0)).unwrap();
            socket.send_to(&[0; 18], (HOSTS[1].ip, 9)).unwrap()
        });
        assert_eq!(sent.unwrap(), 18);
        assert_eq!(bed.links()[0].packets, 1);
    }

    #[test]
    #[ignore = "needs root"]
    fn hosts_that_are_joined_directly_reach_each_other() {
        let bed = bed("none", "none", true);
        assert_eq!(bed.ports().count(), 0);
        let open = |host: usize| {
            bed.hosts[host].ns.enter(|| UdpSocket::bind((HOSTS[host].ip, 5_000)).unwrap()).unwrap()
        };
        let (near, far) = (open(0), open(1));
        near.send_to(b"through", (HOSTS[1].ip, 5_000)).unwrap();
        far.set_read_timeout(Some(std::time::Duration::from_secs(30))).unwrap();
        assert_eq!(far.recv_from(&mut [0; 16]).unwrap().0, 7);
        assert_eq!(bed.links().len(), 4);
    }

    #[test]
    #[ignore = "needs root"]
    fn nothing_is_left_behind() {
        let bed = bed("none", "100M", false);
        let host = bed.hosts[1].ns.try_clone().unwrap();
        assert!(Rtnl::open_in(&host).unwrap().link(HOST_DEVICE).is_ok());
        drop(bed);
        // The other end of the pair went with the switch's namespace; that is asynchronous.
        let gone = programs::cancel::Cancel::default()
            .poll(std::time::Duration::from_secs(20), || {
                Rtnl::open_in(&host).unwrap().link(HOST_DEVICE).is_err()
            })
            .unwrap();
        assert!(gone);
    }
}
