//! The patch panel: pairs of ports of a switch, joined as by a cable.
//!
//! Two entries make a patch, one for each direction, and nothing else is forwarded. A cable carries
//! everything, so link-layer protocols of the two devices work through it (while discovery runs,
//! LLDP goes to the controller instead). It must never send a packet to a port that is not named.

use super::config_values::{Fault, SwitchId};
use super::frame::entry;
use crate::app::App;
use crate::switch::Switch;
use openflow::{Action, Field, Match, PortNo};
use serde::Deserialize;
use std::collections::HashSet;
use std::sync::Arc;
use toml::Spanned;

const PRIORITY: u16 = 100;

/// `[patch-panel]` in the file of the apps' settings.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PatchPanelConfig {
    /// The patches.
    pub patch: Vec<Spanned<PanelPatch>>,
}

/// `[[patch-panel.patch]]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PanelPatch {
    /// The switch.
    pub switch: SwitchId,
    /// The numbers of its two ports.
    pub ports: Vec<u32>,
}

impl PatchPanelConfig {
    pub(super) fn check(&self) -> Result<(), Fault> {
        let mut taken = HashSet::new();
        for patch in &self.patch {
            if patch.get_ref().ports.len() != 2 {
                let two = "ports: a patch has two, as in [1, 2]";
                return Err(Fault::at(patch, "patch-panel.patch", two));
            }
            for &port in &patch.get_ref().ports {
                let wrong = if !PortNo(port).is_port() {
                    Some(format!("ports: {port} is no port's number"))
                } else if !taken.insert((patch.get_ref().switch, port)) {
                    Some(format!("ports: port {port} of this switch is in a patch already"))
                } else {
                    None
                };
                if let Some(wrong) = wrong {
                    return Err(Fault::at(patch, "patch-panel.patch", wrong));
                }
            }
        }
        Ok(())
    }
}

/// The app.
#[derive(Clone, Debug)]
pub struct PatchPanel {
    config: Arc<PatchPanelConfig>,
}

impl PatchPanel {
    /// An instance with these patches.
    #[must_use]
    pub fn new(config: Arc<PatchPanelConfig>) -> Self {
        Self { config }
    }
}

impl App for PatchPanel {
    fn switch_ready(&mut self, sw: &mut Switch) {
        sw.clear_flows();
        let dpid = sw.dpid();
        let patches = self.config.patch.iter().map(Spanned::get_ref);
        for patch in patches.filter(|patch| patch.switch.0 == dpid) {
            let [a, b] = patch.ports[..] else { continue };
            for (from, to) in [(a, b), (b, a)] {
                let matching = Match::any().with(Field::InPort, from.into());
                sw.flow_mod(entry(PRIORITY, matching, vec![Action::output(PortNo(to))]));
            }
        }
        if !sw.version().has_table_miss_entry() {
            // In 1.0 what no entry matches would come to the controller.
            sw.flow_mod(entry(0, Match::any(), Vec::new()));
        }
    }
}
