//! `null`: receives nothing and takes everything. It measures what a worker costs without I/O, and
//! is the sink of generators.

use std::os::fd::BorrowedFd;

use packet::{Batch, PacketBuf};

use crate::error::PortError;
use crate::port::{LinkNotification, Port, PortCounters, PortInfo, made_up_mac};
use crate::spec::PortSpec;
use crate::sys::event::WakeEvent;

/// The port that receives nothing and takes everything.
#[derive(Debug)]
pub struct NullPort {
    name: String,
    counters: PortCounters,
    never: WakeEvent,
}

impl NullPort {
    /// A null port; `name` serves only to tell it from others.
    ///
    /// # Errors
    /// [`PortError::Io`] when the process has no descriptor left.
    pub fn new(name: &str) -> Result<Self, PortError> {
        let never = WakeEvent::new()
            .map_err(|source| PortError::Io { what: "creating an eventfd".into(), source })?;
        Ok(Self { name: name.to_owned(), counters: PortCounters::default(), never })
    }
}

pub(crate) fn open(spec: &PortSpec) -> Result<Box<dyn Port>, PortError> {
    Ok(Box::new(NullPort::new(spec.name())?))
}

impl Port for NullPort {
    fn rx(&mut self, _batch: &mut Batch, _max: usize) -> Result<usize, PortError> {
        Ok(0)
    }

    fn tx(&mut self, frames: &[PacketBuf]) -> Result<usize, PortError> {
        for frame in frames {
            self.counters.count_tx(frame.len());
        }
        Ok(frames.len())
    }

    /// A descriptor that never becomes readable, so that a worker with nothing else sleeps.
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.never.fd())
    }

    fn info(&mut self) -> PortInfo {
        PortInfo {
            name: self.name.clone(),
            kind: "null",
            mac: made_up_mac(&self.name),
            mtu: u16::MAX.into(),
            link_up: true,
            speed_bps: 0,
            full_duplex: Some(true),
            exists: true,
            notes: Vec::new(),
        }
    }

    fn link_notification(&self) -> LinkNotification {
        LinkNotification::Never
    }

    fn counters(&mut self) -> PortCounters {
        self.counters
    }
}
