//! A controller's events as the page's: a kind, a switch, a line for people.

use crate::events::{NetworkEvents, SeenEvent};
use controller::{ControllerEvent, EventError, EventReceiver, Handle, HostEvent, LinkEvent};
use controller::{SwitchPort, TopologyHost, TopologyLink};
use openflow::PortNo;
use openflow::port::{PortConfig, PortReason, PortState, PortStatus};
use std::future::Future;
use std::pin::Pin;

/// The events of a controller.
pub struct ControllerEvents {
    handle: Handle,
    events: EventReceiver,
}

impl From<&Handle> for ControllerEvents {
    fn from(handle: &Handle) -> Self {
        Self { handle: handle.clone(), events: handle.events_but_packet_ins() }
    }
}

impl NetworkEvents for ControllerEvents {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<SeenEvent>> + Send + '_>> {
        Box::pin(async move {
            loop {
                let seen = match self.events.recv().await {
                    Ok(event) => of_event(&self.handle, &event),
                    Err(EventError::Lagged(count)) => Some(SeenEvent::lagged(count)),
                    Err(EventError::Ended | EventError::WouldBlock) => return None,
                };
                if seen.is_some() {
                    return seen;
                }
            }
        })
    }
}

/// The line of an event; none for answers to questions and for packets, which are too many.
#[expect(clippy::wildcard_enum_match_arm, reason = "an event without a line has its name")]
fn of_event(handle: &Handle, event: &ControllerEvent) -> Option<SeenEvent> {
    if matches!(event, ControllerEvent::PacketIn { .. } | ControllerEvent::Message { .. }) {
        return None;
    }
    let (kind, dpid, text) = match event {
        ControllerEvent::SwitchReady(info) => {
            let (dpid, version, ports) = (info.dpid, info.version, info.ports.len());
            let text = format!("switch {dpid} is ready: {version}, {ports} ports");
            ("switch-ready", Some(dpid), text)
        }
        ControllerEvent::SwitchDown(dpid) => {
            ("switch-down", Some(*dpid), format!("switch {dpid} is gone"))
        }
        ControllerEvent::PortStatus { dpid, status } => {
            let kind = if is_down(status) { "port-down" } else { "port-status" };
            (kind, Some(*dpid), format!("switch {dpid}: {}", of_port(status)))
        }
        ControllerEvent::FlowRemoved { dpid, removed } => {
            let (table, priority) = (removed.table_id.0, removed.priority);
            let (packets, bytes) = (removed.packet_count, removed.byte_count);
            let text = format!(
                "switch {dpid}: a flow entry of table {table}, priority {priority}, is removed \
                 after {packets} packets, {bytes} bytes"
            );
            ("flow-removed", Some(*dpid), text)
        }
        ControllerEvent::Error { dpid, xid, error } => {
            let (info, number) = (handle.switch(*dpid), xid.0);
            let gone = || format!("error of type {}, code {}", error.error_type, error.code);
            let why = info.map_or_else(gone, |info| error.explained(info.version));
            let text = format!("switch {dpid} refuses message {number}: {why}");
            ("error", Some(*dpid), text)
        }
        ControllerEvent::Link(LinkEvent::Up(link)) => {
            ("link-up", Some(link.from.dpid), format!("link {} is up", of_link(link)))
        }
        ControllerEvent::Link(LinkEvent::Down(link)) => {
            ("link-down", Some(link.from.dpid), format!("link {} is down", of_link(link)))
        }
        ControllerEvent::Host(HostEvent::Up(host)) => {
            ("host-up", Some(host.at.dpid), format!("host {} is at {}", of_host(host), at(host.at)))
        }
        ControllerEvent::Host(HostEvent::Moved { host, from }) => {
            let text =
                format!("host {} moved from {} to {}", of_host(host), at(*from), at(host.at));
            ("host-moved", Some(host.at.dpid), text)
        }
        ControllerEvent::Host(HostEvent::Changed(host)) => (
            "host-changed",
            Some(host.at.dpid),
            format!("host {} has other addresses", of_host(host)),
        ),
        ControllerEvent::Host(HostEvent::Down(host)) => {
            ("host-down", Some(host.at.dpid), format!("host {} is gone", of_host(host)))
        }
        ControllerEvent::RoleChanged { dpid, change } => {
            let (role, reason) = (change.role_name(), change.reason.text());
            let text = format!("switch {dpid}: this controller is {role} ({reason})");
            ("role-changed", Some(*dpid), text)
        }
        other => {
            let (name, dpid) = (other.handler_name(), other.dpid());
            let of = dpid.map_or_else(String::new, |dpid| format!("switch {dpid}: "));
            (name, dpid, format!("{of}{name}"))
        }
    };
    Some(SeenEvent { kind, dpid, text })
}

fn is_down(status: &PortStatus) -> bool {
    let port = &status.desc;
    let is_off = port.config.contains(PortConfig::PORT_DOWN);
    status.reason == PortReason::Delete || port.state.contains(PortState::LINK_DOWN) || is_off
}

fn of_port(status: &PortStatus) -> String {
    let port = &status.desc;
    let what = match status.reason {
        PortReason::Add => "is added",
        PortReason::Delete => "is removed",
        PortReason::Modify | PortReason::Unknown(_) if is_down(status) => "is down",
        PortReason::Modify | PortReason::Unknown(_) => "is up",
    };
    format!("port {} ({}) {what}", port.port_no, port.name)
}

fn at(place: SwitchPort) -> String {
    let SwitchPort { dpid, port: PortNo(port) } = place;
    format!("switch {dpid} port {port}")
}

fn of_link(link: &TopologyLink) -> String {
    format!("{} to {}", at(link.from), at(link.to))
}

fn of_host(host: &TopologyHost) -> String {
    host.ipv4.first().map_or_else(|| host.mac.to_string(), |ip| format!("{} ({ip})", host.mac))
}
