//! `weir run`: apps in Python, by the interpreter that has the package `weir`.
//!
//! The program becomes the interpreter, so that signals and exit codes are the app's own. It must
//! never guess a package that is not there: the error says how to install it.

use std::convert::Infallible;
use std::ffi::OsString;
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
    let mut command = Command::new(&arguments.python);
    // With --network the interpreter starts this program again.
    if let Ok(program) = std::env::current_exe() {
        command.env("WEIR", program);
    }
    command.arg("-c").arg(START).arg("run").args(arguments.arguments);
    let (error, program) = (command.exec(), arguments.python.to_string_lossy());
    Err(anyhow!("{program}: {error}; name a Python interpreter by --python or WEIR_PYTHON"))
}
