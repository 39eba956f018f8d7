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
use netdev::sys::link::{VethEnd, VethPair};
use netdev::sys::netns::Namespace;
use netdev::sys::qdisc::Tbf;

use crate::hosts::{HOST_DEVICE, NamespaceContext, host_address, other_hosts};
use crate::load::{LinkId, LinkSample};
use crate::rate::LinkRate;

/// The name of the switch's interface towards a host, which is counted from 0.
pub fn port_name(host: usize) -> String {
    format!("sw-h{}", host + 1)
}

const CONTROL_DEVICE: &str = "ctl0";
/// The switch's address on the link to its controller.
pub const SWITCH_CONTROL_IP: Ipv4Addr = Ipv4Addr::new(10, 255, 0, 1);

/// The controller's address.
pub const CONTROLLER_IP: Ipv4Addr = Ipv4Addr::new(10, 255, 0, 2);

/// Queue of a shaped link, in milliseconds of its rate.
pub const QUEUE_MS: u32 = 20;

/// Shape of a testbed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetnsShape {
    /// Number of hosts, at least two.
    pub hosts: usize,
    /// Number of switches in a line, at least one: host 1 is at the first, and all others are at
    /// the last.
    pub line: usize,
    /// Rate of each host's link, both directions.
    pub port_rate: LinkRate,
    /// Rate of the link between switch and controller, both directions.
    pub control_rate: LinkRate,
    /// Whether the hosts' devices leave checksums and segmentation to others, as the kernel has
    /// it. Else a frame leaves a host as it would cross a cable.
    pub has_offloads: bool,
    /// Whether host 1 and host 2 have one link, without any switch: the limit, and the lab's own
    /// floor. Else each has a device of the switch at the far end of its link.
    pub is_wire: bool,
}

/// The testbed; dropping it takes everything down.
#[derive(Debug)]
pub struct NetnsTestbed {
    /// At least one.
    switches: Vec<NamespaceContext>,
    controller: NamespaceContext,
    hosts: Vec<NamespaceContext>,
    shape: NetnsShape,
}

impl NetnsTestbed {
    /// Makes the testbed. Needs root, and a kernel that has veth and the token bucket.
    pub fn new(shape: NetnsShape) -> io::Result<Self> {
        let make = |count| (0..count).map(|_| NamespaceContext::new()).collect::<Result<_, _>>();
        let bed = Self {
            hosts: make(shape.hosts.max(2))?,
            switches: make(shape.line.max(1))?,
            controller: NamespaceContext::new()?,
            shape,
        };
        if shape.is_wire {
            join((&bed.hosts[0], host_end(0)), (&bed.hosts[1], host_end(1)))?;
            [0, 1].into_iter().try_for_each(|host| bed.bring_host_up(host))?;
        } else {
            (0..bed.hosts.len()).try_for_each(|host| bed.add_host(host))?;
            bed.switches.windows(2).try_for_each(|pair| bed.join_switches(pair))?;
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

    /// Joins the second port of a switch to the first of the next.
    fn join_switches(&self, pair: &[NamespaceContext]) -> io::Result<()> {
        let (near, far) = (port_name(1), port_name(0));
        join((&pair[0], VethEnd::new(&near)), (&pair[1], VethEnd::new(&far)))?;
        self.bring_port_up(&pair[0], &near)?;
        self.bring_port_up(&pair[1], &far)
    }

    fn bring_port_up(&self, switch: &NamespaceContext, port: &str) -> io::Result<()> {
        if !self.shape.has_offloads {
            switch.offloads_off(port)?;
        }
        switch.bring_up(port, None)?;
        limit(switch, port, self.shape.port_rate)
    }

    fn add_host(&self, index: usize) -> io::Result<()> {
        let (host, port) = (&self.hosts[index], port_name(index));
        let switch = if index == 0 { self.ends().0 } else { self.ends().1 };
        join((switch, VethEnd::new(&port)), (host, host_end(index)))?;
        self.bring_port_up(switch, &port)?;
        self.bring_host_up(index)
    }

    fn bring_host_up(&self, index: usize) -> io::Result<()> {
        let host = &self.hosts[index];
        if !self.shape.has_offloads {
            host.offloads_off(HOST_DEVICE)?;
        }
        host.bring_host_up(host_address(index), other_hosts(index, self.hosts.len()))?;
        limit(host, HOST_DEVICE, self.shape.port_rate)
    }

    /// Joins a switch of the line to the controller, by a network of its own. The controller has
    /// one address for all.
    fn add_control_link(&self, place: usize) -> io::Result<()> {
        let (switch, device) = (&self.switches[place], format!("ctl{place}"));
        let there = (&self.controller, VethEnd::new(&device));
        join((switch, VethEnd::new(CONTROL_DEVICE)), there)?;
        let in_network = |address: Ipv4Addr| {
            let [first, second, _, host] = address.octets();
            Ipv4Addr::new(first, second, u8::try_from(place).unwrap_or(u8::MAX), host)
        };
        let ends = [
            (switch, CONTROL_DEVICE, SWITCH_CONTROL_IP),
            (&self.controller, device.as_str(), CONTROLLER_IP),
        ];
        for (context, device, address) in ends {
            if self.shape.control_rate.0.is_some() {
                // Segments as on the line: the link's counters then hold every header.
                context.offloads_off(device)?;
            }
            limit(context, device, self.shape.control_rate)?;
            context.bring_up(device, Some(in_network(address)))?;
        }
        if place > 0 {
            switch.rtnl.add_route(CONTROL_DEVICE, (IpAddr::V4(CONTROLLER_IP), 32), None)?;
        }
        Ok(())
    }

    /// Its shape.
    pub fn shape(&self) -> &NetnsShape {
        &self.shape
    }

    /// Number of hosts.
    pub fn host_count(&self) -> usize {
        self.hosts.len()
    }

    /// The switch's devices: that of host 0 is port 1. None where the hosts are joined directly.
    pub fn ports(&self) -> Vec<String> {
        let hosts = if self.shape.is_wire { 0 } else { self.hosts.len() };
        (0..hosts).map(port_name).collect()
    }

    /// The device of a host, for frames as they are: the host's own kernel sees them too, and
    /// leaves alone what is not for its address.
    pub fn open_port(&self, host: usize) -> io::Result<Port> {
        let open = || netdev::open_text(&format!("af_packet:{HOST_DEVICE}"));
        self.host(host).enter(open)?.map_err(io::Error::other)
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

    /// The namespaces of the switches, in their order in the line.
    pub fn switches(&self) -> impl Iterator<Item = &Namespace> {
        self.switches.iter().map(|context| &context.ns)
    }

    /// The namespace of the controller.
    pub fn controller(&self) -> &Namespace {
        &self.controller.ns
    }

    /// The namespace of a host, which is counted from 0.
    pub fn host(&self, index: usize) -> &Namespace {
        &self.hosts[index].ns
    }

    /// The counters of the links of host 1 and host 2 and of the control link.
    pub fn links(&self) -> Vec<LinkSample> {
        let ((first, second), (near, far)) = ((&self.hosts[0], &self.hosts[1]), self.ends());
        let (ports, control) = (self.shape.port_rate.0, self.shape.control_rate.0);
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
        if !self.shape.is_wire {
            links.insert(1, sample(LinkId::Port1Out, near, &port_name(0), ports));
            links.insert(3, sample(LinkId::Port2Out, far, &port_name(1), ports));
        }
        links
    }

    /// Notes on the links for the reader of a report.
    pub fn notes(&self) -> Vec<String> {
        let read = || std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control");
        let tcp = self.host(0).enter(read).flatten().unwrap_or_else(|error| error.to_string());
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
                match self.shape.has_offloads {
                    false => "off",
                    true => "left as the kernel has them",
                },
                tcp.trim_end()
            ),
        ]
    }
}

/// Joins two devices.
fn join(
    (near, here): (&NamespaceContext, VethEnd<'_>),
    (far, there): (&NamespaceContext, VethEnd<'_>),
) -> io::Result<()> {
    Ok(near.rtnl.add_veth(&VethPair { here, there, there_in: Some(&far.ns) })?)
}

/// Gives a device a token bucket, where its link has a rate.
fn limit(context: &NamespaceContext, device: &str, rate: LinkRate) -> io::Result<()> {
    let Some(rate_bps) = rate.0 else { return Ok(()) };
    Ok(context.rtnl.set_tbf(device, &Tbf::ethernet(rate_bps, QUEUE_MS))?)
}

/// The end of a link that is a host's.
fn host_end(host: usize) -> VethEnd<'static> {
    VethEnd { mac: Some(host_address(host).mac), ..VethEnd::new(HOST_DEVICE) }
}

#[cfg(test)]
mod tests {
    use super::{NetnsShape, NetnsTestbed};
    use crate::hosts::{HOST_DEVICE, HOSTS};
    use crate::load::LinkId::{ControlDown, ControlUp, Port1In, Port1Out, Port2In, Port2Out};
    use crate::rate::LinkRate;
    use netdev::sys::link::Rtnl;
    use std::net::UdpSocket;

    fn shape(port: &str, control: &str) -> NetnsShape {
        let rate = |text: &str| text.parse::<LinkRate>().unwrap();
        NetnsShape {
            hosts: 2,
            line: 1,
            port_rate: rate(port),
            control_rate: rate(control),
            has_offloads: false,
            is_wire: false,
        }
    }

    #[test]
    #[ignore = "needs root"]
    fn the_links_are_there_shaped_and_counted() {
        let bed = NetnsTestbed::new(shape("100M", "none")).expect("needs root");
        let rtnl = Rtnl::open_in(&bed.switches[0].ns).unwrap();
        for port in bed.ports() {
            assert_eq!(rtnl.root_qdisc(&port).unwrap().kind, "tbf");
        }
        let links = bed.links();
        let (ports, control) = ([Port1In, Port1Out, Port2In, Port2Out], [ControlUp, ControlDown]);
        assert!(links.iter().map(|link| link.id).eq(ports.into_iter().chain(control)));
        assert_eq!(links[0].rate_bps, Some(100_000_000));
        assert_eq!(links[4].rate_bps, None);
        let sent = bed.host(0).enter(|| {
            let socket = UdpSocket::bind((HOSTS[0].ip, 0)).unwrap();
            socket.send_to(&[0; 18], (HOSTS[1].ip, 9)).unwrap()
        });
        assert_eq!(sent.unwrap(), 18);
        assert_eq!(bed.links()[0].packets, 1);
    }

    #[test]
    #[ignore = "needs root"]
    fn hosts_that_are_joined_directly_reach_each_other() {
        let bed = NetnsTestbed::new(NetnsShape { is_wire: true, ..shape("none", "none") });
        let bed = bed.expect("needs root");
        assert!(bed.ports().is_empty());
        let open = |host: usize| {
            bed.host(host).enter(|| UdpSocket::bind((HOSTS[host].ip, 5_000)).unwrap()).unwrap()
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
        let bed = NetnsTestbed::new(shape("none", "100M")).expect("needs root");
        let host = bed.host(1).try_clone().unwrap();
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
