//! The state shared by the agent's tasks for a bridge: connected controllers, election, bridge. One
//! thread, no locks; nothing is borrowed across an `await`.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use channel::driver::now;
use channel::{ConnectionLog, ConnectionSettings, Endpoint, Listener, LogLine, Pass, Side, Tls};
use datapath::Miss;
use openflow::message::{AsyncEvent, ControllerRole, PacketInReason, Role, RoleReason};
use openflow::{Error, Version};
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinHandle};

use super::accept::accept_all;
use super::asynchronous;
use super::continuation::ContinuationKey;
use super::controllers::keep_connected;
use super::ending::Ending;
use super::peer::{Peer, PeerInfo};
use super::role::{Election, RoleChange};
use super::snoop::Snoopers;
use crate::bridge::Bridge;
use crate::config::{BridgeConfig, FailMode};
use crate::counters::{Counter, Counters};
use crate::error::SwitchError;
use crate::request::ConnectionId;
use crate::worker::ShardUpcalls;

/// The state that the tasks for a bridge share.
pub(crate) struct Agent {
    /// The bridge's name.
    pub(crate) name: String,
    /// The configuration that is carried out.
    config: RefCell<Rc<BridgeConfig>>,
    /// The bridge's name for the log, where there are several.
    pub(crate) log_name: Option<Arc<str>>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) upcalls: Arc<ShardUpcalls>,
    pub(crate) bridge: Bridge,
    /// The controllers that are connected to, and the task of each.
    controllers: RefCell<Vec<(Endpoint, AbortHandle)>>,
    /// The endpoints that controllers may connect to.
    listeners: RefCell<Vec<ListenerTask>>,
    /// Connections that controllers have made begin anew.
    restart: Notify,
    /// The switch's identity on endpoints with TLS.
    tls: RefCell<Option<Tls>>,
    /// Rate limits of log lines about connections, those of all bridges.
    log: Rc<ConnectionLog>,
    connections_changed: Notify,
    /// Without a controller, the next look at that makes the bridge a learning switch at once.
    pub(super) is_alone_at_once: Cell<bool>,
    /// The tables are those of a learning switch that has been started anew.
    pub(super) was_alone: Cell<bool>,
    /// The tables were emptied: the entry of a learning switch too.
    pub(super) is_flushed: Cell<bool>,
    peers: RefCell<BTreeMap<ConnectionId, Rc<Peer>>>,
    election: RefCell<Election>,
    punt_policy: Cell<Option<(Miss, bool)>>,
    /// Whether a connection monitors flow entries.
    pub(super) is_watched: Cell<bool>,
    next_id: Cell<u64>,
    /// The tasks that serve the bridge as a whole, not one connection.
    tasks: RefCell<Vec<AbortHandle>>,
    /// The bridge goes: its connections end.
    going: Ending,
    /// A connection has left, of a bridge that goes.
    left: Notify,
    /// Notified when the state of connections or ports has changed.
    observer: OnceCell<Rc<Notify>>,
    /// Wishes of a database that are not carried out, for people.
    remarks: RefCell<Vec<String>>,
    /// Programs that read copies of its controllers' messages.
    pub(super) snoopers: Snoopers,
    /// The key of the continuations of packets that wait for its controllers.
    pub(super) continuation_key: ContinuationKey,
}

/// A listener that is served.
struct ListenerTask {
    /// The endpoint as it was asked for.
    wanted: Endpoint,
    /// The endpoint with the port that the system has chosen.
    bound: Endpoint,
    /// It goes: so do the connections that have come by it.
    gone: Rc<Ending>,
    task: JoinHandle<()>,
}

impl Agent {
    pub(crate) fn new(
        config: BridgeConfig,
        log_name: Option<Arc<str>>,
        tls: Option<Tls>,
        counters: Arc<Counters>,
        upcalls: Arc<ShardUpcalls>,
        bridge: Bridge,
        log: Rc<ConnectionLog>,
    ) -> Self {
        Self {
            name: config.name.clone(),
            config: RefCell::new(Rc::new(config)),
            log_name,
            listeners: RefCell::default(),
            restart: Notify::new(),
            controllers: RefCell::default(),
            counters,
            upcalls,
            bridge,
            tls: RefCell::new(tls),
            log,
            connections_changed: Notify::new(),
            is_alone_at_once: Cell::new(true),
            was_alone: Cell::new(false),
            is_flushed: Cell::new(false),
            peers: RefCell::default(),
            election: RefCell::default(),
            punt_policy: Cell::new(None),
            is_watched: Cell::new(false),
            next_id: Cell::new(1),
            tasks: RefCell::default(),
            going: Ending::default(),
            left: Notify::new(),
            observer: OnceCell::new(),
            remarks: RefCell::default(),
            snoopers: Snoopers::default(),
            continuation_key: ContinuationKey::default(),
        }
    }

    /// Has this notified of changes of the state.
    pub(crate) fn set_observer(&self, observer: Rc<Notify>) {
        // One for all bridges: another would be the same.
        let _ = self.observer.set(observer);
    }

    /// The state of connections or ports has changed.
    pub(crate) fn note_change(&self) {
        if let Some(observer) = self.observer.get() {
            observer.notify_one();
        }
    }

    /// The wishes of a database that are not carried out.
    pub(crate) fn remarks(&self) -> Vec<String> {
        self.remarks.borrow().clone()
    }

    /// These wishes of a database are not carried out.
    pub(crate) fn set_remarks(&self, remarks: Vec<String>) {
        self.remarks.replace(remarks);
    }

    /// The configuration that is carried out.
    pub(crate) fn config(&self) -> Rc<BridgeConfig> {
        Rc::clone(&self.config.borrow())
    }

    /// This configuration is carried out now. The probe of connections and the mode without a
    /// controller are read from it again.
    pub(crate) fn set_config(&self, config: BridgeConfig) {
        self.config.replace(Rc::new(config));
        self.peers.borrow().values().for_each(|peer| peer.refresh());
        self.connections_changed.notify_one();
    }

    /// The switch's identity on endpoints with TLS.
    pub(crate) fn tls(&self) -> Option<Tls> {
        self.tls.borrow().clone()
    }

    /// Another identity, for connections to come.
    pub(crate) fn set_tls(&self, tls: Option<Tls>) {
        self.tls.replace(tls);
    }

    /// The bridge's name for the log, where there are several.
    pub(crate) fn log_name(&self) -> Option<&str> {
        self.log_name.as_deref()
    }

    /// Whether a log line about a connection may be written now.
    pub(super) fn log_pass(&self, line: LogLine) -> Option<Pass> {
        self.log.pass(line, self.log_name.as_ref(), now())
    }

    /// The error as one of this bridge, where there are several.
    pub(crate) fn in_bridge(&self, error: SwitchError) -> SwitchError {
        match &self.log_name {
            Some(_) => {
                let name = self.name.clone();
                SwitchError::Bridge { name, source: Box::new(error) }
            }
            None => error,
        }
    }

    /// The controllers that are connected to.
    pub(crate) fn controllers(&self) -> Vec<Endpoint> {
        self.controllers.borrow().iter().map(|(endpoint, _)| endpoint.clone()).collect()
    }

    /// The endpoints that controllers may connect to, with the ports that the system has chosen.
    pub(crate) fn listening(&self) -> Vec<Endpoint> {
        self.listeners.borrow().iter().map(|listener| listener.bound.clone()).collect()
    }

    /// Controllers may connect here, at an endpoint that was asked for as `wanted`.
    pub(crate) fn add_listener(self: &Rc<Self>, wanted: Endpoint, listener: Listener) {
        let (bound, gone) = (listener.endpoint().clone(), Rc::new(Ending::default()));
        let (agent, end) = (Rc::clone(self), Rc::clone(&gone));
        let task = tokio::task::spawn_local(async move {
            tokio::select! {
                biased;
                () = agent.going() => {}
                () = end.come() => {}
                () = accept_all(Rc::clone(&agent), listener, Rc::clone(&end)) => {}
            }
        });
        self.listeners.borrow_mut().push(ListenerTask { wanted, bound, gone, task });
    }

    /// Listens no longer at an endpoint that was asked for; the connections that have come by it
    /// end.
    pub(crate) async fn forget_listener(&self, wanted: &Endpoint) {
        let found = self.listeners.borrow().iter().position(|listener| listener.wanted == *wanted);
        let Some(at) = found else { return };
        let ListenerTask { gone, task, .. } = self.listeners.borrow_mut().remove(at);
        gone.begin();
        if let Err(error) = task.await {
            tracing::error!(%error, "ending a listener has failed");
        }
    }

    /// Has connections begin anew: those that controllers have made, which end, and those to
    /// controllers.
    pub(crate) fn restart_connections(self: &Rc<Self>) {
        self.restart.notify_waiters();
        self.restart_controllers(|_| true);
    }

    /// Begins anew to connect to these controllers.
    pub(crate) fn restart_controllers(self: &Rc<Self>, is_selected: impl Fn(&Endpoint) -> bool) {
        for endpoint in self.controllers() {
            if is_selected(&endpoint) {
                self.forget_controller(&endpoint);
                self.add_controller(endpoint);
            }
        }
    }

    /// Whether a connection to this controller is up.
    pub(crate) fn is_connected(&self, endpoint: &Endpoint) -> bool {
        let name = endpoint.to_string();
        self.peers.borrow().values().any(|peer| peer.is_configured && peer.name == name)
    }

    /// Done when the connections that controllers have made are to begin anew.
    pub(super) async fn restart(&self) {
        self.restart.notified().await;
    }

    /// Connects to a controller from now on.
    pub(crate) fn add_controller(self: &Rc<Self>, endpoint: Endpoint) {
        let task = tokio::task::spawn_local(keep_connected(Rc::clone(self), endpoint.clone()));
        self.controllers.borrow_mut().push((endpoint, task.abort_handle()));
    }

    /// Ends the connection to a controller, and does not connect to it any more.
    pub(crate) fn forget_controller(&self, endpoint: &Endpoint) {
        self.controllers.borrow_mut().retain(|(other, task)| {
            let stays = other != endpoint;
            if !stays {
                task.abort();
            }
            stays
        });
    }

    /// Runs a task for as long as the bridge is there.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        let task = tokio::task::spawn_local(task);
        self.tasks.borrow_mut().push(task.abort_handle());
    }

    /// Runs a task that has to do with controllers: it is dropped when the bridge goes.
    pub(crate) fn spawn_for_controllers(self: &Rc<Self>, task: impl Future<Output = ()> + 'static) {
        let agent = Rc::clone(self);
        tokio::task::spawn_local(async move {
            tokio::select! {
                biased;
                () = agent.going() => {}
                () = task => {}
            }
        });
    }

    /// Done when the bridge goes.
    pub(super) async fn going(&self) {
        self.going.come().await;
    }

    /// Accepts and makes no connections any more, and ends those that there are; done when all of
    /// them have left. What is queued for a peer is still sent to it.
    pub(crate) async fn end_connections(&self) {
        self.going.begin();
        let listeners = self.listeners.take();
        while !self.peers.borrow().is_empty() {
            self.left.notified().await;
        }
        for listener in listeners {
            if let Err(error) = listener.task.await {
                tracing::error!(%error, "ending a listener has failed");
            }
        }
        self.controllers.take().iter().for_each(|(_, task)| task.abort());
    }

    /// Ends the tasks of [`Agent::spawn`].
    pub(crate) fn end_tasks(&self) {
        self.tasks.take().iter().for_each(AbortHandle::abort);
    }

    /// The settings of every connection.
    pub(crate) fn connection_config(&self) -> ConnectionSettings {
        let mut settings =
            ConnectionSettings::new(Side::Switch).with_versions(&self.config.borrow().versions);
        (settings.probe_after, settings.probe_deadline) = self.probe();
        settings
    }

    /// The silence until a connection is probed, if it is, and then until it is given up.
    pub(super) fn probe(&self) -> (Option<Duration>, Duration) {
        let probe = Duration::from_secs(self.config.borrow().inactivity_probe_s.into());
        ((!probe.is_zero()).then_some(probe), probe.max(Duration::from_secs(1)))
    }

    /// The main connection of a controller is up; `is_configured` when we have connected.
    pub(crate) fn join(&self, name: &str, version: Version, is_configured: bool) -> Rc<Peer> {
        let peer = Peer::main(self.fresh_id(), name.to_owned(), version, is_configured);
        self.add(Rc::new(peer))
    }

    /// A connection of the control socket is up. In 1.3 it gets asynchronous messages only when it
    /// asks for them; 1.0 has no message to ask by.
    pub(crate) fn join_tool(&self, name: &str, version: Version) -> Rc<Peer> {
        let peer = Peer::tool(self.fresh_id(), name.to_owned(), version);
        if version.has_async_config() {
            peer.controller.asynchronous.set(asynchronous::NOTHING);
        }
        self.add(Rc::new(peer))
    }

    /// An auxiliary connection is up.
    pub(crate) fn join_auxiliary(&self, name: &str, auxiliary_id: u8, main: &Peer) -> Rc<Peer> {
        let peer = Peer::auxiliary(self.fresh_id(), name.to_owned(), auxiliary_id, main);
        let peer = self.add(Rc::new(peer));
        peer.join_main();
        peer
    }

    fn fresh_id(&self) -> ConnectionId {
        let id = self.next_id.get();
        self.next_id.set(id + 1);
        ConnectionId(id)
    }

    fn add(&self, peer: Rc<Peer>) -> Rc<Peer> {
        self.peers.borrow_mut().insert(peer.id, Rc::clone(&peer));
        if !peer.is_tool {
            self.counters.bump(Counter::ChannelUp);
        }
        self.update_punt_policy();
        self.connections_changed.notify_one();
        self.note_change();
        peer
    }

    /// A connection is over. What becomes of the flow entries then is the fail mode's business.
    pub(crate) fn leave(&self, peer: &Peer) {
        peer.end();
        self.peers.borrow_mut().remove(&peer.id);
        self.update_watch();
        if !peer.is_tool {
            self.counters.bump(Counter::ChannelDown);
        }
        self.update_punt_policy();
        self.connections_changed.notify_one();
        self.note_change();
        if self.going.has_come() {
            self.left.notify_one();
        }
    }

    /// Whether one of the controllers is connected that the switch connects to.
    pub(crate) fn has_configured_controller(&self) -> bool {
        self.peers.borrow().values().any(|peer| peer.is_configured)
    }

    /// Whether the bridge is to be a learning switch once it has been without a controller for long
    /// enough (fail-standalone).
    pub(super) fn is_left_alone(&self) -> bool {
        self.config.borrow().fail_mode == FailMode::Standalone && !self.has_configured_controller()
    }

    /// The tables are empty. The mode without a controller begins anew, at once where `is_alone`.
    pub(super) fn set_flushed(&self, is_alone: bool) {
        self.is_flushed.set(true);
        self.is_alone_at_once.set(is_alone);
        self.connections_changed.notify_one();
    }

    /// Waits until a connection has come or gone, or the mode may be another; for one task.
    pub(crate) async fn connections_changed(&self) {
        self.connections_changed.notified().await;
    }

    /// The connection of an id, if it is still up.
    pub(crate) fn peer(&self, id: ConnectionId) -> Option<Rc<Peer>> {
        self.peers.borrow().get(&id).cloned()
    }

    /// All connections that are up.
    pub(crate) fn peers(&self) -> Vec<Rc<Peer>> {
        self.peers.borrow().values().cloned().collect()
    }

    /// The controllers, as shown to people.
    pub(crate) fn peer_infos(&self) -> Vec<PeerInfo> {
        let peers = self.peers.borrow();
        peers.values().filter(|peer| !peer.is_tool).map(|peer| peer.info()).collect()
    }

    /// Carries out a role request (clause 6.3.5).
    ///
    /// # Errors
    /// Those of [`Election::request`].
    pub(crate) fn role_request(&self, peer: &Peer, request: Role) -> Result<Role, Error> {
        let change = self.election.borrow_mut().request(request)?;
        self.change_role(peer, change);
        let generation_id = self.election.borrow().generation_id();
        Ok(Role { role: peer.role(), generation_id })
    }

    /// Changes the role of a controller, and that of a master that it replaces.
    pub(super) fn change_role(&self, peer: &Peer, change: RoleChange) {
        match change {
            RoleChange::None => {}
            RoleChange::To(role) => peer.controller.role.set(role),
            RoleChange::Master => {
                let generation_id = self.election.borrow().generation_id();
                let is_other = |other: &&Rc<Peer>| {
                    other.is_main() && !Rc::ptr_eq(&other.controller, &peer.controller)
                };
                for other in self.peers.borrow().values().filter(is_other) {
                    if other.role() == ControllerRole::Master {
                        other.controller.role.set(ControllerRole::Slave);
                        other.report_role(RoleReason::MasterRequest, generation_id);
                    }
                }
                peer.controller.role.set(ControllerRole::Master);
            }
        }
        self.update_punt_policy();
        self.note_change();
    }

    /// Updates the bridge's set of packets that go to controllers without an entry's action (misses
    /// of 1.0, invalid TTLs), if it has changed.
    pub(crate) fn update_punt_policy(&self) {
        let peers = self.peers.borrow();
        let sends_misses = peers.values().any(|peer| !peer.version.has_table_miss_entry());
        let invalid_ttl = peers
            .values()
            .any(|peer| peer.wants(AsyncEvent::PacketIn, PacketInReason::InvalidTtl.number()));
        let miss = if sends_misses { Miss::Controller } else { Miss::Drop };
        drop(peers);
        if self.punt_policy.replace(Some((miss, invalid_ttl))) == Some((miss, invalid_ttl)) {
            return;
        }
        self.bridge.with_control(|control| {
            let mut settings = control.settings();
            settings.miss = miss;
            settings.invalid_ttl_to_controller = invalid_ttl;
            control.set_settings(settings);
        });
        self.send_ops();
    }

    /// Sends what commands have changed to the workers, and flow-removed messages to the
    /// controllers.
    pub(crate) fn send_ops(&self) {
        let removed = self.bridge.send_ops();
        self.report_changes(None);
        self.send_flow_removed(removed);
    }
}
