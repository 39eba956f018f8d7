//! Queue-get-config (clause 7.3.6): Weir has no queues to configure yet, so the list is empty.

use openflow::message::QueueConfig;
use openflow::{Error, Message, PortNo, Version};

use super::{Answer, Worker};

pub(super) fn config(worker: &mut Worker, version: Version, port: PortNo) -> Answer {
    let any = match version {
        Version::V1_0 => false,
        Version::V1_3 => port == PortNo::ANY,
    };
    if any || worker.ports.get_mut(port).is_some() {
        Ok(Some(Message::QueueGetConfigReply(QueueConfig { port, queues: Vec::new() })))
    } else {
        Err(Error::QueueOpBadPort)
    }
}
