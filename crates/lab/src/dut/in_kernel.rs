//! Parts of the kernel that carry frames between the hosts' devices, without OpenFlow.
//!
//! The bridge learns addresses. The limit of kernel ports is a program of four instructions at each
//! of two devices, which decides nothing and hands every frame straight to the other host. The
//! limit of every switch on this machine, and the floor of the lab's own delays, is a link without
//! any.

use anyhow::{Result, bail};
use netdev::sys::link::Rtnl;
use netdev::sys::netns::Namespace;
use netdev::sys::peer_redirect::PeerRedirect;

use super::{Dut, DutPlan, Lack, NO_CACHES, NO_REPLAY, ONE_THREAD, StartedDut, TWO_HOSTS, refuse};
use crate::settings::Forwarding;

const LACKS: &[Lack] = &[
    NO_REPLAY,
    (|of| of.forwarding() == Forwarding::Flows, "has no flow entries"),
    (|of| of.forwarding() == Forwarding::Io, "forwards by addresses only"),
    (
        |of| of.forwarding() == Forwarding::Controller || of.is_channel_measured(),
        "has no OpenFlow channel",
    ),
    NO_CACHES,
    ONE_THREAD,
];

const fn row(name: &'static str, about: &'static str) -> Dut {
    Dut {
        has_offloads: true,
        check: |_, settings, _| refuse(LACKS, settings),
        ..Dut::new(name, about)
    }
}

pub(super) const LINUX_BRIDGE: Dut = Dut {
    start: bridge,
    ..row("linux-bridge", "The bridge of the Linux kernel; learns, has no OpenFlow")
};

pub(super) const PEER_REDIRECT: Dut = Dut {
    check: |_, settings, _| {
        refuse(LACKS, settings)?;
        refuse(&[TWO_HOSTS], settings)
    },
    start: redirect,
    ..row(
        "peer-redirect",
        "Four instructions at each TCX hook hand every frame straight to the other host: the limit",
    )
};

/// A link, by its name: as a switch under test, or as the lab's own floor.
pub(super) const fn link(name: &'static str) -> Dut {
    Dut {
        is_wire: true,
        check: |_, settings, _| refuse(LINK_LACKS, settings),
        ..Dut::new(
            name,
            "No switch: one link between the hosts, which is the limit and the lab's own floor",
        )
    }
}

const LINK_LACKS: &[Lack] = &[
    NO_REPLAY,
    (|of| of.forwarding() == Forwarding::Controller, "has no OpenFlow channel"),
    TWO_HOSTS,
];

/// The switch's namespace, with the kernel's orders in it and its ports.
fn open<'a>(plan: &DutPlan<'a>) -> Result<(&'a Namespace, Rtnl, Vec<&'a str>)> {
    let Some(namespace) = plan.context.namespace else {
        bail!("{} is made in a network namespace of its own: run as root", plan.dut.name);
    };
    Ok((namespace, Rtnl::open_in(namespace)?, plan.devices()?))
}

/// A switch that runs, with the words by which a user makes it.
fn made(words: &str) -> StartedDut {
    let mut started = StartedDut::default();
    started.service.commands.push(words.to_owned());
    started
}

fn bridge(plan: &DutPlan<'_>) -> Result<StartedDut> {
    const BRIDGE: &str = "br0";
    let (_, rtnl, ports) = open(plan)?;
    rtnl.add_bridge(BRIDGE)?;
    ports.iter().try_for_each(|port| rtnl.add_to_bridge(port, BRIDGE))?;
    rtnl.set_up(BRIDGE, true)?;
    Ok(made("ip link add br0 type bridge; ip link set PORT master br0"))
}

fn redirect(plan: &DutPlan<'_>) -> Result<StartedDut> {
    let (namespace, rtnl, ports) = open(plan)?;
    let index = |device: &&str| rtnl.link(device).map(|link| link.index);
    let ports = ports.iter().map(index).collect::<Result<Vec<_>, _>>()?;
    let [one, other] = ports[..] else {
        bail!(TWO_HOSTS.1);
    };
    let mut started = made("bpf_redirect_peer from each PORT to the other");
    started.service.in_kernel = Some(namespace.enter(|| PeerRedirect::between(one, other))??);
    Ok(started)
}
