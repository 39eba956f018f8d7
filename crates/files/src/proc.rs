//! Linux's account below `/proc` of processes, their threads and the machine.
//!
//! The texts are read here, and the few values that several crates need are taken out of them. A
//! process or thread may end at any time, and a kernel may leave a line out: then there is no
//! value. It must never change a setting of the kernel.
//!
//! ```
//! use files::proc::ProcFolder;
//!
//! let own = ProcFolder::own();
//! assert!(own.memory("VmRSS").is_some_and(|bytes| bytes > 0));
//! assert!(!own.threads()?.is_empty());
//! # Ok::<(), std::io::Error>(())
//! ```

use std::io;
use std::path::PathBuf;

/// The folder of a process or of a thread (proc(5)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcFolder(PathBuf);

/// Time that a thread has run and waited since it began (`schedstat`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchedTime {
    /// Nanoseconds on a core.
    pub ran_ns: u64,
    /// Nanoseconds of waiting for a core.
    pub waited_ns: u64,
}

impl ProcFolder {
    /// This process.
    #[must_use]
    pub fn own() -> Self {
        Self("/proc/self".into())
    }

    /// The calling thread.
    #[must_use]
    pub fn own_thread() -> Self {
        Self("/proc/thread-self".into())
    }

    /// The process with this number.
    #[must_use]
    pub fn of(pid: u32) -> Self {
        Self(format!("/proc/{pid}").into())
    }

    /// The thread of this process with this number.
    #[must_use]
    pub fn thread(&self, tid: u32) -> Self {
        Self(self.0.join(format!("task/{tid}")))
    }

    /// The threads of a process, with their numbers.
    ///
    /// # Errors
    /// When there is no such process.
    pub fn threads(&self) -> io::Result<Vec<(u32, Self)>> {
        let mut threads = Vec::new();
        for entry in std::fs::read_dir(self.0.join("task"))? {
            let entry = entry?;
            let number = entry.file_name().to_str().and_then(|name| name.parse().ok());
            threads.extend(number.map(|tid| (tid, Self(entry.path()))));
        }
        Ok(threads)
    }

    /// The text of a file of the folder, such as `status`.
    ///
    /// # Errors
    /// When the process or thread has ended, or it may not be asked.
    pub fn read(&self, file: &str) -> io::Result<String> {
        std::fs::read_to_string(self.0.join(file))
    }

    /// The bytes that a line of `status` says, such as `VmRSS`.
    #[must_use]
    pub fn memory(&self, name: &str) -> Option<u64> {
        bytes(&self.read("status").ok()?, name)
    }

    /// Number of a process's open descriptors.
    ///
    /// # Errors
    /// When the process has ended, or it may not be asked.
    pub fn open_descriptors(&self) -> io::Result<usize> {
        let folder = self.0.join("fd");
        // Linux has their number as the folder's size since 6.2; before, that is nothing. To list
        // ten thousand takes 10 ms.
        match std::fs::metadata(&folder)?.len() {
            0 => Ok(std::fs::read_dir(folder)?.count()),
            open => Ok(usize::try_from(open).unwrap_or(usize::MAX)),
        }
    }

    /// Time that a thread has run and waited.
    #[must_use]
    pub fn sched_time(&self) -> Option<SchedTime> {
        sched_time(&self.read("schedstat").ok()?)
    }
}

/// The text of a file about the machine, such as `meminfo`.
///
/// # Errors
/// When this kernel has no such file.
pub fn machine(file: &str) -> io::Result<String> {
    std::fs::read_to_string(PathBuf::from("/proc").join(file))
}

/// The value of the first line `name: value`.
#[must_use]
pub fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        (found.trim() == name).then(|| value.trim())
    })
}

/// The bytes that the first line `name: value kB` says.
#[must_use]
pub fn bytes(text: &str, name: &str) -> Option<u64> {
    let kibibytes: u64 = value(text, name)?.strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1_024)
}

fn sched_time(text: &str) -> Option<SchedTime> {
    let mut words = text.split_ascii_whitespace().map(str::parse);
    Some(SchedTime { ran_ns: words.next()?.ok()?, waited_ns: words.next()?.ok()? })
}

#[cfg(test)]
mod tests {
    use super::{ProcFolder, SchedTime, bytes, machine, sched_time, value};

    const STATUS: &str = "Name:\ta: b\nVmPeak:\t  20 kB\nVmRSS:\t   9 kB\nThreads:\t3\n";

    #[test]
    fn values_are_those_of_their_line() {
        assert_eq!(value(STATUS, "Name"), Some("a: b"));
        assert_eq!(value(STATUS, "Threads"), Some("3"));
        assert_eq!(value(STATUS, "Vm"), None);
        assert_eq!(bytes(STATUS, "VmRSS"), Some(9 << 10));
        assert_eq!(bytes(STATUS, "Threads"), None, "no number of bytes");
        assert_eq!(bytes("VmRSS: 99999999999999999 kB", "VmRSS"), None, "beyond 64 bits");
        assert_eq!(sched_time("5 7 1\n"), Some(SchedTime { ran_ns: 5, waited_ns: 7 }));
        assert_eq!(sched_time("5\n"), None);
        assert_eq!(sched_time(""), None);
    }

    #[test]
    fn the_kernel_answers() {
        let own = ProcFolder::own();
        let pid = std::process::id();
        assert!(own.memory("VmRSS").unwrap() > 0 && own.memory("VmWeir").is_none());
        let open = own.open_descriptors().unwrap();
        let more: Vec<_> = (0..100).map(|_| std::fs::File::open("/dev/null").unwrap()).collect();
        // Other tests of this process open and close some meanwhile.
        let now = own.open_descriptors().unwrap();
        assert!(open > 2 && (open + 50..open + 150).contains(&now), "{open}, {now}");
        drop(more);
        assert!(bytes(&machine("meminfo").unwrap(), "MemTotal").unwrap() > 1 << 20);
        let threads = ProcFolder::of(pid).threads().unwrap();
        assert!(threads.contains(&(pid, ProcFolder::of(pid).thread(pid))));
        assert!(ProcFolder::own_thread().read("comm").is_ok());
        assert!(ProcFolder::of(u32::MAX).threads().is_err());
    }
}
