//! Get-config and set-config (clause 7.3.2).

use openflow::Message;
use openflow::message::SwitchConfig;

use super::{Answer, Worker};

pub(super) fn get(worker: &Worker) -> Message {
    Message::GetConfigReply(worker.datapath.settings().switch_config())
}

pub(super) fn set(worker: &mut Worker, config: SwitchConfig) -> Answer {
    let mut settings = worker.datapath.settings();
    settings.set_switch_config(config)?;
    worker.datapath.set_settings(settings);
    Ok(None)
}
