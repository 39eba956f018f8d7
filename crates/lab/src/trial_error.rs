//! Why a trial yields nothing: below testbeds and methods, which both end with it.

use client::ClientError;
use files::with_sources;
use generator::method::MethodError;
use generator::method::on_ports::PortTrialError;
use programs::cancel::Stopped;
use programs::process;
use programs::tools::Missing;

/// Why a measurement yields nothing.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// The run was interrupted.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// A program that was to measure failed.
    #[error(transparent)]
    Process(#[from] process::ProcessError),
    /// It ran, but what it said is no result.
    #[error("{program}: {what}")]
    Output {
        /// Name of the program.
        program: &'static str,
        /// The mistake in it.
        what: String,
    },
    /// OpenFlow between the lab and its subject failed.
    #[error("OpenFlow: {}", with_sources(.0.as_ref()))]
    OpenFlow(#[from] anyhow::Error),
    /// The testbed cannot carry this method.
    #[error("{0}")]
    Unfit(&'static str),
    /// Of a socket or a port.
    #[error("{what}: {source}")]
    Io {
        /// The attempt.
        what: &'static str,
        /// Why it failed.
        source: std::io::Error,
    },
    /// The lab's own traffic could not be sent or received.
    #[error("the lab's own traffic: {0}")]
    Traffic(#[from] PortTrialError),
    /// A program is missing.
    #[error(transparent)]
    Missing(#[from] Missing),
}

impl From<ClientError> for TrialError {
    fn from(error: ClientError) -> Self {
        Self::OpenFlow(error.into())
    }
}

impl From<MethodError<PortTrialError>> for TrialError {
    fn from(error: MethodError<PortTrialError>) -> Self {
        Self::Traffic(match error {
            MethodError::Trial(error) => error,
            MethodError::NoOutput | MethodError::Options(_) => {
                PortTrialError::Port(error.to_string())
            }
        })
    }
}
