//! The options of `weir vswitchd`, as those of Open vSwitch's daemon, and where its files are.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// The options of `weir vswitchd`.
#[derive(Args, Clone, Debug, Default)]
#[command(args_override_self = true)]
pub struct VswitchdArgs {
    /// The database server: `unix:FILE`, `tcp:HOST[:PORT]` or `ssl:HOST[:PORT]` [default:
    /// unix:db.sock in the run folder]
    #[arg(value_name = "DATABASE")]
    pub database: Option<String>,

    /// Write the process number to a file, locked while the daemon runs [default: ovs-vswitchd.pid
    /// in the run folder]
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "ovs-vswitchd.pid")]
    pub pidfile: Option<PathBuf>,

    /// Start although the file names a daemon that runs
    #[arg(long)]
    pub overwrite_pidfile: bool,

    /// Run in the background; the command returns after the first configuration
    #[arg(long)]
    pub detach: bool,

    /// Stay in the folder where the daemon was started
    #[arg(long)]
    pub no_chdir: bool,

    /// Accepted: nothing starts the daemon anew when it has ended
    #[arg(long)]
    pub monitor: bool,

    /// Accepted: the datapath's memory is not locked
    #[arg(long)]
    pub mlockall: bool,

    /// Log to a file too [default: ovs-vswitchd.log in the log folder]
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "ovs-vswitchd.log")]
    pub log_file: Option<PathBuf>,

    /// A level of the log: `[MODULE:][console|file:]off|err|warn|info|dbg`. Repeatable; also -vSPEC
    #[arg(long, value_name = "SPEC", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "dbg")]
    pub verbose: Vec<String>,

    /// The socket for ovs-appctl [default: ovs-vswitchd.PID.ctl in the run folder]
    #[arg(long, value_name = "FILE")]
    pub unixctl: Option<PathBuf>,

    /// The control socket for weir ctl, or none [default: weir.sock in the run folder]
    #[arg(long, value_name = "PATH")]
    pub control: Option<PathBuf>,

    /// Serve metrics for Prometheus here, at /metrics, for example 127.0.0.1:9437
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = metrics::parse_address)]
    pub metrics: Option<SocketAddr>,

    /// Forwarding threads, 1 to 64
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub workers: u16,

    /// Accepted: there is one datapath, in user space and TCX programs
    #[arg(long)]
    pub disable_system: bool,

    /// Accepted: routes of the system are not used
    #[arg(long)]
    pub disable_system_route: bool,

    /// For tests: interfaces of the type dummy, which have no device, and commands that give them
    /// packets and stop the time. With `system` or `override` devices of the kernel, or all, are
    /// dummies too
    #[arg(long, value_name = "LEVEL", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "dummy")]
    pub enable_dummy: Option<DummyLevel>,

    /// TLS to the database: the private key, in PEM
    #[arg(short = 'p', long, value_name = "FILE")]
    pub private_key: Option<PathBuf>,

    /// TLS to the database: the certificate, in PEM
    #[arg(short = 'c', long, value_name = "FILE")]
    pub certificate: Option<PathBuf>,

    /// TLS to the database: the certificate of its CA, in PEM
    #[arg(short = 'C', long, value_name = "FILE")]
    pub ca_cert: Option<PathBuf>,

    /// Print the version of Open vSwitch whose surface this is, and Weir's own
    #[arg(short = 'V', long)]
    pub version: bool,

    /// The process in the background that --detach has started
    #[arg(long, hide = true)]
    pub detached: bool,
}

/// The interfaces that are dummies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DummyLevel {
    /// Those of the type dummy, and internal ones of bridges with that type of datapath.
    Dummy,
    /// Those of the kernel too.
    System,
    /// All but patch ports.
    Override,
}

/// The folders of Open vSwitch, by the environment or Debian's.
#[derive(Clone, Debug)]
pub(super) struct Folders {
    pub(super) run: PathBuf,
    pub(super) log: PathBuf,
}

impl Folders {
    pub(super) fn of_environment() -> Self {
        let folder = |variable: &str, default: &str| {
            let set = std::env::var_os(variable).filter(|folder| !folder.is_empty());
            set.map_or_else(|| PathBuf::from(default), PathBuf::from)
        };
        Self {
            run: folder("OVS_RUNDIR", "/var/run/openvswitch"),
            log: folder("OVS_LOGDIR", "/var/log/openvswitch"),
        }
    }
}

/// The words of a command line in which `-vSPEC` stands as `--verbose=SPEC`.
#[must_use]
pub fn as_long_options(words: Vec<std::ffi::OsString>) -> Vec<std::ffi::OsString> {
    let long = |word: std::ffi::OsString| match word.to_str().and_then(|w| w.strip_prefix("-v")) {
        Some("") => "--verbose".into(),
        Some(spec) => format!("--verbose={spec}").into(),
        None => word,
    };
    words.into_iter().map(long).collect()
}
