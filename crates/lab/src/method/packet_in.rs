//! Packet-ins and packet-outs with the lab itself as the controller: how many packet-ins a second
//! the switch sends up without a loss, how long a packet takes from a port to the controller, and
//! from the controller to a port.
//!
//! Every frame has a number and a due time, which the packet-in brings along. For the way down the
//! lab writes the time at which it sends the packet-out into the same frame, so that its arrival at
//! port 2 tells the delay of that way alone. It must never take a packet-in of an earlier trial for
//! one of this.

use std::time::{Duration, Instant};

use generator::method::on_ports::PortTrialError;
use generator::probe::{ProbeHeader, StreamId};
use generator::profile::StreamSpec;
use generator::receiver::{Distribution, ReceiverOptions, StreamReceiver, StreamReport};
use generator::session::{Session, StartOptions, Waiting};
use generator::statistics::StreamStatistics;
use netdev::sys::realtime::run_in_real_time;
use openflow::action::{Action, MAX_LEN_NO_BUFFER};
use openflow::message::PacketOut;
use openflow::{Message, PortNo};

use super::search::{Attempt, Found, received_pps};
use super::{
    Method, MethodContext, Metric, Trial, TrialError, Values, delay, distribution_us,
    leave_out_quantile, rate, traffic, wrong,
};
use crate::switch_client::SwitchClient;

/// The program that the report names.
const TOOL: &str = "Weir's open-loop generator and the lab's OpenFlow client";

/// Frames a second while delays are measured, where the cell says nothing else: so few that none
/// waits for another.
const DELAY_PPS: f64 = 500.0;

/// Delays are measured for so long at least, seconds.
const DELAY_S: f64 = 0.5;

/// Start of the search, and the most that is offered, frames a second.
const START_PPS: f64 = 2_000.0;
const MAX_PPS: f64 = 1_000_000.0;

/// Packet-ins that come this long after the end of the schedule are in time, as a share of it.
const GRACE: f64 = 0.1;

/// The longest wait for the packet-ins of a trial that the switch still has.
const DRAIN: Duration = Duration::from_secs(5);

/// Between two looks at whether a trial is over.
const LOOK: Duration = Duration::from_millis(2);

pub(super) const PACKET_IN: Method = Method {
    id: "packet-in",
    label: "Packet-ins and packet-outs",
    about: "The lab is the controller: the highest rate of packet-ins of which none is lost (or \
            the share `loss`), and the most that came at any load; at low load, from the due time \
            of a frame at port 1 to its packet-in, and from a packet-out to its frame at port 2",
    metrics: &[
        Metric::higher("packet_in_pps", "packet-ins, none lost", "packets/s", 0),
        Metric::higher("packet_in_most_pps", "most packet-ins", "packets/s", 0),
        Metric::lower("packet_in_us", "port to controller, median", "µs", 1),
        Metric::lower("packet_in_p99_us", "port to controller, 99 %", "µs", 1),
        Metric::lower("packet_out_us", "controller to port, median", "µs", 1),
        Metric::lower("packet_out_p99_us", "controller to port, 99 %", "µs", 1),
    ],
    saturates: true,
    cost: |settings| {
        rate::cost(settings) + Duration::from_secs_f64(settings.duration_s().max(DELAY_S) + 0.1)
    },
    run,
    ..Method::USUAL
};

fn run(context: &MethodContext<'_>) -> Result<Trial, TrialError> {
    let mut client = context.client("has no OpenFlow channel with the lab as its controller")?;
    client.want_packet_ins()?;
    let delays = delays(&mut client, context)?;
    let bounds = (START_PPS, MAX_PPS);
    let range = rate::range(context, bounds, context.settings.loss.unwrap_or(0.0));
    let searched = context.bed.with_session(Waiting::Sleeping, |session| {
        let mut exchange = Exchange { session, client: &mut client, context, answers: false };
        rate::measure("packet-in", context, (range, Found::rate_pps), |offered_pps, duration_s| {
            let burst = traffic::burst(context.settings, offered_pps, duration_s);
            let patience_ns = ((1.0 + GRACE) * duration_s * 1e9) as u64;
            let (up, start_ns) = exchange.carry(&burst, patience_ns)?;
            let received_pps = received_pps(&up, start_ns, (duration_s, 0.0));
            Ok(Attempt { offered_pps, received_pps, loss: up.loss_ratio() })
        })
    });
    let (found, mut trial) = searched?;
    trial.raw["packet_ins_at_low_load"] = delays[0].count.into();
    trial.raw["packet_outs_that_arrived"] = delays[1].count.into();
    Ok(Trial {
        values: figures(&found, &delays),
        tool: TOOL.into(),
        distributions: vec![
            distribution_us("packet_in_us", &delays[0]),
            distribution_us("packet_out_us", &delays[1]),
        ],
        ..trial
    })
}

/// The figures of a search, and of the delays from the due time at port 1 to the controller and
/// from there to port 2.
pub(super) fn figures(found: &Found, [up, down]: &[Distribution; 2]) -> Values {
    let mut values = found.figures("packet_in_pps", "packet_in_most_pps");
    for (metric, of, share) in [
        ("packet_in_us", up, 0.5),
        ("packet_in_p99_us", up, 0.99),
        ("packet_out_us", down, 0.5),
        ("packet_out_p99_us", down, 0.99),
    ] {
        values.push((metric, delay::quantile_us(of, share)));
        leave_out_quantile(&mut values, metric, (share, of.count));
    }
    values
}

/// Both delays at low load. The thread that reads the channel runs in real time, as those that send
/// and receive do: otherwise the lab's own wake-up would be most of the delay.
fn delays(
    client: &mut SwitchClient,
    context: &MethodContext<'_>,
) -> Result<[Distribution; 2], TrialError> {
    let settings = context.settings;
    let rate_pps = settings.rate_pps.unwrap_or(DELAY_PPS);
    let burst = traffic::burst(settings, rate_pps, settings.duration_s().max(DELAY_S));
    let measured = context.bed.with_session(traffic::waiting_for(rate_pps), |session| {
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                if let Err(error) = run_in_real_time() {
                    tracing::info!(%error, "packet-ins are read without real time");
                }
                let mut exchange = Exchange { session, client, context, answers: true };
                let (up, _) = exchange.carry(&burst, u64::MAX)?;
                let down = traffic::report(&exchange.stream()?, 1).cloned();
                Ok::<_, TrialError>((up.delay, down.and_then(|report| report.delay)))
            });
            reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    });
    let (up, down) = measured?;
    let none = "no packet-in came: does a flow entry of the cell send to the controller?";
    let up = up.ok_or_else(|| wrong("packet-in", none))?;
    Ok([up, down.ok_or_else(|| wrong("packet-in", "no packet-out came out of port 2"))?])
}

/// Frames in at port 1, and what the controller does with their packet-ins.
struct Exchange<'a, 'b> {
    session: &'a mut Session,
    client: &'a mut SwitchClient,
    context: &'a MethodContext<'b>,
    /// Whether each is answered by a packet-out to port 2.
    answers: bool,
}

impl Exchange<'_, '_> {
    /// Sends the burst and reads the channel until every packet-in has come, or none comes any
    /// more. Those that come so long after the first frame was due, or later, are late. What came
    /// to the controller, and when the first frame was due.
    fn carry(
        &mut self,
        burst: &StreamSpec,
        patience_ns: u64,
    ) -> Result<(StreamReport, u64), TrialError> {
        self.session.load(0, std::slice::from_ref(burst)).map_err(PortTrialError::from)?;
        let clock = (Instant::now(), self.session.now_ns());
        let number = self.stream()?.id;
        let started = self.session.start(&[0], &StartOptions::default());
        let start_ns = started.map_err(PortTrialError::from)?;
        let deadline_ns = start_ns.saturating_add(patience_ns);
        let options = ReceiverOptions { deadline_ns, ..ReceiverOptions::default() };
        let mut account = StreamReceiver::new(StreamId(number), options);
        let (mut looked, mut came, mut ended) = (Instant::now(), Instant::now(), None);
        loop {
            let next = self.client.next_packet_in(LOOK)?;
            let now = Instant::now();
            if let Some(packet_in) = next {
                let now_ns = clock.1 + (now - clock.0).as_nanos() as u64;
                if account.take(&packet_in.data, now_ns) {
                    came = now;
                    if self.answers {
                        self.answer(packet_in.data, clock)?;
                    }
                }
            }
            if now - looked < LOOK {
                continue;
            }
            looked = now;
            if let Err(stopped) = self.context.cancel.check() {
                self.session.stop(&[0]).map_err(PortTrialError::from)?;
                return Err(stopped.into());
            }
            if self.session.is_transmitting(0) {
                continue;
            }
            let ended = *ended.get_or_insert(now);
            let is_quiet = now - came.max(ended) >= traffic::QUIET;
            if is_quiet || now - ended >= DRAIN || account.received() >= self.stream()?.probes {
                break;
            }
        }
        if self.answers {
            self.session.wait_until_quiet(traffic::QUIET, DRAIN);
        }
        let stream = self.stream()?;
        Ok((account.report(Some(stream.probes + stream.unsent)), start_ns))
    }

    /// The stream as it is now.
    fn stream(&mut self) -> Result<StreamStatistics, TrialError> {
        let statistics = self.session.statistics();
        let stopped = statistics.ports.first().and_then(|port| port.stopped.clone());
        if let Some(stop) = stopped {
            return Err(wrong("packet-in", stop.reason));
        }
        let stream = statistics.streams.into_iter().find(|stream| stream.port == 0);
        stream.ok_or_else(|| wrong("packet-in", "the session has no stream"))
    }

    /// Sends the frame out of port 2, with the time of now in it.
    fn answer(&mut self, mut data: Vec<u8>, clock: (Instant, u64)) -> Result<(), TrialError> {
        let Some(probe) = ProbeHeader::read(&data) else { return Ok(()) };
        let due_ns = clock.1 + clock.0.elapsed().as_nanos() as u64;
        // The sum of a probe is a constant, so that no checksum changes.
        ProbeHeader { due_ns, ..probe }.write(&mut data);
        let actions = vec![Action::Output { port: PortNo(2), max_len: MAX_LEN_NO_BUFFER }];
        let in_port = PortNo::CONTROLLER;
        let packet_out = PacketOut { buffer_id: None, in_port, actions, data };
        self.client.send(&Message::PacketOut(packet_out))?;
        Ok(self.client.flush()?)
    }
}
