//! The actions that name controllers, each in its forms.

use super::Action;
use crate::id::PortNo;
use crate::packet_in_reason::PacketInReason;
use crate::to_controller::ToController;

impl ToController {
    /// The action with these arguments: the plainest that has room for them.
    #[must_use]
    pub fn into_action(self) -> Action {
        let is_plain = self.userdata.is_empty() && !self.pauses && self.meter.is_none();
        let Self { max_len, controller_id, reason, .. } = self;
        if !is_plain {
            return Action::ControllerProperties(Box::new(self));
        }
        if controller_id == 0 && reason == PacketInReason::Action {
            return Action::Output { port: PortNo::CONTROLLER, max_len };
        }
        Action::Controller { max_len, controller_id, reason }
    }
}

impl Action {
    /// The arguments of a `controller` action, in either of its forms.
    #[must_use]
    pub fn to_controller(&self) -> Option<ToController> {
        if let Self::Controller { max_len, controller_id, reason } = *self {
            Some(ToController { max_len, controller_id, reason, ..ToController::default() })
        } else if let Self::ControllerProperties(arguments) = self {
            Some((**arguments).clone())
        } else {
            None
        }
    }

    /// The numbers of the controllers that get a packet whose TTL this action finds used up.
    #[must_use]
    pub fn invalid_ttl_to(&self) -> &[u16] {
        if let Self::DecNwTtlTo(controller_ids) = self { controller_ids } else { &[0] }
    }

    /// Whether no action, instruction or table comes after it: it ends the packet's way, be it for
    /// good or until a controller resumes it.
    #[must_use]
    pub fn ends_lists(&self) -> bool {
        let pauses = |arguments: &ToController| arguments.pauses;
        *self == Self::Exit
            || matches!(self, Self::ControllerProperties(arguments) if pauses(arguments))
    }
}
