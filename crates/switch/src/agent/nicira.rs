//! Requests of Nicira's by which Open vSwitch's tools choose the form of messages.
//!
//! A form that is not spoken is refused: the tools then try another one.

use openflow::error::NICIRA;
use openflow::flow::FlowForm;
use openflow::message::Experimenter;
use openflow::{Error, Version};

use super::request::Handling;

/// Types of requests (`nicira-ext.h`), and the forms that the specification has too.
const SET_FLOW_FORMAT: u32 = 12;
const FLOW_MOD_TABLE_ID: u32 = 15;
const SET_PACKET_IN_FORMAT: u32 = 16;
const STANDARD_FORM: u32 = 0;
const NXM_FORM: u32 = 2;

/// Carries a request out.
pub(super) fn handle(version: Version, message: &Experimenter) -> Handling {
    let unknown = Handling::Refused(Error::BadRequestBadExperimenter);
    let Some((of_nicira, body)) = type_and_body(version, message) else { return unknown };
    match (of_nicira, body) {
        (FLOW_MOD_TABLE_ID, &[is_set, _, _, _, _, _, _, _]) => Handling::TableIds(is_set != 0),
        (SET_FLOW_FORMAT, &[a, b, c, d]) => match u32::from_be_bytes([a, b, c, d]) {
            STANDARD_FORM => Handling::FlowForm(FlowForm::Standard),
            NXM_FORM if version.has_nicira_flows() => Handling::FlowForm(FlowForm::Nicira),
            _ => Handling::Refused(Error::BadRequestEperm),
        },
        (SET_PACKET_IN_FORMAT, &[a, b, c, d]) => match u32::from_be_bytes([a, b, c, d]) {
            STANDARD_FORM => Handling::Nothing,
            _ => unknown,
        },
        (FLOW_MOD_TABLE_ID | SET_FLOW_FORMAT | SET_PACKET_IN_FORMAT, _) => {
            Handling::Refused(Error::BadRequestBadLen)
        }
        _ => unknown,
    }
}

/// The type of a request of Nicira's, and its body; 1.0 has the type at the body's begin.
fn type_and_body(version: Version, message: &Experimenter) -> Option<(u32, &[u8])> {
    let Experimenter { experimenter, exp_type, data } = message;
    if *experimenter != NICIRA {
        return None;
    }
    if version.has_experimenter_types() {
        return Some((*exp_type, data));
    }
    let (exp_type, body) = data.split_first_chunk()?;
    Some((u32::from_be_bytes(*exp_type), body))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handled(version: Version, experimenter: u32, exp_type: u32, body: &[u8]) -> String {
        let head = exp_type.to_be_bytes();
        let is_numbered = version.has_experimenter_types();
        let data = if is_numbered { body.to_vec() } else { [&head[..], body].concat() };
        let exp_type = if is_numbered { exp_type } else { 0 };
        format!("{:?}", handle(version, &Experimenter { experimenter, exp_type, data }))
    }

    #[test]
    fn forms_of_the_specification_are_taken_and_others_refused() {
        let refused = "Refused(BadRequestBadExperimenter)";
        let on = [1, 0, 0, 0, 0, 0, 0, 0];
        for version in Version::ALL {
            let handled = |exp_type, body: &[u8]| handled(*version, NICIRA, exp_type, body);
            assert_eq!(handled(FLOW_MOD_TABLE_ID, &on), "TableIds(true)");
            assert_eq!(handled(FLOW_MOD_TABLE_ID, &[0; 8]), "TableIds(false)");
            assert_eq!(handled(FLOW_MOD_TABLE_ID, &[0; 7]), "Refused(BadRequestBadLen)");
            let nxm = match version.has_nicira_flows() {
                true => "FlowForm(Nicira)",
                false => "Refused(BadRequestEperm)",
            };
            for (form, standard, other) in [
                (SET_FLOW_FORMAT, "FlowForm(Standard)", nxm),
                (SET_PACKET_IN_FORMAT, "Nothing", refused),
            ] {
                assert_eq!(handled(form, &[0; 4]), standard);
                assert_eq!(handled(form, &[0, 0, 0, 2]), other);
                assert_eq!(handled(form, &[]), "Refused(BadRequestBadLen)");
            }
            assert_eq!(handled(99, &on), refused);
        }
        assert_eq!(handled(Version::V1_3, NICIRA + 1, FLOW_MOD_TABLE_ID, &on), refused);
        let short = Experimenter { experimenter: NICIRA, exp_type: 0, data: vec![0; 3] };
        assert_eq!(format!("{:?}", handle(Version::V1_0, &short)), refused);
    }
}
