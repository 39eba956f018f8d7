//! The beginning of most tests: a datapath with live ports and entries.

use datapath::{Datapath, Nanos};
use openflow::flow::FlowModCommand;
use openflow::port::{PortDesc, PortState};
use openflow::text::parse_flow_mod;
use openflow::{PortNo, Version};

/// With ports from 1 on and these entries, in the syntax of `ovs-ofctl`, at time zero.
pub(crate) fn with<D: Datapath>(mut datapath: D, ports: u32, entries: &[impl AsRef<str>]) -> D {
    for number in 1..=ports {
        let state = PortState::LIVE;
        let desc = PortDesc { port_no: PortNo(number), state, ..PortDesc::default() };
        datapath.port_set(desc, Nanos(0));
    }
    for entry in entries {
        let flow_mod = parse_flow_mod(entry.as_ref(), FlowModCommand::Add).unwrap();
        datapath.flow_mod(&flow_mod, Version::V1_3, Nanos(0)).unwrap();
    }
    datapath
}
