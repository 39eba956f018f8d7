//! A veth that a port makes: the port uses the one end, and the other one goes where a container, a
//! machine or the host wants it. It goes with the port.
//!
//! A TAP device would be as easy to hand out, but the kernel tier cannot reach one in another
//! namespace. A veth that is there already is used as any other device, and stays: after a process
//! that was killed its containers keep theirs.

use crate::error::PortError;
use crate::sys::link::{LinkError, Rtnl, VethEnd, VethPair, disable_ipv6};

/// The veth, for as long as its port is open.
#[derive(Debug)]
pub(super) struct OwnVeth {
    rtnl: Rtnl,
    index: u32,
}

impl OwnVeth {
    /// Makes a veth with the ends `name` and `far`, which both are up; `None` where there is a veth
    /// of the port's name already.
    pub(super) fn make(
        name: &str,
        far: &str,
        fix: &'static str,
    ) -> Result<Option<Self>, PortError> {
        let what = || format!("af_packet:{name}?far={far}");
        let failed = |error: LinkError| PortError::from_io(what(), fix, error.into());
        let rtnl = Rtnl::open().map_err(failed)?;
        if let Ok(found) = rtnl.link(name) {
            let text = format!("{name} exists and is no veth; `far` makes one");
            let other = || PortError::Io { what: what(), source: std::io::Error::other(text) };
            return if found.kind == "veth" { Ok(None) } else { Err(other()) };
        }
        if rtnl.link(far).is_ok() {
            let text = format!("{far} exists already; remove it, or name another far end");
            return Err(PortError::Io { what: what(), source: std::io::Error::other(text) });
        }
        let (here, there) = (VethEnd::new(name), VethEnd::new(far));
        rtnl.add_veth(&VethPair { here, there, there_in: None }).map_err(failed)?;
        let made = Self { index: rtnl.link(name).map_err(failed)?.index, rtnl };
        // The host has no use for this end; else frames of its own would come out at the other one.
        if let Err(error) = disable_ipv6(name) {
            tracing::debug!(name, %error, "IPv6 stays on");
        }
        for end in [far, name] {
            made.rtnl.set_up(end, true).map_err(failed)?;
        }
        Ok(Some(made))
    }

    /// Sets the link of the port's end up or down, which is that of the other one too.
    pub(super) fn set_link(&self, name: &str, up: bool) -> Result<(), LinkError> {
        self.rtnl.set_up(name, up)
    }
}

impl Drop for OwnVeth {
    fn drop(&mut self) {
        // It has gone with the namespace of its other end.
        if let Err(error) = self.rtnl.delete_at(self.index) {
            tracing::debug!(%error, "no veth to take away");
        }
    }
}
