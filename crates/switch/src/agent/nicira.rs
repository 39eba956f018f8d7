//! Requests of Nicira's: the forms of messages that Open vSwitch's tools choose, and the roles of
//! controllers of OpenFlow 1.0, the numbers of controllers, and packets that they resume.
//!
//! A form that is not spoken is refused: the tools then try another one.

use openflow::error::{NICIRA, ONF};
use openflow::flow::FlowForm;
use openflow::flow_monitor::FlowMonitorRequest;
use openflow::message::{ControllerRole, Experimenter, PacketIn, PacketInForm};
use openflow::{Error, Message, Version};

use super::request::Handling;
use super::role::RoleChange;
use super::{Agent, Peer};
use crate::bridge::BridgeCommand;

/// Types of requests (`nicira-ext.h`), and of the reply to that for a role.
const ROLE_REQUEST: u32 = 10;
const ROLE_REPLY: u32 = 11;
const SET_FLOW_FORMAT: u32 = 12;
const FLOW_MOD_TABLE_ID: u32 = 15;
const SET_PACKET_IN_FORMAT: u32 = 16;
const SET_CONTROLLER_ID: u32 = 20;
const RESUME: u32 = 28;

/// The end of a flow monitor by Nicira's and by ONF's message.
const CANCEL_MONITOR: u32 = 21;
const CANCEL_MONITOR_ONF: u32 = 1870;

/// A request, by what it asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Asked {
    TableIds(bool),
    FlowForm(FlowForm),
    PacketInForm(PacketInForm),
    Role(ControllerRole),
    ControllerId(u16),
    Resume(PacketIn),
    CancelMonitor(u32),
}

/// Carries a request out.
pub(super) fn handle(agent: &Agent, peer: &Peer, message: &Experimenter) -> Handling {
    match asked(peer.version, message) {
        Ok(Asked::TableIds(are_there)) => Handling::TableIds(are_there),
        Ok(Asked::FlowForm(form)) => Handling::FlowForm(form),
        Ok(Asked::PacketInForm(form)) => Handling::PacketInForm(form),
        Ok(Asked::Role(role)) => {
            // There is no number of the election, so that none is too late.
            let is_master = role == ControllerRole::Master;
            let change = if is_master { RoleChange::Master } else { RoleChange::To(role) };
            agent.change_role(peer, change);
            let number = role_number(role).unwrap_or_default().to_be_bytes();
            let reply = message_of(peer.version, NICIRA, ROLE_REPLY, &number);
            Handling::Reply(Message::Experimenter(reply))
        }
        Ok(Asked::ControllerId(number)) => {
            peer.controller.number.set(number);
            Handling::Nothing
        }
        Ok(Asked::Resume(paused)) => resume(agent, peer, paused),
        Ok(Asked::CancelMonitor(id)) => {
            match agent.monitor(peer, vec![FlowMonitorRequest::delete(id)]) {
                Ok(_) => Handling::Nothing,
                Err(error) => Handling::Refused(error),
            }
        }
        Err(error) => Handling::Refused(error),
    }
}

/// Has the bridge go on with a packet that has waited in it.
fn resume(agent: &Agent, peer: &Peer, paused: PacketIn) -> Handling {
    let key = &agent.continuation_key;
    let own = key.of_datapath(agent.bridge.dpid(), &paused.continuation);
    match own.map(<[u8]>::to_vec) {
        Ok(_) if peer.role() == ControllerRole::Slave => {
            Handling::Refused(Error::BadRequestIsSlave)
        }
        Ok(continuation) => {
            Handling::Bridge(BridgeCommand::Resume(PacketIn { continuation, ..paused }))
        }
        Err(error) => Handling::Refused(error),
    }
}

/// Roles by Nicira's numbers.
const ROLES: [(u32, ControllerRole); 3] =
    [(0, ControllerRole::Equal), (1, ControllerRole::Master), (2, ControllerRole::Slave)];

fn role_number(role: ControllerRole) -> Option<u32> {
    ROLES.iter().find(|(_, known)| *known == role).map(|(number, _)| *number)
}

fn asked(version: Version, message: &Experimenter) -> Result<Asked, Error> {
    let known = type_and_body(version, message);
    let (owner, exp_type, body) = known.ok_or(Error::BadRequestBadExperimenter)?;
    let number = |body: &[u8]| match body.try_into() {
        Ok(bytes) => Ok(u32::from_be_bytes(bytes)),
        Err(_) => Err(Error::BadRequestBadLen),
    };
    if owner == ONF {
        let is_it = exp_type == CANCEL_MONITOR_ONF && !version.has_flow_monitor();
        return match is_it {
            true => number(body).map(Asked::CancelMonitor),
            false => Err(Error::BadRequestBadExpType),
        };
    }
    match exp_type {
        FLOW_MOD_TABLE_ID => match body {
            &[is_set, _, _, _, _, _, _, _] => Ok(Asked::TableIds(is_set != 0)),
            _ => Err(Error::BadRequestBadLen),
        },
        SET_FLOW_FORMAT => match number(body)? {
            0 => Ok(Asked::FlowForm(FlowForm::Standard)),
            2 if version.has_nicira_flows() => Ok(Asked::FlowForm(FlowForm::Nicira)),
            _ => Err(Error::BadRequestEperm),
        },
        SET_PACKET_IN_FORMAT => match number(body)? {
            0 => Ok(Asked::PacketInForm(PacketInForm::Standard)),
            1 => Ok(Asked::PacketInForm(PacketInForm::Nicira)),
            2 => Ok(Asked::PacketInForm(PacketInForm::Properties)),
            _ => Err(Error::BadRequestEperm),
        },
        ROLE_REQUEST => {
            let number = number(body)?;
            let known = ROLES.iter().find(|(known, _)| *known == number);
            known.map(|(_, role)| Asked::Role(*role)).ok_or(Error::RoleRequestBadRole)
        }
        SET_CONTROLLER_ID => match body {
            &[_, _, _, _, _, _, high, low] => {
                Ok(Asked::ControllerId(u16::from_be_bytes([high, low])))
            }
            _ => Err(Error::BadRequestBadLen),
        },
        RESUME => wire::read_resume(version, body).map(Asked::Resume),
        CANCEL_MONITOR if !version.has_onf_flow_monitor() => number(body).map(Asked::CancelMonitor),
        _ => Err(Error::BadRequestBadExpType),
    }
}

/// A message of an experimenter's; 1.0 has the type at the body's begin.
pub(super) fn message_of(
    version: Version,
    experimenter: u32,
    exp_type: u32,
    body: &[u8],
) -> Experimenter {
    if version.has_experimenter_types() {
        return Experimenter { experimenter, exp_type, data: body.to_vec() };
    }
    let data = [&exp_type.to_be_bytes()[..], body].concat();
    Experimenter { experimenter, exp_type: 0, data }
}

/// The owner of a request of Nicira's or, where that has some, of ONF's, its type and its body.
fn type_and_body(version: Version, message: &Experimenter) -> Option<(u32, u32, &[u8])> {
    let Experimenter { experimenter, exp_type, data } = message;
    let owner = *experimenter;
    if owner != NICIRA && !(owner == ONF && version.has_onf_flow_monitor()) {
        return None;
    }
    if version.has_experimenter_types() {
        return Some((owner, *exp_type, data));
    }
    let (exp_type, body) = data.split_first_chunk()?;
    Some((owner, u32::from_be_bytes(*exp_type), body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_taken_and_others_refused() {
        let on = [1, 0, 0, 0, 0, 0, 0, 0];
        for version in Version::ALL {
            let asked = |exp_type, body: &[u8]| {
                asked(*version, &message_of(*version, NICIRA, exp_type, body))
            };
            assert_eq!(asked(FLOW_MOD_TABLE_ID, &on), Ok(Asked::TableIds(true)));
            assert_eq!(asked(FLOW_MOD_TABLE_ID, &[0; 8]), Ok(Asked::TableIds(false)));
            assert_eq!(asked(FLOW_MOD_TABLE_ID, &[0; 7]), Err(Error::BadRequestBadLen));
            let nxm = match version.has_nicira_flows() {
                true => Ok(Asked::FlowForm(FlowForm::Nicira)),
                false => Err(Error::BadRequestEperm),
            };
            assert_eq!(asked(SET_FLOW_FORMAT, &[0; 4]), Ok(Asked::FlowForm(FlowForm::Standard)));
            assert_eq!(asked(SET_FLOW_FORMAT, &[0, 0, 0, 2]), nxm);
            let forms = [PacketInForm::Standard, PacketInForm::Nicira, PacketInForm::Properties];
            for (number, form) in (0..).zip(forms) {
                let body = [0, 0, 0, number];
                assert_eq!(asked(SET_PACKET_IN_FORMAT, &body), Ok(Asked::PacketInForm(form)));
            }
            assert_eq!(asked(SET_PACKET_IN_FORMAT, &[0, 0, 0, 3]), Err(Error::BadRequestEperm));
            assert_eq!(asked(ROLE_REQUEST, &[0, 0, 0, 3]), Err(Error::RoleRequestBadRole));
            let number = [0, 0, 0, 0, 0, 0, 1, 2];
            assert_eq!(asked(SET_CONTROLLER_ID, &number), Ok(Asked::ControllerId(258)));
            assert_eq!(asked(RESUME, &[0; 3]), Err(Error::BadPropertyBadLen));
            for exp_type in [SET_FLOW_FORMAT, SET_PACKET_IN_FORMAT, ROLE_REQUEST, SET_CONTROLLER_ID]
            {
                assert_eq!(asked(exp_type, &[]), Err(Error::BadRequestBadLen));
            }
            assert_eq!(asked(99, &on), Err(Error::BadRequestBadExpType));
        }
        let other = Experimenter { experimenter: NICIRA + 1, exp_type: 15, data: on.to_vec() };
        assert_eq!(asked(Version::V1_3, &other), Err(Error::BadRequestBadExperimenter));
        let short = Experimenter { experimenter: NICIRA, exp_type: 0, data: vec![0; 3] };
        assert_eq!(asked(Version::V1_0, &short), Err(Error::BadRequestBadExperimenter));
    }
}
