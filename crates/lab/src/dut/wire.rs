//! No switch at all: the hosts are joined by one link. What is measured here is the limit of every
//! switch on this machine, and the floor of the lab's own delays.

use super::Dut;
use crate::settings::{Forwarding, Settings};

/// A link, by its name: as a switch under test, or as the lab's own floor.
pub(super) const fn link(name: &'static str) -> Dut {
    Dut {
        is_wire: true,
        check: |_, settings, _| check(settings),
        ..Dut::new(
            name,
            "No switch: one link between the hosts, which is the limit and the lab's own floor",
        )
    }
}

fn check(settings: &Settings) -> Result<(), String> {
    match settings.forwarding() {
        Forwarding::Flows | Forwarding::Learning | Forwarding::Io if settings.ports() <= 2 => {
            Ok(())
        }
        Forwarding::Controller => Err("has no OpenFlow channel".to_owned()),
        Forwarding::Flows | Forwarding::Learning | Forwarding::Io => {
            Err("joins two hosts only".to_owned())
        }
    }
}
