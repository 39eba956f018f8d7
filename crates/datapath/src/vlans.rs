//! Ports' part in VLANs when `NORMAL` forwards: access ports, trunks, native VLANs.
//!
//! The words are those of IEEE 802.1Q and of Open vSwitch's ports: an access port is in one VLAN
//! and its frames bear no tag; a trunk carries many, with tags; frames without a
//! tag on a trunk are in its native VLAN, or in VLAN 0 where it has none. Only `NORMAL` looks at
//! this: flow entries see and send frames as they are.

use std::fmt;
use std::str::FromStr;

use openflow::field::VID_PRESENT;
use openflow::text::{parse_decimal, zero_advice};
use openflow::{Action, Field};
use packet::rewrite::{pop_vlan, push_vlan, set_field};
use packet::{FlowKey, PacketBuf};

/// The tag that is pushed where there was none (IEEE 802.1Q).
const CUSTOMER_TAG: u16 = 0x8100;

/// The highest VLAN id; 4095 is reserved.
pub(crate) const VID_MAX: u16 = 4094;

/// A set of VLAN ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vids(Option<Box<[u64; 64]>>);

impl Vids {
    /// All.
    pub const ALL: Self = Self(None);

    pub(crate) fn has(&self, vid: u16) -> bool {
        let Some(bits) = &self.0 else { return true };
        bits.get(usize::from(vid / 64)).is_some_and(|word| word >> (vid % 64) & 1 != 0)
    }

    /// Adds an id, to all of which the first one added puts an end.
    pub fn add(&mut self, vid: u16) {
        let bits = self.0.get_or_insert_with(|| Box::new([0; 64]));
        if let Some(word) = bits.get_mut(usize::from(vid / 64)) {
            *word |= 1 << (vid % 64);
        }
    }
}

/// Treatment of frames without a tag, on a trunk with a native VLAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Native {
    /// The VLAN that they are in.
    pub vid: u16,
    /// Whether frames of that VLAN leave with a tag.
    pub is_tagged: bool,
}

/// A port's part in VLANs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortVlans {
    members: Members,
    /// Nothing goes from a protected port to another one.
    is_protected: bool,
}

/// The VLANs of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Members {
    /// In one VLAN, without tags.
    Access(u16),
    /// In several, by their tags.
    Trunk {
        /// The VLANs; the native one is always among them.
        vids: Vids,
        /// The VLAN of frames without a tag.
        native: Option<Native>,
    },
}

impl Default for Members {
    /// A trunk of all VLANs; frames without a tag are in VLAN 0 and get none.
    fn default() -> Self {
        Self::Trunk { vids: Vids::ALL, native: None }
    }
}

/// The tag with which a frame leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tag {
    /// As it came.
    Unchanged,
    /// Without one.
    None,
    /// With this VLAN id.
    Vid(u16),
}

/// The VLAN id of a frame's outermost tag, if it has one.
pub(crate) fn tag_of(key: &FlowKey) -> Option<u16> {
    let vid = u16::try_from(key.get(Field::VlanVid)).unwrap_or(0);
    (vid != 0).then_some(vid & 0x0fff)
}

impl PortVlans {
    /// Whether it is a protected port.
    pub(crate) fn is_protected(&self) -> bool {
        self.is_protected
    }

    /// The VLAN of a frame that comes in with this tag; `None` when the port does not take it. A
    /// tag with id 0 only gives a priority.
    pub(crate) fn enters(&self, tag: Option<u16>) -> Option<u16> {
        let tag = tag.filter(|vid| *vid != 0);
        match (&self.members, tag) {
            (Members::Access(vid), None) => Some(*vid),
            (Members::Access(_), Some(_)) => None,
            (Members::Trunk { native: Some(native), .. }, None) => Some(native.vid),
            (Members::Trunk { vids, .. }, None) => vids.has(0).then_some(0),
            (Members::Trunk { .. }, Some(vid)) => self.carries(vid).then_some(vid),
        }
    }

    /// Whether frames of the VLAN leave here.
    pub(crate) fn carries(&self, vlan: u16) -> bool {
        match &self.members {
            Members::Access(vid) => *vid == vlan,
            Members::Trunk { vids, native } => {
                native.is_some_and(|native| native.vid == vlan) || vids.has(vlan)
            }
        }
    }

    /// The tag with which a frame of the VLAN leaves here.
    pub(crate) fn leaves(&self, vlan: u16) -> Tag {
        match &self.members {
            Members::Access(_) => Tag::None,
            Members::Trunk { native: Some(native), .. }
                if native.vid == vlan && !native.is_tagged =>
            {
                Tag::None
            }
            Members::Trunk { .. } if vlan == 0 => Tag::Unchanged,
            Members::Trunk { .. } => Tag::Vid(vlan),
        }
    }
}

impl Tag {
    /// Whether a frame with the tag would have to be changed.
    pub(crate) fn differs(self, tag: Option<u16>) -> bool {
        match self {
            Self::Unchanged => false,
            Self::None => tag.is_some(),
            Self::Vid(vid) => tag != Some(vid),
        }
    }

    /// The actions that change a frame that came with the tag.
    pub(crate) fn actions(self, tag: Option<u16>) -> impl Iterator<Item = Action> {
        let actions = match self {
            Self::Unchanged => [None, None],
            Self::None => [Some(Action::PopVlan), None],
            Self::Vid(vid) => {
                let vid = Action::set_field(Field::VlanVid, u128::from(vid) | VID_PRESENT);
                [tag.is_none().then_some(Action::PushVlan(CUSTOMER_TAG)), Some(vid)]
            }
        };
        actions.into_iter().flatten()
    }

    /// Changes a frame that came with the tag, where it differs.
    pub(crate) fn put(self, frame: &mut PacketBuf, tag: Option<u16>) {
        if !self.differs(tag) {
            return;
        }
        match self {
            Self::Unchanged => {}
            Self::None => drop(pop_vlan(frame)),
            Self::Vid(vid) => {
                if tag.is_none() {
                    push_vlan(frame, CUSTOMER_TAG);
                }
                set_field(frame, Field::VlanVid, u128::from(vid) | VID_PRESENT);
            }
        }
    }
}

/// An error in the text of a port's VLANs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadVlans(String);

impl fmt::Display for BadVlans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is no VLAN setting; write access:VID, trunk, trunk:VIDS, native-tagged:VID or \
             native-untagged:VID, the latter two also with :VIDS behind; VIDS are ids (0 to 4094) \
             and ranges, for example 10,20-29; each may end in :protected{}",
            self.0,
            zero_advice(&self.0)
        )
    }
}

impl std::error::Error for BadVlans {}

fn vid(text: &str) -> Option<u16> {
    parse_decimal(text).filter(|vid| *vid <= VID_MAX)
}

fn vids(text: &str) -> Option<Vids> {
    let mut vids = Vids(Some(Box::new([0; 64])));
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (vid(first)?, vid(last)?);
        if first > last {
            return None;
        }
        (first..=last).for_each(|vid| vids.add(vid));
    }
    Some(vids)
}

impl FromStr for PortVlans {
    type Err = BadVlans;

    /// Reads `access:VID`, `trunk[:VIDS]`, `native-tagged:VID[:VIDS]` or
    /// `native-untagged:VID[:VIDS]`, which may end in `:protected`.
    fn from_str(text: &str) -> Result<Self, BadVlans> {
        let (of_vlans, is_protected) = match text.strip_suffix(":protected") {
            Some(of_vlans) => (of_vlans, true),
            None => (text, false),
        };
        let parts: Vec<&str> = of_vlans.split(':').collect();
        let id = |text: &str| vid(text).filter(|vid| *vid != 0);
        let native = |kind: &str, own: &str| {
            Some(Some(Native { vid: id(own)?, is_tagged: kind == "native-tagged" }))
        };
        let read = match parts.as_slice() {
            ["access", own] => id(own).map(Members::Access),
            ["trunk"] => Some(Members::default()),
            ["trunk", list] => vids(list).map(|vids| Members::Trunk { vids, native: None }),
            [kind @ ("native-tagged" | "native-untagged"), own] => {
                native(kind, own).map(|native| Members::Trunk { vids: Vids::ALL, native })
            }
            [kind @ ("native-tagged" | "native-untagged"), own, list] => native(kind, own)
                .zip(vids(list))
                .map(|(native, vids)| Members::Trunk { vids, native }),
            _ => None,
        };
        let members = read.ok_or_else(|| BadVlans(text.to_owned()))?;
        Ok(Self { members, is_protected })
    }
}

#[cfg(test)]
mod tests {
    use super::{PortVlans, Tag};

    fn vlans(text: &str) -> PortVlans {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn each_kind_takes_and_sends_what_the_standard_says() {
        // (port, frames without a tag are in, frames with tag 10 are in, VLAN 10 leaves, 5 leaves)
        let rows = [
            ("trunk", Some(0), Some(10), Some(Tag::Vid(10)), Some(Tag::Vid(5))),
            ("access:10", Some(10), None, Some(Tag::None), None),
            ("trunk:10,20", None, Some(10), Some(Tag::Vid(10)), None),
            ("trunk:0,8-11", Some(0), Some(10), Some(Tag::Vid(10)), None),
            ("native-untagged:5", Some(5), Some(10), Some(Tag::Vid(10)), Some(Tag::None)),
            ("native-untagged:5:10", Some(5), Some(10), Some(Tag::Vid(10)), Some(Tag::None)),
            ("native-tagged:5:10", Some(5), Some(10), Some(Tag::Vid(10)), Some(Tag::Vid(5))),
            ("native-tagged:5:20", Some(5), None, None, Some(Tag::Vid(5))),
        ];
        for (text, untagged, tagged, ten, five) in rows {
            let port = vlans(text);
            let leaves = |vlan| port.carries(vlan).then(|| port.leaves(vlan));
            let found = (port.enters(None), port.enters(Some(10)), leaves(10), leaves(5));
            assert_eq!(found, (untagged, tagged, ten, five), "{text}");
            assert_eq!(port.enters(Some(0)), port.enters(None), "{text}: a priority is no VLAN");
        }
        assert_eq!(vlans("trunk").leaves(0), Tag::Unchanged);
        let protected = ["access:5:protected", "trunk:protected", "native-tagged:5:10:protected"];
        assert!(protected.iter().all(|text| vlans(text).is_protected()));
        assert!(!vlans("access:5").is_protected() && vlans("access:5:protected").carries(5));
    }

    #[test]
    fn what_is_no_setting_is_refused_with_what_is_allowed() {
        for bad in [
            "",
            "access",
            "access:0",
            "access:4095",
            "access:x",
            "access:1:2",
            "trunk:",
            "trunk:1,",
            "trunk:5-4",
            "trunk:4095",
            "native-tagged",
            "native-tagged:0",
            "native:5",
            "trunk:1:2",
            "protected",
            "trunk:protected:protected",
            "access:protected",
        ] {
            let error = bad.parse::<PortVlans>().unwrap_err().to_string();
            assert!(error.contains("access:VID"), "{error}");
        }
    }
}
