//! The frames that a cell's settings describe, for the methods that send frames of their own.

use generator::profile::StreamSpec;

use crate::settings::{Forwarding, Settings};
use crate::testbed::HOSTS;

/// The headers where the settings say nothing else: from host 1 to host 2.
fn usual_packet() -> String {
    let [near, far] = HOSTS.map(|host| openflow::MacAddr(host.mac));
    let [src, dst] = HOSTS.map(|host| host.ip);
    format!("eth(src={near},dst={far})/ipv4(src={src},dst={dst})/udp(src=1000,dst=2000)")
}

/// The stream; size, rate and mode are those of each trial.
pub(super) fn stream(settings: &Settings) -> StreamSpec {
    StreamSpec {
        packet: settings.packet.clone().unwrap_or_else(usual_packet),
        modifiers: settings.modifiers.clone().unwrap_or_default(),
        ..StreamSpec::default()
    }
}

/// Whether the switch has to be shown where the destination is.
pub(super) fn is_learning(settings: &Settings) -> bool {
    settings.forwarding() == Forwarding::Learning
}
