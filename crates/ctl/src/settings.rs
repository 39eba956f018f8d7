//! The switch as a whole: who made it, and how it is set.

use clap::Args;
use openflow::Message;
use openflow::message::{MultipartRequestBody, SwitchConfig};

use super::context::{CommandContext, Execute};
use super::failure::Failure;
use super::session::odd;

/// Manufacturer, hardware and software of the switch
#[derive(Args, Clone, Debug)]
#[command(after_help = "Example:\n  weir ctl dump-desc")]
pub(super) struct DumpDesc {}

impl Execute for DumpDesc {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        context.describe(MultipartRequestBody::Desc).await
    }
}

/// The bits of the flags that say what becomes of fragments.
const FRAGMENTS: u16 = 3;

/// Treatments of IP fragments, by the number of the flags.
pub const FRAGMENT_MODES: [&str; 3] = ["normal", "drop", "reassemble"];

/// Settings of the switch.
async fn config(context: &mut CommandContext<'_>) -> Result<SwitchConfig, Failure> {
    match context.session().await?.ask(&Message::GetConfigRequest).await? {
        (_, Message::GetConfigReply(config)) => Ok(config),
        (_, other) => Err(odd(&other)),
    }
}

fn mode(config: SwitchConfig) -> String {
    let number = config.flags & FRAGMENTS;
    let mode = FRAGMENT_MODES.get(usize::from(number));
    mode.map_or_else(|| number.to_string(), ToString::to_string)
}

/// Sets the switch, and looks whether it did: some switches take it and do nothing.
async fn set(context: &mut CommandContext<'_>, wanted: SwitchConfig) -> Result<(), Failure> {
    context.change(Message::SetConfig(wanted)).await?;
    let held = config(context).await?;
    if held.flags & FRAGMENTS == wanted.flags & FRAGMENTS {
        return Ok(());
    }
    let (held, wanted) = (mode(held), mode(wanted));
    Err(Failure::Refused(format!("the switch stays with {held} fragments; it cannot {wanted}")))
}

fn fragments(text: &str) -> Result<u16, Failure> {
    let place = FRAGMENT_MODES.iter().position(|mode| *mode == text);
    place.and_then(|place| u16::try_from(place).ok()).ok_or_else(|| {
        Failure::NotUnderstood(format!("unknown mode {text:?}; use normal, drop or reassemble"))
    })
}

/// Treatment of IP fragments
#[derive(Args, Clone, Debug)]
#[command(after_help = "Example:\n  weir ctl get-frags")]
pub(super) struct GetFrags {}

impl Execute for GetFrags {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        let mode = mode(config(context).await?);
        context.out.record(&mode, || serde_json::json!({ "frags": mode }))
    }
}

/// Treat IP fragments from now on as normal packets, drop or reassemble them
#[derive(Args, Clone, Debug)]
#[command(after_help = "Example:\n  weir ctl set-frags drop")]
pub(super) struct SetFrags {
    /// normal, drop or reassemble
    mode: String,
}

impl Execute for SetFrags {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        let flags = fragments(&self.mode)?;
        let held = config(context).await?;
        let flags = held.flags & !FRAGMENTS | flags;
        set(context, SwitchConfig { flags, ..held }).await
    }
}

/// Treatment of fragments, and the bytes of a buffered packet that go to the controller
#[derive(Args, Clone, Debug)]
#[command(after_help = "Example:\n  weir ctl get-config")]
pub(super) struct GetConfig {}

impl Execute for GetConfig {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        context.show(&Message::GetConfigRequest).await
    }
}

/// Set either or both of what get-config shows
#[derive(Args, Clone, Debug)]
#[command(after_help = "Example:\n  weir ctl set-config --frags normal --miss-send-len 128")]
pub(super) struct SetConfig {
    /// normal, drop or reassemble
    #[arg(long, value_name = "MODE", required_unless_present = "miss_send_len")]
    frags: Option<String>,
    /// Bytes of a packet that the switch buffers, in a packet-in that no action asked for
    #[arg(long, value_name = "BYTES")]
    miss_send_len: Option<u16>,
}

impl Execute for SetConfig {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        let flags = self.frags.as_deref().map(fragments).transpose()?;
        let held = config(context).await?;
        let flags = flags.map_or(held.flags, |flags| held.flags & !FRAGMENTS | flags);
        let miss_send_len = self.miss_send_len.unwrap_or(held.miss_send_len);
        set(context, SwitchConfig { flags, miss_send_len }).await
    }
}

/// Asynchronous messages of this connection, as master or equal and as slave
#[derive(Args, Clone, Debug)]
#[command(after_help = "The masks belong to a connection and end with it, so that there is no \
command to set them: monitor
does so for itself.

Example:
  weir ctl get-async")]
pub(super) struct GetAsync {}

impl Execute for GetAsync {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        context.show(&Message::GetAsyncRequest).await
    }
}
