//! `weir pki`: its arguments. What they do is `channel::pki`.

use std::io::Write;
use std::path::PathBuf;
use std::time::SystemTime;

use channel::pki::{CertificateRequest, init, issue};
use clap::builder::RangedU64ValueParser;
use clap::{Args, Subcommand};

pub(crate) const EXAMPLES: &str = "\
Examples:
  weir pki init
  weir pki issue switch1
  weir pki issue controller --host controller.example --host 192.0.2.7
  weir switch --controller ssl:192.0.2.7 --private-key pki/switch1-privkey.pem \\
      --certificate pki/switch1-cert.pem --ca-cert pki/cacert.pem";

/// Make certificates for TLS between switches and controllers
#[derive(Args)]
pub(crate) struct PkiArgs {
    /// The folder of the certificate authority and of what it has signed
    #[arg(long, value_name = "DIR", global = true, default_value = "pki")]
    dir: PathBuf,

    #[command(subcommand)]
    command: PkiCommand,
}

#[derive(Subcommand)]
enum PkiCommand {
    /// Make a certificate authority
    Init,
    /// Make a key and a certificate, or a new certificate for a name that has a key
    Issue {
        /// The name of its owner; the files are NAME-privkey.pem and NAME-cert.pem
        name: String,

        /// A host name or address that the certificate is for; looked at only by peers with
        /// --check-peer-name. Repeatable
        #[arg(long, value_name = "HOST")]
        host: Vec<String>,

        /// For how many days it holds
        #[arg(long, value_name = "N", default_value_t = 825, value_parser = days())]
        days: u32,
    },
}

/// A century at most.
fn days() -> RangedU64ValueParser<u32> {
    RangedU64ValueParser::new().range(1..=36_500)
}

/// Makes what is asked and names the files that were written.
///
/// # Errors
/// Those of `channel::pki`, or of writing to `out`.
pub(crate) fn run(arguments: PkiArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let now = SystemTime::now();
    let written = match arguments.command {
        PkiCommand::Init => init(&arguments.dir, now)?,
        PkiCommand::Issue { name, host, days } => {
            issue(&arguments.dir, &CertificateRequest { name, hosts: host, days }, now)?
        }
    };
    for path in written {
        writeln!(out, "{}", path.display())?;
    }
    Ok(())
}
