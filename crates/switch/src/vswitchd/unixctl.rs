//! The socket of `ovs-appctl`: JSON-RPC requests of a command and its words, answered by a text.
//!
//! Bad input harms only its own connection: the length of a request, silence and the number of
//! connections are bounded.

use std::cell::Cell;
use std::fmt::Display;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use channel::LogThrottle;
use channel::driver::now;
use ovsdb::{Message, Splitter};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};

use super::Daemon;
use super::commands::run_command;

/// Connections at once; further ones are closed.
const CONNECTIONS_MAX: usize = 32;

/// Longest request in bytes.
const REQUEST_MAX: usize = 1 << 20;

/// The time that a connection may be silent, or leave an answer unread.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// Wait after a failed accept: without descriptors the next one would fail at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Refused connections are logged no oftener than this.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// Accepts and serves connections, for ever.
pub(super) async fn serve_unixctl(daemon: Rc<Daemon>, listener: UnixListener) {
    let open = Rc::new(Cell::new(0_usize));
    let mut refusals = LogThrottle::new(LOG_EVERY);
    let mut refused = |why: &dyn Display| {
        if let Some(suppressed) = refusals.pass(now()) {
            let suppressed = (suppressed > 0).then_some(suppressed);
            tracing::warn!(suppressed, "a connection of ovs-appctl is refused: {why}");
        }
    };
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                refused(&error);
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        if open.get() >= CONNECTIONS_MAX {
            refused(&format_args!("there are {CONNECTIONS_MAX}"));
            continue;
        }
        open.set(open.get() + 1);
        let (daemon, open) = (Rc::clone(&daemon), Rc::clone(&open));
        tokio::task::spawn_local(async move {
            if let Err(error) = serve(&daemon, stream).await {
                tracing::debug!(%error, "a connection of ovs-appctl ended");
            }
            open.set(open.get() - 1);
        });
    }
}

async fn serve(daemon: &Rc<Daemon>, mut stream: UnixStream) -> io::Result<()> {
    let mut splitter = Splitter::with_longest(REQUEST_MAX);
    let mut bytes = vec![0; 1 << 14];
    loop {
        while let Some(object) = splitter.next_object().map_err(io::Error::other)? {
            match Message::read(object).map_err(io::Error::other)? {
                Message::Request { id, method, params } => {
                    let outcome = answer(daemon, &method, &params).await;
                    let reply = Message::Reply { id, outcome }.to_bytes();
                    within(stream.write_all(&reply)).await?;
                }
                Message::Notification { .. } | Message::Reply { .. } => {}
            }
        }
        let count = within(stream.read(&mut bytes)).await?;
        if count == 0 {
            return Ok(());
        }
        splitter.push(bytes.get(..count).unwrap_or_default());
    }
}

async fn within<T>(attempt: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let done = tokio::time::timeout(SILENCE_MAX, attempt).await;
    done.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

async fn answer(daemon: &Rc<Daemon>, method: &str, params: &[Value]) -> Result<Value, Value> {
    let words = params.iter().map(|word| word.as_str().map(str::to_owned));
    let words: Option<Vec<String>> = words.collect();
    let words = words.ok_or_else(|| json!("arguments are strings"))?;
    let with_end = |mut text: String| {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        json!(text)
    };
    run_command(daemon, method, &words).await.map(with_end).map_err(with_end)
}
