//! Meters: shown, added, changed, deleted.

use clap::Args;
use openflow::message::MultipartRequestBody;
use openflow::meter::MeterModCommand;
use openflow::text::parse_meter_mod;
use openflow::{Message, MeterId};

use super::context::{CommandContext, Execute};
use super::failure::Failure;
use super::messages::{Bundled, Line, carry_out, lines_of, lines_or_stdin};

/// Reads the argument of a command that shows meters: `7`, `meter=7`, `all` or nothing.
fn which(meter: Option<&str>) -> Result<MeterId, Failure> {
    let Some(text) = meter else { return Ok(MeterId::ALL) };
    let line = Line::argument("meter", text);
    Ok(line.read_id("meter", |text| parse_meter_mod(text, MeterModCommand::Delete))?.meter_id)
}

/// Meters with their bands, all or one
#[derive(Args, Clone, Debug)]
#[command(
    alias = "dump-meter",
    after_help = "Examples:\n  weir ctl dump-meters\n  weir ctl dump-meters meter=1"
)]
pub(super) struct DumpMeters {
    /// The meter, as 1 or meter=1
    meter: Option<String>,
}

impl Execute for DumpMeters {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        let which = which(self.meter.as_deref())?;
        context.describe(MultipartRequestBody::MeterConfig(which)).await
    }
}

/// Counters of meters and their bands, all or of one
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  weir ctl meter-stats\n  weir ctl meter-stats meter=1")]
pub(super) struct MeterStats {
    /// The meter, as 1 or meter=1
    meter: Option<String>,
}

impl Execute for MeterStats {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        let which = which(self.meter.as_deref())?;
        context.describe(MultipartRequestBody::Meter(which)).await
    }
}

/// Features of meters
#[derive(Args, Clone, Debug)]
#[command(after_help = "Example:\n  weir ctl meter-features")]
pub(super) struct MeterFeatures {}

impl Execute for MeterFeatures {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        context.describe(MultipartRequestBody::MeterFeatures).await
    }
}

/// Add a meter
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:
  weir ctl add-meter meter=1,kbps,band=type=drop,rate=1000
  weir ctl add-meter meter=2,pktps,burst,stats,band=type=drop,rate=1000,burst_size=100
  weir ctl add-meter meter=3,kbps,band=type=dscp_remark,rate=1000,prec_level=1")]
pub(super) struct AddMeter {
    /// The meter, or - for lines of the standard input
    meter: String,
}

impl Execute for AddMeter {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        send(context, &lines_or_stdin("meter", &self.meter)?, MeterModCommand::Add).await
    }
}

/// Add the meters of a file
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "A line is a meter as add-meter takes it. Behind # stands a comment. Nothing \
is sent when a line
is not understood; a refusal of the switch is reported with its line, and does not keep the others
away.

Examples:
  weir ctl add-meters meters.txt
  weir ctl add-meters - < meters.txt"
)]
pub(super) struct AddMeters {
    /// The file, or - for the standard input
    file: String,
}

impl Execute for AddMeters {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        send(context, &lines_of(&self.file)?, MeterModCommand::Add).await
    }
}

/// Change a meter: flags and bands
#[derive(Args, Clone, Debug)]
#[command(after_help = "Example:\n  weir ctl mod-meter meter=1,kbps,band=type=drop,rate=2000")]
pub(super) struct ModMeter {
    /// The meter, or - for lines of the standard input
    meter: String,
}

impl Execute for ModMeter {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        send(context, &lines_or_stdin("meter", &self.meter)?, MeterModCommand::Modify).await
    }
}

/// Delete meters, all or one; flow entries that use them go along
#[derive(Args, Clone, Debug)]
#[command(
    alias = "del-meter",
    after_help = "Examples:\n  weir ctl del-meters\n  weir ctl del-meters meter=1"
)]
pub(super) struct DelMeters {
    /// The meter, as meter=1, or - for lines of the standard input
    meter: Option<String>,
}

impl Execute for DelMeters {
    async fn execute(self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        let lines = lines_or_stdin("meter", self.meter.as_deref().unwrap_or_default())?;
        send(context, &lines, MeterModCommand::Delete).await
    }
}

/// Reads all lines, then has the switch carry them out.
async fn send(
    context: &mut CommandContext<'_>,
    lines: &[Line],
    command: MeterModCommand,
) -> Result<(), Failure> {
    let read = lines.iter().map(|line| line.read(|text| parse_meter_mod(text, command)));
    let messages = read.collect::<Result<Vec<_>, _>>()?.into_iter().map(Message::MeterMod);
    carry_out(context, lines, messages.collect(), Bundled::default()).await
}
