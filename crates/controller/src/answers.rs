//! The requests on one connection that wait for an answer: whose they are and how long they wait.
//!
//! A switch that never answers must not make this grow: requests and the entries of an answer are
//! bounded, a handle's request is given up after its time, and an app's after a minute.

use crate::commands::{AnswerSender, Asks, BatchAsked, Command, fail};
use crate::error::HandleError;
use crate::shared::SwitchBounds;
use channel::{CannotWait, Paired, Pending, Unanswered};
use openflow::message::ErrorMessage;
use openflow::{DatapathId, Message, Version, Xid};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::{Duration, Instant};

/// Requests that may wait on one connection.
const REQUESTS_MAX: usize = 1024;

/// An app's request is given up after this time, or when so many later ones have been sent.
const APP_DEADLINE: Duration = Duration::from_secs(60);
const APP_REQUESTS_MAX: usize = 4 * REQUESTS_MAX;

/// Who asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asker {
    Features,
    Ports,
    /// A controller in a cluster, for a role.
    Role,
    App,
    Handle,
}

/// What a message of the switch is.
#[derive(Debug)]
pub(crate) enum Answer {
    /// It concerns no request of ours, or one of a handle's batches.
    Other(Message),
    /// It has been dealt with.
    Taken,
    /// The answer to one of our own questions or of an app's.
    To(Asker, Result<Message, Unanswered>),
}

#[derive(Debug)]
struct HandleRequest {
    since: Instant,
    ends: Ends,
}

#[derive(Debug)]
enum Ends {
    Request(AnswerSender),
    /// The batch of this first xid.
    Batch(u32),
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Answers {
    pending: Pending<Asker>,
    of_handles: HashMap<Xid, HandleRequest>,
    /// By first xid, with the first refusal.
    batches: BTreeMap<u32, (BatchAsked, Option<HandleError>)>,
    /// In the order of sending.
    of_apps: VecDeque<(Instant, Xid)>,
}

impl Answers {
    pub(crate) fn new(bounds: &SwitchBounds) -> Self {
        Self {
            pending: Pending::new(REQUESTS_MAX, bounds.answer_entries_max),
            of_handles: HashMap::new(),
            batches: BTreeMap::new(),
            of_apps: VecDeque::new(),
        }
    }

    /// One of our own questions, of which there is one at a time.
    pub(crate) fn expect_own(&mut self, xid: Xid, request: &Message, asker: Asker) {
        let waits = self.pending.expect(xid, request, asker);
        debug_assert!(waits.is_ok(), "a new session has room for its own questions");
    }

    /// A message of an app; whether an answer that it gets will find the app whole.
    pub(crate) fn expect_of_app(
        &mut self,
        xid: Xid,
        message: &Message,
        now: Instant,
    ) -> Result<(), CannotWait> {
        if message.kind().row().reply.is_none() {
            return Ok(());
        }
        if self.of_apps.len() >= APP_REQUESTS_MAX
            && let Some((_, oldest)) = self.of_apps.pop_front()
        {
            self.pending.cancel(oldest);
        }
        self.pending.expect(xid, message, Asker::App)?;
        self.of_apps.push_back((now, xid));
        Ok(())
    }

    /// A command is about to be sent: its bytes, or nothing when no further request may wait.
    pub(crate) fn expect_of_handle(
        &mut self,
        dpid: DatapathId,
        command: Command,
        now: Instant,
    ) -> Option<Vec<u8>> {
        let Command { bytes, sent, asks } = command;
        let (xid, waits) = match &asks {
            Asks::Nothing => return Some(bytes),
            Asks::Reply { xid, request, .. } => {
                (*xid, self.pending.expect_reply(*xid, *request, Asker::Handle))
            }
            Asks::Batch(batch) => {
                let (xid, barrier) = (batch.barrier(), Message::BarrierRequest);
                (xid, self.pending.expect(xid, &barrier, Asker::Handle))
            }
        };
        if waits.is_err() {
            fail(vec![Command { bytes, sent, asks }], &HandleError::Full(dpid));
            return None;
        }
        let ends = match asks {
            Asks::Nothing => return Some(bytes),
            Asks::Reply { answer, .. } => Ends::Request(answer),
            Asks::Batch(batch) => {
                let first = batch.first;
                self.batches.insert(first, (batch, None));
                Ends::Batch(first)
            }
        };
        self.of_handles.insert(xid, HandleRequest { since: now, ends });
        Some(bytes)
    }

    /// Takes a message of the switch.
    #[inline]
    pub(crate) fn take(
        &mut self,
        xid: Xid,
        message: Message,
        version: Version,
        now: Instant,
    ) -> Answer {
        match self.pending.pair(xid, message) {
            Paired::Other(message) => Answer::Other(message),
            Paired::Part => {
                if let Some(request) = self.of_handles.get_mut(&xid) {
                    request.since = now;
                }
                Answer::Taken
            }
            Paired::Done { context: Asker::Handle, answer } => {
                self.finish(xid, answer, version);
                Answer::Taken
            }
            Paired::Done { context, answer } => Answer::To(context, answer),
        }
    }

    /// The answer to a request of a handle, or its batch's barrier reply.
    fn finish(&mut self, xid: Xid, answer: Result<Message, Unanswered>, version: Version) {
        let Some(request) = self.of_handles.remove(&xid) else { return };
        let refused = |index, error| HandleError::Refused { index, version, error };
        match request.ends {
            Ends::Request(sender) => {
                let answer = answer.map_err(|why| match why {
                    Unanswered::Error(error) => refused(0, error),
                    Unanswered::Mismatch | Unanswered::TooLong(_) => HandleError::Unanswered(why),
                });
                // Whoever does not wait any more does not miss it.
                drop(sender.send(answer));
            }
            Ends::Batch(first) => {
                let Some((batch, refusal)) = self.batches.remove(&first) else { return };
                let outcome = match (refusal, answer) {
                    (Some(refusal), _) => Err(refusal),
                    (None, Ok(_)) => Ok(()),
                    (None, Err(Unanswered::Error(error))) => {
                        Err(refused(batch.first_index + batch.count as usize, error))
                    }
                    (None, Err(why)) => Err(HandleError::Unanswered(why)),
                };
                drop(batch.outcome.send(outcome));
            }
        }
    }

    /// An error about a message of a handle; whether somebody waits for its outcome.
    pub(crate) fn refuse(&mut self, xid: Xid, version: Version, error: &ErrorMessage) -> bool {
        let Some((first, (batch, refusal))) = self.batches.range_mut(..=xid.0).next_back() else {
            return false;
        };
        let at = xid.0 - first;
        if at < batch.count && refusal.is_none() {
            let index = batch.first_index + at as usize;
            *refusal = Some(HandleError::Refused { index, version, error: error.clone() });
        }
        at < batch.count
    }

    /// Gives up the requests that have waited too long; how many.
    pub(crate) fn expire(&mut self, now: Instant, deadline: Duration) -> u64 {
        let mut expired = 0;
        while let Some((since, xid)) = self.of_apps.front()
            && *since + APP_DEADLINE <= now
        {
            expired += u64::from(self.pending.cancel(*xid).is_some());
            self.of_apps.pop_front();
        }
        let late: Vec<Xid> = self
            .of_handles
            .iter()
            .filter(|(_, request)| request.since + deadline <= now)
            .map(|(xid, _)| *xid)
            .collect();
        for xid in late {
            self.pending.cancel(xid);
            self.give_up(xid, &HandleError::Silent(deadline));
            expired += 1;
        }
        expired
    }

    /// The connection is over.
    pub(crate) fn fail_all(&mut self, error: &HandleError) {
        let all: Vec<Xid> = self.of_handles.keys().copied().collect();
        for xid in all {
            self.give_up(xid, error);
        }
    }

    fn give_up(&mut self, xid: Xid, error: &HandleError) {
        let Some(request) = self.of_handles.remove(&xid) else { return };
        match request.ends {
            Ends::Request(sender) => drop(sender.send(Err(error.clone()))),
            Ends::Batch(first) => {
                if let Some((batch, refusal)) = self.batches.remove(&first) {
                    let error = refusal.unwrap_or_else(|| error.clone());
                    drop(batch.outcome.send(Err(error)));
                }
            }
        }
    }
}
