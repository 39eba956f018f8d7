//! Queue-get-config (clause 7.3.6): the queues that the switch was configured with.

use openflow::message::QueueConfig;
use openflow::port::QueueProperty;
use openflow::{Error, Message, PortNo, Version};

use super::{Applied, ApplyResult, Bridge};

pub(super) fn config(bridge: &Bridge, version: Version, port: PortNo) -> ApplyResult {
    let any = version.has_queues_of_any_port() && port == PortNo::ANY;
    if any || bridge.has_port(port) {
        let mut queues = bridge.queue_configs(port);
        if !version.has_max_rate() {
            queues.iter_mut().for_each(|queue| {
                queue.properties.retain(|one| !matches!(one, QueueProperty::MaxRate(_)));
            });
        }
        let config = QueueConfig { port, queues };
        Ok(Applied::Reply(Message::QueueGetConfigReply(config)))
    } else {
        Err(Error::QueueOpBadPort)
    }
}
