//! One start of one cell: testbed, controller and switch up and joined; everything gone on drop.

use std::path::Path;
use std::time::Duration;

use generator::method::TrialInput;

use crate::cancel::{Cancel, Stopped};
use crate::controller::{ControllerPlan, ControllerProgram};
use crate::dut::{Dut, DutPlan, PortName};
use crate::load::{ProcessRole, Watched};
use crate::process;
use crate::report::CellKey;
use crate::service::{self, ProgramPaths, Service, ServiceContext};
use crate::testbed::memory::MemoryTestbed;
use crate::testbed::netns::{self, CONTROLLER_IP, NetnsTestbed, PORTS};
use crate::testbed::{CONTROLLER_PORT, LinkShape, Testbed};
use crate::trial_error::TrialError;

/// How long the switch has to find its controller and the first packet to cross.
const PATH_LIMIT: Duration = Duration::from_secs(20);

/// Which testbed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestbedKind {
    /// Network namespaces; needs root.
    Kernel,
    /// In-memory ports.
    Memory,
}

/// Why a cell did not start.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The run was interrupted.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// The testbed.
    #[error(transparent)]
    Netns(#[from] netns::NetnsError),
    /// The in-memory testbed, or a scratch folder.
    #[error("cannot make the testbed: {0}")]
    Io(#[from] std::io::Error),
    /// The switch under test.
    #[error("switch under test: {0}")]
    Dut(service::ServiceError),
    /// The controller.
    #[error("controller: {0}")]
    Controller(service::ServiceError),
    /// Both run, but no packet crosses.
    #[error("no packet crossed within {limit_s} s: {last}\n{logs}", limit_s = PATH_LIMIT.as_secs())]
    NoPath {
        /// What the last try showed.
        last: String,
        /// The end of every program's log.
        logs: String,
    },
}

impl SetupError {
    /// Whether the whole run is to end.
    #[must_use]
    pub fn is_stop(&self) -> bool {
        match self {
            Self::Stopped(_) => true,
            Self::Dut(error) | Self::Controller(error) => {
                matches!(error, service::ServiceError::Process(process::ProcessError::Stopped(_)))
            }
            Self::Netns(_) | Self::Io(_) | Self::NoPath { .. } => false,
        }
    }
}

/// A running cell. The order of the fields is the order in which they go.
#[derive(Debug)]
pub struct Setup {
    dut: Service,
    controller: Service,
    bed: Testbed,
}

/// What a setup is made of.
pub struct SetupParts<'a> {
    /// The cell.
    pub key: &'a CellKey,
    /// The switch under test.
    pub dut: &'a dyn Dut,
    /// The controller.
    pub controller: &'a dyn ControllerProgram,
    /// The testbed.
    pub kind: TestbedKind,
    /// Paths.
    pub paths: &'a ProgramPaths,
    /// A scratch folder that is empty.
    pub dir: &'a Path,
    /// Ends every wait.
    pub cancel: &'a Cancel,
}

impl Setup {
    /// Starts everything and returns when packets cross.
    ///
    /// # Errors
    /// [`SetupError`] with what the program said.
    pub fn start(parts: &SetupParts<'_>) -> Result<Self, SetupError> {
        parts.cancel.check()?;
        let (dut_dir, controller_dir) = (parts.dir.join("dut"), parts.dir.join("controller"));
        std::fs::create_dir(&dut_dir)?;
        std::fs::create_dir(&controller_dir)?;
        let shape =
            LinkShape { port_rate: parts.key.port_rate, control_rate: parts.key.control_rate };
        let bed = match parts.kind {
            TestbedKind::Kernel => Testbed::Kernel(NetnsTestbed::new(shape)?),
            TestbedKind::Memory => Testbed::Memory(MemoryTestbed::new(parts.dir)?),
        };
        let kernel = bed.kernel();
        let (address, port) = match &bed {
            Testbed::Kernel(_) => (CONTROLLER_IP, CONTROLLER_PORT),
            Testbed::Memory(bed) => (std::net::Ipv4Addr::LOCALHOST, bed.controller_port()),
        };
        let context = |dir, namespace| ServiceContext {
            namespace,
            dir,
            version: parts.key.version,
            paths: parts.paths,
            cancel: parts.cancel,
        };
        let plan = ControllerPlan {
            context: context(&controller_dir, kernel.map(NetnsTestbed::controller)),
            app: parts.key.app,
            address,
            port,
        };
        let controller = parts.controller.start(&plan).map_err(SetupError::Controller)?;
        let ports: Vec<PortName> = match &bed {
            Testbed::Kernel(_) => PORTS.iter().map(|p| PortName::Device((*p).to_owned())).collect(),
            Testbed::Memory(bed) => {
                bed.port_texts().iter().cloned().map(PortName::Memory).collect()
            }
        };
        let plan = DutPlan {
            context: context(&dut_dir, kernel.map(NetnsTestbed::switch)),
            ports: &ports,
            controller: &format!("tcp:{address}:{port}"),
        };
        let dut = parts.dut.start(&plan).map_err(SetupError::Dut)?;
        let mut setup = Self { dut, controller, bed };
        setup.wait_for_path(parts.cancel)?;
        Ok(setup)
    }

    /// The testbed.
    #[must_use]
    pub fn bed(&self) -> &Testbed {
        &self.bed
    }

    /// The programs whose CPU is watched.
    #[must_use]
    pub fn watched(&self) -> Vec<Watched> {
        let host = Watched {
            role: ProcessRole::Host,
            name: "lab".to_owned(),
            pid: std::process::id(),
            cores_max: 0,
        };
        [self.dut.watched(), self.controller.watched(), &[host]].concat()
    }

    /// The commands that started controller and switch.
    #[must_use]
    pub fn commands(&self) -> Vec<String> {
        [self.controller.commands(), self.dut.commands()].concat()
    }

    /// Fails if switch or controller has ended.
    ///
    /// # Errors
    /// [`SetupError::Dut`] or [`SetupError::Controller`] with the end of the log.
    pub fn check(&mut self) -> Result<(), SetupError> {
        self.dut.check().map_err(|error| SetupError::Dut(error.into()))?;
        self.controller.check().map_err(|error| SetupError::Controller(error.into()))
    }

    /// Sends a few probes there and back until two rounds in a row come back whole: the connection
    /// is up, the controller answers, and a learning switch has learned.
    fn wait_for_path(&mut self, cancel: &Cancel) -> Result<(), SetupError> {
        let probes = TrialInput { frame_size: 64, rate_pps: 50.0, duration_s: 0.1, grace_s: 1.0 };
        let mut whole = 0;
        let mut last = String::new();
        let reached = cancel.poll(PATH_LIMIT, || {
            match self.bed.round_trip(&probes, cancel) {
                Ok(outcome) if outcome.report.lost == 0 => whole += 1,
                Ok(outcome) => {
                    whole = 0;
                    let account = outcome.report;
                    last = format!("{} of {} probes came back", account.received, account.sent);
                }
                Err(error) => {
                    whole = 0;
                    last = error.to_string();
                }
            }
            whole >= 2 || self.check().is_err()
        })?;
        self.check()?;
        if reached {
            return Ok(());
        }
        let logs = [self.controller.tails(), self.dut.tails()].concat();
        Err(SetupError::NoPath { last, logs })
    }
}

/// Whether an error of a method is due to a part of the setup that has ended; the error of that
/// part says more.
#[must_use]
pub fn explain(setup: &mut Setup, error: &TrialError) -> String {
    match setup.check() {
        Ok(()) => error.to_string(),
        Err(ended) => format!("{error}; {ended}"),
    }
}
