//! Configuration of a datapath: sizes, and the treatment of misses, fragments and dead TTLs.
//!
//! Sizes ([`DatapathConfig`]) are fixed for the datapath's life, because they are announced to
//! controllers; treatments ([`Settings`]) can be changed while it runs. Nothing here is read from a
//! file: that is the switch's business.

use openflow::Error;
use openflow::message::SwitchConfig;
use serde::{Deserialize, Serialize};

/// Treatment of a packet that no entry of a table matches, the table-miss entry included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Miss {
    /// Drop it: the rule of 1.3 (clause 5.4).
    #[default]
    Drop,
    /// Send it to the controller with reason `NO_MATCH`: the rule of 1.0 (its clause 3.4).
    Controller,
}

/// Treatment of IP fragments (`ofp_config_flags`, clause 7.3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fragments {
    /// They go through the tables like any packet; later ones have no transport fields.
    #[default]
    Normal,
    /// They are dropped as they come in.
    Drop,
    /// They are put together, and the whole packet goes through the tables.
    Reassemble,
}

/// Settings that may change while the datapath runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Treatment of misses.
    pub miss: Miss,
    /// Treatment of fragments.
    pub fragments: Fragments,
    /// Whether a packet whose TTL is used up is sent to the controller rather than dropped.
    pub invalid_ttl_to_controller: bool,
    /// `miss_send_len`: bytes of a buffered packet in a packet-in that no action asked for. As no
    /// packet is buffered, it is kept and reported but shortens nothing (clause 7.4.1).
    pub miss_send_len: u16,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            miss: Miss::Drop,
            fragments: Fragments::Normal,
            invalid_ttl_to_controller: false,
            miss_send_len: 128,
        }
    }
}

/// Sizes, and the treatments to begin with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DatapathConfig {
    /// Flow tables, 1 to 255.
    pub n_tables: u8,
    /// Most entries of each table.
    pub max_entries: u32,
    /// Most groups, of all types together.
    pub max_groups: u32,
    /// Most buckets of a group.
    pub max_buckets: u32,
    /// Most meters.
    pub max_meters: u32,
    /// Most bands of a meter.
    pub max_bands: u8,
    /// Addresses that `NORMAL` remembers at once.
    pub max_macs: u32,
    /// Seconds until `NORMAL` forgets an address that sent nothing.
    pub mac_age_s: u16,
    /// The treatments to begin with.
    pub settings: Settings,
}

impl Default for DatapathConfig {
    fn default() -> Self {
        Self {
            n_tables: 255,
            max_entries: 1_000_000,
            max_groups: 65_536,
            max_buckets: 1_024,
            max_meters: 65_536,
            max_bands: 16,
            max_macs: 8_192,
            mac_age_s: 300,
            settings: Settings::default(),
        }
    }
}

impl Settings {
    /// The settings as a get-config reply carries them.
    #[must_use]
    pub fn switch_config(&self) -> SwitchConfig {
        let flags = match self.fragments {
            Fragments::Normal => 0,
            Fragments::Drop => 1,
            Fragments::Reassemble => 2,
        };
        SwitchConfig { flags, miss_send_len: self.miss_send_len }
    }

    /// Takes the settings of a set-config message.
    ///
    /// # Errors
    /// `OFPSCFC_BAD_FLAGS` for anything but normal (0), drop (1) and reassemble (2).
    pub fn set_switch_config(&mut self, asked: SwitchConfig) -> Result<(), Error> {
        self.fragments = match asked.flags {
            0 => Fragments::Normal,
            1 => Fragments::Drop,
            2 => Fragments::Reassemble,
            _ => return Err(Error::SwitchConfigBadFlags),
        };
        self.miss_send_len = asked.miss_send_len;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Fragments, Settings};
    use openflow::Error;
    use openflow::message::SwitchConfig;

    #[test]
    fn unknown_flags_are_refused_and_change_nothing() {
        let mut settings = Settings::default();
        for (flags, fragments) in
            [(1, Fragments::Drop), (2, Fragments::Reassemble), (0, Fragments::Normal)]
        {
            settings.set_switch_config(SwitchConfig { flags, miss_send_len: 9 }).unwrap();
            assert_eq!(settings.fragments, fragments);
            let asked = SwitchConfig { flags: 3, miss_send_len: 7 };
            assert_eq!(settings.set_switch_config(asked), Err(Error::SwitchConfigBadFlags));
            assert_eq!(settings.switch_config(), SwitchConfig { flags, miss_send_len: 9 });
        }
    }
}
