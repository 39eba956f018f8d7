//! The sender of a message, by its xid: the connection itself, an app, or a handle.
//!
//! The upper bits name the sender, so that an error or an answer finds it without a table that a
//! switch which never answers could fill. Bit 31 is the connection's own; bits 25 to 30 are the
//! app's place in the list, or [`HANDLE`]; the rest counts.

use openflow::Xid;

const COUNTER_BITS: u32 = 25;

/// The highest count; zero is no xid of ours.
pub(crate) const COUNTER_MAX: u32 = (1 << COUNTER_BITS) - 1;

/// The place of handles behind those of the apps.
const HANDLE: u32 = 63;

/// The sender of the message of an xid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum XidOwner {
    /// The app at this place.
    App(usize),
    /// A handle.
    Handle,
    /// The connection, or nobody here: what the switch sends by itself has the xid zero.
    Other,
}

/// The xid of the app at `place` of the list: answers to messages with it come to that app alone.
/// Counts are from 1 to 2^25 - 1, modulo 2^25.
#[must_use]
pub fn of_app(place: usize, count: u32) -> Xid {
    Xid((place as u32) << COUNTER_BITS | count & COUNTER_MAX)
}

/// The xid of a handle.
pub(crate) fn of_handle(count: u32) -> Xid {
    Xid(HANDLE << COUNTER_BITS | count & COUNTER_MAX)
}

/// The sender of the message of this xid.
pub(crate) fn owner(xid: Xid) -> XidOwner {
    if xid.0 >> 31 != 0 || xid.0 & COUNTER_MAX == 0 {
        return XidOwner::Other;
    }
    match xid.0 >> COUNTER_BITS {
        HANDLE => XidOwner::Handle,
        place => XidOwner::App(place as usize),
    }
}

#[cfg(test)]
mod tests {
    use super::{COUNTER_MAX, XidOwner, of_app, of_handle, owner};
    use crate::app_list::AppList;
    use openflow::Xid;

    #[test]
    fn each_sender_has_xids_of_its_own() {
        for place in [0, 1, AppList::APPS_MAX - 1] {
            for count in [1, 77, COUNTER_MAX] {
                assert_eq!(owner(of_app(place, count)), XidOwner::App(place));
                assert_eq!(owner(of_handle(count)), XidOwner::Handle);
            }
        }
        for xid in [0, 0x8000_0000, u32::MAX] {
            assert_eq!(owner(Xid(xid)), XidOwner::Other);
        }
    }
}
