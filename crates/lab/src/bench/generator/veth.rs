//! The generator on a veth pair, beside the most that a packet socket takes there.
//!
//! The limit is a loop of nothing but `sendmmsg` with one frame that never changes, on the same
//! device and core, in turns with the generator. Both ends lie in a network namespace that goes
//! with this row. Nobody listens at the far end.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use generator::session::{Session, SessionOptions};
use netdev::sys::affinity::pin_thread;
use netdev::sys::bare_sender::BareSender;
use netdev::sys::link::{Rtnl, VethEnd, VethPair, disable_ipv6};
use netdev::sys::netns::Namespace;
use netdev::{Port, open_text};

use super::super::measure::Pairs;
use super::{Bench, Figure, greedy, mpps};

const NEAR: &str = "gen0";
const FAR: &str = "gen1";

/// Name of the limit in a report.
const PEER: &str = "bare sendmmsg";

/// Bytes of the shortest frame, without FCS.
const FRAME_LEN: usize = 60;

/// A veth pair in a namespace of its own.
struct Veth {
    ns: Namespace,
    index: u32,
}

impl Veth {
    fn new() -> Result<Self> {
        let ns = Namespace::new().context("the row veth needs root, for a network namespace")?;
        ns.enter(|| disable_ipv6("default"))?.context("switching IPv6 off on a veth pair")?;
        let rtnl = Rtnl::open_in(&ns)?;
        let pair = VethPair { here: VethEnd::new(NEAR), there: VethEnd::new(FAR), there_in: None };
        rtnl.add_veth(&pair)?;
        [NEAR, FAR].iter().try_for_each(|end| rtnl.set_up(end, true))?;
        let index = rtnl.link(NEAR)?.index;
        Ok(Self { ns, index })
    }

    /// Millions of frames a second that a bare loop sends.
    fn limit(&self, bypass: bool, core: Option<usize>, seconds: f64) -> Result<f64> {
        let flood = || -> Result<f64> {
            // A wish, as that of the generator's own thread.
            let _ = core.map(pin_thread);
            let mut frame = [0; FRAME_LEN];
            // To a locally administered address, of a type that nobody has (RFC 5342, appendix B).
            frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5]);
            let sender = BareSender::open(self.index, bypass)?;
            let begun = Instant::now();
            let sent = sender.send_for(&frame, Duration::from_secs_f64(seconds))?;
            Ok(sent as f64 / 1e6 / begun.elapsed().as_secs_f64())
        };
        self.ns.enter(flood)?
    }
}

impl Bench {
    /// The shortest frames as fast as they go, through the device's queueing discipline and past
    /// it.
    pub(super) fn veth(&mut self) -> Result<Vec<Figure>> {
        let veth = Veth::new()?;
        let mut figures = Vec::new();
        for (row, bypass) in [("veth", false), ("veth_past_qdisc", true)] {
            let mut pairs = Pairs::default();
            for round in 0..self.args.repeats {
                self.cancel.check()?;
                let limit = || veth.limit(bypass, self.cores.first().copied(), self.args.seconds);
                let (ours, theirs) = if round % 2 == 0 {
                    let first = self.sent_to_veth(&veth, bypass)?;
                    (first, limit()?)
                } else {
                    let first = limit()?;
                    (self.sent_to_veth(&veth, bypass)?, first)
                };
                pairs.ours.push(ours);
                pairs.theirs.push(theirs);
            }
            figures.push(Figure::of_pairs(row, &pairs, "Mpps", PEER));
        }
        Ok(figures)
    }

    fn sent_to_veth(&self, veth: &Veth, bypass: bool) -> Result<f64> {
        let text = format!("af_packet:{NEAR}?qdisc_bypass={bypass}");
        let port: Port = veth.ns.enter(|| open_text(&text))??;
        let options = SessionOptions { cores: self.cores.clone(), ..SessionOptions::default() };
        let mut session = Session::from_ports(vec![port], options)?;
        let streams = [greedy("veth", true)];
        let statistics = self.send(&mut session, 1, &streams, self.args.seconds)?;
        Ok(mpps(&statistics.ports[0].tx))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::bench;

    #[test]
    #[ignore = "needs root"]
    fn both_ways_of_sending_are_measured_beside_their_limit() {
        let figures = bench(|bench| bench.veth().expect("needs root"));
        assert_eq!(figures.len(), 2);
        for figure in figures {
            assert!(figure.value > 0.0 && figure.beside.is_some(), "{figure:?}");
        }
    }
}
