//! A switch that a user brings along: `NAME=PROGRAM`, any program that finds its orders in the
//! environment, as the switches of `contrib/peers` do.
//!
//! The program gets devices and a controller's address, and runs in the foreground until SIGTERM.
//! It reports nothing: the lab sees by the switch's connection, or by frames that cross, when it is
//! ready. It must never be measured as what it is not: settings for which there is no variable are
//! refused here, and the program refuses the others by an exit code.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, anyhow};
use channel::Endpoint;
use programs::scratch;
use programs::tools::{self, Missing, Program};
use rustix::process::Signal;

use super::{ALL, Dut, DutPlan, Lack, NO_CACHES, NO_REPLAY, StartedDut, controller, refuse};
use crate::load::ProcessRole;
use crate::service::Service;
use crate::settings::Forwarding;
use crate::switch_client::listen;
use crate::testbed::CONTROLLER_PORT;
use crate::testbed::netns::CONTROLLER_IP;

/// Longest time for the switch's connection: four attempts of one that doubles its waits.
const CONNECT_LIMIT: Duration = Duration::from_secs(20);

/// Bytes that a program may write to its standard output and standard error.
const OUTPUT_MAX: u64 = 16 << 20;

/// Between two looks at how much it has written.
const OUTPUT_STEP: Duration = Duration::from_millis(100);

/// Letters of a name, at most: it is the head of a table's column.
const NAME_MAX: usize = 24;

/// `NAME=PROGRAM`.
const COMMAND: Dut = Dut {
    is_given: true,
    reports_ready: false,
    check: |_, settings, _| refuse(LACKS, settings),
    programs: |dut, _| {
        let path = given_program(dut)?.display().to_string();
        // A program that is asked for its version could as well start a switch.
        Ok(vec![Program { name: dut.name.to_owned(), version: "not asked".to_owned(), path }])
    },
    start,
    ..Dut::new("", "")
};

/// The switch of a word `NAME=PROGRAM`. It stays for as long as the lab runs.
pub(super) fn of_word(word: &str) -> Result<&'static Dut, String> {
    let (name, program) = word.split_once('=').unwrap_or((word, ""));
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.is_empty() || name.len() > NAME_MAX || !name.bytes().all(is_plain) {
        return Err(format!(
            "{word:?}: the name {name:?} of a switch has 1 to {NAME_MAX} letters, digits and - _ ."
        ));
    }
    let mut known = ALL.iter().map(|dut| dut.name);
    if known.any(|one| one == name) || controller::find(name).is_some() {
        let own = format!("my-{name}={program}");
        return Err(format!("{word:?}: {name} is a name of the lab's own: use another, {own:?}"));
    }
    if program.is_empty() {
        return Err(format!("{word:?}: no program: {name}=./start-my-switch.sh"));
    }
    Ok(COMMAND.with_word(word, name, &format!("A switch that {program} runs")))
}

/// Path of the program of a user's word: as given where it has a slash, and else from `PATH`.
pub(super) fn given_program(dut: &Dut) -> Result<PathBuf, Missing> {
    let (text, path) = (dut.behind_name(), Path::new(dut.behind_name()));
    if !text.contains('/') {
        return tools::which(text).ok_or_else(|| {
            let name = dut.word.split('=').next().unwrap_or_default();
            Missing(format!("no program {text} in PATH: {name}=./{text}"))
        });
    }
    if !path.is_file() {
        let what = if path.exists() { "is no program" } else { "is not there" };
        return Err(Missing(format!("{text} {what}")));
    }
    if !tools::is_executable(path) {
        return Err(Missing(format!("{text} is not executable: chmod +x {text}")));
    }
    Ok(path.to_owned())
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

/// The program with its orders.
fn command(plan: &DutPlan<'_>) -> Result<Command> {
    let (context, settings) = (&plan.context, plan.settings);
    let (fail_mode, controller) = match settings.forwarding() {
        Forwarding::Learning => ("standalone", String::new()),
        Forwarding::Flows | Forwarding::Controller | Forwarding::Io => {
            ("secure", format!("tcp:{CONTROLLER_IP}:{CONTROLLER_PORT}"))
        }
    };
    let mut command = Command::new(given_program(plan.dut)?);
    command
        .env("DUT_PORTS", plan.devices()?.join(" "))
        .env("DUT_CONTROLLER", controller)
        .env("DUT_FAIL_MODE", fail_mode)
        .env("DUT_DPID", plan.dpid(0))
        .env("DUT_OFP", context.version.name())
        .env("DUT_OFP_VERSION", context.version.to_string())
        .env("DUT_DIR", context.dir)
        .env("DUT_WORKERS", settings.workers.unwrap_or(1).to_string());
    Ok(command)
}

const LACKS: &[Lack] = &[
    NO_REPLAY,
    (
        |of| of.forwarding() == Forwarding::Io,
        "a program is asked to forward by flow tables or to learn",
    ),
    (|of| of.is_channel_measured(), "a program is asked for one bridge, which connects over TCP"),
    (
        |of| of.has_queues == Some(true) || of.queues.is_some_and(|count| count > 1),
        "a program is asked for no queues",
    ),
    (|of| of.switch_cpu_share.is_some(), "what a program starts is not held to a CPU share"),
    NO_CACHES,
];

fn start(plan: &DutPlan<'_>) -> Result<StartedDut> {
    let (context, forwarding) = (&plan.context, plan.settings.forwarding());
    let bed = plan.bed.kernel().filter(|_| forwarding == Forwarding::Flows);
    // The switch is waited for where a controller would be.
    let listen = || listen((CONTROLLER_IP, CONTROLLER_PORT));
    let listener = bed.map(|bed| bed.controller.ns.enter(listen).flatten()).transpose();
    let listener = listener.map_err(|error| anyhow!("waiting for the switch: {error}"))?;
    let command = command(plan)?;
    // What the program has started ends too where the program itself fails.
    let mut service = Service::default();
    service.children_of = Some(context.dir.to_owned());
    let mut process = context.start(plan.dut.name, command)?;
    let (log, folder) = (process.log.clone(), context.dir.to_owned());
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
    let host = CONTROLLER_IP.to_string();
    let bridge = Endpoint::PassiveTcp { host, port: CONTROLLER_PORT };
    let bridges = if forwarding == Forwarding::Learning { Vec::new() } else { vec![bridge] };
    Ok(StartedDut { service, bridges, connection, ..StartedDut::default() })
}

#[cfg(test)]
mod tests {
    use super::{limit_output, of_word};
    use programs::process::Process;
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
        assert_eq!((mine.name, mine.word), ("mine", "mine=./a=b.sh"));
    }

    #[test]
    fn a_program_that_writes_without_end_is_killed() {
        let folder = tempfile::tempdir().unwrap();
        let cancel = programs::cancel::Cancel::default();
        // A child in a session of its own writes, so that no process group holds it.
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", "setsid sh -c 'while :; do yes; done' & wait"]);
        let mut mine = Process::start("mine", shell, None, folder.path()).unwrap();
        let (at, of) = (mine.log.clone(), folder.path().to_owned());
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
