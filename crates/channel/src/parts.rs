//! Multipart bodies as lists: put parts together, count entries (clause 7.3.5).
//!
//! A message has at most 65,535 bytes, so a long answer comes in parts; `wire` cuts them on the way
//! out. Knows which bodies are lists and nothing else.

use openflow::message::{MultipartReplyBody, MultipartRequestBody};

/// Runs `$list` on the vector of a body that is a list, `$single` on one that is not.
macro_rules! on_list {
    ($body:expr, $entries:ident => $list:expr, $single:expr) => {
        match $body {
            MultipartReplyBody::Flow($entries) => $list,
            MultipartReplyBody::Table($entries) => $list,
            MultipartReplyBody::PortStats($entries) => $list,
            MultipartReplyBody::Queue($entries) => $list,
            MultipartReplyBody::Group($entries) => $list,
            MultipartReplyBody::GroupDesc($entries) => $list,
            MultipartReplyBody::Meter($entries) => $list,
            MultipartReplyBody::MeterConfig($entries) => $list,
            MultipartReplyBody::TableFeatures($entries) => $list,
            MultipartReplyBody::PortDesc($entries) => $list,
            MultipartReplyBody::Desc(_)
            | MultipartReplyBody::Aggregate(_)
            | MultipartReplyBody::GroupFeatures(_)
            | MultipartReplyBody::MeterFeatures(_)
            | MultipartReplyBody::Experimenter(_) => $single,
        }
    };
}

/// How many entries a body has; one that is no list counts as one.
pub(crate) fn entries(body: &MultipartReplyBody) -> usize {
    on_list!(body, entries => entries.len(), 1)
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
    join!(Flow Table PortStats Queue Group GroupDesc Meter MeterConfig TableFeatures PortDesc)
}

/// Appends the body of a later part of a request; table features alone go in parts.
///
/// # Errors
/// When the parts do not fit together.
pub fn append_request(
    whole: &mut MultipartRequestBody,
    part: MultipartRequestBody,
) -> Result<(), NotOneList> {
    match (whole, part) {
        (MultipartRequestBody::TableFeatures(whole), MultipartRequestBody::TableFeatures(part)) => {
            whole.extend(part);
            Ok(())
        }
        (_, _) => Err(NotOneList),
    }
}

/// Two parts that are not lists of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the parts are not lists of one type")]
pub struct NotOneList;
