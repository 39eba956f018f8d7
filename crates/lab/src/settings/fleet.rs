//! A fleet of emulated switches, in place of a switch and hosts: what a controller is loaded with.
//!
//! It says what connects and what it sends. The channel (`version`, `transport`), the frame
//! (`frame_size`), the rate (`rate_pps`) and the time (`duration_s`) are settings of every cell.

use std::path::PathBuf;

use emulator::{HOSTS_MAX, SWITCHES_MAX};
use serde::{Deserialize, Serialize};

use super::{SettingsError, refuse};

/// A fleet; a key that is not there has the default that it states.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FleetSettings {
    /// Number of switches. Default: 16.
    pub switches: Option<u32>,
    /// Hosts behind each, an even number. Default: 1,000.
    pub hosts: Option<u32>,
    /// Ports of each, an even number. Default: 4.
    pub ports: Option<u32>,
    /// Packet-ins carry the whole packet. Default: they name a buffer, as those of `cbench` do.
    pub is_whole: bool,
    /// Packet-ins that may wait for an answer at each switch. Default: its share of 32,768.
    pub window: Option<u32>,
    /// Seconds of load before those that are measured. Default: 0.5.
    pub warm_up_s: Option<f64>,
    /// Seconds that a controller may take to serve all switches. Default: 60.
    pub ready_limit_s: Option<u16>,
    /// Connections that may be in the making at the same time. Default: 512.
    pub at_once: Option<u32>,
    /// Threads of the emulator. Default: one for each core that it may use.
    pub threads: Option<u16>,
    /// The app of Weir's own that is run in place of `app`.
    pub own_app: Option<String>,
    /// A controller that is started serves REST, with Ryu's endpoints.
    pub has_rest: bool,
    /// `HOST:PORT` of the REST of a controller that runs already.
    pub rest: Option<String>,
    /// The process of a controller that runs already, if it is on this machine.
    pub pid: Option<u32>,
    /// The switches' private key, for a controller that runs already and speaks TLS.
    pub private_key: Option<PathBuf>,
    /// The switches' certificate.
    pub certificate: Option<PathBuf>,
    /// The certificate of the authority that signed the controller's.
    pub ca_cert: Option<PathBuf>,
}

impl FleetSettings {
    /// Number of switches.
    pub fn switches(&self) -> u32 {
        self.switches.unwrap_or(16)
    }

    /// Hosts behind each switch.
    pub fn hosts(&self) -> u32 {
        self.hosts.unwrap_or(1_000)
    }

    /// Ports of each switch.
    pub fn ports(&self) -> u32 {
        self.ports.unwrap_or(4)
    }

    /// Whether every number is one that can be emulated, and TLS has its three files.
    pub(super) fn check(&self) -> Result<(), SettingsError> {
        for (key, value, least, most, is_even) in [
            ("fleet.switches", self.switches, 1, SWITCHES_MAX, false),
            ("fleet.hosts", self.hosts, 2, HOSTS_MAX, true),
            ("fleet.ports", self.ports, 2, 1_024, true),
            ("fleet.window", self.window, 1, 1 << 20, false),
            ("fleet.at_once", self.at_once, 1, 65_536, false),
            ("fleet.threads", self.threads.map(u32::from), 1, 256, false),
            ("fleet.ready_limit_s", self.ready_limit_s.map(u32::from), 1, 3_600, false),
        ] {
            let even = if is_even { "an even number, " } else { "" };
            let is_wrong = |value: &u32| {
                !(least..=most).contains(value) || is_even && !value.is_multiple_of(2)
            };
            refuse(key, value, is_wrong, &format!("must be {even}{least} to {most}"))?;
        }
        let is_wrong = |value: &f64| !(0.0..=600.0).contains(value);
        refuse("fleet.warm_up_s", self.warm_up_s, is_wrong, "must be 0 to 600")?;
        let files = [&self.private_key, &self.certificate, &self.ca_cert];
        let given: Vec<String> =
            files.into_iter().flatten().map(|path| path.display().to_string()).collect();
        if !given.is_empty() && given.len() < files.len() {
            let why = "TLS needs fleet.private_key, fleet.certificate and fleet.ca_cert";
            return Err(SettingsError::new("fleet.private_key", &given.join(", "), why));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::FleetSettings;

    #[test]
    fn numbers_are_refused_with_their_bounds() {
        let check = |text: &str| toml::from_str::<FleetSettings>(text).unwrap().check();
        assert_eq!(check("switches = 1\nhosts = 2\nwarm_up_s = 0.0"), Ok(()));
        for (wrong, key, why) in [
            ("switches = 0", "fleet.switches", "1 to 65536"),
            ("hosts = 3", "fleet.hosts", "an even number, 2 to "),
            ("ports = 0", "fleet.ports", "2 to 1024"),
            ("warm_up_s = nan", "fleet.warm_up_s", "0 to 600"),
            ("certificate = \"c.pem\"", "fleet.private_key", "fleet.ca_cert"),
        ] {
            let error = check(wrong).unwrap_err();
            assert_eq!(error.key, key, "{wrong}");
            assert!(error.why.contains(why), "{error}");
        }
    }
}
