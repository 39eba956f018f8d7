//! The role that a session asks its switch for (clause 6.3.5), without input and output: the
//! cluster's orders and the switch's answers come in, the next request comes out.
//!
//! One request is under way at a time. To be slave, the switch is first asked for its generation
//! id, so that no slave's request makes that of the rightful master stale. It must never take a
//! role for granted that the switch has not confirmed.

use channel::Unanswered;
use openflow::message::{ControllerRole, Role};
use openflow::{Error, Message, Version};

/// The generation id of a switch that has never been given one.
const NO_GENERATION: u64 = u64::MAX;

/// Attempts at a request to be slave that other controllers outrun.
const SLAVE_ATTEMPTS: u32 = 5;

/// The role that the cluster wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RoleWanted {
    /// Another controller is master, or none.
    Slave,
    /// This one is.
    Master {
        /// The generation id.
        generation: u64,
        /// Another master has set the switch up.
        is_set_up: bool,
    },
}

/// The next step of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RoleStep {
    /// Ask the switch.
    Ask(Role),
    /// The switch has made us master.
    Granted {
        /// The generation id.
        generation: u64,
        /// Another master has set the switch up.
        is_set_up: bool,
    },
    /// The switch does not make us master.
    Refused {
        /// The generation id.
        generation: u64,
    },
}

/// The role that the switch has confirmed last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Confirmed {
    /// Nothing: a switch begins with equal.
    Nothing,
    Slave,
    Master(u64),
}

/// The state of one session. See the module.
#[derive(Debug)]
pub(crate) struct RoleMachine {
    wanted: RoleWanted,
    has_roles: bool,
    confirmed: Confirmed,
    asked: Option<Role>,
    /// The switch's generation id, as it has just said.
    known: Option<u64>,
    attempts: u32,
}

impl RoleMachine {
    /// Of a switch that has just connected. Versions without roles have nothing to ask.
    pub(crate) fn new(has_roles: bool) -> Self {
        Self {
            wanted: RoleWanted::Slave,
            has_roles,
            confirmed: Confirmed::Nothing,
            asked: None,
            known: None,
            attempts: 0,
        }
    }

    /// The cluster wants this from now on.
    pub(crate) fn want(&mut self, wanted: RoleWanted) {
        (self.wanted, self.attempts, self.known) = (wanted, 0, None);
    }

    /// The next step, if there is one.
    pub(crate) fn next(&mut self) -> Option<RoleStep> {
        if self.asked.is_some() {
            return None;
        }
        let ask = |role, generation_id| Role { role, generation_id };
        let role = match (self.wanted, self.confirmed) {
            (RoleWanted::Slave, Confirmed::Slave) => return None,
            (RoleWanted::Slave, Confirmed::Nothing | Confirmed::Master(_)) => {
                if !self.has_roles || self.attempts >= SLAVE_ATTEMPTS {
                    // What such a switch sends is held back all the same.
                    self.confirmed = Confirmed::Slave;
                    return None;
                }
                match self.known.take() {
                    None => ask(ControllerRole::NoChange, 0),
                    Some(generation) => {
                        self.attempts += 1;
                        ask(ControllerRole::Slave, generation)
                    }
                }
            }
            (RoleWanted::Master { generation, .. }, Confirmed::Master(own))
                if generation == own =>
            {
                return None;
            }
            (RoleWanted::Master { generation, is_set_up }, _) if !self.has_roles => {
                self.confirmed = Confirmed::Master(generation);
                return Some(RoleStep::Granted { generation, is_set_up });
            }
            (RoleWanted::Master { generation, .. }, _) => ask(ControllerRole::Master, generation),
        };
        self.asked = Some(role);
        Some(RoleStep::Ask(role))
    }

    /// Takes the answer to the request under way.
    pub(crate) fn take_answer(
        &mut self,
        answer: &Result<Message, Unanswered>,
        version: Version,
    ) -> Option<RoleStep> {
        let asked = self.asked.take()?;
        match answer {
            Ok(Message::RoleReply(reply)) => self.take_reply(asked, *reply),
            Err(Unanswered::Error(error))
                if error.error(version) == Some(Error::RoleRequestStale) =>
            {
                self.take_stale(asked)
            }
            // A switch that knows no roles, or answers with something else.
            Ok(_) | Err(_) => {
                self.has_roles = false;
                None
            }
        }
    }

    fn take_reply(&mut self, asked: Role, reply: Role) -> Option<RoleStep> {
        if asked.role == ControllerRole::NoChange {
            let generation = reply.generation_id;
            self.known = Some(if generation == NO_GENERATION { 0 } else { generation });
            return None;
        }
        if asked.role == ControllerRole::Slave {
            self.confirmed = Confirmed::Slave;
            return None;
        }
        self.confirmed = Confirmed::Master(asked.generation_id);
        match self.wanted {
            RoleWanted::Master { generation, is_set_up } if generation == asked.generation_id => {
                Some(RoleStep::Granted { generation, is_set_up })
            }
            // It is wanted no longer; the next request says so.
            RoleWanted::Master { .. } | RoleWanted::Slave => None,
        }
    }

    fn take_stale(&mut self, asked: Role) -> Option<RoleStep> {
        if asked.role != ControllerRole::Master {
            return None;
        }
        let generation = asked.generation_id;
        self.confirmed = Confirmed::Nothing;
        if let RoleWanted::Master { generation: wanted, .. } = self.wanted
            && wanted == generation
        {
            self.want(RoleWanted::Slave);
        }
        Some(RoleStep::Refused { generation })
    }
}

#[cfg(test)]
mod tests {
    use super::{RoleMachine, RoleStep, RoleWanted};
    use channel::Unanswered;
    use openflow::message::{ControllerRole, ErrorMessage, Role};
    use openflow::{Error, Message, Version};

    const V: Version = Version::V1_3;

    fn asks(machine: &mut RoleMachine, role: ControllerRole, generation_id: u64) {
        let step = machine.next();
        assert_eq!(step, Some(RoleStep::Ask(Role { role, generation_id })));
        assert_eq!(machine.next(), None, "one request at a time");
    }

    fn replies(machine: &mut RoleMachine, role: ControllerRole, id: u64) -> Option<RoleStep> {
        let reply = Message::RoleReply(Role { role, generation_id: id });
        machine.take_answer(&Ok(reply), V)
    }

    fn refuses(machine: &mut RoleMachine, error: Error) -> Option<RoleStep> {
        let (error_type, code) = error.numbers(V);
        let error = ErrorMessage { error_type, code, experimenter: None, data: Vec::new() };
        machine.take_answer(&Err(Unanswered::Error(error)), V)
    }

    #[test]
    fn a_slave_takes_the_generation_that_the_switch_has() {
        let mut machine = RoleMachine::new(true);
        asks(&mut machine, ControllerRole::NoChange, 0);
        assert_eq!(replies(&mut machine, ControllerRole::Equal, u64::MAX), None);
        asks(&mut machine, ControllerRole::Slave, 0);
        assert_eq!(refuses(&mut machine, Error::RoleRequestStale), None);
        asks(&mut machine, ControllerRole::NoChange, 0);
        replies(&mut machine, ControllerRole::Equal, 7);
        asks(&mut machine, ControllerRole::Slave, 7);
        replies(&mut machine, ControllerRole::Slave, 7);
        assert_eq!(machine.next(), None);
    }

    #[test]
    fn master_needs_the_word_of_the_switch_and_a_late_one_is_none() {
        let mut machine = RoleMachine::new(true);
        machine.want(RoleWanted::Master { generation: 5, is_set_up: true });
        asks(&mut machine, ControllerRole::Master, 5);
        let granted = replies(&mut machine, ControllerRole::Master, 5);
        assert_eq!(granted, Some(RoleStep::Granted { generation: 5, is_set_up: true }));
        assert_eq!(machine.next(), None);
        machine.want(RoleWanted::Master { generation: 6, is_set_up: true });
        asks(&mut machine, ControllerRole::Master, 6);
        let refused = refuses(&mut machine, Error::RoleRequestStale);
        assert_eq!(refused, Some(RoleStep::Refused { generation: 6 }));
        asks(&mut machine, ControllerRole::NoChange, 0);
    }

    #[test]
    fn what_is_wanted_no_longer_is_not_granted() {
        let mut machine = RoleMachine::new(true);
        machine.want(RoleWanted::Master { generation: 5, is_set_up: false });
        asks(&mut machine, ControllerRole::Master, 5);
        machine.want(RoleWanted::Slave);
        assert_eq!(replies(&mut machine, ControllerRole::Master, 5), None);
        asks(&mut machine, ControllerRole::NoChange, 0);
        replies(&mut machine, ControllerRole::Master, 5);
        asks(&mut machine, ControllerRole::Slave, 5);
    }

    #[test]
    fn a_switch_without_roles_is_served_by_who_may() {
        for mut machine in [RoleMachine::new(false), {
            let mut machine = RoleMachine::new(true);
            asks(&mut machine, ControllerRole::NoChange, 0);
            assert_eq!(refuses(&mut machine, Error::BadRequestBadType), None);
            machine
        }] {
            assert_eq!(machine.next(), None, "nothing to ask");
            machine.want(RoleWanted::Master { generation: 9, is_set_up: false });
            let granted = RoleStep::Granted { generation: 9, is_set_up: false };
            assert_eq!(machine.next(), Some(granted));
            assert_eq!(machine.next(), None);
            machine.want(RoleWanted::Slave);
            assert_eq!(machine.next(), None);
        }
    }
}
