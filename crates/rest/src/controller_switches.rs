//! A controller's handle and topology as what REST asks.

use crate::datapath::{Failure, RestFuture, ServedSwitch, ServedSwitches};
use crate::services::{LinkEnd, NetworkMap, SeenHost};
use controller::topology::Topology;
use controller::{Handle, HandleError, SwitchInfo, SwitchPort};
use openflow::message::ErrorMessage;
use openflow::{DatapathId, Message, Xid};

impl NetworkMap for Topology {
    fn links(&self) -> Vec<(LinkEnd, LinkEnd)> {
        let links = self.links().into_iter();
        links.map(|link| (of_port(link.from), of_port(link.to))).collect()
    }

    fn hosts(&self) -> Vec<SeenHost> {
        let hosts = self.hosts().into_iter();
        hosts
            .map(|host| SeenHost {
                mac: host.mac,
                ipv4: host.ipv4,
                ipv6: host.ipv6,
                place: of_port(host.at),
            })
            .collect()
    }
}

fn of_port(port: SwitchPort) -> LinkEnd {
    LinkEnd { dpid: port.dpid, port: port.port }
}

impl ServedSwitches for Handle {
    fn all(&self) -> Vec<ServedSwitch> {
        self.switches().iter().map(of_info).collect()
    }

    fn get(&self, dpid: DatapathId) -> Option<ServedSwitch> {
        self.switch(dpid).as_ref().map(of_info)
    }

    fn request(&self, dpid: DatapathId, message: Message) -> RestFuture<Result<Message, Failure>> {
        let handle = self.clone();
        Box::pin(async move { handle.request(dpid, message).await.map_err(failure) })
    }

    fn apply(&self, dpid: DatapathId, messages: Vec<Message>) -> RestFuture<Result<(), Failure>> {
        let handle = self.clone();
        Box::pin(async move { handle.apply(dpid, messages).await.map_err(failure) })
    }
}

fn of_info(info: &SwitchInfo) -> ServedSwitch {
    ServedSwitch {
        dpid: info.dpid,
        version: info.version,
        features: info.features.clone(),
        ports: info.ports.values().cloned().collect(),
    }
}

fn failure(error: HandleError) -> Failure {
    match error {
        HandleError::NoSwitch(dpid) => Failure::NoSwitch(dpid),
        HandleError::Full(dpid) => Failure::Full(dpid),
        HandleError::Refused { index, error, .. } => {
            Failure::Refused { index, xid: quoted_xid(&error), error }
        }
        HandleError::NotEncodable { error, .. } => Failure::NotEncodable(error.to_string()),
        HandleError::Silent(after) => Failure::Silent(after),
        HandleError::Gone => Failure::Gone,
        HandleError::Blocked(_)
        | HandleError::NoReply(_)
        | HandleError::Unanswered(_)
        | HandleError::Unexpected(_)
        | HandleError::EventsFull(_)
        | HandleError::NoCluster
        | HandleError::WouldBlock => Failure::Odd(error.to_string()),
    }
}

/// The transaction number in the beginning of the message that an error quotes (clause 7.4.4).
fn quoted_xid(error: &ErrorMessage) -> Option<Xid> {
    let bytes = error.data.get(4..8)?.try_into().ok()?;
    Some(Xid(u32::from_be_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::quoted_xid;
    use openflow::message::ErrorMessage;
    use openflow::{Error, Message, Version, Xid};

    #[test]
    fn the_number_of_the_message_that_is_quoted_is_read() {
        let version = Version::V1_3;
        let quoted = wire::encode(version, Xid(0x0102_0304), &Message::BarrierRequest).unwrap();
        let error = ErrorMessage::new(version, Error::BadRequestEperm, quoted);
        assert_eq!(quoted_xid(&error), Some(Xid(0x0102_0304)));
        let error = ErrorMessage::new(version, Error::BadRequestEperm, vec![1, 2, 3]);
        assert_eq!(quoted_xid(&error), None);
    }
}
