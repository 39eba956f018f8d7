//! The delay that the generator itself adds, and the resolution of its clock.
//!
//! Probes go over a wire in memory, by threads like those of the session: what they take is the
//! floor of each delay that is measured afterwards, and says nothing about a device under test. The
//! measurement takes some 25 ms and is bounded. It must never touch the session's own ports, nor
//! run beside its streams.

use std::time::{Duration, Instant};

use netdev::kinds::memory;
use netdev::ring::Geometry;

use super::{Session, SessionError, SessionOptions, StartOptions};
use crate::profile::{Mode, Rate, StreamSpec};
use crate::statistics::DelayFloor;

/// Probes, and how many of them leave in a second.
const PROBES: u64 = 1_000;
const RATE_PPS: f64 = 50_000.0;

/// The longest wait for them; a machine that stands still makes it longer than 20 ms. The caller
/// of a load waits no longer than this for a figure that only belongs to it.
pub(super) const LIMIT: Duration = Duration::from_secs(2);

/// Time between two looks at what has come.
const LOOK: Duration = Duration::from_millis(1);

/// Readings of the clock.
const READINGS: usize = 1_001;

/// The smallest difference of two readings of the clock that is not nothing, in nanoseconds; the
/// median of many.
#[must_use]
pub fn clock_resolution_ns() -> f64 {
    let step = || {
        let begun = Instant::now();
        loop {
            let passed = begun.elapsed();
            if passed > Duration::ZERO {
                return passed.as_nanos() as f64;
            }
        }
    };
    let mut steps: Vec<f64> = (0..READINGS).map(|_| step()).collect();
    steps.sort_by(f64::total_cmp);
    steps[steps.len() / 2]
}

/// The options of the session that measures the floor of one with `options`, with
/// `senders` threads that send: the same cores, and nothing is given up.
pub(super) fn options(options: &SessionOptions, senders: usize) -> SessionOptions {
    let receiving = options.cores.iter().skip(senders);
    let one = options.cores.first().into_iter();
    // Two ports: the first one sends, and the second one receives.
    let cores: Vec<usize> =
        one.flat_map(|core| [*core, *core]).chain(receiving.take(2).copied()).collect();
    SessionOptions {
        cores,
        burst: options.burst,
        waiting: options.waiting,
        unsent_after_ns: u64::MAX / 2,
        ..SessionOptions::default()
    }
}

/// Why there is no floor.
#[derive(Debug, thiserror::Error)]
pub(super) enum FloorError {
    /// No wire, or no thread.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// Nothing came.
    #[error("no probe came over a wire in memory within {0:?}")]
    NoProbe(Duration),
}

/// Measures the floor with these options; none where `goes_on` returned false before the end.
///
/// # Errors
/// Without a thread or memory left, or when no probe comes within `limit`.
pub(super) fn measure(
    options: &SessionOptions,
    limit: Duration,
    goes_on: &dyn Fn() -> bool,
) -> Result<Option<DelayFloor>, FloorError> {
    let begun = Instant::now();
    let (near, far) = memory::pair("floor", Geometry::default()).map_err(SessionError::from)?;
    let mut session = Session::from_ports(vec![near, far], options.clone())?;
    let stream = StreamSpec {
        name: "floor".to_owned(),
        rate: Rate::PacketsPerSecond(RATE_PPS),
        mode: Mode::Burst(PROBES),
        ..StreamSpec::default()
    };
    session.load(0, &[stream]).map_err(SessionError::from)?;
    session.start(&[0], &StartOptions::default())?;
    while session.is_transmitting(0) || session.received() < PROBES {
        if !goes_on() {
            return Ok(None);
        }
        if begun.elapsed() >= limit {
            break;
        }
        std::thread::sleep(LOOK);
    }
    let statistics = session.statistics();
    let arrival = statistics.streams.iter().flat_map(|stream| &stream.arrivals).next();
    let Some(delay) = arrival.and_then(|arrival| arrival.report.delay.as_ref()) else {
        return Err(FloorError::NoProbe(limit));
    };
    Ok(Some(DelayFloor {
        p50_ns: delay.at_ns(0.5),
        p99_ns: delay.at_ns(0.99),
        least_ns: delay.min_ns.unsigned_abs(),
        probes: delay.count,
        resolution_ns: clock_resolution_ns(),
    }))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use netdev::open_text;

    use super::{PROBES, clock_resolution_ns, options};
    use crate::profile::{Mode, Rate, StreamSpec};
    use crate::session::{Session, SessionOptions, StartOptions};

    /// The machine may be busy.
    const PATIENCE: Duration = Duration::from_secs(60);

    #[test]
    fn the_cores_of_the_session_are_those_of_its_floor() {
        let cores = |cores: &[usize], senders| {
            let of = SessionOptions { cores: cores.to_vec(), ..SessionOptions::default() };
            options(&of, senders).cores
        };
        assert_eq!(cores(&[], 0), [0; 0]);
        assert_eq!(cores(&[3], 1), [3, 3]);
        assert_eq!(cores(&[3, 4, 5, 6], 2), [3, 3, 5, 6]);
        assert_eq!(cores(&[3, 4, 5, 6], 3), [3, 3, 6]);
    }

    #[test]
    fn only_a_session_that_receives_has_a_floor() {
        assert!(clock_resolution_ns() > 0.0);
        for (ports, probe, has_floor) in [
            (["memory:session-floor?end=a", "memory:session-floor?end=b"], true, true),
            (["memory:session-floor?end=a", "memory:session-floor?end=b"], false, false),
            (["null:a", "null:b"], true, false),
        ] {
            let ports = ports.map(|port| open_text(port).unwrap());
            let mut session = Session::from_ports(ports.into(), SessionOptions::default()).unwrap();
            let (rate, mode) = (Rate::PacketsPerSecond(1e3), Mode::Burst(1));
            session.load(0, &[StreamSpec { rate, mode, probe, ..StreamSpec::default() }]).unwrap();
            session.measure_floor_within(PATIENCE, &|| true);
            let statistics = session.statistics();
            assert_eq!(statistics.floor.is_some(), has_floor);
            // Nothing of it is counted for the session.
            assert_eq!(statistics.ports[0].tx.traffic.packets, 0);
            let Some(floor) = statistics.floor else { continue };
            assert_eq!(floor.probes, PROBES);
            assert!(floor.resolution_ns > 0.0 && floor.least_ns > 0, "{floor:?}");
            assert!(floor.least_ns as f64 <= floor.p50_ns && floor.p50_ns <= floor.p99_ns);
            assert!(floor.is_above(floor.p50_ns - 1.0) && !floor.is_above(floor.p50_ns));
            // It is measured once.
            session.measure_floor_within(PATIENCE, &|| true);
            assert_eq!(session.floor(), Some(floor));
        }
    }

    /// Two ends of a wire, the first with an endless stream of probes.
    fn probing(name: &str) -> Session {
        let open = |end| open_text(&format!("memory:session-{name}?end={end}")).unwrap();
        let options = SessionOptions::default();
        let mut session = Session::from_ports(vec![open("a"), open("b")], options).unwrap();
        let rate = Rate::PacketsPerSecond(1e3);
        session.load(0, &[StreamSpec { rate, ..StreamSpec::default() }]).unwrap();
        session
    }

    #[test]
    fn the_floor_is_never_measured_beside_streams() {
        let mut session = probing("floor-beside");
        session.start(&[0], &StartOptions::default()).unwrap();
        session.measure_floor_within(PATIENCE, &|| true);
        assert_eq!(session.floor(), None);
        session.stop(&[0]).unwrap();
        session.measure_floor_within(PATIENCE, &|| true);
        assert!(session.floor().is_some(), "a later start with nothing running measures it");
    }

    #[test]
    fn a_session_without_a_floor_works_and_does_not_try_again() {
        let mut session = probing("floor-none");
        // A caller that does not want it any more leaves it to a later start.
        session.measure_floor_within(PATIENCE, &|| false);
        assert!(session.floor().is_none() && !session.has_no_floor);
        let cores = std::mem::replace(&mut session.floor_options.cores, vec![100_000]);
        session.measure_floor_within(PATIENCE, &|| true);
        assert!(session.floor().is_none() && session.has_no_floor);
        session.floor_options.cores = cores;
        session.measure_floor_within(PATIENCE, &|| true);
        assert_eq!(session.floor(), None);
        session.start(&[0], &StartOptions::default()).unwrap();
        assert!(session.is_transmitting(0));
    }
}
