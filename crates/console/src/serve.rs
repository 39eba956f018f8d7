//! `weir gen serve`: a session on a control socket, for scripts.
//!
//! JSON lines over a Unix socket that only its owner may open: one request in, one value and one
//! end line out, in the framing of the switch's control socket. All connections share the session.
//! Bad input harms only its own connection: the length of a line and the number of connections are
//! bounded. When the server ends, its ports stop sending.

mod answer;
mod connection;
mod words;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use anyhow::Context;
use clap::Args;
use control::{ControlLine, ControlSocket};
use netdev::sys::event::wait;
use std::os::fd::AsFd;

use crate::interrupt::{ASK_EVERY, Interrupt};
use crate::port_args::PortArgs;
use crate::usage::UsageError;
use answer::Served;
use connection::Connections;

const SERVE_EXAMPLES: &str = "\
Examples:
  weir gen serve --control /tmp/gen.sock --port memory:cable?end=a --port memory:cable?end=b
  weir gen serve --control /run/gen.sock --port af_packet:veth1 --line-rate 1G --cores 1,2

The Python class weir.Generator speaks to it; docs/generator.md has the requests.";

/// Connections at once; further ones are refused.
const CONNECTIONS_MAX: usize = 32;

/// A session on a control socket.
#[derive(Args, Debug)]
#[command(after_help = SERVE_EXAMPLES)]
pub(crate) struct ServeArgs {
    /// The control socket that is made, for its owner alone
    #[arg(long, visible_alias = "socket", value_name = "PATH")]
    control: PathBuf,
    /// End when the standard input ends: with the program that holds its other end, whatever ends
    /// that
    #[arg(long)]
    end_with_input: bool,
    #[command(flatten)]
    ports: PortArgs,
}

impl ServeArgs {
    /// Serves until SIGINT, SIGTERM or SIGHUP, or the end of the input.
    ///
    /// # Errors
    /// A folder that is not there, ports that cannot be opened, a socket that cannot be made.
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let interrupt = Interrupt::on_signals().context("cannot catch signals")?;
        // A wrong path must not make folders somewhere.
        let folder = self.control.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
            let (path, folder) = (self.control.display(), folder.display());
            return Err(UsageError(format!("--control {path}: there is no folder {folder}")).into());
        }
        let (session, _metrics) = self.ports.open()?;
        if self.end_with_input {
            end_with_input(interrupt.clone()).context("no thread that reads the input")?;
        }
        let socket = ControlSocket::bind(&self.control)?;
        let served = Mutex::new(Served::new(session));
        // Scripts wait for this line.
        let _ = writeln!(std::io::stdout(), "ready: control socket {}", self.control.display());
        serve(&socket, &served, &interrupt)?;
        let mut served = served.lock().unwrap_or_else(PoisonError::into_inner);
        served.stop_all();
        Ok(ExitCode::SUCCESS)
    }
}

/// Sets the interrupt at the end of the standard input.
fn end_with_input(interrupt: Interrupt) -> std::io::Result<()> {
    let read = move || {
        // What comes before the end says nothing.
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        interrupt.set();
    };
    std::thread::Builder::new().name("input".to_owned()).spawn(read).map(drop)
}

/// Accepts and serves connections until the interrupt.
fn serve(
    socket: &ControlSocket,
    served: &Mutex<Served>,
    interrupt: &Interrupt,
) -> anyhow::Result<()> {
    let listener = socket.listener().context("no descriptor for the control socket")?;
    let connections = Connections::default();
    std::thread::scope(|scope| {
        while !interrupt.is_set() {
            let stream = match listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    let ready = wait(&[listener.as_fd()], Some(ASK_EVERY));
                    ready.context("waiting for connections")?;
                    continue;
                }
                Err(error) => {
                    // Without descriptors the next one would fail at once, too.
                    tracing::warn!(%error, "accepting on the control socket failed");
                    std::thread::sleep(ASK_EVERY);
                    continue;
                }
            };
            match connections.add(&stream, CONNECTIONS_MAX) {
                Some(place) => {
                    let connections = &connections;
                    scope.spawn(move || {
                        connection::serve(&stream, served, interrupt);
                        connections.remove(place);
                    });
                }
                None => {
                    let full =
                        format!("{CONNECTIONS_MAX} control connections are open; end one of them");
                    connection::refuse(&stream, &ControlLine::Refused(full));
                }
            }
        }
        // Connections that wait for a line end with this; the scope then waits for their threads.
        connections.shut_down();
        Ok(())
    })
}
