//! Writes the seeds of the fuzz targets: what vectors, suites and examples hold, one file an input.
//!
//! usage: `seeds DIR` fills `DIR/<target>/`. A fuzz target that starts from real messages reaches
//! deep code in its first second. Seeds are only ever derived from files of the workspace.

use std::error::Error;
use std::path::{Path, PathBuf};

use testkit::vectors::{self, Vector};

fn main() -> Result<(), Box<dyn Error>> {
    let dir = PathBuf::from(std::env::args_os().nth(1).ok_or("usage: seeds DIR")?);
    let all = vectors::load_dir(&testkit::vectors_dir(""))?;
    for (number, vector) in all.iter().enumerate() {
        let (target, input) = seed_of(vector);
        write(&dir.join(target), number, &input)?;
        if let Some(text) = &vector.text {
            write(&dir.join("text"), number, text.as_bytes())?;
        }
    }
    let root = testkit::workspace_root();
    let checks = std::fs::read_to_string(root.join("contrib/peers/ofctl/checks.tsv"))?;
    for (number, line) in checks.lines().enumerate() {
        // The last word of an ovs-ofctl command is a flow, a group or a meter.
        let command = line.split('\t').nth(3).unwrap_or_default();
        let text = command.rsplit(' ').next().unwrap_or_default();
        write(&dir.join("text"), all.len() + number, text.as_bytes())?;
    }
    for (number, file) in files_in(&root.join("docs/examples"))?.enumerate() {
        if file.extension().is_some_and(|e| e == "toml") {
            write(&dir.join("config"), number, &std::fs::read(file)?)?;
        }
    }
    for (number, file) in files_in(&testkit::vectors_dir(""))?.enumerate() {
        if file.extension().is_some_and(|e| e == "vec") {
            write(&dir.join("vectors"), number, &std::fs::read(file)?)?;
        }
    }
    Ok(())
}

/// Findings go to the target that found them, frames of packets to the target that rewrites them,
/// everything else to the decoder of messages.
fn seed_of(vector: &Vector) -> (String, Vec<u8>) {
    let is_below = |name: &str| vector.file.components().any(|part| part.as_os_str() == name);
    match vector.file.file_stem() {
        Some(stem) if is_below("fuzz") => {
            (stem.to_string_lossy().into_owned(), vector.bytes.clone())
        }
        // That target takes the value that it writes from the first bytes.
        _ if is_below("packets") => ("packet".into(), [&[0x5a; 16], &vector.bytes[..]].concat()),
        _ => ("wire".into(), vector.bytes.clone()),
    }
}

fn files_in(dir: &Path) -> Result<impl Iterator<Item = PathBuf>, Box<dyn Error>> {
    let entries = std::fs::read_dir(dir)?.collect::<Result<Vec<_>, _>>()?;
    Ok(entries.into_iter().map(|entry| entry.path()))
}

fn write(dir: &Path, number: usize, bytes: &[u8]) -> Result<(), Box<dyn Error>> {
    std::fs::create_dir_all(dir)?;
    std::fs::write(dir.join(format!("seed-{number:04}")), bytes)?;
    Ok(())
}
