//! Real-time scheduling of threads that must run the moment they are due.

use std::io;

/// Lets the calling thread run before every thread of a usual policy, as soon as it is ready
/// (`SCHED_FIFO`, the lowest of its priorities). Timers then have no slack. A thread that never
/// sleeps must not ask for it: it would keep its core from all others.
///
/// # Errors
/// Without the right (`CAP_SYS_NICE`), or where the control group has no time for such threads.
#[allow(unsafe_code)]
pub fn run_in_real_time() -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 1 };
    // SAFETY: the pointer is to a value that lives beyond the call; 0 is the calling thread.
    let done = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::run_in_real_time;

    #[test]
    #[ignore = "needs root"]
    fn a_thread_runs_in_real_time_and_no_other_does() {
        let policy = || {
            let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
            let behind = stat.rsplit_once(')').unwrap().1.to_owned();
            // Field 41 of proc(5), the name being the second.
            behind.split_whitespace().nth(38).unwrap().to_owned()
        };
        let there = std::thread::spawn(move || run_in_real_time().map(|()| policy()));
        assert_eq!(there.join().unwrap().expect("needs root"), "1");
        assert_eq!(policy(), "0");
    }
}
