//! The TAP device by which the programs at a port hand frames over: nobody reads or writes it, and
//! no frame passes it. For a port that enters the tier at once it is made while that is opened,
//! since both wait for the kernel.

use std::io;

use super::program;
use crate::sys::bpf::{Hook, Link, Program};
use crate::sys::ifreq::IoctlSocket;
use crate::sys::link::{Rtnl, disable_ipv6};
use crate::sys::tun::Tun;

/// The kernel puts a number in the place of `%d`.
const TAP_NAME: &str = "weir-tier%d";

/// See the module.
///
/// The device is up.
#[derive(Debug)]
pub struct HandoverPlace {
    name: String,
    index: u32,
    _guard: Link,
    _tun: Tun,
}

impl HandoverPlace {
    /// Makes one for a device that may come into the tier; none where the host uses it, or the
    /// kernel refuses. It waits for the kernel, 10 ms and more.
    pub(crate) fn for_device(device: u32) -> Option<Self> {
        let used = Rtnl::open().and_then(|rtnl| rtnl.host_use(device));
        if used.ok()?.is_some() {
            return None;
        }
        Self::make().ok()
    }

    /// Makes one.
    pub(super) fn make() -> io::Result<Self> {
        let (tun, name) = Tun::open(TAP_NAME, false)?;
        // What the stack sends of its own accord would wait for a reader that there is not.
        tun.drop_sent()?;
        // This only spares it the work.
        if let Err(error) = disable_ipv6(&name) {
            tracing::debug!(name, %error, "IPv6 stays on");
        }
        let control = IoctlSocket::open()?;
        let index = control.index(&name)?;
        control.set_up(&name)?;
        let guard = Program::load(&program::guard(), Hook::Ingress)?.attach(index)?;
        Ok(Self { name, index, _guard: guard, _tun: tun })
    }

    /// The name of the device.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Its number.
    pub(super) fn index(&self) -> u32 {
        self.index
    }
}
