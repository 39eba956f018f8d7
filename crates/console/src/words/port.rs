//! Words about whole ports: start and stop, rate, count, statistics.

use std::path::PathBuf;

use generator::profile::Rate;

use super::row::{WordRow, row};
use crate::effect::{Effect, Values};
use crate::form::FormValue;
use crate::state::ConsoleState;

pub(super) const ROWS: &[WordRow] = &[
    row("start PORTS", "transmit", |_, v| Ok(Effect::Start(v.ports(0).to_vec()))),
    row("stop PORTS", "stop transmitting", |_, v| Ok(Effect::Stop(v.ports(0).to_vec()))),
    row("str", "start all", |state, _| Ok(Effect::Start(all(state)))),
    row("stp", "stop all", |state, _| Ok(Effect::Stop(all(state)))),
    row("prime PORTS", "send the packets of set PORTS prime, and stop", |_, v| {
        Ok(Effect::Prime(v.ports(0).to_vec()))
    }),
    row("set PORTS prime COUNT", "packets that prime sends", |state, v| {
        let count = v.number(1);
        if count == 0 {
            return Err("prime sends 1 packet or more".to_owned());
        }
        state.each(v.ports(0)).for_each(|port| port.prime = count);
        Ok(Effect::Changed(Vec::new()))
    }),
    row("send arp req|grat PORTS", "an ARP request, or a gratuitous one", |_, v| {
        let is_gratuitous = v.word(0) == "grat";
        Ok(Effect::Arp { ports: v.ports(1).to_vec(), is_gratuitous })
    }),
    row("garp PORTS", "a gratuitous ARP request", |_, v| {
        Ok(Effect::Arp { ports: v.ports(0).to_vec(), is_gratuitous: true })
    }),
    row("pcap.file PORTS TEXT", "the capture file of pcap mode", |state, v| {
        let file = PathBuf::from(v.text(1));
        state.each(v.ports(0)).for_each(|port| port.pcap_file = Some(file.clone()));
        Ok(Effect::Changed(v.ports(0).to_vec()))
    }),
    row("pcap PORTS on|off", "pcap mode: the frames of a file", |state, v| {
        set_pcap(state, v.ports(0), v.is_on(1))
    }),
    row("enable|disable PORTS pcap", "the same", |state, v| {
        set_pcap(state, v.ports(1), v.is_on(0))
    }),
    row("set PORTS rate RATE", "rate of all that the port sends", set_rate),
    row("set PORTS burst|txburst BURST", "packets handed to the port at once, at most", |s, v| {
        let burst = Some(v.number(2));
        s.each(v.ports(0)).for_each(|port| port.burst = burst);
        Ok(Effect::Changed(v.ports(0).to_vec()))
    }),
    row("set PORTS count COUNT", "packets to send (0: for ever)", |state, v| {
        let count = v.number(1);
        state.each(v.ports(0)).for_each(|port| port.count = count);
        Ok(Effect::Changed(v.ports(0).to_vec()))
    }),
    row("latency PORTS on|off", "sequence number and time stamp in each frame", |state, v| {
        set_latency(state, v.ports(0), v.is_on(1))
    }),
    row("enable|disable PORTS latency", "the same", |state, v| {
        set_latency(state, v.ports(1), v.is_on(0))
    }),
    row(
        "set PORTS late_after MICROSECONDS",
        "frames that arrive so long after they were due count as late (0: none)",
        |state, v| {
            let late = Some(v.number(1)).filter(|us| *us > 0);
            state.each(v.ports(0)).for_each(|port| port.late_after_us = late);
            Ok(Effect::Changed(v.ports(0).to_vec()))
        },
    ),
    row("verify PORTS on|off", "check all checksums of what arrives", |state, v| {
        set_verify(state, v.ports(0), v.is_on(1))
    }),
    row("enable|disable PORTS verify", "the same", |state, v| {
        set_verify(state, v.ports(1), v.is_on(0))
    }),
    row("clear PORTS", "all statistics begin at zero", |_, _| Ok(Effect::Clear)),
    row("clear PORTS stats", "the same", |_, _| Ok(Effect::Clear)),
    row("clr", "the same", |_, _| Ok(Effect::Clear)),
    row("reset PORTS", "stop, and Pktgen's settings again", |state, v| reset(state, v.ports(0))),
    row("rst", "reset all", |state, _| reset(state, &all(state))),
];

/// All ports.
pub(super) fn all(state: &ConsoleState) -> Vec<usize> {
    (0..state.ports.len()).collect()
}

fn set_rate(state: &mut ConsoleState, values: Values<'_>) -> Result<Effect, String> {
    let FormValue::Rate(rate) = values.0[1] else { unreachable!("{values:?}") };
    if let Rate::PercentOfLine(percent) = rate
        && percent > 100.0
    {
        return Err(format!("a line carries 100 %, not {percent} %"));
    }
    state.each(values.ports(0)).for_each(|port| port.rate = rate);
    Ok(Effect::Rate(values.ports(0).to_vec()))
}

fn set_latency(state: &mut ConsoleState, ports: &[usize], is_on: bool) -> Result<Effect, String> {
    state.each(ports).for_each(|port| port.is_latency_on = is_on);
    Ok(Effect::Changed(ports.to_vec()))
}

fn set_pcap(state: &mut ConsoleState, ports: &[usize], is_on: bool) -> Result<Effect, String> {
    state.each(ports).for_each(|port| port.is_pcap_on = is_on);
    Ok(Effect::Changed(ports.to_vec()))
}

fn set_verify(state: &mut ConsoleState, ports: &[usize], is_on: bool) -> Result<Effect, String> {
    state.each(ports).for_each(|port| port.verifies = is_on);
    Ok(Effect::Changed(ports.to_vec()))
}

fn reset(state: &mut ConsoleState, ports: &[usize]) -> Result<Effect, String> {
    state.reset(ports);
    Ok(Effect::Stop(ports.to_vec()))
}
