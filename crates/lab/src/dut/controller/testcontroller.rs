//! Open vSwitch's `ovs-testcontroller`: a learning switch, or a hub.
//!
//! With `--hub` alone it would still install entries; `--noflow` makes every packet go through it.

use std::process::Command;
use std::time::Duration;

use programs::tools::Tool;

use super::{add_keys, start_listening};
use crate::dut::Dut;
use crate::settings::AppKind;

/// `ovs-testcontroller`.
pub(super) const OVS: Dut = Dut {
    has_tls: true,
    start_cost: Duration::from_millis(300),
    programs: |_, _| Ok(vec![Tool::OVS_TESTCONTROLLER.program()?]),
    serve: |context, app, at| {
        let mut command = Command::new(Tool::OVS_TESTCONTROLLER.find()?);
        command.env("OVS_RUNDIR", context.dir).env("OVS_LOGDIR", context.dir);
        command.args(["-O", context.version.name(), "-vsyslog:off"]);
        command.arg(format!("--unixctl={}", context.dir.join("testcontroller.ctl").display()));
        if app == AppKind::Hub {
            command.args(["--hub", "--noflow"]);
        }
        let transport = if context.keys.is_some() { "pssl" } else { "ptcp" };
        command.arg(format!("{transport}:{}:{}", at.port(), at.ip()));
        add_keys(&mut command, context);
        start_listening("ovs-testcontroller", command, context, at.port(), 1)
    },
    ..Dut::controller("ovs-testcontroller", "Open vSwitch's small controller in C")
};
