//! Test traffic: streams, pacing, probes, the receiver that counts them, and methods of
//! measurement.
//!
//! The lab's own measurements are made of these parts: a [`stream::TestStream`] makes the payloads,
//! a [`pacing::Schedule`] their due times, [`run`] sends them over a
//! [`endpoint::TrafficEndpoint`], and a [`receiver::StreamReceiver`] turns what arrives into loss,
//! jitter and delay. [`method`] asks with them what RFC 2544 asks of a device, and [`testing`] has
//! a simulated one of known properties. The sending side is open loop: a frame's time is fixed
//! before the run and never waits for an answer, so that a stalled switch shows as delay instead of
//! as fewer samples. It must never know what a controller is.
//!
//! ```
//! use generator::pacing::Schedule;
//! use generator::probe::StreamId;
//! use generator::receiver::{ReceiverOptions, StreamReceiver};
//! use generator::stream::TestStream;
//!
//! // Ten frames of 64 bytes in 10 ms, of which every second one is lost; delays are 5 us.
//! let mut stream = TestStream::new(StreamId(1), 64).unwrap();
//! let schedule = Schedule::new(0, 1_000.0, 0.01);
//! let mut receiver = StreamReceiver::new(stream.id(), ReceiverOptions::default());
//! for number in (0..schedule.count()).step_by(2) {
//!     let due_ns = schedule.due_ns(number);
//!     receiver.take(stream.payload(number as u32, due_ns), due_ns + 5_000);
//! }
//! let report = receiver.report(Some(schedule.count()));
//! assert_eq!((report.received, report.lost), (5, 5));
//! ```
#![forbid(unsafe_code)]

pub mod clock;
pub mod endpoint;
pub mod frame;
pub mod method;
pub mod one_way;
pub mod pacing;
pub mod port_endpoint;
pub mod probe;
pub mod profile;
mod random;
pub mod receiver;
pub mod responder;
pub mod run;
mod schedule;
pub mod session;
pub mod stack;
pub mod statistics;
pub mod stream;
mod template;
pub mod testing;
mod transmit;
