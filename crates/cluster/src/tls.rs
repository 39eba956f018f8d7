//! TLS to etcd: whose certificates are believed, and which one this node shows.
//!
//! The server's certificate must be signed by the given CA and be for the host that is connected
//! to. The files are read once, when the node starts. Nothing is ever sent to a server that does
//! not show such a certificate.

use files::CONFIG_MAX;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The files for TLS to etcd, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdTlsFiles {
    /// The certificate of the CA that signs those of etcd's members.
    pub ca: PathBuf,
    /// Our certificate and its key, for an etcd that asks for one (`--client-cert-auth`).
    pub pair: Option<EtcdPairFiles>,
}

/// A certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdPairFiles {
    /// The certificate.
    pub certificate: PathBuf,
    /// Its key, without a passphrase.
    pub private_key: PathBuf,
}

/// A file for TLS to etcd that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{option} {path}: {why}")]
pub struct EtcdTlsError {
    option: &'static str,
    path: String,
    why: String,
}

const CA: &str = "--cluster-ca";
const CERTIFICATE: &str = "--cluster-certificate";
const PRIVATE_KEY: &str = "--cluster-private-key";

/// Reads the files.
pub(crate) fn load(files: &EtcdTlsFiles) -> Result<Arc<ClientConfig>, EtcdTlsError> {
    let refused = |option, path: &Path, why: &dyn std::fmt::Display| EtcdTlsError {
        option,
        path: path.display().to_string(),
        why: why.to_string(),
    };
    let mut roots = RootCertStore::empty();
    for certificate in certificates(CA, &files.ca)? {
        roots.add(certificate).map_err(|error| refused(CA, &files.ca, &error))?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| refused(CA, &files.ca, &error))?;
    let builder = builder.with_root_certificates(roots);
    let Some(EtcdPairFiles { certificate, private_key }) = &files.pair else {
        return Ok(Arc::new(builder.with_no_client_auth()));
    };
    let chain = certificates(CERTIFICATE, certificate)?;
    let text = read(PRIVATE_KEY, private_key)?;
    let key = PrivateKeyDer::from_pem_slice(&text);
    let key = key.map_err(|error| {
        let why = format!("it holds no private key in PEM ({error}), or one with a passphrase");
        refused(PRIVATE_KEY, private_key, &why)
    })?;
    let config = builder.with_client_auth_cert(chain, key);
    config.map(Arc::new).map_err(|error| {
        let why = format!("it does not go with {CERTIFICATE} {}: {error}", certificate.display());
        refused(PRIVATE_KEY, private_key, &why)
    })
}

fn read(option: &'static str, path: &Path) -> Result<Vec<u8>, EtcdTlsError> {
    files::read(path, CONFIG_MAX).map_err(|error| EtcdTlsError {
        option,
        path: path.display().to_string(),
        why: error.to_string(),
    })
}

fn certificates(
    option: &'static str,
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, EtcdTlsError> {
    let text = read(option, path)?;
    let refused = |why: String| EtcdTlsError { option, path: path.display().to_string(), why };
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let all = all.map_err(|error| refused(format!("it is not well-formed PEM: {error}")))?;
    if all.is_empty() {
        return Err(refused("it holds no certificate (no BEGIN CERTIFICATE)".into()));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::{EtcdTlsFiles, load};
    use std::path::PathBuf;

    #[test]
    fn files_that_cannot_be_used_are_named_with_their_option() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("none.pem");
        let empty = folder.path().join("empty.pem");
        std::fs::write(&empty, "no certificate\n").unwrap();
        let error = |ca: PathBuf| load(&EtcdTlsFiles { ca, pair: None }).unwrap_err().to_string();
        assert!(error(missing.clone()).starts_with("--cluster-ca "), "{}", error(missing));
        assert!(error(empty.clone()).contains("BEGIN CERTIFICATE"), "{}", error(empty));
        assert!(error(folder.path().into()).starts_with("--cluster-ca "), "a folder");
    }
}
