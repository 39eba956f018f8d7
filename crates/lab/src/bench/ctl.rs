//! The bench's questions over the control socket, by which `weir ctl --json` asks too: one line
//! with a question, a line for each value, and a line that ends the answer.
//!
//! A question takes some tens of microseconds, so that a time series can be made of it. Nothing may
//! be changed this way; changes go over OpenFlow.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// How long the switch may be silent.
const SILENCE_MAX: Duration = Duration::from_secs(20);

/// The values that the switch at `socket` answers to `question`.
///
/// # Errors
/// Nobody answers, or the switch refuses.
pub(super) fn ask(socket: &Path, question: &str) -> Result<Vec<Value>> {
    let place = || format!("the control socket {}", socket.display());
    let mut stream = UnixStream::connect(socket).with_context(place)?;
    stream.set_read_timeout(Some(SILENCE_MAX)).with_context(place)?;
    let request = serde_json::json!({ "command": question, "json": true });
    stream.write_all(format!("{request}\n").as_bytes()).with_context(place)?;
    let mut values = Vec::new();
    for line in BufReader::new(stream).lines() {
        let mut line: Value = serde_json::from_str(&line.with_context(place)?)
            .with_context(|| format!("what the switch answers to {question:?}"))?;
        if line == "done" {
            return Ok(values);
        }
        if let Some(why) = line.get("refused") {
            bail!("the switch refuses {question:?}: {why}");
        }
        values.extend(line.get_mut("value").map(Value::take));
    }
    bail!("the switch did not end its answer to {question:?}")
}

/// A stream to the switch at `socket` that speaks OpenFlow.
///
/// # Errors
/// Nobody answers, or the switch refuses.
pub(super) fn openflow(socket: &Path) -> Result<UnixStream> {
    let place = || format!("the control socket {}", socket.display());
    let mut stream = UnixStream::connect(socket).with_context(place)?;
    stream.set_read_timeout(Some(SILENCE_MAX)).with_context(place)?;
    stream.write_all(b"{\"command\":\"openflow\"}\n").with_context(place)?;
    // Byte by byte, since what stands behind the line is the switch's hello.
    let mut line = Vec::new();
    while line.last() != Some(&b'\n') {
        let mut byte = [0];
        stream.read_exact(&mut byte).with_context(place)?;
        line.extend(byte);
    }
    if serde_json::from_slice::<Value>(&line).ok() != Some("done".into()) {
        bail!("{} does not speak OpenFlow: {}", place(), String::from_utf8_lossy(&line));
    }
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixListener;

    use super::ask;

    #[test]
    fn an_answer_is_its_values_up_to_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        let server = std::thread::spawn(move || {
            for answer in
                ["{\"value\":{\"a\":1}}\n{\"value\":2}\n\"done\"\n", "{\"refused\":\"no\"}\n", "\n"]
            {
                let (stream, _) = listener.accept().unwrap();
                let mut line = String::new();
                BufReader::new(&stream).read_line(&mut line).unwrap();
                assert!(line.contains("\"command\":\"workers\""), "{line}");
                (&stream).write_all(answer.as_bytes()).unwrap();
            }
        });
        assert_eq!(ask(&path, "workers").unwrap(), [serde_json::json!({"a": 1}), 2.into()]);
        assert!(ask(&path, "workers").unwrap_err().to_string().contains("no"));
        assert!(ask(&path, "workers").is_err());
        server.join().unwrap();
    }
}
