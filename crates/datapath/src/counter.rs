//! Counters of a datapath as a whole, and its reasons for drops: one row each.
//!
//! A row is a variant, the name that people and exporters see, and a sentence of help. Nothing that
//! is lost may be without a row here.

macro_rules! rows {
    ($(#[$meta:meta])* pub enum $name:ident {
        $($variant:ident $text:literal $help:literal;)+
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum $name {
            $(#[doc = $help] $variant,)+
        }

        impl $name {
            /// Every row, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The row's name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }

            /// The row's meaning, in a sentence.
            #[must_use]
            pub const fn help(self) -> &'static str {
                match self {
                    $(Self::$variant => $help,)+
                }
            }

            /// The row of a name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|row| row.name() == name)
            }
        }
    };
}

rows! {
    /// Why a packet, or one of its copies, went nowhere.
    pub enum DropReason {
        UnknownIngress "unknown_ingress" "The port it came in by does not exist.";
        IngressDown "ingress_down" "The port it came in by is set down (`PORT_DOWN`).";
        NoRecv "no_recv" "The port it came in by takes no packets (`NO_RECV`).";
        NoRecvStp "no_recv_stp" "The port it came in by takes no spanning tree (`NO_RECV_STP`).";
        Malformed "malformed" "It is shorter than an Ethernet header.";
        Fragment "fragment" "It is an IP fragment and fragments are set to be dropped.";
        FragmentMalformed "fragment_malformed"
            "It is a fragment that can be part of no packet, or not with the others.";
        FragmentOverlap "fragment_overlap" "Fragments of its packet overlap (RFC 5722).";
        FragmentDuplicate "fragment_duplicate" "It is a fragment that had come before.";
        FragmentTimeout "fragment_timeout" "Fragments of its packet did not come in time.";
        FragmentMemory "fragment_memory" "There was no room for all incomplete packets.";
        NoMatch "no_match" "No entry of a table matched, and the table has no table-miss entry.";
        NoOutput "no_output" "Its entries and its action set sent it nowhere.";
        Meter "meter" "A meter's drop band took it.";
        InvalidTtl "invalid_ttl" "Its TTL was used up.";
        ToIngress "to_ingress" "It would have left by the port it came in by.";
        NoSuchPort "no_such_port" "It would have left by a port that does not exist.";
        EgressDown "egress_down" "It would have left by a port that is set down (`PORT_DOWN`).";
        LinkDown "link_down" "It would have left by a port without a link.";
        NoFwd "no_fwd" "It would have left by a port that sends nothing (`NO_FWD`).";
        NoPortLeft "no_port_left" "It was to be flooded and no other port can send.";
        NoPacketIn "no_packet_in" "It missed, on a port without packet-ins (`NO_PACKET_IN`).";
        NoLiveBucket "no_live_bucket"
            "No bucket of its group is live, or they have weight 0; or no member of its bundle is.";
        NoBucket "no_bucket" "Its group has no bucket.";
        TooManyCopies "too_many_copies" "Its groups asked for more copies than are allowed.";
        ChainTooLong "chain_too_long" "Its groups lead from one to the next too many times.";
        TooManyResubmits "too_many_resubmits"
            "Its entries resubmitted it 4096 times, gotos included, or 64 deep; \
             nothing of it is sent.";
        TooManyActions "too_many_actions"
            "Its entries asked for more than 65536 actions, each port of a flood being one; \
             nothing of it is sent.";
        StackTooDeep "stack_too_deep"
            "Its entries pushed more than 4096 values that were not popped; nothing of it is sent.";
        ContinuationTooLong "continuation_too_long"
            "It was to wait for a controller with more left to do than a packet-in has room for.";
        Reserved "reserved" "`NORMAL` does not forward link-local addresses (01:80:c2:00:00:0x).";
        NotInVlan "not_in_vlan" "`NORMAL` does not carry its VLAN on the port.";
        Protected "protected" "`NORMAL` does not forward between two protected ports.";
        MirrorOutput "mirror_output" "The port is the output of a mirror, and takes nothing else.";
        ReentrantTable "reentrant_table" "An output to `TABLE` stood outside of a packet-out.";
    }
}

rows! {
    /// A counter of a datapath as a whole.
    pub enum Counter {
        Received "received" "Packets taken from ports, dropped ones included.";
        FragmentsHeld "fragments_held" "Fragments kept until their packet is whole.";
        Reassembled "reassembled" "Packets put together from fragments.";
        PacketOuts "packet_outs" "Packet-out messages that were carried out.";
        Outputs "outputs" "Packets handed to ports.";
        PacketIns "packet_ins" "Packets handed up for the controller.";
        Drops "drops" "Packets and copies dropped, for whatever reason.";
        ActionsWithoutEffect "actions_without_effect"
            "Actions that did not fit the packet, such as a pop without a tag or a \
             set-field of IP where \
             the IP header is malformed, and were skipped.";
        FlowsAdded "flows_added" "Flow entries added.";
        FlowsRemoved "flows_removed" "Flow entries removed, for whatever reason.";
        FlowsExpired "flows_expired" "Flow entries removed by a timeout.";
        FlowModErrors "flow_mod_errors" "Flow-mods refused.";
        LearnsRefused "learns_refused"
            "Entries that `learn` actions asked for and did not get: refused as those of flow-mods \
             are, or too many at a time.";
    }
}

/// The values of all rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatapathCounters {
    counts: [u64; Counter::ALL.len()],
    drops: [u64; DropReason::ALL.len()],
}

impl Default for DatapathCounters {
    fn default() -> Self {
        Self { counts: [0; Counter::ALL.len()], drops: [0; DropReason::ALL.len()] }
    }
}

impl DatapathCounters {
    /// Adds to a counter.
    pub fn add(&mut self, counter: Counter, amount: u64) {
        let count = &mut self.counts[counter as usize];
        *count = count.wrapping_add(amount);
    }

    /// Counts a drop under its reason and in the sum.
    pub fn add_drop(&mut self, reason: DropReason) {
        self.add_drops(reason, 1);
    }

    /// Counts drops under their reason and in the sum.
    pub fn add_drops(&mut self, reason: DropReason, amount: u64) {
        let count = &mut self.drops[reason as usize];
        *count = count.wrapping_add(amount);
        self.add(Counter::Drops, amount);
    }

    /// A counter's value.
    #[must_use]
    pub fn get(&self, counter: Counter) -> u64 {
        self.counts[counter as usize]
    }

    /// Number of packets that were dropped for this reason.
    #[must_use]
    pub fn drops(&self, reason: DropReason) -> u64 {
        self.drops[reason as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::{Counter, DatapathCounters, DropReason};
    use std::collections::HashSet;

    #[test]
    fn names_are_unique_and_lead_back() {
        let mut seen = HashSet::new();
        for &row in DropReason::ALL {
            assert!(seen.insert(row.name()) && !row.help().is_empty());
            assert_eq!(DropReason::from_name(row.name()), Some(row));
            assert_eq!(DropReason::ALL[row as usize], row);
        }
        for &row in Counter::ALL {
            assert!(seen.insert(row.name()) && !row.help().is_empty());
            assert_eq!(Counter::from_name(row.name()), Some(row));
            assert_eq!(Counter::ALL[row as usize], row);
        }
    }

    #[test]
    fn a_drop_counts_under_its_reason_and_in_the_sum() {
        let mut counters = DatapathCounters::default();
        counters.add_drop(DropReason::NoMatch);
        counters.add_drop(DropReason::Meter);
        assert_eq!(counters.drops(DropReason::NoMatch), 1);
        assert_eq!(counters.get(Counter::Drops), 2);
    }
}
