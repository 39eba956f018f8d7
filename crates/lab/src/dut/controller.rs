//! Controllers: the lists of them, and how a fleet of emulated switches gets one to load.
//!
//! A new controller is one file under `controller/` and one line in [`ALL`]: a process that listens
//! on an address and runs one of the lab's applications. A fleet loads any command too, and one
//! that runs already, which must never be stopped, held or moved.

mod os_ken;
mod testcontroller;
mod weir;
mod weir_python;

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use channel::{DEFAULT_PORT, Endpoint, Tls};
use files::proc::ProcFolder;
use netdev::sys::affinity;
use programs::listening::{free_port, is_listened_on};

use super::{Dut, DutPlan, StartedDut, tls_files};
use crate::load::ProcessRole;
use crate::service::{ProgramPaths, Service, ServiceContext, key_options};
use crate::settings::{AppKind, ChannelTransport, FleetSettings, Settings};
use crate::testbed::Testbed;

/// The most connections that Open vSwitch's controller takes (`MAX_SWITCHES` in its source).
const OVS_SWITCHES_MAX: u32 = 16;

/// A sentence about `NAME=COMMAND`.
pub(crate) const COMMAND_ABOUT: &str =
    "Any that COMMAND starts, with {port} where its port is, and {rest} where its REST is asked";

/// A sentence about an address.
pub(crate) const RUNNING_ABOUT: &str =
    "One that runs already, as does that of ssl:HOST:PORT (docs/bench.md)";

/// Every controller that may decide for a switch.
pub const ALL: &[&Dut] = &[&weir::WEIR, &os_ken::OS_KEN, &testcontroller::OVS];

/// Every controller that a fleet may load, but those of words and `weir`, a row of the switches.
pub(crate) const SUBJECTS: &[&Dut] =
    &[&weir_python::WEIR_PYTHON, &os_ken::OS_KEN, &testcontroller::OVS];

/// The controller of that name that may decide for a switch.
pub fn find(name: &str) -> Option<&'static Dut> {
    ALL.iter().copied().find(|controller| controller.name == name)
}

impl Dut {
    /// A controller that the lab starts.
    const fn controller(name: &'static str, about: &'static str) -> Self {
        Self {
            is_controller: true,
            start_cost: Duration::from_secs(1),
            check: check_started,
            start,
            ..Self::new(name, about)
        }
    }
}

/// A command, with `{port}` where the port is.
const COMMAND: Dut = Dut { start: start_command, ..Dut::controller("", "") };

/// One that runs already.
const RUNNING: Dut = Dut {
    keeps_entries: true,
    start_cost: Duration::ZERO,
    check: check_running,
    start: start_running,
    ..Dut::controller("", "")
};

/// The controller of a word, `NAME=COMMAND` with `{port}` or an address; none of another form.
pub(crate) fn of_word(word: &str) -> Result<Option<&'static Dut>, String> {
    if ["tcp:", "ssl:"].iter().any(|kind| word.starts_with(kind)) {
        endpoint_of(word)?;
        return Ok(Some(RUNNING.with_word(word, word, &format!("The controller at {word}"))));
    }
    let command = word.split_once('=').filter(|(_, command)| command.contains("{port}"));
    let Some((name, command)) = command else { return Ok(None) };
    if name.is_empty() {
        return Err(format!("{word:?}: use NAME=COMMAND, with {{port}} where the port is"));
    }
    Ok(Some(COMMAND.with_word(word, name, &format!("A controller by {command}"))))
}

fn endpoint_of(word: &str) -> Result<Endpoint, String> {
    word.parse::<Endpoint>().map_err(|error| {
        format!("{error}; tcp:HOST or tcp:HOST:PORT will do, the port is {DEFAULT_PORT} else")
    })
}

const NO_PACKETS: &str = "is a controller: no packets cross it";

const NO_REST: &str = "is started without REST: name a command with {rest}, or start it yourself \
                       and set fleet.rest";

fn check_started(dut: &Dut, settings: &Settings, _paths: &ProgramPaths) -> Result<(), String> {
    let fleet = settings.fleet.as_ref().ok_or(NO_PACKETS)?;
    if settings.transport() == ChannelTransport::Tls && !dut.has_tls {
        return Err("is started without TLS only".to_owned());
    }
    if dut.name == testcontroller::OVS.name && fleet.switches() > OVS_SWITCHES_MAX {
        return Err(format!("serves at most {OVS_SWITCHES_MAX} switches"));
    }
    if fleet.has_rest && !dut.behind_name().contains("{rest}") {
        return Err(NO_REST.to_owned());
    }
    Ok(())
}

fn check_running(dut: &Dut, settings: &Settings, _paths: &ProgramPaths) -> Result<(), String> {
    let fleet = settings.fleet.as_ref().ok_or(NO_PACKETS)?;
    let has_tls = endpoint_of(dut.word)?.is_tls();
    if settings.transport() == ChannelTransport::Tls && !has_tls {
        return Err("its channel is plain: name it ssl:HOST:PORT".to_owned());
    }
    if fleet.has_rest && fleet.rest.is_none() {
        return Err(NO_REST.to_owned());
    }
    if has_tls != fleet.private_key.is_some() {
        let what = "ssl: needs fleet.private_key, fleet.certificate and fleet.ca_cert (weir pki \
                    makes them), and they need ssl:";
        return Err(what.to_owned());
    }
    Ok(())
}

/// Starts a controller by `serve`, which gets the fleet that loads it, the application, the address
/// and `HOST:PORT` for its REST where that is asked for; and gives it its cores.
fn on_its_cores(
    plan: &DutPlan<'_>,
    serve: impl FnOnce(&FleetSettings, AppKind, SocketAddrV4, Option<&str>) -> Result<Service>,
) -> Result<StartedDut> {
    let (Some(fleet), Testbed::Fleet(cores)) = (&plan.settings.fleet, plan.bed) else {
        bail!(NO_PACKETS);
    };
    let Some(Endpoint::PassiveTcp { port, .. } | Endpoint::PassiveSsl { port, .. }) =
        plan.listen.first()
    else {
        bail!("a controller listens on TCP");
    };
    let rest = fleet.has_rest.then(free_port).transpose();
    let rest = rest.map_err(|error| anyhow!("looking for a port: {error}"))?;
    let rest = rest.map(|port| format!("{}:{port}", Ipv4Addr::LOCALHOST));
    let app = plan.settings.app.unwrap_or(AppKind::LearningSwitch);
    let at = SocketAddrV4::new(Ipv4Addr::LOCALHOST, *port);
    let service = serve(fleet, app, at, rest.as_deref())?;
    for pid in service.watched().iter().map(|one| one.pid) {
        let threads = ProcFolder::of(pid).threads();
        for (tid, _) in threads.map_err(|error| anyhow!("the controller's threads: {error}"))? {
            // A thread may have ended meanwhile; those that it starts inherit its cores.
            if let Err(error) = affinity::allow(Some(tid), &cores.subject) {
                tracing::debug!(tid, %error, "a thread was not given its cores");
            }
            emulator::prefer(Some(tid));
        }
    }
    let tls = plan.context.keys.map(|keys| Tls::load(keys.switch.clone(), false)).transpose();
    let tls = tls.map_err(|error| anyhow!("the switches' keys: {error}"))?;
    Ok(StartedDut { tls, rest, ..StartedDut::listening(service, plan) })
}

/// Weir's own controller, of the build `program`, with further words on its command line.
pub(super) fn start_weir(plan: &DutPlan<'_>, program: &Path, more: &[&str]) -> Result<StartedDut> {
    on_its_cores(plan, |fleet, app, at, rest| {
        let shards = plan.settings.workers.unwrap_or(1).to_string();
        let mut words = vec!["--protocols", plan.context.version.name(), "--shards", &shards];
        words.extend(rest.into_iter().flat_map(|rest| ["--rest", rest]));
        words.extend(more);
        let app = fleet.own_app.as_deref().unwrap_or(app.name());
        weir::start(&plan.context, program, app, at, &words)
    })
}

fn start(plan: &DutPlan<'_>) -> Result<StartedDut> {
    on_its_cores(plan, |_, app, at, _| (plan.dut.serve)(&plan.context, app, at))
}

fn start_command(plan: &DutPlan<'_>) -> Result<StartedDut> {
    on_its_cores(plan, |_, _, at, rest| {
        let (port, rest) = (at.port().to_string(), rest.unwrap_or_default());
        let put = |word: &str| word.replace("{port}", &port).replace("{rest}", rest);
        let mut words = plan.dut.behind_name().split_whitespace().map(put);
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words);
        start_listening(plan.dut.name, command, &plan.context, at.port(), 0)
    })
}

fn start_running(plan: &DutPlan<'_>) -> Result<StartedDut> {
    let fleet = plan.settings.fleet.as_ref().ok_or_else(|| anyhow!(NO_PACKETS))?;
    if let Some(pid) = fleet.pid.filter(|pid| ProcFolder::of(*pid).threads().is_err()) {
        bail!("fleet.pid: no process {pid} runs on this machine");
    }
    let files = tls_files([&fleet.private_key, &fleet.certificate, &fleet.ca_cert]);
    let tls = files.map(|files| Tls::load(files, false)).transpose();
    let tls = tls.map_err(|error| anyhow!("fleet's keys: {error}"))?;
    let bridges = vec![endpoint_of(plan.dut.word).map_err(anyhow::Error::msg)?];
    Ok(StartedDut { bridges, tls, rest: fleet.rest.clone(), ..StartedDut::default() })
}

/// Longest time until a controller listens; Python's imports on a busy machine take long.
const START_LIMIT: Duration = Duration::from_secs(30);

/// Starts a controller's program, which uses `cores_max` cores at once (0 for any number), and
/// waits until the port is listened on.
fn start_listening(
    name: &str,
    command: Command,
    context: &ServiceContext<'_>,
    port: u16,
    cores_max: usize,
) -> Result<Service> {
    let mut process = context.start(name, command)?;
    let is_up = || is_listened_on(context.namespace, &[port]);
    process.wait_until("listen", START_LIMIT, context.cancel, |_| is_up())?;
    Ok(Service::of(process, ProcessRole::Controller, cores_max))
}

/// The files of TLS on the command line of a controller, where the channel is TLS.
fn add_keys(command: &mut Command, context: &ServiceContext<'_>) {
    if let Some(keys) = context.keys {
        for (name, path) in key_options(&keys.controller) {
            command.arg(format!("--{name}")).arg(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{SUBJECTS, of_word};
    use crate::dut::{self, Dut};
    use crate::service::ProgramPaths;
    use crate::settings::{ChannelTransport, FleetSettings, Settings};

    fn refusal(dut: &Dut, fleet: Option<FleetSettings>) -> String {
        let paths = ProgramPaths::new("weir".into(), "none".into());
        let settings = Settings { fleet, ..Settings::default() };
        (dut.check)(dut, &settings, &paths).err().unwrap_or_default()
    }

    #[test]
    fn controllers_are_found_by_name_by_command_and_by_address() {
        for name in ["weir-python", "ovs-testcontroller", "os-ken"] {
            assert!(SUBJECTS.iter().any(|one| one.name == name), "{name}");
            assert!(dut::find(name).unwrap().is_controller, "{name}");
        }
        assert_eq!(of_word("mine=./mine {port}").unwrap().unwrap().name, "mine");
        assert_eq!(dut::find("tcp:127.0.0.1").unwrap().name, "tcp:127.0.0.1");
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
        let tcp = find("tcp:127.0.0.1");
        let plain = (tcp.check)(tcp, &tls, &paths).unwrap_err();
        assert!(plain.contains("ssl:HOST:PORT"), "{plain}");
        assert!(
            refusal(find("ssl:127.0.0.1"), Some(FleetSettings::default())).contains("weir pki")
        );
    }
}
