//! CPU affinity of threads.
//!
//! Pinning is advice to the scheduler for this machine; nothing may depend on it for being right.

use std::io;

use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};

/// Pins the calling thread to one CPU.
///
/// # Errors
/// When the machine (or the container) does not offer that CPU.
pub fn pin_thread(cpu: usize) -> io::Result<()> {
    if let Some(set) = cpu_set(&[cpu])? {
        sched_setaffinity(None, &set)?;
    }
    Ok(())
}

/// Lets a thread use these CPUs and no others: the thread with the kernel's number `tid`, of this
/// or another process, or the calling one for `None`. An empty list changes nothing.
///
/// # Errors
/// When there is no such thread, or the machine offers none of these CPUs.
pub fn allow(tid: Option<u32>, cpus: &[usize]) -> io::Result<()> {
    let gone = || io::Error::new(io::ErrorKind::NotFound, "no such thread");
    let tid = match tid {
        Some(tid) => Some(i32::try_from(tid).ok().and_then(Pid::from_raw).ok_or_else(gone)?),
        None => None,
    };
    if let Some(set) = cpu_set(cpus)? {
        sched_setaffinity(tid, &set)?;
    }
    Ok(())
}

/// The CPUs that the calling thread may use, ascending.
///
/// # Errors
/// The error of `sched_getaffinity(2)`.
pub fn allowed_cpus() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
}

/// The number of CPUs that the calling thread may use; at least 1.
#[must_use]
pub fn cpu_count() -> usize {
    allowed_cpus().map_or(1, |cpus| cpus.len().max(1))
}

/// The set of `cpus`; `None` for an empty list, which stands for no wish.
pub(super) fn cpu_set(cpus: &[usize]) -> io::Result<Option<CpuSet>> {
    if cpus.is_empty() {
        return Ok(None);
    }
    let mut set = CpuSet::new();
    for &cpu in cpus {
        if cpu >= CpuSet::MAX_CPU {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("no CPU {cpu}")));
        }
        set.set(cpu);
    }
    Ok(Some(set))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_has_one_cpu() {
        std::thread::spawn(|| {
            let first = allowed_cpus().unwrap()[0];
            pin_thread(first).unwrap();
            assert_eq!(allowed_cpus().unwrap(), [first]);
            assert!(pin_thread(1_000_000).is_err());
            allow(None, &[first]).unwrap();
            assert!(allow(Some(u32::MAX), &[first]).is_err());
        })
        .join()
        .unwrap();
    }
}
