//! The app that the runtime of Rust knows: it puts every event into the queue and decides nothing.
//!
//! It runs on the threads that serve switches. It must never touch Python nor wait.

use std::collections::HashMap;
use std::sync::Arc;

use controller::{App, ControllerEvent, Handle, Switch};
use openflow::DatapathId;

use crate::live::Live;
use crate::transport::{Connection, Transport};

/// One shard's instance.
pub(crate) struct Bridge {
    live: Arc<Live>,
    /// The apps of all shards get the events of links and hosts; this one passes them on.
    is_first: bool,
    switches: HashMap<DatapathId, Arc<Connection>>,
}

impl Bridge {
    pub(crate) fn new(live: Arc<Live>, is_first: bool) -> Self {
        Self { live, is_first, switches: HashMap::new() }
    }
}

impl App for Bridge {
    fn started(&mut self, handle: &Handle) {
        self.live.set_handle(handle);
    }

    fn switch_ready(&mut self, sw: &mut Switch) {
        let transport: Arc<dyn Transport> = Arc::clone(&self.live) as Arc<dyn Transport>;
        let (features, ports) = (sw.features().clone(), sw.ports().clone());
        let connection = Arc::new(Connection::new(sw.version(), features, ports, transport));
        self.live.queue.ready(&connection);
        self.switches.insert(sw.dpid(), connection);
    }

    fn switch_down(&mut self, dpid: DatapathId) {
        if let Some(connection) = self.switches.remove(&dpid) {
            connection.end();
            self.live.queue.down(dpid);
        }
    }

    fn event(&mut self, mut sw: Option<&mut Switch>, event: &ControllerEvent) {
        if let ControllerEvent::SwitchDown(dpid) = event {
            self.switch_down(*dpid);
        } else if let (ControllerEvent::SwitchReady(_), Some(sw)) = (event, sw.as_deref_mut()) {
            self.switch_ready(sw);
        } else if let Some(sw) = sw {
            if let Some(connection) = self.switches.get(&sw.dpid()) {
                self.live.queue.event(Some(connection), event);
            }
        } else if self.is_first {
            self.live.queue.event(None, event);
        }
    }
}
