//! The ports of a subcommand: their arguments, and opening them.

use std::net::{IpAddr, SocketAddr};

use clap::Args;
use generator::session::{Session, SessionOptions};
use metrics::MetricsServer;
use netdev::{Port, PortSpec};
use openflow::text::{parse_decimal, zero_advice};

use crate::file_conflicts::files_of;
use crate::line_rate::LineRate;
use crate::metrics::serve_metrics;
use crate::usage::{UsageError, session_error};

/// The ports that a subcommand uses.
#[derive(Args, Clone, Debug)]
pub(crate) struct PortArgs {
    /// A port; the first one is port 0, and so on
    #[arg(long, value_name = "KIND:NAME")]
    port: Vec<PortSpec>,
    /// Rate of a line, of which rates in percent are parts [default: what the port says, 10G where
    /// it does not know]
    #[arg(long, value_name = "RATE")]
    line_rate: Option<LineRate>,
    /// The cores of the threads: those that send by port, then those that receive by port
    #[arg(long, value_name = "CORES", value_delimiter = ',')]
    cores: Vec<usize>,
    /// Most frames that are handed to a port at once
    #[arg(long, value_name = "FRAMES", default_value_t = 64,
        value_parser = clap::value_parser!(u8).range(1..=64))]
    burst: u8,
    /// An address that a port claims, so that ARP and echo requests for it are answered; repeatable
    #[arg(long = "address", value_name = "PORT=ADDRESS", value_parser = claim)]
    claims: Vec<(usize, IpAddr)>,
    /// Serve metrics for Prometheus here, at /metrics, for example 127.0.0.1:9439
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = metrics::parse_address)]
    metrics: Option<SocketAddr>,
}

/// Opens one port, whose link may have been set up a moment ago.
///
/// # Errors
/// As [`PortArgs::open`].
pub(crate) fn open_port(spec: &PortSpec) -> anyhow::Result<Port> {
    let port = netdev::open(spec).map_err(|error| session_error(error.into()))?;
    port.wait_for_link();
    Ok(port)
}

/// A port's index and an address.
fn claim(text: &str) -> Result<(usize, IpAddr), String> {
    let (port, address) = text.split_once('=').unwrap_or_default();
    let read = parse_decimal(port).zip(address.parse().ok());
    let advice = zero_advice(port);
    let why = || format!("{text:?} is none: write PORT=ADDRESS, for example 0=10.0.0.1{advice}");
    read.ok_or_else(why)
}

impl PortArgs {
    /// The ports as they were named, in order.
    pub(crate) fn specs(&self) -> &[PortSpec] {
        &self.port
    }

    /// Opens the ports, and serves their counts where that is asked for: until what is beside the
    /// session is dropped.
    ///
    /// # Errors
    /// [`UsageError`] where there is none, an option is wrong or two of them have one file; one
    /// that cannot be opened; an address that cannot be listened on.
    pub(crate) fn open(&self) -> anyhow::Result<(Session, Option<MetricsServer>)> {
        if self.port.is_empty() {
            let why = "no port: name one or more with --port KIND:NAME, such as af_packet:eth0";
            return Err(UsageError(why.to_owned()).into());
        }
        files_of(&self.port)?;
        let options = SessionOptions {
            line_rate_bps: self
                .line_rate
                .map_or_else(Vec::new, |rate| vec![rate.bps(); self.port.len()]),
            cores: self.cores.clone(),
            claims: self.claims.clone(),
            burst: self.burst.into(),
            ..SessionOptions::default()
        };
        let mut session = Session::open(&self.port, options).map_err(session_error)?;
        let serve = |address| serve_metrics(address, session.counts_reader());
        let server = self.metrics.map(serve).transpose()?;
        Ok((session, server))
    }
}

#[cfg(test)]
mod tests {
    use super::claim;

    #[test]
    fn a_claim_without_its_port_is_refused_as_such() {
        assert_eq!(claim("1=fe80::11"), Ok((1, "fe80::11".parse().unwrap())));
        for (text, advice) in [
            ("fe80::0011", ""),
            ("0=10.0.0", ""),
            ("01=10.0.0.1", "; `01` begins with a zero: write 1"),
        ] {
            let form = "write PORT=ADDRESS, for example 0=10.0.0.1";
            assert_eq!(claim(text), Err(format!("{text:?} is none: {form}{advice}")));
        }
    }
}
