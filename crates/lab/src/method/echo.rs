//! ICMP echo of our own, for where `ping` is not installed.
//!
//! One request after the other, as `ping` does it, from inside host 1's namespace; the answer
//! comes from host 2's kernel.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use netdev::sys::echo::EchoSocket;

use super::{MethodContext, TrialError};
use crate::host_program::ECHO_INTERVAL;
use crate::settings::Settings;

const ANSWER_WAIT: Duration = Duration::from_secs(2);

/// Echo requests, where the cell does not count them.
const REQUESTS: u32 = 100;

/// Outcome of one run of echo requests.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct EchoReplies {
    /// Requests sent.
    pub(super) sent: u32,
    /// Round-trip times of those that were answered, milliseconds.
    pub(super) rtt_ms: Vec<f64>,
}

/// Number of echo requests.
pub(super) fn requests(settings: &Settings) -> u32 {
    settings.count.and_then(|count| u32::try_from(count).ok()).unwrap_or(REQUESTS).max(1)
}

/// Sends the cell's echo requests to `target`.
pub(super) fn run(
    context: &MethodContext<'_>,
    target: Ipv4Addr,
) -> Result<EchoReplies, TrialError> {
    let bed = context.bed.kernel().ok_or(TrialError::Unfit("no kernel hosts"))?;
    let socket = bed.host(0).enter(|| EchoSocket::open(ANSWER_WAIT)).and_then(|socket| socket);
    let socket = socket.map_err(io("a raw socket"))?;
    let mut rtt_ms = Vec::new();
    let requests = requests(context.settings);
    for sequence in 0..requests {
        context.cancel.check()?;
        // A number comes again long after its answer.
        let number = sequence as u16;
        let start = Instant::now();
        socket.send(target, number).map_err(io("sending an echo request"))?;
        let mut is_answered = false;
        while !is_answered && start.elapsed() < ANSWER_WAIT {
            let answer = socket.receive(number).map_err(io("waiting for an echo reply"))?;
            is_answered = answer.is_some();
        }
        if is_answered {
            rtt_ms.push(start.elapsed().as_secs_f64() * 1e3);
        }
        context.cancel.sleep(ECHO_INTERVAL.saturating_sub(start.elapsed()))?;
    }
    Ok(EchoReplies { sent: requests, rtt_ms })
}

fn io(what: &'static str) -> impl FnOnce(std::io::Error) -> TrialError {
    move |source| TrialError::Io { what, source }
}
