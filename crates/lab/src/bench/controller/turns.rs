//! Several controllers measured in turns on the same core, in the order A B B A.
//!
//! Each is held still by a signal while another is measured, so that what other programs do to the
//! machine falls on all alike. After a storm of connections a controller's memory is no longer what
//! it was, so for that each measurement has a controller of its own.

use anyhow::{Context, Result, ensure};

use super::super::common::Run;
use super::contenders::{Contender, LaunchPlan, Running};
use super::fleet::FleetPlan;
use super::rows::FigureRow;
use super::trial::{Measured, Mode};
use super::{Setup, measure};

/// Measures each, and compares the first with the others. One that serves fewer switches than are
/// asked for is measured with as many as it serves, and is called so.
///
/// # Errors
/// One does not start or does not serve the switches, or the run was interrupted.
pub(super) fn in_turns(
    contenders: &[Contender],
    setup: &Setup,
    run: &mut Run,
) -> Result<Vec<FigureRow>> {
    let first = contenders.first().context("no controller")?;
    let (count, wanted) = (switches(first, setup), setup.fleet.switches);
    ensure!(count == wanted, "{} serves at most {count} switches", first.name);
    let all = series(contenders, setup, run)?;
    let mut pairs = contenders.iter().zip(&all);
    let (_, first) = pairs.next().context("no controller")?;
    let mut rows = Vec::new();
    for (other, theirs) in pairs {
        let count = switches(other, setup);
        let is_less = count < setup.fleet.switches;
        let name =
            if is_less { format!("{} ({count} switches)", other.name) } else { other.name.clone() };
        rows.extend(FigureRow::beside(&setup.name, first, &name, theirs));
    }
    Ok(if rows.is_empty() { FigureRow::alone(&setup.name, first) } else { rows })
}

/// Number of switches with which a controller is measured.
fn switches(contender: &Contender, setup: &Setup) -> u32 {
    contender.switches_max.map_or(setup.fleet.switches, |max| max.min(setup.fleet.switches))
}

/// The measurements of each.
fn series(contenders: &[Contender], setup: &Setup, run: &mut Run) -> Result<Vec<Vec<Measured>>> {
    let cancel = run.cancel.clone();
    let launch = LaunchPlan {
        app: setup.app,
        own_app: setup.trial.mode.own_app(),
        has_rest: setup.trial.mode.asks_rest(),
        version: setup.fleet.version,
        cores: setup.controller_cores.clone(),
        paths: &setup.paths,
        cancel: &cancel,
    };
    // What it has learned of one ring is in the way of the next, too.
    let is_fresh = matches!(
        setup.trial.mode,
        Mode::Storm | Mode::Topology | Mode::DiscoverySize | Mode::Reprovisioning
    );
    let start = |contender: &Contender| Running::start(contender, &launch);
    let mut running = Vec::new();
    if !is_fresh {
        running = contenders.iter().map(start).collect::<Result<Vec<_>>>()?;
    }
    let mut held = running.iter().map(|one| one.hold().map(Some)).collect::<Result<Vec<_>>>()?;
    let mut all: Vec<Vec<Measured>> = contenders.iter().map(|_| Vec::new()).collect();
    for round in 0..run.repeats {
        for step in 0..contenders.len() {
            let index = if round % 2 == 0 { step } else { contenders.len() - 1 - step };
            let contender = &contenders[index];
            run.progress.begin(&format!("{}: {}, {}", setup.name, contender.name, round + 1));
            let measured = if is_fresh {
                one(&start(contender)?, contender, setup, run)?
            } else {
                held[index] = None;
                let measured = one(&running[index], contender, setup, run)?;
                held[index] = Some(running[index].hold()?);
                measured
            };
            all[index].push(measured);
            run.progress.advance(1);
        }
    }
    Ok(all)
}

/// Measures a controller that runs, once.
fn one(running: &Running, contender: &Contender, setup: &Setup, run: &Run) -> Result<Measured> {
    let switches = switches(contender, setup);
    let fleet = FleetPlan {
        switches,
        pace: setup.trial.pace(switches),
        target: running.endpoint.clone(),
        tls: running.tls.clone(),
        pid: Some(running.pid),
        rest: running.rest.clone(),
        ..setup.fleet.clone()
    };
    measure(&setup.trial, fleet, &run.cancel)
        .with_context(|| format!("{}; its last lines:\n{}", running.name, running.tails()))
}
