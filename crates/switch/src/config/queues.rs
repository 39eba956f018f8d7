//! Queues and rates of ports, as they are written: `1:5,min=30%,max=50%,frames=500` and `1=100M`.

use std::str::FromStr;

use datapath::{QueueRate, QueueRates};
use openflow::text::{parse_number, zero_advice};
use openflow::{PortNo, QueueId};

use super::port_number::port_name;

/// A queue of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueArg {
    /// The port.
    pub port: PortNo,
    /// The queue.
    pub queue: QueueRates,
}

const QUEUE_FORM: &str = "N:ID[,min=PERCENT][,max=PERCENT][,frames=COUNT]";

/// Tenths of a percent from `30%` or `30.5%`.
fn tenths(text: &str) -> Option<u16> {
    let number = text.strip_suffix('%')?;
    let (whole, tenth) = number.split_once('.').unwrap_or((number, "0"));
    let (whole, tenth): (u16, u16) = (parse_number(whole).ok()?, parse_number(tenth).ok()?);
    (whole <= 100 && tenth <= 9).then_some(whole * 10 + tenth)
}

impl FromStr for QueueArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split(',');
        let head = parts.next().unwrap_or_default();
        let form = || {
            let advice = zero_advice(text);
            format!("{text:?} is no queue; write {QUEUE_FORM}, for example 1:5,min=30%{advice}")
        };
        let (port, id) = head.split_once(':').ok_or_else(form)?;
        let id = parse_number(id).map_err(|_| form())?;
        let mut queue = QueueRates::new(QueueId(id));
        for part in parts {
            let (key, value) = part.split_once('=').ok_or_else(form)?;
            match key {
                "min" => queue.min_rate = Some(QueueRate::Tenths(tenths(value).ok_or_else(form)?)),
                "max" => queue.max_rate = Some(QueueRate::Tenths(tenths(value).ok_or_else(form)?)),
                "frames" => queue.frames_max = parse_number(value).map_err(|_| form())?,
                _ => return Err(form()),
            }
        }
        Ok(Self { port: port_name(port)?, queue })
    }
}

/// The rate of a port's link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateArg {
    /// The port.
    pub port: PortNo,
    /// Bits per second.
    pub rate_bps: u64,
}

impl FromStr for RateArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = || {
            let advice = zero_advice(text);
            format!("{text:?} is no rate; write N=BITS, with k, M or G, as 1=100M{advice}")
        };
        let (port, rate) = text.split_once('=').ok_or_else(form)?;
        let digits = rate.trim_end_matches(['k', 'M', 'G']);
        let unit: u64 = match rate.get(digits.len()..) {
            Some("") => 1,
            Some("k") => 1_000,
            Some("M") => 1_000_000,
            Some("G") => 1_000_000_000,
            Some(_) | None => return Err(form()),
        };
        let rate_bps = parse_number::<u64>(digits).ok().and_then(|digits| digits.checked_mul(unit));
        let rate_bps = rate_bps.filter(|rate| *rate > 0).ok_or_else(form)?;
        Ok(Self { port: port_name(port)?, rate_bps })
    }
}

#[cfg(test)]
mod tests {
    use super::{QueueArg, RateArg};

    #[test]
    fn queues_and_rates_are_read() {
        let queue: QueueArg = "1:5,min=30%,max=50.5%,frames=7".parse().unwrap();
        assert_eq!((queue.port.0, queue.queue.id.0), (1, 5));
        let queue = queue.queue;
        let rate = |tenths| Some(super::QueueRate::Tenths(tenths));
        assert_eq!((queue.min_rate, queue.max_rate, queue.frames_max), (rate(300), rate(505), 7));
        let plain: QueueArg = "LOCAL:0".parse().unwrap();
        assert_eq!((plain.queue.min_rate, plain.queue.max_rate), (None, None));
        let rate = |text: &str| text.parse::<RateArg>().unwrap().rate_bps;
        assert_eq!((rate("1=100M"), rate("2=9"), rate("3=1G")), (100_000_000, 9, 1_000_000_000));
        for bad in [
            "1",
            "1:x",
            "x:1",
            "1:1,min=5",
            "1:1,min=101%",
            "1:1,min=1.55%",
            "1:1,a=5%",
            "1:01",
            "01:1",
            "1:1,min=05%",
            "1:1,min=1.05%",
            "1:1,frames=07",
        ] {
            assert!(bad.parse::<QueueArg>().is_err(), "{bad}");
        }
        for bad in ["1", "1=", "1=0", "1=5T", "1=5MM", "0=5", "1=05", "01=5"] {
            assert!(bad.parse::<RateArg>().is_err(), "{bad}");
        }
    }
}
