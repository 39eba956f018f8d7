//! The last events of the network, and those to come: a page that is opened late shows what was
//! before.
//!
//! One task takes the controller's events, whoever reads them; a page that is too slow loses some,
//! and is sent a line that says so.

use openflow::DatapathId;
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::broadcast::{self, Receiver, Sender, error::RecvError};

/// Events that a page gets when it is opened.
const KEPT: usize = 50;

/// Events that wait for a page at most.
const WAITING_MAX: usize = 1024;

/// Something that has happened in the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenEvent {
    /// Its kind, in lower case with hyphens: `switch-ready`, `port-status` and so on.
    pub kind: &'static str,
    /// The switch that it is about.
    pub dpid: Option<DatapathId>,
    /// Its line for people.
    pub text: String,
}

/// The events of the network, from now on.
pub trait NetworkEvents: Send + 'static {
    /// The next one; none when the controller has ended. Dropping the wait loses no event.
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<SeenEvent>> + Send + '_>>;
}

impl SeenEvent {
    /// In place of this number of events, which came too fast.
    pub(crate) fn lagged(count: u64) -> Self {
        let text = format!("{count} events are not shown: they came too fast");
        Self { kind: "lagged", dpid: None, text }
    }
}

/// An event with its time, in milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TimedEvent {
    pub(crate) at_ms: u64,
    pub(crate) event: SeenEvent,
}

/// The last events.
pub(crate) struct EventHistory {
    kept: Mutex<VecDeque<TimedEvent>>,
    sender: Sender<TimedEvent>,
}

/// One page's events.
pub(crate) struct PageEvents {
    before: VecDeque<TimedEvent>,
    receiver: Receiver<TimedEvent>,
}

impl Default for EventHistory {
    fn default() -> Self {
        let (sender, _) = broadcast::channel(WAITING_MAX);
        Self { kept: Mutex::default(), sender }
    }
}

impl EventHistory {
    /// Takes all events, until the controller ends.
    pub(crate) async fn record(&self, mut events: Box<dyn NetworkEvents>) {
        while let Some(event) = events.next().await {
            self.add(now(event));
        }
    }

    fn add(&self, event: TimedEvent) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back(event.clone());
        // Without a page nobody receives it. The lock is held: no page gets it twice.
        let _ = self.sender.send(event);
    }

    /// The last events, and those to come.
    pub(crate) fn follow(&self) -> PageEvents {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        PageEvents { before: kept.clone(), receiver: self.sender.subscribe() }
    }
}

impl PageEvents {
    /// The next event; none when REST has ended. Dropping the wait loses no event.
    pub(crate) async fn next(&mut self) -> Option<TimedEvent> {
        if let Some(event) = self.before.pop_front() {
            return Some(event);
        }
        match self.receiver.recv().await {
            Ok(event) => Some(event),
            Err(RecvError::Lagged(count)) => Some(now(SeenEvent::lagged(count))),
            Err(RecvError::Closed) => None,
        }
    }
}

fn now(event: SeenEvent) -> TimedEvent {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    TimedEvent { at_ms: u64::try_from(since.as_millis()).unwrap_or(u64::MAX), event }
}

#[cfg(test)]
mod tests {
    use super::{EventHistory, KEPT, SeenEvent, WAITING_MAX, now};

    fn event(number: usize) -> SeenEvent {
        SeenEvent { kind: "link-up", dpid: None, text: number.to_string() }
    }

    #[tokio::test]
    async fn a_page_gets_the_last_events_and_then_each_new_one_once() {
        let history = EventHistory::default();
        (0..KEPT + 10).for_each(|number| history.add(now(event(number))));
        let mut page = history.follow();
        (KEPT + 10..KEPT + 12).for_each(|number| history.add(now(event(number))));
        for number in 10..KEPT + 12 {
            assert_eq!(page.next().await.unwrap().event, event(number));
        }
    }

    #[tokio::test]
    async fn a_page_that_is_too_slow_is_sent_a_line_of_it() {
        let history = EventHistory::default();
        let mut page = history.follow();
        (0..WAITING_MAX + 5).for_each(|number| history.add(now(event(number))));
        let lagged = page.next().await.unwrap().event;
        assert_eq!((lagged.kind, &lagged.text[..2]), ("lagged", "5 "));
        assert_eq!(page.next().await.unwrap().event, event(5));
        drop(history);
        while page.next().await.is_some() {}
    }
}
