//! Names of a switch's ports, which its texts may have in place of numbers.

use clap::Args;
use openflow::Message;
use openflow::message::{MultipartReplyBody, MultipartRequestBody};
use openflow::port::PortDesc;
use openflow::text::PortNames;

use super::context::CommandContext;
use super::failure::Failure;

/// The descriptions of all ports.
pub(super) async fn descriptions(
    context: &mut CommandContext<'_>,
) -> Result<Vec<PortDesc>, Failure> {
    if context.session().await?.version.has_port_desc() {
        let answer = context.statistics(MultipartRequestBody::PortDesc).await?;
        let MultipartReplyBody::PortDesc(ports) = answer else {
            return Err(Failure::refused("the switch gave another answer than asked"));
        };
        return Ok(ports);
    }
    let (_, answer) = context.session().await?.ask(&Message::FeaturesRequest).await?;
    if let Message::FeaturesReply(features) = answer {
        Ok(features.ports)
    } else {
        Err(super::session::odd(&answer))
    }
}

/// The names of all ports.
pub(super) async fn names(context: &mut CommandContext<'_>) -> Result<PortNames, Failure> {
    let ports = descriptions(context).await?;
    Ok(PortNames::new(ports.iter().map(|port| (port.name.as_str(), port.port_no))))
}

/// Naming of ports in the output.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct Naming {
    /// Print ports by their names, as a terminal gets them; not with --json
    #[arg(long, overrides_with = "no_names")]
    names: bool,
    /// Print ports by their numbers, as files and pipes get them
    #[arg(long, overrides_with = "names")]
    no_names: bool,
}

impl Naming {
    /// The names by which ports are printed; none where numbers are. A switch that refuses to
    /// describe its ports leaves them their numbers.
    pub(super) async fn port_names(
        self,
        context: &mut CommandContext<'_>,
    ) -> Result<PortNames, Failure> {
        let by_name = self.names || (context.out.is_for_people() && !self.no_names);
        if !by_name || context.out.is_json() {
            return Ok(PortNames::default());
        }
        match names(context).await {
            Err(Failure::Refused(_)) => Ok(PortNames::default()),
            outcome => outcome,
        }
    }
}
