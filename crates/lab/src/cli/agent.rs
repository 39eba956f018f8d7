//! `weir lab agent`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use channel::{Tls, TlsFiles};
use clap::Args;
use programs::cancel::Cancel;

use crate::agent::executor::Executor;
use crate::agent::server::Agent;
use crate::testbed::wired::WiredTestbed;

const EXAMPLES: &str = "\
Examples:
  weir pki init --dir pki; weir pki issue --dir pki lab; weir pki issue --dir pki box1
  weir lab agent --listen 192.0.2.21:7654 --interface eth1 \\
    --private-key pki/box1-privkey.pem --certificate pki/box1-cert.pem --ca-cert pki/cacert.pem
  weir lab agent --listen 127.0.0.1:7654 --interface eth1 --interface eth2 --plain --hosts

The lab names it in the inventory of its switch (see docs/lab-agents.md):
  weir lab run E5 --dut external --inventory lab.toml";

/// Send and receive at this box's interfaces for a lab on another one, until a signal comes.
///
/// It works for one lab at a time, and for any that shows a certificate of the authority. It opens
/// the interfaces that it is given, which have to be up, and changes nothing of them; it needs
/// root, or CAP_NET_RAW.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct AgentArgs {
    /// Address for labs
    #[arg(long, value_name = "ADDR:PORT")]
    listen: SocketAddr,
    /// An interface that leads to a port of the switch under test; may be given several times
    #[arg(long = "interface", value_name = "NAME", required = true)]
    interfaces: Vec<String>,
    /// The box's private key, PEM
    #[arg(
        long,
        visible_alias = "key",
        value_name = "FILE",
        requires_all = ["certificate", "ca_cert"]
    )]
    private_key: Option<PathBuf>,
    /// Its certificate, PEM
    #[arg(long, visible_alias = "cert", value_name = "FILE", requires = "private_key")]
    certificate: Option<PathBuf>,
    /// The certificate of the authority that signs the labs' certificates, PEM
    #[arg(long, visible_alias = "ca", value_name = "FILE", requires = "private_key")]
    ca_cert: Option<PathBuf>,
    /// Let labs run ping, iperf3 and iperf here, as hosts behind the interfaces: each gets, for a
    /// trial, a network namespace with a macvlan on its interface; needs root
    #[arg(long)]
    hosts: bool,
    /// Without TLS: for 127.0.0.1 and ::1 only
    #[arg(long, conflicts_with = "private_key")]
    plain: bool,
}

impl AgentArgs {
    pub(super) fn run(self) -> Result<ExitCode> {
        let tls = self.tls()?;
        let mut names = self.interfaces;
        names.sort();
        names.dedup();
        // They are up, or it says how to set them up.
        let interfaces = WiredTestbed::new(names, None)?.interfaces().to_vec();
        let shown = interfaces.join(", ");
        let cancel = Cancel::on_signals().context("cannot catch signals")?;
        let way = if tls.is_some() { "TLS" } else { "no TLS" };
        let say = Arc::new(|line: &str| files::eprint_line(format_args!("{line}")));
        let executor = Executor::new(interfaces).with_hosts(self.hosts);
        let agent = Agent::bind(self.listen, tls, executor, (cancel, say))
            .with_context(|| format!("cannot listen at {}", self.listen))?;
        let address = agent.address()?;
        files::eprint_line(format_args!("ready at {address} ({way}) with {shown}; Ctrl-C ends it"));
        agent.serve().context("the agent")?;
        Ok(super::interrupted())
    }

    fn tls(&self) -> Result<Option<Tls>> {
        match (self.private_key.clone(), self.certificate.clone(), self.ca_cert.clone()) {
            (Some(private_key), Some(certificate), Some(ca_cert)) => {
                Ok(Some(Tls::load(TlsFiles { private_key, certificate, ca_cert }, false)?))
            }
            _ if self.plain && self.listen.ip().is_loopback() => Ok(None),
            _ if self.plain => bail!(
                "--plain: {} is no address of this machine alone, and whoever reaches the agent \
                 may send frames; give --private-key, --certificate and --ca-cert (weir pki makes \
                 them)",
                self.listen.ip()
            ),
            _ => bail!(
                "give --private-key, --certificate and --ca-cert (weir pki makes them), or --plain \
                 for 127.0.0.1"
            ),
        }
    }
}
