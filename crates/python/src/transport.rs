//! A connection of a switch, as the apps' thread sees it, and the transport of its messages.
//!
//! The runtime's connections are one transport, the list of a test another; a switch of the apps
//! does not know which one it has.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use controller::MessageBatch;
use openflow::message::{Features, MultipartRequestBody};
use openflow::port::{PortDesc, PortReason, PortStatus};
use openflow::{DatapathId, Message, PortNo, Version};
use pyo3::{Py, PyAny};
use wire::EncodeError;

use crate::lock::lock;

/// A question to a switch.
pub(crate) enum Question {
    /// One message that has an answer of its own.
    One(Message),
    /// Statistics or descriptions, whole.
    Multipart(MultipartRequestBody),
    /// Messages without an answer of their own, and whether the switch takes all of them.
    Checked(Vec<Message>),
}

/// The way of messages to a switch.
pub(crate) trait Transport: Send + Sync {
    /// Sends a message; one that cannot be sent is counted.
    ///
    /// # Errors
    /// The connection's version has no encoding for it.
    fn send(&self, to: &Arc<Connection>, message: Message) -> Result<(), EncodeError>;

    /// Sends a message that is encoded already, whole and of the connection's version.
    fn send_encoded(&self, to: &Arc<Connection>, bytes: &[u8]);

    /// Asks; the answer, or why there is none, goes to `future`.
    fn ask(&self, to: &Arc<Connection>, question: Question, future: Py<PyAny>);
}

/// One connection of a switch.
pub(crate) struct Connection {
    pub(crate) dpid: DatapathId,
    pub(crate) version: Version,
    pub(crate) features: Features,
    pub(crate) transport: Arc<dyn Transport>,
    /// Packet-ins that wait for the apps.
    pub(crate) waiting: AtomicU64,
    /// Messages that handlers have sent and the transport has not taken yet.
    pub(crate) gathered: Mutex<MessageBatch>,
    ports: Mutex<Arc<BTreeMap<PortNo, PortDesc>>>,
    is_over: AtomicBool,
    /// The object of the apps; only between ready and down, since it holds this one too.
    object: Mutex<Option<Py<PyAny>>>,
}

impl Connection {
    pub(crate) fn new(
        version: Version,
        features: Features,
        ports: BTreeMap<PortNo, PortDesc>,
        transport: Arc<dyn Transport>,
    ) -> Self {
        Self {
            dpid: features.datapath_id,
            version,
            features,
            transport,
            waiting: AtomicU64::new(0),
            gathered: Mutex::new(MessageBatch::new(version)),
            ports: Mutex::new(Arc::new(ports)),
            is_over: AtomicBool::new(false),
            object: Mutex::new(None),
        }
    }

    /// Its ports by number, as they are now.
    pub(crate) fn ports(&self) -> Arc<BTreeMap<PortNo, PortDesc>> {
        Arc::clone(&lock(&self.ports))
    }

    /// Takes the status of one of its ports.
    pub(crate) fn take_port_status(&self, status: &PortStatus) {
        let mut ports = lock(&self.ports);
        let ports = Arc::make_mut(&mut ports);
        match status.reason {
            PortReason::Delete => {
                ports.remove(&status.desc.port_no);
            }
            PortReason::Add | PortReason::Modify | PortReason::Unknown(_) => {
                ports.insert(status.desc.port_no, status.desc.clone());
            }
        }
    }

    /// Whether the connection is over.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// The connection is over.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// The object that the apps have of it.
    pub(crate) fn object(&self) -> MutexGuard<'_, Option<Py<PyAny>>> {
        lock(&self.object)
    }
}
