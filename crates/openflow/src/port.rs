//! Ports and queues as messages speak of them (clauses 7.2.1, 7.2.2, 7.3.4.2, 7.3.5.6).
//!
//! Bits are those of 1.3; `wire` translates 1.0's states and features.

use crate::id::{MacAddr, PortNo, QueueId};
use crate::numbered::numbered;

bitflags::bitflags! {
    /// Administrative settings of a port (`OFPPC_*`). The bits of 1.0 and 1.3 lie alike.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct PortConfig: u32 {
        /// The port is down.
        const PORT_DOWN = 1;
        /// 1.0: no spanning tree.
        const NO_STP = 1 << 1;
        /// Drop what comes in.
        const NO_RECV = 1 << 2;
        /// 1.0: drop spanning tree frames that come in.
        const NO_RECV_STP = 1 << 3;
        /// 1.0: leave the port out when flooding.
        const NO_FLOOD = 1 << 4;
        /// Drop what would go out.
        const NO_FWD = 1 << 5;
        /// Send no packet-in for packets of this port.
        const NO_PACKET_IN = 1 << 6;
        const _ = !0;
    }
}

bitflags::bitflags! {
    /// State of a port (`OFPPS_*` of 1.3).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct PortState: u32 {
        /// There is no link.
        const LINK_DOWN = 1;
        /// Blocked by a protocol outside of OpenFlow.
        const BLOCKED = 1 << 1;
        /// Live for fast failover.
        const LIVE = 1 << 2;
        const _ = !0;
    }
}

bitflags::bitflags! {
    /// Abilities of a port (`OFPPF_*` of 1.3).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct PortFeatures: u32 {
        /// 10 Mb/s half duplex.
        const HD_10MB = 1;
        /// 10 Mb/s full duplex.
        const FD_10MB = 1 << 1;
        /// 100 Mb/s half duplex.
        const HD_100MB = 1 << 2;
        /// 100 Mb/s full duplex.
        const FD_100MB = 1 << 3;
        /// 1 Gb/s half duplex.
        const HD_1GB = 1 << 4;
        /// 1 Gb/s full duplex.
        const FD_1GB = 1 << 5;
        /// 10 Gb/s full duplex.
        const FD_10GB = 1 << 6;
        /// 40 Gb/s full duplex.
        const FD_40GB = 1 << 7;
        /// 100 Gb/s full duplex.
        const FD_100GB = 1 << 8;
        /// 1 Tb/s full duplex.
        const FD_1TB = 1 << 9;
        /// Another rate.
        const OTHER = 1 << 10;
        /// Copper.
        const COPPER = 1 << 11;
        /// Fibre.
        const FIBER = 1 << 12;
        /// Auto-negotiation.
        const AUTONEG = 1 << 13;
        /// Pause.
        const PAUSE = 1 << 14;
        /// Asymmetric pause.
        const PAUSE_ASYM = 1 << 15;
        const _ = !0;
    }
}

/// A port's description. Speeds are in kb/s and zero in 1.0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortDesc {
    /// Its number.
    pub port_no: PortNo,
    /// Its Ethernet address.
    pub hw_addr: MacAddr,
    /// Its name: at most 15 bytes go on the wire.
    pub name: String,
    /// Its settings.
    pub config: PortConfig,
    /// Its state.
    pub state: PortState,
    /// Abilities in use.
    pub curr: PortFeatures,
    /// Abilities advertised.
    pub advertised: PortFeatures,
    /// Abilities it has.
    pub supported: PortFeatures,
    /// Abilities that the peer advertises.
    pub peer: PortFeatures,
    /// Speed in use, kb/s.
    pub curr_speed_kbps: u32,
    /// Highest speed, kb/s.
    pub max_speed_kbps: u32,
}

/// A change of a port's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortMod {
    /// The port.
    pub port_no: PortNo,
    /// Its Ethernet address, as a check; the address cannot be changed.
    pub hw_addr: MacAddr,
    /// The settings' bits.
    pub config: PortConfig,
    /// Bits to change.
    pub mask: PortConfig,
    /// Abilities to advertise; empty for no change.
    pub advertise: PortFeatures,
}

numbered! {
    /// Why a port-status message is sent.
    pub enum PortReason: u8 {
        /// The port is new.
        Add = 0 => "ADD",
        /// The port is gone.
        Delete = 1 => "DEL",
        /// Its settings or state have changed.
        Modify = 2 => "MOD",
    }
}

/// A port has come, gone or changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortStatus {
    /// The event.
    pub reason: PortReason,
    /// The port as it is now (as it was, when it is gone).
    pub desc: PortDesc,
}

/// One port's counters. All ones where a counter is not kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortStats {
    /// The port.
    pub port_no: PortNo,
    /// Packets received.
    pub rx_packets: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Bytes received, without FCS.
    pub rx_bytes: u64,
    /// Bytes sent, without FCS.
    pub tx_bytes: u64,
    /// Packets dropped on receive.
    pub rx_dropped: u64,
    /// Packets dropped on send.
    pub tx_dropped: u64,
    /// Receive errors of any kind.
    pub rx_errors: u64,
    /// Send errors of any kind.
    pub tx_errors: u64,
    /// Frame alignment errors.
    pub rx_frame_err: u64,
    /// Overruns.
    pub rx_over_err: u64,
    /// CRC errors.
    pub rx_crc_err: u64,
    /// Collisions.
    pub collisions: u64,
    /// Whole seconds that the port has lived; 1.0 does not carry it.
    pub duration_s: u32,
    /// Nanoseconds beyond the whole seconds.
    pub duration_ns: u32,
}

/// A property of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueueProperty {
    /// Guaranteed rate in tenths of a percent of the port's; above 1000 for none.
    MinRate(u16),
    /// Highest rate in tenths of a percent of the port's; above 1000 for none.
    MaxRate(u16),
    /// Somebody's own.
    Experimenter {
        /// Its owner.
        experimenter: u32,
        /// The body.
        data: Vec<u8>,
    },
    /// A property that Weir does not know.
    Unknown {
        /// Its type number.
        property: u16,
        /// The bytes after its header.
        data: Vec<u8>,
    },
}

/// A queue's configuration. In 1.0 the port stands in the reply's header only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketQueue {
    /// The queue.
    pub queue_id: QueueId,
    /// Of which port.
    pub port: PortNo,
    /// Its properties.
    pub properties: Vec<QueueProperty>,
}

/// One queue's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueStats {
    /// Of which port.
    pub port_no: PortNo,
    /// The queue.
    pub queue_id: QueueId,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Packets dropped.
    pub tx_errors: u64,
    /// Whole seconds that the queue has lived; 1.0 does not carry it.
    pub duration_s: u32,
    /// Nanoseconds beyond the whole seconds.
    pub duration_ns: u32,
}
