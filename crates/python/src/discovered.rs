//! Links and hosts for Python: tuples, of which `weir.topology` makes values with names.

use controller::{HostEvent, LinkEvent, SwitchPort, TopologyHost, TopologyLink};
use pyo3::IntoPyObjectExt as _;
use pyo3::prelude::{Bound, IntoPyObject, PyAny, PyResult, Python};

use crate::headers::Mac;

/// A link: its two ports.
pub(crate) type LinkTuple = (u64, u32, u64, u32);

/// A host: addresses, VLAN and port.
#[derive(IntoPyObject)]
pub(crate) struct HostTuple(Mac, Option<u16>, Vec<String>, Vec<String>, u64, u32);

pub(crate) fn link(link: &TopologyLink) -> LinkTuple {
    let TopologyLink { from, to } = link;
    (from.dpid.0, from.port.0, to.dpid.0, to.port.0)
}

pub(crate) fn host(host: &TopologyHost) -> HostTuple {
    let TopologyHost { mac, vlan, ipv4, ipv6, at: SwitchPort { dpid, port } } = host;
    let ipv4 = ipv4.iter().map(ToString::to_string).collect();
    let ipv6 = ipv6.iter().map(ToString::to_string).collect();
    HostTuple(Mac(mac.0), *vlan, ipv4, ipv6, dpid.0, port.0)
}

/// The values of a link's handlers.
pub(crate) fn link_event<'py>(py: Python<'py>, event: &LinkEvent) -> PyResult<Bound<'py, PyAny>> {
    let (LinkEvent::Up(it) | LinkEvent::Down(it)) = event;
    link(it).into_bound_py_any(py)
}

/// The values of a host's handlers; of a host that has moved, also its port before.
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
