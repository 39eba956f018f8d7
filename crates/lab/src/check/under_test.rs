//! What a check needs of a switch, and the switch of a setup: its channel, and the far ends of its
//! ports.

use std::time::{Duration, Instant};

use netdev::Port;
use openflow::message::{Message, MultipartReplyBody, MultipartRequestBody};
use packet::{Batch, PacketBuf};

use crate::cancel::Stopped;
use crate::setup::Setup;
use crate::switch_client::{RefusedMessage, SwitchClient};

/// How long a frame may take from port 1 to port 2.
const CROSSING: Duration = Duration::from_millis(150);

/// Frames taken at once.
const RX_BURST: usize = 64;

/// Why a check ended.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The switch refuses a question.
    #[error("{0}")]
    Refused(String),
    /// The channel or a port failed.
    #[error("{0}")]
    Broken(String),
    /// It was interrupted.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// A switch that can be checked. Every call fails when its channel or a port does.
#[expect(clippy::missing_errors_doc, reason = "the same errors for all, which its text says")]
pub trait CheckedSwitch {
    /// Deletes all entries, groups and meters.
    fn clear(&mut self) -> Result<(), CheckError>;

    /// Sends messages and a barrier, and waits for its answer; the first refusal.
    fn send(&mut self, messages: Vec<Message>) -> Result<Option<String>, CheckError>;

    /// The same; how many were not refused.
    fn send_each(&mut self, messages: Vec<Message>) -> Result<u64, CheckError>;

    /// Asks for statistics.
    fn multipart(&mut self, body: MultipartRequestBody) -> Result<MultipartReplyBody, CheckError>;

    /// How many flow entries it says that it holds.
    fn entries(&mut self) -> Result<u64, CheckError>;

    /// Puts frames in at port 1; which of them came out at port 2 as they were.
    fn forwards(&mut self, frames: &[Vec<u8>]) -> Result<Vec<bool>, CheckError>;
}

/// The switch of a setup.
pub struct SwitchAtPorts<'a> {
    client: SwitchClient,
    setup: &'a Setup,
    ports: Vec<Port>,
}

fn broken(error: impl std::fmt::Display) -> CheckError {
    CheckError::Broken(error.to_string())
}

/// An error of the channel: an interruption, a refusal, or else.
fn channel_error(error: &anyhow::Error) -> CheckError {
    if error.is::<Stopped>() {
        return CheckError::Stopped(Stopped);
    }
    let text = format!("{error:#}");
    match error.downcast_ref::<client::ClientError>() {
        Some(client::ClientError::Refused { .. }) => CheckError::Refused(text),
        Some(_) | None => CheckError::Broken(text),
    }
}

impl<'a> SwitchAtPorts<'a> {
    /// Opens the far ends of the ports.
    ///
    /// # Errors
    /// A port cannot be opened, or there are fewer than two.
    pub fn new(client: SwitchClient, setup: &'a Setup) -> Result<Self, CheckError> {
        let ports = setup.bed().open_ports().map_err(broken)?;
        if ports.len() < 2 {
            return Err(CheckError::Broken("a check needs two ports".to_owned()));
        }
        Ok(Self { client, setup, ports })
    }
}

impl Drop for SwitchAtPorts<'_> {
    fn drop(&mut self) {
        self.setup.bed().give_back(std::mem::take(&mut self.ports));
    }
}

impl CheckedSwitch for SwitchAtPorts<'_> {
    fn clear(&mut self) -> Result<(), CheckError> {
        self.client.clear().map_err(|error| channel_error(&error))
    }

    fn send(&mut self, messages: Vec<Message>) -> Result<Option<String>, CheckError> {
        match self.client.send_all(messages) {
            Ok(()) => Ok(None),
            Err(error) => match error.downcast_ref::<RefusedMessage>() {
                Some(refused) => Ok(Some(refused.why.clone())),
                None => Err(channel_error(&error)),
            },
        }
    }

    fn send_each(&mut self, messages: Vec<Message>) -> Result<u64, CheckError> {
        self.client.count_taken(messages).map_err(|error| channel_error(&error))
    }

    fn multipart(&mut self, body: MultipartRequestBody) -> Result<MultipartReplyBody, CheckError> {
        self.client.multipart(body).map_err(|error| channel_error(&error))
    }

    fn entries(&mut self) -> Result<u64, CheckError> {
        Ok(self.client.list_flows().map_err(|error| channel_error(&error))?.entries)
    }

    fn forwards(&mut self, frames: &[Vec<u8>]) -> Result<Vec<bool>, CheckError> {
        let [near, far, ..] = &mut self.ports[..] else {
            return Err(CheckError::Broken("a check needs two ports".to_owned()));
        };
        let mut batch = Batch::default();
        // What came late of an earlier question is none of this one.
        while far.rx(&mut batch, RX_BURST).map_err(broken)? > 0 {
            batch.clear();
        }
        let sent: Vec<PacketBuf> = frames.iter().map(|one| PacketBuf::from_slice(one)).collect();
        let taken = near.tx(&sent).map_err(broken)?;
        let mut came = vec![false; frames.len()];
        let begun = Instant::now();
        while came.iter().take(taken).any(|came| !came) && begun.elapsed() < CROSSING {
            if far.rx(&mut batch, RX_BURST).map_err(broken)? == 0 {
                std::thread::yield_now();
            }
            for frame in batch.frames() {
                // Padding may follow.
                let is = |sent: &Vec<u8>| frame.bytes().starts_with(sent);
                if let Some(index) = frames.iter().position(is) {
                    came[index] = true;
                }
            }
            batch.clear();
        }
        Ok(came)
    }
}
