//! The bench's questions over the control socket, by which `weir ctl --json` asks too.
//!
//! A question takes some tens of microseconds, so that a time series can be made of it. Nothing may
//! be changed this way; changes go over OpenFlow.

use std::path::Path;

use anyhow::{Context, Result};
use control::{ControlCommand, ControlLine, ControlRequest};
use serde_json::Value;

/// The values that the switch at `socket` answers.
///
/// # Errors
/// Nobody answers, or the switch refuses.
pub(super) fn ask(socket: &Path, command: ControlCommand) -> Result<Vec<Value>> {
    let request = ControlRequest { json: true, bridge: None, command };
    let lines = control::ask(socket, &request)
        .with_context(|| format!("asking for {:?}", request.command))?;
    let values = lines.into_iter().filter_map(|line| match line {
        ControlLine::Value(value) => Some(value),
        ControlLine::Text(_) | ControlLine::Done | ControlLine::Refused(_) => None,
    });
    Ok(values.collect())
}
