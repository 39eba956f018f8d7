//! Events that a handle raises, delivered to the apps as if they had come from the switch.
//!
//! They wait in the queue of the switch, so they are in order with what the handle sends, and in
//! its bound. Nothing of them may reach the switch.

use super::Shard;
use crate::commands::RaisedEvent;
use crate::events::ControllerEvent;
use crate::session::Session;
use channel::Connection;
use std::time::Instant;

impl Shard {
    /// Delivers a raised event to the apps of a switch that is ready, and to watchers.
    pub(super) fn take_raised(
        &mut self,
        session: &mut Session,
        connection: &mut Connection,
        event: RaisedEvent,
        now: Instant,
    ) {
        let Some(entry) = session.entry.clone() else { return };
        match event {
            RaisedEvent::Message(frame) => match wire::decode(&frame) {
                Ok((_, xid, message)) => {
                    self.hand_over(session, connection, xid, message, now);
                }
                Err(error) => {
                    tracing::warn!(dpid = %entry.dpid, ?error, "a raised message is none");
                }
            },
            RaisedEvent::Other(event) => {
                if let ControllerEvent::SwitchReady(_) = *event {
                    let event = ControllerEvent::SwitchReady(entry.info());
                    self.deliver(session, connection, &event, now);
                } else if let ControllerEvent::RoleChanged { change, .. } = *event {
                    self.change_role(session, connection, change, now);
                } else {
                    self.deliver(session, connection, &event, now);
                }
            }
        }
    }
}
