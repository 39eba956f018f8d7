//! `weir gen flood`: one stream from each port, as fast as the port takes it, and what it counted.

use std::process::ExitCode;

use clap::Args;
use generator::profile::{FrameSize, Profile, Rate, StreamSpec};

use crate::load::{Load, LoadArgs};

const FLOOD_EXAMPLES: &str = "\
Examples:
  weir gen flood --port null: --duration 2
  weir gen flood --port af_packet:veth1 --size 1518 --duration 10 --json
  weir gen flood --port tap:left --rate 100kpps --packet 'eth/vlan(vid=5)/ipv4/udp(dst=53)' -d 1

Exit codes:
  0    done
  1    a port failed
  2    wrong usage
  130  interrupted; the report up to then is printed";

/// One stream a port, without numbers and time stamps.
#[derive(Args, Debug)]
#[command(after_help = FLOOD_EXAMPLES)]
pub(crate) struct FloodArgs {
    #[command(flatten)]
    load: LoadArgs,
    /// The headers of the frames, from the outside in
    #[arg(long, value_name = "STACK", default_value = "eth/ipv4/udp")]
    packet: String,
    /// Bytes of the frames, FCS included: 64, 64,128, 64-1518 or imix
    #[arg(long, value_name = "SIZE", default_value = "64")]
    size: FrameSize,
    /// The rate of each port: max, 1Mpps, 80% or 500Mbps
    #[arg(long, value_name = "RATE", default_value = "max")]
    rate: Rate,
}

impl FloodArgs {
    /// Sends until the duration is over or a signal comes, and prints the report.
    ///
    /// # Errors
    /// Ports that cannot be opened, and standard output.
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let stream = |port| StreamSpec {
            name: "flood".to_owned(),
            port,
            packet: self.packet.clone(),
            size: self.size.clone(),
            rate: self.rate,
            probe: false,
            ..StreamSpec::default()
        };
        let profile = Profile { streams: (0..self.load.port_count()).map(stream).collect() };
        let (file, loss_percent_max) = (None, None);
        let load = Load { profile: &profile, file, multiplier: 1.0, loss_percent_max };
        self.load.carry_out(&load)
    }
}
