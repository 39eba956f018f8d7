//! Files that a command uses beside its ports must not be those of the ports.

use std::path::{Path, PathBuf};

use netdev::PortSpec;

/// Refuses a file that a command reads or writes beside a port that does so: opening the port, or
/// the file, would empty what the other one is to read.
///
/// # Errors
/// The port and the file that are the same.
pub(crate) fn check_apart<'f>(
    specs: &[PortSpec],
    files: impl IntoIterator<Item = &'f Path>,
) -> Result<(), String> {
    // A file that is not there yet is nobody's.
    let real = |path: &Path| -> Option<PathBuf> { path.canonicalize().ok() };
    for file in files {
        let of_port = |spec: &&PortSpec| {
            spec.kind().word == "pcap" && real(Path::new(spec.name())) == real(file)
        };
        if let Some(spec) = specs.iter().find(of_port)
            && real(file).is_some()
        {
            return Err(format!("{} is the file of port {spec}; use another", file.display()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::check_apart;

    #[test]
    fn a_file_of_a_port_is_not_used_twice() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.pcap");
        std::fs::write(&file, "").unwrap();
        let again = folder.path().join(".").join("x.pcap");
        let spec = |text: String| text.parse::<netdev::PortSpec>().unwrap();
        let specs = [spec("null:".into()), spec(format!("pcap:{}?write=true", file.display()))];
        let error = check_apart(&specs, [again.as_path()]).unwrap_err();
        assert!(error.contains("is the file of port pcap:"), "{error}");
        let other = folder.path().join("y.pcap");
        assert_eq!(check_apart(&specs, [other.as_path()]), Ok(()));
    }
}
