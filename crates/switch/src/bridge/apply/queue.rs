//! Queue-get-config (clause 7.3.6): the queues that the switch was configured with.

use openflow::message::QueueConfig;
use openflow::port::QueueProperty;
use openflow::{Error, Message, PortNo, Version};

use super::{Applied, ApplyResult, Bridge};

pub(super) fn config(bridge: &Bridge, version: Version, port: PortNo) -> ApplyResult {
    let any = match version {
        Version::V1_0 => false,
        Version::V1_3 => port == PortNo::ANY,
    };
    if any || bridge.has_port(port) {
        let mut queues = bridge.queue_configs(port);
        match version {
            // 1.0 has no word for a highest rate.
            Version::V1_0 => queues.iter_mut().for_each(|queue| {
                queue.properties.retain(|one| !matches!(one, QueueProperty::MaxRate(_)));
            }),
            Version::V1_3 => {}
        }
        let config = QueueConfig { port, queues };
        Ok(Applied::Reply(Message::QueueGetConfigReply(config)))
    } else {
        Err(Error::QueueOpBadPort)
    }
}
