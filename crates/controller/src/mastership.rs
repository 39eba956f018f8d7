//! Meeting place of the cluster's thread and the sessions: each session of a switch has a box for
//! the cluster's latest order, and informs the cluster when its connection is over.
//!
//! Only a controller in a cluster has any of it. It must never be locked while something else is
//! waited for.

use crate::role::RoleWanted;
use channel::LogThrottle;
use cluster::{Cluster, ClusterError, ClusterLink, ClusterOrder, ClusterSettings};
use openflow::DatapathId;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// The least time between two lines about refused roles.
const REPORT_EVERY: Duration = Duration::from_secs(10);

/// The boxes of all sessions, and the way to the cluster.
#[derive(Debug)]
pub(crate) struct Mastership {
    link: ClusterLink,
    boxes: Arc<Boxes>,
    refusals: Mutex<LogThrottle>,
}

#[derive(Debug, Default)]
struct Boxes {
    next_connection: AtomicU64,
    by_dpid: Mutex<HashMap<DatapathId, Weak<OrderBox>>>,
}

/// The box of one session; the cluster hears of it when it is dropped.
#[derive(Debug)]
pub(crate) struct OrderBox {
    dpid: DatapathId,
    connection: u64,
    link: ClusterLink,
    boxes: Arc<Boxes>,
    order: Mutex<Option<RoleWanted>>,
    has_order: AtomicBool,
    is_replaced: AtomicBool,
    wake: Notify,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What it guards is whole after every statement, so a panic elsewhere spoils nothing.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Mastership {
    /// Joins a cluster. The node lives as long as what comes back first.
    pub(crate) fn start(settings: ClusterSettings) -> Result<(Cluster, Self), ClusterError> {
        let boxes = Arc::new(Boxes::default());
        let orders = Arc::clone(&boxes);
        let cluster = Cluster::start(settings, move |order| orders.deliver(order))?;
        let link = cluster.link().clone();
        let refusals = Mutex::new(LogThrottle::new(REPORT_EVERY));
        Ok((cluster, Self { link, boxes, refusals }))
    }

    /// The way to the cluster.
    pub(crate) fn link(&self) -> &ClusterLink {
        &self.link
    }

    /// The box of a new session. A session that the switch had before ends.
    pub(crate) fn connected(&self, dpid: DatapathId, has_roles: bool) -> Arc<OrderBox> {
        let mut by_dpid = lock(&self.boxes.by_dpid);
        let connection = self.boxes.next_connection.fetch_add(1, Ordering::Relaxed) + 1;
        let order_box = Arc::new(OrderBox {
            dpid,
            connection,
            link: self.link.clone(),
            boxes: Arc::clone(&self.boxes),
            order: Mutex::default(),
            has_order: AtomicBool::new(false),
            is_replaced: AtomicBool::new(false),
            wake: Notify::new(),
        });
        let before = by_dpid.insert(dpid, Arc::downgrade(&order_box));
        // Under the lock, so that the cluster hears of connections in their order.
        self.link.connected(dpid, connection, has_roles);
        drop(by_dpid);
        if let Some(before) = before.and_then(|before| before.upgrade()) {
            before.is_replaced.store(true, Ordering::Release);
            before.wake.notify_one();
        }
        order_box
    }

    /// A switch has refused us as master. Each of many switches may do so, again and again.
    pub(crate) fn report_refused(&self, dpid: DatapathId, generation: u64) {
        if let Some(suppressed) = lock(&self.refusals).pass(Instant::now()) {
            tracing::warn!(
                %dpid, generation, suppressed,
                "the switch refuses the role of master: the generation id is stale. Another node \
                 is master since, or the switch belongs to another cluster",
            );
        }
    }
}

impl Boxes {
    fn deliver(&self, order: ClusterOrder) {
        let (dpid, connection, wanted) = match order {
            ClusterOrder::Serve { dpid, connection, generation, is_set_up } => {
                (dpid, connection, RoleWanted::Master { generation, is_set_up })
            }
            ClusterOrder::Stand { dpid, connection } => (dpid, connection, RoleWanted::Slave),
        };
        let order_box = lock(&self.by_dpid).get(&dpid).and_then(Weak::upgrade);
        if let Some(order_box) = order_box.filter(|it| it.connection == connection) {
            *lock(&order_box.order) = Some(wanted);
            order_box.has_order.store(true, Ordering::Release);
            order_box.wake.notify_one();
        }
    }
}

impl OrderBox {
    /// The latest order, if there is a new one.
    #[inline]
    pub(crate) fn take(&self) -> Option<RoleWanted> {
        if !self.has_order.load(Ordering::Acquire) {
            return None;
        }
        self.has_order.store(false, Ordering::Release);
        lock(&self.order).take()
    }

    /// Whether the switch has connected again.
    #[inline]
    pub(crate) fn is_replaced(&self) -> bool {
        self.is_replaced.load(Ordering::Acquire)
    }

    /// Done when there may be an order, or the switch has connected again.
    pub(crate) async fn woken(&self) {
        self.wake.notified().await;
    }

    /// The switch has made us master.
    pub(crate) fn confirmed(&self, generation: u64) {
        self.link.confirmed(self.dpid, self.connection, generation);
    }

    /// The switch does not make us master.
    pub(crate) fn refused(&self, generation: u64) {
        self.link.refused(self.dpid, self.connection, generation);
    }
}

impl Drop for OrderBox {
    fn drop(&mut self) {
        let mut by_dpid = lock(&self.boxes.by_dpid);
        if by_dpid.get(&self.dpid).is_some_and(|own| std::ptr::eq(own.as_ptr(), self)) {
            by_dpid.remove(&self.dpid);
        }
        drop(by_dpid);
        self.link.disconnected(self.dpid, self.connection);
    }
}
