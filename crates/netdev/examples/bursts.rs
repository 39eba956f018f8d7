//! Bursts of 64 frames over a memory wire and into a null port: the work to count with
//! `valgrind --tool=callgrind --toggle-collect='*bursts::turns*'` when receiving or sending
//! changes.

use netdev::open_text;
use packet::{Batch, PacketBuf};

const BURST: usize = 64;

fn main() -> Result<(), netdev::PortError> {
    let argument = std::env::args().nth(1).and_then(|text| text.parse().ok());
    println!("{} frames", turns(argument.unwrap_or(1_000))?);
    Ok(())
}

/// Sends a burst over the wire and what arrives to the null port, `count` times; returns how many
/// frames went all the way.
#[inline(never)]
fn turns(count: usize) -> Result<usize, netdev::PortError> {
    let mut near = open_text("memory:bursts?end=a")?;
    let mut far = open_text("memory:bursts?end=b")?;
    let mut null = open_text("null:")?;
    let frames: Vec<PacketBuf> = (0..BURST).map(|_| PacketBuf::from_slice(&[7; 60])).collect();
    let (mut batch, mut through) = (Batch::default(), 0);
    for _ in 0..count {
        near.tx(&frames)?;
        far.rx(&mut batch, BURST)?;
        let (frames, pool) = batch.parts_mut();
        through += null.tx_batch(frames, pool)?;
    }
    Ok(through)
}
