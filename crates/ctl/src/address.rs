//! The arguments that lead to a switch, and the way to speak with it.

use std::path::PathBuf;

use channel::Endpoint;
use clap::Args;
use openflow::Version;

/// Address of the switch, and the way to reach it.
#[derive(Args, Clone, Debug)]
pub(super) struct SwitchAddress {
    /// The control socket of our switch [default: /run/weir/switch.sock for root, else
    /// $XDG_RUNTIME_DIR/weir/switch.sock]
    #[arg(long, value_name = "PATH", global = true, conflicts_with = "switch")]
    pub(super) control: Option<PathBuf>,

    /// The bridge of our switch that is asked [default: the only one]
    #[arg(long, value_name = "NAME", global = true, conflicts_with = "switch")]
    pub(super) bridge: Option<String>,

    /// Any OpenFlow switch that listens: tcp:HOST:PORT, ssl:HOST:PORT (PORT is 6653 where left
    /// out) or unix:PATH
    #[arg(long, value_name = "ENDPOINT", global = true)]
    pub(super) switch: Option<Endpoint>,

    /// The version to speak, OpenFlow10 to OpenFlow15 [default: the higher of OpenFlow10 and
    /// OpenFlow13 that the switch has]
    #[arg(
        long, short = 'O', value_name = "VERSION", global = true, value_delimiter = ',',
        value_parser = version
    )]
    pub(super) protocols: Vec<Version>,

    /// The private key for ssl:
    #[arg(long, value_name = "FILE", global = true, requires = "certificate")]
    pub(super) private_key: Option<PathBuf>,

    /// The certificate of the private key
    #[arg(long, value_name = "FILE", global = true, requires = "ca_cert")]
    pub(super) certificate: Option<PathBuf>,

    /// The CA that signs the switch's certificate
    #[arg(long, value_name = "FILE", global = true, requires = "private_key")]
    pub(super) ca_cert: Option<PathBuf>,
}

fn version(text: &str) -> Result<Version, String> {
    Version::from_name(text).ok_or_else(|| {
        let names: Vec<&str> = Version::ALL.iter().map(|version| version.name()).collect();
        format!("{text:?} is not a version; use {}", names.join(", "))
    })
}
