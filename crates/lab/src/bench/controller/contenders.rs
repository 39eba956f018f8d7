//! The controllers that the bench starts by itself: Weir, others', and any command.
//!
//! Each gets a folder and a TCP port of its own on this machine, and may use the cores that it is
//! given and no others. Dropping one ends its process.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::Command;
use std::str::FromStr;

use anyhow::{Context, Result, bail, ensure};
use channel::{Endpoint, Tls};
use files::proc::ProcFolder;
use netdev::sys::affinity;
use openflow::Version;
use programs::cancel::Cancel;
use programs::held::Held;
use programs::listening::free_port;

use super::super::scratch;
use crate::controller::{self, ControllerPlan, ControllerProgram, start_listening};
use crate::keys::ChannelKeys;
use crate::service::{ProgramPaths, Service, ServiceContext};
use crate::settings::AppKind;

/// Open vSwitch's controller, and the most connections that it takes (`MAX_SWITCHES` in its
/// source); others wait until one of those ends.
const OVS_TESTCONTROLLER: &str = "ovs-testcontroller";
const OVS_SWITCHES_MAX: u32 = 16;

/// Weir's apps in Python: their name, the interpreter's variable, and the package's examples.
const WEIR_PYTHON: &str = "weir-python";
const PYTHON_VARIABLE: &str = "WEIR_PYTHON";
const PYTHON_HUB: &str = include_str!("../../../../../python/examples/hub.py");
const PYTHON_LEARNING_SWITCH: &str =
    include_str!("../../../../../python/examples/learning_switch.py");

/// A controller by name, as `--vs` takes it.
#[derive(Clone, Debug)]
pub(super) struct Contender {
    /// Its name in rows.
    pub(super) name: String,
    /// Whether switches connect with TLS.
    tls: bool,
    /// The most switches that it serves, where there is such a number.
    pub(super) switches_max: Option<u32>,
    kind: ContenderKind,
}

#[derive(Clone, Debug)]
enum ContenderKind {
    /// `weir controller`, with further words.
    Weir(Vec<String>),
    /// The apps of the package's examples, by `weir run`.
    WeirPython,
    /// One that the lab knows.
    Known(&'static ControllerProgram),
    /// A command, with `{port}` where the port is.
    Command(Vec<String>),
}

impl Contender {
    fn new(name: &str, kind: ContenderKind) -> Self {
        let is_ovs =
            matches!(kind, ContenderKind::Known(known) if known.name == OVS_TESTCONTROLLER);
        let switches_max = is_ovs.then_some(OVS_SWITCHES_MAX);
        Self { name: name.to_owned(), tls: false, switches_max, kind }
    }

    /// The same, with or without TLS.
    pub(super) fn with_tls(self, tls: bool) -> Self {
        Self { tls, ..self }
    }

    /// Whether what it needs is installed.
    ///
    /// # Errors
    /// Names the missing program, and the remedy.
    pub(super) fn check(&self, paths: &ProgramPaths) -> Result<()> {
        if let ContenderKind::Known(known) = &self.kind {
            (known.programs)(paths).with_context(|| self.name.clone())?;
        }
        if matches!(self.kind, ContenderKind::WeirPython) {
            let python = python();
            let asked = Command::new(&python).args(["-c", "import weir._weir"]).output();
            ensure!(
                asked.is_ok_and(|output| output.status.success()),
                "{}: {} has no package weir: `pip install .` in the repository, or name another \
                 interpreter by {PYTHON_VARIABLE}",
                self.name,
                python.display()
            );
        }
        Ok(())
    }

    /// Weir, with further words on its command line, under a name of its own.
    pub(super) fn weir(name: &str, words: &[&str]) -> Self {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        Self::new(name, ContenderKind::Weir(words))
    }

    /// The controller of this name: Weir, one of the lab's, or one of `commands`.
    ///
    /// # Errors
    /// There is none; which there are.
    pub(super) fn find(name: &str, commands: &[NamedCommand]) -> Result<Self> {
        if let Some(command) = commands.iter().find(|command| command.name == name) {
            return Ok(Self::new(name, ContenderKind::Command(command.words.clone())));
        }
        if name == "weir" {
            return Ok(Self::weir(name, &[]));
        }
        if name == WEIR_PYTHON {
            return Ok(Self::new(name, ContenderKind::WeirPython));
        }
        let Some(known) = controller::find(name) else {
            let lab = controller::ALL.iter().map(|known| known.name);
            let all = lab.chain(commands.iter().map(|command| command.name.as_str()));
            bail!(
                "no controller {name:?}: there is {WEIR_PYTHON}, {} (others: --command \
                 NAME=COMMAND)",
                all.collect::<Vec<_>>().join(", ")
            );
        };
        Ok(Self::new(name, ContenderKind::Known(known)))
    }
}

/// `NAME=COMMAND`: how another controller is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamedCommand {
    name: String,
    words: Vec<String>,
}

impl FromStr for NamedCommand {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = "use NAME=COMMAND, with {port} in the command where the port to listen on is";
        let (name, command) = text.split_once('=').ok_or(form)?;
        let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
        if name.is_empty() || words.is_empty() || !command.contains("{port}") {
            return Err(form.to_owned());
        }
        Ok(Self { name: name.to_owned(), words })
    }
}

/// Plan for the start of controllers.
#[derive(Debug)]
pub(super) struct LaunchPlan<'a> {
    /// Their application.
    pub(super) app: AppKind,
    /// The app that Weir runs in its place.
    pub(super) own_app: Option<&'static str>,
    /// Whether REST is served beside it.
    pub(super) has_rest: bool,
    /// The version that they speak.
    pub(super) version: Version,
    /// The cores that they may use; empty for all.
    pub(super) cores: Vec<usize>,
    /// Paths of the programs.
    pub(super) paths: &'a ProgramPaths,
    /// Ends every wait.
    pub(super) cancel: &'a Cancel,
}

/// A controller that runs.
#[derive(Debug)]
pub(super) struct Running {
    /// Its name.
    pub(super) name: String,
    /// Address at which it listens.
    pub(super) endpoint: Endpoint,
    /// The switches' side of TLS.
    pub(super) tls: Option<Tls>,
    /// Its process.
    pub(super) pid: u32,
    /// `HOST:PORT` of its REST, if it was asked for.
    pub(super) rest: Option<String>,
    service: Service,
    /// Goes after its process.
    _folder: tempfile::TempDir,
}

impl Running {
    /// Starts a controller.
    ///
    /// # Errors
    /// It is not installed, or does not listen in time.
    pub(super) fn start(contender: &Contender, plan: &LaunchPlan<'_>) -> Result<Self> {
        let folder = scratch()?;
        let port = free_port().context("looking for a port")?;
        let context = ServiceContext {
            namespace: None,
            dir: folder.path(),
            version: plan.version,
            paths: plan.paths,
            cancel: plan.cancel,
        };
        let address = Ipv4Addr::LOCALHOST;
        let is_weir = matches!(contender.kind, ContenderKind::Weir(_));
        ensure!(is_weir || !contender.tls, "{} is started without TLS only", contender.name);
        let keys = contender.tls.then(|| ChannelKeys::make(folder.path())).transpose()?;
        let wanted = ControllerPlan { context, app: plan.app, address, port, keys: keys.as_ref() };
        let rest = plan.has_rest.then(free_port).transpose()?;
        let rest = rest.map(|port| format!("{address}:{port}"));
        let has_rest = match &contender.kind {
            ContenderKind::Weir(_) => true,
            ContenderKind::Command(words) => words.iter().any(|word| word.contains("{rest}")),
            ContenderKind::WeirPython | ContenderKind::Known(_) => false,
        };
        let runs_any = matches!(contender.kind, ContenderKind::Weir(_) | ContenderKind::Command(_));
        ensure!(
            plan.own_app.is_none() || runs_any,
            "{} is started with a hub or a learning switch only: start it yourself, and name it by \
             --target",
            contender.name
        );
        ensure!(
            rest.is_none() || has_rest,
            "{} is started without REST: start it yourself, and name it by --target and --rest",
            contender.name
        );
        let service = match &contender.kind {
            ContenderKind::Weir(words) => {
                let app = plan.own_app.unwrap_or(plan.app.name());
                let rest = rest.iter().flat_map(|rest| ["--rest", rest]);
                let protocols = ["--protocols", plan.version.name()];
                let words = rest.chain(protocols).chain(words.iter().map(String::as_str));
                controller::start_weir(&wanted, app, &words.collect::<Vec<_>>())?
            }
            ContenderKind::WeirPython => start_python(&wanted)?,
            ContenderKind::Known(known) => {
                (known.start)(&wanted).with_context(|| contender.name.clone())?
            }
            ContenderKind::Command(words) => {
                start_command(&wanted, &contender.name, rest.as_deref(), words)?
            }
        };
        let pid = service.watched().first().context("a controller without a process")?.pid;
        let host = address.to_string();
        let endpoint =
            if contender.tls { Endpoint::Ssl { host, port } } else { Endpoint::Tcp { host, port } };
        let name = contender.name.clone();
        let tls = keys.map(|keys| Tls::load(keys.switch, false)).transpose()?;
        let running = Self { name, endpoint, tls, pid, rest, service, _folder: folder };
        pin(running.pid, &plan.cores)?;
        Ok(running)
    }

    /// Holds it still until what is returned goes.
    ///
    /// # Errors
    /// It has ended.
    pub(super) fn hold(&self) -> Result<Held> {
        Held::hold(self.pid).with_context(|| self.name.clone())
    }

    /// The last lines that it has written, for an error about it.
    pub(super) fn tails(&self) -> String {
        self.service.tails()
    }
}

/// Lets the threads of a process, and those that they will start, use these cores only, and those
/// first.
///
/// # Errors
/// It has ended.
pub(super) fn pin(pid: u32, cores: &[usize]) -> Result<()> {
    let threads = ProcFolder::of(pid).threads().context("listing its threads")?;
    for (tid, _) in threads {
        // A thread may have ended meanwhile.
        if let Err(error) = affinity::allow(Some(tid), cores) {
            tracing::debug!(tid, %error, "a thread was not given its cores");
        }
        emulator::prefer(Some(tid));
    }
    Ok(())
}

/// The interpreter that `weir run` takes.
fn python() -> PathBuf {
    std::env::var_os(PYTHON_VARIABLE).map_or_else(|| "python3".into(), PathBuf::from)
}

fn start_python(plan: &ControllerPlan<'_>) -> Result<Service> {
    let context = &plan.context;
    let (file, text) = match plan.app {
        AppKind::Hub => ("hub.py", PYTHON_HUB),
        AppKind::LearningSwitch => ("learning_switch.py", PYTHON_LEARNING_SWITCH),
    };
    let file = context.dir.join(file);
    std::fs::write(&file, text).context("writing the app")?;
    let mut command = Command::new(&context.paths.weir);
    command.arg("run").arg(&file).args(["--protocols", context.version.name()]);
    command.arg("--listen").arg(format!("tcp:{}:{}", plan.address, plan.port));
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    Ok(start_listening(WEIR_PYTHON, command, plan, 0)?)
}

fn start_command(
    plan: &ControllerPlan<'_>,
    name: &str,
    rest: Option<&str>,
    words: &[String],
) -> Result<Service> {
    let port = plan.port.to_string();
    let rest = rest.unwrap_or_default();
    let mut words = words.iter().map(|word| word.replace("{port}", &port).replace("{rest}", rest));
    let program = words.next().context("a command without a word")?;
    let mut command = Command::new(program);
    command.args(words);
    Ok(start_listening(name, command, plan, 0)?)
}

#[cfg(test)]
mod tests {
    use super::{Contender, NamedCommand};

    #[test]
    fn controllers_are_found_by_name() {
        let command: NamedCommand = "mine=./mine --port {port}".parse().unwrap();
        let commands = [command];
        for name in ["weir", "weir-python", "ovs-testcontroller", "os-ken", "mine"] {
            assert_eq!(Contender::find(name, &commands).unwrap().name, name);
        }
        let error = Contender::find("floodlight", &commands).unwrap_err().to_string();
        assert!(error.contains("ovs-testcontroller") && error.contains("mine"), "{error}");
        for text in ["", "mine", "=x {port}", "mine=", "mine=./mine"] {
            assert!(text.parse::<NamedCommand>().unwrap_err().contains("{port}"), "{text}");
        }
    }
}
