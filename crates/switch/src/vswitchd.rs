//! `weir vswitchd`: the switch in place of Open vSwitch's daemon, configured by its database.
//!
//! `ovsdb-server` holds what is wanted; `database` keeps a connection to it, `wanted` makes a
//! configuration of its rows, which `reconcile` carries out, and `status` writes back what came
//! of it. `unixctl` answers `ovs-appctl`. The files, the log and the process are those that
//! Open vSwitch's scripts look for (`daemon`, `vlog`).

mod args;
mod commands;
mod daemon;
mod database;
mod datapath_actions;
mod flow_key;
mod mirror;
mod qos;
mod status;
mod trace;
mod unixctl;
mod vlog;
mod wanted;

use std::cell::{Cell, RefCell};
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;

use channel::{BadEndpoint, Endpoint, Tls, TlsError, TlsFiles};
use control::{ControlSocket, SocketError};
use tokio::sync::Notify;

use self::args::Folders;
pub use self::args::{DummyLevel, VswitchdArgs, as_long_options};
use self::daemon::{Pidfile, PidfileError};
use self::database::Database;
use self::vlog::VLOG;
use self::wanted::Wanted;
use crate::agent::Bridges;
use crate::capabilities::give_up_capabilities;
use crate::config::{BridgeConfig, ConfigError, SwitchArgs};
use crate::error::SwitchError;
use crate::reconcile::RunningSwitch;
use crate::run::{run_driven_until, stop_signal};

/// The version of Open vSwitch whose surface this is: scripts compare it.
const VERSION: &str = "ovs-vswitchd (Open vSwitch) 3.1.0";

/// The versions that `--version` and `ovs-appctl version` print.
fn versions() -> String {
    format!("{VERSION}\nWeir {}\n", env!("CARGO_PKG_VERSION"))
}

/// Why the daemon did not start, or has ended.
#[derive(Debug, thiserror::Error)]
pub enum VswitchdError {
    /// The switch itself.
    #[error(transparent)]
    Switch(#[from] SwitchError),
    /// The configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The file with the process's number.
    #[error(transparent)]
    Pidfile(#[from] PidfileError),
    /// A socket.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// The database's endpoint.
    #[error("database: {0}")]
    Endpoint(#[from] BadEndpoint),
    /// A passive endpoint.
    #[error("database {0}: name a server to connect to, as unix:/var/run/openvswitch/db.sock")]
    Passive(Endpoint),
    /// Key and certificates for the database.
    #[error("database: {0}")]
    Tls(#[from] TlsError),
    /// TLS without key and certificates.
    #[error("database {0}: TLS needs --private-key, --certificate and --ca-cert")]
    NoKey(Endpoint),
    /// A level of the log.
    #[error("--verbose: {0}")]
    Verbose(String),
    /// A step of the start.
    #[error("{what}: {source}")]
    Io {
        /// The step.
        what: String,
        /// The system's error.
        source: io::Error,
    },
}

fn failed(what: impl Into<String>) -> impl FnOnce(io::Error) -> VswitchdError {
    let what = what.into();
    move |source| VswitchdError::Io { what, source }
}

/// The state that the parts of the daemon share.
struct Daemon {
    bridges: Rc<Bridges>,
    /// A bridge with every default.
    base: BridgeConfig,
    folders: Folders,
    /// The configuration that was carried out last.
    wanted: RefCell<Rc<Wanted>>,
    /// The daemon is to end.
    exit: Rc<Notify>,
    /// The interfaces that are dummies, in tests.
    dummies: Option<DummyLevel>,
    /// The virtual time was put forward.
    warped: Notify,
    /// A parent waits for the first configuration.
    has_parent: Cell<bool>,
}

impl Daemon {
    /// The first configuration is carried out.
    fn report_ready(&self) {
        if !self.has_parent.replace(false) {
            return;
        }
        if let Err(error) = daemon::report_ready() {
            tracing::warn!(%error, "the command that started the daemon was not answered");
        }
        VLOG.close_console();
    }
}

/// Runs the daemon until SIGTERM, Ctrl-C or `ovs-appctl exit`; with `--detach` starts it in the
/// background.
///
/// # Errors
/// A part that could not be opened.
pub fn run(args: VswitchdArgs) -> Result<ExitCode, VswitchdError> {
    if args.version {
        files::print(&versions()).map_err(failed("printing the version"))?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.detach && !args.detached {
        return daemon::start_in_background().map_err(failed("starting the daemon"));
    }
    daemon::name_process().map_err(failed("naming the process"))?;
    if args.detached {
        daemon::leave_session().map_err(failed("leaving the terminal"))?;
    }
    let folders = Folders::of_environment();
    let here = std::env::current_dir().map_err(failed("asking for the current folder"))?;
    for spec in &args.verbose {
        VLOG.set(spec).map_err(VswitchdError::Verbose)?;
    }
    if let Some(file) = &args.log_file {
        let path = here.join(&folders.log).join(file);
        VLOG.open_file(&path).map_err(failed(format!("log file {}", path.display())))?;
    }
    VLOG.begin();
    let pidfile = args.pidfile.as_ref().map(|file| here.join(&folders.run).join(file));
    let _pidfile = pidfile.map(|path| Pidfile::make(&path, args.overwrite_pidfile)).transpose()?;
    if args.detached && !args.no_chdir {
        std::env::set_current_dir("/").map_err(failed("changing to /"))?;
    }
    give_up_capabilities().map_err(failed("giving up capabilities"))?;
    serve(&args, folders, &here)?;
    Ok(ExitCode::SUCCESS)
}

/// Runs the switch without a bridge, and beside it what configures it.
fn serve(args: &VswitchdArgs, folders: Folders, here: &Path) -> Result<(), VswitchdError> {
    let (endpoint, tls) = database_of(args, &folders)?;
    let control = args.control.clone().unwrap_or_else(|| own_control_socket(&folders, here));
    let is_none = control == Path::new("none");
    let control = if is_none { control } else { here.join(&folders.run).join(&control) };
    let switch = SwitchArgs {
        control: Some(control),
        metrics: args.metrics,
        workers: Some(args.workers),
        ..SwitchArgs::default()
    };
    let mut config = switch.resolve()?;
    let base = config.bridges.remove(0);
    let name = format!("{}.{}.ctl", daemon::PROCESS_NAME, std::process::id());
    let path = args.unixctl.clone().unwrap_or_else(|| PathBuf::from(name));
    let unixctl = ControlSocket::bind(&here.join(&folders.run).join(&path))?;
    let listener = unixctl.listener().map_err(failed("listening for ovs-appctl"))?;
    let exit = Rc::new(Notify::new());
    let (is_over, has_parent) = (Rc::clone(&exit), Cell::new(args.detached));
    tracing::info!("{VERSION}, by weir {}", env!("CARGO_PKG_VERSION"));
    let dummies = args.enable_dummy;
    let drive = move |switch: RunningSwitch| {
        let daemon = Rc::new(Daemon {
            bridges: Rc::clone(switch.bridges()),
            base,
            folders,
            wanted: RefCell::default(),
            exit,
            dummies,
            warped: Notify::new(),
            has_parent,
        });
        match tokio::net::UnixListener::from_std(listener) {
            Ok(listener) => {
                tokio::task::spawn_local(unixctl::serve_unixctl(Rc::clone(&daemon), listener));
            }
            Err(error) => tracing::error!(%error, "ovs-appctl is not answered"),
        }
        Database::new(daemon, endpoint, tls).run()
    };
    let stop = || {
        let signal = stop_signal()?;
        Ok(async move {
            tokio::select! {
                () = signal => {}
                () = is_over.notified() => {}
            }
        })
    };
    run_driven_until(config, stop, drive)?;
    tracing::info!("the daemon ends");
    Ok(())
}

/// The name of the control socket where none is given: with the process's number while another
/// daemon, which has the database's lock, listens at the usual place.
fn own_control_socket(folders: &Folders, here: &Path) -> PathBuf {
    let usual = Path::new("weir.sock");
    if UnixStream::connect(here.join(&folders.run).join(usual)).is_err() {
        return usual.to_owned();
    }
    let own = PathBuf::from(format!("weir.{}.sock", std::process::id()));
    tracing::info!("another daemon listens at {}: --control={}", usual.display(), own.display());
    own
}

/// The database's endpoint, and who we are there.
fn database_of(
    args: &VswitchdArgs,
    folders: &Folders,
) -> Result<(Endpoint, Option<Tls>), VswitchdError> {
    let endpoint = match args.database.as_deref() {
        None => Endpoint::Unix(folders.run.join("db.sock")),
        Some(text) => match text.split_once(':') {
            // Without a port it is the database's, not OpenFlow's.
            Some((kind @ ("tcp" | "ssl"), host)) if !has_port(host) => {
                format!("{kind}:{host}:6640").parse()?
            }
            Some(("unix", file)) => Endpoint::Unix(folders.run.join(file)),
            Some(_) | None => text.parse()?,
        },
    };
    if endpoint.is_passive() {
        return Err(VswitchdError::Passive(endpoint));
    }
    let files = (&args.private_key, &args.certificate, &args.ca_cert);
    let tls = match files {
        (Some(private_key), Some(certificate), Some(ca_cert)) if endpoint.is_tls() => {
            let (private_key, certificate) = (private_key.clone(), certificate.clone());
            Some(Tls::load(TlsFiles { private_key, certificate, ca_cert: ca_cert.clone() }, false)?)
        }
        _ if endpoint.is_tls() => return Err(VswitchdError::NoKey(endpoint)),
        _ => None,
    };
    Ok((endpoint, tls))
}

/// Whether a host is followed by a port; the address of version 6 stands in brackets.
fn has_port(host: &str) -> bool {
    host.rsplit_once(']').map_or(host, |(_, rest)| rest).contains(':')
}
