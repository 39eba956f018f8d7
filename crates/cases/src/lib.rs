//! Cases for any OpenFlow switch: their format, and all of them.
//!
//! The files of the workspace's `cases/` are a part of the program, so that the lab can hold any
//! switch to them where no checkout is; tests read the same format. `vectors/README.md` describes
//! it for people. This crate imports nothing, so that every crate may use it, and it never decides
//! what a step means.
#![forbid(unsafe_code)]

pub mod block;
mod case;
pub mod hex;

use std::path::Path;

pub use block::Error;
pub use case::{CHANGES, Case, Step, TALKS, load_dir, parse};

/// Path below `cases/`, and text, of every file that was there when this was compiled.
const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// The cases that are a part of the program, in the order of their paths.
///
/// # Errors
/// As [`parse`]; a test holds that there is none.
pub fn built_in() -> Result<Vec<Case>, Error> {
    let mut all = Vec::new();
    for (path, text) in FILES {
        all.extend(parse(Path::new(path), text)?);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{built_in, load_dir};

    #[test]
    fn the_cases_of_the_workspace_are_built_in() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cases");
        let (all, read) = (built_in().unwrap(), load_dir(&folder).unwrap());
        assert!(all.len() > 900, "{}", all.len());
        let names = |cases: &[super::Case]| -> Vec<String> {
            cases.iter().map(|case| case.name.clone()).collect()
        };
        assert_eq!(names(&all), names(&read));
    }
}
