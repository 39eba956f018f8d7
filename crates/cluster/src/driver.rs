//! A member with etcd and a clock: three tasks on one thread keep the lease alive, watch, and carry
//! out transactions, each with a connection of its own, so that none waits for another.
//!
//! Each goes on when etcd comes back, with growing waits between attempts. It decides nothing; what
//! it cannot do it says once, and again when the reason changes.

use crate::address::KeyName;
use crate::etcd::{Compare, Etcd, EtcdError, Op, OpAnswer, Snapshot, Txn, TxnAnswer, WatchBatch};
use crate::keys::{MemberKey, members_prefix};
use crate::member::{ClusterOrder, Held, Member, Request};
use crate::state::{self, StateRequest};
use crate::view::MEMBER;
use crate::{ClusterSettings, EtcdServers, Input};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;

/// The first and the longest wait before etcd is asked again after a failure.
const RETRY: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));
/// An answer other than to keep the lease alive may take this long.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// Messages of the tasks that may wait.
const QUEUE: usize = 64;

/// A message of the tasks.
#[derive(Debug)]
enum Report {
    /// The node is in etcd.
    Joined(Held),
    /// The lease lives until then.
    Renewed { lease: i64, ends: Instant },
    /// The lease is over.
    LostLease,
    /// All keys; a watch is behind them.
    Synced(Snapshot),
    /// Some have changed.
    Changed(WatchBatch),
    /// The watch has ended.
    WatchBroke,
    /// A transaction has been carried out, or nobody knows.
    Answered(Request, Option<TxnAnswer>),
}

/// The part that all tasks need.
#[derive(Clone)]
struct Task {
    settings: Arc<ClusterSettings>,
    servers: EtcdServers,
    prefix: Arc<str>,
    reports: mpsc::Sender<Report>,
    /// The node's key is gone although its lease lives: it joins anew.
    rejoin: Arc<Notify>,
}

/// Runs a member until it has left.
pub(crate) async fn run(
    settings: ClusterSettings,
    servers: EtcdServers,
    mut inputs: mpsc::UnboundedReceiver<Input>,
    state_requests: mpsc::Receiver<StateRequest>,
    order: impl Fn(ClusterOrder),
) {
    let settings = Arc::new(settings);
    let prefix: Arc<str> = members_prefix(&settings.name).into();
    let (reports, mut reported) = mpsc::channel(QUEUE);
    let (requests, to_ask) = mpsc::channel(1);
    let rejoin = Arc::new(Notify::new());
    let mut member = Member::new(
        settings.node.clone(),
        &prefix,
        settings.ttl,
        settings.rebalance_after,
        first_base(),
        Instant::now(),
    )
    .with_sharing(settings.sharing);
    let task = Task { settings, servers, prefix, reports, rejoin: Arc::clone(&rejoin) };
    let mut tasks = JoinSet::new();
    tasks.spawn(state::serve(task.servers.clone(), state_requests));
    tasks.spawn(task.clone().keep_lease());
    tasks.spawn(task.clone().watch());
    tasks.spawn(task.clone().ask(to_ask));
    let mut lease = None;
    loop {
        let now = Instant::now();
        if let Some(request) = member.poll(now) {
            // The task has taken the one before, so there is room.
            let sent = requests.try_send(request);
            debug_assert!(sent.is_ok(), "one transaction at a time");
        }
        if member.take_must_rejoin() {
            rejoin.notify_one();
        }
        member.take_orders().into_iter().for_each(&order);
        if member.has_left(now) {
            break;
        }
        let due = tokio::time::Instant::from_std(member.next_timeout(now));
        tokio::select! {
            input = inputs.recv() => {
                if !take_inputs(&mut member, input, &mut inputs) {
                    break;
                }
            }
            report = reported.recv() => {
                let Some(report) = report else { break };
                if let Report::Joined(held) = &report {
                    lease = Some(held.lease);
                }
                if !take_report(&mut member, report) {
                    rejoin.notify_one();
                }
            }
            () = tokio::time::sleep_until(due) => {}
        }
    }
    tasks.shutdown().await;
    if let Some(lease) = lease {
        end_lease(&task.servers, lease).await;
    }
}

/// Takes an input and those that wait behind it: many switches that come together reach etcd
/// together. Returns whether the member goes on.
fn take_inputs(
    member: &mut Member,
    first: Option<Input>,
    inputs: &mut mpsc::UnboundedReceiver<Input>,
) -> bool {
    let mut goes_on = first.is_some();
    let mut next = first;
    while let Some(input) = next {
        goes_on &= take_input(member, input);
        next = inputs.try_recv().ok();
    }
    goes_on
}

/// Ends the lease, so that the node that waits for our switches need not wait for it to end by
/// itself.
async fn end_lease(servers: &EtcdServers, lease: i64) {
    let mut etcd = Etcd::new(servers);
    if let Err(error) = etcd.revoke(lease, Duration::from_secs(1)).await {
        tracing::debug!(%error, "the lease was not ended; it ends by itself");
    }
}

/// Takes an input; whether the node goes on.
fn take_input(member: &mut Member, input: Input) -> bool {
    let now = Instant::now();
    match input {
        Input::Connected { dpid, connection, has_roles } => {
            member.connected(dpid, connection, has_roles, now);
        }
        Input::Disconnected { dpid, connection } => member.disconnected(dpid, connection),
        Input::Confirmed { dpid, connection, generation } => {
            member.confirmed(dpid, connection, generation);
        }
        Input::Refused { dpid, connection, generation } => {
            member.refused(dpid, connection, generation, now);
        }
        Input::Leave => member.leave(now),
        Input::End => return false,
    }
    true
}

/// Takes a report; whether the node is still a member.
fn take_report(member: &mut Member, report: Report) -> bool {
    let now = Instant::now();
    match report {
        Report::Joined(held) => member.joined(held),
        Report::Renewed { lease, ends } => member.renewed(lease, ends),
        Report::LostLease => member.lost_lease(),
        Report::Synced(snapshot) => member.synced(snapshot, now),
        Report::Changed(batch) => member.changed(batch, now),
        Report::WatchBroke => member.watch_broke(),
        Report::Answered(request, answer) => return member.answered(request, answer, now),
    }
    true
}

impl Task {
    fn etcd(&self) -> Etcd {
        Etcd::new(&self.servers)
    }

    /// Tells the member; waits while it is busy.
    async fn report(&self, report: Report) {
        // The member ends before its tasks.
        let sent = self.reports.send(report).await;
        drop(sent);
    }

    /// Gets a lease, keeps it alive, and gets another when it is over.
    async fn keep_lease(self) {
        let mut etcd = self.etcd();
        let mut trouble = Trouble::new("cannot join the cluster");
        loop {
            match self.join(&mut etcd).await {
                Ok(Some((held, ttl))) => {
                    trouble.is_over();
                    let (lease, node) = (held.lease, &self.settings.node);
                    let cluster = &self.settings.name;
                    tracing::info!(%cluster, %node, ?ttl, "joined the cluster");
                    self.report(Report::Joined(held)).await;
                    self.keep_alive(&mut etcd, lease, ttl).await;
                    self.report(Report::LostLease).await;
                }
                Ok(None) => trouble.wait("another node has this id, or had it a moment ago").await,
                Err(error) => trouble.wait(&error).await,
            }
        }
    }

    /// Gets a lease and makes the node's key; nothing when another node has the key.
    async fn join(&self, etcd: &mut Etcd) -> Result<Option<(Held, Duration)>, EtcdError> {
        let sent = Instant::now();
        let asked = self.settings.ttl;
        let grant = etcd.grant(asked, ANSWER_WITHIN).await?;
        if grant.ttl > asked {
            tracing::info!(
                asked_s = asked.as_secs(),
                granted_s = grant.ttl.as_secs(),
                "etcd grants no shorter lease; its --election-timeout decides",
            );
        }
        let (node, base) = (MemberKey::Node(self.settings.node.clone()), MemberKey::Base);
        let (node, base) = (node.to_text(&self.prefix), base.to_text(&self.prefix));
        let make = |key: &str, value: String, lease| {
            Op::Txn(Txn {
                compare: vec![Compare::Created(key.into(), 0)],
                success: vec![Op::Put { key: key.into(), value, lease }],
                failure: Vec::new(),
            })
        };
        let txn = Txn {
            compare: Vec::new(),
            success: vec![
                make(&base, first_base().to_string(), 0),
                make(&node, MEMBER.into(), grant.lease),
            ],
            failure: Vec::new(),
        };
        let answer = etcd.txn(&txn, ANSWER_WITHIN).await?;
        if !matches!(answer.ops.get(1), Some(OpAnswer::Txn(made)) if made.succeeded) {
            etcd.revoke(grant.lease, ANSWER_WITHIN).await?;
            return Ok(None);
        }
        let (lease, created, ends) = (grant.lease, answer.revision, sent + grant.ttl);
        Ok(Some((Held { lease, created, ends }, grant.ttl)))
    }

    /// Keeps a lease alive for as long as etcd has it.
    async fn keep_alive(&self, etcd: &mut Etcd, lease: i64, ttl: Duration) {
        let mut trouble = Trouble::new("cannot keep the lease alive");
        let interval = (ttl / 4).max(Duration::from_millis(100));
        loop {
            tokio::select! {
                () = tokio::time::sleep(interval) => {}
                () = self.rejoin.notified() => {
                    tracing::warn!("this node's key in etcd is gone; joining anew");
                    let revoked = etcd.revoke(lease, ANSWER_WITHIN).await;
                    tracing::debug!(?revoked, "the lease of the lost key");
                    return;
                }
            }
            let sent = Instant::now();
            match etcd.keep_alive(lease, ttl).await {
                Ok(Some(lives)) => {
                    trouble.is_over();
                    self.report(Report::Renewed { lease, ends: sent + lives }).await;
                }
                Ok(None) => {
                    tracing::warn!("this node's lease has ended");
                    return;
                }
                Err(error) => trouble.wait(&error).await,
            }
        }
    }

    /// Tells all keys, then what changes, and begins anew when the watch ends.
    async fn watch(self) {
        let mut trouble = Trouble::new("cannot watch the cluster");
        loop {
            let error = match self.watch_once(&mut trouble).await {
                Ok(never) => match never {},
                Err(error) => error,
            };
            self.report(Report::WatchBroke).await;
            trouble.wait(&error).await;
        }
    }

    async fn watch_once(
        &self,
        trouble: &mut Trouble,
    ) -> Result<std::convert::Infallible, EtcdError> {
        let snapshot = self.etcd().snapshot(&self.prefix, ANSWER_WITHIN).await?;
        let from = snapshot.revision.saturating_add(1);
        let mut watch = self.etcd().watch(&self.prefix, from, ANSWER_WITHIN).await?;
        trouble.is_over();
        self.report(Report::Synced(snapshot)).await;
        loop {
            self.report(Report::Changed(watch.next().await?)).await;
        }
    }

    /// Carries out transactions.
    async fn ask(self, mut requests: mpsc::Receiver<Request>) {
        let mut etcd = self.etcd();
        let mut trouble = Trouble::new("cannot write to the cluster");
        while let Some(request) = requests.recv().await {
            let answer = etcd.txn(&request.txn, ANSWER_WITHIN).await;
            let answer = match answer {
                Ok(answer) => {
                    trouble.is_over();
                    Some(answer)
                }
                Err(error) => {
                    trouble.wait(&error).await;
                    None
                }
            };
            self.report(Report::Answered(request, answer)).await;
        }
    }
}

/// The base of a cluster that has none: so high that all generation ids of an etcd whose data has
/// been lost are below it, unless that etcd wrote more than sixteen million revisions a second.
fn first_base() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (since.as_secs() & 0x7f_ffff_ffff) << 24
}

/// The least time between two lines about one kind of failure.
const REPORT_EVERY: Duration = Duration::from_secs(10);

/// Failures in a row, with growing waits. The first is said, and then one every ten seconds.
struct Trouble {
    what: &'static str,
    next: Duration,
    since: Option<Instant>,
    reported: Option<Instant>,
}

impl Trouble {
    fn new(what: &'static str) -> Self {
        Self { what, next: RETRY.0, since: None, reported: None }
    }

    /// Says why, unless something was said a moment ago, and waits.
    async fn wait(&mut self, why: impl std::fmt::Display) {
        let now = Instant::now();
        self.since.get_or_insert(now);
        if self.reported.is_none_or(|reported| now >= reported + REPORT_EVERY) {
            tracing::warn!("{}: {why}; trying again", self.what);
            self.reported = Some(now);
        }
        tokio::time::sleep(self.next).await;
        self.next = (self.next * 2).min(RETRY.1);
    }

    fn is_over(&mut self) {
        if let Some(since) = self.since.take() {
            let after_ms = since.elapsed().as_millis();
            tracing::info!(after_ms, "etcd answers again (it was: {})", self.what);
        }
        (self.reported, self.next) = (None, RETRY.0);
    }
}

/// A node's id made of the machine's name, as far as that may be part of a key.
pub(crate) fn default_node(host: &str, pid: u32) -> KeyName {
    let is_fine = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let host: String = host.chars().filter(is_fine).take(48).collect();
    let host = if host.is_empty() { "node" } else { &host };
    KeyName::of_fine(format!("{host}-{pid}"))
}
