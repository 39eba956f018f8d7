//! Events that a handle raises: told to the apps as if they had come from the switch.
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
    /// Tells the apps of a switch that is ready, and watchers, an event.
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
                    self.hand_over(session, connection, xid, &message, now);
                }
                Err(error) => {
                    tracing::warn!(dpid = %entry.dpid, ?error, "a raised message is none");
                }
            },
            RaisedEvent::Ready => {
                self.tell(session, |_| ControllerEvent::SwitchReady(entry.info()));
                self.handle_with(session, connection, now, |apps, sw| {
                    apps.each(sw, |app, sw| app.switch_ready(sw));
                });
            }
            RaisedEvent::Down => {
                self.tell(session, ControllerEvent::SwitchDown);
                self.apps.all(|app| app.switch_down(entry.dpid));
            }
            RaisedEvent::Role(change) => {
                self.change_role(session, connection, change, now);
            }
        }
    }
}
