//! A thread's willingness to leave the processor to others: its niceness, `nice(2)`.

use std::io;

use rustix::process::{getpriority_process, setpriority_process};
use rustix::thread::gettid;

/// The niceness of the calling thread, from -20 to 19, where it leaves the most.
///
/// # Errors
/// The error of `getpriority(2)`.
pub fn niceness() -> io::Result<i32> {
    Ok(getpriority_process(Some(gettid()))?)
}

/// Sets the niceness of the calling thread, and of no other.
///
/// # Errors
/// Without the right (`CAP_SYS_NICE`, or `RLIMIT_NICE`) to one that is lower than it has.
pub fn set_niceness(niceness: i32) -> io::Result<()> {
    Ok(setpriority_process(Some(gettid()), niceness)?)
}

#[cfg(test)]
mod tests {
    use super::{niceness, set_niceness};

    #[test]
    fn a_thread_has_a_niceness_of_its_own() {
        let here = niceness().unwrap();
        let there = std::thread::spawn(move || {
            set_niceness((here + 1).min(19)).unwrap();
            niceness().unwrap()
        });
        assert_eq!(there.join().unwrap(), (here + 1).min(19));
        assert_eq!(niceness().unwrap(), here);
    }
}
