//! Numbers of the command line: one with a zero before further digits is refused.
//!
//! Some read such a number as octal, some as decimal. Arguments that are numbers are checked here,
//! whichever command has them; those that have a number in them are read by
//! [`openflow::text::parse_decimal`].

use std::any::TypeId;

use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Command};
use openflow::text::{parse_decimal, zero_advice};

/// Checks all numbers of a command line.
///
/// # Errors
/// The first that begins with a zero before further digits, with both readings.
pub(crate) fn check(mut command: Command, matches: &ArgMatches) -> Result<(), clap::Error> {
    command.build();
    let (mut command, mut matches) = (&mut command, matches);
    loop {
        for arg in command.get_arguments().filter(|arg| is_number(arg)) {
            let texts = matches.get_raw(arg.get_id().as_str()).into_iter().flatten();
            for text in texts.filter_map(|text| text.to_str()) {
                if parse_decimal::<String>(text).is_none() {
                    let why = format!("invalid value '{text}' for '{arg}'{}", zero_advice(text));
                    return Err(command.clone().error(ErrorKind::ValueValidation, why));
                }
            }
        }
        let Some((name, of_name)) = matches.subcommand() else { return Ok(()) };
        let Some(found) = command.find_subcommand_mut(name) else { return Ok(()) };
        (command, matches) = (found, of_name);
    }
}

/// Whether the values of an argument are numbers, and nothing else.
fn is_number(arg: &Arg) -> bool {
    let types = [
        TypeId::of::<u8>(),
        TypeId::of::<u16>(),
        TypeId::of::<u32>(),
        TypeId::of::<u64>(),
        TypeId::of::<usize>(),
        TypeId::of::<i32>(),
        TypeId::of::<i64>(),
        TypeId::of::<f64>(),
    ];
    let of_arg = arg.get_value_parser().type_id();
    arg.get_action().takes_values() && types.into_iter().any(|number| of_arg == number)
}
