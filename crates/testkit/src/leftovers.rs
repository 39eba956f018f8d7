//! Leftovers of a program under test: processes, found by a mark in their environment,
//! and network devices.

/// The processes that have `variable` with this value in their environment: whoever started the
/// first of them has set it, and all that it started have it too. Each is its id and its command
/// line.
///
/// # Panics
/// Without `/proc`.
#[must_use]
pub fn marked_processes(variable: &str, value: &str) -> Vec<String> {
    let wanted = format!("{variable}={value}");
    let processes = std::fs::read_dir("/proc").expect("/proc is mounted").flatten();
    let carries = processes.filter(|process| {
        let environment = std::fs::read(process.path().join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes())
    });
    let text = |process: std::fs::DirEntry| {
        let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        format!("{} {}", process.file_name().to_string_lossy(), line.trim_end())
    };
    carries.map(text).collect()
}

/// The names of the network devices of this namespace.
///
/// # Panics
/// Without `/proc/net/dev`.
#[must_use]
pub fn network_devices() -> Vec<String> {
    let text = std::fs::read_to_string("/proc/net/dev").expect("/proc/net/dev");
    text.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::{marked_processes, network_devices};

    #[test]
    fn a_process_is_found_by_its_mark_until_it_ends() {
        let (name, value) = ("TESTKIT_LEFTOVERS", std::process::id().to_string());
        let mut child = Command::new("cat")
            .env(name, &value)
            .stdin(Stdio::piped())
            .spawn()
            .expect("cat starts");
        // Between fork and exec it has the environment of this test still.
        while marked_processes(name, &value).is_empty() {
            assert!(child.try_wait().expect("it can be asked").is_none(), "cat has ended");
            std::thread::yield_now();
        }
        let found = marked_processes(name, &value);
        assert!(found[0].starts_with(&child.id().to_string()), "{found:?}");
        drop(child.stdin.take());
        child.wait().expect("it ends");
        assert_eq!(marked_processes(name, &value), Vec::<String>::new());
        assert!(!network_devices().is_empty());
    }
}
