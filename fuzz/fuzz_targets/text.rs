//! The text syntax: any text is taken or refused with a place inside it, and what is taken is
//! printed as a text that means the same.
#![no_main]

use openflow::flow::FlowModCommand;
use openflow::group::GroupModCommand;
use openflow::meter::MeterModCommand;
use openflow::text::{
    TextError, format_actions, format_flow_mod, format_match, parse_actions, parse_flow_filter,
    parse_flow_mod, parse_group_mod, parse_match, parse_meter_mod,
};

libfuzzer_sys::fuzz_target!(|text: &str| {
    round_trip(text, parse_match, format_match);
    round_trip(text, parse_actions, |actions| format_actions(actions));
    let parse_add = |text: &str| parse_flow_mod(text, FlowModCommand::Add);
    round_trip(text, parse_add, format_flow_mod);
    refusal(text, parse_flow_filter(text));
    refusal(text, parse_group_mod(text, GroupModCommand::Add));
    refusal(text, parse_meter_mod(text, MeterModCommand::Add));
});

/// Prints a value and reads it again: the meaning must be the same.
fn round_trip<T: PartialEq + std::fmt::Debug>(
    text: &str,
    parse: impl Fn(&str) -> Result<T, TextError>,
    format: impl Fn(&T) -> String,
) {
    let Some(value) = refusal(text, parse(text)) else { return };
    let printed = format(&value);
    match parse(&printed) {
        Ok(again) => assert_eq!(again, value, "{text:?} is printed as {printed:?}"),
        Err(error) => panic!("{text:?} is printed as {printed:?}, which is refused: {error}"),
    }
}

/// A refusal names a place inside the text.
fn refusal<T>(text: &str, outcome: Result<T, TextError>) -> Option<T> {
    outcome.inspect_err(|error| assert!(error.at <= text.len(), "{text:?}: {error}")).ok()
}
