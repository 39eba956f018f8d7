//! The way to the switch: the control socket of ours, or any OpenFlow endpoint.

use channel::{Tls, TlsFiles};
use client::{AsyncClient, ClientSettings};
use openflow::Version;

use super::address::SwitchAddress;
use super::failure::Failure;
use super::session::{self, Session};

/// Connects to the switch that the arguments name.
pub(super) async fn connect(place: &SwitchAddress) -> Result<Session, Failure> {
    let Some(endpoint) = &place.switch else {
        let path = place.control.clone().unwrap_or_else(control::default_path);
        let client =
            AsyncClient::over_control(path, place.bridge.clone(), settings(place)?).await?;
        return Ok(Session::of(client));
    };
    connect_to(endpoint, place).await
}

/// Connects to another switch than the arguments name, with the same options.
pub(super) async fn connect_to(
    endpoint: &channel::Endpoint,
    place: &SwitchAddress,
) -> Result<Session, Failure> {
    Ok(AsyncClient::connect(endpoint, settings(place)?).await.map(Session::of)?)
}

fn settings(place: &SwitchAddress) -> Result<ClientSettings, Failure> {
    let mut settings = session::settings(&versions(place));
    settings.tls = tls(place)?;
    Ok(settings)
}

pub(super) fn versions(place: &SwitchAddress) -> Vec<Version> {
    if place.protocols.is_empty() { Version::USUAL.to_vec() } else { place.protocols.clone() }
}

fn tls(place: &SwitchAddress) -> Result<Option<Tls>, Failure> {
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
