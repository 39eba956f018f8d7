//! A switch that a user brings along: `NAME=PROGRAM`, any program that finds its orders in the
//! environment, as the switches of `contrib/peers` do.
//!
//! The program gets devices and a controller's address, and runs in the foreground until SIGTERM.
//! It reports nothing: the lab sees by the switch's connection, or by frames that cross, when it is
//! ready. It must never be measured as what it is not: settings for which there is no variable are
//! refused here, and the program refuses the others by an exit code.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use channel::Endpoint;
use netdev::sys::netns::Namespace;
use programs::process::Process;
use programs::scratch;
use programs::tools::{self, Missing, Program};
use rustix::process::Signal;

use super::{ALL, Dut, DutId, DutPlan, StartedDut};
use crate::controller;
use crate::load::ProcessRole;
use crate::service::{ProgramPaths, Service, ServiceError};
use crate::settings::{Forwarding, Settings};
use crate::testbed::CONTROLLER_PORT;
use crate::testbed::netns::CONTROLLER_IP;

/// Longest time for the switch's connection; one that tries anew by doubling seconds has four
/// attempts.
const CONNECT_LIMIT: Duration = Duration::from_secs(20);

/// Bytes that a program may write to its standard output and standard error.
const OUTPUT_MAX: u64 = 16 << 20;

/// Between two looks at how much it has written.
const OUTPUT_STEP: Duration = Duration::from_millis(100);

/// Letters of a name, at most: it is the head of a table's column.
const NAME_MAX: usize = 24;

/// `NAME=PROGRAM`.
pub(super) struct CommandSwitch {
    id: DutId,
    program: PathBuf,
}

/// The switch of a word `NAME=PROGRAM`. It stays for as long as the lab runs.
///
/// # Errors
/// The mistake in the word.
pub(super) fn of_word(word: &str) -> Result<&'static dyn Dut, String> {
    let Some((name, program)) = word.split_once('=') else {
        return Err(format!("{word:?} is no NAME=PROGRAM"));
    };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.is_empty() || name.len() > NAME_MAX || !name.bytes().all(is_plain) {
        return Err(format!(
            "{word:?}: the name {name:?} of a switch has 1 to {NAME_MAX} letters, digits and - _ ."
        ));
    }
    let mut known = ALL.iter().map(|dut| dut.name());
    if known.any(|one| one == name) || controller::find(name).is_some() {
        let own = format!("my-{name}={program}");
        return Err(format!("{word:?}: {name} is a name of the lab's own: use another, {own:?}"));
    }
    if program.is_empty() {
        return Err(format!("{word:?}: no program: {name}=./start-my-switch.sh"));
    }
    Ok(Box::leak(Box::new(CommandSwitch {
        id: DutId::of_word(word, name, format!("A switch that {program} runs")),
        program: PathBuf::from(program),
    })))
}

/// Waits for the switch where a controller would.
fn listener(controller: &Namespace) -> Result<TcpListener, ServiceError> {
    let listen = || -> io::Result<TcpListener> {
        let listener = TcpListener::bind((CONTROLLER_IP, CONTROLLER_PORT))?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    };
    let listener = controller.enter(listen).and_then(|listener| listener);
    listener.map_err(|error| ServiceError::Unfit(format!("waiting for the switch: {error}")))
}

/// Kills all that carries the mark of `folder` once `log` is longer than [`OUTPUT_MAX`], with the
/// reason as the log's last line. It goes with the log, as soon as the folder is removed.
fn limit_output(log: &Path, folder: &Path) {
    while let Ok(found) = log.metadata() {
        if found.len() > OUTPUT_MAX {
            let programs = scratch::marked(folder).unwrap_or_default();
            let send = |signal| programs.iter().for_each(|program| program.send(signal));
            send(Signal::STOP);
            // The error of the switch's end has the reason even where the disk is full.
            if let Ok(mut log) = OpenOptions::new().append(true).open(log) {
                let most = OUTPUT_MAX >> 20;
                let _ = writeln!(log, "\nkilled by the lab: it wrote more than {most} MiB");
            }
            send(Signal::KILL);
        }
        std::thread::sleep(OUTPUT_STEP);
    }
}

impl CommandSwitch {
    /// Path of the program: as given where it has a slash, and else from `PATH`.
    fn path(&self) -> Result<PathBuf, Missing> {
        let text = self.program.display();
        if self.program.components().count() == 1 && self.program.parent() == Some(Path::new("")) {
            return tools::which(&self.program.to_string_lossy()).ok_or_else(|| {
                Missing(format!("no program {text} in PATH: {}=./{text}", self.id.name))
            });
        }
        if !self.program.is_file() {
            return Err(Missing(format!("{text} is not there")));
        }
        if !tools::is_executable(&self.program) {
            return Err(Missing(format!("{text} is not executable: chmod +x {text}")));
        }
        Ok(self.program.clone())
    }

    fn command(&self, plan: &DutPlan<'_>) -> Result<Command, ServiceError> {
        let (context, settings) = (&plan.context, plan.settings);
        let (fail_mode, controller) = match settings.forwarding() {
            Forwarding::Learning => ("standalone", String::new()),
            Forwarding::Flows | Forwarding::Controller | Forwarding::Io => {
                ("secure", format!("tcp:{CONTROLLER_IP}:{CONTROLLER_PORT}"))
            }
        };
        let mut command = Command::new(self.path()?);
        command
            .env("DUT_PORTS", plan.devices(self.id.name)?.join(" "))
            .env("DUT_CONTROLLER", controller)
            .env("DUT_FAIL_MODE", fail_mode)
            .env("DUT_DPID", plan.dpid(0))
            .env("DUT_OFP", context.version.name())
            .env("DUT_OFP_VERSION", context.version.to_string())
            .env("DUT_DIR", context.dir)
            .env("DUT_WORKERS", settings.workers.unwrap_or(1).to_string());
        Ok(command)
    }
}

impl Dut for CommandSwitch {
    fn id(&self) -> DutId {
        self.id
    }

    fn check(&self, settings: &Settings, _paths: &ProgramPaths) -> Result<(), String> {
        if settings.forwarding() == Forwarding::Io {
            return Err("a program is asked to forward by flow tables or to learn".to_owned());
        }
        if settings.is_channel_measured() {
            return Err("a program is asked for one bridge, which connects over TCP".to_owned());
        }
        if settings.has_queues == Some(true) || settings.queues.is_some_and(|count| count > 1) {
            return Err("a program is asked for no queues".to_owned());
        }
        if settings.switch_cpu_share.is_some() {
            return Err("what a program starts is not held to a CPU share".to_owned());
        }
        super::no_caches(settings)
    }

    fn reports_ready(&self) -> bool {
        false
    }

    fn programs(&self, _paths: &ProgramPaths) -> Result<Vec<Program>, Missing> {
        let path = self.path()?.display().to_string();
        // A program that is asked for its version could as well start a switch.
        Ok(vec![Program { name: self.id.name.to_owned(), version: "not asked".to_owned(), path }])
    }

    fn start(&self, plan: &DutPlan<'_>) -> Result<StartedDut, ServiceError> {
        let context = &plan.context;
        let listener = match (plan.settings.forwarding(), plan.bed.kernel()) {
            (Forwarding::Flows, Some(bed)) => Some(listener(bed.controller())?),
            (
                Forwarding::Flows | Forwarding::Learning | Forwarding::Controller | Forwarding::Io,
                _,
            ) => None,
        };
        let command = self.command(plan)?;
        let mut service = Service::new().with_children(context.dir);
        let mut process = Process::start(self.id.name, command, context.namespace, context.dir)?;
        let (log, folder) = (process.log().to_owned(), context.dir.to_owned());
        std::thread::spawn(move || limit_output(&log, &folder));
        let mut connection = None;
        if let Some(listener) = listener {
            let target = format!("connect to tcp:{CONTROLLER_IP}:{CONTROLLER_PORT}");
            process.wait_until(&target, CONNECT_LIMIT, context.cancel, |_| {
                connection = listener.accept().ok().map(|(stream, _)| stream);
                connection.is_some()
            })?;
        }
        service.add(process, Some(ProcessRole::Switch), 0);
        let bridges = match plan.settings.forwarding() {
            Forwarding::Learning => Vec::new(),
            Forwarding::Flows | Forwarding::Controller | Forwarding::Io => {
                let host = CONTROLLER_IP.to_string();
                vec![Endpoint::PassiveTcp { host, port: CONTROLLER_PORT }]
            }
        };
        Ok(StartedDut { bridges, connection, ..StartedDut::without_channel(service) })
    }
}

#[cfg(test)]
mod tests {
    use super::{limit_output, of_word};
    use crate::service::ProgramPaths;
    use crate::settings::{CacheSet, Forwarding, Settings};
    use programs::scratch;

    fn refusal(word: &str) -> String {
        of_word(word).err().unwrap_or_default()
    }

    #[test]
    fn a_word_that_names_no_switch_says_why() {
        for (word, why) in [
            ("ovs=./mine.sh", "my-ovs=./mine.sh"),
            ("wire=./mine.sh", "the lab's own"),
            ("os-ken=./mine.sh", "the lab's own"),
            ("=./mine.sh", "1 to 24 letters"),
            ("my switch=./mine.sh", "letters, digits"),
            ("mine=", "no program"),
            ("a-name-that-is-much-too-long=./mine.sh", "1 to 24"),
        ] {
            assert!(refusal(word).contains(why), "{word}: {}", refusal(word));
        }
        let mine = of_word("mine=./a=b.sh").unwrap();
        assert_eq!((mine.name(), mine.word()), ("mine", "mine=./a=b.sh"));
    }

    #[test]
    fn a_program_that_cannot_be_run_is_missing() {
        let paths = ProgramPaths::new("weir".into(), "os-ken".into());
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("plain");
        std::fs::write(&file, "#!/bin/sh\n").unwrap();
        for (program, why) in [
            ("/nowhere/switch", "is not there"),
            ("no-such-program-here", "in PATH: mine=./no-such-program-here"),
            (file.to_str().unwrap(), "chmod +x"),
        ] {
            let mine = of_word(&format!("mine={program}")).unwrap();
            let missing = mine.programs(&paths).unwrap_err().to_string();
            assert!(missing.contains(why), "{missing}");
        }
        assert!(of_word("mine=sh").unwrap().programs(&paths).is_ok());
    }

    #[test]
    fn settings_without_a_variable_are_refused() {
        let mine = of_word("mine=sh").unwrap();
        let paths = ProgramPaths::new("weir".into(), "os-ken".into());
        for settings in [
            Settings { forwarding: Some(Forwarding::Io), ..<_>::default() },
            Settings { bridges: Some(2), ..<_>::default() },
            Settings { queues: Some(2), ..<_>::default() },
            Settings { caches: Some(CacheSet::None), ..<_>::default() },
            Settings { switch_cpu_share: Some("50 %".parse().unwrap()), ..<_>::default() },
        ] {
            assert!(mine.check(&settings, &paths).is_err(), "{settings:?}");
        }
        let settings = Settings { workers: Some(2), ..<_>::default() };
        assert_eq!(mine.check(&settings, &paths), Ok(()), "the program itself refuses");
    }

    #[test]
    fn a_program_that_writes_without_end_is_killed() {
        let folder = tempfile::tempdir().unwrap();
        let cancel = programs::cancel::Cancel::default();
        // A child in a session of its own writes, so that no process group holds it.
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", "setsid sh -c 'while :; do yes; done' & wait"]);
        let mut mine = super::Process::start("mine", shell, None, folder.path()).unwrap();
        let (at, of) = (mine.log().to_owned(), folder.path().to_owned());
        let limiter = std::thread::spawn(move || limit_output(&at, &of));
        let long = std::time::Duration::from_secs(60);
        mine.wait_for_end(long, &cancel).unwrap();
        assert!(mine.tail().ends_with("killed by the lab: it wrote more than 16 MiB"));
        let is_gone = || scratch::marked(folder.path()).unwrap().is_empty();
        assert!(cancel.poll(long, is_gone).unwrap());
        drop(folder);
        limiter.join().unwrap();
    }
}
