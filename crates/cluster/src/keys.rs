//! The keys of a cluster in etcd, all below `/weir/NAME/`.
//!
//! | key | value | bound to |
//! |---|---|---|
//! | `members/base` | what is added to revisions to make generation ids | nothing |
//! | `members/node/NODE` | `member` or `leaving` | the node's lease |
//! | `members/reach/DPID/NODE` | nothing or `knows`: it reaches the switch | the node's lease |
//! | `members/owner/DPID` | who is to be master, and who handed over to it | its lease |
//! | `members/served/DPID` | the owner's confirmed generation id | the owner's lease |
//! | `state/APP/KEY` | what an app has put there | nothing |
//!
//! Values are short texts, so that `etcdctl get --prefix /weir/` shows people what is going on. A
//! key or value that is none of ours is passed over.

use crate::address::KeyName;
use openflow::DatapathId;

/// A key of the members' part.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MemberKey {
    /// The number that is added to revisions.
    Base,
    /// A node is there.
    Node(KeyName),
    /// A node is connected with a switch.
    Reach(DatapathId, KeyName),
    /// The node that is to be a switch's master.
    Owner(DatapathId),
    /// The node that is a switch's master, as the switch has confirmed.
    Served(DatapathId),
}

/// The prefix of a cluster's members.
pub(crate) fn members_prefix(cluster: &KeyName) -> String {
    format!("/weir/{cluster}/members/")
}

/// The prefix of an app's state.
pub(crate) fn state_prefix(cluster: &KeyName, app: &KeyName) -> String {
    format!("/weir/{cluster}/state/{app}/")
}

impl MemberKey {
    /// The key behind `prefix`.
    pub(crate) fn to_text(&self, prefix: &str) -> String {
        match self {
            Self::Base => format!("{prefix}base"),
            Self::Node(node) => format!("{prefix}node/{node}"),
            Self::Reach(dpid, node) => format!("{prefix}reach/{dpid}/{node}"),
            Self::Owner(dpid) => format!("{prefix}owner/{dpid}"),
            Self::Served(dpid) => format!("{prefix}served/{dpid}"),
        }
    }

    /// The key of a text, if it is one of ours.
    pub(crate) fn from_text(prefix: &str, text: &str) -> Option<Self> {
        let rest = text.strip_prefix(prefix)?;
        let Some((kind, rest)) = rest.split_once('/') else {
            return (rest == "base").then_some(Self::Base);
        };
        match kind {
            "node" => rest.parse().ok().map(Self::Node),
            "reach" => {
                let (dpid, node) = rest.split_once('/')?;
                Some(Self::Reach(datapath_id(dpid)?, node.parse().ok()?))
            }
            "owner" => datapath_id(rest).map(Self::Owner),
            "served" => datapath_id(rest).map(Self::Served),
            _ => None,
        }
    }
}

/// A datapath id in the one form in which we write it.
fn datapath_id(text: &str) -> Option<DatapathId> {
    let dpid = DatapathId(u64::from_str_radix(text, 16).ok()?);
    (dpid.to_string() == text).then_some(dpid)
}

#[cfg(test)]
mod tests {
    use super::{MemberKey, members_prefix, state_prefix};
    use openflow::DatapathId;

    #[test]
    fn keys_and_texts_lead_to_each_other() {
        let prefix = members_prefix(&"lab".parse().unwrap());
        let (dpid, node) = (DatapathId(0xab), "n1".parse().unwrap());
        for (key, text) in [
            (MemberKey::Base, "/weir/lab/members/base"),
            (MemberKey::Node(node), "/weir/lab/members/node/n1"),
            (
                MemberKey::Reach(dpid, "n2".parse().unwrap()),
                "/weir/lab/members/reach/00000000000000ab/n2",
            ),
            (MemberKey::Owner(dpid), "/weir/lab/members/owner/00000000000000ab"),
            (MemberKey::Served(dpid), "/weir/lab/members/served/00000000000000ab"),
        ] {
            assert_eq!(key.to_text(&prefix), text);
            assert_eq!(MemberKey::from_text(&prefix, text), Some(key));
        }
        assert_eq!(
            state_prefix(&"lab".parse().unwrap(), &"app".parse().unwrap()),
            "/weir/lab/state/app/"
        );
    }

    #[test]
    fn foreign_keys_are_passed_over() {
        for text in [
            "",
            "base",
            "/weir/lab/members/",
            "/weir/lab/members/base/x",
            "/weir/lab/members/node/",
            "/weir/lab/members/node/a/b",
            "/weir/lab/members/owner/ab",
            "/weir/lab/members/owner/00000000000000AB",
            "/weir/lab/members/reach/00000000000000ab",
            "/weir/lab/members/owner/+0000000000000ab",
            "/weir/lab/members/colour/1",
        ] {
            assert_eq!(MemberKey::from_text("/weir/lab/members/", text), None, "{text}");
        }
    }
}
