//! A scenario as it is measured: its methods, its cells, and the turns of one start of each switch.

use std::time::Duration;

use super::Campaign;
use crate::campaign::order::Group;
use crate::campaign::scenario::{Scenario, ScenarioCell, ScenarioError};
use crate::controller::{self, ControllerProgram};
use crate::dut::Dut;
use crate::method::Method;
use crate::names;
use crate::results::CellState;
use crate::settings::{Forwarding, Settings};
use crate::setup::TestbedKind;

/// A scenario with its cells.
pub(super) struct CampaignPart<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) methods: Vec<&'static dyn Method>,
    pub(super) cells: Vec<ScenarioCell>,
    pub(super) starts: usize,
    pub(super) is_quick: bool,
}

pub(super) fn parts(campaign: &Campaign) -> Result<Vec<CampaignPart<'_>>, ScenarioError> {
    let part = |scenario| {
        let scenario: &Scenario = scenario;
        Ok(CampaignPart {
            scenario,
            methods: scenario.methods(campaign.is_quick)?,
            cells: cells(scenario, campaign)?,
            starts: campaign.starts.unwrap_or_else(|| scenario.starts(campaign.is_quick)),
            is_quick: campaign.is_quick,
        })
    };
    campaign.scenarios.iter().map(part).collect()
}

/// The cells of a scenario on the campaign's testbed: wires in memory have no rates.
fn cells(scenario: &Scenario, campaign: &Campaign) -> Result<Vec<ScenarioCell>, ScenarioError> {
    let mut cells = scenario.cells(campaign.is_quick)?;
    if campaign.kind == TestbedKind::Memory {
        for cell in &mut cells {
            (cell.settings.port_rate, cell.settings.control_rate) = (None, None);
        }
    }
    Ok(cells)
}

/// The controller that decides, where one does.
pub(super) fn controller_of(
    settings: &Settings,
) -> Option<Result<&'static dyn ControllerProgram, CellState>> {
    if settings.forwarding() != Forwarding::Controller {
        return None;
    }
    let name = settings.controller.as_deref().unwrap_or("weir");
    Some(controller::find(name).ok_or_else(|| {
        let known = controller::ALL.iter().map(|one| one.name());
        CellState::Failed(names::unknown("controller", name, known))
    }))
}

impl CampaignPart<'_> {
    pub(super) fn steps(&self, campaign: &Campaign) -> usize {
        self.cells.len() * self.methods.len() * self.starts * campaign.duts.len()
    }

    /// About how long a method takes in one start.
    pub(super) fn cost(&self, method: &dyn Method, cell: &ScenarioCell) -> Duration {
        let settings = self.settings(method, cell);
        let trials = self.scenario.trials(method, self.is_quick);
        method.cost(&settings) * u32::try_from(trials).unwrap_or(u32::MAX)
    }

    /// Settings with which a method measures a cell.
    pub(super) fn settings(&self, method: &dyn Method, cell: &ScenarioCell) -> Settings {
        self.scenario.settings_of(method, &cell.settings, self.is_quick)
    }

    /// The values of its axes.
    pub(super) fn values(&self) -> Result<Vec<(String, Vec<String>)>, ScenarioError> {
        let axes = self.scenario.axis_infos(self.is_quick)?.into_iter();
        Ok(axes.map(|axis| (axis.name, axis.values)).collect())
    }

    /// Whether something of it has a floor.
    pub(super) fn has_floor(&self) -> bool {
        self.methods.iter().any(|method| !method.floors().is_empty())
    }

    /// The cells that differ in what is sent, by their first.
    pub(super) fn traffics(&self) -> Vec<usize> {
        let mut first: Vec<usize> = Vec::new();
        for index in 0..self.cells.len() {
            if !first.iter().any(|other| self.has_same_traffic(*other, index)) {
                first.push(index);
            }
        }
        first
    }

    fn has_same_traffic(&self, one: usize, other: usize) -> bool {
        self.cells[one].settings.traffic() == self.cells[other].settings.traffic()
    }

    /// The first cell with the traffic of that one.
    pub(super) fn traffic_of(&self, cell: usize) -> usize {
        (0..=cell).find(|other| self.has_same_traffic(*other, cell)).unwrap_or(cell)
    }
}

/// The turns of one start: every group on every switch that is not left out there.
pub(super) fn turns<'g>(
    part: &CampaignPart<'_>,
    campaign: &Campaign,
    all: &[Group<'g>],
) -> Vec<(Group<'g>, &'static dyn Dut)> {
    let mut turns = Vec::new();
    for group in all {
        for dut in &campaign.duts {
            let group = group.with(|cell| !part.scenario.is_without(dut.name(), &cell.at));
            if !group.cells.is_empty() {
                turns.push((group, *dut));
            }
        }
    }
    turns
}
