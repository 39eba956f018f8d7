//! Traffic: streams, pacing, probes and the receiver that accounts for them.
//!
//! The lab's own measurements are made of these parts: a [`stream::TestStream`] says what is sent,
//! a [`pacing::Schedule`] when, [`run`] carries it over an [`endpoint::TrafficEndpoint`], and a
//! [`receiver::StreamReceiver`] turns what arrives into loss, jitter and delay. The sending side is
//! open loop: a frame's time is fixed before the run and never waits for an answer, so that a
//! stalled switch shows as delay instead of as fewer samples. It must never know what a controller
//! is.
#![forbid(unsafe_code)]

pub mod clock;
pub mod endpoint;
pub mod frame;
pub mod one_way;
pub mod pacing;
pub mod port_endpoint;
pub mod probe;
pub mod receiver;
pub mod run;
pub mod stream;
