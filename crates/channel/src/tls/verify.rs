//! Judges the certificate of whom we connect to: its chain always, its name only where that is
//! asked.
//!
//! A certificate of `ovs-pki` names no host, and Open vSwitch does not look at names: whoever holds
//! a certificate of the CA is trusted. It must never forgive anything but the name.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::VerifierBuilderError;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

/// See the module.
#[derive(Debug)]
pub(super) struct Verifier {
    web: Arc<WebPkiServerVerifier>,
    checks_name: bool,
}

impl Verifier {
    pub(super) fn new(
        roots: Arc<RootCertStore>,
        provider: &Arc<CryptoProvider>,
        checks_name: bool,
    ) -> Result<Self, VerifierBuilderError> {
        let web = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(provider));
        Ok(Self { web: web.build()?, checks_name })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        // The name is the last that is looked at, so that its error says that all else is fine.
        match self.web.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        ) {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.checks_name => Ok(ServerCertVerified::assertion()),
            judged => judged,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.web.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.web.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.web.supported_verify_schemes()
    }
}
