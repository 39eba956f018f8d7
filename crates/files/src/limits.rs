//! The limit of open files of the process.

use std::io;

use rustix::process::{Resource, getrlimit, setrlimit};

/// Raises the limit of open files as far as the process may by itself, and returns it; `None` for
/// no limit. Shells give their programs a low one that `select(2)` once needed.
///
/// # Errors
/// The kernel's.
pub fn raise_open_files() -> io::Result<Option<u64>> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit)?;
    Ok(limit.current)
}

#[cfg(test)]
mod tests {
    use super::raise_open_files;

    #[test]
    fn the_limit_is_raised_once_and_for_all() {
        assert_eq!(raise_open_files().unwrap(), raise_open_files().unwrap());
    }
}
