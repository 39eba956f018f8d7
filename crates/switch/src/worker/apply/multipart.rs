//! Multipart (statistics) requests (clause 7.3.5). A reply is whole here; the agent sends it in
//! parts.

use openflow::message::{
    MultipartReply, MultipartReplyBody, MultipartRequest, MultipartRequestBody,
};
use openflow::{Error, Message, PortNo, Version};

use super::{Answer, Worker, port, table};
use crate::counters::Counter;

pub(super) fn request(worker: &mut Worker, version: Version, request: MultipartRequest) -> Answer {
    worker.counters.bump(Counter::Multipart);
    if request.more {
        // Only table features may come in parts, and those have been put together before.
        return Err(Error::BadRequestMultipartBufferOverflow);
    }
    let body = reply(worker, version, request.body)?;
    Ok(Some(Message::MultipartReply(MultipartReply { more: false, body })))
}

fn reply(
    worker: &mut Worker,
    version: Version,
    request: MultipartRequestBody,
) -> Result<MultipartReplyBody, Error> {
    let now = worker.now();
    let datapath = &worker.datapath;
    Ok(match request {
        MultipartRequestBody::Desc => MultipartReplyBody::Desc(worker.identity.desc.clone()),
        MultipartRequestBody::Flow(asked) => {
            MultipartReplyBody::Flow(datapath.flow_stats(&asked, now)?)
        }
        MultipartRequestBody::Aggregate(asked) => {
            MultipartReplyBody::Aggregate(datapath.aggregate_stats(&asked)?)
        }
        MultipartRequestBody::Table => MultipartReplyBody::Table(datapath.table_stats()),
        MultipartRequestBody::PortStats(asked) => {
            MultipartReplyBody::PortStats(port::stats(worker, asked)?)
        }
        MultipartRequestBody::Queue { port, queue } => {
            // 1.0 says ALL where 1.3 says ANY (its clause 5.3.5).
            let all = version == Version::V1_0 && port == PortNo::ALL;
            let port = if all { PortNo::ANY } else { port };
            MultipartReplyBody::Queue(datapath.queue_stats(port, queue, now)?)
        }
        MultipartRequestBody::Group(asked) => {
            MultipartReplyBody::Group(datapath.group_stats(asked, now))
        }
        MultipartRequestBody::GroupDesc => MultipartReplyBody::GroupDesc(datapath.group_desc()),
        MultipartRequestBody::GroupFeatures => {
            MultipartReplyBody::GroupFeatures(datapath.group_features())
        }
        MultipartRequestBody::Meter(asked) => {
            MultipartReplyBody::Meter(datapath.meter_stats(asked, now)?)
        }
        MultipartRequestBody::MeterConfig(asked) => {
            MultipartReplyBody::MeterConfig(datapath.meter_config(asked)?)
        }
        MultipartRequestBody::MeterFeatures => {
            MultipartReplyBody::MeterFeatures(datapath.meter_features())
        }
        MultipartRequestBody::TableFeatures(asked) => table::features(worker, &asked)?,
        MultipartRequestBody::PortDesc => MultipartReplyBody::PortDesc(datapath.ports()),
        MultipartRequestBody::Experimenter(_) => {
            return Err(Error::BadRequestBadExperimenter);
        }
    })
}
