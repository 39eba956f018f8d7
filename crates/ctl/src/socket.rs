//! The control socket from the side of `weir ctl`: requests as lines, and OpenFlow when asked for.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

use super::asking::{Asking, Out};
use super::failure::Failure;
use super::run::Place;
use control::{ControlCommand, ControlLine, ControlRequest};

/// How long a switch may be silent before it is given up.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(60);

/// Asks the control socket something of Weir's own, and prints the answer.
pub(super) async fn ask(asking: &mut Asking<'_>, command: ControlCommand) -> Result<(), Failure> {
    let json = asking.out.is_json();
    for record in records(asking.place, command, json).await? {
        print(&mut asking.out, record)?;
    }
    Ok(())
}

fn print(out: &mut Out<'_>, line: ControlLine) -> Result<(), Failure> {
    match line {
        ControlLine::Text(text) => out.record(text, || serde_json::Value::Null),
        ControlLine::Value(value) => out.record("", || value),
        ControlLine::Done | ControlLine::Refused(_) => Ok(()),
    }
}

/// The records of an answer.
pub(super) async fn records(
    place: &Place,
    command: ControlCommand,
    json: bool,
) -> Result<Vec<ControlLine>, Failure> {
    if let Some(endpoint) = &place.switch {
        return Err(Failure::refused(format!(
            "{endpoint} speaks OpenFlow, which has no message for this: ask our switch, by \
             --control"
        )));
    }
    let request = ControlRequest { json, bridge: place.bridge.clone(), command };
    let (stream, path) = open(place, &request).await?;
    let mut lines = BufReader::new(stream);
    let mut records = Vec::new();
    loop {
        match next(&mut lines, &path).await? {
            ControlLine::Done => return Ok(records),
            ControlLine::Refused(why) => return Err(Failure::Refused(why)),
            record @ (ControlLine::Text(_) | ControlLine::Value(_)) => records.push(record),
        }
    }
}

/// A stream that speaks OpenFlow, and the switch's name.
pub(super) async fn openflow(place: &Place) -> Result<(UnixStream, String), Failure> {
    let bridge = place.bridge.clone();
    let request = ControlRequest { json: false, bridge, command: ControlCommand::Openflow };
    let (mut stream, path) = open(place, &request).await?;
    // Byte by byte, since what stands behind the line is the switch's hello.
    let mut text = Vec::new();
    while text.last() != Some(&b'\n') {
        let byte = within(stream.read_u8()).await.map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => closed(),
            _ => broken("reading from", &path, &error),
        })?;
        text.push(byte);
    }
    match line(&text, &path)? {
        ControlLine::Done => Ok((stream, path.display().to_string())),
        ControlLine::Refused(why) => Err(Failure::Refused(why)),
        ControlLine::Text(_) | ControlLine::Value(_) => {
            let what = format!("the switch at {} gave another answer than asked", path.display());
            Err(Failure::Refused(what))
        }
    }
}

async fn open(place: &Place, request: &ControlRequest) -> Result<(UnixStream, PathBuf), Failure> {
    let path = place.control.clone().unwrap_or_else(control::default_path);
    let mut stream = UnixStream::connect(&path).await.map_err(|error| {
        let told = format!("no switch answers on the control socket {}: {error}", path.display());
        Failure::Unreached(format!("{told}; {}", what_helps(error.kind())))
    })?;
    let mut line = serde_json::to_vec(request).map_err(|error| broken("asking", &path, &error))?;
    line.push(b'\n');
    // A switch that refuses the connection says why without having read what is asked: what it
    // says is read even where writing fails.
    if let Err(error) = stream.write_all(&line).await {
        tracing::debug!(%error, "asking");
    }
    Ok((stream, path))
}

/// What to do where the control socket cannot be reached.
fn what_helps(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::PermissionDenied => "run as the user whose switch it is, or as root",
        _ => "start weir switch, or name the socket of another by --control",
    }
}

/// The next line.
async fn next(lines: &mut BufReader<UnixStream>, path: &Path) -> Result<ControlLine, Failure> {
    let mut text = Vec::new();
    let read = within(lines.read_until(b'\n', &mut text)).await;
    match read.map_err(|error| broken("reading from", path, &error))? {
        0 => Err(closed()),
        _ => line(&text, path),
    }
}

fn line(text: &[u8], path: &Path) -> Result<ControlLine, Failure> {
    serde_json::from_slice(text).map_err(|error| broken("answer of", path, &error))
}

async fn within<T>(read: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let limited = tokio::time::timeout(SILENCE_MAX, read).await;
    limited.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

fn broken(what: &str, path: &Path, error: &dyn fmt::Display) -> Failure {
    Failure::Unreached(format!("{what} {}: {error}", path.display()))
}

fn closed() -> Failure {
    Failure::Unreached("the switch ended the connection".to_owned())
}
