//! Two devices whose frames go straight to the far end of each other's veth: the limit of what a
//! program at a device's ingress can do, to hold switches against.
//!
//! It decides nothing, counts nothing and hands nothing over; the far ends must be in other
//! namespaces.

use std::io;

use super::bpf::{Hook, Link, Program};

/// `BPF_FUNC_redirect_peer`.
const REDIRECT_PEER: u64 = 155;

/// The programs at two devices; dropped, they are there no longer.
#[derive(Debug)]
pub struct PeerRedirect {
    _programs: [Link; 2],
}

impl PeerRedirect {
    /// Between the devices of these numbers, in the calling thread's namespace.
    ///
    /// # Errors
    /// The kernel's: for want of a right, or of TCX.
    pub fn between(one: u32, other: u32) -> io::Result<Self> {
        let put = |at: u32, to: u32| {
            // r1 = to; r2 = 0; call; exit.
            let code = [0x1b7 | u64::from(to) << 32, 0x2b7, 0x85 | REDIRECT_PEER << 32, 0x95];
            Program::load(&code, Hook::Ingress)?.attach(at)
        };
        Ok(Self { _programs: [put(one, other)?, put(other, one)?] })
    }
}
