//! The far host of a round trip: it sends every datagram for it back to where it came from.
//!
//! It receives and sends on one thread, so that nothing but the two calls is in the delay. Other
//! frames are passed over: a hub floods. It must never touch a payload.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use netdev::sys::event::wait;
use netdev::{Port, PortError};
use packet::{Batch, PacketBuf};

use super::{HEADERS_LEN, HostAddress};

/// Frames taken at once.
const BURST: usize = 64;

/// The longest wait before it looks whether it is to end.
const WAIT: Duration = Duration::from_millis(20);

/// Pause between two looks at a port without a descriptor.
const NAP: Duration = Duration::from_micros(100);

/// Reflects the datagrams for `host` until `stop`.
pub(crate) fn reflect(
    port: &mut Port,
    host: &HostAddress,
    stop: &AtomicBool,
) -> Result<(), PortError> {
    let (mut batch, mut replies): (Batch, Vec<PacketBuf>) = (Batch::default(), Vec::new());
    while !stop.load(Ordering::Relaxed) {
        if port.rx(&mut batch, BURST)? == 0 {
            match port.fd() {
                // An error of poll(2) shows in the next call of the queue.
                Some(descriptor) => drop(wait(&[descriptor], Some(WAIT))),
                None => std::thread::sleep(NAP),
            }
            continue;
        }
        replies.extend(batch.drain().filter_map(|mut frame| {
            let is_ours = turn_round(frame.bytes_mut(), host);
            is_ours.then_some(frame)
        }));
        // What a full queue does not take is lost, as at any host.
        port.tx(&replies)?;
        replies.drain(..).for_each(|frame| batch.give_spare(frame));
    }
    Ok(())
}

/// Exchanges both ends of a datagram for `host`, under the same checksums; false for other frames.
fn turn_round(frame: &mut [u8], host: &HostAddress) -> bool {
    let Some(headers) = frame.first_chunk_mut::<HEADERS_LEN>() else { return false };
    let is_ours = headers[0..6] == host.mac
        && headers[12..15] == [0x08, 0x00, 0x45]
        && headers[23] == 17
        && headers[30..34] == host.ip.octets();
    if is_ours {
        for (first, second, len) in [(0, 6, 6), (26, 30, 4), (34, 36, 2)] {
            (0..len).for_each(|at| headers.swap(first + at, second + at));
        }
    }
    is_ours
}

#[cfg(test)]
mod tests {
    use openflow::MacAddr;
    use packet::build::{FrameBuilder, Ipv4};

    use super::turn_round;
    use crate::hosts::HOSTS;

    fn datagram(from: usize, to: usize) -> Vec<u8> {
        let (from, to) = (HOSTS[from], HOSTS[to]);
        FrameBuilder::ethernet(MacAddr(to.mac), MacAddr(from.mac))
            .ipv4(Ipv4::new(from.ip, to.ip))
            .udp(1000 + u16::from(from.mac[5]), 1000 + u16::from(to.mac[5]))
            .payload(b"what is measured")
            .build()
    }

    #[test]
    fn a_datagram_goes_back_as_its_receiver_would_send_it() {
        let mut frame = datagram(0, 1);
        assert!(turn_round(&mut frame, &HOSTS[1]));
        assert_eq!(frame, datagram(1, 0));
        packet::verify(&frame).unwrap();
    }

    #[test]
    fn what_is_not_for_the_host_is_left_alone() {
        for mut frame in [datagram(1, 0), vec![0; 60], vec![2; 9]] {
            let before = frame.clone();
            assert!(!turn_round(&mut frame, &HOSTS[1]));
            assert_eq!(frame, before);
        }
    }
}
