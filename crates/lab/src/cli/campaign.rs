//! `weir lab run`, and `weir lab gather` of what several machines have run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use programs::cancel::{Cancel, EXIT_INTERRUPTED};
use programs::scratch::FolderLock;

use super::{OutputArgs, PathArgs, TestbedArg, shown, testbed_kind, write_whole};
use crate::campaign::catalogue;
use crate::campaign::gather::gather;
use crate::campaign::job::{Campaign, planned};
use crate::campaign::ledger;
use crate::campaign::run::{CampaignError, execute};
use crate::campaign::scenario::Scenario;
use crate::dut::{self, Dut};
use crate::names::twice;
use crate::present::{FORMS, json, page};
use crate::results::Results;

const RUN_EXAMPLES: &str = "\
Examples:
  weir lab run E4 --dut weir,ovs,linux-bridge --quick --out /tmp/e4
  weir lab run cached-forwarding --dut weir,ovs --starts 8
  weir lab run E5 --dut mine=./start-my-switch.sh,weir --quick --out /tmp/e5
  weir lab run E1 E2 E3 E4 E5 --dut weir,ovs,linux-bridge --quick --dry
  weir lab show cached-forwarding > mine.toml; weir lab run mine.toml
  weir lab run E1 E2 E3 E4 E5 --dut weir,ovs,linux-bridge --out results --resume";

pub(super) const JOBS_EXAMPLES: &str = "\
Examples:
  weir lab jobs E4 --dut weir,ovs --quick
  weir lab run E4 --dut weir,ovs --quick --job 0 --out jobs/0
  weir lab gather --out /tmp/e4 jobs/*";

/// The page of a run in its folder.
const PAGE: &str = "report.html";

/// Bytes of a scenario file, at most.
const FILE_MAX: u64 = 1 << 20;

/// Selection and manner of the measurement.
#[derive(Args, Debug)]
#[command(after_help = RUN_EXAMPLES)]
pub(super) struct CampaignArgs {
    #[command(flatten)]
    selection: SelectionArgs,
    /// Seconds that all of it may take: cells that do not fit are left out and named, and headline
    /// figures get further starts with what is left, until the interval of each ratio is within
    /// 5 % of it [default: further starts until the time that --dry says is over, and none with
    /// --quick or --starts]
    #[arg(long)]
    budget: Option<u64>,
    /// Print what would be measured and about how long it takes, and start nothing
    #[arg(long)]
    dry: bool,
    /// Go on where an earlier run into the same folder was cut off
    #[arg(long)]
    resume: bool,
    /// Measure one start of a switch only, by its number in `weir lab jobs` with the same
    /// arguments: for a pool of machines. Exit code 1: it is to be measured again
    #[arg(long, alias = "cell", value_name = "N")]
    job: Option<usize>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    paths: PathArgs,
}

/// Selection of scenarios, switches and points.
#[derive(Args, Debug)]
pub(super) struct SelectionArgs {
    /// Scenarios: names (see `weir lab list`), E1 to E5 for all of an evaluation, `ports`,
    /// `datapath` or `controller` for all of such a name, or files
    #[arg(required = true)]
    scenario: Vec<String>,
    /// Switches under test, in the order of the tables: names (see `weir lab list`), or
    /// NAME=PROGRAM for one that a program of yours runs (see docs/lab.md)
    #[arg(long, value_delimiter = ',', default_value = "weir")]
    dut: Vec<String>,
    /// Fewer values, fewer starts, shorter trials
    #[arg(long)]
    quick: bool,
    /// Starts of each switch in every cell [default: the scenario's own number]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1000))]
    starts: Option<u16>,
    /// Place of the hosts
    #[arg(long, value_enum, default_value_t = TestbedArg::Auto)]
    testbed: TestbedArg,
    /// Measure at some values of an axis only: frame_size=64,1518. Repeatable, as for values with a
    /// comma in them, which stand alone
    #[arg(long, value_name = "AXIS=VALUES")]
    only: Vec<String>,
    /// Set a key of the settings in every cell (see `weir lab list`): duration_s=5,
    /// replay.folder=DIR. Repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

/// Ledgers to gather.
#[derive(Args, Debug)]
#[command(after_help = JOBS_EXAMPLES)]
pub(super) struct GatherArgs {
    /// Folders that `weir lab run --job` wrote, or their trials.jsonl under any name
    #[arg(required = true)]
    ledger: Vec<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
}

/// The scenarios of a name, an evaluation or a file.
fn scenarios(name: &str) -> Result<Vec<Scenario>> {
    let path = Path::new(name);
    let is_file = path.extension().is_some_and(|ending| ending == "toml") || name.contains('/');
    if !is_file {
        return Ok(catalogue::find(name)?);
    }
    let place = || path.display().to_string();
    let text = files::read_text(path, FILE_MAX).with_context(place)?;
    Ok(vec![Scenario::from_toml(&text).with_context(place)?])
}

fn duts(words: &[String]) -> Result<Vec<&'static Dut>> {
    let duts = words.iter().map(|word| dut::named(word)).collect::<Result<Vec<_>>>()?;
    match twice(duts.iter().map(|dut| dut.name)) {
        Some(name) => bail!("the switch under test {name:?} is named twice"),
        None => Ok(duts),
    }
}

/// Leaves the values that the options name of an axis, in each scenario that has it.
fn restrict(all: &mut [Scenario], only: &[String]) -> Result<()> {
    let mut of_axes: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for option in only {
        let Some((axis, values)) = option.split_once('=') else {
            bail!("--only {option:?}: write AXIS=VALUE,VALUE, for example frame_size=64,1518");
        };
        of_axes.entry(axis).or_default().push(values);
    }
    for (axis, texts) in of_axes {
        let mut is_known = false;
        for scenario in all.iter_mut() {
            is_known |= scenario.restrict(axis, &texts)?;
        }
        if !is_known {
            bail!("--only {axis}={}: none of the scenarios has an axis {axis:?}", texts[0]);
        }
    }
    Ok(())
}

impl SelectionArgs {
    /// A campaign of what was chosen.
    pub(super) fn campaign(&self) -> Result<Campaign> {
        let all = self.scenario.iter().map(|name| scenarios(name));
        let mut all = all.collect::<Result<Vec<_>>>()?.concat();
        if let Some(id) = twice(all.iter().map(|scenario| &*scenario.id)) {
            bail!("the scenario {id:?} is named twice");
        }
        restrict(&mut all, &self.only)?;
        all.iter_mut().try_for_each(|scenario| scenario.set(&self.set))?;
        if self.quick {
            all = all.into_iter().map(Scenario::quick).collect();
        }
        let campaign = Campaign {
            scenarios: all,
            duts: duts(&self.dut)?,
            is_quick: self.quick,
            starts: self.starts.map(usize::from),
            kind: testbed_kind(self.testbed)?,
            ..Campaign::default()
        };
        campaign.check_size()?;
        Ok(campaign)
    }
}

impl CampaignArgs {
    pub(super) fn run(self) -> Result<ExitCode> {
        let campaign = Campaign {
            limit: self.budget.map(Duration::from_secs),
            paths: self.paths.resolve()?,
            is_resumed: self.resume,
            job: self.job,
            ..self.selection.campaign()?
        };
        dut::ensure_given(&campaign.duts, &campaign.paths)?;
        if self.dry {
            return super::printed(&planned(&campaign));
        }
        carry_out(campaign, &self.output)
    }
}

impl GatherArgs {
    pub(super) fn run(self) -> Result<ExitCode> {
        let _lock = take_folder(&self.output.out)?;
        let (results, missing) = gather(&self.ledger, &self.output.out)?;
        publish(&results, &self.output)?;
        missing.iter().for_each(|one| files::eprint_line(format_args!("{one}")));
        let is_whole = missing.is_empty() && results.is_whole();
        Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// Makes the folder of a run and takes it for this one.
fn take_folder(folder: &Path) -> Result<FolderLock> {
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    Ok(FolderLock::take(folder)?)
}

/// Measures into the folder of the output, and publishes what was found.
pub(super) fn carry_out(campaign: Campaign, output: &OutputArgs) -> Result<ExitCode> {
    let cancel = Cancel::on_signals().context("cannot catch signals")?;
    let _lock = take_folder(&output.out)?;
    let campaign = Campaign { folder: output.out.clone(), quiet: output.quiet, ..campaign };
    let draw = |results: &Results, state: Option<&str>| {
        if campaign.job.is_none() {
            // The page at the end says why it cannot be written.
            let _ = write_whole(&output.out.join(PAGE), &page(results, state));
        }
    };
    let is_good = match execute(&campaign, &cancel, &draw) {
        Ok((_, fault)) if campaign.job.is_some() => {
            files::print(&format!("{}\n", shown(&output.out.join(ledger::NAME))))?;
            fault.iter().for_each(|why| files::eprint_line(format_args!("{why}")));
            fault.is_none()
        }
        Ok((results, _)) => {
            publish(&results, output)?;
            results.is_whole()
        }
        Err(CampaignError::Stopped(_)) => {
            let folder = shown(&output.out);
            files::eprint_line(format_args!(
                "interrupted; its trials are in {folder}; --resume goes on behind them"
            ));
            return Ok(ExitCode::from(EXIT_INTERRUPTED));
        }
        Err(error) => return Err(error.into()),
    };
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Shows the results, then writes the page: what was measured is seen even when the disk is full,
/// and written even when nobody reads it.
fn publish(results: &Results, output: &OutputArgs) -> Result<()> {
    let is_terminal = output.format.name == FORMS[0].name && !output.json;
    let text = match output.json {
        true => json(results),
        false => output.format.render(results, &super::view(output.all)),
    };
    let printed = files::print(&if is_terminal { text + "\n" } else { text });
    let (html, ledger) = (output.out.join(PAGE), output.out.join(ledger::NAME));
    write_whole(&html, &page(results, None))?;
    printed?;
    if is_terminal {
        files::print(&format!("{}\n{}\n", shown(&html), shown(&ledger)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Scenario, catalogue, restrict};

    /// The values that are left of the first axis of `cached-forwarding`.
    fn left(only: &[&str]) -> Result<Vec<String>, String> {
        let mut all: Vec<Scenario> = catalogue::find("cached-forwarding").unwrap();
        let axis = all[0].axis_infos()[0].name.clone();
        let only: Vec<String> = only.iter().map(|text| text.replace("AXIS", &axis)).collect();
        restrict(&mut all, &only).map_err(|error| error.to_string())?;
        Ok(all[0].axis_infos().swap_remove(0).values)
    }

    #[test]
    fn a_value_with_a_comma_is_named_by_an_option_of_its_own() {
        let first = "1 entry, 1 field";
        assert_eq!(left(&["AXIS=1 entry, 1 field"]).unwrap(), [first]);
        let both = left(&["AXIS=61,000 entries, 1 field", "AXIS=1 entry, 1 field"]).unwrap();
        assert_eq!(both, [first, "61,000 entries, 1 field"]);
        let error = left(&["AXIS=1 entry, 1 field,2 entries"]).unwrap_err();
        assert!(error.contains("has no value"), "{error}");
        assert!(left(&["nothing=1"]).unwrap_err().contains("an axis \"nothing\""));
        assert!(left(&["AXIS"]).unwrap_err().contains("AXIS=VALUE"));
    }
}
