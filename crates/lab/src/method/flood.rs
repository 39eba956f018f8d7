//! A host that sends frames without pause, and what the device of another host takes in meanwhile.
//!
//! The kernel counts the frames at the far host's device, so that no receiver takes the cores that
//! a switch needs. If all that was sent arrives, the sender was the limit.

use std::time::{Duration, Instant};

use generator::profile::{FrameSize, Rate, StreamSpec};
use generator::session::{Session, SessionOptions, StartOptions};

use super::{MethodContext, TrialError, traffic};
use crate::hosts::host_address;
use crate::testbed::netns::NetnsTestbed;

/// Load before what is measured: caches are filled, and a tier in the kernel has its decisions.
pub(super) const WARM_UP: Duration = Duration::from_millis(500);

/// A line that carries any rate.
const LINE_BPS: f64 = 1e13;

/// A host that sends until this value goes.
pub(super) struct Flood {
    _session: Session,
}

impl Flood {
    /// Starts sending from a host, which is counted from 0.
    ///
    /// # Errors
    /// [`TrialError::Io`] of the host's device, [`TrialError::Traffic`] of the stream.
    pub(super) fn start(
        bed: &NetnsTestbed,
        from: usize,
        stream: StreamSpec,
    ) -> Result<Self, TrialError> {
        let port = bed.open_port(from).map_err(device_error)?;
        let never = u64::MAX;
        let options = SessionOptions {
            line_rate_bps: vec![LINE_BPS],
            late_after_ns: never,
            unsent_after_ns: never,
            ..SessionOptions::default()
        };
        let session = Session::from_ports(vec![port], options);
        let mut session = session.map_err(traffic::session_error)?;
        session.load(0, &[stream]).map_err(traffic::profile_error)?;
        session.start(&[0], &StartOptions::default()).map_err(traffic::session_error)?;
        Ok(Self { _session: session })
    }
}

/// The stream of the cell's frames, as fast as they are taken.
pub(super) fn as_fast_as_it_goes(context: &MethodContext<'_>, stream: StreamSpec) -> StreamSpec {
    let size = FrameSize::Fixed(context.settings.frame_size());
    StreamSpec { size, rate: Rate::Max, ..stream }
}

/// The headers of a flow between two hosts, from a UDP port on.
pub(super) fn packet(from: usize, to: usize, src_port: u16) -> String {
    let (near, far) = (host_address(from), host_address(to));
    let [src, dst] = [near.mac, far.mac].map(openflow::MacAddr);
    let (near, far) = (near.ip, far.ip);
    format!("eth(src={src},dst={dst})/ipv4(src={near},dst={far})/udp(src={src_port},dst=2000)")
}

/// Count of a host's device at a moment.
#[derive(Clone, Copy, Debug)]
struct Arrivals {
    at: Instant,
    packets: u64,
}

impl Arrivals {
    fn read(bed: &NetnsTestbed, host: usize) -> Result<Self, TrialError> {
        let stats = bed.host_stats(host).map_err(std::io::Error::other);
        Ok(Self { packets: stats.map_err(device_error)?.rx_packets, at: Instant::now() })
    }

    /// Packets a second since `first`.
    fn pps_since(&self, first: &Self) -> f64 {
        let seconds = self.at.duration_since(first.at).as_secs_f64().max(1e-9);
        self.packets.saturating_sub(first.packets) as f64 / seconds
    }
}

/// Packets a second that a host takes in for the cell's duration, once it has been sent to for a
/// while.
///
/// # Errors
/// [`TrialError::Io`] of the host's device, and [`TrialError::Stopped`].
pub(super) fn arriving_pps(
    bed: &NetnsTestbed,
    host: usize,
    context: &MethodContext<'_>,
) -> Result<f64, TrialError> {
    context.cancel.sleep(WARM_UP)?;
    let first = Arrivals::read(bed, host)?;
    context.cancel.sleep(Duration::from_secs_f64(context.settings.duration_s()))?;
    Ok(Arrivals::read(bed, host)?.pps_since(&first))
}

/// A rate that is none is no figure.
///
/// # Errors
/// Nothing came.
pub(super) fn not_nothing(pps: f64) -> Result<f64, TrialError> {
    let nothing = || TrialError::Output { program: "flood", what: "no frame has come".into() };
    (pps > 0.0).then_some(pps).ok_or_else(nothing)
}

/// The error of a host's device.
pub(super) fn device_error(source: std::io::Error) -> TrialError {
    TrialError::Io { what: "the device of a host", source }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Arrivals, packet};

    #[test]
    fn rates_are_what_came_by_time() {
        let first = Arrivals { at: Instant::now(), packets: 100 };
        let last = Arrivals { at: first.at + Duration::from_millis(500), packets: 1_100 };
        assert_eq!((last.pps_since(&first), first.pps_since(&first)), (2_000.0, 0.0));
    }

    #[test]
    fn a_flow_is_between_its_hosts() {
        let headers = packet(2, 3, 20_000);
        assert!(headers.contains("src=02:00:00:00:00:03,dst=02:00:00:00:00:04"), "{headers}");
        assert!(headers.contains("ipv4(src=10.0.0.3,dst=10.0.0.4)/udp(src=20000"), "{headers}");
    }
}
