//! The requests on one connection that wait for an answer: whose they are and how long they wait.
//!
//! A switch that never answers must not make this grow: requests and the entries of an answer are
//! bounded, a handle's request is given up after its time, and an app's after a minute.

use crate::commands::{AnswerSender, Asks, BatchAsked, Command, Queued, fail};
use crate::error::HandleError;
use crate::shared::SwitchBounds;
use channel::{CannotWait, Paired, Pending, Unanswered};
use openflow::message::ErrorMessage;
use openflow::{DatapathId, Message, Version, Xid};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::{Duration, Instant};

/// Requests that may wait on one connection.
const REQUESTS_MAX: usize = 1024;

/// An app's request is given up after this time, or when this number of later ones has been sent.
const APP_DEADLINE: Duration = Duration::from_secs(60);
const APP_REQUESTS_MAX: usize = 4 * REQUESTS_MAX;

/// All parts of an answer may take this many times as long as one: a switch that sends a part now
/// and then must not keep the caller waiting for ever.
const WHOLE_DEADLINES: u32 = 12;

/// The sender of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asker {
    Features,
    Ports,
    /// A controller in a cluster, for a role.
    Role,
    /// A controller that doubts which role it has.
    RoleCheck,
    App,
    Handle,
}

/// A message of the switch, told apart by the request that it answers.
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
    begun: Instant,
    /// The latest part.
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
            pending: Pending::new(REQUESTS_MAX, bounds.answer_entries_max)
                .with_bytes_max(bounds.answer_bytes_max),
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

    /// The question which role we have; it is left out when too many others wait.
    pub(crate) fn expect_role_check(
        &mut self,
        xid: Xid,
        request: &Message,
    ) -> Result<(), CannotWait> {
        self.pending.expect(xid, request, Asker::RoleCheck)
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
            let command = Queued::Command(Command { bytes, sent, asks });
            fail(vec![command], &HandleError::Full(dpid));
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
        self.of_handles.insert(xid, HandleRequest { begun: now, since: now, ends });
        Some(bytes)
    }

    /// Takes a message of the switch, which had `bytes` bytes.
    #[inline]
    pub(crate) fn take(
        &mut self,
        xid: Xid,
        message: Message,
        bytes: usize,
        version: Version,
        now: Instant,
    ) -> Answer {
        match self.pending.pair_sized(xid, message, bytes) {
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
                    Unanswered::Mismatch
                    | Unanswered::TooLong(_)
                    | Unanswered::TooBig(_)
                    | Unanswered::TooMany(_) => HandleError::Unanswered(why),
                });
                // A caller that does not wait any more does not miss it.
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
        let whole = deadline.saturating_mul(WHOLE_DEADLINES);
        let waited = |request: &HandleRequest| {
            let is_late = |since: Instant, after: Duration| {
                since.checked_add(after).is_some_and(|due| due <= now).then_some(after)
            };
            is_late(request.since, deadline).or_else(|| is_late(request.begun, whole))
        };
        let late: Vec<(Xid, Duration)> = self
            .of_handles
            .iter()
            .filter_map(|(xid, request)| Some((*xid, waited(request)?)))
            .collect();
        for (xid, after) in late {
            self.pending.cancel(xid);
            self.give_up(xid, &HandleError::Silent(after));
            expired += 1;
        }
        expired
    }

    /// Bytes of the answers of which a part has come, as the switch sent them.
    pub(crate) fn bytes(&self) -> usize {
        self.pending.bytes()
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

#[cfg(test)]
mod tests {
    use super::{Answer, Answers};
    use crate::commands::{Asks, Command};
    use crate::error::HandleError;
    use crate::shared::SwitchBounds;
    use crate::stats::Stats;
    use channel::Unanswered;
    use openflow::message::{MultipartReply, MultipartReplyBody};
    use openflow::{DatapathId, Message, MessageKind, Version, Xid};
    use std::time::{Duration, Instant};
    use tokio::sync::oneshot;

    const DEADLINE: Duration = Duration::from_secs(10);

    /// The answers of a connection with one request of a handle, and where its answer comes.
    fn asked(now: Instant) -> (Answers, oneshot::Receiver<Result<Message, HandleError>>) {
        let bounds = SwitchBounds {
            queue_max_bytes: 1 << 20,
            answer_entries_max: 1_000,
            answer_bytes_max: 1_000,
            answer_deadline: DEADLINE,
        };
        let (answer, answered) = oneshot::channel();
        let asks = Asks::Reply { xid: Xid(1), request: MessageKind::MultipartRequest, answer };
        let command = Command { bytes: vec![0; 8], sent: Stats::default(), asks };
        let mut answers = Answers::new(&bounds);
        assert!(answers.expect_of_handle(DatapathId(1), command, now).is_some());
        (answers, answered)
    }

    fn part() -> Message {
        let body = MultipartReplyBody::PortDesc(Vec::new());
        Message::MultipartReply(MultipartReply { more: true, body })
    }

    #[test]
    fn an_answer_whose_parts_never_end_is_given_up() {
        let begun = Instant::now();
        let (mut answers, mut answered) = asked(begun);
        // A part comes whenever the time for it is nearly over.
        for round in 1..=13 {
            let now = begun + round * Duration::from_secs(9);
            let taken = answers.take(Xid(1), part(), 16, Version::V1_3, now);
            assert!(matches!(taken, Answer::Taken), "{round}: {taken:?}");
            assert_eq!(answers.expire(now, DEADLINE), 0, "{round}");
        }
        assert_eq!(answers.expire(begun + 12 * DEADLINE, DEADLINE), 1);
        let silent = HandleError::Silent(12 * DEADLINE);
        assert_eq!(answered.try_recv().unwrap(), Err(silent));
    }

    #[test]
    fn an_answer_of_too_many_bytes_is_refused() {
        let begun = Instant::now();
        let (mut answers, mut answered) = asked(begun);
        for _ in 0..2 {
            answers.take(Xid(1), part(), 501, Version::V1_3, begun);
        }
        let refused = HandleError::Unanswered(Unanswered::TooBig(1_000));
        assert_eq!(answered.try_recv().unwrap(), Err(refused));
    }
}
