//! The way to the switch: the control socket of ours, or any OpenFlow endpoint.

use channel::{Stream, Tls, TlsFiles};
use openflow::Version;

use super::failure::Failure;
use super::run::Place;
use super::session::Session;
use super::socket;

/// Connects to the switch that the arguments name.
pub(super) async fn connect(place: &Place) -> Result<Session, Failure> {
    let versions = versions(place);
    let Some(endpoint) = &place.switch else {
        let (stream, name) = socket::openflow(place).await?;
        return Session::greet(Stream::Unix(stream), &name, &versions).await;
    };
    connect_to(endpoint, place).await
}

/// Connects to another switch than the arguments name, with the same options.
pub(super) async fn connect_to(
    endpoint: &channel::Endpoint,
    place: &Place,
) -> Result<Session, Failure> {
    let tls = tls(place)?;
    let stream = Stream::connect(endpoint, tls.as_ref()).await;
    let stream = stream.map_err(|error| Failure::Unreached(error.to_string()))?;
    Session::greet(stream, &endpoint.to_string(), &versions(place)).await
}

fn versions(place: &Place) -> Vec<Version> {
    if place.protocols.is_empty() { Version::ALL.to_vec() } else { place.protocols.clone() }
}

fn tls(place: &Place) -> Result<Option<Tls>, Failure> {
    let (Some(private_key), Some(certificate), Some(ca_cert)) =
        (&place.private_key, &place.certificate, &place.ca_cert)
    else {
        return Ok(None);
    };
    let files = TlsFiles {
        private_key: private_key.clone(),
        certificate: certificate.clone(),
        ca_cert: ca_cert.clone(),
    };
    Tls::load(files, false).map(Some).map_err(|error| Failure::refused(error.to_string()))
}
