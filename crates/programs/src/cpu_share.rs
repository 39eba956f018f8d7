//! A share of a core for all threads of some programs together, by a control group of the kernel.
//!
//! Version 2 of the control groups is taken where it has the CPU controller (`cpu.max`), else
//! version 1 (`cpu.cfs_quota_us`). A group is gone with its value; one that a killed run left has
//! that run's process in its name, by which `weir lab clean` finds it. It must never touch a group
//! that it has not made.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use openflow::text::{parse_decimal, zero_advice};
use serde::{Deserialize, Serialize};

use crate::scratch::Owner;

/// The shares that can be asked for, in percent of a core.
const SHARES_PCT: std::ops::RangeInclusive<f64> = 1.0..=100_000.0;

/// In each period the kernel hands the share out anew, in microseconds; it gives no less than a
/// millisecond. A short period makes a slow processor of it, and a long one a fast one that stops.
const PERIOD_MIN_US: f64 = 10_000.0;
const QUOTA_MIN_US: f64 = 1_000.0;

/// A program that has ended leaves its group a moment later.
const REMOVE_LIMIT: Duration = Duration::from_secs(3);

/// A share of a core, written `10 %`; more than 100 % is more than one core.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CpuShare {
    pct: f64,
}

impl CpuShare {
    /// The share in cores.
    pub fn cores(self) -> f64 {
        self.pct / 100.0
    }

    /// Microseconds that the programs may run in each period, and that period.
    fn quota_and_period_us(self) -> (u64, u64) {
        let period = PERIOD_MIN_US.max(QUOTA_MIN_US / self.cores());
        ((period * self.cores()).round() as u64, period.round() as u64)
    }
}

impl TryFrom<String> for CpuShare {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let number = text.strip_suffix('%').and_then(|number| parse_decimal(number.trim()));
        let pct = number.filter(|pct| SHARES_PCT.contains(pct));
        pct.map(|pct| Self { pct }).ok_or_else(|| {
            let advice = zero_advice(&text);
            format!("{text:?} is no share of a core: write it as `10 %`, from 1 % on{advice}")
        })
    }
}

impl From<CpuShare> for String {
    fn from(share: CpuShare) -> Self {
        format!("{} %", share.pct)
    }
}

/// Place of the kernel's control groups for CPU time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hierarchy {
    /// Version 2, mounted there.
    V2(PathBuf),
    /// The CPU controller of version 1, mounted there.
    V1(PathBuf),
}

/// Why programs cannot be held to a share here.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct GroupError(pub String);

/// A refusal of the kernel, at a file or folder.
fn refused(path: &Path, why: &io::Error) -> GroupError {
    GroupError(format!("cannot make a control group for a CPU share: {}: {why}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), GroupError> {
    std::fs::write(path, text).map_err(|why| refused(path, &why))
}

impl Hierarchy {
    /// That of this machine, where one is mounted.
    pub fn find() -> Result<Self, GroupError> {
        let mounts = files::proc::machine("mounts").unwrap_or_default();
        let none = "no control groups with a CPU controller are mounted here (cgroups(7))";
        Self::among(&mounts).ok_or_else(|| GroupError(none.to_owned()))
    }

    /// That of a table of mounts (`/proc/mounts`).
    fn among(mounts: &str) -> Option<Self> {
        let mounts = mounts.lines().filter_map(|line| {
            let mut words = line.split(' ').skip(1);
            Some((PathBuf::from(words.next()?), words.next()?, words.next()?))
        });
        let found = mounts.filter_map(|(path, kind, options)| match kind {
            "cgroup2" if has_word(&path.join("cgroup.controllers"), "cpu") => Some(Self::V2(path)),
            "cgroup" if options.split(',').any(|one| one == "cpu") => Some(Self::V1(path)),
            _ => None,
        });
        found.min_by_key(|found| matches!(found, Self::V1(_)))
    }

    /// Its folder, in which the lab's groups lie.
    pub fn folder(&self) -> &Path {
        match self {
            Self::V2(folder) | Self::V1(folder) => folder,
        }
    }

    /// Makes a group whose programs get `share`.
    ///
    /// # Errors
    /// The kernel refuses: who is not root may not, nor who is in a container as a rule.
    pub fn make(&self, share: CpuShare) -> Result<CpuGroup, GroupError> {
        if let Self::V2(root) = self {
            let control = root.join("cgroup.subtree_control");
            if !has_word(&control, "cpu") {
                write(&control, "+cpu")?;
            }
        }
        let name = next_name().map_err(|why| refused(Path::new("/proc/self"), &why))?;
        let folder = self.folder().join(name);
        std::fs::create_dir(&folder).map_err(|why| refused(&folder, &why))?;
        let group = CpuGroup { folder, share };
        let (quota, period) = share.quota_and_period_us();
        match self {
            Self::V2(_) => write(&group.folder.join("cpu.max"), &format!("{quota} {period}"))?,
            Self::V1(_) => {
                write(&group.folder.join("cpu.cfs_period_us"), &period.to_string())?;
                write(&group.folder.join("cpu.cfs_quota_us"), &quota.to_string())?;
            }
        }
        Ok(group)
    }
}

fn has_word(file: &Path, word: &str) -> bool {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.split_ascii_whitespace().any(|one| one == word)
}

/// A name that says whose a group is.
fn next_name() -> io::Result<String> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    Ok(format!("{}{}", Owner::own()?.prefix(), NEXT.fetch_add(1, Ordering::Relaxed)))
}

/// The processes of a group.
pub fn pids(folder: &Path) -> Vec<u32> {
    let text = std::fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

/// Removes a group whose programs are ending, within seconds.
pub fn remove(folder: &Path) -> io::Result<()> {
    let begun = Instant::now();
    loop {
        match std::fs::remove_dir(folder) {
            Err(error)
                if error.kind() == io::ErrorKind::ResourceBusy
                    && begun.elapsed() < REMOVE_LIMIT =>
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            result => return result,
        }
    }
}

/// A control group; dropping it removes it.
#[derive(Debug)]
pub struct CpuGroup {
    folder: PathBuf,
    /// The share that its programs get.
    pub share: CpuShare,
}

impl CpuGroup {
    /// Takes a process in, with all its threads and those that it starts from now on.
    pub fn add(&self, pid: u32) -> Result<(), GroupError> {
        write(&self.folder.join("cgroup.procs"), &pid.to_string())
    }
}

impl Drop for CpuGroup {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.folder) {
            tracing::warn!(folder = %self.folder.display(), %error, "a control group is left");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::process::Command;
    use std::time::{Duration, Instant};

    use netdev::sys::cpu;

    use super::{CpuShare, Hierarchy, Owner, pids};
    use crate::process::Process;

    fn share(text: &str) -> CpuShare {
        text.to_owned().try_into().unwrap()
    }

    /// Files stay where they are written, other than the kernel's.
    fn empty(folder: &Path) {
        for file in std::fs::read_dir(folder).unwrap() {
            std::fs::remove_file(file.unwrap().path()).unwrap();
        }
    }

    #[test]
    fn a_share_is_a_number_with_a_percent_sign() {
        assert_eq!(String::from(share("10%")), "10 %");
        assert_eq!(share("12.5 %").cores(), 0.125);
        assert_eq!(share("10 %").quota_and_period_us(), (1_000, 10_000));
        assert_eq!(share("150 %").quota_and_period_us(), (15_000, 10_000));
        assert_eq!(share("1 %").quota_and_period_us(), (1_000, 100_000), "a millisecond at least");
        for wrong in ["10", "%", "0 %", "-5 %", "nan %", "a lot"] {
            let error = CpuShare::try_from(wrong.to_owned()).unwrap_err();
            assert!(error.contains("10 %") && error.contains(wrong), "{error}");
        }
    }

    #[test]
    fn the_second_version_is_taken_where_it_has_the_controller() {
        let root = tempfile::tempdir().unwrap();
        let (first, second) = (root.path().join("cpu"), root.path().join("unified"));
        std::fs::create_dir(&second).unwrap();
        let mounts = format!(
            "tmpfs /sys/fs/cgroup tmpfs rw 0 0\ncgroup {} cgroup rw,relatime,cpu,cpuacct 0 0\n\
             cgroup /set cgroup rw,cpuset 0 0\ncgroup2 {} cgroup2 rw 0 0\n",
            first.display(),
            second.display()
        );
        std::fs::write(second.join("cgroup.controllers"), "memory pids\n").unwrap();
        assert_eq!(Hierarchy::among(&mounts), Some(Hierarchy::V1(first)));
        std::fs::write(second.join("cgroup.controllers"), "cpuset cpu memory\n").unwrap();
        assert_eq!(Hierarchy::among(&mounts), Some(Hierarchy::V2(second)));
        assert_eq!(Hierarchy::among("cgroup /set cgroup rw,cpuset 0 0\n"), None);
    }

    /// The folder of a group, and the texts of its files.
    fn made(hierarchy: &Hierarchy, files: &[&str]) -> (PathBuf, Vec<String>) {
        let group = hierarchy.make(share("20 %")).unwrap();
        group.add(4711).unwrap();
        let read = |file: &&str| std::fs::read_to_string(group.folder.join(file)).unwrap();
        let texts = files.iter().map(read).collect();
        assert_eq!(pids(&group.folder), [4711]);
        empty(&group.folder);
        (group.folder.clone(), texts)
    }

    #[test]
    fn a_group_is_made_and_removed_in_both_versions() {
        let root = tempfile::tempdir().unwrap();
        let v1 = Hierarchy::V1(root.path().to_owned());
        let (folder, texts) = made(&v1, &["cpu.cfs_quota_us", "cpu.cfs_period_us"]);
        assert_eq!(texts, ["2000", "10000"]);
        assert!(!folder.exists());
        let name = folder.file_name().unwrap().to_str().unwrap();
        assert_eq!(Owner::of_name(name), Some(Owner::own().unwrap()));
        let (folder, texts) = made(&Hierarchy::V2(root.path().to_owned()), &["cpu.max"]);
        assert_eq!(texts, ["2000 10000"]);
        let control = std::fs::read_to_string(root.path().join("cgroup.subtree_control")).unwrap();
        assert_eq!(control, "+cpu");
        assert!(!folder.exists());
    }

    #[test]
    fn what_the_kernel_refuses_is_reported() {
        let root = tempfile::tempdir().unwrap();
        let error = Hierarchy::V1(root.path().join("none")).make(share("20 %")).unwrap_err();
        assert!(error.0.contains("cannot make") && error.0.contains("none"), "{error}");
    }

    #[test]
    #[ignore = "needs root"]
    fn a_busy_program_gets_its_share() {
        let hierarchy = Hierarchy::find().expect("control groups");
        let dir = tempfile::tempdir().unwrap();
        let mut busy = Command::new("sh");
        busy.args(["-c", "while :; do :; done"]);
        let group = hierarchy.make(share("20 %")).expect("needs root");
        let busy = Process::start("busy", busy, None, dir.path()).unwrap();
        group.add(busy.pid()).unwrap();
        let used_s = || cpu::process(busy.pid()).unwrap().total_s();
        let (before_s, begun) = (used_s(), Instant::now());
        std::thread::sleep(Duration::from_secs(2));
        // A machine that stalls or is full gives less, and no machine more.
        let used = (used_s() - before_s) / begun.elapsed().as_secs_f64();
        assert!(used > 0.0 && used < 0.5, "{used} of a core, not 0.2");
        let folder = group.folder.clone();
        drop((busy, group));
        assert!(!folder.exists());
    }
}
