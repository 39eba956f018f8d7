//! Words about the console itself: pages, files, waiting, help.

use std::path::PathBuf;
use std::time::Duration;

use super::row::{WordRow, row};
use crate::effect::{Effect, Values};
use crate::state::{ConsoleState, PORTS_PER_PAGE, PageName};

pub(super) const ROWS: &[WordRow] = &[
    row(
        "page main|range|seq|sequence|rnd|latency|stats|cpu|streams|config|pcap|log|xstats",
        "show a page",
        |state, v| {
            let word = if v.word(0) == "sequence" { "seq" } else { v.word(0) };
            state.page = PageName::of_word(word).unwrap_or(state.page);
            Ok(Effect::Show)
        },
    ),
    row("pcap.show", "show the page pcap", |state, _| {
        state.page = PageName::Pcap;
        Ok(Effect::Show)
    }),
    row("page next", "show the next page", |state, _| {
        state.page = state.page.next();
        Ok(Effect::Show)
    }),
    row("page NUMBER", "main page from port 2 x NUMBER on", page_of_ports),
    row("page", "show the page again", |_, _| Ok(Effect::Show)),
    row("port PORT", "port whose sequence and streams are shown", |state, v| {
        state.port = v.ports(0).first().copied().unwrap_or(0);
        state.first_port = state.port / PORTS_PER_PAGE * PORTS_PER_PAGE;
        Ok(Effect::Show)
    }),
    row("on|off", "live page on or off", |state, v| screen(state, v.is_on(0))),
    row("screen on|off", "the same", |state, v| screen(state, v.is_on(0))),
    row("enable|disable screen", "the same", |state, v| screen(state, v.is_on(0))),
    row("cls", "draw the screen anew", |_, _| Ok(Effect::Redraw)),
    row("delay MILLISECONDS", "wait, while ports go on", |_, v| {
        Ok(Effect::Wait(Duration::from_millis(v.number(0))))
    }),
    row("sleep SECONDS", "wait, while ports go on", |_, v| {
        Ok(Effect::Wait(Duration::from_secs(v.number(0))))
    }),
    row("save FILE", "write the settings as commands", |_, v| {
        Ok(Effect::Save(PathBuf::from(v.text(0))))
    }),
    row("load|script|run FILE", "carry out the commands of a file, if all are right", |_, v| {
        Ok(Effect::Script(PathBuf::from(v.text(1))))
    }),
    row("help", "list all commands", |_, _| Ok(Effect::Print(super::help(None)?))),
    row("help WHAT", "commands with this word", |_, v| {
        Ok(Effect::Print(super::help(Some(v.text(0)))?))
    }),
    row("quit|q|exit", "stop all ports and end", |_, _| Ok(Effect::Quit)),
];

fn screen(state: &mut ConsoleState, is_on: bool) -> Result<Effect, String> {
    state.is_screen_on = is_on;
    Ok(Effect::Redraw)
}

fn page_of_ports(state: &mut ConsoleState, values: Values<'_>) -> Result<Effect, String> {
    let number = usize::try_from(values.number(0)).unwrap_or(usize::MAX);
    let first = number.saturating_mul(PORTS_PER_PAGE);
    if first >= state.ports.len() {
        let last = state.ports.len().saturating_sub(1) / PORTS_PER_PAGE;
        return Err(format!("there is no page {number}; the ports have pages 0 to {last}"));
    }
    state.page = PageName::Main;
    state.first_port = first;
    Ok(Effect::Show)
}
