//! The switch of a setup as a check sees it: its channel, and the far ends of its ports.
//!
//! It must never know a case: what is asked and what is expected is the crate `conformance`'s.

use std::time::{Duration, Instant};

use client::{Client, ClientError};
use conformance::cases::PlayedSwitch;
use conformance::{CheckError, CheckedSwitch};
use netdev::Port;
use openflow::Version;
use openflow::flow::FlowStatsRequest;
use openflow::message::{ErrorMessage, Message, MultipartReplyBody, MultipartRequestBody};
use packet::{Batch, PacketBuf};
use programs::cancel::{Cancel, Stopped};

use crate::setup::Setup;
use crate::switch_client::SwitchClient;

/// Longest way of a frame from port 1 to port 2.
const CROSSING: Duration = Duration::from_millis(150);

/// Frames taken at once.
const RX_BURST: usize = 64;

/// The switch of a setup.
pub struct SwitchAtPorts<'a> {
    client: SwitchClient,
    /// A channel of another version, once a case has one; why there is none, where that was tried.
    other: Option<(Version, Result<SwitchClient, String>)>,
    setup: &'a Setup,
    cancel: &'a Cancel,
    /// The far end of each port; none where its link is down.
    ports: Vec<Option<Port>>,
}

/// The place of a port among all of them.
fn index(port: u32) -> usize {
    (port as usize).wrapping_sub(1)
}

fn broken(error: impl std::fmt::Display) -> CheckError {
    CheckError::Broken(error.to_string())
}

/// An error of the channel: an interruption, a refusal, or else.
fn channel_error(error: impl Into<anyhow::Error>) -> CheckError {
    let error = error.into();
    if error.is::<Stopped>() {
        return CheckError::Stopped(Stopped);
    }
    let text = files::with_sources(error.as_ref());
    match error.downcast_ref::<ClientError>() {
        Some(ClientError::Cancelled) => CheckError::Stopped(Stopped),
        Some(ClientError::Refused { .. }) => CheckError::Refused(text),
        Some(ClientError::Encode(_)) => CheckError::Unsaid(text),
        Some(_) | None => CheckError::Broken(text),
    }
}

impl<'a> SwitchAtPorts<'a> {
    /// Opens the far ends of the ports; `client` speaks the version of the setup.
    pub fn new(
        client: SwitchClient,
        setup: &'a Setup,
        cancel: &'a Cancel,
    ) -> Result<Self, CheckError> {
        if let Some(bed) = setup.bed().kernel() {
            bed.silence_hosts().map_err(broken)?;
        }
        let ports = setup.bed().open_ports().map_err(broken)?.into_iter().map(Some).collect();
        let mut switch = Self { client, other: None, setup, cancel, ports };
        switch.client.want_packet_ins().map_err(channel_error)?;
        Ok(switch)
    }

    fn port(&mut self, number: u32) -> Result<&mut Port, CheckError> {
        let port = self.ports.get_mut(index(number)).and_then(Option::as_mut);
        port.ok_or_else(|| broken(format!("port {number} has no link to the lab")))
    }

    fn open(&self, version: Version) -> Result<SwitchClient, CheckError> {
        let mut client = self.setup.connect(version, 0, self.cancel).map_err(channel_error)?;
        client.want_packet_ins().map_err(channel_error)?;
        Ok(client)
    }

    fn channel(&mut self, version: Version) -> Result<&mut SwitchClient, CheckError> {
        if version == self.setup.version {
            return Ok(&mut self.client);
        }
        let opened = match self.other.take().filter(|(known, _)| *known == version) {
            Some((_, opened)) => opened,
            None => match self.open(version) {
                Err(CheckError::Stopped(stopped)) => return Err(stopped.into()),
                opened => opened.map_err(|error| error.to_string()),
            },
        };
        let (_, opened) = self.other.insert((version, opened));
        opened.as_mut().map_err(broken)
    }
}

impl CheckedSwitch for SwitchAtPorts<'_> {
    fn clear(&mut self) -> Result<(), CheckError> {
        self.client.clear().map_err(channel_error)
    }

    fn send(&mut self, messages: Vec<Message>) -> Result<(u64, Option<String>), CheckError> {
        let loaded = Client::load(&mut self.client, messages).map_err(channel_error)?;
        let refusal = loaded.refusals.first().map(|refusal| refusal.why.to_string());
        Ok((loaded.messages.saturating_sub(loaded.refused), refusal))
    }

    fn multipart(&mut self, body: MultipartRequestBody) -> Result<MultipartReplyBody, CheckError> {
        self.client.multipart(body).map_err(channel_error)
    }

    fn entries(&mut self) -> Result<u64, CheckError> {
        Ok(self.client.count_flows(FlowStatsRequest::all()).map_err(channel_error)?.entries)
    }

    fn forwards(&mut self, frames: &[Vec<u8>]) -> Result<Vec<bool>, CheckError> {
        // What came late of an earlier question is none of this one.
        self.take(2)?;
        let sent: Vec<PacketBuf> = frames.iter().map(|one| PacketBuf::from_slice(one)).collect();
        let taken = self.port(1)?.tx(&sent).map_err(broken)?;
        let mut came = vec![false; frames.len()];
        let begun = Instant::now();
        while came.iter().take(taken).any(|came| !came) && begun.elapsed() < CROSSING {
            let arrived = self.take(2)?;
            if arrived.is_empty() {
                std::thread::yield_now();
            }
            for (came, sent) in came.iter_mut().zip(frames) {
                // Padding may follow.
                *came |= arrived.iter().any(|frame| frame.starts_with(sent));
            }
        }
        Ok(came)
    }
}

impl PlayedSwitch for SwitchAtPorts<'_> {
    fn ports(&self) -> u32 {
        u32::try_from(self.ports.len()).unwrap_or(u32::MAX)
    }

    fn has_links(&self) -> bool {
        self.setup.bed().kernel().is_some()
    }

    fn reset(&mut self) -> Result<(), CheckError> {
        self.clear()?;
        for port in 1..=PlayedSwitch::ports(self) {
            self.take(port)?;
        }
        self.client.take_unclaimed().map_err(channel_error)?;
        if let Some((_, Ok(client))) = &mut self.other {
            client.take_unclaimed().map_err(channel_error)?;
        }
        Ok(())
    }

    fn reconnect(&mut self) -> Result<(), CheckError> {
        self.other = None;
        self.client = self.open(self.setup.version)?;
        Ok(())
    }

    fn carry_out(
        &mut self,
        version: Version,
        message: &Message,
    ) -> Result<(Option<ErrorMessage>, Vec<Message>), CheckError> {
        self.channel(version)?.carry_out(message).map_err(channel_error)
    }

    fn came(&mut self, version: Version) -> Result<Vec<Message>, CheckError> {
        let came = self.channel(version)?.take_unclaimed().map_err(channel_error)?;
        Ok(came.into_iter().map(|(_, message)| message).collect())
    }

    fn ask(&mut self, message: &Message) -> Result<Message, CheckError> {
        self.client.request(message).map_err(channel_error)
    }

    fn statistics(&mut self, body: MultipartRequestBody) -> Result<MultipartReplyBody, CheckError> {
        self.multipart(body)
    }

    fn put(&mut self, port: u32, frame: &[u8]) -> Result<(), CheckError> {
        let frames = [PacketBuf::from_slice(frame)];
        let begun = Instant::now();
        while self.port(port)?.tx(&frames).map_err(broken)? == 0 {
            if begun.elapsed() > CROSSING {
                return Err(broken(format!("port {port} takes no frame of the lab")));
            }
            std::thread::yield_now();
        }
        Ok(())
    }

    fn take(&mut self, port: u32) -> Result<Vec<Vec<u8>>, CheckError> {
        let Some(Some(port)) = self.ports.get_mut(index(port)) else { return Ok(Vec::new()) };
        let (mut batch, mut frames) = (Batch::default(), Vec::new());
        while port.rx(&mut batch, RX_BURST).map_err(broken)? > 0 {
            frames.extend(batch.frames().iter().map(|frame| frame.bytes().to_vec()));
            batch.clear();
        }
        Ok(frames)
    }

    fn set_link(&mut self, port: u32, is_up: bool) -> Result<(), CheckError> {
        let index = index(port);
        let slot = self.ports.get_mut(index);
        let slot = slot.ok_or_else(|| broken(format!("there is no port {port}")))?;
        if slot.is_some() == is_up {
            return Ok(());
        }
        *slot = None;
        let bed = self.setup.bed().kernel();
        let bed = bed.ok_or_else(|| broken("the links are not the lab's"))?;
        bed.set_link(index, is_up).map_err(broken)?;
        if is_up {
            self.ports[index] = Some(bed.open_port(index).map_err(broken)?);
        }
        Ok(())
    }
}
