//! `weir lab serve`: a campaign in a browser.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use programs::cancel::Cancel;

use crate::serve::{self, LISTEN, LabServer, ServeOptions};

const SERVE_EXAMPLES: &str = "\
Examples:
  weir lab run E4 --dut weir,ovs --quick --out /tmp/e4 &
  weir lab serve /tmp/e4
  weir lab serve /tmp/e4 --listen 127.0.0.1:0
  curl http://127.0.0.1:8484/status";

/// Longest time without a look for Ctrl-C.
const LOOK: Duration = Duration::from_secs(3600);

/// The folder, and the address for browsers.
#[derive(Args, Debug)]
#[command(after_help = SERVE_EXAMPLES)]
pub(super) struct ServeArgs {
    /// The folder that `weir lab run --out` writes into; it may come later
    folder: PathBuf,
    /// Address for browsers, HOST:PORT; port 0 is any that is free. Other machines see the page
    /// only where an address of theirs is named here, 0.0.0.0:8484 for all
    #[arg(long, value_name = "ADDRESS", default_value = LISTEN)]
    listen: String,
}

impl ServeArgs {
    pub(super) fn run(self) -> Result<ExitCode> {
        let folder = &self.folder;
        if folder.exists() && !folder.is_dir() {
            bail!(
                "{} is no folder: give the one that `weir lab run --out` writes into",
                folder.display()
            );
        }
        let cancel = Cancel::on_signals().context("cannot catch signals")?;
        let server = start(folder, self.listen)?;
        let (address, shown) = (server.address(), folder.display());
        files::print(&format!(
            "http://{address}/ shows the campaign in {shown}; Ctrl-C ends it\n"
        ))?;
        while cancel.sleep(LOOK).is_ok() {}
        Ok(ExitCode::SUCCESS)
    }
}

/// Shows what a run writes into a folder, and warns where others can see it.
pub(super) fn start(folder: &Path, listen: String) -> Result<LabServer> {
    let server = serve::start(&ServeOptions { folder: folder.to_owned(), listen })?;
    let address = server.address();
    if !address.ip().is_loopback() {
        files::eprint_line(format_args!(
            "{address} can be reached, and the page read, by other machines"
        ));
    }
    Ok(server)
}
