//! The control socket from the side of `weir ctl`: requests, and their answers printed.

use control::{AskError, ControlCommand, ControlLine, ControlRequest};

use super::address::SwitchAddress;
use super::context::{CommandContext, Out};
use super::failure::Failure;

/// Asks the control socket something of Weir's own, and prints the answer.
pub(super) async fn ask(
    context: &mut CommandContext<'_>,
    command: ControlCommand,
) -> Result<(), Failure> {
    ask_at(context, None, command).await
}

/// Asks a bridge that is named in the command.
pub(super) async fn ask_bridge(
    context: &mut CommandContext<'_>,
    bridge: String,
    command: ControlCommand,
) -> Result<(), Failure> {
    ask_at(context, Some(bridge), command).await
}

async fn ask_at(
    context: &mut CommandContext<'_>,
    bridge: Option<String>,
    command: ControlCommand,
) -> Result<(), Failure> {
    let json = context.out.is_json();
    let place = match (bridge, &context.place.bridge) {
        (Some(named), Some(other)) if named != *other => {
            let why = format!("--bridge {other} and the bridge {named} are two; name one");
            return Err(Failure::refused(why));
        }
        (Some(named), _) => SwitchAddress { bridge: Some(named), ..context.place.clone() },
        (None, _) => context.place.clone(),
    };
    for record in records(&place, command, json).await? {
        print(&mut context.out, record)?;
    }
    Ok(())
}

fn print(out: &mut Out<'_>, line: ControlLine) -> Result<(), Failure> {
    match line {
        ControlLine::Text(text) => out.sentences(&text),
        ControlLine::Value(value) => out.record("", || value),
        ControlLine::Done | ControlLine::Refused(_) => Ok(()),
    }
}

/// The records of an answer.
pub(super) async fn records(
    place: &SwitchAddress,
    command: ControlCommand,
    json: bool,
) -> Result<Vec<ControlLine>, Failure> {
    if let Some(endpoint) = &place.switch {
        return Err(Failure::refused(format!(
            "{endpoint} speaks OpenFlow, which has no message for this: ask our switch, by \
             --control"
        )));
    }
    let request = ControlRequest { json, bridge: place.bridge.clone(), command };
    let path = place.control.clone().unwrap_or_else(control::default_path);
    // On a thread of its own, so that --timeout ends the wait; it ends by itself soon after.
    let asked = tokio::task::spawn_blocking(move || control::ask(&path, &request)).await;
    Ok(asked.map_err(|error| Failure::refused(error.to_string()))??)
}

impl From<AskError> for Failure {
    fn from(error: AskError) -> Self {
        match error {
            AskError::Refused(why) => Self::Refused(why),
            AskError::Odd { .. } => Self::Refused(error.to_string()),
            AskError::Unreached { .. }
            | AskError::NotOurs { .. }
            | AskError::Silent { .. }
            | AskError::Broken { .. }
            | AskError::Closed => Self::Unreached(error.to_string()),
        }
    }
}
