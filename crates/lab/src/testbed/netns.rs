//! Four network namespaces: two hosts, the switch, the controller, joined by veth.
//!
//! The namespaces have no name: descriptors of this process hold them, so that they are gone with
//! it whatever ends it, with every device in them. Rates are token buckets at each sending end
//! that count FCS, preamble and gap as an Ethernet does. Offloads of the hosts' links are off in
//! every run, for every switch: a frame then leaves a host as it would cross a cable. It must
//! never touch a device of the namespace that it was started in.

use std::io;
use std::net::{IpAddr, Ipv4Addr};

use netdev::sys::ethtool::Ethtool;
use netdev::sys::link::{LinkError, Rtnl, VethEnd, VethPair, disable_ipv6};
use netdev::sys::netns::Namespace;
use netdev::sys::qdisc::Tbf;

use super::{HOSTS, LinkShape};
use crate::load::{LinkCount, LinkId, LinkSample};

/// Names of the switch's interfaces towards host 1 and host 2.
pub const PORTS: [&str; 2] = ["sw-h1", "sw-h2"];

/// The name of a host's interface.
pub const HOST_DEVICE: &str = "eth0";

const CONTROL_DEVICE: &str = "ctl0";
const SWITCH_CONTROL_IP: Ipv4Addr = Ipv4Addr::new(10, 255, 0, 1);

/// The controller's address.
pub const CONTROLLER_IP: Ipv4Addr = Ipv4Addr::new(10, 255, 0, 2);

/// How much a shaped link queues, in milliseconds of its rate.
pub const QUEUE_MS: u32 = 20;

/// A namespace and the way to give orders in it.
#[derive(Debug)]
pub(crate) struct NamespaceContext {
    pub(crate) ns: Namespace,
    pub(crate) rtnl: Rtnl,
}

/// The testbed; dropping it takes everything down.
#[derive(Debug)]
pub struct NetnsTestbed {
    switch: NamespaceContext,
    controller: NamespaceContext,
    hosts: [NamespaceContext; 2],
    shape: LinkShape,
}

/// Why there is no testbed.
#[derive(Debug, thiserror::Error)]
pub enum NetnsError {
    /// A namespace could not be made or set up.
    #[error("cannot make a network namespace: {0}")]
    Namespace(#[from] io::Error),
    /// The kernel refused a device, an address or a rate.
    #[error("cannot make the testbed: {0}")]
    Link(#[from] LinkError),
}

impl NamespaceContext {
    /// A namespace without IPv6, with its loopback device up and TCP as in every run.
    ///
    /// # Errors
    /// Without root.
    pub(crate) fn new() -> Result<Self, NetnsError> {
        let ns = Namespace::new()?;
        ns.enter(|| {
            disable_ipv6("all")?;
            disable_ipv6("default")?;
            set_tcp()
        })??;
        let rtnl = Rtnl::open_in(&ns)?;
        rtnl.set_up("lo", true)?;
        Ok(Self { ns, rtnl })
    }

    fn offloads_off(&self, device: &str) -> Result<(), NetnsError> {
        Ethtool::open_in(&self.ns)?.switch_off_offloads(device)?;
        Ok(())
    }

    fn bring_up(&self, device: &str, address: Option<Ipv4Addr>) -> Result<(), NetnsError> {
        if let Some(address) = address {
            self.rtnl.add_address(device, IpAddr::V4(address), 24)?;
        }
        Ok(self.rtnl.set_up(device, true)?)
    }

    fn count(&self, device: &str) -> LinkCount {
        let stats = self.rtnl.link(device).map(|link| link.stats).unwrap_or_default();
        let drops = self.rtnl.root_qdisc(device).map_or(0, |qdisc| u64::from(qdisc.drops));
        LinkCount { bytes: stats.tx_bytes, packets: stats.tx_packets, drops }
    }
}

/// Makes TCP behave alike in every run: the first of these congestion controls that the kernel
/// lets a namespace have, and nothing remembered from the run before. Runs inside the namespace.
///
/// # Errors
/// When `/proc/sys` is not writable.
fn set_tcp() -> io::Result<()> {
    let ipv4 = "/proc/sys/net/ipv4";
    let refused = |algorithm: &&str| {
        std::fs::write(format!("{ipv4}/tcp_congestion_control"), algorithm).is_err()
    };
    // Where all are refused the system's default stays; the report reads back which it is.
    let _ = TCP_ALGORITHMS.iter().find(|algorithm| !refused(algorithm));
    std::fs::write(format!("{ipv4}/tcp_no_metrics_save"), "1")
}

const TCP_ALGORITHMS: [&str; 2] = ["cubic", "reno"];

impl NetnsTestbed {
    /// Makes the testbed. Needs root.
    ///
    /// # Errors
    /// [`NetnsError::Namespace`] without the right to make namespaces; [`NetnsError::Link`] when
    /// the kernel lacks veth or the token bucket.
    pub fn new(shape: LinkShape) -> Result<Self, NetnsError> {
        let hosts = [NamespaceContext::new()?, NamespaceContext::new()?];
        let bed = Self {
            switch: NamespaceContext::new()?,
            controller: NamespaceContext::new()?,
            hosts,
            shape,
        };
        for (index, port) in PORTS.iter().enumerate() {
            bed.add_host(index, port)?;
        }
        bed.add_control_link()?;
        Ok(bed)
    }

    fn add_host(&self, index: usize, port: &str) -> Result<(), NetnsError> {
        let (host, own, other) = (&self.hosts[index], HOSTS[index], HOSTS[1 - index]);
        let there = VethEnd { mac: Some(own.mac), ..VethEnd::new(HOST_DEVICE) };
        let pair = VethPair { here: VethEnd::new(port), there, there_in: Some(&host.ns) };
        self.switch.rtnl.add_veth(&pair)?;
        self.switch.offloads_off(port)?;
        host.offloads_off(HOST_DEVICE)?;
        self.switch.bring_up(port, None)?;
        host.bring_up(HOST_DEVICE, Some(own.ip))?;
        host.rtnl.add_neighbour(HOST_DEVICE, IpAddr::V4(other.ip), other.mac)?;
        if let Some(rate) = self.shape.port_rate.0 {
            let tbf = Tbf::ethernet(rate, QUEUE_MS);
            self.switch.rtnl.set_tbf(port, &tbf)?;
            host.rtnl.set_tbf(HOST_DEVICE, &tbf)?;
        }
        Ok(())
    }

    fn add_control_link(&self) -> Result<(), NetnsError> {
        let pair = VethPair {
            here: VethEnd::new(CONTROL_DEVICE),
            there: VethEnd::new(CONTROL_DEVICE),
            there_in: Some(&self.controller.ns),
        };
        self.switch.rtnl.add_veth(&pair)?;
        let ends = [(&self.switch, SWITCH_CONTROL_IP), (&self.controller, CONTROLLER_IP)];
        for (context, address) in ends {
            if let Some(rate) = self.shape.control_rate.0 {
                // Segments as on the line: the link's counters then hold every header.
                context.offloads_off(CONTROL_DEVICE)?;
                context.rtnl.set_tbf(CONTROL_DEVICE, &Tbf::ethernet(rate, QUEUE_MS))?;
            }
            context.bring_up(CONTROL_DEVICE, Some(address))?;
        }
        Ok(())
    }

    /// The rates.
    #[must_use]
    pub fn shape(&self) -> LinkShape {
        self.shape
    }

    /// The namespace of the switch.
    #[must_use]
    pub fn switch(&self) -> &Namespace {
        &self.switch.ns
    }

    /// The namespace of the controller.
    #[must_use]
    pub fn controller(&self) -> &Namespace {
        &self.controller.ns
    }

    /// The namespace of host 0 or 1.
    #[must_use]
    pub fn host(&self, index: usize) -> &Namespace {
        &self.hosts[index].ns
    }

    /// The counters of all links, for the load sampler.
    #[must_use]
    pub fn links(&self) -> Vec<LinkSample> {
        let [first, second] = &self.hosts;
        let (ports, control) = (self.shape.port_rate.0, self.shape.control_rate.0);
        [
            (LinkId::Port1In, first, HOST_DEVICE, ports),
            (LinkId::Port1Out, &self.switch, PORTS[0], ports),
            (LinkId::Port2In, second, HOST_DEVICE, ports),
            (LinkId::Port2Out, &self.switch, PORTS[1], ports),
            (LinkId::ControlUp, &self.switch, CONTROL_DEVICE, control),
            (LinkId::ControlDown, &self.controller, CONTROL_DEVICE, control),
        ]
        .into_iter()
        .map(|(id, context, device, rate_bps)| LinkSample {
            id,
            rate_bps,
            count: context.count(device),
        })
        .collect()
    }

    /// What the reader of a report should know about the links.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let tcp = self.hosts[0]
            .ns
            .enter(|| std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control"));
        let tcp = tcp.and_then(|text| text).unwrap_or_else(|error| error.to_string());
        vec![
            format!(
                "Hosts, switch and controller each have a network namespace; veth joins them. \
                 Shaped links are token buckets at both ends (bucket 1 ms, queue {QUEUE_MS} ms) \
                 that count FCS, preamble and gap as Ethernet does."
            ),
            format!(
                "Segmentation and checksum offloads are off on the hosts' links in every run, and \
                 on the control link where it is shaped. Neighbours are entered by hand, IPv6 is \
                 off. TCP congestion control: {}.",
                tcp.trim_end()
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::{HOST_DEVICE, NetnsTestbed, PORTS};
    use crate::load::LinkId;
    use crate::rate::LinkRate;
    use crate::testbed::{HOSTS, LinkShape};
    use netdev::sys::link::Rtnl;
    use std::net::UdpSocket;

    fn shape(port: &str, control: &str) -> LinkShape {
        let rate = |text: &str| text.parse::<LinkRate>().unwrap();
        LinkShape { port_rate: rate(port), control_rate: rate(control) }
    }

    #[test]
    #[ignore = "needs root"]
    fn the_links_are_there_shaped_and_counted() {
        let bed = NetnsTestbed::new(shape("100M", "none")).expect("needs root");
        let rtnl = Rtnl::open_in(bed.switch()).unwrap();
        for port in PORTS {
            assert_eq!(rtnl.root_qdisc(port).unwrap().kind, "tbf");
        }
        let links = bed.links();
        assert_eq!(links.iter().map(|link| link.id).collect::<Vec<_>>(), LinkId::ALL);
        assert_eq!(links[0].rate_bps, Some(100_000_000));
        assert_eq!(links[4].rate_bps, None);
        let sent = bed.host(0).enter(|| {
            let socket = UdpSocket::bind((HOSTS[0].ip, 0)).unwrap();
            socket.send_to(&[0; 18], (HOSTS[1].ip, 9)).unwrap()
        });
        assert_eq!(sent.unwrap(), 18);
        assert_eq!(bed.links()[0].count.packets, 1);
    }

    #[test]
    #[ignore = "needs root"]
    fn nothing_is_left_behind() {
        let bed = NetnsTestbed::new(shape("none", "100M")).expect("needs root");
        let host = bed.host(1).try_clone().unwrap();
        assert!(Rtnl::open_in(&host).unwrap().link(HOST_DEVICE).is_ok());
        drop(bed);
        // The other end of the pair went with the switch's namespace; that is asynchronous.
        let gone = crate::cancel::Cancel::default()
            .poll(std::time::Duration::from_secs(20), || {
                Rtnl::open_in(&host).unwrap().link(HOST_DEVICE).is_err()
            })
            .unwrap();
        assert!(gone);
    }
}
