//! `--show-rights`: the capabilities, devices and files that a configuration needs, each with its
//! reason.
//!
//! They follow from the kinds of the ports and from the places that are named; nothing is opened,
//! and nobody needs a right to ask.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use channel::Endpoint;
use netdev::{FileUse, KEPT_TIERS, PortRight};
use serde_json::{Value, json};

use crate::config::{BridgeConfig, Config, PortConfig};

/// Ports of the system below this are for processes with a right to them.
const FREE_PORTS: u16 = 1024;

/// Makes TAP devices.
const TUN_DEVICE: &str = "/dev/net/tun";

/// Reasons that a line names.
const REASONS_MAX: usize = 4;

/// Names with the reasons for each.
type Reasons = BTreeMap<String, Vec<String>>;

/// The rights that a configuration needs.
#[derive(Debug, Default)]
pub(crate) struct Rights {
    capabilities: Reasons,
    devices: Reasons,
    read: Reasons,
    /// Folders in which files are made, and files that are written.
    written: Reasons,
}

impl Rights {
    /// The rights for a configuration, which is read from `file`, if from any.
    pub(crate) fn of(config: &Config, file: Option<&Path>) -> Self {
        let mut rights = Self::default();
        if let Some(file) = file {
            rights.reads(file, "the configuration");
        }
        if let Some(control) = &config.control {
            rights.makes_in(control, "the control socket");
        }
        if let Some(address) = config.metrics {
            rights.listens(address.port(), &format!("metrics at {address}"));
        }
        if let Some(state) = &config.state {
            add(&mut rights.written, path(state), "the state of the bridges".to_owned());
            let kept = config.bridges.iter().filter(|bridge| may_have_tier(bridge));
            for bridge in kept {
                let why = format!("the kernel tier of {} while no process is there", bridge.name);
                add(&mut rights.written, KEPT_TIERS, why);
            }
        }
        config.bridges.iter().for_each(|bridge| rights.add_bridge(bridge));
        rights
    }

    fn add_bridge(&mut self, bridge: &BridgeConfig) {
        let name = &bridge.name;
        bridge.ports.iter().for_each(|port| self.add_port(name, port));
        if may_have_tier(bridge) {
            let why = format!("the kernel tier of {name}; without it frames pass in user space");
            for capability in ["CAP_BPF", "CAP_PERFMON", "CAP_SYS_NICE"] {
                add(&mut self.capabilities, capability, why.clone());
            }
            // Frames come to the worker by a TAP device.
            add(&mut self.devices, TUN_DEVICE, why);
        }
        for listener in &bridge.listeners {
            match listener {
                Endpoint::PassiveTcp { port, .. } | Endpoint::PassiveSsl { port, .. } => {
                    self.listens(*port, &format!("{listener} of {name}"));
                }
                Endpoint::PassiveUnix(path) => {
                    self.makes_in(path, &format!("{listener} of {name}"))
                }
                // These connect.
                Endpoint::Tcp { .. } | Endpoint::Ssl { .. } | Endpoint::Unix(_) => {}
            }
        }
        if let Some(tls) = &bridge.tls {
            for file in [&tls.private_key, &tls.certificate, &tls.ca_cert] {
                self.reads(file, &format!("TLS of {name}"));
            }
        }
    }

    fn add_port(&mut self, bridge: &str, port: &PortConfig) {
        let named = format!("port {} of {bridge}, {}", port.number, port.spec);
        for right in port.spec.kind().rights {
            let (names, name) = match right {
                PortRight::PacketSocket => (&mut self.capabilities, "CAP_NET_RAW"),
                PortRight::DeviceSettings => (&mut self.capabilities, "CAP_NET_ADMIN"),
                PortRight::TunDevice => (&mut self.devices, TUN_DEVICE),
                PortRight::LockedMemory => (&mut self.capabilities, "CAP_IPC_LOCK"),
                PortRight::DeviceRegisters => (&mut self.capabilities, "CAP_SYS_RAWIO"),
            };
            add(names, name, named.clone());
        }
        let file = Path::new(port.spec.name());
        match port.spec.file_use() {
            Some(FileUse::Read) => self.reads(file, &named),
            Some(FileUse::Write) => add(&mut self.written, path(file), named),
            Some(FileUse::Wire) => self.makes_in(file, &named),
            None => {}
        }
    }

    fn listens(&mut self, port: u16, what: &str) {
        if (1..FREE_PORTS).contains(&port) {
            add(&mut self.capabilities, "CAP_NET_BIND_SERVICE", what.to_owned());
        }
    }

    fn reads(&mut self, file: &Path, what: &str) {
        add(&mut self.read, path(file), what.to_owned());
    }

    fn makes_in(&mut self, file: &Path, what: &str) {
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        add(&mut self.written, path(folder.unwrap_or(Path::new("."))), what.to_owned());
    }

    /// The parts with their titles.
    fn parts(&self) -> [(&'static str, &Reasons); 4] {
        [
            ("capabilities", &self.capabilities),
            ("devices", &self.devices),
            ("read", &self.read),
            ("written", &self.written),
        ]
    }

    /// The rights for people: a line each, then the line of a unit.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for (title, names) in self.parts() {
            text += &format!("{title}:{}\n", if names.is_empty() { " none" } else { "" });
            for (name, reasons) in names {
                let shown: Vec<&str> =
                    reasons.iter().take(REASONS_MAX).map(String::as_str).collect();
                let more = match reasons.len().saturating_sub(REASONS_MAX) {
                    0 => String::new(),
                    more => format!("; and {more} more"),
                };
                text += &format!("  {name}\n    for {}{more}\n", shown.join("; "));
            }
        }
        let capabilities: Vec<&str> = self.capabilities.keys().map(String::as_str).collect();
        text + &format!("AmbientCapabilities={}\n", capabilities.join(" "))
    }

    /// The rights for scripts: names with the reasons for each.
    pub(crate) fn value(&self) -> Value {
        self.parts().into_iter().map(|(title, names)| (title.to_owned(), json!(names))).collect()
    }
}

/// Whether a port of a bridge may be in the kernel tier.
fn may_have_tier(bridge: &BridgeConfig) -> bool {
    let needs = |port: &PortConfig| port.spec.kind().rights.contains(&PortRight::PacketSocket);
    bridge.caches.0.kernel && bridge.ports.iter().any(needs)
}

fn add(names: &mut Reasons, name: impl Into<String>, why: String) {
    names.entry(name.into()).or_default().push(why);
}

fn path(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| PathBuf::from(path)).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::Rights;
    use crate::config::parse_config;

    fn names(text: &str, part: &str) -> Vec<String> {
        let config = parse_config(text).unwrap().resolve().unwrap();
        let value = Rights::of(&config, None).value();
        value[part].as_object().unwrap().keys().cloned().collect()
    }

    #[test]
    fn rights_follow_from_ports_and_places() {
        let none: [&str; 0] = [];
        let quiet = "control = \"none\"\n";
        for (text, capabilities, devices, written) in [
            ("port = [\"null:a\", \"memory:b\"]", &none[..], &none[..], &none[..]),
            (
                "port = [\"af_packet:eth1\"]\ncaches = \"frame,key\"",
                &["CAP_NET_ADMIN", "CAP_NET_RAW"],
                &[],
                &[],
            ),
            (
                "port = [\"af_packet:eth1\"]",
                &["CAP_BPF", "CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_PERFMON", "CAP_SYS_NICE"],
                &["/dev/net/tun"],
                &[],
            ),
            ("port = [\"tap:a\"]", &["CAP_NET_ADMIN"], &["/dev/net/tun"], &[]),
            (
                "listen = [\"ptcp:633\", \"punix:/run/x/of\"]\nmetrics = \"127.0.0.1:9437\"",
                &["CAP_NET_BIND_SERVICE"],
                &[],
                &["/run/x"],
            ),
            ("port = [\"pcap:/tmp/x.pcap?write=true\"]", &[], &[], &["/tmp/x.pcap"]),
            ("state = \"/run/x/state\"", &[], &[], &["/run/x/state"]),
            (
                "state = \"/x\"\nport = [\"af_packet:eth1\"]",
                &["CAP_BPF", "CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_PERFMON", "CAP_SYS_NICE"],
                &["/dev/net/tun"],
                &["/sys/fs/bpf/weir", "/x"],
            ),
        ] {
            let text = format!("{quiet}{text}");
            assert_eq!(names(&text, "capabilities"), capabilities, "{text}");
            assert_eq!(names(&text, "devices"), devices, "{text}");
            assert_eq!(names(&text, "written"), written, "{text}");
        }
        let config = parse_config("port = [\"tap:a\"]").unwrap().resolve().unwrap();
        let text = Rights::of(&config, Some("/etc/x.toml".as_ref())).text();
        assert!(text.contains("/etc/x.toml\n    for the configuration"), "{text}");
        assert!(text.contains("    for port 1 of br0, tap:a\n"), "{text}");
        assert!(text.ends_with("AmbientCapabilities=CAP_NET_ADMIN\n"), "{text}");
    }
}
