//! The report of a run, as tables for people and as one JSON object for programs.
//!
//! Functions from statistics to text. Rates of the tables are means over the run, not those of its
//! last second.

use ::terminal::Table;
use generator::profile::LAYER_1_OVERHEAD;
use generator::receiver::StreamReport;
use generator::statistics::{
    DelayFloor, PortStatistics, PortTraffic, SessionStatistics, StreamStatistics,
};
use serde_json::{Value, json};

/// The point at which a signal ended a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interruption {
    /// While frames were due.
    Sending,
    /// While frames in flight were waited for.
    Draining,
}

impl Interruption {
    /// By whether a signal came in each of both times; the second is waited for by `drain`.
    pub(crate) fn of(in_sending: bool, drain: impl FnOnce() -> bool) -> Option<Self> {
        let in_draining = drain();
        match (in_sending, in_draining) {
            (true, _) => Some(Self::Sending),
            (false, true) => Some(Self::Draining),
            (false, false) => None,
        }
    }
}

/// One run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunReport<'a> {
    /// The counts.
    pub(crate) statistics: &'a SessionStatistics,
    /// From the first frame to the last, in seconds, and the time to the one that would be next.
    pub(crate) sending_s: f64,
    /// Whether, and where, a signal ended it.
    pub(crate) interrupted: Option<Interruption>,
}

impl RunReport<'_> {
    /// Share of the numbered frames that did not arrive, in per cent; 0 where none was sent.
    pub(crate) fn loss_percent(&self) -> f64 {
        let lost: u64 = self.statistics.streams.iter().filter_map(|stream| stream.lost).sum();
        percent(lost, self.numbered())
    }

    /// Frames that left with a number, or were due to.
    pub(crate) fn numbered(&self) -> u64 {
        self.statistics.streams.iter().map(|stream| stream.probes).sum()
    }

    /// The value for programs. Its rates are those of the tables: what the ports counted in their
    /// last second is mostly the silence after the end.
    pub(crate) fn json(&self) -> Value {
        let mut statistics = self.statistics.clone();
        for port in &mut statistics.ports {
            for traffic in [&mut port.tx.traffic, &mut port.rx.traffic] {
                let PortTraffic { packets, bytes, .. } = *traffic;
                *traffic = PortTraffic::since(packets, bytes, (0, 0), self.sending_s);
            }
        }
        json!({
            "interrupted": self.interrupted.is_some(),
            "sending_s": self.sending_s,
            "loss_percent": self.loss_percent(),
            "statistics": statistics,
        })
    }

    /// The tables for people, `width` columns wide.
    pub(crate) fn text(&self, width: usize) -> String {
        let mut text = self.port_table(width);
        if self.statistics.streams.iter().any(|stream| stream.probes > 0) {
            text += &stream_table(self.statistics, width);
            text += &self.statistics.floor.as_ref().map(floor_text).unwrap_or_default();
        }
        for port in &self.statistics.ports {
            let number = port.port;
            if let Some(stop) = &port.stopped {
                let (reason, at_s) = (&stop.reason, stop.at_ns as f64 / 1e9);
                text += &format!("port {number} stopped sending at {at_s:.3} s: {reason}\n");
            }
            if !port.link_up && port.stopped.is_none() {
                text += &format!("port {number} is down\n");
            }
            if port.tx.errors > 0 {
                text += &format!("port {number} lost {} of the sent frames\n", port.tx.errors);
            }
            if let Some(error) = &port.rx.error {
                text += &format!("port {number} receives no more: {error}\n");
            }
        }
        text + &self.remarks()
    }

    /// Remarks on what a reader of the tables would take for something else.
    fn remarks(&self) -> String {
        let mut text = String::new();
        let streams = &self.statistics.streams;
        for stream in streams.iter().filter(|stream| stream.unnumbered > 0) {
            let StreamStatistics { port, name, unnumbered, sent, probe_size, .. } = stream;
            text += &format!(
                "{unnumbered} of {sent} frames of stream {port} {name} had no room for number and \
                 time stamp: their loss, order and delay are not known; frames of {probe_size} \
                 bytes have room\n"
            );
        }
        let is_idle = |port: &PortStatistics| port.tx.traffic.packets + port.tx.unsent == 0;
        let is_whole = |port: &PortStatistics| port.stopped.is_none();
        let ports = &self.statistics.ports;
        if ports.iter().all(|port| is_idle(port) && is_whole(port)) {
            text += "nothing was sent: no frame was due before the end\n";
        }
        text += &match self.interrupted {
            Some(Interruption::Sending) => format!("interrupted after {:.1} s\n", self.sending_s),
            Some(Interruption::Draining) => "interrupted while frames in flight were waited for: \
                 what counts as lost may have been on its way\n"
                .to_owned(),
            None => String::new(),
        };
        text
    }

    fn port_table(&self, width: usize) -> String {
        const HEADER: [&str; 8] =
            ["port", "", "packets", "Mpps", "Gbit/s, L1", "unsent", "late", "lost by port"];
        let mut table = Table::new(HEADER).keys(2).left([0]);
        for port in &self.statistics.ports {
            let PortStatistics { port: number, name, tx, rx, .. } = port;
            let nothing = String::new;
            let errors = if tx.errors > 0 { tx.errors.to_string() } else { nothing() };
            let sent = [tx.unsent.to_string(), tx.late.to_string(), errors];
            let lost = (rx.losses.drops + rx.losses.errors).to_string();
            let received = [nothing(), nothing(), lost];
            let sides = [
                (format!("{number} {name}"), "sent", &tx.traffic, sent),
                (nothing(), "received", &rx.traffic, received),
            ];
            for (name, side, traffic, counts) in sides {
                let mut row = vec![name, side.to_owned()];
                row.extend(self.traffic(traffic));
                row.extend(counts);
                table.row(row);
            }
        }
        format!("{}\n", table.boxed(width))
    }

    /// Packets, Mpps and Gbit/s at layer 1.
    fn traffic(&self, traffic: &PortTraffic) -> [String; 3] {
        let PortTraffic { packets, bytes, .. } = *traffic;
        let bits = 8.0 * (bytes as f64 + packets as f64 * f64::from(LAYER_1_OVERHEAD));
        let rate = |number: f64| {
            if self.sending_s > 0.0 { figure(number / self.sending_s) } else { "-".into() }
        };
        [packets.to_string(), rate(packets as f64 / 1e6), rate(bits / 1e9)]
    }
}

/// A row for each port at which a stream arrived, or one where it arrived nowhere.
fn stream_table(statistics: &SessionStatistics, width: usize) -> String {
    const HEADER: [&str; 12] = [
        "stream",
        "sent",
        "lost",
        "%",
        "at port",
        "duplicated",
        "reordered",
        "corrupted",
        "p50, us",
        "p99, us",
        "max, us",
        "jitter, us",
    ];
    let mut table = Table::new(HEADER);
    for stream in &statistics.streams {
        let lost = stream.lost.map_or_else(absent, |lost| lost.to_string());
        let share = stream.lost.filter(|_| stream.probes > 0);
        let share = share.map_or_else(absent, |lost| figure(percent(lost, stream.probes)));
        let sent = stream.sent.to_string();
        let mut own = [format!("{} {}", stream.port, stream.name), sent, lost, share].to_vec();
        for arrival in &stream.arrivals {
            own.push(arrival.port.to_string());
            own.extend(delays(&arrival.report, statistics.floor.as_ref()));
            table.row(std::mem::replace(&mut own, vec![String::new(); 4]));
        }
        if stream.arrivals.is_empty() {
            own.resize_with(HEADER.len(), absent);
            table.row(own);
        }
    }
    format!("{}\n", table.boxed(width))
}

/// A delay in microseconds with one decimal, marked where it is below the floor.
pub(crate) fn delay_text(delay_ns: f64, floor: Option<&DelayFloor>) -> String {
    let mark = if floor.is_some_and(|floor| floor.is_above(delay_ns)) { "*" } else { "" };
    format!("{:.1}{mark}", delay_ns / 1e3)
}

/// The delay that the generator itself adds, and the resolution of its clock.
fn floor_text(floor: &DelayFloor) -> String {
    let DelayFloor { p50_ns, least_ns, probes, resolution_ns, .. } = floor;
    format!(
        "own floor {:.1} us (p50 of {probes} probes over a wire in memory; least {:.1} us), \
         resolution {resolution_ns:.0} ns; * is below the floor\n",
        p50_ns / 1e3,
        *least_ns as f64 / 1e3,
    )
}

fn delays(report: &StreamReport, floor: Option<&DelayFloor>) -> [String; 7] {
    let us = |us: Option<f64>| us.map_or_else(absent, |us| format!("{us:.1}"));
    let delay =
        |share: f64| report.delay_us(share).map_or_else(absent, |us| delay_text(us * 1e3, floor));
    [
        report.duplicated.to_string(),
        report.reordered.to_string(),
        report.corrupted.to_string(),
        delay(0.5),
        delay(0.99),
        delay(1.0),
        us(report.delay.as_ref().map(|_| report.jitter_ns / 1e3)),
    ]
}

fn absent() -> String {
    "-".to_owned()
}

/// A number with four decimals, or with as many as show three digits of a small one.
pub(crate) fn figure(number: f64) -> String {
    const DECIMALS: usize = 4;
    let zeros = if number > 0.0 && number < 0.1 { -number.log10() } else { 0.0 };
    format!("{number:.*}", DECIMALS.max(zeros.ceil() as usize + 2))
}

/// A share in per cent; 0 of nothing.
fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use generator::statistics::{
        DelayFloor, PortStatistics, PortTraffic, RxStatistics, SessionStatistics, StreamStatistics,
        TxStatistics,
    };

    use super::{Interruption, RunReport, delay_text, figure};

    /// The defect of a report of one second of sending and one of silence that had half the rate.
    #[test]
    fn rates_for_programs_are_those_of_the_time_in_which_was_sent() {
        let faded = PortTraffic { packets: 1_000, bytes: 64_000, pps: 3.0, ..Default::default() };
        let port = PortStatistics {
            tx: TxStatistics { traffic: faded, ..TxStatistics::default() },
            rx: RxStatistics { traffic: faded, ..RxStatistics::default() },
            ..PortStatistics::default()
        };
        let statistics = SessionStatistics { ports: vec![port], ..SessionStatistics::default() };
        let report = RunReport { statistics: &statistics, sending_s: 0.5, interrupted: None };
        let port = &report.json()["statistics"]["ports"][0];
        for side in ["tx", "rx"] {
            assert_eq!(port[side]["pps"], 2_000.0);
            assert_eq!(port[side]["l2_bps"], 1_024_000.0);
            assert_eq!(port[side]["l1_bps"], 1_344_000.0);
        }
        assert!(report.text(80).contains("port 0 is down"), "{}", report.text(80));
    }

    #[test]
    fn the_own_floor_is_printed_and_what_is_below_it_is_marked() {
        let floor = DelayFloor {
            p50_ns: 1_250.0,
            p99_ns: 9_000.0,
            least_ns: 900,
            probes: 1_000,
            resolution_ns: 17.0,
        };
        let marked = |delay_ns| delay_text(delay_ns, Some(&floor));
        assert_eq!((marked(1_200.0).as_str(), marked(1_250.0).as_str()), ("1.2*", "1.2"));
        assert_eq!(delay_text(1.0, None), "0.0");
        let stream = StreamStatistics { probes: 1, ..StreamStatistics::default() };
        let streams = vec![stream];
        let statistics =
            SessionStatistics { streams, floor: Some(floor), ..SessionStatistics::default() };
        let report = RunReport { statistics: &statistics, sending_s: 1.0, interrupted: None };
        let expected = "own floor 1.2 us (p50 of 1000 probes over a wire in memory; least 0.9 us), \
                    resolution 17 ns; * is below the floor\n";
        assert!(report.text(80).contains(expected), "{}", report.text(80));
        assert_eq!(report.json()["statistics"]["floor"]["resolution_ns"], 17.0);
    }

    /// The defect of low rates and small losses that were printed as zero.
    #[test]
    fn small_figures_are_not_printed_as_zero() {
        for (number, text) in [
            (0.0, "0.0000"),
            (1.5, "1.5000"),
            (0.0262, "0.0262"),
            (0.001, "0.00100"),
            (1e-6, "0.00000100"),
            (123.45678, "123.4568"),
        ] {
            assert_eq!(figure(number), text);
        }
        assert!(figure(f64::MIN_POSITIVE).parse::<f64>().unwrap() > 0.0);
    }

    #[test]
    fn unaccounted_and_undue_frames_have_remarks() {
        let text = |sent, unnumbered, interrupted| {
            let stream = StreamStatistics { sent, unnumbered, ..StreamStatistics::default() };
            let tx = PortTraffic { packets: sent, ..PortTraffic::default() };
            let tx = TxStatistics { traffic: tx, ..TxStatistics::default() };
            let ports = vec![PortStatistics { tx, link_up: true, ..PortStatistics::default() }];
            let statistics =
                SessionStatistics { ports, streams: vec![stream], ..SessionStatistics::default() };
            RunReport { statistics: &statistics, sending_s: 1.0, interrupted }.text(80)
        };
        assert!(text(9, 7, None).contains("7 of 9 frames"), "{}", text(9, 7, None));
        assert!(!text(9, 0, None).contains("room") && !text(9, 0, None).contains("nothing"));
        assert!(text(0, 0, None).contains("no frame was due"), "{}", text(0, 0, None));
        assert_eq!(Interruption::of(false, || false), None);
        let drained = Interruption::of(false, || true);
        assert!(text(9, 0, drained).contains("in flight"), "{}", text(9, 0, drained));
        let sent = Interruption::of(true, || false);
        assert!(text(9, 0, sent).contains("interrupted after 1.0 s"), "{}", text(9, 0, sent));
    }
}
