//! Files that a command uses beside its ports must not be those of the ports.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

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
    let captures = || specs.iter().filter(|spec| spec.kind().word == "pcap");
    for file in files {
        if let Some(spec) = captures().find(|spec| is_same(Path::new(spec.name()), file)) {
            return Err(format!("{} is the file of port {spec}; use another", file.display()));
        }
    }
    Ok(())
}

/// Whether both are names of one file, by links of any kind. One that is not there yet is nobody's.
fn is_same(one: &Path, other: &Path) -> bool {
    let place = |path: &Path| path.metadata().ok().map(|facts| (facts.dev(), facts.ino()));
    place(one).is_some_and(|found| place(other) == Some(found))
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
        let linked = folder.path().join("linked.pcap");
        std::fs::hard_link(&file, &linked).unwrap();
        assert!(check_apart(&specs, [linked.as_path()]).is_err());
        let other = folder.path().join("y.pcap");
        assert_eq!(check_apart(&specs, [other.as_path()]), Ok(()));
    }
}
