//! The role that a switch which is ready gives this controller (clause 6.3.5), reported to the apps
//! when it is another than before.
//!
//! A switch of 1.4 reports it when another controller becomes master; one of 1.3 names a role in
//! answers only. So a refusal that only a slave gets, or that a controller with a newer generation
//! id has caused, makes us ask. Nothing may be reported that neither the switch nor the cluster has
//! confirmed.

use super::{RoleReason, Shard, send};
use crate::answers::Asker;
use crate::events::{ControllerEvent, RoleChange};
use crate::session::{Phase, Session};
use channel::{Connection, Unanswered};
use openflow::message::{ControllerRole, Role};
use openflow::{Error, Message, MessageKind, Version};
use std::time::Instant;

/// The generation id of a switch that has never been given one.
const NO_GENERATION: u64 = u64::MAX;

/// Evidence in a message for the role of the controller that gets it.
#[derive(Clone, Copy, Debug)]
pub(super) enum RoleEvidence {
    /// The role itself, and why the switch sends it.
    Is(Role, RoleReason),
    /// It may be another than was thought.
    MayBeAnother,
}

/// The evidence that a message gives for our role; nearly all messages give none.
#[inline]
#[expect(clippy::wildcard_enum_match_arm, reason = "no other message is about roles")]
pub(super) fn role_evidence(message: &Message, version: Version) -> Option<RoleEvidence> {
    match message {
        Message::RoleReply(role) => Some(RoleEvidence::Is(*role, RoleReason::Requested)),
        Message::RoleStatus(status) => Some(RoleEvidence::Is(status.role, status.reason.into())),
        Message::Error(error) => {
            let known = error.error(version);
            let is_about_roles =
                matches!(known, Some(Error::BadRequestIsSlave | Error::RoleRequestStale));
            is_about_roles.then_some(RoleEvidence::MayBeAnother)
        }
        _ => None,
    }
}

impl Shard {
    /// Applies the evidence that a switch which is ready has sent.
    pub(super) fn apply_role_evidence(
        &mut self,
        session: &mut Session,
        connection: &mut Connection,
        evidence: RoleEvidence,
        now: Instant,
    ) {
        match evidence {
            RoleEvidence::Is(role, reason) => {
                self.take_role(session, connection, role, reason, now);
            }
            RoleEvidence::MayBeAnother => self.check_role(session, connection),
        }
    }

    /// Asks for our role, unless that is known or being asked.
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
                "the switch does not send its role");
        }
    }

    /// Takes the role that the switch has sent.
    fn take_role(
        &mut self,
        session: &mut Session,
        connection: &mut Connection,
        sent: Role,
        reason: RoleReason,
        now: Instant,
    ) {
        let generation_id = Some(sent.generation_id).filter(|id| *id != NO_GENERATION);
        let change = RoleChange { role: sent.role, generation_id, reason };
        self.change_role(session, connection, change, now);
    }

    /// Reports the role at a switch that is ready to apps and watchers, if it is another than
    /// before.
    pub(super) fn change_role(
        &mut self,
        session: &mut Session,
        connection: &mut Connection,
        change: RoleChange,
        now: Instant,
    ) {
        let (Phase::Ready(_), Some(entry)) = (&session.phase, &session.entry) else { return };
        if entry.set_role(change.role) {
            let event = ControllerEvent::RoleChanged { dpid: entry.dpid, change };
            self.deliver(session, connection, &event, now);
        }
    }
}
