//! Whether a switch does what it says: entries behind a barrier, and entries that it took.
//!
//! Each entry sends the datagrams for one address to port 2; a frame for that address, in at port
//! 1, shows whether it is in force.

use std::net::Ipv4Addr;

use openflow::MacAddr;
use openflow::message::Message;
use packet::build::{FrameBuilder, Ipv4};

use super::{CheckError, CheckedSwitch, Finding, Truth, change};

/// Sender and receiver of the frames.
const NEAR: (MacAddr, Ipv4Addr) = (MacAddr([2, 0, 0, 0, 0, 1]), Ipv4Addr::new(10, 0, 0, 1));
const FAR: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);

/// Sendings of a frame that does not come, before its entry counts as not in force.
const TRIES: usize = 4;

/// Frames that are sent at once.
const BURST: usize = 32;

/// The address of an entry, which is counted from 0: 10.64.0.0 and up.
fn address(index: u32) -> Ipv4Addr {
    Ipv4Addr::from(0x0a40_0000 + index)
}

fn entry(index: u32) -> Result<Message, CheckError> {
    change("flow", &format!("priority=5,ip,nw_dst={},actions=output:2", address(index)))
}

/// The frame that the entry of that index is for.
fn frame(index: u32) -> Vec<u8> {
    FrameBuilder::ethernet(FAR, NEAR.0)
        .ipv4(Ipv4::new(NEAR.1, address(index)))
        .udp(1000, 2000)
        .payload(&index.to_be_bytes().repeat(5))
        .build()
}

/// Whether entries are in force when the barrier behind them is answered: `rounds` times so many
/// entries, a barrier, and at once a frame for the last of them.
pub fn barrier(
    switch: &mut dyn CheckedSwitch,
    rounds: u32,
    entries: u32,
) -> Result<Finding, CheckError> {
    let (area, feature) = ("truth", "entries are in force when the barrier is answered");
    let (mut late, mut never) = (0, 0);
    for round in 0..rounds {
        switch.clear()?;
        let first = round * entries;
        let messages = (first..first + entries).map(entry).collect::<Result<Vec<_>, _>>()?;
        if let (_, Some(why)) = switch.send(messages)? {
            return Ok(Finding::new(area, feature, Truth::Unknown, why));
        }
        let (probe, mut lost) = ([frame(first + entries - 1)], 0);
        while lost <= TRIES && switch.forwards(&probe)? != [true] {
            lost += 1;
        }
        match lost {
            0 => {}
            1..=TRIES => late += 1,
            _ => never += 1,
        }
    }
    let note = format!("of {rounds} frames behind a barrier, {late} late, {never} never");
    // A frame of fifty may be lost on a busy machine; where none ever comes, entries do nothing
    // here, and nothing is known of barriers.
    let verdict = if never == rounds {
        Truth::Unknown
    } else if late + never <= rounds / 50 {
        Truth::Yes
    } else {
        Truth::Lies
    };
    Ok(Finding::new(area, feature, verdict, note))
}

/// Whether the switch holds the entries that it took: `entries` are sent, and counted by its
/// statistics and by a frame for each.
pub fn table(switch: &mut dyn CheckedSwitch, entries: u32) -> Result<Finding, CheckError> {
    let (area, feature) = ("truth", "entries that were taken are held");
    switch.clear()?;
    let messages = (0..entries).map(entry).collect::<Result<Vec<_>, _>>()?;
    let (taken, _) = switch.send(messages)?;
    let reported = switch.entries()?;
    let mut missing: Vec<u32> = (0..entries).collect();
    // A burst of frames shows many entries at once; one that was lost is sent again.
    for _ in 0..TRIES {
        let mut still = Vec::new();
        for burst in missing.chunks(BURST) {
            let frames: Vec<Vec<u8>> = burst.iter().map(|index| frame(*index)).collect();
            let came = switch.forwards(&frames)?;
            let lost = burst.iter().zip(came).filter(|(_, came)| !came);
            still.extend(lost.map(|(index, _)| *index));
        }
        missing = still;
        if u64::from(entries) - missing.len() as u64 >= taken {
            break;
        }
    }
    let obeyed = u64::from(entries) - missing.len() as u64;
    let note = format!(
        "{entries} sent, {taken} not refused, {reported} by its statistics, {obeyed} by traffic"
    );
    let is_true = reported == taken && obeyed == taken;
    let verdict = if is_true { Truth::Yes } else { Truth::Lies };
    switch.clear()?;
    Ok(Finding::new(area, feature, verdict, note))
}
