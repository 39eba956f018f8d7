//! The configuration file of the switch: any text is taken or refused with a place, and what is
//! taken can be resolved or refused, without a panic.
#![no_main]

use switch::config::parse_config;

libfuzzer_sys::fuzz_target!(|text: &str| {
    match parse_config(text) {
        Ok(args) => drop(args.resolve()),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
