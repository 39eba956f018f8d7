//! The switch's own counters, one row each: what the agent, the workers and the sockets did, and
//! why something was dropped outside of the pipeline (the pipeline's reasons are `datapath`'s).
//!
//! Nothing is lost without a row here. Counting is one relaxed addition; nothing waits.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $variant:ident $name:literal;)+) => {
        /// A counter.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum Counter {
            $($(#[doc = $doc])+ $variant,)+
        }

        /// Every row: the counter, its name, and its meaning in a sentence.
        pub const COUNTERS: &[(Counter, &str, &str)] =
            &[$((Counter::$variant, $name, concat!($($doc),+)),)+];
    };
}

counters! {
    /// Packet-ins written to a controller.
    PacketIn "packet_in";
    /// Dropped: as many packets wait for the controllers as may.
    PacketInQueueFull "packet_in_drop_queue_full";
    /// Dropped: misses come faster than `packet-in-rate`.
    PacketInRateNoMatch "packet_in_drop_rate_no_match";
    /// Dropped: packets that an action sends up come faster than `packet-in-rate`.
    PacketInRateAction "packet_in_drop_rate_action";
    /// Dropped: packets with an invalid TTL come faster than `packet-in-rate`.
    PacketInRateInvalidTtl "packet_in_drop_rate_invalid_ttl";
    /// Dropped: no controller is connected that wants the packet.
    PacketInNoController "packet_in_drop_no_controller";
    /// Dropped: the controller does not read what it was sent.
    PacketInControllerBusy "packet_in_drop_controller_busy";
    /// Packet-outs executed.
    PacketOut "packet_out";
    /// Flow-mods executed, refused ones too.
    FlowMod "flow_mod";
    /// Group-mods executed, refused ones too.
    GroupMod "group_mod";
    /// Bundles committed, refused ones too.
    Bundle "bundle";
    /// Meter-mods executed, refused ones too.
    MeterMod "meter_mod";
    /// Port-mods executed, refused ones too.
    PortMod "port_mod";
    /// Table-mods executed, refused ones too.
    TableMod "table_mod";
    /// Multipart (statistics) requests.
    Multipart "multipart";
    /// Barriers answered.
    Barrier "barrier";
    /// Requests that were answered by an error message.
    ErrorSent "error_sent";
    /// Messages and entries that a controller's version cannot say, and that were left out: an
    /// entry that 1.0 lacks is missing in `dump-flows` by 1.0, and counted in `dump-aggregate`; so
    /// is one of 1.0 that 1.3 lacks by 1.3.
    Unsayable "unsayable";
    /// Flow-removed messages made.
    FlowRemoved "flow_removed";
    /// Port-status messages made.
    PortStatus "port_status";
    /// Connections on which the version was agreed.
    ChannelUp "channel_up";
    /// Connections that ended after the version was agreed.
    ChannelDown "channel_down";
    /// Connections that ended before the version was agreed.
    ChannelFailed "channel_failed";
    /// Connections closed at once: the limit of connections is reached.
    ChannelTurnedAway "channel_turned_away";
    /// Connections closed before their hello, to make room for newer ones.
    ChannelEvicted "channel_evicted";
    /// Dropped: the port did not take the frame, its queue being full.
    TxQueueFull "tx_drop_queue_full";
    /// Dropped: a queue of the port holds as many frames as it may.
    QueueOverrun "tx_drop_queue_overrun";
    /// Dropped: the port is another worker's, and as many frames wait for that one as may.
    HandoffFull "tx_drop_handoff_full";
    /// Dropped: the frame has passed 64 patch ports, as in a loop of bridges.
    PatchLoop "tx_drop_patch_loop";
    /// Dropped: the port's device is not there.
    TxPortGone "tx_drop_port_gone";
    /// Dropped: the port is set to `PORT_DOWN` or `NO_RECV`.
    RxPortDown "rx_drop_port_down";
    /// Dropped: the port has an ingress rate (`police`), and the packet came faster.
    RxPoliced "rx_drop_policed";
    /// A port's device disappeared.
    PortGone "port_gone";
    /// A port's device came back and was opened.
    PortReopened "port_reopened";
    /// A port's receive or send call failed.
    PortError "port_error";
    /// Failures to keep the state of `--state`: a restart then would not restore everything.
    StateError "state_error";
    /// Requests on the control socket.
    Control "control_request";
    /// Requests on the control socket that were refused.
    ControlRefused "control_refused";
}

/// The name of a counter's reason to drop packets; none of a counter that is no such reason.
pub(crate) fn own_drop(name: &str) -> Option<String> {
    name.contains("drop_").then(|| name.replacen("drop_", "", 1))
}

/// The values, shared by agent, workers and sockets.
#[derive(Debug)]
pub struct Counters {
    values: [AtomicU64; COUNTERS.len()],
}

impl Default for Counters {
    fn default() -> Self {
        Self { values: [const { AtomicU64::new(0) }; COUNTERS.len()] }
    }
}

impl Counters {
    /// Adds `count`.
    pub fn add(&self, counter: Counter, count: u64) {
        if let Some(value) = self.values.get(counter as usize) {
            value.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Adds one.
    pub fn bump(&self, counter: Counter) {
        self.add(counter, 1);
    }

    /// The value now.
    #[must_use]
    pub fn get(&self, counter: Counter) -> u64 {
        self.values.get(counter as usize).map_or(0, |value| value.load(Ordering::Relaxed))
    }

    /// Every counter's name, value and meaning, in the order of the rows.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, u64, &'static str)> {
        COUNTERS.iter().map(|(counter, name, help)| (*name, self.get(*counter), help.trim_start()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{COUNTERS, Counter, Counters};

    #[test]
    fn rows_stand_in_order_and_names_differ() {
        let mut names = HashSet::new();
        for (index, (counter, name, help)) in COUNTERS.iter().enumerate() {
            assert_eq!(*counter as usize, index);
            assert!(names.insert(name) && help.ends_with('.'), "{name}: {help}");
        }
    }

    #[test]
    fn what_is_added_is_read() {
        let counters = Counters::default();
        counters.add(Counter::PacketOut, 3);
        counters.bump(Counter::PacketOut);
        assert_eq!(counters.get(Counter::PacketOut), 4);
        assert_eq!(counters.all().map(|(_, value, _)| value).sum::<u64>(), 4);
    }
}
