//! Facts of the machine that a report is from, and of boxes with agents. Nothing that names its
//! owner.

use files::proc;
use netdev::sys::realtime::run_in_real_time;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

/// A fact that cannot be read.
const UNKNOWN: &str = "unknown";

/// The machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Identity among the machines of a pool: the start of the kernel's random number of this boot.
    /// It is the same in all containers of a machine, and another one after a reboot.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// Processor, as the kernel names it.
    pub cpu: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// Kernel and release.
    pub kernel: String,
    /// Distribution.
    pub os: String,
    /// Whether it is a virtual machine, as far as the processor says.
    pub virtual_machine: bool,
    /// Load average over the last minute at the start.
    pub load_average: String,
    /// Why the lab's threads that measure delay could not run in real time (`SCHED_FIFO`); none
    /// where they could.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub real_time_error: Option<String>,
}

impl Machine {
    /// Reads the facts; what cannot be read is "unknown".
    pub fn read() -> Self {
        let machine = |file| proc::machine(file).unwrap_or_default();
        let cpuinfo = machine("cpuinfo");
        let uname = rustix::system::uname();
        let kernel =
            format!("{} {}", uname.sysname().to_string_lossy(), uname.release().to_string_lossy());
        let flags = proc::value(&cpuinfo, "flags").unwrap_or_default();
        let os_release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
        let memory = proc::bytes(&machine("meminfo"), "MemTotal");
        let boot = machine("sys/kernel/random/boot_id");
        Self {
            id: boot.chars().take_while(char::is_ascii_hexdigit).take(8).collect(),
            cpu: proc::value(&cpuinfo, "model name").unwrap_or(UNKNOWN).to_owned(),
            cores: cores(),
            memory_mib: memory.unwrap_or_default() >> 20,
            kernel,
            os: os_name(&os_release).unwrap_or(UNKNOWN).to_owned(),
            virtual_machine: flags.split(' ').any(|flag| flag == "hypervisor"),
            load_average: machine("loadavg").split(' ').next().unwrap_or(UNKNOWN).to_owned(),
            real_time_error: real_time_error(),
        }
    }
}

/// A box with an agent: where it is reached, and what figures of it hold for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoxFacts {
    /// The agent, as the inventory names it.
    #[serde(default)]
    pub address: String,
    /// The box's name.
    pub host: String,
    /// The version of Weir there.
    pub weir: String,
    /// The machine.
    pub machine: Option<Machine>,
}

impl BoxFacts {
    /// Conditions that figures of the box hold for, in words.
    pub(crate) fn words(&self) -> String {
        let all = conditions(&self.weir, self.machine.as_ref());
        let mut words: Vec<String> =
            all.iter().map(|(name, value)| format!("{name} {value}")).collect();
        if self.machine.is_none() {
            words.push(format!("machine {UNKNOWN}"));
        }
        format!("{} ({}): {}", self.host, self.address, words.join("; "))
    }
}

/// Conditions of figures, by name. A machine that was started anew is the same.
pub(crate) fn conditions(weir: &str, machine: Option<&Machine>) -> Vec<(String, String)> {
    let named = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let mut all = vec![named("weir", weir)];
    if let Some(Machine { cpu, cores, kernel, os, real_time_error, .. }) = machine {
        all.extend([
            named("processor", cpu),
            named("cores", &cores.to_string()),
            named("kernel", kernel),
            named("system", os),
            named("real time", real_time_error.as_deref().unwrap_or("permitted")),
        ]);
    }
    all
}

/// Cores that this process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Whether a thread of this process may run in real time: one tries, as the session's do.
fn real_time_error() -> Option<String> {
    match std::thread::spawn(run_in_real_time).join() {
        Ok(done) => done.err().map(|error| error.to_string()),
        Err(_) => Some("the thread that tried ended by a panic".to_owned()),
    }
}

/// The machine's own name.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The distribution's name in the text of `/etc/os-release`.
fn os_name(text: &str) -> Option<&str> {
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim().trim_matches('"'))
}

/// Now, UTC, as `2026-11-20T12:00:00Z`.
pub fn now_utc() -> String {
    let now = OffsetDateTime::now_utc();
    let (hour, minute, second) = now.to_hms();
    format!("{}T{hour:02}:{minute:02}:{second:02}Z", now.date())
}

#[cfg(test)]
mod tests {
    use super::{BoxFacts, Machine, now_utc, os_name};

    #[test]
    fn a_time_has_all_its_digits() {
        let digits = |one: char| if one.is_ascii_digit() { '0' } else { one };
        let shape: String = now_utc().chars().map(digits).collect();
        assert_eq!(shape, "0000-00-00T00:00:00Z");
    }

    #[test]
    fn a_box_without_facts_of_its_machine_says_so() {
        let of = BoxFacts { host: "h".into(), weir: "1".into(), ..BoxFacts::default() };
        assert_eq!(of.words(), "h (): weir 1; machine unknown");
    }

    #[test]
    fn the_distribution_has_its_whole_name() {
        assert_eq!(os_name("NAME=OS\nPRETTY_NAME=\"An OS\"\n"), Some("An OS"));
        assert_eq!(os_name("NAME=OS\n"), None);
    }

    #[test]
    fn this_machine_has_cores_and_a_kernel() {
        let machine = Machine::read();
        assert_eq!(machine.id.len(), 8, "{:?}", machine.id);
        assert!(machine.cores > 0 && machine.kernel.starts_with("Linux"));
    }
}
