//! The choice of each switch's master among the controllers of a cluster, decided in etcd.
//!
//! Every node of a cluster is connected with every switch. For each switch etcd has a key, bound to
//! the lease of the node that is to be its master; the revision that wrote the key is the
//! generation id of the role request, so that a switch refuses a master that comes late (OpenFlow
//! 1.3.4, clause 6.3.5). When a node dies its lease ends, and the others share its switches.
//!
//! A [`Cluster`] is told which switches are connected ([`ClusterLink::connected`]) and gives
//! orders: to serve a switch under a generation id, or to stand back. It knows no sockets of
//! switches, no messages and no apps. It is no consensus of its own: what etcd has not said is not
//! so.
//!
//! ```no_run
//! use cluster::{Cluster, ClusterOrder, ClusterSettings};
//!
//! let address = "etcd:http://127.0.0.1:2379".parse()?;
//! let settings = ClusterSettings::new(address, "lab".parse()?, "node-1".parse()?);
//! let cluster = Cluster::start(settings, |order| match order {
//!     ClusterOrder::Serve { dpid, generation, .. } => println!("{dpid}: master, {generation}"),
//!     ClusterOrder::Stand { dpid, .. } => println!("{dpid}: slave"),
//! })?;
//! cluster.link().connected(openflow::DatapathId(1), 1, true);
//! // The switch has granted the role: cluster.link().confirmed(..). At the end:
//! cluster.leave();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod address;
mod driver;
mod etcd;
mod keys;
mod member;
mod plan;
mod state;
mod tls;
mod view;

use openflow::DatapathId;
use rustls::ClientConfig;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::mpsc;

use state::StateRequest;

pub use address::{BadName, ClusterAddress, KeyName};
pub use etcd::EtcdError;
pub use member::ClusterOrder;
pub use state::{
    ClusterState, STATE_KEY_MAX, STATE_VALUE_MAX, StateEntry, StateError, StateEvent, StateWatch,
};
pub use tls::{EtcdPairFiles, EtcdTlsError, EtcdTlsFiles};

/// The lease that is asked for. It is the least that an etcd with its own defaults grants.
pub const DEFAULT_TTL: Duration = Duration::from_secs(2);

/// Time that nodes and switches must have been as they are before switches move for balance.
pub const REBALANCE_AFTER: Duration = Duration::from_secs(5);

/// The division of the switches among the nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// Evenly.
    #[default]
    Even,
    /// One node has all that it is connected with, and the others stand by: for apps that must see
    /// the whole network. It is the node that most switches are connected with. All nodes of a
    /// cluster must say the same.
    OneNode,
}

/// A cluster, and a node's name in it.
#[derive(Clone, Debug)]
pub struct ClusterSettings {
    /// The address of etcd.
    pub address: ClusterAddress,
    /// The files for an address with `https://`.
    pub tls: Option<EtcdTlsFiles>,
    /// The cluster's name: several may share an etcd.
    pub name: KeyName,
    /// This node, unlike all others.
    pub node: KeyName,
    /// The lease: how long after the death of a node its switches are without a master at most,
    /// but for half a second of etcd's own.
    pub ttl: Duration,
    /// [`REBALANCE_AFTER`], unless a test is in a hurry.
    pub rebalance_after: Duration,
    /// The division of the switches.
    pub sharing: Sharing,
}

impl ClusterSettings {
    /// Settings with the usual times.
    #[must_use]
    pub fn new(address: ClusterAddress, name: KeyName, node: KeyName) -> Self {
        Self {
            address,
            tls: None,
            name,
            node,
            ttl: DEFAULT_TTL,
            rebalance_after: REBALANCE_AFTER,
            sharing: Sharing::Even,
        }
    }
}

/// A node's id made of the machine's name and the process's number, for who gives none.
#[must_use]
pub fn default_node(host: &str, pid: u32) -> KeyName {
    driver::default_node(host, pid)
}

/// Why a node does not start.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The system gives no thread.
    #[error("the cluster's thread cannot start: {0}")]
    Start(#[from] std::io::Error),
    /// A file for TLS cannot be used.
    #[error(transparent)]
    Tls(#[from] EtcdTlsError),
    /// An address with TLS, and nobody to believe.
    #[error("{0} needs --cluster-ca FILE: the certificate of the CA that signs etcd's")]
    NoCa(ClusterAddress),
    /// Files for TLS, and an address without.
    #[error("--cluster-ca is for etcd:https://..., but the cluster is at {0}")]
    NoTls(ClusterAddress),
}

/// Addresses of etcd's members, with the TLS to reach them.
#[derive(Clone, Debug)]
pub(crate) struct EtcdServers {
    /// `HOST:PORT` of each, in the order of trying.
    names: Arc<[String]>,
    tls: Option<Arc<ClientConfig>>,
}

impl EtcdServers {
    fn of(settings: &ClusterSettings) -> Result<Self, ClusterError> {
        let address = &settings.address;
        let tls = match (&settings.tls, address.is_tls) {
            (Some(files), true) => Some(tls::load(files)?),
            (None, false) => None,
            (None, true) => return Err(ClusterError::NoCa(address.clone())),
            (Some(_), false) => return Err(ClusterError::NoTls(address.clone())),
        };
        Ok(Self { names: address.servers.clone().into(), tls })
    }
}

/// A message of a session to the member.
#[derive(Clone, Copy, Debug)]
enum Input {
    Connected { dpid: DatapathId, connection: u64, has_roles: bool },
    Disconnected { dpid: DatapathId, connection: u64 },
    Confirmed { dpid: DatapathId, connection: u64, generation: u64 },
    Refused { dpid: DatapathId, connection: u64, generation: u64 },
    Leave,
    End,
}

/// A node of a cluster, on a thread of its own. It ends when this is dropped, without handing over.
#[derive(Debug)]
pub struct Cluster {
    link: ClusterLink,
    thread: Option<JoinHandle<()>>,
}

/// The way to a node, from any thread. Clones are the same; it outlives the node.
#[derive(Clone, Debug)]
pub struct ClusterLink {
    name: KeyName,
    // As many messages as switches come and go: those that matter to a switch are few.
    inputs: mpsc::UnboundedSender<Input>,
    state: mpsc::Sender<StateRequest>,
}

impl Cluster {
    /// Starts a node. `order` is called on its thread and must not wait.
    ///
    /// # Errors
    /// When the system gives no thread, or the files for TLS cannot be used. An etcd that does not
    /// answer is no error: the node tries until it does, and says so in the log.
    pub fn start(
        settings: ClusterSettings,
        order: impl Fn(ClusterOrder) + Send + 'static,
    ) -> Result<Self, ClusterError> {
        let servers = EtcdServers::of(&settings)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (inputs, received) = mpsc::unbounded_channel();
        let (state, state_requests) = state::queue();
        let link = ClusterLink { name: settings.name.clone(), inputs, state };
        let run = move || {
            runtime.block_on(driver::run(settings, servers, received, state_requests, order));
        };
        let thread = std::thread::Builder::new().name("weir-cluster".into()).spawn(run)?;
        Ok(Self { link, thread: Some(thread) })
    }

    /// The way to it for others.
    #[must_use]
    pub fn link(&self) -> &ClusterLink {
        &self.link
    }

    /// Hands all switches over to the other nodes. Orders to stand follow, then the node has left.
    pub fn leave(&self) {
        self.link.send(Input::Leave);
    }

    /// Done when the node has left.
    pub async fn left(&self) {
        self.link.inputs.closed().await;
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.link.send(Input::End);
        if let Some(Err(_)) = self.thread.take().map(JoinHandle::join) {
            tracing::error!("the cluster's thread has panicked");
        }
    }
}

impl ClusterLink {
    /// A switch is connected, by a connection whose number is greater than those before it.
    pub fn connected(&self, dpid: DatapathId, connection: u64, has_roles: bool) {
        self.send(Input::Connected { dpid, connection, has_roles });
    }

    /// A connection is over.
    pub fn disconnected(&self, dpid: DatapathId, connection: u64) {
        self.send(Input::Disconnected { dpid, connection });
    }

    /// The switch has granted the role of an order to serve.
    pub fn confirmed(&self, dpid: DatapathId, connection: u64, generation: u64) {
        self.send(Input::Confirmed { dpid, connection, generation });
    }

    /// The switch has refused the role.
    pub fn refused(&self, dpid: DatapathId, connection: u64, generation: u64) {
        self.send(Input::Refused { dpid, connection, generation });
    }

    /// The key space of an app.
    #[must_use]
    pub fn state(&self, app: &KeyName) -> ClusterState {
        ClusterState::new(&self.name, app, self.state.clone())
    }

    fn send(&self, input: Input) {
        // An error says that the node has left, which needs to know nothing.
        self.inputs.send(input).ok();
    }
}
