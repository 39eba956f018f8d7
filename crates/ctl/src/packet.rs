//! Packet-outs: packets that the switch is to send.

use clap::Args;
use openflow::message::PacketOut as Message13;
use openflow::text::PortNames;
use openflow::translate::actions_in;
use openflow::{Match, Message, PortNo};

use super::context::{CommandContext, Execute};
use super::failure::Failure;
use super::messages::{Line, read_one};
use control::unhex;

/// Send packets by a list of actions
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:
  weir ctl packet-out in_port=controller,packet=ffffffffffff02000000001188b50001,actions=output:2
  weir ctl packet-out CONTROLLER output:2 ffffffffffff02000000001188b50001")]
pub(super) struct PacketOut {
    /// in_port=PORT,packet=HEX,actions=ACTIONS; or the port that the packets count as received by,
    /// for example CONTROLLER
    packet_out: String,
    /// For example output:2, or TABLE for the tables
    #[arg(requires = "frames")]
    actions: Option<String>,
    /// Frames in hex digits
    frames: Vec<String>,
}

impl Execute for PacketOut {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        let (in_port, actions, frames) = match self.actions {
            Some(actions) => (self.packet_out, actions, self.frames),
            None => {
                let (in_port, actions, frame) = split(&self.packet_out)?;
                (in_port, actions, vec![frame])
            }
        };
        let port = |line: &Line, names: &PortNames| line.read(|text| names.parse_port(text));
        let in_port = read_one(context, Line::argument("in_port", &in_port), port).await?;
        let list = |line: &Line, names: &PortNames| line.read(|text| names.parse_actions(text));
        let actions = read_one(context, Line::argument("actions", &actions), list).await?;
        let frames: Result<Vec<_>, _> =
            frames.iter().map(|frame| unhex(frame, packet::FRAME_CAPACITY)).collect();
        let frames = frames.map_err(Failure::Refused)?;
        let version = context.session().await?.version;
        let translated = actions_in(version, &Match::default(), &actions);
        let actions = translated.map_err(|why| Failure::Refused(format!("actions: {why}")))?;
        let message = |data| {
            let actions = actions.clone();
            Message::PacketOut(Message13 { buffer_id: None, in_port, actions, data })
        };
        context.session().await?.change(frames.into_iter().map(message).collect()).await
    }
}

/// The port, the actions and the frame of `in_port=..,packet=..,actions=..`; the actions stand at
/// the end.
fn split(text: &str) -> Result<(String, String, String), Failure> {
    let missing = |what: &str| {
        let form = "in_port=PORT,packet=HEX,actions=ACTIONS";
        Failure::Refused(format!("packet-out: {what} is missing: write {form}"))
    };
    let (head, actions) = text.split_once("actions=").ok_or_else(|| missing("actions="))?;
    let (mut in_port, mut packet) = (PortNo::CONTROLLER.to_string(), None);
    for word in head.split([',', ' ']).filter(|word| !word.is_empty()) {
        match word.split_once('=') {
            Some(("in_port", value)) => in_port = value.to_owned(),
            Some(("packet", value)) => packet = Some(value.to_owned()),
            _ => {
                return Err(Failure::Refused(format!(
                    "packet-out: unknown word `{word}`: in_port=, packet= or actions="
                )));
            }
        }
    }
    Ok((in_port, actions.to_owned(), packet.ok_or_else(|| missing("packet="))?))
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn the_form_of_one_text_is_cut() {
        let (in_port, actions, frame) = split("in_port=1,packet=00ff,actions=output:2,3").unwrap();
        assert_eq!((&*in_port, &*actions, &*frame), ("1", "output:2,3", "00ff"));
        for (text, why) in [
            ("in_port=1,packet=00", "actions= is missing"),
            ("in_port=1,actions=drop", "packet= is missing"),
            ("colour=1,actions=drop", "unknown word `colour=1`"),
        ] {
            assert!(split(text).unwrap_err().message().unwrap().contains(why), "{text}");
        }
    }
}
