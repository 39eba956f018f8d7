//! Meters keep their rates within one percent over ten seconds of virtual time.

mod measure;

use measure::{Point, SECONDS, Unit, measure};

fn assert_exact(point: Point) {
    let found = measure(&point);
    assert!(found.error_percent.abs() <= 1.0, "{point:?}: {found:?} in {SECONDS} s");
    assert!(found.passed <= found.offered, "{point:?}: {found:?}");
}

#[test]
fn kilobits_per_second_are_kept() {
    for (rate, bytes) in [(100, 64), (100, 1518), (1_000, 300), (10_000, 1518), (100_000, 1518)] {
        let pps = f64::from(rate) * 1_000.0 / (bytes as f64 * 8.0);
        for (burst, load) in [(None, 2.0), (Some(0), 1.1), (Some(rate), 10.0), (None, 0.5)] {
            let offered_pps = pps * load;
            if offered_pps < 20_000.0 {
                assert_exact(Point { unit: Unit::Kbps, rate, burst, bytes, offered_pps });
            }
        }
    }
}

#[test]
fn packets_per_second_are_kept() {
    for rate in [10, 100, 1_000, 10_000] {
        for (burst, load) in [(None, 2.0), (Some(0), 1.1), (Some(rate), 10.0), (None, 0.5)] {
            let offered_pps = f64::from(rate) * load;
            if offered_pps < 20_000.0 {
                assert_exact(Point { unit: Unit::Pktps, rate, burst, bytes: 64, offered_pps });
            }
        }
    }
}

#[test]
fn the_burst_is_what_was_configured() {
    let point =
        Point { unit: Unit::Pktps, rate: 1_000, burst: Some(500), bytes: 64, offered_pps: 5_000.0 };
    let burst = measure(&point).burst;
    assert!((499.0..=502.0).contains(&burst), "{burst}");
    // Without the flag it is at first a tenth of a second's worth.
    let burst = measure(&Point { burst: None, ..point }).burst;
    assert!((99.0..=102.0).contains(&burst), "{burst}");
}
