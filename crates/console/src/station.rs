//! One port as a station of a network: it sends single frames, hands out what arrives, and answers
//! for the addresses that it claims.
//!
//! For the commands that talk at the pace of people and files, ping and capture. Loads are sent by
//! `generator::session`, never from here.

use std::net::IpAddr;
use std::time::Duration;

use anyhow::Context;
use generator::responder::Responder;
use netdev::Port;
use netdev::sys::event::wait;
use openflow::MacAddr;
use packet::{Batch, PacketBuf};

use crate::interrupt::ASK_EVERY;

/// Frames taken from the port at once.
const BURST: usize = 64;

/// Time between two looks at a port without a descriptor.
const NAP: Duration = Duration::from_micros(100);

/// Attempts to hand a frame to a full transmit queue.
const SEND_TRIES: usize = 100;

/// A port with the addresses that it claims.
pub(crate) struct Station {
    port: Port,
    mac: MacAddr,
    responder: Responder,
    inbox: Batch,
}

impl Station {
    /// Takes the port over. It has the Ethernet address `mac`, or the device's own.
    pub(crate) fn new(mut port: Port, mac: Option<MacAddr>, addresses: Vec<IpAddr>) -> Self {
        let mac = mac.unwrap_or_else(|| MacAddr(port.info().mac));
        let responder = Responder::new(mac, addresses);
        Self { port, mac, responder, inbox: Batch::default() }
    }

    /// Its Ethernet address.
    pub(crate) fn mac(&self) -> MacAddr {
        self.mac
    }

    /// Frames that arrived and were lost for want of room.
    pub(crate) fn drops(&mut self) -> u64 {
        self.port.counters().rx_drops
    }

    /// Sends one frame; false when the transmit queue stays full.
    ///
    /// # Errors
    /// Those of the port.
    pub(crate) fn send(&mut self, frame: &[u8]) -> anyhow::Result<bool> {
        let frames = [PacketBuf::from_slice(frame)];
        for _ in 0..SEND_TRIES {
            if self.port.tx(&frames).context("sending")? == 1 {
                return Ok(true);
            }
            std::thread::sleep(NAP);
        }
        Ok(false)
    }

    /// Hands the frames that wait, or that come within `limit`, to `take`, and answers what asks
    /// for a claimed address. Returns after the first burst, at the latest after [`ASK_EVERY`], and
    /// says how many there were.
    ///
    /// # Errors
    /// Those of the port.
    pub(crate) fn receive(
        &mut self,
        limit: Duration,
        mut take: impl FnMut(&[u8]),
    ) -> anyhow::Result<usize> {
        let mut count = self.port.rx(&mut self.inbox, BURST).context("receiving")?;
        let limit = limit.min(ASK_EVERY);
        if count == 0 && !limit.is_zero() {
            match self.port.fd() {
                Some(fd) => drop(wait(&[fd], Some(limit)).context("waiting for frames")?),
                None => std::thread::sleep(limit.min(NAP)),
            }
            count = self.port.rx(&mut self.inbox, BURST).context("receiving")?;
        }
        let mut replies = Vec::new();
        for frame in self.inbox.frames() {
            replies.extend(self.responder.reply(frame.bytes()));
            take(frame.bytes());
        }
        self.inbox.clear();
        for reply in replies {
            // An answer that a full queue refuses is asked for again.
            self.send(&reply)?;
        }
        Ok(count)
    }
}
