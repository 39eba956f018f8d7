//! Certificates for TLS channels: a certificate authority in a folder, and what it signs.
//!
//! Key, request and signature in one step, for users without a certificate authority; those with
//! one give its files to `--private-key`, `--certificate` and `--ca-cert`. The folder holds
//! `cakey.pem`, `cacert.pem`, and for each name `NAME-privkey.pem` and `NAME-cert.pem`, as
//! `ovs-pki` calls them. A key is never overwritten: a name that has one gets a new certificate.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

/// Tolerated lag of a peer's clock.
const CLOCK_SKEW: Duration = Duration::from_secs(24 * 3600);

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Validity of a CA's certificate.
const CA_DAYS: u32 = 3650;

/// Why no certificate was made.
#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    /// A file could not be read or written.
    #[error("{path}: {error}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The file of a key cannot be used.
    #[error("{path}: {error}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: files::ReadError,
    },
    /// There is a certificate authority already.
    #[error("{0} exists: this folder has a certificate authority; choose another by --dir")]
    Exists(PathBuf),
    /// There is no certificate authority.
    #[error("{0} does not exist: make a certificate authority first, by weir pki init")]
    NoAuthority(PathBuf),
    /// A name that cannot be part of a file's name.
    #[error("{0:?} is no name: use letters, digits, dots, dashes and underscores")]
    BadName(String),
    /// A file holds no key, or a host is none.
    #[error("{what}: {error}")]
    Certificate {
        /// The key, host or certificate.
        what: String,
        /// The library's error.
        error: rcgen::Error,
    },
}

/// A certificate to be issued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateRequest {
    /// The common name, which is also the prefix of the file names.
    pub name: String,
    /// Its host names and addresses, which only peers with `--check-peer-name` check.
    pub hosts: Vec<String>,
    /// Validity in days.
    pub days: u32,
}

fn failed(path: &Path) -> impl Fn(io::Error) -> PkiError {
    move |error| PkiError::File { path: path.to_owned(), error }
}

fn refused(what: impl Into<String>) -> impl FnOnce(rcgen::Error) -> PkiError {
    let what = what.into();
    move |error| PkiError::Certificate { what, error }
}

/// Makes a certificate authority in `dir`, which is made too; the files that were written.
///
/// # Errors
/// When there is one already, or a file cannot be written.
pub fn init(dir: &Path, now: SystemTime) -> Result<Vec<PathBuf>, PkiError> {
    fs::create_dir_all(dir).map_err(failed(dir))?;
    let (key_path, certificate_path) = (dir.join("cakey.pem"), dir.join("cacert.pem"));
    for path in [&key_path, &certificate_path] {
        if path.exists() {
            return Err(PkiError::Exists(path.clone()));
        }
    }
    let key = KeyPair::generate().map_err(refused("making a key"))?;
    let certificate = authority(&key, now).self_signed(&key).map_err(refused("signing"))?;
    write_new(&key_path, &key.serialize_pem())?;
    replace(&certificate_path, &certificate.pem())?;
    Ok(vec![key_path, certificate_path])
}

/// Makes a certificate, and its key unless the name has one, signed by the authority in `dir`; the
/// files that were written.
///
/// # Errors
/// When there is no authority, a name is none, or a file cannot be read or written.
pub fn issue(
    dir: &Path,
    request: &CertificateRequest,
    now: SystemTime,
) -> Result<Vec<PathBuf>, PkiError> {
    let name = &request.name;
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    if name.is_empty() || name.starts_with('.') || !name.chars().all(is_name) {
        return Err(PkiError::BadName(name.clone()));
    }
    let authority_path = dir.join("cakey.pem");
    if !authority_path.exists() {
        return Err(PkiError::NoAuthority(authority_path));
    }
    let authority_key = read_key(&authority_path)?;
    let issuer = Issuer::new(authority(&authority_key, now), authority_key);
    let key_path = dir.join(format!("{name}-privkey.pem"));
    let certificate_path = dir.join(format!("{name}-cert.pem"));
    let (key, mut written) = if key_path.exists() {
        (read_key(&key_path)?, Vec::new())
    } else {
        let key = KeyPair::generate().map_err(refused("making a key"))?;
        write_new(&key_path, &key.serialize_pem())?;
        (key, vec![key_path])
    };
    let what = || format!("the certificate of {name}");
    let mut params = CertificateParams::new(request.hosts.clone()).map_err(refused(what()))?;
    named(&mut params, name);
    hold(&mut params, now, request.days);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    // One certificate serves both ends, since a switch may connect and listen.
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    let certificate = params.signed_by(&key, &issuer).map_err(refused(what()))?;
    replace(&certificate_path, &certificate.pem())?;
    written.push(certificate_path);
    Ok(written)
}

/// Name and rights of the authority of this key: the same at each call, so that the key alone is
/// enough to sign. The name distinguishes two authorities.
fn authority(key: &KeyPair, now: SystemTime) -> CertificateParams {
    let mut params = CertificateParams::default();
    let id: String =
        params.key_identifier(key).iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    named(&mut params, &format!("weir pki CA {id}"));
    hold(&mut params, now, CA_DAYS);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

fn named(params: &mut CertificateParams, name: &str) {
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, "weir");
    params.distinguished_name.push(DnType::CommonName, name);
}

fn hold(params: &mut CertificateParams, now: SystemTime, days: u32) {
    params.not_before = (now - CLOCK_SKEW).into();
    params.not_after = (now + DAY * days).into();
}

fn read_key(path: &Path) -> Result<KeyPair, PkiError> {
    let text = files::read_text(path, files::CONFIG_MAX)
        .map_err(|error| PkiError::Unreadable { path: path.to_owned(), error })?;
    KeyPair::from_pem(&text).map_err(refused(path.display().to_string()))
}

/// Writes a key where there is none, for its owner alone.
fn write_new(path: &Path, text: &str) -> Result<(), PkiError> {
    use std::os::unix::fs::OpenOptionsExt;
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(failed(path))
}

/// Writes a certificate in one step, so that a program which looks meanwhile sees the old or the
/// new one whole.
fn replace(path: &Path, text: &str) -> Result<(), PkiError> {
    files::replace(path, text.as_bytes()).map_err(failed(path))
}

#[cfg(test)]
mod tests {
    use super::{CertificateRequest, PkiError, init, issue};
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::time::SystemTime;

    fn request(name: &str) -> CertificateRequest {
        CertificateRequest { name: name.into(), hosts: vec!["192.0.2.1".into()], days: 1 }
    }

    #[test]
    fn keys_are_their_owners_and_stay() {
        let dir = tempfile::tempdir().unwrap();
        let (dir, now) = (dir.path(), SystemTime::now());
        assert!(matches!(issue(dir, &request("sc"), now), Err(PkiError::NoAuthority(_))));
        init(dir, now).unwrap();
        assert!(matches!(init(dir, now), Err(PkiError::Exists(_))));
        assert_eq!(issue(dir, &request("sc"), now).unwrap().len(), 2);
        let key = fs::read(dir.join("sc-privkey.pem")).unwrap();
        assert_eq!(issue(dir, &request("sc"), now).unwrap(), [dir.join("sc-cert.pem")]);
        assert_eq!(fs::read(dir.join("sc-privkey.pem")).unwrap(), key);
        for name in ["cakey.pem", "sc-privkey.pem"] {
            let mode = fs::metadata(dir.join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
    }

    #[test]
    fn names_stay_in_the_folder() {
        let dir = tempfile::tempdir().unwrap();
        init(dir.path(), SystemTime::now()).unwrap();
        for name in ["", "../up", ".hidden", "a b", "a/b"] {
            let made = issue(dir.path(), &request(name), SystemTime::now());
            assert!(matches!(made, Err(PkiError::BadName(_))), "{name}");
        }
    }
}
