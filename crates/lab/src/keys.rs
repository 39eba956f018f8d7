//! Keys and certificates of both ends of an OpenFlow channel over TLS, made anew for each start.
//!
//! They lie in the scratch folder of the start and are gone with it: nothing of the system's own
//! certificates is read or changed.

use std::path::Path;
use std::time::SystemTime;

use channel::TlsFiles;
use channel::pki::{self, CertificateRequest, PkiError};

/// Days for which a certificate holds: longer than any run.
const DAYS: u32 = 30;

/// Keys and certificates of both ends, signed by one authority.
#[derive(Clone, Debug)]
pub struct ChannelKeys {
    /// The switch's.
    pub switch: TlsFiles,
    /// The controller's, and the lab's own.
    pub controller: TlsFiles,
}

impl ChannelKeys {
    /// Makes an authority and both pairs in `dir`.
    pub fn make(dir: &Path) -> Result<Self, PkiError> {
        let now = SystemTime::now();
        pki::init(dir, now)?;
        let issue = |name: &str| -> Result<TlsFiles, PkiError> {
            let request =
                CertificateRequest { name: name.to_owned(), hosts: Vec::new(), days: DAYS };
            pki::issue(dir, &request, now)?;
            Ok(TlsFiles {
                private_key: dir.join(format!("{name}-privkey.pem")),
                certificate: dir.join(format!("{name}-cert.pem")),
                ca_cert: dir.join("cacert.pem"),
            })
        };
        Ok(Self { switch: issue("switch")?, controller: issue("controller")? })
    }
}

#[cfg(test)]
mod tests {
    use super::ChannelKeys;
    use channel::Tls;

    #[test]
    fn both_ends_can_load_what_is_made() {
        let folder = tempfile::tempdir().unwrap();
        let keys = ChannelKeys::make(folder.path()).unwrap();
        assert_ne!(keys.switch.private_key, keys.controller.private_key);
        for files in [keys.switch, keys.controller] {
            Tls::load(files, false).unwrap();
        }
        assert!(ChannelKeys::make(folder.path()).is_err(), "an authority is never written over");
    }
}
