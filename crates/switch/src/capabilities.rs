//! The capabilities of the process (capabilities(7)): of those that root has, the few that a switch
//! needs.
//!
//! The others are given up before anything is opened and before there is a second thread: so what
//! can be opened at the start can be opened later too, by a reload or by `weir ctl`, and all
//! threads have the same. No program that the process would start could get them back.

use std::io;

use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_no_new_privs,
};

/// The capabilities that are kept, each for:
/// - `NET_RAW`: packet sockets;
/// - `NET_ADMIN`: TAP devices, promiscuity, links, offloads, programs at a device's hooks;
/// - `BPF` and `PERFMON`: loading the kernel tier's programs, and their use of packet pointers;
/// - `NET_BIND_SERVICE`: listeners at ports below 1024;
/// - `SYS_NICE`: the niceness that a worker has yielded and takes back;
/// - `DAC_OVERRIDE`: files of the user who runs the switch by sudo.
const KEPT: CapabilitySet = CapabilitySet::NET_RAW
    .union(CapabilitySet::NET_ADMIN)
    .union(CapabilitySet::BPF)
    .union(CapabilitySet::PERFMON)
    .union(CapabilitySet::NET_BIND_SERVICE)
    .union(CapabilitySet::SYS_NICE)
    .union(CapabilitySet::DAC_OVERRIDE);

/// Taken by a thread only while it asks for a TAP device in another network namespace.
const ON_DEMAND: CapabilitySet = CapabilitySet::SYS_ADMIN;

/// Those of DPDK's drivers: locked memory, its physical addresses, registers of devices.
#[cfg(feature = "dpdk")]
const OF_DRIVERS: CapabilitySet =
    CapabilitySet::IPC_LOCK.union(CapabilitySet::SYS_ADMIN).union(CapabilitySet::SYS_RAWIO);

#[cfg(not(feature = "dpdk"))]
const OF_DRIVERS: CapabilitySet = CapabilitySet::empty();

/// Gives up the capabilities that a switch does not need, those of the calling thread and of all
/// that it starts.
///
/// # Errors
/// The kernel's.
pub(crate) fn give_up_capabilities() -> io::Result<()> {
    let had = capabilities(None)?.permitted;
    let effective = had & (KEPT | OF_DRIVERS);
    let permitted = effective | (had & ON_DEMAND);
    set_no_new_privs(true)?;
    let inheritable = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective, permitted, inheritable })?;
    Ok(())
}
