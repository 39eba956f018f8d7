//! Roles of the controllers, and the generation id that decides which is master (clause 6.3.5).
//!
//! Pure state: the caller knows the connections.

use openflow::Error;
use openflow::message::{ControllerRole, Role};

/// The number of the last election that was won, shared by all connections.
#[derive(Debug, Default)]
pub(crate) struct Election {
    generation_id: Option<u64>,
}

/// The change of roles by a role request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RoleChange {
    /// Nothing: the role was asked only.
    None,
    /// The controller gets this role.
    To(ControllerRole),
    /// The controller becomes master, and the earlier master becomes slave.
    Master,
}

impl Election {
    /// Checks a request.
    ///
    /// # Errors
    /// `OFPRRFC_STALE` for a generation id that is older than one that was seen,
    /// `OFPRRFC_BAD_ROLE` for a role that is none.
    pub(crate) fn request(&mut self, request: Role) -> Result<RoleChange, Error> {
        match request.role {
            ControllerRole::NoChange => Ok(RoleChange::None),
            ControllerRole::Equal => Ok(RoleChange::To(ControllerRole::Equal)),
            ControllerRole::Slave => {
                self.advance(request.generation_id)?;
                Ok(RoleChange::To(ControllerRole::Slave))
            }
            ControllerRole::Master => {
                self.advance(request.generation_id)?;
                Ok(RoleChange::Master)
            }
            ControllerRole::Unknown(_) => Err(Error::RoleRequestBadRole),
        }
    }

    /// Ids are compared by their signed distance, so that they may wrap around.
    fn advance(&mut self, id: u64) -> Result<(), Error> {
        if self.generation_id.is_some_and(|held| id.wrapping_sub(held).cast_signed() < 0) {
            return Err(Error::RoleRequestStale);
        }
        self.generation_id = Some(id);
        Ok(())
    }

    /// The id for a reply: all ones before there was any.
    pub(crate) fn generation_id(&self) -> u64 {
        self.generation_id.unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::{Election, RoleChange};
    use openflow::Error;
    use openflow::message::{ControllerRole, Role};

    fn ask(election: &mut Election, role: ControllerRole, id: u64) -> Result<RoleChange, Error> {
        election.request(Role { role, generation_id: id })
    }

    #[test]
    fn stale_ids_are_refused_and_wrap_around() {
        let mut election = Election::default();
        assert_eq!(election.generation_id(), u64::MAX);
        let top = u64::MAX - 1;
        assert_eq!(ask(&mut election, ControllerRole::Master, top), Ok(RoleChange::Master));
        assert_eq!(
            ask(&mut election, ControllerRole::Slave, top - 1),
            Err(Error::RoleRequestStale)
        );
        assert_eq!(ask(&mut election, ControllerRole::Master, 3), Ok(RoleChange::Master));
        assert_eq!(ask(&mut election, ControllerRole::Slave, top), Err(Error::RoleRequestStale));
        assert_eq!(election.generation_id(), 3);
    }

    #[test]
    fn equal_and_questions_ignore_the_id() {
        let mut election = Election::default();
        assert_eq!(ask(&mut election, ControllerRole::Master, 9), Ok(RoleChange::Master));
        assert_eq!(ask(&mut election, ControllerRole::NoChange, 1), Ok(RoleChange::None));
        assert_eq!(
            ask(&mut election, ControllerRole::Equal, 1),
            Ok(RoleChange::To(ControllerRole::Equal))
        );
        assert_eq!(
            ask(&mut election, ControllerRole::Unknown(7), 10),
            Err(Error::RoleRequestBadRole)
        );
        assert_eq!(election.generation_id(), 9);
    }
}
