//! The flow-statistics exporter: counters of ports, tables and flow entries for Prometheus.
//!
//! The app asks every switch regularly; a thread of its own answers `GET /metrics` with what it has
//! last heard, so that who reads slowly costs the network nothing. It forwards nothing, so it
//! stands beside an app that does. It must never ask a switch again that has not answered yet.

mod metrics;

pub use metrics::Samples;

use crate::app::App;
use crate::switch::Switch;
use metrics::Sample;
use openflow::flow::FlowStatsRequest;
use openflow::message::{
    ErrorMessage, MultipartReply, MultipartReplyBody, MultipartRequest, MultipartRequestBody,
};
use openflow::{DatapathId, Message, PortNo, Xid};
use serde::Deserialize;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A round of requests without answers is given up after this number of intervals.
const INTERVALS_WAITED: u32 = 6;

/// `[flow-exporter]` in the file of the apps' settings.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct FlowExporterConfig {
    /// The address at which `GET /metrics` is answered.
    pub listen: SocketAddr,
    /// Seconds between two rounds of requests.
    pub interval_s: u16,
    /// Flow entries of one switch that are exported at most, those with the most packets first.
    pub max_flows: u32,
}

impl Default for FlowExporterConfig {
    fn default() -> Self {
        let listen = SocketAddr::from(([127, 0, 0, 1], 9_302));
        Self { listen, interval_s: 10, max_flows: 1_000 }
    }
}

/// The app; all instances of one controller share the samples.
#[derive(Debug)]
pub struct FlowExporter {
    config: FlowExporterConfig,
    samples: Arc<Samples>,
    rounds: HashMap<DatapathId, Round>,
    /// Serves as long as an instance lives.
    _server: Option<Arc<web::Server>>,
}

/// The requests to one switch that are open, and what has come.
#[derive(Debug, Default)]
struct Round {
    due: Duration,
    began: Duration,
    open: Vec<Xid>,
    sample: Sample,
}

impl FlowExporter {
    /// An instance that puts what it hears into `samples`.
    #[must_use]
    pub fn new(config: FlowExporterConfig, samples: Arc<Samples>) -> Self {
        Self { config, samples, rounds: HashMap::new(), _server: None }
    }

    /// The same, with the server that lives as long as it.
    #[must_use]
    pub fn served_by(self, server: Arc<web::Server>) -> Self {
        Self { _server: Some(server), ..self }
    }
}

impl App for FlowExporter {
    fn switch_ready(&mut self, sw: &mut Switch) {
        self.rounds.insert(sw.dpid(), Round::default());
    }

    fn switch_down(&mut self, dpid: DatapathId) {
        self.rounds.remove(&dpid);
        self.samples.remove(dpid);
    }

    fn tick(&mut self, sw: &mut Switch) {
        let interval = Duration::from_secs(self.config.interval_s.max(1).into());
        let Some(round) = self.rounds.get_mut(&sw.dpid()) else { return };
        let is_given_up = sw.now() >= round.began + INTERVALS_WAITED * interval;
        if sw.now() < round.due || !round.open.is_empty() && !is_given_up {
            return;
        }
        let sample = Sample::new(sw.version(), sw.ports().values());
        let bodies = [
            MultipartRequestBody::PortStats(PortNo::ANY),
            MultipartRequestBody::Table,
            MultipartRequestBody::Flow(FlowStatsRequest::all()),
        ];
        let requests = bodies
            .map(|body| sw.send(Message::MultipartRequest(MultipartRequest { more: false, body })));
        let (due, began, open) = (sw.now() + interval, sw.now(), requests.to_vec());
        *round = Round { due, began, open, sample };
    }

    fn message(&mut self, sw: &mut Switch, xid: Xid, message: &Message) {
        let Some(round) = self.rounds.get_mut(&sw.dpid()) else { return };
        let Message::MultipartReply(MultipartReply { body, .. }) = message else { return };
        let Some(index) = round.open.iter().position(|open| *open == xid) else { return };
        round.open.swap_remove(index);
        if let MultipartReplyBody::PortStats(ports) = body {
            round.sample.set_ports(ports);
        } else if let MultipartReplyBody::Table(tables) = body {
            round.sample.set_tables(tables);
        } else if let MultipartReplyBody::Flow(flows) = body {
            round.sample.set_flows(flows, self.config.max_flows);
        }
        // All of a switch's counters change at once, or none does.
        if round.open.is_empty() {
            self.samples.put(sw.dpid(), std::mem::take(&mut round.sample), Instant::now());
        }
    }

    fn error(&mut self, sw: &mut Switch, xid: Xid, _error: &ErrorMessage) {
        // A switch without one kind of statistics still has the others.
        let Some(round) = self.rounds.get_mut(&sw.dpid()) else { return };
        let Some(index) = round.open.iter().position(|open| *open == xid) else { return };
        round.open.swap_remove(index);
        if round.open.is_empty() {
            self.samples.put(sw.dpid(), std::mem::take(&mut round.sample), Instant::now());
        }
    }
}
