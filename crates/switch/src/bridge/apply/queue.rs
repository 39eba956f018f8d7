//! Queue-get-config (clause 7.3.6): the queues that the switch was configured with.

use openflow::message::QueueConfig;
use openflow::{Error, Message, PortNo, Version};

use super::{Answer, Bridge, Outcome};

pub(super) fn config(bridge: &Bridge, version: Version, port: PortNo) -> Outcome {
    let any = match version {
        Version::V1_0 => false,
        Version::V1_3 => port == PortNo::ANY,
    };
    if any || bridge.has_port(port) {
        let config = QueueConfig { port, queues: bridge.queue_configs(port) };
        Ok(Answer::Reply(Message::QueueGetConfigReply(config)))
    } else {
        Err(Error::QueueOpBadPort)
    }
}
