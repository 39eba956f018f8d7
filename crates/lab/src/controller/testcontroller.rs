//! Open vSwitch's `ovs-testcontroller`: a learning switch, or a hub.
//!
//! With `--hub` alone it would still install entries; `--noflow` makes every packet go through it.

use std::process::Command;
use std::time::Duration;

use programs::tools::Tool;

use super::{AppKind, ControllerPlan, ControllerProgram, add_keys, start_listening};
use crate::service::{Service, ServiceError};

/// `ovs-testcontroller`.
pub(super) const OVS: ControllerProgram = ControllerProgram {
    name: "ovs-testcontroller",
    about: "Open vSwitch's small controller in C",
    has_tls: true,
    start_cost: Duration::from_millis(300),
    programs: |_| Ok(vec![Tool::OvsTestcontroller.program()?]),
    start,
};

fn start(plan: &ControllerPlan<'_>) -> Result<Service, ServiceError> {
    let context = &plan.context;
    let mut command = Command::new(Tool::OvsTestcontroller.find()?);
    command.env("OVS_RUNDIR", context.dir).env("OVS_LOGDIR", context.dir);
    command.args(["-O", context.version.name(), "-vsyslog:off"]);
    command.arg(format!("--unixctl={}", context.dir.join("testcontroller.ctl").display()));
    match plan.app {
        AppKind::Hub => {
            command.args(["--hub", "--noflow"]);
        }
        AppKind::LearningSwitch => {}
    }
    let transport = if plan.keys.is_some() { "pssl" } else { "ptcp" };
    command.arg(format!("{transport}:{}:{}", plan.port, plan.address));
    add_keys(&mut command, plan);
    start_listening("ovs-testcontroller", command, plan, 1)
}
