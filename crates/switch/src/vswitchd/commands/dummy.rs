//! The commands of `--enable-dummy`: frames for dummy ports, their links, and the virtual time.

use std::rc::Rc;
use std::time::Duration;

use control::unhex;
use netdev::DummyPort;

use super::Daemon;
use crate::agent::Agent;
use crate::vswitchd::flow_key::FlowKeyText;
use crate::worker::VIRTUAL;

/// Bytes of the longest packet, and of the shortest that a length may be asked for.
const LONGEST: usize = 65_535;
const SHORTEST: usize = 64;

/// Looks whether the frames of a port have been received, and the wait between two.
const LOOKS: usize = 2_000;
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// Most steps of one `time/warp`.
const STEPS_MAX: u64 = 100_000;

/// Puts packets, in hex or as flows, where a port receives them. Done when they are forwarded.
pub(super) async fn receive(daemon: &Daemon, words: &[String]) -> Result<String, String> {
    let (name, mut packets) = words.split_first().ok_or("a name is missing")?;
    let port = DummyPort::find(name).ok_or("no such dummy netdev")?;
    if let [option, _, rest @ ..] = packets
        && option == "--qid"
    {
        packets = rest;
    }
    let mut packets = packets.iter().peekable();
    while let Some(packet) = packets.next() {
        let mut len = None;
        if packets.next_if(|word| *word == "--len").is_some() {
            let text = packets.next().ok_or("--len needs a number of bytes")?;
            let given: usize = text.parse().map_err(|_| format!("--len {text}: no number"))?;
            len = Some(given.clamp(SHORTEST, LONGEST));
        }
        if !port.put(&read_packet(packet, len)?) {
            return Err(format!("{name}: too many packets wait"));
        }
    }
    for _ in 0..LOOKS {
        if port.is_idle() {
            break;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    if let Some((agent, _)) = owner(daemon, name) {
        agent.bridge.flush_counters().await;
    }
    Ok(String::new())
}

/// A packet in hex, or of a flow.
fn read_packet(text: &str, len: Option<usize>) -> Result<Vec<u8>, String> {
    let is_hex = text.chars().all(|letter| letter.is_ascii_hexdigit() || letter == ' ');
    match unhex(text, LONGEST) {
        Ok(frame) if is_hex && !frame.is_empty() => Ok(frame),
        Ok(_) | Err(_) => FlowKeyText::read(text)?.frame(len),
    }
}

/// The bridge of a port, and the port's number.
fn owner(daemon: &Daemon, name: &str) -> Option<(Rc<Agent>, openflow::PortNo)> {
    daemon.bridges.all().into_iter().find_map(|agent| {
        let views = agent.bridge.port_views();
        let view = views.into_iter().find(|view| is_dummy(&view.port.spec, Some(name)))?;
        Some((agent, view.port.number))
    })
}

/// Whether a port is a dummy, of this name where one is given.
fn is_dummy(spec: &netdev::PortSpec, name: Option<&str>) -> bool {
    spec.kind().word == "dummy" && name.is_none_or(|name| spec.name() == name)
}

/// Takes the links of dummy ports up or down.
pub(super) async fn set_admin_state(daemon: &Daemon, words: &[String]) -> Result<String, String> {
    let (name, state) = match words {
        [state] => (None, state),
        [name, state, ..] => (Some(name.as_str()), state),
        [] => return Err("up or down is missing".to_owned()),
    };
    let up = match state.to_ascii_lowercase().as_str() {
        "up" => true,
        "down" => false,
        _ => return Err("Invalid Admin State".to_owned()),
    };
    if name.is_some_and(|name| DummyPort::find(name).is_none()) {
        return Err("Unknown Dummy Interface".to_owned());
    }
    for agent in daemon.bridges.all() {
        for view in agent.bridge.port_views() {
            if is_dummy(&view.port.spec, name) {
                agent.bridge.set_link(view.port.number, up);
            }
        }
        agent.bridge.barrier().await;
    }
    Ok("OK".to_owned())
}

/// The time stands still.
pub(super) async fn stop_time(_: &Daemon, _: &[String]) -> Result<String, String> {
    VIRTUAL.stop();
    Ok(String::new())
}

/// Puts the time forward: at once, or up to a sum by steps.
pub(super) async fn warp_time(daemon: &Daemon, words: &[String]) -> Result<String, String> {
    let number = |text: &String| text.parse::<u64>().ok().filter(|number| *number > 0);
    let (total, step) = match words {
        [step] => (number(step), number(step)),
        [total, step, ..] => (number(total), number(step)),
        [] => (None, None),
    };
    let (Some(mut left), Some(step)) = (total, step) else {
        return Err("invalid MSECS".to_owned());
    };
    if left.div_ceil(step) > STEPS_MAX {
        return Err(format!("invalid MSECS: more than {STEPS_MAX} steps"));
    }
    while left > 0 {
        let now = left.min(step);
        left -= now;
        VIRTUAL.advance(Duration::from_millis(now));
        for agent in daemon.bridges.all() {
            agent.bridge.expire().await;
            agent.send_ops();
            agent.bridge.expiry.notify_one();
        }
    }
    daemon.warped.notify_one();
    Ok("warped".to_owned())
}

#[cfg(test)]
mod tests {
    use super::read_packet;

    #[test]
    fn packets_are_hex_or_flows() {
        let hex = "ffffffffffff00000000000108000102";
        assert_eq!(read_packet(hex, None).unwrap().len(), 16);
        let flow = "in_port(1),eth(src=00:00:00:00:00:01,dst=00:00:00:00:00:02),eth_type(0x1234)";
        assert_eq!(read_packet(flow, Some(64)).unwrap().len(), 64);
        for bad in ["abc", "no_such=1", "eth(x", "tcp,tp_dst=80"] {
            assert!(read_packet(bad, None).is_err(), "{bad}");
        }
    }
}
