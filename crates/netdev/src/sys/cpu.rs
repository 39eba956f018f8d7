//! CPU time that a process or a thread has used, by `/proc`.
//!
//! The resolution is the kernel's clock tick, mostly 10 ms; the lab takes differences over seconds.

use std::io;

use files::proc::ProcFolder;

/// CPU time used so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CpuTime {
    /// Seconds in user mode.
    pub user_s: f64,
    /// Seconds in the kernel.
    pub system_s: f64,
}

impl CpuTime {
    /// User and system seconds together.
    #[must_use]
    pub fn total_s(self) -> f64 {
        self.user_s + self.system_s
    }
}

/// One thread of a process.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadTime {
    /// The kernel's thread number.
    pub tid: u32,
    /// The thread's name, at most 15 bytes.
    pub name: String,
    /// The CPU time that it has used.
    pub time: CpuTime,
}

/// CPU time of the process `pid`, all its threads together.
///
/// # Errors
/// When there is no such process.
pub fn process(pid: u32) -> io::Result<CpuTime> {
    Ok(read_stat(&ProcFolder::of(pid))?.1)
}

/// CPU time of one thread of a process.
///
/// # Errors
/// When there is no such thread.
pub fn thread(pid: u32, tid: u32) -> io::Result<CpuTime> {
    Ok(read_stat(&ProcFolder::of(pid).thread(tid))?.1)
}

/// CPU time of every thread of `pid`; threads that end meanwhile are left out.
///
/// # Errors
/// When there is no such process.
pub fn threads(pid: u32) -> io::Result<Vec<ThreadTime>> {
    let threads = ProcFolder::of(pid).threads()?.into_iter();
    let time = |(tid, folder): (u32, ProcFolder)| {
        let (name, time) = read_stat(&folder).ok()?;
        Some(ThreadTime { tid, name, time })
    };
    Ok(threads.filter_map(time).collect())
}

/// CPU time of the calling thread, in nanoseconds' resolution.
#[must_use]
pub fn this_thread_s() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

fn read_stat(folder: &ProcFolder) -> io::Result<(String, CpuTime)> {
    let text = folder.read("stat")?;
    parse_stat(&text)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("stat: {text:?}")))
}

/// Name and times of a `stat` line. The name stands in parentheses and may hold any character.
fn parse_stat(text: &str) -> Option<(String, CpuTime)> {
    let (head, tail) = text.rsplit_once(") ")?;
    let (_, name) = head.split_once(" (")?;
    // proc(5): utime and stime are fields 14 and 15; the tail starts at field 3.
    let mut fields = tail.split_ascii_whitespace().skip(14 - 3);
    let mut seconds = || Some(fields.next()?.parse::<u64>().ok()? as f64 / ticks_per_second());
    let time = CpuTime { user_s: seconds()?, system_s: seconds()? };
    Some((name.to_owned(), time))
}

fn ticks_per_second() -> f64 {
    rustix::param::clock_ticks_per_second() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_blanks_is_read() {
        let line = "7 (a) b (c)) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20 0";
        let (name, time) = parse_stat(line).unwrap();
        assert_eq!(name, "a) b (c)");
        assert!((time.total_s() * ticks_per_second() - 300.0).abs() < 1e-6);
        assert_eq!(parse_stat("7 (x) S 1"), None);
        assert_eq!(parse_stat(""), None);
    }

    #[test]
    fn our_own_time_is_found_and_grows() {
        let me = std::process::id();
        let before = this_thread_s();
        while this_thread_s() - before < 0.05 {}
        assert!(process(me).unwrap().total_s() > 0.0);
        assert!(threads(me).unwrap().iter().any(|t| t.time.total_s() >= 0.03));
        let leader = threads(me).unwrap().into_iter().find(|t| t.tid == me).unwrap();
        assert!(!leader.name.is_empty());
        assert!(thread(me, me).is_ok());
        assert!(process(u32::MAX).is_err());
    }
}
