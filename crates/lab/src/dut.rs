//! Switches under test: what one is, and the list of them.
//!
//! A new switch is one file under `dut/` and one line in [`ALL`]. A switch is a process that is
//! given its ports and its controller; nothing else about it is known here.

pub(crate) mod ovs;
mod weir;

use crate::service::{ProgramPaths, Service, ServiceContext, ServiceError};
use crate::tools::{Missing, Program};

/// The settings of a switch under test.
#[derive(Clone, Copy, Debug)]
pub struct DutPlan<'a> {
    /// Where it runs.
    pub context: ServiceContext<'a>,
    /// Its ports: they become OpenFlow ports 1, 2, ... in this order.
    pub ports: &'a [PortName],
    /// The controller that it connects to, `tcp:HOST:PORT`.
    pub controller: &'a str,
}

/// A port as a testbed names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortName {
    /// A network device in the switch's namespace.
    Device(String),
    /// An in-memory port of Weir's, in the text that `weir switch --port` takes.
    Memory(String),
}

/// A switch under test.
pub trait Dut: Sync {
    /// Its name on the command line and in reports.
    fn name(&self) -> &'static str;

    /// One sentence about it.
    fn about(&self) -> &'static str;

    /// Whether it can be run on in-memory ports.
    fn has_memory_ports(&self) -> bool {
        false
    }

    /// The programs that it consists of.
    ///
    /// # Errors
    /// [`Missing`] with the remedy.
    fn programs(&self, paths: &ProgramPaths) -> Result<Vec<Program>, Missing>;

    /// Starts it and returns when its ports are open.
    ///
    /// # Errors
    /// [`ServiceError`] with what the program said.
    fn start(&self, plan: &DutPlan<'_>) -> Result<Service, ServiceError>;
}

/// Every switch under test.
pub const ALL: &[&dyn Dut] = &[&weir::WeirSwitch, &ovs::Ovs];

/// The switch of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static dyn Dut> {
    ALL.iter().copied().find(|dut| dut.name() == name)
}
