//! Meters: token buckets in exact integers, and the choice of the band that acts (clause 5.7).
//!
//! Each band has a bucket of tokens that fills at the band's rate. A packet that finds too few
//! tokens in a bucket exceeds that band's rate; of the bands that are exceeded, the one with the
//! highest rate acts, alone. Bytes are those of the frame without FCS.
//!
//! One token is a millionth of a bit, or a thousand-millionth of a packet: a rate of r kb/s or
//! r packets/s is then exactly r tokens per nanosecond, and nothing is ever rounded.
//!
//! With the flag `BURST` a bucket holds `burst_size` and is full at first. Without, it holds what
//! the rate gives in a second, so that a sender that stalls now and then loses nothing, but has
//! only a tenth of that at first (or one packet, if that is more): over the first ten seconds no
//! more than one percent above the rate passes. Whatever the burst size, who sends more than the
//! rate gets the rate:
//! - A packet that costs more than the bucket can hold passes a full bucket and leaves a debt.
//! - Once it has refused a packet, the bucket holds that much more, until it would run over all
//!   the same. Otherwise a bucket of one packet would be full before each packet that passes, as
//!   packets come in another beat than the rate's, and a flow of 1.1 times the rate would get 0.55
//!   times the rate. After a pause, as long as it takes to run over, a burst is as long as
//!   configured again.

use std::collections::BTreeMap;

use openflow::meter::{
    Band, BandCounter, BandKind, MeterConfig, MeterFlags, MeterMod, MeterModCommand, MeterStats,
};
use openflow::{Error, MeterId};

use crate::config::DatapathConfig;
use crate::time::Nanos;

/// Tokens in a bit and in a packet.
const PER_BIT: i128 = 1_000_000;
const PER_PACKET: i128 = 1_000_000_000;

/// Without the flag `BURST`, a bucket holds what its rate gives in this time.
const DEFAULT_BURST_NS: i128 = 1_000_000_000;

/// Without the flag `BURST`, a bucket has at first what its rate gives in this time.
const FIRST_BURST_NS: i128 = 100_000_000;

/// Bits of the longest usual packet.
const PACKET_BITS: i128 = 1_518 * 8;

/// A band's bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TokenBucket {
    rate_per_ns: i128,
    depth: i128,
    /// Tokens beyond that, since it refused a packet.
    beyond: i128,
    tokens: i128,
    at: Nanos,
}

impl TokenBucket {
    fn new(band: &Band, flags: MeterFlags, now: Nanos) -> Self {
        let rate_per_ns = i128::from(band.rate);
        let (unit, packet) = if flags.contains(MeterFlags::PKTPS) {
            (PER_PACKET, PER_PACKET)
        } else {
            (1_000 * PER_BIT, PACKET_BITS * PER_BIT)
        };
        let (depth, tokens) = if flags.contains(MeterFlags::BURST) {
            let burst = i128::from(band.burst_size) * unit;
            (burst, burst)
        } else {
            let depth = rate_per_ns * DEFAULT_BURST_NS;
            (depth, depth.min(packet.max(rate_per_ns * FIRST_BURST_NS)))
        };
        Self { rate_per_ns, depth, beyond: 0, tokens, at: now }
    }

    /// Fills the bucket up to `now` and takes `cost` out; false when there is too little.
    fn take(&mut self, cost: i128, now: Nanos) -> bool {
        let gained = self.rate_per_ns * i128::from(now.since(self.at));
        self.tokens += gained;
        if self.tokens >= self.depth + self.beyond {
            self.tokens = self.depth;
            self.beyond = 0;
        }
        self.at = self.at.max(now);
        let enough = self.tokens >= cost.min(self.depth);
        if enough {
            self.tokens -= cost;
        } else {
            self.beyond = self.beyond.max(cost);
        }
        enough
    }
}

/// One meter.
#[derive(Clone, Debug)]
pub(crate) struct Meter {
    flags: MeterFlags,
    bands: Vec<Band>,
    buckets: Vec<TokenBucket>,
    since: Nanos,
    packets: u64,
    bytes: u64,
    band_counters: Vec<BandCounter>,
}

/// A meter's decision about one packet.
#[derive(Clone, Debug)]
pub(crate) struct Metered {
    /// Index of the band that acts, and what it does.
    pub(crate) band: Option<(usize, BandKind)>,
    /// The buckets after the packet; to be kept when the packet is real.
    pub(crate) buckets: Vec<TokenBucket>,
}

impl Meter {
    /// The meter that an add asks for.
    pub(crate) fn new(asked: &MeterMod, now: Nanos) -> Self {
        let mut meter = Self {
            flags: asked.flags,
            bands: Vec::new(),
            buckets: Vec::new(),
            since: now,
            packets: 0,
            bytes: 0,
            band_counters: Vec::new(),
        };
        meter.configure(asked, now);
        meter
    }

    /// The buckets as they are.
    pub(crate) fn buckets(&self) -> &[TokenBucket] {
        &self.buckets
    }

    /// Meters a packet of this number of bytes against `buckets`, changing nothing here.
    pub(crate) fn meter(&self, buckets: &[TokenBucket], bytes: u64, now: Nanos) -> Metered {
        let mut buckets = buckets.to_vec();
        let band = acting(self.flags, &self.bands, &mut buckets, bytes, now);
        Metered { band, buckets }
    }

    /// Meters and counts a packet at once: index of the band that acts, and what it does. The same
    /// as [`Meter::meter`] and then [`Meter::count`], without their copies.
    pub(crate) fn pass(&mut self, bytes: u64, now: Nanos) -> Option<(usize, BandKind)> {
        let acting = acting(self.flags, &self.bands, &mut self.buckets, bytes, now);
        self.packets += 1;
        self.bytes += bytes;
        if let Some((index, _)) = acting
            && let Some(counter) = self.band_counters.get_mut(index)
        {
            counter.packet_count += 1;
            counter.byte_count += bytes;
        }
        acting
    }

    /// Counts a metered packet and keeps the buckets.
    pub(crate) fn count(&mut self, bytes: u64, metered: Metered) {
        self.packets += 1;
        self.bytes += bytes;
        if let Some((index, _)) = metered.band
            && let Some(counter) = self.band_counters.get_mut(index)
        {
            counter.packet_count += 1;
            counter.byte_count += bytes;
        }
        self.buckets = metered.buckets;
    }

    /// Takes flags and bands; buckets are full and band counters zero, the meter's own counters
    /// stay.
    pub(crate) fn configure(&mut self, asked: &MeterMod, now: Nanos) {
        self.flags = asked.flags;
        self.bands.clone_from(&asked.bands);
        self.buckets =
            asked.bands.iter().map(|band| TokenBucket::new(band, asked.flags, now)).collect();
        self.band_counters = vec![BandCounter::default(); asked.bands.len()];
    }

    /// Its beginning.
    pub(crate) fn since(&self) -> Nanos {
        self.since
    }

    /// Its own counts, and those of its bands.
    pub(crate) fn counts(&self) -> (BandCounter, &[BandCounter]) {
        let own = BandCounter { packet_count: self.packets, byte_count: self.bytes };
        (own, &self.band_counters)
    }

    /// Sets its counts, and those of its bands, in their order.
    pub(crate) fn set_counts(&mut self, own: BandCounter, bands: &[BandCounter]) {
        (self.packets, self.bytes) = (own.packet_count, own.byte_count);
        for (counter, counts) in self.band_counters.iter_mut().zip(bands) {
            *counter = *counts;
        }
    }

    /// Counters of the meter of this number, which `flow_count` entries use.
    pub(crate) fn stats(&self, meter_id: MeterId, now: Nanos, flow_count: u32) -> MeterStats {
        let (duration_s, duration_ns) = now.age(self.since);
        MeterStats {
            meter_id,
            flow_count,
            packet_in_count: self.packets,
            byte_in_count: self.bytes,
            duration_s,
            duration_ns,
            bands: self.band_counters.clone(),
        }
    }

    /// Configuration of the meter of this number.
    pub(crate) fn config(&self, meter_id: MeterId) -> MeterConfig {
        MeterConfig { flags: self.flags, meter_id, bands: self.bands.clone() }
    }
}

/// Takes a packet out of the buckets and says which band acts.
fn acting(
    flags: MeterFlags,
    bands: &[Band],
    buckets: &mut [TokenBucket],
    bytes: u64,
    now: Nanos,
) -> Option<(usize, BandKind)> {
    let cost = if flags.contains(MeterFlags::PKTPS) {
        PER_PACKET
    } else {
        i128::from(bytes) * 8 * PER_BIT
    };
    let mut acting: Option<(usize, &Band)> = None;
    for (index, (bucket, band)) in buckets.iter_mut().zip(bands).enumerate() {
        let exceeded = !bucket.take(cost, now);
        if exceeded && acting.is_none_or(|(_, highest)| band.rate > highest.rate) {
            acting = Some((index, band));
        }
    }
    acting.map(|(index, band)| (index, band.kind))
}

/// The DSCP that a remark band writes: its drop precedence raised by `prec_level` steps, at most to
/// the highest. Only the assured forwarding code points (RFC 2597) have a drop precedence; all
/// others stay (clause 7.3.4.4).
pub(crate) fn remarked(dscp: u8, prec_level: u8) -> u8 {
    let (class, precedence) = (dscp >> 3, dscp >> 1 & 3);
    let is_assured = (1..=4).contains(&class) && precedence != 0 && dscp & 1 == 0;
    if is_assured { class << 3 | precedence.saturating_add(prec_level).min(3) << 1 } else { dscp }
}

/// All meters, by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meters {
    meters: BTreeMap<MeterId, Meter>,
}

impl Meters {
    pub(crate) fn get(&self, id: MeterId) -> Option<&Meter> {
        self.meters.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: MeterId) -> Option<&mut Meter> {
        self.meters.get_mut(&id)
    }

    /// Carries out a meter-mod; the meters that are gone.
    ///
    /// # Errors
    /// Those of clause 6.6; nothing is changed then.
    pub(crate) fn apply(
        &mut self,
        asked: &MeterMod,
        config: &DatapathConfig,
        now: Nanos,
    ) -> Result<Vec<MeterId>, Error> {
        match asked.command {
            MeterModCommand::Add => {
                check(asked, config)?;
                if self.meters.contains_key(&asked.meter_id) {
                    return Err(Error::MeterModMeterExists);
                }
                if self.meters.len() >= config.max_meters as usize {
                    return Err(Error::MeterModOutOfMeters);
                }
                self.meters.insert(asked.meter_id, Meter::new(asked, now));
                Ok(Vec::new())
            }
            MeterModCommand::Modify => {
                check(asked, config)?;
                let meter = self.meters.get_mut(&asked.meter_id);
                meter.ok_or(Error::MeterModUnknownMeter)?.configure(asked, now);
                Ok(Vec::new())
            }
            MeterModCommand::Delete if asked.meter_id == MeterId::ALL => {
                Ok(std::mem::take(&mut self.meters).into_keys().collect())
            }
            MeterModCommand::Delete => {
                let gone = self.meters.remove(&asked.meter_id);
                Ok(gone.map(|_| asked.meter_id).into_iter().collect())
            }
            MeterModCommand::Unknown(_) => Err(Error::MeterModBadCommand),
        }
    }

    fn wanted(&self, id: MeterId) -> Result<Vec<(MeterId, &Meter)>, Error> {
        if id == MeterId::ALL {
            return Ok(self.meters.iter().map(|(id, meter)| (*id, meter)).collect());
        }
        Ok(vec![(id, self.get(id).ok_or(Error::MeterModUnknownMeter)?)])
    }

    /// Counters; `flow_count` says how many entries use a meter.
    pub(crate) fn stats(
        &self,
        id: MeterId,
        now: Nanos,
        flow_count: &dyn Fn(MeterId) -> u32,
    ) -> Result<Vec<MeterStats>, Error> {
        let stats = |(id, meter): (MeterId, &Meter)| meter.stats(id, now, flow_count(id));
        Ok(self.wanted(id)?.into_iter().map(stats).collect())
    }

    /// Configurations.
    pub(crate) fn configs(&self, id: MeterId) -> Result<Vec<MeterConfig>, Error> {
        let config = |(id, meter): (MeterId, &Meter)| meter.config(id);
        Ok(self.wanted(id)?.into_iter().map(config).collect())
    }
}

/// The checks of an add or modify that need no other meter.
pub(crate) fn check(asked: &MeterMod, config: &DatapathConfig) -> Result<(), Error> {
    // The virtual meters are not offered.
    if asked.meter_id == MeterId(0) || asked.meter_id > MeterId::MAX {
        return Err(Error::MeterModInvalidMeter);
    }
    let rates = asked.flags & (MeterFlags::KBPS | MeterFlags::PKTPS);
    let known = MeterFlags::KBPS | MeterFlags::PKTPS | MeterFlags::BURST | MeterFlags::STATS;
    if rates.bits().count_ones() != 1 || !known.contains(asked.flags) {
        return Err(Error::MeterModBadFlags);
    }
    if asked.bands.len() > usize::from(config.max_bands) {
        return Err(Error::MeterModOutOfBands);
    }
    for band in &asked.bands {
        match band.kind {
            BandKind::Drop | BandKind::DscpRemark { .. } => {}
            BandKind::Experimenter { .. } => return Err(Error::MeterModBadBand),
        }
        if band.rate == 0 {
            return Err(Error::MeterModBadRate);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Meters, remarked};
    use crate::config::DatapathConfig;
    use crate::time::Nanos;
    use openflow::meter::{Band, BandKind, MeterFlags, MeterMod, MeterModCommand};
    use openflow::{Error, MeterId};

    const ID: MeterId = MeterId(1);

    fn drop_band(rate: u32, burst_size: u32) -> Band {
        Band { kind: BandKind::Drop, rate, burst_size }
    }

    fn meter_mod(command: MeterModCommand, flags: MeterFlags, bands: &[Band]) -> MeterMod {
        MeterMod { command, flags, meter_id: ID, bands: bands.to_vec() }
    }

    fn meters(flags: MeterFlags, bands: &[Band]) -> Meters {
        let mut meters = Meters::default();
        let add = meter_mod(MeterModCommand::Add, flags, bands);
        meters.apply(&add, &DatapathConfig::default(), Nanos(0)).unwrap();
        meters
    }

    /// Meters one packet and says which band acted.
    fn send(meters: &mut Meters, bytes: u64, now: Nanos) -> Option<usize> {
        let meter = meters.get_mut(ID).unwrap();
        let metered = meter.meter(&meter.buckets, bytes, now);
        let band = metered.band.map(|(index, _)| index);
        meter.count(bytes, metered);
        band
    }

    /// Packets that pass when one of `bytes` comes every `gap_ns` for `seconds`.
    fn passed(meters: &mut Meters, bytes: u64, gap_ns: u64, seconds: u64) -> u64 {
        let ticks = (0..seconds * 1_000_000_000).step_by(usize::try_from(gap_ns).unwrap());
        ticks.filter(|ns| send(meters, bytes, Nanos(*ns)).is_none()).count() as u64
    }

    #[test]
    fn packets_per_second_are_exact_beside_the_burst() {
        let flags = MeterFlags::PKTPS | MeterFlags::BURST;
        let mut m = meters(flags, &[drop_band(1000, 10)]);
        // 10 s at 5,000/s: the bucket of 10, and 1,000 for each second that has begun to fill.
        let count = passed(&mut m, 64, 200_000, 10);
        assert!((10_009..=10_010).contains(&count), "{count}");
    }

    #[test]
    fn a_low_packet_rate_does_not_starve() {
        let mut m = meters(MeterFlags::PKTPS, &[drop_band(1, 0)]);
        // One packet each 100 ms for 20 s, at one packet per second.
        let count = passed(&mut m, 64, 100_000_000, 20);
        assert!((20..=21).contains(&count), "{count}");
    }

    #[test]
    fn without_a_burst_size_a_stall_is_free_and_the_start_is_small() {
        let mut m = meters(MeterFlags::PKTPS, &[drop_band(1000, 0)]);
        // Twice the rate, from a sender that stalls for up to 0.7 s.
        let mut count = 0;
        for second in 0..10 {
            for stall in [0, 700] {
                let at = Nanos(second * 1_000_000_000 + stall * 1_000_000);
                count += (0..1000).filter(|_| send(&mut m, 64, at).is_none()).count();
            }
        }
        // The last comes 0.3 s before the end.
        assert!((9_750..=9_850).contains(&count), "{count}");
    }

    #[test]
    fn kilobits_are_exact_and_a_small_burst_slows_no_large_packet() {
        let flags = MeterFlags::KBPS | MeterFlags::BURST;
        for burst in [0, 1, 100] {
            let mut m = meters(flags, &[drop_band(1000, burst)]);
            // 1,250-byte packets are 10 kb: 100 of them each second.
            let count = passed(&mut m, 1250, 1_000_000, 10);
            let extra = u64::from(burst) / 10;
            assert!((1000..=1001 + extra).contains(&count), "burst {burst}: {count}");
        }
    }

    #[test]
    fn the_highest_rates_and_longest_times_do_not_overflow() {
        let mut m = meters(MeterFlags::KBPS | MeterFlags::BURST, &[drop_band(u32::MAX, u32::MAX)]);
        assert_eq!(send(&mut m, u64::from(u32::MAX), Nanos(u64::MAX)), None);
        assert_eq!(send(&mut m, 64, Nanos(0)), None);
        let mut m = meters(MeterFlags::PKTPS | MeterFlags::BURST, &[drop_band(u32::MAX, u32::MAX)]);
        assert_eq!(send(&mut m, 64, Nanos(u64::MAX)), None);
    }

    #[test]
    fn the_highest_exceeded_rate_acts_whatever_the_order() {
        let remark = BandKind::DscpRemark { prec_level: 1 };
        let low = Band { kind: remark, rate: 1, burst_size: 1 };
        let bands = [low, drop_band(10, 2)];
        let mut m = meters(MeterFlags::PKTPS | MeterFlags::BURST, &bands);
        let acted: Vec<_> = (0..4).map(|_| send(&mut m, 64, Nanos(0))).collect();
        assert_eq!(acted, [None, Some(0), Some(1), Some(1)]);
        let stats = m.stats(ID, Nanos(0), &|_| 3).unwrap().remove(0);
        assert_eq!((stats.packet_in_count, stats.byte_in_count, stats.flow_count), (4, 256, 3));
        let counts: Vec<_> = stats.bands.iter().map(|band| band.packet_count).collect();
        assert_eq!(counts, [1, 2]);
    }

    #[test]
    fn modify_keeps_the_meters_counters_and_clears_the_bands() {
        let flags = MeterFlags::PKTPS | MeterFlags::BURST;
        let mut m = meters(flags, &[drop_band(1, 1)]);
        send(&mut m, 64, Nanos(0));
        send(&mut m, 64, Nanos(0));
        let modify = meter_mod(MeterModCommand::Modify, flags, &[drop_band(5, 1)]);
        m.apply(&modify, &DatapathConfig::default(), Nanos(9)).unwrap();
        let stats = m.stats(ID, Nanos::from_s(1), &|_| 0).unwrap().remove(0);
        assert_eq!((stats.packet_in_count, stats.duration_s), (2, 1));
        assert_eq!(stats.bands[0].packet_count, 0);
        assert_eq!(m.configs(MeterId::ALL).unwrap()[0].bands[0].rate, 5);
    }

    #[test]
    fn remarking_raises_the_drop_precedence_of_assured_forwarding() {
        assert_eq!(remarked(10, 1), 12, "AF11 to AF12");
        assert_eq!(remarked(10, 2), 14, "AF11 to AF13");
        assert_eq!(remarked(14, 1), 14, "AF13 stays");
        assert_eq!(remarked(36, 200), 38, "AF42 to AF43");
        for other in [0, 8, 16, 40, 46, 48, 56, 11, 63] {
            assert_eq!(remarked(other, 1), other);
        }
    }

    #[test]
    fn what_is_wrong_is_refused_with_the_error_of_clause_6_6() {
        let mut m = meters(MeterFlags::KBPS, &[drop_band(1, 0)]);
        let config = DatapathConfig { max_meters: 1, max_bands: 1, ..DatapathConfig::default() };
        let band = drop_band(1, 0);
        let add = meter_mod(MeterModCommand::Add, MeterFlags::KBPS, &[band]);
        let mut refused = |change: &dyn Fn(&mut MeterMod)| {
            let mut asked = add.clone();
            change(&mut asked);
            m.apply(&asked, &config, Nanos(0)).unwrap_err()
        };
        assert_eq!(refused(&|_| {}), Error::MeterModMeterExists);
        assert_eq!(refused(&|a| a.meter_id = MeterId(2)), Error::MeterModOutOfMeters);
        for id in [MeterId(0), MeterId::SLOWPATH, MeterId::CONTROLLER, MeterId::ALL] {
            assert_eq!(refused(&|a| a.meter_id = id), Error::MeterModInvalidMeter);
        }
        let both = MeterFlags::KBPS | MeterFlags::PKTPS;
        for flags in [both, MeterFlags::STATS, MeterFlags::from_bits_retain(0x101)] {
            assert_eq!(refused(&|a| a.flags = flags), Error::MeterModBadFlags);
        }
        assert_eq!(refused(&|a| a.bands = vec![band; 2]), Error::MeterModOutOfBands);
        assert_eq!(refused(&|a| a.bands[0].rate = 0), Error::MeterModBadRate);
        let foreign = BandKind::Experimenter { experimenter: 1 };
        assert_eq!(refused(&|a| a.bands[0].kind = foreign), Error::MeterModBadBand);
        let unknown = MeterModCommand::Unknown(9);
        assert_eq!(refused(&|a| a.command = unknown), Error::MeterModBadCommand);
        assert_eq!(
            refused(&|a| {
                a.command = MeterModCommand::Modify;
                a.meter_id = MeterId(7);
            }),
            Error::MeterModUnknownMeter
        );
        let delete = MeterMod { command: MeterModCommand::Delete, ..add.clone() };
        let missing = MeterMod { meter_id: MeterId(7), ..delete.clone() };
        assert_eq!(m.apply(&missing, &config, Nanos(0)), Ok(Vec::new()));
        assert_eq!(m.apply(&delete, &config, Nanos(0)), Ok(vec![ID]));
        assert_eq!(m.stats(ID, Nanos(0), &|_| 0), Err(Error::MeterModUnknownMeter));
    }
}
