//! Queue-get-config (clause 7.3.6), and the description of queues in 1.4: the queues that the
//! switch was configured with.

use openflow::message::QueueConfig;
use openflow::port::{PacketQueue, QueueProperty};
use openflow::{Error, Message, PortNo, QueueId, Version};

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

/// The queues of a port, or one of them.
pub(super) fn descriptions(
    bridge: &Bridge,
    port: PortNo,
    queue: QueueId,
) -> Result<Vec<PacketQueue>, Error> {
    if port != PortNo::ANY && !bridge.has_port(port) {
        return Err(Error::QueueOpBadPort);
    }
    let mut queues = bridge.queue_configs(port);
    if queue != QueueId::ALL {
        queues.retain(|one| one.queue_id == queue);
        if queues.is_empty() {
            return Err(Error::QueueOpBadQueue);
        }
    }
    Ok(queues)
}
