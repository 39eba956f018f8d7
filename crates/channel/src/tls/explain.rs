//! Explanations of TLS failures: the side that refuses, the file, and the remedy.
//!
//! Texts only. Other failures keep the library's words.

use std::io;

use rustls::{AlertDescription, CertificateError, Error};

use super::TlsFiles;

/// The text for a failure of a TLS stream, during the handshake or later: in TLS 1.3 a client
/// learns only by its first read that the server refuses its certificate.
pub(crate) fn explain(error: &io::Error, files: &TlsFiles) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    match (inner, error.kind()) {
        (Some(error), _) => of_tls(error, files),
        (None, io::ErrorKind::UnexpectedEof) => {
            "the peer closed the connection in the middle of TLS; its log may say why".to_owned()
        }
        (None, _) => error.to_string(),
    }
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "an enum of rustls, which may grow: what is not explained is quoted"
)]
fn of_tls(error: &Error, files: &TlsFiles) -> String {
    let ours = files.certificate.display();
    match error {
        Error::InvalidCertificate(why) => of_certificate(why, files),
        Error::NoCertificatesPresented => {
            "the peer shows no certificate; give it one, signed by the CA of our --ca-cert \
             (--private-key and --certificate with Open vSwitch's programs)"
                .to_owned()
        }
        Error::AlertReceived(AlertDescription::UnknownCA) => format!(
            "the peer does not trust the CA of our certificate {ours}: give the peer that CA's \
             certificate, or sign ours by the CA that it trusts"
        ),
        Error::AlertReceived(AlertDescription::CertificateExpired) => {
            format!("the peer says that our certificate {ours} has expired: make a new one")
        }
        Error::AlertReceived(
            alert @ (AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateUnknown
            | AlertDescription::CertificateRequired
            | AlertDescription::DecryptError),
        ) => format!("the peer refuses our certificate {ours} ({alert:?}); its log may say why"),
        Error::AlertReceived(AlertDescription::ProtocolVersion) | Error::PeerIncompatible(_) => {
            format!("no common TLS version or cipher ({error}); Weir speaks TLS 1.2 and 1.3")
        }
        Error::InvalidMessage(_) => {
            "the peer does not speak TLS; a peer without it belongs to tcp: or ptcp:".to_owned()
        }
        other => other.to_string(),
    }
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "an enum of rustls, which may grow: what is not explained is quoted"
)]
fn of_certificate(why: &CertificateError, files: &TlsFiles) -> String {
    match why {
        CertificateError::UnknownIssuer
        | CertificateError::BadSignature
        | CertificateError::InvalidPurpose => format!(
            "the peer's certificate is not signed by the CA in --ca-cert {}: give the certificate \
             of the CA that signed it (with ovs-pki a switch needs controllerca/cacert.pem and a \
             controller switchca/cacert.pem)",
            files.ca_cert.display()
        ),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            format!(
                "the peer's certificate has expired ({why}); make it a new one, or set the clock"
            )
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            format!("the peer's certificate does not hold yet ({why}); compare the two clocks")
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!(
                "the peer's certificate is for another name ({why}); connect by a name that it is \
                 for, or leave --check-peer-name out"
            )
        }
        other => format!("the peer's certificate is refused: {other}"),
    }
}
