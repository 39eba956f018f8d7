//! The settings that the console's words make: per port a single packet, a range, a sequence, and
//! the way in which they are sent.
//!
//! All of it is plain data without a port, so that a script can be tried on a copy before its
//! first line takes effect. The streams of the ports are made from it by [`crate::streams`].

pub(crate) mod packet;
pub(crate) mod random;
pub(crate) mod range;
mod word_enum;

use std::path::PathBuf;

use generator::profile::Rate;

use self::word_enum::word_enum;

pub(crate) use packet::{EtherKind, IpProtocol, PacketSettings};
pub(crate) use random::{RandomBits, RandomMasks};
pub(crate) use range::{Bound, RANGE_FIELDS, RangeField, RangeKind, RangeSettings, RangeSpan};

/// Packets that a sequence holds, as in Pktgen.
pub(crate) const SEQUENCE_MAX: usize = 16;

word_enum! {
    /// The screen that is shown, in the order of `page next`.
    PageName {
        /// Rates and settings of the ports.
        Main "main",
        /// The settings of the range words.
        Range "range",
        /// The packets of a port's sequence.
        Sequence "seq",
        /// Delay and jitter of each port.
        Latency "latency",
        /// Counters of each port.
        Stats "stats",
        /// The thread of each queue.
        Cpu "cpu",
        /// Each stream that is loaded.
        Streams "streams",
        /// Each port's device and use.
        Config "config",
        /// The capture files that ports send.
        Pcap "pcap",
        /// The masks of random bits.
        Random "rnd",
        /// Lines that were shown.
        Log "log",
        /// The counters of the devices.
        Xstats "xstats",
    }
}

impl PageName {
    /// The page after this one.
    pub(crate) fn next(self) -> Self {
        Self::ALL[(self as usize + 1) % Self::ALL.len()]
    }
}

/// The settings that a port sends by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SendMode {
    /// One packet.
    Single,
    /// Packets whose fields run through ranges.
    Range,
    /// The packets of the sequence in turn.
    Sequence,
    /// The frames of a capture file.
    Capture,
}

/// All that is set for one port.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PortSettings {
    /// The rate of all that the port sends.
    pub(crate) rate: Rate,
    /// Packets to send; 0 is for ever.
    pub(crate) count: u64,
    /// The packet of single mode; its tags and payload hold in all modes.
    pub(crate) single: PacketSettings,
    /// The fields of range mode.
    pub(crate) range: RangeSettings,
    /// Whether range mode is on.
    pub(crate) is_range_on: bool,
    /// The packets of sequence mode.
    pub(crate) sequence: Vec<PacketSettings>,
    /// The number of them that are sent in turn; 0 is off.
    pub(crate) sequence_count: usize,
    /// The capture file of pcap mode.
    pub(crate) pcap_file: Option<PathBuf>,
    /// Whether pcap mode is on.
    pub(crate) is_pcap_on: bool,
    /// Bits that are random or fixed in each packet.
    pub(crate) random: RandomMasks,
    /// Whether they are.
    pub(crate) is_random_on: bool,
    /// Packets that are handed to the port at once, at most; `None` is what `--burst` says.
    pub(crate) burst: Option<u64>,
    /// Packets that `prime` sends.
    pub(crate) prime: u64,
    /// Whether frames carry a sequence number and a time stamp, where they have room.
    pub(crate) is_latency_on: bool,
    /// Frames that arrive this number of microseconds after they were due count as late.
    pub(crate) late_after_us: Option<u64>,
    /// Whether all checksums of the frames that arrive are checked.
    pub(crate) verifies: bool,
    /// Ethernet address of the port.
    pub(crate) mac: u64,
}

impl PortSettings {
    /// Pktgen's settings of port `port`, whose frames go to the Ethernet address `peer`.
    pub(crate) fn new(port: usize, mac: u64, peer: u64) -> Self {
        let single = PacketSettings::new(port, mac, peer);
        Self {
            rate: Rate::PercentOfLine(100.0),
            count: 0,
            range: RangeSettings::new(port, mac, peer),
            is_range_on: false,
            sequence: vec![single.clone(); SEQUENCE_MAX],
            sequence_count: 0,
            pcap_file: None,
            is_pcap_on: false,
            random: RandomMasks::new(),
            is_random_on: false,
            burst: None,
            prime: 1,
            is_latency_on: true,
            late_after_us: None,
            verifies: false,
            single,
            mac,
        }
    }

    /// The settings that the port sends by.
    pub(crate) fn mode(&self) -> SendMode {
        match (self.is_pcap_on, self.is_range_on, self.sequence_count) {
            (true, _, _) => SendMode::Capture,
            (false, true, _) => SendMode::Range,
            (false, false, 0) => SendMode::Single,
            (false, false, _) => SendMode::Sequence,
        }
    }
}

/// All that the words have set.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ConsoleState {
    /// The settings of each port.
    pub(crate) ports: Vec<PortSettings>,
    /// The screen that is shown.
    pub(crate) page: PageName,
    /// The first port of the columns.
    pub(crate) first_port: usize,
    /// The port whose sequence and streams are shown.
    pub(crate) port: usize,
    /// Whether the screen is drawn anew every second.
    pub(crate) is_screen_on: bool,
    macs: Vec<u64>,
}

/// Ports that the main page shows beside each other on 80 columns.
pub(crate) const PORTS_PER_PAGE: usize = 2;

impl ConsoleState {
    /// Pktgen's settings of ports with these Ethernet addresses. Ports go in pairs: frames of port
    /// 0 are sent to port 1's address and the other way round.
    pub(crate) fn new(macs: &[u64]) -> Self {
        let mut state = Self {
            ports: Vec::new(),
            page: PageName::Main,
            first_port: 0,
            port: 0,
            is_screen_on: true,
            macs: macs.to_vec(),
        };
        state.reset(&(0..macs.len()).collect::<Vec<_>>());
        state
    }

    /// Pktgen's settings again for `ports`.
    pub(crate) fn reset(&mut self, ports: &[usize]) {
        for (port, mac) in self.macs.iter().enumerate() {
            let peer = self.macs.get(port ^ 1).copied().unwrap_or(*mac);
            let settings = PortSettings::new(port, *mac, peer);
            match self.ports.get_mut(port) {
                Some(old) if ports.contains(&port) => *old = settings,
                Some(_) => {}
                None => self.ports.push(settings),
            }
        }
    }

    /// The settings of `ports`, to be changed.
    pub(crate) fn each<'a>(
        &'a mut self,
        ports: &'a [usize],
    ) -> impl Iterator<Item = &'a mut PortSettings> {
        let chosen = self.ports.iter_mut().enumerate();
        chosen.filter(|(port, _)| ports.contains(port)).map(|(_, settings)| settings)
    }
}
