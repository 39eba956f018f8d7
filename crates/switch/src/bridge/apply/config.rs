//! Get-config and set-config (clause 7.3.2).

use openflow::Message;
use openflow::message::SwitchConfig;

use super::{Applied, ApplyResult, Bridge};

/// The settings, with the flags that are the connection's.
pub(super) fn get(bridge: &Bridge, flags: u16) -> ApplyResult {
    let settings = bridge.with_control(|control| control.settings());
    let mut config = settings.ok_or_else(Bridge::no_tables)?.switch_config();
    config.flags |= flags;
    Ok(Applied::Reply(Message::GetConfigReply(config)))
}

pub(super) fn set(bridge: &Bridge, config: SwitchConfig) -> ApplyResult {
    let set = bridge.with_control(|control| {
        let mut settings = control.settings();
        settings.set_switch_config(config)?;
        control.set_settings(settings);
        Ok(Applied::Nothing)
    });
    set.ok_or_else(Bridge::no_tables)?
}
