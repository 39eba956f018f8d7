//! Meters as messages speak of them (clauses 7.3.4.4, 7.3.5.10 to 7.3.5.12).

use crate::id::MeterId;
use crate::numbered::numbered;

numbered! {
    /// Command of a meter-mod.
    pub enum MeterModCommand: u16 {
        /// Add a meter.
        Add = 0 => "ADD",
        /// Replace a meter's flags and bands.
        Modify = 1 => "MOD",
        /// Delete a meter, or all of them.
        Delete = 2 => "DEL",
    }
}

bitflags::bitflags! {
    /// Flags of a meter (`OFPMF_*`).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct MeterFlags: u16 {
        /// Rates in kb/s.
        const KBPS = 1;
        /// Rates in packets per second.
        const PKTPS = 1 << 1;
        /// Burst sizes count.
        const BURST = 1 << 2;
        /// Collect statistics.
        const STATS = 1 << 3;
        const _ = !0;
    }
}

/// Treatment of packets above a band's rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BandKind {
    /// Drop them.
    Drop,
    /// Raise their drop precedence.
    DscpRemark {
        /// By how many steps.
        prec_level: u8,
    },
    /// Somebody's own. Weir runs none and refuses them.
    Experimenter {
        /// Its owner.
        experimenter: u32,
    },
}

/// A meter band.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Band {
    /// Its treatment of packets.
    pub kind: BandKind,
    /// Above which rate: kb/s, or packets per second.
    pub rate: u32,
    /// Burst: kilobits, or packets.
    pub burst_size: u32,
}

/// A command on a meter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeterMod {
    /// The command.
    pub command: MeterModCommand,
    /// The flags that the meter gets.
    pub flags: MeterFlags,
    /// The meter; [`MeterId::ALL`] for deletes only.
    pub meter_id: MeterId,
    /// The bands that it gets.
    pub bands: Vec<Band>,
}

/// One meter's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeterConfig {
    /// Its flags.
    pub flags: MeterFlags,
    /// The meter.
    pub meter_id: MeterId,
    /// Its bands.
    pub bands: Vec<Band>,
}

/// One meter's counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeterStats {
    /// The meter.
    pub meter_id: MeterId,
    /// Flow entries that use it.
    pub flow_count: u32,
    /// Packets that came in.
    pub packet_in_count: u64,
    /// Bytes that came in.
    pub byte_in_count: u64,
    /// Whole seconds that it has lived.
    pub duration_s: u32,
    /// Nanoseconds beyond the whole seconds.
    pub duration_ns: u32,
    /// Packets and bytes that each band acted on.
    pub bands: Vec<BandCounter>,
}

/// One band's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BandCounter {
    /// Packets.
    pub packet_count: u64,
    /// Bytes.
    pub byte_count: u64,
}

/// Features of a switch's meters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeterFeatures {
    /// Most meters.
    pub max_meter: u32,
    /// Bit n: band type n is supported (1 drop, 2 DSCP remark).
    pub band_types: u32,
    /// Flags that are supported.
    pub capabilities: u32,
    /// Most bands in a meter.
    pub max_bands: u8,
    /// Most colours.
    pub max_color: u8,
}
