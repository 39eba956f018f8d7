//! The commands of a bridge: those messages of a controller that concern the datapath, as opposed
//! to its connection (hello, echo, roles, masks).

use openflow::flow::{FlowForm, FlowMod};
use openflow::group::GroupMod;
use openflow::message::{
    MultipartRequest, MultipartRequestBody, PacketIn, PacketOut, SwitchConfig,
};
use openflow::meter::MeterMod;
use openflow::port::PortMod;
use openflow::table::TableMod;
use openflow::{Error, PortNo};

use super::bundle::BundleCommit;

/// A command.
#[derive(Debug)]
pub(crate) enum BridgeCommand {
    /// Packet-out (clause 7.3.7).
    PacketOut(PacketOut),
    /// A packet that has waited for the controller goes on (`NXT_RESUME`).
    Resume(PacketIn),
    /// Flow-mod (clause 6.4).
    FlowMod(FlowMod),
    /// Group-mod (clause 6.5).
    GroupMod(GroupMod),
    /// Meter-mod (clause 6.6).
    MeterMod(MeterMod),
    /// Port-mod (clause 7.3.4.3).
    PortMod(PortMod),
    /// Table-mod (clause 7.3.3).
    TableMod(TableMod),
    /// The commit of a bundle (clause 7.3.9 of 1.4).
    Bundle(BundleCommit),
    /// Barrier request (clause 7.3.8).
    Barrier,
    /// Features request (clause 7.3.1).
    Features,
    /// Get-config request (clause 7.3.2), with flags of the connection that are not the bridge's.
    GetConfig {
        /// The flags.
        flags: u16,
    },
    /// Set-config (clause 7.3.2).
    SetConfig(SwitchConfig),
    /// Queue-get-config request (clause 7.3.6).
    QueueGetConfig(PortNo),
    /// Multipart request (clause 7.3.5).
    Multipart(MultipartRequest),
}

impl BridgeCommand {
    /// Form of the flow entries in its reply.
    pub(crate) fn form(&self) -> FlowForm {
        match self {
            Self::Multipart(MultipartRequest {
                body: MultipartRequestBody::Flow(asked) | MultipartRequestBody::Aggregate(asked),
                ..
            }) => asked.form,
            Self::PacketOut(_)
            | Self::Resume(_)
            | Self::FlowMod(_)
            | Self::GroupMod(_)
            | Self::MeterMod(_)
            | Self::PortMod(_)
            | Self::TableMod(_)
            | Self::Bundle(_)
            | Self::SetConfig(_)
            | Self::Barrier
            | Self::Features
            | Self::GetConfig { .. }
            | Self::QueueGetConfig(_)
            | Self::Multipart(_) => FlowForm::Standard,
        }
    }

    /// Whether a slave may send it: it sends no packet and changes nothing (clause 6.3.5).
    ///
    /// # Errors
    /// `OFPBRC_IS_SLAVE` where it may not.
    pub(crate) fn check_slave(&self) -> Result<(), Error> {
        match self {
            Self::PacketOut(_)
            | Self::Resume(_)
            | Self::FlowMod(_)
            | Self::GroupMod(_)
            | Self::MeterMod(_)
            | Self::PortMod(_)
            | Self::TableMod(_)
            | Self::Bundle(_)
            | Self::SetConfig(_) => Err(Error::BadRequestIsSlave),
            Self::Multipart(MultipartRequest { body, .. }) if changes_tables(body) => {
                Err(Error::BadRequestIsSlave)
            }
            Self::Barrier
            | Self::Features
            | Self::GetConfig { .. }
            | Self::QueueGetConfig(_)
            | Self::Multipart(_) => Ok(()),
        }
    }
}

/// Whether a multipart request sets table features: the only one that changes the switch.
fn changes_tables(body: &MultipartRequestBody) -> bool {
    matches!(body, MultipartRequestBody::TableFeatures(tables) if !tables.is_empty())
}

#[cfg(test)]
mod tests {
    use openflow::TableId;
    use openflow::flow::{FlowMod, FlowModCommand};
    use openflow::table::TableFeatures;

    use super::*;

    #[test]
    fn a_slave_reads_and_changes_nothing() {
        let multipart = |tables| {
            let body = MultipartRequestBody::TableFeatures(tables);
            BridgeCommand::Multipart(MultipartRequest { more: false, body })
        };
        assert!(multipart(Vec::new()).check_slave().is_ok());
        assert!(BridgeCommand::Barrier.check_slave().is_ok());
        let set = multipart(vec![TableFeatures {
            table_id: TableId(0),
            name: String::new(),
            metadata_match: 0,
            metadata_write: 0,
            config: 0,
            max_entries: 1,
            properties: Vec::new(),
        }]);
        let flow_mod = BridgeCommand::FlowMod(FlowMod::new(FlowModCommand::Add));
        for refused in [set, flow_mod] {
            assert_eq!(refused.check_slave(), Err(Error::BadRequestIsSlave));
        }
    }
}
