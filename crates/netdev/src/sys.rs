//! The Linux facts around ports: everything here talks to the kernel, and all unsafe code of the
//! workspace's I/O lives here behind safe functions. Nothing above this module may call `libc`.

pub mod affinity;
pub(crate) mod bpf;
pub(crate) mod claim;
pub mod cpu;
#[cfg(feature = "dpdk")]
pub(crate) mod dpdk;
pub mod echo;
pub mod ethtool;
pub mod event;
pub(crate) mod host_use;
pub(crate) mod ifreq;
pub mod link;
pub(crate) mod link_modes;
pub mod monitor;
mod netlink;
pub mod netns;
pub mod niceness;
pub(crate) mod packet_socket;
pub mod packet_tap;
pub mod peer_redirect;
pub mod qdisc;
pub mod realtime;
pub(crate) mod shm;
mod sigbus;
pub mod spawn;
pub(crate) mod tun;
pub mod udp;
mod unshare;
pub(crate) mod veth_peer;
pub mod watch;
