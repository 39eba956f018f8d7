//! Standard error by way of a queue: a thread of its own writes what programs log.
//!
//! A terminal that is held, or a pipe that nobody reads, blocks whoever writes to it. Here it holds
//! up that one thread; a thread that serves peers leaves its line in the queue and goes on. The
//! queue is bounded: a line that finds it full is dropped and counted, and the next lines that can
//! be written are followed by the count. Nothing here may wait, but for [`flush_log`].

use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use crate::output::printable;

/// Bytes that may wait to be written.
const WAITING_MAX: usize = 1 << 20;

/// Waiting lines of one output.
#[derive(Debug, Default)]
struct LogQueue {
    waiting: Mutex<Waiting>,
    /// Notified when there is something to write, and when all is written.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    text: Vec<u8>,
    dropped: u64,
    is_writing: bool,
}

impl LogQueue {
    /// A queue for `output`, with the thread that writes.
    fn start(mut output: impl Write + Send + 'static) -> std::io::Result<Arc<Self>> {
        let queue = Arc::new(Self::default());
        let own = Arc::clone(&queue);
        std::thread::Builder::new().name("log".into()).spawn(move || {
            loop {
                let text = own.take();
                // The program that started this one may have closed the other end.
                drop(output.write_all(&text).and_then(|()| output.flush()));
            }
        })?;
        Ok(queue)
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, line: &[u8]) {
        let mut waiting = self.lock();
        if waiting.text.len() + line.len() > WAITING_MAX {
            waiting.dropped += 1;
            return;
        }
        waiting.text.extend_from_slice(line);
        drop(waiting);
        self.changed.notify_all();
    }

    /// Waits for text to write.
    fn take(&self) -> Vec<u8> {
        let mut waiting = self.lock();
        waiting.is_writing = false;
        self.changed.notify_all();
        let idle = |waiting: &mut Waiting| waiting.text.is_empty();
        let waited = self.changed.wait_while(waiting, idle);
        waiting = waited.unwrap_or_else(PoisonError::into_inner);
        waiting.is_writing = true;
        let mut text = std::mem::take(&mut waiting.text);
        let dropped = std::mem::take(&mut waiting.dropped);
        if dropped > 0 {
            let why = "nobody read standard error as fast as it was written";
            text.extend_from_slice(format!("{dropped} log lines are left out: {why}\n").as_bytes());
        }
        text
    }

    fn flush(&self, within: Duration) {
        let busy = |waiting: &mut Waiting| waiting.is_writing || !waiting.text.is_empty();
        drop(self.changed.wait_timeout_while(self.lock(), within, busy));
    }
}

/// That of standard error, once there was a line for it; nothing where the system gives no thread.
static QUEUE: OnceLock<Option<Arc<LogQueue>>> = OnceLock::new();

/// The queue of standard error.
fn standard_error() -> Option<&'static LogQueue> {
    QUEUE.get_or_init(|| LogQueue::start(std::io::stderr()).ok()).as_deref()
}

/// Logs a line on standard error, as [`printable`] text, without waiting for its reader. Its end
/// may stand there already.
pub fn log_line(line: &str) {
    let line = printable(line.trim_end_matches('\n')).into_owned() + "\n";
    // A writer of the queue does not fail.
    drop(LogWriter.write_all(line.as_bytes()));
}

/// Waits until the lines so far are written, but no longer than `within`: for the end of a program.
pub fn flush_log(within: Duration) {
    if let Some(Some(queue)) = QUEUE.get() {
        queue.flush(within);
    }
}

/// Writes whole lines to standard error without waiting for its reader.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogWriter;

impl Write for LogWriter {
    fn write(&mut self, lines: &[u8]) -> std::io::Result<usize> {
        match standard_error() {
            Some(queue) => queue.push(lines),
            None => std::io::stderr().write_all(lines)?,
        }
        Ok(lines.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{LogQueue, WAITING_MAX};
    use std::io::{BufRead, BufReader};
    use std::time::Duration;

    #[test]
    fn lines_that_nobody_reads_are_dropped_and_counted() {
        let (reader, writer) = std::io::pipe().unwrap();
        let queue = LogQueue::start(writer).unwrap();
        let line = format!("{}\n", "x".repeat(99));
        // More than pipe, thread and queue hold: if a push waited, this would never end.
        let pushed = 8 * WAITING_MAX / line.len();
        (0..pushed).for_each(|_| queue.push(line.as_bytes()));
        queue.flush(Duration::ZERO);
        let (mut lines, mut read, mut dropped) = (BufReader::new(reader).lines(), 0, 0);
        while read + dropped < pushed {
            let text = lines.next().unwrap().unwrap();
            match text.split_once(" log lines are left out") {
                Some((count, _)) => dropped += count.parse::<usize>().unwrap(),
                None => read += 1,
            }
        }
        assert!(read + dropped == pushed && dropped > 0, "{read} and {dropped}");
        queue.push(b"after\n");
        assert_eq!(lines.next().unwrap().unwrap(), "after");
        queue.flush(Duration::from_secs(60));
        assert!(!queue.lock().is_writing);
    }
}
