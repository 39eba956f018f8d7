//! Weir's own controller, started as a process like every other.

use std::net::SocketAddrV4;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use programs::tools::Program;

use super::{START_LIMIT, add_keys};
use crate::dut::Dut;
use crate::load::ProcessRole;
use crate::service::{Service, ServiceContext};

/// `weir controller`.
pub(super) const WEIR: Dut = Dut {
    has_tls: true,
    start_cost: Duration::from_millis(300),
    programs: |_, paths| Ok(vec![Program::ask("weir", &paths.weir, &["--version"])]),
    serve: |context, app, at| start(context, &context.paths.weir, app.name(), at, &[]),
    ..Dut::controller("weir", "Weir's controller with its ready applications")
};

/// Starts a build of it with any app of its own, and with further words on its command line.
pub(super) fn start(
    context: &ServiceContext<'_>,
    program: &Path,
    app: &str,
    at: SocketAddrV4,
    words: &[&str],
) -> anyhow::Result<Service> {
    let mut command = Command::new(program);
    let transport = if context.keys.is_some() { "ssl" } else { "tcp" };
    command.args(["controller", app]).args(words).args(["--listen", &format!("{transport}:{at}")]);
    add_keys(&mut command, context);
    let mut process = context.start("weir-controller", command)?;
    process.wait_for_text("listening on", START_LIMIT, context.cancel)?;
    Ok(Service::of(process, ProcessRole::Controller, 0))
}
