//! Which role a switch that is ready gives this controller (clause 6.3.5), told to the apps when it
//! is another than before.
//!
//! A 1.3 switch says its role in answers only. So a refusal that only a slave gets, or that
//! somebody with a newer generation id has caused, makes us ask. Nothing may be told that neither
//! the switch nor the cluster has said.

use super::{RoleReason, Shard, send};
use crate::answers::Asker;
use crate::events::{ControllerEvent, RoleChange};
use crate::session::{Phase, Session};
use channel::{Connection, Unanswered};
use openflow::message::{ControllerRole, Role};
use openflow::{Error, Message, MessageKind, Version};
use std::time::Instant;

/// What a switch says of a generation id that was never used.
const NO_GENERATION: u64 = u64::MAX;

/// What a message says of the role of who gets it.
#[derive(Clone, Copy, Debug)]
pub(super) enum SaidOfRole {
    /// Which it is.
    Is(Role),
    /// It may be another than was thought.
    MayBeAnother,
}

/// What a message says of our role. Of nearly all messages it is nothing.
#[inline]
#[expect(clippy::wildcard_enum_match_arm, reason = "no other message says anything of roles")]
pub(super) fn said_of_role(message: &Message, version: Version) -> Option<SaidOfRole> {
    match message {
        Message::RoleReply(role) => Some(SaidOfRole::Is(*role)),
        Message::Error(error) => {
            let known = error.error(version);
            let is_about_roles =
                matches!(known, Some(Error::BadRequestIsSlave | Error::RoleRequestStale));
            is_about_roles.then_some(SaidOfRole::MayBeAnother)
        }
        _ => None,
    }
}

impl Shard {
    /// A switch that is ready has said something of our role.
    pub(super) fn take_said_of_role(
        &mut self,
        session: &mut Session,
        connection: &mut Connection,
        said: SaidOfRole,
        now: Instant,
    ) {
        match said {
            SaidOfRole::Is(role) => {
                self.take_role(session, connection, role, RoleReason::Requested, now);
            }
            SaidOfRole::MayBeAnother => self.check_role(session, connection),
        }
    }

    /// Asks which role we have, unless that is known or being asked.
    fn check_role(&mut self, session: &mut Session, connection: &mut Connection) {
        let Phase::Ready(switch) = &session.phase else { return };
        let is_slave =
            session.entry.as_ref().is_none_or(|entry| entry.role() == ControllerRole::Slave);
        let has_roles = MessageKind::RoleRequest.number(switch.version()).is_some();
        if is_slave || session.is_role_checked || !has_roles {
            return;
        }
        let request =
            Message::RoleRequest(Role { role: ControllerRole::NoChange, generation_id: 0 });
        let xid = connection.allocate_xid();
        if session.answers.expect_role_check(xid, &request).is_ok() {
            session.is_role_checked = true;
            send(connection, xid, &request, &mut self.stats);
        }
    }

    /// The answer to [`Shard::check_role`].
    pub(super) fn take_checked_role(
        &mut self,
        session: &mut Session,
        connection: &mut Connection,
        answer: &Result<Message, Unanswered>,
        now: Instant,
    ) {
        session.is_role_checked = false;
        if let Ok(Message::RoleReply(role)) = answer {
            self.take_role(session, connection, *role, RoleReason::MasterRequest, now);
        } else {
            tracing::debug!(peer = %session.peer, asker = ?Asker::RoleCheck, ?answer,
                "the switch does not say its role");
        }
    }

    /// The switch has said which role we have.
    fn take_role(
        &mut self,
        session: &mut Session,
        connection: &mut Connection,
        said: Role,
        reason: RoleReason,
        now: Instant,
    ) {
        let Some(entry) = &session.entry else { return };
        let generation_id = Some(said.generation_id).filter(|id| *id != NO_GENERATION);
        let change = RoleChange { dpid: entry.dpid, role: said.role, generation_id, reason };
        self.change_role(session, connection, change, now);
    }

    /// Tells the apps and whoever watches of the role at a switch that is ready, if it is another
    /// than before.
    pub(super) fn change_role(
        &mut self,
        session: &mut Session,
        connection: &mut Connection,
        change: RoleChange,
        now: Instant,
    ) {
        let (Phase::Ready(_), Some(entry)) = (&session.phase, &session.entry) else { return };
        if entry.set_role(change.role) {
            self.tell(session, |_| ControllerEvent::RoleChanged(change));
            self.handle_with(session, connection, now, |apps, sw| {
                apps.each(sw, |app, sw| app.role_changed(sw, &change));
            });
        }
    }
}
