//! Links and hosts for Python: tuples, of which `weir.topology` makes values with names.

use controller::{HostEvent, LinkEvent, SwitchPort, TopologyHost, TopologyLink};
use pyo3::IntoPyObjectExt as _;
use pyo3::prelude::{Bound, IntoPyObject, PyAny, PyResult, Python};

use crate::headers::Mac;
use crate::queue::Kind;

/// A link: its two ports.
pub(crate) type ToldLink = (u64, u32, u64, u32);

/// A host: addresses, VLAN and port.
#[derive(IntoPyObject)]
pub(crate) struct ToldHost(Mac, Option<u16>, Vec<String>, Vec<String>, u64, u32);

pub(crate) fn link(link: &TopologyLink) -> ToldLink {
    let TopologyLink { from, to } = link;
    (from.dpid.0, from.port.0, to.dpid.0, to.port.0)
}

pub(crate) fn host(host: &TopologyHost) -> ToldHost {
    let TopologyHost { mac, vlan, ipv4, ipv6, at: SwitchPort { dpid, port } } = host;
    let ipv4 = ipv4.iter().map(ToString::to_string).collect();
    let ipv6 = ipv6.iter().map(ToString::to_string).collect();
    ToldHost(Mac(mac.0), *vlan, ipv4, ipv6, dpid.0, port.0)
}

/// The kind of an event about a link.
pub(crate) fn kind_of_link(event: &LinkEvent) -> Kind {
    match event {
        LinkEvent::Up(_) => Kind::LinkAdd,
        LinkEvent::Down(_) => Kind::LinkDelete,
    }
}

/// The kind of an event about a host.
pub(crate) fn kind_of_host(event: &HostEvent) -> Kind {
    match event {
        HostEvent::Up(_) => Kind::HostAdd,
        HostEvent::Moved { .. } => Kind::HostMove,
        HostEvent::Changed(_) => Kind::HostChange,
        HostEvent::Down(_) => Kind::HostDelete,
    }
}

/// What a handler is told of a link.
pub(crate) fn link_event<'py>(py: Python<'py>, event: &LinkEvent) -> PyResult<Bound<'py, PyAny>> {
    let (LinkEvent::Up(it) | LinkEvent::Down(it)) = event;
    link(it).into_bound_py_any(py)
}

/// What a handler is told of a host; of one that has moved, also where it was.
pub(crate) fn host_event<'py>(py: Python<'py>, event: &HostEvent) -> PyResult<Bound<'py, PyAny>> {
    match event {
        HostEvent::Up(it) | HostEvent::Changed(it) | HostEvent::Down(it) => {
            host(it).into_bound_py_any(py)
        }
        HostEvent::Moved { host: it, from } => {
            (host(it), (from.dpid.0, from.port.0)).into_bound_py_any(py)
        }
    }
}
