//! TLS 1.2 and 1.3 for `ssl:` and `pssl:` (clause 6.3.4): each side presents a certificate signed
//! by a CA that the other side trusts.
//!
//! The three files are those of Open vSwitch's options, with the same names. They are
//! checked for changes whenever a connection is made or accepted, so that a renewed certificate is
//! in use from the next connection on; changed files that are unusable are logged and the earlier
//! ones stay in use. A peer without a certificate, or whose chain does not verify, is never let in.

mod explain;
mod verify;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use files::{ReadError, fault_of_secret};
use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{ClientConfig, RootCertStore, ServerConfig};

pub(crate) use explain::explain;

/// The files of our key, our certificate and the trusted CA, each in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// `--private-key`: the key of our certificate, without a passphrase.
    pub private_key: PathBuf,
    /// `--certificate`: our certificate, and those between it and its CA if there are any.
    pub certificate: PathBuf,
    /// `--ca-cert`: the certificate of the CA that signs the peers' certificates.
    pub ca_cert: PathBuf,
}

/// Files that cannot be used, with the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("{option} {path}: {why}")]
    Unreadable {
        /// The option that names it.
        option: &'static str,
        /// The file.
        path: String,
        /// The system's error.
        why: String,
    },
    /// A file holds something else.
    #[error("{option} {path}: {why}")]
    Unusable {
        /// The option that names it.
        option: &'static str,
        /// The file.
        path: String,
        /// The mistake, and what helps.
        why: String,
    },
    /// Key and certificate are no pair.
    #[error(
        "--private-key {key} does not belong to --certificate {certificate}: give the key with \
         which the certificate was requested, or make a new pair with weir pki issue"
    )]
    NoPair {
        /// The file of the key.
        key: String,
        /// The file of the certificate.
        certificate: String,
    },
}

/// Our side of TLS, shared by all connections of a program; a clone is the same.
#[derive(Clone, Debug)]
pub struct Tls {
    files: Arc<TlsFiles>,
    checks_name: bool,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    loaded: Loaded,
    /// The files when they were last loaded or tried.
    stamps: [Option<Stamp>; 3],
}

#[derive(Clone, Debug)]
struct Loaded {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
}

/// Changes when a file is rewritten or replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    length: u64,
    inode: u64,
}

impl Tls {
    /// Reads the files. `checks_name`: the certificate of a server must also be for the name or
    /// address that we connect to. Open vSwitch does not ask that, and the certificates that
    /// `ovs-pki` makes name no host.
    ///
    /// # Errors
    /// The file that is wrong, why, and what helps.
    pub fn load(files: TlsFiles, checks_name: bool) -> Result<Self, TlsError> {
        // Before they are read: what is written meanwhile is seen at the next look.
        let stamps = stamps(&files);
        let loaded = Loaded::read(&files, checks_name)?;
        if let Some(fault) = fault_of_secret(&files.private_key) {
            tracing::warn!("--private-key: {fault}");
        }
        let state = Arc::new(Mutex::new(State { loaded, stamps }));
        Ok(Self { files: Arc::new(files), checks_name, state })
    }

    /// The files.
    #[must_use]
    pub fn files(&self) -> &Arc<TlsFiles> {
        &self.files
    }

    pub(crate) fn client(&self) -> Arc<ClientConfig> {
        self.current().client
    }

    pub(crate) fn server(&self) -> Arc<ServerConfig> {
        self.current().server
    }

    /// The present contents of the files, or the last usable ones.
    fn current(&self) -> Loaded {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let stamps = stamps(&self.files);
        if stamps != state.stamps {
            state.stamps = stamps;
            match Loaded::read(&self.files, self.checks_name) {
                Ok(loaded) => {
                    state.loaded = loaded;
                    tracing::info!(
                        certificate = %self.files.certificate.display(),
                        "certificates have changed and hold from now on"
                    );
                }
                Err(error) => {
                    tracing::warn!(%error, "changed certificates; the earlier ones still hold");
                }
            }
        }
        state.loaded.clone()
    }
}

fn stamps(files: &TlsFiles) -> [Option<Stamp>; 3] {
    [&files.private_key, &files.certificate, &files.ca_cert].map(|path| stamp(path))
}

fn stamp(path: &Path) -> Option<Stamp> {
    use std::os::unix::fs::MetadataExt;
    let facts = fs::metadata(path).ok()?;
    Some(Stamp { modified: facts.modified().ok(), length: facts.len(), inode: facts.ino() })
}

impl Loaded {
    fn read(files: &TlsFiles, checks_name: bool) -> Result<Self, TlsError> {
        let key = || read_key(&files.private_key);
        let chain = certificates("--certificate", &files.certificate)?;
        let roots = Arc::new(read_roots(&files.ca_cert)?);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let unusable = |error: &dyn std::fmt::Display| TlsError::Unusable {
            option: "--ca-cert",
            path: files.ca_cert.display().to_string(),
            why: error.to_string(),
        };
        let pair = |error| pair_error(files, &error);

        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider));
        let verifier = verifier.build().map_err(|error| unusable(&error))?;
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
        let builder = builder.with_safe_default_protocol_versions().map_err(|e| unusable(&e))?;
        let builder = builder.with_client_cert_verifier(verifier);
        let mut server = builder.with_single_cert(chain.clone(), key()?).map_err(pair)?;
        // Every connection shows its certificate anew, so that one that has expired or whose CA has
        // changed gets no further by an earlier connection.
        server.session_storage = Arc::new(NoServerSessionStorage {});
        server.send_tls13_tickets = 0;

        let verifier = verify::Verifier::new(roots, &provider, checks_name);
        let verifier = verifier.map_err(|error| unusable(&error))?;
        let builder = ClientConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions().map_err(|e| unusable(&e))?;
        let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
        let mut client = builder.with_client_auth_cert(chain, key()?).map_err(pair)?;
        client.resumption = Resumption::disabled();
        Ok(Self { client: Arc::new(client), server: Arc::new(server) })
    }
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "an enum of rustls, which may grow: what is not explained is quoted"
)]
fn pair_error(files: &TlsFiles, error: &rustls::Error) -> TlsError {
    let key = files.private_key.display().to_string();
    let certificate = files.certificate.display().to_string();
    match error {
        rustls::Error::InconsistentKeys(_) => TlsError::NoPair { key, certificate },
        rustls::Error::InvalidCertificate(why) => TlsError::Unusable {
            option: "--certificate",
            path: certificate,
            why: format!("it is no X.509 version 3 certificate ({why:?})"),
        },
        other => TlsError::Unusable {
            option: "--private-key",
            path: key,
            why: format!("{other}; use RSA of 2048 bits or more, ECDSA or Ed25519"),
        },
    }
}

fn read(option: &'static str, path: &Path) -> Result<Vec<u8>, TlsError> {
    files::read(path, files::CONFIG_MAX).map_err(|error| {
        let kind = match &error {
            ReadError::Io(error) => Some(error.kind()),
            ReadError::Kind(_)
            | ReadError::TooLong(_)
            | ReadError::Mark
            | ReadError::NotText { .. } => None,
        };
        let hint = match kind {
            Some(io::ErrorKind::NotFound) => "; weir pki or ovs-pki make certificates",
            Some(io::ErrorKind::PermissionDenied) => {
                "; it must be readable by the user who runs weir"
            }
            Some(_) | None => "",
        };
        let why = format!("{error}{hint}");
        TlsError::Unreadable { option, path: path.display().to_string(), why }
    })
}

fn certificates(
    option: &'static str,
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text = read(option, path)?;
    let unusable =
        |why: String| TlsError::Unusable { option, path: path.display().to_string(), why };
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let all = all.map_err(|error| unusable(format!("it is not well-formed PEM: {error}")))?;
    if all.is_empty() {
        let why =
            "it holds no certificate (no BEGIN CERTIFICATE); is it the file of another option?";
        return Err(unusable(why.to_owned()));
    }
    Ok(all)
}

fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let option = "--private-key";
    let text = read(option, path)?;
    PrivateKeyDer::from_pem_slice(&text).map_err(|error| {
        let is_locked = text.windows(9).any(|word| word == b"ENCRYPTED");
        let why = if is_locked {
            "it is locked by a passphrase; unlock it: openssl pkey -in KEY -out NEW_KEY".to_owned()
        } else {
            format!("it holds no private key in PEM ({error}); is it the file of another option?")
        };
        TlsError::Unusable { option, path: path.display().to_string(), why }
    })
}

fn read_roots(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates("--ca-cert", path)? {
        roots.add(certificate).map_err(|error| TlsError::Unusable {
            option: "--ca-cert",
            path: path.display().to_string(),
            why: format!("it is no certificate of a CA: {error}"),
        })?;
    }
    Ok(roots)
}
