//! Controllers as the subjects of a campaign: Weir's and others', any command, and one that runs
//! already. A fleet of emulated switches loads them.
//!
//! One that is started listens where the plan says, on the cores of the testbed and no others, and
//! ends with its value. One that runs already must never be stopped, held or moved.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use channel::{DEFAULT_PORT, Endpoint, Tls, TlsFiles};
use files::proc::ProcFolder;
use netdev::sys::affinity;
use programs::listening::free_port;
use programs::tools::{Missing, Program};

use super::{Dut, DutId, DutPlan, StartedDut};
use crate::controller::{self, ControllerPlan, ControllerProgram, start_listening};
use crate::service::{ProgramPaths, Service, ServiceError};
use crate::settings::{AppKind, ChannelTransport, FleetSettings, Settings};
use crate::testbed::Testbed;
use crate::testbed::fleet::FleetTestbed;

/// Open vSwitch's controller, and the most connections that it takes (`MAX_SWITCHES` in its
/// source); others wait until one of those ends.
const OVS_TESTCONTROLLER: &str = "ovs-testcontroller";
const OVS_SWITCHES_MAX: u32 = 16;

/// The interpreter's variable of Weir's apps in Python, and the package's examples.
const PYTHON_VARIABLE: &str = "WEIR_PYTHON";
const PYTHON_HUB: &str = include_str!("../../../../python/examples/hub.py");
const PYTHON_LEARNING_SWITCH: &str = include_str!("../../../../python/examples/learning_switch.py");

const PYTHON_ABOUT: &str =
    "Weir's hub and learning switch in Python, with the interpreter of WEIR_PYTHON";

/// A controller; Weir's own, `weir`, is a row of the switches.
pub(super) struct Controller {
    id: DutId,
    kind: Kind,
}

enum Kind {
    /// The apps of the package's examples, by `weir run`.
    WeirPython,
    /// One that the lab knows.
    Known(&'static ControllerProgram),
    /// A command, with `{port}` where the port is.
    Command(Vec<String>),
    /// One that runs already.
    Running(Endpoint),
}

const fn known(program: &'static ControllerProgram) -> Controller {
    let ControllerProgram { name, about, .. } = program;
    Controller { id: DutId::new(name, about), kind: Kind::Known(program) }
}

/// A sentence about `NAME=COMMAND`.
pub(crate) const COMMAND_ABOUT: &str =
    "Any that COMMAND starts, with {port} where its port is, and {rest} where its REST is asked";

/// A sentence about an address.
pub(crate) const RUNNING_ABOUT: &str =
    "One that runs already, as does that of ssl:HOST:PORT (docs/bench.md)";

/// Every controller but Weir's own and those of words.
pub(crate) const ALL: &[&dyn Dut] = &[
    &Controller { id: DutId::new("weir-python", PYTHON_ABOUT), kind: Kind::WeirPython },
    &known(&controller::ALL[1]),
    &known(&controller::ALL[2]),
];

/// The controller of a word: `NAME=COMMAND` with `{port}` in the command, or the address of one
/// that runs already. It stays for as long as the lab runs.
///
/// # Errors
/// An address that is none; `Ok(None)` where the word has another form.
pub(super) fn of_word(word: &str) -> Result<Option<&'static dyn Dut>, String> {
    let made = |name: &str, about: String, kind| -> &'static dyn Dut {
        Box::leak(Box::new(Controller { id: DutId::of_word(word, name, about), kind }))
    };
    if ["tcp:", "ssl:"].iter().any(|kind| word.starts_with(kind)) {
        let endpoint = word.parse::<Endpoint>().map_err(|error| {
            format!("{error}; tcp:HOST or tcp:HOST:PORT will do, the port is {DEFAULT_PORT} else")
        })?;
        return Ok(Some(made(word, format!("The controller at {word}"), Kind::Running(endpoint))));
    }
    let command = word.split_once('=').filter(|(_, command)| command.contains("{port}"));
    let Some((name, command)) = command else { return Ok(None) };
    if name.is_empty() {
        return Err(format!("{word:?}: use NAME=COMMAND, with {{port}} where the port is"));
    }
    let words = command.split_whitespace().map(str::to_owned).collect();
    Ok(Some(made(name, format!("A controller by {command}"), Kind::Command(words))))
}

/// Settings of a controller that listens at the address of the plan.
fn controller_plan<'a>(plan: &DutPlan<'a>) -> Result<ControllerPlan<'a>, ServiceError> {
    let port = match plan.listen.first() {
        Some(Endpoint::PassiveTcp { port, .. } | Endpoint::PassiveSsl { port, .. }) => *port,
        _ => return Err(ServiceError::Unfit("a controller listens on TCP".to_owned())),
    };
    let app = plan.settings.app.unwrap_or(AppKind::LearningSwitch);
    let address = Ipv4Addr::LOCALHOST;
    Ok(ControllerPlan { context: plan.context, app, address, port, keys: plan.keys })
}

fn fleet_of<'a>(plan: &DutPlan<'a>) -> Result<&'a FleetSettings, ServiceError> {
    plan.settings.fleet.as_ref().ok_or_else(|| ServiceError::Unfit("no fleet".to_owned()))
}

/// `HOST:PORT` for the REST of a controller that is started, where it is asked for.
fn rest_of(fleet: &FleetSettings) -> Result<Option<String>, ServiceError> {
    let unfit = |error| ServiceError::Unfit(format!("looking for a port: {error}"));
    let port = fleet.has_rest.then(free_port).transpose().map_err(unfit)?;
    Ok(port.map(|port| format!("{}:{port}", Ipv4Addr::LOCALHOST)))
}

/// A controller that has been started, on its cores.
fn started(
    plan: &DutPlan<'_>,
    bed: &FleetTestbed,
    service: Service,
    rest: Option<String>,
) -> Result<StartedDut, ServiceError> {
    let unfit =
        |what: &str, error: &dyn std::fmt::Display| ServiceError::Unfit(format!("{what}: {error}"));
    for pid in service.watched().iter().map(|one| one.pid) {
        let threads = ProcFolder::of(pid).threads();
        for (tid, _) in threads.map_err(|error| unfit("the controller's threads", &error))? {
            // A thread may have ended meanwhile; those that it starts inherit its cores.
            if let Err(error) = affinity::allow(Some(tid), bed.controller_cores()) {
                tracing::debug!(tid, %error, "a thread was not given its cores");
            }
            emulator::prefer(Some(tid));
        }
    }
    let tls = plan.keys.map(|keys| Tls::load(keys.switch.clone(), false)).transpose();
    let tls = tls.map_err(|error| unfit("the switches' keys", &error))?;
    Ok(StartedDut { tls, rest, ..StartedDut::listening(service, plan) })
}

/// Weir's own controller, of the build `program`, with further words on its command line.
pub(super) fn start_weir(
    plan: &DutPlan<'_>,
    bed: &FleetTestbed,
    program: &Path,
    words: &[&str],
) -> Result<StartedDut, ServiceError> {
    let (fleet, wanted) = (fleet_of(plan)?, controller_plan(plan)?);
    let paths = ProgramPaths { weir: program.to_owned(), ..plan.context.paths.clone() };
    let mut wanted = wanted;
    wanted.context.paths = &paths;
    let rest = rest_of(fleet)?;
    let shards = plan.settings.workers.unwrap_or(1).to_string();
    let protocols = ["--protocols", plan.context.version.name(), "--shards", &shards];
    let rest_words = rest.iter().flat_map(|rest| ["--rest", rest.as_str()]);
    let words: Vec<&str> = rest_words.chain(protocols).chain(words.iter().copied()).collect();
    let app = fleet.own_app.as_deref().unwrap_or(wanted.app.name());
    let service = controller::start_weir(&wanted, app, &words)?;
    started(plan, bed, service, rest)
}

/// The interpreter that `weir run` takes.
fn python() -> PathBuf {
    std::env::var_os(PYTHON_VARIABLE).map_or_else(|| "python3".into(), PathBuf::from)
}

fn start_python(plan: &ControllerPlan<'_>) -> Result<Service, ServiceError> {
    let context = &plan.context;
    let (file, text) = match plan.app {
        AppKind::Hub => ("hub.py", PYTHON_HUB),
        AppKind::LearningSwitch => ("learning_switch.py", PYTHON_LEARNING_SWITCH),
    };
    let path = context.dir.join(file);
    std::fs::write(&path, text)
        .map_err(|source| ServiceError::File { path: path.clone(), source })?;
    let mut command = Command::new(&context.paths.weir);
    command.arg("run").arg(&path).args(["--protocols", context.version.name()]);
    command.arg("--listen").arg(format!("tcp:{}:{}", plan.address, plan.port));
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    start_listening("weir-python", command, plan, 0)
}

impl Controller {
    fn start_command(
        &self,
        plan: &ControllerPlan<'_>,
        words: &[String],
        rest: Option<&str>,
    ) -> Result<Service, ServiceError> {
        let (port, rest) = (plan.port.to_string(), rest.unwrap_or_default());
        let mut words =
            words.iter().map(|word| word.replace("{port}", &port).replace("{rest}", rest));
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words);
        start_listening(self.id.name, command, plan, 0)
    }

    /// The keys of a controller that runs already, of the settings.
    fn own_tls(fleet: &FleetSettings) -> Result<Option<Tls>, ServiceError> {
        let files = (&fleet.private_key, &fleet.certificate, &fleet.ca_cert);
        let (Some(private_key), Some(certificate), Some(ca_cert)) = files else { return Ok(None) };
        let files = TlsFiles {
            private_key: private_key.clone(),
            certificate: certificate.clone(),
            ca_cert: ca_cert.clone(),
        };
        let loaded = Tls::load(files, false);
        loaded.map(Some).map_err(|error| ServiceError::Unfit(format!("fleet's keys: {error}")))
    }
}

impl Dut for Controller {
    fn id(&self) -> DutId {
        self.id
    }

    fn is_controller(&self) -> bool {
        true
    }

    fn check(&self, settings: &Settings, _paths: &ProgramPaths) -> Result<(), String> {
        let Some(fleet) = &settings.fleet else {
            return Err("is a controller: no packets cross it".to_owned());
        };
        let has_tls = match &self.kind {
            Kind::Known(program) => program.has_tls,
            Kind::Running(endpoint) => endpoint.is_tls(),
            Kind::WeirPython | Kind::Command(_) => false,
        };
        if settings.transport() == ChannelTransport::Tls && !has_tls {
            return Err(match &self.kind {
                Kind::Running(_) => "its channel is plain: name it ssl:HOST:PORT".to_owned(),
                Kind::WeirPython | Kind::Known(_) | Kind::Command(_) => {
                    "is started without TLS only".to_owned()
                }
            });
        }
        if self.id.name == OVS_TESTCONTROLLER && fleet.switches() > OVS_SWITCHES_MAX {
            return Err(format!("serves at most {OVS_SWITCHES_MAX} switches"));
        }
        let has_rest = match &self.kind {
            Kind::Command(words) => words.iter().any(|word| word.contains("{rest}")),
            Kind::Running(_) => fleet.rest.is_some(),
            Kind::WeirPython | Kind::Known(_) => false,
        };
        if fleet.has_rest && !has_rest {
            return Err(
                "is started without REST: name a command with {rest}, or start it yourself \
                        and set fleet.rest"
                    .to_owned(),
            );
        }
        match &self.kind {
            Kind::Running(endpoint) if endpoint.is_tls() != fleet.private_key.is_some() => {
                Err("ssl: needs fleet.private_key, fleet.certificate and fleet.ca_cert (weir pki \
                     makes them), and they need ssl:"
                    .to_owned())
            }
            Kind::WeirPython | Kind::Known(_) | Kind::Command(_) | Kind::Running(_) => Ok(()),
        }
    }

    fn keeps_entries(&self) -> bool {
        matches!(self.kind, Kind::Running(_))
    }

    fn start_cost(&self, _settings: &Settings) -> Duration {
        match &self.kind {
            Kind::Known(program) => program.start_cost,
            Kind::WeirPython | Kind::Command(_) => Duration::from_secs(1),
            Kind::Running(_) => Duration::ZERO,
        }
    }

    fn programs(&self, paths: &ProgramPaths) -> Result<Vec<Program>, Missing> {
        match &self.kind {
            Kind::Known(program) => (program.programs)(paths),
            Kind::WeirPython => {
                let python = python();
                let asked = Command::new(&python).args(["-c", "import weir._weir"]).output();
                if !asked.is_ok_and(|output| output.status.success()) {
                    return Err(Missing(format!(
                        "{} has no package weir: `pip install .` in the repository, or name \
                         another interpreter by {PYTHON_VARIABLE}",
                        python.display()
                    )));
                }
                Ok(vec![Program::ask("python", &python, &["--version"])])
            }
            Kind::Command(_) | Kind::Running(_) => Ok(Vec::new()),
        }
    }

    fn start(&self, plan: &DutPlan<'_>) -> Result<StartedDut, ServiceError> {
        let (fleet, Testbed::Fleet(bed)) = (fleet_of(plan)?, plan.bed) else {
            return Err(ServiceError::Unfit("is a controller".to_owned()));
        };
        if let Kind::Running(endpoint) = &self.kind {
            if let Some(pid) = fleet.pid.filter(|pid| ProcFolder::of(*pid).threads().is_err()) {
                let why = format!("fleet.pid: no process {pid} runs on this machine");
                return Err(ServiceError::Unfit(why));
            }
            let (bridges, tls) = (vec![endpoint.clone()], Self::own_tls(fleet)?);
            let (rest, service) = (fleet.rest.clone(), Service::new());
            return Ok(StartedDut { bridges, tls, rest, ..StartedDut::without_channel(service) });
        }
        let (wanted, rest) = (controller_plan(plan)?, rest_of(fleet)?);
        let service = match &self.kind {
            Kind::WeirPython => start_python(&wanted)?,
            Kind::Known(program) => (program.start)(&wanted)?,
            Kind::Command(words) => self.start_command(&wanted, words, rest.as_deref())?,
            Kind::Running(_) => Service::new(),
        };
        started(plan, bed, service, rest)
    }
}

#[cfg(test)]
mod tests {
    use super::{ALL, of_word};
    use crate::dut::{self, Dut};
    use crate::service::ProgramPaths;
    use crate::settings::{ChannelTransport, FleetSettings, Settings};

    fn refusal(dut: &dyn Dut, fleet: Option<FleetSettings>) -> String {
        let paths = ProgramPaths::new("weir".into(), "none".into());
        let settings = Settings { fleet, ..Settings::default() };
        dut.check(&settings, &paths).err().unwrap_or_default()
    }

    #[test]
    fn controllers_are_found_by_name_by_command_and_by_address() {
        for name in ["weir-python", "ovs-testcontroller", "os-ken"] {
            assert!(ALL.iter().any(|one| one.name() == name), "{name}");
            assert!(dut::find(name).unwrap().is_controller(), "{name}");
        }
        assert_eq!(of_word("mine=./mine {port}").unwrap().unwrap().name(), "mine");
        assert_eq!(dut::find("tcp:127.0.0.1").unwrap().name(), "tcp:127.0.0.1");
        assert!(of_word("tcp:127.0.0.1:none").err().unwrap().contains("tcp:HOST:PORT"));
        assert!(of_word("mine=./mine").unwrap().is_none(), "a switch");
        assert!(of_word("=./mine {port}").is_err());
    }

    #[test]
    fn what_a_controller_lacks_is_named() {
        let find = |name| dut::find(name).unwrap();
        let ovs = find("ovs-testcontroller");
        assert!(refusal(ovs, None).contains("no packets cross it"));
        assert_eq!(refusal(ovs, Some(FleetSettings::default())), "");
        let many = FleetSettings { switches: Some(17), ..FleetSettings::default() };
        assert!(refusal(ovs, Some(many)).contains("at most 16"));
        let rest = || Some(FleetSettings { has_rest: true, ..FleetSettings::default() });
        assert!(refusal(ovs, rest()).contains("fleet.rest"));
        assert_eq!(refusal(find("mine=./mine {port} {rest}"), rest()), "");
        assert!(refusal(find("tcp:127.0.0.1"), rest()).contains("fleet.rest"));
        let (paths, fleet) =
            (ProgramPaths::new("weir".into(), "none".into()), Some(<_>::default()));
        let tls = Settings { fleet, transport: Some(ChannelTransport::Tls), ..Settings::default() };
        let plain = find("tcp:127.0.0.1").check(&tls, &paths).unwrap_err();
        assert!(plain.contains("ssl:HOST:PORT"), "{plain}");
        assert!(
            refusal(find("ssl:127.0.0.1"), Some(FleetSettings::default())).contains("weir pki")
        );
    }
}
