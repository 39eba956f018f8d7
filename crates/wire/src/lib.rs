//! Codec of OpenFlow messages: decode a frame to a message, encode a message to a frame.
#![forbid(unsafe_code)]
