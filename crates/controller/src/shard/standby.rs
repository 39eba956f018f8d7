//! Sessions of a controller in a cluster: a switch that another controller is master of stands by.
//! Its events are held back from the apps until the cluster orders us to serve it and the switch
//! has made us its master.

use super::{RoleReason, Shard, connected_again, send};
use crate::answers::Asker;
use crate::commands::fail;
use crate::error::HandleError;
use crate::events::{ControllerEvent, RoleChange};
use crate::role::{RoleMachine, RoleStep, RoleWanted};
use crate::session::{Counted, Outcome, Phase, Session, Standby};
use crate::switch::Switch;
use channel::{Connection, Unanswered};
use openflow::message::ControllerRole;
use openflow::port::PortStatus;
use openflow::{Message, MessageKind};
use std::sync::Arc;
use std::time::Instant;

impl Shard {
    /// The switch is known. Alone we serve it; in a cluster it stands by.
    pub(super) fn known(
        &mut self,
        session: &mut Session,
        connection: &mut Connection,
        switch: Box<Switch>,
        now: Instant,
    ) {
        let shared = Arc::clone(&self.shared);
        let Some(mastership) = shared.mastership() else {
            return self.ready(session, connection, switch, now);
        };
        let dpid = switch.dpid();
        let has_roles = MessageKind::RoleRequest.number(switch.version()).is_some();
        let orders = mastership.connected(dpid, has_roles);
        session.standby = Some(Standby { orders, machine: RoleMachine::new(has_roles) });
        session.phase = Phase::Standby(switch);
        session.report(Outcome::Standby { dpid });
        self.drive_role(session, connection, now);
    }

    /// Takes the cluster's order, if there is one.
    pub(super) fn take_order(
        &mut self,
        session: &mut Session,
        connection: &mut Connection,
        now: Instant,
    ) {
        let Some(standby) = &mut session.standby else { return };
        if standby.orders.is_replaced() {
            if let Phase::Standby(switch) | Phase::Ready(switch) = &session.phase
                && !connection.is_over()
            {
                let what = connected_again(switch.dpid());
                session.refuse(connection, what);
            }
            return;
        }
        let Some(wanted) = standby.orders.take() else { return };
        standby.machine.want(wanted);
        match (wanted, &session.phase) {
            (RoleWanted::Slave, Phase::Ready(_)) => self.stand_back(session, RoleReason::Cluster),
            (RoleWanted::Slave | RoleWanted::Master { .. }, _) => {}
        }
        self.drive_role(session, connection, now);
    }

    /// Takes the switch's answer to a role request.
    pub(super) fn take_role_answer(
        &mut self,
        session: &mut Session,
        connection: &mut Connection,
        answer: &Result<Message, Unanswered>,
        now: Instant,
    ) {
        let (Some(standby), Some(version)) = (&mut session.standby, connection.version()) else {
            return;
        };
        if let Some(step) = standby.machine.take_answer(answer, version) {
            self.take_step(session, connection, step, now);
        }
        self.drive_role(session, connection, now);
    }

    /// Sends the next role request, if one is due.
    fn drive_role(&mut self, session: &mut Session, connection: &mut Connection, now: Instant) {
        while let Some(step) = session.standby.as_mut().and_then(|it| it.machine.next()) {
            self.take_step(session, connection, step, now);
        }
    }

    fn take_step(
        &mut self,
        session: &mut Session,
        connection: &mut Connection,
        step: RoleStep,
        now: Instant,
    ) {
        let Some(standby) = &session.standby else { return };
        match step {
            RoleStep::Ask(role) => {
                let (xid, request) = (connection.allocate_xid(), Message::RoleRequest(role));
                session.answers.expect_own(xid, &request, Asker::Role);
                send(connection, xid, &request, &mut self.stats);
            }
            RoleStep::Granted { generation, is_set_up } => {
                standby.orders.confirmed(generation);
                // Where the apps have it already only the generation id is new.
                if matches!(session.phase, Phase::Standby(_))
                    && let Phase::Standby(mut switch) =
                        std::mem::replace(&mut session.phase, Phase::Unknown)
                {
                    session.report(Outcome::Master { dpid: switch.dpid(), generation });
                    switch.set_is_set_up(is_set_up);
                    self.ready(session, connection, switch, now);
                    let (role, generation_id) = (ControllerRole::Master, Some(generation));
                    let reason = RoleReason::Cluster;
                    let change = RoleChange { role, generation_id, reason };
                    self.change_role(session, connection, change, now);
                }
            }
            RoleStep::Refused { generation } => {
                standby.orders.refused(generation);
                if let Phase::Standby(switch) | Phase::Ready(switch) = &session.phase
                    && let Some(mastership) = self.shared.mastership()
                {
                    mastership.report_refused(switch.dpid(), generation);
                }
                if matches!(session.phase, Phase::Ready(_)) {
                    self.stand_back(session, RoleReason::MasterRequest);
                }
            }
        }
    }

    /// The apps lose the switch, which stays connected.
    fn stand_back(&mut self, session: &mut Session, reason: RoleReason) {
        let Phase::Ready(mut switch) = std::mem::replace(&mut session.phase, Phase::Unknown) else {
            return;
        };
        let dpid = switch.dpid();
        if let Some(entry) = session.entry.take() {
            let gone = HandleError::NoSwitch(dpid);
            fail(entry.close(), &gone);
            session.answers.fail_all(&gone);
            if entry.set_role(ControllerRole::Slave) {
                // What handlers queue now goes with `switch`: an owner falls silent at once.
                let (role, generation_id) = (ControllerRole::Slave, None);
                let change = RoleChange { role, generation_id, reason };
                let event = ControllerEvent::RoleChanged { dpid, change };
                self.shared.watchers.broadcast(&event);
                self.apps.each(&mut switch, |app, sw| app.event(Some(sw), &event));
            }
            if self.shared.remove(&entry) {
                self.stats.switches -= 1;
                self.apps.all(|app| app.event(None, &ControllerEvent::SwitchDown(dpid)));
            }
        }
        session.next_tick = None;
        session.report(Outcome::Standby { dpid });
        session.phase = Phase::Standby(Box::new(switch.again()));
        session.counted = Counted::default();
    }

    /// A switch that stands by has a port that came, went or changed.
    pub(super) fn note_port(&mut self, session: &mut Session, status: &PortStatus) {
        if let Phase::Standby(switch) = &mut session.phase {
            switch.take_port_status(status);
        }
    }
}
