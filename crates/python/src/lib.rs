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
mod class;
mod core;
mod discovered;
mod errors;
mod event;
mod flow_words;
mod frame;
mod headers;
mod live;
mod lock;
mod matching;
mod packet_in;
mod queue;
mod switch;
mod switch_message;
mod testing;
mod transport;
mod web;
mod web_request;
mod words;

/// Defines the module of all classes: those of rows, whose part of the stub is made, and others,
/// whose part is written by hand.
macro_rules! package {
    (
        rows { $($rows:ident: $($class:ident),+;)+ }
        others { $($others:ident: $($other:ident),+;)+ }
    ) => {
        #[pyo3::pymodule(name = "_weir")]
        mod module {
            $(
                #[pymodule_export]
                use super::$rows::{$($class),+};
            )+
            $(
                #[pymodule_export]
                use super::$others::{$($other),+};
            )+

            #[pymodule_init]
            fn init(module: &pyo3::Bound<'_, pyo3::prelude::PyModule>) -> pyo3::PyResult<()> {
                super::event::add_to(module)
            }

            /// The made part of the stub, `_weir.pyi`.
            #[pyo3::pyfunction]
            fn made_stub() -> String {
                let parts = [super::event::handlers(), $($(super::$rows::$class::stub()),+),+];
                parts.join("\n")
            }
        }
    };
}

package! {
    rows {
        switch_message: Port, PortStatus, FlowRemoved, SwitchError, RoleChange, Message;
        headers: Ethernet, Vlan, Arp, Ipv4, Ipv6, Tcp, Udp, Sctp, Icmpv4, Icmpv6;
        packet_in: PacketIn;
        answer: FlowStats, AggregateStats, TableStats, PortStats, QueueStats, BucketStats,
            GroupStats, GroupDesc, GroupFeatures, MeterStats, MeterConfig, MeterFeatures,
            SwitchDesc, SwitchConfig, Role;
    }
    others {
        core: Core;
        errors: error_names;
        frame: Frame;
        matching: Match;
        switch: Switch;
        testing: TestSwitch;
        web_request: WebRequest;
        words: Action, Instruction;
    }
}
