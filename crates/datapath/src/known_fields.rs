//! The fields known of a packet while a list of actions runs: the base of consistency checks.
//!
//! A match promises fields; actions change the promise (a push of an MPLS entry hides everything
//! about IP). An action that writes a field the packet is not certain to have is refused before it
//! is installed (clauses 5.9 and 6.4). No packet is looked at here.

use openflow::action::HeaderEffect;
use openflow::field::{Header, Prereq, VID_PRESENT};
use openflow::{Action, Error, Field, Learn, Match};

/// Certain facts about a packet, written as a match that it matches.
#[derive(Clone, Debug)]
pub(crate) struct KnownFields {
    known: Match,
    /// Nothing is known, and nothing is refused for it: buckets see packets of many entries.
    lenient: bool,
}

impl KnownFields {
    /// The facts that a flow entry's match promises.
    pub(crate) fn of(matching: &Match) -> Self {
        Self { known: matching.clone(), lenient: false }
    }

    /// For buckets: whatever depends on the packet is allowed, and skipped where it does not fit.
    pub(crate) fn any() -> Self {
        Self { known: Match::any(), lenient: true }
    }

    /// Runs an action over the known fields.
    ///
    /// Set-field needs certainty (clause 7.2.5), and so does an action that reads a field. The
    /// others are refused only where the known fields contradict them: a pop of a tag that is
    /// certain not to be there.
    ///
    /// # Errors
    /// `OFPBAC_MATCH_INCONSISTENT`.
    pub(crate) fn run(&mut self, action: &Action) -> Result<(), Error> {
        let row = action.kind().row();
        self.refuse_if(self.contradicts(row.needs))?;
        self.require(action.reads())?;
        let mut learnt = action.learns().into_iter().flat_map(Learn::reads);
        self.refuse_if(!learnt.all(|field| self.known.matches(field.row().prereq)))?;
        if !action.inner().is_empty() {
            let mut copy = self.clone();
            action.inner().iter().try_for_each(|inner| copy.run(inner))?;
        }
        match row.effect {
            // These change no field that another one needs.
            HeaderEffect::None
            | HeaderEffect::SetTtl(_)
            | HeaderEffect::DecTtl(_)
            | HeaderEffect::CopyTtl => {}
            HeaderEffect::Write => self.write(action)?,
            HeaderEffect::WriteTag => self.set_vlan(VID_PRESENT, VID_PRESENT),
            HeaderEffect::Push(header) => self.outermost(header, eth_type_of(action), u128::MAX),
            HeaderEffect::Pop(header) => self.outermost(header, eth_type_of(action), 0),
        }
        Ok(())
    }

    /// Whether no packet with these facts is what an action needs.
    fn contradicts(&self, needs: Prereq) -> bool {
        match needs {
            Prereq::None | Prereq::Present(_) => false,
            Prereq::VlanTag => self.known.exact(Field::VlanVid) == Some(0),
            Prereq::OneOf(field, values) => {
                self.known.exact(field).is_some_and(|value| !values.contains(&value))
            }
        }
    }

    /// A header has come or gone at the outermost place. `certain` is the mask of what is then
    /// known of the tag: all of it behind a push (a VLAN tag is there, and none before a PBB
    /// header), nothing behind a pop. What stands behind another EtherType is no longer known.
    fn outermost(&mut self, header: Header, eth_type: Option<u16>, certain: u128) {
        match header {
            Header::Vlan => self.set_vlan(VID_PRESENT & certain, VID_PRESENT & certain),
            Header::Pbb => {
                self.set_vlan(0, certain);
                self.set_eth_type(eth_type);
            }
            Header::Mpls => self.set_eth_type(eth_type),
            Header::Ethernet
            | Header::Arp
            | Header::Ipv4
            | Header::Ipv6
            | Header::Tcp
            | Header::Udp
            | Header::Sctp
            | Header::Icmpv4
            | Header::Icmpv6 => {}
        }
    }

    fn refuse_if(&self, contradiction: bool) -> Result<(), Error> {
        if contradiction && !self.lenient {
            return Err(Error::BadActionMatchInconsistent);
        }
        Ok(())
    }

    /// Refuses an action on fields that packets need not have.
    fn require(&self, fields: &[Field]) -> Result<(), Error> {
        self.refuse_if(!fields.iter().all(|field| self.known.matches(needs(*field))))
    }

    /// An action that names fields needs certainty that the packet has them.
    fn write(&mut self, action: &Action) -> Result<(), Error> {
        if !action.names_fields() {
            return Ok(());
        }
        self.require(action.writes())?;
        for field in action.writes() {
            self.set(*field, action.value());
        }
        Ok(())
    }

    /// The field has the value now, or an unknown one.
    fn set(&mut self, field: Field, value: Option<u128>) {
        if field == Field::VlanVid {
            match value {
                Some(vid) => self.set_vlan(vid | VID_PRESENT, u128::MAX),
                None => self.set_vlan(VID_PRESENT, VID_PRESENT),
            }
        } else if field == Field::EthType {
            self.set_eth_type(value.and_then(|value| u16::try_from(value).ok()));
        } else {
            let mask = if value.is_some() { u128::MAX } else { 0 };
            self.known.set(field, value.unwrap_or(0), mask);
            self.forget_orphans();
        }
    }

    /// The outermost tag: known to have these bits; a mask of zero for "nothing is known".
    fn set_vlan(&mut self, value: u128, mask: u128) {
        self.known.set(Field::VlanPcp, 0, 0);
        self.known.set(Field::VlanVid, value, mask);
    }

    /// The type behind the tags; what belonged to the old one is no longer known.
    fn set_eth_type(&mut self, eth_type: Option<u16>) {
        let old = self.known.exact(Field::EthType);
        let new = eth_type.map(u128::from);
        self.known.set(Field::EthType, new.unwrap_or(0), new.map_or(0, |_| u128::MAX));
        for mpls in [Field::MplsLabel, Field::MplsTc, Field::MplsBos] {
            self.known.set(mpls, 0, 0);
        }
        if old != new {
            self.forget_orphans();
        }
    }

    /// Forgets the fields whose prerequisite is no longer certain. Prerequisites have lower
    /// numbers than what needs them, so one pass in order is enough.
    fn forget_orphans(&mut self) {
        for held in self.known.fields().to_vec() {
            if !self.known.matches(held.field.row().prereq) {
                self.known.set(held.field, 0, 0);
            }
        }
    }
}

/// The prerequisite of an action that names the field. A tag's id can be set only where there
/// is a tag, although a match on the id needs no other field.
fn needs(field: Field) -> Prereq {
    if field == Field::VlanVid { Prereq::VlanTag } else { field.row().prereq }
}

/// The EtherType that an action gives the frame.
fn eth_type_of(action: &Action) -> Option<u16> {
    action.number().and_then(|number| u16::try_from(number).ok())
}

#[cfg(test)]
mod tests {
    use super::KnownFields;
    use openflow::field::{FIELDS, Prereq};
    use openflow::{Action, Error, Field, Match};

    const REFUSED: Result<(), Error> = Err(Error::BadActionMatchInconsistent);

    fn run(matching: Match, actions: &[Action]) -> Result<(), Error> {
        let mut known = KnownFields::of(&matching);
        actions.iter().try_for_each(|action| known.run(action))
    }

    #[test]
    fn prerequisites_have_lower_numbers_than_what_needs_them() {
        for row in FIELDS {
            if let Prereq::OneOf(field, _) | Prereq::Present(field) = row.prereq {
                // ICMPv6 options need the type, and every chain ends at the EtherType.
                assert!(field < row.field, "{}", row.name);
            }
        }
    }

    #[test]
    fn set_field_needs_its_prerequisite_in_match_or_earlier_action() {
        let ip = Match::any().with(Field::EthType, 0x0800);
        let set_dst = Action::set_field(Field::Ipv4Dst, 1);
        assert_eq!(run(Match::any(), std::slice::from_ref(&set_dst)), REFUSED);
        assert_eq!(run(ip.clone(), std::slice::from_ref(&set_dst)), Ok(()));
        let set_type = Action::set_field(Field::EthType, 0x0800);
        assert_eq!(run(Match::any(), &[set_type, set_dst.clone()]), Ok(()));
        let push = Action::PushMpls(0x8847);
        let label = Action::set_field(Field::MplsLabel, 5);
        assert_eq!(run(ip.clone(), &[push.clone(), label.clone()]), Ok(()));
        assert_eq!(run(ip.clone(), &[label]), REFUSED);
        assert_eq!(run(ip.clone(), &[push.clone(), set_dst.clone()]), REFUSED);
        assert_eq!(run(ip, &[push, Action::PopMpls(0x0800), set_dst]), Ok(()));
    }

    #[test]
    fn a_tag_must_be_certain_before_its_id_is_set() {
        let set_vid = Action::set_field(Field::VlanVid, 0x1005);
        let set_pcp = Action::set_field(Field::VlanPcp, 5);
        assert_eq!(run(Match::any(), std::slice::from_ref(&set_vid)), REFUSED);
        let push = Action::PushVlan(0x8100);
        assert_eq!(run(Match::any(), &[push.clone(), set_vid.clone(), set_pcp.clone()]), Ok(()));
        let tagged = Match::any().with_masked(Field::VlanVid, 0x1000, 0x1000);
        assert_eq!(run(tagged.clone(), &[set_pcp, set_vid.clone()]), Ok(()));
        assert_eq!(run(tagged, &[Action::PopVlan, set_vid]), REFUSED);
    }

    #[test]
    fn a_pop_is_refused_only_where_the_match_contradicts_it() {
        let untagged = Match::any().with(Field::VlanVid, 0);
        assert_eq!(run(untagged, &[Action::PopVlan]), REFUSED);
        assert_eq!(run(Match::any(), &[Action::PopVlan]), Ok(()));
        let ip = Match::any().with(Field::EthType, 0x0800);
        assert_eq!(run(ip.clone(), &[Action::PopMpls(0x0800)]), REFUSED);
        assert_eq!(run(ip.clone(), &[Action::PopPbb]), REFUSED);
        assert_eq!(run(ip, &[Action::DecMplsTtl]), REFUSED);
        let arp = Match::any().with(Field::EthType, 0x0806);
        assert_eq!(run(arp, &[Action::DecNwTtl]), REFUSED);
        assert_eq!(run(Match::any(), &[Action::DecNwTtl]), Ok(()));
    }

    #[test]
    fn the_other_actions_of_pbb_follow_the_frame() {
        let tagged = Match::any().with(Field::VlanVid, 0x1005);
        let isid = Action::set_field(Field::PbbIsid, 5);
        let push = Action::PushPbb(0x88e7);
        assert_eq!(run(tagged.clone(), &[push.clone(), isid.clone()]), Ok(()));
        assert_eq!(run(tagged.clone(), &[push.clone(), Action::PopVlan]), REFUSED);
        assert_eq!(run(tagged, &[push, Action::PopPbb, isid]), REFUSED);
    }

    #[test]
    fn buckets_are_not_asked_for_certainty() {
        let mut known = KnownFields::any();
        assert_eq!(known.run(&Action::set_field(Field::Ipv4Dst, 1)), Ok(()));
    }
}
