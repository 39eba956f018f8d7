//! The settings of a controller. Plain values with sound defaults; nothing here acts.

use channel::{ConnectionSettings, Endpoint, Side, TlsFiles};
use cluster::ClusterSettings;
use openflow::Version;
use std::net::SocketAddr;
use std::time::Duration;

/// The settings of a controller.
///
/// ```
/// use controller::Options;
///
/// let listen = vec!["ptcp:0:127.0.0.1".parse()?];
/// let options = Options { listen, shards: 2, ..Options::default() };
/// assert_eq!(options.probe_after.map(|time| time.as_secs()), Some(5));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    /// Passive endpoints to accept switches on.
    pub listen: Vec<Endpoint>,
    /// Active endpoints: switches that listen themselves.
    pub connect: Vec<Endpoint>,
    /// Key and certificates, for endpoints with TLS.
    pub tls: Option<TlsFiles>,
    /// Whether a switch that is connected to must have a certificate for its host.
    pub check_peer_name: bool,
    /// Versions offered to switches, not empty.
    pub versions: Vec<Version>,
    /// Echo request after this time of silence; `None` never asks.
    pub probe_after: Option<Duration>,
    /// Report rates this often.
    pub stats_interval: Option<Duration>,
    /// The address at which metrics are served; `None` for none.
    pub metrics: Option<SocketAddr>,
    /// Threads that serve switches, each those with its part of the datapath ids.
    pub shards: usize,
    /// For this time after a packet-in a shard does not sleep, but asks for messages: that is
    /// quicker for the next one, and takes its core meanwhile.
    pub busy_poll: Duration,
    /// The most switches of one listener.
    pub switches_max: usize,
    /// Time that a switch may take to answer a request of a handle, or with the next part. All
    /// parts together may take twelve times as long.
    pub answer_deadline: Duration,
    /// The most entries of one answer.
    pub answer_entries_max: usize,
    /// The most bytes of one answer, as the switch sends it; in memory it is a few times as large.
    pub answer_bytes_max: usize,
    /// The most bytes that handles may have waiting for one switch.
    pub queue_max_bytes: usize,
    /// The most bytes that apps may have waiting for one switch; a switch that reads so slowly is
    /// dropped. Packet-ins are dropped before, from 1 MiB on.
    pub output_max_bytes: usize,
    /// The cluster that the controller is a node of, if any. Alone it serves all switches, and none
    /// of the cluster's threads and connections is there.
    pub cluster: Option<ClusterSettings>,
}

impl Default for Options {
    /// No endpoint, every version, one shard that sleeps at once, 16,384 switches of a listener, a
    /// probe after 5 s, 10 s for an answer of at most 1,000,000 entries and 128 MiB, 1 MiB for
    /// handles and 16 MiB for apps.
    fn default() -> Self {
        Self {
            listen: Vec::new(),
            connect: Vec::new(),
            tls: None,
            check_peer_name: false,
            versions: Version::USUAL.to_vec(),
            probe_after: Some(Duration::from_secs(5)),
            stats_interval: None,
            metrics: None,
            shards: 1,
            busy_poll: Duration::ZERO,
            switches_max: 16_384,
            answer_deadline: Duration::from_secs(10),
            answer_entries_max: 1_000_000,
            answer_bytes_max: 128 << 20,
            queue_max_bytes: 1 << 20,
            output_max_bytes: 16 << 20,
            cluster: None,
        }
    }
}

impl Options {
    /// The settings of each connection.
    pub(crate) fn connection(&self) -> ConnectionSettings {
        let mut settings = ConnectionSettings::new(Side::Controller).with_versions(&self.versions);
        settings.probe_after = self.probe_after;
        settings.output_max_bytes = self.output_max_bytes.max(settings.output_limit_bytes);
        settings
    }
}
