//! `weir run` and `weir ryu-manager`: apps in Python, by the interpreter that has the package
//! `weir`.
//!
//! The program becomes the interpreter, so that signals and exit codes are the app's own. It must
//! never guess a package that is not there: the error says how to install it.

use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use anyhow::{Context as _, anyhow};
use clap::Args;

pub(crate) const USAGE: &str = "weir run [--python PROGRAM] FILE [OPTIONS]";

pub(crate) const EXAMPLES: &str = "\
Options behind FILE, with those of `python3 FILE` where the file calls weir.run:
  --listen ENDPOINT     accept switches here [default: tcp:0.0.0.0:6653, unless --connect is given]
  --connect ENDPOINT    connect to a switch that listens here
  --protocols VERSIONS  OpenFlow versions to offer, joined by commas
  --shards N            threads that serve switches
  --reload              take the file again whenever it changes
  --observe-links       discover links and hosts
  --rest HOST:PORT      serve REST and a page to look at, as weir controller does
  --metrics ADDR:PORT   serve metrics for Prometheus, as weir controller does
  --network             make the network that the file describes, and serve its switches
All of them: weir run FILE --help

Examples:
  weir run python/examples/hub.py
      serves the apps of the file to switches that connect to port 6653 of this machine
  weir run app.py --listen tcp:127.0.0.1:6633 --protocols OpenFlow13 --reload
      only switches of this machine, only OpenFlow 1.3; a changed file is taken while it runs
  weir run python/examples/hub_network.py --network
      hosts in network namespaces and real switches, as the file describes them; see weir net

The interpreter is that of --python, of WEIR_PYTHON or python3; it needs the package of this
repository: pip install .";

/// The interpreter and its arguments.
#[derive(Args)]
pub(crate) struct PythonArgs {
    /// The Python interpreter that has the package weir
    #[arg(long, value_name = "PROGRAM", env = "WEIR_PYTHON", default_value = "python3")]
    python: OsString,

    /// The file with the apps, and its options
    #[arg(
        value_name = "FILE",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    arguments: Vec<OsString>,
}

/// Imports the package and says what is missing, in one start of the interpreter.
const START: &str = "\
import sys
try:
    import weir._weir
    from weir.__main__ import main
except ImportError as error:
    sys.exit(
        f'weir {sys.argv[1]}: {sys.executable} does not have the package weir ({error}); '
        'run `pip install .` in the repository of Weir with the pip of this interpreter, or name '
        'another interpreter by --python or WEIR_PYTHON'
    )
sys.exit(main())
";

/// The interpreter, and the apps with their options.
#[derive(Args)]
pub(crate) struct RyuArgs {
    /// The Python interpreter that has the package weir
    #[arg(long, value_name = "PROGRAM", env = "WEIR_PYTHON", default_value = "python3")]
    python: OsString,

    /// The apps, as files or names of modules, and options
    #[arg(
        value_name = "APP",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    arguments: Vec<OsString>,
}

pub(crate) const RYU_USAGE: &str = "weir ryu-manager [--python PROGRAM] APP.. [OPTIONS]";

pub(crate) const RYU_EXAMPLES: &str = "\
Options behind the first app are those of weir run, those of ryu-manager, and the apps' own:
  --ofp-tcp-listen-port PORT  accept switches at this port only [default: 6653 and 6633]
  --observe-links             discover links, as ryu.topology needs it
  --config-file FILE          options of apps
  --verbose                   log more
All of them: weir ryu-manager -- --help

Examples:
  weir ryu-manager simple_switch_13.py
      an app of Ryu or os-ken as it is, for switches that connect to port 6653 or 6633
  weir ryu-manager app.py ryu.app.rest_topology --observe-links --ofp-tcp-listen-port 6653
      two apps, one of them by the name of its module
  weir run simple_switch_13.py --rest 127.0.0.1:8080
      the same by weir run, with REST and the page of weir controller beside it

The interpreter needs the package of this repository (pip install .), and neither Ryu nor os-ken.";

/// Becomes `python3 -m weir ryu-manager ...`.
///
/// # Errors
/// When the interpreter cannot be started.
pub(crate) fn become_ryu_manager(arguments: RyuArgs) -> anyhow::Result<Infallible> {
    start(&arguments.python, "ryu-manager", arguments.arguments)
}

/// Becomes `python3 -m weir run ...`.
///
/// # Errors
/// When there is no such file, or the interpreter cannot be started.
pub(crate) fn become_python(arguments: PythonArgs) -> anyhow::Result<Infallible> {
    // Before the interpreter looks for its package: a wrong file is the likelier mistake.
    let is_option = |word: &OsString| word.as_encoded_bytes().starts_with(b"-");
    if let Some(file) = arguments.arguments.first().filter(|word| !is_option(word)) {
        std::fs::metadata(file).with_context(|| file.to_string_lossy().into_owned())?;
    }
    start(&arguments.python, "run", arguments.arguments)
}

fn start(python: &OsStr, word: &str, arguments: Vec<OsString>) -> anyhow::Result<Infallible> {
    let mut command = Command::new(python);
    // With --network the interpreter starts this program again.
    if let Ok(program) = std::env::current_exe() {
        command.env("WEIR", program);
    }
    command.arg("-c").arg(START).arg(word).args(arguments);
    let (error, program) = (command.exec(), python.to_string_lossy());
    Err(anyhow!("{program}: {error}; name a Python interpreter by --python or WEIR_PYTHON"))
}
