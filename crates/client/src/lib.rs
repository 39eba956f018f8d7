//! An OpenFlow client: a controller's side of one connection, for tools that ask a switch something
//! or have it do something, one call after the other.
//!
//! [`Client`] blocks, [`AsyncClient`] runs on tokio; both drive the same state machines over
//! [`channel::Connection`] and have the same calls: hello and version, requests with their answers
//! by xid, multipart answers whole or part by part, messages by the million with a barrier behind
//! them and the errors of each, raw bytes for fuzzers. They speak OpenFlow 1.0 (wire 0x01) and 1.3
//! (wire 0x04); clauses are those of the OpenFlow Switch Specification 1.3.4.
//!
//! A tool that lists the ports of a switch and adds a flow entry:
//!
//! ```
//! use client::{Client, ClientSettings};
//! use openflow::message::{MultipartReplyBody, MultipartRequestBody};
//! use openflow::{Message, flow::FlowModCommand, text::parse_flow_mod};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # use openflow::{message::MultipartReply, port::PortDesc, PortNo, Xid};
//! # let (stream, theirs) = std::os::unix::net::UnixStream::pair()?;
//! # let switch = std::thread::spawn(move || -> Option<()> {
//! #     use std::io::{Read, Write};
//! #     use channel::{Connection, Event, Side, ConnectionSettings};
//! #     let now = std::time::Instant::now();
//! #     let (mut stream, mut bytes) = (theirs, [0; 4096]);
//! #     let settings = ConnectionSettings::new(Side::Switch);
//! #     let mut switch = Connection::new(settings, now);
//! #     loop {
//! #         stream.write_all(switch.transmit()).ok()?;
//! #         switch.transmitted(switch.transmit().len(), now);
//! #         let count = stream.read(&mut bytes).ok().filter(|count| *count > 0)?;
//! #         switch.receive(&bytes[..count], now);
//! #         while let Some(event) = switch.poll_event() {
//! #             let Event::Message { xid, message } = event else { continue };
//! #             let port_no = PortNo(1);
//! #             let port = PortDesc { port_no, name: "p1".into(), ..Default::default() };
//! #             let body = MultipartReplyBody::PortDesc(vec![port]);
//! #             let answer = match message {
//! #                 Message::BarrierRequest => Message::BarrierReply,
//! #                 Message::MultipartRequest(_) => {
//! #                     Message::MultipartReply(MultipartReply { more: false, body })
//! #                 }
//! #                 _ => continue,
//! #             };
//! #             switch.send_as(xid, &answer).ok()?;
//! #         }
//! #     }
//! # });
//! // Client::connect(&"tcp:192.0.2.1:6653".parse()?, ..) for a switch that listens.
//! let mut client = Client::over_unix(stream, "switch", ClientSettings::default())?;
//! println!("{} speaks {}", client.name(), client.version());
//!
//! let MultipartReplyBody::PortDesc(ports) = client.multipart(MultipartRequestBody::PortDesc)?
//! else {
//!     return Err("no ports".into());
//! };
//! for port in &ports {
//!     println!("{}: {}", port.port_no, port.name);
//! }
//!
//! let entry = parse_flow_mod("priority=5,in_port=1,actions=output:2", FlowModCommand::Add)?;
//! let loaded = client.load([Message::FlowMod(entry)])?;
//! for refusal in &loaded.refusals {
//!     eprintln!("message {}: {}", refusal.index, refusal.why);
//! }
//! assert_eq!((ports.len(), loaded.messages, loaded.refused), (1, 1, 0));
//! client.close();
//! # switch.join().expect("the switch of the example");
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod asynchronous;
mod blocking;
mod core;
mod error;
mod operation;
mod settings;

pub use asynchronous::AsyncClient;
pub use blocking::{Client, Counted};
pub use error::ClientError;
pub use operation::{LoadOutcome, Refusal, RefusalReason};
pub use settings::ClientSettings;
