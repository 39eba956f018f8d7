//! Multipart bodies as lists: joining of parts, count of entries (clause 7.3.5).
//!
//! A message has at most 65,535 bytes, so a long reply comes in parts; `wire` splits it on the way
//! out. Knows which bodies are lists and nothing else.

use openflow::message::MultipartReplyBody;

/// The number of entries of a body; one that is no list counts as one.
pub(crate) fn entries(body: &MultipartReplyBody) -> usize {
    match body {
        MultipartReplyBody::Flow(list) => list.len(),
        MultipartReplyBody::Table(list) => list.len(),
        MultipartReplyBody::PortStats(list) => list.len(),
        MultipartReplyBody::Queue(list) => list.len(),
        MultipartReplyBody::Group(list) => list.len(),
        MultipartReplyBody::GroupDesc(list) => list.len(),
        MultipartReplyBody::Meter(list) => list.len(),
        MultipartReplyBody::MeterConfig(list) => list.len(),
        MultipartReplyBody::TableFeatures(list) => list.len(),
        MultipartReplyBody::PortDesc(list) => list.len(),
        MultipartReplyBody::TableDesc(list) => list.len(),
        MultipartReplyBody::QueueDesc(list) => list.len(),
        MultipartReplyBody::FlowMonitor(list) => list.len(),
        MultipartReplyBody::Desc(_)
        | MultipartReplyBody::Aggregate(_)
        | MultipartReplyBody::GroupFeatures(_)
        | MultipartReplyBody::MeterFeatures(_)
        | MultipartReplyBody::Experimenter(_) => 1,
    }
}

/// Appends the entries of a later part.
///
/// # Errors
/// When the parts are not lists of one type.
pub(crate) fn append(
    whole: &mut MultipartReplyBody,
    part: MultipartReplyBody,
) -> Result<(), NotOneList> {
    macro_rules! join {
        ($($variant:ident)+) => {
            match (whole, part) {
                $((MultipartReplyBody::$variant(whole), MultipartReplyBody::$variant(part)) => {
                    whole.extend(part);
                    Ok(())
                })+
                (_, _) => Err(NotOneList),
            }
        };
    }
    join!(Flow Table PortStats Queue Group GroupDesc Meter MeterConfig TableFeatures PortDesc
        TableDesc QueueDesc FlowMonitor)
}

/// Two parts that are not lists of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the parts are not lists of one type")]
pub(crate) struct NotOneList;
