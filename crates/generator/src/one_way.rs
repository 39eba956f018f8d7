//! One-way delay of single frames through a switch, between two ports of the generator.
//!
//! It polls for the frame without sleeping, so that the delay does not include a wake-up.

use std::time::{Duration, Instant};

use netdev::{Port, PortError};
use packet::{Batch, PacketBuf};

/// Two ports and the frame that goes from one to the other.
pub struct OneWayTimer {
    from: Port,
    to: Port,
    frame: [PacketBuf; 1],
    came: Batch,
}

impl std::fmt::Debug for OneWayTimer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OneWayTimer").field("frame", &self.frame).finish_non_exhaustive()
    }
}

impl OneWayTimer {
    /// A frame that enters the switch by `from` and leaves it by `to`.
    #[must_use]
    pub fn new(from: Port, to: Port, frame: &[u8]) -> Self {
        Self { from, to, frame: [PacketBuf::from_slice(frame)], came: Batch::default() }
    }

    /// Sends the frame and polls for it; returns its delay, or `None` when it did not arrive within
    /// `limit`.
    ///
    /// # Errors
    /// Of either port.
    pub fn one_way(&mut self, limit: Duration) -> Result<Option<Duration>, PortError> {
        self.came.clear();
        let begun = Instant::now();
        self.from.tx(&self.frame)?;
        while self.to.rx(&mut self.came, 1)? == 0 {
            if begun.elapsed() > limit {
                return Ok(None);
            }
            std::hint::spin_loop();
        }
        Ok(Some(begun.elapsed()))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use netdev::open_text;

    use super::OneWayTimer;

    #[test]
    fn a_frame_comes_back_by_a_wire_and_not_from_nowhere() {
        let open = |text: &str| open_text(text).unwrap();
        let (from, to) = (open("memory:bench-frames?end=a"), open("memory:bench-frames?end=b"));
        let mut exchange = OneWayTimer::new(from, to, &[1; 60]);
        assert!(exchange.one_way(Duration::from_secs(20)).unwrap().is_some());
        let mut nowhere = OneWayTimer::new(open("null:a"), open("null:b"), &[1; 60]);
        assert!(nowhere.one_way(Duration::from_millis(1)).unwrap().is_none());
    }
}
