//! The compiled part of the Python package `weir`: the controller's runtime under apps that are
//! written in Python.
//!
//! Threads of Rust serve the switches and never hold Python's lock. Events wait in a bounded
//! `queue` until the thread of the apps takes them in batches; what handlers send goes back in
//! batches too. An app that blocks, raises or ends therefore costs its own events, which are
//! counted, and nothing else. The Python side (`python/weir`) decides who gets an event; nothing
//! here calls a handler.
#![forbid(unsafe_code)]

mod answer;
mod bridge;
mod core;
mod discovered;
mod errors;
mod flow_words;
mod frame;
mod headers;
mod live;
mod matching;
mod notice;
mod outlet;
mod packet_in;
mod queue;
mod switch;
mod testing;
mod web;
mod words;

#[pyo3::pymodule(name = "_weir")]
mod module {
    #[pymodule_export]
    use super::answer::{
        AggregateStats, BucketStats, FlowStats, GroupDesc, GroupFeatures, GroupStats, MeterConfig,
        MeterFeatures, MeterStats, PortStats, QueueStats, Role, SwitchConfig, SwitchDesc,
        TableStats,
    };
    #[pymodule_export]
    use super::core::Core;
    #[pymodule_export]
    use super::errors::error_names;
    #[pymodule_export]
    use super::frame::Frame;
    #[pymodule_export]
    use super::headers::{Arp, Ethernet, Icmpv4, Icmpv6, Ipv4, Ipv6, Sctp, Tcp, Udp, Vlan};
    #[pymodule_export]
    use super::matching::Match;
    #[pymodule_export]
    use super::notice::{FlowRemoved, Message, Port, PortStatus, RoleChange, SwitchError};
    #[pymodule_export]
    use super::packet_in::PacketIn;
    #[pymodule_export]
    use super::switch::Switch;
    #[pymodule_export]
    use super::testing::TestSwitch;
    #[pymodule_export]
    use super::words::{Action, Instruction};
}
