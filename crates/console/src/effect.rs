//! Effects of a command beside changed settings: work that the console does on the session.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::form::FormValue;
use crate::state::ConsoleState;

/// Work to be done after the settings have been changed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Effect {
    /// The settings of these ports differ: those that transmit go on with the new ones.
    Changed(Vec<usize>),
    /// Only the rates of these ports differ.
    Rate(Vec<usize>),
    /// Ports start.
    Start(Vec<usize>),
    /// Ports send the packets of `prime` and stop.
    Prime(Vec<usize>),
    /// Ports stop.
    Stop(Vec<usize>),
    /// Ports send one ARP request: for their destination, or a gratuitous one.
    Arp {
        /// The ports.
        ports: Vec<usize>,
        /// Whether it announces the port's own address.
        is_gratuitous: bool,
    },
    /// All statistics begin at zero.
    Clear,
    /// The page is shown.
    Show,
    /// The screen is drawn anew as a whole.
    Redraw,
    /// Nothing is done for so long, while ports go on.
    Wait(Duration),
    /// Text is shown.
    Print(String),
    /// The settings go into a file as commands.
    Save(PathBuf),
    /// The commands of a file are carried out.
    Script(PathBuf),
    /// The console ends.
    Quit,
}

/// The values of a line, in the order of the form. The form fixes the kind of each, so a value
/// of another kind is a slip in the table of words, which its test finds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Values<'a>(pub(crate) &'a [FormValue]);

impl<'a> Values<'a> {
    /// The ports of the line, at whatever place.
    pub(crate) fn all_ports(self) -> &'a [usize] {
        let ports =
            |value: &'a _| if let FormValue::Ports(ports) = value { Some(ports) } else { None };
        self.0.iter().find_map(ports).map_or(&[], Vec::as_slice)
    }

    /// The words of the line's choices, in order.
    pub(crate) fn words(self) -> impl Iterator<Item = &'a str> {
        let word = |value: &'a _| if let FormValue::Word(word) = value { Some(word) } else { None };
        self.0.iter().filter_map(word).map(String::as_str)
    }

    /// The ports at `at`.
    pub(crate) fn ports(&self, at: usize) -> &[usize] {
        let FormValue::Ports(ports) = &self.0[at] else { unreachable!("no ports: {self:?}") };
        ports
    }

    /// The number at `at`.
    pub(crate) fn number(&self, at: usize) -> u64 {
        let FormValue::Number(number) = &self.0[at] else { unreachable!("no number: {self:?}") };
        *number
    }

    /// The word at `at`, of a choice.
    pub(crate) fn word(&self, at: usize) -> &str {
        let FormValue::Word(word) = &self.0[at] else { unreachable!("no word: {self:?}") };
        word
    }

    /// The text at `at`.
    pub(crate) fn text(&self, at: usize) -> &str {
        let FormValue::Text(text) = &self.0[at] else { unreachable!("no text: {self:?}") };
        text
    }

    /// The Ethernet address at `at`.
    pub(crate) fn mac(&self, at: usize) -> u64 {
        let FormValue::Mac(mac) = &self.0[at] else {
            unreachable!("no Ethernet address: {self:?}")
        };
        *mac
    }

    /// The IP address at `at`, and the length of its prefix.
    pub(crate) fn address(&self, at: usize) -> (IpAddr, Option<u8>) {
        let FormValue::Address(address, bits) = &self.0[at] else {
            unreachable!("no IP: {self:?}")
        };
        (*address, *bits)
    }

    /// Whether the word at `at` is `on` or `enable`.
    pub(crate) fn is_on(&self, at: usize) -> bool {
        matches!(self.word(at), "on" | "enable")
    }
}

/// The act of a command: it changes the settings and returns what else is to be done, or why it
/// cannot be done.
pub(crate) type Act = fn(&mut ConsoleState, Values<'_>) -> Result<Effect, String>;
