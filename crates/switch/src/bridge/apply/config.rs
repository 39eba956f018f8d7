//! Get-config and set-config (clause 7.3.2).

use openflow::Message;
use openflow::message::SwitchConfig;

use super::{Answer, Bridge, Outcome};

pub(super) fn get(bridge: &Bridge) -> Outcome {
    let settings = bridge.with_control(|control| control.settings());
    let settings = settings.ok_or_else(Bridge::no_tables)?;
    Ok(Answer::Reply(Message::GetConfigReply(settings.switch_config())))
}

pub(super) fn set(bridge: &Bridge, config: SwitchConfig) -> Outcome {
    let set = bridge.with_control(|control| {
        let mut settings = control.settings();
        settings.set_switch_config(config)?;
        control.set_settings(settings);
        Ok(Answer::Nothing)
    });
    set.ok_or_else(Bridge::no_tables)?
}
