//! The asynchronous messages of a switch as they come: packet-ins, removed flow entries, ports.

use clap::Args;
use openflow::flow_monitor::FlowMonitorRequest;
use openflow::message::{
    AsyncConfig, AsyncEvent, MultipartReply, MultipartReplyBody, MultipartRequest,
    MultipartRequestBody, PacketInReason, SwitchConfig,
};
use openflow::text::{PortNames, format_packet_in, parse_number};
use openflow::{Message, Version, Xid};
use packet::describe;
use tokio::signal::unix::{SignalKind, signal};

use super::context::{CommandContext, Execute, Out};
use super::failure::Failure;
use super::messages::{Line, read_one};
use super::session::{Session, odd, refusal};
use super::value;

/// Print packet-ins, removed flow entries and changes of ports as they come, until Ctrl-C
#[derive(Args, Clone, Debug)]
#[command(after_help = "Words:
  MISS_LEN     sets how many bytes of a buffered packet the switch sends, as set-config does
  invalid_ttl  packets with an invalid TTL too
  watch:FLOWS  the flow entries that FLOWS covers, as in dump-flows, and each change of them; with
               !initial, !add, !delete, !modify, !actions, !own without these

The masks of asynchronous messages are those of this connection: other controllers get what they
got. OpenFlow 1.0 has no masks; there a connection gets everything.

Examples:
  weir ctl monitor
  weir ctl --json monitor --count 10
  weir ctl monitor watch:table=0,ip 'watch:!initial,out_port=2'
  weir ctl --switch tcp:192.0.2.1:6634 monitor 65535 invalid_ttl")]
pub(super) struct Monitor {
    /// MISS_LEN, invalid_ttl, watch:FLOWS
    words: Vec<String>,
    /// End after this number of messages
    #[arg(long, value_name = "N")]
    count: Option<u64>,
}

/// Messages to watch for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Wanted {
    miss_send_len: Option<u16>,
    invalid_ttl: bool,
    /// Texts of flow monitors.
    watch: Vec<String>,
}

impl Wanted {
    fn read(words: &[String]) -> Result<Self, Failure> {
        let mut wanted = Self::default();
        for word in words {
            if word.starts_with(|c: char| c.is_ascii_digit()) {
                wanted.miss_send_len = Some(Line::argument("MISS_LEN", word).read(parse_number)?);
            } else if word == "invalid_ttl" {
                wanted.invalid_ttl = true;
            } else if let Some(flows) = word.strip_prefix("watch:") {
                wanted.watch.push(flows.to_owned());
            } else {
                return Err(Failure::NotUnderstood(format!(
                    "unknown word `{word}`: a number of bytes, invalid_ttl, or watch:FLOWS"
                )));
            }
        }
        Ok(wanted)
    }
}

impl Execute for Monitor {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        let wanted = Wanted::read(&self.words)?;
        let monitors = monitors(context, &wanted.watch).await?;
        let (session, out) = context.connected().await?;
        begin(session, &wanted).await?;
        if !monitors.is_empty() {
            let body = MultipartRequestBody::FlowMonitor(monitors);
            let request = MultipartRequest { more: false, body };
            let (xid, reply) = session.ask(&Message::MultipartRequest(request)).await?;
            out.reply(session.version, xid, &reply)?;
            out.flush()?;
        }
        let stopped = |kind| signal(kind).map_err(|error| Failure::refused(error.to_string()));
        let (mut ctrl_c, mut ended) =
            (stopped(SignalKind::interrupt())?, stopped(SignalKind::terminate())?);
        let mut count = 0;
        while self.count.is_none_or(|most| count < most) {
            let (xid, message) = tokio::select! {
                next = session.next() => next?,
                _ = ctrl_c.recv() => break,
                _ = ended.recv() => break,
            };
            if print(session.version, out, xid, &message)? {
                count += 1;
                out.flush()?;
            }
        }
        Ok(())
    }
}

/// The flow monitors of these texts, numbered.
async fn monitors(
    context: &mut CommandContext<'_>,
    texts: &[String],
) -> Result<Vec<FlowMonitorRequest>, Failure> {
    let mut monitors = Vec::new();
    for (id, text) in (0..).zip(texts) {
        let read =
            |line: &Line, names: &PortNames| line.read(|text| names.parse_flow_monitor(id, text));
        monitors.push(read_one(context, Line::argument("watch", text), read).await?);
    }
    Ok(monitors)
}

/// Asks for all asynchronous messages.
async fn begin(session: &mut Session, wanted: &Wanted) -> Result<(), Failure> {
    let mut messages = Vec::new();
    let by_flag = wanted.invalid_ttl && session.version.has_invalid_ttl_flag();
    if wanted.miss_send_len.is_some() || by_flag {
        let held = match session.ask(&Message::GetConfigRequest).await? {
            (_, Message::GetConfigReply(held)) => held,
            (_, other) => return Err(odd(&other)),
        };
        messages.push(Message::SetConfig(SwitchConfig {
            flags: if by_flag { held.flags | SwitchConfig::INVALID_TTL } else { held.flags },
            miss_send_len: wanted.miss_send_len.unwrap_or(held.miss_send_len),
        }));
    }
    if session.version.has_async_config() {
        let all = |event: AsyncEvent| event.reasons(session.version);
        let invalid_ttl = 1 << PacketInReason::InvalidTtl.number();
        let unwanted = if wanted.invalid_ttl { 0 } else { invalid_ttl };
        let packets = all(AsyncEvent::PacketIn) & !unwanted;
        messages.push(Message::SetAsync(AsyncConfig::new(
            [packets; 2],
            [all(AsyncEvent::PortStatus); 2],
            [all(AsyncEvent::FlowRemoved); 2],
        )));
    }
    session.change(messages).await
}

/// A message that is one value.
fn one(message: &Message) -> serde_json::Value {
    value::of_message(message).pop().unwrap_or_default()
}

/// Prints an asynchronous message or an error; whether the message was one.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "all others are answers to nothing that was asked"
)]
fn print(
    version: Version,
    out: &mut Out<'_>,
    xid: Xid,
    message: &Message,
) -> Result<bool, Failure> {
    match message {
        Message::PacketIn(packet) => {
            let text = format_packet_in(version, xid, packet);
            let text = format!("{text}\n{}", describe(&packet.data));
            out.record(text, || one(message))?;
        }
        Message::FlowRemoved(_) | Message::PortStatus(_) | Message::TableStatus(_) => {
            out.reply(version, xid, message)?;
        }
        Message::MultipartReply(MultipartReply {
            body: MultipartReplyBody::FlowMonitor(_),
            ..
        }) => out.reply(version, xid, message)?,
        Message::Error(error) => {
            out.record(refusal(version, error), || one(message))?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::Wanted;

    #[test]
    fn words_are_taken_in_any_order() {
        let read = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(ToString::to_string).collect();
            Wanted::read(&words)
        };
        let watch = vec!["table=1".to_owned()];
        let both = Wanted { miss_send_len: Some(128), invalid_ttl: true, watch };
        assert_eq!(read(&["invalid_ttl", "watch:table=1", "128"]).unwrap(), both);
        assert_eq!(read(&[]).unwrap(), Wanted::default());
        for (word, why) in [("70000", "too large"), ("x", "unknown")] {
            assert!(read(&[word]).unwrap_err().message().unwrap().contains(why), "{word}");
        }
    }
}
