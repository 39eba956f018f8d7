//! Test traffic: streams, pacing, probes and the receiver that counts them.
//!
//! The lab's own measurements are made of these parts: a [`stream::TestStream`] makes the payloads,
//! a [`pacing::Schedule`] their due times, [`run`] sends them over a
//! [`endpoint::TrafficEndpoint`], and a [`receiver::StreamReceiver`] turns what arrives into loss,
//! jitter and delay. The sending side is open loop: a frame's time is fixed before the run and
//! never waits for an answer, so that a stalled switch shows as delay instead of as fewer samples.
//! It must never know what a controller is.
//!
//! ```
//! use generator::pacing::Schedule;
//! use generator::probe::StreamId;
//! use generator::receiver::StreamReceiver;
//! use generator::stream::TestStream;
//!
//! // Ten frames of 64 bytes in 10 ms, of which every second one is lost; delays are 5 us.
//! let mut stream = TestStream::new(StreamId(1), 64).unwrap();
//! let schedule = Schedule::new(0, 1_000.0, 0.01);
//! let mut receiver = StreamReceiver::new(stream.id(), schedule.count(), schedule.end_ns());
//! for number in (0..schedule.count()).step_by(2) {
//!     let due_ns = schedule.due_ns(number);
//!     receiver.take(stream.payload(number as u32, due_ns), due_ns + 5_000);
//! }
//! let report = receiver.finish();
//! assert_eq!((report.received, report.lost), (5, 5));
//! ```
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
