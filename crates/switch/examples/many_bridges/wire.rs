//! The two ports of the first bridge: memory between the processes, of which this one has the
//! other ends, and the delay of single frames from one to the other.

use std::path::Path;
use std::time::{Duration, Instant};

use netdev::Port;
use packet::{Batch, PacketBuf};

use crate::Result;

/// Frames that are measured, and how long after one the next is sent.
const FRAMES: u32 = 3_000;
const GAP: Duration = Duration::from_millis(1);

/// A frame that has not come after this time is lost.
const LOST: Duration = Duration::from_secs(2);

/// The other ends.
pub(crate) struct Wire {
    from: Port,
    to: Port,
    batch: Batch,
}

/// Delays in microseconds.
pub(crate) struct Delays {
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
}

fn name(folder: &Path, port: u32) -> String {
    format!("memory:{}/wire{port}", folder.display())
}

/// The specs of the ports, for the file.
pub(crate) fn specs(folder: &Path) -> String {
    format!("\"{}\", \"{}\"", name(folder, 1), name(folder, 2))
}

impl Wire {
    /// Opens the other ends.
    pub(crate) fn open(folder: &Path) -> Result<Self> {
        let end = |port| netdev::open_text(&format!("{}?end=b", name(folder, port)));
        Ok(Self { from: end(1)?, to: end(2)?, batch: Batch::default() })
    }

    /// The delay of one frame. It is asked for again and again: nothing of it is our waking up.
    fn delay(&mut self) -> Result<Duration> {
        let mut frame = [0; 60];
        frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5]);
        let frames = [PacketBuf::from_slice(&frame)];
        let sent = Instant::now();
        if self.from.tx(&frames)? != 1 {
            return Err("the port takes no frame".into());
        }
        loop {
            if self.to.rx(&mut self.batch, 32)? > 0 {
                self.batch.clear();
                return Ok(sent.elapsed());
            }
            if sent.elapsed() > LOST {
                return Err("a frame was lost".into());
            }
        }
    }

    /// The delays of many, one after the other.
    pub(crate) fn delays(&mut self) -> Result<Delays> {
        let mut delays = Vec::new();
        for _ in 0..FRAMES {
            std::thread::sleep(GAP);
            delays.push(self.delay()?);
        }
        delays.sort_unstable();
        let at = |part: usize| {
            let delay = delays.get(delays.len() * part / 100).copied().unwrap_or_default();
            delay.as_secs_f64() * 1e6
        };
        Ok(Delays { p50_us: at(50), p99_us: at(99) })
    }
}
