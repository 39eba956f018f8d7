//! The programs that tests run beside Weir: Open vSwitch, iperf, ping, os-ken, Valgrind, a
//! browser, etcd.
//!
//! As root they are installed when missing, from Debian's packages and, for os-ken, into a private
//! virtual environment below the target folder. It must never let a package start a service: a
//! controller that listens by itself would answer in place of ours.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::{Context, Tally, nextest};
use crate::shell;

/// Program and the Debian package it comes from.
const PROGRAMS: &[(&str, &str)] = &[
    ("ovs-ofctl", "openvswitch-common"),
    ("ovs-vswitchd", "openvswitch-switch"),
    ("ovs-testcontroller", "openvswitch-testcontroller"),
    ("etcd", "etcd-server"),
    ("etcdctl", "etcd-client"),
    ("iperf", "iperf"),
    ("iperf3", "iperf3"),
    ("ping", "iputils-ping"),
    ("ip", "iproute2"),
    ("ethtool", "ethtool"),
    ("python3", "python3-venv"),
    ("c++", "g++"),
    ("valgrind", "valgrind"),
    ("chromium", "chromium"),
    ("chromedriver", "chromium-driver"),
];

const OS_KEN: &str = "os-ken==4.2.2";

/// Installs what is missing, or says what is.
pub(super) fn install(context: &Context) -> Result<Tally> {
    let missing: Vec<_> = PROGRAMS.iter().filter(|(program, _)| !installed(program)).collect();
    let may_install = context.is_root && context.install;
    if !missing.is_empty() && may_install {
        let packages: Vec<&str> = missing.iter().map(|(_, package)| *package).collect();
        println!("installing {}", packages.join(", "));
        apt(context, &packages)?;
    }
    let mut tally = Tally::default();
    for (program, package) in PROGRAMS {
        if installed(program) {
            tally.passed += 1;
        } else if may_install {
            println!("{program} is still missing after installing {package}");
            tally.failed += 1;
        } else {
            tally.left_out.push(format!("{program} is missing (Debian's package {package})"));
        }
    }
    if nextest::program(context).is_none() && context.install && installed("python3") {
        nextest::install(context)?;
    }
    if nextest::program(context).is_some() {
        tally.passed += 1;
    } else {
        tally.left_out.push(nextest::how_to_install());
    }
    if has_os_ken(context) {
        tally.passed += 1;
    } else if may_install && installed("python3") {
        os_ken(context)?;
        tally.passed += 1;
    } else {
        tally.left_out.push(format!("{OS_KEN} is missing (PyPI)"));
    }
    Ok(tally)
}

/// Whether a program is there and whole.
pub(super) fn installed(program: &str) -> bool {
    // Administrators' programs lie outside an ordinary user's path.
    let beside = ["/usr/sbin", "/sbin"].iter().any(|dir| Path::new(dir).join(program).is_file());
    let found = shell::on_path(program) || beside;
    if found && program == "python3" {
        let import = ["-c", "import ensurepip, venv"];
        return shell::capture(std::process::Command::new(program).args(import)).is_ok();
    }
    found
}

/// Installs packages; none of them may start a service.
pub(super) fn apt(context: &Context, packages: &[&str]) -> Result<()> {
    let _quiet = NoServices::new()?;
    let apt_get = |arguments: &[&str]| {
        let mut command = context.command("apt-get");
        command.args(["-qq", "-o", "Dpkg::Use-Pty=0"]).args(arguments);
        command.env("DEBIAN_FRONTEND", "noninteractive");
        shell::run(&mut command)
    };
    apt_get(&["update"])?;
    apt_get(&[&["install", "-y", "--no-install-recommends"], packages].concat())
}

/// While it lives, Debian's packages start no service.
struct NoServices {
    policy: Option<PathBuf>,
}

impl NoServices {
    fn new() -> Result<Self> {
        let policy = PathBuf::from("/usr/sbin/policy-rc.d");
        if policy.exists() {
            return Ok(Self { policy: None });
        }
        std::fs::write(&policy, "#!/bin/sh\nexit 101\n")
            .and_then(|()| {
                std::fs::set_permissions(&policy, std::fs::Permissions::from_mode(0o755))
            })
            .with_context(|| format!("writing {}", policy.display()))?;
        Ok(Self { policy: Some(policy) })
    }
}

impl Drop for NoServices {
    fn drop(&mut self) {
        if let Some(policy) = &self.policy
            && let Err(error) = std::fs::remove_file(policy)
        {
            println!("could not remove {}: {error}", policy.display());
        }
    }
}

/// The virtual environment with os-ken: where the lab looks, below the cache folder of this run.
pub(super) fn venv(context: &Context) -> PathBuf {
    context.cache().join("weir").join(OS_KEN.replace("==", "-"))
}

/// Whether os-ken is installed there.
pub(super) fn has_os_ken(context: &Context) -> bool {
    let python = venv(context).join("bin/python");
    shell::capture(context.command(python).args(["-c", "import os_ken"])).is_ok()
}

fn os_ken(context: &Context) -> Result<()> {
    let dir = venv(context);
    println!("installing {OS_KEN} into a virtual environment of its own");
    shell::run(context.command("python3").args(["-m", "venv"]).arg(&dir))?;
    shell::run(context.command(dir.join("bin/pip")).args(["install", "-q", OS_KEN]))
}
