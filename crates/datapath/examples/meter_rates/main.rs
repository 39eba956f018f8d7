//! Prints how exactly meters keep their rates: a table of rates from 100 kb/s to 1 Gb/s and from 10
//! to 1,000,000 packets per second, frames of 64, 300 and 1518 bytes, bursts and offered loads.
//!
//!     cargo run --release -p weir-datapath --example meter_rates
//!
//! It takes some minutes; `-- quick` measures only the loads below 100,000 packets per second.

mod measure;

use measure::{Point, SECONDS, Unit, measure};

/// Offered loads, as multiples of the meter's rate.
const LOADS: [f64; 4] = [0.5, 1.1, 2.0, 10.0];

/// Higher offered loads than this are left out: they take minutes each and show nothing new.
const PPS_MAX: f64 = 4e6;

/// Every point of the table.
fn points(pps_max: f64) -> Vec<Point> {
    let mut points = Vec::new();
    let mut add = |unit, rate: u32, bytes: usize, pps: f64| {
        // No flag, a burst below one packet, a tenth of a second, a second.
        for burst in [None, Some(0), Some(rate / 10), Some(rate)] {
            for load in LOADS {
                let offered_pps = pps * load;
                if offered_pps <= pps_max {
                    points.push(Point { unit, rate, burst, bytes, offered_pps });
                }
            }
        }
    };
    for kbps in [100, 1_000, 10_000, 100_000, 1_000_000] {
        for bytes in [64, 300, 1518] {
            add(Unit::Kbps, kbps, bytes, f64::from(kbps) * 1_000.0 / (bytes as f64 * 8.0));
        }
    }
    for pps in [10, 100, 1_000, 10_000, 100_000, 1_000_000] {
        for bytes in [64, 300, 1518] {
            add(Unit::Pktps, pps, bytes, f64::from(pps));
        }
    }
    points
}

fn main() {
    let is_quick = std::env::args().any(|argument| argument == "quick");
    let points = points(if is_quick { 1e5 } else { PPS_MAX });
    println!(
        "| meter | frame | burst size | offered | passed in {SECONDS} s | error | burst passed |"
    );
    println!("|---|---|---|---|---|---|---|");
    let mut worst: f64 = 0.0;
    for point in &points {
        let found = measure(point);
        let unit = match point.unit {
            Unit::Kbps => "kb/s",
            Unit::Pktps => "packets/s",
        };
        let burst = point.burst.map_or("-".to_owned(), |burst| burst.to_string());
        println!(
            "| {} {unit} | {} B | {burst} | {:.1} | {:.1} | {:+.2} % | {:.0} |",
            point.rate, point.bytes, found.offered, found.passed, found.error_percent, found.burst
        );
        worst = worst.max(found.error_percent.abs());
    }
    println!();
    println!("{} points, the largest error is {worst:.2} %", points.len());
}
